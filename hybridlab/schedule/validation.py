"""The proof that orders can run. Each fault has a sentence and a code. If it has a position, the printed orders mark the position."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from hybridlab.arrays import Ints
from hybridlab.checks import short_repr
from hybridlab.errors import Deadlock, InvalidSchedule
from hybridlab.schedule.grid import NONE, needed_lines, slots_in_order
from hybridlab.schedule.ops import Kind, Op
from hybridlab.schedule.text import Turns, join_marked, turn_text

MOST_NAMED = 12  # an error lists at most 12 microbatches
MOST_FAULTS = 24  # an error lists at most 24 faults, because nobody reads more
PLANE = {Kind.F: 0, Kind.B: 1, Kind.I: 1, Kind.W: 2}  # the plane in the grid of slots

_MISSING = {
    "missing-forward": "never runs the forward {}",
    "missing-backward": "never runs the backward {}",
    "full-and-split-backward": "runs a full backward (B) {} and a part of it (I or W) as well: one or the other",
    "missing-weight-gradient": "never runs the weight gradient {}: its backward is I, so W must follow",
    "missing-input-gradient": "never runs the input gradient {}, which its weight gradient needs",
}


class Problem(NamedTuple):
    """One fault in the orders from which a schedule is to be built.

    Parameters
    ----------
    sentence : str
        The fault in words, for a reader.
    code : str
        The name of the fault, for programs.
    device, position : int or None
        The device, and the position in its order that the message marks. None if there is nothing to mark, for example if an operation
        is missing.
    op : Op or None
        The operation at this position.
    waits_for : int or None
        In a deadlock, the device whose operation this device waits for.
    """

    sentence: str
    code: str
    device: int | None = None
    position: int | None = None
    op: Op | None = None
    waits_for: int | None = None


class PlacedOp(NamedTuple):
    """An operation of the given orders, its device, and its position in the device's order."""

    op: Op
    device: int
    position: int


class Paths(NamedTuple):
    """For each copy of the weights, the device of every stage. For each microbatch, the copy that the microbatch uses."""

    copies: list[dict[int, int]]
    copy_of: dict[int, int]

    def device(self, op: Op) -> int:
        """Return the device that must run ``op``."""
        return self.copies[self.copy_of[op.microbatch]][op.stage]


def slots_of(name: str, orders: Turns) -> tuple[Ints, tuple[tuple[int, ...], ...]]:
    """Return the slots in which ``orders`` run, or raise an error that says why they cannot run.

    The slot of an operation is one more than the larger of two slots: the slot of the operation before it on its device, and the
    slot of the operation it needs. The two operations of an overlapped pair share a slot.

    Parameters
    ----------
    name : str
        The schedule's name, for messages.
    orders : Turns
        The turns of each device.

    Returns
    -------
    slots : Ints
        The grid of slots, shape (3, copies x stages, microbatches). -1 means that the operation does not exist.
    paths : tuple of tuple of int
        For each copy of the weights, the device of every stage.

    Raises
    ------
    InvalidSchedule
        The orders are incomplete or inconsistent.
    Deadlock
        The orders are complete, but devices would wait for each other for ever.

    Examples
    --------
    >>> slots_of("two", (((Op.parse("0F0"),), (Op.parse("0B0"),)),))[0].tolist()
    [[[0]], [[1]], [[-1]]]
    """
    placed = [PlacedOp(op, device, position) for device, order in enumerate(orders) for position, turn in enumerate(order) for op in turn]
    paths = paths_of(placed)
    faults = list(islice(_incomplete(placed, len(orders), paths), MOST_FAULTS)) + list(_wrong_pairs(orders))
    too_early = list(_too_early(placed))
    if faults:
        problems = tuple(faults + too_early)
        raise InvalidSchedule(_report(name, orders, problems), problems[0].code, problems)
    stages = len(paths.copies[0])
    shape = (3, len(paths.copies) * stages, len(paths.copy_of))  # the plane of weight gradients can be empty
    place_of = {op: _grid_index(op, paths, stages, shape) for op, _, _ in placed}
    places = [[(place_of[turn[0]], place_of[turn[1]] if len(turn) == 2 else NONE) for turn in order] for order in orders]
    grid = slots_in_order(places, shape, len(paths.copies))
    # An operation that stands before its own input waits for ever. Report this cause only, not the devices that wait because of it.
    blocked = tuple(too_early) or tuple(_blocked(orders, paths, grid.ravel(), place_of))
    if blocked:
        raise Deadlock(_report(name, orders, blocked), blocked[0].code, blocked)
    return grid, tuple(tuple(path[stage] for stage in range(stages)) for path in paths.copies)


def _grid_index(op: Op, paths: Paths, stages: int, shape: tuple[int, int, int]) -> int:
    """Return the index of ``op`` in the flattened grid of slots."""
    _, lines, microbatches = shape
    line = PLANE[op.kind] * lines + paths.copy_of[op.microbatch] * stages + op.stage
    return line * microbatches + op.microbatch


