// The words of a cluster explorer: numbers with units, settings, plans.

import { grouped, listed, number } from "./view.js";

export const MEMORY = { states: "states", activations: "activations", working: "working memory" };

// Three significant digits; from 1000 on, all digits before the point.
export const three = (value) => (value >= 999.5 ? grouped(Math.round(value)) : value ? value.toPrecision(3) : "0");
export const seconds = (value) => `${three(value)} s`;
export const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;
export const counts = (count, thing) => `${grouped(count)} ${thing}${count === 1 ? "" : "s"}`;

// Says whether a plan fits, and by how much.
export function fitWords({ total, capacity }) {
  const room = capacity - total;
  return `${total.toFixed(1)} of ${number(capacity)} GB, ${room < 0 ? `${(-room).toFixed(1)} too much` : `${room.toFixed(1)} free`}`;
}

export const valueWord = (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : String(value));

// The whole setting in words, because controls are not printed on paper.
export const settingWords = ({ axes }, { setting }) => axes.map(({ name, label }) => `${label}: ${valueWord(setting[name])}`).join("; ");

// What two settings do not share, such as ["Stages K", 8, 16].
export const differences = ({ axes }, one, other) =>
  axes.filter(({ name }) => one[name] !== other[name]).map(({ name, label }) => [label, valueWord(one[name]), valueWord(other[name])]);

// A plan of the map in words: "8 stages of 2 chunks, 16 replicas, 8 tensor GPUs, 64 microbatches of 1, full recomputation".
export function planWords({ stages, chunks, replicas, tensor, microbatches, microbatch, recompute, sequence_parallel: split }) {
  const stage = `${counts(stages, "stage")}${chunks > 1 ? ` of ${chunks} chunks` : ""}`;
  const again = `${recompute === "none" ? "no" : recompute} recomputation`;
  const batch = `${counts(microbatches, "microbatch").replace("chs", "ches")} of ${microbatch}`;
  const shared = split ? ["sequence parallelism"] : [];
  return listed([stage, counts(replicas, "replica"), counts(tensor, "tensor GPU"), batch, again, ...shared]);
}
