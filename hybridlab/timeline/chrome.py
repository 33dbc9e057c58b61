"""The writer of traces in Chrome's format. Perfetto draws such traces."""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

Row = Mapping[str, Any]
# For each kind of span, the name of the additional track that shows spans of this kind.
TRACKS = {"send": "send", "receive": "receive", "reduce-scatter": "ring", "all-gather": "ring"}
DETAILS = ("stage", "microbatch", "chunk", "step", "peer", "nbytes")
OWN = "hybridlab"  # the entry in otherData that marks the traces of this library


def chrome_trace(rows: Sequence[Row], microseconds: float, title: str, pipeline: int | None = None) -> dict[str, Any]:
    """Return the rows of a timeline as a Chrome trace: one track and one counter of activations for each device.

    The track of a device has one slice for each operation. Below it are additional tracks for sends, receives and hops of rings. There are
    so many additional tracks that slices on the same track do not overlap. On the device's own track, only the two operations of an
    overlapped pair overlap: they begin and end together, and viewers draw one below the other.

    Parameters
    ----------
    rows : sequence of mappings
        The rows of :meth:`Timeline.to_rows`.
    microseconds : float
        The unit of time of the rows, in microseconds.
    title : str
        Name of the process in the trace.
    pipeline : int, optional
        The number of devices of a pipeline: each pipeline is then a process of its own. If it is left out, all devices are one process.

    Returns
    -------
    dict
        A trace in the Trace Event Format. Its times are in microseconds.

    Examples
    --------
    >>> op = {"device": 0, "op": "0F0", "kind": "F", "stage": 0, "microbatch": 0}
    >>> row = op | {"start": 0.0, "end": 2.0, "activations": 1.0}
    >>> [event["ph"] for event in chrome_trace([row], 1000.0, "tiny")["traceEvents"]]
    ['M', 'M', 'X', 'C']
    """
    devices = sorted({row["device"] for row in rows})
    track_of, beside = _tracks(rows, first=1 + devices[-1])
    names = [(device, device, f"device {device}") for device in devices]
    names += [(device, track, f"device {device}: {lane}") for track, (device, lane) in enumerate(beside, start=1 + devices[-1])]
    process_of = {device: 0 if pipeline is None else device // pipeline for device in devices}
    processes = sorted(set(process_of.values()))
    events: list[dict[str, Any]] = [
        _metadata("process_name", process, 0, name=title if pipeline is None else f"{title}, replica {process}") for process in processes
    ]
    events += [_metadata("thread_name", process_of[device], track, name=name) for device, track, name in names]
    if beside:
        places = enumerate(sorted(names))  # each device's own track, then its other tracks
        events += [_metadata("thread_sort_index", process_of[device], track, sort_index=place) for place, (device, track, _) in places]
    # the activation of one chunk; a run that has failed has no activations
    chunk = min((row["activations"] for row in rows if row["kind"] == "F" and row["activations"] is not None), default=0.0)
    for row, tid in zip(rows, track_of, strict=True):
        start, end = row["start"] * microseconds, row["end"] * microseconds
        track = {"pid": process_of[row["device"]], "tid": tid, "ts": start}
        details = {name: row[name] for name in DETAILS if row.get(name, -1) != -1}
        written = {"start": start / microseconds, "end": (start + (end - start)) / microseconds}  # the times that a reader will compute
        details |= {name: row[name] for name, time in written.items() if time != row[name]}  # only the times that rounding has changed
        events.append({"ph": "X", "name": row["op"], "cat": row["kind"], **track, "dur": end - start, "args": details})
        if row["activations"] is None:
            continue
        counter = {"ph": "C", "name": f"activations of device {row['device']}", **track}
        events.append({**counter, "args": {"microbatches": row["activations"]}})
        if row["kind"] in "BW":
            events.append({**counter, "ts": end, "args": {"microbatches": row["activations"] - chunk}})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _tracks(rows: Sequence[Row], first: int) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the track of each row, and the device and name of each additional track. Additional tracks are numbered from ``first``."""
    track_of = [row["device"] for row in rows]
    beside: list[tuple[int, str]] = []
    lanes: dict[tuple[int, str], list[tuple[float, int]]] = {}  # (device, name): heap of (time at which the track is free again, track)
    for place in sorted((place for place, row in enumerate(rows) if row["kind"] in TRACKS), key=lambda place: rows[place]["start"]):
        row = rows[place]
        lane = (row["device"], TRACKS[row["kind"]])
        free = lanes.setdefault(lane, [])
        if free and free[0][0] <= row["start"]:
            track = heappop(free)[1]
        else:
            track = first + len(beside)
            beside.append((lane[0], lane[1] + (f" {len(free) + 1}" if free else "")))
        heappush(free, (row["end"], track))
        track_of[place] = track
    return track_of, beside


def _metadata(event: str, process: int, track: int, **arguments: str | int) -> dict[str, Any]:
    """Return a metadata event of a track."""
    return {"ph": "M", "name": event, "pid": process, "tid": track, "args": arguments}
