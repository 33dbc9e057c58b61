"""Lab 8's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor  # noqa: F401 - the published solution uses it
from threading import Condition  # noqa: F401 - and this one
from typing import Any

Function = Callable[..., Any]


def names_in(orders: list[Any]) -> list[str]:
    return [name for line in orders for name in (line.split() if isinstance(line, str) else line)]


def with_arguments(of: Callable[[Any, Function, list[str]], tuple[Any, Function, list[str]]]) -> Callable[[Function], Function]:
    """Give a runner other arguments; ``of`` makes them from those that it gets."""
    return lambda run: lambda orders, work, names: run(*of(orders, work, names))


def with_gradient_last(work: Function) -> Function:
    def own(*given: Any) -> Any:
        gradient, to, output = work(*given)
        return to, output, gradient

    return own


def means(run: Function) -> Function:
    def own(orders: list[Any], work: Function, names: list[str]) -> Any:
        microbatches = {name.split("F")[1] for name in names_in(orders) if "F" in name}
        return [total / len(microbatches) for total in run(orders, work, names)]

    return own


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab08.t5": {
        "last-device-first": with_arguments(lambda orders, work, lost: (orders[::-1], work, lost)),
        "delivered": with_arguments(lambda orders, work, come: (orders, work, [name for name in names_in(orders) if name not in come])),
        "message-first": with_arguments(lambda orders, work, lost: (orders, lambda first, second: work(second, first), lost)),
        "means": means,
        "gradient-first": with_arguments(lambda orders, work, lost: (orders, with_gradient_last(work), lost)),
        "lists-of-names": with_arguments(lambda orders, work, lost: ([" ".join(line) for line in orders], work, lost)),
    }
}
