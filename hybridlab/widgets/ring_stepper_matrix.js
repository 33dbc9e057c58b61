// The matrix of a ring: a column for each rank and a row for each chunk. Each box shows whose numbers the chunk holds; arrows are messages.

import { listed, make, number } from "./view.js";

const [SLOT, PAD, VALUE] = [14, 3, 16]; // px: height of a slot, padding of a box, height of its number
const [ROW_GAP, TOP] = [8, 20]; // px: space between rows, height of the heads
const [GAP, LEFT, MOST] = [12, 16, 76]; // px: space between columns, left margin, greatest width of a box

const across = (ranks) => (ranks < 4 ? ranks : Math.ceil(ranks / 2)); // slots in a line of a box

const leastBox = (ranks) => (ranks > 6 ? 44 : 33); // px, the least width of a box

export const leastWidth = (ranks) => LEFT + GAP + ranks * (leastBox(ranks) + GAP);

function frameOf(ranks, width) {
  const box = Math.max(leastBox(ranks), Math.min(MOST, (width - LEFT - GAP) / ranks - GAP));
  const each = across(ranks);
  const height = 2 * PAD + Math.ceil(ranks / each) * SLOT + VALUE;
  const x = (rank) => LEFT + GAP + rank * (box + GAP);
  const y = (chunk) => TOP + chunk * (height + ROW_GAP);
  const wide = Math.min(18, (box - PAD) / each);
  const slotX = (rank, part) => x(rank) + box / 2 + (part % each - each / 2) * wide;
  const slot = (rank, chunk, part) => [slotX(rank, part), y(chunk) + PAD + Math.floor(part / each) * SLOT];
  return { box, boxHeight: height, wide, x, y, slot, width: x(ranks - 1) + box + GAP + 1, height: y(ranks - 1) + height + 4 };
}

// ---- what a chunk holds, in words ----

// Names the ranks whose numbers a sum holds: "ranks 0, 1 and 3 twice".
export function holdersOf(counts) {
  const times = (count) => (count === 1 ? "" : count === 2 ? " twice" : ` ${count} times`);
  const words = counts.map((count, rank) => (count ? `${rank}${times(count)}` : "")).filter(Boolean);
  if (!words.length) return "nobody";
  return words.length === 1 ? `rank ${words[0]} alone` : `ranks ${listed(words)}`;
}

const MARKS = { whole: " The sum is whole.", lost: " It was a whole sum and is overwritten." };

// What a chunk on a rank holds, or what all chunks of a rank hold, in sentences.
export function heldWords(state, { rank, chunk }) {
  if (rank === null) return "";
  const holds = (each) => `chunk ${each} holds ${number(state.values[rank][each])}, ${holdersOf(state.parts[rank][each])}`;
  if (chunk !== null) return `On rank ${rank} ${holds(chunk)}.${MARKS[state.marks[rank][chunk]] ?? ""}`;
  return `On rank ${rank} ${state.values[rank].map((_, each) => holds(each)).join("; ")}.`;
}

// ---- what both pictures of a ring draw, with few elements, so that a step changes little ----

// Every chunk on every rank, row by row of the matrix.
function chunksOf(ranks) {
  const each = Array.from({ length: ranks }, (_, place) => place);
  return each.flatMap((chunk) => each.map((rank) => ({ rank, chunk })));
}

