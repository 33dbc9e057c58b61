// The measures of a picture of a step: where the lanes of each rank and the items in them stand.

import { LABELS, least, LEFT, levelOf, RIGHT, round, WIDEST } from "./timeline.js";

const HEAD = 17; // px: the name of a replica above its ranks
// For at most so many ranks: the height in px of operations, of overlapped pairs, of messages, and of the space below.
const LANES = [[4, 22, 28, 12, 9], [8, 17, 24, 9, 5], [16, 11, 16, 6, 3], [Infinity, 8, 12, 4, 2]];
const READABLE = 9; // px: the least height of a lane with text

const meet = (one, other) => one.start <= other.end && other.start < one.end;

// `zoom` is the width of the picture in widths of its box. `ringsOnly` lets it begin with the first hop.
export function frameOf(step, width, zoom, ringsOnly) {
  const from = ringsOnly ? least(step.ranks.flatMap(({ hops }) => hops.map((hop) => hop.start))) : 0;
  const span = step.makespan - from;
  const room = Math.max(width - LABELS - LEFT - RIGHT, 120);
  const pixels = span > 0 ? Math.max(Math.min(room * zoom, WIDEST), room) : room;
  const pairs = step.ranks.some(({ ops }) => ops.some((op) => op.partner));
  const [, single, double, lane, gap] = LANES.find(([most]) => step.ranks.length <= most);
  const bar = pairs ? double : single;
  const crowded = ({ hops, sends, receives }) => [...sends, ...receives].some((message) => hops.some((hop) => meet(hop, message)));
  const strip = step.ranks.some(crowded) ? lane + 1 : 0; // where messages and hops overlap in time, each has its own lane
  const pitch = bar + lane + strip + gap + 1;
  const head = step.replicas > 1 ? HEAD : 0;
  const top = (rank) => rank * pitch + head * (Math.floor(rank / step.devices) + 1);
  const scale = span > 0 ? pixels / span : 0; // px for a unit of time
  const message = (rank) => top(rank) + bar + 2;
  const hop = (rank) => message(rank) + strip;
  const floor = hop(step.ranks.length - 1) + lane + 2;
  const texts = { ops: (pairs ? bar / 2 : bar) >= READABLE, hops: lane >= READABLE };
  const size = { width: Math.ceil(LEFT + pixels + RIGHT), height: floor + 18 };
  return { from, room, pixels, scale, bar, lane, pitch, head, top, message, hop, floor, texts, size, several: step.ranks.length <= 8 };
}

// The place of a time, in px from the left edge of the lanes.
export const placeOf = (frame, at) => (at - frame.from) * frame.scale;

// The left edge and the width of a time span, at least `narrowest`. Null for a span that ends before the frame starts.
export function acrossOf(frame, { start, end }, narrowest = 1) {
  const [left, right] = [start, end].map((at) => placeOf(frame, at));
  if (right < 0 || (right === 0 && left < 0)) return null;
  const x = Math.max(left, 0);
  return { x: round(x), width: round(Math.max(right - x, narrowest)) };
}

// The box of an operation, an optimiser, a message or a hop. Null if the frame starts after it.
export function boxOf(frame, item) {
  const { kind, rank } = item;
  const half = frame.lane / 2 - 0.5;
  if (kind === "send" || kind === "receive") {
    const across = acrossOf(frame, item, 2.5);
    return across && { ...across, y: frame.message(rank) + (kind === "send" ? 0 : half + 1), height: half };
  }
  const across = acrossOf(frame, item);
  if (kind in { "reduce-scatter": 0, "all-gather": 0 }) return across && { ...across, y: frame.hop(rank), height: frame.lane };
  const [y, height] = levelOf(item, frame.top(rank), frame.bar);
  return across && { ...across, y, height };
}
