// Judges an order that a reader hands in for an instance of the zoo, as hybridlab.zoo.verify does: its sizes, its devices, whether it can
// run, its memory and its makespan. tests/book/test_zoo_page.py compares both. No kernel is needed.

import { figuresOf, timesOf } from "./clock.js";
import { pipelineOf } from "./orders.js";
import { judged, readLines, turnText } from "./validation.js";
import { counted, grouped, number } from "./view.js";

const LONGEST = 4_000_000; // characters of a text; `hybridlab zoo verify` reads as many bytes

const inWords = (devices) => devices.join(", ");

// ---- an order that can run: is it one for this instance? The sentences are those of the library, in the same order. ----

function anotherSize(instance, sizes) {
  const wrong = ["devices", "microbatches", "stages"].find((name) => sizes[name] !== instance[name]);
  if (!wrong) return "";
  const noun = wrong.replace(/(?<=ch)es$|s$/, "");
  return `the order has ${counted(sizes[wrong], noun)}, but ${instance.name} has ${instance[wrong]}`;
}

// `path` has the device of each stage; `paths` of an instance has one for each placement that it allows.
function misplaced({ paths }, path) {
  if (paths.some((each) => inWords(each) === inWords(path))) return "";
  const stage = path.findIndex((device, each) => device !== paths[0][each]);
  const places = [...new Set(paths.map((each) => each[stage]))];
  if (places.includes(path[stage])) {
    return `the stages of the order are on devices ${inWords(path)}, not on ${paths.map(inWords).join(" or ")}`;
  }
  return `stage ${stage} is on device ${path[stage]}, but with this placement it is on device ${places.join(" or ")}`;
}

function anotherKind({ name, split }, { ops }) {
  if (ops.some(({ partner }) => partner)) return "the order has overlapped pairs, but in the zoo a device runs one operation at a time";
  const part = split ? null : ops.find(({ kind }) => kind === "W");
  return part ? `${part.text} is a part of a backward, but ${name} has full backwards only` : "";
}

function overMemory({ memory }, peak) {
  const device = memory ? peak.findIndex((held, each) => held > memory[each]) : -1;
  return device < 0 ? "" : `it holds ${number(peak[device])} activations on device ${device}, more than ${memory[device]}`;
}

// What a makespan means for an instance, as a code and a sentence. All times are whole numbers.
function standing({ makespan: best, bound, unit }, makespan) {
  const time = (value) => `${grouped(value)}${unit && ` ${unit}`}`;
  if (makespan > best) return ["worse", `${time(makespan - best)} longer than the best known order, which takes ${time(best)}`];
  const rest = `${time(makespan)}, and ${makespan <= bound ? "no order is shorter" : `the bound is ${time(bound)}`}`;
  if (makespan === best) return ["equal", `equal to the best known order: ${rest}`];
  return ["new best", `new best, ${time(best - makespan)} shorter: ${rest}`];
}

const refused = (...faults) => ({ code: "refused", faults });

// The verdict on a text: `code`, which is "refused", "worse", "equal" or "new best", and `faults`, sentences without a capital letter and a
// full stop. If there are none, also `sentence`, `makespan`, `bubble`, `peak` (for each device), and `orders`, a text for each device.
export function verdictOn(instance, text) {
  if (text.length > LONGEST) return refused(`the text has more than ${grouped(LONGEST)} characters`);
  const { orders: turns, paths, faults: found, circle } = judged(readLines(text));
  if (found.length) return refused(...found.map(({ sentence }) => sentence), ...(circle ? [circle] : []));
  const [path] = paths.copies;
  const sizes = anotherSize(instance, { devices: turns.length, microbatches: paths.copyOf.size, stages: path.size });
  if (sizes) return refused(sizes);
  if (paths.copies.length > 1) return refused(`the order has ${paths.copies.length} copies of the weights, but an order of the zoo has one`);
  const orders = turns.map((line) => line.map(turnText).join(" "));
  const pipeline = pipelineOf(orders);
  const devices = Array.from({ length: path.size }, (_, stage) => path.get(stage));
  const strange = misplaced(instance, devices) || anotherKind(instance, pipeline);
  if (strange) return refused(strange);
  const { makespan, bubble, peak } = figuresOf(pipeline, timesOf(pipeline, instance.costs));
  const over = overMemory(instance, peak);
  if (over) return refused(over);
  const whole = Math.round(makespan); // the times are whole, but 6 = 13 * (6 / 13) can be rounded
  const [code, sentence] = standing(instance, whole);
  return { code, sentence, faults: [], makespan: whole, bubble, peak, orders };
}
