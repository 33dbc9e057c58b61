// A step explorer: controls, a legend, the picture of one training step on all ranks, its cursor in words, the figures as a table.
// The script computes no order and no time: both are in the data, whose shape hybridlab/widgets/step_explorer.py describes.

import { grain, headOf, momentOf, momentsOf, pictureOf, sentence, time } from "./step_explorer_picture.js";
import { copiesSample, idleSample, kindSamples, markOf, most, pairSample, quantityOf, sampleOf, shadeSample, turnOf } from "./timeline.js";
import { counted, field, freshId, keepDrawn, make, number, rootIn, selectOf } from "./view.js";

// ---- the data of a setting ----

const SETTING = ["schedule", "devices", "replicas", "microbatches", "ring", "overlap", "rank", "time"];
const FIGURES = ["makespan", "all_reduce", "exposed", "share", "single", "speedup", "efficiency"];

function keyOf(data, { schedule, devices, microbatches, replicas, ring, overlap }) {
  return [schedule, devices, microbatches, replicas, data.ring.indexOf(ring), overlap ? 1 : 0].join("/");
}

// The step of a setting: its ranks, each with its operations, messages, hops and optimiser. A refused setting has the reason instead.
function stepOf(data, setting) {
  const { schedule, devices, replicas, microbatches } = setting;
  const entry = data.steps[keyOf(data, setting)];
  const pipeline = data.pipelines[[schedule, devices, microbatches].join("/")];
  const copies = 1 + most(pipeline?.copy ?? []);
  const sizes = [`${counted(devices, "device")} a pipeline`, counted(replicas, "replica"), counted(microbatches, "microbatch")];
  if (copies > 1) sizes.push(`${copies} copies of the weights`);
  const about = { title: data.titles[schedule], sizes: sizes.join(", "), unit: data.unit, kinds: data.kinds, spans: data.spans };
  if (entry.refusal) return { ...about, refusal: entry.refusal };
  const place = (rank) => ({ rank, replica: Math.floor(rank / devices), device: rank % devices });
  const ranks = Array.from({ length: devices * replicas }, (_, rank) => place(rank));
  const step = { ...about, ...entry, devices, replicas, ranks, peak: pipeline.peak, chunks: pipeline.chunks, copies };
  step.held = pipeline.chunks * copies; // the number of stages whose weights a device holds
  entry.runs.forEach((run, replica) => addOps(step, pipeline, data.runs[run], replica, data.p2p));
  for (const ring of entry.rings) addHops(step, ring, data.rounds[replicas * copies]);
  for (const each of ranks) addOptimiser(step, each);
  const numbers = ranks.flatMap(({ items }) => items.flatMap(({ start, end }) => [start, end]));
  if (!numbers.length || ![...FIGURES.map((name) => entry[name]), ...pipeline.peak, ...numbers].every(Number.isFinite)) {
    throw new Error("a time is missing");
  }
  return step;
}

function addOps(step, { orders, messages, chunks, copy }, { start, end }, replica, p2p) {
  const first = replica * step.devices;
  const ops = orders.flatMap((order, device) => order.split(" ").flatMap((word) => turnOf(word, { rank: first + device })));
  ops.forEach((op, row) => {
    const [, stage, kind, microbatch] = /^(\d+)([FBIW])(\d+)$/.exec(op.text);
    Object.assign(op, { kind, stage: Number(stage), microbatch: Number(microbatch), start: start[row], end: end[row], peer: null });
    op.copy = copy?.[op.microbatch] ?? 0;
    op.shade = op.copy * chunks + Math.floor(op.stage / step.devices);
  });
  orders.forEach((_, device) => (step.ranks[first + device].ops = ops.filter((op) => op.rank === first + device)));
  const sent = messages.map(([row, device]) => {
    const op = ops[row];
    op.peer = first + device;
    return { op, from: op.rank, to: op.peer, start: op.end, end: op.end + p2p };
  });
  orders.forEach((_, device) => {
    const own = step.ranks[first + device];
    own.sends = sent.filter(({ from }) => from === own.rank).map((message) => ({ ...message, kind: "send" }));
    own.receives = sent.filter(({ to }) => to === own.rank).map((message) => ({ ...message, kind: "receive" }));
    own.hops = [];
  });
}

// Adds the hops of each rank of a ring. At the same time it receives the piece `got` from the rank `from`.
// The ring goes through the replicas and, in each replica, through the devices of all copies of the weights.
function addHops(step, [held, stage, start, nbytes], rounds) {
  const devices = [held].flat();
  const rankAt = (place) => Math.floor(place / devices.length) * step.devices + devices[place % devices.length];
  rounds.forEach(({ kind, piece, to }, round) => {
    const same = rounds.filter((each) => each.kind === kind);
    const shared = { kind, stage, count: same.indexOf(rounds[round]) + 1, of: same.length };
    const times = { start: start + round * step.hop, end: start + (round + 1) * step.hop };
    to.forEach((receiver, place) => {
      const sender = to.indexOf(place);
      const [rank, peer, from] = [place, receiver, sender].map(rankAt);
      const hop = { ...shared, ...times, rank, peer, from, piece: piece[place], got: piece[sender], nbytes: nbytes[piece[place]] };
      step.ranks[rank].hops.push(hop);
    });
  });
}

