"""The function ``sweep``, which simulates schedules at every point of a grid of sizes and costs, and its table ``Sweep``."""

import os
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, overload

from hybridlab.checks import counted, each_of, item_of, known_name, short_repr, unit_of_time, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.progress import Progress, checked_progress
from hybridlab.schedules import REGISTRY, known_schedule
from hybridlab.sweep.grid import SIZES, Row, column_names, settings
from hybridlab.sweep.jobs import Results, Run, Size, batches_of, group_into_jobs
from hybridlab.sweep.keeping import Keeper
from hybridlab.sweep.query import accepted_values, refuse_impossible
from hybridlab.sweep.running import INTERRUPTED, NOT_RUN, Workers, checked_executor, run_jobs
from hybridlab.tables import Tabular

COSTS = ("forward", "backward", "weight_share", "p2p", "overlap")
NOT_COLUMNS = {  # arguments of Costs that cannot be columns, with advice
    "unit": "the whole sweep has one unit, as in sweep(..., unit='s')",
    "weight_gradient": "give its part of the backward, weight_share",
    "p2p_between": "a sweep has one latency for all links, p2p; simulate() takes Costs(..., p2p_between=...) of each setting",
    "per": "a sweep has times per device; simulate() takes Costs(..., per='stage') of each setting",
}
RESULTS = ("makespan", "device_span", "bubble_ratio", "peak_activations", "refused")

Values = tuple[Any, ...]


