// A cluster explorer: controls, the time of an iteration, its picture, its numbers as tables, a map of all plans, pinned plans,
// and the times that a reader's own functions give.

import { tableOf } from "./chart.js";
import { barsOf, lookOf } from "./cluster_explorer_bars.js";
import { mapOf, mapView } from "./cluster_explorer_map.js";
import { ownView } from "./cluster_explorer_own.js";
import { plannerOf } from "./cluster_explorer_plans.js";
import { MEMORY, counts, differences, fitWords, seconds, settingWords, share, three, valueWord } from "./cluster_explorer_words.js";
import { oneOf, oneOfEach } from "./setting.js";
import { shareRow } from "./share.js";
import { freshId, grouped, keepDrawn, listed, make, number, rootIn, selectOf } from "./view.js";

// the traits of the setting
const SETTING = [
  "model", "gpu", "link", "tensor", "stages", "replicas", "wire", "recompute", "sequence_parallel", "chunks", "microbatches", "microbatch"
];
const ON_MAP = ["model", "gpu", "link", "wire"]; // all plans of a map share these, the number of GPUs and the number of samples

function headOf({ refusal, seconds: time, tflops, gpus, memory }) {
  const count = counts(gpus, "GPU");
  if (refusal) return ["Not possible", ` on ${count}: ${refusal}.`];
  return [seconds(time), ` an iteration on ${count}, ${three(tflops)} TFLOP/s each. It fits: ${fitWords(memory)}.`];
}

// Says what the last change did: "Before, with Stages K = 8: 20.7 s; now 0.565 times as long."
function beforeWords(data, now, before) {
  if (!before) return "";
  const changed = differences(data, now.setting, before.setting);
  const head = `Before, with ${changed.map(([label, , earlier]) => `${label} = ${earlier}`).join(", ")}`;
  if (before.refusal) return `${head}: not possible.`;
  if (now.refusal) return `${head}: ${seconds(before.seconds)}.`;
  return `${head}: ${seconds(before.seconds)}; now ${number(Number((now.seconds / before.seconds).toPrecision(3)))} times as long.`;
}

