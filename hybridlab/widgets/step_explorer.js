// A step explorer: controls, the picture of one training step on all ranks, its cursor in words, a legend, the figures as a table.
// The clock times the operations. The rings and the figures are in the data, whose shape hybridlab/widgets/step_explorer.py describes.

import { exportsOf } from "./exports.js";
import { playerOf } from "./player.js";
import { numberFrom, oneOf, wholeFrom } from "./setting.js";
import { shareRow } from "./share.js";
import { grain, keyOf, pipelineKey, stepsOf, timelineOf } from "./step_explorer_data.js";
import { pictureOf } from "./step_explorer_picture.js";
import { eventsOf, headOf, holds, momentOf, sentence, time } from "./step_explorer_words.js";
import { copiesSample, idleSample, kindSamples, markOf, MOST_ZOOM, pairSample, quantityOf, sampleOf, shadeSample } from "./timeline.js";
import { counted, freshId, keepDrawn, make, number, rootIn, selectOf } from "./view.js";

const SETTING = ["schedule", "devices", "replicas", "microbatches", "ring", "overlap", "rank", "time"];

// ---- the controls, the legend, the table ----

const RINGS = { false: "after computing", true: "beside computing" };
const ringWords = (overlap) => RINGS[overlap] ?? `when ${overlap} says`; // a text is the title of a function

function settingOf(id, data, pick) {
  const choice = (name, label) => {
    const select = selectOf(`${id}-${name}`, label, (place) => pick(name, data[name][Number(place)]));
    const words = data[name].map((value) => (name === "schedule" ? data.titles[value] : name === "overlap" ? ringWords(value) : String(value)));
    const show = (value) => select.show(data[name].indexOf(value), words.map((each, place) => [String(place), each]));
    return { element: select.element, show };
  };
  const amount = (name, label) => {
    const slider = quantityOf(`${id}-${name}`, label, null, (value) => pick(name, value));
    return { element: slider.element, show: (value) => slider.show(value, data[name], false) };
  };
  const controls = {
    schedule: choice("schedule", "Schedule"),
    devices: amount("devices", "Devices, K"),
    replicas: amount("replicas", "Replicas, D"),
    microbatches: amount("microbatches", "Microbatches, M"),
    ring: choice("ring", data.label),
    overlap: choice("overlap", "Rings run"),
  };
  const elements = Object.values(controls).map((control) => control.element);
  const element = make("div", { class: "fields", role: "group", "aria-label": "Setting" }, ...elements);
  const show = (setting) => Object.entries(controls).forEach(([name, control]) => control.show(setting[name]));
  return { element, show };
}

// The controls of the cursor: the time, which plays; a rank; and whether the picture shows the whole step or only its rings.
// `moved(time)` is called when the reader moves or plays the time.
function cursorOf(id, unit, { moved, ranked, shows }) {
  let [quiet, chosen] = [false, null];
  const player = playerOf(`${id}-time`, unit ? `Moment, ${unit}` : "Moment", (at) => {
    if (!quiet) moved(at);
  });
  const quietly = (act) => {
    quiet = true;
    act();
    quiet = false;
  };
  const rank = selectOf(`${id}-rank`, "Rank", (value) => ranked(Number(value)));
  const shown = selectOf(`${id}-shown`, "Picture shows", (value) => shows(value === "rings"));
  const element = make("div", { class: "tools", role: "group", "aria-label": "Cursor" }, player.element, rank.element, shown.element);
  const draw = (step, ringsOnly, at) => {
    element.hidden = Boolean(step.refusal);
    if (step.refusal) return player.pause();
    quietly(() => player.show({ end: step.makespan, events: eventsOf(step), told: (each) => time(step, each), time: at }));
    const views = [["all", "the whole step"], ["rings", step.all_reduce > 0 ? "the rings" : ""]];
    shown.show(ringsOnly ? "rings" : "all", views.filter(([, words]) => words));
    chosen = null;
  };
  const show = (step, own, at) => {
    if (own !== chosen) rank.show(String(own), step.ranks.map((each) => [String(each.rank), `${each.rank}, ${holds(step, each)}`]));
    chosen = own;
    if (Math.abs(player.now() - at) > grain(step)) quietly(() => player.go(at));
  };
  return { element, draw, show, stop: player.pause, playing: player.playing };
}

// What the legend depends on: the kinds of items in the picture, overlapped pairs, copies, chunks and devices.
function samplesKey({ refusal, ranks, copies, chunks, devices }) {
  if (refusal) return null;
  const present = new Set();
  for (const { items } of ranks) for (const { kind } of items) present.add(kind);
  const pairs = ranks.some(({ ops }) => ops.some((op) => op.partner));
  return { present: [...present].sort(), pairs, copies, chunks, devices };
}

