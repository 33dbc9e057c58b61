// A timeline explorer: controls, the figures as a table, a legend and the picture of one setting.
// Above it stand view.js and the files timeline_*.js; together they are one module.

const PATIENCE = 5000; // ms
const COMPUTING = "Computing ...";
const SILENT =
  "The kernel has not answered, so the picture below is still the last one: the kernel may be busy, or stopped. " +
  "The values that the explorer was made with work without it.";
const ABSENT =
  "these values together are not on this page, which holds a grid of them and computes nothing; " +
  "choose others, or run the notebook";

function legendOf(timelines) {
  const drawn = timelines.filter((timeline) => !timeline.refusal);
  const kinds = drawn[0]?.kinds ?? {};
  const present = new Set(drawn.flatMap((timeline) => timeline.ops.map((op) => op.kind)));
  const items = Object.keys(kinds).filter((kind) => present.has(kind)).map((kind) => kindSample(kind, kinds[kind]));
  if (!items.length) return items;
  items.push(idleSample());
  items.push(sampleOf("activations held", make("path", { class: "memory", d: "M0 17V12H6V7H13V2H19V9H25V17Z" })));
  if (drawn.some((timeline) => timeline.ops.some((op) => op.partner))) items.push(pairSample(kinds));
  const chunks = most(drawn.filter(({ copies }) => copies === 1).map((timeline) => timeline.chunks));
  if (chunks > 1) items.push(shadeSample("first to last chunk of a device", kinds.F.colours[chunks]));
  const both = drawn.find(({ copies }) => copies > 1);
  if (both) items.push(copiesSample(kinds, both));
  return items;
}

function figuresOf(timelines) {
  const unit = timelines[0].unit ? `, ${timelines[0].unit}` : "";
  const heads = ["Schedule", `Makespan${unit}`, "Bubble ratio", "Peak activations, by device"];
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const rows = timelines.map((timeline) => {
    const name = make("th", { scope: "row" }, timeline.title);
    if (timeline.refusal) return make("tr", {}, name, make("td", { colspan: 3 }, "not possible"));
    const cells = [number(timeline.makespan), timeline.bubble.toFixed(3), timeline.peak.map(number).join(", ")];
    return make("tr", {}, name, ...cells.map((text) => make("td", {}, text)));
  });
  return [make("thead", {}, head), make("tbody", {}, ...rows)];
}

// What stands below the controls; `draw(timelines)` shows them in all its parts.
function shownIn(root, id, pick) {
  const status = make("p", { class: "status", role: "status" });
  const [table, legend] = [make("table"), make("ul", { class: "legend" })];
  const picture = pictureOf(id, pick);
  const spoken = make("p", { class: "unseen", "aria-live": "polite" });
  root.append(status, table, legend, picture.element, spoken);
  const draw = (timelines) => {
    table.replaceChildren(...figuresOf(timelines));
    legend.replaceChildren(...legendOf(timelines));
    spoken.textContent = timelines.map(summary).join(" ");
    picture.draw(timelines);
  };
  let timer = null;
  const say = (sentence, later) => {
    clearTimeout(timer);
    status.textContent = sentence;
    if (later) timer = setTimeout(() => (status.textContent = later), PATIENCE);
  };
  const stop = () => {
    say("");
    picture.stop();
  };
  return { draw, say, stop };
}

function render({ model, el }) {
  const root = rootIn(el, "explorer");
  const id = freshId();
  const setting = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (name, value, focus = false) => {
    const next = changed(offers, setting(), name, value);
    for (const each of SETTING) if (next[each] !== model.get(each)) model.set(each, next[each]);
    model.save_changes();
    if (focus) controls.focus(name);
  };
  const controls = controlsOf(id, model.get("data")?.unit, pick);
  root.append(controls.element);
  const below = shownIn(root, id, pick);
  let [answer, offers, drawn] = [null, null, null]; // what the kernel said, what there is to choose, the setting in the picture

  const show = () => {
    const [now, sources] = [setting(), sourcesOf(model)];
    offers = offersOf(sources, answer);
    controls.show(now, offers);
    const timelines = timelinesOf(sources, now);
    if (answer && !timelines) return below.say(COMPUTING, SILENT); // and the picture stays until the kernel has sent another
    below.say("");
    if (drawn !== JSON.stringify(now)) below.draw(timelines ?? [absent(sources, offers, now, ABSENT)]);
    drawn = JSON.stringify(now);
  };
  const hear = (message) => {
    if (message.live) answer = message;
    again();
    if (message.refused) below.say(message.refused);
  };
  const stop = () => {
    below.stop();
    model.off?.("msg:custom", hear);
  };
  model.on("msg:custom", hear);
  const { end, again } = keepDrawn(model, root, ["extra", ...SETTING], show, stop);
  model.send({ ask: "live" }); // only a running kernel answers
  return end;
}

export default { render };
