"""Test the solver: its order is as short as the best of all orders, and never longer than the schedule.

It must call an order optimal only with a proof.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import example, given
from misuse import COSTS, SCHEDULE, outcome, usual_or_junk
from oracle import Setting, nodes, peaks
from profiles import examples
from shortest import shortest
from test_bound import LATE, makespan, tiny

from hybridlab import Costs, Schedule, UnsupportedSize, build, simulate
from hybridlab.automatic.for_times import templates_of
from hybridlab.automatic.problem import problem_of
from hybridlab.automatic.windows import windows
from hybridlab.bound import Optimum, lower_bound, optimality_gap, optimum, solver
from hybridlab.schedule import W

HANAYO = build("hanayo", devices=2, microbatches=4, chunks=2)  # 14.5 at F = 1, B = 2; the best order in its memory takes 14
UNEQUAL = Costs(forward=1, backward=2)


@examples(120)
@given(tiny())
@example(LATE)
def test_it_finds_the_best_of_all_orders(case: tuple[Schedule, Setting, list[float] | None]) -> None:
    schedule, setting, memory = case
    capacity = peaks(nodes(schedule), schedule.chunks) if memory is None else [Fraction(limit) for limit in memory]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hybridlab.bound.exact.lower_bound", lambda *_: 0.0)  # so that the solver proves alone
        best = optimum(schedule, setting.costs(), memory=memory)
    assert best.proven
    assert best.makespan == best.bound
    own = makespan(best.schedule, setting)
    assert shortest(schedule, setting, capacity, own) == own == best.makespan
    assert all(held <= limit for held, limit in zip(peaks(nodes(best.schedule), schedule.chunks), capacity, strict=True))
    assert sorted(best.schedule.ops) == sorted(schedule.ops), "every operation is there"
    assert best.schedule.device_of == schedule.device_of
    assert simulate(best.schedule, setting.costs()).makespan == best.makespan


@examples(30)
@given(tiny())
def test_a_window_as_wide_as_the_step_finds_the_best_of_all_orders(case: tuple[Schedule, Setting, list[float] | None]) -> None:
    """A window shares no rule with the solver of whole steps: it counts memory as the level of a reservoir, and knows no heads."""
    schedule, setting, memory = case
    capacity = peaks(nodes(schedule), schedule.chunks) if memory is None else [Fraction(limit) for limit in memory]
    templates = templates_of(schedule.devices, schedule.microbatches, schedule.chunks, split=bool((schedule.kind == W).any()))
    template = next(each for each in templates if each.device_of == schedule.device_of)
    problem = problem_of(template, setting.costs(), np.array(capacity, dtype=float))
    *_, found = windows(problem, problem.numbers_of(template), 6)
    assert all(map(problem.fits, found))
    own = makespan(problem.schedule(found, "found"), setting)
    assert shortest(schedule, setting, capacity, own) >= own * Fraction(998, 1000), "a window counts times in thousandths of the longest"


@in_turn(
    "name, devices, microbatches, chunks, p2p, least",
    [("1f1b", 3, 6, 1, 0.25, 26.5), ("interleaved", 2, 4, 2, 0.25, 15), ("hanayo", 4, 4, 2, 0.25, 21), ("zb-h1", 4, 8, 1, 0.25, 30)],
)
def test_larger_sizes_that_are_proven_at_once(name: str, devices: int, microbatches: int, chunks: int, p2p: float, least: float) -> None:
    """The values of ``least`` come from a simpler model of the problem, which uses no bounds and sets no order of equal microbatches."""
    schedule, costs = build(name, devices, microbatches, chunks), Costs(forward=1, backward=2, p2p=p2p)
    best = optimum(schedule, costs)
    assert best.proven
    assert best.makespan == least <= simulate(schedule, costs).makespan


def test_a_schedule_that_cannot_be_beaten_comes_back_itself() -> None:
    for name, chunks in (("gpipe", 1), ("1f1b", 1), ("zb-h1", 1), ("interleaved", 2)):
        for p2p in (0, 0.25):
            schedule, costs = build(name, 2, 4, chunks), Costs(forward=1, backward=2, p2p=p2p)
            own = simulate(schedule, costs).makespan
            assert optimum(schedule, costs) == Optimum(schedule, own, own, proven=True)


def test_the_same_call_gives_the_same_order() -> None:
    first, second = (optimum(HANAYO, UNEQUAL) for _ in range(2))
    assert first == second
    assert first.schedule.name == "hanayo, shortest order"
    assert first.makespan == 14 < simulate(HANAYO, UNEQUAL).makespan


def test_without_time_the_answer_is_no_longer_than_the_schedule_and_not_called_proven() -> None:
    schedule, costs = build("hanayo", 4, 8, 2), Costs(forward=1, backward=2)
    best = optimum(schedule, costs, seconds=0)
    assert not best.proven
    assert best.bound == 29 < best.makespan <= 32.5
    with refusal("no-order-found", "0 seconds"):
        optimum(schedule, costs, seconds=0, memory=1)


def test_with_too_little_time_it_says_what_it_knows() -> None:
    schedule, costs = build("hanayo", 4, 8, 2), Costs(forward=1, backward=2, p2p=0.25)
    best = optimum(schedule, costs, seconds=0.2)
    assert not best.proven
    assert best.bound < best.makespan <= simulate(schedule, costs).makespan == 39
    assert best.bound <= 34, "the optimum, proven in some seconds"


def test_a_bound_of_the_solver_is_kept_although_it_is_no_proof_and_the_next_search_begins_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The times are multiples of 0.5, so the solver counts 13.75 as 27.5. The first search finds no order but that of the schedule."""
    real, own = solver.solution_of, simulate(HANAYO, UNEQUAL)
    known = np.rint(2 * np.append(own.start, own.makespan)).astype(int).tolist()

    def unsure(*given: Any, from_below: bool, **more: Any) -> Any:
        found = real(*given, from_below=from_below, **more)
        return found._replace(values=known if from_below else found.values, bound=27.5, proven=False)  # type: ignore[union-attr]

    monkeypatch.setattr("hybridlab.bound.exact.solution_of", unsure)
    found = optimum(HANAYO, UNEQUAL)
    assert (found.makespan, found.bound, found.proven) == (14, 13.75, False)


