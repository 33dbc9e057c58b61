// Judges an order that a reader hands in for an instance of the zoo, as hybridlab.zoo.verify does: its sizes, its devices, whether it can
// run, its memory and its makespan. tests/book/test_zoo_page.py compares both. No kernel is needed.

import { figuresOf, timesOf } from "./clock.js";
import { pipelineOf } from "./orders.js";
import { judged, readLines, turnText } from "./validation.js";
import { counted, make, number } from "./view.js";

const LONGEST = 4_000_000; // characters of a text; `hybridlab zoo verify` has the same limit
const MOST_SHOWN = 12; // sentences

const KINDS = { true: "FBIW", false: "FB" }; // kinds of operations, by whether an instance splits backwards
const sentenceOf = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const fault = (code, sentence) => ({ code, faults: [sentence] });

// ---- sizes and devices ----

// The first operation that an instance does not have, as a fault, or null.
function foreign({ name, stages, microbatches, split }, turns) {
  const outside = ({ text }, thing, count) => {
    const sentence = `${text} is of a ${thing} that ${name} does not have: it has ${counted(count, thing)}, numbered from 0 to ${count - 1}`;
    return fault("another-size", sentence);
  };
  for (const { turn } of turns) {
    if (turn.length > 1) {
      return fault("overlapped-pair", `${turnText(turn)} is a pair that runs at the same time: here a device runs one operation at a time`);
    }
    const [op] = turn;
    if (op.stage >= stages) return outside(op, "stage", stages);
    if (op.microbatch >= microbatches) return outside(op, "microbatch", microbatches);
    if (!KINDS[split].includes(op.kind)) {
      return fault("split-backward", `${op.text} is a part of a backward, and ${name} does not split backwards: write B`);
    }
  }
  return null;
}

// The operation that stands on no device where the instance allows it, as a fault, or null. `paths` has the device of each stage, for
// each placement.
function misplaced({ name, paths }, turns) {
  const fits = (path) => turns.every(({ turn, device }) => path[turn[0].stage] === device);
  if (paths.some(fits)) return null;
  const wrong = turns.find(({ turn, device }) => paths.every((path) => path[turn[0].stage] !== device));
  if (!wrong) return fault("another-placement", `the stages are on devices of no placement that ${name} allows`);
  const [{ text, stage }] = wrong.turn;
  const allowed = [...new Set(paths.map((path) => path[stage]))].join(" or ");
  return fault("another-placement", `${text} stands on device ${wrong.device}, but ${name} has stage ${stage} on device ${allowed}`);
}

function sizeFault({ name, devices, microbatches }, lines, found) {
  const wanted = `${name} has ${counted(devices, "device")} and ${counted(microbatches, "microbatch")}`;
  if (lines.length !== devices) {
    return fault("another-size", `this order has ${counted(lines.length, "line")}, one for each device, but ${wanted}`);
  }
  if (found !== microbatches) return fault("another-size", `this order has ${counted(found, "microbatch")}, but ${wanted}`);
  return null;
}

// ---- memory and makespan ----

function overMemory({ name, memory }, peak) {
  if (!memory) return null;
  const over = peak.findIndex((held, device) => held > memory[device]);
  if (over < 0) return null;
  const held = `device ${over} holds the activations of up to ${number(peak[over])} microbatches`;
  return fault("too-much-memory", `${held}, but ${name} has room for ${number(memory[over])}`);
}

// What a makespan means for an instance, as a sentence. All times are whole numbers.
function standing({ name, makespan: best, bound, unit }, makespan) {
  const time = (value) => `${number(value)} ${unit}`;
  if (makespan > best) return ["longer", `${time(makespan - best)} longer than the best: ${time(makespan)} instead of ${time(best)}.`];
  if (makespan === best) return ["equal", `Equal to the best: ${time(makespan)}.`];
  const closes = makespan === bound ? ` It meets the lower bound, so it closes ${name}.` : "";
  return ["new-best", `New best, ${time(best - makespan)} shorter: ${time(makespan)} instead of ${time(best)}.${closes}`];
}

// The verdict on a text. It has `code` and `faults`, sentences without a capital letter and a full stop. If there are no faults, it also
// has `sentence`, `makespan`, `bubble`, `peak` (for each device), and `orders`, a text for each device.
export function verdictOn(instance, text) {
  if (text.length > LONGEST) return fault("too-large", `the text has more than ${LONGEST / 1e6} MB`);
  const lines = readLines(text);
  const judgement = judged(lines);
  const unread = !lines.length || lines.some((line) => line.fault);
  const turns = judgement.orders.flatMap((order, device) => order.map((turn) => ({ turn, device })));
  if (!unread) {
    const strange = foreign(instance, turns) ?? sizeFault(instance, lines, judgement.paths.copyOf.size) ?? misplaced(instance, turns);
    if (strange) return strange;
  }
  const { faults, circle } = judgement;
  if (faults.length) return { code: faults[0].code, faults: [...faults.map(({ sentence }) => sentence), ...(circle ? [circle] : [])] };
  const orders = judgement.orders.map((order) => order.map(turnText).join(" "));
  const pipeline = pipelineOf(orders);
  const { makespan, bubble, peak } = figuresOf(pipeline, timesOf(pipeline, instance.costs));
  const over = overMemory(instance, peak);
  if (over) return over;
  const whole = Math.round(makespan); // the times are whole, and 7 = 13 - 13 * (6 / 13) can be rounded
  const [code, sentence] = standing(instance, whole);
  return { code, sentence, faults: [], makespan: whole, bubble, peak, orders };
}

// ---- the answer on a page ----

const REFUSED = "This is not an order for this instance.";

function figures({ makespan, bubble, peak }, { unit, memory }) {
  const room = memory ? ` (room for ${[...new Set(memory)].length > 1 ? memory.join(", ") : memory[0]})` : "";
  const held = peak.map(number).join(", ") + room;
  const rows = [["Makespan", `${number(makespan)} ${unit}`], ["Bubble ratio", bubble.toFixed(3)], ["Peak activations, by device", held]];
  const row = ([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value));
  return make("table", {}, make("tbody", {}, ...rows.map(row)));
}

// Writes the verdict on the text of the model into `el`, and sets the trait `verdict` of the model.
function render({ model, el }) {
  const instance = model.get("instance");
  const verdict = verdictOn(instance, model.get("text"));
  const { code, faults } = verdict;
  el.dataset.verdict = faults.length ? "refused" : code;
  const shown = faults.slice(0, MOST_SHOWN).map((each) => make("li", {}, sentenceOf(each)));
  if (faults.length > MOST_SHOWN) shown.push(make("li", {}, `And ${faults.length - MOST_SHOWN} more.`));
  if (faults.length) el.replaceChildren(make("p", {}, make("strong", {}, REFUSED)), make("ul", {}, ...shown));
  else el.replaceChildren(make("p", {}, make("strong", {}, verdict.sentence)), figures(verdict, instance));
  model.set("verdict", verdict);
}

export default { render };
