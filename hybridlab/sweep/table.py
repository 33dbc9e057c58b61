"""A sweep: schedules over a grid of sizes and costs, as a table of plain rows."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from hybridlab.checks import counted, each_of, known_name, short_repr, unit_of_time, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, known_schedule
from hybridlab.sweep.grid import SIZES, Row, names_of, plain, settings
from hybridlab.sweep.jobs import Run, Size, batches_of, packed, timed, watched

if TYPE_CHECKING:
    from concurrent.futures import Executor

COSTS = ("forward", "backward", "weight_share", "p2p", "overlap")
ELSEWHERE = {
    "unit": "it is that of the whole sweep, as in sweep(..., unit='s')",
    "weight_gradient": "give its part of the backward, weight_share",
    "p2p_between": "a sweep has one latency for all links, p2p; simulate() takes Costs(..., p2p_between=...) of each setting",
}
RESULTS = ("makespan", "device_span", "bubble_ratio", "peak_activations", "refused")

Values = tuple[Any, ...]


@dataclass(frozen=True, repr=False)
class Sweep:
    """A table, as :func:`sweep` returns it: the names of its columns, and a row of plain values for each setting.

    ``unit`` is that of its times: "s", "ms", "us", or None for plain slots.

    >>> table = sweep(["gpipe", "1f1b"], {"devices": 4, "microbatches": [4, 8], "forward": 1, "backward": 2})
    >>> [(row["schedule"], row["makespan"]) for row in table.where(microbatches=8)]
    [('gpipe', 33.0), ('1f1b', 33.0)]
    >>> table.where(schedule="1f1b").column("peak_activations")
    [4.0, 4.0]
    """

    columns: tuple[str, ...]
    values: tuple[Values, ...]
    unit: str | None = "ms"

    def __post_init__(self) -> None:
        names, rows = self.columns, self.values
        unit_of_time(self.unit)
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise HybridLabError(f"the columns of a sweep are a tuple of names, each once, not {short_repr(names)}")
        if not isinstance(rows, tuple):
            raise HybridLabError(f"the values of a sweep are a tuple of rows, not {short_repr(rows)}")
        wrong = [row for row in rows if not isinstance(row, tuple) or len(row) != len(names)]
        if wrong:
            message = f"a row of a sweep is a tuple with a value for each of its {counted(len(names), 'column')}"
            raise HybridLabError(f"{message}, not {short_repr(wrong[0])}")

    @property
    def rows(self) -> list[Row]:
        """The rows, each a dict from the name of a column to its value."""
        return list(self)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Row]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.values)

    def where(self, **values: Any) -> "Sweep":
        """Return the rows in which each column named has the value given; there may be none."""
        places = [(self._place(name), _as_in_rows(name, plain(value))) for name, value in values.items()]
        rows = tuple(row for row in self.values if all(row[place] == value for place, value in places))
        return Sweep(self.columns, rows, self.unit)

    def column(self, name: str) -> list[Any]:
        """Return one column, a value a row."""
        place = self._place(name)
        return [row[place] for row in self.values]

    def _place(self, name: str) -> int:
        return self.columns.index(known_name(name, self.columns, "column"))

    def to_pandas(self) -> Any:
        """Return the table as a pandas ``DataFrame``; raises :class:`HybridLabError` where pandas is missing."""
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError as why:
            raise HybridLabError(f"a DataFrame comes from pandas, which cannot be loaded ({why}): pip install pandas") from why
        return pandas.DataFrame(list(self.values), columns=list(self.columns))

    def __repr__(self) -> str:
        refused = sum(row.get("refused") is not None for row in self)
        return f"<Sweep of {len(self):,} rows, {refused:,} refused: {', '.join(self.columns)}>"


def _as_in_rows(name: str, value: Any) -> Any:
    """Return the value of a column as rows hold it: a schedule's name in the letters of the registry."""
    known = {each.lower(): each for each in REGISTRY} if name == "schedule" and isinstance(value, str) else {}
    return known.get(value.lower(), value) if known else value


