// Judges the text of a schedule as hybridlab.schedule does: the same faults in the same order, with the same codes, sentences and marks.
// hybridlab/schedule/text.py reads, hybridlab/schedule/validation.py judges; tests/widgets/test_validation_script.py compares both with this file.

import { neededBy, operationOf } from "./orders.js";

// ---- the text as lines of words ----

const SPACE = String.raw`\p{White_Space}\x1c-\x1f`; // what Python takes for a space
const BETWEEN = `${SPACE},;"`; // what can stand between words: spaces, and the separators and quotation marks of a CSV
const LABEL = new RegExp(`^[${BETWEEN}]*device[${SPACE}]+([0-9]{1,9})(?:[${SPACE}]*:|(?=[${BETWEEN}]|$))`, "iu");
const WORDS = new RegExp(String.raw`\([^()]*\)[\p{L}\p{N}_]*|[^${BETWEEN}]+`, "gu"); // a pair is one word even if it contains spaces
const BLANK = new RegExp(`^[${BETWEEN}]*$`, "u");
const COMMUNICATION = /^[0-9]{1,9}(?:(?:SEND|RECV)_[FB]|UNSHARD|RESHARD|REDUCE_GRAD|WAIT_[A-Z]+(?:_[A-Z]+)*)(?:[0-9]{1,9})?$/;
const SEPARATOR_LINE = /^ *"?sep=[,;\t|]"?[ \t;,]*$/i; // the first line of some files of spreadsheets
const COMMENT = /^[ "]*#/;
const PAIR = /^\(([^();]*);([^();]*)\)(?:OVERLAP_F_B)?$/u;
const LIST = new RegExp(String.raw`^([^\[\]]*)\[([^\[\]]*)\]([${BETWEEN}]*)$`, "u"); // a line that torch prints: [0F0, None, 0B0]
const IDLE = /(?<![\p{L}\p{N}_])None(?![\p{L}\p{N}_])/gu;
const EDGES = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");
const UNPRINTED = /(?! )[\p{C}\p{Z}]/gu;
const ESCAPED = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

// A word as Python's repr shows it, cut to 60 characters.
function quoted(word) {
  const mark = word.includes("'") && !word.includes('"') ? '"' : "'";
  const code = (each, digits) => each.codePointAt(0).toString(16).padStart(digits, "0");
  const escaped = (each) => (each < "\u0100" ? `\\x${code(each, 2)}` : each.length < 2 ? `\\u${code(each, 4)}` : `\\U${code(each, 8)}`);
  const hidden = (each) => ESCAPED[each] ?? escaped(each);
  const inside = word.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`).replace(UNPRINTED, hidden);
  const letters = [...`${mark}${inside}${mark}`];
  return letters.length > 60 ? `${letters.slice(0, 57).join("")}...` : letters.join("");
}

const unread = (part) => `${quoted(part)} is not an operation: write stage, kind (F, B, I, W), microbatch, like 2F0`;

// A word of a line: its text, its place in the whole text, and its turn: one operation, or the two of an overlapped pair. The turn of a
// word that cannot be read is empty, and `why` says why.
function wordAt(text, start) {
  const parts = PAIR.exec(text)?.slice(1).map((part) => part.replace(EDGES, "")) ?? [text];
  const turn = parts.map(operationOf);
  const wrong = turn.indexOf(null);
  return { text, start, end: start + text.length, turn: wrong < 0 ? turn : [], why: wrong < 0 ? "" : unread(parts[wrong]) };
}

// A line that is a list in brackets with spaces instead of the brackets, so that each word keeps its column.
function withoutBrackets(line) {
  const [, label, words, end] = LIST.exec(line) ?? [];
  return label === undefined ? line : `${label} ${words.replace(IDLE, "    ")} ${end}`;
}

// The lines of a text that have words, one for each device, with their words and the place at which the words of the line begin. A CSV is
// such a text, too. Comments and communication are left out. `fault` is the first fault of a line, or null.
export function readLines(text) {
  const lines = [];
  let start = text.startsWith("\ufeff") ? 1 : 0; // some Windows programs put this byte order mark before a text
  // Lines and line ends in turn, from place 0.
  text.slice(start).split(/(\r\n|\r|\n)/).forEach((part, place) => {
    const left = place % 2 || BLANK.test(part) || COMMENT.test(part) || (!place && SEPARATOR_LINE.test(part));
    if (!left) lines.push(readLine(withoutBrackets(part), start, place / 2 + 1, lines.length));
    start += part.length;
  });
  return lines;
}

function readLine(line, start, number, device) {
  const [label, told] = LABEL.exec(line) ?? ["", null];
  const found = [...line.slice(label.length).matchAll(WORDS)].filter(([word]) => !COMMUNICATION.test(word));
  const words = found.map((each) => wordAt(each[0], start + label.length + each.index));
  const at = (place) => `line ${number}, column ${[...line.slice(0, place - start)].length + 1}`;
  const wrong = words.findIndex(({ why }) => why);
  let fault = null;
  if (label && Number(told) !== device) {
    const sentence = `${at(start)}: device ${device} must come here, not device ${told}`;
    fault = { sentence, code: "wrong-device-number", device, position: null };
  } else if (wrong >= 0) {
    const sentence = `${at(words[wrong].start)}: ${words[wrong].why}`;
    fault = { sentence, code: "unknown-operation", device, position: wrong };
  }
  return { words, fault, start, from: start + label.length, end: start + line.length };
}

// ---- words as in an order ----

const KINDS_IN_WORDS = { F: "forward", B: "backward", I: "input gradient", W: "weight gradient" };
const OWN_INPUT = { B: "F", I: "F", W: "I" };
const MOST_NAMED = 12;
const MOST_FAULTS = 24;

export const turnText = (turn) => (turn.length === 1 ? turn[0].text : `(${turn.map(({ text }) => text).join(";")})`);

function ofMicrobatches(numbers) {
  if (numbers.length === 1) return `of microbatch ${numbers[0]}`;
  if (numbers.length <= MOST_NAMED) return `of microbatches ${numbers.join(", ")}`;
  return `of ${numbers.length} microbatches, ${numbers[0]}, ${numbers[1]}, ... ${numbers.at(-1)}`;
}

// ---- the devices of stages ----

function balanced(path, devices) {
  const visited = [...path.values()];
  return new Set([...devices].map((device) => visited.filter((each) => each === device).length)).size === 1;
}

// The device of every stage for each copy of the weights, and the copy that each microbatch runs through. Microbatches that visit the
// same devices in the same order share a copy. Several paths count only if each visits every stage and has as many on every device.
function pathsOf(placed) {
  const [one, own] = [new Map(), new Map()]; // stage -> device; microbatch -> the same for this microbatch
  for (const { op, device } of placed) {
    one.set(op.stage, device);
    const map = own.get(op.microbatch) ?? new Map();
    if (!map.has(op.stage)) map.set(op.stage, device);
    own.set(op.microbatch, map);
  }
  const ascending = (map) => [...map].sort(([a], [b]) => a - b);
  const whole = ascending(own).filter(([, path]) => path.size === one.size).map(([, path]) => ascending(path));
  const copies = [...new Map(whole.map((path) => [path.join(), path])).values()].map((path) => new Map(path));
  const devices = new Set(one.values());
  if (copies.length < 2 || !copies.every((path) => balanced(path, devices))) {
    return { copies: [one], copyOf: new Map([...own.keys()].map((microbatch) => [microbatch, 0])) };
  }
  const within = (mine) => copies.findIndex((path) => [...mine].every(([stage, device]) => path.get(stage) === device));
  return { copies, copyOf: new Map([...own].map(([microbatch, mine]) => [microbatch, Math.max(within(mine), 0)])) };
}

const deviceOf = ({ copies, copyOf }, { stage, microbatch }) => copies[copyOf.get(microbatch)].get(stage);

// ---- faults ----

const numbersTo = (end) => Array.from({ length: end }, (_, each) => each);
const firstGap = (numbers) => {
  let gap = 0;
  while (numbers.has(gap)) gap += 1;
  return gap;
};

// What is missing, doubled, or on the wrong device.
function incomplete(placed, devices, paths) {
  const alone = (sentence, code, mark = {}) => [{ sentence, code, ...mark }];
  if (!placed.length) return alone("there is no operation in it: give each device an order such as 0F0 0B0", "empty-schedule");
  const [path] = paths.copies;
  const [seen, listed] = [new Set(), new Set(path.keys())];
  let [stages, microbatches] = [0, 0];
  for (const stage of listed) stages = Math.max(stages, stage + 1);
  for (const { op } of placed) {
    seen.add(op.microbatch);
    microbatches = Math.max(microbatches, op.microbatch + 1);
  }
  const advice = (thing, last) => `${thing} ${last - 1} is there`;
  if (firstGap(listed) < stages) {
    return alone(`no device runs stage ${firstGap(listed)}, but ${advice("stage", stages)}: number stages 0, 1, 2, ...`, "missing-stage");
  }
  if (firstGap(seen) < microbatches) {
    const there = `${advice("microbatch", microbatches)}: number them 0, 1, 2, ...`;
    return alone(`no operation is of microbatch ${firstGap(seen)}, but ${there}`, "missing-microbatch");
  }
  const astray = placed.find(({ op, device }) => deviceOf(paths, op) !== device);
  if (astray) {
    const { op, device } = astray;
    const places = `stage ${op.stage} stands on device ${device} (${op.text}) and on device ${deviceOf(paths, op)}`;
    return alone(`${places}; a stage lives on one device`, "stage-on-two-devices", astray);
  }
  return [...uneven(path, devices), ...doubled(placed), ...missing(placed, stages, microbatches)].slice(0, MOST_FAULTS);
}

function uneven(path, devices) {
  const held = numbersTo(devices).map(() => 0);
  for (const device of path.values()) held[device] += 1;
  if (new Set(held).size < 2) return [];
  const counts = held.map((count, device) => `device ${device} holds ${count}`).join(", ");
  return [{ sentence: `every device must hold the same number of stages, but ${counts}`, code: "uneven-stages" }];
}

function doubled(placed) {
  const times = new Map();
  for (const { op } of placed) times.set(op.text, (times.get(op.text) ?? 0) + 1);
  return placed.flatMap(({ op, device, position }) => {
    const often = times.get(op.text);
    times.set(op.text, 1);
    if (often === 1) return [];
    const work = `stage ${op.stage} runs the ${KINDS_IN_WORDS[op.kind]} of microbatch ${op.microbatch}`;
    return [{ sentence: `${work} ${often === 2 ? "twice" : `${often} times`}`, code: "doubled-operation", device, position }];
  });
}

function missing(placed, stages, microbatches) {
  const there = new Set(placed.map(({ op }) => op.text));
  const lacks = {
    "missing-forward": [(F) => !F, (which) => `never runs the forward ${which}`],
    "missing-backward": [(_, B, I, W) => !(B || I || W), (which) => `never runs the backward ${which}`],
    "full-and-split-backward": [
      (_, B, I, W) => B && (I || W),
      (which) => `runs a full backward (B) ${which} and a part of it (I or W) as well: one or the other`,
    ],
    "missing-weight-gradient": [
      (_, B, I, W) => I && !(B || W),
      (which) => `never runs the weight gradient ${which}: its backward is I, so W must follow`,
    ],
    "missing-input-gradient": [
      (_, B, I, W) => W && !(B || I),
      (which) => `never runs the input gradient ${which}, which its weight gradient needs`,
    ],
  };
  return numbersTo(stages).flatMap((stage) => {
    const found = new Map(); // code -> microbatches, in the order in which the codes first come
    for (const microbatch of numbersTo(microbatches)) {
      const kinds = ["F", "B", "I", "W"].map((kind) => there.has(`${stage}${kind}${microbatch}`));
      for (const [code, [isSo]] of Object.entries(lacks)) {
        if (isSo(...kinds)) found.set(code, [...(found.get(code) ?? []), microbatch]);
      }
    }
    return [...found].map(([code, affected]) => ({ sentence: `stage ${stage} ${lacks[code][1](ofMicrobatches(affected))}`, code }));
  });
}

function wrongPairs(orders) {
  const wanted = "an overlapped pair is a forward and a full backward (B) of another stage or microbatch";
  const isPair = ([one, other]) =>
    [one.kind, other.kind].sort().join("") === "BF" && (one.stage !== other.stage || one.microbatch !== other.microbatch);
  return orders.flatMap((turns, device) =>
    turns.flatMap((turn, position) => {
      if (turn.length === 1 || isPair(turn)) return [];
      return [{ sentence: `device ${device} runs ${turnText(turn)} at the same time: ${wanted}`, code: "not-a-pair", device, position }];
    }),
  );
}

function tooEarly(placed) {
  const first = new Map();
  for (const { op, device, position } of placed) {
    const place = `${op.text} ${device}`;
    if (!first.has(place)) first.set(place, position);
  }
  return placed.flatMap(({ op, device, position }) => {
    const needed = OWN_INPUT[op.kind] && `${op.stage}${OWN_INPUT[op.kind]}${op.microbatch}`;
    if (!((first.get(`${needed} ${device}`) ?? -1) > position)) return [];
    const why = `the ${KINDS_IN_WORDS[OWN_INPUT[op.kind]]} that it needs`;
    return [{ sentence: `device ${device} runs ${op.text} before ${needed}, ${why}`, code: "too-early", device, position }];
  });
}

// ---- how far devices come ----

// Runs the turns of each device as far as their inputs exist. Returns `at`, the number of turns that each device has run, and `done`, the
// texts of all operations that have run. An input that is in no order never exists. `lacks(op)` is the text of an operation that has to
// run before, or undefined.
export function runUntilStopped(orders, stages) {
  const named = new Set(orders.flat(2).map(({ text }) => text));
  const inputOf = (op) => neededBy(op, stages, (text) => named.has(text));
  const [at, done] = [orders.map(() => 0), new Set()];
  const lacks = (op) => {
    if (op.kind === "F" && !op.stage) return undefined;
    const own = OWN_INPUT[op.kind] ? [`${op.stage}${OWN_INPUT[op.kind]}${op.microbatch}`] : [];
    return [inputOf(op) ?? `${op.stage + 1}B${op.microbatch}`, ...own].find((text) => !done.has(text));
  };
  let goesOn = true;
  while (goesOn) {
    goesOn = false;
    orders.forEach((turns, device) => {
      while (at[device] < turns.length && !turns[at[device]].some(lacks)) {
        for (const { text } of turns[at[device]]) done.add(text);
        at[device] += 1;
        goesOn = true;
      }
    });
  }
  return { at, done, inputOf, lacks };
}

// The devices that wait for ever, each with the operation at which it stops, and the circle of devices that wait for each other.
function blocked(orders, paths) {
  const { at, done, inputOf } = runUntilStopped(orders, paths.copies[0].size);
  const [faults, waits] = [[], new Map()];
  orders.forEach((turns, device) => {
    if (at[device] === turns.length) return;
    const op = turns[at[device]].find((each) => inputOf(each) && !done.has(inputOf(each)));
    const needed = inputOf(op);
    const other = deviceOf(paths, operationOf(needed));
    const current = orders[other][at[other]];
    const stops = current.some(({ text }) => text === needed);
    const where = stops ? `where device ${other} stops too` : `which is behind ${turnText(current)} on device ${other}`;
    const sentence = `device ${device} stops at ${op.text}: it waits for ${needed}, ${where}`;
    faults.push({ sentence, code: "deadlock", device, position: at[device] });
    waits.set(device, other);
  });
  return { faults, circle: circleOf(waits) };
}

function circleOf(waits) {
  if (!waits.size) return "";
  const way = [waits.keys().next().value];
  while (!way.includes(waits.get(way.at(-1)))) way.push(waits.get(way.at(-1)));
  const circle = way.slice(way.indexOf(waits.get(way.at(-1))));
  const others = circle.slice(1, MOST_NAMED).map((device) => `device ${device}`);
  if (circle.length > MOST_NAMED) others.push("...");
  return `device ${circle[0]} waits for ${[...others, others.length ? `device ${circle[0]}` : "itself"].join(", which waits for ")}`;
}

// ---- the judgement ----

// Judges lines from readLines. Returns
//   orders  the turns of each device, without the words that cannot be read
//   faults  in Python's order; each has `sentence` and `code`, and `device` and `position` if a word can be marked
//   circle  in a deadlock, a sentence about the devices that wait for each other
//   paths   the device of each stage for each copy of the weights, and the copy of each microbatch
// A text that cannot be read has one fault, as in Python, which stops there.
export function judged(lines) {
  const orders = lines.map(({ words }) => words.filter(({ why }) => !why).map(({ turn }) => turn));
  const placed = orders.flatMap((turns, device) => turns.flatMap((turn, position) => turn.map((op) => ({ op, device, position }))));
  const paths = pathsOf(placed);
  const found = (faults, circle = "") => {
    return { orders, paths, circle, faults: faults.map((each) => ({ device: null, position: null, ...each })) };
  };
  if (!lines.length) return found([{ sentence: "the text is empty: write one line a device, like: device 0: 0F0 0B0", code: "empty" }]);
  const wrong = lines.find(({ fault }) => fault);
  if (wrong) return found([wrong.fault]);
  const [first, early] = [[...incomplete(placed, orders.length, paths), ...wrongPairs(orders)], tooEarly(placed)];
  if (first.length || early.length) return found([...first, ...early]);
  const { faults, circle } = blocked(orders, paths);
  return found(faults, circle);
}
