// The setting of a view as words of a link, such as devices=4&chosen.p2p=0.5, and back.

const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const isText = (value) => typeof value === "string";
const isParts = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// [name, value] of every part of a setting. The parts of a trait that is an object have names of their own, such as chosen.p2p.
export const partsOf = (state, names) =>
  names.flatMap((name) => {
    const value = state[name];
    return isParts(value) ? Object.entries(value).map(([key, part]) => [`${name}.${key}`, part]) : [[name, value]];
  });

// A list has semicolons between its items, and a list of one number ends with a semicolon.
function worded(value) {
  if (!Array.isArray(value)) return String(value);
  const items = value.map((item) => String(item).replaceAll("%", "%25").replaceAll(";", "%3B"));
  return items.length === 1 && !isText(value[0]) ? `${items};` : items.join(";");
}

const numberIn = (word) => (NUMBER.test(word) && Number.isFinite(Number(word)) ? Number(word) : undefined);

function numbersIn(word) {
  if (!word.includes(";")) return numberIn(word);
  const numbers = word.replace(/;$/, "").split(";").map(numberIn);
  return numbers.includes(undefined) ? undefined : numbers;
}

// The value of a word in the type of `sample`, which is the value that the author gave to this part. Undefined for other types. Where the
// author gave one number, null and a list of numbers are read, too; where the author left a text empty, a number; where null, anything.
function valueIn(word, sample) {
  if (word === "null" && (sample === null || typeof sample === "number")) return null;
  if (sample === null) return numbersIn(word) ?? word;
  if (typeof sample === "boolean") return ["true", "false"].includes(word) ? word === "true" : undefined;
  if (isText(sample)) return (sample ? undefined : numberIn(word)) ?? word;
  if (!Array.isArray(sample) || !sample.every(isText)) return numbersIn(word);
  return word ? word.split(";").map((item) => item.replaceAll("%3B", ";").replaceAll("%25", "%")) : [];
}

// ---- rules: what a part of a setting can be ----

// A rule has `fits(value)`, `words(value)` for a sentence that says what fits, and `first`, a value that fits.
// `values` are those that a word of a link can name, where they can have several types.

const MOST_LISTED = 12; // more numbers than these are too many for a sentence
const NEAREST = 3;
const wordOf = (value) => (value === "" ? "empty" : String(value));
const eitherOf = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`);
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function wordsOfValues(values, asked) {
  if (values.length <= MOST_LISTED || !values.every(isNumber)) return eitherOf(values.map(wordOf));
  const near = values.toSorted((one, other) => Math.abs(one - asked) - Math.abs(other - asked)).slice(0, NEAREST);
  const ends = `one of ${values.length} numbers from ${values[0]} to ${values.at(-1)}`;
  return isNumber(asked) ? `${ends}, such as ${eitherOf(near.sort((one, other) => one - other).map(wordOf))}` : ends;
}

export const oneOf = (values) => ({
  values, fits: (value) => values.includes(value), words: (asked) => wordsOfValues(values, asked), first: values[0],
});

// A list of some of these values, which may be empty.
export const someOf = (values) => ({
  fits: (value) => Array.isArray(value) && value.every((each) => values.includes(each)),
  words: () => `empty, or some of ${values.join(", ")} with ; between them`,
  first: values,
});

// A list with a value for each place. Each place has its own values, which a link names as texts.
export const oneOfEach = (places) => ({
  fits: (value) => Array.isArray(value) && value.length === places.length && value.every((each, place) => places[place].map(String).includes(each)),
  words: () => places.map((values) => eitherOf(values.map(wordOf))).join("; "),
  first: places.map(([value]) => String(value)),
});

export const numberFrom = (least, most = Infinity, kind = "number") => ({
  fits: (value) => isNumber(value) && value >= least && value <= most && (kind === "number" || Number.isInteger(value)),
  words: () => (most > 1e15 ? `a ${kind} of at least ${least}` : `a ${kind} from ${least} to ${most}`),
  first: least,
});
export const wholeFrom = (least, most) => numberFrom(least, most, "whole number");

export const orNull = (rule) => ({ ...rule, fits: (value) => value === null || rule.fits(value), words: () => `null, or ${rule.words()}` });
export const orEach = (rule) => ({ ...rule, fits: (value) => [value].flat().every(rule.fits) });

// The name of something that is looked for, or nothing.
export const nameIn = (has, words) => ({ fits: (name) => name === "" || (isText(name) && has(name)), words: () => words, first: "" });

export const textUpTo = (longest) => ({
  fits: (value) => isText(value) && value.length <= longest, words: () => `a text of at most ${longest} characters`, first: "",
});

// ---- reading a link ----

const SHOWN = 40; // characters of a wrong word in a sentence
const cut = (word) => (word.length > SHOWN ? `${word.slice(0, SHOWN)}\u2026` : word);

function partSet(setting, name, value) {
  const [trait, ...key] = name.split(".");
  return { ...setting, [trait]: key.length ? { ...setting[trait], [key.join(".")]: value } : value };
}

// The setting `now` with the parts that a link sets and that can be shown, and a sentence for each part that cannot. `words` maps the names
// in the link to their words. `made` has the author's values. `rulesOf(setting)` has the rule of each part, which can depend on the parts
// before it. A part that the link does not set and that no longer fits gets the first value that does.
export function settingIn(words, made, now, rulesOf) {
  const faults = [];
  let setting = now;
  for (const [name, sample] of partsOf(made, Object.keys(made))) {
    const [rule, word] = [rulesOf(setting)[name], words.get(name)];
    const old = new Map(partsOf(setting, Object.keys(made))).get(name);
    const value = word === undefined ? old : (rule.values?.find((each) => String(each) === word) ?? valueIn(word, sample));
    if (value !== undefined && rule.fits(value)) {
      if (value !== old) setting = partSet(setting, name, value);
      continue;
    }
    if (word !== undefined) faults.push(`The link asks for ${name}=${cut(word)}, but ${name} can be ${rule.words(value)}.`);
    if (!rule.fits(old)) setting = partSet(setting, name, rule.first);
  }
  return { setting, faults };
}

// The words of a setting, for the end of an address.
export function queryOf(state, names) {
  const words = new URLSearchParams(partsOf(state, names).map(([name, value]) => [name, worded(value)]));
  return String(words).replace(/%(2C|2F|3A|3B|40)/g, decodeURIComponent); // a fragment may have , / : ; @
}
