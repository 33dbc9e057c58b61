"""A schedule: the order in which each device runs its operations. It knows no time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.errors import HybridLabError
from hybridlab.fixed import Fixed, fixed
from hybridlab.inputs import checked_text, counted, shown
from hybridlab.ops import KINDS, Kind, Op
from hybridlab.rows import Ints, devices_of, grid_of, rows_of
from hybridlab.schedule_text import join_csv, join_text, read_orders, split_csv, split_text
from hybridlab.validation import input_of, slots_of

NAME = "a schedule's name"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Schedule(Fixed):
    r"""An order of operations for every device, known to be complete and free of deadlock.

    ``Schedule(name, orders)`` takes one sequence a device of :class:`Op` or of texts like ``"2F0"``. Raises
    :class:`InvalidSchedule` if an operation is missing, doubled or on two devices, :class:`Deadlock` if the
    devices would wait for ever; the message shows the grid with the offending operations in brackets.

    Arrays hold one row an operation, device by device in running order: ``kind`` (place in F, B, I, W), ``stage``,
    ``microbatch``, ``device``, ``source`` (row whose output the operation needs, -1 for the first stage's
    forwards) and ``slot`` (a number above that of the operation before it on the device and that of its source).

    >>> schedule = Schedule("one stage", [["0F0", "0B0"]])
    >>> schedule.orders
    ((Op(kind=<Kind.F: 'F'>, stage=0, microbatch=0), Op(kind=<Kind.B: 'B'>, stage=0, microbatch=0)),)
    >>> print(Schedule.parse("device 0: 0F0 0B0\ndevice 1: 1F0 1B0"))
    device 0: 0F0 0B0
    device 1: 1F0 1B0
    """

    name: str
    microbatches: int
    device_of: tuple[int, ...]  # stage -> device
    kind: Ints
    stage: Ints
    microbatch: Ints
    device: Ints
    source: Ints
    slot: Ints

    def __init__(self, name: str, orders: Iterable[Iterable[Op | str]]) -> None:
        ops = read_orders(orders)
        slots = slots_of(checked_text(name, NAME), ops)
        place = {op.stage: device for device, order in enumerate(ops) for op in order}
        grid = np.full((3, len(place), 1 + max(op.microbatch for op in slots)), -1)
        planes = {Kind.F: 0, Kind.B: 1, Kind.I: 1, Kind.W: 2}
        for op, slot in slots.items():
            grid[planes[op.kind], op.stage, op.microbatch] = slot
        self._fill(name, grid, tuple(place[stage] for stage in range(len(place))))

    @classmethod
    def from_slots(cls, name: str, slots: npt.ArrayLike, device_of: Sequence[int]) -> "Schedule":
        """Return the schedule in which each device runs its operations in the order of their slots.

        ``slots`` has shape (2 or 3, stages, microbatches): forwards, backwards and, where the backward is split, weight
        gradients (-1 where it is not). Slots that respect every dependency prove that the order can run; others
        are checked op by op.

        >>> print(Schedule.from_slots("gpipe", [[[0, 1]], [[2, 3]]], device_of=[0]))
        device 0: 0F0 0F1 0B0 0B1
        """
        grid = grid_of(slots)
        devices = devices_of(device_of, stages=grid.shape[1])
        made = object.__new__(cls)
        made._fill(checked_text(name, NAME), grid, devices)
        places = np.flatnonzero(made.source >= 0)
        proven = (made.slot[made.source[places]] < made.slot[places]).all()
        alone = (np.diff(made.slot) > 0) | (np.diff(made.device) > 0)
        held = np.bincount(devices)
        if not (proven and alone.all() and (grid[:2] >= 0).all() and (held == held[0]).all()):
            return cls(name, made.orders)
        return made

    def _fill(self, name: str, slots: Ints, device_of: tuple[int, ...]) -> None:
        """Set every array from a grid of slots: sort by device and slot, then look each source's row up."""
        columns = rows_of(slots, device_of)
        for column, values in columns.items():
            object.__setattr__(self, column, fixed(values))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "microbatches", slots.shape[2])
        object.__setattr__(self, "device_of", device_of)

    @property
    def stages(self) -> int:
        """Number of stages over all devices."""
        return len(self.device_of)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return 1 + max(self.device_of)

    @property
    def chunks(self) -> int:
        """Number of stages a device holds (model chunks)."""
        return self.stages // self.devices

    @cached_property
    def first(self) -> Ints:
        """The row where each device begins."""
        return fixed(np.searchsorted(self.device, np.arange(self.devices)))

    @cached_property
    def crosses(self) -> npt.NDArray[np.bool_]:
        """Whether each operation's source runs on another device, so that a message must carry it."""
        source_device = np.append(self.device, -1)[self.source]
        crosses: npt.NDArray[np.bool_] = (source_device != self.device) & (self.source >= 0)
        return fixed(crosses)

    @cached_property
    def messages(self) -> Ints:
        r"""Messages each device sends, shape (devices,): one for each output that an operation on another device needs.

        >>> Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1").messages
        array([2, 2])
        """
        return fixed(np.bincount(self.device[self.source[self.crosses]], minlength=self.devices))

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """Every operation, in the order of the rows."""
        columns = zip(self.kind.tolist(), self.stage.tolist(), self.microbatch.tolist(), strict=True)
        return tuple(Op(KINDS[kind], stage, microbatch) for kind, stage, microbatch in columns)

    @property
    def orders(self) -> tuple[tuple[Op, ...], ...]:
        """The operations of each device, in running order."""
        bounds = [*self.first.tolist(), self.kind.size]
        return tuple(self.ops[start:stop] for start, stop in pairwise(bounds))

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
            raise HybridLabError(
                f"{shown(op)} is not an operation of schedule {self.name!r}: its first is {self.ops[0]}"
            )
        op = known
        split = {(op.stage + 1, op.microbatch): Op(Kind.I, op.stage + 1, op.microbatch) in self._known}
        own = {Kind.B: Kind.F, Kind.I: Kind.F, Kind.W: Kind.I}.get(op.kind)
        first = Op(own, op.stage, op.microbatch) if own else None
        return tuple(dict.fromkeys(need for need in (first, input_of(op, self.stages, split)) if need is not None))

    @cached_property
    def _known(self) -> dict[Op, Op]:
        return {op: op for op in self.ops}

    def __str__(self) -> str:
        return join_text(self.orders)

    def __repr__(self) -> str:
        sizes = (counted(self.devices, "device"), counted(self.microbatches, "microbatch"), counted(self.chunks, "chunk"))
        return f"<Schedule {self.name}: {', '.join(sizes)}>"

    def __eq__(self, other: object) -> bool:
        """Two schedules are equal when name and orders are."""
        return isinstance(other, Schedule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        columns = (self.kind, self.stage, self.microbatch)
        return (self.name, self.device_of, self.microbatches, *(column.tobytes() for column in columns))

    @classmethod
    def parse(cls, text: str, name: str = "parsed") -> "Schedule":
        """Return the schedule that ``text`` writes: lines like ``device 0: 0F0 0B0``, with or without the label."""
        return cls(name, split_text(text))

    def to_csv(self) -> str:
        """Return one line a device, operations apart by commas: the form torch.distributed.pipelining reads."""
        return join_csv(self.orders)

    @classmethod
    def from_csv(cls, text: str, name: str = "parsed") -> "Schedule":
        """Return the schedule that :meth:`to_csv` wrote."""
        return cls(name, split_csv(text))
