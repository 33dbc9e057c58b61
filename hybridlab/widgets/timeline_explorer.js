// A timeline explorer: controls, the figures as a table, a legend and the picture of one setting.
// The script computes no order and no time: both are in the data, whose shape hybridlab/widgets/timeline_explorer_data.py describes.

import { copiesSample, idleSample, kindSamples, most, pairSample, quantityOf, sampleOf, shadeSample, sorted, turnOf } from "./timeline.js";
import { pictureOf, summary } from "./timeline_explorer_picture.js";
import { counted, freshId, keepDrawn, make, number, rootIn, selectOf } from "./view.js";

const AXES = ["devices", "microbatches", "chunks", "p2p"];
const SETTING = ["schedule", "devices", "microbatches", "chunks", "p2p", "compare"];

// ---- the grid, and values that a kernel has added ----

function whole(data) {
  const lists = ["schedules", ...AXES];
  return Boolean(data?.pipelines && data.kinds && lists.every((name) => Array.isArray(data[name]) && data[name].length));
}

function sourcesOf(model) {
  const extra = model.get("extra") ?? {};
  const sources = Object.keys(extra).length ? [model.get("data"), extra] : [model.get("data")];
  if (!sources.every(whole)) throw new Error("a part of the data is missing");
  return sources;
}

function holds(source, setting) {
  const named = (name) => source.schedules.some((each) => each.name === name);
  const schedules = [setting.schedule, setting.compare].filter(Boolean);
  return schedules.every(named) && AXES.every((name) => source[name].includes(setting[name]));
}

// The values to choose from. `live` is the answer of a kernel, which can compute others, or null.
function offersOf(sources, live) {
  const schedules = new Map();
  for (const { name, title, chunks } of sources.flatMap((source) => source.schedules)) {
    schedules.set(name, { name, title, chunks: sorted([...(schedules.get(name)?.chunks ?? []), ...chunks]) });
  }
  for (const rule of live?.schedules ?? []) schedules.set(rule.name, { chunks: [], ...schedules.get(rule.name), ...rule });
  const values = AXES.map((name) => [name, sorted(sources.flatMap((source) => source[name]))]);
  return { live: Boolean(live), schedules, ...Object.fromEntries(values) };
}

// The wanted number of chunks if the schedule supports it, else the schedule's first.
function chunksNear({ chunks, fewest, step }, wanted) {
  const ruled = step ? wanted >= fewest && (wanted - fewest) % step === 0 : wanted === fewest;
  return ruled || chunks.includes(wanted) ? wanted : (chunks[0] ?? fewest);
}

function changed(offers, setting, name, value) {
  const next = { ...setting, [name]: value };
  if (name !== "schedule") return next;
  if (value === setting.compare) next.compare = setting.schedule;
  return { ...next, chunks: chunksNear(offers.schedules.get(value), setting.chunks) };
}

// ---- the timelines of a setting ----

// The timelines to draw: the chosen schedule, and the one to compare it with at the same sizes. Null if no source holds them.
function timelinesOf(sources, setting) {
  const source = sources.find((each) => holds(each, setting));
  if (!source) return null;
  const { schedule, compare } = setting;
  const first = timelineOf(source, setting, sources[0]);
  if (!compare || compare === schedule) return [first];
  const chunks = chunksNear(source.schedules.find((each) => each.name === compare), setting.chunks);
  return [first, timelineOf(source, { ...setting, schedule: compare, chunks }, sources[0])];
}

function aboutOf(source, setting, title) {
  const { devices, microbatches, chunks } = setting;
  const sizes = [counted(devices, "device"), counted(microbatches, "microbatch")];
  if (chunks > 1) sizes.push(`${chunks} chunks a device`);
  const copies = 1 + most(entryOf(source, setting)?.copy ?? []);
  if (copies > 1) sizes.push(`${copies} copies of the weights`);
  return { setting, title, sizes: sizes.join(", "), unit: source.unit, kinds: source.kinds, copies };
}

// Stands in for a timeline that does not exist: the reason in a sentence, and values of the grid that work.
const refused = (about, grid, refusal) => ({ ...about, refusal, remedies: remedies(grid, about.setting), ops: [] });

function absent(sources, offers, setting, why) {
  return refused(aboutOf(sources[0], setting, offers.schedules.get(setting.schedule).title), sources[0], why);
}

const entryOf = (source, { schedule, devices, microbatches, chunks }) =>
  source.pipelines[[schedule, devices, microbatches, chunks].join("/")];

