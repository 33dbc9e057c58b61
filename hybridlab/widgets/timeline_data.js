// Reads the data of a timeline explorer: what there is to choose from, and the timeline of a setting.
// It computes no order and no time: those are in the data, whose shape hybridlab/widgets/grid.py describes.

const AXES = ["devices", "microbatches", "chunks", "p2p"];
const SETTING = ["schedule", "devices", "microbatches", "chunks", "p2p", "compare"];

// ---- the grid, and what was computed beside it ----

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

// The values to choose from; `live` is what a kernel answered that can compute others, else null.
function offersOf(sources, live) {
  const schedules = new Map();
  for (const { name, title, chunks } of sources.flatMap((source) => source.schedules)) {
    schedules.set(name, { name, title, chunks: sorted([...(schedules.get(name)?.chunks ?? []), ...chunks]) });
  }
  for (const rule of live?.schedules ?? []) schedules.set(rule.name, { chunks: [], ...schedules.get(rule.name), ...rule });
  const values = AXES.map((name) => [name, sorted(sources.flatMap((source) => source[name]))]);
  return { live: Boolean(live), schedules, ...Object.fromEntries(values) };
}

// The number of chunks if the schedule supports it, else its first.
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

// ---- a setting's timelines ----

// The timelines to draw: that of the schedule, and of the one to compare it with at the same sizes; null if no source holds them.
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

// In place of a timeline: the sentence of why there is none, and values of the grid at which there is one.
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
    op.end = op.start + entry.duration[op.partner ? "pair" : kind][op.device];
    op.before = ops[row - 1]?.device === op.device ? ops[row - 1] : null;
    if (op.partner && op.before === op.partner) op.before = op.partner.before;
    op.source = ops[entry.source[row]] ?? null;
  });
  const late = new Set(entry.late[place]);
  for (const op of ops) {
    op.late = [op, op.partner].find((each) => late.has(each?.row)) ?? null; // the one of a pair whose input came later
    op.waitedFor = op.late ? op.late.source : op.before;
  }
  return ops;
}

// The nearest values of one control, the rest unchanged, at which a refused schedule runs.
function remedies(grid, setting) {
  if (!grid.p2p.includes(setting.p2p)) return [];
  for (const name of ["microbatches", "devices"]) {
    const runs = grid[name].filter((value) => entryOf(grid, { ...setting, [name]: value })?.orders);
    const nearest = runs.sort((a, b) => Math.abs(a - setting[name]) - Math.abs(b - setting[name])).slice(0, 3);
    if (nearest.length) return nearest.sort((a, b) => a - b).map((value) => ({ name, value }));
  }
  return [];
}
