// A sweep explorer: controls, a legend, a picture of lines on linear or logarithmic axes, a sentence, and the numbers as a table.

import { at, markerOf, markOf, POINTING, pointed, spread, tableOf, watched } from "./chart.js";
import { oneOf, someOf } from "./setting.js";
import { shareRow } from "./share.js";
import { counted, freshId, keepDrawn, listed, make, number, rootIn, selectOf } from "./view.js";

// ---- the data of a setting, in numbers and words ----

const SETTING = ["quantity", "chosen", "at", "drawn", "logarithmic"]; // the traits of the setting

const isGood = (value) => value === null || Number.isFinite(value);
const named = ({ label, unit }) => (unit ? `${label}, ${unit}` : label);
const withUnit = (value, { unit }) => (unit ? `${value} ${unit}` : value);
const told = (quantity, value) => (quantity.name === "bubble_ratio" ? value.toFixed(3) : number(value));

// The lines, with the values of the chosen quantity in the chosen setting (`points`) and in all settings (`all`). Throws if the data are
// damaged.
function linesOf(data, shown) {
  const count = data.x.values.length;
  const every = data.values[shown.quantity];
  const places = data.choices.map(({ name, values }) => values.indexOf(shown.chosen[name]));
  const block = places.reduce((before, place, which) => before * data.choices[which].values.length + place, 0);
  const blocks = data.choices.reduce((before, { values }) => before * values.length, 1);
  const known = (names, offered) => names.every((each) => offered.some(({ name }) => name === each));
  const drawable = known(shown.drawn, data.lines) && known(shown.logarithmic, [data.x, ...data.quantities].filter(({ positive }) => positive));
  const sound = every.length === blocks * data.lines.length * count && every.length === data.why.length && every.every(isGood);
  if (!sound || !drawable || places.includes(-1) || !data.x.values.includes(shown.at)) throw new Error("the values of this sweep are damaged");
  return data.lines.map((line, row) => {
    const from = (each) => (each * data.lines.length + row) * count;
    const points = every.slice(from(block), from(block) + count);
    const reasons = data.why.slice(from(block), from(block) + count).map((each) => (each ? data.reasons[each - 1] : "there is no result"));
    const all = Array.from({ length: blocks }, (_, each) => every.slice(from(each), from(each) + count)).flat();
    return { ...line, points, reasons, all, drawn: shown.drawn.includes(line.name) };
  });
}

// Everything that a setting shows. `x` and `y` are the axes, `setting` says in words what is chosen.
function readingOf(data, shown) {
  const lines = linesOf(data, shown);
  const axis = (each) => ({ ...each, logarithmic: shown.logarithmic.includes(each.name) });
  const y = axis(data.quantities.find(({ name }) => name === shown.quantity));
  const place = data.x.values.indexOf(shown.at);
  const titleOf = ({ name, values, titles }) => titles[values.indexOf(shown.chosen[name])];
  const setting = data.choices.map((choice) => `${choice.label} = ${withUnit(titleOf(choice), choice)}`).join(", ");
  return { drawn: lines.filter((line) => line.drawn), x: axis(data.x), y, at: shown.at, place, setting };
}

// The least and the greatest value at the chosen x, in a sentence.
function sentence({ drawn, x, y, at: now, place }) {
  const head = `${y.label} at ${x.label} = ${withUnit(number(now), x)}`;
  if (!drawn.length) return `${head}: no line is chosen.`;
  const values = drawn.map((line) => line.points[place]).filter((value) => value !== null);
  if (!values.length) return `${head}: none of the lines has a value.`;
  const with_ = (value) => {
    const names = drawn.filter((line) => line.points[place] === value).map((line) => line.name);
    return `${listed(names, "; ")}, ${withUnit(told(y, value), y)}`;
  };
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? `${head}: ${with_(least)}.` : `${head}, the least: ${with_(least)}; the most: ${with_(most)}.`;
}

