// The picture of one ring after one step: a column for each rank, a row for each chunk, who is in it, and the messages as arrows.

const [SLOT, PAD, VALUE, ROW_GAP, TOP] = [15, 4, 17, 10, 20]; // px: height of a slot, round the slots, of the number, between rows, of the heads
const [GAP, LEFT, MOST] = [14, 16, 76]; // px: between columns, left of them, greatest width of a box

const across = (ranks) => (ranks < 4 ? ranks : Math.ceil(ranks / 2)); // slots in one line of a box

const leastBox = (ranks) => (ranks > 6 ? 44 : 33); // px

const leastWidth = (ranks) => LEFT + GAP + ranks * (leastBox(ranks) + GAP);

function frameOf(ranks, width) {
  const box = Math.max(leastBox(ranks), Math.min(MOST, (width - LEFT - GAP) / ranks - GAP));
  const lines = Math.ceil(ranks / across(ranks));
  const height = 2 * PAD + lines * SLOT + VALUE;
  const x = (rank) => LEFT + GAP + rank * (box + GAP);
  const y = (chunk) => TOP + chunk * (height + ROW_GAP);
  return { ranks, box, boxHeight: height, x, y, width: x(ranks - 1) + box + GAP + 1, height: y(ranks - 1) + height + 4 };
}

// Who is in a sum, in words: "ranks 0, 1 and 3 twice".
function holdersOf(counts) {
  const times = (count) => (count === 1 ? "" : count === 2 ? " twice" : ` ${count} times`);
  const words = counts.map((count, rank) => (count ? `${rank}${times(count)}` : "")).filter(Boolean);
  if (!words.length) return "nobody";
  return words.length === 1 ? `rank ${words[0]} alone` : `ranks ${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function slotOf(frame, rank, count, x, y) {
  const each = across(frame.ranks);
  const wide = Math.min(18, (frame.box - PAD) / each);
  const [left, top] = [x + frame.box / 2 + (rank % each - each / 2) * wide, y + PAD + Math.floor(rank / each) * SLOT];
  const here = count ? (count === 1 ? " in" : " in more") : "";
  const rect = make("rect", { class: `slot${here} of${rank}`, x: number(left + 0.5), y: number(top + 0.5), width: number(wide - 1), height: SLOT - 1 });
  const digit = make("text", { class: "digit", x: number(left + wide / 2), y: number(top + SLOT / 2) }, String(rank));
  return count ? [rect, digit] : [rect];
}

// A tick for a whole sum, a cross for one that was whole and is lost, in the corner of its box.
function signOf(mark, frame, x, y) {
  const [right, bottom] = [x + frame.box - 5, y + frame.boxHeight - 5];
  const tick = `M${number(right - 8)} ${number(bottom - 4)}L${number(right - 5)} ${number(bottom - 1)}L${number(right)} ${number(bottom - 8)}`;
  const cross = `M${number(right - 7)} ${number(bottom - 7)}L${number(right)} ${number(bottom)}M${number(right)} ${number(bottom - 7)}L${number(right - 7)} ${number(bottom)}`;
  return mark ? [make("path", { class: `sign ${mark}`, d: mark === "whole" ? tick : cross })] : [];
}

function boxOf(frame, state, rank, chunk) {
  const [x, y, mark] = [frame.x(rank), frame.y(chunk), state.marks[rank][chunk]];
  const fresh = state.messages.some(([, receiver, sent]) => receiver === rank && sent === chunk) ? " fresh" : "";
  const rect = make("rect", { class: `box ${mark}${fresh}`, x: number(x), y, width: number(frame.box), height: frame.boxHeight, rx: 4 });
  const slots = state.parts[rank][chunk].flatMap((count, part) => slotOf(frame, part, count, x, y));
  const value = number(state.values[rank][chunk]);
  const text = make("text", { class: "value", x: number(x + frame.box / 2 - (mark ? 5 : 0)), y: number(y + frame.boxHeight - VALUE / 2 - 1) }, value);
  return make("g", { "data-rank": rank, "data-chunk": chunk }, rect, ...slots, text, ...signOf(mark, frame, x, y));
}

function arrow(from, to, y) {
  const line = make("path", { class: "link", d: `M${number(from)} ${number(y)}H${number(to - 5)}` });
  return [line, make("path", { class: "head", d: `M${number(to)} ${number(y)}l-6 -4v8Z` })];
}

// From box to box; from the last rank to the first it leaves on the right and comes in on the left.
function arrowsOf(frame, [sender, receiver, chunk]) {
  const y = frame.y(chunk) + frame.boxHeight / 2;
  const [end, start] = [frame.x(sender) + frame.box + 1, frame.x(receiver) - 1];
  return start > end ? arrow(end, start, y) : [...arrow(end, end + GAP - 2, y), ...arrow(start - GAP + 2, start, y)];
}

function drawingOf(frame, state, label) {
  const each = Array.from({ length: frame.ranks }, (_, place) => place);
  const name = (text, x, y) => make("text", { class: "name", x: number(x), y: number(y) }, text);
  const heads = each.map((rank) => name(frame.box < 40 ? String(rank) : `rank ${rank}`, frame.x(rank) + frame.box / 2, TOP - 9));
  const rows = each.map((chunk) => name(String(chunk), LEFT / 2 - 1, frame.y(chunk) + frame.boxHeight / 2));
  const boxes = each.flatMap((chunk) => each.map((rank) => boxOf(frame, state, rank, chunk)));
  const arrows = state.messages.flatMap((message) => arrowsOf(frame, message));
  return make("svg", { width: number(frame.width), height: number(frame.height), role: "img", "aria-label": label }, ...heads, ...rows, ...boxes, ...arrows);
}
