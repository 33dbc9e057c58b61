"""Lab 17's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]
Times = list[float]


def with_times(of_forward: Callable[[Any], Any], of_backward: Callable[[Any, Any], Any]) -> Callable[[Function], Function]:
    return lambda least_time: (
        lambda number, cap, forward, backward, latency: least_time(
            number, cap, of_forward(forward), of_backward(forward, backward), latency
        )
    )


def differences(sums: Times) -> Times:
    return np.diff(sums, prepend=0).tolist()  # type: ignore[no-any-return]


def idle_time(least_time: Function) -> Function:
    def own(number: int, cap: float, forward: Times, backward: Times, latency: float) -> float:
        step = least_time(number, cap, forward, backward, latency)
        return sum(step - number * (one + other) for one, other in zip(forward, backward, strict=True))

    return own


def beyond_the_work(least_time: Function) -> Function:
    def own(number: int, cap: float, forward: Times, backward: Times, latency: float) -> Any:
        return least_time(number, cap, forward, backward, latency) - number * np.add(forward, backward).max()

    return own


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab17.t3": {
        "memory-in-gb": lambda least_time: lambda number, memory, *others: least_time(number, int(memory / 0.5), *others),
        "round-trip": lambda least_time: lambda number, cap, forward, backward, both: least_time(number, cap, forward, backward, both / 2),
        "running-sums": with_times(differences, lambda forward, backward: differences(backward)),
        "lists-from-the-last": with_times(lambda forward: forward[::-1], lambda forward, backward: backward[::-1]),
        "pairs": with_times(list, lambda forward, pairs: [one + other for one, other in pairs]),
        "both-together": with_times(list, lambda forward, both: np.subtract(both, forward).tolist()),
        "idle-time": idle_time,
        "beyond-the-work": beyond_the_work,
    }
}
