// The picture of a timeline explorer: timelines on one time axis. Operations and idle times are chosen with the pointer or the arrow keys.

import { neededFrom } from "./timed.js";
import { arrowTo, colourPath, fillPanel, frameOf, itemsOn, moveTo, outlineGone, panelOf, placePanel, titleOf } from "./timeline_panel.js";
import { chainBehind, named, pathWords, reason, summary, wanted, whyIdle } from "./timeline_words.js";
import { make, plain } from "./view.js";

const HINT =
  "Point at an operation or an idle time to read what it waits for; a click or a tap keeps it, Escape lets go. From the keyboard: Tab to " +
  "the picture, arrow keys to move, Space to keep, Enter to go to what is waited for.";

function refusedPanel(timeline, pick) {
  const sentence = make("p", {}, `${timeline.refusal[0].toUpperCase()}${timeline.refusal.slice(1)}.`);
  const buttons = timeline.remedies.map(({ name, value }) => {
    const button = make("button", { type: "button" }, `Show ${value} ${name}`);
    button.addEventListener("click", () => pick(name, value, true));
    return button;
  });
  return { element: make("div", { class: "panel" }, titleOf(timeline), make("div", { class: "refused" }, sentence, ...buttons)) };
}

const middle = ({ start, end }) => (start + end) / 2;

// The item that a key leads to from an item, or null for other keys. `panels` are those that are drawn.
function neighbour(panels, panel, item, key) {
  const line = itemsOn(panel, item.device);
  const place = line.indexOf(item);
  const beside = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: line.length - 1 };
  if (key in beside) return line[beside[key]] ?? item;
  if (key === "Enter") return (item.gap ? (item.next?.late ? item.next.waitedFor : item.next) : item.waitedFor) ?? item;
  const step = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!step) return null;
  const rows = panels.flatMap((each) => each.lines.map((_, device) => [each, device]));
  const here = rows.findIndex(([each, device]) => each === panel && device === item.device);
  const to = rows[here + step];
  if (!to) return item;
  const near = (each) => Math.abs(middle(each) - middle(item));
  return itemsOn(...to).reduce((best, each) => (near(each) < near(best) ? each : best));
}

// The marks of an item of a timeline and of those around it: pairs of a class and an item.
function marksOf(timeline, item) {
  const { gap, microbatch, partner, waitedFor, next } = item;
  const of = {
    now: [item],
    same: gap ? [] : timeline.ops.filter((op) => op.microbatch === microbatch),
    together: [partner],
    waited: gap ? chainBehind(item) : [waitedFor],
    next: gap ? [next] : neededFrom(timeline, item),
  };
  return Object.entries(of).flatMap(([name, items]) => items.filter(Boolean).map((each) => [name, each]));
}

// The name of an item in a link. An idle time is named after the operation that ends it.
const nameOfItem = ({ gap, device, next, text }) => (gap ? `idle before ${next?.text ?? `the end of device ${device}`}` : text);
const OTHER = " below"; // the end of the name of an item in the second timeline; in the third, the name has it twice

// What is told of an item: its name in bold, and sentences.
function wordsOf(timeline, item) {
  if (item.gap) return ["Idle.", ` ${whyIdle(timeline, item)}`];
  const words = `${named(timeline, item)} ${reason(timeline, item)} ${wanted(timeline, item)}`;
  return [item.text, words.slice(item.text.length)];
}

