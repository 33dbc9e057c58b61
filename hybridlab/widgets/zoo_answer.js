// The answer to a reader who hands in an order for an instance of the zoo: the verdict of zoo_judge.js, its reasons and its figures. The page
// zoo.md draws it; it is the view of no widget.

import { grouped, make, number } from "./view.js";
import { verdictOn } from "./zoo_judge.js";

const MOST_SHOWN = 12; // sentences
const REFUSED = "This is not an order for this instance.";
const sentenceOf = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function figures({ makespan, bubble, peak }, { unit, memory }) {
  const room = memory ? ` (room for ${[...new Set(memory)].length > 1 ? memory.join(", ") : memory[0]})` : "";
  const held = peak.map(number).join(", ") + room;
  const time = `${grouped(makespan)}${unit && ` ${unit}`}`;
  const rows = [["Makespan", time], ["Bubble ratio", bubble.toFixed(3)], ["Peak activations, by device", held]];
  const row = ([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value));
  return make("table", {}, make("tbody", {}, ...rows.map(row)));
}

// Writes the verdict on the text of the model into `el`, and sets the trait `verdict` of the model.
function render({ model, el }) {
  const instance = model.get("instance");
  const verdict = verdictOn(instance, model.get("text"));
  const { code, faults } = verdict;
  el.dataset.verdict = code;
  const shown = faults.slice(0, MOST_SHOWN).map((each) => make("li", {}, sentenceOf(each)));
  if (faults.length > MOST_SHOWN) shown.push(make("li", {}, `And ${faults.length - MOST_SHOWN} more.`));
  if (faults.length) el.replaceChildren(make("p", {}, make("strong", {}, REFUSED)), make("ul", {}, ...shown));
  else el.replaceChildren(make("p", {}, make("strong", {}, sentenceOf(verdict.sentence))), figures(verdict, instance));
  model.set("verdict", verdict);
}

export default { render };
