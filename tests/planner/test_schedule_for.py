"""Test schedules made for given times: they are legal, keep to the memory, and are held against the registry, a solver and a paper."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, outcome, usual_or_junk
from profiles import examples

from hybridlab import REGISTRY, Costs, HybridLabError, Schedule, build, schedule_for, simulate
from hybridlab.automatic import ScheduleForTimes, for_times, search
from hybridlab.automatic.exchange import exchanges
from hybridlab.automatic.greedy import greedy, policies
from hybridlab.automatic.problem import problem_of
from hybridlab.automatic.windows import windows
from hybridlab.bound import optimum

REFERENCE = Path(__file__).resolve().parents[1] / "data" / "zero_bubble.json"
EXAMPLE = Costs(forward=10, backward=20, weight_share=0.6, p2p=5)
# bytes of an activation that a weight gradient still needs, over all of them: 32 / (34 + 5 a s / h), arXiv 2401.10241, sec. 5.4 and Table 3
HELD_AFTER = {"1.5B": 32 / (34 + 5 * 24 * 1024 / 2304), "6.2B": 32 / (34 + 5 * 32 * 1024 / 4096)}


@st.composite
def measured(draw: st.DrawFn, most: int = 4) -> tuple[Costs, int, int, float]:
    """Draw costs of uneven devices and sometimes of uneven microbatches, a number of microbatches, of chunks, and a memory."""
    devices, microbatches = draw(st.integers(1, most)), draw(st.integers(1, 6))
    each = st.lists(st.integers(1, 20), min_size=devices, max_size=devices)
    latency: dict[str, Any] = {"p2p": draw(st.sampled_from([0, 0.5, 3]))}
    if devices > 2 and draw(st.booleans()):
        latency = {"p2p_between": (np.arange(devices * devices).reshape(devices, devices) % 4) * (1 - np.eye(devices))}
    forward, backward = np.array(draw(each)), np.array(draw(each))
    if draw(st.booleans()):
        length = np.array(draw(st.lists(st.integers(1, 3), min_size=microbatches, max_size=microbatches)))
        forward, backward = forward[:, None] * length, backward[:, None] * length
        latency["per"] = ("device", "microbatch")
    costs = Costs(forward=forward, backward=backward, weight_share=draw(st.sampled_from([0.25, 0.5])), **latency)
    return costs, microbatches, draw(st.sampled_from([1, 2])), draw(st.integers(2, 3 * devices + 1)) / 2


def of_registry(costs: Costs, devices: int, microbatches: int, chunks: int, memory: Any) -> Iterator[Schedule]:
    """Yield the schedules of the registry with one copy of the weights that fit."""
    for name, family in REGISTRY.items():
        if family.copies == 1 and not family.refusal(devices, microbatches, chunks):
            schedule = build(name, devices, microbatches, chunks)
            if (simulate(schedule, costs).peak_activations <= memory).all():
                yield schedule


@examples(60)
@given(measured(), st.booleans(), st.integers(0, 3), st.sampled_from(["free", "ordered"]))
def test_it_is_legal_and_keeps_to_the_memory_and_no_schedule_of_the_registry_is_shorter(
    case: tuple[Costs, int, int, float], split: bool, seed: int, messages: str
) -> None:
    costs, microbatches, chunks, memory = case
    devices = costs.devices or 1
    made = schedule_for(
        costs, microbatches, memory, chunks=chunks, devices=devices, split=split, messages=messages, seconds=0.02, seed=seed
    )
    timeline = simulate(made, costs, messages=messages)
    assert Schedule(made.name, made.turns) == made  # the orders are checked again, one operation at a time
    assert (made.devices, made.microbatches, made.chunks, made.copies) == (devices, microbatches, chunks, 1)
    assert split or not ("I" in str(made) or "W" in str(made))
    assert (timeline.peak_activations <= memory).all()
    assert made.makespan == timeline.makespan
    assert made.bound <= made.makespan
    assert made.proven == (made.gap == 0)
    for schedule in of_registry(costs, devices, microbatches, chunks, memory):
        if split or not ("I" in str(schedule) or "W" in str(schedule)):
            known = simulate(schedule, costs, messages=messages).makespan
            assert made.makespan <= known * (1 + 1e-9)
            assert not made.proven or made.bound <= known * (1 + 1e-9)


SHAPES = {
    "even": lambda devices: Costs(forward=[1] * devices, backward=2, p2p=0.25),
    "uneven": lambda devices: Costs(forward=[4, 7, 3, 5][:devices], backward=[9, 11, 8, 12][:devices], p2p=1),
    "small weight gradients": lambda devices: Costs(forward=[3] * devices, backward=[7, 7, 8, 7][:devices], weight_share=0.25),
}
SMALL = [
    (devices, microbatches, cap) for devices in (2, 3, 4) for microbatches in (1, 2, 4, 6) for cap in (1, devices - 1, devices, 2 * devices)
]


@in_turn("shape", SHAPES)
def test_local_search_alone_comes_near_the_optimum_of_the_solver(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(gaps_of_local_search(shape, SMALL[3::6], monkeypatch)) <= 0.02


@pytest.mark.slow
@in_turn("shape", SHAPES)
def test_local_search_alone_finds_nearly_every_optimum_of_the_solver(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = gaps_of_local_search(shape, SMALL, monkeypatch)
    assert max(gaps) <= 0.02
    assert np.mean(np.array(gaps) < 1e-9) >= 0.95


def gaps_of_local_search(shape: str, sizes: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return by which part each schedule is longer than the shortest one, if it is made without the solver."""
    gaps = []
    for devices, microbatches, memory in sizes:
        costs = SHAPES[shape](devices)
        with monkeypatch.context() as without:
            without.setattr(search, "ask_solver", lambda state, *_: state)
            made = schedule_for(costs, microbatches, memory=memory, seconds=0.4)
        best = optimum(build("zb-h1", devices, microbatches), costs, memory=memory, seconds=60)
        assert best.proven
        gaps.append(made.makespan / best.makespan - 1)
    return gaps