// Sentences about points that are not drawn: refused ones, and values of 0 or less on a logarithmic axis.
function missing({ drawn, x, y }) {
  const gaps = drawn.flatMap((line) => line.points.map((value, place) => (value === null ? [line.reasons[place], line.name, number(x.values[place])] : null)));
  const found = gaps.filter(Boolean);
  const reasons = [...new Set(found.map(([reason]) => reason))];
  const where = (reason, name) => found.filter((gap) => gap[0] === reason && gap[1] === name).map((gap) => gap[2]);
  const sentences = reasons.map((reason) => {
    const names = [...new Set(found.filter((gap) => gap[0] === reason).map((gap) => gap[1]))];
    return `No point for ${listed(names.map((name) => `${name} at ${where(reason, name).join(", ")}`), "; ")}: ${reason}.`;
  });
  const low = drawn.flatMap((line) => line.points.filter((value, place) => value !== null && !isDrawn(value, x.values[place], x, y)));
  const few = low.length && `A logarithmic axis has no place for 0 or less: ${counted(low.length, "point")} left out of the picture.`;
  return few ? [...sentences, few] : sentences;
}

const isDrawn = (value, place, x, y) => value !== null && (value > 0 || !y.logarithmic) && (place > 0 || !x.logarithmic);

// ---- the picture ----

const HEIGHT = 380;
const [TOP, BOTTOM, RIGHT] = [30, 46, 16];
const [WIDE, TALL] = [7.5, 18]; // px: width of a letter, height of a row of text
const NAMED_FROM = 560; // px: in a picture at least this wide, names stand at the ends of the lines

// The smallest 1, 2 or 5 times a power of ten that is not below a value.
function rounded(value) {
  const ten = 10 ** Math.floor(Math.log10(value) + 1e-9);
  return [1, 2, 5, 10].map((each) => each * ten).find((each) => each >= value * (1 - 1e-9));
}

// The ticks between the ends of an axis. A linear or short axis has equally spaced ones. A long logarithmic axis has 1, 2 and 5 times
// powers of ten, a longer one powers of ten alone, a very long one every second or third power.
function ticksOf(low, high, logarithmic) {
  if (!logarithmic || high / low < 8) {
    const step = rounded((high - low) / 6);
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.floor(high / step + 1e-9) - first + 1;
    return Array.from({ length: count }, (_, place) => Number(((first + place) * step).toPrecision(9)));
  }
  const span = Math.log10(high / low);
  const powers = Array.from({ length: Math.ceil(span) + 2 }, (_, place) => Math.floor(Math.log10(low)) + place);
  const some = powers.filter((power) => power % Math.ceil(span / 8) === 0).map((power) => Number(`1e${power}`));
  const ticks = span > 3 ? some : some.flatMap((each) => [each, 2 * each, 5 * each]);
  return ticks.map((each) => Number(each.toPrecision(9))).filter((each) => each >= low && each <= high);
}

const along = (value, [from, to], [start, end], logarithmic) => {
  const scale = logarithmic ? Math.log10 : Number;
  return from === to ? (start + end) / 2 : start + ((scale(value) - scale(from)) / (scale(to) - scale(from))) * (end - start);
};

// The scales of the axes. The vertical axis holds the drawn lines in every setting, so that it stays when a control moves.
function frameOf({ drawn, x, y }, width) {
  const heights = drawn.flatMap(({ all }) => all.filter((value) => value !== null && (value > 0 || !y.logarithmic)));
  const [least, most] = heights.length ? [Math.min(...heights), Math.max(...heights)] : [1, 1];
  const room = 0.04 * (most - Math.min(least, 0)) || 0.5;
  const ends = y.logarithmic ? [least / 1.1, most * 1.1] : [least < 0 ? least - room : 0, Math.max(most, 0) + room];
  const rows = ticksOf(...ends, y.logarithmic);
  const columns = x.values.filter((value) => value > 0 || !x.logarithmic);
  const longest = (words) => Math.max(0, ...words.map((each) => each.length));
  const names = width >= NAMED_FROM ? Math.min(12 + 7 * longest(drawn.map(({ name }) => name)), width / 3) : 0;
  const left = 14 + WIDE * longest(rows.map(number));
  const right = width - Math.max(RIGHT, names);
  const across = (value) => along(value, [columns[0], columns.at(-1)], [left + 10, right - (names ? 22 : 10)], x.logarithmic);
  return { left, right, named: names > 0, rows, columns, x: across, y: (value) => along(value, ends, [HEIGHT - BOTTOM, TOP], y.logarithmic) };
}

