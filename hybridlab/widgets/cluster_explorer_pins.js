// The two plans that a reader has pinned in a cluster explorer: buttons, a table and a sentence on the difference.

import { tableOf } from "./chart.js";
import { differences, seconds, share, three } from "./cluster_explorer_words.js";
import { grouped, listed, make } from "./view.js";

const moreOrLess = (change, words, size) => (Math.abs(change) < 5e-4 ? "" : `${size} ${change > 0 ? "more" : "less"} ${words}`);

// "Plan B takes 12.0 % less time than plan A and needs 3.1 GB more memory on the fullest GPU. ..."
function comparison(data, one, other) {
  const changed = differences(data, one.setting, other.setting);
  if (!changed.length) return "Both pinned plans are the same.";
  const changes = `In plan B, ${listed(changed.map(([label, before, after]) => `${label} is ${after} instead of ${before}`))}.`;
  const impossible = Object.entries({ A: one, B: other }).find(([, { refusal }]) => refusal);
  if (impossible) return `Plan ${impossible[0]} is not possible, so times are not compared. ${changes}`;
  const [time, memory] = [other.seconds / one.seconds - 1, other.memory.total - one.memory.total];
  const longer = moreOrLess(time, "time", share(Math.abs(time), 1));
  const larger = moreOrLess(memory, "memory on the fullest GPU", `${Math.abs(memory).toFixed(1)} GB`);
  return `Plan B takes ${longer || "as much time"}${longer ? " than" : " as"} plan A and needs ${larger || "as much memory"}. ${changes}`;
}

function rowsFor(data, plans) {
  const figures = [
    ["seconds", ({ refusal, seconds: time }) => (refusal ? "not possible" : three(time))],
    ["TFLOP/s a GPU", ({ refusal, tflops }) => (refusal ? "\u2013" : three(tflops))],
    ["GB on the fullest GPU", ({ memory }) => memory?.total.toFixed(1) ?? "\u2013"],
    ["GPUs", ({ gpus }) => grouped(gpus)],
  ].map(([words, of]) => [words, ...plans.map(of)]);
  return plans.length < 2 ? figures : [...figures, ...differences(data, plans[0].setting, plans[1].setting)];
}

// `pin(letter)` is called when a reader pins the current plan; `draw(pins)` shows what is pinned.
export function pinsOf(data, pin) {
  const buttons = ["A", "B"].map((letter) => {
    const button = make("button", { type: "button" }, `Pin as ${letter}`);
    button.addEventListener("click", () => pin(letter));
    return button;
  });
  const table = make("table", { class: "pins" });
  const told = make("p", { class: "compared", role: "status" });
  const element = make("div", { class: "pinned" }, told, table);
  const draw = (pins) => {
    const letters = ["A", "B"].filter((letter) => pins[letter]);
    const plans = letters.map((letter) => pins[letter]);
    table.replaceChildren(...(letters.length ? tableOf("Pinned plans", ["", ...letters], rowsFor(data, plans)) : []));
    const [only] = plans;
    const other = letters[0] === "A" ? "B" : "A";
    const pinned = only && `Plan ${letters[0]} is pinned${only.refusal ? "" : ` with ${seconds(only.seconds)}`}.`;
    const waiting = only && `${pinned} Pin another plan as ${other} to compare the two.`;
    told.textContent = plans.length === 2 ? comparison(data, ...plans) : (waiting ?? "");
  };
  return { element, buttons: make("div", { class: "buttons" }, ...buttons), draw };
}
