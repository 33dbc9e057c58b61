// A cluster explorer: controls, the time of an iteration, its picture, and its numbers as tables.
// Python makes tables. The script multiplies and adds their entries to get times and memory, and divides work by time to get TFLOP/s.

import { at, tableOf, watched } from "./chart.js";
import { freshId, grouped, keepDrawn, make, number, rootIn, selectOf } from "./view.js";

// ---- the data of a setting ----

const SETTING = ["model", "gpu", "tensor", "stages", "replicas", "microbatches", "microbatch", "link", "wire", "recompute"]; // the traits of the setting

// The entry of a table. `places` has for each axis the index of its value. Throws if the data are damaged.
function entry({ axes, sizes, values }, places) {
  const place = axes.reduce((before, axis, which) => before * sizes[which] + places[axis], 0);
  const whole = sizes.reduce((product, size) => product * size, 1);
  if (values.length !== whole || !Number.isFinite(values[place])) throw new Error(`a table over ${axes.join(", ")} is damaged`);
  return values[place];
}

const worth = (terms, places) =>
  terms.reduce((sum, tables) => sum + tables.reduce((product, table) => product * entry(table, places), 1), 0);

function placesOf({ axes, derived }, setting) {
  const places = Object.fromEntries(axes.map(({ name, values }) => [name, values.indexOf(setting[name])]));
  if (Object.values(places).includes(-1)) throw new Error("this setting is not one of the grid");
  return { ...places, held: entry(derived.held, places), reach: entry(derived.reach, places) };
}

// Everything about a setting. `refusal` is the library's sentence if the plan is not possible. A plan that does not fit still has its
// `memory`.
function readingOf(data, setting) {
  const places = placesOf(data, setting);
  const quantity = (name) => worth(data.quantities[name], places);
  const [misfit, overflow] = data.refused.map((table) => data.sentences[entry(table, places)]);
  const memory = misfit ? null : Object.fromEntries(["states", "activations", "working", "total", "capacity"].map((name) => [name, quantity(name)]));
  const parts = data.parts.map((part) => ({ ...part, seconds: quantity(part.name) }));
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const refusal = misfit || filled(overflow, setting, memory);
  return { setting, refusal, memory, parts, seconds, gpus: quantity("gpus"), tflops: quantity("work") / seconds };
}

// Fills the numbers of this setting into the library's sentence.
function filled(sentence, { gpu }, memory) {
  const texts = { gpu, over: (memory?.total - memory?.capacity).toFixed(1), capacity: number(memory?.capacity ?? 0) };
  const text = (name) => texts[name] ?? memory[name].toFixed(1);
  return sentence.replace(/\{(\w+)\}/g, (_, name) => text(name));
}

// ---- words ----

const MEMORY = { states: "states", activations: "activations", working: "working memory" };

// Three significant digits; from 1000 on, all digits before the point.
const three = (value) => (value >= 999.5 ? grouped(Math.round(value)) : value ? value.toPrecision(3) : "0");
const seconds = (value) => `${three(value)} s`;
const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;

// Says whether a plan fits, and by how much.
function fitWords({ total, capacity }) {
  const room = capacity - total;
  return `${total.toFixed(1)} of ${number(capacity)} GB, ${room < 0 ? `${(-room).toFixed(1)} too much` : `${room.toFixed(1)} free`}`;
}

// The whole plan in words, because controls are not printed on paper.
function planWords({ axes }, { setting }) {
  return axes.map(({ name, label }) => `${label}: ${setting[name]}`).join("; ");
}

function headOf({ refusal, seconds: time, tflops, gpus, memory }) {
  const count = `${grouped(gpus)} ${gpus === 1 ? "GPU" : "GPUs"}`;
  if (refusal) return ["Not possible", ` on ${count}: ${refusal}.`];
  return [seconds(time), ` an iteration on ${count}, ${three(tflops)} TFLOP/s each. It fits: ${fitWords(memory)}.`];
}

// Says what the last change did: "Before, with Stages K = 8: 20.7 s; now 0.565 times as long."
function beforeWords({ axes }, now, before) {
  if (!before) return "";
  const changed = axes.filter(({ name }) => before.setting[name] !== now.setting[name]);
  const head = `Before, with ${changed.map(({ name, label }) => `${label} = ${before.setting[name]}`).join(", ")}`;
  if (before.refusal) return `${head}: not possible.`;
  if (now.refusal) return `${head}: ${seconds(before.seconds)}.`;
  return `${head}: ${seconds(before.seconds)}; now ${number(Number((now.seconds / before.seconds).toPrecision(3)))} times as long.`;
}

