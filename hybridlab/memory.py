"""The memory of devices: in bytes, as people count it, or in microbatches whose activations fit."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import numbers, short_repr
from hybridlab.errors import HybridLabError

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
    (powers of 1,024). Each argument is one amount for all devices, or a list with an amount for each device.

    Parameters
    ----------
    total : amount
        The memory of the device that training may use.
    activation : amount
        The activations of one microbatch on one device: what the device keeps from the forwards of the microbatch until its backwards, of
        all stages of one copy of the weights that the device holds.
    weights : amount
        What stays on the device during the whole step, for one copy of the weights: the parameters of its stages, their gradients, and the
        state of the optimizer. A schedule with two copies of the weights needs this amount twice, so fewer activations fit.

    Raises
    ------
    HybridLabError
        An amount is not a number or a text with a unit (``not-a-number``, ``unknown-name``), is negative or not finite, or is missing
        (``empty``); ``activation`` is 0 (``too-small``); or the lists have unlike lengths (``wrong-shape``).

    Examples
    --------
    >>> memory = Memory("80GB", activation="1.9GB", weights="20GB")
    >>> memory.microbatches().tolist(), memory.microbatches(copies=2).tolist()
    (31.57894736842105, 21.05263157894737)
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
        lengths = {len(each) for each in (self.total, self.activation, self.weights) if isinstance(each, tuple)}
        if len(lengths) > 1:
            raise HybridLabError(
                f"the lists of a Memory are for the same devices, so their lengths {sorted(lengths)} must agree", "wrong-shape"
            )

    def microbatches(self, copies: int = 1) -> Floats:
        """Return how many microbatches' activations fit beside the weights, parts included. Shape () or (devices,). May be negative."""
        room: Floats = (np.asarray(self.total) - copies * np.asarray(self.weights)) / np.asarray(self.activation)
        return room


def activations_in(memory: Any, devices: int, copies: int = 1) -> Floats:
    """Return how many activations each device may hold, in microbatches on a whole device. Parts of an activation count.

    Parameters
    ----------
    memory : number, sequence of numbers, or Memory
        The argument ``memory`` of a public function.
    devices : int
        Number of devices.
    copies : int
        Copies of the weights.

    Returns
    -------
    Floats
        Shape (devices,). At least 1; infinite values are possible.

    Raises
    ------
    HybridLabError
        The memory is no number (``not-a-number``, ``empty``, ``masked``, ``ragged``), is NaN (``not-finite``), is for another number of
        devices (``wrong-shape``), or does not hold the weights and one microbatch (``too-small``).

    Examples
    --------
    >>> activations_in(Memory(["8GB", "6GB"], activation="1GB", weights="2GB"), devices=2).tolist()
    [6.0, 4.0]
    """
    if isinstance(memory, str):
        message = f"memory is a number of microbatches, or bytes as in Memory('80GB', activation='1.9GB'), not {memory[:40]!r}"
        raise HybridLabError(message, "not-a-number")
    limit = memory.microbatches(copies) if isinstance(memory, Memory) else numbers(memory, "memory")
    if limit.shape not in ((), (1,), (devices,)):
        wanted = f"memory must be one number, or one for each of the {devices} devices"
        raise HybridLabError(f"{wanted}, not {short_repr(memory)}", "wrong-shape")
    if np.isnan(limit).any():
        raise HybridLabError(f"memory must be a number of microbatches, not {short_repr(memory)}", "not-finite")
    if not (limit >= 1 - SAME).all():
        if isinstance(memory, Memory):
            room = f"with {copies} copies of the weights" if copies > 1 else "beside the weights"
            message = f"memory must hold at least 1 microbatch on every device, and {room} it holds {max(0.0, float(limit.min())):.3g}"
            raise HybridLabError(message, "too-small")
        raise HybridLabError(f"memory must hold at least 1 microbatch on every device, not {short_repr(memory)}", "too-small")
    return np.broadcast_to(np.maximum(limit, 1.0), (devices,))


def no_limit(memory: Any, devices: int, microbatches: int) -> str:
    """Return a sentence if ``memory`` is no limit on any device, because it holds all microbatches of a step. Otherwise an empty text.

    >>> no_limit(80, devices=4, microbatches=8)
    'the memory is no limit: each device has room for 80 microbatches, and a step has 8'
    """
    least = math.inf if memory is None else float(activations_in(memory, devices).min())
    if memory is None or least < microbatches:
        return ""
    return f"the memory is no limit: each device has room for {least:,.4g} microbatches, and a step has {microbatches:,}"


def _bytes(amount: Any, name: str) -> Bytes:
    """Return an amount of memory as a number of bytes, or several amounts as a tuple."""
    if isinstance(amount, str):
        amount = _from_text(amount, name)
    elif isinstance(amount, Iterable) and not isinstance(amount, np.ndarray):
        amount = [_from_text(each, name) if isinstance(each, str) else each for each in amount]
    array = numbers(amount, name)
    if array.ndim > 1:
        raise HybridLabError(f"{name} must be one amount, or one for each device, not {short_repr(amount)}", "wrong-shape")
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
        raise HybridLabError(f"unknown unit {unit!r} of {name}: give B, kB, MB, GB, TB, KiB, MiB, GiB or TiB", "unknown-name")
    amount: float = float(number) * UNITS[unit.lower()]
    return amount
