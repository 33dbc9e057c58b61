// What an error explorer shows now, read from its data, in numbers and in words. `view.js` stands above this file.

const SETTING = ["algorithm", "distribution", "formats", "ranks"]; // the traits of what is shown
const SUPERSCRIPT = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
const GROUPED = new Intl.NumberFormat("en");

// 10 to a power as a label: 10⁻⁴.
const powerOf = (exponent) =>
  exponent === 0 ? "1" : `10${exponent < 0 ? "\u207b" : ""}${[...String(Math.abs(exponent))].map((digit) => SUPERSCRIPT[digit]).join("")}`;

// 0.000403 as 4.0 × 10⁻⁴, with thin spaces.
function small(value) {
  const [digits, exponent] = value.toExponential(1).split("e");
  return `${digits}\u2009\u00d7\u2009${powerOf(Number(exponent))}`;
}

const whole = (value) => GROUPED.format(value);

const isList = (value, count) => Array.isArray(value) && value.length === count && value.every((each) => Number.isFinite(each) && each > 0);

// Every series that is drawn: one for each algorithm and wire format. Throws where the data lack one.
function seriesOf(measured, { algorithm, distribution, formats }) {
  const algorithms = measured.algorithms.filter((name) => algorithm === "both" || name === algorithm);
  const drawn = measured.formats.filter((name) => formats.includes(name));
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
const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join("; ")} and ${names.at(-1)}`);

// What the marker stands on, in sentences.
function sentence(measured, shown, series) {
  const at = measured.ranks.indexOf(shown.ranks);
  const way = { ring: "in a ring", both: "in a ring and in one shot" }[shown.algorithm] ?? "in one shot";
  const head = `${shown.ranks} ranks, ${way}, ${shown.distribution} numbers.`;
  if (!series.length) return `${head} No wire format is chosen.`;
  const both = shown.algorithm === "both";
  const least = (key) => Math.min(...series.map((each) => each[key][at]));
  const [error, bytes] = [least("nmse"), least("nbytes")];
  const with_ = (key, value) => listed(series.filter((each) => each[key][at] === value).map((each) => nameOf(each, both)));
  const exact = `Most exact: ${with_("nmse", error)}, with an NMSE of ${small(error)}.`;
  return `${head} ${exact} Fewest bytes: ${with_("nbytes", bytes)}, ${whole(bytes)} a rank.`;
}
