"""Lab 18's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

import re
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def from_the_last(zero_bubble: Function) -> Function:
    def own(devices: int, microbatches: int, forward: Any, input_gradient: Any, weight_gradient: Any, *others: Any) -> list[str]:
        lines = zero_bubble(devices, microbatches, forward[::-1], input_gradient[::-1], weight_gradient[::-1], *others)
        return [re.sub(r"\d+(?=[FIW])", lambda stage: str(devices - 1 - int(stage[0])), line) for line in reversed(lines)]

    return own


def with_operations(change: Callable[[str], str]) -> Callable[[Function], Function]:
    return lambda zero_bubble: lambda *model: [change(line) for line in zero_bubble(*model)]


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab18.t2": {
        "last-stage-first": from_the_last,
        "caps": lambda zero_bubble: lambda *model: zero_bubble(*model[:6], min(model[6])),
        "other-letters": with_operations(lambda line: line.translate({ord("I"): "W", ord("W"): "I"})),
        "two-latencies": lambda zero_bubble: lambda *model: zero_bubble(*model[:5], sum(model[5]) / 2, model[6]),
        "reversed-lines": lambda zero_bubble: lambda *model: zero_bubble(*model)[::-1],
        "microbatch-first": with_operations(lambda line: re.sub(r"(\d+)(\w)(\d+)", r"\3\2\1", line)),
        "gigabytes": lambda zero_bubble: lambda *model: zero_bubble(*model[:6], model[6] // 3),
    }
}