// The picture in words, for screen readers.
function pictureWords({ refusal, parts, seconds: time, memory }) {
  const told = parts.map(({ words, seconds: part }) => `${words} ${share(part, time)}`).join(", ");
  const kept = memory ? ` Memory of the fullest GPU: ${fitWords(memory)}.` : "";
  return refusal ? `No bar of time: the plan is not possible.${kept}` : `One iteration of ${seconds(time)} as a bar: ${told}.${kept}`;
}

// ---- the picture ----

const [TIME, THIN, MEMORY_BAR] = [44, 12, 26]; // px: heights of the bars
const [LINE, LETTER, PAD] = [20, 7, 8]; // px: height of a line of text, width of a letter, space beside a text in a bar

const textOf = (x, y, words, kind = "") => make("text", { x: at(x), y: at(y), class: kind }, words);
const lookOf = ({ name, colour }, id) => ({ fill: name === "bubble" ? `url(#${id}-hatch)` : colour }); // idle time is hatched

// Rectangles side by side, from the left. A piece has a length in px, a fill, a title, and texts to try as its label, the longest first.
// Where a line at `cut` divides a piece, the label stands on the wider side.
function stacked(pieces, y, height, cut = 0) {
  let x = 0;
  return pieces.flatMap(({ name, length, look, ink = "#000", title, tries = [] }) => {
    const start = x;
    x += length;
    const attributes = { x: at(start), y, width: at(length), height, class: "part", "data-part": name, ...look };
    const rect = make("rect", attributes, make("title", {}, title));
    const [left, right] = start < cut && cut < x ? (2 * cut > start + x ? [start, cut] : [cut, x]) : [start, x];
    const label = tries.find((words) => words.length * LETTER + PAD < right - left);
    if (!label) return [rect];
    const text = textOf((left + right) / 2, y + height / 2, label, "inside");
    text.setAttribute("fill", ink);
    return [rect, text];
  });
}

function hatchOf({ colour }, id) {
  const lines = make("path", { d: "M-2 2l4 -4M0 8l8 -8M6 10l4 -4", class: "stripe" });
  const pattern = make("pattern", { id: `${id}-hatch`, width: 8, height: 8, patternUnits: "userSpaceOnUse" });
  pattern.append(make("rect", { width: 8, height: 8, fill: colour }), lines);
  return make("defs", {}, pattern);
}

function timeBars(reading, before, width, id) {
  if (reading.refusal) return [textOf(0, 14, "One iteration: not possible", "name"), make("rect", { x: 0, y: LINE, width, height: TIME, class: "room" })];
  const longest = Math.max(reading.seconds, before && !before.refusal ? before.seconds : 0);
  const pieces = ({ parts, seconds: whole }, named) =>
    parts.map((part) => ({
      name: part.name,
      length: (part.seconds / longest) * width,
      look: lookOf(part, id),
      ink: part.ink,
      title: `${part.words}: ${seconds(part.seconds)}, ${share(part.seconds, whole)}`,
      tries: named ? [`${part.words} ${share(part.seconds, whole)}`, part.words, share(part.seconds, whole)] : [],
    }));
  const now = make("g", { "data-bar": "now" }, ...stacked(pieces(reading, true), LINE, TIME));
  const bars = [textOf(0, 14, `One iteration: ${seconds(reading.seconds)}`, "name"), now];
  if (!before || before.refusal) return bars;
  const top = LINE + TIME + 4;
  const label = textOf(0, top + THIN + 14, `before the last change: ${seconds(before.seconds)}`, "tick");
  return [...bars, make("g", { "data-bar": "before", class: "before" }, ...stacked(pieces(before, false), top, THIN)), label];
}

function memoryBar({ memory }, top, width) {
  const most = Math.max(memory.total, memory.capacity);
  const long = (value) => (value / most) * width;
  const pieces = Object.entries(MEMORY).map(([name, words]) => {
    const title = `${words} ${memory[name].toFixed(1)} GB`;
    return { name, length: long(memory[name]), look: { class: `part ${name}` }, title, tries: [title, words] };
  });
  const [room, y] = [long(memory.capacity), top + LINE];
  const end = make("line", { x1: at(room), x2: at(room), y1: y - 4, y2: y + MEMORY_BAR + 4, class: "capacity" });
  const box = make("rect", { x: 0, y, width: at(room), height: MEMORY_BAR, class: "room" });
  const beyond = make("rect", { x: at(room), y, width: at(Math.max(long(memory.total) - room, 0)), height: MEMORY_BAR, class: "beyond" });
  const name = textOf(0, top + 14, `Fullest GPU: ${fitWords(memory)}`, "name");
  return [name, make("g", { "data-bar": "memory" }, box, ...stacked(pieces, y, MEMORY_BAR, room), beyond, end)];
}

