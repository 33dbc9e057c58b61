// What lies over the picture of a step: the moment that is told, and the time that plays.

import { boxOf, placeOf } from "./step_explorer_frame.js";
import { grain } from "./step_explorer_data.js";
import { holds, idleWords } from "./step_explorer_words.js";
import { LABELS, LEFT, RIGHT, round } from "./timeline.js";
import { make, poolOf, setAll } from "./view.js";

const WORDS = 150; // px: the room for words beside the cursor

// ---- the moment that is told: the row of the rank, the time, the running items, and an arrow for each message ----

// An arrow from the height `y0`, a rank's lane, to the height `y1`. It is bent, so that the two arrows of a hop stand side by side.
function arrowOf(frame, [y0, y1], at, bend, name) {
  const x = Math.min(Math.max(placeOf(frame, at), 0), frame.pixels);
  const way = Math.sign(y1 - y0);
  const line = make("path", { d: `M${round(x)} ${y0}Q${round(x + bend)} ${(y0 + y1) / 2} ${round(x)} ${y1 - 5 * way}` });
  const head = make("path", { class: "head", d: `M${round(x)} ${y1}l${round(-4 + bend / 8)} ${-8 * way}h8Z` });
  return make("g", { class: `arrow ${name}` }, line, head, make("circle", { cx: round(x), cy: y0, r: 3 }));
}

function arrowsOf(frame, { op, sends, receives, hops }) {
  const [messages, ring] = [frame.message, frame.hop].map((lane) => (from, to) => [from, to].map((rank) => lane(rank) + frame.lane / 2));
  const out = [...sends, ...receives].map(({ from, to, start, end }) => arrowOf(frame, messages(from, to), (start + end) / 2, 12, "sent"));
  const goes = [op, op?.partner].filter((each) => Number.isInteger(each?.peer));
  out.push(...goes.map(({ rank, peer, end }) => arrowOf(frame, messages(rank, peer), end, 12, "later")));
  for (const { rank, peer, from, start, end } of hops) {
    const [early, late] = [0.75 * start + 0.25 * end, 0.25 * start + 0.75 * end];
    out.push(arrowOf(frame, ring(rank, peer), late, 26, "sent"), arrowOf(frame, ring(from, rank), early, -26, "got"));
  }
  return out;
}

// Draws what stays while the rank runs the same items: its row and those of its peers, the outlines of the items, and the arrows.
function markItems(parts, frame, step, moment, items) {
  const { own, sends, receives, hops } = moment;
  const takes = new Set([...sends.map(({ to }) => to), ...hops.map(({ peer }) => peer)]);
  const gives = new Set([...receives.map(({ from }) => from), ...hops.map(({ from }) => from)]);
  const peers = [...new Set([...takes, ...gives])].map((rank) => [rank, "row peer"]);
  parts.rows([[own.rank, "row"], ...peers].map(([rank, name]) => ({ class: name, y: frame.top(rank) - 3, height: frame.pitch - 1 })));
  parts.outlines(items.map((item) => boxOf(frame, item)).filter(Boolean));
  parts.arrows.replaceChildren(...arrowsOf(frame, moment));
  for (const each of step.ranks) {
    const role = (takes.has(each.rank) ? 1 : 0) + (gives.has(each.rank) ? 2 : 0);
    each.name.classList.toggle("here", each === own);
    each.role.textContent = ["", "receives", "sends", "both"][role] || (frame.several ? holds(step, each) : "");
    each.role.classList.toggle("peer", role > 0);
  }
}

// ---- the time that plays: the future is veiled, messages travel, and ranks that compute nothing say what they wait for ----

function dotOf(frame, { kind, from, to, start, end }, time) {
  const lane = kind === "send" ? frame.message : frame.hop;
  const part = Math.min(Math.max((time - start) / (end - start), 0), 1);
  const [y0, y1] = [lane(from), lane(to)];
  return { class: kind === "send" ? "dot" : "dot ringed", cx: to > from ? 5 : -5, cy: round(y0 + (y1 - y0) * part + frame.lane / 2) };
}

