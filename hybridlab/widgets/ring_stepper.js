// A ring stepper: the number of ranks and the step to choose, a picture of each ring, and the same in words and numbers.
// A picture has a column for each rank and a row for each chunk. Each box shows whose numbers the chunk holds; arrows are messages.

import { field, freshId, keepDrawn, listed, make, number, plain, rootIn, selectOf } from "./view.js";

// ---- the picture of one ring ----

const [SLOT, PAD, VALUE, ROW_GAP, TOP] = [15, 4, 17, 10, 20]; // px: height of a slot, padding of a box, height of its number, space between rows, height of the heads
const [GAP, LEFT, MOST] = [14, 16, 76]; // px: space between columns, left margin, greatest width of a box

const across = (ranks) => (ranks < 4 ? ranks : Math.ceil(ranks / 2)); // slots in a line of a box

const leastBox = (ranks) => (ranks > 6 ? 44 : 33); // px, the least width of a box

const leastWidth = (ranks) => LEFT + GAP + ranks * (leastBox(ranks) + GAP);

function frameOf(ranks, width) {
  const box = Math.max(leastBox(ranks), Math.min(MOST, (width - LEFT - GAP) / ranks - GAP));
  const lines = Math.ceil(ranks / across(ranks));
  const height = 2 * PAD + lines * SLOT + VALUE;
  const x = (rank) => LEFT + GAP + rank * (box + GAP);
  const y = (chunk) => TOP + chunk * (height + ROW_GAP);
  return { ranks, box, boxHeight: height, x, y, width: x(ranks - 1) + box + GAP + 1, height: y(ranks - 1) + height + 4 };
}

// Names the ranks whose numbers a sum holds: "ranks 0, 1 and 3 twice".
function holdersOf(counts) {
  const times = (count) => (count === 1 ? "" : count === 2 ? " twice" : ` ${count} times`);
  const words = counts.map((count, rank) => (count ? `${rank}${times(count)}` : "")).filter(Boolean);
  if (!words.length) return "nobody";
  return words.length === 1 ? `rank ${words[0]} alone` : `ranks ${listed(words)}`;
}

function slotOf(frame, rank, count, x, y) {
  const each = across(frame.ranks);
  const wide = Math.min(18, (frame.box - PAD) / each);
  const [left, top] = [x + frame.box / 2 + (rank % each - each / 2) * wide, y + PAD + Math.floor(rank / each) * SLOT];
  const here = count ? (count === 1 ? " in" : " in more") : "";
  const rect = make("rect", { class: `slot${here} of${rank}`, x: number(left + 0.5), y: number(top + 0.5), width: number(wide - 1), height: SLOT - 1 });
  const digit = make("text", { class: "digit", x: number(left + wide / 2), y: number(top + SLOT / 2) }, String(rank));
  return count ? [rect, digit] : [rect];
}

// The sign in the corner of a box: a tick for a whole sum, a cross for a whole sum that was overwritten.
function signOf(mark, frame, x, y) {
  const [right, bottom] = [x + frame.box - 5, y + frame.boxHeight - 5];
  const tick = `M${number(right - 8)} ${number(bottom - 4)}L${number(right - 5)} ${number(bottom - 1)}L${number(right)} ${number(bottom - 8)}`;
  const cross = `M${number(right - 7)} ${number(bottom - 7)}L${number(right)} ${number(bottom)}M${number(right)} ${number(bottom - 7)}L${number(right - 7)} ${number(bottom)}`;
  return mark ? [make("path", { class: `sign ${mark}`, d: mark === "whole" ? tick : cross })] : [];
}

function boxOf(frame, state, rank, chunk) {
  const [x, y, mark] = [frame.x(rank), frame.y(chunk), state.marks[rank][chunk]];
  const fresh = state.messages.some(([, receiver, sent]) => receiver === rank && sent === chunk) ? " fresh" : "";
  const rect = make("rect", { class: `box ${mark}${fresh}`, x: number(x), y, width: number(frame.box), height: frame.boxHeight, rx: 4 });
  const slots = state.parts[rank][chunk].flatMap((count, part) => slotOf(frame, part, count, x, y));
  const value = number(state.values[rank][chunk]);
  const text = make("text", { class: "value", x: number(x + frame.box / 2 - (mark ? 5 : 0)), y: number(y + frame.boxHeight - VALUE / 2 - 1) }, value);
  return make("g", { "data-rank": rank, "data-chunk": chunk }, rect, ...slots, text, ...signOf(mark, frame, x, y));
}