// The picture; `draw(reading, before)` fills it.
function pictureOf(id) {
  const box = make("div", { class: "picture", role: "img" });
  let given = null;
  const draw = (...next) => {
    if (next.length) given = next;
    const [reading, before] = given;
    const width = box.clientWidth || 640;
    const top = LINE + TIME + 4 + THIN + LINE + 6;
    const height = top + LINE + MEMORY_BAR + 8;
    const svg = make("svg", { width, height, viewBox: `-1 0 ${width} ${height}`, "aria-hidden": "true" });
    svg.append(hatchOf(reading.parts.find(({ name }) => name === "bubble"), id), ...timeBars(reading, before, width - 2, id));
    if (reading.memory) svg.append(...memoryBar(reading, top, width - 2));
    box.setAttribute("aria-label", pictureWords(reading));
    box.replaceChildren(svg);
  };
  return { element: box, draw, stop: watched(box, () => {}, () => given && draw()) };
}

// ---- the tables and the widget ----

// A name after a square of its colour.
function keyOf(words, look) {
  const swatch = make("svg", { width: 14, height: 14, "aria-hidden": "true" });
  swatch.append(make("rect", { x: 0.5, y: 0.5, width: 13, height: 13, class: "part", ...look }));
  return make("span", { class: "key" }, swatch, words);
}

function timeTable({ parts, seconds: whole }, before, id) {
  const earlier = before && !before.refusal ? before.parts : null;
  const rows = parts.map((part, place) => {
    const numbers = [three(part.seconds), share(part.seconds, whole), ...(earlier ? [three(earlier[place].seconds)] : [])];
    return [keyOf(part.words, lookOf(part, id)), ...numbers];
  });
  const total = ["together", three(whole), "100 %", ...(earlier ? [three(before.seconds)] : [])];
  return tableOf("Parts of the iteration", ["", "seconds", "share", ...(earlier ? ["before"] : [])], [...rows, total]);
}

function memoryTable({ memory }) {
  const rows = Object.entries(MEMORY).map(([name, words]) => [keyOf(words, { class: `part ${name}` }), memory[name].toFixed(1)]);
  const sums = [["together", memory.total.toFixed(1)], ["capacity of a GPU", number(memory.capacity)]];
  return tableOf("Memory of the fullest GPU", ["", "GB"], [...rows, ...sums]);
}

function render({ model, el }) {
  const root = rootIn(el, "cluster");
  const id = freshId();
  const data = model.get("data");
  const pick = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  let [parts, now, before] = [null, null, null];

  const setUp = () => {
    const controls = data.axes.map(({ name, label, values }) => selectOf(`${id}-${name}`, label, (place) => pick(name, values[Number(place)])));
    const fields = make("div", { class: "fields", role: "group", "aria-label": "Model, cluster and plan" });
    fields.append(...controls.map((control) => control.element));
    const picture = pictureOf(id);
    const told = make("p", { class: "told", role: "status" });
    const plan = make("p", { class: "told plan" });
    const tables = [make("table", { class: "time" }), make("table", { class: "memory" })];
    root.append(fields, told, picture.element, make("div", { class: "figures" }, ...tables), plan);
    return { controls, picture, told, plan, tables };
  };
  const show = () => {
    parts ??= setUp();
    const reading = readingOf(data, Object.fromEntries(SETTING.map((name) => [name, model.get(name)])));
    if (now && planWords(data, now) !== planWords(data, reading)) before = now;
    now = reading;
    parts.controls.forEach((control, place) => {
      const { name, values } = data.axes[place];
      control.show(String(values.indexOf(reading.setting[name])), values.map((value, each) => [String(each), String(value)]));
    });
    const [strong, rest] = headOf(reading);
    parts.told.replaceChildren(make("strong", {}, strong), rest, " ", beforeWords(data, reading, before));
    parts.picture.draw(reading, before);
    parts.tables[0].replaceChildren(...(reading.refusal ? [] : timeTable(reading, before, id)));
    parts.tables[1].replaceChildren(...(reading.memory ? memoryTable(reading) : []));
    parts.plan.textContent = planWords(data, reading);
  };
  return keepDrawn(model, root, SETTING, show, () => parts?.picture.stop()).end;
}

export default { render };
