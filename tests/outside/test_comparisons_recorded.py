"""Test that the recorded errors on measurements beside the repository equal newly computed ones.

`python -m pytest tests/outside/test_comparisons_recorded.py -s -k written` prints them, to paste into `recorded.py` of
hybridlab/course/comparisons.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from cases import in_turn
from measured_beside import GROUPS, MULTI_NODE, NANOTRON, Row, all_reduces, hagemann, nanotron, run_of, runs, summary

from hybridlab import UnsupportedSize
from hybridlab.collectives import measured_time
from hybridlab.course import comparisons
from hybridlab.course.comparisons.measured_runs import MeasuredRun
from hybridlab.planner import calibrate, memory, predict


def test_errors_of_iteration_times_are_those_written_down() -> None:
    measured = runs(MULTI_NODE)
    assert len(measured) == 109
    errors = np.array([run.error for run in measured])
    fresh = {name: summary(errors[[chosen(run.plan) for run in measured]]) for name, chosen in comparisons.GROUPS.items()}
    for name, row in fresh.items():
        print(f'        "{name}": Recorded{row},')
    assert {name: tuple(row) for name, row in comparisons.ITERATION_TIMES.items()} == fresh


def test_errors_under_other_assumptions_are_those_written_down() -> None:
    fresh, measured = {}, runs(MULTI_NODE)
    for name, profile, factor in comparisons.ASSUMPTIONS:
        share = factor * calibrate(comparisons.RUNS, profile)
        theirs = replace(profile, network=profile.network / 2)  # a node has four ports, half of those of the runs for the calibration
        times = [predict(run.model, run.plan, theirs, efficiency=share).seconds / run.seconds for run in measured]
        fresh[name] = summary(np.array(times) - 1)[1]
        print(f'        "{name}": {fresh[name]},')
    assert dict(comparisons.IF_ASSUMED) == fresh


@in_turn("group", [name for name in GROUPS if name not in (MULTI_NODE, NANOTRON)])
def test_errors_of_a_group_are_those_written_down(group: str) -> None:
    fresh = summary(np.array([run.error for run in runs(group)]))
    print(f'        "{group}": Recorded{fresh},')
    assert tuple(comparisons.OUTSIDE[group]) == fresh


def test_errors_of_memory_are_those_written_down() -> None:
    fresh = summary(np.array([run.memory_error for run in runs(NANOTRON)]))
    print(f"        Recorded{fresh}")
    assert tuple(comparisons.MEMORY_OUTSIDE[NANOTRON]) == fresh


def chosen(measured: Iterable[MeasuredRun]) -> tuple[float, ...]:
    """Return what a choice among these runs costs: the fields of a :class:`Choice`."""
    rows = [(run.predicted, run.seconds) for run in measured]
    fastest, ranked = min(seconds for _, seconds in rows), [seconds for _, seconds in sorted(rows)]
    right = [(one[0] < other[0]) == (one[1] < other[1]) for one, other in combinations(rows, 2)]
    shares = (ranked[0] / fastest - 1, min(ranked[:3]) / fastest - 1, sum(ranked) / len(rows) / fastest - 1, sum(right) / len(right))
    return (len(rows), *(float(f"{share:.4g}") for share in shares))


def test_what_choosing_by_prediction_costs_is_what_is_written_down() -> None:
    kinds = defaultdict(list)
    for run in runs(MULTI_NODE):
        kinds[f"GPT of {run.model.parameters / 1e9:.1f} billion, {run.plan.gpus} GPUs", run.plan.global_batch].append(run)
    measured = runs(NANOTRON)
    equal = [replace(run, plan=replace(run.plan, stage_layers=None)) for run in measured]  # `search` knows no other stages
    for ending, among in (("", equal), (", stages as they were", measured)):
        for run in among:
            kinds[f"Llama of {run.name}{ending}", run.plan.global_batch].append(run)
    fresh = {name: chosen(measured) for (name, _), measured in kinds.items()}
    for name, row in fresh.items():
        print(f'        "{name}": Choice{row},')
    assert {name: tuple(row) for name, row in comparisons.CHOICES.items()} == fresh


def fits(run: MeasuredRun) -> bool:
    """Return whether the planner says that a run fits. A plan that does not divide the model does not."""
    try:
        return memory(run.model, run.plan).total <= run.profile.memory
    except UnsupportedSize:
        return False


@in_turn("group, rows", [("A100, Llama 13B, Hagemann et al.", hagemann), (NANOTRON, nanotron)])
def test_whether_a_plan_fits_is_said_as_written_down(group: str, rows: Callable[[bool], Iterator[Row]]) -> None:
    """A run without a result counts as one that does not fit."""
    ran, not_run = ([fits(run_of(group, row)) for row in rows(with_result)] for with_result in (True, False))
    fresh = (len(ran) + len(not_run), ran.count(False), not_run.count(True))
    print(f'        "{group}": Fits{fresh},')
    assert tuple(comparisons.FITS[group]) == fresh


def test_errors_of_all_reduces_are_those_written_down() -> None:
    fresh = {}
    for ranks in range(2, 9):
        nbytes, seconds = all_reduces(ranks)
        fresh[ranks] = summary(measured_time(ranks, nbytes) / seconds - 1)
        print(f"        {ranks}: Recorded{fresh[ranks]},")
    assert {ranks: tuple(row) for ranks, row in comparisons.ALL_REDUCES.items()} == fresh


def test_every_measured_plan_fits_in_memory() -> None:
    """The plans really ran, so it would be wrong to refuse any of them."""
    for run in runs(MULTI_NODE):
        assert memory(run.model, run.plan).total <= run.profile.memory
