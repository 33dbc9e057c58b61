// The picture of a step. Each rank has a lane of its operations and, below it, a lane of its messages. Items of one look are one path,
// so a change of the setting rewrites a few paths. Over it lie the cursor, and the time that plays.

import { grain } from "./step_explorer_data.js";
import { holds, idleWords, movedBy, summary } from "./step_explorer_words.js";
import {
  axisOf, fits, gapsOf, hatchOf, LABELS, labelled, least, LEFT, levelOf, markPath, RIGHT, round, tracksOf, WIDEST, zoomOf,
} from "./timeline.js";
import { make, plain, poolOf, setAll } from "./view.js";

// ---- the measures: where the lanes of each rank and the items in them stand ----

const HEAD = 17; // px: the name of a replica above its ranks
// For at most so many ranks: the height in px of operations, of overlapped pairs, of messages, and of the space below.
const LANES = [[4, 22, 28, 12, 9], [8, 17, 24, 9, 5], [16, 11, 16, 6, 3], [Infinity, 8, 12, 4, 2]];
const WORDS = 150; // px: the room for words beside the cursor
const READABLE = 9; // px: the least height of a lane with text

const meet = (one, other) => one.start <= other.end && other.start < one.end;

// `zoom` is the width of the picture in widths of its box. `ringsOnly` lets it begin with the first hop.
function frameOf(step, width, zoom, ringsOnly) {
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
const placeOf = (frame, at) => (at - frame.from) * frame.scale;

// The left edge and the width of a time span, at least `narrowest`. Null for a span that ends before the frame starts.
function acrossOf(frame, { start, end }, narrowest = 1) {
  const [left, right] = [start, end].map((at) => placeOf(frame, at));
  if (right < 0 || (right === 0 && left < 0)) return null;
  const x = Math.max(left, 0);
  return { x: round(x), width: round(Math.max(right - x, narrowest)) };
}

// The box of an operation, an optimiser, a message or a hop. Null if the frame starts after it.
function boxOf(frame, item) {
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
function coverOf(under) {
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

// ---- the items of all lanes ----

const rectangle = ({ x, y, width, height }) => `M${x} ${y}h${width}v${height}h${-width}z`;

// The paths of a picture by layer and name, each with its attributes and its outlines.
function pathsOf(step, frame, hatch) {
  const layers = { lanes: new Map(), items: new Map(), marks: new Map() };
  const add = (layer, name, attributes, outline) => {
    const path = layers[layer].get(name) ?? { attributes, outlines: [] };
    path.outlines.push(outline);
    layers[layer].set(name, path);
  };
  const mark = (kind, { x, y, width, height }) =>
    add("marks", kind, { class: kind === "I" ? "mark dashes" : "mark" }, markPath(kind, x, y, width, height));
  const fillOf = ({ kind, shade }) => (kind === "optimiser" ? step.spans.optimiser.colour : step.kinds[kind].colours[step.held][shade]);
  const looks = {
    send: { class: "send" },
    receive: { class: "receive" },
    "reduce-scatter": { class: "hop", fill: step.spans["reduce-scatter"].colour },
    "all-gather": { class: "hop gathers", stroke: step.spans["all-gather"].colour },
  };
  for (const own of step.ranks) {
    const lane = { y: frame.top(own.rank), height: frame.bar };
    add("lanes", "paper", { class: "paper" }, rectangle({ ...lane, x: 0, width: round(frame.pixels) }));
    for (const [start, end] of gapsOf(own.computing, step.makespan)) {
      const across = acrossOf(frame, { start, end });
      if (across) add("lanes", "idle", { class: "idle", fill: `url(#${hatch})` }, rectangle({ ...across, ...lane }));
    }
    for (const item of own.items) {
      const box = boxOf(frame, item);
      if (!box) continue;
      const { kind } = item;
      const look = looks[kind] ?? { class: "op", fill: fillOf(item) };
      add("items", `${look.class} ${kind} ${look.fill}`, look, rectangle(box));
      if (kind === "B" || kind === "I" || kind === "W") mark(kind, box);
      if (kind === "optimiser") ["B", "W"].forEach((each) => mark(each, box));
    }
  }
  return layers;
}

// The texts in the boxes. One rule holds for all operations of a picture, and one for all hops.
function textsOf(step, frame) {
  const texts = { op: [], hop: [], gathers: [] };
  const ops = step.ranks.flatMap((own) => own.ops).filter(({ end }) => end > frame.from);
  const write = (name, item, text) => {
    const box = text === "" ? null : boxOf(frame, item);
    if (!box) return;
    const above = item.partner && item.kind === "B" ? 1.5 : 0; // the text does not touch the mark
    texts[name].push({ text, x: round(box.x + box.width / 2), y: box.y + box.height / 2 + 0.5 - above, half: Boolean(item.partner) });
  };
  const textOf = frame.texts.ops ? labelled(ops, frame.scale) : () => "";
  for (const op of ops) if (op.end > op.start) write("op", op, textOf(op));
  if (frame.texts.ops && fits("opt", step.update * frame.scale)) for (const { optimiser } of step.ranks) write("op", optimiser, "opt");
  const hops = step.ranks.flatMap((own) => own.hops);
  if (!frame.texts.hops || !hops.every(({ piece }) => fits(String(piece), step.hop * frame.scale))) return texts;
  for (const hop of hops) write(hop.kind === "all-gather" ? "gathers" : "hop", hop, String(hop.piece));
  return texts;
}

// The drawing of the lanes, which keeps its elements from one step to the next; `draw(step, frame)` changes them.
function lanesOf(hatch) {
  const group = (name) => make("g", { class: name });
  const svg = make("svg", { class: "plot", "aria-hidden": "true" });
  const [under, grid, axis] = ["under", "lines", "axis"].map(group);
  const layers = { lanes: group("lanes"), items: group("items"), marks: group("marks") };
  const boxes = { op: group("op texts"), hop: group("hop texts"), gathers: group("hop gathers texts") };
  svg.append(hatchOf(hatch), under, grid, ...Object.values(layers), ...Object.values(boxes), axis);
  const drawn = Object.fromEntries(Object.entries(layers).map(([name, layer]) => [name, poolOf(layer, "path", setPath)]));
  const written = Object.fromEntries(Object.entries(boxes).map(([name, box]) => [name, poolOf(box, "text", setText)]));
  function setPath(path, { attributes, outlines }) {
    for (const name of ["fill", "stroke"]) if (!(name in attributes)) path.removeAttribute(name);
    setAll(path, { ...attributes, d: outlines.join("") });
  }
  function setText(element, { text, x, y, half }) {
    if (element.textContent !== text) element.textContent = text;
    setAll(element, { x, y, class: half ? "half" : "" });
  }
  const draw = (step, frame) => {
    const { width, height } = frame.size;
    setAll(svg, { width, height, viewBox: `${-LEFT} -1 ${width} ${height}` });
    const ticks = axisOf(step, frame, frame.floor);
    grid.replaceChildren(...ticks.lines);
    axis.replaceChildren(...ticks.texts);
    for (const [name, paths] of Object.entries(pathsOf(step, frame, hatch))) drawn[name]([...paths.values()]);
    for (const [name, texts] of Object.entries(textsOf(step, frame))) written[name](texts);
    const shortest = least(step.ranks.flatMap(({ ops }) => ops.map(({ start, end }) => end - start)).filter((length) => length > 0));
    svg.style.setProperty("--hl-edge", round(Math.min(1, 0.2 * shortest * frame.scale))); // px between bars, less if they are narrow
    svg.classList.toggle("small", frame.bar < 15);
  };
  return { svg, under, draw };
}

function namesOf(step, frame) {
  const { height } = frame.size;
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

// ---- the picture ----

// The lanes are in `box`. `draw(step, ringsOnly)` shows a step, `mark(moment, pinned)` what a rank does, `play(time)` the time that plays, or none for null. The
// pointer over a place calls `tell(rank, time)`, and `tell(null)` when it leaves; a click or a tap calls `pick(rank, time)`, an arrow key
// `move(rank, time)`, and `changed()` tells that the zoom or the place in the box is another.
export function pictureOf(id, { tell, pick, move, changed }) {
  const title = make("p", { class: "title" });
  const box = make("div", { class: "picture" });
  const lanes = lanesOf(`${id}-idle`);
  const cover = coverOf(lanes.under);
  let [step, ringsOnly, frame, width, zoom, moment, pinned, played] = [null, false, null, 0, 1, null, false, null];

  const signs = () => {
    const end = frame ? box.scrollWidth - box.clientWidth : 0;
    box.classList.toggle("more-left", end > 1 && box.scrollLeft > 1);
    box.classList.toggle("more-right", end > 1 && box.scrollLeft < end - 1);
  };
  const mark = (given = moment, fixed = pinned) => {
    [moment, pinned] = [given, fixed];
    if (frame && moment) cover.mark(moment, pinned);
  };
  const play = (time = played) => {
    played = time;
    if (!frame) return;
    cover.play(time);
    if (time !== null) see(time, 0.5);
  };
  // Scrolls to a time if it is not in sight; `part` is its place in the box then.
  const see = (time, part) => {
    if (frame.pixels <= frame.room) return;
    const [x, seen] = [placeOf(frame, time), width - LABELS - LEFT - RIGHT];
    if (x < box.scrollLeft || x > box.scrollLeft + seen) box.scrollLeft = Math.max(x - part * seen, 0);
  };
  const describe = () => {
    const label = `${summary(step)} Arrow keys move from moment to moment, and from rank to rank.`;
    const described = { tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": label };
    for (const [name, value] of Object.entries(described)) step.refusal ? box.removeAttribute(name) : box.setAttribute(name, value);
  };
  const draw = (given = step, only = ringsOnly) => {
    [step, ringsOnly, width, frame] = [given, only, box.clientWidth, null];
    title.replaceChildren(make("strong", {}, step.title), `, ${step.sizes}`);
    zooms.element.hidden = Boolean(step.refusal);
    describe();
    if (step.refusal) {
      const why = make("p", {}, `${step.refusal[0].toUpperCase()}${step.refusal.slice(1)}.`);
      box.replaceChildren(make("div", { class: "refused" }, why));
      return signs();
    }
    frame = frameOf(step, width || 640, zoom, ringsOnly);
    lanes.draw(step, frame);
    cover.fit(step, frame);
    const tracks = tracksOf(namesOf(step, frame), lanes.svg);
    tracks.append(cover.element);
    box.replaceChildren(tracks);
    requestAnimationFrame(signs);
  };
  const redraw = () => {
    if (!step) return;
    draw();
    mark();
    play();
  };
  const zooms = zoomOf((wanted) => {
    const middle = frame.from + (box.scrollLeft + frame.room / 2) / frame.scale;
    const inSight = moment && Math.abs(moment.time - middle) <= frame.room / 2 / frame.scale;
    zoom = wanted;
    redraw();
    box.scrollLeft = placeOf(frame, inSight ? moment.time : middle) - frame.room / 2;
    signs();
    changed();
  });
  // What a link keeps of the picture: the zoom, and the time at the left edge.
  const look = () => ({ zoom: zooms.now(), left: frame?.scale ? Number((box.scrollLeft / frame.scale).toPrecision(4)) : 0 });
  const showLook = (given) => {
    if (given.zoom !== zooms.now()) zooms.set(given.zoom);
    if (frame) box.scrollLeft = given.left * frame.scale;
  };
  const placeAt = (event) => {
    if (!lanes.svg.contains(event.target)) return null;
    const { left, top } = lanes.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - left - LEFT, event.clientY - top - 1];
    const near = (rank) => Math.abs(frame.top(rank) + (frame.bar + frame.lane) / 2 - y);
    const { rank } = step.ranks.reduce((best, each) => (near(each.rank) < near(best.rank) ? each : best));
    const digit = frame.scale ? 10 ** Math.floor(Math.log10(1 / frame.scale)) : 1; // the unit of a time is a pixel or less
    const at = frame.from + (frame.scale ? x / frame.scale : 0);
    return [rank, Number(Math.min(Math.max(Math.round(at / digit) * digit, frame.from), step.makespan).toPrecision(9))];
  };
  const on = (name, act) => box.addEventListener(name, (event) => {
    const place = frame && placeAt(event);
    if (place) act(event, place);
  });
  on("click", (_, place) => pick(...place));
  on("pointermove", ({ pointerType, buttons: pressed }, place) => {
    if (pointerType === "mouse") (pressed === 1 ? pick : tell)(...place);
  });
  box.addEventListener("pointerleave", () => tell(null));
  box.addEventListener("scroll", () => {
    signs();
    changed();
  });
  box.addEventListener("keydown", (event) => {
    const to = frame && moment && plain(event) ? movedBy(step, moment, event.key) : null;
    if (!to) return;
    event.preventDefault();
    move(to.rank, to.time);
    see(to.time, event.key === "ArrowLeft" || event.key === "Home" ? 0.2 : 0.8);
  });
  const element = make("div", {}, make("div", { class: "tools" }, title, zooms.element), box);
  const observer = new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) redraw();
  });
  observer.observe(box);
  return { element, box, draw, mark, play, look, showLook, stop: () => observer.disconnect() };
}
