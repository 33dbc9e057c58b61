// A ring stepper: the number of ranks and the time to choose, two pictures of each ring, and the same in words and numbers.
// A ring is drawn as ranks on a circle, where chunks travel, and as a matrix of ranks and chunks.

import { numberFrom, oneOf, orNull, wholeFrom } from "./setting.js";
import { shareRow } from "./share.js";
import { freshId, keepDrawn, make, number, plain, rootIn, selectOf } from "./view.js";
import { playerOf } from "./player.js";
import { circleOf, leastCircle } from "./ring_stepper_circle.js";
import { heldWords, holdersOf, leastWidth, matrixOf } from "./ring_stepper_matrix.js";

const SETTING = ["ranks", "step"];
const HINT =
  "In the matrix, columns are ranks and rows are chunks. The small squares in a box say whose numbers are in this chunk on this rank; " +
  "below them stands their sum. Rank r begins with 2 to the power r. In the ring, the rows of a rank are its chunks in the same order, " +
  "with the same colours, and the chunks that are sent travel along the links. While they travel, all else shows the last step that is " +
  "over. A tick: the sum is whole. A cross: it was whole and is overwritten. A thick frame: the chunk has just arrived. Point at a chunk " +
  "or at a rank to read what it holds. On the controls of the time, arrow keys take a step; on the matrix they choose a chunk.";

// ---- both pictures of every ring ----

const [GUTTER, MOST_CIRCLE] = [24, 336]; // px: space between pictures, greatest side of a circle
const ROOM = 620; // px, the least width in which the pictures of a ring stand side by side

// Whether the rings stand side by side, whether the pictures of a ring do, and how wide the pictures are.
function roomOf(ranks, rings, width) {
  const half = (width - GUTTER) / 2;
  const beside = rings > 1 && half >= leastWidth(ranks);
  const room = beside ? half : width;
  const most = Math.min(room - GUTTER - leastWidth(ranks), MOST_CIRCLE, 0.42 * room);
  const wide = room >= ROOM && most >= leastCircle(ranks);
  const circle = Math.floor(wide ? most : Math.min(room, rings > 1 ? leastCircle(ranks) : MOST_CIRCLE));
  return { beside, wide, circle, matrix: wide ? room - GUTTER - circle : room };
}

// Moves the choice of a chunk; the row above the first chunk stands for the whole rank.
function neighbourOf({ rank, chunk }, key, ranks) {
  const within = (value, least) => Math.max(least, Math.min(ranks - 1, value));
  const [x, y] = rank === null ? [0, 0] : [rank, chunk ?? -1];
  const arrows = { ArrowRight: [x + 1, y], ArrowLeft: [x - 1, y], ArrowDown: [x, y + 1], ArrowUp: [x, y - 1] };
  const [right, down] = { ...arrows, Home: [0, 0], End: [ranks, ranks] }[key];
  const [to, row] = [within(right, 0), within(down, -1)];
  return { rank: to, chunk: row < 0 ? null : row };
}

// One ring; `show(step, live)` draws a step, `move(time)` what travels, `choose(choice)` the chunk or the rank that the reader has chosen.
function panelOf({ name, states }, ranks, room, pick, notice) {
  const [circle, matrix] = [circleOf(ranks, room.circle, states), matrixOf(ranks, room.matrix)];
  const described = { tabindex: 0, role: "application", "aria-roledescription": "matrix of chunks" };
  const box = make("div", { class: "picture matrix", ...described }, matrix.element);
  const [sent, told, held] = [make("p", { class: "told" }), make("p", { class: "told" }), make("p", { class: "held" })];
  const pictures = [make("div", { class: "picture" }, circle.element), box, make("div", { class: "words" }, sent, told, held)];
  const attributes = { "aria-label": name, style: `--hl-circle: ${room.circle}px`, class: room.wide ? "wide" : "" };
  const element = make("section", attributes, make("p", { class: "title" }, name), ...pictures);
  let [state, choice] = [states[0], { rank: null, chunk: null }];

  const tell = () => {
    held.textContent = heldWords(state, choice);
  };
  const show = (step, live) => {
    state = states[step];
    held.setAttribute("aria-live", live ? "polite" : "off");
    for (const each of [circle, matrix]) each.show(state);
    const whole = `${name}, step ${step}: ${state.whole} of ${ranks * ranks} sums are whole.`;
    circle.element.setAttribute("aria-label", `${whole} Ranks on a circle; the table below has every number.`);
    box.setAttribute("aria-label", `${whole} A column for each rank, a row for each chunk. Arrow keys choose a chunk.`);
    [sent.textContent, told.textContent] = [state.sent, state.told];
    tell();
  };
  const choose = (given) => {
    choice = given;
    for (const each of [circle, matrix]) each.choose(choice);
    tell();
  };
  for (const event of ["pointerover", "click"]) {
    element.addEventListener(event, ({ target }) => {
      const { rank, chunk } = target.closest("[data-rank]")?.dataset ?? {};
      if (rank !== undefined) pick({ rank: Number(rank), chunk: chunk === undefined ? null : Number(chunk) });
      if (event === "click") notice();
    });
  }
  box.addEventListener("keydown", (event) => {
    if (!/^(Arrow.*|Home|End)$/.test(event.key) || !plain(event)) return;
    event.preventDefault();
    pick(neighbourOf(choice, event.key, ranks));
    notice();
  });
  return { element, show, choose, move: circle.move };
}

