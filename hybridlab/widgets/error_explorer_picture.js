// The picture of an error explorer: NMSE against ranks on two logarithmic axes. Points are measured, lines are the law.
// `chart.js` and `error_explorer_words.js` stand above this file.

const HEIGHT = 340;
const [TOP, BOTTOM, LEFT, RIGHT] = [26, 44, 46, 18];
const NAMED_FROM = 560; // px: from this width on the lines have their names at their ends
const NAMES = 132;
const LONGEST_NAME = 20; // characters
const APART = 15; // px between two names

// Where a number of ranks and an NMSE stand; the decades are those of all algorithms and distributions of the formats drawn.
function frameOf(measured, formats, width) {
  const names = width >= NAMED_FROM ? NAMES : RIGHT;
  const keys = Object.keys(measured.series).filter((key) => formats.includes(key.split("/").slice(2).join("/")));
  const values = (keys.length ? keys : Object.keys(measured.series)).flatMap((key) => [...measured.series[key].nmse, ...measured.series[key].law]);
  const [low, high] = [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const [first, last] = [measured.ranks[0], measured.ranks.at(-1)];
  const span = Math.log2(last / first);
  const [wide, tall] = [width - LEFT - names - 14, HEIGHT - TOP - BOTTOM];
  const x = (ranks) => LEFT + 12 + (span ? (wide * Math.log2(ranks / first)) / span : wide / 2);
  const y = (error) => TOP + (tall * (high - Math.log10(error))) / Math.max(high - low, 1);
  return { x, y, low, high, width, right: width - names, named: names === NAMES };
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

// The names at the ends of the lines, moved apart where they would cover each other.
function namesOf(frame, series, both) {
  const short = (each) => (nameOf(each, both).length <= LONGEST_NAME ? nameOf(each, both) : each.format);
  const ends = spread(series.map((each) => ({ each, y: frame.y(each.nmse.at(-1)) })), APART, TOP, HEIGHT - BOTTOM);
  return ends.map(({ each, y }) => make("text", { x: frame.right + 6, y: at(y + 4), class: `of-${each.shape} end` }, short(each)));
}

// The picture; `draw(measured, shown, series)` fills it, `pick(ranks)` is called where it is touched.
function pictureOf(pick) {
  const box = make("div", { class: "picture", role: "img" });
  let [given, frame] = [null, null];

  const draw = (...next) => {
    if (next.length) given = next;
    const [measured, shown, series] = given;
    const width = box.clientWidth || 640;
    frame = frameOf(measured, shown.formats, width);
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
  const touched = (x) => {
    if (!given) return;
    const away = (ranks) => Math.abs(frame.x(ranks) - x);
    pick(given[0].ranks.reduce((best, ranks) => (away(ranks) < away(best) ? ranks : best)));
  };
  return { element: box, draw, stop: watched(box, touched, () => given && draw()) };
}
