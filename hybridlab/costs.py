"""How long each operation takes: the only table of times in the library."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridlab.errors import HybridLabError
from hybridlab.fixed import Fixed, fixed
from hybridlab.inputs import MOST_CELLS, Floats, counted, each_of, shown, times, whole_number
from hybridlab.ops import CODE, Kind

ALONE = ("p2p", "overlap")  # have no axis for the devices


@dataclass(frozen=True, eq=False)
class Costs(Fixed):
    """Times of one microbatch on one device, all its chunks together, in the caller's unit.

    Make it with :meth:`per_device`. ``forward``, ``backward`` and ``weight_gradient`` have the devices on their
    last axis (length 1: the same on every device) and settings on the axes before it; ``p2p``, the latency between
    two devices, and ``overlap`` have the settings alone. The input gradient is the rest of the full backward. An overlapped
    pair, a forward and a full backward that a device runs at the same time, takes F + B - overlap x min(F, B): one
    after the other for 0, no longer than the longer of the two for 1.
    """

    forward: Floats
    backward: Floats
    weight_gradient: Floats
    p2p: Floats
    overlap: Floats = 0.0  # type: ignore[assignment]  # one number becomes an array

    def __post_init__(self) -> None:
        for name in ("forward", "backward", "weight_gradient", *ALONE):
            array = times(getattr(self, name), name)
            array = array if name in ALONE else np.atleast_1d(array)
            object.__setattr__(self, name, fixed(array))
        fields = {name: getattr(self, name).shape for name in ("forward", "backward", "weight_gradient")}
        _fit(fields, {})
        settings = np.broadcast_shapes(*(shape[:-1] for shape in fields.values()))
        for name in ALONE:
            array = getattr(self, name)
            if settings and array.shape == (*settings, 1):  # written like the other costs, with an axis for the devices
                object.__setattr__(self, name, fixed(array[..., 0]))
        _fit(fields, {name: getattr(self, name).shape for name in ALONE})
        if (self.overlap > 1).any():
            raise HybridLabError(f"overlap is a part of the shorter of two operations, from 0 to 1, not {self.overlap.max()}")
        if (self.weight_gradient > self.backward).any():
            raise HybridLabError("the weight gradient is a part of the backward and cannot take longer")

    @classmethod
    def per_device(cls, forward: Any, backward: Any, weight_share: Any = 0.5, p2p: Any = 0.0, overlap: Any = 0.0) -> "Costs":
        """Return the costs of a pipeline, each value a scalar or one a device.

        ``forward`` and ``backward`` (full backward: input gradient plus weight gradient) are times;
        ``weight_share`` is the weight gradient's part of the backward, from 0 to 1. Axes before the last are a
        batch of settings, broadcast against each other; ``p2p`` is a number, or an array of the batch's shape
        (followed or not by an axis of length 1, as the other costs have for the devices). So is ``overlap``, the part of the
        shorter operation that an overlapped pair saves, from 0 to 1; it counts only for schedules that have such pairs.
        Raises :class:`HybridLabError` for values that are negative, not finite, ragged, or of shapes that do not
        fit together.

        >>> costs = Costs.per_device(forward=10, backward=[20, 30], p2p=1)
        >>> costs.duration("W", device=1)
        15.0
        """
        fields = {"forward": times(forward, "forward"), "backward": times(backward, "backward")}
        fields["weight_share"] = share = times(weight_share, "weight_share")
        if (share > 1).any():
            raise HybridLabError(f"weight_share is a part of the backward, from 0 to 1, not {share.max()}")
        _fit({name: np.atleast_1d(value).shape for name, value in fields.items()}, {})
        return cls(fields["forward"], fields["backward"], fields["backward"] * share, p2p, overlap)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the settings: () for one."""
        per_device = np.broadcast_shapes(self.forward.shape, self.backward.shape, self.weight_gradient.shape)
        return np.broadcast_shapes(per_device[:-1], self.p2p.shape, self.overlap.shape)

    @property
    def devices(self) -> int | None:
        """Number of devices the costs name, None if every device costs the same."""
        longest = max(field.shape[-1] for field in (self.forward, self.backward, self.weight_gradient))
        return longest if longest > 1 else None

    def table(self, devices: int, chunks: int = 1) -> Floats:
        """Return the time of one chunk's operation, shape (4 kinds in the order F, B, I, W; devices; settings).

        >>> Costs.per_device(forward=[[1], [2]], backward=4).table(devices=1)[:, 0].tolist()
        [[1.0, 2.0], [4.0, 4.0], [2.0, 2.0], [2.0, 2.0]]
        """
        devices, chunks = whole_number(devices, "devices"), whole_number(chunks, "chunks")
        if self.devices not in (None, devices):
            told = f"the costs are for {self.devices} devices but the schedule has {devices}"
            wanted = f"one value, or one for each of the {devices} devices; settings go on an axis before them"
            raise HybridLabError(f"{told}: give {wanted}")
        shape = (*self.batch, devices)
        if math.prod(shape) > MOST_CELLS:
            told = f"{math.prod(self.batch):,} settings of {counted(devices, 'device')} are more than {MOST_CELLS:,} values"
            raise HybridLabError(f"{told} and do not fit in memory; take fewer settings at a time")
        kinds = (self.forward, self.backward, self.backward - self.weight_gradient, self.weight_gradient)
        return np.stack([np.moveaxis(np.broadcast_to(kind, shape), -1, 0) / chunks for kind in kinds])

    def pairs(self, devices: int, chunks: int = 1) -> Floats:
        """Return the time of an overlapped pair, shape (devices, settings...).

        >>> Costs.per_device(forward=1, backward=2, overlap=[0, 0.5, 1]).pairs(devices=1).tolist()
        [[3.0, 2.5, 2.0]]
        """
        forward, backward = self.table(devices, chunks)[:2]
        both: Floats = forward + backward - self.overlap * np.minimum(forward, backward)
        return both

    def duration(self, kind: Kind | str, device: int, chunks: int = 1) -> Any:
        """Return the time of one operation of ``kind`` on ``device``: a float, or an array over the settings."""
        device = whole_number(device, "device", at_least=0)
        if not (isinstance(kind, str) and kind in CODE):
            raise HybridLabError(f"{shown(kind)} is no kind of operation: use F, B, I or W")
        if device >= (self.devices or device + 1):
            raise HybridLabError(f"the costs are for devices 0 to {(self.devices or 1) - 1}, not {device}")
        value = self.table(self.devices or 1, chunks)[CODE[Kind(kind)], device if self.devices else 0]
        return value if self.batch else float(value)

    def slower(self, devices: Iterable[int], factor: float, of: int | None = None) -> "Costs":
        """Return costs in which the operations of ``devices`` take ``factor`` times as long.

        ``of`` is the number of devices, needed where the costs name none.

        >>> Costs.per_device(forward=[10, 10], backward=20).slower([1], 1.5).forward
        array([10., 15.])
        """
        number = self.devices if of is None else whole_number(of, "of")
        if number is None:
            raise HybridLabError("these costs are the same on every device: say of how many, as in slower([0], 1.5, of=4)")
        if self.devices not in (None, number):
            raise HybridLabError(f"these costs are for {self.devices} devices, not {number}: leave of out")
        by = times(factor, "factor")
        if by.ndim:
            raise HybridLabError(f"factor must be one number for all the devices named, not {shown(factor)}")
        scale = np.ones(number)
        for device in each_of(devices, "devices must be a list of devices, such as [0]"):
            scale[whole_number(device, "device", at_least=0, at_most=number - 1)] = by
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            return Costs(self.forward * scale, self.backward * scale, self.weight_gradient * scale, self.p2p, self.overlap)


def _fit(shapes: dict[str, tuple[int, ...]], alone: dict[str, tuple[int, ...]]) -> None:
    """Raise unless the per-device shapes agree on the devices, and all on the settings."""
    lengths = {name: shape[-1] for name, shape in shapes.items() if shape[-1] > 1}
    told = ", ".join(f"{name} {length}" for name, length in lengths.items())
    if len(set(lengths.values())) > 1:
        raise HybridLabError(f"the last axis is the devices and must agree, but has: {told}; for settings use an axis before it")
    settings = {name: shape[:-1] for name, shape in shapes.items()} | alone
    try:
        np.broadcast_shapes(*settings.values())
    except ValueError:
        told = ", ".join(f"{name} {shape}" for name, shape in settings.items())
        raise HybridLabError(f"the axes before the last are the settings and must agree, but are: {told}") from None
