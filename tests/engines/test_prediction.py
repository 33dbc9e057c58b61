"""Test predictions from measured times: the clock with a time for each operation, replays, and steps that really ran.

A busy machine can only lengthen a run. So tests of real runs demand an order and lower bounds, and never a time.
"""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from profiles import examples
from strategies import Size, settings_of, sizes, supported

from hybridlab import REGISTRY, Costs, Op, Schedule, Timeline, build, simulate
from hybridlab.engines import (
    Group,
    Overhead,
    PaddedWork,
    PredictionErrors,
    Trial,
    cross_prediction,
    formula_prediction,
    measure_overhead,
    predict_and_measure,
    replay,
    run,
)
from hybridlab.engines import trial as trial_module
from hybridlab.engines.prediction import FORMS, times_of_steps
from hybridlab.simulation import latencies, running_times, simulate_rows
from hybridlab.step.replicas import replicate

each_name = in_turn("name", sorted(REGISTRY))
UNBALANCED = Costs(forward=[4, 4, 6, 4], backward=[8, 8, 12, 8], weight_share=0.25)
DEVICES, MICROBATCHES = 4, 8
WITHOUT_LATENCY = {"zb-h1", "zb-h2", "interleaved-zb", "zb-v"}  # their closed forms are for messages that take no time
torch = pytest.param("torch", marks=[pytest.mark.slow, pytest.mark.torch])
engines = pytest.mark.parametrize("engine", ["threads", "mpi", torch], indirect=True)


# The clock with a time for each operation


@pytest.mark.parametrize("name", sorted(REGISTRY))
@examples(30)
@given(data=st.data())
def test_with_the_times_of_costs_the_clock_of_rows_equals_the_clock_of_costs_bit_for_bit(name: str, data: st.DataObject) -> None:
    size = data.draw(sizes(name))
    schedule, costs = size.build(), data.draw(settings_of(size.devices)).costs()
    by_rows = simulate_rows(schedule, running_times(schedule, costs), latencies(schedule, costs), costs.unit)
    by_costs = simulate(schedule, costs)
    assert by_rows.start.tobytes() == by_costs.start.tobytes()
    assert by_rows.end.tobytes() == by_costs.end.tobytes()
    assert by_rows == by_costs


def test_settings_and_replicas_are_simulated_in_one_pass() -> None:
    costs = Costs(forward=[[1], [2.5]], backward=2, p2p=0.5, overlap=0.25)
    schedule = build("dualpipe", 4, 8)
    assert schedule.pairs.size
    assert simulate_rows(schedule, running_times(schedule, costs), latencies(schedule, costs)) == simulate(schedule, costs)
    both = replicate(schedule, 2)
    one = Costs(forward=1, backward=2, p2p=0.5)
    assert simulate_rows(both, running_times(both, one), 0.5) == simulate(both, one)


def test_one_long_operation_delays_what_waits_for_it_and_nothing_else() -> None:
    pipeline = Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
    usual = simulate_rows(pipeline, [1, 1, 2, 2, 1, 2, 1, 2])
    slow = simulate_rows(pipeline, [1, 1, 2, 2, 1, 2, 4, 2])
    later = dict(zip(map(str, pipeline.ops), (slow.end - usual.end).tolist(), strict=True))
    assert later == {"0F0": 0, "0F1": 0, "0B0": 0, "0B1": 3, "1F0": 0, "1B0": 0, "1F1": 3, "1B1": 3}


def test_times_that_fit_no_schedule_are_refused() -> None:
    pipeline, pair = Schedule.parse("0F0 0B0\n1F0 1B0"), Schedule.parse("0F0 (0F1;0B0) 0B1")
    with refusal("wrong-shape", 4, 3):
        simulate_rows(pipeline, [1, 2, 3])
    with refusal("wrong-shape"):
        simulate_rows(pipeline, 1.0)
    with refusal("wrong-shape", "latencies"):
        simulate_rows(pipeline, [1, 1, 1, 1], [0, 1])
    with refusal("negative"):
        simulate_rows(pipeline, [1, -1, 1, 1])
    with refusal("not-finite"):
        simulate_rows(pipeline, [1, 1, 1, 1], float("nan"))
    with refusal("does-not-fit"):
        simulate_rows(pipeline, np.ones((2, 4)), np.zeros((3, 4)))
    with refusal("no-message", "0F0"):
        simulate_rows(pipeline, [1, 1, 1, 1], [1, 1, 1, 0])
    with refusal("unequal-pair", "0F1", "0B0"):
        simulate_rows(pair, [1, 1, 2, 2])
    with refusal("not-a-schedule"):
        simulate_rows("0F0 0B0", [1, 1])  # type: ignore[arg-type]
    with refusal("unknown-name"):
        simulate_rows(pipeline, [1, 1, 1, 1], unit="hours")


