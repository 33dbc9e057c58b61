"""Test lab 6's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from forms import form_by_form

from hybridlab import Costs, hybrid_step
from hybridlab.course.checking.builds import WITHOUT_THE_TWIST
from hybridlab.course.labs.lab06.overlap import STEPS, given_by, pipeline_of, rings_of
from hybridlab.course.labs.lab06.tasks import changed_step
from hybridlab.course.tasks import TASKS, check

Rows = list[dict[str, Any]]
BOTH = changed_step("overlap", "chunks").makespan


def rings(
    rows: Rows,
    ring_time: float,
    kinds: tuple[str, ...] = ("B", "W"),
    combine: Callable[[float, float], float] = max,
    ranks: Callable[[Rows], set[int]] = lambda rows: {row["device"] for row in rows},
    turn: Callable[[float, int], Any] = lambda end, stage: end,
    link: Callable[[int], int] = lambda device: device,
) -> dict[int, tuple[float, float]]:
    """Return the rings as a student would write them; each argument after ring_time changes one rule."""
    ready: dict[int, float] = {}
    holder: dict[int, int] = {}
    for row in rows:
        if row["kind"] in kinds and row["device"] in ranks(rows):
            stage = row["stage"]
            ready[stage] = combine(ready.get(stage, row["end"]), row["end"])
            holder.setdefault(stage, row["device"])
    free: dict[int, float] = {}
    result = {}
    for stage in sorted(ready, key=lambda stage: turn(ready[stage], stage)):
        mine = link(holder[stage])
        start = max(ready[stage], free.get(mine, 0))
        free[mine] = start + ring_time
        result[stage] = (start, start + ring_time)
    return result


def first_half(rows: Rows) -> set[int]:
    """The ranks of replica 0."""
    stages = [row["stage"] for row in rows if row["device"] == 0]
    return set(range(next((row["device"] for row in rows if row["device"] and row["stage"] in stages), 99)))


def waiting(rows: Rows, ring_time: float) -> Any:
    """Start all rings at the end of all operations."""
    last = max(row["end"] for row in rows)
    return rings([row | {"end": last} for row in rows], ring_time, turn=lambda end, stage: -stage)


def link_forgotten(rows: Rows, ring_time: float) -> Any:
    """Start each ring when its gradients are complete."""
    return {stage: (ready, ready + ring_time) for stage, (ready, _) in rings(rows, 0).items()}


def after_the_device(rows: Rows, ring_time: float) -> Any:
    """Start the rings of a device after its last operation."""
    ends = {row["device"]: row["end"] for row in rows}
    held = {stage: {row["device"] for row in rows if row["stage"] == stage} for stage in rings(rows, 0)}
    order = {stage: start for stage, (start, _) in rings(rows, 0).items()}
    late = [row | {"end": max(ends[device] for device in held[row["stage"]])} for row in rows]
    return rings(late, ring_time, turn=lambda end, stage: order[stage])


def on_the_page(rows: Rows, ring_time: float) -> Any:
    """The two examples of the lab, and nothing else."""
    return {0: (45, 53)} if ring_time == 8 else {1: (20, 50), 0: (50, 80)}


def by_rank(rows: Rows, ring_time: float) -> Any:
    """Return a ring for each rank, and not for each stage."""
    ends = {row["device"]: row["end"] for row in rows if row["kind"] in "BW"}
    return {rank: (end, end + ring_time) for rank, end in ends.items()}


def last_row_wins(rows: Rows, ring_time: float) -> Any:
    """Take the last row of each stage, which belongs to the last replica, in place of the latest end."""
    return rings(rows, ring_time, combine=lambda before, end: end)


def changing(rows: Rows, ring_time: float) -> Any:
    result = rings(rows, ring_time)
    rows.sort(key=lambda row: -row["end"])
    return result


def shifted(by: float, lengthened: float = 0.0) -> Callable[[Rows, float], Any]:
    """Return a program whose rings start this much later and take this much longer."""
    return lambda rows, ring_time: {stage: (start + by, end + by + lengthened) for stage, (start, end) in rings(rows, ring_time).items()}


def overtaking(rows: Rows, ring_time: float) -> Any:
    """Let a ring start one ms before the earlier ring of its device has ended."""
    ready, right = rings(rows, 0), rings(rows, ring_time)
    return {stage: (max(ready[stage][0], start - 1), max(ready[stage][0], start - 1) + ring_time) for stage, (start, _) in right.items()}


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab06.t1", 240, "pipeline-alone"),
    ("lab06.t1", 270, "no-optimiser"),
    ("lab06.t1", 248, "no-rings"),
    ("lab06.t1", 288, "d-ring-steps"),
    ("lab06.t1", 263, "one-half-of-the-ring"),
    ("lab06.t1", 338, "rings-in-turn"),
    ("lab06.t1", 358, "one-ring-over-all"),
    ("lab06.t1", 268, "rings-of-stages"),
    ("lab06.t1", 218, "no-fill-and-drain"),
    ("lab06.t1", 308, "one-pair-too-many"),
    ("lab06.t1", 294, "optimisers-in-turn"),
    ("lab06.t1", 2184, "one-device-alone"),
    ("lab06.t1", 818, "one-pipeline-for-all"),
    ("lab06.t1", 300, "wrong-value", "300 ms"),
    ("lab06.t1", "278", "not-a-number"),
    ("lab06.t1", [278], "not-a-number"),
    ("lab06.t2", 9, "bubble-alone"),
    ("lab06.t2", 24, "both-replicas"),
    ("lab06.t2", 6, "shared"),
    ("lab06.t2", 11, "too-few"),
    ("lab06.t2", 13, "more-than-enough"),
    ("lab06.t2", 11.8, "not-a-whole-number"),
    ("lab06.t2", "12", "not-a-number", "such as 10,"),
    ("lab06.t2", 0, "out-of-range"),
    ("lab06.t3", 180, "no-overlap"),
    ("lab06.t3", 90, "last-ring-alone"),
    ("lab06.t3", 50, "first-ring-alone"),
    ("lab06.t3", 40, "hidden-part"),
    ("lab06.t3", 320, "whole-ring-steps"),
    ("lab06.t3", 0, "nothing-exposed"),
    ("lab06.t3", 425, "whole-step"),
    ("lab06.t3", 285, "pipeline-alone"),
    ("lab06.t3", 140.5, "wrong-value"),
    ("lab06.t3", 77, "wrong-value"),
    ("lab06.t4", ("int8", "link", 345.1), "no-chunks", "int8 and link", "280"),
    ("lab06.t4", ("overlap", "int8", 360.3), "no-chunks", "overlap and int8"),
    ("lab06.t4", ("int8", "chunks", 292.8), "rings-exposed", "int8 and chunks"),
    ("lab06.t4", ("link", "chunks", 292.6), "rings-exposed", "link and chunks"),
    ("lab06.t4", ("overlap", "overlap", BOTH), "same-change-twice", "overlap"),
    ("lab06.t4", ("overlap", "chunks", 322.7), "gains-added"),
    ("lab06.t4", ("overlap", "chunks", 275), "wrong-length-of-step"),
    ("lab06.t4", ("overlap", "chunk!", BOTH), "unknown-name", "'chunks'"),
    ("lab06.t4", ("overlap", "chunks"), "wrong-shape"),
    ("lab06.t4", ("overlap", "chunks", "277.6"), "not-a-number"),
    ("lab06.t4", ("overlap", "chunks", np.float64(277.5)), "wrong-length-of-step", "277.5"),  # without the latency
    ("lab06.t4", "overlap", "wrong-shape"),
    ("lab06.t5", waiting, "waits-for-the-pipelines", "stage 1", "20 ms"),
    ("lab06.t5", link_forgotten, "link-never-busy", "Interleaved 1F1B on 1 device with 2 stages"),
    ("lab06.t5", lambda rows, ring_time: rings(rows, ring_time, kinds=("B", "I")), "input-gradients", "ZB-H1"),
    ("lab06.t5", lambda rows, ring_time: rings(rows, ring_time, kinds=("B",)), "full-backwards-alone", "stage 0"),
    ("lab06.t5", lambda rows, ring_time: rings(rows, ring_time, combine=min), "first-gradient", "1B2"),
    ("lab06.t5", lambda rows, ring_time: rings(rows, ring_time, ranks=first_half), "one-replica-alone", "one replica slower"),
    ("lab06.t5", last_row_wins, "one-replica-alone", "one replica slower"),
    ("lab06.t5", lambda rows, ring_time: rings(rows, ring_time, link=lambda device: 0), "one-link-for-all", "2 devices"),
    ("lab06.t5", lambda rows, ring_time: rings(rows, ring_time, turn=lambda end, stage: stage), "by-stage-number", "stage 1"),
    (
        "lab06.t5",
        lambda rows, ring_time: rings(rows, ring_time, turn=lambda end, stage: -stage),
        "last-stage-first",
        "late weight gradients",
    ),
    ("lab06.t5", by_rank, "by-rank", "stage 1"),
    ("lab06.t5", lambda rows, ring_time: {s: (start, ring_time) for s, (start, _) in rings(rows, ring_time).items()}, "length-for-the-end"),
    ("lab06.t5", lambda rows, ring_time: rings(rows, ring_time, kinds=("W",)), "no-ring", "full backwards (B)"),
    ("lab06.t5", lambda rows, ring_time: list(rings(rows, ring_time).items()), "not-a-start-and-an-end", "yours has 0: [0, ["),
    ("lab06.t5", after_the_device, "after-the-device", "stage 1"),
    ("lab06.t5", lambda rows, ring_time: rings(rows, 0), "no-time", "10 ms"),
    ("lab06.t5", on_the_page, "unknown-stage", "stage 1"),
    ("lab06.t5", lambda rows, ring_time: {}, "no-ring", "2 replicas", "stage 0"),
    ("lab06.t5", shifted(-0.5), "before-the-gradients", "0B0", "rank 0"),
    ("lab06.t5", overtaking, "link-is-busy", "stage 0", "stage 1"),
    ("lab06.t5", shifted(0.5), "later-than-it-could", "0B0"),
    ("lab06.t5", shifted(0, 0.5), "wrong-length", "10 ms"),
    ("lab06.t5", changing, "changes-its-argument"),
    ("lab06.t5", lambda rows, ring_time: 450, "not-a-dict", "450"),
    ("lab06.t5", lambda rows, ring_time: set(rings(rows, ring_time)), "not-a-dict"),
    ("lab06.t5", lambda rows, ring_time: {0: 450}, "not-a-start-and-an-end", "yours has 0: 450"),
    ("lab06.t5", lambda rows, ring_time: {0: (0, 1, 2)}, "not-a-start-and-an-end", "[0, 1, 2]"),
    ("lab06.t5", lambda rows, ring_time: {"stage 0": (0, 1)}, "not-a-number", "'stage 0'"),
    ("lab06.t5", lambda rows, ring_time: {-1: (0, 1)}, "out-of-range", "-1"),
    ("lab06.t5", lambda rows, ring_time: {0: (0, float("nan"))}, "not-a-number", "nan"),
    ("lab06.t5", lambda rows: {}, "signature", "overlapped_rings(rows, ring_time)"),
    ("lab06.t5", 450, "not-a-function", "450"),
]


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab06.t1", 278),
    ("lab06.t1", np.float64(278)),
    ("lab06.t2", 12.0),
    ("lab06.t2", np.int64(12)),
    ("lab06.t3", 140),
    ("lab06.t3", 140.0),
    ("lab06.t3", Fraction(280, 2)),
    ("lab06.t4", ("chunks", "overlap", BOTH)),
    ("lab06.t4", ["Overlap", " CHUNKS ", 277.6]),
    ("lab06.t5", rings),
    (
        "lab06.t5",
        form_by_form(
            rings,
            lambda times: [times[stage] for stage in range(len(times))],
            lambda times: np.array([time for _, time in sorted(times.items())]),
            lambda times: {np.int64(stage): list(map(np.float32, time)) for stage, time in times.items()},
        ),
    ),
]


@in_turn("name, devices, replicas, microbatches, chunks", [tuple(step[:5]) for step in STEPS])
def test_the_rings_that_the_judge_wants_are_those_of_the_whole_step(
    name: str, devices: int, replicas: int, microbatches: int, chunks: int
) -> None:
    """Read them from the spans of a hybrid step with overlap."""
    ranks = devices * replicas
    costs = Costs(forward=np.linspace(3, 5, ranks), backward=np.linspace(9, 7, ranks))
    step = hybrid_step(pipeline_of(name, devices, microbatches, chunks), costs, replicas, ring_step=5.5, overlap=True)
    rows = step.timeline.to_rows()
    given = given_by([row for row in rows if row["kind"] in "FBIW"])
    wanted = rings_of(given, 2 * (replicas - 1) * 5.5 / chunks)
    hops = [row for row in rows if row["kind"] in ("reduce-scatter", "all-gather")]
    for stage in wanted if replicas > 1 else ():
        mine = [row for row in hops if row["stage"] == stage]
        assert wanted[stage] == pytest.approx((min(row["start"] for row in mine), max(row["end"] for row in mine)))
    assert max(end for _, end in wanted.values()) == pytest.approx(step.makespan)
    assert len(wanted) == devices * chunks


def test_the_cases_have_every_edge() -> None:
    build_of = TASKS["lab06.t5"].instance(None).data
    words = [case.words for case in build_of.cases(np.random.default_rng(0))]
    for edge in (
        "on 1 device,",
        "1 replica,",
        "1 microbatch,",
        "rings of 0 ms",
        "2 stages",
        "4 stages",
        "ZB-H1",
        "Hanayo",
        "slower",
        "late weight",
    ):
        assert any(edge in each for each in words), edge


@pytest.mark.slow
def test_a_forgotten_change_is_named_under_every_twist() -> None:
    """On the cases with several rings on a device and with several replicas, where each change shows."""
    build_of = TASKS["lab06.t5"].instance(None).data
    few = [case for case in build_of.public_cases if "1 device with 2 stages" in case.words or "3 replicas" in case.words]
    short = replace(build_of, cases=lambda rng: few)
    for twist in build_of.variants:
        feedback = short.with_twist(twist).check(rings)
        assert (feedback.code, feedback.messages[0]) == ("twist-missed", WITHOUT_THE_TWIST), twist.name


def test_a_wrong_program_gets_a_picture_with_its_first_wrong_ring() -> None:
    feedback = check("lab06.t5", shifted(0.5))
    assert feedback.drawing is not None
    assert "Marked as wrong: the ring of stage 0" in feedback.drawing.figure().alt_text


def test_only_one_pair_of_changes_meets_the_budget() -> None:
    """The steps in ms, from (M + K - 1)(F + B), (M + (K - 1)/v)(F + B), and 2(D - 1)(a + S/(Db)) by hand."""
    ring = {"": 6 * (0.01 + 10), "int8": 6 * (0.01 + 0.5 * 1.0078125 * 10), "link": 6 * (0.01 + 5)}
    assert changed_step().makespan == changed_step("overlap").makespan == pytest.approx(330 + ring[""])
    for each in ("int8", "link"):
        assert changed_step(each).makespan == changed_step("overlap", each).makespan == pytest.approx(330 + ring[each], abs=1e-3)
        assert changed_step("chunks", each).makespan == pytest.approx(262.5 + ring[each], abs=0.2)
    assert changed_step("chunks").makespan == pytest.approx(262.5 + ring[""], abs=0.2)
    assert changed_step("chunks", "overlap").makespan == pytest.approx(262.5 + ring[""] / 4, abs=0.2)
    assert changed_step("int8", "link").makespan == pytest.approx(330 + ring["int8"] / 2, abs=0.1)