function axesOf({ x, y }, frame) {
  const line = (x1, y1, x2, y2, kind) => make("line", { x1: at(x1), y1: at(y1), x2: at(x2), y2: at(y2), class: kind });
  const text = (left, top, words, kind) => make("text", { x: at(left), y: at(top), class: kind }, words);
  const [right, bottom] = [frame.right, HEIGHT - BOTTOM];
  const title = (axis) => `${named(axis)}${axis.logarithmic ? ", logarithmic" : ""}`;
  const parts = [text(2, 13, title(y), "name")];
  let lowest = Infinity;
  for (const value of frame.rows) {
    const top = frame.y(value);
    parts.push(line(frame.left, top, right, top, "grid"));
    if (lowest - top < TALL) continue; // its number would overlap the one below
    parts.push(text(frame.left - 6, top + 4, number(value), "tick left"));
    lowest = top;
  }
  let end = -Infinity;
  for (const value of frame.columns) {
    const [place, half] = [frame.x(value), (WIDE * number(value).length) / 2];
    parts.push(line(place, bottom, place, bottom + 5, "axis"));
    if (place - half < end + 4) continue;
    parts.push(text(place, bottom + 19, number(value), "tick"));
    end = place + half;
  }
  const name = text((frame.left + right) / 2, HEIGHT - 5, title(x), "name middle");
  return [...parts, line(frame.left, bottom, right, bottom, "axis"), name];
}

const coloured = ({ colours: [light, dark] }) => `--hl-series: light-dark(${light}, ${dark})`;

// A line with its marks, broken where a point is missing.
function lineOf(line, frame, { x, y }) {
  const shown = line.points.map((value, place) => isDrawn(value, x.values[place], x, y));
  const spots = line.points.map((value, place) => shown[place] && [frame.x(x.values[place]), frame.y(value)]);
  const parts = spots.map((spot, place) => spot && `${shown[place - 1] ? "L" : "M"}${at(spot[0])} ${at(spot[1])}`);
  const path = make("path", { d: parts.filter(Boolean).join(""), class: "curve", "stroke-width": line.width, "stroke-dasharray": line.dash.join(" ") || "none" });
  const marks = spots.filter(Boolean).map((spot) => markOf(line.shape, ...spot, line.size, { class: `point${line.hollow ? " hollow" : ""}` }));
  return make("g", { style: coloured(line), "data-line": line.name }, path, ...marks);
}

// The names at the ends of the lines, each joined to the last point of its line.
function namesOf(drawn, frame, { x, y }) {
  const ends = drawn.flatMap((line) => {
    const last = line.points.findLastIndex((value, place) => isDrawn(value, x.values[place], x, y));
    return last < 0 ? [] : [{ line, from: [frame.x(x.values[last]), frame.y(line.points[last])], y: frame.y(line.points[last]) }];
  });
  return spread(ends, 15, TOP, HEIGHT - BOTTOM).flatMap(({ line, from: [left, top], y: row }) => {
    const tie = make("path", { d: `M${at(left + line.size + 2)} ${at(top)}L${at(frame.right)} ${at(row)}`, class: "tie", style: coloured(line) });
    return [tie, make("text", { x: at(frame.right + 4), y: at(row + 4), class: "end", style: coloured(line) }, line.name)];
  });
}

