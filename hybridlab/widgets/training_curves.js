// Training curves: a run and a step to choose, plots of loss and held-out accuracy against the step, and the numbers as a table.

import { oneOfEach, wholeFrom } from "./setting.js";
import { shareRow } from "./share.js";
import { at, POINTING, pointed } from "./chart.js";
import { field, freshId, grouped, keepDrawn, make, number, rootIn, selectOf } from "./view.js";

// ---- the picture ----

const SIZE = { width: 420, height: 260, left: 50, right: 12, top: 12, bottom: 44 };
const PLOT = { right: SIZE.width - SIZE.right, bottom: SIZE.height - SIZE.bottom };

const along = (value, from, to, start, end) => start + ((value - from) / (to - from)) * (end - start);
const pathOf = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${at(x)} ${at(y)}`).join("");

// Steps to label: multiples of 1, 2 or 5 times a power of ten, at most five beside 0.
function stepsOf(last) {
  const rough = last / 5;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const apart = Math.max(1, [1, 2, 5, 10].map((each) => each * ten).find((each) => each >= rough));
  return Array.from({ length: Math.floor(last / apart) + 1 }, (_, place) => place * apart);
}

function plotOf(title) {
  const svg = make("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, class: "plot", role: "img" });
  const element = make("figure", {}, make("figcaption", {}, title), svg);

  // `curves` are [class, points, whether to draw dots], `ticks` are [value on the axis, text], a line marks `step`.
  const draw = ({ words, steps, step, range, ticks, curves }) => {
    const x = (value) => along(value, 0, steps, SIZE.left, PLOT.right);
    const y = (value) => along(value, range[0], range[1], PLOT.bottom, SIZE.top);
    const rows = ticks.flatMap(([value, text]) => [
      make("line", { class: "grid", x1: SIZE.left, x2: PLOT.right, y1: at(y(value)), y2: at(y(value)) }),
      make("text", { class: "tick row", x: SIZE.left - 6, y: at(y(value) + 5) }, text),
    ]);
    const columns = stepsOf(steps).map((value) => make("text", { class: "tick", x: at(x(value)), y: PLOT.bottom + 18 }, String(value)));
    const drawn = curves.flatMap(([name, points, dots]) => {
      const places = points.map(([value, height]) => [x(value), y(height)]);
      const marks = dots ? places.map(([cx, cy]) => make("circle", { class: name, cx: at(cx), cy: at(cy), r: 3 })) : [];
      return [make("path", { class: `curve ${name}`, d: pathOf(places) }), ...marks];
    });
    const marker = make("line", { class: "marker", x1: at(x(step)), x2: at(x(step)), y1: SIZE.top, y2: PLOT.bottom });
    const name = make("text", { class: "tick", x: at((SIZE.left + PLOT.right) / 2), y: SIZE.height - 6 }, "step");
    svg.setAttribute("aria-label", words);
    svg.replaceChildren(...rows, ...columns, name, marker, ...drawn);
  };
  return { element, draw };
}

function pictureOf() {
  const [loss, accuracy] = [plotOf("Loss of each global batch"), plotOf("Held-out accuracy, %")];
  const element = make("div", { class: "plots" }, loss.element, accuracy.element);

  const draw = (data, run, step) => {
    const [low, high] = data.decades;
    const powers = Array.from({ length: high - low + 1 }, (_, place) => low + place);
    const losses = (curves) => curves.losses.map((value, place) => [place + 1, Math.log10(value)]);
    const shares = (curves) => curves.accuracies.map((value, place) => [data.checked[place], 100 * value]);
    const last = (values) => number(values[values.length - 1]);
    const both = (name, values) => `${name} of the chosen run, ${values(run)}; of one device, ${values(data.alone)}.`;
    loss.draw({
      words: both("Loss on a logarithmic axis", ({ losses: all }) => `from ${number(all[0])} in step 1 to ${last(all)} in step ${data.steps}`),
      steps: data.steps,
      step,
      range: data.decades,
      ticks: powers.map((power) => [power, number(10 ** power)]),
      curves: [["run", losses(run)], ["alone", losses(data.alone)]],
    });
    accuracy.draw({
      words: both("Held-out accuracy", ({ accuracies: all }) => `${percent(all[all.length - 1])} after step ${data.steps}`),
      steps: data.steps,
      step,
      range: [0, 100],
      ticks: [0, 25, 50, 75, 100].map((value) => [value, String(value)]),
      curves: [["run", shares(run), true], ["alone", shares(data.alone), true]],
    });
  };
  // The step under the pointer, or null between the plots.
  const stepAt = (event, steps) => {
    const plot = event.target.closest("svg");
    if (!plot) return null;
    const { left, width } = plot.getBoundingClientRect();
    const x = ((event.clientX - left) / width) * SIZE.width;
    return Math.min(Math.max(Math.round(along(x, SIZE.left, PLOT.right, 0, steps)), 1), steps);
  };
  return { element, draw, stepAt };
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

// ---- the widget ----

const SETTING = ["chosen", "step"];
const HEAD = ["", "loss", "held-out accuracy", "replicas differ by", "bytes a step"];

function sliderOf(id, steps, pick) {
  const input = make("input", { type: "range", min: 1, max: steps, step: 1 });
  const output = make("output", { for: id, "aria-live": "off" }); // a screen reader reads the value from the slider
  input.addEventListener("input", () => pick(Number(input.value)));
  const show = (step) => ((input.value = step), (output.textContent = step));
  return { element: field(id, "Read at step", input, output), show, focus: () => input.focus({ preventScroll: true }) };
}

function legend() {
  const key = (name, words) => {
    const line = make("line", { class: `curve ${name}`, x1: 0, x2: 28, y1: 5, y2: 5 });
    return make("span", {}, make("svg", { width: 28, height: 10, "aria-hidden": "true" }, line), ` ${words}`);
  };
  return make("p", { class: "legend" }, key("run", "the chosen run"), key("alone", "one device"));
}

// The numbers at a step. The accuracy and the difference come from the last check up to that step.
function numbersAt(data, curves, step) {
  const check = data.checked.filter((each) => each <= step).length - 1;
  const early = check < 0 && "not taken yet";
  const taken = early || `${percent(curves.accuracies[check])} after step ${data.checked[check]}`;
  if (!curves.spread) return [number(curves.losses[step - 1]), taken, "no replicas", "none"]; // one device
  const difference = curves.spread[check];
  const differ = early || (difference === 0 ? "0, bit for bit" : number(difference));
  const bytes = Number.isFinite(curves.bytes) ? grouped(curves.bytes) : "not counted";
  return [number(curves.losses[step - 1]), taken, differ, bytes];
}

function render({ model, el }) {
  const root = rootIn(el, "training");
  const id = freshId();
  const change = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  let [parts, looked] = [null, null]; // `looked` is the step under the pointer
  const look = (step) => {
    looked = step;
    show();
  };
  const setUp = () => {
    const data = model.get("data");
    const pick = (place, value) => change("chosen", model.get("chosen").with(place, value));
    const selects = data.axes.map(({ name }, place) => selectOf(`${id}-${place}`, name, (value) => pick(place, value)));
    const rules = () => ({ chosen: oneOfEach(data.axes.map(({ values }) => values)), step: wholeFrom(1, data.steps) });
    const slider = sliderOf(`${id}-step`, data.steps, (step) => change("step", step));
    const controls = [...selects, slider].map((control) => control.element);
    const picture = pictureOf();
    const rows = make("tbody");
    const head = make("thead", {}, make("tr", {}, ...HEAD.map((text) => (text ? make("th", { scope: "col" }, text) : make("td")))));
    const caption = make("caption");
    const told = make("p", { class: "unseen", role: "status" });
    const fields = make("div", { class: "fields", role: "group", "aria-label": "Run" }, ...controls);
    root.append(fields, shareRow(model, SETTING, rules), legend(), picture.element, make("table", {}, caption, head, rows), told);
    root.append(make("p", { class: "hint" }, POINTING));
    const valueAt = (event) => picture.stepAt(event, data.steps);
    const end = pointed(root, picture.element, { valueAt, look, pick: (step) => change("step", step), focus: slider.focus });
    return { selects, slider, picture, rows, caption, told, end };
  };
  const show = () => {
    parts ??= setUp();
    const [data, chosen, step] = [model.get("data"), model.get("chosen"), looked ?? model.get("step")];
    const run = data.runs[chosen.join("|")];
    data.axes.forEach(({ values }, place) => parts.selects[place].show(chosen[place], values.map((value) => [value, value])));
    parts.slider.show(model.get("step"));
    parts.picture.draw(data, run, step);
    const lines = [["the chosen run", run], ["one device", data.alone]].map(([name, curves]) => [name, ...numbersAt(data, curves, step)]);
    const row = ([name, ...cells]) => make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((text) => make("td", {}, text)));
    parts.rows.replaceChildren(...lines.map(row));
    parts.caption.textContent = `${chosen.join(", ")}: step ${step} of ${data.steps}`;
    const words = lines.map(([name, loss, accuracy]) => `${name}: loss ${loss}, accuracy ${accuracy}`).join("; ");
    parts.told.setAttribute("aria-live", looked === null ? "polite" : "off");
    parts.told.textContent = `${parts.caption.textContent}. ${words}.`;
  };
  return keepDrawn(model, root, SETTING, show, () => parts?.end()).end;
}

export default { render };
