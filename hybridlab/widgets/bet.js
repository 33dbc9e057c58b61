// A bet: a question that the reader answers before seeing the result, and the look back that shows both.
// Both widgets follow the trait `answer`, which the browser keeps under the name of the bet.

import { field, freshId, make, rootIn, sayDamaged } from "./view.js";

// ---- the question and its answer ----

const KEPT = "hybridlab.bet."; // the answer's key in the browser's storage, followed by the name of the bet
const LONGEST = 400; // characters of a kept answer; hybridlab/widgets/bet.py allows fewer
const PLACED = "hybridlab-bet"; // the event that tells the other views of the page about a new answer

// The answers placed on this page, for a browser without storage. In a notebook each widget loads its own copy of this module, so the
// map is global.
const placedHere = (globalThis[Symbol.for("hybridlab.bets")] ??= new Map());

function questionOf(model) {
  const texts = { name: model.get("name"), question: model.get("question"), unit: model.get("unit") };
  const choices = model.get("choices");
  const whole = Object.values(texts).every((text) => typeof text === "string") && texts.name && texts.question;
  const listed = Array.isArray(choices) && choices.length !== 1 && choices.every((choice) => typeof choice === "string" && choice);
  return whole && listed ? { ...texts, choices } : null;
}

// Returns the value if it answers the question, else null.
function answerTo({ choices }, value) {
  const answers = choices.length ? choices.includes(value) : Number.isFinite(value);
  return answers ? value : null;
}

function kept(name) {
  if (placedHere.has(name)) return placedHere.get(name);
  try {
    const text = localStorage.getItem(KEPT + name);
    return text && text.length <= LONGEST ? JSON.parse(text) : null;
  } catch {
    return null; // the browser has no storage, or the stored text is not an answer
  }
}

function keep(name, answer) {
  placedHere.set(name, answer);
  try {
    if (answer === null) localStorage.removeItem(KEPT + name);
    else localStorage.setItem(KEPT + name, JSON.stringify(answer));
  } catch {
    // survives() reports it
  }
}

function survives(name, answer) {
  try {
    return localStorage.getItem(KEPT + name) === JSON.stringify(answer);
  } catch {
    return false;
  }
}

// Calls `show(answer)` now and after each change of the answer: in this view, in another view of the page, in another tab, in Python.
function follow(model, question, show) {
  const { name } = question;
  const answer = () => answerTo(question, model.get("answer"));
  const place = (value) => {
    if (value === answer()) return;
    model.set("answer", value);
    model.save_changes();
  };
  const tell = () => {
    keep(name, answer());
    document.dispatchEvent(new CustomEvent(PLACED, { detail: name }));
  };
  const changed = () => {
    tell();
    show(answer());
  };
  const elsewhere = (event) => event.detail === name && place(answerTo(question, kept(name)));
  const otherTab = (event) => {
    if (event.key !== null && event.key !== KEPT + name) return; // null: the whole storage was cleared
    placedHere.delete(name);
    place(answerTo(question, kept(name)));
  };
  if (answer() === null) place(answerTo(question, kept(name)));
  else tell(); // an answer that Python has set replaces the kept one
  show(answer());
  model.on("change:answer", changed);
  document.addEventListener(PLACED, elsewhere);
  addEventListener("storage", otherTab);
  const stop = () => {
    model.off("change:answer", changed);
    document.removeEventListener(PLACED, elsewhere);
    removeEventListener("storage", otherTab);
  };
  return { place, stop };
}

const NOT_KEPT = "This browser does not store anything for this page: your bet will not survive a reload.";
const ELSEWHERE = "The question is not on the visible part of this page. Scroll up to it; if it is not there, run its cell.";

// ---- words ----

const rounded = (value) => Number(value.toPrecision(12)); // so that 0.1 + 0.2 gives 0.3

function written({ unit }, value) {
  if (typeof value === "string") return value;
  const one = value === 1 ? unit.replace(/ches$/, "ch").replace(/(\w\w\w)s$/, "$1") : unit;
  return `${rounded(value)} ${one}`.trim();
}

function verdict(answer, truth) {
  if (typeof truth === "string") return answer === truth ? "Your bet was right." : "Your bet was wrong.";
  const off = rounded(answer - truth);
  return off === 0 ? "Your bet was exactly right." : `Your bet was too ${off < 0 ? "low" : "high"} by ${Math.abs(off)}.`;
}

// Returns the number that the reader wrote, or a sentence that says what is wrong with the text.
function numberIn(text, unit) {
  const bare = text.trim().replace("\u2212", "-");
  const digits = (unit && bare.endsWith(unit) ? bare.slice(0, -unit.length) : bare).trim();
  if (!digits) return { wrong: "Write a number first." };
  if (/^[-+]?[1-9]\d{0,2}(,\d{3})+$/.test(digits)) {
    return { wrong: `Write ${digits} without a comma between thousands: ${digits.replaceAll(",", "")}.` };
  }
  const short = digits.length > 24 ? `${digits.slice(0, 24)}...` : digits;
  if (!/^[-+]?(\d+[.,]?\d*|[.,]\d+)(e[-+]?\d+)?$/i.test(digits)) {
    return { wrong: `"${short}" is not a number. Write one in digits, such as 12 or 0.5.` };
  }
  const value = Number(digits.replace(",", "."));
  return Number.isFinite(value) ? { value } : { wrong: `${short} is too large. Write a smaller number.` };
}

// ---- the bet ----