def sweep(
    schedules: Any,
    grid: Mapping[Any, Any],
    *,
    unit: str | None = "ms",
    executor: "Executor | None" = None,
    progress: bool | None = None,
) -> Sweep:
    """Return the results of every schedule at every point of a grid, one row each.

    ``schedules`` is one or several names or pairs (name, chunks); a name alone takes the fewest chunks, or those of the
    grid's column ``chunks``. ``grid`` gives for the name of a column one value, several values (an axis), or a function
    of other columns, named by its parameters. Columns whose values belong together are one axis under a tuple of their names,
    such as ``("forward", "backward"): [(1, 2), (2, 4)]``. The grid needs devices, microbatches, forward and backward; chunks,
    weight_share, p2p and overlap are known too (see :class:`Costs`), with times in ``unit``; any other column is there to be read
    by functions. One time a device is a list that a function returns, or one of a list of lists.

    Rows come schedule by schedule, within one in the order of the grid's axes, the last the fastest. A row holds
    schedule, devices, microbatches, chunks, the grid's other columns, then makespan, device_span, bubble_ratio,
    peak_activations (the largest over the devices) and refused: None, or why the schedule does not exist at this size,
    whose results are None.

    ``executor`` is any ``concurrent.futures.Executor``: it gets jobs of a few sizes, each with all its costs. A fresh process
    knows only the schedules registered by what it imports. ``progress`` shows a bar of tqdm: True at once, False never, None
    after 5 s if tqdm is there. Raises :class:`HybridLabError` for bad costs, unknown names, grids that cannot be
    read, and lists of values for two of forward, backward and weight_share that are not said to belong together or not, before
    anything runs.

    >>> times = {"forward": lambda devices: 400 / devices, "backward": lambda forward: 2 * forward, "p2p": [0, 4]}
    >>> table = sweep(("interleaved", 2), {"devices": [4, 8], "microbatches": lambda devices: 2 * devices, **times})
    >>> [(row["devices"], row["p2p"], row["makespan"]) for row in table]
    [(4, 0, 2850.0), (4, 4, 2906.0), (8, 0, 2925.0), (8, 4, 3045.0)]
    """
    given = _check(grid, executor, progress)
    unit_of_time(unit)
    rows = settings(_lines(schedules, given), grid)
    columns = ("schedule", *SIZES, *(name for name in given if name not in SIZES))
    costs = [name for name in COSTS if name in given]
    groups: dict[Size, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault((row["schedule"], row["devices"], row["microbatches"], row["chunks"]), []).append(place)
    results: list[Values] = [()] * len(rows)
    runs: list[Run] = []
    waiting: list[list[int]] = []
    for size, places in groups.items():
        batches = batches_of([rows[place] for place in places], costs, size)
        refusal = REGISTRY[size[0]].refusal(*size[1:])
        for place in places:
            results[place] = (None, None, None, None, refusal)
        left = iter(places)
        if refusal is None:
            runs += [(size, batch) for batch in batches]
            waiting += [list(islice(left, *batch.batch)) for batch in batches]
    jobs = packed(runs)
    work = [[runs[place] for place in job] for job in jobs]
    done = map(timed, work) if executor is None else executor.map(timed, work)
    counts = [sum(len(waiting[place]) for place in job) for job in jobs]
    for job, found in zip(jobs, watched(done, counts, progress), strict=True):
        for run, values in zip(job, found, strict=True):
            for place, of_row in zip(waiting[run], values, strict=True):
                results[place] = (*of_row, None)
    table = (tuple(row[name] for name in columns) + found for row, found in zip(rows, results, strict=True))
    return Sweep((*columns, *RESULTS), tuple(table), unit)


def _check(grid: Any, executor: Any, progress: Any) -> list[str]:
    """Return the grid's columns, or refuse what no sweep can read."""
    if not isinstance(grid, Mapping):
        raise HybridLabError(
            f"a grid is a dict from names of columns to their values, such as {{'devices': [2, 4]}}, not {short_repr(grid)}"
        )
    names = [name for key in grid for name in names_of(key)]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise HybridLabError(f"the grid gives {twice[0]} twice: give it once, alone or together with other columns")
    for name in ("schedule", *RESULTS):
        if name in names:
            raise HybridLabError(f"the sweep itself fills the column {name}: give the grid's another name")
    for name, instead in ELSEWHERE.items():
        if name in names:
            raise HybridLabError(f"{name} is no column of a grid: {instead}")
    missing = [name for name in ("devices", "microbatches", "forward", "backward") if name not in names]
    if missing:
        raise HybridLabError(f"a grid needs devices, microbatches, forward and backward: {', '.join(missing)} missing")
    if executor is not None and not callable(getattr(executor, "map", None)):
        raise HybridLabError(f"executor must be a concurrent.futures.Executor, such as a ProcessPoolExecutor, not {short_repr(executor)}")
    if progress is not None and not isinstance(progress, bool):
        raise HybridLabError(f"progress must be True, False or None, not {short_repr(progress)}")
    return names


def _lines(schedules: Any, grid: Collection[str]) -> list[Row]:
    """Return a dict for each schedule: its name, and its chunks where the ``grid``, names of columns, does not give them."""
    wanted = "schedules are names, or pairs of a name and its chunks such as ('interleaved', 2)"
    several = [schedules] if _is_pair(schedules) or isinstance(schedules, str) else list(each_of(schedules, wanted))
    if not several:
        raise HybridLabError(f"{wanted}: give at least one")
    lines = []
    for each in several:
        name, chunks = each if _is_pair(each) else (each, None)
        name = known_schedule(name)
        line: Row = {"schedule": name}
        if chunks is not None and "chunks" in grid:
            raise HybridLabError(f"the grid gives chunks, and the pair {short_repr(each)} too: give one of them")
        if "chunks" not in grid:
            line["chunks"] = REGISTRY[name].fewest_chunks if chunks is None else whole_number(chunks, "chunks")
        lines.append(line)
    return lines


def _is_pair(value: Any) -> bool:
    """Whether this is a name and its chunks, and not two schedules."""
    two = isinstance(value, (tuple, list)) and len(value) == 2
    return two and isinstance(value[0], str) and not isinstance(value[1], (str, tuple, list))
