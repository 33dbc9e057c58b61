// Reads the data of a step explorer: the steps that they hold, and what each rank does in one of them.
// It computes no order and no time: those are in the data, whose shape hybridlab/widgets/step_explorer_data.py describes.

const SETTING = ["schedule", "devices", "replicas", "microbatches", "ring", "overlap", "rank", "time"];
const FIGURES = ["makespan", "all_reduce", "exposed", "share", "single", "speedup", "efficiency"];

function keyOf(data, { schedule, devices, microbatches, replicas, ring, overlap }) {
  return [schedule, devices, microbatches, replicas, data.ring.indexOf(ring), overlap ? 1 : 0].join("/");
}

// The step of a setting: its ranks, each with its operations, messages, hops and optimiser; or the sentence of why there is none.
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
  step.held = pipeline.chunks * copies; // stages whose weights a device holds
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

// What each rank of a ring sends, hop by hop; `from` is the rank that sends to it meanwhile, and `got` the piece that it receives.
// The ring goes through the replicas, in each through the devices of all copies of the weights, if there are several.
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

const grain = (step) => 1e-7 * step.makespan; // times in the data have nine digits

// The moments at which a rank begins or ends something, from 0 to the end of the step.
function momentsOf(step, rank) {
  const edges = step.ranks[rank].items.flatMap(({ start, end }) => [start, end]);
  const moments = sorted([0, ...edges]).filter((time) => time < step.makespan - grain(step));
  return [...moments.filter((time, place) => !place || time - moments[place - 1] > grain(step)), step.makespan];
}

// What a rank does at a time: what has begun and not ended, and what it computes next.
function momentOf(step, rank, time) {
  const at = time + grain(step);
  const now = ({ start, end }) => start <= at && at < end;
  const own = step.ranks[rank];
  const next = own.computing.find(({ start }) => start > at) ?? null;
  const [sends, receives, hops] = [own.sends, own.receives, own.hops].map((items) => items.filter(now));
  return { own, time, done: at >= step.makespan, op: own.computing.find(now) ?? null, next, sends, receives, hops };
}

// Where an arrow key leads from a moment: along the time of its rank, or to another rank; null for other keys.
function movedBy(step, { own, time }, key) {
  const moments = momentsOf(step, own.rank);
  const place = moments.findLastIndex((each) => each <= time + grain(step));
  const between = time - moments[place] > grain(step); // a place pointed at, after the moment
  const along = { ArrowLeft: between ? place : place - 1, ArrowRight: place + 1, Home: 0, End: moments.length - 1 };
  if (key in along) return { rank: own.rank, time: moments[Math.min(Math.max(along[key], 0), moments.length - 1)] };
  const across = { ArrowUp: -1, ArrowDown: 1 }[key];
  return across ? { rank: Math.min(Math.max(own.rank + across, 0), step.ranks.length - 1), time } : null;
}