def paths_of(placed: Iterable[PlacedOp]) -> Paths:
    """Return the paths that microbatches take over the devices, one path for each copy of the weights.

    Microbatches that visit the same devices in the same order share a copy. Several paths are accepted only if each path visits every
    stage and has the same number of stages on every device. Otherwise this function returns one path, and :func:`slots_of` reports each
    operation on another device as a fault.

    Examples
    --------
    >>> down_and_up = [("0F0", 0), ("1F0", 1), ("0F1", 1), ("1F1", 0)]
    >>> paths_of(PlacedOp(Op.parse(text), device, 0) for text, device in down_and_up)
    Paths(copies=[{0: 0, 1: 1}, {0: 1, 1: 0}], copy_of={0: 0, 1: 1})
    """
    one: dict[int, int] = {}
    own: dict[int, dict[int, int]] = {}
    for op, device, _ in placed:
        one[op.stage] = device
        own.setdefault(op.microbatch, {}).setdefault(op.stage, device)  # the first operation of the stage sets its device
    devices = set(one.values())
    # Use only microbatches that visit all stages. If a microbatch lacks operations, its path is not known.
    whole = [dict(sorted(own[microbatch].items())) for microbatch in sorted(own) if len(own[microbatch]) == len(one)]
    copies = [path for place, path in enumerate(whole) if path not in whole[:place]]
    if len(copies) < 2 or not all(_balanced(path, devices) for path in copies):
        return Paths([one], dict.fromkeys(own, 0))
    # A microbatch that lacks operations gets the first copy whose path agrees with the stages that it visits. If no path agrees, it gets
    # copy 0, and slots_of reports a fault.
    copy_of = {
        microbatch: next((copy for copy, path in enumerate(copies) if mine.items() <= path.items()), 0) for microbatch, mine in own.items()
    }
    return Paths(copies, copy_of)


def _balanced(path: dict[int, int], devices: set[int]) -> bool:
    """Return whether every device has the same number of stages of this path."""
    visited = list(path.values())
    return len({visited.count(device) for device in devices}) == 1


def _incomplete(placed: Sequence[PlacedOp], devices: int, paths: Paths) -> Iterator[Problem]:
    """Yield a problem for each stage or operation that is missing, runs twice, or is on the wrong device."""
    if not placed:
        yield Problem("there is no operation in it: give each device an order such as 0F0 0B0", "empty-schedule")
        return
    device_of = paths.copies[0]
    stages, microbatches = max(device_of) + 1, max(op.microbatch for op, _, _ in placed) + 1
    gap = next((number for number in range(stages) if number not in device_of), None)
    if gap is not None:
        yield Problem(f"no device runs stage {gap}, but stage {stages - 1} is there: number stages 0, 1, 2, ...", "missing-stage")
        return  # otherwise each operation of the missing stage would be one more fault
    seen = {op.microbatch for op, _, _ in placed}
    if len(seen) < microbatches:
        gap = next(number for number in range(microbatches) if number not in seen)
        advice = f"microbatch {microbatches - 1} is there: number them 0, 1, 2, ..."
        yield Problem(f"no operation is of microbatch {gap}, but {advice}", "missing-microbatch")
        return
    for op, device, position in placed:
        if paths.device(op) != device:
            sentence = f"stage {op.stage} stands on device {device} ({op}) and on device {paths.device(op)}"
            yield Problem(f"{sentence}; a stage lives on one device", "stage-on-two-devices", device, position, op)
            return  # one operation is enough: usually all operations of the stage have this fault
    stages_on = Counter(device_of.values())
    if len({stages_on[device] for device in range(devices)}) > 1:
        counts = ", ".join(f"device {device} holds {stages_on[device]}" for device in range(devices))
        yield Problem(f"every device must hold the same number of stages, but {counts}", "uneven-stages")
    times = Counter(op for op, _, _ in placed)
    for op, device, position in placed:
        if times[op] > 1:
            often = "twice" if times[op] == 2 else f"{times[op]} times"
            sentence = f"stage {op.stage} runs the {op.kind.words} of microbatch {op.microbatch} {often}"
            yield Problem(sentence, "doubled-operation", device, position, op)
            times[op] = 1  # report the operation at its first position only
    yield from _missing_operations(times, stages, microbatches)


def _missing_operations(times: Counter[Op], stages: int, microbatches: int) -> Iterator[Problem]:
    """Yield a problem for each stage that lacks operations of a kind, or has both a full and a split backward of a microbatch."""
    for stage in range(stages):
        found: dict[str, list[int]] = {}
        for microbatch in range(microbatches):
            forward, full, split, weight = (Op(kind, stage, microbatch) in times for kind in Kind)  # F, B, I, W
            faults = {
                "missing-forward": not forward,
                "missing-backward": not (full or split or weight),
                "full-and-split-backward": full and (split or weight),
                "missing-weight-gradient": split and not (full or weight),
                "missing-input-gradient": weight and not (full or split),
            }
            for code, present in faults.items():
                if present:
                    found.setdefault(code, []).append(microbatch)
        for code, affected in found.items():
            yield Problem(f"stage {stage} {_MISSING[code].format(_of_microbatches(affected))}", code)


