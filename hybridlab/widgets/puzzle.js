// A schedule that a reader writes for given sizes and times: what does not belong there, how far it runs, and which goals it reaches.
// hybridlab/course/puzzles.py has the same rules for puzzles, and tests/widgets/test_puzzle_script.py compares both.

import { pipelineOf } from "./orders.js";
import { timed } from "./timed.js";
import { judged, runUntilStopped, turnText } from "./validation.js";
import { counted } from "./view.js";

const SAME_TIME = 1e-9; // two makespans are equal if their relative difference is at most this

const stagesOf = ({ devices, chunks }) => devices * chunks;

function sizeFault(task, { stage, microbatch, text }) {
  const owner = task.puzzle ? "the puzzle" : "this editor";
  const outside = (thing, number, count) =>
    `${text} is of ${thing} ${number}, but ${owner} has ${counted(count, thing)}, numbered from 0 to ${count - 1}`;
  if (microbatch >= task.microbatches) return outside("microbatch", microbatch, task.microbatches);
  return stage >= stagesOf(task) ? outside("stage", stage, stagesOf(task)) : "";
}

function kindFault(task, turn, device) {
  const [op] = turn;
  if (task.puzzle && turn.length > 1) {
    const together = turn.map(({ text }) => text).join(" and ");
    return ["overlapped-pair", `device ${device} runs ${together} at the same time: here it runs one operation at a time`];
  }
  if (task.puzzle && !task.split && "IW".includes(op.kind)) {
    return ["split-backward", `${op.text} is a part of a backward: this puzzle has forwards (F) and full backwards (B) only`];
  }
  if (task.puzzle && op.stage !== device) {
    return ["another-placement", `${op.text} stands on device ${device}: here stage ${op.stage} is on device ${op.stage}`];
  }
  const sentence = turn.map((each) => sizeFault(task, each)).find(Boolean);
  return sentence ? ["another-size", sentence] : null;
}

// The first operation that does not belong there, as a fault, or null.
function foreign(task, orders) {
  for (const [device, turns] of orders.entries()) {
    for (const [position, turn] of turns.entries()) {
      const found = kindFault(task, turn, device);
      if (found) return { code: found[0], sentence: found[1], device, position };
    }
  }
  return null;
}

const sizesIn = ({ orders, paths }) => [orders.length, paths.copyOf.size, paths.copies[0].size];

// What `judged` of validation.js returns for the lines of a text, with a fault if operations or sizes are not those of the puzzle.
export function judgedFor(task, lines) {
  const judgement = judged(lines);
  const { orders, faults } = judgement;
  if (!lines.length || lines.some(({ fault }) => fault)) return judgement;
  const strange = foreign(task, orders);
  if (strange) return { ...judgement, faults: [strange], circle: "" };
  const [devices, microbatches, stages] = sizesIn(judgement);
  if (faults.length || (devices === task.devices && microbatches === task.microbatches && stages === stagesOf(task))) return judgement;
  const size = `${counted(devices, "device")} and ${counted(microbatches, "microbatch")}`;
  const wanted = `${task.puzzle ? "the puzzle" : "this editor"} has ${task.devices} devices and ${task.microbatches} microbatches`;
  const sentence = `this order can run, but it has ${size}; ${wanted}`;
  return { ...judgement, faults: [{ sentence, code: "another-size", device: null, position: null }] };
}

// The turns that belong there, without the second time of any operation.
function known(task, orders) {
  const seen = new Set();
  const belongs = (op) => op.stage < stagesOf(task) && op.microbatch < task.microbatches && !seen.has(op.text) && seen.add(op.text);
  return Array.from({ length: task.devices }, (_, device) =>
    (orders[device] ?? []).map((turn) => turn.filter(belongs)).filter((turn) => turn.length),
  );
}

// The timeline of the operations that can run, up to the one at which each device stops. Null if none can. Two timelines with the same
// `order` look the same. `stops` has for each device the operation that it waits for at its end, or "".
export function timelineSoFar(task, { orders, paths }, about) {
  const turns = known(task, orders);
  const { at, lacks } = runUntilStopped(turns, stagesOf(task));
  const words = turns.map((each, device) => each.slice(0, at[device]).map(turnText).join(" "));
  const pipeline = { ...pipelineOf(words), chunks: task.chunks, copies: Math.min(paths.copies.length, 2) };
  if (!pipeline.ops.length) return null;
  for (const op of pipeline.ops) op.copy = pipeline.copies > 1 ? Math.min(paths.copyOf.get(op.microbatch), 1) : 0;
  const stops = turns.map((line, device) => (line[at[device]] ?? []).map(lacks).find(Boolean) ?? "");
  return timed(pipeline, task.costs, { ...about, stops, order: [pipeline.copies, ...words, ...stops].join("\n") });
}

// The names of the goals that a schedule reaches, from the easiest one on.
export function reachedBy({ goals, ...task }, judgement, timeline) {
  const { faults } = judgement;
  if (faults.length) {
    const [devices, microbatches, stages] = sizesIn(judgement);
    const whole = devices === task.devices && microbatches === task.microbatches && stages === stagesOf(task);
    return whole && faults.every(({ code }) => code === "deadlock" || code === "too-early") ? [goals[0].name] : [];
  }
  const peak = Math.max(...timeline.peak);
  const reaches = ({ makespan, memory }) => peak <= (memory ?? peak) && timeline.makespan <= (makespan ?? timeline.makespan) * (1 + SAME_TIME);
  const first = goals.findIndex((goal) => !reaches(goal));
  return goals.slice(0, first < 0 ? goals.length : first).map(({ name }) => name);
}
