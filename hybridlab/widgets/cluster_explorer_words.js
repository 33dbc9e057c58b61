// A cluster explorer's setting in words: how long, how fast, on how many GPUs, does it fit, and what the last change did.
// `cluster_explorer_data.js` stands above this file.

const GROUPED = new Intl.NumberFormat("en");
const MEMORY = { states: "states", activations: "activations", working: "working memory" };

// Three digits, or all of those before the point.
const three = (value) => (value >= 999.5 ? GROUPED.format(Math.round(value)) : value ? value.toPrecision(3) : "0");
const seconds = (value) => `${three(value)} s`;
const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;

// Whether a plan fits, and by how much.
function fitWords({ total, capacity }) {
  const room = capacity - total;
  return `${total.toFixed(1)} of ${number(capacity)} GB, ${room < 0 ? `${(-room).toFixed(1)} too much` : `${room.toFixed(1)} free`}`;
}

// The plan in full: on paper there are no controls.
function planWords({ axes }, { setting }) {
  return axes.map(({ name, label }) => `${label}: ${setting[name]}`).join("; ");
}

function headOf({ refusal, seconds: time, tflops, gpus, memory }) {
  const count = `${GROUPED.format(gpus)} ${gpus === 1 ? "GPU" : "GPUs"}`;
  if (refusal) return ["Not possible", ` on ${count}: ${refusal}.`];
  return [seconds(time), ` an iteration on ${count}, ${three(tflops)} TFLOP/s each. It fits: ${fitWords(memory)}.`];
}

// What the last change did: "Before, with Stages K = 8: 20.7 s; now 0.565 times as long."
function beforeWords({ axes }, now, before) {
  if (!before) return "";
  const changed = axes.filter(({ name }) => before.setting[name] !== now.setting[name]);
  const head = `Before, with ${changed.map(({ name, label }) => `${label} = ${before.setting[name]}`).join(", ")}`;
  if (before.refusal) return `${head}: not possible.`;
  if (now.refusal) return `${head}: ${seconds(before.seconds)}.`;
  return `${head}: ${seconds(before.seconds)}; now ${number(Number((now.seconds / before.seconds).toPrecision(3)))} times as long.`;
}

// The picture for those who cannot see it.
function pictureWords({ refusal, parts, seconds: time, memory }) {
  const told = parts.map(({ words, seconds: part }) => `${words} ${share(part, time)}`).join(", ");
  const kept = memory ? ` Memory of the fullest GPU: ${fitWords(memory)}.` : "";
  return refusal ? `No bar of time: the plan is not possible.${kept}` : `One iteration of ${seconds(time)} as a bar: ${told}.${kept}`;
}
