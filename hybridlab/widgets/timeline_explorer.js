// Draws one setting of a grid of finished timelines, or two schedules on one time axis.
// It computes no order and no time: those are in the trait `data`, whose shape hybridlab/widgets/grid.py describes.
// `view.js` stands above this file: make, number, plain, counted, field, DAMAGED.

const SETTING = ["schedule", "devices", "microbatches", "chunks", "p2p", "compare"];
const LABELS = 54; // px: the column of device names
const LEFT = 5; // px: room for the first number of the time axis
const RIGHT = 16; // px: and for the last
const NARROWEST = 7.5; // px: a shorter operation makes the picture scroll in its box
const WIDEST = 8000; // px

const round = (value) => Math.round(value * 100) / 100; // px
const least = (values) => values.reduce((low, value) => Math.min(low, value), Infinity);
const most = (values) => values.reduce((high, value) => Math.max(high, value), 0);

// ---- reading the data ----

function timelineOf(data, setting) {
  const { schedule, devices, microbatches, chunks, p2p } = setting;
  const { title } = data.schedules.find((each) => each.name === schedule);
  const sizes = [counted(devices, "device"), counted(microbatches, "microbatch").replace("chs", "ches")];
  if (chunks > 1) sizes.push(`${chunks} chunks a device`);
  const about = { setting, title, sizes: sizes.join(", "), unit: data.unit, kinds: data.kinds };
  const entry = data.pipelines[[schedule, devices, microbatches, chunks].join("/")];
  if (entry.refusal) return { ...about, refusal: entry.refusal, ops: [] };
  const place = data.p2p.indexOf(p2p);
  const [makespan, bubble] = [entry.makespan[place], entry.bubble[place]];
  const ops = opsOf(entry, place, devices);
  if (!ops.length || ![makespan, bubble, ...entry.peak, ...ops.map((op) => op.end)].every(Number.isFinite)) {
    throw new Error("a time is missing");
  }
  return { ...about, ops, makespan, bubble, peak: entry.peak, devices, chunks, p2p };
}

function opsOf(entry, place, devices) {
  const ops = entry.orders.flatMap((order, device) => order.split(" ").map((text) => ({ text, device })));
  const late = new Set(entry.late[place]);
  ops.forEach((op, row) => {
    const [, stage, kind, microbatch] = /^(\d+)([FBIW])(\d+)$/.exec(op.text);
    Object.assign(op, { row, kind, stage: Number(stage), microbatch: Number(microbatch) });
    op.chunk = Math.floor(op.stage / devices);
    op.start = entry.start[place][row];
    op.end = op.start + entry.duration[kind][op.device];
    op.before = ops[row - 1]?.device === op.device ? ops[row - 1] : null;
    op.source = ops[entry.source[row]] ?? null;
    op.late = late.has(row);
    op.waitedFor = op.late ? op.source : op.before;
  });
  return ops;
}

function chunksOf(data, name) {
  return data.schedules.find((each) => each.name === name).chunks;
}

// The settings to draw: the schedule, and the one to compare it with at the same sizes.
function settingsOf(data, setting) {
  if (!setting.compare || setting.compare === setting.schedule) return [setting];
  const chunks = chunksOf(data, setting.compare);
  const other = { schedule: setting.compare, chunks: chunks.includes(setting.chunks) ? setting.chunks : chunks[0] };
  return [setting, { ...setting, ...other }];
}

// The nearest values of one control, the rest unchanged, at which a refused schedule runs.
function remedies(data, setting) {
  for (const name of ["microbatches", "devices"]) {
    const runs = data[name].filter((value) => {
      const { schedule, devices, microbatches, chunks } = { ...setting, [name]: value };
      return !data.pipelines[[schedule, devices, microbatches, chunks].join("/")].refusal;
    });
    const nearest = runs.sort((a, b) => Math.abs(a - setting[name]) - Math.abs(b - setting[name])).slice(0, 3);
    if (nearest.length) return nearest.sort((a, b) => a - b).map((value) => ({ name, value }));
  }
  return [];
}

// ---- words ----

function time(timeline, value) {
  return timeline.unit ? `${number(value)} ${timeline.unit}` : number(value);
}

