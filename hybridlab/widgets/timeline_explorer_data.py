"""The timelines for a grid of settings as plain data, so that the script can draw each timeline without a simulation."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import KINDS
from hybridlab.schedule.text import turn_text
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline
from hybridlab.widgets.choices import costs_of_one_setting, schedule_names, sorted_times, whole_numbers
from hybridlab.widgets.measured_data import refusal_of, title_of
from hybridlab.widgets.page_data import MOST_OPS, Data, compact_json, nine_digits, operation_kinds, refuse_too_large

SIZES = ("devices", "microbatches", "chunks")
AXES = (*SIZES, "p2p")

Values = Mapping[str, list[Any]]  # for each axis, its values


def grid_data(schedules: Any, axes: Mapping[str, Any], costs: Mapping[str, Any]) -> Data:
    """Return one timeline for each combination of a schedule and one value on each axis.

    Parameters
    ----------
    schedules : str or iterable of str
        Names of schedules.
    axes : mapping
        One value or several for each of ``devices``, ``microbatches``, ``chunks`` and ``p2p`` (latency, in the unit of time). A schedule
        gets those numbers of chunks that it supports. If it supports none of them, or ``chunks`` is None, it gets its fewest chunks.
    costs : mapping
        The other arguments of :class:`Costs`, for one setting.

    Returns
    -------
    dict
        Plain data for ``json.dumps``. ``pipelines`` has one entry for each combination, under "schedule/devices/microbatches/chunks". If
        the schedule does not support the size, or if there are more operations than can be drawn, the entry has only ``refusal``, a
        sentence that says why. The other entries have these keys:

        - ``orders``: one text for each device
        - ``source``: for each operation, the row of the operation whose output it needs; -1 if it needs no output
        - ``duration``: for each kind of operation, and under "pair" for overlapped pairs, one time for each device
        - ``peak``: the peak activations of each device
        - ``start``: for each latency, the start of each operation
        - ``late``: for each latency, the rows of operations for which their device was idle until the input came
        - ``makespan`` and ``bubble``: one number for each latency
        - ``copy``: the copy of the weights that each microbatch runs through, if the schedule has several copies

    Raises
    ------
    HybridLabError
        For wrong values, for a grid in which nothing can run, and for more than 2 MB of data (``too-large``).

    Examples
    --------
    >>> axes = {"devices": 1, "microbatches": [1, 2], "chunks": None, "p2p": 0}
    >>> entry = grid_data("gpipe", axes, {"forward": 1, "backward": 2})["pipelines"]["gpipe/1/2/1"]
    >>> entry["orders"], entry["start"], entry["makespan"]
    (['0F0 0F1 0B0 0B1'], [[0, 1, 2, 4]], [6])
    """
    names = schedule_names(schedules)
    values: dict[str, list[Any]] = {name: whole_numbers(axes[name], name) for name in SIZES[:2]}
    values["p2p"] = sorted_times(axes["p2p"], "p2p")
    wanted = [] if axes["chunks"] is None else whole_numbers(axes["chunks"], "chunks")
    chunks = {name: _supported_chunks(name, wanted, values) for name in names}
    values["chunks"] = sorted(set().union(*chunks.values()))
    priced = _with_latencies(costs, values["p2p"])
    pipelines = _pipelines(names, values, priced)
    data = {
        "unit": priced.unit or "",  # the script takes an empty text for none
        "kinds": operation_kinds(chunks),
        "schedules": _titles(chunks),
        **{name: nine_digits(axis) for name, axis in values.items()},
        "pipelines": pipelines,
    }
    _refuse_grid(len(compact_json(data)), values)
    return data


def setting_data(setting: Mapping[str, Any], costs: Mapping[str, Any], steps: Mapping[str, Timeline] = MappingProxyType({})) -> Data:
    """Return the same data as :func:`grid_data`, for one setting and for the schedule that is compared with it.

    Parameters
    ----------
    setting : mapping
        One value for each of schedule, devices, microbatches, chunks, p2p and compare ("" for no second schedule).
    costs : mapping
        The other arguments of :class:`Costs`, for one setting.
    steps : mapping
        Measured steps by their names; each has one size, and a refusal at all others.

    Returns
    -------
    dict
        As in :func:`grid_data`. If the library refuses a size or the costs, no error is raised, and the entry has the ``refusal``.

    Examples
    --------
    >>> setting = {"schedule": "gpipe", "devices": 1, "microbatches": 2, "chunks": 1, "p2p": 0, "compare": "interleaved"}
    >>> data = setting_data(setting, {"forward": 1, "backward": 2})
    >>> {name: entry["makespan"] for name, entry in data["pipelines"].items()}
    {'gpipe/1/2/1': [6], 'interleaved/1/2/2': [6]}
    """
    size = setting["devices"], setting["microbatches"]
    chosen = [name for name in (setting["schedule"], setting["compare"]) if name]
    chunks = {name: supported_or_fewest_chunks(name, setting["chunks"]) for name in chosen if name not in steps}
    if setting["schedule"] in chunks:
        chunks[setting["schedule"]] = setting["chunks"]
    priced = _with_latencies(costs, [setting["p2p"]])
    entries = {_key(name, *size, count): _entry_or_refusal(name, *size, count, priced) for name, count in chunks.items()}
    drawn = {name: [count] for (name, count), entry in zip(chunks.items(), entries.values(), strict=True) if "refusal" not in entry}
    data: Data = {
        "unit": priced.unit or "",
        "kinds": operation_kinds(drawn),
        "schedules": _titles({name: [count] for name, count in chunks.items()}),
        "devices": [setting["devices"]],
        "microbatches": [setting["microbatches"]],
        "p2p": [setting["p2p"]],
        "chunks": sorted({setting["chunks"], *chunks.values()}),
        "pipelines": entries,
    }
    for name in chosen:
        if name in steps:
            data["schedules"].append(title_of(name, steps[name]))
            data["pipelines"][_key(name, *size, steps[name].schedule.chunks)] = {"refusal": refusal_of(steps[name])}
    return data


def has_setting(data: Mapping[str, Any], setting: Mapping[str, Any]) -> bool:
    """Return whether the data have all entries that a setting needs, where an entry is a timeline or a refusal."""
    names = {schedule["name"] for schedule in data.get("schedules", ())}
    compared = {setting["schedule"], setting["compare"]} - {""}
    return compared <= names and all(setting[name] in data[name] for name in AXES)


def supported_or_fewest_chunks(name: str, chunks: int) -> int:
    """Return ``chunks`` if the schedule supports this number, otherwise the fewest chunks that it supports.

    >>> supported_or_fewest_chunks("hanayo", 4), supported_or_fewest_chunks("hanayo", 3), supported_or_fewest_chunks("gpipe", 4)
    (4, 2, 1)
    """
    fewest, step = REGISTRY[name].fewest_chunks, REGISTRY[name].chunk_step
    return chunks if step and chunks >= fewest and (chunks - fewest) % step == 0 else fewest


def timeline_entry(name: str, devices: int, microbatches: int, chunks: int, costs: Costs) -> Data:
    """Return one entry of ``pipelines``, with the order and the times of a schedule, or with ``refusal``.

    Parameters
    ----------
    name : str
        The schedule's name in the registry.
    devices, microbatches, chunks : int
        The size.
    costs : Costs
        Costs with one leading axis, which has a setting for each latency.

    Raises
    ------
    HybridLabError
        If the costs are for another number of devices.

    Examples
    --------
    >>> costs = Costs(forward=1, backward=2, p2p=[[0]])
    >>> timeline_entry("gpipe", 2, 1, 1, costs)["start"], timeline_entry("gpipe", 2, 1, 3, costs)
    ([[0, 4, 1, 2]], {'refusal': 'gpipe has 1 chunk a device, not 3; leave chunks out'})
    """
    refusal = REGISTRY[name].refusal(devices, microbatches, chunks)
    if refusal:
        return {"refusal": refusal}
    too_many = 2 * devices * chunks * microbatches > MOST_OPS
    schedule = None if too_many else build(name, devices, microbatches, chunks)
    if schedule is None or len(schedule.kind) > MOST_OPS:  # with split backwards, a stage has three operations for each microbatch
        sizes = f"{counted(devices, 'device')} x {counted(microbatches, 'microbatch')} x {counted(chunks, 'chunk')}"
        sentence = f"{sizes} have more operations than the {MOST_OPS:,} that can be drawn"
        return {"refusal": f"{sentence}; try fewer microbatches, or simulate them in Python without a picture"}
    timeline = simulate(schedule, costs)
    table = costs.table(devices, chunks)[..., 0]
    settings = [timeline.at(place) for place in range(len(timeline.start))]
    entry = {
        "orders": [" ".join(map(turn_text, order)) for order in schedule.turns],
        "source": schedule.source.tolist(),
        "duration": {kind.value: nine_digits(row) for kind, row in zip(KINDS, table, strict=True)},
        "peak": nine_digits(timeline.peak_activations[0]),
        "start": [nine_digits(at.start) for at in settings],
        "late": [_late_rows(at) for at in settings],
        "makespan": nine_digits(timeline.makespan),
        "bubble": nine_digits(timeline.bubble_ratio),
    }
    if schedule.pairs.size:
        entry["duration"]["pair"] = nine_digits(costs.pairs(devices, chunks)[..., 0])
    if schedule.copies > 1:
        entry["copy"] = schedule.copy_of.tolist()
    return entry


def _entry_or_refusal(name: str, devices: int, microbatches: int, chunks: int, costs: Costs) -> Data:
    """Return the result of :func:`timeline_entry`; if the library raises an error, its message becomes the ``refusal``."""
    try:
        return timeline_entry(name, devices, microbatches, chunks, costs)
    except HybridLabError as why:
        return {"refusal": str(why)}


def _late_rows(timeline: Timeline) -> list[int]:
    """Return the rows of operations for which their device was idle until the input came.

    In an overlapped pair, only the operation with the later input counts.
    """
    schedule, waited = timeline.schedule, timeline.blocking_operation()
    return np.flatnonzero((waited != schedule.before) & (waited == schedule.source)).tolist()


def _pipelines(names: Iterable[str], values: Values, costs: Costs) -> Data:
    """Return the entry of every combination; refuse as soon as the data are too large for a page."""
    pipelines: Data = {}
    nbytes = 0
    for name, devices, microbatches, chunks in product(names, *(values[size] for size in SIZES)):
        at_least = 2 * devices * chunks * microbatches * (6 + 2 * len(values["p2p"]))  # the bytes if every number had one digit
        if REGISTRY[name].refusal(devices, microbatches, chunks) is None:
            _refuse_grid(nbytes + at_least, values)
        entry = timeline_entry(name, devices, microbatches, chunks, costs)
        pipelines[_key(name, devices, microbatches, chunks)] = entry
        nbytes += len(compact_json(entry))
        _refuse_grid(nbytes, values)
    if all("refusal" in entry for entry in pipelines.values()):
        raise HybridLabError(f"no setting of this grid can run: {next(iter(pipelines.values()))['refusal']}", "unsupported-size")
    return pipelines


def _key(name: str, devices: int, microbatches: int, chunks: int) -> str:
    """Return the name of an entry in ``pipelines``, such as ``"1f1b/4/8/1"``."""
    return f"{name}/{devices}/{microbatches}/{chunks}"


def _titles(chunks: Mapping[str, list[int]]) -> list[Data]:
    """Return the name, the title and the numbers of chunks for each schedule."""
    return [{"name": name, "title": REGISTRY[name].title, "chunks": counts} for name, counts in chunks.items()]


def _with_latencies(arguments: Mapping[str, Any], p2p: list[float]) -> Costs:
    """Return costs with a leading axis, which has one setting for each latency."""
    return replace(costs_of_one_setting(**arguments), p2p=np.array(p2p)[:, None])


def _supported_chunks(name: str, wanted: list[int], values: Values) -> list[int]:
    """Return those wanted numbers of chunks that the schedule supports at some size in the grid, or its fewest if there are none."""
    family = REGISTRY[name]
    sizes = list(product(values["devices"], values["microbatches"]))
    supported = [chunks for chunks in wanted if any(family.refusal(*size, chunks) is None for size in sizes)]
    return supported or [family.fewest_chunks]


def _refuse_grid(nbytes: int, values: Values) -> None:
    """Refuse a grid whose data have more bytes than a page can carry; the error says how many values each axis has."""
    counts = ", ".join(f"{counted(len(axis), 'value')} of {name}" for name, axis in values.items())
    refuse_too_large(nbytes, f"this grid ({counts}) is", "give fewer values, or fewer microbatches")
