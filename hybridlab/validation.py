"""Can these orders run? Every fault found, as a sentence and as a mark in the printed grid."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from hybridlab.errors import Deadlock, InvalidSchedule
from hybridlab.inputs import shown
from hybridlab.ops import Kind, Op
from hybridlab.schedule_text import join_marked

Orders = Sequence[Sequence[Op]]
MOST_NAMED = 12  # microbatches in one sentence
MOST_FAULTS = 24  # sentences; more help nobody


class Problem(NamedTuple):
    """One fault: a ``sentence``, and the ``op`` at ``position`` on ``device`` where it shows (None: nowhere)."""

    sentence: str
    device: int | None = None
    position: int | None = None
    op: Op | None = None


def slots_of(name: str, orders: Orders) -> dict[Op, int]:
    """Return the unit-time slot of every op if ``orders`` can run, else raise.

    A slot is one more than the later of two slots: that of the op before it on its device and that of the
    op it waits for. Raises :class:`InvalidSchedule` for orders that are incomplete or inconsistent,
    :class:`Deadlock` for complete ones that stop for ever.

    >>> slots_of("two", [[Op.parse("0F0"), Op.parse("0B0")]])[Op.parse("0B0")]
    1
    """
    device_of = {op.stage: device for device, order in enumerate(orders) for op in order}
    faults = list(islice(_incomplete(orders, device_of), MOST_FAULTS))
    backwards = list(_too_early(orders))
    if faults:
        raise InvalidSchedule(_report(name, orders, faults + backwards), tuple(faults + backwards))
    if backwards:
        raise Deadlock(_report(name, orders, backwards), tuple(backwards))
    slots, at = _run(orders, device_of)
    stuck = tuple(_stuck(orders, device_of, at))
    if stuck:
        raise Deadlock(_report(name, orders, stuck), stuck)
    return slots


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


def _incomplete(orders: Orders, device_of: Mapping[int, int]) -> Iterator[Problem]:
    """Yield what is missing, doubled, or on the wrong device."""
    placed = [(op, device, position) for device, order in enumerate(orders) for position, op in enumerate(order)]
    if not placed:
        yield Problem("there is no operation in it: give each device an order such as 0F0 0B0")
        return
    stages, microbatches = max(device_of) + 1, max(op.microbatch for op, _, _ in placed) + 1
    gap = next((number for number in range(stages) if number not in device_of), None)
    if gap is not None:
        yield Problem(f"no device runs stage {gap}, but stage {stages - 1} is there: number stages 0, 1, 2, ...")
        return
    seen = {op.microbatch for op, _, _ in placed}
    if len(seen) < microbatches:
        gap = next(number for number in range(microbatches) if number not in seen)
        there = f"microbatch {microbatches - 1} is there: number them 0, 1, 2, ..."
        yield Problem(f"no operation is of microbatch {gap}, but {there}")
        return
    for op, device, position in placed:
        if device_of[op.stage] != device:
            first = device_of[op.stage]
            sentence = f"stage {op.stage} stands on device {device} ({op}) and on device {first}"
            yield Problem(f"{sentence}; a stage lives on one device", device, position, op)
            return
    held = Counter(device_of.values())
    if len({held[device] for device in range(len(orders))}) > 1:
        counts = ", ".join(f"device {device} holds {held[device]}" for device in range(len(orders)))
        yield Problem(f"every device must hold the same number of stages, but {counts}")
    times = Counter(op for op, _, _ in placed)
    for op, device, position in placed:
        if times[op] > 1:
            yield Problem(f"stage {op.stage} runs {_of(op)} {_often(times[op])}", device, position, op)
            times[op] = 1
    yield from _missing(times, stages, microbatches)


def _missing(times: Counter[Op], stages: int, microbatches: int) -> Iterator[Problem]:
    """Yield a sentence for each stage and each sort of operation that it lacks, or has in two forms."""
    for stage in range(stages):
        lacking: dict[str, list[int]] = {}
        for microbatch in range(microbatches):
            forward, full, split, weight = (Op(kind, stage, microbatch) in times for kind in Kind)
            faults = {
                "never runs the forward {}": not forward,
                "never runs the backward {}": not (full or split or weight),
                "runs a full backward (B) {} and a part of it (I or W) as well: one or the other": full
                and (split or weight),
                "never runs the weight gradient {}: its backward is I, so W must follow": split and not (full or weight),
                "never runs the input gradient {}, which its weight gradient needs": weight and not (full or split),
            }
            for sentence in (each for each, found in faults.items() if found):
                lacking.setdefault(sentence, []).append(microbatch)
        for sentence, found_in in lacking.items():
            yield Problem(f"stage {stage} {sentence.format(_of_microbatches(found_in))}")


def _of_microbatches(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"of microbatch {numbers[0]}"
    if len(numbers) <= MOST_NAMED:
        return f"of microbatches {', '.join(map(str, numbers))}"
    return f"of {len(numbers)} microbatches, {numbers[0]}, {numbers[1]}, ... {numbers[-1]}"


def _too_early(orders: Orders) -> Iterator[Problem]:
    """Yield every op that stands before an op of its own stage which it needs."""
    for device, order in enumerate(orders):
        place: dict[Op, int] = {}
        for position, op in enumerate(order):
            place.setdefault(op, position)
        for position, op in enumerate(order):
            needed = Kind.I if op.kind is Kind.W else Kind.F
            first = place.get(Op(needed, op.stage, op.microbatch), -1)
            if op.kind is not Kind.F and first > position:
                sentence = f"device {device} runs {op} before {order[first]}, the {needed.words} that it needs"
                yield Problem(sentence, device, position, op)


def _run(orders: Orders, device_of: Mapping[int, int]) -> tuple[dict[Op, int], list[int]]:
    """Run every device as far as it goes; return the slots of what ran and the place each device reached."""
    split = _split(orders)
    slots: dict[Op, int] = {}
    at, clock = [0] * len(orders), [-1] * len(orders)
    waiting: dict[Op, int] = {}
    ready = list(range(len(orders)))
    while ready:
        device = ready.pop()
        for op in orders[device][at[device] :]:
            needed = input_of(op, len(device_of), split)
            if needed is not None and needed not in slots:
                waiting[needed] = device
                break
            clock[device] = slots[op] = 1 + max(clock[device], slots[needed] if needed else -1)
            at[device] += 1
            if op in waiting:
                ready.append(waiting.pop(op))
    return slots, at


def _stuck(orders: Orders, device_of: Mapping[int, int], at: Sequence[int]) -> Iterator[Problem]:
    split = _split(orders)
    for device, order in enumerate(orders):
        if at[device] < len(order):
            op = order[at[device]]
            needed = input_of(op, len(device_of), split)
            if needed is not None:
                other = device_of[needed.stage]
                there = orders[other][at[other]]
                where = "where" if there == needed else f"which is behind {there} on"
                stops = " stops too" if there == needed else ""
                sentence = f"device {device} stops at {op}: it waits for {needed}, {where} device {other}{stops}"
                yield Problem(sentence, device, at[device], op)


def _report(name: str, orders: Orders, problems: Sequence[Problem]) -> str:
    """Return the message: what is wrong, one sentence a line, and the grid with the offending ops in brackets."""
    told = [f"  {problem.sentence}" for problem in problems[:MOST_FAULTS]]
    if len(told) == MOST_FAULTS:
        told.append("  and perhaps more")
    marks = {(problem.device, problem.position) for problem in problems}
    return "\n".join([f"schedule {shown(name)} cannot run:", *told, join_marked(orders, marks)])


def _split(orders: Orders) -> dict[tuple[int, int], bool]:
    """Return for (stage, microbatch) whether its backward is split into I and W."""
    return {(op.stage, op.microbatch): op.kind is Kind.I for order in orders for op in order if op.kind in "BI"}


def _of(op: Op) -> str:
    return f"the {op.kind.words} of microbatch {op.microbatch}"


def _often(times: int) -> str:
    return "twice" if times == 2 else f"{times} times"