function summary(timeline) {
  const head = `${timeline.title}, ${timeline.sizes}`;
  if (timeline.refusal) return `${head}: not possible. ${timeline.refusal}.`;
  const peaks = timeline.peak.map((peak, device) => `${number(peak)} on device ${device}`).join(", ");
  const figures = `makespan ${time(timeline, timeline.makespan)}, bubble ratio ${timeline.bubble.toFixed(3)}`;
  return `${head}: ${figures}, peak activations in microbatches: ${peaks}.`;
}

function named(timeline, op) {
  const kind = timeline.kinds[op.kind].words;
  const place = `${kind} of microbatch ${op.microbatch} on stage ${op.stage}`;
  return `${op.text}: the ${place}, device ${op.device}, from ${number(op.start)} to ${time(timeline, op.end)}.`;
}

function reason(timeline, op) {
  const { before, source, device } = op;
  const latency = source && source.device !== device ? timeline.p2p : 0;
  const arrival = source ? source.end + latency : 0;
  if (op.late) {
    const travel = latency ? ` and took ${number(latency)} to arrive` : "";
    const idle = op.start - (before ? before.end : 0);
    const stood = idle > 0 ? ` Device ${device} stood idle for ${number(idle)}.` : "";
    return `It waited for its input ${source.text}, which ended at ${number(source.end)}${travel}.${stood}`;
  }
  if (!before) return "It waited for nothing.";
  if (before === source) return `It waited for its input ${source.text}, which ran just before it.`;
  const input = source && op.start - arrival > 1e-6 * op.start ? `; its input ${source.text} was there at ${number(arrival)}` : "";
  return `It waited for its device, which ran ${before.text} until ${number(before.end)}${input}.`;
}

// ---- the picture ----

function frameOf(timelines, width) {
  const drawn = timelines.filter((timeline) => !timeline.refusal);
  const span = most(drawn.map((timeline) => timeline.makespan));
  const lengths = drawn.flatMap((timeline) => timeline.ops.map((op) => op.end - op.start));
  const shortest = least(lengths.filter((length) => length > 0));
  const room = Math.max(width - LABELS - LEFT - RIGHT, 120);
  const pixels = span > 0 ? Math.min(Math.max(room, (NARROWEST * span) / shortest), WIDEST) : room;
  const rows = drawn.reduce((sum, timeline) => sum + timeline.devices, 0);
  const [bar, memory, gap] = rows > 8 ? [20, 12, 7] : [26, 18, 10];
  const top = most(drawn.flatMap((timeline) => timeline.peak)) || 1;
  const scale = span > 0 ? pixels / span : 0; // px a unit of time
  return { pixels, scale, bar, memory, pitch: bar + memory + gap + 3, top, letters: shortest * scale >= 26, several: drawn.length > 1 };
}

// A mark that tells the kinds apart without colour: nothing for F, a line below for B, dashes below for I, a line above for W.
function markOf(kind, x, y, width, height) {
  if (kind === "F") return [];
  const level = kind === "W" ? y + 2.5 : y + height - 2.5;
  const path = `M${round(x + 1)} ${level}H${round(x + Math.max(width - 1, 1))}`;
  return [make("path", { class: kind === "I" ? "mark dashes" : "mark", d: path })];
}

function barOf(timeline, op, frame) {
  const [x, y] = [op.start * frame.scale, op.device * frame.pitch];
  const width = Math.max((op.end - op.start) * frame.scale, 1);
  const text = frame.letters ? `${op.kind}${op.microbatch}` : String(op.microbatch);
  const label = make("text", { x: round(x + width / 2), y: y + frame.bar / 2 + 0.5 }, text);
  const fill = timeline.kinds[op.kind].colours[timeline.chunks][op.chunk];
  const body = make("rect", { x: round(x), y, width: round(width), height: frame.bar, rx: 2, fill });
  const where = frame.several ? `${timeline.title}, ` : "";
  const told = `${where}${named(timeline, op)} ${reason(timeline, op)}`;
  const attributes = { class: "op", tabindex: -1, role: "img", "aria-label": told };
  const fits = text.length * 6.4 <= width - 0.5;
  return make("g", attributes, body, ...markOf(op.kind, x, y, width, frame.bar), ...(fits ? [label] : []));
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

function gapsOf(timeline, device) {
  const gaps = [];
  let free = 0;
  for (const op of [...timeline.ops.filter((each) => each.device === device), { start: timeline.makespan }]) {
    if (op.start > free) gaps.push([free, op.start]);
    free = op.end;
  }
  return gaps;
}

function ticksOf(frame) {
  if (!frame.scale) return [0];
  const apart = 56 / frame.scale; // at least so much time between two numbers
  const power = 10 ** Math.floor(Math.log10(apart));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= apart);
  return Array.from({ length: Math.floor(frame.pixels / frame.scale / step + 1e-9) + 1 }, (_, place) => place * step);
}

