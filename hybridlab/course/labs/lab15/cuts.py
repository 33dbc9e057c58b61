"""The coding task ("build") of lab 15, a partition of layers: cases, known mistakes, examples and changed tasks ("twists")."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import counted, short_repr
from hybridlab.course.checking.answers import Unordered, plain_values, require_number
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import REVERSED, RUNNING_SUMS, Map, at, like, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.errors import HybridLabError

LONGEST_WORDS = 9  # the name of a case lists the times of up to 9 layers; for more layers it gives only their number
# Numbers of layers and of devices
RANDOM_SIZES = ((3, 2), (4, 2), (4, 3), (5, 2), (5, 3), (6, 4), (7, 3), (8, 4), (9, 3), (9, 5), (12, 4), (15, 6), (20, 5), (24, 7))
MOST_LAYERS, MOST_DEVICES = 200, 8  # the largest model; it has 2.1e12 cuts, too many to try them all


def models_to_cut(rng: np.random.Generator) -> Iterator[Case]:
    """Yield models, the small ones first. The last model has too few layers for its devices.

    All times are multiples of half a ms, because floats add such numbers without rounding errors.
    """
    yield _layers_of([5], 1)
    yield _layers_of([3, 4], 2)
    yield _layers_of([1, 4, 4, 4, 11], 2)  # in a smaller model, several known mistakes give equal results
    yield _layers_of([2, 2, 6], 2)
    yield _layers_of([5, 2, 6, 5], 3)  # here loads near to the mean of the remaining devices are wrong, and the least squares are right
    yield _layers_of([1, 4, 4, 4, 11], 1)
    yield _layers_of([2, 8, 6, 3], 3)  # here the cut with the least sum of squares is not the best cut
    yield _layers_of([0, 4, 4, 0, 6], 3)
    yield _layers_of([2, 9, 2, 2, 2], 5)
    for layers, devices in RANDOM_SIZES:
        yield _layers_of(rng.integers(0, 21, layers) / 2, devices)
    yield _layers_of([4] * 10, 4)
    block, heavy = (int(rng.integers(*limits)) for limits in ((3, 6), (9, 14)))
    yield _layers_of([1] + 22 * [block] + [heavy], 4)
    yield _layers_of([heavy] + 22 * [block] + [5 * heavy], 6)
    yield _layers_of(np.arange(1, 33) / 2, 5)
    yield _layers_of(np.arange(32, 0, -1) / 2, 7)
    yield _layers_of(rng.integers(2, 41, 60) / 2, 6)
    yield _layers_of(rng.integers(2, 41, MOST_LAYERS) / 2, MOST_DEVICES)
    yield _layers_of([3, 4], 3, refused=True)


def _layers_of(times: Sequence[float] | Floats, devices: int, refused: bool = False) -> Case:
    given = np.array(times, dtype=np.float64)
    named = f"layers of {', '.join(f'{time:g}' for time in given)} ms" if given.size <= LONGEST_WORDS else counted(given.size, "layer")
    return Case((given, devices), f"{named} on {counted(devices, 'device')}", refused)


def read_counts(result: Any) -> list[float]:
    """Return the numbers of layers on the devices, as the student's function returned them.

    The judge checks later whether these numbers are a cut of the model.
    """
    values = plain_values(result)
    wanted = "the function returns a list with the number of layers of each device, such as [4, 1]"
    if not isinstance(values, list) or isinstance(values, Unordered):
        raise HybridLabError(f"{wanted}, not {short_repr(values)}", "not-a-list")
    return [require_number(value, f"the number of layers of device {device}", "4") for device, value in enumerate(values)]


def loads_of(times: Floats, counts: Sequence[int]) -> Floats:
    """Return the load of each device, which is the sum of the times of its layers, in ms.

    >>> loads_of(np.array([1, 4, 4, 11]), [3, 1]).tolist()
    [9.0, 11.0]
    """
    ends = np.cumsum([0.0, *times])
    return np.diff(ends[np.cumsum([0, *counts])])


# The programs with known mistakes. Each cuts the model by a wrong rule and returns the number of layers of each device.
def _filled(times: Floats, devices: int, full: Callable[[float, float, float], bool]) -> list[int]:
    """Return the cut of a program that fills one device after the other.

    ``full`` returns whether a device gets no more layers. It takes the load of the device, the time of the next layer and the mean load of
    all devices, in ms.
    """
    counts, load, mean = [0], 0.0, float(times.sum()) / devices
    for place, time in enumerate(times.tolist()):
        left = devices - len(counts)  # devices that have no layer yet
        if left and counts[-1] and (full(load, time, mean) or times.size - place <= left):
            counts.append(0)
            load = 0.0
        counts[-1] += 1
        load += time
    return counts


def _nearest_to_shares(times: Floats, devices: int) -> list[int]:
    """Return the cut of a program that chooses each place alone.

    The first d devices together get the layers whose sum of times is nearest to d equal shares of the work.
    """
    ends = np.cumsum([0.0, *times])
    wanted = ends[-1] * np.arange(1, devices) / devices
    places = [int(np.abs(ends - share).argmin()) for share in wanted]
    return [high - low for low, high in pairwise([0, *places, times.size])]


def _of_the_rest(times: Floats, devices: int) -> list[int]:
    """Return the cut of a program that fills one device after the other with about the mean load of all devices that are not yet filled."""
    counts: list[int] = []
    for left in range(devices, 1, -1):
        rest = times[sum(counts) :]
        loads = np.cumsum(rest)[: rest.size - left + 1]
        counts.append(1 + int(np.abs(loads - rest.sum() / left).argmin()))
    return [*counts, times.size - sum(counts)]


def _heaviest_in_two(times: Floats, devices: int) -> list[int]:
    """Return the cut of a program that cuts the heaviest piece of the model in two until each device has a piece."""
    parts = [times]
    while len(parts) < devices:
        place = max(range(len(parts)), key=lambda each: (parts[each].size > 1, parts[each].sum()))
        part = parts[place]
        if part.size < 2:
            raise HybridLabError("no piece of the model has two layers", "no-result")
        cut = min(range(1, part.size), key=lambda each: max(part[:each].sum(), part[each:].sum()))
        parts[place : place + 1] = [part[:cut], part[cut:]]
    return [part.size for part in parts]


def _least_squares(times: Floats, devices: int) -> list[int]:
    """Return the cut with the least sum of squared loads, by dynamic programming."""
    ends = np.cumsum([0.0, *times])
    squares = np.where(
        np.tri(ends.size, k=-1, dtype=bool), (ends[:, None] - ends) ** 2, np.inf
    )  # [row, column]: the squared load of the layers from column to row - 1
    least, starts = squares[:, 0], []
    for _ in range(devices - 1):
        sums = least + squares
        starts.append(sums.argmin(axis=1))
        least = sums.min(axis=1)
    places = [times.size]
    for start in reversed(starts):
        places.append(int(start[places[-1]]))
    return [high - low for low, high in pairwise([0, *reversed(places)])]


def _in_any_order(times: Floats, devices: int) -> list[int]:
    """Return the numbers of layers if a program takes the longest layers first and gives each layer to the device with the least load."""
    loads, counts = [0.0] * devices, [0] * devices
    for time in sorted(times.tolist(), reverse=True):
        device = loads.index(min(loads))
        loads[device] += time
        counts[device] += 1
    return counts


MISTAKES = (
    KnownMistake(
        "equal-numbers",
        "your function gives each device the same number of layers: layers take different times, so compare the loads",
        lambda times, devices: [part.size for part in np.array_split(times, devices)],
    ),
    KnownMistake(
        "up-to-the-mean",
        "your function fills each device up to the mean load: the last device gets all other layers, and its load can be the largest",
        lambda times, devices: _filled(times, devices, lambda load, time, mean: load + time > mean),
    ),
    KnownMistake(
        "past-the-mean",
        "your function gives layers to a device until it reaches the mean load: the last of these layers can make its load too large",
        lambda times, devices: _filled(times, devices, lambda load, time, mean: load >= mean),
    ),
    KnownMistake(
        "nearest-to-the-mean",
        "your function gives each device a load as near to the mean as it can: the last device gets the rest, which can be too much",
        lambda times, devices: _filled(times, devices, lambda load, time, mean: load + time - mean > mean - load),
    ),
    KnownMistake(
        "nearest-to-equal-shares",
        "your function cuts where the sum of the times is nearest to equal shares: but a load depends on two cuts, so choose them together",
        _nearest_to_shares,
    ),
    KnownMistake(
        "mean-of-the-rest",
        "your function gives each device about the mean load of the remaining ones, and moves no cut later: the last ones can get too much",
        _of_the_rest,
    ),
    KnownMistake(
        "least-squares",
        "your function minimises the sum of the squared loads: only the slowest device counts, so minimise the largest load",
        _least_squares,
    ),
    KnownMistake(
        "heaviest-in-two",
        "your function cuts the heaviest piece in two again and again: with more devices the earlier cuts must be able to move",
        _heaviest_in_two,
    ),
    KnownMistake(
        "in-any-order",
        "your function gives each layer to the device with the least load: a device must have layers in a row, because they run in order",
        _in_any_order,
    ),
)


def _first_layers(counts: Any, case: tuple[Any, ...]) -> Any:
    return like(counts, [0, *accumulate(counts)][:-1])


def _counts_to_next(layers: Any, case: tuple[Any, ...]) -> Any:
    return like(layers, [after - before for before, after in pairwise([*layers, len(case[0])])])


def _last_layers(counts: Any, case: tuple[Any, ...]) -> Any:
    return like(counts, [end - 1 for end in accumulate(counts)])


def _counts_from_previous(layers: Any, case: tuple[Any, ...]) -> Any:
    return like(layers, [after - before for before, after in pairwise([-1, *layers])])


FROM_THE_END = REVERSED.then(RUNNING_SUMS).then(REVERSED)
EXAMPLES = (Example((np.array([1.0, 4.0, 4.0, 4.0, 11.0]), 2), [4, 1]),)
TWISTS = (
    Twist(
        "first-layers",
        "the function returns the number of the first layer of each device, and layers are counted from 0",
        result=Map(_first_layers, _counts_to_next),
        about="result",
    ),
    Twist(
        "loads-data",
        "the first layer also loads the data and takes twice the time that stands in `times`",
        given={0: at(0, scaled(0.5))},
        about="times",
    ),
    Twist("sums", "`times[i]` is the time of the layers 0 to i together", given={0: RUNNING_SUMS}, about="times"),
    Twist(
        "last-layers",
        "the function returns the number of the last layer of each device, and layers are counted from 0",
        result=Map(_last_layers, _counts_from_previous),
        about="result",
    ),
    Twist(
        "computes-loss",
        "the last layer also computes the loss and takes twice the time that stands in `times`",
        given={0: at(-1, scaled(0.5))},
        about="times",
    ),
    Twist("sums-to-the-end", "`times[i]` is the time of layer i and all layers after it together", given={0: FROM_THE_END}, about="times"),
    Twist(
        "last-device-first",
        "the list that the function returns begins with the last device, which has the last layers",
        result=REVERSED,
        about="result",
    ),
)
