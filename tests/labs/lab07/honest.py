"""Lab 7's builds with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]
Change = Callable[[Function], Function]


def with_functions(forward_of: Change, backward_of: Change) -> Change:
    """Give the executor another forward and another backward."""
    return lambda run: lambda orders, forward, backward, inputs: run(orders, forward_of(forward), backward_of(backward), inputs)


def with_lines(lines_of: Callable[[list[str]], list[str]]) -> Change:
    return lambda run: lambda orders, *others: run(lines_of(orders), *others)


def as_it_is(function: Function) -> Function:
    return function


def in_the_other_order(function: Function) -> Function:
    return lambda *given: tuple(reversed(function(*given)))


def with_the_place_exchanged(function: Function) -> Function:
    return lambda first, second, *others: function(second, first, *others)


def with_loss_scale(backward: Function) -> Function:
    return lambda first, second, gradient, kept: [each / 1024 for each in backward(first, second, 1024 * gradient, kept)]


def with_stages(lines: list[str]) -> list[str]:
    return [" ".join(f"{stage}{name}" for name in line.split()) for stage, line in enumerate(lines)]


def with_ring(ring_of: Change) -> Change:
    """Give the test of a ring another ring."""
    return lambda ring_is_right: lambda ring: ring_is_right(ring_of(ring))


def with_averages(averages_of: Callable[[Any, int], Any]) -> Change:
    """Change the averages that a ring returns, alone or with its messages; averages_of also gets the number of ranks."""

    def with_them(found: Any, ranks: int) -> Any:
        return (averages_of(found[0], ranks), *found[1:]) if isinstance(found, tuple) else averages_of(found, ranks)

    return with_ring(lambda ring: lambda values: with_them(ring(values), len(values)))


def weighted(weights_of: Callable[[int], Any]) -> Change:
    """Make a ring that takes the mean of one that gives the ranks weights. If that changes its argument, so does this one."""

    def mean_of(ring: Function) -> Function:
        def own(values: Any) -> Any:
            given = values / weights_of(len(values)).reshape(-1, *[1] * (values.ndim - 1))
            before = given.copy()
            found = ring(given)
            if (given != before).any():
                values += 1
            return found

        return own

    return mean_of


def as_vectors(ring_is_right: Function) -> Function:
    vectors = with_averages(lambda averages, ranks: averages[..., 0])
    return vectors(lambda ring: ring_is_right(lambda values: ring(values[..., np.newaxis])))


TWISTED: dict[str, dict[str, Change]] = {
    "lab07.t1": {
        "last-stage-first": with_lines(lambda lines: lines[::-1]),
        "names-without-stage": with_lines(with_stages),
        "loss-scale": with_functions(as_it_is, with_loss_scale),
        "microbatch-before-stage": with_functions(with_the_place_exchanged, with_the_place_exchanged),
        "kept-first": with_functions(in_the_other_order, as_it_is),
        "weight-gradient-first": with_functions(as_it_is, in_the_other_order),
        "loss-last": in_the_other_order,
    },
    "lab07.t6": {
        "sum": with_averages(lambda averages, ranks: averages / ranks),
        "weighted-mean": with_ring(weighted(lambda ranks: np.arange(1, ranks + 1) / np.arange(1, ranks + 1).mean())),
        "steps": with_averages(lambda averages, ranks: averages / -0.3),
        "matrices": as_vectors,
        "with-messages": with_ring(lambda ring: lambda values: ring(values)[0]),
        "true-for-a-fault": lambda ring_is_right: lambda ring: not ring_is_right(ring),
    },
}