function legendOf(step) {
  const { present, pairs } = samplesKey(step) ?? {};
  if (!present) return [];
  const has = (kind) => present.includes(kind);
  const { kinds, spans } = step;
  const parts = kindSamples(kinds, has);
  const words = (kind) => spans[kind].words;
  const box = { x: 1, y: 3, width: 24, height: 12, rx: 2 };
  if (has("optimiser")) {
    const body = make("rect", { width: 26, height: 18, rx: 2, fill: spans.optimiser.colour });
    const marks = ["B", "W"].flatMap((kind) => markOf(kind, 0, 0, 26, 18));
    parts.push(sampleOf(words("optimiser"), body, ...marks, make("text", { x: 13, y: 9.5 }, "opt")));
  }
  parts.push(idleSample());
  if (pairs) parts.push(pairSample(kinds));
  if (step.copies > 1) parts.push(copiesSample(kinds, step));
  else if (step.chunks > 1) parts.push(shadeSample("first to last chunk of a device", kinds.F.colours[step.chunks]));
  if (has("send")) parts.push(sampleOf(words("send"), make("rect", { class: "send", x: 1, y: 3, width: 24, height: 6 })));
  if (has("receive")) parts.push(sampleOf(words("receive"), make("rect", { class: "receive", x: 1, y: 9, width: 24, height: 6 })));
  const hop = (kind, fill) => {
    const shapes = [make("rect", { ...box, ...fill }), make("text", { x: 13, y: 9.5 }, "0")];
    parts.push(sampleOf(`${words(kind)}, number: chunk of the gradients sent`, make("g", { class: fill.stroke ? "hop gathers" : "hop" }, ...shapes)));
  };
  if (has("reduce-scatter")) hop("reduce-scatter", { fill: spans["reduce-scatter"].colour });
  if (has("all-gather")) hop("all-gather", { stroke: spans["all-gather"].colour });
  return parts;
}

const percent = (part) => `${(100 * part).toFixed(1)}\u00a0%`;

// The figures of a step. The table has a column for each way in which the rings can run. A dash stands where they cannot.
function tableOf(data, setting, { held }) {
  const unit = data.unit ? `, ${data.unit}` : "";
  const steps = data.overlap.map((overlap) => data.steps[keyOf(data, { ...setting, overlap })]);
  const { peak } = data.pipelines[pipelineKey(setting)];
  const head = (overlap) => {
    const words = { false: "No overlap", true: "Overlap" }[overlap] ?? overlap;
    if (overlap !== setting.overlap || steps.length === 1) return make("th", { scope: "col" }, words);
    return make("th", { scope: "col", class: "chosen" }, `${words} (shown)`);
  };
  const told = (step, read) => make("td", {}, step.refusal ? "\u2013" : read(step));
  const row = (words, read) => make("tr", {}, make("th", { scope: "row" }, words), ...steps.map((step) => told(step, read)));
  const rows = [
    row(`Makespan${unit}`, (step) => number(step.makespan)),
    row(`All-reduce time, rings of one device${unit}`, (step) => number(step.all_reduce)),
    row(`Exposed communication${unit}`, (step) => number(step.exposed)),
    row("Communication share of the step", (step) => percent(step.share)),
    row(`One device alone${unit}`, (step) => number(step.single)),
    row("Speedup against one device", (step) => step.speedup.toFixed(3)),
    row(`Efficiency, on ${counted(setting.devices * setting.replicas, "device")}`, (step) => percent(step.efficiency)),
    row(`Peak activations, ${held > 1 ? "device by device" : "stage by stage"}`, () => peak.map(number).join(", ")),
  ];
  const heads = make("tr", {}, make("th", { scope: "col" }, "Figure"), ...data.overlap.map(head));
  return [make("thead", {}, heads), make("tbody", {}, ...rows)];
}

// ---- the widget ----

const HINT =
  "Point at a place in the picture to read what that rank does then. A click or a tap keeps it; Escape, or a click beside the picture, " +
  "lets it go. From the keyboard: Tab to the picture, left and right to the moments of a rank, up and down to other ranks.";

// What the chosen rank does, in words. A screen reader does not hear them while the time plays.
function readoutOf() {
  const [head, text] = [make("strong"), document.createTextNode("")];
  const told = make("p", { class: "told", role: "status" }, head, text);
  const say = (title, words, playing) => {
    told.setAttribute("aria-live", playing ? "off" : "polite");
    [head.textContent, text.data] = [title, words && ` ${words}`];
  };
  return { element: told, say };
}

