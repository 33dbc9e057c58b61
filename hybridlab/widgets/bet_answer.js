// The question of a bet and its answer: read from the model, kept by the browser, followed by every view.
// `view.js` stands above this file, `bet.js` below it.

const KEPT = "hybridlab.bet."; // and the name of the bet: where the browser keeps the answer
const LONGEST = 400; // characters of a kept answer; hybridlab/widgets/bet.py allows fewer
const PLACED = "hybridlab-bet"; // the event by which the views of one page tell each other

// The answers placed on this page, for a browser that stores none. Each widget of a notebook loads a copy of this module; all share this.
const placedHere = (globalThis[Symbol.for("hybridlab.bets")] ??= new Map());

function questionOf(model) {
  const texts = { name: model.get("name"), question: model.get("question"), unit: model.get("unit") };
  const choices = model.get("choices");
  const whole = Object.values(texts).every((text) => typeof text === "string") && texts.name && texts.question;
  const listed = Array.isArray(choices) && choices.length !== 1 && choices.every((choice) => typeof choice === "string" && choice);
  return whole && listed ? { ...texts, choices } : null;
}

// The value if it answers the question, else null.
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
    return null; // a browser that stores nothing, or something that we did not store
  }
}

function keep(name, answer) {
  placedHere.set(name, answer);
  try {
    if (answer === null) localStorage.removeItem(KEPT + name);
    else localStorage.setItem(KEPT + name, JSON.stringify(answer));
  } catch {
    // survives() finds out
  }
}

function survives(name, answer) {
  try {
    return localStorage.getItem(KEPT + name) === JSON.stringify(answer);
  } catch {
    return false;
  }
}

// Calls `show(answer)` now and whenever the answer changes: in this view, in another one of the page, in another tab, in Python.
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
    if (event.key !== null && event.key !== KEPT + name) return; // null: all was removed
    placedHere.delete(name);
    place(answerTo(question, kept(name)));
  };
  if (answer() === null) place(answerTo(question, kept(name)));
  else tell(); // set by Python, which goes before what the page kept
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
