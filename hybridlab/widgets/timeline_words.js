// Timelines in words: a summary, an operation and what it waited for, an idle time and who is waited for, the critical path, a comparison.

import { travel } from "./clock.js";
import { copyWords, most, sorted } from "./timeline.js";
import { criticalPath, neededFrom } from "./timed.js";
import { counted, listed, number } from "./view.js";

export const timeIn = ({ unit }, value) => (unit ? `${number(value)} ${unit}` : number(value));

export function summary(timeline) {
  const head = `${timeline.title}, ${timeline.sizes}`;
  if (timeline.refusal) return `${head}: not possible. ${timeline.refusal}.`;
  const peaks = timeline.peak.map((peak, device) => `${number(peak)} on device ${device}`).join(", ");
  const figures = `makespan ${timeIn(timeline, timeline.makespan)}, bubble ratio ${timeline.bubble.toFixed(3)}`;
  return `${head}: ${figures}, peak activations in microbatches: ${peaks}.`;
}

// What player.js shows for timelines: the last time, the times at which operations start and end, and a time in words.
export function playedOf(timelines) {
  const drawn = timelines.filter(({ refusal }) => !refusal);
  const events = sorted(drawn.flatMap(({ ops }) => ops.flatMap(({ start, end }) => [start, end])));
  return { end: most(drawn.map(({ makespan }) => makespan)), events, told: (time) => timeIn(timelines[0] ?? {}, time) };
}

// ---- an operation ----

export function named(timeline, op) {
  const kind = timeline.kinds[op.kind].words;
  const place = `${kind} of microbatch ${op.microbatch} on stage ${op.stage}${copyWords(timeline, op)}`;
  const pair = op.partner ? ` It runs together with ${op.partner.text}.` : "";
  return `${op.text}: the ${place}, device ${op.device}, from ${number(op.start)} to ${timeIn(timeline, op.end)}.${pair}`;
}

export function reason(timeline, op) {
  const { before, device } = op;
  const source = op.late ? op.waitedFor : op.source;
  const latency = travel(timeline, { source, device });
  const arrival = source ? source.end + latency : 0;
  if (op.late) {
    const way = latency ? ` and took ${number(latency)} to arrive` : "";
    const idle = op.start - (before ? before.end : 0);
    const stood = idle > 0 ? ` Device ${device} stood idle for ${number(idle)}.` : "";
    const other = op.late === op ? "" : ` with ${op.late.text}`;
    return `It waited${other} for its input ${source.text}, which ended at ${number(source.end)}${way}.${stood}`;
  }
  if (!before) return "It waited for nothing.";
  if (before === source) return `It waited for its input ${source.text}, which ran just before it.`;
  const input = source && op.start - arrival > 1e-6 * op.start ? `; its input ${source.text} was there at ${number(arrival)}` : "";
  const both = before.partner ? ` together with ${before.partner.text}` : "";
  return `It waited for its device, which ran ${before.text}${both} until ${number(before.end)}${input}.`;
}

// Who needs the output of an operation.
export function wanted(timeline, op) {
  const users = neededFrom(timeline, op).map(({ text, device }) => (device === op.device ? text : `${text} on device ${device}`));
  return users.length ? `${listed(users)} ${users.length > 1 ? "need" : "needs"} its output.` : "No other operation needs its output.";
}

// ---- an idle time ----

// The operations that ran in an idle time and led to its end, from the first to the last.
export function chainBehind({ next, start }) {
  const chain = [];
  for (let op = next?.waitedFor; op && op.end > start; op = op.waitedFor) chain.unshift(op);
  return chain;
}

// What devices run one after the other, each device once for the operations that follow each other on it: "device 3 runs 3F5 and 3F6".
function runsOf(chain) {
  const runs = [];
  for (const { text, device } of chain) {
    if (runs.at(-1)?.device === device) runs.at(-1).texts.push(text);
    else runs.push({ device, texts: [text] });
  }
  return runs.map(({ device, texts }) => `device ${device} runs ${listed(texts)}`);
}

export function whyIdle(timeline, gap) {
  const { device, start, end, next } = gap;
  const when = `Device ${device} is idle from ${number(start)} to ${timeIn(timeline, end)}`;
  if (!next && timeline.stops?.[device]) return `${when}. It waits for ${timeline.stops[device]}, which does not run.`;
  if (!next) {
    const last = timeline.ops.reduce((late, op) => (op.end > late.end ? op : late));
    return `${when}. It has finished its part, and the step ends when device ${last.device} ends ${last.text}.`;
  }
  const source = next.late ? next.waitedFor : next.source;
  if (!source) return `${when}. Then it runs ${next.text}.`;
  const needs = next.late && next.late !== next ? `${next.late.text}, together with ${next.text}` : next.text;
  const chain = chainBehind(gap);
  const path = chain.length > 1 ? ` Meanwhile ${listed(runsOf(chain))}.` : "";
  const latency = travel(timeline, { source, device });
  const message = latency ? ` The message takes ${number(latency)}.` : "";
  return `${when}. The next operation, ${needs}, needs ${source.text} of device ${source.device}, which ends at ${number(source.end)}.${message}${path}`;
}

// What a device does at a time, in a few words, if it computes nothing: "waits for 1B0". Empty if it computes. `stop` is the operation
// that the device waits for after its last one, if the order cannot go on.
export function waitingWords(line, time, stop) {
  const next = line.find((op) => op.end > time);
  if (!next) return stop ? `waits for ${stop}` : "done";
  if (next.start <= time) return "";
  const source = next.late ? next.waitedFor : next.source;
  return source ? `waits for ${source.text}` : "waits";
}

// ---- the critical path, and two timelines compared ----

export function pathWords(timeline) {
  const path = criticalPath(timeline);
  const kinds = ["F", "B", "I", "W"].map((kind) => [kind, path.filter((op) => op.kind === kind)]).filter(([, ops]) => ops.length);
  const parts = kinds.map(([kind, ops]) => `${ops.length} ${kind} (${number(ops.reduce((sum, op) => sum + op.end - op.start, 0))})`);
  const messages = path.filter((op, place) => place && op.start > path[place - 1].end);
  const waits = messages.reduce((sum, op) => sum + op.start - op.waitedFor.end, 0);
  if (messages.length) parts.push(`${counted(messages.length, "message")} (${number(waits)})`);
  return `${timeline.title}: the critical path is ${listed(parts)}. Together they take ${timeIn(timeline, timeline.makespan)}, the whole step.`;
}

const shareWords = (one, other) => `${number(100 * Math.abs(1 - one / other)).slice(0, 4)} %`;

// What the first timeline has over the second, in sentences.
export function difference(first, second) {
  const [time, memory] = [(each) => each.makespan, (each) => each.peak.reduce((high, peak) => Math.max(high, peak), 0)];
  const said = (of, much, same) => {
    const [one, other] = [of(first), of(second)];
    if (Math.abs(one - other) <= 1e-9 * Math.max(one, other)) return same;
    return much(one, other);
  };
  const length = said(
    time,
    (one, other) =>
      `${first.title} takes ${timeIn(first, Math.abs(one - other))} ${one < other ? "less" : "more"} than ${second.title} (${shareWords(one, other)})`,
    `${first.title} takes as long as ${second.title}`,
  );
  const held = said(
    memory,
    (one, other) => `its largest peak is ${number(one)} instead of ${number(other)} activations`,
    "its largest peak of activations is the same",
  );
  return `${length}, and ${held}.`;
}
