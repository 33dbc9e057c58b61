"""The reader of traces that this library has written. The timeline that is read equals the timeline that was written."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import in_a_second, unit_of_time, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Operations, Schedule
from hybridlab.schedule.replicated import side_by_side
from hybridlab.timeline.chrome import DETAILS, OWN
from hybridlab.timeline.events import Event, read_events
from hybridlab.timeline.recordings import chosen
from hybridlab.timeline.spans import SPAN_KINDS, Spans


class OwnTrace:
    """The events of a trace that :meth:`hybridlab.Timeline.to_chrome_trace` has written."""

    def __init__(self, path: Path) -> None:
        self.name, self.title = path.name, ""
        self.slices: list[Event] = []
        self.device_of: dict[Any, int] = {}  # the device of each track
        self.about: Mapping[str, Any] = read_events(path, self._take)["otherData"][OWN]

    def _take(self, event: Event) -> None:
        """Store an event if it is a slice, the name of the process, or the name of a track."""
        if event.get("name") == "process_name":
            self.title = event["args"]["name"]
        elif event.get("name") == "thread_name":
            # an additional track has a name such as "device 3: send"
            self.device_of[event["tid"]] = int(re.sub(r"^device ([0-9]+).*", r"\1", event["args"]["name"]))
        elif event.get("ph") == "X":
            self.slices.append(event)


def read_own_trace(trace: OwnTrace, replica: int | None) -> tuple[Operations, Floats, Floats, Spans | None, str | None]:
    """Return the schedule, the starts and ends of its operations, the spans and the unit of a timeline.

    With ``replica``, return one of several pipelines, without spans: a ring belongs to all pipelines.

    Raises
    ------
    HybridLabError
        ``damaged-trace``: an event is missing, occurs twice, or has no time. ``out-of-range``: there is no such replica.
    """
    try:
        unit = unit_of_time(trace.about["unit"])
        one = Schedule.parse(trace.about["orders"], name=trace.title)
        replicas = whole_number(trace.about["replicas"], "replicas", at_least=0)
        schedule: Operations = side_by_side(one, replicas) if replicas else one
        row_of = {place: row for row, place in enumerate(zip(schedule.device.tolist(), map(str, schedule.ops), strict=True))}
        microseconds = 1e6 / in_a_second(unit, "a trace")
        times: dict[int, tuple[float, float]] = {}
        spans: list[Event] = []
        for event in trace.slices:
            row = row_of.get((trace.device_of[event["tid"]], event["name"]))
            if row is None:
                spans.append(event)
            elif row in times:
                raise _damaged(trace, f"it has {event['name']} twice")
            else:
                times[row] = _exact_times(event, microseconds)
        for (device, op), row in row_of.items():
            if row not in times:
                raise _damaged(trace, f"it lacks {op} of device {device}")
        start, end = (np.array(column) for column in zip(*(times[row] for row in range(len(row_of))), strict=True))
        read = _spans(trace, spans, row_of, microseconds) if trace.about["spans"] else None
    except (KeyError, TypeError, AttributeError, ValueError) as why:
        if isinstance(why, HybridLabError):  # HybridLabError is a ValueError too, and its sentence says more
            raise
        raise _damaged(trace, f"this entry is missing or wrong: {why}") from None
    if replica is None or not chosen([f"replica {each}" for each in range(max(1, replicas))], replica) or not replicas:
        return schedule, start, end, read, unit
    rows = slice(replica * one.kind.size, (replica + 1) * one.kind.size)
    return one, start[rows], end[rows], None, unit


def _damaged(trace: OwnTrace, what: str) -> HybridLabError:
    """Return the error for a trace of this library that somebody has changed."""
    return HybridLabError(f"{trace.name} was written by to_chrome_trace() and then changed: {what}; write it again", "damaged-trace")


def _exact_times(event: Event, microseconds: float) -> tuple[float, float]:
    """Return the start and the end of an event in the unit of the timeline. If rounding has changed a time, ``args`` has the exact time."""
    arguments = event["args"]
    start, end = event["ts"] / microseconds, (event["ts"] + event["dur"]) / microseconds
    return float(arguments.get("start", start)), float(arguments.get("end", end))


def _spans(trace: OwnTrace, events: Sequence[Event], row_of: Mapping[tuple[int, str], int], microseconds: float) -> Spans:
    """Return the messages, hops and optimisers in a trace."""
    for event in events:
        if event["cat"] not in SPAN_KINDS:
            raise _damaged(trace, f"its event {event['name']!r} is not an operation of the schedule")
    devices = [trace.device_of[event["tid"]] for event in events]
    details: dict[str, list[int]] = {name: [event["args"].get(name, -1) for event in events] for name in DETAILS}
    rows = []
    for event, device, peer in zip(events, devices, details["peer"], strict=True):
        sender = peer if event["cat"] == "receive" else device  # a message belongs to the operation of its sender
        rows.append(row_of.get((sender, event["name"].removeprefix(event["cat"] + " ")), -1))
    times = np.array([_exact_times(event, microseconds) for event in events]).reshape(-1, 2)
    kinds = [SPAN_KINDS.index(event["cat"]) for event in events]
    columns: dict[str, Any] = details | {"row": rows}
    return Spans(kinds, devices, times[:, 0], times[:, 1], **columns)  # type: ignore[arg-type]