# Predictions from times that are known


@each_name
def test_the_replay_of_a_simulated_step_is_this_step(name: str) -> None:
    """The binary fractions add up without rounding, so that the ends of operations give back their durations."""
    schedule = build(name, *supported(name, 4, 8))
    costs = Costs(forward=[1.5, 2, 3, 1], backward=[4, 3, 5, 2], weight_share=0.25, p2p=0.5, overlap=0.5)
    step = simulate(schedule, costs)
    assert replay(step, p2p=0.5) == step
    assert replay(Timeline(schedule, step.start + 64, step.end + 64), p2p=0.5) == step


def test_a_replay_that_forgets_the_latencies_or_swaps_two_durations_is_another_step() -> None:
    """Planted faults: the tests above can fail."""
    step = simulate(build("1f1b", 4, 8), Costs(forward=[1, 1, 1.5, 1], backward=2, p2p=0.5))
    takes = step.end - step.start
    assert replay(step).makespan < step.makespan
    first, second = (list(map(str, step.ops)).index(op) for op in ("2F3", "2B1"))
    takes[[first, second]] = takes[[second, first]]
    assert simulate_rows(step.schedule, takes, 0.5) != step


@each_name
def test_times_from_one_schedule_predict_any_other(name: str) -> None:
    """Both have equal stages on a device, so the times of a chunk follow from those of the device."""
    costs = Costs(forward=[4, 4, 6, 4], backward=[8, 8, 12, 8], weight_share=0.25, p2p=0.5)
    target = build(name, *supported(name, 4, 8))
    source = simulate(build("zb-v", 4, 8), costs)
    assert cross_prediction(target, source, p2p=0.5) == simulate(target, costs)


def test_times_per_stage_predict_another_schedule_where_rank_0_does_not_run_the_first_stage() -> None:
    costs = Costs(forward=[1, 5], backward=[2, 9], per="stage")
    source = simulate(Schedule("turned", [["1F0", "1B0"], ["0F0", "0B0"]]), costs)
    with refusal("other-placement", "per='stage'"):
        cross_prediction(build("1f1b", 2, 4), source)
    assert cross_prediction(build("1f1b", 2, 4), source, per="stage") == simulate(build("1f1b", 2, 4), costs)
    assert formula_prediction(build("1f1b", 2, 4), source, per="stage") == (4 + 1) * (3 + 5.5)


def test_the_times_of_several_steps_are_medians_by_device_and_kind() -> None:
    """They are found from the rows of a table here, and not from the arrays of the schedule."""
    rng = np.random.default_rng(5)
    schedule = build("interleaved", 2, 4, 2)
    steps = [simulate_rows(schedule, rng.uniform(1, 9, schedule.kind.size)) for _ in range(3)]
    found = times_of_steps(steps)
    for device in range(2):
        for kind, times in (("F", found.forward), ("B", found.backward)):
            chosen = [[row for row in step.to_rows() if (row["device"], row["kind"]) == (device, kind)] for step in steps]
            took = [np.median([row["end"] - row["start"] for row in rows]) for rows in chosen]
            assert [len(rows) for rows in chosen] == [4 * 2] * 3
            assert times[device] == pytest.approx(2 * np.median(took), rel=1e-12)
    assert_array_equal(found.weight_share, 0.5)


def test_operations_of_overlapped_pairs_do_not_count() -> None:
    costs = Costs(forward=4, backward=[8, 10, 8, 8], weight_share=0.25, overlap=1)
    for name in ("dualpipe", "dualpipe-v"):
        found = times_of_steps(simulate(build(name, 4, 8), costs))
        assert_array_equal(found.forward, 4)
        assert_array_equal(found.backward, [8, 10, 8, 8])


@in_turn("name", sorted(FORMS))
def test_closed_forms_equal_the_clock_where_all_devices_take_the_same_times(name: str) -> None:
    size = Size(name, 4, 8, REGISTRY[name].fewest_chunks)
    for p2p, per in itertools.product((0.0, 0.25), ("device", "stage", ("stage", "microbatch"))):
        step = simulate(size.build(), Costs(forward=4, backward=8, weight_share=0.5, p2p=p2p))
        formula = formula_prediction(size.build(), step, p2p, per=per)
        if p2p and name in WITHOUT_LATENCY:
            assert formula is None
        else:
            assert formula == pytest.approx(step.makespan, rel=1e-12)