// The rings, side by side where there is room. `build(run)` draws them anew, `show` and `move` only what changes.
// `choose(choice)` chooses a chunk or a rank, and `choice()` is what is chosen. `notice()` is called when a click or a key has chosen it.
function pictureOf(notice) {
  const box = make("div", { class: "rings" });
  const nobody = { rank: null, chunk: null };
  let [run, panels, width, time, choice] = [null, [], 0, 0, nobody];
  const choose = (given) => {
    choice = given;
    for (const panel of panels) panel.choose(given);
  };
  const build = (given) => {
    if (given.ranks !== run?.ranks) choice = nobody;
    [run, width] = [given, box.clientWidth];
    const room = roomOf(run.ranks, run.rings.length, width || ROOM);
    panels = run.rings.map((ring) => panelOf(ring, run.ranks, room, choose, notice));
    box.classList.toggle("beside", room.beside);
    box.replaceChildren(...panels.map((panel) => panel.element));
  };
  const show = (step, live) => {
    for (const panel of panels) panel.show(step, live);
  };
  const move = (to) => {
    time = to;
    for (const panel of panels) panel.move(time);
  };
  const observer = new ResizeObserver(() => {
    if (!run || !box.clientWidth || box.clientWidth === width) return;
    build(run);
    show(Math.floor(time), true);
    move(time);
    choose(choice);
  });
  observer.observe(box);
  return { element: box, build, show, move, choose, choice: () => choice, stop: () => observer.disconnect() };
}

// ---- the tables ----

// All states of every ring for a number of ranks. Throws if the data are damaged.
function runOf(data, ranks) {
  const { rings, phases, mean } = data.runs[ranks];
  const full = (rows) => rows.length === ranks && rows.every((row) => row.length === ranks);
  const sound = (state) => full(state.parts) && full(state.values) && full(state.marks) && Number.isFinite(state.error);
  const named = data.names.map((name, place) => ({ name, states: rings[place] }));
  const complete = named.every(({ states }) => states.length === phases.length && states.every(sound));
  if (!complete || !named.length) throw new Error("a rank is missing");
  return { data, ranks, rings: named, phases, mean, last: phases.length - 1 };
}

// The number of whole sums and the difference to the mean, for every step and ring; `show(step)` marks the current step.
function figuresOf({ rings, phases, ranks, mean }) {
  const th = (text, attributes = {}) => make("th", { scope: "col", ...attributes }, text);
  const group = { colspan: rings.length, scope: "colgroup" };
  const above = make("tr", {}, th("Step", { rowspan: 2 }), th("Whole sums", group), th("Difference to the mean", group));
  const names = make("tr", {}, ...[0, 1].flatMap(() => rings.map(({ name }) => th(name))));
  const rows = phases.map((phase, place) => {
    const states = rings.map((ring) => ring.states[place]);
    const cells = [...states.map((state) => `${state.whole} of ${ranks * ranks}`), ...states.map((state) => number(state.error))];
    return make("tr", {}, make("th", { scope: "row" }, `${place}, ${phase}`), ...cells.map((text) => make("td", {}, text)));
  });
  const caption = `The mean is ${number(mean)}; the difference is the largest of all ranks and chunks, sums divided by ${ranks}`;
  const parts = [make("caption", {}, caption), make("thead", {}, above, names), make("tbody", {}, ...rows)];
  const show = (step) => {
    for (const row of rows) row.removeAttribute("aria-current");
    rows[step].setAttribute("aria-current", "step");
  };
  return { parts, show };
}

// What each rank holds; `show(step)` writes the cells that change.
function valuesOf({ name, states }, ranks) {
  const each = Array.from({ length: ranks }, (_, place) => place);
  const head = make("tr", {}, make("th", { scope: "col" }, "Chunk"), ...each.map((rank) => make("th", { scope: "col" }, `Rank ${rank}`)));
  const cells = each.map(() => each.map(() => make("td")));
  const rows = each.map((chunk) => make("tr", {}, make("th", { scope: "row" }, String(chunk)), ...cells[chunk]));
  const caption = make("caption", {}, `What each rank holds, ${name}`);
  const element = make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...rows));
  const show = (step) => {
    const { values, parts } = states[step];
    for (const chunk of each) {
      for (const rank of each) {
        const text = `${number(values[rank][chunk])}: ${holdersOf(parts[rank][chunk])}`;
        if (cells[chunk][rank].textContent !== text) cells[chunk][rank].textContent = text;
      }
    }
  };
  return { element, show };
}

