"""The finished timelines of a grid of settings as plain data, from which JavaScript alone can draw any of them."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import islice, product
from typing import Any

import numpy as np

from hybridlab.clock import simulate
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.inputs import known_name, shown, times, whole_number
from hybridlab.ops import KINDS
from hybridlab.palette import chunk_colour
from hybridlab.schedules import REGISTRY, build

MOST_BYTES = 2_000_000  # what a page can carry for one picture
MOST_VALUES = 1_000  # on one axis of the grid
SIZES = ("devices", "microbatches", "chunks")

Data = dict[str, Any]
Axes = Mapping[str, list[Any]]


def grid_data(schedules: Any, axes: Mapping[str, Any], costs: Mapping[str, Any], unit: str = "") -> Data:
    """Return the timelines of every combination of the values of ``axes``, as data that ``json.dumps`` takes.

    ``axes`` has the keys devices, microbatches, chunks and p2p (in the unit of time), each a value or several. A schedule is offered
    those of the chunks that it supports, or its fewest; chunks None means the fewest. ``costs`` are the other
    arguments of :meth:`Costs.per_device`, for one setting.

    ``pipelines`` has one entry a combination, named "schedule/devices/microbatches/chunks". A refused one holds the sentence
    ``refusal``. The others hold ``orders`` (one text a device), ``source`` (the row whose output each row needs, -1 for
    none), ``duration`` (kind -> one time a device), ``peak`` (activations, one a device) and, with one entry a latency, ``start``
    (one time a row), ``late`` (rows whose device stood idle for their input), ``makespan`` and ``bubble``.

    Raises :class:`HybridLabError` for wrong values, for a grid where nothing runs, and for more than 2 MB of data.

    >>> axes = {"devices": 1, "microbatches": [1, 2], "chunks": None, "p2p": 0}
    >>> pipeline = grid_data("gpipe", axes, {"forward": 1, "backward": 2})["pipelines"]["gpipe/1/2/1"]
    >>> pipeline["orders"], pipeline["start"], pipeline["makespan"]
    (['0F0 0F1 0B0 0B1'], [[0, 1, 2, 4]], [6])
    """
    if not isinstance(unit, str) or len(unit) > 20:
        raise HybridLabError(f"unit is the short name of the unit of time, such as 'ms', not {shown(unit)}")
    names = list(dict.fromkeys(known_name(name, REGISTRY, "schedule") for name in _several(schedules, "schedules")))
    if isinstance(schedules, (set, frozenset)):  # their order differs from run to run
        names.sort(key=list(REGISTRY).index)
    values: dict[str, list[Any]] = {name: _whole_numbers(axes[name], name) for name in SIZES[:2]}
    values["p2p"] = sorted({float(times(value, "p2p")) for value in _scalars(axes["p2p"], "p2p")})
    wanted = None if axes["chunks"] is None else _whole_numbers(axes["chunks"], "chunks")
    chunks = {name: _chunks_of(name, wanted or [], values) for name in names}
    values["chunks"] = sorted(set().union(*chunks.values()))
    data = {
        "unit": unit,
        "kinds": {kind.value: {"words": kind.words, "colours": _colours(kind, values["chunks"])} for kind in KINDS},
        "schedules": [{"name": name, "title": REGISTRY[name].title, "chunks": chunks[name]} for name in names],
        **{name: short(axis) for name, axis in values.items()},
        "pipelines": _pipelines(names, values, _costs(costs, values["p2p"])),
    }
    if len(_json(data)) > MOST_BYTES:
        raise HybridLabError(_too_much(values))
    return data


def digest(data: Data) -> str:
    """Return eight hexadecimal digits that tell one grid's data from another's.

    >>> digest({"unit": "ms"})
    'b680e8fa'
    """
    return hashlib.sha256(_json(data, sort_keys=True).encode()).hexdigest()[:8]


def short(values: Iterable[float]) -> list[float]:
    """Return the numbers to nine digits, whole ones as ints.

    >>> short([2.0, 1 / 3])
    [2, 0.333333333]
    """
    floats = (float(f"{value:.9g}") for value in values)
    return [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in floats]


def _pipelines(names: Iterable[str], axes: Axes, costs: Costs) -> Data:
    """Return the entry of every combination; refuse as soon as they are too much for a page."""
    pipelines: Data = {}
    left = MOST_BYTES
    for name, devices, microbatches, chunks in product(names, *(axes[size] for size in SIZES)):
        refusal = REGISTRY[name].refusal(devices, microbatches, chunks)
        at_least = 2 * devices * chunks * microbatches * (6 + 2 * len(axes["p2p"]))  # bytes, if every number had one digit
        if refusal is None and at_least > left:
            raise HybridLabError(_too_much(axes))
        entry = {"refusal": refusal} if refusal else _pipeline(name, devices, microbatches, chunks, costs)
        pipelines[f"{name}/{devices}/{microbatches}/{chunks}"] = entry
        left -= len(_json(entry))
        if left < 0:
            raise HybridLabError(_too_much(axes))
    if all("refusal" in entry for entry in pipelines.values()):
        raise HybridLabError(f"no setting of this grid can run: {next(iter(pipelines.values()))['refusal']}")
    return pipelines


def _pipeline(name: str, devices: int, microbatches: int, chunks: int, costs: Costs) -> Data:
    """Return one schedule's order, and its times at every latency."""
    timeline = simulate(build(name, devices, microbatches, chunks), costs)
    table = costs.table(devices, chunks)[..., 0]
    settings = [timeline.at(place) for place in range(len(timeline.start))]
    before = np.arange(timeline.start.shape[-1]) - 1
    before[timeline.schedule.first] = -1
    return {
        "orders": [" ".join(map(str, order)) for order in timeline.schedule.orders],
        "source": timeline.schedule.source.tolist(),
        "duration": {kind.value: short(row) for kind, row in zip(KINDS, table, strict=True)},
        "peak": short(timeline.peak_activations[0]),
        "start": [short(at.start) for at in settings],
        "late": [np.flatnonzero(at.waited_for() != before).tolist() for at in settings],
        "makespan": short(timeline.makespan),
        "bubble": short(timeline.bubble_ratio),
    }


