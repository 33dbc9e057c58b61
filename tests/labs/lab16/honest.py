"""Lab 16's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
WORDS = {"send": "to", "receive": "from"}


def with_messages(of: Callable[..., tuple[str, int]]) -> Callable[[Function], Function]:
    """Change the messages of a list; ``of`` takes and returns their operation and their rank, and also gets the arguments."""

    def changed(action: Any, *given: Any) -> Any:
        if isinstance(action, str) and " and " in action:
            return " and ".join(changed(part, *given) for part in action.split(" and "))
        if isinstance(action[0], tuple):
            return tuple(changed(part, *given) for part in action)
        fields = action.split() if isinstance(action, str) else action
        if fields[0] == "run":
            return action
        op, peer = of(fields[1], int(fields[-1]), *given)
        return f"{fields[0]} {op} {WORDS[fields[0]]} {peer}" if isinstance(action, str) else (fields[0], op, peer)

    return lambda communication: lambda *given: [changed(action, *given) for action in communication(*given)]


def named_by_reader(op: str, peer: int, orders: Any, needs: dict[str, str], rank: int) -> tuple[str, int]:
    return next(reader for reader, source in needs.items() if source == op), peer


def from_1(communication: Function) -> Function:
    one_more = with_messages(lambda op, peer, *given: (op, peer + 1))
    return lambda orders, needs, rank: one_more(communication)(orders, needs, rank - 1)


def as_tuple(action: str) -> tuple[Any, ...]:
    if " and " in action:
        return tuple(map(as_tuple, action.split(" and ")))
    verb, op, *others = action.split()
    return (verb, op, int(others[-1])) if others else (verb, op)


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab16.t4": {
        "last-rank-first": lambda communication: lambda orders, needs, rank: communication(orders[::-1], needs, rank),
        "who-needs-it": lambda communication: (
            lambda orders, needs, rank: communication(orders, dict(zip(needs.values(), needs, strict=True)), rank)
        ),
        "ranks-from-1": from_1,
        "named-by-reader": with_messages(named_by_reader),
        "distances": with_messages(lambda op, peer, orders, needs, rank: (op, (peer - rank) % len(orders))),
        "tuples": lambda communication: lambda *given: [as_tuple(action) for action in communication(*given)],
    }
}
