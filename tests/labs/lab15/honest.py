"""Lab 15's build with each twist, as a student writes it from the clause."""

from collections.abc import Callable
from typing import Any

import numpy as np


def best_cut(times: Any, devices: int) -> list[int]:
    """The numbers of layers of a best cut: the least load is searched for among all loads that a device can have."""
    layers = len(times)
    if layers < devices:
        raise ValueError("fewer layers than devices")
    until = np.concatenate([[0.0], np.cumsum(times)])
    loads = np.unique((until[None, :] - until[:, None])[np.triu_indices(layers + 1, 1)])
    few, many = 0, len(loads) - 1
    while few < many:
        middle = (few + many) // 2
        if len(packed(times, loads[middle])) <= devices:
            many = middle
        else:
            few = middle + 1
    cut = packed(times, loads[few])
    while len(cut) < devices:  # a device more never makes a load larger
        place = next(place for place, count in enumerate(cut) if count > 1)
        cut[place : place + 1] = [1, cut[place] - 1]
    return cut


def packed(times: Any, most: float) -> list[int]:
    """The numbers of layers if each device takes as many as it can with a load of at most ``most``."""
    if max(times) > most:
        return [1] * (len(times) + 1)
    cut, load = [0], 0.0
    for time in times:
        if load + time > most:
            cut.append(0)
            load = 0.0
        cut[-1] += 1
        load += time
    return cut


def with_one_doubled(times: Any, place: int) -> Any:
    other = np.array(times)
    other[place] *= 2
    return other


def first_layers(times: Any, devices: int) -> Any:
    return [sum(best_cut(times, devices)[:device]) for device in range(devices)]


def last_layers(times: Any, devices: int) -> Any:
    return np.cumsum(best_cut(times, devices)) - 1


def last_device_first(times: Any, devices: int) -> Any:
    return best_cut(times, devices)[::-1]


def loads_data(times: Any, devices: int) -> Any:
    return best_cut(with_one_doubled(times, 0), devices)


def computes_loss(times: Any, devices: int) -> Any:
    return best_cut(with_one_doubled(times, len(times) - 1), devices)


def from_sums(times: Any, devices: int) -> Any:
    return best_cut(np.diff(np.concatenate([[0.0], times])), devices)


def from_sums_last_device_first(times: Any, devices: int) -> Any:
    return from_sums(times, devices)[::-1]


def loads_data_first_layers(times: Any, devices: int) -> Any:
    return first_layers(with_one_doubled(times, 0), devices)


def computes_loss_last_layers(times: Any, devices: int) -> Any:
    return last_layers(with_one_doubled(times, -1), devices)


SOLUTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("lab15.t3", "first-layers"): first_layers,
    ("lab15.t3", "loads-data"): loads_data,
    ("lab15.t3", "sums-and-last-device-first"): from_sums_last_device_first,
    ("lab15.t3", "computes-loss"): computes_loss,
    ("lab15.t3", "last-layers"): last_layers,
    ("lab15.t3", "loads-data-and-first-layers"): loads_data_first_layers,
    ("lab15.t3", "sums"): from_sums,
    ("lab15.t3", "last-device-first"): last_device_first,
    ("lab15.t3", "computes-loss-and-last-layers"): computes_loss_last_layers,
}
