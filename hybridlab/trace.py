"""Rows of a timeline as a trace that Perfetto and chrome://tracing open."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def chrome_trace(rows: Sequence[Row], microseconds: float, title: str) -> dict[str, Any]:
    """Return ``rows`` as a Chrome trace: a track a device, a slice an operation, a counter of activations a device.

    ``rows`` are those of ``Timeline.to_rows``; ``microseconds`` is the length of the caller's unit of time.

    >>> op = {"device": 0, "op": "0F0", "kind": "F", "stage": 0, "microbatch": 0}
    >>> row = op | {"start": 0.0, "end": 2.0, "activations": 1.0}
    >>> [event["ph"] for event in chrome_trace([row], 1000.0, "tiny")["traceEvents"]]
    ['M', 'M', 'X', 'C']
    """
    devices = sorted({row["device"] for row in rows})
    events: list[dict[str, Any]] = [_named("process_name", 0, title)]
    events += [_named("thread_name", device, f"device {device}") for device in devices]
    chunk = min((row["activations"] for row in rows if row["kind"] == "F"), default=0.0)  # a device's first forward
    for row in rows:
        start, end = row["start"] * microseconds, row["end"] * microseconds
        track = {"pid": 0, "tid": row["device"], "ts": start}
        details = {"stage": row["stage"], "microbatch": row["microbatch"]}
        events.append({"ph": "X", "name": row["op"], "cat": row["kind"], **track, "dur": end - start, "args": details})
        counter = {"ph": "C", "name": f"activations of device {row['device']}", **track}
        events.append({**counter, "args": {"microbatches": row["activations"]}})
        if row["kind"] in "BW":
            events.append({**counter, "ts": end, "args": {"microbatches": row["activations"] - chunk}})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 0, "tid": track, "args": {"name": name}}
