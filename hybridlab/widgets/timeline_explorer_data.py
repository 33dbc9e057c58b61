"""The orders of schedules for a grid of sizes, as plain data. The script of the page simulates the orders."""

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

from hybridlab.checks import counted
from hybridlab.errors import HybridLabError
from hybridlab.schedule.text import turn_text
from hybridlab.schedules import REGISTRY
from hybridlab.timeline import Timeline
from hybridlab.widgets.choices import whole_numbers
from hybridlab.widgets.measured_data import refusal_of, title_of
from hybridlab.widgets.own_schedules import Offered, OwnSchedule, build_offered
from hybridlab.widgets.page_data import Data, compact_json, operation_kinds, refuse_too_large, too_many_to_draw

SIZES = ("devices", "microbatches", "chunks")

Values = Mapping[str, list[Any]]  # the values of each axis, by name


def grid_data(schedules: Mapping[str, Offered], axes: Mapping[str, Any]) -> Data:
    """Return the data of a grid: one order for each combination of a schedule, devices, microbatches and chunks.

    Parameters
    ----------
    schedules : mapping
        Name -> schedule, see :func:`hybridlab.widgets.own_schedules.offered_schedules`.
    axes : mapping
        One value or several for each of ``devices``, ``microbatches`` and ``chunks``. Each schedule gets the numbers of chunks that it
        supports. If it supports none of these numbers, or if ``chunks`` is None, the schedule gets its smallest number of chunks.

    Returns
    -------
    dict
        Plain data for ``json.dumps``. ``pipelines`` has one entry for each combination, under "schedule/devices/microbatches/chunks". An
        entry has ``orders``, one text for each device. If the schedule does not support the size, or if the view cannot draw so many
        operations, the entry has ``refusal`` instead, a sentence with the reason. A function that raises an error, or that returns orders
        that cannot run, is also a reason.

    Raises
    ------
    HybridLabError
        A value is wrong, no setting of the grid can run, or the data have more than 2 MB (``too-large``).

    Examples
    --------
    >>> grid_data({"gpipe": REGISTRY["gpipe"]}, {"devices": 1, "microbatches": [1, 2], "chunks": None})["pipelines"]
    {'gpipe/1/1/1': {'orders': ['0F0 0B0']}, 'gpipe/1/2/1': {'orders': ['0F0 0F1 0B0 0B1']}}
    """
    values: dict[str, list[Any]] = {name: whole_numbers(axes[name], name) for name in SIZES[:2]}
    wanted = [] if axes["chunks"] is None else whole_numbers(axes["chunks"], "chunks")
    chunks = {name: _supported_chunks(schedule, wanted, values) for name, schedule in schedules.items()}
    values["chunks"] = sorted(set().union(*chunks.values()))
    pipelines = _pipelines(schedules, values)  # before the kinds: only its orders tell how many copies of the weights a function has
    data = {"kinds": _kinds(schedules, chunks), "schedules": _titles(schedules, chunks), **values, "pipelines": pipelines}
    _refuse_grid(len(compact_json(data)), values)
    return data


def setting_data(
    setting: Mapping[str, Any], schedules: Mapping[str, Offered] = REGISTRY, steps: Mapping[str, Timeline] = MappingProxyType({})
) -> Data:
    """Return the same data as :func:`grid_data` for a single setting: its schedule and the compared schedule.

    Parameters
    ----------
    setting : mapping
        One value for each of schedule, devices, microbatches, chunks and compare ("" for no second schedule).
    schedules : mapping
        Name -> schedule, as in :func:`grid_data`.
    steps : mapping
        Name -> measured step. A step has one size, and a refusal at all other sizes.

    Returns
    -------
    dict
        As in :func:`grid_data`. If the library refuses a size, the function raises no error, and the entry has the ``refusal``.

    Examples
    --------
    >>> setting = {"schedule": "gpipe", "devices": 1, "microbatches": 2, "chunks": 1, "compare": "interleaved"}
    >>> setting_data(setting)["pipelines"]["interleaved/1/2/2"]
    {'orders': ['0F0 1F0 1B0 0F1 0B0 1F1 1B1 0B1']}
    """
    size = setting["devices"], setting["microbatches"]
    chosen = [name for name in (setting["schedule"], setting["compare"]) if name]
    chunks = {name: supported_or_fewest_chunks(schedules[name], setting["chunks"]) for name in chosen if name not in steps}
    # The chosen schedule keeps the chosen number, even if the result is a refusal. The compared schedule gets a supported number.
    if setting["schedule"] in chunks:
        chunks[setting["schedule"]] = setting["chunks"]
    entries = {_key(name, *size, count): _entry_or_refusal(schedules[name], *size, count) for name, count in chunks.items()}
    drawn = {name: [count] for (name, count), entry in zip(chunks.items(), entries.values(), strict=True) if "refusal" not in entry}
    data: Data = {
        "kinds": _kinds(schedules, drawn),
        "schedules": _titles(schedules, {name: [count] for name, count in chunks.items()}),
        "devices": [setting["devices"]],
        "microbatches": [setting["microbatches"]],
        "chunks": sorted({setting["chunks"], *chunks.values()}),
        "pipelines": entries,
    }
    for name in chosen:
        if name in steps:
            data["schedules"].append(title_of(name, steps[name]))
            # Always a refusal: the grid has the size of every measured step, and this function is only for sizes outside the grid.
            data["pipelines"][_key(name, *size, steps[name].schedule.chunks)] = {"refusal": refusal_of(steps[name])}
    return data


