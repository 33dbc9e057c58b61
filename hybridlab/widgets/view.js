// What the views of all widgets share. It stands above a widget's own file, and the two are one module.

const SVG = "http://www.w3.org/2000/svg"; // the name of the format; nothing is asked for it
const SVG_TAGS = new Set(["svg", "g", "rect", "path", "line", "circle", "text", "defs", "pattern"]);

function make(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const number = (value) => String(Number(value.toPrecision(6)));
const plain = (event) => !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey;
const counted = (count, thing) => `${count} ${thing}${count === 1 ? "" : thing.endsWith("ch") ? "es" : "s"}`;
const freshId = () => `hybridlab-${Math.random().toString(36).slice(2, 10)}`; // each view of a page has its own

// The element that holds all of a view; `name` is the class of its kind.
function rootIn(el, name) {
  const root = make("div", { class: `hybridlab-view hybridlab-${name}` });
  root.addEventListener("keydown", (event) => {
    if (plain(event)) event.stopPropagation(); // a notebook would take letters, digits and arrow keys for its cells
  });
  el.append(root);
  return root;
}

// In place of a view that its data are not enough for, such as a "picture" that cannot be "drawn".
function sayDamaged(root, thing, done) {
  const why = `The data of this ${thing} are missing or damaged, so it cannot be ${done}.`;
  root.replaceChildren(make("p", { class: "damaged", role: "alert" }, `${why} Reload the page, or run the cell again.`));
}

function field(id, label, input, ...more) {
  const element = make("div", { class: "field" }, make("label", { for: id }, label), ...more, input);
  input.id = id;
  return element;
}

// A field to choose one of a few values with; `show(value, options)` takes pairs of a value and its title.
function selectOf(id, label, pick) {
  const select = make("select");
  const element = field(id, label, select);
  select.addEventListener("change", () => pick(select.value));
  const show = (value, options) => {
    element.hidden = options.length < 2;
    if (options.map(([name]) => name).join() !== [...select.options].map((option) => option.value).join()) {
      select.replaceChildren(...options.map(([name, title]) => make("option", { value: name }, title)));
    }
    select.value = value;
  };
  return { element, show, focus: () => select.focus() };
}

// Calls `show` now, and once after each change of `traits`, however many change together. When the data are damaged, and at the
// end, which the returned `end` brings, `stop` is called. `again` draws at once. `name` is that of the view: a "picture", for the reader.
function keepDrawn(model, root, traits, show, stop, name = "picture") {
  let due = false;
  const guarded = () => {
    due = false;
    try {
      show();
    } catch (error) {
      console.warn(`${name}:`, error);
      end();
      sayDamaged(root, name, "drawn");
    }
  };
  const soon = () => {
    if (!due) queueMicrotask(guarded);
    due = true;
  };
  const end = () => {
    stop();
    for (const trait of traits) model.off?.(`change:${trait}`, soon);
  };
  for (const trait of traits) model.on(`change:${trait}`, soon);
  guarded();
  return { end, again: guarded };
}
