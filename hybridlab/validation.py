"""Can these orders run? Every fault found, as a sentence and as a mark in the printed grid."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from hybridlab.errors import Deadlock, InvalidSchedule
from hybridlab.inputs import shown
from hybridlab.ops import Kind, Op
from hybridlab.paths import Paths, Placed, paths_of
from hybridlab.running import inputs_of, run
from hybridlab.schedule_text import Turns, join_marked, turn_text

MOST_NAMED = 12  # microbatches in one sentence
MOST_FAULTS = 24  # sentences; more help nobody


class Problem(NamedTuple):
    """One fault: a ``sentence``, and the ``op`` at ``position`` on ``device`` where it shows (None: nowhere)."""

    sentence: str
    device: int | None = None
    position: int | None = None
    op: Op | None = None


def slots_of(name: str, orders: Turns) -> tuple[dict[Op, int], tuple[tuple[int, ...], ...], list[int]]:
    """Return every op's slot if ``orders`` can run, the device of every stage by copy, and the copy of every microbatch.

    A slot is one more than the later of two slots: that of the op before it on its device and that of the
    op it waits for; the two of an overlapped pair share one. Raises :class:`InvalidSchedule` for orders that are incomplete or
    inconsistent, :class:`Deadlock` for complete ones that stop for ever.

    >>> slots_of("two", (((Op.parse("0F0"),), (Op.parse("0B0"),)),))
    ({Op(kind=<Kind.F: 'F'>, stage=0, microbatch=0): 0, Op(kind=<Kind.B: 'B'>, stage=0, microbatch=0): 1}, ((0,),), [0])
    """
    placed = [Placed(op, device, position) for device, order in enumerate(orders) for position, turn in enumerate(order) for op in turn]
    paths = paths_of(placed)
    faults = list(islice(_incomplete(placed, len(orders), paths), MOST_FAULTS)) + list(_no_pair(orders))
    backwards = list(_too_early(placed))
    if faults:
        raise InvalidSchedule(_report(name, orders, faults + backwards), tuple(faults + backwards))
    if backwards:
        raise Deadlock(_report(name, orders, backwards), tuple(backwards))
    inputs = inputs_of((op for op, _, _ in placed), len(paths.copies[0]))
    slots, at = run(orders, inputs)
    stuck = tuple(_stuck(orders, inputs, paths, slots, at))
    if stuck:
        raise Deadlock(_report(name, orders, stuck), stuck)
    devices = tuple(tuple(path[stage] for stage in range(len(path))) for path in paths.copies)
    return slots, devices, [paths.copy_of[microbatch] for microbatch in range(len(paths.copy_of))]


def _incomplete(placed: Sequence[Placed], devices: int, paths: Paths) -> Iterator[Problem]:
    """Yield what is missing, doubled, or on the wrong device."""
    if not placed:
        yield Problem("there is no operation in it: give each device an order such as 0F0 0B0")
        return
    device_of = paths.copies[0]
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
        if paths.device(op) != device:
            sentence = f"stage {op.stage} stands on device {device} ({op}) and on device {paths.device(op)}"
            yield Problem(f"{sentence}; a stage lives on one device", device, position, op)
            return
    held = Counter(device_of.values())
    if len({held[device] for device in range(devices)}) > 1:
        counts = ", ".join(f"device {device} holds {held[device]}" for device in range(devices))
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
                "runs a full backward (B) {} and a part of it (I or W) as well: one or the other": full and (split or weight),
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


def _no_pair(orders: Turns) -> Iterator[Problem]:
    """Yield what is run at the same time and is not one forward and one full backward, apart from each other."""
    for device, order in enumerate(orders):
        for position, turn in enumerate(order):
            kinds, places = sorted(op.kind for op in turn), {op[1:] for op in turn}
            if len(turn) != 1 and (kinds != [Kind.B, Kind.F] or len(places) == 1):
                wanted = "an overlapped pair is a forward and a full backward (B) of another stage or microbatch"
                sentence = f"device {device} runs {turn_text(turn)} at the same time: {wanted}"
                yield Problem(sentence, device, position, next(iter(turn), None))


def _too_early(placed: Sequence[Placed]) -> Iterator[Problem]:
    """Yield every op that stands before an op of its own stage which it needs."""
    place: dict[tuple[Op, int], int] = {}
    for op, device, position in placed:
        place.setdefault((op, device), position)
    for op, device, position in placed:
        needed = Op(Kind.I if op.kind is Kind.W else Kind.F, op.stage, op.microbatch)
        if op.kind is not Kind.F and place.get((needed, device), -1) > position:
            sentence = f"device {device} runs {op} before {needed}, the {needed.kind.words} that it needs"
            yield Problem(sentence, device, position, op)


def _stuck(orders: Turns, inputs: Mapping[Op, Op | None], paths: Paths, slots: Mapping[Op, int], at: Sequence[int]) -> Iterator[Problem]:
    for device, order in enumerate(orders):
        if at[device] < len(order):
            op, needed = next((op, need) for op in order[at[device]] if (need := inputs[op]) is not None and need not in slots)
            other = paths.device(needed)
            there = orders[other][at[other]]
            where = "where" if needed in there else f"which is behind {turn_text(there)} on"
            stops = " stops too" if needed in there else ""
            sentence = f"device {device} stops at {op}: it waits for {needed}, {where} device {other}{stops}"
            yield Problem(sentence, device, at[device], op)


def _report(name: str, orders: Turns, problems: Sequence[Problem]) -> str:
    """Return the message: what is wrong, one sentence a line, and the grid with the offending ops in brackets."""
    told = [f"  {problem.sentence}" for problem in problems[:MOST_FAULTS]]
    if len(told) == MOST_FAULTS:
        told.append("  and perhaps more")
    marks = {(problem.device, problem.position) for problem in problems}
    return "\n".join([f"schedule {shown(name)} cannot run:", *told, join_marked(orders, marks)])


def _of(op: Op) -> str:
    return f"the {op.kind.words} of microbatch {op.microbatch}"


def _often(times: int) -> str:
    return "twice" if times == 2 else f"{times} times"
