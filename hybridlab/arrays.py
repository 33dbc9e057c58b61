"""The arrays of a schedule, one row an operation, and what follows from them alone."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hybridlab.fixed import Fixed, fixed
from hybridlab.ops import KINDS, Op
from hybridlab.rows import Ints
from hybridlab.schedule_text import Turns


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Arrays(Fixed):
    """Operations in arrays, device by device in running order, and where the stages stand; :class:`Schedule` makes them."""

    name: str
    microbatches: int
    paths: tuple[tuple[int, ...], ...]  # copy of the weights -> stage -> device
    copy_of: Ints  # microbatch -> copy of the weights
    kind: Ints
    stage: Ints
    microbatch: Ints
    device: Ints
    source: Ints
    slot: Ints

    @property
    def device_of(self) -> tuple[int, ...]:
        """The device of every stage; of several copies of the weights, those of the first."""
        return self.paths[0]

    @property
    def copies(self) -> int:
        """Number of copies of the weights: how many stages' weights a device holds for each of its chunks."""
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
        """Number of stages a device holds (model chunks)."""
        return self.stages // self.devices

    @property
    def balanced(self) -> bool:
        """Whether every device holds the same number of stages of each copy."""
        return all(len(set(np.bincount(path, minlength=self.devices).tolist())) == 1 for path in self.paths)

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

        >>> from hybridlab.schedule import Schedule
        >>> Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1").messages
        array([2, 2])
        """
        return fixed(np.bincount(self.device[self.source[self.crosses]], minlength=self.devices))

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """Every operation, in the order of the rows."""
        columns = zip(self.kind.tolist(), self.stage.tolist(), self.microbatch.tolist(), strict=True)
        return tuple(Op(KINDS[kind], stage, microbatch) for kind, stage, microbatch in columns)

    @cached_property
    def pairs(self) -> Ints:
        """The rows of the forwards of overlapped pairs; the backward of each is the row after it."""
        return fixed(np.flatnonzero((np.diff(self.slot) == 0) & (np.diff(self.device) == 0)))

    @property
    def orders(self) -> tuple[tuple[Op, ...], ...]:
        """The operations of each device, in running order; the two of an overlapped pair stand side by side."""
        return tuple(self._order(device) for device in range(self.devices))

    def _order(self, device: int) -> tuple[Op, ...]:
        """Return the operations of one device, from 0 on, in running order."""
        start, stop = np.append(self.first, self.kind.size)[device : device + 2].tolist()
        return self.ops[start:stop]

    @property
    def turns(self) -> Turns:
        r"""What each device runs one after the other: tuples of one operation, or of the two of an overlapped pair.

        >>> from hybridlab.schedule import Schedule
        >>> [len(turn) for turn in Schedule.parse("0F0 0F1 0B0 0B1\n1F0 (1F1;1B0) 1B1").turns[1]]
        [1, 2, 1]
        """
        second = set((self.pairs + 1).tolist())
        starts = [row for row in range(self.kind.size) if row not in second]
        turns = [self.ops[start:stop] for start, stop in pairwise([*starts, self.kind.size])]
        bounds = [*np.searchsorted(starts, self.first).tolist(), len(turns)]
        return tuple(tuple(turns[start:stop]) for start, stop in pairwise(bounds))
