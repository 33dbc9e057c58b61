// One timeline as a drawing: it is made once for an order, placed for its times, and moved through time by a cursor.
// Each device has a line of bars, one for each operation, and the number of activations held below it.

import { travel } from "./clock.js";
import { criticalPath } from "./timed.js";
import {
  axisOf, boxIn, fits, gapsOf, hatchOf, labelled, LABELS, LEFT, levelOf, markPath, most, RIGHT, round, tracksOf, WIDEST,
} from "./timeline.js";
import { waitingWords } from "./timeline_words.js";
import { make, poolOf, setAll } from "./view.js";

// What all panels of a picture share: the width of a unit of time, heights in px, the rule for labels. `low` asks for low rows.
export function frameOf(timelines, width, zoom, low = false) {
  const drawn = timelines.filter((timeline) => !timeline.refusal);
  const span = most(drawn.map((timeline) => timeline.makespan));
  const room = Math.max(width - LABELS - LEFT - RIGHT, 120);
  const pixels = Math.min(room * zoom, Math.max(WIDEST, room));
  const rows = drawn.reduce((sum, timeline) => sum + timeline.devices, 0);
  const pairs = drawn.some((timeline) => timeline.ops.some((op) => op.partner));
  const [bar, memory, gap] = pairs ? [26, 10, 5] : low ? [14, 6, 3] : rows > 8 ? [16, 8, 4] : rows > 4 ? [18, 9, 4] : [26, 16, 8];
  const top = most(drawn.flatMap((timeline) => timeline.peak)) || 1;
  const scale = span > 0 ? pixels / span : 0; // px for a unit of time
  const label = labelled(drawn.flatMap((timeline) => timeline.ops), scale);
  return { pixels, scale, bar, memory, pitch: bar + memory + gap + 3, top, label };
}

// ---- the bars ----

function barFor(timeline, op) {
  const fill = timeline.kinds[op.kind].colours[timeline.chunks * timeline.copies][op.shade];
  const body = make("polygon", { fill });
  const bar = make("g", { class: op.partner ? "op half" : "op", tabindex: -1 }, body);
  return Object.assign(bar, { item: op, body, label: null });
}

// A bar has an element for its label only while it has a label.
function labelBar({ bar }, text, place) {
  if (!text) {
    bar.label?.remove();
    bar.label = null;
    return;
  }
  if (!bar.label) bar.append((bar.label = make("text")));
  if (bar.label.textContent !== text) bar.label.textContent = text;
  setAll(bar.label, place);
}

// Puts the bar of an operation where its times say. Returns the path of the mark of its kind, empty for a forward.
function placeBar(op, frame) {
  const x = op.start * frame.scale;
  const [y, height] = levelOf(op, op.device * frame.pitch, frame.bar);
  const width = Math.max((op.end - op.start) * frame.scale, 1);
  boxIn(op.bar.body, x, y, width, height);
  const text = frame.label(op);
  const above = op.partner && op.kind === "B" ? 1.5 : 0; // the text does not touch the mark
  labelBar(op, fits(text, width) ? text : "", { x: round(x + width / 2), y: y + height / 2 + 0.5 - above });
  return markPath(op.kind, x, y, width, height);
}

// ---- memory and idle times ----

// How many activations a device holds, from each time on: a forward adds one when it starts, a full backward or a weight gradient removes
// one when it ends.
function heldOf(line) {
  const steps = [];
  let held = 0;
  for (const op of line) {
    if (op.kind === "F") steps.push([op.start, ++held]);
    if (op.kind === "B" || op.kind === "W") steps.push([op.end, --held]);
  }
  return steps;
}

function memoryPath(steps, floor, timeline, frame) {
  const height = (count) => round(floor - (count / timeline.chunks / frame.top) * frame.memory);
  const path = steps.map(([time, count]) => `H${round(time * frame.scale)}V${height(count)}`).join("");
  return `M0 ${floor}${path}H${round(timeline.makespan * frame.scale)}V${floor}`;
}

// The idle times of a device, each with the operation that ends it.
function idleTimes(line, device, makespan) {
  const shortest = 1e-9 * makespan;
  return gapsOf(line, makespan)
    .filter(([start, end]) => end - start > shortest)
    .map(([start, end]) => ({ gap: true, device, start, end, next: line.find((op) => op.start >= end) ?? null }));
}

// The parts of the idle times of `other` in which `own` computes: the bubbles that are gone.
function goneBubbles(own, other) {
  return own.flatMap((gaps, device) =>
    (other[device] ?? []).flatMap((theirs) => {
      const pieces = [];
      let from = theirs.start;
      for (const { start, end } of gaps.filter((gap) => gap.end > theirs.start && gap.start < theirs.end)) {
        pieces.push([from, start]);
        from = end;
      }
      pieces.push([from, theirs.end]);
      return pieces.filter(([low, high]) => high - low > 1e-9 * theirs.end).map(([start, end]) => ({ device, start, end }));
    }),
  );
}

