// A timeline as the text of files: its orders as CSV, and a trace in Chrome's format, which Perfetto opens. Both are what the library
// writes, in hybridlab/schedule/text.py and hybridlab/timeline/chrome.py; tests/widgets/test_trace_script.py compares them.
// The timeline of a step also has `replicas`, and `spans`: its messages, hops and optimisers in the library's order.

const MICROSECONDS = { s: 1e6, ms: 1e3, us: 1 }; // in a unit of time
const LATEST = 1e250; // us: the library refuses later times
const LANES_BESIDE = { send: "send", receive: "receive", "reduce-scatter": "ring", "all-gather": "ring" }; // additional tracks, by kind of span
const DETAILS = ["stage", "microbatch", "chunk", "step", "peer", "nbytes"];

export const isTraceable = ({ unit, makespan }) => makespan * MICROSECONDS[unit] <= LATEST;

export const nameOf = ({ setting, title }) => setting?.schedule ?? title;

// The operations of each device.
const linesOf = ({ ops, devices }) => Array.from({ length: devices }, (_, device) => ops.filter((op) => op.device === device));

// One line for each device, in the form of torch.distributed.pipelining, without communication. The forward of an overlapped pair is first.
// All replicas of a pipeline have the same lines, which are written once.
export function csvText(timeline) {
  const turns = (line) => line.filter(({ partner, kind }) => !partner || kind === "F");
  const word = ({ text, partner }) => (partner ? `(${text};${partner.text})OVERLAP_F_B` : text);
  const lines = linesOf(timeline).slice(0, timeline.devices / (timeline.replicas ?? 1));
  return lines.map((line) => `${turns(line).map(word).join()}\n`).join("");
}

const metadata = (event, track, args) => ({ ph: "M", name: event, pid: 0, tid: track, args });

// An operation or a span as a slice on a track.
function sliceOf(item, name, track, length) {
  const { kind, start, end } = item;
  const [ts, last] = [start * length, end * length];
  const args = Object.fromEntries(DETAILS.filter((detail) => item[detail] >= 0).map((detail) => [detail, item[detail]]));
  if (ts / length !== start) args.start = start; // rounding has changed it
  if ((ts + (last - ts)) / length !== end) args.end = end;
  return { ph: "X", name, cat: kind, pid: 0, tid: track, ts, dur: last - ts, args };
}

// The slices of a device, and its activations in microbatches of the whole device after each change of their number.
function slicesOf(line, chunks, length) {
  let held = 0;
  return line.flatMap((op) => {
    const slice = sliceOf(op, op.text, op.device, length);
    if (op.kind === "F") held += 1;
    const count = (ts, number) => ({ ...metadata(`activations of device ${op.device}`, op.device, { microbatches: number }), ph: "C", ts });
    const events = [slice, count(slice.ts, held / chunks)];
    if (op.kind === "F" || op.kind === "I") return events;
    held -= 1;
    return [...events, count(op.end * length, (held + 1) / chunks - 1 / chunks)];
  });
}

// The track of each message and hop, from number `first` on. Each lane of a device has so many tracks that no two slices overlap on one.
// Returns a map from a span to its track, and `beside`, the device, the number and the name of each of these tracks.
function tracksBeside(spans, first) {
  const [lanes, beside, trackOf] = [new Map(), [], new Map()];
  const placed = spans.filter(({ kind }) => Object.hasOwn(LANES_BESIDE, kind)).sort((one, other) => one.start - other.start);
  for (const span of placed) {
    const name = `device ${span.device}: ${LANES_BESIDE[span.kind]}`;
    if (!lanes.has(name)) lanes.set(name, []);
    const tracks = lanes.get(name).sort((one, other) => one.free - other.free || one.track - other.track);
    let [next] = tracks;
    if (!next || next.free > span.start) {
      next = { track: first + beside.length };
      beside.push([span.device, next.track, name + (tracks.length ? ` ${tracks.length + 1}` : "")]);
      tracks.push(next);
    }
    next.free = span.end;
    trackOf.set(span, next.track);
  }
  return { trackOf, beside };
}

// The object of a trace; its times are in microseconds. Operations that have no time are left out.
export function traceOf(timeline) {
  const [length, spans] = [MICROSECONDS[timeline.unit], timeline.spans ?? []];
  const lines = linesOf(timeline).map((line) => line.filter(({ end }) => Number.isFinite(end)));
  const { trackOf, beside } = tracksBeside(spans, timeline.devices);
  const tracks = [...lines.map((_, device) => [device, device, `device ${device}`]), ...beside];
  const names = [metadata("process_name", 0, { name: nameOf(timeline) })];
  for (const [, track, name] of tracks) names.push(metadata("thread_name", track, { name }));
  const sorted = beside.length ? [...tracks].sort((one, other) => one[0] - other[0] || one[1] - other[1]) : [];
  sorted.forEach(([, track], place) => names.push(metadata("thread_sort_index", track, { sort_index: place })));
  const events = lines.flatMap((line) => slicesOf(line, timeline.chunks, length));
  const further = spans.map((span) => sliceOf(span, span.name, trackOf.get(span) ?? span.device, length));
  const about = { orders: csvText(timeline), unit: timeline.unit, replicas: timeline.replicas ?? 0, spans: Boolean(timeline.spans) };
  return { traceEvents: [...names, ...events, ...further], displayTimeUnit: "ms", otherData: { hybridlab: about } };
}
