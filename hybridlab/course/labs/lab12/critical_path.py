"""The coding task ('build') of lab 12 in which a student finds the critical path of a timeline.

This file has the timelines of its cases, the known mistakes and the changes of the task ('twists').
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Unordered, plain_values, require_orders
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import REVERSED, Map, like, one_way, operations, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate

Row = dict[str, Any]  # one row of Timeline.to_rows()
Rows = list[Row]
WITHIN = 1e-6  # ms: smaller differences come from rounding

# Schedule, devices, microbatches, chunks, latency in ms
RUNS = [
    ("1f1b", 1, 1, 1, 0),
    ("1f1b", 2, 1, 1, 0),
    ("1f1b", 2, 1, 1, 0.5),
    ("1f1b", 1, 3, 1, 0),
    ("gpipe", 2, 2, 1, 1),
    ("gpipe", 2, 3, 1, 30),  # a message takes longer than the two forwards between the last forward of microbatch 0 and its backward
    ("interleaved", 1, 2, 2, 20),
    ("1f1b", 3, 2, 1, 3),
    ("interleaved", 2, 2, 2, 3),
    ("hanayo", 2, 2, 2, 1),
    ("1f1b", 3, 4, 1, 0),
    ("zb-h1", 3, 4, 1, 1),
    ("zb-h2", 3, 5, 1, 30),  # a message takes longer than the operations between an input gradient and its weight gradient
    ("gpipe", 4, 3, 1, 0.5),
    ("interleaved", 2, 4, 2, 0),
    ("1f1b", 4, 8, 1, 9.25),
    ("looped-bfs", 2, 4, 2, 40),
    ("hanayo", 4, 4, 2, 6.5),
    ("interleaved", 3, 6, 2, 7),
    ("looped-bfs", 3, 6, 2, 1),
    ("zb-h1", 4, 8, 1, 0),
    ("interleaved", 4, 8, 2, 1),
    ("interleaved", 4, 8, 4, 6),
    ("hanayo", 4, 8, 4, 3),
    ("1f1b", 6, 12, 1, 7),
]


def runs_of_many_kinds(rng: np.random.Generator) -> Iterator[Case]:
    """Yield timelines from one device and one microbatch up. Every third timeline has devices of different speeds."""
    for place, (name, devices, microbatches, chunks, latency) in enumerate(RUNS):
        forward, backward = (int(rng.integers(*limits)) / 2 for limits in ((1, 10), (9, 21)))
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
    """Return the row of the operation that makes the input of the operation of ``row``; None if there is no such row.

    A weight gradient needs the input gradient of its own stage. Every other operation needs the output of a neighbouring stage.
    """
    stage = row["stage"] + {"F": -1, "W": 0}.get(row["kind"], 1)
    kind = "I" if row["kind"] == "W" else row["kind"]
    return row_of.get(f"{stage}{kind}{row['microbatch']}")


class Before(NamedTuple):
    """What an operation could have waited for, when a program goes back from it; None if there is no such operation.

    Parameters
    ----------
    on_device : Row or None
        The operation before it on its device.
    input : Row or None
        The operation that makes its input, as :func:`input_of` finds it.
    own_forward : Row or None
        For a backward of the last stage, the forward of the same microbatch.
    latency, sent : float
        The latency in ms, and the time in ms that the input really travels: 0 within a device.
    """

    on_device: Row | None
    input: Row | None
    own_forward: Row | None
    latency: float
    sent: float


# Returns rows, each with a delay in ms: the row's operation lets the next operation start this long after its own end.
Candidates = Callable[[Before], list[tuple[Row | None, float]]]


def _back(candidates: Candidates, among_equal: int) -> Callable[[Rows, float], list[str]]:
    """Return a function that goes back from the operation that ends last. Each time it takes the latest of some candidates.

    If several candidates are equally late, it takes the first (``among_equal`` is 0) or the last one (``among_equal`` is -1).
    """

    def path(rows: Rows, latency: float) -> list[str]:
        row_of = {row["op"]: row for row in rows}
        before = {now["op"]: last for last, now in itertools.pairwise(rows) if last["device"] == now["device"]}
        now: Row | None = max(rows, key=lambda row: row["end"])
        found: list[str] = []
        while now is not None and len(found) < len(rows):
            found.insert(0, now["op"])
            needed = input_of(now, row_of)
            own = row_of.get(f"{now['stage']}F{now['microbatch']}") if needed is None and now["kind"] != "F" else None
            sent = latency * (needed is not None and needed["device"] != now["device"])
            there = candidates(Before(before.get(now["op"]), needed, own, latency, sent))
            ends = [(row["end"] + delay, row) for row, delay in there if row is not None]
            now = [row for end, row in ends if end == max(ends, key=itemgetter(0))[0]][among_equal] if ends else None
        return found

    return path


def _mistakes_on_the_way(
    code: str, sentence: str, candidates: Candidates, under: Mapping[str, str] | None = None, left_out: int = 0
) -> list[KnownMistake]:
    """Return a known mistake for both choices among equal candidates. The path lacks its first ``left_out`` operations."""
    paths = [_back(candidates, among_equal) for among_equal in (0, -1)]
    return [KnownMistake(code, sentence, lambda *case, path=path: path(*case)[left_out:], under or {}) for path in paths]


def _any_operation(rows: Rows, latency: float) -> list[str]:
    """Return a path in which each operation ends when the next one starts, whether or not the next one needs it.

    If several operations end at this time, the path takes the last of their rows.
    """
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


ONE_MICROBATCH = "this goes from input to input, through one microbatch alone: operations also wait while a device runs other microbatches"
MISTAKES = (
    *_mistakes_on_the_way(
        "latency-forgotten",
        "this compares two ends without the latency: an input from another device arrives `latency` ms after its operation ends",
        lambda before: [(before.on_device, 0.0), (before.input, 0.0)],
        under={
            "there-and-back": "this compares two ends without the latency: an input from another device arrives `latency` / 2 ms "
            "after its operation ends",
            "seconds": "this compares two ends without the latency: an input from another device arrives `latency` seconds "
            "after its operation ends",
        },
    ),
    *_mistakes_on_the_way(
        "latency-within-a-device",
        "this adds the latency to every input: from one chunk to another of the same device no message is sent",
        lambda before: [(before.on_device, 0.0), (before.input, before.latency)],
    ),
    *_mistakes_on_the_way(
        "latency-after-an-operation-of-its-own",
        "this adds the latency to every input: the last stage needs its own forward, and a weight gradient its own input gradient, and a "
        "device sends no message to itself",
        lambda before: [(before.on_device, 0.0), (before.input or before.own_forward, before.latency)],
    ),
    KnownMistake("one-device", "these are all operations of one device: while a device is idle, it waits for another device", _one_device),
    KnownMistake("one-microbatch", ONE_MICROBATCH, _one_microbatch),
    *_mistakes_on_the_way("one-microbatch", ONE_MICROBATCH, lambda before: [(before.input or before.own_forward, 0.0)]),
    KnownMistake(
        "not-needed",
        "this takes any operation that ends at the right time: only the one before on the device and the one that makes its input count",
        _any_operation,
    ),
    *_mistakes_on_the_way(
        "first-operation-missing",
        "this lacks the first operation: the path begins where the step begins",
        lambda before: [(before.on_device, 0.0), (before.input, before.sent)],
        under={"last-first": "this lacks the operation with which the step begins: the list ends with it"},
        left_out=1,
    ),
    *_mistakes_on_the_way(
        "inputs-first",
        "this goes to the input of an operation wherever there is one: an input counts only if the operation waited for it",
        lambda before: [(before.input or before.on_device, 0.0)],
    ),
)


class RowsOfExample(list[Row]):
    """Rows of an example. Their text has only each operation, its start and its end, so that the example is short."""

    def __repr__(self) -> str:
        """Return the operations with their times."""
        return f"[{'; '.join('{op}: start {start:g}, end {end:g}'.format(**row) for row in self)}]"


def each_row(change: Callable[[Row, Rows], Row]) -> Map:
    """Return the map that changes each row. ``change`` takes a row and all rows, and returns the new values in this row."""
    return one_way(lambda rows: type(rows)(row | change(row, rows) for row in rows))


def _from_the_last(stage: int, microbatch: int, case: tuple[Any, ...]) -> tuple[int, int]:
    """Return the stage of an operation, counted from the last stage, and its microbatch."""
    return max(row["stage"] for row in case[0]) - stage, microbatch


def _turned(row: Row, rows: Rows) -> Row:
    stage, _ = _from_the_last(row["stage"], 0, (rows,))
    return {"op": f"{stage}{row['kind']}{row['microbatch']}", "stage": stage}


def _time_left(row: Row, rows: Rows) -> Row:
    last = max(each["end"] for each in rows)
    return {"start": last - row["start"], "end": last - row["end"]}


def _places(path: Any, case: tuple[Any, ...]) -> Any:
    ops = [row["op"] for row in case[0]]
    return like(path, [ops.index(op) for op in path])


def _ops_at(places: Any, case: tuple[Any, ...]) -> Any:
    return like(places, [case[0][place]["op"] for place in places])


BEGINS_AT = 5  # ms
EXAMPLES = (
    Example(
        (RowsOfExample(simulate(build("1f1b", 2, 1), Costs(forward=1, backward=2, p2p=0.5)).to_rows()), 0.5), ["0F0", "1F0", "1B0", "0B0"]
    ),
)
TWISTS = (
    Twist("last-first", "the list runs from the last operation back to the first", result=REVERSED),
    Twist(
        "there-and-back",
        "`latency` is the time of two messages, one there and one back, which take equally long",
        given={1: scaled(2)},
        about="latency",
    ),
    Twist(
        "lengths",
        'row["end"] is not the time at which the operation ends, but how long it takes',
        given={0: each_row(lambda row, rows: {"end": row["end"] - row["start"]})},
        about="times",
    ),
    Twist(
        "last-stage-first",
        "forwards go from the last stage, vK-1, down to stage 0, and gradients come back from stage 0 up to the last stage",
        given={0: each_row(_turned)},
        result=operations(_from_the_last, _from_the_last),
        about="operations",
    ),
    Twist(
        "time-left",
        'row["start"] and row["end"] are the ms that are left until the end of the step, so the last operation has an end of 0',
        given={0: each_row(_time_left)},
        about="times",
    ),
    Twist(
        "places",
        "the function returns the place of each operation in `rows`, counted from 0",
        result=Map(_places, _ops_at),
        about="operations",
    ),
    Twist("seconds", "`latency` is in seconds, and the times in the rows stay in ms", given={1: scaled(0.001)}, about="latency"),
    Twist(
        "later-begin",
        f"the step begins at {BEGINS_AT} ms, not at 0",
        given={0: each_row(lambda row, rows: {"start": row["start"] + BEGINS_AT, "end": row["end"] + BEGINS_AT})},
        about="times",
    ),
)
