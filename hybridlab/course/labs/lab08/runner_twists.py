"""The twists of lab 8's runner: lines, results and the arguments and results of ``work`` stand in another order or form."""

from collections.abc import Callable
from functools import wraps
from typing import Any


from hybridlab.course.labs.lab08.runners import RUNNERS
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import show_changes, together

def backwards(given: list[Any]) -> list[Any]:
    return given[::-1]


Standard = Callable[[Function], Function]
Renamed = Callable[[list[str], Function, list[str]], tuple[Any, Function, list[str]]]  # what a function gets in place of its arguments


def _of_arguments(rename: Renamed) -> Standard:
    """Return a ``standard`` that renames what a runner gets."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def run_in_threads(orders: list[str], work: Function, lost: list[str]) -> Any:
            return function(*rename(orders, work, lost))

        return run_in_threads

    return standard


def _of_lines(forth: Callable[[list[str]], list[Any]], back: Callable[[list[Any]], list[str]]) -> Standard:
    """Return a ``standard`` that renames the lines."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def run_in_threads(orders: list[str], work: Function, lost: list[str]) -> Any:
            other = forth(orders)
            before = other.copy()
            result = function(other, work, lost)
            show_changes(orders, other, before, back)
            return result

        return run_in_threads

    return standard


def _of_gradients(rename: Callable[[list[Any], list[str]], Any]) -> Standard:
    """Return a ``standard`` that renames the list of gradients."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def run_in_threads(orders: list[str], work: Function, lost: list[str]) -> Any:
            result = function(orders, work, lost)
            return rename(list(result), orders) if isinstance(result, (list, tuple)) else result

        return run_in_threads

    return standard


def _message_first(work: Function) -> Function:
    def renamed_work(message: Any, name: str) -> Any:
        return work(name, message)

    return renamed_work


def _gradient_first(work: Function) -> Function:
    def renamed_work(name: str, message: Any) -> Any:
        to, output, gradient = work(name, message)
        return gradient, to, output

    return renamed_work


def _output_first(work: Function) -> Function:
    def renamed_work(name: str, message: Any) -> Any:
        to, output, gradient = work(name, message)
        return output, to, gradient

    return renamed_work


def _delivered(orders: list[str], lost: list[str]) -> list[str]:
    return [name for line in orders for name in line.split() if name not in lost]


def _sums_of_means(gradients: list[Any], orders: list[str]) -> list[Any]:
    """Return sums from means."""
    microbatches = len({name.replace("B", "F").split("F")[1] for line in orders for name in line.split()})
    return [each * microbatches if hasattr(each, "dtype") else each for each in gradients]


LAST_DEVICE_FIRST = Twist(
    "last-device-first",
    "the lines of orders go from the last device to device 0: the first line belongs to the last device",
    _of_lines(backwards, backwards),
)
LISTS_OF_NAMES = Twist(
    "lists-of-names",
    'each line of orders is a list of names, such as ["0F0", "0B0"], and no text',
    _of_lines(lambda lines: [line.split() for line in lines], lambda lines: [" ".join(line) for line in lines]),
)
MESSAGE_FIRST = Twist(
    "message-first",
    "the arguments of work stand in another order: work(message, name)",
    _of_arguments(lambda orders, work, lost: (orders, _message_first(work), lost)),
)
GRADIENT_FIRST = Twist(
    "gradient-first",
    "work returns (gradient, to, output)",
    _of_arguments(lambda orders, work, lost: (orders, _gradient_first(work), lost)),
)
OUTPUT_FIRST = Twist(
    "output-first",
    "work returns (output, to, gradient)",
    _of_arguments(lambda orders, work, lost: (orders, _output_first(work), lost)),
)
DELIVERED = Twist(
    "delivered",
    "the third argument names the operations whose messages arrive: all other messages are lost",
    _of_arguments(lambda orders, work, lost: (orders, work, _delivered(orders, lost))),
)
GRADIENTS_FROM_THE_LAST_DEVICE = Twist(
    "last-gradient-first",
    "the returned list goes from the last device to device 0",
    _of_gradients(lambda gradients, orders: gradients[::-1]),
    {"mistakes": [mistake for mistake in RUNNERS if mistake.code != "reversed"]},
)
MEANS = Twist(
    "means",
    "the function returns the mean over the microbatches in place of the sum: divide each sum by the number of microbatches in the lines",
    _of_gradients(_sums_of_means),
    {"mistakes": [mistake for mistake in RUNNERS if mistake.code != "mean-of-microbatches"]},
)

RUNNER_TWISTS = (
    LAST_DEVICE_FIRST,
    MESSAGE_FIRST,
    DELIVERED,
    GRADIENT_FIRST,
    MEANS,
    LISTS_OF_NAMES,
    GRADIENTS_FROM_THE_LAST_DEVICE,
    OUTPUT_FIRST,
    together(LAST_DEVICE_FIRST, DELIVERED),
    together(MESSAGE_FIRST, MEANS),
    together(LISTS_OF_NAMES, GRADIENTS_FROM_THE_LAST_DEVICE),
)
