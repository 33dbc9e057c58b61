// The map of a cluster explorer: time against memory of all plans for the same GPUs and samples. Both axes are logarithmic.

import { at, markOf, outlineOf, watched } from "./chart.js";
import { frontOf } from "./cluster_explorer_plans.js";
import { counts, planWords, seconds } from "./cluster_explorer_words.js";
import { grouped, make, number, plain } from "./view.js";

const [EDGE, FOOT, HEAD, RIM] = [46, 36, 18, 10]; // px: room on the left, below, above and on the right of the plane
const [MARK, NEAR] = [3.5, 24]; // px: size of a mark, distance at which a pointer finds it
const BEYOND = 2; // plans that need more than twice the memory of a GPU are counted and not drawn

const HINT = "Choose a plan with the pointer, or with arrow keys and Enter. Page Up and Page Down follow the Pareto front.";

const sameSetting = (one, other) => Object.keys(one).every((name) => one[name] === other[name]);
const colourOf = ([light, dark]) => `--hl-series: light-dark(${light}, ${dark})`;

// Round numbers from `low` to `high`, at most nine: 1, 2, 5, 10, ..., or closer ones if these are fewer than three.
const [TENTHS, HUNDREDTHS] = [10, 100].map((parts) => Array.from({ length: 9 * parts }, (_, step) => 1 + step / parts));
const STEPS = [[1, 2, 5], [1, 1.5, 2, 3, 5, 7], TENTHS, HUNDREDTHS];
function ticksBetween(low, high) {
  const powers = Array.from({ length: Math.ceil(Math.log10(high / low)) + 2 }, (_, place) => 10 ** (place + Math.floor(Math.log10(low))));
  const multiples = (steps) => powers.flatMap((power) => steps.map((step) => Number((power * step).toPrecision(3))));
  const within = (steps) => multiples(steps).filter((tick) => tick >= low && tick <= high);
  const ticks = STEPS.map(within).find((each) => each.length > 2);
  return ticks.filter((_, place) => place % Math.ceil(ticks.length / 9) === 0);
}

// The place in px of a value on a logarithmic axis from `start` to `end`, and the ticks of the axis.
function logAxis(values, start, end) {
  const [low, high] = values.length ? [Math.min(...values) / 1.06, Math.max(...values) * 1.06] : [1, 10];
  const place = (value) => start + (Math.log(value / low) / Math.log(high / low)) * (end - start);
  return { place, ticks: ticksBetween(low, high) };
}

// All plans like `setting`, those that are drawn, and the front.
export function mapOf({ alike }, setting, capacity) {
  const plans = alike(setting);
  const drawn = plans.filter(({ memory }) => memory <= BEYOND * capacity);
  return { plans, drawn, front: frontOf(plans), capacity };
}

// What is drawn, in a sentence.
function about({ plans, drawn, front, capacity }, gpus, samples) {
  const fit = plans.filter(({ fits }) => fits).length;
  const whole = `${counts(plans.length, "plan")} for ${counts(gpus, "GPU")} and ${counts(samples, "sample")}`;
  const fitting = fit ? `${grouped(fit)} ${fit === 1 ? "fits" : "fit"}, ${grouped(front.length)} on the Pareto front` : "none fits";
  const far = plans.length - drawn.length;
  return `${whole}: ${fitting}.${far ? ` ${grouped(far)} beyond ${number(BEYOND * capacity)} GB are not drawn.` : ""}`;
}

function axesOf({ x, y, width, height, capacity }) {
  const [foot, right] = [height - FOOT, width - RIM];
  const columns = x.ticks.flatMap((tick) => {
    const left = at(x.place(tick));
    const line = make("line", { x1: left, x2: left, y1: HEAD, y2: foot, class: "grid" });
    return [line, make("text", { x: left, y: foot + 15, class: "tick middle" }, number(tick))];
  });
  const rows = y.ticks.flatMap((tick) => {
    const top = at(y.place(tick));
    const line = make("line", { x1: EDGE, x2: right, y1: top, y2: top, class: "grid" });
    return [line, make("text", { x: EDGE - 6, y: top + 4, class: "tick right" }, number(tick))];
  });
  const edge = at(x.place(capacity));
  const limit = [
    make("line", { x1: edge, x2: edge, y1: HEAD, y2: foot, class: "capacity" }),
    make("text", { x: Math.min(edge, width - 24), y: HEAD - 6, class: "name middle" }, `${number(capacity)} GB`),
  ];
  const names = [
    make("text", { x: 0, y: HEAD - 6, class: "tick" }, "seconds"),
    make("text", { x: right, y: height - 5, class: "tick right" }, "GB on the fullest GPU"),
  ];
  return [...columns, ...rows, ...limit, ...names];
}