@in_turn("shape, size", zip(cycle(SHAPES), SMALL[2::8]))
def test_with_the_solver_small_schedules_are_proven(shape: str, size: tuple[int, int, int]) -> None:
    it_is_proven(shape, *size)


@pytest.mark.slow
@in_turn("shape", SHAPES)
@in_turn("size", SMALL[::5])
def test_with_the_solver_every_small_schedule_is_proven(shape: str, size: tuple[int, int, int]) -> None:
    it_is_proven(shape, *size)


def it_is_proven(shape: str, devices: int, microbatches: int, memory: int) -> None:
    costs = SHAPES[shape](devices)
    made = schedule_for(costs, microbatches, memory=memory)
    assert made.proven
    assert made.makespan == pytest.approx(optimum(build("zb-h1", devices, microbatches), costs, memory=memory, seconds=60).makespan)


def published() -> list[tuple[Any, str, int, float]]:
    data = json.loads(REFERENCE.read_text(encoding="utf-8"))
    columns = data["table5_bubble_rate"]["columns"]
    rates = {tuple(row[:3]): dict(zip(columns, row, strict=True)) for row in data["table5_bubble_rate"]["rows"]}
    return [
        (row, name, memory, rates[tuple(row[:3])][name])
        for row in data["table9_ms"]["rows"]
        for name, memory in (("ZB-1p", 1), ("ZB-2p", 2))
    ]


PUBLISHED = published()


@in_turn(
    "times, name, memory, rate", [row for row in PUBLISHED if (*row[0][:3], row[1]) in (("1.5B", 8, 24, "ZB-1p"), ("6.2B", 8, 24, "ZB-2p"))]
)
def test_two_rates_are_those_of_the_paper_or_better(times: Any, name: str, memory: int, rate: float) -> None:
    the_rate_is_reached(times, name, memory, rate)


@pytest.mark.slow
@in_turn("times, name, memory, rate", PUBLISHED)
def test_rates_are_those_of_the_paper_or_better(times: Any, name: str, memory: int, rate: float) -> None:
    the_rate_is_reached(times, name, memory, rate)


