"""The jobs of a sweep: one size of a schedule with all its costs, timed in one call."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hybridlab.clock import simulate
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.grid import Row
from hybridlab.inputs import shown
from hybridlab.schedules import build

CELLS = 2**22  # operations x settings that one call of simulate times: half a gigabyte of arrays
PATIENCE = 5.0  # seconds before a sweep that nobody asked about shows how far it is

Size = tuple[str, int, int, int]  # schedule, devices, microbatches, chunks
Job = tuple[Size, tuple[Costs, ...]]
Found = list[tuple[float, ...]]  # makespan, device span, bubble ratio and peak activations of every setting


def timed(job: Job) -> Found:
    """Build one schedule and time it with every batch of costs.

    >>> timed((("gpipe", 2, 2, 1), (Costs.per_device([[1], [2]], 2),)))
    [(9.0, 9.0, 0.3333333333333333, 2.0), (12.0, 12.0, 0.3333333333333333, 2.0)]
    """
    size, batches = job
    schedule = build(*size)
    found: Found = []
    for costs in batches:
        timeline = simulate(schedule, costs)
        peak = timeline.peak_activations.max(axis=-1)
        columns = (timeline.makespan, timeline.device_span, timeline.bubble_ratio, peak)
        found += zip(*(column.tolist() for column in columns), strict=True)
    return found


def batches_of(rows: Sequence[Row], names: Sequence[str], size: Size) -> tuple[Costs, ...]:
    """Return the costs of ``rows``, which share a size, in batches that fit in memory; ``names`` are the costs given."""
    most = max(1, CELLS // (3 * size[1] * size[2] * size[3]))
    return tuple(_batch(rows[begin : begin + most], names, size[1]) for begin in range(0, len(rows), most))


def _batch(rows: Sequence[Row], names: Sequence[str], devices: int) -> Costs:
    """Return the costs of some rows as one batch, or refuse them with the row that is wrong."""
    fault = HybridLabError("a row takes one value for each cost, or one a device")
    try:
        costs = Costs.per_device(**{name: _stacked([row[name] for row in rows]) for name in names})
        if costs.batch == (len(rows),) and costs.devices in (None, devices):
            return costs
    except HybridLabError as why:
        fault = why
    for row in rows:
        told = ", ".join(f"{name} {shown(value)}" for name, value in row.items())
        try:
            costs = Costs.per_device(**{name: row[name] for name in names})
            costs.table(devices)
            if costs.batch:
                raise fault
        except HybridLabError as why:
            raise HybridLabError(f"{why} (in the row {told})") from None
    raise fault


def _stacked(values: list[Any]) -> Any:
    """Return a line of devices for each value; a value alone holds for all of them."""
    lines = [value if isinstance(value, tuple) else (value,) for value in values]
    most = max(map(len, lines))
    return [line * most if len(line) == 1 else line for line in lines]


def watched(done: Iterable[Found], counts: Sequence[int], progress: bool | None) -> Iterator[Found]:
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
    return tqdm(total=rows, unit=" rows")
