"""Lab 14's builds with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Rows = list[dict[str, Any]]


def with_messages(listed: Callable[[list[tuple[str, str]]], list[tuple[str, str]]]) -> Callable[[Function], Function]:
    def change(slowdown: Function) -> Function:
        def own(*given: Any) -> tuple[float, list[tuple[str, str]]]:
            longer, messages = slowdown(*given)
            return longer, listed(messages)

        return own

    return change


def with_ends(slowdown: Function) -> Function:
    def own(free: Rows, late: Rows, path: list[str]) -> Any:
        return slowdown(*([row | {"end": row["start"] + row["end"]} for row in rows] for rows in (free, late)), path)

    return own


def from_zero(slowdown: Function) -> Function:
    return lambda free, late, path: slowdown(free, [row | {"start": row["start"] - 5, "end": row["end"] - 5} for row in late], path)


def in_seconds(slowdown: Function) -> Function:
    def own(*given: Any) -> Any:
        longer, messages = slowdown(*given)
        return longer / 1000, messages

    return own


def last_slower(least: Function) -> Function:
    """With one microbatch less than the least number GPipe is still slower."""
    return lambda *given: (least(*given) or given[-1] + 1) - 1


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab14.t3": {
        "receiver-first": with_messages(lambda messages: [(receiver, sender) for sender, receiver in messages]),
        "last-message-first": with_messages(lambda messages: list(reversed(messages))),
        "path-from-the-end": lambda slowdown: lambda free, late, path: slowdown(free, late, path[::-1]),
        "places": lambda slowdown: lambda free, late, places: slowdown(free, late, [late[place]["op"] for place in places]),
        "lengths": with_ends,
        "late-begin": from_zero,
        "seconds": in_seconds,
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
