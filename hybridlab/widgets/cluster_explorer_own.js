// The seconds that a reader's own functions give for the parts of an iteration, beside those of the library: sentences, bars, a table.

import { tableOf, watched } from "./chart.js";
import { hatchOf, lookOf, stacked, textOf } from "./cluster_explorer_bars.js";
import { ownOf, seconds, share, three } from "./cluster_explorer_words.js";
import { listed, make } from "./view.js";

const [OWN_LINE, OWN_BAR, OWN_GAP] = [20, 22, 4]; // px: heights of a line of text and of a bar, space below a bar

function ownPicture(bars, width, id) {
  const longest = Math.max(...bars.map((bar) => bar.seconds));
  const high = OWN_LINE + OWN_BAR + OWN_GAP;
  const svg = make("svg", { width, height: bars.length * high, viewBox: `-1 0 ${width} ${bars.length * high}`, "aria-hidden": "true" });
  svg.append(hatchOf(bars[0].parts.find(({ name }) => name === "bubble"), id));
  bars.forEach(({ title, parts, seconds: whole }, place) => {
    const pieces = parts.filter((part) => part.seconds).map((part) => ({
      name: part.name,
      length: (part.seconds / longest) * (width - 2),
      look: lookOf(part, id),
      ink: part.ink,
      title: `${part.words}: ${seconds(part.seconds)}, ${share(part.seconds, whole)}`,
      tries: [`${part.words} ${three(part.seconds)}`, part.words, three(part.seconds)],
    }));
    const top = place * high;
    const name = textOf(0, top + 14, `${title}: ${seconds(whole)}`, "name");
    svg.append(name, make("g", { "data-bar": title }, ...stacked(pieces, top + OWN_LINE, OWN_BAR)));
  });
  return svg;
}

// `draw(own, reading)` fills the view; `own` has the times of the functions and their setting.
export function ownView(data, followed, id) {
  const told = make("p", { class: "told", role: "status" });
  const box = make("div", { class: "bars", role: "img" });
  const table = make("table");
  const element = make("div", { class: "own" }, told, box, table);
  let bars = [];
  const drawBars = () => {
    box.hidden = !bars.length;
    if (!bars.length) return box.replaceChildren();
    const each = listed(bars.map(({ title, seconds: time }) => `${title} with ${seconds(time)}`));
    box.setAttribute("aria-label", `Bars on one scale: ${each}. The table below has their parts.`);
    box.replaceChildren(ownPicture(bars, box.clientWidth || 640, id));
  };
  const draw = (own, reading) => {
    const found = ownOf(data, own, reading, followed);
    element.hidden = !found;
    told.textContent = found?.told ?? "";
    bars = found?.bars ?? [];
    drawBars();
    const cell = (part) => (part.seconds === null ? "\u2013" : three(part.seconds));
    const rows = reading.parts.map(({ words }, place) => [words, ...bars.map(({ parts }) => cell(parts[place]))]);
    const titles = bars.map(({ title }) => title);
    const together = ["together", ...bars.map((bar) => three(bar.seconds))];
    table.replaceChildren(...(bars.length ? tableOf(`Seconds of the parts: ${listed(titles)}`, ["", ...titles], [...rows, together]) : []));
  };
  return { element, draw, stop: watched(box, drawBars) };
}
