// The picture of a timeline explorer, and its description: timelines on one time axis. The pointer or the arrow keys choose operations.
// Each device has a line of bars, one for each operation, and the number of activations held below it.

import {
  axisOf, copyWords, fits, gapsOf, hatchOf, LABELS, least, LEFT, levelOf, markOf, most, NARROWEST, RIGHT, round, tracksOf, WIDEST,
} from "./timeline.js";
import { make, number, plain } from "./view.js";

// ---- a timeline, an operation, and what it waited for, in words ----

function time(timeline, value) {
  return timeline.unit ? `${number(value)} ${timeline.unit}` : number(value);
}

export function summary(timeline) {
  const head = `${timeline.title}, ${timeline.sizes}`;
  if (timeline.refusal) return `${head}: not possible. ${timeline.refusal}.`;
  const peaks = timeline.peak.map((peak, device) => `${number(peak)} on device ${device}`).join(", ");
  const figures = `makespan ${time(timeline, timeline.makespan)}, bubble ratio ${timeline.bubble.toFixed(3)}`;
  return `${head}: ${figures}, peak activations in microbatches: ${peaks}.`;
}

function named(timeline, op) {
  const kind = timeline.kinds[op.kind].words;
  const place = `${kind} of microbatch ${op.microbatch} on stage ${op.stage}${copyWords(timeline, op)}`;
  const pair = op.partner ? ` It runs together with ${op.partner.text}.` : "";
  return `${op.text}: the ${place}, device ${op.device}, from ${number(op.start)} to ${time(timeline, op.end)}.${pair}`;
}

function reason(timeline, op) {
  const { before, device } = op;
  const source = op.late ? op.waitedFor : op.source;
  const latency = source && source.device !== device ? timeline.p2p : 0;
  const arrival = source ? source.end + latency : 0;
  if (op.late) {
    const travel = latency ? ` and took ${number(latency)} to arrive` : "";
    const idle = op.start - (before ? before.end : 0);
    const stood = idle > 0 ? ` Device ${device} stood idle for ${number(idle)}.` : "";
    const other = op.late === op ? "" : ` with ${op.late.text}`;
    return `It waited${other} for its input ${source.text}, which ended at ${number(source.end)}${travel}.${stood}`;
  }
  if (!before) return "It waited for nothing.";
  if (before === source) return `It waited for its input ${source.text}, which ran just before it.`;
  const input = source && op.start - arrival > 1e-6 * op.start ? `; its input ${source.text} was there at ${number(arrival)}` : "";
  const both = before.partner ? ` together with ${before.partner.text}` : "";
  return `It waited for its device, which ran ${before.text}${both} until ${number(before.end)}${input}.`;
}

// ---- one timeline ----

function frameOf(timelines, width) {
  const drawn = timelines.filter((timeline) => !timeline.refusal);
  const span = most(drawn.map((timeline) => timeline.makespan));
  const lengths = drawn.flatMap((timeline) => timeline.ops.map((op) => op.end - op.start));
  const shortest = least(lengths.filter((length) => length > 0));
  const room = Math.max(width - LABELS - LEFT - RIGHT, 120);
  const pixels = span > 0 ? Math.min(Math.max(room, (NARROWEST * span) / shortest), WIDEST) : room;
  const rows = drawn.reduce((sum, timeline) => sum + timeline.devices, 0);
  const pairs = drawn.some((timeline) => timeline.ops.some((op) => op.partner));
  const [bar, memory, gap] = pairs ? [30, 14, 8] : rows > 8 ? [20, 12, 7] : [26, 18, 10];
  const top = most(drawn.flatMap((timeline) => timeline.peak)) || 1;
  const scale = span > 0 ? pixels / span : 0; // px for a unit of time
  return { pixels, scale, bar, memory, pitch: bar + memory + gap + 3, top, letters: shortest * scale >= 26, several: drawn.length > 1 };
}

function barOf(timeline, op, frame) {
  const x = op.start * frame.scale;
  const [y, height] = levelOf(op, op.device * frame.pitch, frame.bar);
  const width = Math.max((op.end - op.start) * frame.scale, 1);
  const text = frame.letters ? `${op.kind}${op.microbatch}` : String(op.microbatch);
  const above = op.partner && op.kind === "B" ? 1.5 : 0; // the text does not touch the mark
  const label = make("text", { x: round(x + width / 2), y: y + height / 2 + 0.5 - above }, text);
  const fill = timeline.kinds[op.kind].colours[timeline.chunks * timeline.copies][op.shade];
  const body = make("rect", { x: round(x), y, width: round(width), height, rx: 2, fill });
  const where = frame.several ? `${timeline.title}, ` : "";
  const told = `${where}${named(timeline, op)} ${reason(timeline, op)}`;
  const attributes = { class: op.partner ? "op half" : "op", tabindex: -1, role: "img", "aria-label": told };
  return make("g", attributes, body, ...markOf(op.kind, x, y, width, height), ...(fits(text, width) ? [label] : []));
}

