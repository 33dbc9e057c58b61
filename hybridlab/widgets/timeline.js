// Shared by pictures of timelines: measures, marks of operations, idle time, the axis of time, samples of a legend, a field for a number.

import { field, make, number } from "./view.js";

export const least = (values) => values.reduce((low, value) => Math.min(low, value), Infinity);
export const most = (values) => values.reduce((high, value) => Math.max(high, value), 0);
export const sorted = (values) => [...Float64Array.from(new Set(values)).sort()];

export const LABELS = 54; // px: the column of device names
const PAPER = 640; // px: the width of a printed page, A4 with margins of 1 cm
export const LEFT = 5; // px: room for the first number of the time axis
export const RIGHT = 26; // px: room for half of the last number of the time axis
export const WIDEST = 8000; // px: the greatest width of a picture
const CLEAR = 2.5; // px: how much wider than its text a box must be, so that texts of neighbours do not touch

export const round = (value) => Math.round(value * 100) / 100; // px

// Whether a text such as F12 fits into a box of this width in all usual fonts. A digit takes 7.4 px, a W 11.5 px.
export const fits = (text, width) => [...text].reduce((sum, each) => sum + (each === "W" ? 11.5 : 7.4), CLEAR) <= width;

// One rule for all labels of a picture: kind and number if they fit into every box, else the number if it does, else no label.
// `ops` are the operations of the picture, `scale` is the width in px of a unit of time. Returns a function of an operation.
export function labelled(ops, scale) {
  const wide = ops.filter(({ start, end }) => end > start);
  const words = [({ kind, microbatch }) => `${kind}${microbatch}`, ({ microbatch }) => String(microbatch)];
  return words.find((text) => wide.every((op) => fits(text(op), (op.end - op.start) * scale))) ?? (() => "");
}

export const MOST_ZOOM = 64;

// Buttons that make a picture wider or narrower, or as wide as its box. `changed(zoom)` draws it `zoom` times as wide as its box.
// `set(zoom)` does what the buttons do.
export function zoomOf(changed) {
  let zoom = 1;
  const set = (given) => {
    zoom = Math.min(Math.max(given, 1), MOST_ZOOM);
    changed(zoom);
  };
  const button = (label, sign, act) => {
    const element = make("button", { type: "button", "aria-label": label, title: label }, sign);
    element.addEventListener("click", () => set(act(zoom)));
    return element;
  };
  const parts = [button("Zoom out", "−", (now) => now / 2), button("Zoom in", "+", (now) => now * 2), button("Fit", "Fit", () => 1)];
  return { element: make("div", { class: "zoom", role: "group", "aria-label": "Width of the picture" }, ...parts), set, now: () => zoom };
}

// The path of the mark of a kind of operation, for readers who cannot tell the colours apart: none for F, a line below for B, dashes below
// for I, a line above for W.
export function markPath(kind, x, y, width, height) {
  const level = kind === "W" ? y + 2.5 : y + height - 2.5;
  return kind === "F" ? "" : `M${round(x + 1)} ${level}H${round(x + Math.max(width - 1, 1))}`;
}

export function markOf(kind, ...box) {
  const path = markPath(kind, ...box);
  return path ? [make("path", { class: kind === "I" ? "mark dashes" : "mark", d: path })] : [];
}

// The top and the height of an operation in a bar with its top at `y`. An overlapped pair shares the bar, the forward above.
export const levelOf = (op, y, bar) => (op.partner ? [op.kind === "F" ? y : y + bar / 2, bar / 2] : [y, bar]);

export const copyWords = ({ copies }, { copy }) => (copies > 1 ? ` of the ${["first", "second"][copy]} copy of the weights` : "");

// Gives a polygon the shape of a box. The browser computes the style of a rect again when its x or its width changes. It does not do so
// for a polygon whose points change. With polygons, a thousand bars move in a third of the time.
export function boxIn(polygon, x, y, width, height) {
  const [left, right, floor] = [round(x), round(x + width), y + height];
  const points = `${left},${y} ${right},${y} ${right},${floor} ${left},${floor}`;
  if (polygon.given === points) return;
  polygon.given = points;
  polygon.setAttribute("points", points);
}

// The idle times, up to `end`, of a device that ran these operations in this order: pairs of a start and an end.
export function gapsOf(ops, end) {
  const gaps = [];
  let free = 0;
  for (const op of [...ops, { start: end }]) {
    if (op.start > free) gaps.push([free, op.start]);
    free = op.end;
  }
  return gaps;
}

