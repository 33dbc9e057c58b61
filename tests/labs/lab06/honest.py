"""Lab 6's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

Rows = list[dict[str, Any]]
Function = Callable[..., Any]


def last_end(rows: Rows) -> float:
    return max(row["end"] if "end" in row else row["start"] + row["duration"] for row in rows)


def with_times(change: Function) -> Callable[[Function], Function]:
    """Change the two times of each ring; the change gets the rows, too."""
    return lambda overlapped_rings: (
        lambda rows, ring_time: {stage: change(start, other, rows) for stage, (start, other) in overlapped_rings(rows, ring_time).items()}
    )


def one_step(overlapped_rings: Function) -> Function:
    def own(rows: Rows, ring_time: float) -> Any:
        replicas = len({row["device"] for row in rows if row["stage"] == 0})
        return overlapped_rings(rows, 2 * (replicas - 1) * ring_time)

    return own


def link_rests(overlapped_rings: Function) -> Function:
    """Let a ring and its pause be a ring of the text, and leave the pause out of the second number."""
    return lambda rows, ring_time: {
        stage: [start, other - ring_time] for stage, (start, other) in overlapped_rings(rows, 2 * ring_time).items()
    }


def durations(overlapped_rings: Function) -> Function:
    def own(rows: Rows, ring_time: float) -> Any:
        return overlapped_rings([{**row, "end": row["start"] + row["duration"]} for row in rows], ring_time)

    return own


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab06.t5": {
        "one-half": lambda overlapped_rings: lambda rows, ring_time: overlapped_rings(rows, 2 * ring_time),
        "one-step": one_step,
        "link-rests": link_rests,
        "start-and-length": with_times(lambda start, end, rows: (start, end - start)),
        "after-the-pipelines": with_times(lambda start, end, rows: (start - last_end(rows), end - last_end(rows))),
        "optimiser-ends": with_times(lambda start, end, rows: (start, end + 5)),
        "durations": durations,
    }
}
