// The picture of training curves: two plots, loss and held-out accuracy against the step. Above it stands view.js.

const SIZE = { width: 420, height: 260, left: 50, right: 12, top: 12, bottom: 44 };
const PLOT = { right: SIZE.width - SIZE.right, bottom: SIZE.height - SIZE.bottom };

const along = (value, from, to, start, end) => start + ((value - from) / (to - from)) * (end - start);
const at = (value) => value.toFixed(1);
const pathOf = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${at(x)} ${at(y)}`).join("");

// Multiples of 1, 2 or 5 times a power of ten that divide the steps into five parts or fewer.
function stepsOf(last) {
  const rough = last / 5;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const apart = Math.max(1, [1, 2, 5, 10].map((each) => each * ten).find((each) => each >= rough));
  return Array.from({ length: Math.floor(last / apart) + 1 }, (_, place) => place * apart);
}

function plotOf(title) {
  const svg = make("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, class: "plot", role: "img" });
  const element = make("figure", {}, make("figcaption", {}, title), svg);

  // `curves` are [class, points]; `ticks` are [value on the axis, text]; `step` is marked by a line.
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
  return { element, draw };
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