export function hatchOf(id) {
  const lines = make("path", { class: "hatch", d: "M-1 7L7 -1M5 7L7 5M-1 1L1 -1" });
  return make("defs", {}, make("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, lines));
}

// ---- the axis of time; it starts at `frame.from`, by default 0 ----

function ticksOf({ scale, pixels, from = 0 }) {
  if (!scale) return [0];
  const apart = 56 / scale; // the least time between two numbers
  const power = 10 ** Math.floor(Math.log10(apart));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= apart);
  const [first, last] = [Math.ceil(from / step - 1e-9), Math.floor((from + pixels / scale) / step + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
}

export function axisOf(timeline, frame, floor) {
  const at = (time) => (time - (frame.from ?? 0)) * frame.scale;
  const end = at(timeline.makespan);
  const ticks = ticksOf(frame).map((tick) => [tick, at(tick)]);
  const lines = ticks.map(([, x]) => make("line", { class: "grid", x1: round(x), x2: round(x), y1: 0, y2: floor }));
  const halves = (tick) => 3.8 * (number(tick).length + number(timeline.makespan).length); // px: half of each text
  const clear = ticks.filter(([tick, x]) => Math.abs(x - end) > halves(tick) + 4);
  const texts = clear.map(([tick, x]) => make("text", { class: "tick", x: round(x), y: floor + 13 }, number(tick)));
  const last = make("line", { class: "end", x1: round(end), x2: round(end), y1: 0, y2: floor + 3 });
  texts.push(make("text", { class: "tick last", x: round(end), y: floor + 13 }, number(timeline.makespan)));
  return { lines, texts: [last, ...texts] };
}

// ---- the legend ----

export const sampleOf = (words, ...shapes) =>
  make("li", {}, make("svg", { width: 26, height: 18, "aria-hidden": "true" }, ...shapes), words);

function kindSample(kind, { words, colours }) {
  const body = make("rect", { width: 26, height: 18, rx: 2, fill: colours[1][0] });
  return sampleOf(words, body, ...markOf(kind, 0, 0, 26, 18), make("text", { x: 13, y: 9.5 }, kind));
}

// The samples of the kinds of operations that the picture has. `has(kind)` says whether it has one. Data from a page have their keys in
// alphabetical order, so the order is given here.
export const kindSamples = (kinds, has) =>
  ["F", "B", "I", "W"].filter((kind) => kinds[kind] && has(kind)).map((kind) => kindSample(kind, kinds[kind]));

export function idleSample() {
  const hatch = make("path", { class: "hatch", d: "M1 11L9 1M4 17L18 1M13 17L25 3M22 17L25 13" });
  return sampleOf("idle", make("rect", { class: "idle", x: 0.5, y: 0.5, width: 25, height: 17, rx: 2, fill: "none" }), hatch);
}

export function shadeSample(words, shades) {
  const width = 26 / shades.length;
  return sampleOf(words, ...shades.map((fill, place) => make("rect", { x: width * place, width, height: 18, fill })));
}

export function copiesSample({ F }, { devices, chunks, copies }) {
  const shades = F.colours[copies * chunks].filter((_, shade) => shade % chunks === 0);
  return shadeSample(`copies of the weights: from device 0, from device ${devices - 1}`, shades);
}

export function pairSample({ F, B }) {
  const halves = [F, B].map(({ colours }, place) => make("rect", { y: 9 * place, width: 26, height: 8.5, rx: 1, fill: colours[1][0] }));
  return sampleOf("overlapped pair: both at once", ...halves, ...markOf("B", 0, 9, 26, 9));
}

// Round values from 0 to `most`, about two hundred, for a slider over a time.
export function ticksUpTo(most) {
  const power = 10 ** Math.floor(Math.log10(most / 200));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= most / 200 - 1e-12);
  return Array.from({ length: Math.round(most / step) + 1 }, (_, place) => Number((place * step).toPrecision(9)));
}

// The names of the rows beside the plot. Paper does not scroll, so both are scaled down to fit on a page.
export function tracksOf(names, plot) {
  const fits = Math.min(1, PAPER / (LABELS + Number(plot.getAttribute("width"))));
  return make("div", { class: "tracks", style: `--hl-print: ${fits.toFixed(3)}` }, names, plot);
}

// ---- a field for a number ----

// A slider over a list of values. With `live` there is also a field for any other value, which `read(text, label)` checks.
export function quantityOf(id, label, read, pick) {
  const slider = make("input", { type: "range", min: 0, step: 1 });
  const output = make("output", { for: id, "aria-live": "off" }); // a screen reader reads the value from the slider
  const typed = make("input", { type: "number", id: `${id}-any`, "aria-describedby": `${id}-fault` });
  const fault = make("p", { class: "fault", id: `${id}-fault`, role: "alert" });
  const element = field(id, label, slider, output);
  let [values, shown] = [[], null];

  const tell = (sentence) => {
    fault.textContent = sentence;
    typed.setAttribute("aria-invalid", Boolean(sentence));
  };
  slider.addEventListener("input", () => pick(values[Number(slider.value)]));
  typed.addEventListener("change", () => {
    const answer = read(typed.value.trim(), label);
    tell(answer.fault ?? "");
    if (!answer.fault) pick(answer.value);
  });
  const open = () => {
    element.querySelector("label").htmlFor = typed.id;
    slider.setAttribute("aria-label", `${label}, slider`);
    output.replaceWith(typed);
    element.append(fault);
  };
  const show = (value, offered, live, rule = { fewest: 1, step: 1 }) => {
    if (live && !typed.isConnected) open();
    values = sorted([...offered, value]);
    slider.hidden = values.length < 2;
    element.hidden = slider.hidden && !(live && rule.step);
    slider.max = values.length - 1;
    slider.value = values.indexOf(value);
    slider.setAttribute("aria-valuetext", number(value));
    output.textContent = number(value);
    for (const [name, limit] of [["min", rule.fewest], ["step", rule.step]]) typed.setAttribute(name, limit);
    if (rule.most) typed.setAttribute("max", rule.most);
    if (value === shown) return; // keeps what the reader is typing
    [typed.value, shown] = [value, value];
    tell("");
  };
  return { element, show, focus: () => (typed.isConnected ? typed : slider).focus() };
}
