"""Lab 2's builds with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

import re
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def last_stage_first(simulate: Function) -> Function:
    def own(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Any:
        def turned(op: str) -> str:
            stage, kind, microbatch = re.split("([FB])", op)
            return f"{len(orders) - 1 - int(stage)}{kind}{microbatch}"

        lines = [" ".join(map(turned, line.split())) for line in orders]
        return {turned(op): span for op, span in simulate(lines[::-1], forward[::-1], backward[::-1], latency).items()}

    return own


def slow(place: int) -> Callable[[Function], Function]:
    def change(simulate: Function) -> Function:
        def own(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Any:
            times = [list(forward), list(backward)]
            for each in times:
                each[place] += each[place]
            return simulate(orders, *times, latency)

        return own

    return change


def with_names(name: Callable[[int, int], int]) -> Callable[[Function], Function]:
    """Return the change that gives microbatch m of M another number."""

    def change(one_f_one_b: Function) -> Function:
        def own(*sizes: int) -> list[str]:
            lines = one_f_one_b(*sizes)
            count = lines[0].count("F")
            return [re.sub(r"(?<=[FBIW])\d+", lambda number: str(name(int(number[0]), count)), line) for line in lines]

        return own

    return change


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab02.t5": {
        "reversed-stages": lambda one_f_one_b: lambda *sizes: one_f_one_b(*sizes)[::-1],
        "one-stage-further": lambda one_f_one_b: lambda *sizes: one_f_one_b(*sizes)[1:] + one_f_one_b(*sizes)[:1],
        "last-microbatch-first": with_names(lambda number, count: count - 1 - number),
        "microbatch-0-last": with_names(lambda number, count: number + 1 if number < count - 1 else 0),
        "even-microbatches": with_names(lambda number, count: 2 * number),
        "split-backward": lambda one_f_one_b: lambda *sizes: [re.sub(r"(\d+)B(\d+)", r"\1I\2 \1W\2", line) for line in one_f_one_b(*sizes)],
        "microbatches-first": lambda one_f_one_b: lambda microbatches, devices: one_f_one_b(devices, microbatches),
    },
    "lab02.t6": {
        "slow-device-0": slow(0),
        "slow-last-device": slow(-1),
        "slow-messages": lambda simulate: lambda orders, forward, backward, latency: simulate(orders, forward, backward, 2 * latency),
        "microseconds": lambda simulate: lambda orders, forward, backward, latency: simulate(orders, forward, backward, latency / 1000),
        "long-backwards": lambda simulate: (
            lambda orders, forward, backward, latency: simulate(orders, forward, [time + time for time in backward], latency)
        ),
        "later-begin": lambda simulate: lambda *given: {op: (start + 5, end + 5) for op, (start, end) in simulate(*given).items()},
        "durations": lambda simulate: lambda *given: {op: (start, end - start) for op, (start, end) in simulate(*given).items()},
        "last-stage-first": last_stage_first,
    },
}
