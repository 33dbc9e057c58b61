// A schedule editor: the reader writes the order of each device as text or moves chips, and sees the timeline, its figures and the goals.
// Judging the text and timing the order need no kernel: validation.js, puzzle.js and clock.js do it, held against Python by tests.

import { exportsOf, save } from "./exports.js";
import { playerOf } from "./player.js";
import { judgedFor, reachedBy, timelineSoFar } from "./puzzle.js";
import { chipsOf } from "./schedule_editor_chips.js";
import { nameIn, numberFrom, orNull, textUpTo } from "./setting.js";
import { shareRow } from "./share.js";
import { pictureOf } from "./timeline_explorer_picture.js";
import { playedOf } from "./timeline_words.js";
import { readLines } from "./validation.js";
import { counted, field, freshId, keepDrawn, make, number, rootIn } from "./view.js";

const SETTING = ["text"];
const LONGEST = 100000; // characters of a text; hybridlab/widgets/schedule_editor.py has the same limit
const CALM = 700; // ms after the last key until the judgement is read out

// ---- the data ----

function goalOf(data) {
  const { costs, goals, starts, kinds, devices, microbatches, chunks } = data ?? {};
  const sizes = [devices, microbatches, chunks].every((size) => Number.isInteger(size) && size > 0);
  const times = costs && ["forward", "backward", "weight_share"].every((name) => costs[name]?.length === devices && costs[name].every(Number.isFinite));
  const lists = [goals, starts].every((list) => Array.isArray(list) && list.length);
  if (!(sizes && times && lists && kinds && [costs.p2p, costs.overlap].every(Number.isFinite))) throw new Error("a part of the data is missing");
  const chunked = chunks > 1 ? [`${chunks} chunks a device`] : [];
  const about = [counted(devices, "device"), counted(microbatches, "microbatch"), ...chunked].join(", ");
  return { ...data, about: { title: "Your schedule", sizes: about, unit: data.unit, kinds, setting: { schedule: "schedule" } } };
}

// ---- words ----

const sentenceOf = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const withUnit = (task, time) => (task.unit ? `${number(time)} ${task.unit}` : number(time));

function verdictOf({ faults }, timeline) {
  if (!faults.length) return "This order is complete and can run.";
  return timeline ? `No schedule yet: ${counted(timeline.ops.length, "operation")} can run.` : "No schedule yet: nothing can run.";
}

// ---- steps back ----

// The texts to go back to. Letters typed into one word are one step.
function historyOf(text) {
  let [past, now, future, typed] = [[], text, [], false];
  const words = (each) => each.split(/\s+/).length;
  const put = (next, typing = false) => {
    if (next === now) return;
    if (!(typing && typed && words(next) === words(now))) past.push(now);
    [now, future, typed] = [next, [], typing];
  };
  const step = (from, to) => {
    if (!from.length) return null;
    to.push(now);
    [now, typed] = [from.pop(), false];
    return now;
  };
  const replace = (next) => (now = next);
  return { put, replace, undo: () => step(past, future), redo: () => step(future, past), steps: () => [past.length, future.length] };
}

