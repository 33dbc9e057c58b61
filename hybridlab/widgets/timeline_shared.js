// What pictures of timelines share: their measures, the axis of time, the marks of operations, idle time,
// the samples of a legend.

const least = (values) => values.reduce((low, value) => Math.min(low, value), Infinity);
const most = (values) => values.reduce((high, value) => Math.max(high, value), 0);
const sorted = (values) => [...new Set(values)].sort((a, b) => a - b);

const LABELS = 54; // px: the column of device names
const PAPER = 640; // px: what a printed page has room for, A4 with margins of 1 cm
const LEFT = 5; // px: room for the first number of the time axis
const RIGHT = 26; // px: and for half of the last number of the time axis
const NARROWEST = 10; // px: a shorter operation makes the picture scroll in its box
const WIDEST = 8000; // px
const CLEAR = 2.5; // px: what a box is wider than its text, so that texts of neighbours do not touch

const round = (value) => Math.round(value * 100) / 100; // px

// Whether a text such as F12 stands clear in a box of this width, in any of the usual fonts: a digit takes 7.4 px, a W 11.5.
const fits = (text, width) => [...text].reduce((sum, each) => sum + (each === "W" ? 11.5 : 7.4), CLEAR) <= width;

// A mark that tells the kinds apart without colour: nothing for F, a line below for B, dashes below for I, a line above for W.
function markOf(kind, x, y, width, height) {
  if (kind === "F") return [];
  const level = kind === "W" ? y + 2.5 : y + height - 2.5;
  const path = `M${round(x + 1)} ${level}H${round(x + Math.max(width - 1, 1))}`;
  return [make("path", { class: kind === "I" ? "mark dashes" : "mark", d: path })];
}

// The operation that a word such as 0F3 names, or the two of an overlapped pair such as (0F3;3B1), each with what all have in common.
function turnOf(word, common) {
  const ops = word.replace(/[()]/g, "").split(";").map((text) => ({ ...common, text, partner: null }));
  if (ops.length === 2) [ops[0].partner, ops[1].partner] = [ops[1], ops[0]];
  return ops;
}

// The top and the height of an operation in a bar from `y` on: those of an overlapped pair share it, the forward above.
const levelOf = (op, y, bar) => (op.partner ? [op.kind === "F" ? y : y + bar / 2, bar / 2] : [y, bar]);

const copyWords = ({ copies }, { copy }) => (copies > 1 ? ` of the ${["first", "second"][copy]} copy of the weights` : "");

// When the device of these operations, in the order they ran, computes nothing until `end`.
function gapsOf(ops, end) {
  const gaps = [];
  let free = 0;
  for (const op of [...ops, { start: end }]) {
    if (op.start > free) gaps.push([free, op.start]);
    free = op.end;
  }
  return gaps;
}

function hatchOf(id) {
  const lines = make("path", { class: "hatch", d: "M-1 7L7 -1M5 7L7 5M-1 1L1 -1" });
  return make("defs", {}, make("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, lines));
}

// ---- the axis of time, from `frame.from` on, which is 0 unless it is given ----

function ticksOf({ scale, pixels, from = 0 }) {
  if (!scale) return [0];
  const apart = 56 / scale; // at least so much time between two numbers
  const power = 10 ** Math.floor(Math.log10(apart));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= apart);
  const [first, last] = [Math.ceil(from / step - 1e-9), Math.floor((from + pixels / scale) / step + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
}

function axisOf(timeline, frame, floor) {
  const at = (time) => (time - (frame.from ?? 0)) * frame.scale;
  const end = at(timeline.makespan);
  const ticks = ticksOf(frame).map((tick) => [tick, at(tick)]);
  const lines = ticks.map(([, x]) => make("line", { class: "grid", x1: round(x), x2: round(x), y1: 0, y2: floor }));
  const clear = ticks.filter(([, x]) => Math.abs(x - end) > 28);
  const texts = clear.map(([tick, x]) => make("text", { class: "tick", x: round(x), y: floor + 13 }, number(tick)));
  const last = make("line", { class: "end", x1: round(end), x2: round(end), y1: 0, y2: floor + 3 });
  texts.push(make("text", { class: "tick last", x: round(end), y: floor + 13 }, number(timeline.makespan)));
  return { lines, texts: [last, ...texts] };
}

// ---- the legend ----

const sampleOf = (words, ...shapes) =>
  make("li", {}, make("svg", { width: 26, height: 18, "aria-hidden": "true" }, ...shapes), words);

function kindSample(kind, { words, colours }) {
  const body = make("rect", { width: 26, height: 18, rx: 2, fill: colours[1][0] });
  return sampleOf(words, body, ...markOf(kind, 0, 0, 26, 18), make("text", { x: 13, y: 9.5 }, kind));
}

function idleSample() {
  const hatch = make("path", { class: "hatch", d: "M1 11L9 1M4 17L18 1M13 17L25 3M22 17L25 13" });
  return sampleOf("idle", make("rect", { class: "idle", x: 0.5, y: 0.5, width: 25, height: 17, rx: 2, fill: "none" }), hatch);
}

function shadeSample(words, shades) {
  const width = 26 / shades.length;
  return sampleOf(words, ...shades.map((fill, place) => make("rect", { x: width * place, width, height: 18, fill })));
}

function copiesSample({ F }, { devices, chunks, copies }) {
  const shades = F.colours[copies * chunks].filter((_, shade) => shade % chunks === 0);
  return shadeSample(`copies of the weights: from device 0, from device ${devices - 1}`, shades);
}

function pairSample({ F, B }) {
  const halves = [F, B].map(({ colours }, place) => make("rect", { y: 9 * place, width: 26, height: 8.5, rx: 1, fill: colours[1][0] }));
  return sampleOf("overlapped pair: both at once", ...halves, ...markOf("B", 0, 9, 26, 9));
}

// The names of rows, and beside them the plot; on paper, where nothing scrolls, both are small enough to stand there whole.
function tracksOf(names, plot) {
  const fits = Math.min(1, PAPER / (LABELS + Number(plot.getAttribute("width"))));
  return make("div", { class: "tracks", style: `--hl-print: ${fits.toFixed(3)}` }, names, plot);
}
