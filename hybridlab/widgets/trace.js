// A timeline as the text of files: its orders as CSV, and a trace in Chrome's format, which Perfetto opens. Both are what the library
// writes, in hybridlab/schedule/text.py and hybridlab/timeline/chrome.py; tests/test_trace_script.py compares them.

const MICROSECONDS = { s: 1e6, ms: 1e3, us: 1 }; // in a unit of time
const LATEST = 1e250; // us: the library refuses later times

export const isTraceable = ({ unit, makespan }) => makespan * MICROSECONDS[unit] <= LATEST;

export const nameOf = ({ setting, title }) => setting?.schedule ?? title;

// The operations of each device.
const linesOf = ({ ops, devices }) => Array.from({ length: devices }, (_, device) => ops.filter((op) => op.device === device));

// One line for each device, in the form of torch.distributed.pipelining, without communication. The forward of an overlapped pair is first.
export function csvText(timeline) {
  const turns = (line) => line.filter(({ partner, kind }) => !partner || kind === "F");
  const word = ({ text, partner }) => (partner ? `(${text};${partner.text})OVERLAP_F_B` : text);
  return linesOf(timeline).map((line) => `${turns(line).map(word).join()}\n`).join("");
}

const metadata = (event, track, args) => ({ ph: "M", name: event, pid: 0, tid: track, args });

// The slices of a device, and its activations in microbatches of the whole device after each change of their number.
function slicesOf(line, chunks, length) {
  let held = 0;
  return line.flatMap(({ text, kind, stage, microbatch, device, start, end }) => {
    const [ts, last] = [start * length, end * length];
    const track = { pid: 0, tid: device, ts };
    const args = { stage, microbatch };
    if (ts / length !== start) args.start = start; // rounding has changed it
    if ((ts + (last - ts)) / length !== end) args.end = end;
    if (kind === "F") held += 1;
    const count = (at, number) => ({ ph: "C", name: `activations of device ${device}`, ...track, ts: at, args: { microbatches: number } });
    const events = [{ ph: "X", name: text, cat: kind, ...track, dur: last - ts, args }, count(ts, held / chunks)];
    if (kind === "F" || kind === "I") return events;
    held -= 1;
    return [...events, count(last, (held + 1) / chunks - 1 / chunks)];
  });
}

// The object of a trace; its times are in microseconds. Operations that have no time are left out.
export function traceOf(timeline) {
  const lines = linesOf(timeline).map((line) => line.filter(({ end }) => Number.isFinite(end)));
  const names = [metadata("process_name", 0, { name: nameOf(timeline) })];
  lines.forEach((_, device) => names.push(metadata("thread_name", device, { name: `device ${device}` })));
  const events = lines.flatMap((line) => slicesOf(line, timeline.chunks, MICROSECONDS[timeline.unit]));
  const about = { orders: csvText(timeline), unit: timeline.unit, replicas: 0, spans: false };
  return { traceEvents: [...names, ...events], displayTimeUnit: "ms", otherData: { hybridlab: about } };
}
