"""The memory of devices: in bytes, as people count it, or in microbatches whose activations fit."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import counted, numbers, short_repr
from hybridlab.errors import HybridLabError

if TYPE_CHECKING:
    from hybridlab.schedule import Schedule

UNITS = MappingProxyType({"b": 1, **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)}} | {
    f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)
})  # fmt: skip
AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*", re.IGNORECASE)
SAME = 1e-9  # tolerance for rounding errors: 3 x 0.1 GB of activations fit in 0.3 GB
Bytes = float | tuple[float, ...]


@dataclass(frozen=True, init=False)
class Memory:
    """The memory of each device in bytes, for the argument ``memory`` of :func:`rank`, :func:`schedule_for` and the lower bounds.

    An amount is a text such as ``"80GB"``, or a number of bytes. The units are B, kB, MB, GB, TB (powers of 1,000) and KiB, MiB, GiB, TiB
    (powers of 1,024).

    A list of ``total`` has an amount for each device. Lists of ``activation`` and of ``weights`` have an amount for each stage, because
    schedules put other stages on a device: one with two copies of the weights puts the stages d and K - 1 - d on device d, and one in a V
    the first and the last stage on device 0. A list for as many stages as there are devices fits schedules with one chunk on a device. For
    a schedule with another number of stages, it is refused if its amounts differ. If they are alike, they count as one amount.

    Parameters
    ----------
    total : amount
        The memory of the device that training may use.
    activation : amount
        The activations of one microbatch on one device: what the device keeps from the forwards of the microbatch until its backwards, of
        all stages of one copy of the weights that the device holds. If a list is given, each activation on a device counts as much as the
        largest of its stages.
    weights : amount
        What stays on the device during the whole step, for one copy of the weights: the parameters of its stages, their gradients, and the
        state of the optimizer. A schedule with two copies of the weights needs this amount twice, so fewer activations fit. If a list is
        given, a device holds the sum over all its stages.

    Raises
    ------
    HybridLabError
        An amount is not a number or a text with a unit (``not-a-number``, ``unknown-name``), is negative or not finite, or is missing
        (``empty``); ``activation`` is 0 (``too-small``); or the lengths of the lists do not fit together (``wrong-shape``).

    Examples
    --------
    >>> from hybridlab import build
    >>> memory = Memory("16GB", activation="1GB", weights=["10GB", "2GB"])
    >>> memory.microbatches(build("1f1b", 2, 4)).tolist(), memory.microbatches(build("chimera", 2, 4)).tolist()
    ([6.0, 14.0], [4.0, 4.0])
    """

    total: Bytes
    activation: Bytes
    weights: Bytes

    def __init__(self, total: Any, *, activation: Any, weights: Any = 0) -> None:
        amounts = {"total": total, "activation": activation, "weights": weights}
        for name, amount in amounts.items():
            object.__setattr__(self, name, _bytes(amount, name))
        if np.min(self.activation) == 0:
            raise HybridLabError("activation must be above 0 bytes: it is what a device keeps for one microbatch", "too-small")
        devices, *stages = (np.size(each) for each in (self.total, self.activation, self.weights))
        if min(stages) not in (1, max(stages)) or (max(stages) > 1 and max(stages) % devices):
            lengths = f"the lengths are {devices}, {stages[0]} and {stages[1]}"
            raise HybridLabError(f"total is for devices, activation and weights are for the same stages, and {lengths}", "wrong-shape")

    def of_devices(self, schedule: "Schedule") -> tuple[Floats, Floats]:
        """Return the bytes of the weights on each device, and of one microbatch's activations there. Each array has the shape (devices,).

        Parameters
        ----------
        schedule : Schedule
            The schedule, which says what stages a device holds.

        Raises
        ------
        HybridLabError
            A list is for another number of stages (``does-not-fit``), or fits no number of stages of these devices (``wrong-shape``).

        Examples
        --------
        >>> from hybridlab import build
        >>> weights, activation = Memory("9GB", activation="1GB", weights=["3GB", "2GB", "2GB", "4GB"]).of_devices(build("zb-v", 2, 4))
        >>> weights.tolist(), activation.tolist()
        ([7000000000.0, 4000000000.0], [1000000000.0, 1000000000.0])
        """
        weights, activation = (_on_stages(getattr(self, name), name, schedule) for name in ("weights", "activation"))
        if not weights.ndim:
            held = np.full(schedule.devices, schedule.copies * weights)
        else:
            held = np.sum([np.bincount(path, weights, schedule.devices) for path in schedule.paths], axis=0)
        kept = np.full(schedule.devices, 0.0 if activation.ndim else activation)
        for path in schedule.paths if activation.ndim else ():
            np.maximum.at(kept, list(path), schedule.chunks * activation)
        return held, kept

    def microbatches(self, schedule: "Schedule") -> Floats:
        """Return how many microbatches' activations fit beside the weights, parts included. Shape (devices,). May be negative.

        Parameters
        ----------
        schedule : Schedule
            The schedule, which says what stages a device holds.

        Raises
        ------
        HybridLabError
            As in :meth:`hybridlab.Memory.of_devices`; or the memory is for another number of devices (``wrong-shape``).

        Examples
        --------
        >>> from hybridlab import build
        >>> Memory("80GB", activation="2GB", weights="20GB").microbatches(build("dualpipe", 2, 4)).tolist()
        [20.0, 20.0]
        """
        total = np.asarray(self.total)
        _checked_devices(total, schedule.devices, self)
        weights, activation = self.of_devices(schedule)
        room: Floats = (total - weights) / activation
        return room


def activations_in(memory: Any, schedule: "Schedule") -> Floats:
    """Return how many activations each device may hold, in microbatches on a whole device. Parts of an activation count.

    Parameters
    ----------
    memory : number, sequence of numbers, or Memory
        The argument ``memory`` of a public function.
    schedule : Schedule
        The schedule, which says what stages a device holds. Its order is not used.

    Returns
    -------
    Floats
        Shape (devices,). At least 1; infinite values are possible.

    Raises
    ------
    HybridLabError
        The memory is no number (``not-a-number``, ``empty``, ``masked``, ``ragged``), is NaN (``not-finite``), is for another number of
        devices (``wrong-shape``) or of stages (``does-not-fit``), or does not hold the weights and one microbatch (``too-small``).

    Examples
    --------
    >>> from hybridlab import build
    >>> activations_in(Memory(["8GB", "6GB"], activation="1GB", weights="2GB"), build("1f1b", 2, 4)).tolist()
    [6.0, 4.0]
    """
    if isinstance(memory, str):
        message = f"memory is a number of microbatches, or bytes as in Memory('80GB', activation='1.9GB'), not {memory[:40]!r}"
        raise HybridLabError(message, "not-a-number")
    limit = memory.microbatches(schedule) if isinstance(memory, Memory) else numbers(memory, "memory")
    _checked_devices(limit, schedule.devices, memory)
    if np.isnan(limit).any():
        raise HybridLabError(f"memory must be a number of microbatches, not {short_repr(memory)}", "not-finite")
    if not (limit >= 1 - SAME).all():
        if isinstance(memory, Memory):
            room = f"with {schedule.copies} copies of the weights" if schedule.copies > 1 else "beside the weights"
            message = f"memory must hold at least 1 microbatch on every device, and {room} it holds {max(0.0, float(limit.min())):.3g}"
            raise HybridLabError(message, "too-small")
        raise HybridLabError(f"memory must hold at least 1 microbatch on every device, not {short_repr(memory)}", "too-small")
    return np.broadcast_to(np.maximum(limit, 1.0), (schedule.devices,))


def no_limit(memory: Any, schedules: Iterable["Schedule"], microbatches: int) -> str:
    """Return a sentence if ``memory`` is no limit on any device for any of the schedules, because it holds all microbatches of a step.

    Otherwise return an empty text.

    >>> from hybridlab import build
    >>> no_limit(80, [build("1f1b", 4, 8)], microbatches=8)
    'the memory is no limit: each device has room for 80 microbatches, and a step has 8'
    """
    least = math.inf if memory is None else min((float(activations_in(memory, each).min()) for each in schedules), default=0.0)
    if memory is None or least < microbatches:
        return ""
    return f"the memory is no limit: each device has room for {least:,.4g} microbatches, and a step has {microbatches:,}"


def _checked_devices(limit: Floats, devices: int, memory: Any) -> None:
    """Raise an error if a limit is neither one for all devices nor one for each."""
    if limit.shape not in ((), (1,), (devices,)):
        wanted = f"memory must be one number, or one for each of the {devices} devices"
        raise HybridLabError(f"{wanted}, not {short_repr(memory)}", "wrong-shape")


def _on_stages(amount: Bytes, name: str, schedule: "Schedule") -> Floats:
    """Return an amount for each stage, shape (stages,), or one amount for every device, shape ()."""
    values = np.atleast_1d(np.asarray(amount))
    if values.size == 1 or (values.size == schedule.devices and (values == values[0]).all()):
        return np.asarray(values[0])
    if values.size % schedule.devices:
        raise HybridLabError(f"{name} of memory must be one amount, or one for each stage, not {values.size}", "wrong-shape")
    if values.size != schedule.stages:
        mine, known = counted(schedule.stages, "stage"), counted(values.size, "stage")
        message = f"it has {mine}, but the memory lists {name} for {known}: list {schedule.stages}, or give one amount"
        raise HybridLabError(message, "does-not-fit")
    return values


def _bytes(amount: Any, name: str) -> Bytes:
    """Return an amount of memory as a number of bytes, or several amounts as a tuple."""
    if isinstance(amount, str):
        amount = _from_text(amount, name)
    elif isinstance(amount, Iterable) and not isinstance(amount, np.ndarray):
        amount = [_from_text(each, name) if isinstance(each, str) else each for each in amount]
    array = numbers(amount, name)
    if array.ndim > 1:
        raise HybridLabError(f"{name} must be one amount, or a list of amounts, not {short_repr(amount)}", "wrong-shape")
    if not np.isfinite(array).all():
        raise HybridLabError(f"{name} must be a finite number of bytes, not {short_repr(amount)}", "not-finite")
    if (array < 0).any():
        raise HybridLabError(f"{name} must be a number of bytes of zero or more, not {short_repr(amount)}", "negative")
    return tuple(array.tolist()) if array.ndim else float(array)


def _from_text(text: str, name: str) -> float:
    """Return the number of bytes of a text such as "80GB"."""
    found = AMOUNT.fullmatch(text)
    if found is None:
        raise HybridLabError(f"{name} must be a number of bytes or a text such as '80GB', not {short_repr(text)}", "not-a-number")
    number, unit = found.groups()
    if unit.lower() not in UNITS:
        raise HybridLabError(f"unknown unit {unit!r} in {short_repr(text)}: give B, kB, MB, GB, TB, KiB, MiB, GiB or TiB", "unknown-name")
    amount: float = float(number) * UNITS[unit.lower()]
    return amount
