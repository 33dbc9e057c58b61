// The row of small buttons at the end of a view's controls: a link to the page with the view as it is set, and the view's exports.

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

function copierOf(page) {
  const button = make("button", { type: "button" }, "Copy a link");
  const [told, below] = [make("span", { class: "hint", role: "status" }), make("div")];
  button.addEventListener("click", async () => {
    const link = page.link();
    below.replaceChildren();
    told.textContent = COPYING;
    try {
      await navigator.clipboard.writeText(link);
      told.textContent = COPIED + (page.several ? OF_SEVERAL : "");
    } catch {
      told.textContent = BY_HAND;
      const field = fieldOf(link);
      below.replaceChildren(field.element);
      field.select();
    }
  });
  return { button, parts: [told, below] };
}

// `names` are the traits of the view's setting. A view asks for its row before it draws for the first time, because a link to the page
// can bring a setting. In a notebook there is no page to link to, so the row has only the buttons in `more`.
export function shareRow(model, names, ...more) {
  model.page?.open(names);
  const link = model.page ? copierOf(model.page) : { button: [], parts: [] };
  const row = make("div", { class: "share", role: "group", "aria-label": "Link and files" });
  row.append(...[link.button, ...more].flat(), ...link.parts);
  row.hidden = !row.childElementCount;
  return row;
}
