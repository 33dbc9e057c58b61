// Says in words what a timeline is, what an operation is, and what it waited for.

function time(timeline, value) {
  return timeline.unit ? `${number(value)} ${timeline.unit}` : number(value);
}

function summary(timeline) {
  const head = `${timeline.title}, ${timeline.sizes}`;
  if (timeline.refusal) return `${head}: not possible. ${timeline.refusal}.`;
  const peaks = timeline.peak.map((peak, device) => `${number(peak)} on device ${device}`).join(", ");
  const figures = `makespan ${time(timeline, timeline.makespan)}, bubble ratio ${timeline.bubble.toFixed(3)}`;
  return `${head}: ${figures}, peak activations in microbatches: ${peaks}.`;
}

function named(timeline, op) {
  const kind = timeline.kinds[op.kind].words;
  const place = `${kind} of microbatch ${op.microbatch} on stage ${op.stage}${copyWords(timeline, op)}`;
  const pair = op.partner ? ` It runs together with ${op.partner.text}.` : "";
  return `${op.text}: the ${place}, device ${op.device}, from ${number(op.start)} to ${time(timeline, op.end)}.${pair}`;
}

function reason(timeline, op) {
  const { before, device } = op;
  const source = op.late ? op.waitedFor : op.source;
  const latency = source && source.device !== device ? timeline.p2p : 0;
  const arrival = source ? source.end + latency : 0;
  if (op.late) {
    const travel = latency ? ` and took ${number(latency)} to arrive` : "";
    const idle = op.start - (before ? before.end : 0);
    const stood = idle > 0 ? ` Device ${device} stood idle for ${number(idle)}.` : "";
    const other = op.late === op ? "" : ` with ${op.late.text}`;
    return `It waited${other} for its input ${source.text}, which ended at ${number(source.end)}${travel}.${stood}`;
  }
  if (!before) return "It waited for nothing.";
  if (before === source) return `It waited for its input ${source.text}, which ran just before it.`;
  const input = source && op.start - arrival > 1e-6 * op.start ? `; its input ${source.text} was there at ${number(arrival)}` : "";
  const both = before.partner ? ` together with ${before.partner.text}` : "";
  return `It waited for its device, which ran ${before.text}${both} until ${number(before.end)}${input}.`;
}
