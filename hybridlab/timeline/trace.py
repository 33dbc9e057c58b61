"""Rows of a timeline as a trace that Perfetto and chrome://tracing open."""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

Row = Mapping[str, Any]
LANES = {"send": "send", "receive": "receive", "reduce-scatter": "ring", "all-gather": "ring"}  # beside the device's own
DETAILS = ("stage", "microbatch", "chunk", "step", "peer", "nbytes")


def chrome_trace(rows: Sequence[Row], microseconds: float, title: str) -> dict[str, Any]:
    """Return ``rows`` as a Chrome trace: a track a device, a slice an operation, a counter of activations a device.

    ``rows`` are those of ``Timeline.to_rows``; ``microseconds`` is the length of the caller's unit of time. What a
    device sends, what it receives and its rings stand on tracks of their own below the device's, as many as it takes
    for slices of one track never to overlap. Only the two of an overlapped pair do: they begin and end together on the device's
    track, where viewers draw the backward nested, below the forward.

    >>> op = {"device": 0, "op": "0F0", "kind": "F", "stage": 0, "microbatch": 0}
    >>> row = op | {"start": 0.0, "end": 2.0, "activations": 1.0}
    >>> [event["ph"] for event in chrome_trace([row], 1000.0, "tiny")["traceEvents"]]
    ['M', 'M', 'X', 'C']
    """
    devices = sorted({row["device"] for row in rows})
    track_of, beside = _tracks(rows, first=1 + devices[-1])
    names = [(device, device, f"device {device}") for device in devices]
    names += [(device, track, f"device {device}: {lane}") for track, (device, lane) in enumerate(beside, start=1 + devices[-1])]
    events: list[dict[str, Any]] = [_named("process_name", 0, name=title)]
    events += [_named("thread_name", track, name=name) for _, track, name in names]
    if beside:
        places = enumerate(sorted(names))  # a device's own track, then those beside it
        events += [_named("thread_sort_index", track, sort_index=place) for place, (_, track, _) in places]
    chunk = min((row["activations"] for row in rows if row["kind"] == "F"), default=0.0)  # a device's first forward
    for row, tid in zip(rows, track_of, strict=True):
        start, end = row["start"] * microseconds, row["end"] * microseconds
        track = {"pid": 0, "tid": tid, "ts": start}
        details = {name: row[name] for name in DETAILS if row.get(name, -1) != -1}
        events.append({"ph": "X", "name": row["op"], "cat": row["kind"], **track, "dur": end - start, "args": details})
        if row["activations"] is None:
            continue
        counter = {"ph": "C", "name": f"activations of device {row['device']}", **track}
        events.append({**counter, "args": {"microbatches": row["activations"]}})
        if row["kind"] in "BW":
            events.append({**counter, "ts": end, "args": {"microbatches": row["activations"] - chunk}})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _tracks(rows: Sequence[Row], first: int) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the track of every row, and (device, name) of the tracks from ``first`` up, which stand beside a device's own."""
    track_of = [row["device"] for row in rows]
    beside: list[tuple[int, str]] = []
    lanes: dict[tuple[int, str], list[tuple[float, int]]] = {}  # when each track of a lane is free again
    for place in sorted((place for place, row in enumerate(rows) if row["kind"] in LANES), key=lambda place: rows[place]["start"]):
        row = rows[place]
        lane = (row["device"], LANES[row["kind"]])
        free = lanes.setdefault(lane, [])
        if free and free[0][0] <= row["start"]:
            track = heappop(free)[1]
        else:
            track = first + len(beside)
            beside.append((lane[0], lane[1] + (f" {len(free) + 1}" if free else "")))
        heappush(free, (row["end"], track))
        track_of[place] = track
    return track_of, beside


def _named(what: str, track: int, **how: str | int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 0, "tid": track, "args": how}