// ---- a panel ----

const CURSOR_ROOM = 90; // px: the width of the words beside the cursor

// A panel for an order: its elements, without places. `hatch` is the id of its pattern for idle times.
export function panelOf(timeline, hatch) {
  const each = (of) => Array.from({ length: timeline.devices }, (_, device) => of(device));
  for (const op of timeline.ops) op.bar = barFor(timeline, op);
  const panel = {
    timeline,
    time: Number.POSITIVE_INFINITY,
    path: [], // the operations of the critical path, while it is coloured
    hatch: `url(#${hatch})`,
    lines: each((device) => timeline.ops.filter((op) => op.device === device)),
    papers: each(() => make("rect", { class: "paper", x: 0 })),
    memories: each(() => make("path", { class: "memory" })),
    waits: each(() => make("text", { class: "waits" })),
    held: each(() => make("text", { class: "tick peak", x: 0 })),
    titles: each((device) => make("text", { x: 0 }, `device ${device}`)),
    unit: make("text", { class: "tick peak", x: 0 }),
    axis: make("g", { "aria-hidden": "true" }),
    idle: make("g", { class: "idles" }),
    gone: make("path", { class: "gone", "aria-hidden": "true" }), // all outlines
    front: make("g", { "aria-hidden": "true" }),
    marks: make("path", { class: "mark" }), // all marks of full backwards and weight gradients
    dashes: make("path", { class: "mark dashes" }), // all marks of input gradients
    veil: make("rect", { class: "veil", y: -1 }),
    line: make("path", { class: "cursor" }),
    dots: make("g"),
    element: make("div", { class: "panel" }),
  };
  const behind = make("g", { "aria-hidden": "true" }, hatchOf(hatch), ...panel.papers, ...panel.memories);
  panel.moment = make("g", { class: "moment", "aria-hidden": "true" }, panel.veil, panel.line, panel.dots, ...panel.waits);
  const bars = timeline.ops.map((op) => op.bar);
  const parts = [panel.axis, behind, panel.idle, ...bars, panel.marks, panel.dashes, panel.gone, panel.front, panel.moment];
  panel.gapBars = poolOf(panel.idle, "polygon", (bar, gap) => placeGap(panel, bar, gap));
  panel.plot = make("svg", { class: "plot", role: "presentation" }, ...parts);
  panel.names = make("svg", { class: "names", width: LABELS, "aria-hidden": "true" }, ...panel.titles, ...panel.held, panel.unit);
  return panel;
}

function placeGap({ frame, hatch }, bar, gap) {
  if (!bar.item) setAll(bar, { class: "idle", fill: hatch, tabindex: -1 });
  gap.bar = Object.assign(bar, { item: gap });
  boxIn(bar, gap.start * frame.scale, gap.device * frame.pitch, (gap.end - gap.start) * frame.scale, frame.bar);
}

// Puts everything where the times say.
export function placePanel(panel, timeline, frame) {
  Object.assign(panel, { timeline, frame });
  const { makespan, devices } = timeline;
  const floor = devices * frame.pitch - 4;
  const [width, height] = [Math.ceil(LEFT + frame.pixels + RIGHT), floor + 18];
  setAll(panel.plot, { width, height, viewBox: `${-LEFT} -1 ${width} ${height}` });
  setAll(panel.names, { height: height - 4, viewBox: `0 -1 ${LABELS} ${height - 4}` });
  const { lines, texts } = axisOf(timeline, frame, floor);
  panel.axis.replaceChildren(...lines);
  panel.front.replaceChildren(...texts);
  const marks = timeline.ops.map((op) => [op.kind === "I", placeBar(op, frame)]);
  for (const dashed of [false, true]) {
    setAll(dashed ? panel.dashes : panel.marks, { d: marks.filter(([of]) => of === dashed).map(([, path]) => path).join("") });
  }
  panel.steps = panel.lines.map(heldOf);
  panel.lines.forEach((_, device) => {
    const y = device * frame.pitch;
    setAll(panel.papers[device], { y, width: round(makespan * frame.scale), height: frame.bar });
    setAll(panel.memories[device], { d: memoryPath(panel.steps[device], y + frame.bar + 3 + frame.memory, timeline, frame) });
    setAll(panel.titles[device], { y: y + frame.bar / 2 + 4 });
    setAll(panel.held[device], { y: y + frame.bar + frame.memory + 1 });
  });
  panel.gaps = panel.lines.map((line, device) => idleTimes(line, device, makespan));
  panel.gapBars(panel.gaps.flat());
  panel.unit.setAttribute("y", devices * frame.pitch + 9);
  panel.unit.textContent = timeline.unit ? `time, ${timeline.unit}` : "time";
  panel.veil.setAttribute("height", floor + 2);
  panel.crossing = timeline.ops.filter((op) => travel(timeline, op) > 0);
}

