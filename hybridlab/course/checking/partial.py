"""Simulate any order of operations, legal or not. Each operation that can run starts as early as it can; all others never start.

A turn is what a device runs at one time: one operation, or an overlapped pair.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Floats, readonly
from hybridlab.costs import Costs
from hybridlab.schedule import CODE, Kind, Op, Operations
from hybridlab.schedule.grid import needed_lines
from hybridlab.schedule.text import Turn, Turns, read_orders
from hybridlab.schedule.validation import PLANE, PlacedOp, paths_of
from hybridlab.timeline import Timeline


class Stop(NamedTuple):
    """Where a device stops: the operation that it cannot run, the operation that it waits for, and the time from which it waits."""

    device: int
    op: Op
    needed: Op
    time: float


class Ran(NamedTuple):
    """A turn that has run, with its start and its end."""

    turn: Turn
    start: float
    end: float


def run_partly(orders: Turns, costs: Costs) -> tuple[list[list[Ran]], list[Stop]]:
    """Return the turns that each device runs, and one :class:`Stop` for each device that does not run all its turns.

    A turn starts as soon as its device is free and all outputs that the turn needs have arrived, as in :func:`hybridlab.simulate`. If an
    output never arrives, the device stops. If an operation runs twice, the output of the first run counts.

    Parameters
    ----------
    orders : Turns
        The turns of each device, as :func:`turns_of` returns them. Operations can be missing or occur twice.
    costs : Costs
        The times of operations and messages, for one setting.

    Examples
    --------
    >>> ran, stops = run_partly(turns_of([["0F0", "0B0"], ["1B0", "1F0"]]), Costs(forward=1, backward=2))
    >>> [(str(op), start, end) for (op,), start, end in ran[0]]
    [('0F0', 0.0, 1.0)]
    >>> [f"device {device} stops at {op} and waits for {needed}" for device, op, needed, _ in stops]
    ['device 0 stops at 0B0 and waits for 1B0', 'device 1 stops at 1B0 and waits for 1F0']
    """
    chunks = _chunks(_paths(orders)[0], len(orders))
    alone, together = costs.table(len(orders), chunks), costs.pairs(len(orders), chunks)
    every = {op for order in orders for turn in order for op in turn}
    stages = 1 + max((op.stage for op in every), default=0)
    needed = needed_lines(3, stages, stages).tolist()  # the grid has three planes: forwards, input gradients, weight gradients
    ran: list[list[Ran]] = [[] for _ in orders]
    # for each (line of the grid, microbatch): the time from which the output exists, and the device that has it
    outputs: dict[tuple[int, int], tuple[float, int]] = {}

    def needs(turn: Turn) -> list[tuple[Op, int]]:
        return [(op, line) for op in turn if (line := needed[PLANE[op.kind] * stages + op.stage]) >= 0]

    moved = True
    while moved:  # the loop ends after a pass in which no turn runs: then each device that is left waits for ever
        moved = False
        for device, order in enumerate(orders):
            for turn in order[len(ran[device]) :]:
                sources = [outputs.get((line, op.microbatch)) for op, line in needs(turn)]
                if None in sources:
                    break
                arrivals = [end + _latency(costs, sender, device) for end, sender in filter(None, sources)]
                start = max([*arrivals, ran[device][-1].end if ran[device] else 0.0])
                end = start + float(together[device] if len(turn) == 2 else alone[CODE[turn[0].kind], device])
                ran[device].append(Ran(turn, start, end))
                for op in turn:
                    outputs.setdefault((PLANE[op.kind] * stages + op.stage, op.microbatch), (end, device))
                moved = True
    stops = []
    for device, order in enumerate(orders):
        for turn in order[len(ran[device]) :][:1]:
            op, line = next((op, line) for op, line in needs(turn) if (line, op.microbatch) not in outputs)
            stops.append(Stop(device, op, _op_on_line(op, line, stages, every), ran[device][-1].end if ran[device] else 0.0))
    return ran, stops


def turns_of(orders: Iterable[Iterable[Op | str | Turn]]) -> Turns:
    """Return orders as turns: an overlapped pair, with its forward first, is one turn. Every other operation is a turn of its own."""
    return tuple(tuple(part for turn in order for part in _parts(turn)) for order in read_orders(orders))


class PartialRun(Operations):
    """The operations that have run, as arrays of a schedule. The order need not be legal, so ``source``, the row of the input, is -1."""

    _devices: int

    def __init__(self, orders: Turns, ran: Sequence[Sequence[Turn]]) -> None:
        paths, copy_of = _paths(orders)
        rows = [(op, device, slot) for device, turns in enumerate(ran) for slot, turn in enumerate(turns) for op in turn]
        columns = {
            "kind": [CODE[op.kind] for op, _, _ in rows],
            "stage": [op.stage for op, _, _ in rows],
            "microbatch": [op.microbatch for op, _, _ in rows],
            "device": [device for _, device, _ in rows],
            "source": [-1] * len(rows),
            "slot": [slot for _, _, slot in rows],
            "copy_of": copy_of,
        }
        for name, column in columns.items():
            # the class is frozen, so it forbids `self.name = ...`
            object.__setattr__(self, name, readonly(np.array(column, dtype=np.intp)))
        values = {"name": "yours", "microbatches": len(copy_of), "paths": paths, "_devices": len(orders)}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def devices(self) -> int:
        """The number of devices, including devices without operations."""
        return self._devices

    @property
    def chunks(self) -> int:
        """The largest number of stages that one device has in one copy of the weights."""
        return _chunks(self.paths, self.devices)


@dataclass(frozen=True, eq=False, repr=False)
class PartialTimeline(Timeline):
    """The timeline of an :class:`PartialRun`. Activations need not be freed, and a backward can run without its forward."""

    @property
    def activations(self) -> Floats:
        """The activations that a device holds while it runs each operation, shape (operations,). Unit: one microbatch on one device."""
        held = dict.fromkeys(range(self.schedule.devices), 0)
        alive = []
        for device, op in zip(self.schedule.device.tolist(), self.ops, strict=True):
            takes, frees = op.kind is Kind.F, op.kind in (Kind.B, Kind.W)
            # a backward needs the activations of a microbatch while it runs, even if its forward has never run on this device
            alive.append(max(held[device] + takes, int(frees)))
            held[device] = alive[-1] - frees
        return np.array(alive) / self.schedule.chunks  # one chunk holds only a share of a microbatch's activations on a device

    @property
    def peak_activations(self) -> Floats:
        """The most activations that each device holds at the same time, shape (devices,)."""
        peak = np.zeros(self.schedule.devices)
        takes = self.schedule.kind == CODE[Kind.F]
        np.maximum.at(peak, self.schedule.device[takes], self.activations[takes])
        return peak


def timeline_of(orders: Turns, ran: Sequence[Sequence[Ran]], unit: str | None) -> Timeline:
    """Return the timeline of the turns that have run. If no turn has run, it has one backward at time 0, without duration."""
    if not any(ran):  # a timeline needs at least one operation; a backward adds nothing to the peak activations
        anchor = next(turn[0] for order in orders for turn in order)
        ran = [[Ran((Op(Kind.B, anchor.stage, anchor.microbatch),), 0.0, 0.0)], *([] for _ in orders[1:])]
    times = np.array([(each.start, each.end) for turns in ran for each in turns for _ in each.turn])
    return PartialTimeline(PartialRun(orders, [[each.turn for each in turns] for turns in ran]), times[:, 0], times[:, 1], unit=unit)


def _parts(turn: Turn) -> list[Turn]:
    """Return a list with the turn, forward first, if it is an overlapped pair. Else return a list with one turn for each operation."""
    # an overlapped pair is a forward and a full backward whose stages or microbatches differ
    pair = sorted(turn, key=lambda op: CODE[op.kind])
    overlapped = [op.kind for op in pair] == [Kind.F, Kind.B] and pair[0][1:] != pair[1][1:]
    return [tuple(pair)] if overlapped else [(op,) for op in turn]


def _paths(orders: Turns) -> tuple[tuple[tuple[int, ...], ...], list[int]]:
    """Return two values: for each copy of the weights, the device of each stage, or -1 if no device has it; the copy of each microbatch."""
    paths = paths_of(PlacedOp(op, device, 0) for device, order in enumerate(orders) for turn in order for op in turn)
    stages, microbatches = (1 + max(numbers, default=0) for numbers in (paths.copies[0], paths.copy_of))
    copies = tuple(tuple(path.get(stage, -1) for stage in range(stages)) for path in paths.copies)
    return copies, [paths.copy_of.get(microbatch, 0) for microbatch in range(microbatches)]


def _chunks(paths: tuple[tuple[int, ...], ...], devices: int) -> int:
    return max(1, *(path.count(device) for path in paths for device in range(devices)))


def _latency(costs: Costs, sender: int, receiver: int) -> float:
    if sender == receiver:
        return 0.0
    return float(costs.latency(np.array([sender], dtype=np.intp), np.array([receiver], dtype=np.intp))[0])


def _op_on_line(waiting: Op, line: int, stages: int, every: set[Op]) -> Op:
    """Return the operation that ``waiting`` needs, which is on this line of the grid.

    On a line of backwards, this operation is a full backward (B) or an input gradient (I): the kind that an order contains. If no order
    contains either of them, it is an input gradient if ``waiting`` is a weight gradient (W), else the kind of ``waiting``.
    """
    plane, stage = divmod(line, stages)
    if plane == 0:
        return Op(Kind.F, stage, waiting.microbatch)
    either = [Op(kind, stage, waiting.microbatch) for kind in (Kind.B, Kind.I)]
    named = Op(Kind.I if waiting.kind is Kind.W else waiting.kind, stage, waiting.microbatch)
    return next((op for op in either if op in every), named)