def the_rate_is_reached(times: Any, name: str, memory: int, rate: float) -> None:
    model, devices, microbatches, forward, input_gradient, weight, latency = times
    costs = Costs(
        forward=[forward] * devices, backward=input_gradient + weight, weight_share=weight / (input_gradient + weight), p2p=latency
    )
    held = 1.0 if name == "ZB-1p" else HELD_AFTER[model]
    made = schedule_for(costs, microbatches, memory=memory * devices, held_after=held, seconds=0.5)
    span, work = simulate(made, costs).device_span, microbatches * (forward + input_gradient + weight)
    assert (span - work) / span <= rate + 0.0005
    assert made.proven or name == "ZB-2p", "with the memory of 1F1B, ZB-H1 is the shortest order, and the bound shows it"


def test_the_example_of_the_course_is_proven_and_beats_zb_h1() -> None:
    costs = Costs(forward=10, backward=20, weight_share=0.6, p2p=5)
    made = schedule_for(costs, 24, devices=8, memory=12)
    assert simulate(build("zb-h1", 8, 24), costs).makespan == 902
    assert (made.makespan, made.proven) == (825, True)
    assert made.summary == "no order with this memory is shorter: this is proven"


def test_a_known_optimum_far_below_zb_h1_is_found_and_proven() -> None:
    """An independent search found 29.7 for these sizes, where ZB-H1 takes 35.4, and a solver proved that no order is shorter."""
    costs = Costs(forward=1, backward=2, weight_share=0.35, p2p=0.5)
    made = schedule_for(costs, 8, devices=4, memory=7)
    assert simulate(build("zb-h1", 4, 8), costs).makespan == pytest.approx(35.4)
    assert (made.makespan, made.proven) == (pytest.approx(29.7), True)


def test_a_part_that_is_freed_early_lets_more_microbatches_in() -> None:
    costs = Costs(forward=[10] * 4, backward=20, weight_share=0.6, p2p=5)
    whole, early = (schedule_for(costs, 12, memory=3, held_after=held, seconds=0.2) for held in (1.0, 0.0))
    assert early.makespan < whole.makespan
    held = np.zeros(4)
    most = np.zeros(4)
    for kind, device in zip((str(op.kind) for op in early.ops), early.device.tolist(), strict=True):
        held[device] += {"F": 1, "I": -1, "W": 0}[kind]
        most = np.maximum(most, held)
    assert (most <= 3 + 1e-9).all()
    assert early.bound <= early.makespan
    assert "freed early" in early.summary or early.proven


def test_a_part_of_an_activation_fills_a_part_of_the_memory() -> None:
    costs = Costs(forward=[10] * 4, backward=20, weight_share=0.6, p2p=5)
    whole, more = (schedule_for(costs, 8, memory=memory, held_after=0.25, seconds=0.1).makespan for memory in (2, 2.25))
    assert more < whole


@in_turn("devices, microbatches", [(2, 4), (16, 64), (64, 512), (512, 4096)])
@in_turn("chunks", [1, 2])
def test_the_work_of_all_parts_is_bounded_by_the_effort(devices: int, microbatches: int, chunks: int) -> None:
    templates = for_times.templates_of(2, 2, chunks)
    problem = replace(problem_of(templates[0], EXAMPLE, np.full(2, 2.0)), device=range(3 * devices * microbatches * chunks))  # type: ignore[arg-type]
    problems = [problem] * len(templates)
    for seconds, with_solver, messages in product((0.0, 0.1, 10.0), (False, True), ("free", "ordered")):
        plan = search.work_plan(problems, seconds, with_solver, messages)
        ordered = search.OF_ORDERED * (messages == "ordered")
        registry = (search.OF_REGISTRY + 2 * ordered) * problem.size * sum(map(len, plan.families))
        greedy_work = (search.OF_POLICY + ordered) * problem.size * sum(plan.policies)
        local = (plan.attempts + search.REPORTS * ordered * (plan.attempts > 0)) * problem.size * len(problems)
        of_window = search.OF_WINDOW[0] + (search.OF_WINDOW[1] + 2 * ordered) * problem.size
        solver = (plan.solver * search.WORK + plan.windows * of_window) * len(problems)
        assert registry <= search.START
        assert greedy_work + local + solver <= search.FIRST_POLICIES + seconds * search.WORK * (1 + 1e-9)
        assert ("policies were tried" in plan.left_out) == (plan.policies[0] < len(policies(problem)))
    if devices == 2:
        assert plan.left_out == ""