def test_a_closed_form_that_does_not_hold_is_none() -> None:
    for name in ("hanayo", "v-min"):
        schedule = build(name, 4, 8)
        assert formula_prediction(schedule, simulate(schedule, Costs(forward=1, backward=3))) is None
    uneven = build("1f1b", 4, 6)  # with latency the closed form is for whole groups of microbatches
    assert formula_prediction(uneven, simulate(uneven, Costs(forward=1, backward=2)), p2p=0.5) is None


def test_with_one_slow_stage_the_closed_form_is_far_off_and_the_clock_is_not() -> None:
    """By hand: a stage takes 2 + 4, the slow one 3 + 6. GPipe: 9 + 7 x 3 forward and twice that backward; the mean is 2.25 + 4.5."""
    costs = Costs(forward=[2, 2, 3, 2], backward=[4, 4, 6, 4])
    gpipe, one = build("gpipe", 4, 8), build("1f1b", 4, 8)
    steps = simulate(gpipe, costs), simulate(one, costs)
    assert [step.makespan for step in steps] == [90, 87]
    for schedule, step, other in ((gpipe, *steps), (one, *reversed(steps))):
        assert cross_prediction(schedule, other) == step
        assert formula_prediction(schedule, step) == (8 + 3) * 6.75
        assert formula_prediction(schedule, step, slowest=True) == (8 + 3) * 9


def test_steps_that_show_no_times_are_refused() -> None:
    step = simulate(build("1f1b", 2, 2), Costs(forward=1, backward=2))
    with refusal("not-a-timeline"):
        replay("1f1b")  # type: ignore[arg-type]
    with refusal("negative"):
        replay(step, p2p=-1)
    with refusal("several-settings"):
        replay(simulate(build("1f1b", 2, 2), Costs(forward=[[1], [2]], backward=2)))
    with refusal("several-schedules"):
        times_of_steps([step, simulate(build("gpipe", 2, 2), Costs(forward=1, backward=2))])
    with refusal("not-a-timeline"):
        times_of_steps([])
    with refusal("does-not-fit"):
        cross_prediction(build("1f1b", 3, 2), step)


# Steps that really run


@engines
@in_turn("name", ["gpipe", "1f1b", "zb-v", "dualpipe-v"])
def test_nothing_starts_before_its_input_nothing_is_shorter_than_simulated_and_no_replay_is_longer(engine: str | Group, name: str) -> None:
    """The inputs are found from the names of operations. A step takes time beside its operations, which its replay leaves out."""
    costs = replace(UNBALANCED, p2p=0.5)
    schedule = build(name, *supported(name, DEVICES, MICROBATCHES))
    simulated = simulate(schedule, costs)
    replays = set()
    for step in run(schedule, PaddedWork(16), costs, engine=engine, steps=2).timelines:
        at = {op: times for op, *times in zip(step.ops, step.start, step.end, step.device, strict=True)}
        for op, (start, _, device) in at.items():
            for need in schedule.needs(op):
                _, ready, sender = at[need]
                assert start >= ready + (0.5 if sender != device else 0) - 1e-6, (op, need)
        assert (step.end - step.start >= running_times(schedule, costs) - 1e-6).all()
        assert (step.start >= simulated.start - 1e-6).all()
        took = step.end.max() - step.start.min()
        replays.add(replay(step, p2p=0.5).makespan)
        assert simulated.makespan - 1e-6 <= replay(step, p2p=0.5).makespan <= took + 1e-6
    assert len(replays) == 2, "each step has times of its own"


@engines
def test_padded_work_computes_the_same_in_every_engine(engine: str | Group) -> None:
    """A permutation keeps the sum. Microbatch m starts with 16 numbers 1 + m, and each rank adds the sums of its two operations."""
    ran = run(build("1f1b", DEVICES, 3), PaddedWork(16), UNBALANCED, engine=engine)
    assert ran.results == tuple(2 * 16 * (1 + 2 + 3.0) for _ in range(DEVICES))


@engines
def test_schedules_that_take_turns_are_compared_with_all_predictions(engine: str | Group) -> None:
    schedules = [build(name, DEVICES, MICROBATCHES) for name in ("gpipe", "1f1b", "interleaved")]
    trial = predict_and_measure(schedules, UNBALANCED, engine=engine, work=PaddedWork(8), steps=3)
    assert (trial.engine, trial.steps, trial.unit) == ("threads" if engine == "threads" else engine.engine, 3, "ms")  # type: ignore[union-attr]
    assert [(row.schedule, row.source) for row in trial.rows] == [("gpipe", "interleaved"), ("1f1b", "gpipe"), ("interleaved", "1f1b")]
    for row, schedule in zip(trial.rows, schedules, strict=True):
        assert simulate(schedule, UNBALANCED).makespan - 1e-6 <= row.fastest <= row.median
        assert -1 < row.replay <= 0
        assert row.cross > -1
        assert row.formula is not None
        assert row.formula_of_slowest is not None
        assert row.formula_of_slowest > row.formula
    assert trial.overhead.operation > 0
    assert trial.overhead.message >= 0
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial
    assert str(trial).count("\n") == 1 + len(schedules)