// The end of the part in which two texts differ, in the new one.
function changeIn(before, after) {
  let end = 0;
  while (end < Math.min(before.length, after.length) && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return after.length - end;
}

// The text after the word at place `from` of a line has moved to place `to`.
function withMoved(text, line, from, to) {
  const words = line.words.map((word) => word.text);
  words.splice(to, 0, ...words.splice(from, 1));
  const [first, last] = [line.words[0].start, line.words.at(-1).end];
  return `${text.slice(0, first)}${words.join(" ")}${text.slice(last)}`;
}

// ---- the best schedule, which the browser keeps ----

const KEPT_BEST = "hybridlab.schedule."; // followed by the name of the puzzle

function bestOf(name) {
  let here = "";
  const read = () => {
    try {
      const text = localStorage.getItem(KEPT_BEST + name) ?? here;
      return text.length <= LONGEST ? text : "";
    } catch {
      return here; // the browser has no storage
    }
  };
  const keep = (text) => {
    here = text;
    try {
      localStorage.setItem(KEPT_BEST + name, text);
    } catch {
      // it lasts as long as the page
    }
  };
  return { read, keep };
}

// ---- parts of the view ----

function buttonFor(label, act, more = {}) {
  const button = make("button", { type: "button", ...more }, label);
  button.addEventListener("click", act);
  return button;
}

function writingOf(id, task, changed) {
  const area = make("textarea", {
    rows: Math.min(task.devices, 8), wrap: "off", spellcheck: "false", autocapitalize: "off", autocomplete: "off", maxlength: LONGEST,
    "aria-describedby": `${id}-verdict`,
  });
  area.addEventListener("input", () => changed(area.value));
  const element = field(`${id}-text`, "Your schedule, one line for each device", area);
  const show = (text) => {
    if (area.value === text) return;
    const caret = changeIn(area.value, text);
    area.value = text;
    area.setSelectionRange(caret, caret);
  };
  const select = (start, end) => {
    area.focus();
    area.setSelectionRange(start, end);
    const letter = area.scrollWidth / Math.max(...area.value.split("\n").map((line) => line.length), 1);
    area.scrollLeft = (start - area.value.lastIndexOf("\n", start - 1)) * letter - area.clientWidth / 2;
  };
  return { element, show, select };
}

function startsOf(id, task, put) {
  const select = make("select", {}, ...task.starts.map(({ name, title }) => make("option", { value: name }, title)));
  const use = buttonFor("Use", () => put(task.starts.find(({ name }) => name === select.value).text), { "aria-label": "Use this schedule" });
  return make("div", { class: "starts" }, field(`${id}-start`, "Start from", select), use);
}

function faultsOf(goTo) {
  const list = make("ul", { class: "faults" });
  const show = (lines, { faults, circle }) => {
    const marked = ({ device, position }) => device !== null && (lines[device]?.words[position] ?? lines[device]);
    const items = faults.map((fault) => {
      const item = make("li", {}, sentenceOf(fault.sentence));
      if (marked(fault)) item.append(" ", buttonFor("Go there", () => goTo(marked(fault))));
      return item;
    });
    list.replaceChildren(...items, ...(circle ? [make("li", {}, sentenceOf(circle))] : []));
    list.hidden = !faults.length;
  };
  return { element: list, show };
}

function figuresIn(task) {
  const table = make("table");
  const show = (timeline) => {
    const room = task.memory ? ` (room for ${task.memory})` : "";
    const rows = timeline ? [
      ["Makespan", withUnit(task, timeline.makespan)],
      ["Bubble ratio", timeline.bubble.toFixed(3)],
      ["Peak activations", timeline.peak.map(number).join(", ") + room],
    ] : [];
    const row = ([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value));
    table.replaceChildren(make("tbody", {}, ...rows.map(row)));
  };
  return { element: table, show };
}

function goalsOf(task) {
  const items = task.goals.map(({ words, makespan }) => {
    const mark = make("span", { class: "sign", "aria-hidden": "true" });
    const state = make("span", { class: "unseen" });
    const time = makespan === null || / \d[\d.]* /.test(`${words} `) ? "" : `: ${withUnit(task, makespan)}`;
    return { mark, state, element: make("li", {}, mark, state, `${words}${time}`) };
  });
  const show = (reached) => {
    task.goals.forEach(({ name }, place) => {
      const stands = reached.includes(name);
      items[place].mark.textContent = stands ? "✓" : "○";
      items[place].state.textContent = stands ? "reached: " : "not reached: ";
      items[place].element.classList.toggle("reached", stands);
    });
  };
  const list = make("ol", { class: "goals" }, ...items.map(({ element }) => element));
  return { element: make("div", {}, make("p", { class: "head" }, "Goals: the schedule"), list), show };
}

// ---- the widget ----

function render({ model, el }) {
  const root = rootIn(el, "editor");
  const id = freshId();
  const now = { text: "", lines: [], reached: [], timeline: null };
  let [parts, history, timer, frame, drawn, first] = [null, null, 0, 0, null, true];
  const best = bestOf(model.get("data")?.name || "");

  const place = (text) => {
    model.set("text", text);
    model.save_changes();
  };
  const put = (text, typing = false) => {
    history.put(text, typing);
    place(text);
  };
  const back = (text) => text !== null && place(text);
  const moved = (device, from, to, begins) => {
    const text = withMoved(now.text, now.lines[device], from, to);
    if (begins) history.put(text);
    else history.replace(text);
    place(text);
    again();
    parts.said.textContent = `${now.lines[device].words[to].text} is now at place ${to + 1} of ${now.lines[device].words.length}.`;
  };
  const announce = (task, sentence, reached) => {
    const gained = task.goals.filter(({ name }) => reached.includes(name) && !now.reached.includes(name));
    clearTimeout(timer);
    if (first) return;
    const goals = gained.map(({ words }) => ` Goal reached: the schedule ${words}.`).join("");
    timer = setTimeout(() => (parts.said.textContent = sentence + goals), CALM);
  };

  const notice = () => model.page?.notice();
  const picture = pictureOf(id, () => {}, false, notice);
  const player = playerOf(`${id}-time`, "Time", (time) => {
    picture.moveTime(time);
    if (!player.playing()) notice();
  });
  const saveText = (say) => say(`Saved ${save(["schedule.txt", now.text, "text/plain"])}.`);
  const saving = exportsOf(() => (now.timeline ? [now.timeline] : []), picture.element);
  const look = {
    made: { time: null, chosen: "", left: 0 },
    rules: () => {
      drawPicture();
      return {
        time: orNull(numberFrom(0, player.end())), chosen: nameIn(picture.has, "an operation of the picture, such as 0F0"),
        left: numberFrom(0, player.end()),
      };
    },
    read: () => ({ time: player.part(), ...picture.look() }),
    show: ({ time, ...kept }) => {
      player.go(time ?? player.end());
      picture.showLook(kept);
    },
  };
  const row = shareRow(model, SETTING, () => ({ text: textUpTo(LONGEST) }), { look, files: [["Save text", saveText], ...saving] });

  // Keys that follow each other quickly share a drawing, so the text never waits for the picture.
  const drawPicture = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    if (now.timeline?.order === drawn && !first) return;
    drawn = now.timeline?.order;
    const shown = now.timeline ? [now.timeline] : [];
    picture.draw(shown);
    player.show(playedOf(shown));
  };

  const build = (task) => {
    const writing = writingOf(id, task, (text) => put(text, true));
    const colours = Object.fromEntries(Object.entries(task.kinds).map(([kind, { colours: of }]) => [kind, of[1][0]]));
    const chips = chipsOf(id, colours, moved, () => back(history.undo()));
    const faults = faultsOf(({ start, end }) => writing.select(start, end));
    const [figures, goals] = [figuresIn(task), goalsOf(task)];
    const said = make("p", { class: "unseen", "aria-live": "polite" });
    const verdict = make("p", { class: "verdict", id: `${id}-verdict` });
    const [undo, redo] = [buttonFor("Undo", () => back(history.undo())), buttonFor("Redo", () => back(history.redo()))];
    const kept = make("p", { class: "best" });
    const showBest = buttonFor("Show it", () => put(best.read()));
    const tools = make("div", { class: "tools" }, startsOf(id, task, put), make("div", {}, undo, redo));
    const files = make("details", {}, make("summary", {}, "Link and files"), row);
    const keeping = make("div", { class: "keeping" }, kept, showBest, files);
    const write = make("div", { class: "write" }, writing.element, tools, chips.element, keeping);
    const judgement = make("div", { class: "judgement", role: "group", "aria-label": "Judgement", tabindex: 0 }, verdict, faults.element);
    const side = make("div", { class: "side" }, judgement, figures.element, goals.element);
    const stage = make("div", { class: "stage" }, player.element, picture.element, picture.told);
    const head = task.puzzle ? [task.title, ` ${task.sentence}`] : [task.about.title, `, ${task.about.sizes}`];
    root.replaceChildren(make("p", { class: "task" }, make("strong", {}, head[0]), head[1]), make("div", { class: "editor" }, write, side, stage), said);
    return { task, writing, chips, faults, figures, goals, said, verdict, undo, redo, kept, showBest };
  };

  let ranked = { text: null, rank: null }; // the kept text, its number of goals and its makespan
  const showKept = (task, judgement, timeline, reached) => {
    const rank = (text) => {
      const lines = readLines(text);
      const judged = judgedFor(task, lines);
      const times = judged.faults.length ? null : timelineSoFar(task, judged, task.about);
      return times && [reachedBy(task, judged, times).length, -times.makespan];
    };
    if (best.read() !== ranked.text) ranked = { text: best.read(), rank: rank(best.read()) };
    let held = ranked.rank;
    const own = judgement.faults.length ? null : [reached.length, -timeline.makespan];
    if (own && history.steps()[0] && (!held || own[0] > held[0] || (own[0] === held[0] && own[1] > held[1]))) {
      best.keep(now.text);
      held = own;
    }
    parts.kept.textContent = held ? `Your best so far: ${held[0]} of ${task.goals.length} goals, ${withUnit(task, -held[1])}.` : "";
    parts.showBest.hidden = !held || best.read() === now.text;
  };

  const show = () => {
    const text = model.get("text");
    if (typeof text !== "string" || text.length > LONGEST) throw new Error("the text is missing or too long");
    if (!parts) {
      parts = build(goalOf(model.get("data")));
      history = historyOf(text);
    }
    const { task, writing, chips, faults, figures, goals, verdict, undo, redo } = parts;
    history.put(text);
    const lines = readLines(text);
    const judgement = judgedFor(task, lines);
    const timeline = timelineSoFar(task, judgement, task.about);
    const reached = reachedBy(task, judgement, timeline);
    const sentence = verdictOf(judgement, timeline);
    announce(task, judgement.faults.length ? `${sentence} ${sentenceOf(judgement.faults[0].sentence)}` : sentence, reached);
    Object.assign(now, { text, lines, reached, timeline });
    writing.show(text);
    const wrong = new Set(judgement.faults.map(({ device, position }) => `${device} ${position}`));
    const ran = new Set(timeline?.ops.map((op) => op.text));
    const state = ({ turn, why }, place) => (why || wrong.has(place) ? "wrong" : turn.every((op) => ran.has(op.text)) ? "ran" : "waits");
    chips.show(lines, lines.map(({ words }, device) => words.map((word, position) => state(word, `${device} ${position}`))));
    verdict.textContent = sentence;
    faults.show(lines, judgement);
    figures.show(timeline);
    goals.show(reached);
    if (task.puzzle) showKept(task, judgement, timeline, reached);
    else parts.showBest.hidden = true;
    if (first) drawPicture();
    else if (!frame) frame = requestAnimationFrame(drawPicture);
    [undo.disabled, redo.disabled] = history.steps().map((count) => !count);
    first = false;
  };

  root.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !["z", "y"].includes(key) || !history) return;
    event.preventDefault();
    event.stopPropagation();
    back(key === "y" || event.shiftKey ? history.redo() : history.undo());
  });
  const stop = () => {
    clearTimeout(timer);
    cancelAnimationFrame(frame);
    player.pause();
    picture.stop();
  };
  const { end, again } = keepDrawn(model, root, SETTING, show, stop, "editor");
  return end;
}

export default { render };