def test_an_interrupt_ends_the_solver_at_once_and_reaches_the_caller() -> None:
    """The work here is that of the solver in one respect: only ``stop`` ends it."""
    stopped = threading.Event()

    def work() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return stopped.wait()

    with pytest.raises(KeyboardInterrupt):
        solver.interruptible(work, stopped.set)
    assert stopped.is_set()
    assert solver.interruptible(lambda: 3, stopped.clear) == 3
    assert stopped.is_set(), "work that ends by itself is not stopped"


def test_times_count_exactly_whatever_their_fractions() -> None:
    """Thirds, tenths and thousandths are whole numbers of 1/3000, and the answer scales with the unit of time."""
    for unit in (1, 1 / 3, 0.1, 0.007, 1e6):
        best = optimum(HANAYO, Costs(forward=unit, backward=2 * unit))
        assert best.proven
        assert best.makespan == pytest.approx(14 * unit, rel=1e-12)


def test_a_gap_with_time_to_search_is_to_the_optimum() -> None:
    found = optimality_gap(HANAYO, UNEQUAL, seconds=10)
    assert (found.makespan, found.bound, found.optimum) == (14.5, 13.5, 14)
    assert found.ratio == 14.5 / 14


def test_a_planted_bound_above_the_optimum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a false bound of 14.25, the solver stops too early.

    An order that takes 14, timed in a second, independent way (oracle.py), shows the fault.
    """
    known, setting = optimum(HANAYO, UNEQUAL).schedule, Setting((1.0, 1.0), (2.0, 2.0), (0.5, 0.5), 0.0)
    monkeypatch.setattr("hybridlab.bound.exact.lower_bound", lambda *_: 14.25)
    assert optimum(HANAYO, UNEQUAL).bound > makespan(known, setting) == 14


def test_without_or_tools_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ortools", "ortools.sat", "ortools.sat.python"):
        monkeypatch.setitem(sys.modules, name, None)
    with refusal("not-installed", "OR-tools", "pip install 'hybridlab[solver]'"):
        optimum(HANAYO, UNEQUAL)
    assert optimum(build("1f1b", 2, 4), UNEQUAL).proven, "the bound alone proves it"
    assert optimality_gap(HANAYO, UNEQUAL).optimum is None


@in_turn(
    "costs, code, words",
    [
        (Costs(forward=1, backward=2.718281828), "not-a-fraction", ("1.359140914", "10,000", "round the costs")),
        (Costs(forward=1e9, backward=1.001), "too-large", ("1,000,000,000", "round the costs")),
        (Costs(forward=0, backward=1), "too-small", ("the forward of microbatch 0 on stage 0", "0.001")),
        (Costs(forward=[[1], [2]], backward=1), "several-settings", ("(2,)",)),
    ],
)
def test_costs_that_cannot_be_counted_are_refused(costs: Costs, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        optimum(HANAYO, costs)


def test_sizes_and_pairs_that_are_out_of_reach_are_refused() -> None:
    with refusal("too-large", "16,384 operations", "13,000", kind=UnsupportedSize):
        optimum(build("1f1b", 64, 128), UNEQUAL)
    with refusal("overlapped-pairs", "lower_bound", "overlap 0"):
        optimum(build("dualpipe-v", 2, 4), Costs(forward=1, backward=2, overlap=0.5))


def test_without_overlap_a_pair_is_one_operation_after_the_other() -> None:
    schedule = build("dualpipe-v", 2, 4)
    best = optimum(schedule, UNEQUAL)
    assert schedule.pairs.size
    assert not best.schedule.pairs.size
    assert sorted(best.schedule.ops) == sorted(schedule.ops)
    assert best.makespan < simulate(schedule, UNEQUAL).makespan
    own, found = (peaks(nodes(each), each.chunks) for each in (schedule, best.schedule))
    assert all(held <= limit for held, limit in zip(found, own, strict=True))


@in_turn("ask", [lower_bound, optimum, optimality_gap])
def test_what_is_no_schedule_or_no_costs_is_refused_in_words_that_fit_all_three(ask: Callable[[Any, Any], Any]) -> None:
    with refusal("wrong-type", "a bound or an optimum", "a Schedule and Costs", "<Schedule hanayo", "and 5"):
        ask(HANAYO, 5)


@examples(80)
@given(
    schedule=usual_or_junk([SCHEDULE]),
    costs=usual_or_junk([COSTS]),
    seconds=usual_or_junk([0, 1]),
    workers=usual_or_junk([1]),
    memory=usual_or_junk([None, 1]),
)
def test_junk(schedule: Any, costs: Any, seconds: Any, workers: Any, memory: Any) -> None:
    best = outcome(optimum, schedule, costs, seconds=seconds, workers=workers, memory=memory)
    assert best is None or isinstance(best, Optimum)