function tell(element, { rank, words, frame }) {
  if (element.textContent !== words) element.textContent = words;
  element.setAttribute("y", frame.top(rank) + frame.bar / 2 + 4);
}

// `under` is a group below the items of the picture. The element lies over its lanes; `fit(step, frame)` prepares it for a picture,
// `mark(moment, pinned)` shows what a rank does, and `play(time)` the time that plays, or none for null.
export function coverOf(under) {
  const svg = make("svg", { "aria-hidden": "true" });
  const [cursor, outlines, arrows, dots, words] = ["cursor", "outlines", "arrows", "dots", "waits"].map((name) => make("g", { class: name }));
  const [line, point, edge] = [make("path", { class: "line" }), make("path", { class: "point", d: "M-5 0h10l-5 6Z" }), make("path")];
  const playing = make("g", { class: "playing" }, edge, dots, words);
  const veil = make("div", { class: "veil" });
  const element = make("div", { class: "cover", "aria-hidden": "true" }, veil, svg);
  element.style.left = `${LABELS}px`;
  cursor.append(line, point);
  svg.append(outlines, arrows, playing, cursor);
  const parts = {
    rows: poolOf(under, "rect", (rect, row) => setAll(rect, { ...row, rx: 3, x: 1 - LEFT, width: frame.pixels + LEFT + RIGHT - 2 })),
    outlines: poolOf(outlines, "rect", (rect, box) => setAll(rect, { ...box, rx: 2 })),
    dots: poolOf(dots, "circle", (circle, dot) => setAll(circle, { ...dot, r: 4.5 })),
    words: poolOf(words, "text", tell),
    arrows,
  };
  let [step, frame, marked] = [null, null, []];

  const fit = (given, measures) => {
    [step, frame, marked] = [given, measures, []];
    const { width, height } = frame.size;
    setAll(svg, { width, height, viewBox: `${-LEFT} -1 ${width} ${height}` });
    Object.assign(element.style, { width: `${width}px`, height: `${height}px` });
    veil.style.height = `${frame.floor + 2}px`;
    line.setAttribute("d", `M0 -1V${frame.floor + 3}`);
    edge.setAttribute("d", `M0 -1V${frame.floor + 3}`);
  };
  const mark = (moment, pinned) => {
    const { own, op, sends, receives, hops, time } = moment;
    const items = [op, op?.partner, ...sends, ...receives, ...hops].filter(Boolean);
    const now = [own, ...items];
    if (now.length !== marked.length || now.some((each, place) => each !== marked[place])) markItems(parts, frame, step, moment, items);
    marked = now;
    const x = round(Math.max(placeOf(frame, time), 0));
    cursor.setAttribute("transform", `translate(${x})`);
    cursor.classList.toggle("before", time < frame.from);
    cursor.classList.toggle("pinned", pinned);
    point.setAttribute("transform", `translate(0 ${frame.top(own.rank) - 7})`);
  };
  const play = (time) => {
    element.classList.toggle("veiled", time !== null);
    if (time === null) return;
    const at = time + grain(step);
    const now = ({ start, end }) => start <= at && at < end;
    const x = round(Math.max(placeOf(frame, time), 0));
    veil.style.transform = `translateX(${x + LEFT}px)`;
    playing.setAttribute("transform", `translate(${x})`);
    parts.dots(step.flights.filter(now).map((flight) => dotOf(frame, flight, time)));
    const idle = step.ranks.flatMap(({ rank, idle: all }) => {
      const found = all.find(now);
      return found ? [{ rank, words: idleWords(found), frame }] : [];
    });
    words.classList.toggle("left", x > frame.pixels - WORDS && x > frame.pixels / 2);
    parts.words(idle);
  };
  return { element, fit, mark, play };
}
