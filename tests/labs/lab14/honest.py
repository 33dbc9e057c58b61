"""Lab 14's builds with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def slow(place: int) -> Callable[[Function], Function]:
    """Double the times of the device at this place."""

    def own(times: list[float]) -> Any:
        doubled = np.array(times, dtype=float)
        doubled[place] *= 2
        return doubled.tolist()

    return lambda slowdown: lambda orders, forward, backward, latency: slowdown(orders, own(forward), own(backward), latency)


def with_messages(listed: Callable[[list[tuple[str, str]]], list[tuple[str, str]]]) -> Callable[[Function], Function]:
    def change(slowdown: Function) -> Function:
        def own(*given: Any) -> tuple[float, list[tuple[str, str]]]:
            longer, messages = slowdown(*given)
            return longer, listed(messages)

        return own

    return change


def last_slower(least: Function) -> Function:
    """With one microbatch less than the least number GPipe is still slower."""
    return lambda *given: (least(*given) or given[-1] + 1) - 1


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab14.t3": {
        "slow-device-0": slow(0),
        "slow-last-device": slow(-1),
        "long-backwards": lambda slowdown: (
            lambda orders, forward, backward, latency: slowdown(orders, forward, [time + time for time in backward], latency)
        ),
        "slow-messages": lambda slowdown: lambda orders, forward, backward, latency: slowdown(orders, forward, backward, 2 * latency),
        "receiver-first": with_messages(lambda messages: [(receiver, sender) for sender, receiver in messages]),
        "last-message-first": with_messages(lambda messages: list(reversed(messages))),
    },
    "lab14.t4": {
        # the two steps differ by what GPipe computes again, so half of the forward stands for it
        "half-recomputed": lambda least: lambda devices, forward, *others: least(devices, forward / 2, *others),
        "four-links": lambda least: lambda devices, forward, backward, link, most: least(devices, forward, backward, 4 * link, most),
        "there-and-back": lambda least: lambda devices, forward, backward, both, most: least(devices, forward, backward, both / 2, most),
        "whole-model": lambda least: (
            lambda devices, forward, backward, *others: least(devices, forward / devices, backward / devices, *others)
        ),
        "links": lambda least: lambda links, *others: least(links + 1, *others),
        "last-slower": last_slower,
        "more-than-most": lambda least: lambda *given: least(*given) or given[-1] + 1,
    },
}