function axisOf(timeline, frame, floor) {
  const end = timeline.makespan * frame.scale;
  const ticks = ticksOf(frame).map((tick) => [tick, tick * frame.scale]);
  const lines = ticks.map(([, x]) => make("line", { class: "grid", x1: round(x), x2: round(x), y1: 0, y2: floor }));
  const clear = ticks.filter(([, x]) => Math.abs(x - end) > 28);
  const texts = clear.map(([tick, x]) => make("text", { class: "tick", x: round(x), y: floor + 13 }, number(tick)));
  const last = make("line", { class: "end", x1: round(end), x2: round(end), y1: 0, y2: floor + 3 });
  texts.push(make("text", { class: "tick last", x: round(end), y: floor + 13 }, number(timeline.makespan)));
  return { lines, texts: [last, ...texts] };
}

function plotOf(timeline, frame, hatch) {
  const floor = timeline.devices * frame.pitch - 4;
  const lines = make("path", { class: "hatch", d: "M-1 7L7 -1M5 7L7 5M-1 1L1 -1" });
  const pattern = make("pattern", { id: hatch, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, lines);
  const axis = axisOf(timeline, frame, floor);
  const behind = make("g", { "aria-hidden": "true" }, make("defs", {}, pattern), ...axis.lines);
  for (let device = 0; device < timeline.devices; device++) {
    const [y, height, fill] = [device * frame.pitch, frame.bar, `url(#${hatch})`];
    behind.append(make("rect", { class: "paper", x: 0, y, width: round(timeline.makespan * frame.scale), height }));
    for (const [from, to] of gapsOf(timeline, device)) {
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
    names.append(make("text", { class: "tick peak", x: 0, y: y + frame.bar + frame.memory + 1 }, `peak ${number(peak)}`));
  });
  const unit = timeline.unit ? `time, ${timeline.unit}` : "time";
  names.append(make("text", { class: "tick peak", x: 0, y: timeline.devices * frame.pitch + 9 }, unit));
  return names;
}

function panelOf(timeline, frame, hatch, pick, data) {
  const title = make("p", { class: "title" }, make("strong", {}, timeline.title), `, ${timeline.sizes}`);
  if (!timeline.refusal) {
    const tracks = make("div", { class: "tracks" }, namesOf(timeline, frame), plotOf(timeline, frame, hatch));
    timeline.told = make("p", { class: "told" });
    return make("div", { class: "panel" }, title, tracks, timeline.told);
  }
  const sentence = make("p", {}, `${timeline.refusal[0].toUpperCase()}${timeline.refusal.slice(1)}.`);
  const buttons = remedies(data, timeline.setting).map(({ name, value }) => {
    const button = make("button", { type: "button" }, `Show ${value} ${name}`);
    button.addEventListener("click", () => pick(name, value, true));
    return button;
  });
  return make("div", { class: "panel" }, title, make("div", { class: "refused" }, sentence, ...buttons));
}

// ---- moving through the picture ----

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

// Says below each timeline what is pointed at in it; below the first, while that is nothing, how to use the picture.
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
  const centre = (each) => each.device * frame.pitch + frame.bar / 2;
  const [x1, y1, x2, y2] = [op.source.end * frame.scale, centre(op.source), op.start * frame.scale, centre(op)];
  const line = make("path", { d: `M${round(x1)} ${y1}L${round(x2)} ${y2}` });
  const ends = [[x1, y1], [x2, y2]].map(([cx, cy]) => make("circle", { cx: round(cx), cy, r: 3.5 }));
  return make("g", { class: "arrow", "aria-hidden": "true" }, line, ...ends);
}

