"""Orders of operations run one by one in slots: what each operation needs, and how far each device comes."""

from collections.abc import Iterable, Mapping

from hybridlab.ops import Kind, Op
from hybridlab.schedule_text import Turns


def input_of(op: Op, stages: int, split: Mapping[tuple[int, int], bool]) -> Op | None:
    """Return the op whose output ``op`` is computed from, None for the first stage's forwards.

    ``split`` tells for (stage, microbatch) whether its backward is an input gradient (I) and a weight gradient (W).
    """
    kind, stage, microbatch = op
    if kind is Kind.F:
        return Op(Kind.F, stage - 1, microbatch) if stage else None
    if kind is Kind.W:
        return Op(Kind.I, stage, microbatch)
    if stage == stages - 1:
        return Op(Kind.F, stage, microbatch)
    return Op(Kind.I if split[stage + 1, microbatch] else Kind.B, stage + 1, microbatch)


def inputs_of(ops: Iterable[Op], stages: int) -> dict[Op, Op | None]:
    """Return for each of ``ops`` the op whose output it is computed from."""
    every = list(ops)
    split = {(op.stage, op.microbatch): op.kind is Kind.I for op in every if op.kind in "BI"}
    return {op: input_of(op, stages, split) for op in every}


def run(orders: Turns, inputs: Mapping[Op, Op | None]) -> tuple[dict[Op, int], list[int]]:
    """Run every device as far as it goes; return the slots of what ran and the place each device reached."""
    slots: dict[Op, int] = {}
    at, clock = [0] * len(orders), [-1] * len(orders)
    waiting: dict[Op, int] = {}
    ready = list(range(len(orders)))
    while ready:
        device = ready.pop()
        for turn in orders[device][at[device] :]:
            needed = [need for op in turn if (need := inputs[op]) is not None]
            missing = next((need for need in needed if need not in slots), None)
            if missing is not None:
                waiting[missing] = device
                break
            clock[device] = 1 + max(clock[device], *(slots[need] for need in needed), -1)
            slots.update(dict.fromkeys(turn, clock[device]))
            at[device] += 1
            ready += [waiting.pop(op) for op in turn if op in waiting]
    return slots, at
