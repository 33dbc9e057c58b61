// The step of a setting, from the data of hybridlab/widgets/step_explorer.py. The clock times the operations of each replica here; the
// rings, the optimisers and the figures come from Python with their times.

import { blockersOf, timesOf } from "./clock.js";
import { pipelineOf } from "./orders.js";
import { counted } from "./view.js";

const FIGURES = ["makespan", "all_reduce", "exposed", "share", "single", "speedup", "efficiency"];

export const keyOf = (data, { schedule, devices, microbatches, replicas, ring, overlap }) =>
  [schedule, devices, microbatches, replicas, data.ring.indexOf(ring), data.overlap.indexOf(overlap)].join("/");

export const pipelineKey = ({ schedule, devices, microbatches }) => [schedule, devices, microbatches].join("/");

export const grain = (step) => 1e-7 * step.makespan; // times in the data have nine digits

// The costs of a replica, from one value for all ranks, a value for each device of a pipeline, or a value for each rank.
function costsAt({ forward, backward, weight_share, p2p, overlap }, devices, replica) {
  const at = (device, { length }) => (length === 1 ? 0 : length === devices ? device : replica * devices + device);
  const each = (values) => Array.from({ length: devices }, (_, device) => values[at(device, values)]);
  return { forward: each(forward), backward: each(backward), weight_share: each(weight_share), p2p, overlap };
}

// Adds the operations and the messages of a replica to its ranks.
function addOps(step, pipeline, replica, costs) {
  const [first, times] = [replica * step.devices, timesOf(pipeline, costs)];
  const waited = blockersOf(pipeline, times, costs);
  const ops = pipeline.ops.map(({ row, device, text, kind, stage, microbatch, copy }) => {
    const shade = copy * pipeline.chunks + Math.floor(stage / step.devices);
    const blocker = waited[row] && { text: waited[row].text, rank: first + waited[row].device };
    const [start, end] = [times.start[row], times.end[row]];
    return { rank: first + device, text, kind, stage, microbatch, copy, shade, start, end, blocker, partner: null, peer: null };
  });
  for (const { row, device, partner, source } of pipeline.ops) {
    const op = ops[row];
    if (partner) op.partner = ops[partner.row];
    step.ranks[op.rank].ops.push(op);
    if (!source || source.device === device) continue;
    const sent = ops[source.row];
    sent.peer = op.rank;
    const message = { op: sent, from: sent.rank, to: op.rank, start: sent.end, end: sent.end + costs.p2p };
    step.ranks[sent.rank].sends.push({ ...message, kind: "send", rank: sent.rank });
    step.ranks[op.rank].receives.push({ ...message, kind: "receive", rank: op.rank });
  }
}

// Adds the hops of a ring to its ranks. All hops take the same time. While it sends, a rank receives the piece `got` from the rank `from`.
// The ring goes through the replicas and, in each replica, through the devices of all copies of the weights.
function addRing(step, [held, stage, start, end, nbytes], rounds) {
  const devices = [held].flat();
  const rankAt = (place) => Math.floor(place / devices.length) * step.devices + devices[place % devices.length];
  const counts = { "reduce-scatter": 0, "all-gather": 0 };
  const of = rounds.length / 2;
  const edge = (round) => (round < rounds.length ? start + (end - start) * (round / rounds.length) : end);
  rounds.forEach(({ kind, piece, to }, round) => {
    const shared = { kind, stage, count: ++counts[kind], of, start: edge(round), end: edge(round + 1) };
    to.forEach((receiver, place) => {
      const sender = to.indexOf(place);
      const [rank, peer, from] = [place, receiver, sender].map(rankAt);
      step.ranks[rank].hops.push({ ...shared, rank, peer, from, piece: piece[place], got: piece[sender], nbytes: nbytes[piece[place]] });
    });
  });
  for (let place = 0; place < step.replicas * devices.length; place++) step.ranks[rankAt(place)].rings.push({ stage, start, end });
}

function addOptimiser(step, own) {
  const start = step.optimiser[own.device];
  own.optimiser = { kind: "optimiser", rank: own.rank, start, end: start + step.update };
  own.computing = step.update > 0 ? [...own.ops, own.optimiser] : own.ops;
  own.items = [...own.computing, ...own.sends, ...own.receives, ...own.hops];
}

// The times at which a rank computes nothing. Before an operation it waits for the one with its input; `waits` has that operation and
// its rank. After its operations it takes part in rings: it is in the ring of a stage, or waits for what this ring waits for.
function idleTimes(step, own, last) {
  const times = [];
  let free = 0;
  for (const op of own.ops) {
    if (op.start - free > grain(step)) times.push({ start: free, end: op.start, waits: `${op.blocker.text} of rank ${op.blocker.rank}` });
    free = Math.max(free, op.end);
  }
  const ending = `${last.text} of rank ${last.rank}`;
  for (const { stage, start, end } of [...own.rings].sort((one, other) => one.start - other.start)) {
    const waits = step.overlap ? `the ring of stage ${stage}` : ending;
    if (start - free > grain(step)) times.push({ start: free, end: start, waits });
    if (end - Math.max(start, free) > grain(step)) times.push({ start: Math.max(start, free), end, ring: stage });
    free = Math.max(free, end);
  }
  if (step.update > 0 && own.optimiser.start - free > grain(step)) times.push({ start: free, end: own.optimiser.start, waits: ending });
  return times;
}

