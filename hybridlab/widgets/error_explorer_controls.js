// The controls of an error explorer, and its figures as tables. `error_explorer_picture.js` stands above this file.

const WAYS = { ring: "Ring", "one-shot": "One shot", both: "Both" };

function choiceOf(id, label, pick) {
  const select = make("select");
  select.addEventListener("change", () => pick(select.value));
  const show = (value, options) => {
    if (!select.options.length) select.append(...options.map(([name, title]) => make("option", { value: name }, title)));
    select.value = value;
  };
  return { element: field(id, label, select), show };
}

// A box to tick for each wire format, with the mark that it has in the picture.
function formatsOf(id, pick) {
  const element = make("fieldset", {}, make("legend", {}, "Wire formats"));
  let boxes = [];
  const fill = (names) => {
    boxes = names.map((name) => make("input", { type: "checkbox", value: name }));
    const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);
    boxes.forEach((box, shape) => {
      box.addEventListener("change", () => pick(chosen()));
      const mark = make("svg", { width: 18, height: 18, "aria-hidden": "true" }, markOf(shape, 9, 9, 5, { class: `point of-${shape}` }));
      element.append(make("label", {}, box, mark, make("span", {}, names[shape])));
    });
  };
  const show = (value, names) => {
    if (!boxes.length) fill(names);
    for (const box of boxes) box.checked = value.includes(box.value);
  };
  return { element, show };
}

function controlsOf(id, pick) {
  const controls = {
    algorithm: choiceOf(`${id}-algorithm`, "All-reduce", (value) => pick("algorithm", value)),
    distribution: choiceOf(`${id}-distribution`, "Numbers", (value) => pick("distribution", value)),
    ranks: markerOf(`${id}-ranks`, "Ranks at the marker", (ranks) => `${ranks} ranks`, (value) => pick("ranks", value)),
  };
  const formats = formatsOf(id, (value) => pick("formats", value));
  const fields = make("div", { class: "fields", role: "group", "aria-label": "What is shown" });
  fields.append(...Object.values(controls).map((control) => control.element));
  const show = (measured, shown) => {
    controls.algorithm.show(shown.algorithm, [...measured.algorithms, "both"].map((name) => [name, WAYS[name] ?? name]));
    controls.distribution.show(shown.distribution, measured.distributions.map((name) => [name, name]));
    controls.ranks.show(shown.ranks, measured.ranks);
    formats.show(shown.formats, measured.formats);
  };
  return { elements: [fields, formats.element], show };
}

// The figures where the marker stands, and, folded, all that are drawn.
function figuresOf() {
  const [here, all] = [make("table", { class: "here" }), make("table")];
  const every = "All values of the picture";
  const wide = make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": every }, all);
  const fold = make("details", {}, make("summary", {}, every), wide);
  const draw = (measured, shown, series) => {
    const [place, both] = [measured.ranks.indexOf(shown.ranks), shown.algorithm === "both"];
    const names = series.map((each) => nameOf(each, both));
    const cells = ({ nmse, law, nbytes, saving }) => [small(nmse[place]), small(law[place]), whole(nbytes[place]), `${saving[place].toFixed(2)}\u00d7`];
    const heads = ["Wire format", "NMSE", "Law", "Bytes a rank", "Fewer than FP32"];
    here.replaceChildren(...tableOf(`On ${shown.ranks} ranks`, heads, series.map((each, row) => [names[row], ...cells(each)])));
    const rows = measured.ranks.map((ranks, row) => [ranks, ...series.flatMap((each) => [small(each.nmse[row]), small(each.law[row])])]);
    all.replaceChildren(...tableOf("NMSE, and its law", ["Ranks", ...names.flatMap((name) => [name, "law"])], rows));
  };
  return { elements: [here, fold], draw };
}
