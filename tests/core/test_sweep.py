"""Test sweeps: rows compared with single simulations and closed forms, grids, executors, and refusals."""

import copy
import pickle
import subprocess
import sys
import types
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, outcome
from profiles import examples

from hybridlab import REGISTRY, Costs, Sweep, build, formulas, progress, simulate, sweep
from hybridlab.simulation import simulate_many
from hybridlab.sweep import jobs
from hybridlab.sweep.grid import MOST_ROWS

GRID = {"devices": [2, 4], "microbatches": [4, 8], "forward": 1.0, "backward": 2.0, "p2p": [0, 0.5]}
TIMES = {"forward": 1, "backward": 2}


def one(name: str, row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the results of one row, simulated alone."""
    given = {cost: row[cost] for cost in ("forward", "backward", "weight_share", "p2p", "overlap") if cost in row}
    timeline = simulate(build(name, row["devices"], row["microbatches"], row["chunks"]), Costs(**given))
    return timeline.makespan, timeline.device_span, timeline.bubble_ratio, max(timeline.peak_activations.tolist())


def results(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["makespan"], row["device_span"], row["bubble_ratio"], row["peak_activations"]


def test_every_row_equals_its_simulation_alone_for_every_schedule() -> None:
    table = sweep(list(REGISTRY), GRID)
    assert len(table) == len(REGISTRY) * 8
    for row in table:
        if row["refused"] is None:
            assert results(row) == one(row["schedule"], row)
    assert any(row["refused"] is None for row in table)


def test_rows_come_schedule_by_schedule_in_the_order_of_the_grid() -> None:
    table = sweep(["gpipe", "1f1b"], GRID)
    wanted = [
        (name, devices, microbatches, p2p)
        for name in ("gpipe", "1f1b")
        for devices in (2, 4)
        for microbatches in (4, 8)
        for p2p in (0, 0.5)
    ]
    assert [(row["schedule"], row["devices"], row["microbatches"], row["p2p"]) for row in table] == wanted
    turned = sweep("gpipe", {"p2p": [0, 0.5], "microbatches": [4, 8], "devices": 2, **TIMES})
    assert [(row["p2p"], row["microbatches"]) for row in turned] == [(0, 4), (0, 8), (0.5, 4), (0.5, 8)]
    for row in (*table, *turned):
        form = formulas.gpipe_makespan if row["schedule"] == "gpipe" else formulas.one_f_one_b_makespan
        assert row["makespan"] == form(row["devices"], row["microbatches"], 1, 2, row["p2p"])


def test_columns_are_sizes_then_the_grid_then_results() -> None:
    table = sweep("gpipe", {"forward": 1, "recompute": 0.5, "devices": 2, "backward": 2, "microbatches": 4})
    sizes = ("schedule", "devices", "microbatches", "chunks")
    found = ("makespan", "device_span", "bubble_ratio", "peak_activations", "refused")
    assert table.columns == (*sizes, "forward", "recompute", "backward", *found)
    assert table.to_rows() == [dict(zip(table.columns, ("gpipe", 2, 4, 1, 1, 0.5, 2, 15.0, 15.0, 0.2, 4.0, None), strict=True))]


@in_turn(
    "schedules, lines",
    [
        ("hanayo", [("hanayo", 2)]),
        (("hanayo", 4), [("hanayo", 4)]),
        (("gpipe", "1f1b"), [("gpipe", 1), ("1f1b", 1)]),
        (["gpipe", ("interleaved", 3), ["hanayo", 4]], [("gpipe", 1), ("interleaved", 3), ("hanayo", 4)]),
        ((("interleaved", 2), ("interleaved", 4)), [("interleaved", 2), ("interleaved", 4)]),
        (iter(["zb-h1"]), [("zb-h1", 1)]),
    ],
)
def test_schedules_are_names_or_pairs_one_or_several(schedules: Any, lines: list[tuple[str, int]]) -> None:
    table = sweep(schedules, {"devices": 2, "microbatches": 4, **TIMES})
    assert [(row["schedule"], row["chunks"]) for row in table] == lines


def test_chunks_can_be_an_axis_and_a_function() -> None:
    grid = {"devices": 2, "microbatches": 4, **TIMES}
    table = sweep(["interleaved", "hanayo"], {"chunks": [2, 3], **grid})
    assert [(row["schedule"], row["chunks"], row["refused"]) for row in table] == [
        ("interleaved", 2, None),
        ("interleaved", 3, None),
        ("hanayo", 2, None),
        ("hanayo", 3, "hanayo supports 2, 4, 6, ... chunks a device, not 3"),
    ]
    table = sweep(["gpipe", "hanayo"], {"chunks": lambda schedule: 1 if schedule == "gpipe" else 4, **grid})
    assert table.column("chunks") == [1, 4]


def test_functions_read_other_columns_whatever_their_order() -> None:
    grid = {
        "backward": lambda forward, recompute: (2 + recompute) * forward,
        "forward": lambda devices, work=400: work / devices,
        "recompute": [0, 1],
        "microbatches": lambda devices: 2 * devices,
        "devices": np.array([2, 4]),
    }
    table = sweep("gpipe", grid)
    assert [(row["recompute"], row["devices"], row["forward"], row["backward"]) for row in table] == [
        (0, 2, 200, 400),
        (0, 4, 100, 200),
        (1, 2, 200, 600),
        (1, 4, 100, 300),
    ]
    assert [row["makespan"] for row in table] == [5 * 600, 11 * 300, 5 * 800, 11 * 400]


def test_one_time_a_device_from_a_function_or_a_list_of_lists() -> None:
    slow = {"devices": [2, 3], "microbatches": 6, "forward": lambda devices: [2] + [1] * (devices - 1), "backward": 2}
    for row in sweep(["1f1b", "zb-h1"], slow):
        assert row["forward"] == (2, *[1] * (row["devices"] - 1))
        assert results(row) == one(row["schedule"], row)
    every = product([[1, 2], 3, [4]], np.array([[2.0, 1], [2, 2]]))
    rows = sweep("gpipe", {"devices": 2, "microbatches": 2, ("forward", "backward"): every})
    assert [(row["forward"], row["backward"]) for row in rows] == [(f, b) for f in ((1, 2), 3, (4,)) for b in ((2, 1), (2, 2))]
    assert [results(row) for row in rows] == [one("gpipe", row) for row in rows]


def test_overlap_counts_where_pairs_overlap() -> None:
    grid = {"devices": 4, "microbatches": 8, **TIMES, "p2p": 0.25, "overlap": [0, 0.5, 1]}
    names = ["1f1b", "dualpipe-v", "dualpipe"]
    table = sweep(names, grid)
    assert [results(row) for row in table] == [one(row["schedule"], row) for row in table]
    for name in names:
        assert len(set(table.where(schedule=name).column("makespan"))) == (1 if name == "1f1b" else 3)


def test_rows_are_plain_data() -> None:
    grid = {"devices": np.array([2]), "microbatches": [np.int64(4)], "forward": lambda devices: np.full(2, 1.0), "backward": np.float32(2)}
    row = sweep("zb-h1", {**grid, "p2p": lambda devices: [np.float64(0)], "note": ["a", "b"]})[1]
    assert {type(value) for value in row.values()} == {str, int, float, tuple, type(None)}
    assert {type(value) for value in (*row["forward"], *row["p2p"])} == {float}
    assert row["note"] == "b"


def test_inputs_are_never_changed() -> None:
    grid: dict[str, Any] = {"devices": [2, 4], "microbatches": 4, "forward": np.array([1.0, 2.0]), "backward": [[2, 2]], "p2p": [0]}
    schedules = ["gpipe", ["hanayo", 2]]
    before = copy.deepcopy((schedules, grid))
    with refusal("does-not-fit", "2 devices", "the schedule has 4"):
        sweep(schedules, grid)
    grid["backward"] = before[1]["backward"] = 2
    sweep(schedules, grid)
    assert schedules == before[0]
    assert list(grid) == list(before[1])
    assert all(np.array_equal(grid[name], value) for name, value in before[1].items())


def test_large_batches_are_cut_and_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = {"devices": [2, 4], "microbatches": 4, "forward": np.linspace(1, 2, 11), "backward": 2}
    whole = sweep(["1f1b", "zb-h1"], grid)
    seen = []
    monkeypatch.setattr(jobs, "simulate_many", lambda runs: seen.append([costs.batch for _, costs in runs]) or simulate_many(runs))
    assert sweep(["1f1b", "zb-h1"], grid) == whole
    assert seen == [[(11,)] * 4]  # all sizes with all their costs in one call
    monkeypatch.setattr(jobs, "CELLS", 3 * 4 * 4 * 3)
    seen.clear()
    assert sweep(["1f1b", "zb-h1"], grid) == whole
    assert [batch for batches in seen for batch in batches] == [(6,), (5,), (3,), (3,), (3,), (2,)] * 2
    assert all(len(batches) == 1 for batches in seen)


# Executors


class AtOnce(Executor):
    """An executor that runs each job when it is submitted."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as why:
            future.set_exception(why)
        return future


class Backwards(Executor):
    """An executor that waits for all jobs and runs the last one first."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.waiting: list[Callable[[], None]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append(lambda: future.set_result(function(*arguments)))
        if len(self.waiting) == self.count:
            for run in reversed(self.waiting):
                run()
        return future


class Exchanged(AtOnce):
    """An executor with a fault: a job gets the results of the job before it."""

    last: Any = None

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        right, wrong = super().submit(function, *arguments, **named), Future[Any]()
        wrong.set_result(self.last or right.result())
        self.last = right.result()
        return wrong


class Counting(AtOnce):
    """An executor that keeps the jobs that it was given."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        self.jobs += arguments
        return super().submit(function, *arguments, **named)


MANY = {"devices": [1, 2, 3], "microbatches": [6, 12], "forward": [1.0, 0.7], "backward": lambda forward: 2 * forward, "p2p": [0, 0.1]}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """The sweep computed in one job; later sweeps of the test are cut into many jobs."""
    whole = sweep(list(REGISTRY), MANY)
    monkeypatch.setattr(jobs, "CELLS", 2000)
    return whole


def test_an_executor_changes_no_value_and_no_order_and_its_jobs_may_finish_in_any(alone: Sweep) -> None:
    with ThreadPoolExecutor(3) as pool:
        assert sweep(list(REGISTRY), MANY, executor=pool) == alone
    counting = Counting()
    assert sweep(list(REGISTRY), MANY, executor=counting) == alone
    assert len(counting.jobs) > len(REGISTRY)
    assert sweep(list(REGISTRY), MANY, executor=Backwards(len(counting.jobs))) == alone


def test_results_of_another_job_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sweep("gpipe", GRID)
    monkeypatch.setattr(jobs, "CELLS", 1)
    assert sweep("gpipe", GRID, executor=AtOnce()) == whole
    assert sweep("gpipe", GRID, executor=Exchanged()) != whole


@in_turn("lost", [lambda runs: runs[1:], lambda runs: [rows[1:] for rows in runs]])
def test_an_executor_that_loses_results_is_found(lost: Callable[[Any], Any]) -> None:
    class Lossy(AtOnce):
        def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
            return super().submit(lambda: lost(function(*arguments, **named)))

    with pytest.raises(ValueError, match="shorter"):
        sweep("gpipe", GRID, executor=Lossy())


@in_turn("executor", [nullcontext, AtOnce, ThreadPoolExecutor])
def test_what_a_job_raises_comes_out(monkeypatch: pytest.MonkeyPatch, executor: Callable[[], Any]) -> None:
    def broken(runs: Any) -> Any:
        if any(schedule.devices == 4 for schedule, _ in runs):
            raise ZeroDivisionError("planted")
        return simulate_many(runs)

    monkeypatch.setattr(jobs, "simulate_many", broken)
    with executor() as pool, pytest.raises(ZeroDivisionError, match="planted"):
        sweep("gpipe", GRID, executor=pool)


def test_what_is_refused_is_refused_before_anything_is_sent() -> None:
    class Nothing(Executor):
        def submit(self, *_: Any, **__: Any) -> Any:
            raise SystemExit("nothing is to be sent")

    cases: dict[str, dict[str, Any]] = {
        "negative": {"forward": -1},
        "not-finite": {"forward": [1, float("nan")]},
        "does-not-fit": {"forward": [[1, 2, 3]]},
        "too-small": {"devices": 0},
        "unknown-name": {"backward": lambda nothing: 1},
    }
    for code, wrong in cases.items():
        with refusal(code):
            sweep("gpipe", {**GRID, **wrong}, executor=Nothing())
    counting = Counting()
    sweep(["gpipe", "interleaved"], {"devices": 4, "microbatches": [4, 6], **TIMES}, executor=counting)
    assert [size for job in counting.jobs for size, _ in job] == [("gpipe", 4, 4, 1), ("gpipe", 4, 6, 1), ("interleaved", 4, 4, 2)]
    assert pickle.loads(pickle.dumps(counting.jobs))[0][0][0] == counting.jobs[0][0][0]  # noqa: S301 - of our own making


class Failing(AtOnce):
    """An executor that fails at some jobs, when they are submitted or later."""

    def __init__(self, fails: Callable[[int], bool], error: Exception, when_submitted: bool = False) -> None:
        self.fails, self.error, self.when_submitted, self.count = fails, error, when_submitted, -1

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        self.count += 1
        if not self.fails(self.count):
            return super().submit(function, *arguments, **named)
        if self.when_submitted:
            raise self.error
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future


FAILURES = [
    (BrokenExecutor("it was killed"), "a worker of the executor died (BrokenExecutor: it was killed)"),
    (CancelledError(), "the executor did not run the job (CancelledError)"),
    (
        ModuleNotFoundError("No module named 'hybridlab'"),
        "the executor did not run the job (ModuleNotFoundError: No module named 'hybridlab')",
    ),
    (RuntimeError("closed\nfor good"), "the executor did not run the job (RuntimeError: closed)"),
]


@in_turn("error, words", FAILURES)
def test_rows_that_an_executor_does_not_run_have_the_reason(monkeypatch: pytest.MonkeyPatch, error: Exception, words: str) -> None:
    whole = sweep("gpipe", GRID)
    monkeypatch.setattr(jobs, "CELLS", 1)  # a job for each of the eight rows
    for when_submitted in (False, True):
        with pytest.warns(RuntimeWarning, match="of 8 rows have no results, not run: ") as warned:
            table = sweep("gpipe", GRID, executor=Failing(lambda job: job == 5, error, when_submitted))
        lost = [5, 6, 7] if when_submitted else [5]
        assert [row for place, row in enumerate(table.values) if place not in lost] == [
            row for place, row in enumerate(whole.values) if place not in lost
        ]
        assert table.not_run.column("refused") == [f"not run: {words}"] * len(lost)
        assert len(warned) == 1
        assert warned[0].filename == __file__


@in_turn("error, words", FAILURES)
@in_turn("when_submitted", [False, True])
def test_an_executor_that_runs_nothing_is_an_error(error: Exception, words: str, when_submitted: bool) -> None:
    with refusal("not-run", "the executor ran no job of the sweep", words):
        sweep("gpipe", GRID, executor=Failing(lambda job: True, error, when_submitted))


def test_a_pool_that_is_closed_is_an_error() -> None:
    with ThreadPoolExecutor() as pool:
        pass
    with refusal("not-run", "RuntimeError", "after shutdown"):
        sweep("gpipe", GRID, executor=pool)


def test_an_interrupt_before_anything_has_finished_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(runs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "simulate_many", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep("gpipe", GRID)


def test_jobs_that_wait_are_cancelled_when_a_job_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "CELLS", 1)
    monkeypatch.setattr(jobs, "simulate_many", lambda runs: 1 / 0)
    waiting: list[Future[Any]] = []

    class First(AtOnce):
        def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
            waiting.append(Future() if waiting else super().submit(function, *arguments, **named))
            return waiting[-1]

    with pytest.raises(ZeroDivisionError):
        sweep("gpipe", GRID, executor=First())
    assert [future.cancelled() for future in waiting] == [False] + [True] * 7


# The table


def test_a_refused_size_says_why_and_has_no_results() -> None:
    table = sweep("interleaved", {"devices": 4, "microbatches": [4, 6], "forward": [1, 2], "backward": 2})
    refused = "interleaved needs microbatches divisible by devices: 6 is not divisible by 4; try 4 or 8"
    assert table.column("refused") == [None, None, refused, refused]
    assert [results(row) for row in table.where(microbatches=6)] == [(None,) * 4] * 2
    assert all(row["makespan"] > 0 for row in table.where(refused=None))
    huge = sweep("gpipe", {"devices": 10**6, "microbatches": 10**6, **TIMES})
    assert "fit in memory" in huge[0]["refused"]


def test_where_and_column_and_repr() -> None:
    table = sweep(["gpipe", "1f1b"], GRID)
    part = table.where(schedule="1f1b", p2p=0.5)
    assert isinstance(part, Sweep)
    assert (len(table), len(part), part.columns) == (16, 4, table.columns)
    assert part.column("microbatches") == [4, 8, 4, 8]
    assert table.where() == table
    assert len(table.where(schedule="1f1b", chunks=2)) == 0
    assert part.to_rows() == [row for row in table if row["schedule"] == "1f1b" and row["p2p"] == 0.5]
    assert repr(part).startswith("<Sweep of 4 rows, 0 refused: schedule, devices, microbatches, chunks, forward,")
    lists = sweep("gpipe", {"devices": 2, "microbatches": 2, "forward": [[1, 2], [2, 1]], "backward": 2})
    assert len(lists.where(forward=[2, 1])) == len(lists.where(forward=np.array([2, 1]))) == 1
    assert len(Sweep(("x",), (({},), ({"y": 1},))).where(x={})) == 1  # a dict cannot be looked up


@in_turn(
    "values, wanted",
    [
        ([4, 8], [4, 8]),
        ((8,), [8]),
        (np.array([4, 5]), [4]),
        ({8}, [8]),
        (range(5), [4]),
        (np.float32(8), [8]),
        (5, []),
        (None, []),
    ],
)
def test_where_takes_one_value_or_several(values: Any, wanted: list[int]) -> None:
    table = sweep(["gpipe", "1f1b"], GRID)
    rows = [row for row in table if row["microbatches"] in wanted]
    assert table.where(microbatches=values).to_rows() == rows
    assert table.where(microbatches=values, schedule=["GPipe", "zb-h1"]).to_rows() == [row for row in rows if row["schedule"] == "gpipe"]


@in_turn(
    "column, value, code, words",
    [
        ("microbatches", lambda microbatches: microbatches > 4, "wrong-type", "lambda microbatches number list"),
        ("microbatches", "4", "wrong-type", "'4' microbatches number"),
        ("microbatches", [4, print], "wrong-type", "print microbatches"),
        ("p2p", float("nan"), "wrong-type", "nan p2p"),
        ("p2p", [], "empty", "p2p"),
        ("p2p", {}, "wrong-type", "{} p2p"),
        ("schedule", "1f1", "unknown-name", "'1f1' '1f1b'"),
        ("schedule", 3, "wrong-type", "3 schedule text"),
    ],
)
def test_a_query_that_no_row_can_answer_is_refused(column: str, value: Any, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        sweep("gpipe", GRID).where(**{column: value})


def test_a_table_made_by_hand_says_how_many_rows_were_refused() -> None:
    assert repr(Sweep(("x", "makespan"), ((1, 2.0), (2, 3.0)))) == "<Sweep of 2 rows, 0 refused: x, makespan>"
    assert repr(Sweep(("refused", "x"), ((None, 2), ("too small", 3)))) == "<Sweep of 2 rows, 1 refused: refused, x>"
    assert repr(Sweep((), ((),))).startswith("<Sweep of 1 row, 0 refused")


@in_turn(
    "columns, values, code, words",
    [
        (5, ((1,),), "wrong-type", ("columns", "not 5")),
        (("x", 2), (), "wrong-type", ("columns", "('x', 2)")),
        (("x", "x"), ((1, 2),), "duplicate-name", ("columns", "('x', 'x')")),
        (("x",), 5, "wrong-type", ("values", "not 5")),
        (("x",), ((1,), (1, 2)), "wrong-length", ("row", "1 column", "(1, 2)")),
        (("x",), (7,), "wrong-length", ("row", "not 7")),
    ],
)
def test_what_is_no_table_is_refused_when_it_is_made(columns: Any, values: Any, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        Sweep(columns, values)


def test_a_sweep_cannot_be_changed() -> None:
    table = sweep("gpipe", GRID)
    with pytest.raises(AttributeError):
        table.values = ()  # type: ignore[misc]
    table[0]["makespan"] = 0
    table.column("makespan")[0] = 0
    assert table == sweep("gpipe", GRID)
    assert hash(table) == hash(sweep("gpipe", GRID))
    assert pickle.loads(pickle.dumps(table)) == table  # noqa: S301 - of our own making


# The bar


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    shown: list[Any] = []

    class Bar:
        def __init__(self, total: int, unit: str, disable: bool) -> None:
            self.total, self.n, self.closed, self.disable = total, 0, False, disable
            shown.append(self)

        def update(self, more: int) -> None:
            self.n += more

        def close(self) -> None:
            self.closed = True

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    return shown


def test_a_bar_is_shown_when_asked_for_and_counts_rows(bars: list[Any]) -> None:
    sweep("gpipe", GRID)
    sweep("gpipe", GRID, progress=False)
    assert not bars
    sweep("gpipe", GRID, progress=True)
    assert [(bar.total, bar.n, bar.closed) for bar in bars] == [(8, 8, True)]


def test_a_function_is_told_how_many_rows_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "CELLS", 1)
    seen: list[tuple[int, int]] = []
    sweep("gpipe", GRID, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 8) for done in range(1, 9)]


def test_a_bar_obeys_the_variable_of_tqdm(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "1"):
        monkeypatch.setenv("TQDM_DISABLE", value)
        sweep("gpipe", GRID, progress=True)
    assert [bar.disable for bar in bars] == [False, True]


def test_a_long_sweep_shows_a_bar_unless_it_is_switched_off(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(jobs, "CELLS", 1)  # a job for each size
    sweep("gpipe", GRID, progress=False)
    assert not bars
    sweep("gpipe", GRID)
    monkeypatch.setattr(progress, "PATIENCE", 3)
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=count().__next__))
    sweep("1f1b", GRID)  # the bar appears at the third of four sizes, and counts the first two
    assert [(bar.total, bar.n, bar.closed) for bar in bars] == [(8, 8, True)] * 2


