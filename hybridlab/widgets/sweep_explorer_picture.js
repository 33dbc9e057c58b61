// The picture of a sweep explorer: lines against the values of a column, on linear or logarithmic axes.
// `sweep_explorer_data.js` stands above this file.

const HEIGHT = 380;
const [TOP, BOTTOM, RIGHT] = [30, 46, 16];
const [WIDE, TALL] = [7.5, 18]; // px of a letter, and of a row of them
const NAMED_FROM = 560; // px: from this width on the lines have their names at their ends

// The nearest 1, 2 or 5 times a power of ten from a value on.
function rounded(value) {
  const ten = 10 ** Math.floor(Math.log10(value) + 1e-9);
  return [1, 2, 5, 10].map((each) => each * ten).find((each) => each >= value * (1 - 1e-9));
}

// Round values between the ends of an axis: equally far apart, or 1, 2 and 5 times powers of ten, or powers alone, of many some.
function ticksOf(low, high, logarithmic) {
  if (!logarithmic || high / low < 8) {
    const step = rounded((high - low) / 6);
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.floor(high / step + 1e-9) - first + 1;
    return Array.from({ length: count }, (_, place) => Number(((first + place) * step).toPrecision(9)));
  }
  const span = Math.log10(high / low);
  const powers = Array.from({ length: Math.ceil(span) + 2 }, (_, place) => Math.floor(Math.log10(low)) + place);
  const some = powers.filter((power) => power % Math.ceil(span / 8) === 0).map((power) => Number(`1e${power}`));
  const ticks = span > 3 ? some : some.flatMap((each) => [each, 2 * each, 5 * each]);
  return ticks.map((each) => Number(each.toPrecision(9))).filter((each) => each >= low && each <= high);
}

const along = (value, [from, to], [start, end], logarithmic) => {
  const scale = logarithmic ? Math.log10 : Number;
  return from === to ? (start + end) / 2 : start + ((scale(value) - scale(from)) / (scale(to) - scale(from))) * (end - start);
};

// Where values stand: the vertical axis holds the drawn lines in every setting, so that it stays when a control is moved.
function frameOf({ drawn, x, y }, width) {
  const heights = drawn.flatMap(({ all }) => all.filter((value) => value !== null && (value > 0 || !y.logarithmic)));
  const [least, most] = heights.length ? [Math.min(...heights), Math.max(...heights)] : [1, 1];
  const room = 0.04 * (most - Math.min(least, 0)) || 0.5;
  const ends = y.logarithmic ? [least / 1.1, most * 1.1] : [least < 0 ? least - room : 0, Math.max(most, 0) + room];
  const rows = ticksOf(...ends, y.logarithmic);
  const columns = x.values.filter((value) => value > 0 || !x.logarithmic);
  const longest = (words) => Math.max(0, ...words.map((each) => each.length));
  const names = width >= NAMED_FROM ? Math.min(12 + 7 * longest(drawn.map(({ name }) => name)), width / 3) : 0;
  const left = 14 + WIDE * longest(rows.map(number));
  const right = width - Math.max(RIGHT, names);
  const across = (value) => along(value, [columns[0], columns.at(-1)], [left + 10, right - (names ? 22 : 10)], x.logarithmic);
  return { left, right, named: names > 0, rows, columns, x: across, y: (value) => along(value, ends, [HEIGHT - BOTTOM, TOP], y.logarithmic) };
}

function axesOf({ x, y }, frame) {
  const line = (x1, y1, x2, y2, kind) => make("line", { x1: at(x1), y1: at(y1), x2: at(x2), y2: at(y2), class: kind });
  const text = (left, top, words, kind) => make("text", { x: at(left), y: at(top), class: kind }, words);
  const [right, bottom] = [frame.right, HEIGHT - BOTTOM];
  const title = (axis) => `${named(axis)}${axis.logarithmic ? ", logarithmic" : ""}`;
  const parts = [text(2, 13, title(y), "name")];
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
  const name = text((frame.left + right) / 2, HEIGHT - 5, title(x), "name middle");
  return [...parts, line(frame.left, bottom, right, bottom, "axis"), name];
}

const coloured = ({ colours: [light, dark] }) => `--hl-series: light-dark(${light}, ${dark})`;

// A line with its marks; it is broken where a point is missing.
function lineOf(line, frame, { x, y }) {
  const shown = line.points.map((value, place) => isDrawn(value, x.values[place], x, y));
  const spots = line.points.map((value, place) => shown[place] && [frame.x(x.values[place]), frame.y(value)]);
  const parts = spots.map((spot, place) => spot && `${shown[place - 1] ? "L" : "M"}${at(spot[0])} ${at(spot[1])}`);
  const path = make("path", { d: parts.filter(Boolean).join(""), class: "curve", "stroke-width": line.width, "stroke-dasharray": line.dash.join(" ") || "none" });
  const marks = spots.filter(Boolean).map((spot) => markOf(line.shape, ...spot, line.size, { class: `point${line.hollow ? " hollow" : ""}` }));
  return make("g", { style: coloured(line), "data-line": line.name }, path, ...marks);
}

// The names of the lines beside the picture, each tied to the last point of its line.
function namesOf(drawn, frame, { x, y }) {
  const ends = drawn.flatMap((line) => {
    const last = line.points.findLastIndex((value, place) => isDrawn(value, x.values[place], x, y));
    return last < 0 ? [] : [{ line, from: [frame.x(x.values[last]), frame.y(line.points[last])], y: frame.y(line.points[last]) }];
  });
  return spread(ends, 15, TOP, HEIGHT - BOTTOM).flatMap(({ line, from: [left, top], y: row }) => {
    const tie = make("path", { d: `M${at(left + line.size + 2)} ${at(top)}L${at(frame.right)} ${at(row)}`, class: "tie", style: coloured(line) });
    return [tie, make("text", { x: at(frame.right + 4), y: at(row + 4), class: "end", style: coloured(line) }, line.name)];
  });
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
    svg.append(...(frame.named ? namesOf(reading.drawn, frame, reading) : []), ...reading.drawn.map((line) => lineOf(line, frame, reading)));
    const { drawn, x, y, setting } = reading;
    const about = `${y.label} against ${x.label}${setting && `, ${setting}`}: ${counted(drawn.length, "line")}.`;
    box.setAttribute("aria-label", `${about} ${sentence(reading)} All values are in the table below.`);
    box.replaceChildren(svg);
  };
  const touched = (x) => {
    if (!given) return;
    const away = (value) => Math.abs(frame.x(value) - x);
    pick(frame.columns.reduce((best, value) => (away(value) < away(best) ? value : best)));
  };
  return { element: box, draw, stop: watched(box, touched, () => given && draw()) };
}
