"""Lab 15's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

Function = Callable[..., Any]


def with_doubled(place: int) -> Callable[[Function], Function]:
    def twisted(partition: Function) -> Function:
        def own(times: Any, devices: int) -> Any:
            other = np.array(times)
            other[place] *= 2
            return partition(other, devices)

        return own

    return twisted


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab15.t3": {
        "first-layers": lambda partition: lambda times, devices: [0, *accumulate(partition(times, devices))][:-1],
        "last-layers": lambda partition: lambda times, devices: np.cumsum(partition(times, devices)) - 1,
        "last-device-first": lambda partition: lambda times, devices: partition(times, devices)[::-1],
        "loads-data": with_doubled(0),
        "computes-loss": with_doubled(-1),
        "sums": lambda partition: lambda sums, devices: partition(np.diff(sums, prepend=0), devices),
        "sums-to-the-end": lambda partition: lambda sums, devices: partition(-np.diff(sums, append=0), devices),
    }
}
