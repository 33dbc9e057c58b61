// The bars of a cluster explorer: the parts of an iteration's time, before and after a change, and the memory of the fullest GPU.

import { at, watched } from "./chart.js";
import { MEMORY, fitWords, seconds, share } from "./cluster_explorer_words.js";
import { make } from "./view.js";

const [TIME, THIN, MEMORY_BAR] = [32, 10, 22]; // px: heights of the bars
const [LINE, LETTER, PAD] = [20, 7, 8]; // px: height of a line of text, width of a letter, space beside a text in a bar

export const textOf = (x, y, words, kind = "") => make("text", { x: at(x), y: at(y), class: kind }, words);
export const lookOf = ({ name, colour }, id) => ({ fill: name === "bubble" ? `url(#${id}-hatch)` : colour }); // idle time is hatched

// Rectangles side by side, from the left. A piece has a length in px, a fill, a title, and texts to try as its label, the longest first.
// Where a line at `cut` divides a piece, the label stands on the wider side.
export function stacked(pieces, y, height, cut = 0) {
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

export function hatchOf({ colour }, id) {
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

// The picture in words, for screen readers.
function pictureWords({ refusal, parts, seconds: time, memory }) {
  const told = parts.map(({ words, seconds: part }) => `${words} ${share(part, time)}`).join(", ");
  const kept = memory ? ` Memory of the fullest GPU: ${fitWords(memory)}.` : "";
  return refusal ? `No bar of time: the plan is not possible.${kept}` : `One iteration of ${seconds(time)} as a bar: ${told}.${kept}`;
}

// The picture; `draw(reading, before)` fills it.
export function barsOf(id) {
  const box = make("div", { class: "picture", role: "img" });
  let given = null;
  const draw = (...next) => {
    if (next.length) given = next;
    const [reading, before] = given;
    const width = box.clientWidth || 640;
    const top = LINE + TIME + 4 + THIN + LINE + 2;
    const height = top + LINE + MEMORY_BAR + 8;
    const svg = make("svg", { width, height, viewBox: `-1 0 ${width} ${height}`, "aria-hidden": "true" });
    svg.append(hatchOf(reading.parts.find(({ name }) => name === "bubble"), id), ...timeBars(reading, before, width - 2, id));
    if (reading.memory) svg.append(...memoryBar(reading, top, width - 2));
    box.setAttribute("aria-label", pictureWords(reading));
    box.replaceChildren(svg);
  };
  return { element: box, draw, stop: watched(box, () => given && draw()) };
}
