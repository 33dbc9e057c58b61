// Orders as operations: every word of an order becomes an operation that knows what it needs. Nothing here knows times.

const WORD = /^(\d{1,9})([FBIWfbiw])(\d{1,9})$/;

// The operation of a word such as 2F0, or null.
export function operationOf(word) {
  const found = WORD.exec(word);
  if (!found) return null;
  const [stage, kind, microbatch] = [Number(found[1]), found[2].toUpperCase(), Number(found[3])];
  return { text: `${stage}${kind}${microbatch}`, kind, stage, microbatch };
}

// The operations of a word such as 0F3, or of an overlapped pair such as (0F3;3B1).
const wordsOfTurn = (word) => word.replace(/^\(|\)$/g, "").split(";");

// The text of the operation that makes the input of an operation, or undefined for the forward on the first stage. This is the
// dependency rule. `has(text)` says whether an operation exists, because a backward is a B, or an I with a W.
export function neededBy({ kind, stage, microbatch }, stages, has) {
  if (kind === "F") return stage ? `${stage - 1}F${microbatch}` : undefined;
  if (kind === "W") return `${stage}I${microbatch}`;
  if (stage === stages - 1) return `${stage}F${microbatch}`;
  return [`${stage + 1}B${microbatch}`, `${stage + 1}I${microbatch}`].find(has);
}

// The order in which a clock can go through the operations: each comes after the one before it on its device and after its input.
// Operations that would wait for ever are not in it.
function walkOf(ops, devices) {
  const [walk, known, waiting] = [[], new Uint8Array(ops.length), new Map()]; // row of an input -> first row of the turn that waits
  const ready = devices.map((line) => line[0]).filter((row) => row !== undefined);
  while (ready.length) {
    let row = ready.pop();
    const { device } = ops[row];
    while (ops[row]?.device === device) {
      const turn = ops[row].partner ? [row, row + 1] : [row];
      const lacks = turn.map((each) => ops[each].source).find((source) => source && !known[source.row]);
      if (lacks) {
        waiting.set(lacks.row, [...(waiting.get(lacks.row) ?? []), row]);
        break;
      }
      for (const each of turn) {
        known[each] = 1;
        walk.push(each);
        ready.push(...(waiting.get(each) ?? []));
        waiting.delete(each);
      }
      row += turn.length;
    }
  }
  return walk;
}

// The copy of the weights that each microbatch runs through: microbatches that visit the same devices in the same order share a copy.
function copiesOf(ops) {
  const visited = new Map(); // microbatch -> the devices of its forwards, by stage
  for (const { microbatch, stage, device } of ops.filter(({ kind }) => kind === "F")) {
    visited.set(microbatch, Object.assign(visited.get(microbatch) ?? [], { [stage]: device }));
  }
  const paths = [...visited].sort(([one], [other]) => one - other).map(([microbatch, devices]) => [microbatch, devices.join()]);
  const different = [...new Set(paths.map(([, path]) => path))];
  return new Map(paths.map(([microbatch, path]) => [microbatch, different.indexOf(path)]));
}

// A pipeline: its operations, with a row for each, device by device, and the order in which a clock walks through them.
// `orders` has one text for each device, such as "0F0 0F1 0B0 0B1". An operation has these properties:
//   row, device, text, kind, stage, microbatch
//   partner   the other operation of an overlapped pair, or null
//   before    the operation before it on the device, or null; both operations of a pair have the same
//   source    the operation that makes its input, or null
//   copy      the copy of the weights that its microbatch runs through, from 0
export function pipelineOf(orders) {
  const ops = [];
  const devices = orders.map((order, device) => {
    let last = null;
    return order.split(" ").filter(Boolean).flatMap((word) => {
      const turn = wordsOfTurn(word).map(operationOf);
      if (turn.includes(null)) throw new Error(`${word} is not an operation`);
      const before = last;
      for (const op of turn) {
        Object.assign(op, { row: ops.length, device, before, partner: turn.find((other) => other !== op) ?? null });
        last = op;
        ops.push(op);
      }
      return turn.map(({ row }) => row);
    });
  });
  const named = new Map(ops.map((op) => [op.text, op]));
  const stages = 1 + ops.reduce((high, { stage }) => Math.max(high, stage), -1);
  const copy = copiesOf(ops);
  for (const op of ops) {
    op.source = named.get(neededBy(op, stages, (text) => named.has(text))) ?? null;
    op.copy = copy.get(op.microbatch) ?? 0;
  }
  const chunks = Math.max(1, Math.round(stages / Math.max(devices.length, 1)));
  return { ops, devices: devices.length, stages, chunks, copies: Math.max(1, ...[...copy.values()].map((each) => each + 1)), walk: walkOf(ops, devices) };
}
