// The orders as chips, a row for each device: a chip is moved along its row with the pointer, or with Alt and an arrow key.

import { make } from "./view.js";

const FAR = 5; // px: a pointer that moves less does not drag
const MOVE_HINT = "Drag an operation, or move it with Alt and an arrow key.";

// The place in a row at which a chip is dropped: behind all other chips that come before the pointer, line by line.
function placeAt(row, chip, x, y) {
  const { top, bottom } = row.getBoundingClientRect();
  const level = Math.min(Math.max(y, top + 1), bottom - 1);
  return [...row.children].filter((each) => {
    const box = each.getBoundingClientRect();
    return each !== chip && (box.bottom < level || (box.top <= level && (box.left + box.right) / 2 < x));
  }).length;
}

// `colours` has the colour of each kind. `moved(device, from, to, begins)` moves a word; `begins` is false for all but the first move of a
// drag. `cancelled()` takes a drag back. `show(lines, states)` draws the words of the lines; `states[device][position]` is "ran", "waits" or
// "wrong".
export function chipsOf(id, colours, moved, cancelled) {
  const hint = make("p", { class: "hint", id: `${id}-chips-hint` }, MOVE_HINT);
  const box = make("div", { class: "chips", role: "group", "aria-label": "Orders, one row for each device" });
  const rows = [];
  let [current, drag] = [[0, 0], null]; // [device, position] of the chip that the Tab key reaches

  const at = (chip) => [rows.findIndex(({ row }) => row === chip.parentElement), [...chip.parentElement.children].indexOf(chip)];
  const settle = (device, position) => {
    const row = rows[Math.min(Math.max(device, 0), rows.length - 1)]?.row;
    const chip = row?.children[Math.min(Math.max(position, 0), row.children.length - 1)] ?? box.querySelector(".chip");
    for (const each of box.querySelectorAll('[tabindex="0"]')) {
      each.setAttribute("tabindex", -1);
      each.setAttribute("aria-selected", false);
    }
    if (!chip) return null;
    chip.setAttribute("tabindex", 0);
    chip.setAttribute("aria-selected", true);
    current = at(chip);
    return chip;
  };

  const rowFor = (device) => {
    const name = make("span", { class: "whose", id: `${id}-row${device}` }, `device ${device}`);
    const row = make("div", { class: "order", role: "listbox", "aria-labelledby": name.id, "aria-orientation": "horizontal" });
    box.append(make("div", { class: "of-device" }, name, row));
    return { row, words: null };
  };
  const chipFor = (text) => make("span", { class: "chip", role: "option", tabindex: -1, "aria-selected": "false" }, text);
  // Chips of the same words stay the same elements, so a drag goes on and the focus can return.
  const fill = (row, words) => {
    const spare = new Map();
    for (const chip of row.children) spare.set(chip.textContent, [...(spare.get(chip.textContent) ?? []), chip]);
    row.replaceChildren(...words.map(({ text }) => spare.get(text)?.shift() ?? chipFor(text)));
  };
  const paint = (row, words, states) => {
    words.forEach(({ turn, text }, position) => {
      const chip = row.children[position];
      const kind = turn.length === 1 ? turn[0].kind : "";
      chip.className = `chip ${states[position]} ${kind}${chip === drag?.chip ? " dragged" : ""}`;
      chip.style.setProperty("--hl-kind", colours[kind] ?? "transparent");
      const state = { ran: "", waits: ", not run", wrong: ", wrong" }[states[position]];
      chip.setAttribute("aria-label", `${text}, ${position + 1} of ${words.length}${state}`);
    });
  };
  const show = (lines, states) => {
    const focused = box.contains(document.activeElement);
    while (rows.length > lines.length) rows.pop().row.parentElement.remove();
    lines.forEach(({ words }, device) => {
      rows[device] ??= rowFor(device);
      const texts = words.map(({ text }) => text).join("\n");
      if (rows[device].words !== texts) fill(rows[device].row, words);
      rows[device].words = texts;
      paint(rows[device].row, words, states[device]);
    });
    const chip = settle(...current);
    if (focused) chip?.focus({ preventScroll: true });
  };

  const keys = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const jumps = { Home: 0, End: Number.MAX_SAFE_INTEGER };
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && drag) return leave(true);
    const chip = event.target.closest(".chip");
    if (!chip || event.ctrlKey || event.metaKey || event.shiftKey || !(event.key in keys || event.key in jumps)) return;
    event.preventDefault();
    event.stopPropagation();
    const [device, position] = at(chip);
    const [down, right] = keys[event.key] ?? [0, jumps[event.key] - position];
    if (!event.altKey) return settle(device + down, position + right)?.focus();
    const to = Math.min(Math.max(position + right, 0), chip.parentElement.children.length - 1);
    if (to === position) return;
    current = [device, to];
    moved(device, position, to, true);
  });
  box.addEventListener("focusin", (event) => {
    const chip = event.target.closest(".chip");
    if (chip) settle(...at(chip));
  });

  const leave = (back) => {
    const { chip, dragging, pointer } = drag;
    drag = null;
    chip.classList.remove("dragged");
    if (box.hasPointerCapture(pointer)) box.releasePointerCapture(pointer);
    if (back && dragging) cancelled();
  };
  box.addEventListener("pointerdown", (event) => {
    const chip = event.target.closest(".chip");
    if (chip && event.isPrimary && event.button === 0) {
      drag = { chip, pointer: event.pointerId, x: event.clientX, y: event.clientY, dragging: false, begun: false };
    }
  });
  box.addEventListener("pointermove", (event) => {
    if (event.pointerId !== drag?.pointer) return;
    if (!drag.dragging && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < FAR) return;
    if (!drag.dragging) {
      drag.dragging = true;
      drag.chip.classList.add("dragged");
      box.setPointerCapture(event.pointerId);
    }
    const [device, from] = at(drag.chip);
    const to = placeAt(drag.chip.parentElement, drag.chip, event.clientX, event.clientY);
    if (to === from) return;
    current = [device, to];
    moved(device, from, to, !drag.begun);
    drag.begun = true;
  });
  box.addEventListener("pointerup", (event) => event.pointerId === drag?.pointer && leave(false));
  box.addEventListener("pointercancel", (event) => event.pointerId === drag?.pointer && leave(true));
  box.addEventListener("lostpointercapture", (event) => event.target === box && event.pointerId === drag?.pointer && leave(false));
  return { element: make("div", { class: "moving" }, box, hint), show };
}
