"""The two published timelines: equal to what was printed, and wrong in the ways we say."""

from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from cases import in_turn, refusal

from hybridlab import InvalidSchedule, Op, Schedule, build
from hybridlab.course.published import Event, event_log, lost_forwards, step_grid

DATA = Path(__file__).parents[1] / "data"
SIZES = [*product((1, 2, 3, 5), (1, 3), (1, 2, 4, 7)), (4, 2, 24), (8, 1, 3)]  # M < K, K = 1, M = 1, D = 1 among them


def figures(name: str) -> list[list[str]]:
    """The rows of a data file, each cut at blanks; its first line names the source."""
    first, *rows = (DATA / name).read_text().splitlines()
    assert first.startswith("# ")
    return [row.split() for row in rows]


# The figures


def test_the_grid_equals_the_figures_cell_by_cell() -> None:
    printed = figures("published_step_grid.txt")
    grid = step_grid()
    assert [int(row[0]) for row in printed] == list(range(8))
    for step, row in enumerate(printed):
        for rank, cell in enumerate(row[1:]):
            assert grid.cells[step][rank] == cell, (step, rank)
    assert [len(row) for row in grid.cells] == [12] * 8


def test_the_log_equals_the_figures_row_by_row() -> None:
    printed = figures("published_event_log.txt")
    for row, (time, rank, stage, event) in zip(event_log().rows, printed, strict=True):
        assert row == Event(int(time), int(rank), int(stage), event)


def test_the_grid_prints_as_the_program_does() -> None:
    header, rule, *rows = str(step_grid()).split("\n")
    assert header == ("Step | R0(S0) | R1(S1) | R2(S2) | R3(S0) | R4(S1) | R5(S2) | R6(S0) | R7(S1) | R8(S2) | R9(S0) | R10(S1) | R11(S2)")
    assert rule == "-" * 114
    replica = "    F0     |     -      |     B0     | "  # ten columns, centred, and a bar; the last one too
    assert rows[0] == "0    | " + 4 * replica
    assert [len(row) for row in rows] == [7 + 12 * 13] * 8
    assert [row.replace("|", " ").split() for row in rows] == figures("published_step_grid.txt")


def test_the_log_prints_as_the_program_does() -> None:
    header, rule, *rows = str(event_log()).split("\n")
    assert header == "Time   | Rank   | Stage  | Event"
    assert rule == "-" * 32
    assert rows[0] == "0      | 0      | 0      | F0"
    assert rows[143] == "143    | 11     | 2      | OPT"
    assert [row.replace("|", " ").split() for row in rows] == figures("published_event_log.txt")


# What is wrong with them


def test_eight_steps_are_too_few_for_twelve_operations_a_device() -> None:
    assert len(step_grid().cells) == 8
    assert build("1f1b", 3, 6).slot.max() + 1 == 16


def test_the_log_has_132_operations_and_12_optimiser_steps() -> None:
    counts = Counter(row.event[0] for row in event_log().rows)
    assert counts == {"F": 60, "B": 72, "O": 12}


def test_the_grid_shows_2_of_18_forwards() -> None:
    cells = Counter(cell[0] for row in step_grid().cells for cell in row[:3])
    assert (cells["F"], cells["B"]) == (2, 18)
    lost = lost_forwards()
    assert len(lost.by_bound) + len(lost.by_overwriting) == 16


def test_the_log_loses_the_last_forwards_of_the_later_stages() -> None:
    assert lost_forwards().by_bound == ((1, 5), (2, 4), (2, 5))


def test_the_last_stage_starts_with_a_backward() -> None:
    assert event_log().rows[1] == Event(1, 2, 2, "B0")
    assert step_grid().cells[0][2] == "B0"
    assert event_log().rows[28] == Event(28, 2, 2, "F0")


def test_the_validator_names_what_the_log_violates() -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Schedule.parse(event_log().orders(), name="event log")
    sentences = [problem.sentence for problem in refused.value.problems]
    assert sentences[:2] == [
        "stage 1 never runs the forward of microbatch 5",
        "stage 2 never runs the forward of microbatches 4, 5",
    ]
    early = [problem.op for problem in refused.value.problems if problem.op is not None]
    assert early == [Op.parse(f"2B{microbatch}") for microbatch in range(4)]
    assert "device 2: [2B0] [2B1] 2F0 [2B2] 2F1 [2B3] 2F2 2B4 2F3 2B5" in str(refused.value)


def test_the_validator_names_every_input_that_comes_late_in_the_log() -> None:
    logged = {row.op: row.time for row in event_log().rows if row.rank < 3 and row.op is not None}
    needs = build("1f1b", 3, 6).needs
    late = {str(op) for op, time in logged.items() for need in needs(op) if logged.get(need, -1) > time}
    assert late == {"2B0", "2B1", "2B2", "2B3"}