const HINT =
  "Point at an operation to read what it waited for. From the keyboard: Tab to the picture, arrow keys to move, " +
  "Enter to go to what the operation waited for.";

// ---- what stands around the picture ----

function legendOf(timelines) {
  const drawn = timelines.filter((timeline) => !timeline.refusal);
  const kinds = drawn[0]?.kinds ?? {};
  const present = new Set(drawn.flatMap((timeline) => timeline.ops.map((op) => op.kind)));
  const item = (swatch, words) => make("li", {}, make("svg", { width: 26, height: 18, "aria-hidden": "true" }, ...swatch), words);
  const items = Object.keys(kinds).filter((kind) => present.has(kind)).map((kind) => {
    const body = make("rect", { width: 26, height: 18, rx: 2, fill: kinds[kind].colours[1][0] });
    return item([body, ...markOf(kind, 0, 0, 26, 18), make("text", { x: 13, y: 9.5 }, kind)], kinds[kind].words);
  });
  if (!items.length) return items;
  const hatch = make("path", { class: "hatch", d: "M1 11L9 1M4 17L18 1M13 17L25 3M22 17L25 13" });
  items.push(item([make("rect", { class: "idle", x: 0.5, y: 0.5, width: 25, height: 17, rx: 2, fill: "none" }), hatch], "idle"));
  items.push(item([make("path", { class: "memory", d: "M0 17V12H6V7H13V2H19V9H25V17Z" })], "activations held"));
  const shades = kinds.F.colours[most(drawn.map((timeline) => timeline.chunks))];
  const steps = shades.map((fill, chunk) => make("rect", { x: (26 / shades.length) * chunk, width: 26 / shades.length, height: 18, fill }));
  if (shades.length > 1) items.push(item(steps, "first to last chunk of a device"));
  return items;
}

function figuresOf(timelines) {
  const unit = timelines[0].unit ? `, ${timelines[0].unit}` : "";
  const heads = ["Schedule", `Makespan${unit}`, "Bubble ratio", "Peak activations, by device"];
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const rows = timelines.map((timeline) => {
    const name = make("th", { scope: "row" }, timeline.title);
    if (timeline.refusal) return make("tr", {}, name, make("td", { colspan: 3 }, "not possible"));
    const cells = [number(timeline.makespan), timeline.bubble.toFixed(3), timeline.peak.map(number).join(", ")];
    return make("tr", {}, name, ...cells.map((text) => make("td", {}, text)));
  });
  return [make("thead", {}, head), make("tbody", {}, ...rows)];
}

function selectOf(id, label, optionsOf, pick) {
  const select = make("select");
  const element = field(id, label, select);
  select.addEventListener("change", () => pick(select.value));
  const show = (setting, value) => {
    const options = optionsOf(setting);
    element.hidden = options.length < 2;
    if (options.map(([name]) => name).join() !== [...select.options].map((option) => option.value).join()) {
      select.replaceChildren(...options.map(([name, title]) => make("option", { value: name }, title)));
    }
    select.value = value;
  };
  return { element, input: select, show };
}

function sliderOf(id, label, valuesOf, pick) {
  const input = make("input", { type: "range", min: 0, step: 1 });
  const output = make("output", { for: id });
  const element = field(id, label, input, output);
  let values = [];
  input.addEventListener("input", () => pick(values[Number(input.value)]));
  const show = (setting, value) => {
    values = valuesOf(setting);
    element.hidden = values.length < 2;
    input.max = values.length - 1;
    input.value = values.indexOf(value);
    input.setAttribute("aria-valuetext", number(value));
    output.textContent = number(value);
  };
  return { element, input, show };
}