// Outlines the bubbles that another panel has and this one has not. Without another panel there are none.
export function outlineGone(panel, other) {
  const { frame } = panel;
  const gone = other ? goneBubbles(panel.gaps, other.gaps) : [];
  const boxes = gone.map(({ device, start, end }) => {
    const [x, width] = [round(start * frame.scale + 1), round(Math.max((end - start) * frame.scale - 2, 0.5))];
    return `M${x} ${device * frame.pitch + 1}h${width}v${frame.bar - 2}h${-width}z`;
  });
  setAll(panel.gone, { d: boxes.join("") });
}

const heldAt = (panel, device, time) => panel.steps[device].findLast(([from]) => from <= time)?.[1] ?? 0;

function dotOf({ timeline, frame }, op, time) {
  const part = (time - op.source.end) / travel(timeline, op);
  const [from, to] = [op.source, op].map((each) => each.device * frame.pitch + frame.bar / 2);
  return make("circle", { class: "dot", cx: round(time * frame.scale), cy: round(from + part * (to - from)), r: 4 });
}

// Draws a panel at a time: what comes later is veiled, messages on their way are dots, and devices that compute nothing say why.
export function moveTo(panel, time) {
  const { timeline, frame } = panel;
  const whole = time >= timeline.makespan;
  panel.time = time;
  panel.moment.style.display = whole ? "none" : "";
  panel.held.forEach((text, device) => {
    const [word, count] = whole ? ["peak", timeline.peak[device]] : ["holds", heldAt(panel, device, time) / timeline.chunks];
    const now = `${word} ${Number(count.toFixed(2))}`;
    if (text.textContent !== now) text.textContent = now;
  });
  if (whole) return;
  const x = round(time * frame.scale);
  setAll(panel.veil, { x, width: Math.max(round(frame.pixels + RIGHT - x), 0) });
  panel.line.setAttribute("d", `M${x} -1V${timeline.devices * frame.pitch - 1}`);
  const left = x + CURSOR_ROOM > frame.pixels;
  panel.waits.forEach((text, device) => {
    const words = waitingWords(panel.lines[device], time, timeline.stops?.[device]);
    if (text.textContent !== words) text.textContent = words;
    const place = { x: left ? x - 6 : x + 6, y: device * frame.pitch + frame.bar / 2 + 4 };
    if (words) setAll(text, { ...place, "text-anchor": left ? "end" : "start" });
  });
  const travelling = panel.crossing.filter((op) => op.source.end <= time && time < op.source.end + travel(timeline, op));
  panel.dots.replaceChildren(...travelling.map((op) => dotOf(panel, op, time)));
}

// All that can be pointed at on a device, from left to right: operations and idle times.
export const itemsOn = (panel, device) => [...panel.lines[device], ...panel.gaps[device]].sort((one, other) => one.start - other.start);

// Colours a critical path, or no longer.
export function colourPath(panel, shown) {
  for (const { bar } of panel.path) bar.classList.remove("path");
  panel.path = shown ? criticalPath(panel.timeline) : [];
  for (const { bar } of panel.path) bar.classList.add("path");
  panel.element.classList.toggle("critical", shown);
}

// Puts the title and the drawing into the panel.
export function fillPanel({ element, timeline, names, plot }) {
  element.replaceChildren(titleOf(timeline), tracksOf(names, plot));
}

export function arrowTo(op, frame) {
  const from = op.waitedFor;
  const [[y, height], [y0, height0]] = [op.late, from].map((each) => levelOf(each, each.device * frame.pitch, frame.bar));
  const [x1, y1, x2, y2] = [from.end * frame.scale, y0 + height0 / 2, op.start * frame.scale, y + height / 2];
  const line = make("path", { d: `M${round(x1)} ${y1}L${round(x2)} ${y2}` });
  const ends = [[x1, y1], [x2, y2]].map(([cx, cy]) => make("circle", { cx: round(cx), cy, r: 3.5 }));
  return make("g", { class: "arrow", "aria-hidden": "true" }, line, ...ends);
}

export const titleOf = ({ title, sizes, head }) => head ?? make("p", { class: "title" }, make("strong", {}, title), `, ${sizes}`);
