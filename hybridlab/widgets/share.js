// The row of small buttons at the end of a view's controls: a link to the page with the view as it is set, a line that embeds the view in
// another page, and the view's exports.

import { partsOf, queryOf, settingIn } from "./setting.js";
import { freshId, listed, make } from "./view.js";

const BY_HAND = "The browser did not allow the page to copy. Copy the text from the field.";
const OF_SEVERAL = " It leads to this view. The address of the page keeps only the view that was changed last.";
const EMBEDDED = "The line for an HTML page is copied. It shows this view alone, as it is set now.";
const REST = "The rest of the link is shown.";
const UNCHANGED = "The view is as it was without the link.";

// A text in a field, selected, for browsers in which the page cannot copy.
function fieldOf(label, text) {
  const id = freshId();
  const input = make("input", { type: "text", id, readonly: "", value: text, spellcheck: "false" });
  const select = () => {
    input.focus();
    input.select();
  };
  return { element: make("p", { class: "by-hand" }, make("label", { for: id }, label), input), select };
}

async function copy(label, text, copied, say) {
  say(`Copying the ${label.replace("Link", "link")} ...`);
  try {
    await navigator.clipboard.writeText(text);
    say(copied);
  } catch {
    const field = fieldOf(label, text);
    say(BY_HAND, field.element);
    field.select();
  }
}

const copyLink = (page, say) => copy("Link", page.link(), `Link copied.${page.several ? OF_SEVERAL : ""}`, say);

const attribute = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

// An embedded view needs a line for its link back to the course, and may wrap its controls in a narrower frame.
function embed(page, say) {
  const height = Math.ceil(page.box.getBoundingClientRect().height) + 64; // px
  const look = `width="100%" height="${height}" style="border: 0" loading="lazy" allow="clipboard-write"`;
  return copy("HTML", `<iframe src="${attribute(page.link("embed"))}" title="${attribute(page.title())}" ${look}></iframe>`, EMBEDDED, say);
}

// ---- links ----

const NO_LOOK = { made: {}, rules: () => ({}), read: () => ({}), show() {} };

// `take(query)` sets the view to what a link asks for, and promises a sentence on what cannot be shown. `query()` has the words of a link to
// the view as it is. The look is what only the page has, such as the zoom: a link has the parts of it that are not as at the beginning. A link
// that an author has written can set a few parts and leave the others.
function linkTo(model, names, rules, look) {
  const state = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const made = state();
  const take = async (query) => {
    const words = new Map(new URLSearchParams(query));
    const first = settingIn(words, made, state(), rules);
    const changed = names.filter((name) => JSON.stringify(first.setting[name]) !== JSON.stringify(model.get(name)));
    model.set(Object.fromEntries(changed.map((name) => [name, first.setting[name]])));
    await null; // the view draws its setting, on which the look depends
    const parts = partsOf(made, names).map(([name]) => name);
    const whole = parts.every((name) => words.has(name)); // a link that a reader has copied
    const second = settingIn(words, look.made, whole ? look.made : look.read(), look.rules);
    look.show(second.setting);
    const known = [...parts, ...Object.keys(look.made)];
    const unknown = [...words.keys()].filter((name) => !known.includes(name));
    const others = unknown.map((name) => `The link asks for ${name.slice(0, 40)}, but this view has only ${listed(known)}.`);
    const told = [...others, ...first.faults, ...second.faults];
    return told.length ? [...told, told.length < words.size ? REST : UNCHANGED].join(" ") : "";
  };
  const query = () => {
    const now = look.read();
    const looks = Object.keys(now).filter((name) => JSON.stringify(now[name]) !== JSON.stringify(look.made[name]));
    return [queryOf(state(), names), queryOf(now, looks)].filter(Boolean).join("&");
  };
  return { take, query };
}

const HEADING = "h1, h2, h3, h4, h5, h6";
const EXPLORER = ".hybridlab-explorer";

// The explorer that a link of a notebook means: the next one in its section, else the last one before the link.
function explorerOf(link) {
  const marks = [...document.querySelectorAll(`${HEADING}, ${EXPLORER}`)].filter((each) => !each.parentElement.closest(EXPLORER));
  const behind = marks.filter((each) => link.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING);
  const isExplorer = (each) => each.matches(EXPLORER);
  const end = behind.findIndex((each) => !isExplorer(each));
  const next = behind.slice(0, end < 0 ? behind.length : end).find(isExplorer);
  return next ?? marks.slice(0, marks.length - behind.length).findLast(isExplorer);
}

// On the site, the page reads the address. In a notebook, a click on a link such as #view?devices=4 sets the explorer near the link.
function followLinks(model, words, row, say) {
  const follow = async (event) => {
    const link = event.target.closest?.('a[href^="#view?"]');
    const root = row.closest(EXPLORER);
    if (!link || !root?.isConnected || explorerOf(link) !== root) return;
    event.preventDefault();
    event.stopPropagation();
    const told = words.take(link.getAttribute("href").slice("#view?".length));
    model.save_changes();
    root.scrollIntoView({ block: "nearest" });
    say(await told);
  };
  document.addEventListener("click", follow, true); // before the notebook follows the link itself
}

// `names` are the traits of the view's setting, and `rules(setting)` has the rule of each (setting.js). A view asks for its row before it
// draws for the first time, because a link to the page can bring a setting. `look` is what only the page has: `made`, its parts at the
// beginning; `rules()`; `read()`, its parts as they are; `show(look)`. The view calls `model.page?.notice()` when they change. `files` are
// further buttons: pairs of a label and a function that gets `say(sentence, ...elements)`. In a notebook there is no page to link to, so
// the row has only these.
export function shareRow(model, names, rules, { look = NO_LOOK, files = [] } = {}) {
  const words = linkTo(model, names, rules, look);
  model.page?.open(words);
  const [told, below] = [make("span", { class: "hint", role: "status" }), make("div")];
  const say = (sentence, ...elements) => {
    told.textContent = sentence;
    below.replaceChildren(...elements);
  };
  const links = [["Copy a link", () => copyLink(model.page, say)], ["Embed", () => embed(model.page, say)]];
  const buttons = [...(model.page ? links : []), ...files].map(([label, act]) => {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", () => act(say));
    return button;
  });
  const row = make("div", { class: "share", role: "group", "aria-label": "Link and files" }, ...buttons, told, below);
  row.hidden = !buttons.length;
  if (!model.page) followLinks(model, words, row, say);
  return row;
}
