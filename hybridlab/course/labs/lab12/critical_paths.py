"""The timelines on which a student's critical path is tried, programs with a wrong rule, and the twists."""

import itertools
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Unordered, plain_values, require_orders
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, together
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate

Row = dict[str, Any]  # of Timeline.to_rows()
Rows = list[Row]
WITHIN = 1e-6  # ms: smaller differences come from rounding

# Schedule, devices, microbatches, chunks, latency in ms
RUNS = [
    ("1f1b", 1, 1, 1, 0),
    ("1f1b", 2, 1, 1, 0),
    ("1f1b", 2, 1, 1, 0.5),
    ("1f1b", 1, 3, 1, 0),
    ("gpipe", 2, 2, 1, 1),
    ("interleaved", 1, 2, 2, 20),
    ("1f1b", 3, 2, 1, 3),
    ("hanayo", 2, 2, 2, 1),
    ("interleaved", 2, 2, 2, 2),
    ("1f1b", 3, 4, 1, 0),
    ("zb-h1", 3, 4, 1, 1),
    ("gpipe", 4, 3, 1, 0.5),
    ("interleaved", 2, 4, 2, 0),
    ("1f1b", 4, 8, 1, 9),
    ("hanayo", 4, 4, 2, 6),
    ("interleaved", 3, 6, 2, 7),
    ("looped-bfs", 3, 6, 2, 1),
    ("zb-h1", 4, 8, 1, 0),
    ("interleaved", 4, 8, 2, 1),
    ("interleaved", 4, 8, 4, 6),
    ("hanayo", 4, 8, 4, 3),
    ("1f1b", 6, 12, 1, 7),
]


def runs_of_many_kinds(rng: np.random.Generator) -> Iterator[Case]:
    """Yield timelines from one device and one microbatch up. Every third one has devices of different speeds."""
    for place, (name, devices, microbatches, chunks, latency) in enumerate(RUNS):
        forward, backward = (int(rng.integers(*limits)) for limits in ((2, 6), (5, 11)))
        slower = rng.integers(2, 6, devices) / 2 if place % 3 == 0 else np.ones(devices)
        costs = Costs(forward=forward * slower, backward=backward * slower, p2p=latency)
        rows = simulate(build(name, devices, microbatches, chunks), costs).to_rows()
        each = f" with {chunks} chunks each" if chunks > 1 else ""
        sizes = f"{counted(devices, 'device')}{each} and {counted(microbatches, 'microbatch')}"
        yield Case((rows, float(latency)), f"{REGISTRY[name].title} on {sizes}, latency {latency:g} ms")
    late = simulate(build("zb-h1", 2, 2), Costs(forward=10, backward=16, weight_share=0.7))
    yield Case((late.to_rows(), 0.0), "ZB-H1 on 2 devices and 2 microbatches, where device 1 ends last")


def schedule_of(rows: Rows) -> Schedule:
    """Return the schedule whose timeline has these rows."""
    devices = 1 + max(row["device"] for row in rows)
    lines = [" ".join(row["op"] for row in rows if row["device"] == device) for device in range(devices)]
    return Schedule("the timeline", require_orders(lines))


def read_path(result: Any) -> list[str]:
    """Return the operations of a path as text."""
    values = plain_values(result)
    wanted = "the function returns a list of operations as text, such as ['0F0', '0B0']"
    if not isinstance(values, list) or isinstance(values, Unordered):
        raise HybridLabError(f"{wanted}, not {short_repr(values)}", "not-a-list")
    if not values:
        raise HybridLabError(f"{wanted}; yours is empty", "empty")
    others = [value for value in values if not isinstance(value, str)]
    if others:
        raise HybridLabError(f"{wanted}, but yours contains {short_repr(others[0])}", "not-text")
    return values


def input_of(row: Row, row_of: dict[str, Row]) -> Row | None:
    """Return the row of the operation on another stage whose output a row's operation needs; None if there is no such row."""
    stage = row["stage"] + {"F": -1, "W": 0}.get(row["kind"], 1)
    kind = "I" if row["kind"] == "W" else row["kind"]
    return row_of.get(f"{stage}{kind}{row['microbatch']}")


Step = Callable[[Row, Row | None, Row | None, float], Row | None]  # an operation, the one before it on its device, its input, the latency


def _back(step: Step) -> Callable[[Rows, float], list[str]]:
    """Return a function that goes back from the end of the timeline by a wrong rule, until there is no operation before."""

    def path(rows: Rows, latency: float) -> list[str]:
        row_of = {row["op"]: row for row in rows}
        before = {now["op"]: last for last, now in itertools.pairwise(rows) if last["device"] == now["device"]}
        now: Row | None = max(rows, key=lambda row: row["end"])
        found: list[str] = []
        while now is not None and len(found) < len(rows):
            found.insert(0, now["op"])
            now = step(now, before.get(now["op"]), input_of(now, row_of), latency)
        return found

    return path


def _latest(*rows: tuple[Row | None, float]) -> Row | None:
    """Return the row that ends last, each with a delay."""
    there = [(row["end"] + delay, place) for place, (row, delay) in enumerate(rows) if row is not None]
    return rows[max(there)[1]][0] if there else None


