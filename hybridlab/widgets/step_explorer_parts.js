// What stands around the picture of a step: the controls of the setting and of the cursor, the legend, the figures as a table.

const RINGS = { false: "after computing", true: "beside computing" };

function settingOf(id, data, pick) {
  const choice = (name, label) => {
    const select = selectOf(`${id}-${name}`, label, (place) => pick(name, data[name][Number(place)]));
    const words = data[name].map((value) => (name === "schedule" ? data.titles[value] : name === "overlap" ? RINGS[value] : String(value)));
    const show = (value) => select.show(data[name].indexOf(value), words.map((each, place) => [String(place), each]));
    return { element: select.element, show };
  };
  const amount = (name, label) => {
    const slider = quantityOf(`${id}-${name}`, label, null, (value) => pick(name, value));
    return { element: slider.element, show: (value) => slider.show(value, data[name], false) };
  };
  const controls = {
    schedule: choice("schedule", "Schedule"),
    devices: amount("devices", "Devices, K"),
    replicas: amount("replicas", "Replicas, D"),
    microbatches: amount("microbatches", "Microbatches, M"),
    ring: choice("ring", data.label),
    overlap: choice("overlap", "Rings run"),
  };
  const elements = Object.values(controls).map((control) => control.element);
  const element = make("div", { class: "fields", role: "group", "aria-label": "Setting" }, ...elements);
  const show = (setting) => Object.entries(controls).forEach(([name, control]) => control.show(setting[name]));
  return { element, show };
}

// The cursor: a rank and a moment of it; and whether the picture shows the whole step or its rings.
function cursorOf(id, unit, pick, zoom) {
  const rank = selectOf(`${id}-rank`, "Rank", (value) => pick({ rank: Number(value) }));
  const slider = make("input", { type: "range", min: 0, step: 1 });
  const output = make("output", { for: `${id}-time`, "aria-live": "off" }); // the slider itself says its value
  const moment = field(`${id}-time`, unit ? `Moment, ${unit}` : "Moment", slider, output);
  const shown = selectOf(`${id}-shown`, "Picture shows", (value) => zoom(value === "rings"));
  const element = make("div", { class: "fields", role: "group", "aria-label": "Cursor" }, rank.element, moment, shown.element);
  let moments = [];
  slider.addEventListener("input", () => pick({ time: moments[Number(slider.value)] }));
  const show = (step, now, ringsOnly) => {
    element.hidden = Boolean(step.refusal);
    if (step.refusal) return;
    const named = step.ranks.map(({ rank: each, device }) => [String(each), `${each}, ${step.held > 1 ? "device" : "stage"} ${device}`]);
    rank.show(String(now.own.rank), named);
    moments = momentsOf(step, now.own.rank);
    slider.max = moments.length - 1;
    slider.value = moments.findLastIndex((each) => each <= now.time + grain(step));
    slider.setAttribute("aria-valuetext", time(step, now.time));
    output.textContent = number(now.time);
    const views = [["all", "the whole step"], ["rings", step.all_reduce > 0 ? "the rings" : ""]];
    shown.show(ringsOnly ? "rings" : "all", views.filter(([, words]) => words));
  };
  return { element, show };
}

function legendOf(step) {
  if (step.refusal) return [];
  const items = step.ranks.flatMap((own) => own.items);
  const has = (kind) => items.some((item) => item.kind === kind);
  const { kinds, spans } = step;
  const parts = Object.keys(kinds).filter(has).map((kind) => kindSample(kind, kinds[kind]));
  const words = (kind) => spans[kind].words;
  const box = { x: 1, y: 3, width: 24, height: 12, rx: 2 };
  if (step.update > 0) {
    const body = make("rect", { width: 26, height: 18, rx: 2, fill: spans.optimiser.colour });
    const marks = ["B", "W"].flatMap((kind) => markOf(kind, 0, 0, 26, 18));
    parts.push(sampleOf(words("optimiser"), body, ...marks, make("text", { x: 13, y: 9.5 }, "opt")));
  }
  parts.push(idleSample());
  if (items.some((item) => item.partner)) parts.push(pairSample(kinds));
  if (step.copies > 1) parts.push(copiesSample(kinds, step));
  else if (step.chunks > 1) parts.push(shadeSample("first to last chunk of a device", kinds.F.colours[step.chunks]));
  if (has("send")) parts.push(sampleOf(words("send"), make("rect", { class: "send", x: 1, y: 3, width: 24, height: 6 })));
  if (has("receive")) parts.push(sampleOf(words("receive"), make("rect", { class: "receive", x: 1, y: 9, width: 24, height: 6 })));
  const hop = (kind, fill) => {
    const shapes = [make("rect", { ...box, ...fill }), make("text", { x: 13, y: 9.5 }, "0")];
    parts.push(sampleOf(`${words(kind)}, number: chunk of the gradients sent`, make("g", { class: fill.stroke ? "hop gathers" : "hop" }, ...shapes)));
  };
  if (has("reduce-scatter")) hop("reduce-scatter", { fill: spans["reduce-scatter"].colour });
  if (has("all-gather")) hop("all-gather", { stroke: spans["all-gather"].colour });
  return parts;
}

const percent = (part) => `${(100 * part).toFixed(1)}\u00a0%`;

// The figures of a step, and beside them those of the same setting with and without overlap, where the data hold both.
function figuresOf(data, setting) {
  const unit = data.unit ? `, ${data.unit}` : "";
  const steps = data.overlap.map((overlap) => data.steps[keyOf(data, { ...setting, overlap })]);
  const { peak, chunks, copy } = data.pipelines[[setting.schedule, setting.devices, setting.microbatches].join("/")];
  const head = (overlap) => {
    const words = overlap ? "Overlap" : "No overlap";
    if (overlap !== setting.overlap || steps.length === 1) return make("th", { scope: "col" }, words);
    return make("th", { scope: "col", class: "chosen" }, `${words} (shown)`);
  };
  const row = (words, read) => make("tr", {}, make("th", { scope: "row" }, words), ...steps.map((step) => make("td", {}, read(step))));
  const rows = [
    row(`Makespan${unit}`, (step) => number(step.makespan)),
    row(`All-reduce time, rings of one device${unit}`, (step) => number(step.all_reduce)),
    row(`Exposed communication${unit}`, (step) => number(step.exposed)),
    row("Communication share of the step", (step) => percent(step.share)),
    row(`One device alone${unit}`, (step) => number(step.single)),
    row("Speedup against one device", (step) => step.speedup.toFixed(3)),
    row(`Efficiency, on ${counted(setting.devices * setting.replicas, "device")}`, (step) => percent(step.efficiency)),
    row(`Peak activations, ${chunks > 1 || copy ? "device by device" : "stage by stage"}`, () => peak.map(number).join(", ")),
  ];
  const heads = make("tr", {}, make("th", { scope: "col" }, "Figure"), ...data.overlap.map(head));
  return [make("thead", {}, heads), make("tbody", {}, ...rows)];
}
