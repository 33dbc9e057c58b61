// The clock: when each operation of a pipeline starts and ends. It does the sums of hybridlab.simulation in the same order, so its times
// are the same numbers. tests/widgets/test_clock_script.py compares both on random schedules and times.

// The times of each kind of operation on one chunk of each device, and under "pair" those of an overlapped pair.
// `costs` has a number for each device in `forward`, `backward` and `weight_share`, and one number in `p2p` and `overlap`. If it has
// `links`, a message takes links[sender][receiver] instead of `p2p`.
function durationsOf({ devices, chunks }, { forward, backward, weight_share, overlap }) {
  const each = (time) => Float64Array.from({ length: devices }, (_, device) => time(forward[device], backward[device], weight_share[device]));
  const [F, B] = [each((f) => f / chunks), each((_, b) => b / chunks)];
  const [I, W] = [each((_, b, w) => (b - b * w) / chunks), each((_, b, w) => (b * w) / chunks)];
  return { F, B, I, W, pair: F.map((f, device) => f + B[device] - overlap * Math.min(f, B[device])) };
}

// The time of a message from the device that makes the input of an operation; 0 if the operation has no input, or makes it itself.
export function travel({ p2p, links }, { source, device }) {
  if (!source || source.device === device) return 0;
  return links ? links[source.device][device] : p2p;
}

// The start and the end of each operation. An operation starts when its device is free and its input has arrived. The two operations of an
// overlapped pair start and end together.
export function timesOf(pipeline, costs) {
  const { ops, walk } = pipeline;
  const takes = durationsOf(pipeline, costs);
  const [start, end] = [new Float64Array(ops.length).fill(Number.NaN), new Float64Array(ops.length).fill(Number.NaN)];
  const arrival = (op) => (op.source ? end[op.source.row] + travel(costs, op) : 0);
  for (const row of walk) {
    const { partner, before, kind, device } = ops[row];
    if (partner && partner.row < row) continue; // timed with the first of the pair
    start[row] = Math.max(arrival(ops[row]), before ? end[before.row] : 0, partner ? arrival(partner) : 0);
    end[row] = start[row] + takes[partner ? "pair" : kind][device];
    if (partner) [start[partner.row], end[partner.row]] = [start[row], end[row]];
  }
  return { start, end };
}

// The makespan, the bubble ratio, and the peak activations of each device in microbatches of the whole device.
export function figuresOf({ ops, devices, chunks }, { start, end }) {
  const [busy, held, peak] = [0, 1, 2].map(() => new Array(devices).fill(0));
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { row, kind, device, partner } of ops) {
    [first, last] = [Math.min(first, start[row]), Math.max(last, end[row])];
    if (!partner || partner.row > row) busy[device] += end[row] - start[row];
    if (kind === "F") held[device] += 1;
    peak[device] = Math.max(peak[device], held[device]);
    if (kind === "B" || kind === "W") held[device] -= 1;
  }
  const makespan = last - first;
  const bubble = makespan > 0 ? 1 - busy.reduce((sum, each) => sum + each, 0) / (devices * makespan) : 0;
  return { makespan, bubble, peak: peak.map((count) => count / chunks) };
}

// The operation whose end let each operation start: the one that made the later input if the device was idle until it arrived, else the
// one before it on the device. Null if it waited for nothing.
export function blockersOf({ ops }, { end }, costs) {
  const arrival = (op) => (op.source ? end[op.source.row] + travel(costs, op) : -1);
  return ops.map((op) => {
    const [one, other] = op.partner?.row < op.row ? [op.partner, op] : [op, op.partner];
    const later = other && arrival(other) > arrival(one) ? other : one;
    return arrival(later) > (op.before ? end[op.before.row] : 0) ? later.source : op.before;
  });
}