def _any_operation(rows: Rows, latency: float) -> list[str]:
    """Return a path in which each operation ends when the next one starts, needed or not; the last such row is taken."""
    path = [max(rows, key=lambda row: row["end"])]
    while path[0]["start"] > 0 and len(path) < len(rows):
        now = path[0]
        fits = [row for row in rows if abs(row["end"] + latency * (row["device"] != now["device"]) - now["start"]) < WITHIN]
        if not fits:
            break
        path.insert(0, fits[-1])
    return [row["op"] for row in path]


def _one_device(rows: Rows, latency: float) -> list[str]:
    last = max(rows, key=lambda row: row["end"])
    return [row["op"] for row in rows if row["device"] == last["device"]]


def _one_microbatch(rows: Rows, latency: float) -> list[str]:
    """Return the operations of the microbatch that ends last, in the order of their starts."""
    last = max(rows, key=lambda row: row["end"])
    mine = [row for row in rows if row["microbatch"] == last["microbatch"]]
    return [row["op"] for row in sorted(mine, key=lambda row: row["start"])]


def _but_the_first(now: Row, before: Row | None, needed: Row | None, latency: float) -> Row | None:
    """Return what an operation waited for, but not if that has started with the step."""
    other = needed is not None and needed["device"] != now["device"]
    found = _latest((before, 0.0), (needed, latency * other))
    return found if found is not None and found["start"] > 0 else None


PATH_MISTAKES = (
    KnownMistake(
        "latency-forgotten",
        "this takes the later of two ends without the message: an input from another device arrives `latency` ms after its operation",
        _back(lambda now, before, needed, late: _latest((before, 0.0), (needed, 0.0))),
    ),
    KnownMistake(
        "latency-within-a-device",
        "this adds the latency to every input: from one chunk to another of the same device no message is sent",
        _back(lambda now, before, needed, late: _latest((before, 0.0), (needed, late))),
    ),
    KnownMistake("one-device", "these are all operations of one device: while a device is idle it waits for another one", _one_device),
    KnownMistake(
        "one-microbatch",
        "this goes from input to input, so it has all operations of one microbatch: they also wait while a device runs other microbatches",
        _one_microbatch,
    ),
    KnownMistake(
        "not-needed",
        "this takes any operation that ends at the right time: only the one before on the device and the one that makes the input count",
        _any_operation,
    ),
    KnownMistake(
        "first-operation-missing",
        "this lacks the first operation: the path begins where the step begins",
        _back(_but_the_first),
    ),
    KnownMistake(
        "inputs-first",
        "this takes the input wherever there is one: it counts only if the operation waited for it",
        _back(lambda now, before, needed, late: needed or before),
    ),
)


def _in_other_words(
    rows_of: Callable[[Rows], Rows] = lambda rows: rows,
    latency_of: Callable[[float], float] = lambda latency: latency,
    path_of: Callable[[list[str]], list[str]] = lambda path: path,
) -> Callable[[Function], Function]:
    """Return a ``standard`` with functions for the rows and the latency that the function gets, and for the path that it returns."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def critical_path(rows: Rows, latency: float) -> Any:
            return in_words_of_the_page(function(rows_of(rows), latency_of(latency)), read_path, path_of)

        return critical_path

    return standard


def _last_end(rows: Rows) -> float:
    return float(max((row["end"] for row in rows), default=0.0))


def _to_the_end(rows: Rows) -> Rows:
    last = _last_end(rows)
    return [row | {"start": last - row.get("start", 0.0), "end": last - row["end"]} for row in rows]


LAST_FIRST = Twist(
    "last-first", "the list runs from the last operation back to the first", _in_other_words(path_of=lambda path: path[::-1])
)
THERE_AND_BACK = Twist(
    "there-and-back",
    "`latency` is the time of two messages, one there and one back, which take equally long",
    _in_other_words(latency_of=lambda latency: 2 * latency),
)
LENGTHS = Twist(
    "lengths",
    'row["end"] is not the time at which the operation ends, but how long it takes',
    _in_other_words(lambda rows: [row | {"end": row["end"] - row.get("start", 0.0)} for row in rows]),
)
TIME_LEFT = Twist(
    "time-left",
    'row["start"] and row["end"] are the ms that are left until the end of the step, so the last operation has an end of 0',
    _in_other_words(_to_the_end),
)
SECONDS = Twist(
    "seconds",
    "`latency` is in seconds, and the times in the rows stay in ms",
    _in_other_words(latency_of=lambda latency: latency / 1000),
)
PATH_TWISTS = (
    LAST_FIRST,
    THERE_AND_BACK,
    LENGTHS,
    TIME_LEFT,
    SECONDS,
    together(LENGTHS, LAST_FIRST),
    together(TIME_LEFT, LAST_FIRST),
    together(THERE_AND_BACK, LAST_FIRST),
    together(LENGTHS, THERE_AND_BACK),
    together(TIME_LEFT, SECONDS),
)
