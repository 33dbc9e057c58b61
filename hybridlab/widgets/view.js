// What the views of all widgets share. It stands above a widget's own file, and the two are one module.

const SVG = "http://www.w3.org/2000/svg"; // the name of the format; nothing is asked for it
const SVG_TAGS = new Set(["svg", "g", "rect", "path", "line", "circle", "text", "defs", "pattern"]);
const DAMAGED = "The data of this picture are missing or damaged, so it cannot be drawn. Reload the page, or run the cell again.";

function make(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const number = (value) => String(Number(value.toPrecision(6)));
const plain = (event) => !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey;
const counted = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

function field(id, label, input, ...more) {
  const element = make("div", { class: "field" }, make("label", { for: id }, label), ...more, input);
  input.id = id;
  return element;
}
