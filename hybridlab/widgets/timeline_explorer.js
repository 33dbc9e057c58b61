// A timeline explorer: controls, the picture of one setting with its time cursor, the figures as a table, a legend.
// The orders are in the data, whose shape hybridlab/widgets/timeline_explorer_data.py describes; clock.js times them.

import { exportsOf } from "./exports.js";
import { pipelineOf } from "./orders.js";
import { playerOf } from "./player.js";
import { nameIn, numberFrom, oneOf, orEach, orNull, wholeFrom } from "./setting.js";
import { shareRow } from "./share.js";
import { costsOf, timed, withTimes } from "./timed.js";
import {
  copiesSample, idleSample, kindSamples, most, MOST_ZOOM, pairSample, quantityOf, sampleOf, shadeSample, sorted, ticksUpTo, zoomOf,
} from "./timeline.js";
import { pictureOf } from "./timeline_explorer_picture.js";
import { difference, playedOf, summary } from "./timeline_words.js";
import { counted, freshId, keepDrawn, make, number, rootIn, selectOf } from "./view.js";

const SIZES = ["devices", "microbatches", "chunks"];
const SETTING = [
  "schedule", "devices", "microbatches", "chunks", "forward", "backward", "weight_share", "p2p", "slow_device", "slowdown", "compare"
];

// ---- the grid, and sizes that a kernel has added ----

function whole(data) {
  const lists = ["schedules", ...SIZES];
  return Boolean(data?.pipelines && data.kinds && lists.every((name) => Array.isArray(data[name]) && data[name].length));
}

function sourcesOf(model) {
  const extra = model.get("extra") ?? {};
  const sources = Object.keys(extra).length ? [model.get("data"), extra] : [model.get("data")];
  if (!sources.every(whole) || !sources[0].most) throw new Error("a part of the data is missing");
  return sources;
}

function holds(source, setting) {
  const named = (name) => source.schedules.some((each) => each.name === name);
  const schedules = [setting.schedule, setting.compare].filter(Boolean);
  return schedules.every(named) && SIZES.every((name) => source[name].includes(setting[name]));
}

// The values to choose from. `live` is the answer of a kernel, which can make the orders of other sizes, or null.
function offersOf(sources, live) {
  const schedules = new Map();
  for (const { name, title, chunks } of sources.flatMap((source) => source.schedules)) {
    schedules.set(name, { name, title, chunks: sorted([...(schedules.get(name)?.chunks ?? []), ...chunks]) });
  }
  for (const rule of live?.schedules ?? []) schedules.set(rule.name, { chunks: [], ...schedules.get(rule.name), ...rule });
  const values = SIZES.map((name) => [name, sorted(sources.flatMap((source) => source[name]))]);
  return { live: Boolean(live), schedules, most: sources[0].most, links: sources[0].links, ...Object.fromEntries(values) };
}

