"""Test that the recorded errors on the tables of the vTrain project equal newly computed ones.

`python -m pytest tests/outside/test_comparisons_recorded.py -s -k written` prints them, to paste into `recorded.py` of
hybridlab/course/comparisons.
"""

from collections import defaultdict
from itertools import combinations

import numpy as np
from measured_beside import all_reduces, runs, summary

from hybridlab.collectives import measured_time
from hybridlab.course import comparisons
from hybridlab.hardware import A100_80GB
from hybridlab.planner import calibrate, memory, predict


def test_errors_of_iteration_times_are_those_written_down() -> None:
    assert len(MULTI_NODE) == 109
    errors = np.array([run.error for run in MULTI_NODE])
    fresh = {name: summary(errors[[chosen(run.plan) for run in MULTI_NODE]]) for name, chosen in comparisons.GROUPS.items()}
    for name, row in fresh.items():
        print(f'        "{name}": Recorded{row},')
    assert {name: tuple(row) for name, row in comparisons.ITERATION_TIMES.items()} == fresh


def test_errors_under_other_assumptions_are_those_written_down() -> None:
    fresh = {}
    for name, profile, factor in comparisons.ASSUMPTIONS:
        share = factor * calibrate(comparisons.RUNS, profile)
        errors = [predict(model, plan, profile, efficiency=share).seconds / seconds - 1 for model, plan, seconds in iterations()]
        fresh[name] = summary(np.array(errors))[1]
        print(f'        "{name}": {fresh[name]},')
    assert dict(comparisons.IF_ASSUMED) == fresh


def test_what_choosing_by_prediction_costs_is_what_is_written_down() -> None:
    kinds = defaultdict(list)
    for model, plan, seconds in iterations():
        kinds[model, plan.gpus, plan.global_batch].append((predict(model, plan, A100_80GB).seconds, seconds))
    fresh = {}
    for (model, gpus, _), rows in kinds.items():
        name = f"{model.parameters / 1e9:.1f} billion, {gpus} GPUs"
        fastest = min(seconds for _, seconds in rows)
        picked, mean = min(rows)[1], sum(seconds for _, seconds in rows) / len(rows)
        right = [(one[0] < other[0]) == (one[1] < other[1]) for one, other in combinations(rows, 2)]
        shares = (picked / fastest - 1, mean / fastest - 1, sum(right) / len(right))
        fresh[name] = (len(rows), *(float(f"{share:.4g}") for share in shares))
        print(f'        "{name}": Choice{fresh[name]},')
    assert {name: tuple(row) for name, row in comparisons.CHOICES.items()} == fresh


def test_errors_of_all_reduces_are_those_written_down() -> None:
    fresh = {}
    for ranks in range(2, 9):
        nbytes, seconds = all_reduces(ranks)
        fresh[ranks] = summary(measured_time(ranks, nbytes) / seconds - 1)
        print(f"        {ranks}: Recorded{fresh[ranks]},")
    assert {ranks: tuple(row) for ranks, row in comparisons.ALL_REDUCES.items()} == fresh


def test_every_measured_plan_fits_in_memory() -> None:
    """The plans really ran, so it would be wrong to refuse any of them."""
    for model, plan, _ in iterations():
        assert memory(model, plan).total <= A100_80GB.memory