function addOptimiser(step, own) {
  const start = step.optimiser[own.device];
  own.optimiser = { kind: "optimiser", rank: own.rank, start, end: start + step.update };
  own.computing = step.update > 0 ? [...own.ops, own.optimiser] : own.ops;
  own.items = [...own.computing, ...own.sends, ...own.receives, ...own.hops];
}

// ---- the controls, the legend, the table ----

const RINGS = { false: "after computing", true: "beside computing" };

function settingOf(id, data, pick) {
  const choice = (name, label) => {
    const select = selectOf(`${id}-${name}`, label, (place) => pick(name, data[name][Number(place)]));
    const words = data[name].map((value) => (name === "schedule" ? data.titles[value] : name === "overlap" ? RINGS[value] : String(value)));
    const show = (value) => select.show(data[name].indexOf(value), words.map((each, place) => [String(place), each]));
    return { element: select.element, show };
  };
  const amount = (name, label) => {
    const slider = quantityOf(`${id}-${name}`, label, null, (value) => pick(name, value));
    return { element: slider.element, show: (value) => slider.show(value, data[name], false) };
  };
  const controls = {
    schedule: choice("schedule", "Schedule"),
    devices: amount("devices", "Devices, K"),
    replicas: amount("replicas", "Replicas, D"),
    microbatches: amount("microbatches", "Microbatches, M"),
    ring: choice("ring", data.label),
    overlap: choice("overlap", "Rings run"),
  };
  const elements = Object.values(controls).map((control) => control.element);
  const element = make("div", { class: "fields", role: "group", "aria-label": "Setting" }, ...elements);
  const show = (setting) => Object.entries(controls).forEach(([name, control]) => control.show(setting[name]));
  return { element, show };
}

// The controls of the cursor: a rank and a moment; and whether the picture shows the whole step or only its rings.
function cursorOf(id, unit, pick, zoom) {
  const rank = selectOf(`${id}-rank`, "Rank", (value) => pick({ rank: Number(value) }));
  const slider = make("input", { type: "range", min: 0, step: 1 });
  const output = make("output", { for: `${id}-time`, "aria-live": "off" }); // a screen reader reads the value from the slider
  const moment = field(`${id}-time`, unit ? `Moment, ${unit}` : "Moment", slider, output);
  const shown = selectOf(`${id}-shown`, "Picture shows", (value) => zoom(value === "rings"));
  const element = make("div", { class: "fields", role: "group", "aria-label": "Cursor" }, rank.element, moment, shown.element);
  let moments = [];
  slider.addEventListener("input", () => pick({ time: moments[Number(slider.value)] }));
  const show = (step, now, ringsOnly) => {
    element.hidden = Boolean(step.refusal);
    if (step.refusal) return;
    const named = step.ranks.map(({ rank: each, device }) => [String(each), `${each}, ${step.held > 1 ? "device" : "stage"} ${device}`]);
    rank.show(String(now.own.rank), named);
    moments = momentsOf(step, now.own.rank);
    slider.max = moments.length - 1;
    slider.value = moments.findLastIndex((each) => each <= now.time + grain(step));
    slider.setAttribute("aria-valuetext", time(step, now.time));
    output.textContent = number(now.time);
    const views = [["all", "the whole step"], ["rings", step.all_reduce > 0 ? "the rings" : ""]];
    shown.show(ringsOnly ? "rings" : "all", views.filter(([, words]) => words));
  };
  return { element, show };
}

function legendOf(step) {
  if (step.refusal) return [];
  const items = step.ranks.flatMap((own) => own.items);
  const has = (kind) => items.some((item) => item.kind === kind);
  const { kinds, spans } = step;
  const parts = kindSamples(kinds, has);
  const words = (kind) => spans[kind].words;
  const box = { x: 1, y: 3, width: 24, height: 12, rx: 2 };
  if (step.update > 0) {
    const body = make("rect", { width: 26, height: 18, rx: 2, fill: spans.optimiser.colour });
    const marks = ["B", "W"].flatMap((kind) => markOf(kind, 0, 0, 26, 18));
    parts.push(sampleOf(words("optimiser"), body, ...marks, make("text", { x: 13, y: 9.5 }, "opt")));
  }
  parts.push(idleSample());
  if (items.some((item) => item.partner)) parts.push(pairSample(kinds));
  if (step.copies > 1) parts.push(copiesSample(kinds, step));
  else if (step.chunks > 1) parts.push(shadeSample("first to last chunk of a device", kinds.F.colours[step.chunks]));
  if (has("send")) parts.push(sampleOf(words("send"), make("rect", { class: "send", x: 1, y: 3, width: 24, height: 6 })));
  if (has("receive")) parts.push(sampleOf(words("receive"), make("rect", { class: "receive", x: 1, y: 9, width: 24, height: 6 })));
  const hop = (kind, fill) => {
    const shapes = [make("rect", { ...box, ...fill }), make("text", { x: 13, y: 9.5 }, "0")];
    parts.push(sampleOf(`${words(kind)}, number: chunk of the gradients sent`, make("g", { class: fill.stroke ? "hop gathers" : "hop" }, ...shapes)));
  };
  if (has("reduce-scatter")) hop("reduce-scatter", { fill: spans["reduce-scatter"].colour });
  if (has("all-gather")) hop("all-gather", { stroke: spans["all-gather"].colour });
  return parts;
}

