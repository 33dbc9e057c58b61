"""One schedule's order and its times as plain data, from which JavaScript alone can draw it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.palette import shade_colour
from hybridlab.schedule import KINDS
from hybridlab.schedule.text import turn_text
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

MOST_OPS = 12_500  # of one timeline: a browser draws two such in 1.0 to 1.5 s (measured, headless Chromium on two cores)

Data = dict[str, Any]


def pipeline(name: str, devices: int, microbatches: int, chunks: int, costs: Costs) -> Data:
    """Return one schedule's order, and its times at every latency of ``costs``; or the sentence ``refusal`` of why not.

    The keys are those that :func:`hybridlab.widgets.grid.grid_data` lists. Refused is a size that the schedule does not
    support or that has more operations than can be drawn. Raises :class:`HybridLabError` for costs of other devices.

    >>> costs = Costs(forward=1, backward=2, p2p=[[0]])
    >>> pipeline("gpipe", 2, 1, 1, costs)["start"], pipeline("gpipe", 2, 1, 3, costs)
    ([[0, 4, 1, 2]], {'refusal': 'gpipe has 1 chunk a device, not 3; leave chunks out'})
    """
    refusal = REGISTRY[name].refusal(devices, microbatches, chunks)
    if refusal:
        return {"refusal": refusal}
    too_many = 2 * devices * chunks * microbatches > MOST_OPS
    schedule = None if too_many else build(name, devices, microbatches, chunks)
    if schedule is None or len(schedule.kind) > MOST_OPS:  # one that splits backwards has three for each stage and microbatch
        sizes = f"{counted(devices, 'device')} x {counted(microbatches, 'microbatch')} x {counted(chunks, 'chunk')}"
        message = f"{sizes} have more operations than the {MOST_OPS:,} that can be drawn"
        return {"refusal": f"{message}; try fewer microbatches, or simulate them in Python without a picture"}
    timeline = simulate(schedule, costs)
    table = costs.table(devices, chunks)[..., 0]
    settings = [timeline.at(place) for place in range(len(timeline.start))]
    entry = {
        "orders": [" ".join(map(turn_text, order)) for order in schedule.turns],
        "source": schedule.source.tolist(),
        "duration": {kind.value: short(row) for kind, row in zip(KINDS, table, strict=True)},
        "peak": short(timeline.peak_activations[0]),
        "start": [short(at.start) for at in settings],
        "late": [late(at) for at in settings],
        "makespan": short(timeline.makespan),
        "bubble": short(timeline.bubble_ratio),
    }
    if schedule.pairs.size:
        entry["duration"]["pair"] = short(costs.pairs(devices, chunks)[..., 0])
    if schedule.copies > 1:
        entry["copy"] = schedule.copy_of.tolist()
    return entry


def late(timeline: Timeline) -> list[int]:
    """Return the rows whose device stood idle for their input; of an overlapped pair the one whose input came later."""
    schedule, waited = timeline.schedule, timeline.blocking_operation()
    return np.flatnonzero((waited != schedule.before) & (waited == schedule.source)).tolist()


def pipeline_or_why_not(name: str, devices: int, microbatches: int, chunks: int, costs: Costs) -> Data:
    """Return :func:`pipeline`, with whatever this library refuses as the sentence ``refusal``."""
    try:
        return pipeline(name, devices, microbatches, chunks, costs)
    except HybridLabError as why:
        return {"refusal": str(why)}


def key(name: str, devices: int, microbatches: int, chunks: int) -> str:
    """Return the name of an entry.

    >>> key("1f1b", 4, 8, 1)
    '1f1b/4/8/1'
    """
    return f"{name}/{devices}/{microbatches}/{chunks}"


def kinds(chunks: Mapping[str, Iterable[int]]) -> Data:
    """Return for every kind of operation its words and the colours of its shades, by how many of them there are.

    ``chunks`` are the numbers of chunks a device of each schedule; there is a shade for each chunk of each copy of the weights.
    """
    counts = sorted({1, *(count * REGISTRY[name].copies for name, each in chunks.items() for count in each)})
    return {
        kind.value: {
            "words": kind.words,
            "colours": {str(count): [shade_colour(kind, shade, count) for shade in range(count)] for count in counts},
        }
        for kind in KINDS
    }


def short(values: Iterable[float]) -> list[float]:
    """Return the numbers to nine digits, whole ones as ints.

    >>> short([2.0, 1 / 3])
    [2, 0.333333333]
    """
    floats = (float(f"{value:.9g}") for value in values)
    return [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in floats]


def packed(data: Mapping[str, Any], sort_keys: bool = False) -> str:
    """Return the data as JSON without spaces: what a page carries."""
    return json.dumps(data, sort_keys=sort_keys, separators=(",", ":"))
