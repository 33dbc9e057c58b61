// The picture of a step: for each rank a lane of what it computes, and below it one of what it sends and receives.

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
  const strip = step.ranks.some(crowded) ? lane + 1 : 0; // messages have a lane of their own where a ring goes on beside them
  const pitch = bar + lane + strip + gap + 1;
  const head = step.replicas > 1 ? HEAD : 0;
  const top = (rank) => rank * pitch + head * (Math.floor(rank / step.devices) + 1);
  const scale = span > 0 ? pixels / span : 0; // px a unit of time
  const message = (rank) => top(rank) + bar + 2;
  const hop = (rank) => message(rank) + strip;
  return { from, pixels, scale, bar, lane, pitch, head, top, message, hop, floor: hop(step.ranks.length - 1) + lane + 2 };
}

// Where a stretch of time stands in the frame: its left edge and its width, at least `narrowest`; null if it ended before.
function acrossOf(frame, { start, end }, narrowest = 1) {
  const [left, right] = [start, end].map((at) => (at - frame.from) * frame.scale);
  if (right < 0 || (right === 0 && left < 0)) return null;
  const x = Math.max(left, 0);
  return { x: round(x), width: round(Math.max(right - x, narrowest)) };
}

// ---- what stands in a lane ----

function barOf(step, op, frame) {
  const across = acrossOf(frame, op);
  if (!across) return null;
  const [y, height] = levelOf(op, frame.top(op.rank), frame.bar);
  const text = op.kind === "optimiser" ? "opt" : `${op.kind}${op.microbatch}`;
  const fill = op.kind === "optimiser" ? step.spans.optimiser.colour : step.kinds[op.kind].colours[step.held][op.shade];
  const body = make("rect", { ...across, y, height, rx: 2, fill });
  const marks = (op.kind === "optimiser" ? ["B", "W"] : [op.kind]).flatMap((kind) => markOf(kind, across.x, y, across.width, height));
  const short = op.kind === "optimiser" || fits(text, across.width) ? text : String(op.microbatch);
  const above = op.partner && op.kind === "B" ? 1.5 : 0; // clear of the mark
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

// The picture; `draw(step, ringsOnly)` shows a step, `mark(moment)` what a rank does, `pick(rank, time)` is called for a place pointed at.
function pictureOf(id, pick) {
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
    const digit = frame.scale ? 10 ** Math.floor(Math.log10(1 / frame.scale)) : 1; // a pixel or less
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