// The picture; `draw(reading)` fills it, `valueAt(event)` is the value of the horizontal axis under the pointer.
function pictureOf() {
  const box = make("div", { class: "picture", role: "img" });
  let [given, frame] = [null, null];

  const draw = (reading = given) => {
    given = reading;
    const width = box.clientWidth || 640;
    frame = frameOf(reading, width);
    const svg = make("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
    svg.append(...axesOf(reading, frame));
    if (frame.columns.includes(reading.at)) {
      const x = at(frame.x(reading.at));
      svg.append(make("line", { x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM, class: "marker" }));
    }
    svg.append(...(frame.named ? namesOf(reading.drawn, frame, reading) : []), ...reading.drawn.map((line) => lineOf(line, frame, reading)));
    const { drawn, x, y, setting } = reading;
    const about = `${y.label} against ${x.label}${setting && `, ${setting}`}: ${counted(drawn.length, "line")}.`;
    box.setAttribute("aria-label", `${about} ${sentence(reading)} All values are in the table below.`);
    box.replaceChildren(svg);
  };
  const valueAt = (event) => {
    const x = event.clientX - box.getBoundingClientRect().left;
    const away = (value) => Math.abs(frame.x(value) - x);
    return frame.columns.reduce((best, value) => (away(value) < away(best) ? value : best));
  };
  return { element: box, draw, valueAt, stop: watched(box, () => given && draw()) };
}

// ---- the controls and the table ----

// A group of checkboxes. An entry is a value, its words, and the elements between box and words.
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

// The sample of a line in the legend: a short piece with its mark.
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
  let axes = []; // the axes of the picture; a quantity that is not shown keeps its scale
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
  return { fields, scales: scales.element, lines: lines.element, show, focus: place.focus };
}

// What each part of a setting can be.
function rulesOf({ quantities, choices, x, lines }) {
  const axes = [x, ...quantities].filter(({ positive }) => positive);
  const chosen = choices.map(({ name, values }) => [`chosen.${name}`, oneOf(values)]);
  return {
    quantity: oneOf(quantities.map(({ name }) => name)), ...Object.fromEntries(chosen), at: oneOf(x.values),
    drawn: someOf(lines.map(({ name }) => name)), logarithmic: someOf(axes.map(({ name }) => name)),
  };
}

// The numbers of the picture: a row for each drawn line, a column for each x.
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

// ---- the widget ----

function render({ model, el }) {
  const root = rootIn(el, "sweep");
  const id = freshId();
  // `value` is the new value, or a function of the present one
  const change = (name, value) => {
    const [now, next] = [model.get(name), typeof value === "function" ? value(model.get(name)) : value];
    if (JSON.stringify(now) === JSON.stringify(next)) return;
    model.set(name, next);
    model.save_changes();
  };
  let [parts, looked] = [null, null]; // `looked` is the value under the pointer
  const look = (value) => {
    looked = value;
    show();
  };
  const setUp = () => {
    const controls = controlsOf(id, model.get("data"), change);
    const picture = pictureOf();
    const figures = figuresOf();
    const told = make("p", { class: "told", role: "status" });
    root.append(controls.fields, picture.element, told, controls.lines, controls.scales, shareRow(model, SETTING, () => rulesOf(model.get("data"))), ...figures.elements);
    root.append(make("p", { class: "hint" }, POINTING));
    const answers = { valueAt: picture.valueAt, look, pick: (x) => change("at", x), focus: controls.focus };
    const ends = [pointed(root, picture.element, answers), picture.stop];
    return { controls, picture, figures, told, ends };
  };
  const show = () => {
    parts ??= setUp();
    const shown = Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
    const reading = readingOf(model.get("data"), { ...shown, at: looked ?? shown.at });
    parts.controls.show(shown);
    parts.picture.draw(reading);
    parts.figures.draw(reading);
    parts.told.setAttribute("aria-live", looked === null ? "polite" : "off");
    parts.told.textContent = sentence(reading);
  };
  return keepDrawn(model, root, SETTING, show, () => parts?.ends.forEach((end) => end())).end;
}

export default { render };