// Below a memory of a plan on the Pareto front, the best time is that of the next plan on it.
function stairs(front, { x, y }) {
  const steps = front.map(({ memory, seconds: time }) => `V${at(y.place(time))}H${at(x.place(memory))}`);
  if (!steps.length) return [];
  const [{ memory, seconds: time }] = front;
  return [make("path", { d: `M${at(x.place(memory))} ${at(y.place(time))}${steps.join("")}`, class: "front" })];
}

// The marks of all plans with one number of stages: one path for those that do not fit, and one for those that fit.
function marksOf(plans, placeOf, colours) {
  const outlines = (fits) => plans.filter((plan) => plan.fits === fits).map((plan) => outlineOf(plan.depth, ...placeOf(plan), MARK));
  const paths = [["mark hollow", false], ["mark", true]].map(([kind, fits]) => make("path", { class: kind, d: outlines(fits).join("") }));
  return make("g", { style: colourOf(colours) }, ...paths);
}

// The legend: a mark for each number of stages, then what the other signs mean.
function legendOf({ drawn }, depths, values) {
  const sample = (mark, words, style = "") => {
    const svg = make("svg", { width: 14, height: 14, "aria-hidden": "true", style });
    svg.append(mark);
    return make("li", {}, svg, words);
  };
  const shown = values.map((value, depth) => ({ value, depth })).filter(({ depth }) => drawn.some((plan) => plan.depth === depth));
  const marks = shown.map(({ value, depth }) => sample(markOf(depth, 7, 7, 4, { class: "mark" }), `K = ${value}`, colourOf(depths[depth])));
  const front = sample(make("path", { d: "M1 3V11H13", class: "front" }), "Pareto front");
  const hollow = sample(markOf(1, 7, 7, 4, { class: "mark hollow", style: "--hl-series: currentColor" }), "does not fit");
  return [...marks, ...(drawn.length ? [front] : []), ...(drawn.some(({ fits }) => !fits) ? [hollow] : [])];
}

// The plan to which a key leads from `from`: the next one in memory or in time, or the next one on the Pareto front.
function led({ drawn, front }, from, key) {
  const along = { ArrowRight: ["memory", 1], ArrowLeft: ["memory", -1], ArrowUp: ["seconds", 1], ArrowDown: ["seconds", -1] }[key];
  if (along) {
    const [name, step] = along;
    const order = [...drawn].sort((one, other) => one[name] - other[name]);
    return order[order.indexOf(from) + step] ?? from;
  }
  const smaller = () => front.find(({ memory }) => memory < from.memory);
  const larger = () => front.findLast(({ memory }) => memory > from.memory);
  return { Home: () => front[0], End: () => front.at(-1), PageDown: smaller, PageUp: larger }[key]?.() ?? null;
}