# The trial's own arithmetic


def made_steps(monkeypatch: pytest.MonkeyPatch, lengths: dict[str, list[float]]) -> list[str]:
    """Let the runs of a trial return simulated steps that are this many times as long, in turn; return the list of runs so far."""
    ran: list[str] = []

    class Ran:
        def __init__(self, schedule: Schedule, costs: Costs) -> None:
            factor = lengths[schedule.name][ran.count(schedule.name)]
            ran.append(schedule.name)
            self.timeline = simulate(schedule, costs.longer(factor))

    monkeypatch.setattr(trial_module, "run", lambda schedule, work, costs, engine: Ran(schedule, costs))
    monkeypatch.setattr(trial_module, "measure_overhead", lambda engine: Overhead(0.25, 0.5))
    return ran


def test_errors_have_the_sign_of_the_prediction_and_the_first_step_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPipe takes 1, 2, 4 times its time and 1F1B always 1.5 times; without latency both take 33 with equal stages."""
    ran = made_steps(monkeypatch, {"gpipe": [64, 1, 2, 4], "1f1b": [64, 1.5, 1.5, 1.5]})
    trial = predict_and_measure([build("gpipe", 4, 8), build("1f1b", 4, 8)], Costs(forward=1, backward=2), steps=3)
    assert ran == ["gpipe", "1f1b"] * 4
    assert trial.rows[0] == PredictionErrors("gpipe", 66, 33, 0, cross=0.5, source="1f1b", formula=1, formula_of_slowest=1)
    assert trial.rows[1] == PredictionErrors("1f1b", 49.5, 49.5, 0, pytest.approx(2 / 1.5 - 1), "gpipe", 0, 0)
    assert trial.overhead == Overhead(0.25, 0.5)


def test_a_trial_that_cannot_be_is_refused() -> None:
    costs, pair = Costs(forward=1, backward=2), [build("gpipe", 2, 2), build("1f1b", 2, 2)]
    with refusal("too-few"):
        predict_and_measure(pair[:1], costs)
    with refusal("does-not-fit", 2, 3):
        predict_and_measure([pair[0], build("1f1b", 3, 2)], costs)
    with refusal("not-a-schedule"):
        predict_and_measure(["gpipe", "1f1b"], costs)  # type: ignore[list-item]
    with refusal("not-costs"):
        predict_and_measure(pair, Costs(forward=1, backward=2, p2p_between=[1]))
    with refusal("too-small"):
        predict_and_measure(pair, costs, steps=2)


def test_the_share_of_stolen_time_comes_from_the_systems_ticks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 ticks that pass, 5 are stolen; those of guests are counted twice in the file."""
    stat = tmp_path / "stat"
    monkeypatch.setattr(trial_module, "PROC_STAT", stat)
    assert trial_module._processor_times() is None
    stat.write_text("cpu  10 0 10 100 0 0 0 7 3 0\ncpu0 1 2 3\n")
    before = trial_module._processor_times()
    stat.write_text("cpu  40 0 20 155 0 0 0 12 33 0\ncpu0 1 2 3\n")
    after = trial_module._processor_times()
    assert before is not None
    assert after is not None
    assert trial_module._stolen_share(before, after) == 5 / 100


def test_overheads_follow_from_two_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are simulated here, with 0.5 ms an operation and 2 ms a message."""

    class Ran:
        def __init__(self, schedule: Schedule) -> None:
            self.timelines = [simulate(schedule, Costs(forward=0.5 * schedule.chunks, backward=0.5 * schedule.chunks, p2p=2))] * 3

    monkeypatch.setattr(trial_module, "run", lambda schedule, engine, steps: Ran(schedule))
    assert measure_overhead() == Overhead(0.5, 2.0)


def test_operations_of_padded_work_have_the_inputs_that_they_need() -> None:
    work: Any = PaddedWork(4)
    work.begin(0, 0)
    first = work.work(0, Op.parse("0F2"), None)
    assert first.sum() == 4 * 3
    assert_array_equal(work.work(0, Op.parse("0B2"), work.work(0, Op.parse("1F2"), first)).sum(), 12)
    assert work.result(0) == 36