def _costs(arguments: Mapping[str, Any], p2p: list[float]) -> Costs:
    costs = Costs.per_device(**arguments)
    if costs.batch:
        raise HybridLabError("the costs must be those of one setting: give each as one number, or one a device")
    return Costs(costs.forward, costs.backward, costs.weight_gradient, np.array(p2p))


def _colours(kind: str, chunks: list[int]) -> dict[str, list[str]]:
    """Return, for every number of chunks a device, the colour of each chunk."""
    return {str(count): [chunk_colour(kind, chunk, count) for chunk in range(count)] for count in sorted({1, *chunks})}


def _chunks_of(name: str, wanted: list[int], axes: Axes) -> list[int]:
    """Return those of the wanted chunks that the schedule supports at some size of the grid, or else its fewest."""
    family = REGISTRY[name]
    sizes = list(product(axes["devices"], axes["microbatches"]))
    held = [chunks for chunks in wanted if any(family.refusal(*size, chunks) is None for size in sizes)]
    return held or [family.fewest_chunks]


def _several(value: Any, name: str) -> list[Any]:
    """Return one value or several as a list that is not empty."""
    one = isinstance(value, np.ndarray) and value.ndim == 0
    if one or isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return [value]
    values = list(islice(value, MOST_VALUES + 1))
    if not 0 < len(values) <= MOST_VALUES:
        told = "is empty" if not values else f"has more than {MOST_VALUES:,} values"
        raise HybridLabError(f"{name} {told}: give one value, or a few to choose from")
    return values


def _whole_numbers(value: Any, name: str) -> list[int]:
    return sorted({whole_number(each, name) for each in _several(value, name)})


def _scalars(value: Any, name: str) -> list[Any]:
    values = _several(value, name)
    if any(isinstance(each, Iterable) for each in values):
        raise HybridLabError(f"{name} must be a number or several, not {shown(value)}")
    return values


def _too_much(axes: Axes) -> str:
    told = ", ".join(f"{len(axis)} of {name}" for name, axis in axes.items())
    return (
        f"this grid is more than the {MOST_BYTES / 1e6:g} MB of data that a page can carry ({told}): "
        "give fewer values, or fewer microbatches"
    )


def _json(data: Data, sort_keys: bool = False) -> str:
    return json.dumps(data, sort_keys=sort_keys, separators=(",", ":"))
