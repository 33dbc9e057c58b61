"""The jobs of a sweep: sizes of schedules with all their costs, timed side by side in one call."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hybridlab.checks import short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedules import build
from hybridlab.simulation import simulate_many
from hybridlab.sweep.grid import Row

CELLS = 2**21  # operations x settings of one job: 100 MB while it is timed, and many enough for each call of numpy

Size = tuple[str, int, int, int]  # schedule, devices, microbatches, chunks
Run = tuple[Size, Costs]
Job = list[Run]  # all with the same number of settings
Found = list[tuple[float, ...]]  # makespan, device span, bubble ratio and peak activations of every setting
PATIENCE = 5.0  # seconds before a sweep that nobody asked about shows how far it is


def timed(job: Job) -> list[Found]:
    """Build the schedules of a job and time them, each with its batch of costs.

    >>> timed([(("gpipe", 2, 2, 1), Costs(forward=[[1], [2]], backward=2))])
    [[(9.0, 9.0, 0.3333333333333333, 2.0), (12.0, 12.0, 0.3333333333333333, 2.0)]]
    """
    schedules = {size: build(*size) for size, _ in job}
    found: list[Found] = []
    for timeline in simulate_many([(schedules[size], costs) for size, costs in job]):
        peak = timeline.peak_activations.max(axis=-1)
        columns = (timeline.makespan, timeline.device_span, timeline.bubble_ratio, peak)
        found.append(list(zip(*(column.tolist() for column in columns), strict=True)))
    return found


def batches_of(rows: Sequence[Row], names: Sequence[str], size: Size) -> tuple[Costs, ...]:
    """Return the costs of ``rows``, which share a size, in batches small enough for a job; ``names`` are the costs given."""
    most = max(1, CELLS // _operations(size))
    return tuple(_batch(rows[begin : begin + most], names, size[1]) for begin in range(0, len(rows), most))


def packed(runs: Sequence[Run]) -> list[list[int]]:
    """Return the places of ``runs`` job by job: those with the same number of settings go together, as many as fit."""
    jobs: list[list[int]] = []
    filled: dict[tuple[int, ...], tuple[int, list[int]]] = {}
    for place, (size, costs) in enumerate(runs):
        cells, job = filled.get(costs.batch, (CELLS, []))
        mine = _operations(size) * costs.batch[0]
        if cells + mine > CELLS:
            cells, job = 0, []
            jobs.append(job)
        job.append(place)
        filled[costs.batch] = cells + mine, job
    return jobs


def _operations(size: Size) -> int:
    """Return the most operations that a schedule of this size has."""
    return 3 * size[1] * size[2] * size[3]


def _batch(rows: Sequence[Row], names: Sequence[str], devices: int) -> Costs:
    """Return the costs of some rows as one batch, or refuse them with the row that is wrong."""
    fault = HybridLabError("a row takes one value for each cost, or one a device")
    try:
        costs = Costs(**{name: _stacked([row[name] for row in rows]) for name in names})
        if costs.batch == (len(rows),) and costs.devices in (None, devices):
            return costs
    except HybridLabError as why:
        fault = why
    for row in rows:
        message = ", ".join(f"{name} {short_repr(value)}" for name, value in row.items())
        try:
            costs = Costs(**{name: row[name] for name in names})
            costs.table(devices)
            if costs.batch:
                raise fault
        except HybridLabError as why:
            raise HybridLabError(f"{why} (in the row {message})") from None
    raise fault


def _stacked(values: list[Any]) -> Any:
    """Return a line of devices for each value; a value alone holds for all of them."""
    lines = [value if isinstance(value, tuple) else (value,) for value in values]
    most = max(map(len, lines))
    return [line * most if len(line) == 1 else line for line in lines]


def watched(done: Iterable[list[Found]], counts: Sequence[int], progress: bool | None) -> Iterator[list[Found]]:
    """Pass on what the jobs found, ``counts`` rows each, and show in a bar how far they are: at once, late or never."""
    late, rows, bar = time.monotonic() + PATIENCE, 0, None
    if progress:
        bar = _bar(sum(counts), needed=True)
    try:
        for count, found in zip(counts, done, strict=True):
            rows += count
            if progress is None and bar is None and time.monotonic() >= late:
                bar = _bar(sum(counts), needed=False)
            if bar is not None:
                bar.update(rows - bar.n)
            yield found
    finally:
        if bar is not None:
            bar.close()


def _bar(rows: int, needed: bool) -> Any:
    """Return a bar, or None where tqdm is missing and not ``needed``."""
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as why:
        if needed:
            raise HybridLabError(f"a progress bar comes from tqdm, which cannot be loaded ({why}): pip install tqdm") from why
        return None
    return tqdm(total=rows, unit=" rows", disable=bool(os.environ.get("TQDM_DISABLE")))  # which tqdm's class for notebooks does not read
