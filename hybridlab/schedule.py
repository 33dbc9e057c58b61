"""A schedule: the order in which each device runs its operations. It knows no time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Arrays
from hybridlab.errors import HybridLabError
from hybridlab.fixed import fixed, one_object
from hybridlab.inputs import checked_text, counted, item_of, shown, whole_number
from hybridlab.ops import Kind, Op
from hybridlab.rows import B, F, Ints, devices_of, grid_of, rows_of
from hybridlab.running import input_of
from hybridlab.schedule_text import join_csv, join_text, read_orders, split_csv, split_text
from hybridlab.validation import slots_of

NAME = "a schedule's name"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Schedule(Arrays):
    r"""An order of operations for every device, known to be complete and free of deadlock.

    ``Schedule(name, orders)`` takes one sequence a device of :class:`Op` or of texts like ``"2F0"``. A forward and a backward
    that a device runs at the same time, an overlapped pair, are a tuple of two, or the text ``"(0F3;3B1)"``. Raises
    :class:`InvalidSchedule` if an operation is missing, doubled or on two devices, :class:`Deadlock` if the
    devices would wait for ever; the message shows the grid with the offending operations in brackets.

    Where microbatches take different paths over the devices, each path needs a copy of all weights: ``paths`` has the device
    of every stage, a tuple for each copy, and ``copy_of`` the copy that each microbatch runs through.

    Arrays hold one row an operation, device by device in running order: ``kind`` (place in F, B, I, W), ``stage``,
    ``microbatch``, ``device``, ``source`` (row whose output the operation needs, -1 for the first stage's
    forwards) and ``slot`` (a number above that of the operation before it on the device and that of its source; an
    overlapped pair shares one).

    >>> schedule = Schedule("one stage", [["0F0", "0B0"]])
    >>> schedule.orders
    ((Op(kind=<Kind.F: 'F'>, stage=0, microbatch=0), Op(kind=<Kind.B: 'B'>, stage=0, microbatch=0)),)

    Its length is the number of devices, and it is indexed and iterated like ``orders``:

    >>> len(schedule), [str(op) for op in schedule[-1]]
    (1, ['0F0', '0B0'])
    >>> print(Schedule.parse("device 0: 0F0 0B0\ndevice 1: 1F0 1B0"))
    device 0: 0F0 0B0
    device 1: 1F0 1B0
    """

    def __init__(self, name: str, orders: Iterable[Iterable[Op | str | tuple[Op | str, ...]]]) -> None:
        slots, paths, copy_of = slots_of(checked_text(name, NAME), read_orders(orders))
        stages = len(paths[0])
        grid = np.full((3, len(paths) * stages, len(copy_of)), -1)
        planes = {Kind.F: 0, Kind.B: 1, Kind.I: 1, Kind.W: 2}
        for op, slot in slots.items():
            grid[planes[op.kind], copy_of[op.microbatch] * stages + op.stage, op.microbatch] = slot
        self._fill(name, grid, paths)

    @classmethod
    def from_slots(cls, name: str, slots: npt.ArrayLike, device_of: Sequence[int], copies: int = 1) -> "Schedule":
        """Return the schedule in which each device runs its operations in the order of their slots.

        ``slots`` has shape (2 or 3, stages, microbatches): forwards, backwards and, where the backward is split, weight
        gradients (-1 where it is not). With several ``copies`` of the weights the second axis and ``device_of`` hold the
        stages of one copy after the other, and -1 stands where a microbatch runs through another copy. A forward and
        a full backward of one device in one slot are an overlapped pair. Slots that respect every dependency prove that the
        order can run; others are checked op by op.

        >>> print(Schedule.from_slots("gpipe", [[[0, 1]], [[2, 3]]], device_of=[0]))
        device 0: 0F0 0F1 0B0 0B1
        """
        grid, copies = grid_of(slots), whole_number(copies, "copies")
        lines = grid.shape[1]
        if lines % copies:
            raise HybridLabError(f"slots must have the stages of each of the {copies} copies, not {lines} stages in all")
        devices = devices_of(device_of, lines)
        made = object.__new__(cls)
        paths = tuple(devices[line : line + lines // copies] for line in range(0, lines, lines // copies))
        made._fill(checked_text(name, NAME), grid, paths)
        return made if _proven(made, grid) else cls(name, made.turns)

    def _fill(self, name: str, slots: Ints, paths: tuple[tuple[int, ...], ...]) -> None:
        """Set every array from a grid of slots: sort by device and slot, then look each source's row up."""
        columns = rows_of(slots, sum(paths, ()), len(paths))
        there = slots[0].reshape(len(paths), -1, slots.shape[2]) >= 0
        columns["copy_of"] = there.any(axis=1).argmax(axis=0)
        for column, values in columns.items():
            object.__setattr__(self, column, fixed(values))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "microbatches", slots.shape[2])
        object.__setattr__(self, "paths", paths)

    def needs(self, op: Op) -> tuple[Op, ...]:
        r"""Return the operations that must have ended before ``op`` can start.

        >>> [str(op) for op in Schedule.parse("0F0 0B0\n1F0 1B0").needs(Op.parse("0B0"))]
        ['0F0', '1B0']
        """
        try:
            known = self._known.get(op) if isinstance(op, Op) else None
        except TypeError:  # an Op of parts that cannot be hashed
            known = None
        if known is None:
            raise HybridLabError(f"{shown(op)} is not an operation of schedule {self.name!r}: its first is {self.ops[0]}")
        op = known
        split = {(op.stage + 1, op.microbatch): Op(Kind.I, op.stage + 1, op.microbatch) in self._known}
        own = {Kind.B: Kind.F, Kind.I: Kind.F, Kind.W: Kind.I}.get(op.kind)
        first = Op(own, op.stage, op.microbatch) if own else None
        return tuple(dict.fromkeys(need for need in (first, input_of(op, self.stages, split)) if need is not None))

    @cached_property
    def _known(self) -> dict[Op, Op]:
        return {op: op for op in self.ops}

    def __len__(self) -> int:
        return self.devices

    def __iter__(self) -> Iterator[tuple[Op, ...]]:
        return map(self._order, range(self.devices))

    @overload
    def __getitem__(self, device: int) -> tuple[Op, ...]: ...
    @overload
    def __getitem__(self, device: slice) -> tuple[tuple[Op, ...], ...]: ...
    def __getitem__(self, device: int | slice) -> tuple[Op, ...] | tuple[tuple[Op, ...], ...]:
        chosen = item_of(range(self.devices), device, f"schedule {self.name!r}", "device")
        return self._order(chosen) if isinstance(chosen, int) else tuple(map(self._order, chosen))

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return one_object(self)

    def __str__(self) -> str:
        return join_text(self.turns)

    def __repr__(self) -> str:
        sizes = (counted(self.devices, "device"), counted(self.microbatches, "microbatch"), counted(self.chunks, "chunk"))
        return f"<Schedule {self.name}: {', '.join(sizes)}>"

    def __eq__(self, other: object) -> bool:
        """Two schedules are equal when name and orders are, overlapped pairs included."""
        return isinstance(other, Schedule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        columns = (self.kind, self.stage, self.microbatch, self.copy_of, self.pairs)
        return (self.name, self.paths, self.microbatches, *(column.tobytes() for column in columns))

    @classmethod
    def parse(cls, text: str, name: str = "parsed") -> "Schedule":
        """Return the schedule that ``text`` writes: lines like ``device 0: 0F0 0B0``, with or without the label."""
        return cls(name, split_text(text))

    def to_csv(self) -> str:
        """Return one line a device, operations apart by commas: the form torch.distributed.pipelining reads."""
        return join_csv(self.turns)

    @classmethod
    def from_csv(cls, text: str, name: str = "parsed") -> "Schedule":
        """Return the schedule that :meth:`to_csv` wrote."""
        return cls(name, split_csv(text))


def _proven(schedule: Arrays, slots: Ints) -> bool:
    """Return whether the slots show that every operation is there once, on the right device, and can run."""
    there = (slots >= 0).reshape(len(slots), schedule.copies, -1, slots.shape[2])
    whole, some = there[:2].all(axis=(0, 2)), there.any(axis=(0, 2))  # by copy and microbatch
    if not ((whole.sum(axis=0) == 1).all() and (whole == some).all() and schedule.balanced):
        return False
    needing = np.flatnonzero(schedule.source >= 0)
    in_time = schedule.slot[schedule.source[needing]] < schedule.slot[needing]
    in_turn = (np.diff(schedule.slot) >= 0) | (np.diff(schedule.device) > 0)
    pairs = schedule.pairs
    paired = (schedule.kind[pairs] == F) & (schedule.kind[pairs + 1] == B)
    return bool(in_time.all() and in_turn.all() and paired.all() and (np.diff(pairs) > 1).all())
