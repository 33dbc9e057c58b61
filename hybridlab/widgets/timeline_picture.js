// Draws timelines on one time axis: a line a device, a bar an operation, the activations held below.

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
  const scale = span > 0 ? pixels / span : 0; // px a unit of time
  return { pixels, scale, bar, memory, pitch: bar + memory + gap + 3, top, letters: shortest * scale >= 26, several: drawn.length > 1 };
}

function barOf(timeline, op, frame) {
  const x = op.start * frame.scale;
  const [y, height] = levelOf(op, op.device * frame.pitch, frame.bar);
  const width = Math.max((op.end - op.start) * frame.scale, 1);
  const text = frame.letters ? `${op.kind}${op.microbatch}` : String(op.microbatch);
  const above = op.partner && op.kind === "B" ? 1.5 : 0; // clear of the mark
  const label = make("text", { x: round(x + width / 2), y: y + height / 2 + 0.5 - above }, text);
  const fill = timeline.kinds[op.kind].colours[timeline.chunks * timeline.copies][op.shade];
  const body = make("rect", { x: round(x), y, width: round(width), height, rx: 2, fill });
  const where = frame.several ? `${timeline.title}, ` : "";
  const told = `${where}${named(timeline, op)} ${reason(timeline, op)}`;
  const attributes = { class: op.partner ? "op half" : "op", tabindex: -1, role: "img", "aria-label": told };
  return make("g", attributes, body, ...markOf(op.kind, x, y, width, height), ...(fits(text, width) ? [label] : []));
}

// Activations held over time: one more when a forward starts, one fewer when a full backward or a weight gradient ends.
function memoryOf(timeline, device, frame) {
  const floor = device * frame.pitch + frame.bar + 3 + frame.memory;
  const steps = new Map(); // px -> held from there on
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
