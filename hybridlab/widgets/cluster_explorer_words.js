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

// ---- the times of a reader's own functions ----

const LIBRARY = "the library";

const totalOf = (parts) => parts.reduce((sum, part) => sum + (part.seconds ?? 0), 0);

// What functions say about the plan of a reading: sentences, and for the library and each function the seconds of its parts. A part that
// a function leaves out has null. Null if there is nothing to say. `followed` tells whether a kernel computes each new setting.
export function ownOf(data, { setting, times, problems }, reading, followed) {
  const titles = [...Object.keys(times), ...Object.keys(problems)];
  if (!titles.length || reading.refusal) return null;
  const away = differences(data, setting, reading.setting);
  if (away.length) {
    const first = listed(away.map(([label, before]) => `${label} = ${before}`));
    const still = `This page has ${listed(titles)} only for its first setting, ${first}. In a notebook, each change is computed.`;
    return { told: followed ? `${listed(titles)}: computing \u2026` : still, bars: [] };
  }
  const bars = Object.entries(times).map(([title, own]) => {
    const parts = reading.parts.map((part) => ({ ...part, seconds: own[part.name] ?? null }));
    return { title, parts, seconds: totalOf(parts) };
  });
  const words = bars.map(({ title, parts, seconds: time }) => {
    const left = parts.filter((part) => part.seconds === null).map((part) => part.words);
    const ratio = number(Number((time / reading.seconds).toPrecision(3)));
    const head = `${title} gives ${seconds(time)}, ${ratio} times the ${seconds(reading.seconds)} of the library.`;
    return left.length ? `${head} It leaves out ${listed(left)}.` : head;
  });
  const why = Object.entries(problems).map(([title, problem]) => `${title} gives no time here: ${problem}.`);
  const library = { title: LIBRARY, parts: reading.parts, seconds: reading.seconds };
  return { told: [...words, ...why].join(" "), bars: bars.length ? [library, ...bars] : [] };
}