def _of_microbatches(numbers: Sequence[int]) -> str:
    """Return words such as "of microbatches 1, 3". If there are many microbatches, only the first two and the last are named."""
    if len(numbers) == 1:
        return f"of microbatch {numbers[0]}"
    if len(numbers) <= MOST_NAMED:
        return f"of microbatches {', '.join(map(str, numbers))}"
    return f"of {len(numbers)} microbatches, {numbers[0]}, {numbers[1]}, ... {numbers[-1]}"


def _wrong_pairs(orders: Turns) -> Iterator[Problem]:
    """Yield a problem for each turn that has several operations but is not an overlapped pair.

    An overlapped pair is a forward and a full backward of different stages or different microbatches.
    """
    for device, order in enumerate(orders):
        for position, turn in enumerate(order):
            kinds, places = sorted(op.kind for op in turn), {op[1:] for op in turn}
            if len(turn) != 1 and (kinds != [Kind.B, Kind.F] or len(places) == 1):
                wanted = "an overlapped pair is a forward and a full backward (B) of another stage or microbatch"
                sentence = f"device {device} runs {turn_text(turn)} at the same time: {wanted}"
                yield Problem(sentence, "not-a-pair", device, position, next(iter(turn), None))


def _too_early(placed: Sequence[PlacedOp]) -> Iterator[Problem]:
    """Yield a problem for each operation that comes before its own input (:attr:`Op.own_input`) on its device."""
    place: dict[tuple[Op, int], int] = {}
    for op, device, position in placed:
        place.setdefault((op, device), position)  # if an operation runs twice, its first position counts
    for op, device, position in placed:
        needed = op.own_input
        if needed and place.get((needed, device), -1) > position:
            sentence = f"device {device} runs {op} before {needed}, the {needed.kind.words} that it needs"
            yield Problem(sentence, "too-early", device, position, op)


def _blocked(orders: Turns, paths: Paths, slots: Ints, place_of: Mapping[Op, int]) -> Iterator[Problem]:
    """Yield a problem for each device that waits for ever. The sentence names the operation that cannot start and the missing input."""
    needed_op = _needed_ops(paths, place_of)
    # for each device, the position of the turn at which it stops, or the length of its order if it runs to the end
    at = [next((turn for turn in range(len(order)) if slots[place_of[order[turn][0]]] < 0), len(order)) for order in orders]
    for device, order in enumerate(orders):
        if at[device] < len(order):
            needs = ((op, needed_op[op]) for op in order[at[device]] if op in needed_op)
            op, needed = next((op, needed) for op, needed in needs if slots[place_of[needed]] < 0)
            other = paths.device(needed)
            current = orders[other][at[other]]
            where = "where" if needed in current else f"which is behind {turn_text(current)} on"
            stops = " stops too" if needed in current else ""
            sentence = f"device {device} stops at {op}: it waits for {needed}, {where} device {other}{stops}"
            yield Problem(sentence, "deadlock", device, at[device], op, other)


def _circles(problems: Sequence[Problem]) -> Iterator[str]:
    """Yield a sentence that names a circle of devices that wait for each other. Yield nothing if there is no deadlock."""
    waits = {problem.device: problem.waits_for for problem in problems if problem.waits_for is not None}
    # Each blocked device waits for another blocked device. So if we follow the waits from any device, we reach a circle.
    way = list(waits)[:1]
    while way and waits[way[-1]] not in way:
        way.append(waits[way[-1]])
    if way:
        circle = way[way.index(waits[way[-1]]) :]
        others = [f"device {device}" for device in circle[1:MOST_NAMED]] + ["..."] * (len(circle) > MOST_NAMED)
        back = f"device {circle[0]}" if others else "itself"
        yield f"device {circle[0]} waits for {', which waits for '.join([*others, back])}"


def _needed_ops(paths: Paths, place_of: Mapping[Op, int]) -> dict[Op, Op]:
    """Return, for each operation, the operation that it needs. Forwards of the first stage need none and are left out."""
    stages, microbatches = len(paths.copies[0]), len(paths.copy_of)
    needed = needed_lines(3, len(paths.copies) * stages, stages)
    op_at = {place: op for op, place in place_of.items()}
    lines = ((op, needed[place // microbatches]) for op, place in place_of.items())
    return {op: op_at[int(line) * microbatches + op.microbatch] for op, line in lines if line >= 0}


def _report(name: str, orders: Turns, problems: Sequence[Problem]) -> str:
    """Return the message of the error: one line for each fault, then the orders with the wrong operations in brackets."""
    lines = [f"  {problem.sentence}" for problem in problems[:MOST_FAULTS]]
    if len(lines) == MOST_FAULTS:
        lines.append("  and perhaps more")
    lines += [f"  {circle}" for circle in _circles(problems)]
    marks = {(problem.device, problem.position) for problem in problems}
    return "\n".join([f"schedule {short_repr(name)} cannot run:", *lines, join_marked(orders, marks)])
