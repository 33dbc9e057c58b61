// A pipeline with its times, as pictures draw it: the clock's results, written into the operations.

import { blockersOf, figuresOf, timesOf } from "./clock.js";

// The costs of each device. In a setting, a time is one number for all devices or a list; device `slow_device` takes `slowdown` times
// as long; it is null if no device is slow. `links` has a latency for each pair of devices, or is null.
export function costsOf({ forward, backward, weight_share, p2p, slow_device = null, slowdown = 1 }, devices, overlap = 0, links = null) {
  const each = (value) => Array.from({ length: devices }, (_, device) => (Array.isArray(value) ? value[device] : value));
  const scaled = (value) => each(value).map((time, device) => (device === slow_device ? time * slowdown : time));
  return { forward: scaled(forward), backward: scaled(backward), weight_share: each(weight_share), p2p, overlap, links };
}

// The timeline of a pipeline: the properties in `about` and those of the pipeline, makespan, bubble ratio and peaks, and for each operation
//   start, end
//   shade      the place of its colour: by chunk, and by copy of the weights
//   waitedFor  the operation whose end let it start, or null
//   late       if the device was idle until its input, or the input of its partner, came: the operation with this input; else null
// The operations are those of the pipeline, so a second call for the same pipeline changes the first timeline.
export function timed(pipeline, costs, about) {
  return withTimes(pipeline, timesOf(pipeline, costs), costs, about);
}

// The same for times that were measured: their messages take no time.
export function withTimes(pipeline, times, costs, about) {
  const waited = blockersOf(pipeline, times, costs);
  for (const op of pipeline.ops) {
    [op.start, op.end, op.waitedFor] = [times.start[op.row], times.end[op.row], waited[op.row]];
    op.shade = op.copy * pipeline.chunks + Math.floor(op.stage / pipeline.devices);
    op.late = op.waitedFor === op.before ? null : op.source === op.waitedFor ? op : op.partner;
  }
  return { ...about, ...pipeline, ...figuresOf(pipeline, times), p2p: costs.p2p, links: costs.links };
}

// The bubble ratio up to a time, and the most activations that a device has held until then, in microbatches.
export function figuresUntil({ ops, devices, chunks }, time) {
  const [held, most] = [new Array(devices).fill(0), new Array(devices).fill(0)];
  let busy = 0;
  for (const op of ops) {
    if (op.start >= time) continue;
    if (!op.partner || op.partner.row > op.row) busy += Math.min(op.end, time) - op.start;
    if (op.kind === "F") most[op.device] = Math.max(most[op.device], ++held[op.device]);
    if ((op.kind === "B" || op.kind === "W") && op.end <= time) held[op.device] -= 1;
  }
  return { bubble: time > 0 ? 1 - busy / (devices * time) : 0, most: most.reduce((high, each) => Math.max(high, each), 0) / chunks };
}

// The operations that need the output of an operation.
export const neededFrom = ({ ops }, op) => ops.filter(({ source }) => source === op);

// A critical path: the operations that follow each other without slack until the step ends, from the first to the last.
export function criticalPath({ ops }) {
  const path = [];
  let op = ops.reduce((last, each) => (each.end > last.end ? each : last), ops[0] ?? null);
  while (op) {
    path.unshift(op);
    op = op.waitedFor;
  }
  return path;
}