const percent = (part) => `${(100 * part).toFixed(1)}\u00a0%`;

// The figures of a step. Where the data hold both, the table has a column with overlap and one without.
function figuresOf(data, setting) {
  const unit = data.unit ? `, ${data.unit}` : "";
  const steps = data.overlap.map((overlap) => data.steps[keyOf(data, { ...setting, overlap })]);
  const { peak, chunks, copy } = data.pipelines[[setting.schedule, setting.devices, setting.microbatches].join("/")];
  const head = (overlap) => {
    const words = overlap ? "Overlap" : "No overlap";
    if (overlap !== setting.overlap || steps.length === 1) return make("th", { scope: "col" }, words);
    return make("th", { scope: "col", class: "chosen" }, `${words} (shown)`);
  };
  const row = (words, read) => make("tr", {}, make("th", { scope: "row" }, words), ...steps.map((step) => make("td", {}, read(step))));
  const rows = [
    row(`Makespan${unit}`, (step) => number(step.makespan)),
    row(`All-reduce time, rings of one device${unit}`, (step) => number(step.all_reduce)),
    row(`Exposed communication${unit}`, (step) => number(step.exposed)),
    row("Communication share of the step", (step) => percent(step.share)),
    row(`One device alone${unit}`, (step) => number(step.single)),
    row("Speedup against one device", (step) => step.speedup.toFixed(3)),
    row(`Efficiency, on ${counted(setting.devices * setting.replicas, "device")}`, (step) => percent(step.efficiency)),
    row(`Peak activations, ${chunks > 1 || copy ? "device by device" : "stage by stage"}`, () => peak.map(number).join(", ")),
  ];
  const heads = make("tr", {}, make("th", { scope: "col" }, "Figure"), ...data.overlap.map(head));
  return [make("thead", {}, heads), make("tbody", {}, ...rows)];
}

// ---- the widget ----

const HINT =
  "Click or tap a place in the picture, or drag over it, to read what that rank does then. From the keyboard: Tab to the picture, " +
  "left and right to the moments of a rank, up and down to other ranks; or use the two controls.";

function render({ model, el }) {
  const root = rootIn(el, "step");
  const id = freshId();
  const data = model.get("data");
  const setting = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (changes) => {
    const next = { ...setting(), ...changes };
    if (next.rank >= next.devices * next.replicas) next.rank = 0;
    for (const each of SETTING) if (next[each] !== model.get(each)) model.set(each, next[each]);
    model.save_changes();
  };
  let [parts, drawn, step, ringsOnly] = [null, null, null, false];

  const build = () => {
    const controls = settingOf(id, data, (name, value) => pick({ [name]: value }));
    const picture = pictureOf(id, (rank, time) => pick({ rank, time }));
    const zoom = (only) => {
      [ringsOnly, drawn] = [only, null];
      show();
    };
    const cursor = cursorOf(id, data.unit, pick, zoom);
    const [legend, table] = [make("ul", { class: "legend" }), make("table")];
    const told = make("p", { class: "told", role: "status" });
    root.append(controls.element, legend, picture.element, cursor.element, told, make("p", { class: "hint" }, HINT), table);
    return { controls, picture, cursor, legend, table, told };
  };
  const drawStep = (now) => {
    step = stepOf(data, now);
    if (!step.all_reduce) ringsOnly = false;
    parts.controls.show(now);
    parts.legend.replaceChildren(...legendOf(step));
    parts.picture.draw(step, ringsOnly);
    parts.table.replaceChildren(...(step.refusal ? [] : figuresOf(data, now)));
  };
  const show = () => {
    parts ??= build();
    const now = setting();
    const key = keyOf(data, now);
    if (key !== drawn) drawStep(now);
    drawn = key;
    if (step.refusal) {
      parts.cursor.show(step);
      return (parts.told.textContent = "");
    }
    const moment = momentOf(step, now.rank, Math.min(now.time, step.makespan));
    parts.cursor.show(step, moment, ringsOnly);
    parts.picture.mark(moment);
    parts.told.replaceChildren(make("strong", {}, headOf(step, moment)), ` ${sentence(step, moment)}`);
  };
  return keepDrawn(model, root, SETTING, show, () => parts?.picture.stop()).end;
}

export default { render };
