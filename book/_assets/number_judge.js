// Judges the answer to a number task by the data that hybridlab/course/checking/on_page.py has exported, as Python's `check` does: the same
// code and the same sentence. tests/labs/test_number_judge.py compares the two.

globalThis.numberJudge = (() => {
  const LARGEST = 1e15; // of a number in an answer
  const EMPTY = /^(device\s+\d{1,9}\s*:|\.\.\.|…|\s)*$/i; // text that counts as no answer
  const NUMBER = /^[-+]?(\d+[.,]?\d*|[.,]\d+)(e[-+]?\d+)?$/i;
  const THOUSANDS = /^[-+]?[1-9]\d{0,2}(,\d{3})+$/; // a comma that may stand between thousands: refused
  const SHOWN = 60; // characters of a text that a sentence repeats

  // ---- what the reader has written ----

  // Returns a number if the text is one, else the text.
  function readOf(text) {
    const bare = text.trim().replace("\u2212", "-");
    return NUMBER.test(bare) && !THOUSANDS.test(bare) ? Number(bare.replace(",", ".")) : bare;
  }

  // What a field has: a number, a text, or null if it is empty. A field for a list has numbers with commas or spaces between them.
  function givenIn(text, listed) {
    if (EMPTY.test(text)) return null;
    return listed ? text.split(/[\s,;]+/).filter(Boolean).map(readOf) : readOf(text);
  }

  // ---- numbers in words, as Python writes them ----

  // The digits of a number to so many of them, as "1.25e+7"; a tie goes to the even digit.
  function exponential(value, digits) {
    const [exact, exponent] = value.toExponential(60).split("e");
    const all = exact.replace(/[-.]/g, "");
    const kept = value.toExponential(digits - 1);
    const tie = /^50*$/.test(all.slice(digits));
    if (!tie || Number(all[digits - 1]) % 2) return kept;
    const even = all.slice(0, digits);
    return `${value < 0 ? "-" : ""}${even[0]}${digits > 1 ? `.${even.slice(1)}` : ""}e${exponent}`;
  }

  const powerOf = (exponent) => `e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  const withoutZeros = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

  // Digits "1.25" and their exponent as a number with a point: 7 gives "12500000".
  function pointed(mantissa, exponent) {
    const sign = mantissa.startsWith("-") ? "-" : "";
    const digits = mantissa.replace(/[-.]/g, "");
    if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
    const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
    const rest = digits.slice(exponent + 1);
    return sign + whole + (rest && `.${rest}`);
  }

  function general(value, digits) {
    if (value === 0) return Object.is(value, -0) ? "-0" : "0";
    const [mantissa, power] = exponential(value, digits).split("e");
    const exponent = Number(power);
    if (exponent < -4 || exponent >= digits) return withoutZeros(mantissa) + powerOf(exponent);
    return withoutZeros(pointed(mantissa, exponent));
  }

  function fixed(value, decimals, grouped) {
    const size = Math.abs(value);
    const exact = size.toFixed(decimals + 60);
    const cut = exact.slice(0, -60).replace(/\.$/, "");
    const tie = /^50*$/.test(exact.slice(-60)) && Number(cut.at(-1)) % 2 === 0;
    const [whole, part] = (tie ? cut : size.toFixed(decimals)).split(".");
    const sign = value < 0 || Object.is(value, -0) ? "-" : "";
    return sign + (grouped ? whole.replace(/\B(?=(\d{3})+$)/g, ",") : whole) + (part ? `.${part}` : "");
  }

  function formatted(value, form) {
    if (form.endsWith("g")) return general(value, form === "g" ? 6 : Number(form.slice(1, -1)));
    const [, comma, decimals] = form.match(/^(,?)\.(\d+)f$/);
    return fixed(value, Number(decimals), comma);
  }

  // All digits of a float, as Python's repr.
  function allDigits(value) {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
    if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
    const [mantissa, power] = value.toExponential().split("e");
    const exponent = Number(power);
    if (exponent < -4 || exponent >= 16) return mantissa + powerOf(exponent);
    const text = pointed(mantissa, exponent);
    return text.includes(".") ? text : `${text}.0`;
  }

  // A text in quotes, as Python's repr.
  function quoted(text) {
    const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
    const escaped = [...text].map((sign) => {
      if (sign === "\\" || sign === quote) return `\\${sign}`;
      const code = sign.codePointAt(0);
      if (sign === " " || !/[\p{C}\p{Z}]/u.test(sign)) return sign;
      const hex = code.toString(16);
      return code < 256 ? `\\x${hex.padStart(2, "0")}` : code < 65536 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
    });
    return quote + escaped.join("") + quote;
  }

  function shown(value) {
    const signs = [...(typeof value === "string" ? quoted(value) : allDigits(value))];
    return signs.length <= SHOWN ? signs.join("") : `${signs.slice(0, SHOWN - 3).join("")}...`;
  }

  // ---- rules and sentences: expressions about an answer ----

  const listOf = (value) => (Array.isArray(value) ? value : [value]);
  const equal = (one, other) => JSON.stringify(one) === JSON.stringify(other);

  function near(value, truth, within = 0) {
    const [values, truths] = [listOf(value), listOf(truth)];
    const most = (place) => (Array.isArray(within) ? within[place] : within);
    return values.length === truths.length && values.every((each, place) => Math.abs(each - truths[place]) <= most(place));
  }

  const counted = (count, thing) => `${fixed(count, 0, ",")} ${thing}${count === 1 ? "" : thing.endsWith("ch") ? "es" : "s"}`;

  // The remainder has the sign of the divisor, as in Python, and in JavaScript the sign of the dividend.
  function remainder(one, other) {
    const rest = one % other;
    if (rest === 0) return 0 * other;
    return Math.sign(rest) === -Math.sign(other) ? rest + other : rest;
  }

  const OPERATIONS = {
    "+": (one, other) => (Array.isArray(one) ? [...one, ...other] : one + other),
    "-": (one, other) => one - other,
    "*": (one, other) => one * other,
    "/": (one, other) => one / other,
    "//": (one, other) => Math.round((one - remainder(one, other)) / other) || 0 * (one / other),
    "%": remainder,
    "<": (one, other) => one < other,
    "<=": (one, other) => one <= other,
    ">": (one, other) => one > other,
    ">=": (one, other) => one >= other,
    "==": equal,
    "!=": (one, other) => !equal(one, other),
    in: (item, items) => items.includes(item),
    "not in": (item, items) => !items.includes(item),
    "unary -": (value) => -value,
    at: (items, place) => items[place],
    list: (...items) => items,
    abs: Math.abs,
    min: (...items) => Math.min(...items.flat()),
    max: (...items) => Math.max(...items.flat()),
    sum: (items) => items.reduce((total, item) => total + item, 0),
    len: (items) => items.length,
    near,
    count: (items, item) => items.filter((each) => each === item).length,
    index: (items, item) => items.indexOf(item),
    distinct: (items) => [...new Set(items)],
    without: (items, others) => items.filter((item) => !others.includes(item)),
    counted,
  };

  function evaluated(node, names) {
    if (!Array.isArray(node)) return node;
    const [operation, ...operands] = node;
    if (operation === "name") return names[operands[0]];
    if (operation === "if") return evaluated(operands[evaluated(operands[0], names) ? 1 : 2], names);
    if (operation === "and") return operands.every((operand) => evaluated(operand, names));
    if (operation === "or") return operands.some((operand) => evaluated(operand, names));
    const values = operands.map((operand) => evaluated(operand, names));
    const known = OPERATIONS[operation];
    return known ? known(...values) : values.reduce((table, place) => table[place], names[operation]);
  }

  function written(value, form) {
    if (typeof value === "string") return value;
    return listOf(value)
      .map((each) => formatted(each, form))
      .join(", ");
  }

  const filled = (sentence, names) =>
    sentence.map((part) => (typeof part === "string" ? part : written(evaluated(part[0], names), part[1]))).join("");

  // ---- the judge ----

  const wrong = (code, sentence) => ({ passed: false, code, sentence });

  // Returns the feedback on the first of the known mistakes that explains the value: the nearest wrong value, or else a rule.
  function mistakeBehind(value, mistakes, names) {
    const known = { ...names, value };
    const off = (wanted) => Math.max(...listOf(value).map((each, place) => Math.abs(each - listOf(wanted)[place])));
    const hits = mistakes.filter((mistake) => !("rule" in mistake) && near(value, mistake.value, mistake.within));
    const nearest = hits.reduce((best, hit) => (best && off(best.value) <= off(hit.value) ? best : hit), undefined);
    const found = nearest ?? mistakes.find((mistake) => "rule" in mistake && evaluated(mistake.rule, known));
    return found && wrong(found.code, filled(found.sentence, known));
  }

  // Whether a number with the decimals of the task is nearest to both the value and the right value.
  function roundsToTruth({ truth, within, unit }, value) {
    if (unit === null) return true;
    return listOf(truth).every((wanted, place) => {
      const each = listOf(value)[place];
      return Math.floor((Math.min(each, wanted) + within) / unit) * unit >= Math.max(each, wanted) - within;
    });
  }

  function judgedNumber(number, value) {
    const names = { ...number.names, value, truth: number.truth };
    if (number.ordered && Array.isArray(value)) {
      const place = value.findIndex((each, at) => !near(each, number.truth[at], number.within));
      names.place = Math.max(place, 0);
    }
    if (near(value, number.truth, number.within)) {
      return roundsToTruth(number, value) ? undefined : wrong("wrong-decimal", filled(number.nearMiss, names));
    }
    const mistake = mistakeBehind(value, number.mistakes, names) ?? mistakeBehind(value, number.fewer, names);
    return mistake ?? wrong(number.code, filled(number.hint, names));
  }

  // Returns the refusal of what a field has if it is no number.
  function refusalOf({ missing, strange }, given) {
    if (given === null) return wrong(...missing);
    const bad = listOf(given).find((each) => !Number.isFinite(each) || Math.abs(each) > LARGEST);
    return bad === undefined ? undefined : wrong(strange[0], strange[1] + shown(bad));
  }

  function refusalOfCount({ most, fraction, range }, value) {
    const digits = allDigits(value).replace(/\.0$/, "");
    if (!Number.isInteger(value)) return wrong(fraction[0], fraction[1] + digits);
    return value < 1 || (most !== null && value > most) ? wrong(range[0], range[1] + digits) : undefined;
  }

  // Returns the feedback on what the reader has written into the fields of a form, in their order: whether it passed, a code, a sentence.
  function judged(form, texts) {
    const fields = form.numbers.flatMap((number) => number.fields.map((field) => ({ ...field, listed: !number.ordered })));
    const given = fields.map((field, place) => givenIn(texts[place] ?? "", field.listed));
    if (given.every((each) => each === null)) return wrong(...form.nothing);
    for (const [place, field] of fields.entries()) {
      const refusal = refusalOf(field, given[place]);
      if (refusal) return { ...refusal, field: place };
    }
    let taken = 0;
    const values = form.numbers.map(({ truth, ordered, fields: { length } }) => {
      const own = given.slice(taken, (taken += length));
      if (!ordered) return [...own[0]].sort((one, other) => one - other);
      return Array.isArray(truth) ? own : own[0];
    });
    const counts = form.numbers.map(({ count }, place) => count && refusalOfCount(count, values[place]));
    const refused = counts.findIndex(Boolean);
    if (refused >= 0) return { ...counts[refused], field: refused };
    const faults = form.numbers.map((number, place) => judgedNumber(number, values[place]));
    const fault = faults.find(Boolean);
    if (!fault) return { passed: true, code: "passed", sentence: form.lesson };
    return (form.numbers.length > 1 && mistakeBehind(values, form.mistakes, form.names)) || fault;
  }

  return { judged };
})();
