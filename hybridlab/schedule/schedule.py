"""A schedule: the order in which each device runs its operations, without any times."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Frozen, Ints, one_object, readonly, sorted_places
from hybridlab.checks import checked_text, counted, item_of, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule.grid import checked_slots, devices_of, rows_of, sources_come_first
from hybridlab.schedule.ops import KINDS, B, F, Op
from hybridlab.schedule.text import Turns, communication_in, join_csv, join_text, read_orders, turns_in
from hybridlab.schedule.validation import slots_of
from hybridlab.sheets import text_of

Walk = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Operations(Frozen):
    """The operations of all devices in running order, as arrays. This is the base class of ``Schedule`` and ``Replicated``.

    The length of the object is the number of devices. An index, a slice and a loop give the same as those of ``orders``. The arrays have
    one row for each operation. The rows of device 0 come first, in running order, then those of device 1, and so on:

    - ``kind``: index into F, B, I, W
    - ``stage``, ``microbatch``, ``device``: whole numbers from 0
    - ``source``: the row whose output the operation needs, -1 for the forwards of the first stage
    - ``slot``: a whole number. The slot of an operation is larger than the slot of the operation before it on its device, and larger than
      the slot of its source. The two operations of an overlapped pair have the same slot

    ``paths`` has a tuple for each copy of the weights, with the device of every stage. ``copy_of`` gives, for each microbatch, the copy of
    the weights that the microbatch uses, shape (microbatches,).
    """

    name: str
    microbatches: int
    paths: tuple[tuple[int, ...], ...]
    copy_of: Ints
    kind: Ints
    stage: Ints
    microbatch: Ints
    device: Ints
    source: Ints
    slot: Ints

    @property
    def device_of(self) -> tuple[int, ...]:
        """The device of every stage. With several copies of the weights, these are the devices of the first copy."""
        return self.paths[0]

    @property
    def copies(self) -> int:
        """Number of copies of the weights."""
        return len(self.paths)

    @property
    def stages(self) -> int:
        """Number of stages over all devices."""
        return len(self.device_of)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return 1 + max(map(max, self.paths))

    @property
    def chunks(self) -> int:
        """Number of model chunks on a device: the number of stages of one copy of the weights that a device holds."""
        return self.device_of.count(self.device_of[0])

    @cached_property
    def first(self) -> Ints:
        """The first row of each device, shape (devices,)."""
        return readonly(np.searchsorted(self.device, np.arange(self.devices)))

    @cached_property
    def pairs(self) -> Ints:
        """For each overlapped pair, the row of its forward. The backward of the pair is in the next row."""
        return readonly(np.flatnonzero((self.slot[1:] == self.slot[:-1]) & (self.device[1:] == self.device[:-1])))

    @property
    def before(self) -> Ints:
        """For each row, the row that runs before it on its device, or -1. Both rows of an overlapped pair have the same entry."""
        before = np.arange(-1, self.kind.size - 1)  # rows are in running order
        before[self.first] = -1
        if self.pairs.size:
            before[self.pairs + 1] = before[self.pairs]
        return before

    @cached_property
    def crosses(self) -> npt.NDArray[np.bool_]:
        """For each row, whether its source runs on another device. If so, a message must bring the output of the source."""
        crosses: npt.NDArray[np.bool_] = (self.device[self.source] != self.device) & (self.source >= 0)
        return readonly(crosses)

    @cached_property
    def steps(self) -> Ints:
        """For each row, its slot after the slots in use are numbered 0, 1, 2, ... without a gap."""
        last = int(self.slot.max())
        # If the slots have large gaps, a table of all slots takes longer than sorting.
        if last > 4 * self.slot.size:
            return readonly(np.unique(self.slot, return_inverse=True)[1])
        used = np.zeros(last + 1, dtype=np.bool_)
        used[self.slot] = True
        return self.slot if used.all() else readonly((np.cumsum(used) - 1)[self.slot])

    @cached_property
    def walk(self) -> Walk:
        r"""All rows in the order of their slots, as four tuples of Python numbers.

        Each tuple has an entry for each operation: (1) its row, (2) its source, (3) the row before it on its device, (4) its kind. 4 is
        added to the kind if the source is on another device.

        >>> for column in Schedule.parse("0F0 0B0\n1F0 1B0").walk:
        ...     print(column)
        (0, 2, 3, 1)
        (-1, 0, 2, 3)
        (-1, -1, 2, 0)
        (0, 4, 1, 5)
        """
        return next(self.walk_in_parts(self.kind.size))

    def walk_in_parts(self, most: int) -> Iterator[Walk]:
        """Yield the tuples of ``walk`` in pieces, each with at most ``most`` operations."""
        order, before, code = sorted_places(self.slot), self.before, self.kind + 4 * self.crosses
        for low in range(0, order.size, most):
            rows = order[low : low + most]
            source = self.source[rows]
            # A loop over tuples of Python numbers is faster than a loop over an array, which creates an object for each number.
            yield tuple(rows.tolist()), tuple(source.tolist()), tuple(before[rows].tolist()), tuple(code[rows].tolist())

    @cached_property
    def messages(self) -> Ints:
        r"""Number of messages that each device sends, shape (devices,).

        A device sends one message for each output that another device needs.

        >>> Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1").messages
        array([2, 2])
        """
        return readonly(np.bincount(self.device[self.source[self.crosses]], minlength=self.devices))

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """Every operation, in the order of the rows."""
        columns = zip(self.kind.tolist(), self.stage.tolist(), self.microbatch.tolist(), strict=True)
        return tuple(Op(KINDS[kind], stage, microbatch) for kind, stage, microbatch in columns)

    @property
    def orders(self) -> tuple[tuple[Op, ...], ...]:
        """The operations of each device in running order. The two operations of an overlapped pair are next to each other."""
        return tuple(self._order(device) for device in range(self.devices))

    def _order(self, device: int) -> tuple[Op, ...]:
        start, stop = np.append(self.first, self.kind.size)[device : device + 2].tolist()
        return self.ops[start:stop]

    @property
    def turns(self) -> Turns:
        r"""The turns of each device in running order. A turn is a tuple of one operation, or of the two operations of an overlapped pair.

        >>> [len(turn) for turn in Schedule.parse("0F0 0F1 0B0 0B1\n1F0 (1F1;1B0) 1B1").turns[1]]
        [1, 2, 1]
        """
        second = set((self.pairs + 1).tolist())
        starts = [row for row in range(self.kind.size) if row not in second]
        turns = [self.ops[start:stop] for start, stop in pairwise([*starts, self.kind.size])]
        bounds = [*np.searchsorted(starts, self.first).tolist(), len(turns)]
        return tuple(tuple(turns[start:stop]) for start, stop in pairwise(bounds))

    def needs(self, op: Op) -> tuple[Op, ...]:
        r"""Return the operations that must have ended before ``op`` can start.

        Parameters
        ----------
        op : Op
            An operation of this schedule.

        Returns
        -------
        tuple of Op
            The operation of the same stage whose result ``op`` reads, and the operation of the neighbouring stage whose output ``op``
            needs. Empty for a forward of the first stage.

        Raises
        ------
        HybridLabError
            The schedule has no such operation.

        Examples
        --------
        >>> [str(op) for op in Schedule.parse("0F0 0B0\n1F0 1B0").needs(Op.parse("0B0"))]
        ['0F0', '1B0']
        """
        try:
            row = self._row_of.get(op) if isinstance(op, Op) else None
        except TypeError:  # a caller's Op can hold values without a hash, such as lists
            row = None
        if row is None:
            message = f"{short_repr(op)} is not an operation of schedule {self.name!r}: its first is {self.ops[0]}"
            raise HybridLabError(message, "unknown-operation")
        known, source = self.ops[row], self.source[row]
        needed = (known.own_input, self.ops[source] if source >= 0 else None)
        # Name each operation once: for the backward on the last stage, both needed operations are its forward.
        return tuple(dict.fromkeys(each for each in needed if each is not None))

    @cached_property
    def _row_of(self) -> dict[Op, int]:
        return {op: row for row, op in enumerate(self.ops)}

    def _key(self) -> tuple[Any, ...]:
        # Slots are left out, because two schedules with the same orders are equal even if their slots differ.
        columns = (each.tobytes() for each in (self.kind, self.stage, self.microbatch, self.copy_of, self.pairs))
        return (self.name, self.paths, self.microbatches, *columns)

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
        return f"<{type(self).__name__} {self.name}: {', '.join(sizes)}>"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Schedule(Operations):
    r"""The order in which each device runs its operations. The orders are proven to be complete and free of deadlock.

    Parameters
    ----------
    name : str
        The schedule's name.
    orders : sequence of sequences
        The operations of each device in running order, as :class:`Op` or as texts like ``"2F0"``. A forward and a backward that a device
        runs at the same time are an overlapped pair: a tuple of two operations, or a text like ``"(0F3;3B1)"``. If microbatches take
        different paths over the devices, each path has its own copy of all weights.

    Raises
    ------
    InvalidSchedule
        An operation is missing, or runs twice, or a stage is on two devices. The message shows the orders with the wrong operations in
        brackets.
    Deadlock
        The orders are complete, but the devices would wait for ever.

    Examples
    --------
    >>> schedule = Schedule("one stage", [["0F0", "0B0"]])
    >>> schedule.orders
    ((Op(kind=<Kind.F: 'F'>, stage=0, microbatch=0), Op(kind=<Kind.B: 'B'>, stage=0, microbatch=0)),)
    >>> len(schedule), [str(op) for op in schedule[-1]]
    (1, ['0F0', '0B0'])
    >>> print(Schedule.parse("device 0: 0F0 0B0\ndevice 1: 1F0 1B0"))
    device 0: 0F0 0B0
    device 1: 1F0 1B0
    """

    def __init__(self, name: str, orders: Iterable[Iterable[Op | str | tuple[Op | str, ...]]]) -> None:
        self._fill(name, *slots_of(checked_text(name, "a schedule's name"), read_orders(orders)))

    @classmethod
    def from_slots(cls, name: str, slots: npt.ArrayLike, device_of: Sequence[int], copies: int = 1) -> "Schedule":
        """Return the schedule in which each device runs its operations in the order of their slots.

        Parameters
        ----------
        name : str
            The schedule's name.
        slots : array of int
            Shape (2 or 3, copies x stages, microbatches): forwards, backwards and, if backwards are split, weight gradients. -1 means
            that the operation does not exist, for two reasons: the backward is full and has no separate weight gradient, or the
            microbatch uses another copy of the weights. A forward and a full backward in the same slot of a device are an overlapped
            pair.
        device_of : sequence of int
            The device of every stage. With several copies of the weights, all stages of the first copy come first.
        copies : int
            Copies of the weights.

        Returns
        -------
        Schedule
            If the slots respect every dependency, they prove that the orders can run. If not, the slots only sort the operations of each
            device, and the orders are then checked as in ``Schedule(name, orders)``.

        Raises
        ------
        HybridLabError
            ``slots`` or ``device_of`` has a wrong shape or a wrong number, or ``copies`` does not divide the stages.
        InvalidSchedule
            Operations are missing or come twice, or the orders cannot run (:class:`Deadlock`).

        Examples
        --------
        >>> print(Schedule.from_slots("gpipe", [[[0, 1]], [[2, 3]]], device_of=[0]))
        device 0: 0F0 0F1 0B0 0B1
        """
        grid, copies = checked_slots(slots), whole_number(copies, "copies")
        lines = grid.shape[1]
        if lines % copies:
            message = f"slots must have the stages of each of the {copies} copies, not {lines} stages in all"
            raise HybridLabError(message, "wrong-shape")
        devices = devices_of(device_of, lines)
        schedule = object.__new__(cls)  # __init__ is not called, because its check of every operation takes much longer
        paths = tuple(devices[line : line + lines // copies] for line in range(0, lines, lines // copies))
        schedule._fill(checked_text(name, "a schedule's name"), grid, paths)
        return schedule if _proven(schedule, grid) else cls(name, schedule.turns)

    def _fill(self, name: str, slots: Ints, paths: tuple[tuple[int, ...], ...]) -> None:
        """Set every field from a grid of slots."""
        columns = rows_of(slots, sum(paths[1:], paths[0]), len(paths))
        if len(paths) == 1:
            columns["copy_of"] = np.zeros(slots.shape[2], dtype=np.intp)
        else:
            has_forward = slots[0].reshape(len(paths), -1, slots.shape[2]) >= 0  # shape (copies, stages, microbatches)
            columns["copy_of"] = has_forward.any(axis=1).argmax(axis=0)
        arrays = {field: readonly(column) for field, column in columns.items()}
        # The fields of a frozen dataclass cannot be assigned, so they are written into __dict__.
        self.__dict__.update(arrays, name=name, microbatches=slots.shape[2], paths=paths)

    def __eq__(self, other: object) -> bool:
        """Return whether both schedules have the same name, orders and overlapped pairs."""
        return isinstance(other, Schedule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @classmethod
    def parse(cls, orders: Any, name: str = "parsed") -> "Schedule":
        """Return the schedule with these orders, in any form that people or programs write.

        Parameters
        ----------
        orders : str, sequence, mapping or Schedule
            A text with one line for each device, such as ``device 0: 0F0 0B0``, where the label ``device 0:`` may be left out; the CSV text
            of :meth:`to_csv` or of torch.distributed.pipelining (both its formats); what torch.distributed.pipelining prints: a list in
            brackets for each rank, or a grid of steps and ranks; or what a program returns: a list of such lines, lists of operations, such
            as ``[["0F0", "0B0"]]``, or a mapping of these. Empty cells of a CSV are skipped. Its communication, such as ``0SEND_F1``, is
            left out. :attr:`left_out` and the ``repr`` count what was left out.
        name : str
            The schedule's name.

        Raises
        ------
        InvalidSchedule, Deadlock
            The orders cannot be read, or they cannot run: see :class:`Schedule`.

        Examples
        --------
        >>> Schedule.parse("0F0 0B0") == Schedule.parse("0F0,0B0") == Schedule.parse(["0F0 0B0"]) == Schedule.parse([["0F0", "0B0"]])
        True
        """
        if isinstance(orders, Schedule):
            return cls(name, orders.turns)
        schedule = cls(name, turns_in(orders))
        schedule.__dict__["_left_out"] = communication_in(orders)  # not a field, because two schedules may be equal and differ in this
        return schedule

    def to_csv(self) -> str:
        """Return a CSV text that torch.distributed.pipelining can read, with one line of operations for each device."""
        return join_csv(self.turns)

    @classmethod
    def from_csv(cls, path: Any, name: str = "parsed") -> "Schedule":
        """Return the schedule in a CSV file: what :meth:`to_csv` or torch.distributed.pipelining wrote (both its formats).

        :meth:`parse` reads a text in the same way.

        Parameters
        ----------
        path : str, path or open file
            The file. Spreadsheets of every country can write it, with commas, semicolons or tabs between cells.
        name : str
            The schedule's name.

        Raises
        ------
        HybridLabError
            The file cannot be read.
        InvalidSchedule, Deadlock
            The orders cannot run, or a cell is not an operation: see :class:`Schedule`.

        Examples
        --------
        >>> import io
        >>> print(Schedule.from_csv(io.StringIO("0F0,0F1,,0B0,0B1")))
        device 0: 0F0 0F1 0B0 0B1
        """
        return cls.parse(text_of(path, instead="Schedule.parse(text) reads it"), name)

    @property
    def left_out(self) -> dict[str, int]:
        """How often each kind of communication occurred in the text that :meth:`parse` or :meth:`from_csv` read.

        >>> Schedule.parse("0UNSHARD,0F0,0B0,0REDUCE_GRAD").left_out
        {'UNSHARD': 1, 'REDUCE_GRAD': 1}
        """
        return dict(self.__dict__.get("_left_out", {}))

    def __repr__(self) -> str:
        words = ", ".join(f"{count} {word}" for word, count in self.left_out.items())
        return f"{super().__repr__()[:-1]}; left out {words}>" if words else super().__repr__()


def _proven(schedule: Schedule, slots: Ints) -> bool:
    """Return whether the slots prove three things: every operation exists once, is on the right device, and can run.

    The rows are sorted by device and slot. So only operations in the same slot of a device can be in a wrong order.
    """
    for path in schedule.paths:
        if len(set(path)) < schedule.devices or (len(path) > schedule.devices and len(set(Counter(path).values())) > 1):
            return False  # a device has no stage of this copy, or more stages than another device
    if schedule.kind.size < slots.size or schedule.copies > 1:
        exists = (slots >= 0).reshape(len(slots), schedule.copies, -1, slots.shape[2])
        complete, used = exists[:2].all(axis=(0, 2)), exists.any(axis=(0, 2))  # shape (copies, microbatches)
        if not ((complete.sum(axis=0) == 1).all() and (complete == used).all()):
            return False
    pairs = schedule.pairs
    if not ((schedule.kind[pairs] == F) & (schedule.kind[pairs + 1] == B)).all():
        return False  # three operations in one slot fail here too: the second would have to be both a backward and a forward
    return sources_come_first(slots, schedule.copies)
