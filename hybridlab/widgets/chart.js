// Shared by pictures of points and lines: marks, names at the ends of lines, a slider over an axis, tables, what the pointer does.

import { field, make } from "./view.js";

export const at = (value) => Number(value.toFixed(2));

// The outline of a mark centred at (x, y), as the text of a path. Each of the numbers 0 to 6 has its own shape.
export function outlineOf(shape, x, y, r) {
  const [px, py] = [at(x), at(y)];
  const shapes = [
    () => `M${at(px - r)} ${py}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
    () => `M${px - r} ${py - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
    () => `M${px} ${at(py - 1.3 * r)}L${at(px + 1.25 * r)} ${py + r}L${at(px - 1.25 * r)} ${py + r}Z`,
    () => `M${px} ${at(py - 1.4 * r)}l${1.4 * r} ${1.4 * r}l${-1.4 * r} ${1.4 * r}l${-1.4 * r} ${-1.4 * r}Z`,
    () => `M${px} ${at(py + 1.3 * r)}L${at(px + 1.25 * r)} ${py - r}L${at(px - 1.25 * r)} ${py - r}Z`,
    () => `M${px - 1.4 * r} ${py - 0.5 * r}h${2.8 * r}v${r}h${-2.8 * r}Z`,
    () => `M${px - r} ${py - r}l${2 * r} ${2 * r}M${px - r} ${py + r}l${2 * r} ${-2 * r}`,
  ];
  return shapes[shape % shapes.length]();
}

// The mark itself, as an element of its own; shape 0 is a circle.
export function markOf(shape, x, y, r, attributes) {
  if (shape % 7 === 0) return make("circle", { cx: at(x), cy: at(y), r, ...attributes });
  return make("path", { d: outlineOf(shape, x, y, r), ...attributes });
}

// A slider over the values of an axis, such as numbers of ranks. `told(value)` returns a value in words.
export function markerOf(id, label, told, pick) {
  const slider = make("input", { type: "range", min: 0, step: 1 });
  const output = make("output", { for: id, "aria-live": "off" }); // a screen reader reads the value from the slider
  const element = field(id, label, slider, output);
  let values = [];
  slider.addEventListener("input", () => pick(values[Number(slider.value)]));
  const show = (value, offered) => {
    values = offered;
    element.hidden = values.length < 2;
    slider.max = values.length - 1;
    slider.value = values.indexOf(value);
    slider.setAttribute("aria-valuetext", told(value));
    output.textContent = value;
  };
  return { element, show, focus: () => slider.focus({ preventScroll: true }) };
}

// The parts of a table. A cell is a text or an element.
export function tableOf(caption, heads, rows) {
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const cellOf = (cell) => (cell instanceof Element ? cell : make("td", {}, cell));
  const body = rows.map(([first, ...cells]) => make("tr", {}, make("th", { scope: "row" }, first), ...cells.map(cellOf)));
  return [make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body)];
}

// Moves names with a height `y` at least `apart` px away from each other, between `top` and `bottom`. Returns them from the top down.
export function spread(names, apart, top, bottom) {
  const groups = []; // groups of names that touch, each group as near as possible to its own heights
  const grouped = (rows) => {
    const tall = apart * (rows.length - 1);
    const middle = rows.reduce((sum, { y }) => sum + y, 0) / rows.length;
    const start = Math.max(top, Math.min(bottom - tall, middle - tall / 2));
    return { rows, start, end: start + tall };
  };
  for (const each of [...names].sort((one, other) => one.y - other.y)) {
    let group = grouped([each]);
    while (groups.length && groups.at(-1).end + apart > group.start) group = grouped([...groups.pop().rows, ...group.rows]);
    groups.push(group);
  }
  return groups.flatMap(({ rows, start }) => rows.map((each, place) => ({ ...each, y: start + apart * place })));
}

// What a picture with a marker answers, for readers.
export const POINTING =
  "Point at the picture to read it there. A click or a tap keeps the place, and arrow keys then move the marker; Escape, or a click beside " +
  "the picture, lets the place go.";

// Pointing at a picture shows a value, a click or a tap keeps it, a drag keeps the value where it ends, Escape or a click beside the picture
// lets it go. `valueAt(event)` is the value under the pointer, or null. `look(value)` shows a value, and `look(null)` that of the marker.
// `pick(value)` moves the marker, and `focus()` leads to its slider, whose arrow keys move it. Returns a function that ends this.
export function pointed(root, box, { valueAt, look, pick, focus }) {
  let [looked, kept] = [null, false];
  const keep = (fixed) => {
    kept = fixed;
    box.classList.toggle("kept", fixed);
  };
  const show = (value) => {
    if (value !== looked) look(value);
    looked = value;
  };
  const choose = (event) => {
    const value = valueAt(event);
    if (value === null) return;
    show(null);
    keep(true);
    pick(value);
    focus();
  };
  box.addEventListener("click", choose);
  box.addEventListener("pointermove", (event) => {
    if (event.buttons === 1) choose(event);
    else if (event.pointerType !== "touch" && !kept) show(valueAt(event));
  });
  box.addEventListener("pointerleave", () => show(null));
  root.addEventListener("input", () => keep(false));
  root.addEventListener("keydown", (event) => event.key === "Escape" && keep(false));
  const away = (event) => box.contains(event.target) || keep(false);
  document.addEventListener("pointerdown", away);
  return () => document.removeEventListener("pointerdown", away);
}

// Calls `resized` when the width of a picture changes. Returns a function that ends the observation.
export function watched(box, resized) {
  let width = box.clientWidth;
  const observer = new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) resized();
    width = box.clientWidth;
  });
  observer.observe(box);
  return () => observer.disconnect();
}