def test_what_the_effort_did_not_suffice_for_is_not_done_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counting(name: str) -> Any:
        of = getattr(search, name)
        return lambda *arguments: calls.append(name) or of(*arguments)

    for name in ("greedy", "build"):
        monkeypatch.setattr(search, name, counting(name))
    made = schedule_for(EXAMPLE, 64, devices=16, memory=12, seconds=0)
    assert made.summary.startswith("32 of 120 policies were tried; the solver was given no time: no order is shorter than ")
    assert (calls.count("greedy"), calls.count("build")) == (32, 5)
    monkeypatch.setattr(search, "START", 0)
    monkeypatch.setattr(search, "FIRST_POLICIES", 0)
    calls.clear()
    nothing = schedule_for(EXAMPLE, 4, devices=2, memory=1, chunks=2, seconds=0)
    assert calls == []
    assert nothing.summary.startswith("0 of 8 schedules of the registry were simulated and 0 of 480 policies were tried; the solver was ")
    assert nothing.name == "one by one", "some schedule comes back"


def test_overlapped_pairs_of_the_registry_stay_within_the_bound() -> None:
    costs = Costs(forward=[10] * 3, backward=20, overlap=1)
    made = schedule_for(costs, 12, chunks=2, seconds=0.05)
    best = min(simulate(schedule, costs).makespan for schedule in of_registry(costs, 3, 12, 2, 99))
    assert made.bound <= made.makespan <= best


def test_a_limit_for_each_device_holds_on_each() -> None:
    made = schedule_for(Costs(forward=[3, 4, 5], backward=9, p2p=1), 8, memory=[3, 2, 1], seconds=0.2)
    assert (simulate(made, Costs(forward=1, backward=2)).peak_activations <= [3, 2, 1]).all()


def test_the_same_seed_gives_the_same_schedule_and_inputs_stay_as_they_were() -> None:
    costs = Costs(forward=[3, 4, 5, 7], backward=[9, 8, 11, 10], p2p=1)
    before = Costs(forward=[3, 4, 5, 7], backward=[9, 8, 11, 10], p2p=1)
    one, two = (schedule_for(costs, 8, memory=3, chunks=2, seconds=0.1, seed=5) for _ in range(2))
    assert (one, one.makespan, one.bound, one.summary) == (two, two.makespan, two.bound, two.summary)
    assert costs == before


@in_turn("part", ["registry_candidates", "greedy", "exchanges", "ask_solver"])
def test_an_interrupt_returns_the_best_so_far(part: str) -> None:
    costs = Costs(forward=[3, 4, 5, 7], backward=[9, 8, 11, 10], p2p=1)

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, part, stopped)
        patch.setattr(search, "TRIES", 1)  # the local search proves nothing here, so that the solver is asked
        made = schedule_for(costs, 8, memory=3, chunks=2)
    assert made.interrupted
    assert made.summary.startswith("the search was interrupted, and this is the best order so far: no order is shorter than ")
    if part != "registry_candidates":
        assert made.makespan <= min(simulate(each, costs).makespan for each in of_registry(costs, 4, 8, 2, 3))
    assert not schedule_for(costs, 2, seconds=0).interrupted


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []
    schedule_for(EXAMPLE, 4, devices=2, seconds=0.01, progress=lambda *now: calls.append(now))
    assert calls == sorted(calls)
    assert calls[-1][0] > 1
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    schedule_for(EXAMPLE, 4, devices=2, seconds=0.01, progress=True)
    assert "attempts" in capsys.readouterr().err
    schedule_for(EXAMPLE, 4, devices=2, seconds=0.01, progress=False)
    assert not capsys.readouterr().err


def test_sizes_beyond_the_solver_say_so_and_give_bound_and_best() -> None:
    made = schedule_for(EXAMPLE, 542, devices=8, memory=8, seconds=0.1)
    assert not made.proven
    assert "; 13,008 operations are more than the 13,000 that the solver takes; it would need hours: no order is " in made.summary
    assert f"{made.bound:.6g}" in made.summary
    assert f"{made.makespan:.6g}" in made.summary


