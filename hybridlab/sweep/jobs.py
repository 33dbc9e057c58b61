"""The jobs of a sweep. A job simulates several schedules in one call, each schedule with a batch of costs."""

from collections.abc import Sequence
from typing import Any

from hybridlab.checks import short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedules import build
from hybridlab.simulation import simulate_many
from hybridlab.sweep.grid import Row

CELLS = 2**21  # largest operations x settings of a job: about 100 MB, and long enough arrays for numpy

Size = tuple[str, int, int, int]  # (schedule, devices, microbatches, chunks)
Run = tuple[Size, Costs]
Job = list[Run]  # all runs of a job have the same number of settings
Results = list[tuple[float, ...]]  # (makespan, device span, bubble ratio, peak activations) of every setting


def run_job(job: Job) -> list[Results]:
    """Return the results of a job, one entry for each run.

    >>> run_job([(("gpipe", 2, 2, 1), Costs(forward=[[1], [2]], backward=2))])
    [[(9.0, 9.0, 0.3333333333333333, 2.0), (12.0, 12.0, 0.3333333333333333, 2.0)]]
    """
    schedules = {size: build(*size) for size, _ in job}  # one size can have several batches
    results: list[Results] = []
    for timeline in simulate_many([(schedules[size], costs) for size, costs in job]):
        peak = timeline.peak_activations.max(axis=-1)
        columns = (timeline.makespan, timeline.device_span, timeline.bubble_ratio, peak)
        results.append(list(zip(*(column.tolist() for column in columns), strict=True)))
    return results


def batches_of(rows: Sequence[Row], names: Sequence[str], size: Size) -> tuple[Costs, ...]:
    """Return the costs of the given rows in batches. Each batch is small enough for one job.

    Parameters
    ----------
    rows : sequence of dict
        Rows of one size.
    names : sequence of str
        The columns that are arguments of :class:`Costs`.
    size : tuple
        Schedule, devices, microbatches and chunks of the rows.

    Raises
    ------
    HybridLabError
        The costs of a row are invalid. The message of the error ends with this row.
    """
    most = max(1, CELLS // _most_operations(size))
    return tuple(_batch(rows[begin : begin + most], names, size[1]) for begin in range(0, len(rows), most))


def group_into_jobs(runs: Sequence[Run]) -> list[list[int]]:
    """Return for each job a list of indices of ``runs``. A job has as many runs as possible, with the same number of settings."""
    jobs: list[list[int]] = []
    open_jobs: dict[tuple[int, ...], tuple[int, list[int]]] = {}
    for place, (size, costs) in enumerate(runs):
        cells, job = open_jobs.get(costs.batch, (CELLS, []))  # the default counts as a full job, so that the first run starts a new job
        added = _most_operations(size) * costs.batch[0]
        if cells + added > CELLS:
            cells, job = 0, []
            jobs.append(job)
        job.append(place)
        open_jobs[costs.batch] = cells + added, job
    return jobs


def _most_operations(size: Size) -> int:
    """Return an upper limit of the number of operations in a schedule of this size."""
    # forward, input gradient and weight gradient of each microbatch in each stage
    return 3 * size[1] * size[2] * size[3]


def _batch(rows: Sequence[Row], names: Sequence[str], devices: int) -> Costs:
    """Return the costs of rows as one batch, or raise an error that names the first wrong row."""
    fault = HybridLabError("each cost in a row is one value, or one value for each device", "wrong-shape")
    try:
        costs = Costs(**{name: _equal_lengths([row[name] for row in rows]) for name in names})
        if costs.batch == (len(rows),) and costs.devices in (None, devices):
            return costs
    except HybridLabError as why:
        fault = why
    for row in rows:  # check each row alone, to name the wrong row in the error
        described = ", ".join(f"{name} {short_repr(value)}" for name, value in row.items())
        try:
            costs = Costs(**{name: row[name] for name in names})
            costs.table(devices)  # raises if the number of devices is wrong
            if costs.batch:
                raise fault
        except HybridLabError as why:
            raise HybridLabError(f"{why} (in the row {described})", why.code) from None
    raise fault


def _equal_lengths(values: list[Any]) -> Any:
    """Return values of equal length. If one row has a number for each device, a single number in another row is repeated."""
    lists = [value if isinstance(value, tuple) else (value,) for value in values]
    most = max(map(len, lists))
    return [each * most if len(each) == 1 else each for each in lists]