function put(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

// A sign with its right lower corner at a point: a tick for a whole sum, a cross for a whole sum that was overwritten.
function signAt(mark, [right, bottom, size]) {
  const at = (x, y) => `${number(right - x * size)} ${number(bottom - y * size)}`;
  if (mark === "whole") return `M${at(1, 0.5)}L${at(0.625, 0.125)}L${at(0, 1)}`;
  return `M${at(0.875, 0.875)}L${at(0, 0)}M${at(0, 0.875)}L${at(0.875, 0)}`;
}

// The ranks whose numbers the chunks hold: one path for each rank, with a cell in each chunk that holds its number, one path around the
// cells of numbers that are held more than once, and one for each kind of sign. `cell(rank, chunk, part)` is a cell's left upper corner,
// `sign(rank, chunk)` the right lower corner of a sign and its size.
export function holdingsOf(ranks, [width, height], cell, sign) {
  const chunks = chunksOf(ranks);
  const colours = Array.from({ length: ranks }, (_, part) => make("path", { class: `in of${part}` }));
  const more = make("path", { class: "more" });
  const signs = Object.keys(MARKS).map((mark) => [mark, make("path", { class: `sign ${mark}` })]);
  const side = `h${number(width)}v${number(height)}h${number(-width)}Z`;
  const cellAt = (rank, chunk, part) => `M${cell(rank, chunk, part).map(number).join(" ")}${side}`;
  const show = ({ parts, marks }) => {
    const held = colours.map(() => []);
    const several = [];
    for (const { rank, chunk } of chunks) {
      for (const [part, count] of parts[rank][chunk].entries()) {
        if (count) held[part].push(cellAt(rank, chunk, part));
        if (count && count !== 1) several.push(cellAt(rank, chunk, part));
      }
    }
    for (const [part, path] of colours.entries()) put(path, { d: held[part].join("") });
    put(more, { d: several.join("") });
    for (const [mark, path] of signs) {
      const marked = chunks.filter(({ rank, chunk }) => marks[rank][chunk] === mark);
      put(path, { d: marked.map(({ rank, chunk }) => signAt(mark, sign(rank, chunk))).join("") });
    }
  };
  return { group: make("g", { class: "holdings" }, ...colours, more, ...signs.map(([, path]) => path)), show };
}

// A rectangle for each chunk; its classes are the chunk's mark and whether it has just arrived.
export function outlinesOf(ranks, name, place) {
  const rectOf = (each) => make("rect", { "data-rank": each.rank, "data-chunk": each.chunk, ...place(each) });
  const rects = chunksOf(ranks).map((each) => [each, rectOf(each)]);
  const show = ({ marks, messages }) => {
    const fresh = new Set(messages.map(([, receiver, sent]) => `${receiver} ${sent}`));
    for (const [{ rank, chunk }, rect] of rects) {
      put(rect, { class: `${name} ${marks[rank][chunk]}${fresh.has(`${rank} ${chunk}`) ? " fresh" : ""}` });
    }
  };
  return { group: make("g", {}, ...rects.map(([, rect]) => rect)), show };
}

// The frame around the chunk or the rank that the reader has chosen.
export function chosenOf() {
  const element = make("rect", { class: "chosen", rx: 4, width: 0, height: 0 });
  const show = (...place) => ["x", "y", "width", "height"].forEach((name, at) => put(element, { [name]: number(place[at]) }));
  return { element, show };
}

// ---- the picture ----

// The digits in the slots of each box and the number below them.
function textsOf(frame, ranks) {
  const texts = chunksOf(ranks).map(({ rank, chunk }) => {
    const y = number(frame.y(chunk) + frame.boxHeight - VALUE / 2 - 1);
    return { rank, chunk, digits: make("text", { class: "digit" }), value: make("text", { class: "value", y }) };
  });
  const show = ({ parts, values, marks }) => {
    for (const { rank, chunk, digits, value } of texts) {
      const held = parts[rank][chunk].flatMap((count, part) => (count ? [part] : []));
      if (digits.textContent !== held.join("")) {
        const places = held.map((part) => frame.slot(rank, chunk, part));
        const [x, y] = [places.map((place) => number(place[0] + frame.wide / 2)), places.map((place) => number(place[1] + SLOT / 2))];
        put(digits, { x: x.join(" "), y: y.join(" ") });
        digits.textContent = held.join("");
      }
      put(value, { x: number(frame.x(rank) + frame.box / 2 - (marks[rank][chunk] ? 5 : 0)) });
      const text = number(values[rank][chunk]);
      if (value.textContent !== text) value.textContent = text;
    }
  };
  return { group: make("g", {}, ...texts.flatMap(({ digits, value }) => [digits, value])), show };
}

function arrow(from, to, y) {
  return [`M${number(from)} ${number(y)}H${number(to - 5)}`, `M${number(to)} ${number(y)}l-6 -4v8Z`];
}

// A message from box to box. A message from the last rank to the first leaves on the right and enters on the left.
function arrowsOf(frame, [sender, receiver, chunk]) {
  const y = frame.y(chunk) + frame.boxHeight / 2;
  const [end, start] = [frame.x(sender) + frame.box + 1, frame.x(receiver) - 1];
  const arrows = start > end ? [arrow(end, start, y)] : [arrow(end, end + GAP - 2, y), arrow(start - GAP + 2, start, y)];
  return arrows.flatMap(([line, head]) => [make("path", { class: "link", d: line }), make("path", { class: "head", d: head })]);
}

// The slots of all boxes, the digits' places, as one path.
function slotsOf(frame, ranks) {
  const each = Array.from({ length: ranks }, (_, place) => place);
  const corners = chunksOf(ranks).flatMap(({ rank, chunk }) => each.map((part) => frame.slot(rank, chunk, part)));
  const side = `h${number(frame.wide - 1)}v${SLOT - 1}h${number(1 - frame.wide)}Z`;
  return make("path", { class: "slot", d: corners.map(([x, y]) => `M${number(x + 0.5)} ${number(y + 0.5)}${side}`).join("") });
}

export function matrixOf(ranks, width) {
  const frame = frameOf(ranks, width);
  const each = Array.from({ length: ranks }, (_, place) => place);
  const name = (text, x, y, more) => make("text", { class: "name", x: number(x), y: number(y), ...more }, text);
  const title = (rank) => (frame.box < 40 ? rank : `rank ${rank}`);
  const heads = each.map((rank) => name(title(rank), frame.x(rank) + frame.box / 2, TOP - 9, { "data-rank": rank }));
  const rows = each.map((chunk) => name(chunk, LEFT / 2 - 1, frame.y(chunk) + frame.boxHeight / 2));
  const box = { width: number(frame.box), height: frame.boxHeight, rx: 4 };
  const place = ({ rank, chunk }) => ({ x: number(frame.x(rank)), y: frame.y(chunk), ...box });
  const slot = (rank, chunk, part) => frame.slot(rank, chunk, part).map((corner) => corner + 0.5);
  const sign = (rank, chunk) => [frame.x(rank) + frame.box - 5, frame.y(chunk) + frame.boxHeight - 4, 8];
  const layers = [outlinesOf(ranks, "box", place), holdingsOf(ranks, [frame.wide - 1, SLOT - 1], slot, sign), textsOf(frame, ranks)];
  const [boxes, holdings, texts] = layers.map((layer) => layer.group);
  const [arrows, chosen] = [make("g"), chosenOf()];
  const size = { width: number(frame.width), height: number(frame.height), "aria-hidden": "true" };
  const element = make("svg", size, ...heads, ...rows, boxes, slotsOf(frame, ranks), holdings, texts, arrows, chosen.element);
  const show = (state) => {
    for (const layer of layers) layer.show(state);
    arrows.replaceChildren(...state.messages.flatMap((message) => arrowsOf(frame, message)));
  };
  const choose = ({ rank, chunk }) => {
    if (rank === null) return;
    const [y, height] = chunk === null ? [1, TOP - 4] : [frame.y(chunk) - 3, frame.boxHeight + 6];
    chosen.show(frame.x(rank) - 3, y, frame.box + 6, height);
  };
  return { element, show, choose };
}