function arrow(from, to, y) {
  const line = make("path", { class: "link", d: `M${number(from)} ${number(y)}H${number(to - 5)}` });
  return [line, make("path", { class: "head", d: `M${number(to)} ${number(y)}l-6 -4v8Z` })];
}

// A message from box to box. A message from the last rank to the first leaves on the right and enters on the left.
function arrowsOf(frame, [sender, receiver, chunk]) {
  const y = frame.y(chunk) + frame.boxHeight / 2;
  const [end, start] = [frame.x(sender) + frame.box + 1, frame.x(receiver) - 1];
  return start > end ? arrow(end, start, y) : [...arrow(end, end + GAP - 2, y), ...arrow(start - GAP + 2, start, y)];
}

function drawingOf(frame, state, label) {
  const each = Array.from({ length: frame.ranks }, (_, place) => place);
  const name = (text, x, y) => make("text", { class: "name", x: number(x), y: number(y) }, text);
  const heads = each.map((rank) => name(frame.box < 40 ? String(rank) : `rank ${rank}`, frame.x(rank) + frame.box / 2, TOP - 9));
  const rows = each.map((chunk) => name(String(chunk), LEFT / 2 - 1, frame.y(chunk) + frame.boxHeight / 2));
  const boxes = each.flatMap((chunk) => each.map((rank) => boxOf(frame, state, rank, chunk)));
  const arrows = state.messages.flatMap((message) => arrowsOf(frame, message));
  return make("svg", { width: number(frame.width), height: number(frame.height), role: "img", "aria-label": label }, ...heads, ...rows, ...boxes, ...arrows);
}

// ---- the controls, the tables, the widget ----

const SETTING = ["ranks", "step"];
const HINT =
  "Columns are ranks, rows are chunks. The small squares in a box say whose numbers are in this chunk on this rank; below them stands " +
  "their sum. Rank r begins with 2 to the power r. A tick: the sum is whole. A cross: it was whole and is overwritten. On the buttons " +
  "and on the slider, arrow keys take a step.";

function stepsOf(id, pick) {
  const [input, output] = [make("input", { type: "range", min: 0, step: 1 }), make("output", { for: id })];
  input.addEventListener("input", () => pick(Number(input.value)));
  const element = field(id, "Step", input, output);
  const buttons = [["First", () => 0], ["Back", (step) => step - 1], ["Next", (step) => step + 1], ["Last", (_, last) => last]];
  let [now, end] = [0, 0];
  const parts = buttons.map(([text, where]) => {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => pick(Math.max(0, Math.min(end, where(now, end)))));
    return button;
  });
  const show = (step, last, phase) => {
    [now, end] = [step, last];
    input.max = last;
    input.value = step;
    output.textContent = step ? `${step} of ${last}, ${phase}` : `0 of ${last}, start`;
    input.setAttribute("aria-valuetext", output.textContent);
    parts.forEach((button, place) => button.setAttribute("aria-disabled", String(place < 2 ? step === 0 : step === last)));
  };
  return { element, buttons: make("div", { class: "steps", role: "group", "aria-label": "Take a step" }, ...parts), show };
}

// The state of every ring in a setting. Throws if the data are damaged.
function shownAt(data, { ranks, step }) {
  const run = data.runs[ranks];
  const rings = data.names.map((name, place) => ({ name, states: run.rings[place], state: run.rings[place][step] }));
  const full = (rows) => rows.length === ranks && rows.every((row) => row.length === ranks);
  const sound = rings.every(({ state }) => full(state.parts) && full(state.values) && full(state.marks) && Number.isFinite(state.error));
  if (!sound || !rings.length) throw new Error("a rank is missing");
  return { rings, phases: run.phases, mean: run.mean, last: run.phases.length - 1 };
}

// The number of whole sums and the difference to the mean, for every step and ring. The current step is marked.
function figuresOf({ rings, phases }, { ranks, step }) {
  const th = (text, attributes = {}) => make("th", { scope: "col", ...attributes }, text);
  const above = make("tr", {}, th("Step", { rowspan: 2 }), th("Whole sums", { colspan: rings.length, scope: "colgroup" }), th("Difference to the mean", { colspan: rings.length, scope: "colgroup" }));
  const names = make("tr", {}, ...[0, 1].flatMap(() => rings.map(({ name }) => th(name))));
  const rows = phases.map((phase, place) => {
    const row = make("tr", place === step ? { "aria-current": "step" } : {}, make("th", { scope: "row" }, `${place}, ${phase}`));
    const states = rings.map((ring) => ring.states[place]);
    const cells = [...states.map((state) => `${state.whole} of ${ranks * ranks}`), ...states.map((state) => number(state.error))];
    row.append(...cells.map((text) => make("td", {}, text)));
    return row;
  });
  return [make("thead", {}, above, names), make("tbody", {}, ...rows)];
}

