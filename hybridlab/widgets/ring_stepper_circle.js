// A ring drawn as a ring: ranks on a circle, links between them, and the chunks that travel along the links.
// A rank has a row for each chunk, in the order of the matrix. In a row, each cell with a colour is a rank whose number the chunk holds.

import { make, number } from "./view.js";
import { chosenOf, holdingsOf, outlinesOf } from "./ring_stepper_matrix.js";

const [CELLS, SIGN, EDGE] = [38, 8, 2]; // px: width of the cells of a row, room for its sign, padding of a node
const [HIGH, MOST_PITCH] = [42, 12]; // px: height of all rows of a node, greatest height of one
const [BADGE, OVERLAP] = [18, 8]; // px: side of a chunk that travels, and twice how much of it may cover a node
const NEAR = 3; // px, between a link and a node
const LETTER = 6.5; // px, about
const PIECES = 48; // of a link

export const leastCircle = (ranks) => 120 + 16 * ranks; // px, of a side of the picture

function nodesOf(ranks, size) {
  const pitch = Math.min(MOST_PITCH, HIGH / ranks);
  const [width, height] = [CELLS + SIGN + 2 * EDGE, ranks * pitch + 2 * EDGE];
  const radius = (size - Math.max(width, height)) / 2 - 2;
  const at = (rank, far) => {
    const angle = (2 * Math.PI * rank) / ranks; // clockwise from the top
    return [size / 2 + far * Math.sin(angle), size / 2 - far * Math.cos(angle)];
  };
  const title = (rank) => (size < 40 + 45 * ranks ? `${rank}` : `rank ${rank}`); // px; names of ranks side by side must not meet
  // Towards the centre of the circle, as near to the node as the name's width and height allow.
  const name = (rank) => {
    const [x, y] = at(rank, 1).map((each) => Math.abs(each - size / 2));
    const [aside, below] = [(width + title(rank).length * LETTER) / 2 + 4, height / 2 + 10];
    return at(rank, radius - Math.min(aside / x, below / y));
  };
  return { ranks, pitch, width, height, title, name, centre: (rank) => at(rank, radius) };
}

// ---- links ----

// The points of a way from one node to another. It bends to the left of its direction, so two ways between the same nodes are apart and a
// way round the circle follows the circle.
function wayOf(frame, sender, receiver) {
  const [[x0, y0], [x1, y1]] = [frame.centre(sender), frame.centre(receiver)];
  const bend = Math.tan(Math.PI / (2 * frame.ranks));
  const [x, y] = [(x0 + x1) / 2 + bend * (y1 - y0), (y0 + y1) / 2 - bend * (x1 - x0)];
  const point = (part) => {
    const [first, second, third] = [(1 - part) ** 2, 2 * part * (1 - part), part ** 2];
    return [first * x0 + second * x + third * x1, first * y0 + second * y + third * y1];
  };
  return { sender, receiver, point };
}

// The first and the last part of a way where a square of a given side around it touches neither node.
function freeOf(frame, { sender, receiver, point }, side) {
  const parts = Array.from({ length: PIECES + 1 }, (_, place) => place / PIECES);
  const clear = (rank) => (part) => {
    const [[x, y], [left, top]] = [point(part), frame.centre(rank)];
    return Math.abs(x - left) >= (frame.width + side) / 2 || Math.abs(y - top) >= (frame.height + side) / 2;
  };
  const [from, to] = [parts.find(clear(sender)) ?? 0.5, parts.findLast(clear(receiver)) ?? 0.5];
  return from < to ? [from, to] : [0.5, 0.5];
}

function linkOf(frame, way) {
  const [from, to] = freeOf(frame, way, 2 * NEAR);
  const parts = Array.from({ length: 13 }, (_, place) => from + ((to - from) * place) / 12);
  const points = parts.map((part) => way.point(part));
  const line = make("path", { class: "way", d: `M${points.map((each) => each.map(number).join(" ")).join("L")}` });
  const [[x0, y0], [x, y]] = [points[5], points[6]]; // in the middle, because a chunk that has arrived covers the end
  const turn = number((Math.atan2(y - y0, x - x0) * 180) / Math.PI);
  const head = make("path", { class: "tip", d: "M4 0l-8 -4.5v9Z", transform: `translate(${number(x)} ${number(y)}) rotate(${turn})` });
  const [start, end] = freeOf(frame, way, BADGE - OVERLAP);
  return { ...way, edge: Math.max(start, 1 - end), element: make("g", { class: "road" }, line, head) };
}