function choiceFields({ choices }, id) {
  const inputs = choices.map((choice) => make("input", { type: "radio", name: id, value: choice }));
  const labels = choices.map((choice, place) => make("label", { class: "choice" }, inputs[place], make("span", {}, choice)));
  const fill = (answer) => inputs.forEach((input) => (input.checked = input.value === answer));
  const read = () => {
    const chosen = inputs.find((input) => input.checked);
    return chosen ? { value: chosen.value } : { wrong: "Choose one of the answers first." };
  };
  return { inputs, elements: labels, fill, read, first: () => inputs.find((input) => input.checked) ?? inputs[0] };
}

function numberField({ unit }, id) {
  const input = make("input", { type: "text", inputmode: "decimal", autocomplete: "off", maxlength: 60 });
  const elements = [field(`${id}-number`, unit ? `Your bet, ${unit}` : "Your bet, a number", input)];
  const fill = (answer) => (input.value = answer === null ? "" : String(answer));
  return { inputs: [input], elements, fill, read: () => numberIn(input.value, unit), first: () => input };
}

function formOf(question, place) {
  const id = freshId();
  const fields = question.choices.length ? choiceFields(question, id) : numberField(question, id);
  const wrong = make("p", { class: "wrong", id: `${id}-wrong`, role: "alert" });
  const complain = (sentence) => {
    wrong.textContent = sentence;
    for (const input of fields.inputs) {
      sentence ? input.setAttribute("aria-invalid", "true") : input.removeAttribute("aria-invalid");
    }
  };
  for (const input of fields.inputs) {
    input.setAttribute("aria-describedby", wrong.id);
    input.addEventListener("input", () => complain(""));
  }
  const asked = make("fieldset", {}, make("legend", {}, question.question), ...fields.elements);
  const element = make("form", { class: "box", novalidate: "" }, asked, wrong, make("button", { type: "submit" }, "Place the bet"));
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    const { value, wrong: sentence = "" } = fields.read();
    complain(sentence);
    if (sentence) fields.first().focus();
    else place(value);
  });
  const fill = (answer) => {
    complain("");
    fields.fill(answer);
  };
  return { element, fill, focus: () => fields.first().focus() };
}

function ask(model, question, root) {
  root.dataset.bet = question.name;
  const live = make("p", { class: "unseen", "aria-live": "polite" });
  const answered = make("strong");
  const note = make("p", { class: "note" }, NOT_KEPT);
  const change = make("button", { type: "button" }, "Change the bet");
  const head = make("p", { class: "question" }, question.question);
  const placed = make("div", { class: "box" }, head, make("p", {}, "Your bet: ", answered), note, change);
  let now; // undefined until the first call of `show`, which announces nothing

  const open = (asking) => {
    const inside = root.contains(document.activeElement); // the focused element may be hidden below
    form.element.hidden = !asking;
    placed.hidden = asking;
    if (asking) form.fill(now);
    if (inside) asking ? form.focus() : change.focus();
  };
  const show = (answer) => {
    const before = now;
    now = answer;
    if (answer !== null) {
      answered.textContent = written(question, answer);
      note.hidden = survives(question.name, answer);
    }
    open(answer === null);
    const news = answer === null ? "The bet was taken back." : `Bet placed: ${answered.textContent}.`;
    if (before !== undefined && answer !== before) live.textContent = news;
  };
  const form = formOf(question, (answer) => {
    if (answer === now) open(false);
    else follower.place(answer);
  });
  change.addEventListener("click", () => open(true));
  root.append(form.element, placed, live);
  const follower = follow(model, question, show);
  return follower.stop;
}

// ---- the look back ----

function goTo(name) {
  const there = [...document.querySelectorAll(".hybridlab-bet")].find((each) => each.dataset.bet === name);
  const target = there && [...there.querySelectorAll("input:checked, input, button")].find((each) => each.offsetParent !== null);
  if (!target) return false;
  target.focus({ preventScroll: true });
  there.scrollIntoView({ block: "center" });
  return true;
}

function lookBack(model, question, truth, root) {
  const figures = make("dl");
  const [judged, why] = [make("p", { class: "verdict" }), make("p", { class: "why" }, model.get("why") || "")];
  const answerPart = make("div", { class: "answer", tabindex: -1 }, figures, judged, why);
  const back = make("button", { type: "button" }, "Go to the question");
  const peek = make("button", { type: "button" }, "Show the answer without betting");
  const told = make("p", { class: "note", role: "status" });
  const unplaced = make("div", { class: "unplaced" }, make("p", {}, "You have not placed a bet on this question yet."), back, peek, told);
  let [peeked, now] = [false, null];

  const show = (answer) => {
    now = answer;
    const placed = answer !== null;
    const inside = unplaced.contains(document.activeElement);
    const rows = [...(placed ? [["Your bet", answer]] : []), ["The answer", truth]];
    const line = ([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, written(question, value)));
    figures.replaceChildren(...rows.map(line));
    judged.textContent = placed ? verdict(answer, truth) : "";
    unplaced.hidden = placed || peeked;
    answerPart.hidden = !placed && !peeked;
    if (inside && unplaced.hidden) answerPart.focus();
  };
  peek.addEventListener("click", () => {
    peeked = true;
    show(now);
  });
  back.addEventListener("click", () => (told.textContent = goTo(question.name) ? "" : ELSEWHERE));
  root.append(make("div", { class: "box" }, make("p", { class: "question" }, question.question), unplaced, answerPart));
  return follow(model, question, show).stop;
}

function render({ model, el }) {
  const truth = model.get("truth"); // undefined for a bet
  const root = rootIn(el, truth === undefined ? "wager hybridlab-bet" : "wager hybridlab-revealed");
  const question = questionOf(model);
  if (question && truth === undefined) return ask(model, question, root);
  if (question && answerTo(question, truth) !== null) return lookBack(model, question, truth, root);
  return sayDamaged(root, "question", "asked");
}

export default { render };
