"""Lab 10's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def counted_as(number: Callable[[int, int], int]) -> Callable[[Function], Function]:
    """Return another number for each warm-up; ``number`` gets the warm-up and the number of microbatches."""
    return lambda eager: lambda devices, microbatches, *times: [number(each, microbatches) for each in eager(devices, microbatches, *times)]


def beyond_1f1b(eager: Function) -> Function:
    """Without latency the least warm-ups are those of 1F1B."""

    def own(devices: int, microbatches: int, forward: float, backward: float, latency: float) -> list[int]:
        sizes = devices, microbatches, forward, backward
        return [longer - warmup for longer, warmup in zip(eager(*sizes, latency), eager(*sizes, 0), strict=True)]

    return own


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab10.t4": {
        "half": lambda eager: lambda devices, count, forward, backward, half: eager(devices, count, forward, backward, half + half),
        "pair": lambda eager: lambda devices, count, forward, pair, latency: eager(devices, count, forward, pair - forward, latency),
        "input-gradient": lambda eager: (
            lambda devices, count, forward, inputs, latency: eager(devices, count, forward, 2 * inputs, latency)
        ),
        "peaks": counted_as(lambda warmup, microbatches: microbatches if warmup >= microbatches else warmup + 1),
        "forwards-left": counted_as(lambda warmup, microbatches: microbatches - warmup),
        "beyond-1f1b": beyond_1f1b,
        "last-device-first": lambda eager: lambda *size: eager(*size)[::-1],
    }
}
