"""Names and arguments that went: for one version each is refused with the one that took its place."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from hybridlab.errors import HybridLabError

P = ParamSpec("P")
R = TypeVar("R")


def gone(positional: str = "", **arguments: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that refuses the ``arguments`` that a function had, each with the sentence of what works now.

    ``positional`` is the sentence for a call with more positional arguments than the function takes; without it, it is that
    of the first of ``arguments``.

    >>> @gone(microseconds="the unit is that of the costs")
    ... def trace(rows):
    ...     return rows
    >>> trace(3)
    3
    >>> trace(3, microseconds=1000)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: trace() no longer takes microseconds: the unit is that of the costs
    """

    def guarded(function: Callable[P, R]) -> Callable[P, R]:
        kinds = [parameter.kind for parameter in signature(function).parameters.values()]
        most = sum(kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
        called = function.__qualname__.removesuffix(".__init__").rsplit(".", 1)[-1]

        @wraps(function)
        def checked(*given: P.args, **named: P.kwargs) -> R:
            for name, instead in arguments.items():
                if name in named:
                    raise HybridLabError(f"{called}() no longer takes {name}: {instead}")
            if len(given) > most:
                raise HybridLabError(f"{called}() no longer takes so many arguments without a name: {positional or told}")
            return function(*given, **named)

        return checked

    told = next(iter(arguments.values()), "")
    return guarded