// ---- the two plans that a reader has pinned: buttons, a table, and a sentence on the difference ----

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
function pinsOf(data, pin) {
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

// ---- the tables and the widget ----

// A name after a square of its colour.
function keyOf(words, look) {
  const swatch = make("svg", { width: 14, height: 14, "aria-hidden": "true" });
  swatch.append(make("rect", { x: 0.5, y: 0.5, width: 13, height: 13, class: "part", ...look }));
  return make("span", { class: "key" }, swatch, words);
}

function timeTable({ parts, seconds: whole }, before, id) {
  const earlier = before && !before.refusal ? before.parts : null;
  const rows = parts.map((part, place) => {
    const numbers = [three(part.seconds), share(part.seconds, whole), ...(earlier ? [three(earlier[place].seconds)] : [])];
    return [keyOf(part.words, lookOf(part, id)), ...numbers];
  });
  const total = ["together", three(whole), "100 %", ...(earlier ? [three(before.seconds)] : [])];
  return tableOf("Parts of the iteration", ["", "seconds", "share", ...(earlier ? ["before"] : [])], [...rows, total]);
}

function memoryTable({ memory }) {
  const rows = Object.entries(MEMORY).map(([name, words]) => [keyOf(words, { class: `part ${name}` }), memory[name].toFixed(1)]);
  const sums = [["together", memory.total.toFixed(1)], ["capacity of a GPU", number(memory.capacity)]];
  return tableOf("Memory of the fullest GPU", ["", "GB"], [...rows, ...sums]);
}

function render({ model, el }) {
  const root = rootIn(el, "cluster");
  const id = freshId();
  const data = model.get("data");
  const pick = (setting) => {
    for (const [name, value] of Object.entries(setting)) model.set(name, value);
    model.save_changes();
  };
  const pins = {};
  const rules = () => Object.fromEntries(data.axes.map(({ name, values }) => [name, oneOf(values)]));
  // The pinned plans in links: the values of a plan in the order of the setting, or nothing.
  const pinRule = () => {
    const plan = oneOfEach(SETTING.map((name) => data.axes.find((axis) => axis.name === name).values));
    return { ...plan, fits: (words) => !words.length || plan.fits(words), first: [] };
  };
  const readingOf = (words) => {
    const valueAt = (name, place) => data.axes.find((axis) => axis.name === name).values.find((value) => String(value) === words[place]);
    return parts.planner.read(Object.fromEntries(SETTING.map((name, place) => [name, valueAt(name, place)])));
  };
  const look = {
    made: { A: [], B: [] },
    rules: () => ({ A: pinRule(), B: pinRule() }),
    read: () => Object.fromEntries(["A", "B"].map((letter) => [letter, pins[letter] ? SETTING.map((name) => String(pins[letter].setting[name])) : []])),
    show: (given) => {
      for (const [letter, words] of Object.entries(given)) {
        if (words.length) pins[letter] = readingOf(words);
        else delete pins[letter];
      }
      parts.showPins();
    },
  };
  let [parts, now, before, map, mapped] = [null, null, null, null, null];

  const setUp = () => {
    const controlOf = ({ name, label, values }) => selectOf(`${id}-${name}`, label, (place) => pick({ [name]: values[Number(place)] }));
    const controls = data.axes.map(controlOf);
    const fields = make("div", { class: "fields", role: "group", "aria-label": "Model, cluster and plan" });
    fields.append(...controls.map((control) => control.element));
    const bars = barsOf(id);
    const showPins = () => {
      pinned.draw(pins);
      plane.draw(map, now, pins);
    };
    const pinned = pinsOf(data, (letter) => {
      pins[letter] = now;
      showPins();
      model.page?.notice();
    });
    const plane = mapView(data, pick, pinned.buttons);
    const told = make("p", { class: "told", role: "status" });
    const plan = make("p", { class: "told plan" });
    const tables = [make("table", { class: "time" }), make("table", { class: "memory" })];
    const own = ownView(data, !model.page, `${id}-own`);
    const readout = make("div", { class: "readout" }, told, bars.element);
    const views = make("div", { class: "views" }, readout, plane.element, pinned.element);
    root.append(fields, views, own.element, make("div", { class: "figures" }, ...tables), plan, shareRow(model, SETTING, rules, { look }));
    return { planner: plannerOf(data), controls, bars, plane, told, plan, own, tables, showPins };
  };
  // The map of the setting, which stays the same object while its plans stay the same.
  const mapFor = (reading) => {
    const { replicas, microbatches, microbatch } = reading.setting;
    const key = JSON.stringify([...ON_MAP.map((name) => reading.setting[name]), reading.gpus, replicas * microbatches * microbatch]);
    if (key !== mapped) map = mapOf(parts.planner, reading.setting, reading.capacity);
    mapped = key;
    return map;
  };
  const show = () => {
    parts ??= setUp();
    const offered = data.axes.every(({ name, values }) => values.includes(model.get(name)));
    if (!offered) throw new Error("the setting is not one of this view");
    const reading = parts.planner.read(Object.fromEntries(SETTING.map((name) => [name, model.get(name)])));
    if (now && settingWords(data, now) !== settingWords(data, reading)) before = now;
    now = reading;
    parts.controls.forEach((control, place) => {
      const { name, values } = data.axes[place];
      control.show(String(values.indexOf(reading.setting[name])), values.map((value, each) => [String(each), valueWord(value)]));
    });
    const [strong, rest] = headOf(reading);
    parts.told.replaceChildren(make("strong", {}, strong), rest, " ", beforeWords(data, reading, before));
    parts.bars.draw(reading, before);
    parts.plane.draw(mapFor(reading), reading, pins);
    parts.tables[0].replaceChildren(...(reading.refusal ? [] : timeTable(reading, before, id)));
    parts.tables[1].replaceChildren(...(reading.memory ? memoryTable(reading) : []));
    parts.own.draw(model.get("own"), reading);
    parts.plan.textContent = settingWords(data, reading);
  };
  const stop = () => {
    parts?.bars.stop();
    parts?.plane.stop();
    parts?.own.stop();
  };
  return keepDrawn(model, root, [...SETTING, "own"], show, stop).end;
}

export default { render };
