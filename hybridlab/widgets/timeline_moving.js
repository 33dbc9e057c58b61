// The picture as a whole: drawn, pointed at, and walked through with the arrow keys.

const HINT =
  "Point at an operation, or tap it, to read what it waited for. From the keyboard: Tab to the picture, arrow keys to move, " +
  "Enter to go to what the operation waited for.";

function neighbour(ops, op, key) {
  const line = ops.filter((each) => each.line === op.line);
  const place = line.indexOf(op);
  const beside = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: line.length - 1 };
  if (key in beside) return line[beside[key]] ?? op;
  if (key === "Enter") return op.waitedFor ?? op;
  const step = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!step) return null;
  const middle = (each) => Math.abs(each.start + each.end - op.start - op.end);
  const there = ops.filter((each) => each.line === op.line + step);
  return there.reduce((best, each) => (middle(each) < middle(best) ? each : best), there[0] ?? op);
}

// Says below each timeline what is pointed at in it; below the first, while that is nothing, how to use the picture.
function tell(timelines, op) {
  timelines.filter((timeline) => timeline.told).forEach((timeline, place) => {
    const here = op && timeline.ops.includes(op);
    timeline.told.classList.toggle("hint", !here);
    if (!here) return timeline.told.replaceChildren(place === 0 ? HINT : "");
    const words = `${named(timeline, op)} ${reason(timeline, op)}`.slice(op.text.length);
    timeline.told.replaceChildren(make("strong", {}, op.text), words);
  });
}

function arrowTo(op, frame) {
  const from = op.waitedFor;
  const [[y, height], [y0, height0]] = [op.late, from].map((each) => levelOf(each, each.device * frame.pitch, frame.bar));
  const [x1, y1, x2, y2] = [from.end * frame.scale, y0 + height0 / 2, op.start * frame.scale, y + height / 2];
  const line = make("path", { d: `M${round(x1)} ${y1}L${round(x2)} ${y2}` });
  const ends = [[x1, y1], [x2, y2]].map(([cx, cy]) => make("circle", { cx: round(cx), cy, r: 3.5 }));
  return make("g", { class: "arrow", "aria-hidden": "true" }, line, ...ends);
}

// The picture, one stop of the Tab key; `draw(timelines)` shows them.
function pictureOf(id, pick) {
  const box = make("div", { class: "picture" });
  let [timelines, frame, ops, width, current] = [[], null, [], 0, null];

  const mark = (op) => {
    box.querySelectorAll(".arrow").forEach((arrow) => arrow.remove());
    box.classList.toggle("following", Boolean(op));
    for (const each of ops) {
      each.bar.classList.toggle("same", Boolean(op) && each.panel === op.panel && each.microbatch === op.microbatch);
      each.bar.classList.toggle("waited", Boolean(op) && each === op.waitedFor);
      each.bar.classList.toggle("together", Boolean(op) && each === op.partner);
      each.bar.classList.toggle("now", each === op);
    }
    if (op?.late) op.bar.parentNode.append(arrowTo(op, frame));
    tell(timelines, op);
  };
  const opAt = (target) => ops.find((op) => op.bar === target.closest?.(".op"));
  const rest = () => mark(box.matches(":focus-within") ? current : null);
  const settle = (op) => {
    current?.bar.setAttribute("tabindex", -1);
    current = op;
    op.bar.setAttribute("tabindex", 0);
  };
  const draw = (given = timelines) => {
    const focused = ops.includes(current) && box.matches(":focus-within");
    const before = current;
    [timelines, width] = [given, box.clientWidth];
    box.style.setProperty("--hl-width", width ? `${width}px` : "100%");
    frame = frameOf(timelines, width || 640);
    let lines = 0;
    timelines.forEach((timeline, panel) => {
      for (const op of timeline.ops) Object.assign(op, { panel, line: lines + op.device });
      lines += timeline.refusal ? 0 : timeline.devices;
    });
    ops = timelines.flatMap((timeline) => timeline.ops);
    box.replaceChildren(...timelines.map((timeline, panel) => panelOf(timeline, frame, `${id}-idle${panel}`, pick)));
    const label = `${timelines.map(summary).join(" ")} Arrow keys move between operations.`;
    const described = { role: "application", "aria-roledescription": "timeline", "aria-label": label };
    for (const [name, value] of Object.entries(described)) ops.length ? box.setAttribute(name, value) : box.removeAttribute(name);
    current = null;
    if (ops.length) settle(ops.find((op) => op.panel === before?.panel && op.text === before.text) ?? ops[0]);
    if (focused) current?.bar.focus();
    else mark(null);
  };

  box.addEventListener("pointerover", (event) => (opAt(event.target) ? mark(opAt(event.target)) : rest()));
  box.addEventListener("pointerleave", rest);
  box.addEventListener("focusout", () => mark(null));
  box.addEventListener("focusin", (event) => {
    const op = opAt(event.target);
    if (op) settle(op);
    mark(op ?? null);
  });
  box.addEventListener("keydown", (event) => {
    const from = opAt(event.target);
    const to = from && plain(event) ? neighbour(ops, from, event.key) : null;
    if (!to) return;
    event.preventDefault();
    to.bar.focus();
    timelines[to.panel].told.scrollIntoView({ block: "nearest" });
  });
  const observer = new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) draw();
  });
  observer.observe(box);
  return { element: box, draw, stop: () => observer.disconnect() };
}
