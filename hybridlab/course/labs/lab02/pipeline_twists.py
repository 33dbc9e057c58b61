"""Twists of the builds of orders and of clocks: stages on other lines, microbatches in another order, and other clocks."""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from hybridlab.course.checking.answers import Orders
from hybridlab.course.labs.lab02.clocks import Times, read_times
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page
from hybridlab.schedule import Op

BEGINS_AT = 5  # ms
_STAGE = re.compile(r"(?<!\S)(0|[1-9]\d{0,8})(?=[FB]\d+(?!\S))")  # of an operation of an order

Place = Callable[[int, int], int]  # takes a line or a microbatch, and how many there are


class Change(NamedTuple):
    """A part of a twist: its name, its words, and the function that ``standard`` or a placement needs."""

    name: str
    words: str
    function: Callable[..., Any]


# The stage whose operations line d has, and the place in the order of the page at which a microbatch runs.
LINES = (
    Change("reversed-stages", "line d has the operations of stage K-1-d", lambda line, devices: devices - 1 - line),
    Change(
        "one-stage-further",
        "the last line has the operations of stage 0, and every other line d has those of stage d+1",
        lambda line, devices: (line + 1) % devices,
    ),
    Change(
        "one-stage-back",
        "line 0 has the operations of stage K-1, and every other line d has those of stage d-1",
        lambda line, devices: (line - 1) % devices,
    ),
)
MICROBATCHES = (
    Change("last-microbatch-first", "the microbatches run from the last one, M-1, down to 0", lambda number, count: count - 1 - number),
    Change("microbatch-0-last", "the microbatches run in the order 1, 2, ..., M-1, 0", lambda number, count: (number - 1) % count),
)


def _itself(number: int, count: int) -> int:
    return number


def _placed(stage: Place, turn: Place, reads: Callable[[Any], Orders]) -> Callable[[Function], Function]:
    """Return what makes a function for the task on the page from one that has other lines and another order of microbatches."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def in_order_of_the_page(devices: int, microbatches: int, *chunks: int) -> Any:
            def of_page(op: Op) -> str:
                return str(op._replace(microbatch=turn(op.microbatch, microbatches)) if op.microbatch < microbatches else op)

            def on_the_page(orders: Orders) -> list[list[str]]:
                lines = [[of_page(op) for op in order] for order in orders]
                if len(lines) != devices:
                    return lines  # the judge says so
                line_of = {stage(line, devices): line for line in range(devices)}
                return [lines[line_of[device]] for device in range(devices)]

            return in_words_of_the_page(function(devices, microbatches, *chunks), reads, on_the_page)

        return in_order_of_the_page

    return standard


def placements(reads: Callable[[Any], Orders], chunks: bool = False) -> tuple[Twist, ...]:
    """Return the twists of a build of orders, where ``reads`` reads the lines that a function returned.

    With ``chunks`` a device has several stages, so the sentences name devices.
    """
    lines = [each._replace(words=each.words.replace("stage", "device")) if chunks else each for each in LINES]
    alone = [Twist(each.name, each.words, _placed(each.function, _itself, reads)) for each in lines]
    alone += [Twist(each.name, each.words, _placed(_itself, each.function, reads)) for each in MICROBATCHES]
    both = [
        Twist(f"{line.name}-{run.name}", f"{line.words}; {run.words}", _placed(line.function, run.function, reads))
        for line in lines
        for run in MICROBATCHES
    ]
    return (*alone, *both)


def _other_way(line: Any, devices: int) -> Any:
    """Return a line of an order, or one operation, in which stages are counted from the other end."""
    if not isinstance(line, str):
        return line
    return _STAGE.sub(lambda found: str(devices - 1 - int(found[0]) if int(found[0]) < devices else found[0]), line)


def _from_the_last(function: Function) -> Function:
    """Return a simulator in which forwards go up from stage 0, from one in which they go down from the last stage."""

    @wraps(function)
    def simulate(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Any:
        devices = len(orders)

        def turned_round(lines: Sequence[Any]) -> list[Any]:
            return [_other_way(line, devices) for line in reversed(lines)]

        def on_the_page(times: Times) -> Times:
            return {_other_way(op, devices): span for op, span in times.items()}

        given = [turned_round(each) for each in (orders, forward, backward)]
        returned = function(*given, latency)
        _hand_back(orders, turned_round(given[0]))
        _hand_back(forward, turned_round(given[1]))
        _hand_back(backward, turned_round(given[2]))
        return in_words_of_the_page(returned, read_times, on_the_page)

    return simulate


def _hand_back(argument: list[Any], changed: list[Any]) -> None:
    """Put into an argument what a function has made of its own copy, so that the judge sees a change."""
    if argument != changed:
        argument[:] = changed


def _takes_twice(forwards: Callable[[int, int], bool], backwards: Callable[[int, int], bool]) -> Callable[[Function], Function]:
    """Return what makes a simulator of the page from one in which some times are twice those of the lists."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def simulate(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Any:
            both, slow = (forward, backward), (forwards, backwards)
            given = [_scaled_times(0.5, times, which) for times, which in zip(both, slow, strict=True)]
            returned = function(orders, *given, latency)
            for times, own, which in zip(both, given, slow, strict=True):
                _hand_back(times, _scaled_times(2, own, which))
            return returned

        return simulate

    return standard


def _scaled_times(factor: float, values: Sequence[Any], which: Callable[[int, int], bool]) -> list[Any]:
    """Return times of which some are multiplied. What is no number stays as it is."""
    slow = [which(place, len(values)) and isinstance(value, (int, float)) for place, value in enumerate(values)]
    return [value * factor if each else value for value, each in zip(values, slow, strict=True)]


def _first(place: int, count: int) -> bool:
    return place == 0


def _last(place: int, count: int) -> bool:
    return place == count - 1


def _every(place: int, count: int) -> bool:
    return True


def _none(place: int, count: int) -> bool:
    return False


def _late(function: Function) -> Function:
    """Return a simulator of the page from one in which a message takes twice the latency."""

    @wraps(function)
    def simulate(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Any:
        return function(orders, forward, backward, latency / 2)

    return simulate


def _later(function: Function) -> Function:
    """Return a simulator that begins at 0 ms, from one that begins later."""

    def on_the_page(times: Times) -> Times:
        return {op: (start - BEGINS_AT, end - BEGINS_AT) for op, (start, end) in times.items()}

    @wraps(function)
    def simulate(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Any:
        return in_words_of_the_page(function(orders, forward, backward, latency), read_times, on_the_page)

    return simulate


DIRECTION = "forwards go from stage K-1 down to stage 0, and gradients come back from stage 0 up to stage K-1"
CLOCKS_OF_TWISTS = (
    Change("slow-device-0", "device 0 takes twice the times in the lists", _takes_twice(_first, _first)),
    Change("slow-last-device", "the last device takes twice the times in the lists", _takes_twice(_last, _last)),
    Change("long-backwards", "a backward on device d takes twice backward[d]", _takes_twice(_none, _every)),
    Change("slow-messages", "a message takes twice `latency`", _late),
    Change("later-begin", f"the step begins at {BEGINS_AT} ms, not at 0", _later),
)


def _down(clock: Change) -> Twist:
    return Twist(f"last-stage-first-{clock.name}", f"{DIRECTION}; {clock.words}", lambda function: _from_the_last(clock.function(function)))


CLOCK_TWISTS = (
    Twist("last-stage-first", DIRECTION, _from_the_last),
    *(Twist(*each) for each in CLOCKS_OF_TWISTS),
    *(_down(each) for each in CLOCKS_OF_TWISTS),
)