def test_times_that_the_solver_cannot_count_are_rounded_down_for_a_bound() -> None:
    costs = Costs(forward=[np.pi, np.e, 3.3], backward=[7.1, np.sqrt(50), 6.9], p2p=1 / 7)
    made = schedule_for(costs, 4, memory=2)
    exact = schedule_for(Costs(forward=[3.142, 2.718, 3.3], backward=[7.1, 7.071, 6.9], p2p=0.143), 4, memory=2)
    assert made.gap < 1e-3
    assert made.makespan == pytest.approx(exact.makespan, rel=1e-3)


def test_without_or_tools_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ortools.sat.python", None)
    made = schedule_for(Costs(forward=[3, 9, 5], backward=[9, 4, 11]), 6, memory=2, seconds=0.2)
    assert made.proven or "pip install 'hybridlab[solver]'" in made.summary


@in_turn(
    "costs, arguments, code, words",
    [
        (EXAMPLE, {}, "missing-argument", "schedule_for(costs, 8, devices=4)"),
        (Costs(forward=[1, 2], backward=3), {"devices": 3}, "conflicting-arguments", "for 2 devices, not 3"),
        (Costs(forward=[[1], [2]], backward=3), {"devices": 2}, "several-settings", "(2,)"),
        (
            Costs(forward=[1, 2, 3], backward=3, per="stage"),
            {"chunks": 2},
            "does-not-fit",
            "2 chunks on each device do not fit: the times are for 3 stages",
        ),
        (EXAMPLE, {"devices": 2, "chunks": 3}, "out-of-range", "1 or 2 chunks"),
        (EXAMPLE, {"devices": 2, "memory": 0.5}, "too-small", "at least 1 microbatch"),
        (EXAMPLE, {"devices": 2, "memory": [1, 2, 3]}, "wrong-shape", "one for each of the 2 devices"),
        (EXAMPLE, {"devices": 2, "held_after": 2}, "out-of-range", "from 0 to 1, not 2"),
        (EXAMPLE, {"devices": 2, "split": 1}, "not-true-or-false", "split"),
        (EXAMPLE, {"devices": 2, "progress": 1}, "wrong-type", "progress"),
        (EXAMPLE, {"devices": 2, "messages": "order"}, "unknown-name", "unknown order of messages 'order': did you mean 'ordered'?"),
        (EXAMPLE, {"devices": 2, "messages": [["run 0F0"]]}, "unknown-name", "Known: free, ordered"),
        (EXAMPLE, {"devices": 2, "seconds": -1}, "negative", "seconds"),
        (EXAMPLE, {"devices": 2, "seed": -1}, "too-small", "seed"),
        (EXAMPLE, {"devices": 2, "microbatches": 0}, "too-small", "microbatches"),
        (EXAMPLE, {"devices": 10**7, "microbatches": 10**7}, "too-large", "do not fit in memory"),
        (None, {}, "wrong-type", "made for Costs, not for None"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_in_a_sentence(costs: Any, arguments: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(HybridLabError) as refused:
        schedule_for(costs, **{"microbatches": 4, **arguments})
    assert refused.value.code == code
    assert words in str(refused.value)


def test_costs_of_stages_are_those_of_chunks() -> None:
    costs = Costs(forward=[2, 3, 4, 5], backward=[4, 6, 8, 10], per="stage")
    made = schedule_for(costs, 4, chunks=2, seconds=0.1)
    assert (made.devices, made.stages) == (2, 4)


def test_only_a_search_makes_a_schedule_for_times() -> None:
    for make in (
        lambda: ScheduleForTimes.parse("0F0 0B0"),
        lambda: ScheduleForTimes.parse([["0F0", "0B0"]]),
        lambda: ScheduleForTimes.from_slots("", [[[0]], [[1]]], device_of=[0]),
    ):
        with pytest.raises(HybridLabError, match="only schedule_for makes such a schedule"):
            make()
    made = schedule_for(EXAMPLE, 2, devices=2, seconds=0)
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
    assert (again, again.makespan, again.summary) == (made, made.makespan, made.summary)


def test_edges() -> None:
    one = schedule_for(Costs(forward=3, backward=5), 1, devices=1)
    assert (one.makespan, one.proven, len(one)) == (8, True, 1)
    nothing = schedule_for(Costs(forward=[0, 0], backward=0), 3)
    assert (nothing.makespan, nothing.gap, nothing.proven) == (0, 0, True)
    huge = schedule_for(Costs(forward=[1e150, 2e150], backward=1e-150), 2, seconds=0.1)
    assert huge.bound <= huge.makespan


@examples(40)
@given(measured())
def test_every_greedy_order_and_every_exchange_is_legal(case: tuple[Costs, int, int, float]) -> None:
    costs, microbatches, chunks, memory = case
    devices = costs.devices or 1
    template = schedule_for(costs, microbatches, devices=devices, memory=1, chunks=chunks, seconds=0)
    problem = problem_of(build("gpipe", devices, microbatches) if "I" not in str(template) else template, costs, np.full(devices, memory))
    for policy in policies(problem)[::7]:
        orders = greedy(problem, policy)
        if orders is not None and problem.template.chunks == 1:
            timeline = simulate(problem.schedule(orders, "greedy"), costs)
            assert timeline.makespan == pytest.approx(max(problem.run(orders)[1]))  # type: ignore[index]
            assert (timeline.peak_activations <= memory + 1e-9).all()
            for better in exchanges(problem, orders, 20, 0):
                assert all(map(problem.fits, better))
            assert max(problem.run(better)[1]) <= max(problem.run(orders)[1])  # type: ignore[index]


@in_turn("devices, microbatches, memory", [(3, 4, 2), (4, 6, 3)])
def test_exchanges_and_windows_lead_from_the_longest_order_to_the_shortest_within_the_memory(
    devices: int, microbatches: int, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs, template = SHAPES["uneven"](devices), build("zb-h1", devices, microbatches)
    problem = problem_of(template, costs, np.full(devices, float(memory)))

    def step(orders: list[list[int]]) -> float:
        assert all(map(problem.fits, orders))
        return max(problem.run(orders)[1])  # type: ignore[index]

    worst = max((order for order in (greedy(problem, policy) for policy in policies(problem)) if order is not None), key=step)
    best = optimum(template, costs, memory=memory)
    assert best.proven
    for seed in range(3):
        *before, found = search._local(problem, worst, 400, seed)
        assert best.makespan <= step(found) <= 1.02 * best.makespan < step(worst)
        alone = [step(list(exchanges(problem, worst, share, seed + place))[-1]) for place, share in enumerate((133, 133, 134))]
        assert (len(before), step(found)) == (399, min(alone)), "three searches, each with a seed of its own, and the best of them"
    monkeypatch.setattr("hybridlab.automatic.windows.WIDTHS", (6,))  # so that operations stand before and after a window
    *_, found = windows(problem, worst, 6)
    assert best.makespan <= step(found) <= 1.01 * best.makespan


def test_a_planted_fault_in_the_memory_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybridlab.automatic.problem.OrderProblem.fits", lambda *_: True)
    costs = Costs(forward=[3, 4, 5, 7], backward=[9, 8, 11, 10], p2p=1)
    made = schedule_for(costs, 8, memory=2, seconds=0.2)
    assert (simulate(made, costs).peak_activations > 2).any()


@examples(80)
@given(
    costs=usual_or_junk([EXAMPLE]),
    microbatches=usual_or_junk([1, 3]),
    memory=usual_or_junk([None, 1, 2.5]),
    chunks=usual_or_junk([1, 2]),
    devices=usual_or_junk([2]),
    held_after=usual_or_junk([0.5, 1]),
    more=st.sampled_from(["split", "seconds", "seed", "progress", "messages"]).flatmap(lambda name: st.tuples(st.just(name), junk)),
)
def test_junk(costs: Any, microbatches: Any, memory: Any, chunks: Any, devices: Any, held_after: Any, more: tuple[str, Any]) -> None:
    named: dict[str, Any] = {"seconds": 0.01, more[0]: more[1]}
    if isinstance(named["seconds"], (int, float)) and named["seconds"] > 1:
        named["seconds"] = 0.01
    made = outcome(schedule_for, costs, microbatches, memory=memory, chunks=chunks, devices=devices, held_after=held_after, **named)
    assert made is None or isinstance(made, Schedule)