@dataclass(frozen=True, repr=False)
class Sweep(Tabular):
    """The table that :func:`sweep` returns. ``len`` gives the number of rows. An index or iteration gives a row as a dict.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns.
    values : tuple of tuple
        One tuple for each row, with one value for each column.
    unit : str or None
        The unit of all times in the table: "s", "ms" or "us". None means that times have no unit.

    Raises
    ------
    HybridLabError
        Two columns have the same name, or the number of values in a row differs from the number of columns.

    Examples
    --------
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
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise HybridLabError(f"the columns of a sweep are a tuple of names, each once, not {short_repr(names)}", "wrong-type")
        if len(set(names)) < len(names):
            raise HybridLabError(f"the columns of a sweep are a tuple of names, each once, not {short_repr(names)}", "duplicate-name")
        if not isinstance(rows, tuple):
            raise HybridLabError(f"the values of a sweep are a tuple of rows, not {short_repr(rows)}", "wrong-type")
        wrong = [row for row in rows if not isinstance(row, tuple) or len(row) != len(names)]
        if wrong:
            message = f"a row of a sweep is a tuple with a value for each of its {counted(len(names), 'column')}"
            raise HybridLabError(f"{message}, not {short_repr(wrong[0])}", "wrong-length")

    def to_rows(self) -> list[Row]:
        """Return one dict for each row, from the name of a column to its value."""
        return list(self)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Row]:
        return map(self._row, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        chosen = item_of(range(len(self)), place, "the table", "row")
        return tuple(map(self._row, chosen)) if isinstance(chosen, tuple) else self._row(chosen)

    def _row(self, place: int) -> Row:
        return dict(zip(self.columns, self.values[place], strict=True))

    def where(self, **values: Any) -> "Sweep":
        """Return a table of the rows in which each named column has the given value, or one of the given values. The table can be empty.

        Parameters
        ----------
        **values
            For each named column a value, or a list, an array or a series of values. In a column with one time per device, a list is also
            the value itself. The name of a schedule may be in upper or lower case.

        Raises
        ------
        HybridLabError
            The table has no such column (``unknown-name``), no schedule has this name (``unknown-name``), a list is ``empty``, or no row
            can have the value, such as a function, or a text in a column of numbers (``wrong-type``).

        Examples
        --------
        >>> table = sweep("1f1b", {"devices": 2, "microbatches": range(1, 9), "forward": 1, "backward": 2})
        >>> table.where(microbatches=[4, 8]).column("makespan")
        [15.0, 27.0]
        """
        wanted = {self._index(name): accepted_values(name, value) for name, value in values.items()}
        if all(len(each) == 1 for each in wanted.values()):
            try:  # the fast way, for the loops of labs
                if found := self._rows_with(tuple(wanted)).get(tuple(value for (value,) in wanted.values())):
                    return Sweep(self.columns, tuple(found), self.unit)
            except TypeError:  # a value that no dict takes as a key
                pass
        for index, accepted in wanted.items():
            refuse_impossible(self.columns[index], accepted, [row[index] for row in self.values])
        rows = (row for row in self.values if all(row[index] in accepted for index, accepted in wanted.items()))
        return Sweep(self.columns, tuple(rows), self.unit)

    def _rows_with(self, indices: tuple[int, ...]) -> dict[Values, list[Values]]:
        """Return the rows by their values in some columns. A loop of a lab asks for thousands of rows, so this is kept."""
        if indices not in self._kept:
            groups: dict[Values, list[Values]] = {}
            for row in self.values:
                groups.setdefault(tuple(row[index] for index in indices), []).append(row)
            self._kept[indices] = groups
        return self._kept[indices]

    @cached_property
    def _kept(self) -> dict[tuple[int, ...], dict[Values, list[Values]]]:
        return {}

    def column(self, name: str) -> list[Any]:
        """Return the values of one column, row by row.

        Raises
        ------
        HybridLabError
            The table has no such column.
        """
        index = self._index(name)
        return [row[index] for row in self.values]

    def _index(self, name: str) -> int:
        return self.columns.index(known_name(name, self.columns, "column"))

    @property
    def not_run(self) -> "Sweep":
        """A table of the rows that did not run, because the sweep was interrupted or a worker died. Empty after a complete sweep."""
        refusals = [row.get("refused") for row in self]
        rows = (row for row, why in zip(self.values, refusals, strict=True) if isinstance(why, str) and why.startswith(NOT_RUN))
        return Sweep(self.columns, tuple(rows), self.unit)

    def __repr__(self) -> str:
        return f"<{self._counts()}: {', '.join(self.columns)}>"

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _caption(self) -> str:
        return f"{self._counts()}, times {f'in {self.unit}' if self.unit else 'without a unit'}"

    def _counts(self) -> str:
        not_run = len(self.not_run)
        refused = sum(row.get("refused") is not None for row in self) - not_run
        return f"Sweep of {counted(len(self), 'row')}, {refused:,} refused{f', {not_run:,} not run' if not_run else ''}"


def sweep(
    schedules: Any,
    grid: Mapping[Any, Any],
    *,
    unit: str | None = "ms",
    executor: Workers | None = None,
    keep: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Sweep:
    """Return a table with the results of every schedule at every point of a grid, one row for each schedule and point.

    Parameters
    ----------
    schedules : str, pair, or sequence of these
        Names of schedules, or pairs (name, chunks). For a schedule given by its name alone, the number of chunks comes from the grid's
        column ``chunks``. Without this column, it is the smallest number of chunks that the schedule supports.
    grid : mapping
        A dict from the name of a column to one value, several values (an axis), or a function of other columns. The parameters of the
        function are the names of these columns. Columns whose values belong together are one axis, with a tuple of names as key, such as
        ``("forward", "backward"): [(1, 2), (2, 4)]``. The grid needs devices, microbatches, forward and backward. Optional are chunks,
        weight_share, p2p and overlap (see :class:`Costs`), and any other columns that functions read. For one time per device, use a
        function that returns a list, or a list of lists.
    unit : str or None
        The unit of all times: "s", "ms" or "us". None means that times have no unit.
    executor : concurrent.futures.Executor, optional
        An executor that runs the sweep in other processes: a ``ProcessPoolExecutor``, an ``MPIPoolExecutor`` of mpi4py, a ``Client`` of
        Dask, or another object whose ``submit`` returns a future with ``add_done_callback``. The table does not depend on the executor. A
        worker process knows only the schedules that are registered in its imported modules.
    keep : str or path, optional
        A CSV file for the rows. Each row is added when it has results. If the program is stopped or killed, the same call goes on: it reads
        the file and runs the other rows. At the end, the file is ``table.to_csv()`` without the rows that did not run. Delete the file
        when a schedule of your own has changed.
    progress : bool or callable, optional
        True shows a progress bar immediately (needs tqdm), and False never shows a progress bar. None shows a progress bar after five
        seconds if tqdm is installed. A function is called as ``progress(done, total)``, with the numbers of rows.

    Returns
    -------
    Sweep
        The rows are sorted by schedule, in the given order. Within a schedule, the last axis of the grid changes fastest. The columns are
        schedule, devices, microbatches, chunks, the other columns of the grid, then makespan, device_span, bubble_ratio, peak_activations
        (the largest over the devices) and refused. If a schedule does not exist at a size, ``refused`` is the reason and the results are
        None. In all other rows, ``refused`` is None.

        After an interrupt (Ctrl-C), the table has the results so far. The other rows have no results, and their ``refused`` begins with
        "not run". The same holds for rows that an executor cannot run, for example because a worker died. In this case, the function warns
        with a ``RuntimeWarning``. ``Sweep.not_run`` has all these rows.

    Raises
    ------
    HybridLabError
        A name is unknown, costs are wrong, or the grid cannot be read. The grid has separate lists for two of forward, backward and
        weight_share, which can mean pairs or all combinations. ``executor`` is not an executor. ``keep`` has rows of another sweep. The
        function finds these faults before it runs a job. Later, this error means that the executor could not run a single job, or that the
        rows cannot be written.

    Examples
    --------
    >>> times = {"forward": lambda devices: 400 / devices, "backward": lambda forward: 2 * forward, "p2p": [0, 4]}
    >>> table = sweep(("interleaved", 2), {"devices": [4, 8], "microbatches": lambda devices: 2 * devices, **times})
    >>> [(row["devices"], row["p2p"], row["makespan"]) for row in table]
    [(4, 0, 2850.0), (4, 4, 2906.0), (8, 0, 2925.0), (8, 4, 3045.0)]
    """
    given = _grid_columns(grid)
    checked_progress(progress)
    executor = checked_executor(executor)
    unit_of_time(unit)
    rows = settings(_schedule_columns(schedules, given), grid)
    columns = ("schedule", *SIZES, *(name for name in given if name not in SIZES))
    arguments = [tuple(row[name] for name in columns) for row in rows]
    keeper = None if keep is None else Keeper(keep, (*columns, *RESULTS), unit)
    results: list[Values | None] = [None] * len(rows) if keeper is None else keeper.known(arguments)  # filled in the order of the jobs
    costs = [name for name in COSTS if name in given]
    places_of: dict[Size, list[int]] = {}
    for place, row in enumerate(rows):
        if results[place] is None:
            places_of.setdefault((row["schedule"], row["devices"], row["microbatches"], row["chunks"]), []).append(place)
    runs: list[Run] = []
    places_of_run: list[list[int]] = []
    for size, places in places_of.items():
        batches = batches_of([rows[place] for place in places], costs, size)  # wrong costs raise an error even at refused sizes
        refusal = REGISTRY[size[0]].refusal(*size[1:])
        for place in places:  # rows of supported sizes get their results later
            results[place] = (None, None, None, None, refusal)
        remaining = iter(places)
        if refusal is None:
            runs += [(size, batch) for batch in batches]
            places_of_run += [list(islice(remaining, *batch.batch)) for batch in batches]  # one row for each setting
    jobs = group_into_jobs(runs)
    work = [[runs[index] for index in job] for job in jobs]
    counts = [sum(len(places_of_run[index]) for index in job) for job in jobs]

    def store(number: int, outcome: list[Results]) -> None:
        """Store the results of a job, and add its rows to the file."""
        places = list(chain.from_iterable(places_of_run[index] for index in jobs[number]))
        for place, of_row in zip(places, chain.from_iterable(outcome), strict=True):
            results[place] = (*of_row, None)
        if keeper is not None:
            keeper.add(arguments[place] + (results[place] or ()) for place in places)

    for job, outcome in zip(jobs, run_jobs(work, counts, executor, progress, store), strict=True):
        if isinstance(outcome, str):
            for place in chain.from_iterable(places_of_run[index] for index in job):
                results[place] = (None, None, None, None, outcome)
    values = (row + (found or ()) for row, found in zip(arguments, results, strict=True))
    table = Sweep((*columns, *RESULTS), tuple(values), unit)
    if keeper is not None:
        keeper.finish(row for row in table.values if not str(row[-1]).startswith(NOT_RUN))
    _warn_of_failures(table)
    return table


def _warn_of_failures(table: Sweep) -> None:
    """Warn if the executor did not run some rows. An interrupt causes no warning."""
    reasons = [why for why in table.not_run.column("refused") if why != INTERRUPTED]
    if reasons:
        message = f"{len(reasons):,} of {counted(len(table), 'row')} have no results, {reasons[0]}; the table's not_run has these rows"
        warnings.warn(message, RuntimeWarning, stacklevel=3)  # the warning points to the caller of ``sweep``


def _grid_columns(grid: Any) -> list[str]:
    """Return the columns of a grid. Raise an error for invalid arguments."""
    if not isinstance(grid, Mapping):
        wanted = "a grid is a dict from names of columns to their values, such as {'devices': [2, 4]}"
        raise HybridLabError(f"{wanted}, not {short_repr(grid)}", "wrong-type")
    names = [name for key in grid for name in column_names(key)]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        message = f"the grid gives {twice[0]} twice: give it once, alone or together with other columns"
        raise HybridLabError(message, "duplicate-name")
    for name in ("schedule", *RESULTS):
        if name in names:
            raise HybridLabError(f"the sweep itself fills the column {name}: rename the column of the grid", "reserved-name")
    for name, instead in NOT_COLUMNS.items():
        if name in names:
            raise HybridLabError(f"{name} is not a column of a grid: {instead}", "not-a-column")
    missing = [name for name in ("devices", "microbatches", "forward", "backward") if name not in names]
    if missing:
        message = f"a grid needs devices, microbatches, forward and backward: {', '.join(missing)} missing"
        raise HybridLabError(message, "missing-argument")
    return names


def _schedule_columns(schedules: Any, grid: Collection[str]) -> list[Row]:
    """Return a dict for each schedule: its name, and also its chunks unless the ``grid`` has a column chunks."""
    wanted = "schedules are names, or pairs of a name and its chunks such as ('interleaved', 2)"
    several = [schedules] if _is_pair(schedules) or isinstance(schedules, str) else list(each_of(schedules, wanted))
    if not several:
        raise HybridLabError(f"{wanted}: give at least one", "empty")
    rows = []
    for each in several:
        name, chunks = each if _is_pair(each) else (each, None)
        name = known_schedule(name)
        row: Row = {"schedule": name}
        if chunks is not None and "chunks" in grid:
            message = f"the grid gives chunks, and the pair {short_repr(each)} too: give one of them"
            raise HybridLabError(message, "conflicting-arguments")
        if "chunks" not in grid:
            row["chunks"] = REGISTRY[name].fewest_chunks if chunks is None else whole_number(chunks, "chunks")
        rows.append(row)
    return rows


def _is_pair(value: Any) -> bool:
    """Return whether the value is a pair (name, chunks) and not a list of two schedules."""
    # ("gpipe", "1f1b") are two schedules; ("interleaved", 2) is one pair
    two = isinstance(value, (tuple, list)) and len(value) == 2
    return two and isinstance(value[0], str) and not isinstance(value[1], (str, tuple, list))
