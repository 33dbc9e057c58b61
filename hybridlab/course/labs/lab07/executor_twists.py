"""The twists of lab 7's executor: lines, inputs, gradients and arguments stand in another order."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from hybridlab.arrays import Floats
from hybridlab.course.labs.lab07.executors import EXECUTORS
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, show_changes, together
from hybridlab.errors import HybridLabError

Results = tuple[Any, Any]
Standard = Callable[[Function], Function]


def _two_results(result: Any) -> Results:
    """Return the two results of an executor as they are, or raise."""
    if isinstance(result, (tuple, list)) and len(result) == 2:
        return result[0], result[1]
    raise HybridLabError("the function returns two things", "wrong-shape")


def _of_results(rename: Callable[[Any, Any], Results]) -> Standard:
    """Return a ``standard`` that renames the results of an executor."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def run_pipeline(orders: list[str], forward: Function, backward: Function, inputs: list[Floats]) -> Any:
            return in_words_of_the_page(function(orders, forward, backward, inputs), _two_results, lambda results: rename(*results))

        return run_pipeline

    return standard


def _of_operations(forward_of: Callable[[Function], Function], backward_of: Callable[[Function], Function]) -> Standard:
    """Return a ``standard`` that renames arguments or results of the forward and the backward that an executor gets."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def run_pipeline(orders: list[str], forward: Function, backward: Function, inputs: list[Floats]) -> Any:
            return function(orders, forward_of(forward), backward_of(backward), inputs)

        return run_pipeline

    return standard


def backwards(given: list[Any]) -> list[Any]:
    """Return a list from its end to its beginning."""
    return given[::-1]


def _lines_turned(function: Function) -> Function:
    @wraps(function)
    def run_pipeline(orders: list[str], forward: Function, backward: Function, inputs: list[Floats]) -> Any:
        other = backwards(orders)
        before = other.copy()
        result = function(other, forward, backward, inputs)
        show_changes(orders, other, before, backwards)
        return result

    return run_pipeline


def _inputs_turned(function: Function) -> Function:
    @wraps(function)
    def run_pipeline(orders: list[str], forward: Function, backward: Function, inputs: list[Floats]) -> Any:
        other = backwards(inputs)
        before = other.copy()
        result = function(orders, forward, backward, other)
        show_changes(inputs, other, before, backwards)
        return result

    return run_pipeline


def _forward_by_microbatch(forward: Function) -> Function:
    def renamed_forward(microbatch: int, stage: int, value: Any) -> Any:
        return forward(stage, microbatch, value)

    return renamed_forward


def _backward_by_microbatch(backward: Function) -> Function:
    def renamed_backward(microbatch: int, stage: int, gradient: Any, kept: Any) -> Any:
        return backward(stage, microbatch, gradient, kept)

    return renamed_backward


def _kept_before_output(forward: Function) -> Function:
    def renamed_forward(stage: int, microbatch: int, value: Any) -> Results:
        output, kept = forward(stage, microbatch, value)
        return kept, output

    return renamed_forward


def _weights_before_input(backward: Function) -> Function:
    def renamed_backward(stage: int, microbatch: int, gradient: Any, kept: Any) -> Results:
        of_input, of_weights = backward(stage, microbatch, gradient, kept)
        return of_weights, of_input

    return renamed_backward


def _as_given(operation: Function) -> Function:
    return operation


LAST_LINE_FIRST = Twist(
    "last-stage-first",
    "the lines of orders go from the last stage to stage 0: the first line belongs to the last stage",
    _lines_turned,
)
INPUTS_FROM_THE_LAST = Twist(
    "last-microbatch-first",
    "inputs goes from the last microbatch to microbatch 0: the samples of microbatch m of M are inputs[M - 1 - m]",
    _inputs_turned,
)
GRADIENTS_FROM_THE_LAST = Twist(
    "last-gradient-first",
    "the returned list of gradients goes from the last stage to stage 0",
    _of_results(lambda loss, gradients: (loss, gradients[::-1] if isinstance(gradients, (list, tuple)) else gradients)),
    {"mistakes": [mistake for mistake in EXECUTORS if mistake.code != "reversed"]},
)
LOSS_LAST = Twist("loss-last", "the function returns (gradients, loss)", _of_results(lambda gradients, loss: (loss, gradients)))
MICROBATCH_BEFORE_STAGE = Twist(
    "microbatch-before-stage",
    "the arguments are forward(microbatch, stage, value) and backward(microbatch, stage, gradient, kept)",
    _of_operations(_forward_by_microbatch, _backward_by_microbatch),
)
KEPT_FIRST = Twist("kept-first", "forward returns (kept, output)", _of_operations(_kept_before_output, _as_given))
WEIGHTS_FIRST = Twist(
    "weight-gradient-first",
    "backward returns first the gradient with respect to the weights, then the one for the input",
    _of_operations(_as_given, _weights_before_input),
)

EXECUTOR_TWISTS = (
    LAST_LINE_FIRST,
    together(INPUTS_FROM_THE_LAST, KEPT_FIRST),
    MICROBATCH_BEFORE_STAGE,
    together(GRADIENTS_FROM_THE_LAST, WEIGHTS_FIRST),
    INPUTS_FROM_THE_LAST,
    together(LAST_LINE_FIRST, LOSS_LAST),
    GRADIENTS_FROM_THE_LAST,
    together(MICROBATCH_BEFORE_STAGE, WEIGHTS_FIRST),
    together(INPUTS_FROM_THE_LAST, LOSS_LAST),
    together(LAST_LINE_FIRST, KEPT_FIRST),
)
