// The plans of a cluster explorer: time and memory of a setting, all plans of the map, and their Pareto front.
// Python makes the tables. The script multiplies and adds their entries, divides work by time to get TFLOP/s, and compares sums.

import { number } from "./view.js";

// Returns a function of `places`, which has the index of each axis's value at the place of the axis in `order`. Throws if the data are
// damaged.
function lookUp(name, { axes, sizes, values }, order) {
  const whole = sizes.reduce((product, size) => product * size, 1);
  if (values.length !== whole) throw new Error(`the table ${name} is damaged`);
  const columns = axes.map((axis) => order.indexOf(axis));
  return (places) => {
    let place = 0;
    for (let axis = 0; axis < columns.length; axis++) place = place * sizes[axis] + places[columns[axis]];
    if (!Number.isFinite(values[place])) throw new Error(`the table ${name} has no number for this setting`);
    return values[place];
  };
}

// The sums of products of tables and numbers, as functions of `places`.
function sumsOf(quantities, tables) {
  const sumOf = (terms) => (places) => {
    let sum = 0;
    for (const term of terms) {
      let product = 1;
      for (const table of term) product *= table(places);
      sum += product;
    }
    return sum;
  };
  const found = (terms) => terms.map((term) => term.map((factor) => (typeof factor === "number" ? () => factor : tables[factor])));
  return Object.fromEntries(Object.entries(quantities).map(([name, terms]) => [name, sumOf(found(terms))]));
}

// The gigabytes on the fullest GPU, which is in the first or in the last stage.
function memoryAt(sums, places) {
  const [first, last] = ["first", "last"].map((stage) => {
    const [states, activations, working] = ["states", "activations", "working"].map((part) => sums[`${part}_${stage}`](places));
    return { states, activations, working, total: states + activations + working };
  });
  return { ...(first.total >= last.total ? first : last), capacity: sums.capacity(places) };
}

// Returns `read(setting)`, everything about one setting, and `alike(setting)`, all plans with the same GPUs, samples and network.
export function plannerOf(data) {
  const axes = data.axes.map(({ name }) => name);
  const order = [...axes, ...Object.keys(data.derived)];
  const compiled = (tables) => Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, lookUp(name, table, order)]));
  const [tables, derived, refused] = [data.tables, data.derived, data.refused].map(compiled);
  const values = Object.fromEntries(data.axes.map((axis) => [axis.name, axis.values]));
  const sums = sumsOf(data.quantities, tables);
  const parts = data.parts.map((part) => ({ ...part, at: sums[part.name] }));
  const misfitAt = (places) => refused.chunks(places) || refused.layers(places); // the number of a sentence
  const placesOf = (setting) => axes.map((name) => values[name].indexOf(setting[name]));
  const withDerived = (places) => {
    for (const axis of Object.values(derived)) places.push(axis(places));
    return places;
  };

  // `refusal` is the library's sentence if the plan is not possible. A plan that does not fit still has its `memory`.
  const read = (setting) => {
    const known = placesOf(setting);
    if (known.includes(-1)) throw new Error("this setting is not one of the grid");
    const places = withDerived(known);
    const misfit = data.sentences[misfitAt(places)];
    const memory = misfit ? null : memoryAt(sums, places);
    const timed = parts.map(({ at, ...part }) => ({ ...part, seconds: at(places) }));
    const seconds = timed.reduce((sum, part) => sum + part.seconds, 0);
    const refusal = misfit || filled(data.sentences[refused.memory(places)], setting, memory);
    const tflops = sums.work(places) / seconds;
    return { setting, refusal, memory, parts: timed, seconds, gpus: sums.gpus(places), tflops, capacity: sums.capacity(places) };
  };

  const alike = (setting) => {
    const gpus = setting.tensor * setting.stages * setting.replicas;
    const samples = setting.replicas * setting.microbatches * setting.microbatch;
    const found = [];
    for (const [tensor, stages, microbatch] of combinations(values.tensor, values.stages, values.microbatch)) {
      const replicas = gpus / tensor / stages;
      const shape = { ...setting, tensor, stages, replicas, microbatch, microbatches: samples / replicas / microbatch };
      if (placesOf(shape).includes(-1)) continue;
      const splits = tensor > 1 ? values.sequence_parallel : values.sequence_parallel.slice(0, 1); // one GPU shares nothing
      for (const [chunks, recompute, split] of combinations(values.chunks, values.recompute, splits)) {
        const plan = { ...shape, chunks, recompute, sequence_parallel: split };
        const places = withDerived(placesOf(plan));
        if (misfitAt(places)) continue;
        const { total, capacity } = memoryAt(sums, places);
        const seconds = parts.reduce((sum, { at }) => sum + at(places), 0);
        found.push({ setting: plan, seconds, memory: total, fits: total <= capacity, depth: values.stages.indexOf(stages) });
      }
    }
    return found.sort((one, other) => one.seconds - other.seconds || one.memory - other.memory);
  };
  return { read, alike };
}

const combinations = (...lists) => lists.reduce((rows, list) => rows.flatMap((row) => list.map((value) => [...row, value])), [[]]);

// The plans, fastest first, for which no other plan that fits is faster with as little memory.
export function frontOf(plans) {
  let least = Infinity;
  return plans.filter(({ fits, memory }) => {
    if (!fits || memory >= least) return false;
    least = memory;
    return true;
  });
}

// Fills the numbers of this setting into the library's sentence.
function filled(sentence, { gpu }, memory) {
  if (!sentence) return "";
  const texts = { gpu, over: (memory.total - memory.capacity).toFixed(1), capacity: number(memory.capacity) };
  for (const name of ["states", "activations", "working", "total"]) texts[name] = memory[name].toFixed(1);
  return sentence.replace(/\{(\w+)\}/g, (_, name) => texts[name]);
}
