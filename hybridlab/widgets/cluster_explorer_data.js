// What a cluster explorer shows in a setting, picked from its tables. `view.js` stands above this file.
// A quantity is a sum of products of tables: nothing else is computed here, but TFLOP/s, which are work by seconds.

const SETTING = ["model", "gpu", "tensor", "stages", "replicas", "microbatches", "microbatch", "link", "wire", "recompute"]; // the traits

// The entry of a table; `places` has that of each axis in its list of values. Throws for damaged data.
function entry({ axes, sizes, values }, places) {
  const place = axes.reduce((before, axis, which) => before * sizes[which] + places[axis], 0);
  const whole = sizes.reduce((product, size) => product * size, 1);
  if (values.length !== whole || !Number.isFinite(values[place])) throw new Error(`a table over ${axes.join(", ")} is damaged`);
  return values[place];
}

const worth = (terms, places) =>
  terms.reduce((sum, tables) => sum + tables.reduce((product, table) => product * entry(table, places), 1), 0);

function placesOf({ axes, derived }, setting) {
  const places = Object.fromEntries(axes.map(({ name, values }) => [name, values.indexOf(setting[name])]));
  if (Object.values(places).includes(-1)) throw new Error("this setting is not one of the grid");
  return { ...places, held: entry(derived.held, places), reach: entry(derived.reach, places) };
}

// Everything about a setting. `refusal` is the library's sentence of why there is no such plan; one that fits not has its `memory` still.
function readingOf(data, setting) {
  const places = placesOf(data, setting);
  const quantity = (name) => worth(data.quantities[name], places);
  const [misfit, overflow] = data.refused.map((table) => data.sentences[entry(table, places)]);
  const memory = misfit ? null : Object.fromEntries(["states", "activations", "working", "total", "capacity"].map((name) => [name, quantity(name)]));
  const parts = data.parts.map((part) => ({ ...part, seconds: quantity(part.name) }));
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const refusal = misfit || filled(overflow, setting, memory);
  return { setting, refusal, memory, parts, seconds, gpus: quantity("gpus"), tflops: quantity("work") / seconds };
}

// The library's sentence with the numbers of this setting in it.
function filled(sentence, { gpu }, memory) {
  const texts = { gpu, over: (memory?.total - memory?.capacity).toFixed(1), capacity: number(memory?.capacity ?? 0) };
  const text = (name) => texts[name] ?? memory[name].toFixed(1);
  return sentence.replace(/\{(\w+)\}/g, (_, name) => text(name));
}
