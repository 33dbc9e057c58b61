// An error explorer: how exact all-reduced means are, and how many bytes they cost. Controls, a picture, a sentence and tables.
// The picture shows NMSE against ranks on two logarithmic axes. Points are measured, lines are the law.

import { at, markerOf, markOf, POINTING, pointed, spread, tableOf, watched } from "./chart.js";
import { oneOf, someOf } from "./setting.js";
import { shareRow } from "./share.js";
import { field, freshId, grouped, keepDrawn, listed, make, rootIn } from "./view.js";

// ---- the data of a setting, in numbers and words ----

const SETTING = ["algorithm", "distribution", "formats", "ranks"]; // the traits of the setting
const SUPERSCRIPT = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";

// A power of 10 as a label: 10⁻⁴.
const powerOf = (exponent) =>
  exponent === 0 ? "1" : `10${exponent < 0 ? "\u207b" : ""}${[...String(Math.abs(exponent))].map((digit) => SUPERSCRIPT[digit]).join("")}`;

// 0.000403 becomes 4.0 × 10⁻⁴, with thin spaces.
function small(value) {
  const [digits, exponent] = value.toExponential(1).split("e");
  return `${digits}\u2009\u00d7\u2009${powerOf(Number(exponent))}`;
}

const isList = (value, count) => Array.isArray(value) && value.length === count && value.every((each) => Number.isFinite(each) && each > 0);

// The series to draw, one for each algorithm and wire format. Throws if the data lack one.
function seriesOf(measured, { algorithm, distribution, formats }) {
  const algorithms = measured.algorithms.filter((name) => algorithm === "both" || name === algorithm);
  const drawn = measured.formats.filter((name) => formats.includes(name));
  const known = algorithms.length && measured.distributions.includes(distribution) && drawn.length === formats.length;
  if (!known) throw new Error("the setting names what was not measured");
  return algorithms.flatMap((name) =>
    drawn.map((format) => {
      const values = measured.series[`${name}/${distribution}/${format}`];
      const sound = ["nmse", "law", "nbytes", "saving"].every((key) => isList(values[key], measured.ranks.length));
      if (!sound) throw new Error(`the series of ${name}, ${distribution}, ${format} is damaged`);
      return { ...values, algorithm: name, format, shape: measured.formats.indexOf(format), hollow: name !== measured.algorithms[0] };
    }),
  );
}

const nameOf = (series, both) => (both ? `${series.format} (${series.algorithm})` : series.format);

// The values at the marker, in sentences.
function sentence(measured, shown, series) {
  const at = measured.ranks.indexOf(shown.ranks);
  const way = { ring: "in a ring", both: "in a ring and in one shot" }[shown.algorithm] ?? "in one shot";
  const head = `${shown.ranks} ranks, ${way}, ${shown.distribution} numbers.`;
  if (!series.length) return `${head} No wire format is chosen.`;
  const both = shown.algorithm === "both";
  const least = (key) => Math.min(...series.map((each) => each[key][at]));
  const [error, bytes] = [least("nmse"), least("nbytes")];
  const with_ = (key, value) => listed(series.filter((each) => each[key][at] === value).map((each) => nameOf(each, both)), "; ");
  const exact = `Most exact: ${with_("nmse", error)}, with an NMSE of ${small(error)}.`;
  return `${head} ${exact} Fewest bytes: ${with_("nbytes", bytes)}, ${grouped(bytes)} a rank.`;
}

// ---- the picture ----

const HEIGHT = 340;
const [TOP, BOTTOM, LEFT, RIGHT] = [26, 44, 46, 18];
const NAMED_FROM = 380; // px: names stand at the ends of the lines if the lines keep at least this width
const CHARACTER = 7.2; // px: more than a character of a name takes on average
const APART = 15; // px between two names

// The width of the longest name that any choice of wire formats can show, so that the lines keep their width when one is ticked.
function roomForNames({ formats, algorithms }, both) {
  const names = formats.flatMap((format) => algorithms.map((algorithm) => nameOf({ format, algorithm }, both)));
  return 12 + CHARACTER * Math.max(...names.map((name) => name.length));
}

