"""Lab 12's builds with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

import re
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Rows = list[dict[str, Any]]


def with_names(name: Callable[[int, int], int]) -> Callable[[Function], Function]:
    """Return the change that gives microbatch m of M another number."""

    def change(interleaved: Function) -> Function:
        def own(*sizes: int) -> list[str]:
            lines = interleaved(*sizes)
            count = len(set(re.findall(r"F\d+", lines[0])))
            return [re.sub(r"(?<=[FBIW])\d+", lambda number: str(name(int(number[0]), count)), line) for line in lines]

        return own

    return change


def with_rows(change: Callable[[Rows], Rows]) -> Callable[[Function], Function]:
    return lambda critical_path: lambda rows, latency: critical_path(change(rows), latency)


def from_time_left(rows: Rows) -> Rows:
    whole = max(row["start"] for row in rows)
    return [row | {"start": whole - row["start"], "end": whole - row["end"]} for row in rows]


def last_stage_first(critical_path: Function) -> Function:
    def own(rows: Rows, latency: float) -> Any:
        def turned(row: dict[str, Any]) -> dict[str, Any]:
            stage = max(each["stage"] for each in rows) - row["stage"]
            return row | {"stage": stage, "op": f"{stage}{row['kind']}{row['microbatch']}"}

        own_name = {turned(row)["op"]: row["op"] for row in rows}
        return [own_name[op] for op in critical_path([turned(row) for row in rows], latency)]

    return own


def places(critical_path: Function) -> Function:
    def own(rows: Rows, latency: float) -> Any:
        place_of = {row["op"]: place for place, row in enumerate(rows)}
        return [place_of[op] for op in critical_path(rows, latency)]

    return own


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab12.t5": {
        "reversed-stages": lambda interleaved: lambda *sizes: interleaved(*sizes)[::-1],
        "one-stage-further": lambda interleaved: lambda *sizes: interleaved(*sizes)[1:] + interleaved(*sizes)[:1],
        "last-microbatch-first": with_names(lambda number, count: count - 1 - number),
        "microbatch-0-last": with_names(lambda number, count: number + 1 if number < count - 1 else 0),
        "even-microbatches": with_names(lambda number, count: 2 * number),
        "split-backward": lambda interleaved: lambda *sizes: [re.sub(r"(\d+)B(\d+)", r"\1I\2 \1W\2", line) for line in interleaved(*sizes)],
        "chunks-first": lambda interleaved: lambda chunks, devices, microbatches: interleaved(devices, microbatches, chunks),
    },
    "lab12.t6": {
        "last-first": lambda critical_path: lambda rows, latency: critical_path(rows, latency)[::-1],
        "there-and-back": lambda critical_path: lambda rows, latency: critical_path(rows, latency / 2),
        "seconds": lambda critical_path: lambda rows, latency: critical_path(rows, 1000 * latency),
        "lengths": with_rows(lambda rows: [row | {"end": row["start"] + row["end"]} for row in rows]),
        "time-left": with_rows(from_time_left),
        "later-begin": with_rows(lambda rows: [row | {"start": row["start"] - 5, "end": row["end"] - 5} for row in rows]),
        "last-stage-first": last_stage_first,
        "places": places,
    },
}