// Every link that a ring uses in any step.
function linksOf(frame, states) {
  const links = new Map();
  for (const [sender, receiver] of states.flatMap((state) => state.messages)) {
    const name = `${sender} ${receiver}`;
    if (!links.has(name)) links.set(name, linkOf(frame, wayOf(frame, sender, receiver)));
  }
  return links;
}

// ---- nodes ----

function nodeOf(frame, rank) {
  const [[cx, cy], [x, y]] = [frame.centre(rank), frame.name(rank)];
  const place = { x: number(cx - frame.width / 2), y: number(cy - frame.height / 2), width: frame.width, height: number(frame.height) };
  const name = make("text", { class: "name", x: number(x), y: number(y) }, frame.title(rank));
  return make("g", { class: "node", "data-rank": rank }, make("rect", { class: "frame", rx: 4, ...place }), name);
}

// What the ranks hold: in each row the cells of the ranks whose numbers are in the chunk, then the sign.
function rowsOf(frame, ranks) {
  const corner = (rank, chunk) => {
    const [x, y] = frame.centre(rank);
    return [x - frame.width / 2 + EDGE, y - frame.height / 2 + EDGE + chunk * frame.pitch + 0.5];
  };
  const [cell, height] = [CELLS / ranks, frame.pitch - 1];
  const size = Math.min(8, frame.pitch + 0.5);
  const part = (rank, chunk, place) => [corner(rank, chunk)[0] + place * cell, corner(rank, chunk)[1]];
  const sign = (rank, chunk) => [corner(rank, chunk)[0] + CELLS + SIGN - 1, corner(rank, chunk)[1] + (height + size) / 2, size];
  const place = ({ rank, chunk }) => {
    const [x, y] = corner(rank, chunk).map(number);
    return { x, y, width: CELLS, height: number(height) };
  };
  return [holdingsOf(ranks, [cell, height], part, sign), outlinesOf(ranks, "row", place)];
}

// ---- the whole picture ----

// A chunk that travels: its number, and below it the ranks whose numbers it carries.
function badgeOf(counts, chunk) {
  const box = make("rect", { class: "parcel", x: -BADGE / 2, y: -BADGE / 2, width: BADGE, height: BADGE, rx: 4 });
  const wide = (BADGE - 4) / counts.length;
  const cells = counts.flatMap((count, part) => {
    const place = { x: number(2 - BADGE / 2 + part * wide), y: BADGE / 2 - 6, width: number(wide), height: 4 };
    return count ? [make("rect", { class: `in of${part}`, ...place })] : [];
  });
  return make("g", { class: "mover" }, box, make("text", { class: "value", x: 0, y: -2.5 }, chunk), ...cells);
}

// `show(state)` draws what the ranks hold. `move(time)` places the chunks of the step that is under way, or of the step just over.
export function circleOf(ranks, size, states) {
  const frame = nodesOf(ranks, size);
  const links = linksOf(frame, states);
  const rows = rowsOf(frame, ranks);
  const [movers, chosen] = [make("g"), chosenOf()];
  const roads = [...links.values()].map((link) => link.element);
  const nodes = Array.from({ length: ranks }, (_, rank) => nodeOf(frame, rank));
  const groups = [...rows.map((layer) => layer.group), movers];
  const element = make("svg", { class: "circle", width: size, height: size, role: "img" }, ...roads, ...nodes, ...groups, chosen.element);
  const show = (state) => {
    for (const layer of rows) layer.show(state);
  };
  let [moving, hop] = [[], -1];

  const send = (step) => {
    hop = step;
    moving = states[step].messages.map(([sender, receiver, chunk]) => {
      const badge = badgeOf(states[Math.max(0, step - 1)].parts[sender][chunk], chunk);
      return { badge, link: links.get(`${sender} ${receiver}`) };
    });
    movers.replaceChildren(...moving.map(({ badge }) => badge));
    for (const link of links.values()) link.element.classList.toggle("used", moving.some((one) => one.link === link));
  };
  const move = (time) => {
    const step = Math.ceil(time);
    if (step !== hop) send(step);
    for (const { badge, link } of moving) {
      const [x, y] = link.point(link.edge + (1 - 2 * link.edge) * (time - step + 1));
      badge.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
    }
  };
  const choose = ({ rank, chunk }) => {
    if (rank === null) return;
    const [cx, cy] = frame.centre(rank);
    const top = cy - frame.height / 2;
    const [y, height] = chunk === null ? [top - 2, frame.height + 4] : [top + EDGE + chunk * frame.pitch - 1, frame.pitch + 2];
    chosen.show(cx - frame.width / 2 - 2, y, frame.width + 4, height);
  };
  return { element, show, move, choose };
}