def test_the_validator_refuses_the_grid_for_its_missing_forwards() -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Schedule.parse(step_grid().orders())
    assert [problem.sentence for problem in refused.value.problems] == [
        "stage 0 never runs the forward of microbatches 2, 3, 4, 5",
        "stage 1 never runs the forward of microbatches 0, 1, 2, 3, 4, 5",
        "stage 2 never runs the forward of microbatches 0, 1, 2, 3, 4, 5",
    ]
    assert step_grid().orders() == (
        "device 0: 0F0 0F1 0B0 0B1 0B2 0B3 0B4 0B5\ndevice 1: 1B0 1B1 1B2 1B3 1B4 1B5\ndevice 2: 2B0 2B1 2B2 2B3 2B4 2B5"
    )


# Any size


def test_two_stages_and_one_microbatch_by_hand() -> None:
    assert step_grid(2, 1, 1).cells == (("F0", "B0"), ("B0", "-"))
    assert [row[1:] for row in event_log(2, 1, 1).rows] == [
        (0, 0, "F0"), (1, 1, "B0"), (0, 0, "B0"), (0, 0, "OPT"), (1, 1, "OPT"),
    ]  # fmt: skip
    assert lost_forwards(2, 1) == (((1, 0),), ())


@in_turn("stages, replicas, microbatches", SIZES)
def test_every_backward_runs_once_and_lost_forwards_are_those_missing(stages: int, replicas: int, microbatches: int) -> None:
    grid, log = step_grid(stages, replicas, microbatches), event_log(stages, replicas, microbatches)
    by_bound, by_overwriting = (set(pairs) for pairs in lost_forwards(stages, microbatches))
    every = set(product(range(stages), range(microbatches)))
    assert len(grid.cells) == microbatches + stages - 1
    assert len(by_bound) == sum(min(stage, microbatches) for stage in range(stages))
    assert not by_bound & by_overwriting
    for rank in range(stages * replicas):
        for order, lost in ((log.order(rank), by_bound), (grid.order(rank), by_bound | by_overwriting)):
            stage = rank % stages
            assert [op.microbatch for op in order if op.kind == "B"] == list(range(microbatches))
            forwards = [(op.stage, op.microbatch) for op in order if op.kind == "F"]
            assert forwards == sorted(pair for pair in every - lost if pair[0] == stage)
    counts = Counter(row.event == "OPT" for row in log.rows)
    assert counts == {True: stages * replicas, False: replicas * (2 * len(every) - len(by_bound))}
    assert [row.time for row in log.rows] == list(range(len(log.rows)))


@in_turn("stages, replicas, microbatches", SIZES)
def test_only_the_log_of_a_single_stage_can_run(stages: int, replicas: int, microbatches: int) -> None:
    text = event_log(stages, replicas, microbatches).orders()
    if stages == 1:
        assert Schedule.parse(text).orders == build("1f1b", 1, microbatches).orders
    else:
        with pytest.raises(InvalidSchedule, match="never runs the forward"):
            Schedule.parse(text)
    with pytest.raises(InvalidSchedule, match="never runs the forward"):
        Schedule.parse(step_grid(stages, replicas, microbatches).orders())


@in_turn(
    "sizes, code, words",
    [
        ({"stages": 0}, "too-small", ("stages", "at least 1", "0")),
        ({"microbatches": -6}, "too-small", ("microbatches", "-6")),
        ({"stages": 2.5}, "not-a-whole-number", ("stages", "2.5")),
        ({"microbatches": float("nan")}, "not-a-whole-number", ("microbatches", "nan")),
        ({"microbatches": "6"}, "not-a-whole-number", ("microbatches", "'6'")),
        ({"stages": 2000, "microbatches": 2000}, "too-large", ("1,000,000 cells",)),
    ],
)
def test_sizes_that_make_no_table_are_refused(sizes: dict[str, int], code: str, words: tuple[str, ...]) -> None:
    for table in (step_grid, event_log, lost_forwards):
        with refusal(code, *words):
            table(**sizes)


def test_replicas_and_ranks_that_do_not_exist_are_refused() -> None:
    for table in (step_grid, event_log):
        with refusal("too-small", "replicas", 0):
            table(replicas=0)
        for rank, code in ((-1, "too-small"), (12, "too-large"), (0.5, "not-a-whole-number"), (None, "not-a-whole-number")):
            with refusal(code, "rank"):
                table().order(rank)  # type: ignore[arg-type]


def test_the_largest_table() -> None:
    assert len(step_grid(1000, 1, 1).cells) == 1000
