"""Checks of the arguments of costs: shapes, numbers of devices, and latencies of single links."""

from typing import Any, NoReturn, TypeVar

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import LARGEST, LONGEST, numbers, short_repr, times, whole_number
from hybridlab.errors import HybridLabError

SHARED = ("p2p", "overlap")  # arguments with one value for all devices
SHARES = {"weight_share": "the backward", "overlap": "the shorter of two operations"}
MOST = {int: 2**64 - 1, float: LONGEST}  # the largest time of each type
Times = TypeVar("Times", float, Floats)
READINGS = "p2p_between=[1, 5, 1] is one latency for each pair of neighbours, and p2p=[[1], [5], [1]] are three settings"


def checked_times(given: dict[str, Any]) -> dict[str, Floats]:
    """Return read-only copies of the arguments of ``Costs``, as float64 arrays with at least one axis.

    Raises
    ------
    HybridLabError
        1. An argument is not a time, as in :func:`~hybridlab.checks.times`. 2. ``p2p`` or ``overlap`` has several values on its last axis
        (``ambiguous``). 3. A share is above 1 (``out-of-range``).
    """
    arrays = _all_times(given)
    for name in SHARED:
        if arrays[name].shape[-1] > 1:
            raise HybridLabError(_ambiguous(name, given[name], arrays[name].shape), "ambiguous")
    for name, whole in SHARES.items():
        most = arrays[name].max() if arrays[name].size > 1 else arrays[name].item()
        if most > 1:
            raise HybridLabError(f"{name} must be a share of {whole}, from 0 to 1, not {most}", "out-of-range")
    return arrays


def _all_times(given: dict[str, Any]) -> dict[str, Floats]:
    """Return read-only copies of several times, all checked in one pass."""
    # isinstance() would accept True, because True is an int
    if all(type(value) in MOST and 0 <= value <= MOST[type(value)] for value in given.values()):  # plain numbers
        column = readonly(np.array(list(given.values()), dtype=np.float64)[:, None])
        return dict(zip(given, column, strict=True))
    arrays = {name: np.atleast_1d(numbers(value, name)) for name, value in given.items()}
    flat = np.concatenate([array.ravel() for array in arrays.values()])
    if not ((flat >= 0) & (flat <= LONGEST)).all():  # false for NaN too
        for name, value in given.items():
            times(value, name)  # raises for the first wrong argument
    return {name: readonly(array) for name, array in arrays.items()}


def _ambiguous(name: str, value: Any, shape: tuple[int, ...]) -> str:
    """Return the sentence of the error for a ``p2p`` or an ``overlap`` that has several values on its last axis."""
    if name == "p2p" and len(shape) == 1:
        return f"p2p = {short_repr(value)} can be read in two ways, so write what you mean: {READINGS}"
    if name == "p2p":
        return f"the last axis of p2p is for devices and must have length 1, not {shape[-1]}: {READINGS}"
    return f"overlap is one value for all devices: its last axis must have length 1, not {shape[-1]}; [[0], [0.5], [1]] are three settings"


def device_numbers(value: Any, name: str) -> Ints:
    """Return ``value`` as an array of device numbers, shape (n,). Raise an error if ``value`` is something else."""
    if isinstance(value, np.ndarray) and value.dtype == np.intp and value.ndim == 1:
        return value  # every simulation takes this fast way: its arrays come from the library
    given = times(value, name)
    devices = given.astype(np.intp) if given.ndim == 1 and (given <= LARGEST).all() else np.zeros(0, dtype=np.intp)
    if not np.array_equal(devices, given):
        raise HybridLabError(f"{name} must be a list of device numbers, such as [0, 1], not {short_repr(value)}", "not-a-list")
    return devices


def latencies_between(value: Any) -> Floats:
    """Return ``p2p_between`` as an array: a latency for each pair of neighbours, or a matrix. Raise an error for other shapes."""
    array = times(value, "p2p_between")
    wanted = "p2p_between is a list of D - 1 values, such as [1, 5, 1] for 4 devices, or a matrix of D x D, [from, to]"
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise HybridLabError(f"{wanted}, not of shape {array.shape}", "wrong-shape")
    if array.ndim == 2 and np.diag(array).any():
        raise HybridLabError("the diagonal of p2p_between must be 0: no device sends a message to itself", "not-zero")
    return array