// A function that returns the step of a setting: its ranks, each with its operations, messages, hops and optimiser. A refused setting
// has the reason instead.
export function stepsOf(data) {
  const known = new Map(); // key -> pipeline
  const pipelineAt = (key) => {
    if (!known.has(key)) known.set(key, pipelineOf(data.pipelines[key].orders));
    return known.get(key);
  };
  return (setting) => {
    const { schedule, devices, replicas, microbatches, overlap } = setting;
    const [entry, key] = [data.steps[keyOf(data, setting)], pipelineKey(setting)];
    const sizes = [`${counted(devices, "device")} a pipeline`, counted(replicas, "replica"), counted(microbatches, "microbatch")];
    const about = { title: data.titles[schedule], unit: data.unit, kinds: data.kinds, spans: data.spans };
    if (entry.refusal) return { ...about, sizes: sizes.join(", "), refusal: entry.refusal };
    const pipeline = pipelineAt(key);
    const { chunks, copies } = pipeline;
    if (copies > 1) sizes.push(`${copies} copies of the weights`);
    if (typeof overlap === "string") sizes.push(`rings of ${overlap}`);
    const place = (rank) => ({ rank, replica: Math.floor(rank / devices), device: rank % devices });
    const lists = () => ({ ops: [], sends: [], receives: [], hops: [], rings: [] });
    const ranks = Array.from({ length: devices * replicas }, (_, rank) => ({ ...place(rank), ...lists() }));
    const step = { ...about, ...entry, sizes: sizes.join(", "), devices, replicas, overlap, chunks, copies, ranks };
    step.peak = data.pipelines[key].peak;
    step.held = chunks * copies; // the number of stages whose weights a device holds
    for (let replica = 0; replica < replicas; replica++) addOps(step, pipeline, replica, costsAt(data.costs, devices, replica));
    for (const ring of entry.rings) addRing(step, ring, data.rounds[replicas * copies]);
    for (const each of ranks) addOptimiser(step, each);
    checkTimes(step);
    const last = ranks.flatMap(({ ops }) => ops).reduce((one, op) => (op.end > one.end + grain(step) ? op : one));
    for (const each of ranks) each.idle = idleTimes(step, each, last);
    step.flights = ranks.flatMap(({ sends, hops }) => [...sends, ...hops.map((hop) => ({ ...hop, to: hop.peer, from: hop.rank }))]);
    return step;
  };
}

// The step as a timeline with a device for each rank, for its files: the operations, and beside them the messages, the hops and the
// optimisers, in the order of the library.
export function timelineOf(step, setting) {
  const { title, sizes, unit, makespan, replicas, chunks, ranks } = step;
  const all = (listed) => ranks.flatMap(listed);
  const placeAt = new Map(ranks.flatMap(({ ops }) => ops.map((op, place) => [op, place])));
  const message = (kind, other) => ({ op: { text, stage, microbatch }, [other]: peer, rank: device, start, end }) =>
    ({ kind, name: `${kind} ${text}`, device, stage, microbatch, peer, start, end });
  const hop = ({ kind, piece, rank: device, stage, count, peer, nbytes, start, end }) =>
    ({ kind, name: `${kind} chunk ${piece}`, device, stage, chunk: piece, step: count - 1, peer, nbytes, start, end });
  const phase = (kind) => all(({ hops }) => hops.filter((each) => each.kind === kind)).map(hop);
  const spans = [
    ...all(({ sends }) => [...sends].sort((one, other) => placeAt.get(one.op) - placeAt.get(other.op))).map(message("send", "to")),
    ...all(({ receives }) => receives).map(message("receive", "from")),
    ...phase("reduce-scatter"), ...phase("all-gather"),
    ...ranks.map(({ rank: device, optimiser: { start, end } }) => ({ kind: "optimiser", name: "optimiser", device, start, end })),
  ];
  const ops = all((own) => own.ops.map(({ text, kind, stage, microbatch, start, end, partner }) =>
    ({ text, kind, stage, microbatch, start, end, partner, device: own.rank })));
  return { title, sizes, unit, makespan, setting, replicas, chunks, devices: ranks.length, ops, spans };
}

function checkTimes(step) {
  const numbers = step.ranks.flatMap(({ items }) => items.flatMap(({ start, end }) => [start, end]));
  const all = [...FIGURES.map((name) => step[name]), ...step.peak, ...numbers];
  if (!numbers.length || !all.every(Number.isFinite)) throw new Error("a time is missing");
}
