// The controls of a sweep explorer, its legend, and its figures as a table. `sweep_explorer_picture.js` stands above this file.

// Boxes to tick, in a group; an `entry` is a value, its words, and what stands between box and words.
function boxesOf(name, kind, pick) {
  const element = make("fieldset", { class: kind }, make("legend", {}, name));
  let boxes = [];
  const fill = (entries) => {
    boxes = entries.map(([value]) => make("input", { type: "checkbox", value }));
    const ticked = () => boxes.filter((box) => box.checked).map((box) => box.value);
    boxes.forEach((box, place) => {
      box.addEventListener("change", () => pick(ticked()));
      element.append(make("label", {}, box, ...entries[place].slice(2), make("span", {}, entries[place][1])));
    });
  };
  const show = (value, entries) => {
    if (entries.map(([each]) => each).join("|") !== boxes.map((box) => box.value).join("|")) {
      boxes.forEach((box) => box.parentElement.remove());
      fill(entries);
    }
    for (const box of boxes) box.checked = value.includes(box.value);
    element.hidden = !entries.length;
  };
  return { element, show };
}

// A short piece of a line with its mark: the key to the picture.
function sampleOf(line) {
  const dash = line.dash.join(" ") || "none";
  const stroke = make("path", { d: "M1 9H35", class: "curve", "stroke-width": line.width, "stroke-dasharray": dash });
  const mark = markOf(line.shape, 18, 9, line.size, { class: `point${line.hollow ? " hollow" : ""}` });
  return make("svg", { width: 36, height: 18, style: coloured(line), "aria-hidden": "true" }, stroke, mark);
}

function controlsOf(id, data, change) {
  const quantity = selectOf(`${id}-quantity`, "Vertical axis", (value) => change("quantity", value));
  const choices = data.choices.map(({ name, values }, place) =>
    selectOf(`${id}-${place}`, named(data.choices[place]), (value) => change("chosen", (chosen) => ({ ...chosen, [name]: values[Number(value)] }))),
  );
  const place = markerOf(`${id}-at`, `Read at ${named(data.x)}`, (value) => withUnit(number(value), data.x), (value) => change("at", value));
  const fields = make("div", { class: "fields", role: "group", "aria-label": "What is shown" });
  fields.append(...[quantity, ...choices, place].map((control) => control.element));
  let axes = []; // those of the picture now; another quantity keeps its own scale
  const others = (names) => names.filter((name) => !axes.some((axis) => axis.name === name));
  const scales = boxesOf("Logarithmic axes", "scales", (names) => change("logarithmic", (before) => [...names, ...others(before)]));
  const lines = boxesOf("Lines", "lines", (names) => change("drawn", names));

  const show = (shown) => {
    quantity.show(shown.quantity, data.quantities.map((axis) => [axis.name, named(axis)]));
    choices.forEach((control, which) => {
      const { name, values, titles } = data.choices[which];
      control.show(String(values.indexOf(shown.chosen[name])), titles.map((title, each) => [String(each), title]));
    });
    place.show(shown.at, data.x.values);
    axes = [data.x, data.quantities.find(({ name }) => name === shown.quantity)];
    scales.show(shown.logarithmic, axes.filter(({ positive }) => positive).map(({ name, label }) => [name, label]));
    lines.show(shown.drawn, data.lines.map((line) => [line.name, line.name, sampleOf(line)]));
  };
  return { fields, scales: scales.element, lines: lines.element, show };
}

// The numbers of the picture: a row for each line that is drawn, a column for each x.
function figuresOf() {
  const table = make("table");
  const wide = make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "The numbers of the picture" }, table);
  const notes = make("div", { class: "notes" });
  const draw = (reading) => {
    const { drawn, x, y, place, setting } = reading;
    const cell = (line, value, each) => {
      const kind = each === place ? { class: "now" } : {};
      return value === null ? make("td", { ...kind, title: line.reasons[each] }, "\u2013") : make("td", kind, told(y, value));
    };
    const rows = drawn.map((line) => [line.name, ...line.points.map((value, each) => cell(line, value, each))]);
    table.replaceChildren(...tableOf(`${named(y)}, by ${named(x)}${setting && `: ${setting}`}`, ["", ...x.values.map(number)], rows));
    notes.replaceChildren(...missing(reading).map((text) => make("p", {}, text)));
  };
  return { elements: [wide, notes], draw };
}
