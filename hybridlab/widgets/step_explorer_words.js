// The moments of a step, and what a rank does at a moment, in words.

import { grain } from "./step_explorer_data.js";
import { copyWords } from "./timeline.js";
import { counted, grouped, number } from "./view.js";

// ---- moments ----

// The times at which an item of these ranks starts or ends, from 0 to the end of the step.
function momentsOf(step, ranks) {
  const edges = Float64Array.from(ranks.flatMap(({ items }) => items.flatMap(({ start, end }) => [start, end]))).sort();
  const moments = [0];
  for (const time of edges) {
    if (time - moments.at(-1) > grain(step) && time < step.makespan - grain(step)) moments.push(time);
  }
  return [...moments, step.makespan];
}

export const eventsOf = (step) => momentsOf(step, step.ranks);

// What a rank does at a time: the items that have started and not ended, its next operation, and the idle time that it is in.
export function momentOf(step, rank, time) {
  const at = time + grain(step);
  const now = ({ start, end }) => start <= at && at < end;
  const own = step.ranks[rank];
  const next = own.computing.find(({ start }) => start > at) ?? null;
  const [sends, receives, hops] = [own.sends, own.receives, own.hops].map((items) => items.filter(now));
  return { own, time, done: at >= step.makespan, op: own.computing.find(now) ?? null, next, idle: own.idle.find(now), sends, receives, hops };
}

// The moment that an arrow key leads to, in the same rank or in another one. Null for other keys.
export function movedBy(step, { own, time }, key) {
  const across = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (across) return { rank: Math.min(Math.max(own.rank + across, 0), step.ranks.length - 1), time };
  if (!["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) return null;
  const moments = momentsOf(step, [own]);
  const place = moments.findLastIndex((each) => each <= time + grain(step));
  const between = time - moments[place] > grain(step); // the cursor was set by the pointer, between two moments
  const along = { ArrowLeft: between ? place : place - 1, ArrowRight: place + 1, Home: 0, End: moments.length - 1 }[key];
  return { rank: own.rank, time: moments[Math.min(Math.max(along, 0), moments.length - 1)] };
}

// ---- words ----

export const time = (step, value) => (step.unit ? `${number(value)} ${step.unit}` : number(value));
const bytes = (count) => (count === undefined ? "" : ` (${grouped(count)} ${count === 1 ? "byte" : "bytes"})`);

export function summary(step) {
  const head = `${step.title}, ${step.sizes}`;
  if (step.refusal) return `${head}: not possible. ${step.refusal}.`;
  const figures = [
    `makespan ${time(step, step.makespan)}`,
    `exposed communication ${time(step, step.exposed)}`,
    `speedup ${number(Number(step.speedup.toFixed(3)))} on ${counted(step.ranks.length, "device")}`,
  ];
  return `One training step of ${head}: ${figures.join(", ")}.`;
}

export const holds = (step, { device }) => `${step.held > 1 ? "device" : "stage"} ${device}`;

export const headOf = (step, { own, time: at }) =>
  `Rank ${own.rank} (${holds(step, own)}, replica ${own.replica}) at ${time(step, at)}`;

// What a rank does in an idle time, as short as it stands beside the cursor. Such words have the operation and its rank.
export const idleWords = ({ waits, ring }) => (waits ? `waits for ${waits}` : `in the ring of stage ${ring}`);

function opWords(step, op) {
  if (op.kind === "optimiser") return "runs its optimiser";
  return `runs ${op.text}, the ${step.kinds[op.kind].words} of microbatch ${op.microbatch} on stage ${op.stage}${copyWords(step, op)}`;
}

function computingWords(step, { op, next, idle, hops, done }) {
  if (done) return "is done: the step has ended.";
  if (op) {
    const both = [op, op.partner].filter(Boolean);
    const output = (each) => (op.partner ? `The output of ${each.text}` : "Its output");
    const sent = both.filter(({ peer }) => Number.isInteger(peer)).map((each) => ` ${output(each)} goes to rank ${each.peer}.`);
    const runs = both.map((each) => opWords(step, each)).join(" and at the same time ");
    return `${runs}, from ${number(op.start)} to ${time(step, op.end)}.${sent.join("")}`;
  }
  const waits = idle?.waits ? ` It waits for ${idle.waits}.` : "";
  if (!next) return `${hops.length || waits ? "has finished computing" : "has finished its part of the step"}.${waits}`;
  const what = next.kind === "optimiser" ? "its optimiser" : next.text;
  const starts = next.partner ? `and ${next.partner.text} start` : "starts";
  return `computes nothing until ${time(step, next.start)}, when ${what} ${starts}.${waits}`;
}

function messageWords(step, { kind, op, from, to, end }) {
  const [verb, word, other] = kind === "send" ? ["sends", "to", to] : ["receives", "from", from];
  return `It ${verb} the output of ${op.text} ${word} rank ${other} until ${time(step, end)}.`;
}

function hopWords(step, hop) {
  const ring = `the ring of ${step.copies > 1 ? "both copies of " : ""}stage ${hop.stage}`;
  const what = `In hop ${hop.count} of ${hop.of} of the ${step.spans[hop.kind].words} on ${ring}`;
  const [finished, adds] = hop.kind === "reduce-scatter" ? ["", ", which it adds to its own"] : ["the finished ", ""];
  const sends = `it sends chunk ${hop.piece} of the gradients${bytes(hop.nbytes)} to rank ${hop.peer}`;
  return `${what}, until ${time(step, hop.end)}, ${sends} and receives ${finished}chunk ${hop.got} from rank ${hop.from}${adds}.`;
}

// What the rank does at that time, in a few sentences.
export function sentence(step, moment) {
  const messages = moment.done ? [] : [...moment.sends, ...moment.receives].map((each) => messageWords(step, each));
  const hops = moment.hops.map((hop) => hopWords(step, hop));
  return [computingWords(step, moment), ...messages, ...hops].join(" ");
}
