"""Test runs over threads, MPI and torch.distributed: what they compute has the bits of training without an engine.

The processes of an engine are started once for all its tests.
"""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from failing_work import Echo
from numpy.testing import assert_array_equal
from small_data import CLASSES, FEATURES, small_data

from hybridlab import E4M3, FP16, FP32, INT4, INT8, REGISTRY, Costs, HybridLabError, Schedule, WireFormat, build, hybrid_step, simulate
from hybridlab.collectives import ring_all_reduce
from hybridlab.collectives.one_rank import average_in_place
from hybridlab.engines import Group, RunResult, TrainingWork, run, trained_weights
from hybridlab.training import Network, train

WIRES = {"FP32": FP32, "FP16": FP16, "INT8": INT8, "INT8 in blocks": WireFormat("INT8", block=64), "INT4": INT4, "E4M3": E4M3}
SIZES = [(2, 1), (2, 2), (4, 2)]  # devices of a pipeline, replicas
BATCH, STEPS = 64, 3
ALL = [(name, size, wire) for name in sorted(REGISTRY) for size in SIZES for wire in WIRES]
SOME = [case for place, case in enumerate(ALL) if place % 7 == 0]  # 7 has no factor of 18, so each size and format comes
processes = [pytest.param("mpi", id="mpi"), pytest.param("torch", id="torch", marks=[pytest.mark.torch, pytest.mark.slow])]
engines = pytest.mark.parametrize("engine", ["threads", *processes], indirect=True)


def schedule_of(name: str, devices: int) -> Schedule:
    """Return a schedule with few microbatches; the batch of 64 samples can be cut into them."""
    family = REGISTRY[name]
    return build(name, devices, next(m for m in (4, 8, 16) if family.refusal(devices, m, family.fewest_chunks) is None))


def network_of(schedule: Schedule) -> Network:
    return Network((FEATURES, *[8] * (schedule.stages - 1), CLASSES))


def training(schedule: Schedule) -> dict[str, Any]:
    return {"network": network_of(schedule), "data": small_data(), "batch": BATCH}


def differing(engine: Any, cases: list[tuple[str, tuple[int, int], str]]) -> list[Any]:
    """Return the cases in which a weight differs from those of ``train`` after the steps, or in which the losses differ."""
    wrong = []
    for name, (devices, replicas), wire in cases:
        schedule = schedule_of(name, devices)
        of_both = training(schedule)
        expected = train(schedule, replicas, wire=WIRES[wire], steps=STEPS, **of_both)
        ran = run(schedule, TrainingWork(schedule, replicas, **of_both), engine=engine, replicas=replicas, wire=WIRES[wire], steps=STEPS)
        losses = np.sum([result.losses for result in ran.results], axis=0)
        same = np.array_equal(trained_weights(schedule, ran.results), expected.replicas)
        if not same or not np.allclose(losses, expected.losses, rtol=1e-12, atol=0):
            wrong.append((name, devices, replicas, wire))
    return wrong


@engines
def test_weights_after_some_steps_have_the_bits_of_train(engine: Any) -> None:
    fit = [case for case in SOME if engine == "threads" or case[1][0] * case[1][1] <= engine.ranks]
    assert differing(engine, fit) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["threads", "mpi"])
def test_weights_after_some_steps_have_the_bits_of_train_for_every_schedule_wire_format_and_size(name: str) -> None:
    if name == "threads":
        assert differing(name, ALL) == []
        return
    with Group(name, 8) as group:
        assert differing(group, ALL) == []


@engines
def test_weights_of_another_wire_format_or_seed_differ(engine: Any) -> None:
    schedule = schedule_of("1f1b", 2)
    expected = train(schedule, 2, **training(schedule), steps=2).replicas
    same = {(wire.name, seed): trained(engine, schedule, wire, seed, expected) for wire, seed in ((FP32, 0), (FP16, 0), (FP32, 1))}
    assert same == {("FP32", 0): True, ("FP16", 0): False, ("FP32", 1): False}


def trained(engine: Any, schedule: Schedule, wire: WireFormat, seed: int, expected: Any) -> bool:
    work = TrainingWork(schedule, 2, **training(schedule), seed=seed)
    ran = run(schedule, work, engine=engine, replicas=2, wire=wire, steps=2)
    return np.array_equal(trained_weights(schedule, ran.results), expected)


@engines
def test_a_measured_step_has_the_parts_of_the_simulated_one_and_no_part_is_shorter(engine: Any) -> None:
    costs = Costs(forward=[1, 2], backward=2, p2p=0.5, overlap=0.5)
    for name in ("1f1b", "interleaved", "zb-h1", "dualpipe-v", "chimera"):
        schedule = schedule_of(name, 2)
        ran = run(schedule, costs=costs, engine=engine, replicas=2, ring_step=1, optimiser=0.5, steps=2)
        step = hybrid_step(schedule, costs, 2, ring_step=1, optimiser=0.5).timeline
        for timeline in ran.timelines:
            spans: Any = timeline.spans
            for column in ("kind", "device", "stage", "microbatch", "chunk", "step", "peer", "row"):
                assert sorted(getattr(spans, column)) == sorted(getattr(step.spans, column)), (name, column)
            assert (timeline.end - timeline.start >= step.end - step.start - 1e-6).all(), name
            assert (timeline.start >= step.start - 1e-6).all(), "the simulation has the same waits"
        assert ran.timeline in ran.timelines


