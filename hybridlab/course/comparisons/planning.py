"""Comparisons of the planner and of a transformer's shape with published runs, and how much each assumption matters."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.course.comparisons.comparison import Comparison, compared
from hybridlab.course.published import large_runs
from hybridlab.errors import HybridLabError
from hybridlab.hardware import A100_80GB, Profile
from hybridlab.model import Transformer
from hybridlab.planner import EFFICIENCY, calibrate, predict
from hybridlab.planner.calibration import Measured, checked_runs
from hybridlab.planner.iteration import MEMORY_SHARE, NETWORK_SHARE

MEGATRON = "Narayanan et al. 2021, Table 1"
RUNS: tuple[Measured, ...] = tuple((run.model, run.plan, run.seconds) for run in large_runs.TABLE_1)
RUNS_2022: tuple[Measured, ...] = tuple((run.model, run.plan, run.seconds) for run in large_runs.RUNS_2022)
PRINTED = np.array([run.tflops_per_gpu for run in large_runs.TABLE_1])
# Korthikanti et al., arXiv 2205.05198, Fig. 1: model, microbatch, stages, chunks; GiB with nothing recomputed, and with sequence
# parallelism and selective recomputation
FIGURE_1 = (
    (Transformer(layers=48, hidden=6144, heads=64), 4, 1, 1, 59.25, 9.5625),
    (Transformer(layers=96, hidden=12288, heads=96), 1, 8, 3, 66.84375, 12.3515625),
)


class Assumption(NamedTuple):
    """Something that the predictions take as given, changed: another ``profile``, or ``efficiency`` times the calibrated one."""

    name: str
    profile: Profile
    efficiency: float = 1.0


def _memory(share: float) -> Profile:
    """Return A100s of which streaming reaches another share of the memory's peak bandwidth."""
    return replace(A100_80GB, memory_bandwidth=A100_80GB.memory_bandwidth * share / MEMORY_SHARE)


def _network(share: float) -> Profile:
    return replace(A100_80GB, network=A100_80GB.network * share / NETWORK_SHARE)


ENDLESS = 1e30  # bytes a second: takes no time
AS_IT_IS = Assumption("as it is", A100_80GB)
WITHOUT_MEMORY = Assumption("no time for memory", replace(A100_80GB, memory_bandwidth=ENDLESS))
ASSUMPTIONS = (
    AS_IT_IS,
    Assumption("memory reaches 0.8 of its peak", _memory(0.8)),
    Assumption("memory reaches all of its peak", _memory(1.0)),
    Assumption("network reaches 0.8 of line rate", _network(0.8)),
    Assumption("network reaches all of line rate", _network(1.0)),
    Assumption("efficiency 5 % lower", A100_80GB, 0.95),
    Assumption("efficiency 5 % higher", A100_80GB, 1.05),
    WITHOUT_MEMORY,
    Assumption("no time for the network", replace(A100_80GB, network=ENDLESS)),
)


def errors(runs: Iterable[Measured], profile: Profile = A100_80GB, efficiency: float = EFFICIENCY) -> Floats:
    """Return predicted / measured - 1 of every run (model, plan, seconds): below zero where the prediction is too short.

    >>> errors(RUNS).round(3)[:3].tolist()
    [-0.011, 0.004, 0.038]
    """
    return np.array(
        [predict(model, plan, profile, efficiency=efficiency).seconds / seconds - 1 for model, plan, seconds in checked_runs(runs)]
    )


def left_out(assumption: Assumption = AS_IT_IS) -> Floats:
    """Return the errors of the ten runs of Table 1, each predicted with the efficiency that the nine others give."""
    if not isinstance(assumption, Assumption):
        raise HybridLabError(f"assumption must be one of ASSUMPTIONS, or an Assumption of your own, not {short_repr(assumption)}")
    found = []
    for place, run in enumerate(RUNS):
        others = RUNS[:place] + RUNS[place + 1 :]
        share = min(1.0, assumption.efficiency * calibrate(others, assumption.profile))
        found.append(errors([run], assumption.profile, share))
    return np.concatenate(found)


def one_speed() -> Floats:
    """Return the errors of the ten times if every GPU did the mean TFLOP/s of the nine other runs."""
    others: Floats = (PRINTED.sum() - PRINTED) / (PRINTED.size - 1)
    return PRINTED / others - 1


def iteration_times() -> Comparison:
    """Return how far the ten runs of Table 1 are from predictions that do not know them.

    >>> iteration_times()
    Comparison(iteration times, each run left out: 10 points, mean error 2.4 %, worst 5.2 %: within)
    """
    what = "iteration times, each run left out"
    return compared(what, MEGATRON, 1 + left_out(), np.ones(PRINTED.size), mean_bound=0.03, worst_bound=0.06)


def one_speed_for_all() -> Comparison:
    """Return how far the same runs are from the rule without a model: every GPU does the mean TFLOP/s of the other runs."""
    note = "the rule to beat"
    return compared("iteration times by one TFLOP/s for all", MEGATRON, 1 + one_speed(), np.ones(PRINTED.size), note=note)


def without_memory() -> Comparison:
    """Return how far they are from matrix products and communication alone, calibrated in the same way."""
    note = "refitted"
    ours = 1 + left_out(WITHOUT_MEMORY)
    return compared("iteration times without memory traffic", MEGATRON, ours, np.ones(PRINTED.size), note=note)


def newer_software() -> Comparison:
    """Return how far two iteration times of 2022 are from predictions with the constant of 2021."""
    ours = 1 + errors(RUNS_2022)
    return compared("iteration times, not refitted", "Korthikanti et al. 2022, abstract", ours, np.ones(ours.size))


def parameters() -> Comparison:
    """Return how far parameter counts are from the billions that Table 1 prints, rounded as they are."""
    ours = [round(run.model.parameters / 1e9, 1) for run in large_runs.TABLE_1]
    return compared("billions of parameters", MEGATRON, ours, [run.billions for run in large_runs.TABLE_1], worst_bound=0.0)


def activation_memory() -> Comparison:
    """Return how far the activation memory of two models, each in two ways, is from Figure 1."""
    ours, theirs = [], []
    for model, size, pipeline, chunks, *printed in FIGURE_1:
        for recompute, split, gibibytes in zip(("none", "selective"), (False, True), printed, strict=True):
            ours.append(model.activation_bytes(size, 8, pipeline, chunks, recompute, split) / 2**30)
            theirs.append(gibibytes)
    return compared("GiB of activations", "Korthikanti et al. 2022, Figure 1", ours, theirs, worst_bound=0.0)
