// The picture of a step, with its words and its cursor. Each rank has a lane of its operations and, below it, a lane of its messages.

import {
  axisOf, copyWords, fits, gapsOf, hatchOf, LABELS, least, LEFT, levelOf, markOf, NARROWEST, RIGHT, round, sorted, tracksOf, WIDEST,
} from "./timeline.js";
import { counted, grouped, make, number, plain } from "./view.js";

// ---- moments ----

export const grain = (step) => 1e-7 * step.makespan; // times in the data have nine digits

// The moments at which an item of a rank starts or ends, from 0 to the end of the step.
export function momentsOf(step, rank) {
  const edges = step.ranks[rank].items.flatMap(({ start, end }) => [start, end]);
  const moments = sorted([0, ...edges]).filter((time) => time < step.makespan - grain(step));
  return [...moments.filter((time, place) => !place || time - moments[place - 1] > grain(step)), step.makespan];
}

// What a rank does at a time: the items that have started and not ended, and its next operation.
export function momentOf(step, rank, time) {
  const at = time + grain(step);
  const now = ({ start, end }) => start <= at && at < end;
  const own = step.ranks[rank];
  const next = own.computing.find(({ start }) => start > at) ?? null;
  const [sends, receives, hops] = [own.sends, own.receives, own.hops].map((items) => items.filter(now));
  return { own, time, done: at >= step.makespan, op: own.computing.find(now) ?? null, next, sends, receives, hops };
}

// The moment that an arrow key leads to, in the same rank or in another one. Null for other keys.
function movedBy(step, { own, time }, key) {
  const moments = momentsOf(step, own.rank);
  const place = moments.findLastIndex((each) => each <= time + grain(step));
  const between = time - moments[place] > grain(step); // the cursor was set by the pointer, between two moments
  const along = { ArrowLeft: between ? place : place - 1, ArrowRight: place + 1, Home: 0, End: moments.length - 1 };
  if (key in along) return { rank: own.rank, time: moments[Math.min(Math.max(along[key], 0), moments.length - 1)] };
  const across = { ArrowUp: -1, ArrowDown: 1 }[key];
  return across ? { rank: Math.min(Math.max(own.rank + across, 0), step.ranks.length - 1), time } : null;
}

// ---- a step, and what a rank does at a moment, in words ----

export const time = (step, value) => (step.unit ? `${number(value)} ${step.unit}` : number(value));
const bytes = (count) => (count === undefined ? "" : ` (${grouped(count)} ${count === 1 ? "byte" : "bytes"})`);

function summary(step) {
  const head = `${step.title}, ${step.sizes}`;
  if (step.refusal) return `${head}: not possible. ${step.refusal}.`;
  const figures = [
    `makespan ${time(step, step.makespan)}`,
    `exposed communication ${time(step, step.exposed)}`,
    `speedup ${number(Number(step.speedup.toFixed(3)))} on ${counted(step.ranks.length, "device")}`,
  ];
  return `One training step of ${head}: ${figures.join(", ")}.`;
}

const placeOf = (step, { rank, device, replica }) => `Rank ${rank} (${step.held > 1 ? "device" : "stage"} ${device}, replica ${replica})`;

function opWords(step, op) {
  if (op.kind === "optimiser") return "runs its optimiser";
  return `runs ${op.text}, the ${step.kinds[op.kind].words} of microbatch ${op.microbatch} on stage ${op.stage}${copyWords(step, op)}`;
}

function computingWords(step, { op, next, hops, done }) {
  if (done) return "is done: the step has ended.";
  if (op) {
    const both = [op, op.partner].filter(Boolean);
    const output = (each) => (op.partner ? `The output of ${each.text}` : "Its output");
    const sent = both.filter(({ peer }) => Number.isInteger(peer)).map((each) => ` ${output(each)} goes to rank ${each.peer}.`);
    const runs = both.map((each) => opWords(step, each)).join(" and at the same time ");
    return `${runs}, from ${number(op.start)} to ${time(step, op.end)}.${sent.join("")}`;
  }
  if (!next) return hops.length ? "has finished computing." : "has finished its part of the step.";
  const what = next.kind === "optimiser" ? "its optimiser" : next.text;
  const starts = next.partner ? `and ${next.partner.text} start` : "starts";
  return `computes nothing until ${time(step, next.start)}, when ${what} ${starts}.`;
}

function messageWords(step, { kind, op, from, to, end }) {
  const [verb, word, other] = kind === "send" ? ["sends", "to", to] : ["receives", "from", from];
  return `It ${verb} the output of ${op.text} ${word} rank ${other} until ${time(step, end)}.`;
}