function timelineOf(source, setting, grid) {
  const { schedule, devices, chunks, p2p } = setting;
  const about = aboutOf(source, setting, source.schedules.find((each) => each.name === schedule).title);
  const entry = entryOf(source, setting);
  if (entry.refusal) return refused(about, grid, entry.refusal);
  const place = source.p2p.indexOf(p2p);
  const [makespan, bubble] = [entry.makespan[place], entry.bubble[place]];
  const ops = opsOf(entry, place, setting);
  if (!ops.length || ![makespan, bubble, ...entry.peak, ...ops.map((op) => op.end)].every(Number.isFinite)) {
    throw new Error("a time is missing");
  }
  return { ...about, ops, makespan, bubble, peak: entry.peak, devices, chunks, p2p };
}

function opsOf(entry, place, { devices, chunks }) {
  const ops = entry.orders.flatMap((order, device) => order.split(" ").flatMap((word) => turnOf(word, { device })));
  ops.forEach((op, row) => {
    const [, stage, kind, microbatch] = /^(\d+)([FBIW])(\d+)$/.exec(op.text);
    Object.assign(op, { row, kind, stage: Number(stage), microbatch: Number(microbatch) });
    op.copy = entry.copy?.[op.microbatch] ?? 0;
    op.shade = op.copy * chunks + Math.floor(op.stage / devices);
    op.start = entry.start[place][row];
    op.end = entry.end ? entry.end[row] : op.start + entry.duration[op.partner ? "pair" : kind][op.device];
    op.before = ops[row - 1]?.device === op.device ? ops[row - 1] : null;
    if (op.partner && op.before === op.partner) op.before = op.partner.before;
    op.source = ops[entry.source[row]] ?? null;
  });
  const late = new Set(entry.late[place]);
  for (const op of ops) {
    op.late = [op, op.partner].find((each) => late.has(each?.row)) ?? null; // the operation of a pair whose input came later
    op.waitedFor = op.late ? op.late.source : op.before;
  }
  return ops;
}

// For a refused setting: at most three nearest numbers of microbatches at which the schedule runs, or of devices if there are none.
function remedies(grid, setting) {
  if (!grid.p2p.includes(setting.p2p)) return [];
  for (const name of ["microbatches", "devices"]) {
    const runs = grid[name].filter((value) => entryOf(grid, { ...setting, [name]: value })?.orders);
    const nearest = runs.sort((a, b) => Math.abs(a - setting[name]) - Math.abs(b - setting[name])).slice(0, 3);
    if (nearest.length) return nearest.sort((a, b) => a - b).map((value) => ({ name, value }));
  }
  return [];
}

// ---- the controls; with a kernel, any number can be typed and every schedule of the library can be chosen ----

// The value of a typed text, or a sentence that says what to type. The limits are the library's.
function wholeNumber(text, label) {
  const value = Number(text);
  if (text && Number.isInteger(value) && value >= 1 && value <= 1e7) return { value };
  return { fault: `${label}: type a whole number of at least 1${value > 1e7 ? " and at most 10,000,000" : ""}.` };
}

function timeOf(text, label) {
  const value = Number(text);
  if (text && value >= 0 && value <= 1e200) return { value: Number(value.toPrecision(9)) };
  return { fault: `${label}: type a number of zero or more${value > 1e200 ? ", up to 1e200" : ""}.` };
}

function controlsOf(id, unit, pick) {
  const part = (control, name, label, ...more) => control(`${id}-${name}`, label, ...more, (value) => pick(name, value));
  const controls = {
    schedule: part(selectOf, "schedule", "Schedule"),
    compare: part(selectOf, "compare", "Compare with"),
    devices: part(quantityOf, "devices", "Devices", wholeNumber),
    microbatches: part(quantityOf, "microbatches", "Microbatches", wholeNumber),
    chunks: part(quantityOf, "chunks", "Chunks a device", wholeNumber),
    p2p: part(quantityOf, "p2p", unit ? `Latency, ${unit}` : "Latency", timeOf),
  };
  const elements = Object.values(controls).map((control) => control.element);
  const element = make("div", { class: "fields", role: "group", "aria-label": "Setting" }, ...elements);

  const show = (setting, offers) => {
    const names = [...offers.schedules.values()].map(({ name, title }) => [name, title]);
    const others = names.filter(([name]) => name !== setting.schedule);
    element.classList.toggle("any", offers.live);
    const { chunks, fewest = 1, step = 0 } = offers.schedules.get(setting.schedule);
    controls.schedule.show(setting.schedule, names);
    controls.compare.show(setting.compare, [["", "nothing"], ...others]);
    controls.devices.show(setting.devices, offers.devices, offers.live);
    controls.microbatches.show(setting.microbatches, offers.microbatches, offers.live);
    controls.chunks.show(setting.chunks, chunks, offers.live, { fewest, step });
    controls.p2p.show(setting.p2p, offers.p2p, offers.live, { fewest: 0, step: "any" });
  };
  return { element, show, focus: (name) => controls[name].focus() };
}

