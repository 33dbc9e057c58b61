// The picture of a sweep explorer: lines against the values of a column, on linear or logarithmic axes.
// `sweep_explorer_data.js` stands above this file.

const HEIGHT = 380;
const [TOP, BOTTOM, RIGHT] = [30, 46, 16];
const [WIDE, TALL] = [7.5, 20]; // px of a digit of a tick, and of a row of them

// The nearest 1, 2 or 5 times a power of ten, upwards or downwards.
function rounded(value, upwards) {
  const ten = 10 ** Math.floor(Math.log10(value) + 1e-9);
  const steps = [1, 2, 5, 10].map((each) => each * ten);
  return upwards ? steps.find((each) => each >= value * (1 - 1e-9)) : steps.findLast((each) => each <= value * (1 + 1e-9));
}

// Round values for an axis, the first and the last at its ends: 1, 2 and 5 times powers of ten, or powers alone where those are many.
function ticksOf(values, logarithmic) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!logarithmic) {
    const step = rounded((high - Math.min(low, 0) || Math.abs(high) || 1) / 5, true);
    const first = Math.floor(Math.min(low, 0) / step + 1e-9);
    const count = Math.max(1, Math.ceil(high / step - 1e-9) - first);
    return Array.from({ length: count + 1 }, (_, place) => Number(((first + place) * step).toPrecision(9)));
  }
  const decades = Math.log10(high / low) > 3;
  const ticks = [decades ? 10 ** Math.floor(Math.log10(low)) : rounded(low, false)];
  const factor = 10 ** Math.ceil(Math.log10(high / low) / 8); // of many decades, every second, third ...
  while (ticks.at(-1) < high * (1 - 1e-9) || ticks.length < 2) ticks.push(decades ? ticks.at(-1) * factor : rounded(ticks.at(-1) * 1.5, true));
  return ticks.map((each) => Number(each.toPrecision(9)));
}

const along = (value, [from, to], [start, end], logarithmic) => {
  const scale = logarithmic ? Math.log10 : Number;
  return from === to ? (start + end) / 2 : start + ((scale(value) - scale(from)) / (scale(to) - scale(from))) * (end - start);
};

// Where values stand: the vertical axis holds the drawn lines in every setting, so that it stays when a control is moved.
function frameOf({ drawn, lines, x, y }, width) {
  const counts = (drawn.length ? drawn : lines).flatMap(({ all }) => all.filter((value) => value !== null && (value > 0 || !y.logarithmic)));
  const rows = ticksOf(counts.length ? counts : [1], y.logarithmic);
  const columns = x.values.filter((value) => value > 0 || !x.logarithmic);
  const left = 14 + WIDE * Math.max(...rows.map((value) => number(value).length));
  const [box, tall] = [[left + 10, width - RIGHT - 4], [HEIGHT - BOTTOM, TOP]];
  const ends = [columns[0], columns.at(-1)];
  return { width, left, rows, columns, x: (value) => along(value, ends, box, x.logarithmic), y: (value) => along(value, [rows[0], rows.at(-1)], tall, y.logarithmic) };
}

function axesOf({ x, y }, frame) {
  const line = (x1, y1, x2, y2, kind) => make("line", { x1: at(x1), y1: at(y1), x2: at(x2), y2: at(y2), class: kind });
  const text = (left, top, words, kind) => make("text", { x: at(left), y: at(top), class: kind }, words);
  const [right, bottom] = [frame.width - RIGHT, HEIGHT - BOTTOM];
  const parts = [text(2, 13, `${y.label}${y.logarithmic ? ", logarithmic" : ""}`, "name")];
  let lowest = Infinity;
  for (const value of frame.rows) {
    const top = frame.y(value);
    parts.push(line(frame.left, top, right, top, "grid"));
    if (lowest - top < TALL) continue; // its number would cover that below
    parts.push(text(frame.left - 6, top + 4, number(value), "tick left"));
    lowest = top;
  }
  let end = -Infinity;
  for (const value of frame.columns) {
    const [place, half] = [frame.x(value), (WIDE * number(value).length) / 2];
    parts.push(line(place, bottom, place, bottom + 5, "axis"));
    if (place - half < end + 4) continue;
    parts.push(text(place, bottom + 19, number(value), "tick"));
    end = place + half;
  }
  const name = text((frame.left + right) / 2, HEIGHT - 5, `${x.label}${x.logarithmic ? ", logarithmic" : ""}`, "name middle");
  return [...parts, line(frame.left, bottom, right, bottom, "axis"), name];
}

const coloured = ({ colours: [light, dark] }) => `--hl-series: light-dark(${light}, ${dark})`;

// A line with its marks; it is broken where a point is missing.
function lineOf(line, frame, { x, y, at: now }) {
  const shown = line.points.map((value, place) => isDrawn(value, x.values[place], x, y));
  const spots = line.points.map((value, place) => shown[place] && [frame.x(x.values[place]), frame.y(value)]);
  const parts = spots.map((spot, place) => spot && `${shown[place - 1] ? "L" : "M"}${at(spot[0])} ${at(spot[1])}`);
  const path = make("path", { d: parts.filter(Boolean).join(""), class: "curve", "stroke-width": line.width, "stroke-dasharray": line.dash.join(" ") || "none" });
  const marks = spots.map((spot, place) => {
    const kind = `point${line.hollow ? " hollow" : ""}${x.values[place] === now ? " now" : ""}`;
    return spot && markOf(line.shape, ...spot, line.size, { class: kind });
  });
  return make("g", { style: coloured(line), "data-line": line.name }, path, ...marks.filter(Boolean));
}

// The picture; `draw(reading)` fills it, `pick(x)` is called where it is touched.
function pictureOf(pick) {
  const box = make("div", { class: "picture", role: "img" });
  let [given, frame] = [null, null];

  const draw = (reading = given) => {
    given = reading;
    const width = box.clientWidth || 640;
    frame = frameOf(reading, width);
    const svg = make("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
    svg.append(...axesOf(reading, frame));
    if (frame.columns.includes(reading.at)) {
      const x = at(frame.x(reading.at));
      svg.append(make("line", { x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM, class: "marker" }));
    }
    svg.append(...reading.drawn.map((line) => lineOf(line, frame, reading)));
    box.setAttribute("aria-label", `${reading.y.label} against ${reading.x.label}, ${counted(reading.drawn.length, "line")}. ${sentence(reading)} All values are in the table below.`);
    box.replaceChildren(svg);
  };
  const touched = (x) => {
    if (!given) return;
    const away = (value) => Math.abs(frame.x(value) - x);
    pick(frame.columns.reduce((best, value) => (away(value) < away(best) ? value : best)));
  };
  return { element: box, draw, stop: watched(box, touched, () => given && draw()) };
}