function controlsOf(data, id, pick) {
  const names = data.schedules.map(({ name, title }) => [name, title]);
  const others = (setting) => names.filter(([name]) => name !== setting.schedule);
  const latency = data.unit ? `Latency, ${data.unit}` : "Latency";
  const to = (name) => [`${id}-${name}`, (value) => pick(name, value)];
  const select = (name, label, options) => selectOf(to(name)[0], label, options, to(name)[1]);
  const slider = (name, label, values) => sliderOf(to(name)[0], label, values, to(name)[1]);
  return {
    schedule: select("schedule", "Schedule", () => names),
    compare: select("compare", "Compare with", (setting) => [["", "nothing"], ...others(setting)]),
    devices: slider("devices", "Devices", () => data.devices),
    microbatches: slider("microbatches", "Microbatches", () => data.microbatches),
    chunks: slider("chunks", "Chunks a device", (setting) => chunksOf(data, setting.schedule)),
    p2p: slider("p2p", latency, () => data.p2p),
  };
}

// ---- the widget ----

function whole(data) {
  const lists = ["schedules", "devices", "microbatches", "chunks", "p2p"];
  return Boolean(data?.pipelines && data.kinds && lists.every((name) => Array.isArray(data[name]) && data[name].length));
}

function changed(data, setting, name, value) {
  const next = { ...setting, [name]: value };
  if (name !== "schedule") return next;
  if (value === setting.compare) next.compare = setting.schedule;
  const chunks = chunksOf(data, value);
  return { ...next, chunks: chunks.includes(setting.chunks) ? setting.chunks : chunks[0] };
}

// The picture, one stop of the Tab key; `draw(timelines)` shows them.
function pictureOf(id, pick, data) {
  const box = make("div", { class: "picture" });
  let [timelines, frame, ops, width, current] = [[], null, [], 0, null];

  const mark = (op) => {
    box.querySelectorAll(".arrow").forEach((arrow) => arrow.remove());
    box.classList.toggle("following", Boolean(op));
    for (const each of ops) {
      each.bar.classList.toggle("same", Boolean(op) && each.panel === op.panel && each.microbatch === op.microbatch);
      each.bar.classList.toggle("waited", Boolean(op) && each === op.waitedFor);
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
    box.replaceChildren(...timelines.map((timeline, panel) => panelOf(timeline, frame, `${id}-idle${panel}`, pick, data)));
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

function render({ model, el }) {
  const root = make("div", { class: "hybridlab-view hybridlab-explorer" });
  el.append(root);
  const data = model.get("data");
  if (!whole(data)) return root.append(make("p", { class: "damaged", role: "alert" }, DAMAGED));
  const id = `hybridlab-${Math.random().toString(36).slice(2, 10)}`;
  const setting = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (name, value, focus = false) => {
    const next = changed(data, setting(), name, value);
    for (const each of SETTING) if (next[each] !== model.get(each)) model.set(each, next[each]);
    model.save_changes();
    if (focus) controls[name].input.focus();
  };
  const controls = controlsOf(data, id, pick);
  const live = make("p", { class: "unseen", "aria-live": "polite" });
  const [table, legend] = [make("table"), make("ul", { class: "legend" })];
  const picture = pictureOf(id, pick, data);
  const fields = make("div", { class: "fields", role: "group", "aria-label": "Setting" });
  fields.append(...Object.values(controls).map((control) => control.element));
  root.addEventListener("keydown", (event) => {
    if (plain(event)) event.stopPropagation(); // a notebook would take the arrow keys, and letters, for its cells
  });
  root.append(fields, table, legend, picture.element, live);

  const show = () => {
    const now = setting();
    const timelines = settingsOf(data, now).map((each) => timelineOf(data, each));
    for (const [name, control] of Object.entries(controls)) control.show(now, now[name]);
    table.replaceChildren(...figuresOf(timelines));
    legend.replaceChildren(...legendOf(timelines));
    live.textContent = timelines.map(summary).join(" ");
    picture.draw(timelines);
  };
  const guarded = () => {
    try {
      show();
    } catch (error) {
      console.warn("timeline explorer:", error);
      picture.stop();
      root.replaceChildren(make("p", { class: "damaged", role: "alert" }, DAMAGED));
    }
  };
  let due = false; // several traits change at once: draw once
  const soon = () => {
    if (!due) queueMicrotask(() => ((due = false), guarded()));
    due = true;
  };
  for (const name of SETTING) model.on(`change:${name}`, soon);
  guarded();
  return () => {
    picture.stop();
    for (const name of SETTING) model.off?.(`change:${name}`, soon);
  };
}

export default { render };
