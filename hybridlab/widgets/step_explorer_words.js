// Says in words what a step is, and what a rank does at a moment of it.

const time = (step, value) => (step.unit ? `${number(value)} ${step.unit}` : number(value));
const bytes = (count) => (count === undefined ? "" : ` (${count.toLocaleString("en-GB")} ${count === 1 ? "byte" : "bytes"})`);

function summary(step) {
  const head = `${step.title}, ${step.sizes}`;
  if (step.refusal) return `${head}: not possible. ${step.refusal}.`;
  const figures = [
    `makespan ${time(step, step.makespan)}`,
    `exposed communication ${time(step, step.exposed)}`,
    `speedup ${number(Number(step.speedup.toFixed(3)))} on ${counted(step.ranks.length, "device")}`,
  ];
  return `One training step of ${head}: ${figures.join(", ")}.`;
}

const placeOf = (step, { rank, device, replica }) => `Rank ${rank} (${step.held > 1 ? "device" : "stage"} ${device}, replica ${replica})`;

function opWords(step, op) {
  if (op.kind === "optimiser") return "runs its optimiser";
  return `runs ${op.text}, the ${step.kinds[op.kind].words} of microbatch ${op.microbatch} on stage ${op.stage}${copyWords(step, op)}`;
}

function computingWords(step, { op, next, hops, done }) {
  if (done) return "is done: the step has ended.";
  if (op) {
    const both = [op, op.partner].filter(Boolean);
    const output = (each) => (op.partner ? `The output of ${each.text}` : "Its output");
    const sent = both.filter(({ peer }) => Number.isInteger(peer)).map((each) => ` ${output(each)} goes to rank ${each.peer}.`);
    const runs = both.map((each) => opWords(step, each)).join(" and at the same time ");
    return `${runs}, from ${number(op.start)} to ${time(step, op.end)}.${sent.join("")}`;
  }
  if (!next) return hops.length ? "has finished computing." : "has finished its part of the step.";
  const what = next.kind === "optimiser" ? "its optimiser" : next.text;
  const starts = next.partner ? `and ${next.partner.text} start` : "starts";
  return `computes nothing until ${time(step, next.start)}, when ${what} ${starts}.`;
}

function messageWords(step, { kind, op, from, to, end }) {
  const [verb, word, other] = kind === "send" ? ["sends", "to", to] : ["receives", "from", from];
  return `It ${verb} the output of ${op.text} ${word} rank ${other} until ${time(step, end)}.`;
}

function hopWords(step, hop) {
  const ring = `the ring of ${step.copies > 1 ? "both copies of " : ""}stage ${hop.stage}`;
  const what = `In hop ${hop.count} of ${hop.of} of the ${step.spans[hop.kind].words} on ${ring}`;
  const [finished, adds] = hop.kind === "reduce-scatter" ? ["", ", which it adds to its own"] : ["the finished ", ""];
  const sends = `it sends chunk ${hop.piece} of the gradients${bytes(hop.nbytes)} to rank ${hop.peer}`;
  return `${what}, until ${time(step, hop.end)}, ${sends} and receives ${finished}chunk ${hop.got} from rank ${hop.from}${adds}.`;
}

// What the rank does at that time, in one or a few sentences.
function sentence(step, moment) {
  const messages = moment.done ? [] : [...moment.sends, ...moment.receives].map((each) => messageWords(step, each));
  const hops = moment.hops.map((hop) => hopWords(step, hop));
  return [computingWords(step, moment), ...messages, ...hops].join(" ");
}

const headOf = (step, moment) => `${placeOf(step, moment.own)} at ${time(step, moment.time)}`;
