// What a sweep explorer shows in a setting, read from its data, in numbers and in words. `view.js` and `chart.js` stand above this file.

const SETTING = ["quantity", "chosen", "at", "drawn", "logarithmic"]; // the traits of what is shown

const isGood = (value) => value === null || Number.isFinite(value);
const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join("; ")} and ${names.at(-1)}`);
const named = ({ label, unit }) => (unit ? `${label}, ${unit}` : label);
const withUnit = (value, { unit }) => (unit ? `${value} ${unit}` : value);
const told = (quantity, value) => (quantity.name === "bubble_ratio" ? value.toFixed(3) : number(value));

// The lines with their values of the chosen quantity: at the chosen setting (`points`), and at all settings (`all`). Throws for damaged data.
function linesOf(data, shown) {
  const count = data.x.values.length;
  const every = data.values[shown.quantity];
  const places = data.choices.map(({ name, values }) => values.indexOf(shown.chosen[name]));
  const block = places.reduce((before, place, which) => before * data.choices[which].values.length + place, 0);
  const blocks = data.choices.reduce((before, { values }) => before * values.length, 1);
  const sound = every.length === blocks * data.lines.length * count && every.length === data.why.length && every.every(isGood);
  if (!sound || places.includes(-1) || !data.x.values.includes(shown.at)) throw new Error("the values of this sweep are damaged");
  return data.lines.map((line, row) => {
    const from = (each) => (each * data.lines.length + row) * count;
    const points = every.slice(from(block), from(block) + count);
    const reasons = data.why.slice(from(block), from(block) + count).map((each) => (each ? data.reasons[each - 1] : "there is no result"));
    const all = Array.from({ length: blocks }, (_, each) => every.slice(from(each), from(each) + count)).flat();
    return { ...line, points, reasons, all, drawn: shown.drawn.includes(line.name) };
  });
}

// Everything that is drawn and told in a setting; `x` and `y` are the axes, `setting` is what is chosen, in words.
function readingOf(data, shown) {
  const lines = linesOf(data, shown);
  const axis = (each) => ({ ...each, logarithmic: shown.logarithmic.includes(each.name) });
  const y = axis(data.quantities.find(({ name }) => name === shown.quantity));
  const place = data.x.values.indexOf(shown.at);
  const titleOf = ({ name, values, titles }) => titles[values.indexOf(shown.chosen[name])];
  const setting = data.choices.map((choice) => `${choice.label} = ${withUnit(titleOf(choice), choice)}`).join(", ");
  return { drawn: lines.filter((line) => line.drawn), x: axis(data.x), y, at: shown.at, place, setting };
}

// The least at the x that is read, in a sentence.
function sentence({ drawn, x, y, at: now, place }) {
  const head = `${y.label} at ${x.label} = ${withUnit(number(now), x)}`;
  if (!drawn.length) return `${head}: no line is chosen.`;
  const values = drawn.map((line) => line.points[place]).filter((value) => value !== null);
  if (!values.length) return `${head}: none of the lines has a value.`;
  const with_ = (value) => {
    const names = drawn.filter((line) => line.points[place] === value).map((line) => line.name);
    return `${listed(names)}, ${withUnit(told(y, value), y)}`;
  };
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? `${head}: ${with_(least)}.` : `${head}, the least: ${with_(least)}; the most: ${with_(most)}.`;
}

// What is not in the picture, a sentence each: refused points, and those that a logarithmic axis has no place for.
function missing({ drawn, x, y }) {
  const gaps = drawn.flatMap((line) => line.points.map((value, place) => (value === null ? [line.reasons[place], line.name, number(x.values[place])] : null)));
  const found = gaps.filter(Boolean);
  const reasons = [...new Set(found.map(([reason]) => reason))];
  const where = (reason, name) => found.filter((gap) => gap[0] === reason && gap[1] === name).map((gap) => gap[2]);
  const sentences = reasons.map((reason) => {
    const names = [...new Set(found.filter((gap) => gap[0] === reason).map((gap) => gap[1]))];
    return `No point for ${listed(names.map((name) => `${name} at ${where(reason, name).join(", ")}`))}: ${reason}.`;
  });
  const low = drawn.flatMap((line) => line.points.filter((value, place) => value !== null && !isDrawn(value, x.values[place], x, y)));
  const few = low.length && `A logarithmic axis has no place for 0 or less: ${counted(low.length, "point")} left out of the picture.`;
  return few ? [...sentences, few] : sentences;
}

const isDrawn = (value, place, x, y) => value !== null && (value > 0 || !y.logarithmic) && (place > 0 || !x.logarithmic);
