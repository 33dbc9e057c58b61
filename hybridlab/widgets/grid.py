"""The finished timelines of a grid of settings as plain data, from which JavaScript alone can draw any of them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, known_schedule
from hybridlab.widgets.choices import scalars, several, whole_numbers
from hybridlab.widgets.pipeline import Data, key, kinds, packed, pipeline, pipeline_or_why_not, short

MOST_BYTES = 2_000_000  # what a page can carry for one picture
SIZES = ("devices", "microbatches", "chunks")
AXES = (*SIZES, "p2p")

Values = Mapping[str, list[Any]]  # by axis


def grid_data(schedules: Any, axes: Mapping[str, Any], costs: Mapping[str, Any]) -> Data:
    """Return the timelines of every combination of the values of ``axes``, as data that ``json.dumps`` takes.

    ``axes`` has the keys devices, microbatches, chunks and p2p (in the unit of time), each a value or several. A schedule is offered
    those of the chunks that it supports, or its fewest; chunks None means the fewest. ``costs`` are the other
    arguments of :class:`Costs`, for one setting.

    ``pipelines`` has one entry a combination, named "schedule/devices/microbatches/chunks". A refused one holds the sentence
    ``refusal``. The others hold ``orders`` (one text a device), ``source`` (the row whose output each row needs, -1 for
    none), ``duration`` (kind, or "pair" for an overlapped pair -> one time a device), ``peak`` (activations, one a device) and,
    with one entry a latency, ``start`` (one time a row), ``late`` (rows whose device stood idle for their input), ``makespan`` and
    ``bubble``. A schedule with several copies of the weights has ``copy``, that of each microbatch.

    Refused are sizes that a schedule does not support or that have more operations than can be drawn. Raises
    :class:`HybridLabError` for wrong values, for a grid where nothing runs, and for more than 2 MB of data.

    >>> axes = {"devices": 1, "microbatches": [1, 2], "chunks": None, "p2p": 0}
    >>> pipeline = grid_data("gpipe", axes, {"forward": 1, "backward": 2})["pipelines"]["gpipe/1/2/1"]
    >>> pipeline["orders"], pipeline["start"], pipeline["makespan"]
    (['0F0 0F1 0B0 0B1'], [[0, 1, 2, 4]], [6])
    """
    names = list(dict.fromkeys(known_schedule(name) for name in several(schedules, "schedules")))
    if isinstance(schedules, (set, frozenset)):  # their order differs from run to run
        names.sort(key=list(REGISTRY).index)
    values: dict[str, list[Any]] = {name: whole_numbers(axes[name], name) for name in SIZES[:2]}
    values["p2p"] = scalars(axes["p2p"], "p2p")
    wanted = None if axes["chunks"] is None else whole_numbers(axes["chunks"], "chunks")
    chunks = {name: _chunks_of(name, wanted or [], values) for name in names}
    values["chunks"] = sorted(set().union(*chunks.values()))
    priced = _costs(costs, values["p2p"])
    pipelines = _pipelines(names, values, priced)
    data = {
        "unit": priced.unit or "",  # the script takes an empty text for none
        "kinds": kinds(chunks),
        "schedules": _schedules(chunks),
        **{name: short(axis) for name, axis in values.items()},
        "pipelines": pipelines,
    }
    if len(packed(data)) > MOST_BYTES:
        raise HybridLabError(_too_much(values))
    return data


def setting_data(setting: Mapping[str, Any], costs: Mapping[str, Any]) -> Data:
    """Return what :func:`grid_data` returns, for one setting and the schedule it is compared with.

    ``setting`` holds schedule, devices, microbatches, chunks, p2p and compare ("" for none). Nothing is raised for what the library
    cannot do: such an entry holds the sentence ``refusal``.

    >>> setting = {"schedule": "gpipe", "devices": 1, "microbatches": 2, "chunks": 1, "p2p": 0, "compare": "interleaved"}
    >>> data = setting_data(setting, {"forward": 1, "backward": 2})
    >>> {name: entry["makespan"] for name, entry in data["pipelines"].items()}
    {'gpipe/1/2/1': [6], 'interleaved/1/2/2': [6]}
    """
    size = setting["devices"], setting["microbatches"]
    chunks = {setting["schedule"]: setting["chunks"]}
    if setting["compare"]:
        chunks.setdefault(setting["compare"], chunks_near(setting["compare"], setting["chunks"]))
    priced = _costs(costs, [setting["p2p"]])
    entries = {key(name, *size, count): pipeline_or_why_not(name, *size, count, priced) for name, count in chunks.items()}
    drawn = {name: [count] for (name, count), entry in zip(chunks.items(), entries.values(), strict=True) if "refusal" not in entry}
    return {
        "unit": priced.unit or "",
        "kinds": kinds(drawn),
        "schedules": _schedules({name: [count] for name, count in chunks.items()}),
        "devices": [setting["devices"]],
        "microbatches": [setting["microbatches"]],
        "p2p": [setting["p2p"]],
        "chunks": sorted(set(chunks.values())),
        "pipelines": entries,
    }


def holds(data: Mapping[str, Any], setting: Mapping[str, Any]) -> bool:
    """Return whether the data have the timelines of a setting, or the sentence of why there is none."""
    names = {schedule["name"] for schedule in data.get("schedules", ())}
    compared = {setting["schedule"], setting["compare"]} - {""}
    return compared <= names and all(setting[name] in data[name] for name in AXES)


def chunks_near(name: str, chunks: int) -> int:
    """Return the number of chunks if the schedule supports it, else its fewest.

    >>> chunks_near("hanayo", 4), chunks_near("hanayo", 3), chunks_near("gpipe", 4)
    (4, 2, 1)
    """
    fewest, step = REGISTRY[name].fewest_chunks, REGISTRY[name].chunk_step
    return chunks if step and chunks >= fewest and (chunks - fewest) % step == 0 else fewest


def digest(data: Data) -> str:
    """Return eight hexadecimal digits that tell one grid's data from another's.

    >>> digest({"unit": "ms"})
    'b680e8fa'
    """
    return hashlib.sha256(packed(data, sort_keys=True).encode()).hexdigest()[:8]


def _pipelines(names: Iterable[str], values: Values, costs: Costs) -> Data:
    """Return the entry of every combination; refuse as soon as they are too much for a page."""
    pipelines: Data = {}
    left = MOST_BYTES
    for name, devices, microbatches, chunks in product(names, *(values[size] for size in SIZES)):
        at_least = 2 * devices * chunks * microbatches * (6 + 2 * len(values["p2p"]))  # bytes, if every number had one digit
        if at_least > left and REGISTRY[name].refusal(devices, microbatches, chunks) is None:
            raise HybridLabError(_too_much(values))
        entry = pipeline(name, devices, microbatches, chunks, costs)
        pipelines[key(name, devices, microbatches, chunks)] = entry
        left -= len(packed(entry))
        if left < 0:
            raise HybridLabError(_too_much(values))
    if all("refusal" in entry for entry in pipelines.values()):
        raise HybridLabError(f"no setting of this grid can run: {next(iter(pipelines.values()))['refusal']}")
    return pipelines


def _schedules(chunks: Mapping[str, list[int]]) -> list[Data]:
    return [{"name": name, "title": REGISTRY[name].title, "chunks": counts} for name, counts in chunks.items()]


def _costs(arguments: Mapping[str, Any], p2p: list[float]) -> Costs:
    costs = Costs(**arguments)
    if costs.batch:
        raise HybridLabError("the costs must be those of one setting: give each as one number, or one a device")
    return replace(costs, p2p=np.array(p2p)[:, None])


def _chunks_of(name: str, wanted: list[int], values: Values) -> list[int]:
    """Return those of the wanted chunks that the schedule supports at some size of the grid, or else its fewest."""
    family = REGISTRY[name]
    sizes = list(product(values["devices"], values["microbatches"]))
    held = [chunks for chunks in wanted if any(family.refusal(*size, chunks) is None for size in sizes)]
    return held or [family.fewest_chunks]


def _too_much(values: Values) -> str:
    message = ", ".join(f"{len(axis)} of {name}" for name, axis in values.items())
    return (
        f"this grid is more than the {MOST_BYTES / 1e6:g} MB of data that a page can carry ({message}): "
        "give fewer values, or fewer microbatches"
    )
