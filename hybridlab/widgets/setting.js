// The setting of a view as words of a link, such as devices=4&chosen.p2p=0.5, and back.

const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const isText = (value) => typeof value === "string";
const isParts = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// [name, value] of every part of a setting. The parts of a trait that is an object have names of their own, such as chosen.p2p.
const partsOf = (state, names) =>
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

// The new values of the traits that a link sets, or a sentence that says what is wrong with the link. `made` has the author's values.
// `choices` has the values of each trait whose values have several types.
export function settingIn(query, names, made, now, choices = {}) {
  const samples = new Map(partsOf(made, names));
  const setting = {};
  for (const [name, word] of new URLSearchParams(query)) {
    const known = [...samples.keys()].join(", ");
    if (!samples.has(name)) return { fault: `The link sets \u201c${name}\u201d, but this view has only ${known}.` };
    const value = choices[name]?.find((each) => String(each) === word) ?? valueIn(word, samples.get(name));
    if (value === undefined) return { fault: `The link sets ${name} to \u201c${word}\u201d, which is a value of another type.` };
    const [trait, ...key] = name.split(".");
    setting[trait] = key.length ? { ...(setting[trait] ?? now[trait]), [key.join(".")]: value } : value;
  }
  return { setting };
}

// The words of a setting, for the end of an address.
export function queryOf(state, names) {
  const words = new URLSearchParams(partsOf(state, names).map(([name, value]) => [name, worded(value)]));
  return String(words).replace(/%(2C|2F|3A|3B|40)/g, decodeURIComponent); // a fragment may have , / : ; @
}
