// Shared by all views: elements, numbers in words, fields, drawing after changes, the sentence for damaged data.

const SVG = "http://www.w3.org/2000/svg"; // the name of the format; no request is sent
const SVG_TAGS = new Set(["svg", "g", "rect", "path", "line", "circle", "polygon", "text", "defs", "pattern", "title", "desc"]);

export function make(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Sets the attributes that have changed. To set an attribute takes the browser time, even if the value is the same as before.
export function setAll(element, attributes) {
  for (const [name, given] of Object.entries(attributes)) {
    const value = String(given);
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
  return element;
}

// Keeps an element in `parent` for each entry of a list: the returned function makes those that are missing, removes those that are too
// many, and calls `set(element, entry)` for each.
export function poolOf(parent, tag, set) {
  const elements = [];
  return (entries) => {
    while (elements.length > entries.length) elements.pop().remove();
    while (elements.length < entries.length) elements.push(parent.appendChild(make(tag)));
    entries.forEach((entry, place) => set(elements[place], entry));
  };
}

export const number = (value) => String(Number(value.toPrecision(6)));
export const plain = (event) => !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey;
export const counted = (count, thing) => `${count} ${thing}${count === 1 ? "" : thing.endsWith("ch") ? "es" : "s"}`;
export const grouped = (count) => count.toLocaleString("en"); // 12,345
export const listed = (words, comma = ", ") =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(comma)} and ${words.at(-1)}`;
export const freshId = () => `hybridlab-${Math.random().toString(36).slice(2, 10)}`; // unique for each view of a page

// The element that holds a whole view; `name` is the kind of view, for its class.
export function rootIn(el, name) {
  const root = make("div", { class: `hybridlab-view hybridlab-${name}` });
  root.addEventListener("keydown", (event) => {
    if (plain(event)) event.stopPropagation(); // otherwise a notebook takes letters, digits and arrow keys as commands for its cells
  });
  el.append(root);
  return root;
}

// Replaces a view with damaged data by a sentence, such as: this "picture" cannot be "drawn".
export function sayDamaged(root, thing, done) {
  const why = `The data of this ${thing} are missing or damaged, so it cannot be ${done}.`;
  root.replaceChildren(make("p", { class: "damaged", role: "alert" }, `${why} Reload the page, or run the cell again.`));
}

export function field(id, label, input, ...more) {
  const element = make("div", { class: "field" }, make("label", { for: id }, label), ...more, input);
  input.id = id;
  return element;
}

// A field with a few values to choose from; `show(value, options)` takes pairs of a value and its title.
export function selectOf(id, label, pick) {
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

// Calls `show` now and after changes of `traits`, once for all that change together. Returns `end`, which stops this, and `again`, which
// draws at once. `end` and damaged data call `stop`. `name` is the reader's word for the view, such as "picture".
export function keepDrawn(model, root, traits, show, stop, name = "picture") {
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
