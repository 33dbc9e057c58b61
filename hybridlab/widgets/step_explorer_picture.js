// The picture of a step. Each rank has a lane of its operations and, below it, a lane of its messages. Items of one look are one path,
// so a change of the setting rewrites a few paths.

import { coverOf } from "./step_explorer_cursor.js";
import { acrossOf, boxOf, frameOf, placeOf } from "./step_explorer_frame.js";
import { movedBy, summary } from "./step_explorer_words.js";
import { axisOf, fits, gapsOf, hatchOf, LABELS, labelled, least, LEFT, markPath, RIGHT, round, tracksOf, zoomOf } from "./timeline.js";
import { make, plain, poolOf, setAll } from "./view.js";

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
// `move(rank, time)`.
export function pictureOf(id, { tell, pick, move }) {
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
    buttons.element.hidden = Boolean(step.refusal);
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
  const buttons = zoomOf((wanted) => {
    const middle = frame.from + (box.scrollLeft + frame.room / 2) / frame.scale;
    const inSight = moment && Math.abs(moment.time - middle) <= frame.room / 2 / frame.scale;
    zoom = wanted;
    redraw();
    box.scrollLeft = placeOf(frame, inSight ? moment.time : middle) - frame.room / 2;
    signs();
  });
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
  box.addEventListener("scroll", signs);
  box.addEventListener("keydown", (event) => {
    const to = frame && moment && plain(event) ? movedBy(step, moment, event.key) : null;
    if (!to) return;
    event.preventDefault();
    move(to.rank, to.time);
    see(to.time, event.key === "ArrowLeft" || event.key === "Home" ? 0.2 : 0.8);
  });
  const element = make("div", {}, make("div", { class: "tools" }, title, buttons.element), box);
  const observer = new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) redraw();
  });
  observer.observe(box);
  return { element, box, draw, mark, play, stop: () => observer.disconnect() };
}
