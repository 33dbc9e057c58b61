"""Checks of the arguments of costs: shapes, numbers of devices, and latencies of single links."""

from typing import Any, NoReturn, TypeVar

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import LARGEST, LONGEST, known_name, numbers, short_repr, times, whole_number
from hybridlab.errors import HybridLabError

PER_PLACE = ("forward", "backward", "weight_share")  # arguments with one value for all devices, or one for each device, stage or microbatch
SHARED = ("p2p", "overlap")  # arguments with one value for all devices
PLURAL = {"device": "devices", "stage": "stages", "microbatch": "microbatches"}
ONE_AXIS, TWO_AXES = tuple(PLURAL), (("device", "microbatch"), ("stage", "microbatch"))  # values of ``per``
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
        column = readonly(np.array(list(given.values()), dtype=np.float64))
        return dict(zip(given, column[:, None], strict=True))
    arrays = {name: np.atleast_1d(readonly(numbers(value, name))) for name, value in given.items()}
    flat = np.concatenate([array.ravel() for array in arrays.values()])
    if not ((flat >= 0) & (flat <= LONGEST)).all():  # false for NaN too
        for name, value in given.items():
            times(value, name)  # raises for the first wrong argument
    return arrays


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


def array_of_times(value: Any, name: str) -> Floats:
    """Return ``value`` as an array. Raise an error if ``value`` does not consist of times; the numbers of an array are not checked."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value  # every simulation takes this fast way: no copy
    return times(value, name)


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


def checked_per(value: Any) -> str | tuple[str, str]:
    """Return ``per``: one word, or a pair of words. Raise an error for other values."""
    if isinstance(value, str) and value in ONE_AXIS:
        return value
    if not isinstance(value, (list, tuple)):
        return known_name(value, ONE_AXIS, "value of per")
    words = tuple(map(str, value))
    for known in TWO_AXES:
        if words == known:
            return known
    wanted = " or ".join(map(str, TWO_AXES))
    raise HybridLabError(f"per is one of {', '.join(ONE_AXIS)}, or a pair: {wanted}; not {short_repr(value)}", "unknown-name")


def settings_and_sizes(
    shapes: dict[str, tuple[int, ...]], between: Floats | None, per: str | tuple[str, str]
) -> tuple[tuple[int, ...], int | None, int | None]:
    """Return the shape of the settings, the number of devices or stages, and the number of microbatches.

    A number is None if all devices and stages, or all microbatches, have the same times.

    Raises
    ------
    HybridLabError
        Two values are for different numbers of devices, stages or microbatches, or their settings cannot be broadcast.
    """
    if between is None and all(shape == (1,) for shape in shapes.values()):  # plain numbers, the most frequent case
        return (), None, None
    if between is None and isinstance(per, str) and all(len(shape) == 1 for shape in shapes.values()):  # no settings: a fast path
        lengths = {shapes[name][0] for name in PER_PLACE} - {1}
        if len(lengths) == 1:
            return (), *((None, lengths.pop()) if per == "microbatch" else (lengths.pop(), None))
    axes = (per,) if isinstance(per, str) else per
    places = enumerate(axes, -len(axes))
    sizes = {axis: _size_of(axis, {name: shapes[name][place] for name in PER_PLACE}, between) for place, axis in places}
    settings = {name: shape[: -len(axes)] if name in PER_PLACE else shape[:-1] for name, shape in shapes.items()}
    try:
        batch = np.broadcast_shapes(*settings.values())
    except ValueError:
        message = ", ".join(f"{name} {shape}" for name, shape in settings.items())
        last = "last" if len(axes) == 1 else "last two"
        message = f"the axes before the {last} are for settings and must fit together, but have shapes: {message}"
        raise HybridLabError(message, "does-not-fit") from None
    return batch, sizes.get("device", sizes.get("stage")), sizes.get("microbatch")


def _size_of(axis: str, lengths: dict[str, int], between: Floats | None) -> int | None:
    """Return the length of an axis in all values that have more than one entry there. Return None if no value has more than one."""
    lengths = {name: length for name, length in lengths.items() if length > 1}
    size = max(lengths.values(), default=None)
    if between is not None and axis == "device":
        lengths["p2p_between"] = devices_joined(between)
    if len(set(lengths.values())) > 1:
        message = f"the last axes are for {PLURAL[axis]} and must have equal lengths, but have: "
        message += ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise HybridLabError(f"{message}; for settings use an axis before the last", "does-not-fit")
    return size


def require_below(number: int, count: int | None, noun: str) -> None:
    """Raise an error if ``number`` is not below ``count``. If ``count`` is None, every number is in range."""
    if count is not None and number >= count:
        raise HybridLabError(f"the costs are for {PLURAL[noun]} 0 to {count - 1}, not {number}", "out-of-range")


def without_repeats(array: Floats) -> Floats:
    """Return an array in which each axis with equal entries has length 1, without such axes at the front.

    >>> without_repeats(np.array([[1.0, 2.0], [1.0, 2.0]])), without_repeats(np.full((2, 3), 4.0))
    (array([1., 2.]), array([4.]))
    """
    for axis, size in enumerate(array.shape):
        if size > 1 and (array == array.take([0], axis)).all():
            array = array.take([0], axis)
    while array.ndim > 1 and array.shape[0] == 1:
        array = array[0]
    return array


def key_of(array: Floats) -> tuple[tuple[int, ...], bytes]:
    """Return a key that is the same for equal arrays, also for zeros of both signs."""
    return array.shape, (array + 0.0).tobytes()


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