function render({ model, el }) {
  const root = rootIn(el, "step");
  const id = freshId();
  const data = model.get("data");
  const setting = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (changes, playing = false) => {
    const next = { ...setting(), ...changes };
    if (next.rank >= next.devices * next.replicas) next.rank = 0;
    for (const each of SETTING) if (next[each] !== model.get(each)) model.set(each, next[each]);
    if (!playing) model.save_changes(); // a kernel hears of the time when it stands still
  };
  const rules = ({ devices, replicas }) => ({
    ...Object.fromEntries(SETTING.filter((name) => data[name]).map((name) => [name, oneOf(data[name])])),
    rank: wholeFrom(0, devices * replicas - 1), time: numberFrom(0),
  });
  let [parts, stepOf, drawn, step, ringsOnly] = [null, null, null, null, false];
  // Under the pointer: a rank and a time. Pinned: a click keeps what is told. Played: the last time was set by the player.
  let [pointed, pinned, played] = [null, false, false];

  const point = (rank, time) => {
    if (rank !== null && (pinned || parts.cursor.playing())) return;
    pointed = rank === null ? null : { rank, time };
    show();
  };
  const keep = (fixed) => (rank, time) => {
    [pointed, pinned, played] = [null, fixed, false];
    pick({ rank, time });
    show();
  };
  const release = () => {
    pinned = false;
    if (step && !step.refusal) show();
  };
  const build = () => {
    stepOf = stepsOf(data);
    const controls = settingOf(id, data, (name, value) => pick({ [name]: value }));
    const notice = () => model.page?.notice();
    const picture = pictureOf(id, { tell: point, pick: keep(true), move: keep(false), changed: notice });
    const cursor = cursorOf(id, data.unit, {
      moved: (time) => {
        const at = Number(time.toPrecision(9));
        [pointed, played] = [null, played || at !== model.get("time")];
        pick({ time: at }, parts.cursor.playing());
      },
      ranked: (rank) => {
        pointed = null;
        pick({ rank });
      },
      shows: (only) => {
        [ringsOnly, drawn] = [only, null];
        show();
        notice();
      },
    });
    const [legend, table, readout] = [make("ul", { class: "legend" }), make("table"), readoutOf()];
    const hint = make("p", { class: "hint" }, HINT);
    const files = exportsOf(() => (step.refusal ? [] : [timelineOf(step, setting())]), picture.box);
    const look = {
      made: { zoom: 1, left: 0, rings: false, played: false },
      rules: () => ({
        zoom: numberFrom(1, MOST_ZOOM), left: numberFrom(0, step.makespan), rings: oneOf(step.all_reduce > 0 ? [false, true] : [false]),
        played: oneOf([false, true]),
      }),
      read: () => ({ ...picture.look(), rings: ringsOnly, played: played && model.get("time") < step.makespan }),
      show: ({ rings, played: moving, ...wide }) => {
        [ringsOnly, played, drawn] = [rings, moving, null];
        show();
        picture.showLook(wide);
      },
    };
    const row = shareRow(model, SETTING, rules, { look, files });
    const seen = make("div", {}, picture.element, cursor.element);
    const aside = make("div", { class: "readout" }, readout.element, table);
    const stage = make("div", { class: "stage" }, seen, aside, make("div", { class: "key" }, legend, hint));
    root.append(controls.element, stage, row);
    root.addEventListener("keydown", (event) => event.key === "Escape" && release());
    return { controls, picture, cursor, legend, table, readout, samples: null };
  };
  const away = (event) => {
    if (pinned && !root.querySelector(".picture")?.contains(event.target)) release();
  };
  const drawStep = (now) => {
    step = stepOf(now);
    pointed = null;
    if (!step.all_reduce) ringsOnly = false;
    parts.controls.show(now);
    parts.cursor.draw(step, ringsOnly, now.time);
    parts.picture.draw(step, ringsOnly);
    const samples = JSON.stringify(samplesKey(step));
    if (samples !== parts.samples) parts.legend.replaceChildren(...legendOf(step));
    parts.samples = samples;
    parts.table.replaceChildren(...(step.refusal ? [] : tableOf(data, now, step)));
  };
  const show = () => {
    parts ??= build();
    const now = setting();
    const allowed = rules(now);
    if (!model.page && step && !allowed.rank.fits(now.rank)) return; // Python sends a smaller mesh before the rank
    if (!SETTING.every((name) => allowed[name].fits(now[name]))) throw new Error("the setting is not one of this view");
    const key = keyOf(data, now);
    if (key !== drawn) drawStep(now);
    drawn = key;
    if (step.refusal) return parts.readout.say("", "", false);
    const time = Math.min(now.time, step.makespan);
    const moment = momentOf(step, pointed?.rank ?? now.rank, pointed?.time ?? time);
    parts.cursor.show(step, now.rank, time);
    parts.picture.mark(moment, pinned);
    parts.picture.play(played && time < step.makespan ? time : null);
    parts.readout.say(headOf(step, moment), sentence(step, moment), parts.cursor.playing());
  };
  document.addEventListener("pointerdown", away);
  const stop = () => {
    for (const part of [parts?.picture, parts?.cursor]) part?.stop();
    document.removeEventListener("pointerdown", away);
  };
  return keepDrawn(model, root, SETTING, show, stop).end;
}

export default { render };