// Activations held over time: a forward adds one when it starts, a full backward or a weight gradient removes one when it ends.
function memoryOf(timeline, device, frame) {
  const floor = device * frame.pitch + frame.bar + 3 + frame.memory;
  const steps = new Map(); // px -> number held from there on
  let held = 0;
  for (const op of timeline.ops.filter((each) => each.device === device)) {
    if (op.kind === "F") steps.set(round(op.start * frame.scale), ++held);
    if (op.kind === "B" || op.kind === "W") steps.set(round(op.end * frame.scale), --held);
  }
  const height = (count) => round(floor - (count / timeline.chunks / frame.top) * frame.memory);
  const path = [...steps].map(([x, count]) => `H${x}V${height(count)}`).join("");
  return make("path", { class: "memory", d: `M0 ${floor}${path}H${round(timeline.makespan * frame.scale)}V${floor}` });
}

function plotOf(timeline, frame, hatch) {
  const floor = timeline.devices * frame.pitch - 4;
  const axis = axisOf(timeline, frame, floor);
  const behind = make("g", { "aria-hidden": "true" }, hatchOf(hatch), ...axis.lines);
  for (let device = 0; device < timeline.devices; device++) {
    const [y, height, fill] = [device * frame.pitch, frame.bar, `url(#${hatch})`];
    behind.append(make("rect", { class: "paper", x: 0, y, width: round(timeline.makespan * frame.scale), height }));
    for (const [from, to] of gapsOf(timeline.ops.filter((op) => op.device === device), timeline.makespan)) {
      const [x, width] = [round(from * frame.scale), round((to - from) * frame.scale)];
      behind.append(make("rect", { class: "idle", x, y, width, height, fill }));
    }
    behind.append(memoryOf(timeline, device, frame));
  }
  for (const op of timeline.ops) op.bar = barOf(timeline, op, frame);
  const front = make("g", { "aria-hidden": "true" }, ...axis.texts);
  const [width, height] = [Math.ceil(LEFT + frame.pixels + RIGHT), floor + 18];
  const box = { class: "plot", width, height, viewBox: `${-LEFT} -1 ${width} ${height}`, role: "presentation" };
  return make("svg", box, behind, ...timeline.ops.map((op) => op.bar), front);
}

function namesOf(timeline, frame) {
  const height = timeline.devices * frame.pitch + 14;
  const names = make("svg", { class: "names", width: LABELS, height, viewBox: `0 -1 ${LABELS} ${height}`, "aria-hidden": "true" });
  timeline.peak.forEach((peak, device) => {
    const y = device * frame.pitch;
    names.append(make("text", { x: 0, y: y + frame.bar / 2 + 4 }, `device ${device}`));
    names.append(make("text", { class: "tick peak", x: 0, y: y + frame.bar + frame.memory + 1 }, `peak ${Number(peak.toFixed(2))}`));
  });
  const unit = timeline.unit ? `time, ${timeline.unit}` : "time";
  names.append(make("text", { class: "tick peak", x: 0, y: timeline.devices * frame.pitch + 9 }, unit));
  return names;
}

function panelOf(timeline, frame, hatch, pick) {
  const title = make("p", { class: "title" }, make("strong", {}, timeline.title), `, ${timeline.sizes}`);
  if (!timeline.refusal) {
    const tracks = tracksOf(namesOf(timeline, frame), plotOf(timeline, frame, hatch));
    timeline.told = make("p", { class: "told" });
    return make("div", { class: "panel" }, title, tracks, timeline.told);
  }
  const sentence = make("p", {}, `${timeline.refusal[0].toUpperCase()}${timeline.refusal.slice(1)}.`);
  const buttons = timeline.remedies.map(({ name, value }) => {
    const button = make("button", { type: "button" }, `Show ${value} ${name}`);
    button.addEventListener("click", () => pick(name, value, true));
    return button;
  });
  return make("div", { class: "panel" }, title, make("div", { class: "refused" }, sentence, ...buttons));
}

// ---- all timelines, the pointer and the keyboard ----

const HINT =
  "Point at an operation, or tap it, to read what it waited for. From the keyboard: Tab to the picture, arrow keys to move, " +
  "Enter to go to what the operation waited for.";

function neighbour(ops, op, key) {
  const line = ops.filter((each) => each.line === op.line);
  const place = line.indexOf(op);
  const beside = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: line.length - 1 };
  if (key in beside) return line[beside[key]] ?? op;
  if (key === "Enter") return op.waitedFor ?? op;
  const step = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!step) return null;
  const middle = (each) => Math.abs(each.start + each.end - op.start - op.end);
  const there = ops.filter((each) => each.line === op.line + step);
  return there.reduce((best, each) => (middle(each) < middle(best) ? each : best), there[0] ?? op);
}