// ---- the widget ----

const summaryOf = ({ rings, phases, last }, step) =>
  `Step ${step} of ${last}, ${phases[step]}. ` +
  rings
    .map(({ name, states }) => `${name}: ${states[step].whole} whole sums, difference to the mean ${number(states[step].error)}.`)
    .join(" ");

function render({ model, el }) {
  const root = rootIn(el, "ring");
  const id = freshId();
  const setting = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (name, value) => {
    const next = { ...setting(), [name]: value };
    next.step = Math.min(next.step, model.get("data").runs[next.ranks].phases.length - 1);
    for (const each of SETTING) if (next[each] !== model.get(each)) model.set(each, next[each]);
    model.save_changes();
  };
  const ranks = selectOf(`${id}-ranks`, "Ranks, D", (value) => pick("ranks", Number(value)));
  const notice = () => model.page?.notice();
  const picture = pictureOf(notice);
  const player = playerOf(`${id}-step`, "Step", (time) => {
    picture.move(time);
    if (Math.floor(time) !== model.get("step")) pick("step", Math.floor(time));
    else if (!player.playing()) tell();
    if (!player.playing()) notice();
  });
  const fields = make("div", { class: "fields", role: "group", "aria-label": "Ring" }, ranks.element, player.element);
  const spoken = make("p", { class: "unseen", "aria-live": "polite" });
  const figures = make("table", { class: "figures" });
  const details = make("details", {}, make("summary", {}, "What each rank holds, as a table"));
  const tables = make("div");
  details.append(tables);
  let [run, parts] = [null, []];
  const rules = ({ ranks: count }) => {
    const data = model.get("data");
    return { ranks: oneOf(data.ranks), step: wholeFrom(0, data.runs[count].phases.length - 1) };
  };
  // In links, `time` is the time within a step, and `chosen` the rank and the chunk that are chosen, or the rank alone.
  const chosenRule = () => ({
    fits: (value) => Array.isArray(value) && value.length <= 2 && value.every((each) => wholeFrom(0, run.ranks - 1).fits(each)),
    words: () => `a rank and a chunk from 0 to ${run.ranks - 1}, such as 1;0, or a rank alone, such as 1;`,
    first: null,
  });
  const look = {
    made: { time: null, chosen: null },
    rules: () => ({ time: orNull(numberFrom(model.get("step"), model.get("step") + 1)), chosen: orNull(chosenRule()) }),
    read: () => {
      const { rank, chunk } = picture.choice();
      return { time: Number.isInteger(player.now()) ? null : player.part(), chosen: rank === null ? null : [rank, chunk].filter((each) => each !== null) };
    },
    show: ({ time, chosen }) => {
      player.go(Math.min(time ?? model.get("step"), player.end()));
      const [rank = null, chunk = null] = chosen ?? [];
      picture.choose({ rank, chunk });
    },
  };
  const row = shareRow(model, SETTING, rules, { look });
  root.append(fields, picture.element, make("p", { class: "hint" }, HINT), figures, details, row, spoken);

  // A screen reader hears the steps at which the time stops, not those that it passes.
  const tell = () => {
    spoken.textContent = summaryOf(run, model.get("step"));
  };
  const timeInWords = (time) => {
    const step = Math.floor(time);
    if (step < time) return `${step} of ${run.last}, step ${step + 1} runs`;
    return `${step} of ${run.last}, ${run.phases[step]}`;
  };
  const build = (given, now) => {
    run = given;
    const [rows, values] = [figuresOf(run), run.rings.map((ring) => valuesOf(ring, now.ranks))];
    figures.replaceChildren(...rows.parts);
    tables.replaceChildren(...values.map((table) => table.element));
    picture.build(run);
    parts = [rows, ...values];
    player.show({ end: run.last, events: run.phases.map((_, step) => step), told: timeInWords, time: now.step });
  };
  const show = () => {
    const [now, data] = [setting(), model.get("data")];
    if (!Number.isInteger(now.step) || now.step < 0) throw new Error("there is no such step");
    ranks.show(now.ranks, data.ranks.map((each) => [each, each]));
    if (run?.data !== data || run.ranks !== now.ranks) {
      const next = runOf(data, now.ranks);
      if (now.step > next.last && run && !model.page) return; // Python sends a smaller number of ranks before the smaller step
      if (now.step > next.last) throw new Error("there is no such step");
      build(next, now);
    }
    if (now.step > run.last) throw new Error("there is no such step");
    if (Math.floor(player.now()) !== now.step) player.go(now.step);
    picture.show(now.step, !player.playing());
    for (const part of parts) part.show(now.step);
    if (!player.playing()) tell();
  };
  const stop = () => {
    player.pause();
    picture.stop();
  };
  return keepDrawn(model, root, SETTING, show, stop).end;
}

export default { render };