def has_setting(data: Mapping[str, Any], setting: Mapping[str, Any]) -> bool:
    """Return whether the data have all entries for a setting. An entry is an order or a refusal."""
    names = {schedule["name"] for schedule in data.get("schedules", ())}
    compared = {setting["schedule"], setting["compare"]} - {""}
    return compared <= names and all(setting[name] in data[name] for name in SIZES)


def supported_or_fewest_chunks(schedule: Offered, chunks: int) -> int:
    """Return ``chunks`` if the schedule supports this number, else the smallest number of chunks that it supports.

    >>> [supported_or_fewest_chunks(REGISTRY[name], 4) for name in ("hanayo", "gpipe")]
    [4, 1]
    """
    fewest, step = schedule.fewest_chunks, schedule.chunk_step
    return chunks if step and chunks >= fewest and (chunks - fewest) % step == 0 else fewest


def order_entry(schedule: Offered, devices: int, microbatches: int, chunks: int) -> Data:
    """Return one entry of ``pipelines``: the order of a schedule, or a ``refusal``.

    >>> order_entry(REGISTRY["gpipe"], 2, 1, 1), order_entry(REGISTRY["gpipe"], 2, 1, 3)
    ({'orders': ['0F0 0B0', '1F0 1B0']}, {'refusal': 'gpipe has 1 chunk a device, not 3; leave chunks out'})
    """
    size = (devices, microbatches, chunks)
    refusal = schedule.refusal(*size) or too_many_to_draw(*size)
    if refusal:
        return {"refusal": refusal}
    built = build_offered(schedule, *size)
    refusal = too_many_to_draw(*size, len(built.kind))  # split backwards have more operations than the first check counts
    return {"refusal": refusal} if refusal else {"orders": [" ".join(map(turn_text, order)) for order in built.turns]}


def _entry_or_refusal(schedule: Offered, devices: int, microbatches: int, chunks: int) -> Data:
    """Return the result of :func:`order_entry`. If the library raises an error, its message becomes the ``refusal``."""
    try:
        return order_entry(schedule, devices, microbatches, chunks)
    except HybridLabError as why:
        return {"refusal": str(why)}


def _pipelines(schedules: Mapping[str, Offered], values: Values) -> Data:
    """Return the entry of every combination. Raise an error as soon as the data are too large for a page."""
    pipelines: Data = {}
    nbytes = 0
    for name, devices, microbatches, chunks in product(schedules, *(values[size] for size in SIZES)):
        # A lower bound of the size, to stop before building a large order: a forward and a backward for each stage and microbatch.
        if schedules[name].refusal(devices, microbatches, chunks) is None:
            _refuse_grid(nbytes + 2 * devices * chunks * microbatches * len("0F0 "), values)
        entry = order_entry(schedules[name], devices, microbatches, chunks)
        pipelines[_key(name, devices, microbatches, chunks)] = entry
        nbytes += len(compact_json(entry))
        _refuse_grid(nbytes, values)
    if all("refusal" in entry for entry in pipelines.values()):
        raise HybridLabError(f"no setting of this grid can run: {next(iter(pipelines.values()))['refusal']}", "unsupported-size")
    return pipelines


def _key(name: str, devices: int, microbatches: int, chunks: int) -> str:
    """Return the key of an entry in ``pipelines``, such as ``"1f1b/4/8/1"``."""
    return f"{name}/{devices}/{microbatches}/{chunks}"


def _titles(schedules: Mapping[str, Offered], chunks: Mapping[str, list[int]]) -> list[Data]:
    """Return the name, the title and the numbers of chunks for each schedule."""
    return [{"name": name, "title": schedules[name].title, "chunks": counts} for name, counts in chunks.items()]


def _kinds(schedules: Mapping[str, Offered], chunks: Mapping[str, list[int]]) -> Data:
    """Return the words and the colours of operations for these schedules with these numbers of chunks."""
    # The orders of a function can have one copy of the weights at some sizes and two at others.
    return operation_kinds(
        count * copies for name, counts in chunks.items() for count in counts for copies in range(1, schedules[name].copies + 1)
    )


def _supported_chunks(schedule: Offered, wanted: list[int], values: Values) -> list[int]:
    """Return the wanted numbers of chunks that the schedule supports at some size in the grid, or else its smallest number."""
    if isinstance(schedule, OwnSchedule):  # whether it supports a size is known only after a call of its function
        supported = wanted if schedule.chunk_step else []
    else:
        sizes = list(product(values["devices"], values["microbatches"]))
        supported = [chunks for chunks in wanted if any(schedule.refusal(*size, chunks) is None for size in sizes)]
    return supported or [schedule.fewest_chunks]


def _refuse_grid(nbytes: int, values: Values) -> None:
    """Raise an error if the data of a grid have more bytes than a page can carry. The error has the number of values of each axis."""
    counts = ", ".join(f"{counted(len(axis), 'value')} of {name}" for name, axis in values.items())
    refuse_too_large(nbytes, f"this grid ({counts}) is", "give fewer values, or fewer microbatches")
