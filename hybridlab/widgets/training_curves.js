// Training curves: a run to choose, a step to read it at, the picture, and the numbers as a table.
// Above it stand view.js and training_curves_picture.js; together they are one module.

const SETTING = ["chosen", "step"];
const HEAD = ["", "loss", "held-out accuracy", "replicas differ by", "bytes a step"];

function sliderOf(id, steps, pick) {
  const input = make("input", { type: "range", min: 1, max: steps, step: 1 });
  const output = make("output", { for: id, "aria-live": "off" }); // the slider itself says its value
  input.addEventListener("input", () => pick(Number(input.value)));
  const show = (step) => ((input.value = step), (output.textContent = step));
  return { element: field(id, "Read at step", input, output), show };
}

function legend() {
  const key = (name, words) => {
    const line = make("line", { class: `curve ${name}`, x1: 0, x2: 28, y1: 5, y2: 5 });
    return make("span", {}, make("svg", { width: 28, height: 10, "aria-hidden": "true" }, line), ` ${words}`);
  };
  return make("p", { class: "legend" }, key("run", "the chosen run"), key("alone", "one device"));
}

// The numbers of a step; the accuracy and the difference are those of the last check until then.
function numbersAt(data, curves, step) {
  const check = data.checked.filter((each) => each <= step).length - 1;
  const early = check < 0 && "not taken yet";
  const taken = early || `${percent(curves.accuracies[check])} after step ${data.checked[check]}`;
  if (!curves.spread) return [number(curves.losses[step - 1]), taken, "no replicas", "none"]; // one device
  const difference = curves.spread[check];
  const differ = early || (difference === 0 ? "0, bit for bit" : number(difference));
  const bytes = Number.isFinite(curves.bytes) ? curves.bytes.toLocaleString("en") : "not counted";
  return [number(curves.losses[step - 1]), taken, differ, bytes];
}

function render({ model, el }) {
  const root = rootIn(el, "training");
  const id = freshId();
  const change = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  let parts;
  const setUp = () => {
    const data = model.get("data");
    const pick = (place, value) => change("chosen", model.get("chosen").with(place, value));
    const selects = data.axes.map(({ name }, place) => selectOf(`${id}-${place}`, name, (value) => pick(place, value)));
    const slider = sliderOf(`${id}-step`, data.steps, (step) => change("step", step));
    const controls = [...selects, slider].map((control) => control.element);
    const picture = pictureOf();
    const rows = make("tbody");
    const head = make("thead", {}, make("tr", {}, ...HEAD.map((text) => (text ? make("th", { scope: "col" }, text) : make("td")))));
    const caption = make("caption");
    const told = make("p", { class: "unseen", role: "status" });
    const fields = make("div", { class: "fields", role: "group", "aria-label": "Run" }, ...controls);
    root.append(fields, legend(), picture.element, make("table", {}, caption, head, rows), told);
    return { selects, slider, picture, rows, caption, told };
  };
  const show = () => {
    parts ??= setUp();
    const [data, chosen, step] = [model.get("data"), model.get("chosen"), model.get("step")];
    const run = data.runs[chosen.join("|")];
    data.axes.forEach(({ values }, place) => parts.selects[place].show(chosen[place], values.map((value) => [value, value])));
    parts.slider.show(step);
    parts.picture.draw(data, run, step);
    const lines = [["the chosen run", run], ["one device", data.alone]].map(([name, curves]) => [name, ...numbersAt(data, curves, step)]);
    const row = ([name, ...cells]) => make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((text) => make("td", {}, text)));
    parts.rows.replaceChildren(...lines.map(row));
    parts.caption.textContent = `${chosen.join(", ")}: step ${step} of ${data.steps}`;
    const words = lines.map(([name, loss, accuracy]) => `${name}: loss ${loss}, accuracy ${accuracy}`).join("; ");
    parts.told.textContent = `${parts.caption.textContent}. ${words}.`;
  };
  return keepDrawn(model, root, SETTING, show, () => {}).end;
}

export default { render };
