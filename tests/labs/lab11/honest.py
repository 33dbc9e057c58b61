"""Lab 11's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def with_held(count: Callable[[int], int]) -> Callable[[Function], Function]:
    """Put input gradients whose weight gradients never run in front of each line: their activations stay whole."""

    def line_with(line: str) -> str:
        stage = int(line.partition("F")[0])
        return f"{stage}F99 {stage}I99 " * count(stage) + line

    return lambda peaks: lambda orders, kept: peaks([line_with(line) for line in orders], kept)


def counted_as(number: Callable[[float], float]) -> Callable[[Function], Function]:
    return lambda peaks: lambda orders, kept: [number(peak) for peak in peaks(orders, kept)]


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab11.t4": {
        "one-held": with_held(lambda stage: 1),
        "two-held": with_held(lambda stage: 2),
        "as-many-held-as-the-stage": with_held(lambda stage: stage),
        "places-left": counted_as(lambda peak: 16 - peak),
        "gigabytes": counted_as(lambda peak: 3 * peak),
        "gigabytes-with-weights": counted_as(lambda peak: 10 + 3 * peak),
        "last-line-first": lambda peaks: lambda orders, kept: list(reversed(peaks(orders, kept))),
    }
}