// Describes the chosen operation below its timeline. If none is chosen, a hint stands below the first timeline.
function tell(timelines, op) {
  timelines.filter((timeline) => timeline.told).forEach((timeline, place) => {
    const here = op && timeline.ops.includes(op);
    timeline.told.classList.toggle("hint", !here);
    if (!here) return timeline.told.replaceChildren(place === 0 ? HINT : "");
    const words = `${named(timeline, op)} ${reason(timeline, op)}`.slice(op.text.length);
    timeline.told.replaceChildren(make("strong", {}, op.text), words);
  });
}

function arrowTo(op, frame) {
  const from = op.waitedFor;
  const [[y, height], [y0, height0]] = [op.late, from].map((each) => levelOf(each, each.device * frame.pitch, frame.bar));
  const [x1, y1, x2, y2] = [from.end * frame.scale, y0 + height0 / 2, op.start * frame.scale, y + height / 2];
  const line = make("path", { d: `M${round(x1)} ${y1}L${round(x2)} ${y2}` });
  const ends = [[x1, y1], [x2, y2]].map(([cx, cy]) => make("circle", { cx: round(cx), cy, r: 3.5 }));
  return make("g", { class: "arrow", "aria-hidden": "true" }, line, ...ends);
}

// The picture, one stop of the Tab key; `draw(timelines)` shows them.
export function pictureOf(id, pick) {
  const box = make("div", { class: "picture" });
  let [timelines, frame, ops, width, current] = [[], null, [], 0, null];

  const mark = (op) => {
    box.querySelectorAll(".arrow").forEach((arrow) => arrow.remove());
    box.classList.toggle("following", Boolean(op));
    for (const each of ops) {
      each.bar.classList.toggle("same", Boolean(op) && each.panel === op.panel && each.microbatch === op.microbatch);
      each.bar.classList.toggle("waited", Boolean(op) && each === op.waitedFor);
      each.bar.classList.toggle("together", Boolean(op) && each === op.partner);
      each.bar.classList.toggle("now", each === op);
    }
    if (op?.late) op.bar.parentNode.append(arrowTo(op, frame));
    tell(timelines, op);
  };
  const opAt = (target) => ops.find((op) => op.bar === target.closest?.(".op"));
  const rest = () => mark(box.matches(":focus-within") ? current : null);
  const settle = (op) => {
    current?.bar.setAttribute("tabindex", -1);
    current = op;
    op.bar.setAttribute("tabindex", 0);
  };
  const draw = (given = timelines) => {
    const focused = ops.includes(current) && box.matches(":focus-within");
    const before = current;
    [timelines, width] = [given, box.clientWidth];
    box.style.setProperty("--hl-width", width ? `${width}px` : "100%");
    frame = frameOf(timelines, width || 640);
    let lines = 0;
    timelines.forEach((timeline, panel) => {
      for (const op of timeline.ops) Object.assign(op, { panel, line: lines + op.device });
      lines += timeline.refusal ? 0 : timeline.devices;
    });
    ops = timelines.flatMap((timeline) => timeline.ops);
    box.replaceChildren(...timelines.map((timeline, panel) => panelOf(timeline, frame, `${id}-idle${panel}`, pick)));
    const label = `${timelines.map(summary).join(" ")} Arrow keys move between operations.`;
    const described = { role: "application", "aria-roledescription": "timeline", "aria-label": label };
    for (const [name, value] of Object.entries(described)) ops.length ? box.setAttribute(name, value) : box.removeAttribute(name);
    current = null;
    if (ops.length) settle(ops.find((op) => op.panel === before?.panel && op.text === before.text) ?? ops[0]);
    if (focused) current?.bar.focus();
    else mark(null);
  };

  box.addEventListener("pointerover", (event) => (opAt(event.target) ? mark(opAt(event.target)) : rest()));
  box.addEventListener("pointerleave", rest);
  box.addEventListener("focusout", () => mark(null));
  box.addEventListener("focusin", (event) => {
    const op = opAt(event.target);
    if (op) settle(op);
    mark(op ?? null);
  });
  box.addEventListener("keydown", (event) => {
    const from = opAt(event.target);
    const to = from && plain(event) ? neighbour(ops, from, event.key) : null;
    if (!to) return;
    event.preventDefault();
    to.bar.focus();
    timelines[to.panel].told.scrollIntoView({ block: "nearest" });
  });
  const observer = new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) draw();
  });
  observer.observe(box);
  return { element: box, draw, stop: () => observer.disconnect() };
}
