"""How long each operation takes, and each message: the only table of times in the library."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import (
    LARGEST,
    MOST_CELLS,
    counted,
    each_of,
    one_time,
    removed_arguments,
    short_repr,
    times,
    unit_of_time,
    whole_number,
)
from hybridlab.errors import HybridLabError
from hybridlab.schedule import CODE, Kind

OF_A_DEVICE = ("forward", "backward", "weight_share")
OF_ALL = ("p2p", "overlap")
BY_NAME = "give every time its name, as in Costs(forward=10, backward=20)"
READINGS = "p2p_between=[1, 5, 1] is one latency for each pair of neighbours, and p2p=[[1], [5], [1]] are three settings"


@dataclass(frozen=True, eq=False, init=False)
class Costs(Frozen):
    """Times of one microbatch on one device, all its chunks together, in ``unit``: "s", "ms", "us", or None for plain slots.

    ``forward`` and ``backward`` (the full backward: input gradient plus weight gradient) are times, ``weight_share`` is the weight
    gradient's part of the backward, from 0 to 1. Each is a number, the same on every device, or one a device.

    Messages take ``p2p`` between any two devices, or what ``p2p_between`` says: of D devices D - 1 values, that of place d between
    the devices d and d + 1 in both directions, or a matrix of D x D, [from, to], with 0 from a device to itself. Costs of all ranks
    of a mesh have all its ranks there.

    ``overlap`` is what an overlapped pair saves, a forward and a full backward that a device runs at the same time: it takes
    F + B - overlap x min(F, B), one after the other for 0, no longer than the longer of the two for 1. It counts only for
    schedules that have such pairs.

    The devices are the last axis of every value, of length 1 where all are alike, as always for ``p2p`` and ``overlap``. Axes before it
    are settings, a batch, broadcast against each other; ``p2p_between`` has none. Costs are equal if all their values are.

    Raises :class:`HybridLabError` for values that are negative, not finite, ragged, or of shapes that do not fit together, for
    unknown units, and for several values of ``p2p`` in a row, which could be settings or links.

    >>> costs = Costs(forward=10, backward=[20, 30], p2p=1)
    >>> costs.duration("W", device=1), costs.unit
    (15.0, 'ms')
    >>> Costs(forward=[[1], [2]], backward=4).batch  # two settings
    (2,)
    """

    forward: Floats
    backward: Floats
    weight_share: Floats
    p2p: Floats
    overlap: Floats
    p2p_between: Floats | None
    unit: str | None

    @removed_arguments(BY_NAME, weight_gradient="give its part of the backward, as in Costs(forward=10, backward=20, weight_share=0.5)")
    def __init__(
        self,
        *,
        forward: Any,
        backward: Any,
        weight_share: Any = 0.5,
        p2p: Any = 0.0,
        overlap: Any = 0.0,
        p2p_between: Any = None,
        unit: str | None = "ms",
    ) -> None:
        given = {"forward": forward, "backward": backward, "weight_share": weight_share, "p2p": p2p, "overlap": overlap}
        for name, value in given.items():
            array = np.atleast_1d(times(value, name))
            if name in OF_ALL and array.shape[-1] > 1:
                raise HybridLabError(_two_readings(name, value, array.shape))
            object.__setattr__(self, name, readonly(array))
        object.__setattr__(self, "p2p_between", None if p2p_between is None else readonly(_links(p2p_between)))
        object.__setattr__(self, "unit", unit_of_time(unit))
        for name in ("weight_share", "overlap"):
            most = getattr(self, name).max()
            if most > 1:
                part = "the backward" if name == "weight_share" else "the shorter of two operations"
                raise HybridLabError(f"{name} is a part of {part}, from 0 to 1, not {most}")
        if self.p2p_between is not None and (self.p2p.size > 1 or self.p2p.any()):
            raise HybridLabError("give p2p or p2p_between, not both: each says how long the messages take")
        _fit({name: getattr(self, name).shape for name in given}, self.p2p_between)

    @classmethod
    def per_device(cls, *_: Any, **__: Any) -> NoReturn:
        """Raise :class:`HybridLabError`: the class itself makes costs now."""
        raise HybridLabError("Costs.per_device() is now Costs() itself: " + BY_NAME)

    @property
    def weight_gradient(self) -> Floats:
        """The weight gradient's time, a part of the backward."""
        part: Floats = self.backward * self.weight_share
        return readonly(part)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the settings: () for one."""
        return np.broadcast_shapes(*(getattr(self, name).shape[:-1] for name in (*OF_A_DEVICE, *OF_ALL)))

    @property
    def devices(self) -> int | None:
        """Number of devices the costs name, None if every device costs the same and so does every link."""
        longest = max(getattr(self, name).shape[-1] for name in OF_A_DEVICE)
        if self.p2p_between is not None:
            return _ends(self.p2p_between)
        return longest if longest > 1 else None

    def table(self, devices: int, chunks: int = 1) -> Floats:
        """Return the time of one chunk's operation, shape (4 kinds in the order F, B, I, W; devices; settings).

        >>> Costs(forward=[[1], [2]], backward=4).table(devices=1)[:, 0].tolist()
        [[1.0, 2.0], [4.0, 4.0], [2.0, 2.0], [2.0, 2.0]]
        """
        devices, chunks = whole_number(devices, "devices"), whole_number(chunks, "chunks")
        if self.devices not in (None, devices):
            message = f"the costs are for {self.devices} devices but the schedule has {devices}"
            wanted = f"one value, or one for each of the {devices} devices; settings go on an axis before them"
            if self.p2p_between is not None:
                wanted += f"; and {devices - 1} values of p2p_between, or {devices} x {devices}"
            raise HybridLabError(f"{message}: give {wanted}")
        shape = (*self.batch, devices)
        if math.prod(shape) > MOST_CELLS:
            message = f"{math.prod(self.batch):,} settings of {counted(devices, 'device')} are more than {MOST_CELLS:,} values"
            raise HybridLabError(f"{message} and do not fit in memory; take fewer settings at a time")
        weight = self.weight_gradient
        kinds = (self.forward, self.backward, self.backward - weight, weight)
        return np.stack([np.moveaxis(np.broadcast_to(kind, shape), -1, 0) / chunks for kind in kinds])

    def pairs(self, devices: int, chunks: int = 1) -> Floats:
        """Return the time of an overlapped pair, shape (devices, settings...).

        >>> Costs(forward=1, backward=2, overlap=[[0], [0.5], [1]]).pairs(devices=1).tolist()
        [[3.0, 2.5, 2.0]]
        """
        forward, backward = self.table(devices, chunks)[:2]
        both: Floats = forward + backward - self.overlap[..., 0] * np.minimum(forward, backward)
        return both

    def latency(self, sender: Ints, receiver: Ints) -> Floats:
        """Return how long messages take, each from its ``sender`` to its ``receiver``, shape (messages, settings...).

        Raises :class:`HybridLabError` for two devices between which ``p2p_between`` knows no link.

        >>> Costs(forward=1, backward=2, p2p_between=[1, 5]).latency([0, 2], [1, 1]).tolist()
        [1.0, 5.0]
        """
        sender, receiver = _devices(sender, "sender"), _devices(receiver, "receiver")
        if sender.shape != receiver.shape:
            raise HybridLabError(f"every sender has one receiver, but there are {sender.size} and {receiver.size}")
        if self.p2p_between is None:
            return np.broadcast_to(self.p2p[..., 0], (sender.size, *self.batch))
        last = max(sender.max(initial=0), receiver.max(initial=0))
        if last >= _ends(self.p2p_between):
            raise HybridLabError(f"p2p_between is for devices 0 to {_ends(self.p2p_between) - 1}, not {last}")
        if self.p2p_between.ndim == 2:
            late = self.p2p_between[sender, receiver]
        else:
            apart = np.flatnonzero(np.abs(sender - receiver) != 1)
            if apart.size:
                count, (one, other) = _ends(self.p2p_between), (int(ends[apart[0]]) for ends in (sender, receiver))
                message = f"a message goes from device {one} to device {other}, which are no neighbours"
                raise HybridLabError(f"{message}: give p2p_between as a matrix of {count} x {count}, [from, to]")
            late = self.p2p_between[np.minimum(sender, receiver)]
        return np.broadcast_to(late.reshape(-1, *(1 for _ in self.batch)), (sender.size, *self.batch))

    def duration(self, kind: Kind | str, device: int, chunks: int = 1) -> Any:
        """Return the time of one operation of ``kind`` on ``device``: a float, or an array over the settings."""
        device = whole_number(device, "device", at_least=0)
        if not (isinstance(kind, str) and kind in CODE):
            raise HybridLabError(f"{short_repr(kind)} is no kind of operation: use F, B, I or W")
        if device >= (self.devices or device + 1):
            raise HybridLabError(f"the costs are for devices 0 to {(self.devices or 1) - 1}, not {device}")
        value = self.table(self.devices or 1, chunks)[CODE[Kind(kind)], device if self.devices else 0]
        return value if self.batch else float(value)

    def slower(self, devices: Iterable[int], factor: float, of: int | None = None) -> "Costs":
        """Return costs in which the operations of ``devices`` take ``factor`` times as long.

        ``of`` is the number of devices, needed where the costs name none.

        >>> Costs(forward=[10, 10], backward=20).slower([1], 1.5).forward
        array([10., 15.])
        """
        number = self.devices if of is None else whole_number(of, "of")
        if number is None:
            raise HybridLabError("these costs are the same on every device: say of how many, as in slower([0], 1.5, of=4)")
        if self.devices not in (None, number):
            raise HybridLabError(f"these costs are for {self.devices} devices, not {number}: leave of out")
        by = times(factor, "factor")
        if by.ndim:
            raise HybridLabError(f"factor must be one number for all the devices named, not {short_repr(factor)}")
        scale = np.ones(number)
        for device in each_of(devices, "devices must be a list of devices, such as [0]"):
            scale[whole_number(device, "device", at_least=0, at_most=number - 1)] = by
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            return replace(self, forward=self.forward * scale, backward=self.backward * scale)

    def longer(self, factor: float) -> "Costs":
        """Return costs in which every operation and every message takes ``factor`` times as long.

        >>> Costs(forward=10, backward=20, p2p=1).longer(0.5).duration("B", device=0)
        10.0
        """
        by = one_time(factor, "factor")
        between = None if self.p2p_between is None else by * self.p2p_between
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            return replace(self, forward=by * self.forward, backward=by * self.backward, p2p=by * self.p2p, p2p_between=between)

    def repeated(self, pipelines: int) -> "Costs":
        """Return the costs of so many ``pipelines`` side by side, whose devices stand one pipeline after the other.

        >>> Costs(forward=[1, 2], backward=3).repeated(2).forward
        array([1., 2., 1., 2.])
        """
        count = whole_number(pipelines, "pipelines")
        if self.devices is None:
            return self
        rows = {name: getattr(self, name) for name in OF_A_DEVICE}
        rows = {name: np.concatenate([row] * count, axis=-1) if row.shape[-1] > 1 else row for name, row in rows.items()}
        between = self.p2p_between
        if between is not None and between.ndim == 2:
            between = np.asarray(np.kron(np.eye(count), between), dtype=np.float64)
        elif between is not None:
            between = np.append(np.tile(np.append(between, 0.0), count - 1), between)  # no message goes to another pipeline
        return replace(self, **rows, p2p_between=between)


def _two_readings(name: str, value: Any, shape: tuple[int, ...]) -> str:
    """Return the sentence for several values in a row where one holds for all devices."""
    if name == "p2p" and len(shape) == 1:
        return f"p2p = {short_repr(value)} can be read in two ways, so write what you mean: {READINGS}"
    if name == "p2p":
        return f"the last axis of p2p, the devices, has length 1, not {shape[-1]}: {READINGS}"
    return f"overlap holds for all devices, so its last axis has length 1, not {shape[-1]}: [[0], [0.5], [1]] are three settings"


def _devices(value: Any, name: str) -> Ints:
    """Return the numbers of devices in a row."""
    if isinstance(value, np.ndarray) and value.dtype == np.intp and value.ndim == 1:
        return value
    given = times(value, name)
    devices = given.astype(np.intp) if given.ndim == 1 and (given <= LARGEST).all() else np.zeros(0, dtype=np.intp)
    if not np.array_equal(devices, given):
        raise HybridLabError(f"{name} must be numbers of devices in a row, such as [0, 1], not {short_repr(value)}")
    return devices


def _links(value: Any) -> Floats:
    """Return the latencies between devices, or refuse what is neither one for each pair of neighbours nor a matrix."""
    array = times(value, "p2p_between")
    wanted = "p2p_between is a list of D - 1 values, such as [1, 5, 1] for 4 devices, or a matrix of D x D, [from, to]"
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise HybridLabError(f"{wanted}, not of shape {array.shape}")
    if array.ndim == 2 and np.diag(array).any():
        raise HybridLabError("p2p_between must have 0 from every device to itself: no message goes there")
    return array


def _ends(between: Floats) -> int:
    """Return how many devices the links of ``p2p_between`` join."""
    return int(between.shape[0] + (between.ndim == 1))


def _fit(shapes: dict[str, tuple[int, ...]], between: Floats | None) -> None:
    """Raise unless the values agree on the devices and on the settings."""
    lengths = {name: shape[-1] for name, shape in shapes.items() if shape[-1] > 1}
    if between is not None:
        lengths["p2p_between"] = _ends(between)
    message = ", ".join(f"{name} {length}" for name, length in lengths.items())
    if len(set(lengths.values())) > 1:
        raise HybridLabError(f"the last axis is the devices and must agree, but has: {message}; for settings use an axis before it")
    settings = {name: shape[:-1] for name, shape in shapes.items()}
    try:
        np.broadcast_shapes(*settings.values())
    except ValueError:
        message = ", ".join(f"{name} {shape}" for name, shape in settings.items())
        raise HybridLabError(f"the axes before the last are the settings and must agree, but are: {message}") from None
