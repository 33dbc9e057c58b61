"""Operators of torch between two messages. They show where a forward or a backward ran, if the trace has no range for it."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from hybridlab.schedule import Kind

Track = tuple[Any, ...]  # process and thread of an event: its pid and tid


class Run(NamedTuple):
    """The operators of one forward or backward, or one operator of it. Times are in microseconds on the clock of the file."""

    start: float
    end: float
    kind: Kind | None  # None for a message
    track: Track


def runs_between(operators: Iterable[Run]) -> Iterator[Run]:
    """Yield the forwards and backwards that the operators and messages of one process form.

    A forward is all operators that have a backward, up to the next message or backward. A backward is all operators of the autograd engine,
    up to the next message or forward. What runs within an operator of a backward belongs to this backward: a forward that is computed
    again, or a message.

    >>> rows = [(0, 4, Kind.F), (2, 3, Kind.F), (5, 5, None), (6, 7, Kind.F), (9, 12, Kind.B), (10, 11, Kind.F), (13, 14, Kind.B)]
    >>> [(run.kind.value, run.start, run.end) for run in runs_between(Run(*row, (0, 0)) for row in rows)]
    [('F', 0, 4), ('F', 6, 7), ('B', 9, 14)]
    """
    now: Run | None = None
    backward_until = float("-inf")
    for each in sorted(operators, key=lambda each: (each.start, -each.end)):
        if each.kind is not Kind.B and each.start < backward_until:
            continue
        if each.kind is Kind.B:
            backward_until = max(backward_until, each.end)
        if now is not None and now.kind is each.kind:
            now = now._replace(end=max(now.end, each.end))
            continue
        if now is not None:
            yield now
        now = None if each.kind is None else each
    if now is not None:
        yield now