function hopWords(step, hop) {
  const ring = `the ring of ${step.copies > 1 ? "both copies of " : ""}stage ${hop.stage}`;
  const what = `In hop ${hop.count} of ${hop.of} of the ${step.spans[hop.kind].words} on ${ring}`;
  const [finished, adds] = hop.kind === "reduce-scatter" ? ["", ", which it adds to its own"] : ["the finished ", ""];
  const sends = `it sends chunk ${hop.piece} of the gradients${bytes(hop.nbytes)} to rank ${hop.peer}`;
  return `${what}, until ${time(step, hop.end)}, ${sends} and receives ${finished}chunk ${hop.got} from rank ${hop.from}${adds}.`;
}

// What the rank does at that time, in a few sentences.
export function sentence(step, moment) {
  const messages = moment.done ? [] : [...moment.sends, ...moment.receives].map((each) => messageWords(step, each));
  const hops = moment.hops.map((hop) => hopWords(step, hop));
  return [computingWords(step, moment), ...messages, ...hops].join(" ");
}

export const headOf = (step, moment) => `${placeOf(step, moment.own)} at ${time(step, moment.time)}`;

// ---- the cursor ----

// An arrow from the height `y0`, a rank's lane, to the height `y1`. It is bent, so that the two arrows of a hop stand side by side.
function arrowOf(frame, [y0, y1], at, bend, name) {
  const x = Math.min(Math.max((at - frame.from) * frame.scale, 0), frame.pixels);
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

// Marks a moment in the picture: the row of the rank, the time, the running items, and an arrow for each message.
function markMoment(step, frame, plot, moment) {
  const { under, over } = plot;
  const { own, op, sends, receives, hops, time: at } = moment;
  const x = round(Math.max((at - frame.from) * frame.scale, 0));
  const wide = { x: -LEFT + 1, width: Math.ceil(LEFT + frame.pixels + RIGHT) - 2, height: frame.pitch - 2 };
  const row = (rank, name) => make("rect", { class: name, y: frame.top(rank) - 3.5, rx: 3, ...wide });
  const line = make("path", { class: "cursor", d: `M${x} -1V${frame.floor + 3}` });
  const point = make("path", { class: "point", d: `M${x - 5} ${frame.top(own.rank) - 7}h10l-5 6Z` });
  over.replaceChildren(...(at < frame.from ? [] : [line, point, ...arrowsOf(frame, moment)]));
  const takes = new Set([...sends.map(({ to }) => to), ...hops.map(({ peer }) => peer)]);
  const gives = new Set([...receives.map(({ from }) => from), ...hops.map(({ from }) => from)]);
  const peers = [...new Set([...takes, ...gives])].map((rank) => row(rank, "row peer"));
  under.replaceChildren(row(own.rank, "row"), ...peers);
  for (const item of plot.running ?? []) item.shape?.classList.remove("now");
  plot.running = [op, op?.partner, ...sends, ...receives, ...hops].filter(Boolean);
  for (const item of plot.running) item.shape?.classList.add("now");
  for (const each of step.ranks) {
    const role = (takes.has(each.rank) ? 1 : 0) + (gives.has(each.rank) ? 2 : 0);
    each.name.classList.toggle("here", each === own);
    each.role.textContent = ["", "receives", "sends", "both"][role] || `${step.held > 1 ? "device" : "stage"} ${each.device}`;
    each.role.classList.toggle("peer", role > 0);
  }
}

// ---- the picture ----

const HEAD = 17; // px: the name of a replica above its ranks

const meet = (one, other) => one.start <= other.end && other.start < one.end;

function frameOf(step, width, ringsOnly) {
  const from = ringsOnly ? least(step.ranks.flatMap(({ hops }) => hops.map((hop) => hop.start))) : 0;
  const span = step.makespan - from;
  const seen = step.ranks.flatMap(({ ops }) => ops.filter(({ start, end }) => end > start && end > from));
  const room = Math.max(width - LABELS - LEFT - RIGHT, 120);
  const needed = ringsOnly || !seen.length ? 0 : (NARROWEST * span) / least(seen.map(({ start, end }) => end - start));
  const pixels = span > 0 ? Math.min(Math.max(room, needed), WIDEST) : room;
  const pairs = step.ranks.some(({ ops }) => ops.some((op) => op.partner));
  const [bar, lane, gap] = pairs ? [28, 12, 9] : step.ranks.length > 8 ? [17, 10, 7] : [22, 12, 9];
  const crowded = ({ hops, sends, receives }) => [...sends, ...receives].some((message) => hops.some((hop) => meet(hop, message)));
  const strip = step.ranks.some(crowded) ? lane + 1 : 0; // where messages and hops overlap in time, each has its own lane
  const pitch = bar + lane + strip + gap + 1;
  const head = step.replicas > 1 ? HEAD : 0;
  const top = (rank) => rank * pitch + head * (Math.floor(rank / step.devices) + 1);
  const scale = span > 0 ? pixels / span : 0; // px for a unit of time
  const message = (rank) => top(rank) + bar + 2;
  const hop = (rank) => message(rank) + strip;
  return { from, pixels, scale, bar, lane, pitch, head, top, message, hop, floor: hop(step.ranks.length - 1) + lane + 2 };
}

// The left edge and the width of a time span, at least `narrowest`. Null for a span that ends before the frame starts.
function acrossOf(frame, { start, end }, narrowest = 1) {
  const [left, right] = [start, end].map((at) => (at - frame.from) * frame.scale);
  if (right < 0 || (right === 0 && left < 0)) return null;
  const x = Math.max(left, 0);
  return { x: round(x), width: round(Math.max(right - x, narrowest)) };
}

// ---- the items of a lane ----

function barOf(step, op, frame) {
  const across = acrossOf(frame, op);
  if (!across) return null;
  const [y, height] = levelOf(op, frame.top(op.rank), frame.bar);
  const text = op.kind === "optimiser" ? "opt" : `${op.kind}${op.microbatch}`;
  const fill = op.kind === "optimiser" ? step.spans.optimiser.colour : step.kinds[op.kind].colours[step.held][op.shade];
  const body = make("rect", { ...across, y, height, rx: 2, fill });
  const marks = (op.kind === "optimiser" ? ["B", "W"] : [op.kind]).flatMap((kind) => markOf(kind, across.x, y, across.width, height));
  const short = op.kind === "optimiser" || fits(text, across.width) ? text : String(op.microbatch);
  const above = op.partner && op.kind === "B" ? 1.5 : 0; // the text does not touch the mark
  const label = make("text", { x: round(across.x + across.width / 2), y: y + height / 2 + 0.5 - above }, short);
  return make("g", { class: op.partner ? "op half" : "op" }, body, ...marks, ...(fits(short, across.width) ? [label] : []));
}

function hopOf(step, hop, frame) {
  const across = acrossOf(frame, hop);
  if (!across) return null;
  const [y, height, gathers] = [frame.hop(hop.rank), frame.lane, hop.kind === "all-gather"];
  const { colour } = step.spans[hop.kind];
  const body = make("rect", { ...across, y, height, rx: 2, ...(gathers ? { stroke: colour } : { fill: colour }) });
  const label = make("text", { x: round(across.x + across.width / 2), y: y + height / 2 + 0.5 }, hop.piece);
  return make("g", { class: gathers ? "hop gathers" : "hop" }, body, ...(fits(String(hop.piece), across.width) ? [label] : []));
}

function messageOf(message, rank, frame) {
  const across = acrossOf(frame, message, 2.5);
  if (!across) return null;
  const [top, height] = [frame.message(rank), frame.lane / 2 - 0.5];
  const y = message.kind === "send" ? top : top + frame.lane / 2 + 0.5;
  return make("rect", { class: message.kind, ...across, y, height });
}

function idleOf({ rank, computing }, step, frame, fill) {
  const gaps = gapsOf(computing, step.makespan).map(([start, end]) => acrossOf(frame, { start, end })).filter(Boolean);
  return gaps.map((across) => make("rect", { class: "idle", ...across, y: frame.top(rank), height: frame.bar, fill }));
}

function plotOf(step, frame, hatch) {
  const axis = axisOf(step, frame, frame.floor);
  const drawn = step.ranks.flatMap((own) => {
    own.hops.forEach((hop) => (hop.shape = hopOf(step, hop, frame)));
    own.computing.forEach((op) => (op.shape = barOf(step, op, frame)));
    for (const each of [...own.sends, ...own.receives]) each.shape = messageOf(each, own.rank, frame);
    const paper = make("rect", { class: "paper", x: 0, y: frame.top(own.rank), width: round(frame.pixels), height: frame.bar });
    const items = [...own.computing, ...own.hops, ...own.sends, ...own.receives];
    return [paper, ...idleOf(own, step, frame, `url(#${hatch})`), ...items.map((item) => item.shape).filter(Boolean)];
  });
  const [width, height] = [Math.ceil(LEFT + frame.pixels + RIGHT), frame.floor + 18];
  const [under, over] = [make("g", { class: "under" }), make("g", { class: "over" })];
  const parts = make("g", {}, hatchOf(hatch), under, ...axis.lines, ...drawn, ...axis.texts, over);
  const box = { class: "plot", width, height, viewBox: `${-LEFT} -1 ${width} ${height}`, "aria-hidden": "true" };
  return { svg: make("svg", box, parts), under, over };
}

function namesOf(step, frame) {
  const height = frame.floor + 18;
  const names = make("svg", { class: "names", width: LABELS, height, viewBox: `0 -1 ${LABELS} ${height}`, "aria-hidden": "true" });
  for (const own of step.ranks) {
    const y = frame.top(own.rank);
    if (frame.head && !own.device) names.append(make("text", { class: "tick peak", x: 0, y: y - 4 }, `replica ${own.replica}`));
    own.name = make("text", { class: "rank", x: 0, y: y + frame.bar / 2 + 4 }, `rank ${own.rank}`);
    own.role = make("text", { class: "tick peak", x: 0, y: y + frame.bar + frame.lane - 1 });
    names.append(own.name, own.role);
  }
  names.append(make("text", { class: "tick peak", x: 0, y: frame.floor + 13 }, step.unit ? `time, ${step.unit}` : "time"));
  return names;
}

// The picture; `draw(step, ringsOnly)` shows a step, `mark(moment)` what a rank does. Pointing at a place calls `pick(rank, time)`.
export function pictureOf(id, pick) {
  const box = make("div", { class: "picture" });
  let [step, ringsOnly, frame, plot, width, moment] = [null, false, null, null, 0, null];

  const mark = (given = moment) => {
    moment = given;
    if (plot && moment) markMoment(step, frame, plot, moment);
  };
  const describe = () => {
    const label = `${summary(step)} Arrow keys move from moment to moment, and from rank to rank.`;
    const described = { tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": label };
    for (const [name, value] of Object.entries(described)) step.refusal ? box.removeAttribute(name) : box.setAttribute(name, value);
  };
  const draw = (given = step, only = ringsOnly) => {
    [step, ringsOnly, width, plot] = [given, only, box.clientWidth, null];
    box.style.setProperty("--hl-width", width ? `${width}px` : "100%");
    const title = make("p", { class: "title" }, make("strong", {}, step.title), `, ${step.sizes}`);
    describe();
    if (step.refusal) {
      const why = make("p", {}, `${step.refusal[0].toUpperCase()}${step.refusal.slice(1)}.`);
      return box.replaceChildren(make("div", { class: "panel" }, title, make("div", { class: "refused" }, why)));
    }
    frame = frameOf(step, width || 640, ringsOnly);
    plot = plotOf(step, frame, `${id}-idle`);
    box.replaceChildren(make("div", { class: "panel" }, title, tracksOf(namesOf(step, frame), plot.svg)));
    mark(null);
  };
  const point = (event) => {
    if (!plot?.svg.contains(event.target)) return;
    const { left, top } = plot.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - left - LEFT, event.clientY - top - 1];
    const near = (rank) => Math.abs(frame.top(rank) + (frame.bar + frame.lane) / 2 - y);
    const { rank } = step.ranks.reduce((best, each) => (near(each.rank) < near(best.rank) ? each : best));
    const digit = frame.scale ? 10 ** Math.floor(Math.log10(1 / frame.scale)) : 1; // the unit of a time is a pixel or less
    const at = frame.from + (frame.scale ? x / frame.scale : 0);
    pick(rank, Number(Math.min(Math.max(Math.round(at / digit) * digit, frame.from), step.makespan).toPrecision(9)));
  };
  box.addEventListener("click", point);
  box.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse" && event.buttons === 1) point(event);
  });
  box.addEventListener("keydown", (event) => {
    const to = plot && moment && plain(event) ? movedBy(step, moment, event.key) : null;
    if (!to) return;
    event.preventDefault();
    pick(to.rank, to.time);
    const [x, seen] = [LEFT + Math.max(to.time - frame.from, 0) * frame.scale, box.clientWidth - LABELS - RIGHT];
    box.scrollLeft = Math.min(Math.max(box.scrollLeft, x - seen), Math.max(x - LEFT, 0));
  });
  const observer = new ResizeObserver(() => {
    if (step && box.clientWidth && box.clientWidth !== width) {
      const kept = moment;
      draw();
      mark(kept);
    }
  });
  observer.observe(box);
  return { element: box, draw, mark, stop: () => observer.disconnect() };
}