def test_without_tqdm_only_a_bar_that_was_asked_for_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(progress, "PATIENCE", 0)
    assert len(sweep("gpipe", GRID)) == 8
    with refusal("not-installed", "pip install tqdm"):
        sweep("gpipe", GRID, progress=True)


# Rows that are kept


def test_a_kept_sweep_is_its_csv_and_runs_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = {**GRID, "devices": [2, 3], "note": ["a, b", None, float("nan")], "forward": [[1, 2.5]], "microbatches": [3, 4]}
    grid = {**grid, "devices": 2}
    table = sweep(["interleaved", "1f1b"], grid, keep=tmp_path / "rows.csv")
    assert table == sweep(["interleaved", "1f1b"], grid)
    assert (tmp_path / "rows.csv").read_text() == table.to_csv()
    monkeypatch.setattr(jobs, "simulate_many", None)
    assert sweep(["interleaved", "1f1b"], {**grid, "backward": 2, "p2p": [0.0, 0.5]}, keep=str(tmp_path / "rows.csv")) == table


def test_a_sweep_whose_file_was_cut_anywhere_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    table = sweep("gpipe", {**GRID, "note": ['two\n"lines"']}, keep=file)
    text = file.read_text()
    for length in {*range(0, len(text), 7), *range(len(text) - 20, len(text))}:
        file.write_text(text[:length])
        assert sweep("gpipe", {**GRID, "note": ['two\n"lines"']}, keep=file) == table, text[:length]
        assert file.read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_a_killed_sweep_has_kept_the_jobs_that_had_finished(tmp_path: Path) -> None:
    program = f"""
import os
from hybridlab import sweep
from hybridlab.sweep import jobs
seen, real = [], jobs.simulate_many
def simulate_many(runs):
    seen.append(runs)
    if len(seen) == 3:
        os.kill(os.getpid(), 9)
    return real(runs)
jobs.CELLS, jobs.simulate_many = 1, simulate_many
sweep("gpipe", {GRID}, keep="rows.csv")
"""
    killed = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr
    whole = sweep("gpipe", GRID)
    _, *rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert rows == whole.to_csv().splitlines()[1:3]
    assert sweep("gpipe", GRID, keep=tmp_path / "rows.csv") == whole