// The map; `draw(map, reading, pins)` fills it. `load` gets the setting of a chosen plan.
export function mapView(data, load, ...buttons) {
  const box = make("div", { class: "map", tabindex: 0 });
  const head = make("p", { class: "head" });
  const legend = make("ul", { class: "legend" });
  const said = make("p", { class: "hint said", role: "status" });
  const element = make("div", { class: "plane" }, head, box, make("div", { class: "below" }, legend, ...buttons), said);
  const values = data.axes.find(({ name }) => name === "stages").values;
  let [given, frame, svg, looked, current] = [null, null, null, null, null];

  const placeOf = ({ memory, seconds: time }) => [frame.x.place(memory), frame.y.place(time)];
  const ring = (plan, r, kind) => {
    svg.querySelector(`.${kind}`)?.remove();
    if (!plan) return;
    const [cx, cy] = placeOf(plan).map(at);
    svg.append(make("circle", { cx, cy, r, class: kind }));
  };
  const look = (plan) => {
    looked = plan;
    ring(plan, 7, "looked");
    const words = plan && `${seconds(plan.seconds)}, ${plan.memory.toFixed(1)} GB${notes(plan)}: ${planWords(plan.setting)}.`;
    said.textContent = words ?? (given.map.drawn.length ? HINT : "");
  };
  const notes = (plan) => {
    if (!plan.fits) return ", does not fit";
    return `${given.map.front.includes(plan) ? ", on the Pareto front" : ""}${plan === current ? ", the current plan" : ""}`;
  };
  // What changes with each setting, on the same plane.
  const mark = () => {
    const { map, reading, pins } = given;
    const found = (setting) => map.drawn.find((plan) => sameSetting(plan.setting, setting));
    current = found(onOne(reading.setting));
    ring(current, 6.5, "here");
    svg.querySelectorAll(".pin").forEach((pin) => pin.remove());
    for (const [letter, pinned] of Object.entries(pins)) {
      const plan = found(onOne(pinned.setting));
      if (plan) svg.append(make("text", { x: at(placeOf(plan)[0] + 7), y: at(placeOf(plan)[1] - 7), class: "pin" }, letter));
    }
    if (looked && !map.drawn.includes(looked)) looked = null;
    look(looked);
  };
  // One GPU shares nothing: the map has such a plan once.
  const onOne = (setting) => {
    const first = data.axes.find(({ name }) => name === "sequence_parallel").values[0];
    return setting.tensor > 1 ? setting : { ...setting, sequence_parallel: first };
  };
  const plane = () => {
    const { map, reading } = given;
    const { replicas, microbatches, microbatch } = reading.setting;
    const [width, height] = [box.clientWidth || 640, box.clientHeight || 230];
    head.textContent = about(map, reading.gpus, replicas * microbatches * microbatch);
    const x = logAxis([map.capacity, ...map.drawn.map(({ memory }) => memory)], EDGE, width - RIM);
    const times = map.drawn.map(({ seconds: time }) => time);
    const y = logAxis(times, height - FOOT, HEAD);
    frame = { x, y, width, height, capacity: map.capacity };
    svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const groups = data.depths.map((colours, depth) => marksOf(map.drawn.filter((plan) => plan.depth === depth), placeOf, colours));
    if (map.drawn.length) svg.append(...axesOf(frame), ...groups, ...stairs(map.front, frame));
    else svg.append(make("text", { x: at(width / 2), y: at(height / 2), class: "middle" }, "There is no plan to draw."));
    box.replaceChildren(svg);
    legend.replaceChildren(...legendOf(map, data.depths, values));
    const label = `Time against memory. ${head.textContent} ${HINT}`;
    const described = { role: "application", "aria-roledescription": "map of plans", "aria-label": label };
    for (const [name, value] of Object.entries(described)) box.setAttribute(name, value);
  };
  const draw = (map, reading, pins) => {
    const before = given;
    given = { map, reading, pins };
    if (before?.map !== map) plane();
    mark();
  };

  const nearest = (event) => {
    const { left, top } = box.getBoundingClientRect();
    const away = (plan) => Math.hypot(placeOf(plan)[0] - event.clientX + left, placeOf(plan)[1] - event.clientY + top);
    const best = given.map.drawn.reduce((kept, plan) => (kept && away(kept) <= away(plan) ? kept : plan), null);
    return best && away(best) <= NEAR ? best : null;
  };
  box.addEventListener("pointermove", (event) => {
    const plan = nearest(event);
    if (plan !== looked) look(plan);
  });
  box.addEventListener("pointerleave", () => look(null));
  box.addEventListener("click", (event) => {
    const plan = nearest(event);
    if (plan) load(plan.setting);
  });
  box.addEventListener("focus", () => look(looked ?? current ?? given.map.front[0] ?? null));
  box.addEventListener("blur", () => look(null));
  box.addEventListener("keydown", (event) => {
    if (!plain(event)) return;
    const from = looked ?? current ?? given.map.drawn[0];
    if (!from) return;
    const chosen = event.key === "Enter" || event.key === " ";
    const to = chosen ? from : led(given.map, from, event.key);
    if (!to) return;
    event.preventDefault();
    if (chosen) load(to.setting);
    else look(to);
  });
  const again = () => {
    if (!given) return;
    plane();
    mark();
  };
  return { element, draw, stop: watched(box, again) };
}