// The picture, one stop of the Tab key, and `told`, the sentences on what is pointed at. `draw(timelines)` shows timelines.
// `moveTime(times)` moves the cursor of all panels to a time, or of each panel to its own. `zoomTo(zoom)` sets the width.
// `showPath(shown)` colours the critical paths.
// `look()` is what a link keeps of it: the name of the item that is kept, and the time at the left edge. `has(name)` says whether there is
// such an item, and `showLook(look)` shows both. `changed()` is called when the reader has changed them. `low` asks for low rows.
export function pictureOf(id, pick, low = false, changed = () => {}) {
  const [box, told] = [make("div", { class: "picture" }), make("p", { class: "told" })];
  let [timelines, panels, width, zoom, current, pinned, path, marked, made] = [[], [], 0, 1, null, null, false, [], 0];
  let scrolled = 0; // px; to ask the box for it after each change would lay out the page twice

  const drawn = () => panels.filter((panel) => panel.plot);
  const panelWith = (item) => drawn().find((panel) => panel.plot.contains(item.bar));
  // Tells of an item and of the critical paths if they are coloured. Without both, tells how to use the picture.
  const tell = (item) => {
    const panel = item && panelWith(item);
    told.classList.toggle("hint", !panel && !path);
    const sums = path ? drawn().map(({ timeline }) => pathWords(timeline)).join(" ") : "";
    if (!panel) return told.replaceChildren(sums || (drawn().length ? HINT : ""));
    const [name, words] = wordsOf(panel.timeline, item);
    told.replaceChildren(make("strong", {}, name), sums ? `${words} ${sums}` : words);
  };
  const mark = (item) => {
    for (const arrow of box.querySelectorAll(".arrow")) arrow.remove();
    for (const [name, { bar }] of marked) bar.classList.remove(name);
    box.classList.toggle("following", Boolean(item));
    const own = item && panelWith(item);
    marked = own ? marksOf(own.timeline, item) : [];
    for (const [name, { bar }] of marked) bar.classList.add(name);
    if (item?.late) item.bar.parentNode.append(arrowTo(item, own.frame));
    tell(item);
  };
  // The name of the item that is kept, and the item with a name.
  const keptName = () => (pinned ? nameOfItem(pinned) + OTHER.repeat(panels.indexOf(panelWith(pinned))) : "");
  const itemNamed = (name) => {
    const [own, ...others] = name.split(OTHER);
    const panel = others.some(Boolean) ? null : panels[others.length];
    const devices = panel?.plot ? panel.lines.map((_, device) => device) : [];
    return devices.flatMap((device) => itemsOn(panel, device)).find((item) => nameOfItem(item) === own) ?? null;
  };
  const keep = (item) => {
    pinned = item;
    rest();
    changed();
  };
  const rest = () => mark(pinned ?? (box.matches(":focus-within") ? current : null));
  const itemAt = (target) => target.closest?.(".op, .idle")?.item;
  const release = () => {
    current?.bar.setAttribute("tabindex", -1);
    for (const name of ["role", "aria-label"]) current?.bar.removeAttribute(name); // thousands of names would slow the page down
    current = null;
  };
  const settle = (item) => {
    release();
    current = item;
    for (const [name, value] of [["tabindex", 0], ["role", "img"]]) item.bar.setAttribute(name, value);
    const { timeline } = panelWith(item);
    const where = drawn().length > 1 ? `${timeline.title}, ` : "";
    item.bar.setAttribute("aria-label", `${where}${wordsOf(timeline, item).join("")}`);
  };
  const edges = () => {
    box.classList.toggle("more-left", box.scrollLeft > 1);
    box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };

  // A timeline of the same orders as before keeps its elements, which only move.
  const draw = (given = timelines) => {
    const focused = current && box.matches(":focus-within");
    const kept = given === timelines ? keptName() : "";
    const before = current && { place: panels.findIndex((panel) => panel.timeline?.ops.includes(current)), text: current.text };
    release();
    timelines = given;
    width ||= box.clientWidth; // later the observer keeps it: to ask for it here would lay out the page twice
    const wide = width ? `${width}px` : "100%";
    if (box.style.getPropertyValue("--hl-width") !== wide) box.style.setProperty("--hl-width", wide); // all elements in the box inherit it
    const frame = frameOf(timelines, width || 640, zoom, low);
    const old = panels;
    panels = timelines.map((timeline) => {
      if (timeline.refusal) return refusedPanel(timeline, pick);
      return old.find((panel) => panel.timeline?.ops === timeline.ops) ?? panelOf(timeline, `${id}-idle${made++}`);
    });
    panels.forEach((panel, place) => panel.plot && placePanel(panel, timelines[place], frame));
    panels.forEach((panel, place) => panel.plot && outlineGone(panel, place === 0 && panels.length === 2 && panels[1].plot ? panels[1] : null));
    for (const panel of drawn()) {
      moveTo(panel, panel.time);
      colourPath(panel, path);
      if (!old.includes(panel)) fillPanel(panel);
    }
    for (const panel of old) if (!panels.includes(panel)) panel.element.remove();
    panels.forEach(({ element }, place) => {
      if (box.children[place] !== element) box.insertBefore(element, box.children[place] ?? null);
    });
    const label = `${timelines.map(summary).join(" ")} Arrow keys move between operations and idle times.`;
    const described = { role: "application", "aria-roledescription": "timeline", "aria-label": label };
    for (const [name, value] of Object.entries(described)) drawn().length ? box.setAttribute(name, value) : box.removeAttribute(name);
    pinned = itemNamed(kept);
    const ops = drawn().flatMap((panel) => panel.timeline.ops);
    if (ops.length) settle(panels[before?.place]?.timeline?.ops.find((op) => op.text === before.text) ?? ops[0]);
    requestAnimationFrame(edges);
    if (focused) current?.bar.focus();
    rest();
  };

  box.addEventListener("pointerover", (event) => {
    const item = pinned ? null : itemAt(event.target);
    if (item) mark(item);
    else if (!pinned) rest();
  });
  box.addEventListener("pointerleave", rest);
  box.addEventListener("click", (event) => {
    const item = itemAt(event.target);
    keep(item && item !== pinned ? item : null);
  });
  box.addEventListener("focusout", ({ relatedTarget }) => {
    if (!box.contains(relatedTarget)) mark(pinned);
  });
  box.addEventListener("focusin", (event) => {
    const item = itemAt(event.target);
    if (item) settle(item);
    mark(item ?? pinned);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return keep(null);
    const from = itemAt(event.target);
    if (from && event.key === " " && plain(event)) {
      event.preventDefault();
      return keep(from === pinned ? null : from);
    }
    const to = from && plain(event) ? neighbour(drawn(), panelWith(from), from, event.key) : null;
    if (!to) return;
    event.preventDefault();
    keep(null);
    settle(to);
    to.bar.focus();
  });
  // text on a page asks to light an operation, by its name; null lets go
  box.addEventListener("hybridlab:light", ({ detail }) => {
    const item = drawn().flatMap((panel) => panel.timeline.ops).find(({ text }) => text === detail.op);
    if (detail.keep) return keep(item ?? null);
    if (item) mark(item);
    else rest();
  });
  const scrollTo = (x) => {
    box.scrollLeft = x;
    scrolled = box.scrollLeft;
  };
  box.addEventListener("scroll", () => {
    scrolled = box.scrollLeft;
    edges();
    changed();
  });
  const observer = new ResizeObserver(() => {
    if (!box.clientWidth || box.clientWidth === width) return;
    width = box.clientWidth;
    draw();
  });
  observer.observe(box);
  const moveTime = (times) => {
    for (const [place, panel] of drawn().entries()) moveTo(panel, Array.isArray(times) ? times[place] : times);
  };
  const zoomTo = (given) => {
    const at = (box.scrollLeft + box.clientWidth / 2) / box.scrollWidth;
    zoom = given;
    draw();
    scrollTo(at * box.scrollWidth - box.clientWidth / 2);
    changed();
  };
  const showPath = (shown) => {
    path = shown;
    for (const panel of drawn()) colourPath(panel, path);
    rest();
    changed();
  };
  const scale = () => drawn()[0]?.frame.scale ?? 0; // px
  const look = () => ({ chosen: keptName(), left: scale() ? Number((scrolled / scale()).toPrecision(4)) : 0 });
  const showLook = ({ chosen, left }) => {
    pinned = itemNamed(chosen);
    if (pinned) settle(pinned);
    rest();
    scrollTo(left * scale());
  };
  const has = (name) => Boolean(itemNamed(name));
  return { element: box, told, draw, moveTime, zoomTo, showPath, look, has, showLook, stop: () => observer.disconnect() };
}
