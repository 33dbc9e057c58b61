"""Lab 7's builds with each twist, as a student writes them from the clause."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def executed(lines: list[str], forward: Function, backward: Function, samples: list[Any]) -> tuple[float, list[Any]]:
    """Run the operations: line and stage have the same number, and microbatch and sample as well."""
    left = [deque(line.split()) for line in lines]
    last = len(lines) - 1
    arrived: dict[tuple[int, str, int], Any] = {(0, "F", place): sample for place, sample in enumerate(samples)}
    kept: dict[tuple[int, int], Any] = {}
    loss, gradients = 0.0, [None] * len(lines)
    while any(left):
        for stage, line in enumerate(left):
            while line:
                kind = "F" if "F" in line[0] else "B"
                microbatch = int(line[0].split(kind)[1])
                if (stage, kind, microbatch) not in arrived:
                    break
                line.popleft()
                value = arrived.pop((stage, kind, microbatch))
                if kind == "F":
                    output, kept[stage, microbatch] = forward(stage, microbatch, value)
                    if stage == last:
                        loss += output
                    arrived[(stage, "B", microbatch) if stage == last else (stage + 1, "F", microbatch)] = 1.0 if stage == last else output
                else:
                    of_input, of_weights = backward(stage, microbatch, value, kept.pop((stage, microbatch)))
                    gradients[stage] = of_weights if gradients[stage] is None else gradients[stage] + of_weights
                    arrived[stage - 1, "B", microbatch] = of_input
    return loss, gradients


def last_stage_first(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    return executed(list(reversed(orders)), forward, backward, inputs)


def last_microbatch_first_kept_first(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    def output_first(stage: int, microbatch: int, value: Any) -> Any:
        kept, output = forward(stage, microbatch, value)
        return output, kept

    return executed(orders, output_first, backward, list(reversed(inputs)))


def microbatch_before_stage(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    def forward_there(stage: int, microbatch: int, value: Any) -> Any:
        return forward(microbatch, stage, value)

    def backward_there(stage: int, microbatch: int, gradient: Any, kept: Any) -> Any:
        return backward(microbatch, stage, gradient, kept)

    return executed(orders, forward_there, backward_there, inputs)


def input_first(backward: Function) -> Function:
    def there(stage: int, microbatch: int, gradient: Any, kept: Any) -> Any:
        of_weights, of_input = backward(stage, microbatch, gradient, kept)
        return of_input, of_weights

    return there


def last_gradient_first_weights_first(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    loss, gradients = executed(orders, forward, input_first(backward), inputs)
    return loss, list(reversed(gradients))


def last_microbatch_first(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    return executed(orders, forward, backward, [inputs[len(inputs) - 1 - m] for m in range(len(inputs))])


def last_stage_first_loss_last(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    loss, gradients = executed(orders[::-1], forward, backward, inputs)
    return gradients, loss


def last_gradient_first(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    loss, gradients = executed(orders, forward, backward, inputs)
    return loss, gradients[::-1]


def microbatch_before_stage_weights_first(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    def weights_last(microbatch: int, stage: int, gradient: Any, kept: Any) -> Any:
        of_weights, of_input = backward(microbatch, stage, gradient, kept)
        return of_input, of_weights

    return microbatch_before_stage(orders, forward, weights_last, inputs)


def last_microbatch_first_loss_last(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    loss, gradients = executed(orders, forward, backward, inputs[::-1])
    return gradients, loss


def last_stage_first_kept_first(orders: list[str], forward: Function, backward: Function, inputs: list[Any]) -> Any:
    def output_first(stage: int, microbatch: int, value: Any) -> Any:
        kept, output = forward(stage, microbatch, value)
        return output, kept

    return executed(orders[::-1], output_first, backward, inputs)


def a_test_of(wanted_of: Function, by_columns: bool = False) -> Function:
    """A test of a ring for many sizes. wanted_of takes values with one row for each rank, and returns the right row."""

    def ring_is_right(ring: Function) -> bool:
        for ranks in range(1, 6):
            for size in range(1, 9):
                values = np.random.default_rng([ranks, size]).normal(size=(ranks, size))
                wanted = np.array([wanted_of(values)] * ranks)
                given = values.T.copy() if by_columns else values.copy()
                before = given.copy()
                found = ring(given)
                found = found.T if by_columns else found
                if found.shape != wanted.shape or found.dtype != np.float64 or not (np.abs(found - wanted) <= 1e-9).all():
                    return False
                if (given != before).any():
                    return False
        return True

    return ring_is_right


def weighted_mean(values: Any) -> Any:
    return np.average(values, axis=0, weights=[rank + 1 for rank in range(len(values))])


def weighted_sum(values: Any) -> Any:
    return sum((rank + 1) * row for rank, row in enumerate(values))


SOLUTIONS: dict[tuple[str, str], Function] = {
    ("lab07.t1", "last-stage-first"): last_stage_first,
    ("lab07.t1", "last-microbatch-first-and-kept-first"): last_microbatch_first_kept_first,
    ("lab07.t1", "microbatch-before-stage"): microbatch_before_stage,
    ("lab07.t1", "last-gradient-first-and-weight-gradient-first"): last_gradient_first_weights_first,
    ("lab07.t1", "last-microbatch-first"): last_microbatch_first,
    ("lab07.t1", "last-stage-first-and-loss-last"): last_stage_first_loss_last,
    ("lab07.t1", "last-gradient-first"): last_gradient_first,
    ("lab07.t1", "microbatch-before-stage-and-weight-gradient-first"): microbatch_before_stage_weights_first,
    ("lab07.t1", "last-microbatch-first-and-loss-last"): last_microbatch_first_loss_last,
    ("lab07.t1", "last-stage-first-and-kept-first"): last_stage_first_kept_first,
    ("lab07.t6", "sum"): a_test_of(lambda values: values.sum(axis=0)),
    ("lab07.t6", "columns"): a_test_of(lambda values: values.mean(axis=0), by_columns=True),
    ("lab07.t6", "weighted-mean"): a_test_of(weighted_mean),
    ("lab07.t6", "columns-of-sums"): a_test_of(lambda values: values.sum(axis=0), by_columns=True),
    ("lab07.t6", "half-of-the-mean"): a_test_of(lambda values: values.mean(axis=0) / 2),
    ("lab07.t6", "weighted-sum"): a_test_of(weighted_sum),
    ("lab07.t6", "columns-of-weighted-means"): a_test_of(weighted_mean, by_columns=True),
}