function valuesOf({ name, state }, ranks) {
  const each = Array.from({ length: ranks }, (_, place) => place);
  const head = make("tr", {}, make("th", { scope: "col" }, "Chunk"), ...each.map((rank) => make("th", { scope: "col" }, `Rank ${rank}`)));
  const cell = (rank, chunk) => make("td", {}, `${number(state.values[rank][chunk])}: ${holdersOf(state.parts[rank][chunk])}`);
  const rows = each.map((chunk) => make("tr", {}, make("th", { scope: "row" }, String(chunk)), ...each.map((rank) => cell(rank, chunk))));
  return make("table", {}, make("caption", {}, `What each rank holds, ${name}`), make("thead", {}, head), make("tbody", {}, ...rows));
}

// The rings, side by side where there is room; `draw(shown, setting)` shows them.
function pictureOf() {
  const box = make("div", { class: "rings" });
  let [given, width] = [null, 0];
  const panelOf = ({ name, state }, { ranks, step }, wide) => {
    const label = `${name}, step ${step}: ${state.whole} of ${ranks * ranks} sums are whole. The table below has every number.`;
    const drawing = make("div", { class: "picture" }, drawingOf(frameOf(ranks, wide), state, label));
    const words = [state.sent, state.told].map((text) => make("p", { class: "told" }, text));
    return make("section", { "aria-label": name }, make("p", { class: "title" }, name), drawing, ...words);
  };
  const draw = (shown, setting) => {
    given = [shown, setting];
    width = box.clientWidth;
    const half = ((width || 640) - 24) / 2;
    const beside = shown.rings.length > 1 && half >= leastWidth(setting.ranks);
    box.classList.toggle("beside", beside);
    box.replaceChildren(...shown.rings.map((ring) => panelOf(ring, setting, beside ? half : width || 640)));
  };
  const observer = new ResizeObserver(() => {
    if (given && box.clientWidth && box.clientWidth !== width) draw(...given);
  });
  observer.observe(box);
  return { element: box, draw, stop: () => observer.disconnect() };
}

const summaryOf = (shown, { step }) =>
  `Step ${step} of ${shown.last}, ${shown.phases[step]}. ` +
  shown.rings.map(({ name, state }) => `${name}: ${state.whole} whole sums, difference to the mean ${number(state.error)}.`).join(" ");

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
  const steps = stepsOf(`${id}-step`, (value) => pick("step", value));
  const fields = make("div", { class: "fields", role: "group", "aria-label": "Ring" }, ranks.element, steps.element);
  const picture = pictureOf();
  const spoken = make("p", { class: "unseen", "aria-live": "polite" });
  const figures = make("table", { class: "figures" });
  const values = make("details", {}, make("summary", {}, "What each rank holds, as a table"));
  const tables = make("div");
  values.append(tables);
  root.append(fields, steps.buttons, make("p", { class: "hint" }, HINT), picture.element, figures, values, spoken);

  const show = () => {
    const now = setting();
    const shown = shownAt(model.get("data"), now);
    ranks.show(now.ranks, model.get("data").ranks.map((each) => [each, each]));
    steps.show(now.step, shown.last, shown.phases[now.step]);
    picture.draw(shown, now);
    const caption = `The mean is ${number(shown.mean)}; the difference is the largest of all ranks and chunks, sums divided by ${now.ranks}`;
    figures.replaceChildren(make("caption", {}, caption), ...figuresOf(shown, now));
    tables.replaceChildren(...shown.rings.map((ring) => valuesOf(ring, now.ranks)));
    spoken.textContent = summaryOf(shown, now);
  };
  const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  steps.buttons.addEventListener("keydown", (event) => {
    if (!(event.key in moves) || !plain(event)) return;
    event.preventDefault();
    const last = model.get("data").runs[model.get("ranks")].phases.length - 1;
    pick("step", Math.max(0, Math.min(last, model.get("step") + moves[event.key])));
  });
  return keepDrawn(model, root, SETTING, show, picture.stop).end;
}

export default { render };
