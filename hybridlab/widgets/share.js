// The row of small buttons at the end of a view's controls: a link to the page with the view as it is set, and the view's exports.

import { queryOf, settingIn } from "./setting.js";
import { freshId, make } from "./view.js";

const COPYING = "Copying the link ...";
const COPIED = "Link copied.";
const BY_HAND = "The browser did not allow the page to copy. Copy the link from the field.";
const OF_SEVERAL = " It leads to this view. The address of the page keeps only the view that was changed last.";

// The link in a field, selected, for browsers in which the page cannot copy.
function fieldOf(link) {
  const id = freshId();
  const input = make("input", { type: "text", id, readonly: "", value: link, spellcheck: "false" });
  const select = () => {
    input.focus();
    input.select();
  };
  return { element: make("p", { class: "by-hand" }, make("label", { for: id }, "Link"), input), select };
}

async function copyLink(page, say) {
  const link = page.link();
  say(COPYING);
  try {
    await navigator.clipboard.writeText(link);
    say(COPIED + (page.several ? OF_SEVERAL : ""));
  } catch {
    const field = fieldOf(link);
    say(BY_HAND, field.element);
    field.select();
  }
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
function followLinks(model, names, row, say, choices) {
  const state = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const made = state();
  const follow = (event) => {
    const link = event.target.closest?.('a[href^="#view?"]');
    const root = row.closest(EXPLORER);
    if (!link || !root?.isConnected || explorerOf(link) !== root) return;
    event.preventDefault();
    event.stopPropagation();
    const { setting, fault } = settingIn(link.getAttribute("href").slice("#view?".length), names, made, state(), choices);
    say(fault ?? "");
    if (fault) return;
    model.set(setting);
    model.save_changes();
    root.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("click", follow, true); // before the notebook follows the link itself
}

// `names` are the traits of the view's setting. A view asks for its row before it draws for the first time, because a link to the page
// can bring a setting. `files` are further buttons: pairs of a label and a function that gets `say(sentence, ...elements)`. In a notebook
// there is no page to link to, so the row has only these. `choices` has the values of each trait whose values have several types.
export function shareRow(model, names, files = [], choices = {}) {
  model.page?.open(names, { queryOf, settingIn: (...link) => settingIn(...link, choices) });
  const [told, below] = [make("span", { class: "hint", role: "status" }), make("div")];
  const say = (sentence, ...elements) => {
    told.textContent = sentence;
    below.replaceChildren(...elements);
  };
  const acts = model.page ? [["Copy a link", () => copyLink(model.page, say)], ...files] : files;
  const buttons = acts.map(([label, act]) => {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", () => act(say));
    return button;
  });
  const row = make("div", { class: "share", role: "group", "aria-label": "Link and files" }, ...buttons, told, below);
  row.hidden = !buttons.length;
  if (!model.page) followLinks(model, names, row, say, choices);
  return row;
}