@engines
def test_without_waiting_stage_1_forwards_what_it_has_not_got(engine: Any) -> None:
    timeline = run(build("1f1b", 2, 1), costs=Costs(forward=1000, backward=1), engine=engine, wait=np.False_).timeline  # type: ignore[arg-type]
    began, ended = ({str(op): at for op, at in zip(timeline.ops, times, strict=True)} for times in (timeline.start, timeline.end))
    assert began["1F0"] < ended["0F0"]
    assert timeline.spans is not None
    assert set(timeline.spans.kind) == {4}, "optimisers only: no device takes a message"


@engines
def test_objects_of_any_type_and_size_arrive_as_they_were_sent(engine: Any) -> None:
    ran = run(build("zb-h1", 2, 1), Echo(), engine=engine)
    there = ("1:1F0", ("0:0F0", None))
    assert ran.results[1] == [there, ("1:1I0", there), ("1:1W0", ("1:1I0", there))]
    large = run(build("1f1b", 2, 2), lambda rank, op, message: np.full(300_000, rank), engine=engine)
    assert len(large.timelines) == 1


@engines
def test_the_smallest_pipelines_run(engine: Any) -> None:
    for devices, microbatches, replicas in ((1, 1, 1), (1, 1, 3), (4, 1, 1), (2, 1, 2)):
        ran = run(build("1f1b", devices, microbatches), Echo(), engine=engine, replicas=replicas)
        assert len(ran.results) == devices * replicas
        assert ran.timeline.schedule.devices == devices * replicas


@engines
def test_progress_ends_with_all_steps(engine: Any) -> None:
    told: list[tuple[int, int]] = []
    run(build("1f1b", 2, 2), costs=Costs(forward=20, backward=20), engine=engine, steps=5, progress=lambda *done: told.append(done))
    assert told == sorted(told)
    assert {of for _, of in told} <= {5}
    assert len(run(build("1f1b", 1, 1), engine=engine, progress=True).results) == 1
    with refusal("wrong-type", "progress", "(done, total)"):
        run(build("1f1b", 1, 1), engine=engine, progress=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", processes, indirect=True)
def test_what_processes_print_is_returned_after_the_run_in_which_they_print_it(engine: Any) -> None:
    for text in ("runs", "runs again"):
        ran = run(build("1f1b", 1, 1), lambda rank, op, message, text=text: print(f"{rank} {text} {op}"), engine=engine)
        assert ran.output == f"0 {text} 0F0\n0 {text} 0B0\n"


@in_turn("lengths, middle", [([3, 1, 2], 2), ([4, 1, 3, 2], 2), ([5], 5)])
def test_the_step_of_a_run_is_the_median_or_the_faster_of_the_two_in_the_middle(lengths: list[int], middle: int) -> None:
    steps = tuple(simulate(build("1f1b", 1, 1), Costs(forward=length, backward=0)) for length in lengths)
    assert RunResult(steps, (), "").timeline.makespan == middle


def test_a_ring_seen_by_one_rank_has_the_bits_of_the_ring_of_all() -> None:
    """The ranks run here one step after the other; each step's messages wait in a list until the receivers take them."""
    import threading
    from queue import SimpleQueue

    rng = np.random.default_rng(3)
    for ranks in (1, 2, 3, 5):
        for wire in (None, *WIRES.values()):
            values = rng.normal(size=(ranks, 23))
            mine, links = values.copy(), [SimpleQueue[Any]() for _ in range(ranks)]

            def average(rank: int, wire: Any = wire, mine: Any = mine, links: Any = links, ranks: int = ranks) -> None:
                def swap(step: Any) -> Any:
                    links[(rank + 1) % ranks].put(step.content)
                    return links[rank].get()

                average_in_place(mine[rank], rank, list(range(ranks)), wire, swap)

            threads = [threading.Thread(target=average, args=(rank,)) for rank in range(ranks)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if wire is None:
                np.testing.assert_allclose(mine, np.broadcast_to(values.mean(axis=0), mine.shape), rtol=0, atol=1e-15)
            else:
                assert_array_equal(mine, ring_all_reduce(values, wire).values)


IN_A_BROWSER = """
import sys
sys.modules["_multiprocessing"] = None  # as in a notebook that runs in a browser
from hybridlab import build
from hybridlab.engines import run
print(len(run(build("1f1b", 2, 2)).timelines))
"""


def test_threads_need_no_module_that_a_browser_lacks() -> None:
    ran = subprocess.run([sys.executable, "-c", IN_A_BROWSER], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("1\n", "")


SMALL = build("1f1b", 2, 2)
WRONG: list[tuple[dict[str, Any], str, list[Any]]] = [
    ({"schedule": "1f1b"}, "not-a-schedule", ["'1f1b'"]),
    ({"engine": 3}, "unknown-name", [3, "threads", "mpi", "torch"]),
    ({"engine": "MPI "}, "unknown-name", ["mpi"]),
    ({"steps": 0}, "too-small", ["steps", 0]),
    ({"steps": 1.5}, "not-a-whole-number", ["steps", 1.5]),
    ({"wire": 8}, "wrong-type", [8]),
    ({"wire": WireFormat("INT8", stochastic=True)}, "conflicting-arguments", ["INT8", "stochastic=False"]),
    ({"patience": -1, "engine": "mpi"}, "negative", ["patience", -1]),
    ({"work": 3}, "wrong-type", [3]),
]


@in_turn("change, code, words", WRONG)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], code: str, words: list[Any]) -> None:
    with refusal(code, *words):
        run(**({"schedule": SMALL} | change))


def test_training_work_that_does_not_fit_is_refused() -> None:
    with refusal("not-divisible", "64", "try 60"):
        TrainingWork(build("1f1b", 2, 5), 3, batch=64)
    with pytest.raises(HybridLabError):
        TrainingWork(build("1f1b", 9, 9))