// ---- the widget ----

const PATIENCE = 5000; // ms
const COMPUTING = "Computing ...";
const SILENT =
  "The kernel has not answered, so the picture below is still the last one: the kernel may be busy, or stopped. " +
  "The values that the explorer was made with work without it.";
const ABSENT =
  "these values together are not on this page, which holds a grid of them and computes nothing; " +
  "choose others, or run the notebook";

function legendOf(timelines) {
  const drawn = timelines.filter((timeline) => !timeline.refusal);
  const kinds = drawn[0]?.kinds ?? {};
  const present = new Set(drawn.flatMap((timeline) => timeline.ops.map((op) => op.kind)));
  const items = kindSamples(kinds, (kind) => present.has(kind));
  if (!items.length) return items;
  items.push(idleSample());
  items.push(sampleOf("activations held", make("path", { class: "memory", d: "M0 17V12H6V7H13V2H19V9H25V17Z" })));
  if (drawn.some((timeline) => timeline.ops.some((op) => op.partner))) items.push(pairSample(kinds));
  const chunks = most(drawn.filter(({ copies }) => copies === 1).map((timeline) => timeline.chunks));
  if (chunks > 1) items.push(shadeSample("first to last chunk of a device", kinds.F.colours[chunks]));
  const both = drawn.find(({ copies }) => copies > 1);
  if (both) items.push(copiesSample(kinds, both));
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

// Everything below the controls; `draw(timelines)` shows them there.
function shownIn(root, id, pick) {
  const status = make("p", { class: "status", role: "status" });
  const [table, legend] = [make("table"), make("ul", { class: "legend" })];
  const picture = pictureOf(id, pick);
  const spoken = make("p", { class: "unseen", "aria-live": "polite" });
  root.append(status, table, legend, picture.element, spoken);
  const draw = (timelines) => {
    table.replaceChildren(...figuresOf(timelines));
    legend.replaceChildren(...legendOf(timelines));
    spoken.textContent = timelines.map(summary).join(" ");
    picture.draw(timelines);
  };
  let timer = null;
  const say = (sentence, later) => {
    clearTimeout(timer);
    status.textContent = sentence;
    if (later) timer = setTimeout(() => (status.textContent = later), PATIENCE);
  };
  const stop = () => {
    say("");
    picture.stop();
  };
  return { draw, say, stop };
}

function render({ model, el }) {
  const root = rootIn(el, "explorer");
  const id = freshId();
  const setting = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (name, value, focus = false) => {
    const next = changed(offers, setting(), name, value);
    for (const each of SETTING) if (next[each] !== model.get(each)) model.set(each, next[each]);
    model.save_changes();
    if (focus) controls.focus(name);
  };
  const controls = controlsOf(id, model.get("data")?.unit, pick);
  root.append(controls.element);
  const below = shownIn(root, id, pick);
  let [answer, offers, drawn] = [null, null, null]; // the kernel's answer, the values to choose from, the setting in the picture

  const show = () => {
    const [now, sources] = [setting(), sourcesOf(model)];
    offers = offersOf(sources, answer);
    controls.show(now, offers);
    const timelines = timelinesOf(sources, now);
    if (answer && !timelines) return below.say(COMPUTING, SILENT); // the picture stays until the kernel has sent another one
    below.say("");
    if (drawn !== JSON.stringify(now)) below.draw(timelines ?? [absent(sources, offers, now, ABSENT)]);
    drawn = JSON.stringify(now);
  };
  const hear = (message) => {
    if (message.live) answer = message;
    again();
    if (message.refused) below.say(message.refused);
  };
  const stop = () => {
    below.stop();
    model.off?.("msg:custom", hear);
  };
  model.on("msg:custom", hear);
  const { end, again } = keepDrawn(model, root, ["extra", ...SETTING], show, stop);
  model.send({ ask: "live" }); // only a running kernel answers
  return end;
}

export default { render };