// The scales of the axes. The decades hold all algorithms and distributions of the drawn formats, so that the vertical axis stays
// when a control moves.
function frameOf(measured, { algorithm, formats }, width) {
  const room = roomForNames(measured, algorithm === "both");
  const named = width - LEFT - room >= NAMED_FROM;
  const names = named ? room : RIGHT;
  const keys = Object.keys(measured.series).filter((key) => formats.includes(key.split("/").slice(2).join("/")));
  const values = (keys.length ? keys : Object.keys(measured.series)).flatMap((key) => [...measured.series[key].nmse, ...measured.series[key].law]);
  const [low, high] = [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const [first, last] = [measured.ranks[0], measured.ranks.at(-1)];
  const span = Math.log2(last / first);
  const [wide, tall] = [width - LEFT - names - 14, HEIGHT - TOP - BOTTOM];
  const x = (ranks) => LEFT + 12 + (span ? (wide * Math.log2(ranks / first)) / span : wide / 2);
  const y = (error) => TOP + (tall * (high - Math.log10(error))) / Math.max(high - low, 1);
  return { x, y, low, high, width, right: width - names, named };
}

function axesOf(measured, frame) {
  const line = (x1, y1, x2, y2, kind) => make("line", { x1: at(x1), y1: at(y1), x2: at(x2), y2: at(y2), class: kind });
  const text = (x, y, words, kind) => make("text", { x: at(x), y: at(y), class: kind }, words);
  const parts = [];
  for (let exponent = frame.low; exponent <= frame.high; exponent += 1) {
    const y = frame.y(10 ** exponent);
    parts.push(line(LEFT, y, frame.right, y, "grid"), text(LEFT - 6, y + 4, powerOf(exponent), "tick left"));
  }
  for (const ranks of measured.ranks) {
    const x = frame.x(ranks);
    parts.push(line(x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 5, "axis"), text(x, HEIGHT - BOTTOM + 19, ranks, "tick"));
  }
  parts.push(line(LEFT, HEIGHT - BOTTOM, frame.right, HEIGHT - BOTTOM, "axis"));
  parts.push(text(2, 13, "NMSE of the mean", "name"), text((LEFT + frame.right) / 2, HEIGHT - 4, "ranks", "name middle"));
  return parts;
}

function lineOf(measured, frame, series) {
  const points = measured.ranks.map((ranks, place) => `${at(frame.x(ranks))} ${at(frame.y(series.law[place]))}`);
  return make("path", { d: `M${points.join("L")}`, class: `law of-${series.shape}${series.hollow ? " hollow" : ""}` });
}

function pointsOf(measured, frame, series, ranks) {
  return measured.ranks.map((each, place) => {
    const kind = `point of-${series.shape}${series.hollow ? " hollow" : ""}${each === ranks ? " now" : ""}`;
    return markOf(series.shape, frame.x(each), frame.y(series.nmse[place]), each === ranks ? 5.5 : 4, { class: kind });
  });
}

// The names at the ends of the lines, moved apart where they would overlap.
function namesOf(frame, series, both) {
  const ends = spread(series.map((each) => ({ each, y: frame.y(each.nmse.at(-1)) })), APART, TOP, HEIGHT - BOTTOM);
  return ends.map(({ each, y }) => make("text", { x: frame.right + 6, y: at(y + 4), class: `of-${each.shape} end` }, nameOf(each, both)));
}

// The picture; `draw(measured, shown, series)` fills it, `valueAt(event)` is the number of ranks under the pointer.
function pictureOf() {
  const box = make("div", { class: "picture", role: "img" });
  let [given, frame] = [null, null];

  const draw = (...next) => {
    if (next.length) given = next;
    const [measured, shown, series] = given;
    const width = box.clientWidth || 640;
    frame = frameOf(measured, shown, width);
    const x = at(frame.x(shown.ranks));
    const marker = make("line", { x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM, class: "marker" });
    const svg = make("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
    svg.append(...axesOf(measured, frame), marker, ...series.map((each) => lineOf(measured, frame, each)));
    svg.append(...series.flatMap((each) => pointsOf(measured, frame, each, shown.ranks)));
    if (frame.named) svg.append(...namesOf(frame, series, shown.algorithm === "both"));
    const told = `NMSE against ranks, both logarithmic. ${sentence(measured, shown, series)} All values are in the tables below.`;
    box.setAttribute("aria-label", told);
    box.replaceChildren(svg);
  };
  const valueAt = (event) => {
    const x = event.clientX - box.getBoundingClientRect().left;
    const away = (ranks) => Math.abs(frame.x(ranks) - x);
    return given[0].ranks.reduce((best, ranks) => (away(ranks) < away(best) ? ranks : best));
  };
  return { element: box, draw, valueAt, stop: watched(box, () => given && draw()) };
}

// ---- the controls and the tables ----

const WAYS = { ring: "Ring", "one-shot": "One shot", both: "Both" };

function choiceOf(id, label, pick) {
  const select = make("select");
  select.addEventListener("change", () => pick(select.value));
  const show = (value, options) => {
    if (!select.options.length) select.append(...options.map(([name, title]) => make("option", { value: name }, title)));
    select.value = value;
  };
  return { element: field(id, label, select), show };
}

// A checkbox for each wire format, with its mark from the picture.
function formatsOf(pick) {
  const element = make("fieldset", {}, make("legend", {}, "Wire formats"));
  let boxes = [];
  const fill = (names) => {
    boxes = names.map((name) => make("input", { type: "checkbox", value: name }));
    const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);
    boxes.forEach((box, shape) => {
      box.addEventListener("change", () => pick(chosen()));
      const mark = make("svg", { width: 18, height: 18, "aria-hidden": "true" }, markOf(shape, 9, 9, 5, { class: `point of-${shape}` }));
      element.append(make("label", {}, box, mark, make("span", {}, names[shape])));
    });
  };
  const show = (value, names) => {
    if (!boxes.length) fill(names);
    for (const box of boxes) box.checked = value.includes(box.value);
  };
  return { element, show };
}

function controlsOf(id, pick) {
  const controls = {
    algorithm: choiceOf(`${id}-algorithm`, "All-reduce", (value) => pick("algorithm", value)),
    distribution: choiceOf(`${id}-distribution`, "Numbers", (value) => pick("distribution", value)),
    ranks: markerOf(`${id}-ranks`, "Ranks at the marker", (ranks) => `${ranks} ranks`, (value) => pick("ranks", value)),
  };
  const formats = formatsOf((value) => pick("formats", value));
  const fields = make("div", { class: "fields", role: "group", "aria-label": "What is shown" });
  fields.append(...Object.values(controls).map((control) => control.element));
  const show = (measured, shown) => {
    controls.algorithm.show(shown.algorithm, [...measured.algorithms, "both"].map((name) => [name, WAYS[name] ?? name]));
    controls.distribution.show(shown.distribution, measured.distributions.map((name) => [name, name]));
    controls.ranks.show(shown.ranks, measured.ranks);
    formats.show(shown.formats, measured.formats);
  };
  return { elements: [fields, formats.element], show, focus: controls.ranks.focus };
}

// A table of the values at the marker, and a folded table of all drawn values.
function figuresOf() {
  const [here, all] = [make("table", { class: "here" }), make("table")];
  const every = "All values of the picture";
  const wide = make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": every }, all);
  const fold = make("details", {}, make("summary", {}, every), wide);
  const draw = (measured, shown, series) => {
    const [place, both] = [measured.ranks.indexOf(shown.ranks), shown.algorithm === "both"];
    const names = series.map((each) => nameOf(each, both));
    const cells = ({ nmse, law, nbytes, saving }) => [small(nmse[place]), small(law[place]), grouped(nbytes[place]), `${saving[place].toFixed(2)}\u00d7`];
    const heads = ["Wire format", "NMSE", "Law", "Bytes a rank", "Fewer than FP32"];
    here.replaceChildren(...tableOf(`On ${shown.ranks} ranks`, heads, series.map((each, row) => [names[row], ...cells(each)])));
    const rows = measured.ranks.map((ranks, row) => [ranks, ...series.flatMap((each) => [small(each.nmse[row]), small(each.law[row])])]);
    all.replaceChildren(...tableOf("NMSE, and its law", ["Ranks", ...names.flatMap((name) => [name, "law"])], rows));
  };
  return { elements: [here, fold], draw };
}

// ---- the widget ----

const KEY = "Points are measured, lines are the law for normal numbers.";
const KEY_OF_BOTH = "Filled points and full lines are the ring, hollow points and dashed lines one shot.";

function render({ model, el }) {
  const root = rootIn(el, "errors");
  const id = freshId();
  const measured = model.get("measured");
  const shown = () => Object.fromEntries(SETTING.map((name) => [name, model.get(name)]));
  const pick = (name, value) => {
    if (JSON.stringify(value) === JSON.stringify(model.get(name))) return;
    model.set(name, value);
    model.save_changes();
  };
  const rules = () => ({
    algorithm: oneOf([...measured.algorithms, "both"]), distribution: oneOf(measured.distributions), formats: someOf(measured.formats),
    ranks: oneOf(measured.ranks),
  });
  const controls = controlsOf(id, pick);
  const picture = pictureOf();
  const figures = figuresOf();
  const told = make("p", { class: "told", role: "status" });
  const [key, hint] = [make("p", { class: "key" }), make("p", { class: "hint" }, POINTING)];
  root.append(...controls.elements, shareRow(model, SETTING, rules), picture.element, key, told, ...figures.elements, hint);

  let looked = null; // the number of ranks under the pointer
  const show = () => {
    const now = shown();
    const seen = { ...now, ranks: looked ?? now.ranks };
    const series = seriesOf(measured, now);
    if (!measured.ranks.includes(now.ranks)) throw new Error(`${now.ranks} ranks were not measured`);
    controls.show(measured, now);
    picture.draw(measured, seen, series);
    figures.draw(measured, seen, series);
    key.textContent = now.algorithm === "both" ? `${KEY} ${KEY_OF_BOTH}` : KEY;
    told.setAttribute("aria-live", looked === null ? "polite" : "off");
    told.textContent = sentence(measured, seen, series);
  };
  const look = (ranks) => {
    looked = ranks;
    show();
  };
  const answers = { valueAt: picture.valueAt, look, pick: (ranks) => pick("ranks", ranks), focus: controls.focus };
  const ends = [pointed(root, picture.element, answers), picture.stop];
  return keepDrawn(model, root, SETTING, show, () => ends.forEach((end) => end())).end;
}

export default { render };
