// Files of a picture of timelines: the picture as SVG, the orders as CSV, and traces for Perfetto. The page writes them without a server.

import { most } from "./timeline.js";
import { csvText, isTraceable, nameOf, traceOf } from "./trace.js";
import { listed, make } from "./view.js";

// ---- the picture ----

// What the style sheet says about an element of a picture; each of these passes from an element to those in it.
const LOOKS = [
  "fill", "fill-opacity", "stroke", "stroke-dasharray", "stroke-opacity", "stroke-width", "paint-order",
  "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline",
];
const TITLE = 22; // px: the height of a title
const MARGIN = 8; // px
const CHARACTER = 9; // px: more than a character of a title takes on average

const looksOf = (style) => Object.fromEntries(LOOKS.map((name) => [name, style.getPropertyValue(name)]));

// The element with its looks as attributes, or "" if it is not shown. `around` are the looks of the element around it.
function copyOf(element, around) {
  const style = getComputedStyle(element);
  if (style.display === "none") return "";
  const [copy, looks] = [element.cloneNode(false), looksOf(style)];
  for (const name of copy.getAttributeNames()) if (/^(class|style|tabindex|role|aria-.*)$/.test(name)) copy.removeAttribute(name);
  for (const name of LOOKS) if (looks[name] !== around[name]) copy.setAttribute(name, looks[name]);
  if (style.opacity !== "1") copy.setAttribute("opacity", style.opacity);
  copy.append(...[...element.childNodes].map((child) => (child instanceof Element ? copyOf(child, looks) : child.cloneNode())));
  return copy;
}

// The text of an SVG file with the pictures in `box`. Pictures with the same parent stand side by side, the others below each other,
// each row with its title from `titles`. The colours are those of light pages.
function svgOf(box, titles) {
  const root = box.closest(".hybridlab-view");
  root.classList.add("on-paper");
  const [style, pictures] = [getComputedStyle(box), [...box.querySelectorAll(".tracks > svg")]];
  const parents = [...new Set(pictures.map((picture) => picture.parentNode))];
  const rows = parents.map((parent) => pictures.filter((each) => each.parentNode === parent));
  const file = make("svg", { role: "img" }, make("title", {}, titles.join("; ")), make("desc", {}, box.getAttribute("aria-label") ?? ""));
  const paper = make("rect", { fill: "#fff" });
  file.append(paper);
  let [width, height] = [2 * MARGIN + CHARACTER * most(titles.map(({ length }) => length)), MARGIN];
  rows.forEach((row, place) => {
    const font = { fill: style.color, "font-family": style.fontFamily, "font-size": 14, "font-weight": 600 };
    file.append(make("text", { x: MARGIN, y: height + 14, ...font }, titles[place] ?? ""));
    let x = MARGIN;
    for (const picture of row) {
      const copy = copyOf(picture, {});
      for (const [name, value] of Object.entries({ x, y: height + TITLE, overflow: "visible" })) copy.setAttribute(name, value);
      file.append(copy);
      x += Number(picture.getAttribute("width"));
    }
    width = Math.max(width, x + MARGIN);
    height += TITLE + most(row.map((picture) => Number(picture.getAttribute("height")))) + MARGIN;
  });
  root.classList.remove("on-paper");
  for (const each of [file, paper]) for (const [name, value] of Object.entries({ width, height })) each.setAttribute(name, value);
  file.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(file)}\n`;
}

// ---- the files ----

export function save([name, text, type]) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // ms, after which the browser has read it
  return name;
}

const headingOf = ({ title, sizes }) => [title, sizes].filter(Boolean).join(", ");
function fileOf(timeline) {
  const { devices, replicas = 1, ops } = timeline;
  const copies = replicas > 1 ? `-${replicas}-replicas` : "";
  return `${nameOf(timeline)}-${devices / replicas}x${1 + most(ops.map(({ microbatch }) => microbatch))}${copies}`;
}
const TRACE = "Perfetto trace";
const FILES = {
  SVG: (timelines, box) => [[`${timelines.map(fileOf).join("-and-")}.svg`, svgOf(box, timelines.map(headingOf)), "image/svg+xml"]],
  CSV: (timelines) => timelines.map((timeline) => [`${fileOf(timeline)}.csv`, csvText(timeline), "text/csv"]),
  [TRACE]: (timelines) => timelines.map((timeline) => [`${fileOf(timeline)}.json`, JSON.stringify(traceOf(timeline)), "application/json"]),
};
const NOTHING = "There is no timeline to save.";
const NO_UNIT = "A trace needs times in s, ms or us, and not too large ones. These times cannot be written.";

// Buttons for the row of a view (share.js). They save the timelines that `shown()` returns, and the SVG pictures in the element `box`.
export function exportsOf(shown, box) {
  const saving = (kind) => {
    const timelines = shown().filter(({ ops }) => ops.length);
    if (!timelines.length) return NOTHING;
    if (kind === TRACE && !timelines.every(isTraceable)) return NO_UNIT;
    return `Saved ${listed(FILES[kind](timelines, box).map(save))}.`;
  };
  return Object.keys(FILES).map((kind) => [`Save ${kind}`, (say) => say(saving(kind))]);
}
