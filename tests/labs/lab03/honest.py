"""Lab 3's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def with_held(count: Callable[[int], int]) -> Callable[[Function], Function]:
    """Put forwards whose backwards never run in front of each line."""

    def line_with(line: str) -> str:
        stage = int(line.partition("F")[0])
        return f"{stage}F99 " * count(stage) + line

    return lambda peaks: lambda orders: peaks([line_with(line) for line in orders])


def counted_as(number: Callable[[int], int]) -> Callable[[Function], Function]:
    return lambda peaks: lambda orders: [number(peak) for peak in peaks(orders)]


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab03.t3": {
        "one-held": with_held(lambda stage: 1),
        "two-held": with_held(lambda stage: 2),
        "as-many-held-as-the-stage": with_held(lambda stage: stage),
        "places-left": counted_as(lambda peak: 16 - peak),
        "gigabytes": counted_as(lambda peak: 3 * peak),
        "gigabytes-with-weights": counted_as(lambda peak: 10 + 3 * peak),
        "last-line-first": lambda peaks: lambda orders: list(reversed(peaks(orders))),
    }
}