def test_rows_that_did_not_run_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "CELLS", 1)
    with pytest.warns(RuntimeWarning, match="have no results"):
        table = sweep("gpipe", GRID, executor=Failing(lambda place: place > 2, BrokenExecutor("gone")), keep=tmp_path / "rows.csv")
    kept = Sweep(table.columns, tuple(row for row in table.values if row[-1] is None))
    assert (tmp_path / "rows.csv").read_text() == kept.to_csv()
    assert len(kept) == 3
    assert sweep("gpipe", GRID, keep=tmp_path / "rows.csv") == sweep("gpipe", GRID)


@in_turn(
    "schedules, change, unit, words",
    [
        ("gpipe", {"devices": 2}, "ms", "row devices 4"),
        ("1f1b", {}, "ms", "row schedule gpipe"),
        ("gpipe", {"forward": 1.5}, "ms", "row forward 1.0"),
        ("gpipe", {"note": 1}, "ms", "columns note"),
        ("gpipe", {}, "s", "unit ms s"),
        ("gpipe", {}, None, "unit ms None"),
    ],
)
def test_rows_of_another_sweep_are_refused_and_stay(
    schedules: str, change: dict[str, Any], unit: str | None, words: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("kept") / "rows.csv"
    sweep("gpipe", GRID, keep=file)
    before = file.read_text()
    with refusal("does-not-fit", *words.split()):
        sweep(schedules, {**GRID, **change}, unit=unit, keep=file)
    assert file.read_text() == before


@in_turn(
    "text, words",
    [
        ("a letter", "columns"),
        ("schedule;devices\n", "columns"),
        ("\0" * 200, "columns"),
        ("HEAD1,2,3\ngpipe,2\n", "line 2 3 cells"),
        ("HEADgpipe,2,4,1,1.0,2.0,0,fast,1,1,1,,ms\n", "fast"),
    ],
)
def test_a_file_that_is_no_sweep_is_refused_and_stays(text: str, words: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("kept") / "rows.csv"
    text = text.replace("HEAD", sweep("gpipe", GRID).to_csv().splitlines()[0] + "\n")
    file.write_text(text)
    with refusal("does-not-fit", str(file), *words.split()):
        sweep("gpipe", GRID, keep=file)
    assert file.read_text() == text


@in_turn(
    "keep, code, words",
    [
        (3, "wrong-type", "keep 3"),
        (b"rows.csv", "wrong-type", "keep"),
        ("a\0.csv", "wrong-type", "keep"),
        ("rows.parquet", "unknown-format", "'rows.csv' 'rows.parquet' to_pandas()"),
        ("no/folder/rows.csv", "not-written", "no/folder/rows.csv"),
        ("", "unknown-format", "'rows.csv'"),
    ],
)
def test_a_place_that_cannot_keep_rows_is_refused(keep: Any, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        sweep("gpipe", GRID, keep=keep)


def test_an_executor_whose_futures_cannot_tell_their_end_is_refused() -> None:
    """submitit has such futures."""

    class Submits:
        def submit(self, function: Any, *arguments: Any) -> Any:
            return types.SimpleNamespace(result=lambda: function(*arguments))  # and no cancel, either

    with refusal("wrong-type", "Submits", "add_done_callback", "SlurmClusterExecutor"):
        sweep("gpipe", GRID, executor=Submits())


# Bad input


@in_turn(
    "change, code, words",
    [
        ({"devices": ...}, "missing-argument", ": devices missing"),
        ({"forward": ..., "backward": ...}, "missing-argument", ": forward, backward missing"),
        ({"devices": [2, 2.5]}, "not-a-whole-number", "devices 2.5"),
        ({"microbatches": lambda devices: devices / 2}, "not-a-whole-number", "microbatches 1.0"),
        ({"devices": []}, "empty", "devices"),
        ({"forward": lambda device: 1}, "unknown-name", "forward: 'device' 'devices'"),
        ({"forward": lambda forward: 1}, "circular-functions", "forward -> forward"),
        ({"forward": lambda backward: 1, "backward": lambda forward: 1}, "circular-functions", "forward backward ->"),
        ({"forward": lambda *devices: 1}, "unreadable-parameters", "forward *devices lambda"),
        ({"forward": lambda devices, /: 1}, "unreadable-parameters", "forward devices lambda"),
        ({"forward": dict}, "unreadable-parameters", "forward dict lambda"),
        ({"forward": [1, -1]}, "negative", "forward -1.0 schedule 'gpipe', chunks 1,"),
        ({"backward": [1, float("nan")]}, "not-finite", "backward nan row"),
        ({"weight_share": 1.5}, "out-of-range", "weight_share 1.5"),
        ({"p2p": [0, "fast"]}, "not-a-number", "p2p 'fast'"),
        ({"p2p": lambda devices: [1, 2]}, "ambiguous", "p2p (1, 2)"),
        ({"forward": [[1, 2, 3]]}, "does-not-fit", "3 devices 2"),
        ({"forward": lambda devices: [1, 2]}, "does-not-fit", "2 devices 4"),
        ({"forward": [[[1, 2], [3, 4]]]}, "wrong-shape", "device"),
        ({"forward": [[]]}, "empty", "forward"),
        ({"forward": None}, "not-a-number", "forward None"),
        ({"forward": {1: 2}}, "not-a-number", "forward {1: 2}"),
        ({"devices": {2, 4}}, "not-a-whole-number", "devices {2, 4}"),
        ({"overlap": [0, 2]}, "out-of-range", "overlap 2"),
        ({"forward": np.ma.masked_array([1, 2], [True, False])}, "masked", "forward"),
        ({"makespan": 3}, "reserved-name", "makespan"),
        ({"schedule": "gpipe"}, "reserved-name", "schedule"),
        ({3: 4}, "wrong-type", "grid 3"),
        ({"note": range(MOST_ROWS // 8 + 1)}, "too-large", f"{MOST_ROWS:,} rows"),
    ],
)
def test_a_grid_that_cannot_be_read_is_refused(change: dict[Any, Any], code: str, words: str) -> None:
    grid = {name: value for name, value in {**GRID, **change}.items() if value is not ...}
    with refusal(code, *words.split()):
        sweep("gpipe", grid)


@in_turn(
    "schedules, more, code, words",
    [
        ("1f1", {}, "unknown-name", ("'1f1'", "'1f1b'")),
        ([3], {}, "unknown-name", ("schedule 3",)),
        (3, {}, "not-a-list", ("('interleaved', 2)", "not 3")),
        ([], {}, "empty", ("('interleaved', 2)", "at least one")),
        (("hanayo", 2.5), {}, "not-a-whole-number", ("chunks", "2.5")),
        (("hanayo", 2), {"chunks": [2, 4]}, "conflicting-arguments", ("chunks", "('hanayo', 2)")),
    ],
)
def test_schedules_that_are_none_are_refused(schedules: Any, more: dict[str, Any], code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        sweep(schedules, {**GRID, **more})


@in_turn(
    "name, value, code",
    [
        ("executor", 3, "wrong-type"),
        ("executor", ProcessPoolExecutor, "wrong-type"),
        ("progress", 1, "wrong-type"),
        ("progress", "yes", "wrong-type"),
    ],
)
def test_options_that_are_none_are_refused(name: str, value: Any, code: str) -> None:
    with refusal(code, name, value):
        sweep("gpipe", GRID, **{name: value})


def test_unknown_columns_of_a_table_are_refused() -> None:
    table = sweep("gpipe", GRID)
    for ask in (lambda: table.column("make_span"), lambda: table.where(make_span=3)):
        with refusal("unknown-name", "column 'make_span'", "'makespan'"):
            ask()


def test_an_exception_of_a_function_comes_out() -> None:
    with pytest.raises(ZeroDivisionError):
        sweep("gpipe", {**GRID, "forward": lambda devices: 1 / (devices - 2)})


@examples(60)
@given(st.sampled_from(["schedules", "grid", "executor", "progress", *GRID, "weight_share", "chunks", "free"]), junk)
def test_junk_is_refused_with_a_sentence_or_read(where: str, value: Any) -> None:
    if where in ("schedules", "grid"):
        outcome(sweep, *((value, GRID) if where == "schedules" else ("1f1b", value)), progress=False)
    elif where in ("executor", "progress"):
        outcome(sweep, "1f1b", GRID, **{where: None if where == "progress" and (value is True or callable(value)) else value})
    else:
        outcome(sweep, "1f1b", {"devices": 2, "microbatches": 2, **TIMES, where: value}, progress=False)


def test_edges() -> None:
    """The cases are one device, one microbatch, fewer microbatches than devices, and operations that take no time."""
    assert sweep("1f1b", {"devices": 1, "microbatches": 1, **TIMES}).column("makespan") == [3.0]
    row = sweep("1f1b", {"devices": 4, "microbatches": 1, **TIMES, "p2p": 1})[0]
    assert row["makespan"] == 4 * 3 + 2 * 3
    row = sweep("gpipe", {"devices": 2, "microbatches": 2, "forward": 0, "backward": 0})[0]
    assert results(row) == (0.0, 0.0, 0.0, 2.0)


# Values that belong together


SIZE = {"devices": 2, "microbatches": 2}


def test_columns_under_one_key_have_their_values_together() -> None:
    """F = 1 with B = 2 and F = 2 with B = 4: two rows, not four. (M + K-1)(F + B) = 9 and 18."""
    table = sweep("gpipe", {**SIZE, ("forward", "backward"): [(1, 2), (2, 4)]})
    assert table.column("makespan") == [9, 18]
    assert table.columns[4:6] == ("forward", "backward")
    assert sweep("gpipe", {**SIZE, ("forward", "backward"): product([1, 2], [2, 4])}).column("makespan") == [9, 15, 12, 18]


def test_sizes_can_belong_together_and_functions_read_them() -> None:
    grid = {("devices", "microbatches"): [(2, 4), (4, 16)], "forward": lambda devices: 8 / devices, "backward": [[1], [2]]}
    rows = sweep("1f1b", grid)
    assert [(row["devices"], row["microbatches"], row["forward"], row["backward"]) for row in rows] == [
        (2, 4, 4, (1,)), (2, 4, 4, (2,)), (4, 16, 2, (1,)), (4, 16, 2, (2,)),
    ]  # fmt: skip
    assert all(row["makespan"] == one("1f1b", row)[0] for row in rows)


@in_turn(
    "grid",
    [
        {"forward": [1, 2], "backward": [2, 4]},
        {"forward": (1, 2), "backward": np.array([2, 4])},
        {"forward": iter([1, 2]), "backward": range(2, 5)},
        {"forward": 1, "backward": [2, 4], "weight_share": [0.4, 0.5]},
        {"forward": [[1, 2], [3, 4]], "backward": [[1, 2], [3, 4]]},
    ],
)
def test_lists_that_may_belong_together_are_refused_with_three_ways_to_write_them(grid: dict[Any, Any]) -> None:
    """Without the refusal, the lists would give every combination without a warning."""
    one, other = (name for name in grid if not isinstance(grid[name], int))
    with refusal("ambiguous", f"('{one}', '{other}'): [", "itertools.product(", f"'{other}': lambda {one}: "):
        sweep("gpipe", {**SIZE, **grid})


@in_turn("grid", [{"forward": [1, 2], "backward": [2]}, {"forward": [[1, 2]], "backward": [[2, 4]]}, {"p2p": [0, 1]}])
def test_lists_that_cannot_be_misread_are_axes(grid: dict[Any, Any]) -> None:
    given = TIMES | grid
    assert len(sweep("gpipe", {**SIZE, **given})) == max(len(each) for each in grid.values())


@in_turn(
    "grid, code, words",
    [
        ({("forward", "backward"): (1, 2)}, "wrong-length", ("('forward', 'backward')", "2 values", "[(1, 2)]", "not 1")),
        ({("forward", "backward"): [(1, 2), (3,)]}, "wrong-length", ("[(1, 2)]", "not (3,)")),
        ({("forward", "backward"): lambda devices: devices}, "not-a-list", ("2 values",)),
        ({("forward", "backward"): 3}, "not-a-list", ("not 3",)),
        ({("forward", "backward"): []}, "empty", ("('forward', 'backward')", "2 values")),
        ({("forward", "backward"): [(1, 2)], "forward": 3}, "duplicate-name", ("forward",)),
        ({("forward", "forward"): [(1, 2)]}, "duplicate-name", ("forward",)),
        ({("forward", 3): [(1, 2)]}, "wrong-type", ("grid", "('forward', 3)")),
        ({(): [()]}, "wrong-type", ("grid", "()")),
        ({("backward", "makespan"): [(1, 2)]}, "reserved-name", ("makespan",)),
        ({"unit": "s"}, "not-a-column", ("unit", "sweep(..., unit='s')")),
        ({"p2p_between": [[1, 2]]}, "not-a-column", ("p2p_between", "Costs(..., p2p_between=...)")),
        ({"per": "stage"}, "not-a-column", ("per", "Costs(..., per='stage')")),
        ({"weight_gradient": 1}, "not-a-column", ("weight_gradient", "weight_share")),
        ({"p2p": lambda devices: [1, 2]}, "ambiguous", ("p2p",)),
    ],
)
def test_keys_that_cannot_be_read_are_refused(grid: dict[Any, Any], code: str, words: tuple[str, ...]) -> None:
    given = {} if any(isinstance(key, tuple) for key in grid) and code != "duplicate-name" else TIMES
    given = {name: value for name, value in {**SIZE, **given}.items() if not any(isinstance(key, tuple) and name in key for key in grid)}
    with refusal(code, *words):
        sweep("gpipe", {**given, **grid})