def devices_joined(between: Floats) -> int:
    """Return the number of devices that ``p2p_between`` has latencies for."""
    return int(between.shape[0] + (between.ndim == 1))  # a list has one value for each link: one fewer than devices


def settings_and_places(shapes: dict[str, tuple[int, ...]], between: Floats | None, per: str) -> tuple[tuple[int, ...], int | None]:
    """Return the shape of the settings, and the number of devices or stages. The number is None if all have the same times.

    Raises
    ------
    HybridLabError
        Two values are for different numbers of devices or stages, or their settings cannot be broadcast.
    """
    if between is None and all(shape == (1,) for shape in shapes.values()):  # plain numbers, the most frequent case
        return (), None
    lengths = {name: shape[-1] for name, shape in shapes.items() if shape[-1] > 1}
    places = max(lengths.values(), default=None)
    if between is not None and per == "device":
        lengths["p2p_between"] = devices_joined(between)
    message = ", ".join(f"{name} {length}" for name, length in lengths.items())
    if len(set(lengths.values())) > 1:
        raise HybridLabError(
            f"the last axes are for {per}s and must have equal lengths, but have: {message}; for settings use an axis before the last",
            "does-not-fit",
        )
    settings = {name: shape[:-1] for name, shape in shapes.items()}
    try:
        return np.broadcast_shapes(*settings.values()), places
    except ValueError:
        message = ", ".join(f"{name} {shape}" for name, shape in settings.items())
        message = f"the axes before the last are for settings and must fit together, but have shapes: {message}"
        raise HybridLabError(message, "does-not-fit") from None


def latencies_of(between: Floats, sender: Ints, receiver: Ints) -> Floats:
    """Return the latency of each message according to ``p2p_between``, shape (messages,). Raise an error for devices without a link."""
    last = max(sender.max(initial=0), receiver.max(initial=0))
    count = devices_joined(between)
    if last >= count:
        raise HybridLabError(f"p2p_between is for devices 0 to {count - 1}, not {last}", "out-of-range")
    if between.ndim == 2:
        return np.asarray(between[sender, receiver])
    apart = np.flatnonzero(np.abs(sender - receiver) != 1)
    if apart.size:
        message = f"a message goes from device {sender[apart[0]]} to device {receiver[apart[0]]}, which are not neighbours"
        raise HybridLabError(f"{message}: give p2p_between as a matrix of {count} x {count}, [from, to]", "no-link")
    return np.asarray(between[np.minimum(sender, receiver)])  # value d is the latency between devices d and d + 1, in both directions


def repeated_latencies(between: Floats, count: int) -> Floats:
    """Return ``p2p_between`` for the devices of several equal pipelines. No message goes from one pipeline to another."""
    if between.ndim == 2:
        return np.asarray(np.kron(np.eye(count), between), dtype=np.float64)  # blocks on the diagonal, zeros elsewhere
    # the latency from the last device of a pipeline to the first device of the next pipeline is 0, and is not used
    return np.append(np.tile(np.append(between, 0.0), count - 1), between)


def of_four_kinds(forward: Times, backward: Times, weight_share: Times, chunks: int) -> tuple[Times, Times, Times, Times]:
    """Return the times of F, B, I and W on one chunk of a device that has ``chunks`` chunks."""
    weight = backward * weight_share  # B = I + W
    return forward / chunks, backward / chunks, (backward - weight) / chunks, weight / chunks


def refuse_size(count: int | None, wanted: int, per: str, links: bool) -> NoReturn:
    """Raise the error for costs of ``count`` devices or stages and a schedule of ``wanted`` devices or stages."""
    message = f"the costs are for {count} {per}s but the schedule has {wanted}"
    advice = f"one value, or one for each of the {wanted} {per}s; settings go on an axis before them"
    if per == "device" and links:
        advice += f"; and {wanted - 1} values of p2p_between, or {wanted} x {wanted}"
    raise HybridLabError(f"{message}: give {advice}", "does-not-fit")


def number_of_devices(own: int | None, of: int | None) -> int:
    """Return the number of devices for :meth:`Costs.slower`. ``own`` is None if the costs are the same for all devices."""
    number = own if of is None else whole_number(of, "of")
    if number is None:
        raise HybridLabError(
            "these costs are the same for all devices: give the number of devices, as in slower([0], 1.5, of=4)", "missing-argument"
        )
    if own not in (None, number):
        raise HybridLabError(f"these costs are for {own} devices, not {number}: leave out the argument 'of'", "conflicting-arguments")
    return number