// What each part of a setting can be: schedules and sizes that are offered, and times.
function rulesOf(offers) {
  const names = [...offers.schedules.keys()];
  const time = numberFrom(0, 1e200);
  const sizes = SIZES.map((name) => [name, offers.live ? wholeFrom(1, 1e7) : oneOf(offers[name])]);
  return {
    ...Object.fromEntries(sizes), schedule: oneOf(names), compare: oneOf(["", ...names]), forward: orEach(time), backward: orEach(time),
    weight_share: orEach(numberFrom(0, 1)), p2p: time, slow_device: orNull(wholeFrom(0)), slowdown: time,
  };
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

// The timelines to draw: the chosen schedule, and the one to compare it with at the same sizes. Null if no source holds them. `pipelines` is
// a weak map from an entry of the data to its pipeline, which is read once. Each view has its own, because a pipeline has the bars of its view.
function timelinesOf(sources, setting, pipelines) {
  const source = sources.find((each) => holds(each, setting));
  if (!source) return null;
  const { schedule, compare } = setting;
  const first = timelineOf(source, setting, sources[0], pipelines);
  if (!compare || compare === schedule) return [first];
  const chunks = chunksNear(source.schedules.find((each) => each.name === compare), setting.chunks);
  return [first, timelineOf(source, { ...setting, schedule: compare, chunks }, sources[0], pipelines)];
}

function aboutOf(source, setting, title, { unit }, copies = 1) {
  const { devices, microbatches, chunks } = setting;
  const sizes = [counted(devices, "device"), counted(microbatches, "microbatch")];
  if (chunks > 1) sizes.push(`${chunks} chunks a device`);
  if (copies > 1) sizes.push(`${copies} copies of the weights`);
  return { setting, title, sizes: sizes.join(", "), unit, kinds: source.kinds };
}

// Stands in for a timeline that does not exist: the reason in a sentence, and values of the grid that work.
const refused = (about, grid, refusal) => ({ ...about, refusal, remedies: remedies(grid, about.setting), ops: [] });

function absent(sources, offers, setting, why) {
  return refused(aboutOf(sources[0], setting, offers.schedules.get(setting.schedule).title, sources[0]), sources[0], why);
}

const entryOf = (source, { schedule, devices, microbatches, chunks }) =>
  source.pipelines[[schedule, devices, microbatches, chunks].join("/")];

function timelineOf(source, setting, grid, pipelines) {
  const { title } = source.schedules.find((each) => each.name === setting.schedule);
  const entry = entryOf(source, setting);
  if (entry.refusal) return refused(aboutOf(source, setting, title, grid), grid, entry.refusal);
  if (!pipelines.has(entry)) pipelines.set(entry, pipelineOf(entry.orders));
  const pipeline = pipelines.get(entry);
  const about = aboutOf(source, setting, title, grid, pipeline.copies);
  const costs = costsOf(setting, setting.devices, grid.overlap, grid.links);
  if (!Array.from(costs.forward).every(Number.isFinite)) return refused(about, grid, `the times are for ${setting.forward.length} devices`);
  if (grid.links && grid.links.length !== setting.devices) return refused(about, grid, `the latencies are for ${grid.links.length} devices`);
  const timeline = entry.start ? withTimes(pipeline, entry, { p2p: 0 }, about) : timed(pipeline, costs, about);
  if (!timeline.ops.length || !timeline.ops.every((op) => Number.isFinite(op.end))) throw new Error("a time is missing");
  return timeline;
}

// For a refused setting: at most three nearest numbers of microbatches at which the schedule runs, or of devices if there are none.
function remedies(grid, setting) {
  for (const name of ["microbatches", "devices"]) {
    const runs = grid[name].filter((value) => entryOf(grid, { ...setting, [name]: value })?.orders);
    const nearest = runs.sort((a, b) => Math.abs(a - setting[name]) - Math.abs(b - setting[name])).slice(0, 3);
    if (nearest.length) return nearest.sort((a, b) => a - b).map((value) => ({ name, value }));
  }
  return [];
}

// ---- the controls; any time can be typed, and with a kernel any size, and every schedule of the library can be chosen ----

// The value of a typed text, or a sentence that says what to type. The limits are the library's.
function wholeNumber(text, label) {
  const value = Number(text);
  if (text && Number.isInteger(value) && value >= 1 && value <= 1e7) return { value };
  return { fault: `${label}: type a whole number of at least 1${value > 1e7 ? " and at most 10,000,000" : ""}.` };
}

function timeOf(text, label) {
  const value = Number(text);
  if (text && value >= 0 && value <= 1e200) return { value };
  return { fault: `${label}: type a number of zero or more${value > 1e200 ? ", up to 1e200" : ""}.` };
}

function shareOf(text, label) {
  const value = Number(text);
  return text && value >= 0 && value <= 1 ? { value } : { fault: `${label}: type a number from 0 to 1.` };
}

const NOBODY = "none";

function controlsOf(id, unit, pick) {
  const inUnit = (label) => (unit ? `${label}, ${unit}` : label);
  const part = (control, name, label, ...more) => control(`${id}-${name}`, label, ...more, (value) => pick(name, value));
  const controls = {
    schedule: part(selectOf, "schedule", "Schedule"),
    compare: part(selectOf, "compare", "Compare with"),
    devices: part(quantityOf, "devices", "Devices", wholeNumber),
    microbatches: part(quantityOf, "microbatches", "Microbatches", wholeNumber),
    chunks: part(quantityOf, "chunks", "Chunks a device", wholeNumber),
    p2p: part(quantityOf, "p2p", inUnit("Latency"), timeOf),
    forward: part(quantityOf, "forward", inUnit("Forward"), timeOf),
    backward: part(quantityOf, "backward", inUnit("Backward"), timeOf),
    weight_share: part(quantityOf, "weight_share", "Weight gradient's share", shareOf),
    slow_device: selectOf(`${id}-slow_device`, "Slow device", (value) => pick("slow_device", value === NOBODY ? null : Number(value))),
    slowdown: part(quantityOf, "slowdown", "Its times are multiplied by", timeOf),
  };
  const elements = Object.values(controls).map((control) => control.element);
  const element = make("div", { class: "fields any", role: "group", "aria-label": "Setting" }, ...elements);

  const show = (setting, offers, timelines) => {
    const names = [...offers.schedules.values()].map(({ name, title }) => [name, title]);
    const others = names.filter(([name]) => name !== setting.schedule);
    const { chunks, fewest = 1, step = 0 } = offers.schedules.get(setting.schedule);
    const anyTime = { fewest: 0, step: "any" };
    element.classList.toggle("live", offers.live);
    controls.schedule.show(setting.schedule, names);
    controls.compare.show(setting.compare, [["", "nothing"], ...others]);
    controls.devices.show(setting.devices, offers.devices, offers.live);
    controls.microbatches.show(setting.microbatches, offers.microbatches, offers.live);
    controls.chunks.show(setting.chunks, chunks, offers.live, { fewest, step });
    for (const name of ["p2p", "forward", "backward", "slowdown"]) {
      const single = !Array.isArray(setting[name]) && !(name === "p2p" && offers.links);
      controls[name].element.hidden = !single;
      if (single) controls[name].show(setting[name], ticksUpTo(offers.most[name]), true, anyTime);
    }
    if (!Array.isArray(setting.weight_share)) controls.weight_share.show(setting.weight_share, ticksUpTo(1), true, { ...anyTime, most: 1 });
    const split = timelines?.some(({ ops }) => ops.some(({ kind }) => kind === "W"));
    controls.weight_share.element.hidden = Array.isArray(setting.weight_share) || !split;
    const devices = Array.from({ length: setting.devices }, (_, device) => [String(device), `device ${device}`]);
    controls.slow_device.show(String(setting.slow_device ?? NOBODY), [[NOBODY, "none"], ...devices]);
    controls.slowdown.element.hidden = setting.slow_device === null;
  };
  return { element, show, focus: (name) => controls[name].focus() };
}

// ---- the widget ----

const PATIENCE = 5000; // ms
const COMPUTING = "Computing ...";
const SILENT =
  "The kernel has not answered, so the picture below is still the last one: the kernel may be busy, or stopped. " +
  "The values that the explorer was made with work without it.";
const ABSENT = "this page has no order for these sizes; choose others, or run the notebook";

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

function tableOfFigures(timelines) {
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
function shownIn(root, id, model, pick, rules) {
  const status = make("p", { class: "status", role: "status" });
  const [table, legend] = [make("table"), make("ul", { class: "legend" })];
  const notice = () => model.page?.notice();
  const picture = pictureOf(id, pick, false, notice);
  const spoken = make("p", { class: "unseen", "aria-live": "polite" });
  const words = make("p", { class: "difference" });
  const player = playerOf(`${id}-time`, "Time", (time) => {
    picture.moveTime(time);
    if (!player.playing()) notice();
  });
  const path = make("button", { type: "button", "aria-pressed": "false" }, "Critical path");
  const pathShown = () => path.getAttribute("aria-pressed") === "true";
  const showPath = (shown) => {
    path.setAttribute("aria-pressed", shown);
    picture.showPath(shown);
  };
  path.addEventListener("click", () => showPath(!pathShown()));
  const zoom = zoomOf(picture.zoomTo);
  const tools = make("div", { class: "tools" }, player.element, path, zoom.element);
  const [shown, readout] = [make("div", {}, tools, picture.element), make("div", { class: "readout" }, picture.told, table, words, legend)];
  let given = []; // the timelines in the picture
  const look = {
    made: { time: null, zoom: 1, path: false, chosen: "", left: 0 },
    rules: () => ({
      time: orNull(numberFrom(0, player.end())),
      zoom: numberFrom(1, MOST_ZOOM),
      path: oneOf([false, true]),
      chosen: nameIn(picture.has, "an operation of the picture, such as 0F0, or an idle time, such as idle before 0B0"),
      left: numberFrom(0, player.end()),
    }),
    read: () => ({ time: player.part(), zoom: zoom.now(), path: pathShown(), ...picture.look() }),
    show: ({ time, zoom: wide, path: shown, ...kept }) => {
      player.go(time ?? player.end());
      showPath(shown);
      if (wide !== zoom.now()) zoom.set(wide);
      picture.showLook(kept);
    },
  };
  const row = shareRow(model, SETTING, rules, { look, files: exportsOf(() => given, picture.element) });
  root.append(status, make("div", { class: "stage" }, shown, readout), row, spoken);
  const draw = (timelines) => {
    const sameOrders = timelines.length === given.length && timelines.every(({ ops }, place) => ops === given[place].ops);
    given = timelines;
    table.replaceChildren(...tableOfFigures(timelines));
    if (!sameOrders) legend.replaceChildren(...legendOf(timelines));
    spoken.textContent = timelines.map(summary).join(" ");
    words.textContent = timelines.length === 2 && timelines.every(({ refusal }) => !refusal) ? difference(...timelines) : "";
    picture.draw(timelines);
    player.show(playedOf(timelines));
  };
  let timer = null;
  const say = (sentence, later) => {
    clearTimeout(timer);
    status.textContent = sentence;
    if (later) timer = setTimeout(() => (status.textContent = later), PATIENCE);
  };
  const stop = () => {
    say("");
    player.pause();
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
  let [answer, offers, drawn] = [null, null, null]; // the kernel's answer, the values to choose from, the setting in the picture
  const below = shownIn(root, id, model, pick, () => rulesOf(offersOf(sourcesOf(model), answer)));
  const pipelines = new WeakMap();

  const show = () => {
    const [now, sources] = [setting(), sourcesOf(model)];
    offers = offersOf(sources, answer);
    const rules = rulesOf(offers);
    if (!SETTING.every((name) => rules[name].fits(now[name]))) throw new Error("the setting is not one of this view");
    const timelines = timelinesOf(sources, now, pipelines);
    controls.show(now, offers, timelines);
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
