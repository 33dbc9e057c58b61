"""Comparisons of predicted iteration times and memory with published runs. Some predictions change one assumption."""

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
from hybridlab.planner.layer import MEMORY_SHARE
from hybridlab.planner.messages import NETWORK_SHARE

MEGATRON = "Narayanan et al. 2021, Table 1"
RUNS: tuple[Measured, ...] = tuple((run.model, run.plan, run.seconds) for run in large_runs.TABLE_1)
RUNS_2022: tuple[Measured, ...] = tuple((run.model, run.plan, run.seconds) for run in large_runs.RUNS_2022)
PRINTED_TFLOPS = np.array([run.tflops_per_gpu for run in large_runs.TABLE_1])
# Each row is a model in Figure 1 of Korthikanti et al., arXiv 2205.05198: the model, the samples of a microbatch, the numbers of stages
# and chunks, the GiB of activations without recomputation, and the GiB with sequence parallelism and selective recomputation.
FIGURE_1 = (
    (Transformer(layers=48, hidden=6144, heads=64), 4, 1, 1, 59.25, 9.5625),
    (Transformer(layers=96, hidden=12288, heads=96), 1, 8, 3, 66.84375, 12.3515625),
)


class Assumption(NamedTuple):
    """The assumptions of a prediction. Most values in ``ASSUMPTIONS`` change one of them.

    Parameters
    ----------
    name : str
        The changed assumption in words.
    profile : Profile
        The GPU. It has a changed property if the assumption is about the GPU.
    efficiency : float
        The factor by which the calibrated efficiency is multiplied.
    """

    name: str
    profile: Profile
    efficiency: float = 1.0


def _with_memory_share(share: float) -> Profile:
    """Return an A100 on which programs reach this ``share`` of the memory's peak bandwidth."""
    return replace(A100_80GB, memory_bandwidth=A100_80GB.memory_bandwidth * share / MEMORY_SHARE)


def _with_network_share(share: float) -> Profile:
    """Return an A100 whose network reaches this ``share`` of its line rate."""
    return replace(A100_80GB, network=A100_80GB.network * share / NETWORK_SHARE)


UNLIMITED = 1e30  # bytes a second; at this bandwidth transfers take no time
AS_IT_IS = Assumption("as it is", A100_80GB)
WITHOUT_MEMORY = Assumption("no time for memory", replace(A100_80GB, memory_bandwidth=UNLIMITED))
ASSUMPTIONS = (
    AS_IT_IS,
    Assumption("memory reaches 0.8 of its peak", _with_memory_share(0.8)),
    Assumption("memory reaches all of its peak", _with_memory_share(1.0)),
    Assumption("network reaches 0.8 of line rate", _with_network_share(0.8)),
    Assumption("network reaches all of line rate", _with_network_share(1.0)),
    Assumption("efficiency 5 % lower", A100_80GB, 0.95),
    Assumption("efficiency 5 % higher", A100_80GB, 1.05),
    WITHOUT_MEMORY,
    Assumption("no time for the network", replace(A100_80GB, network=UNLIMITED)),
)


def errors(runs: Iterable[Measured], profile: Profile = A100_80GB, efficiency: float = EFFICIENCY) -> Floats:
    """Return predicted time / measured time - 1 for each run. The error is negative if the prediction is too short.

    Parameters
    ----------
    runs : iterable of (Transformer, Plan, float)
        Model, plan and measured seconds for each run.
    profile : Profile
        The GPU.
    efficiency : float
        Share of the GPU's peak FLOP/s that matrix products reach.

    Returns
    -------
    array of float, shape (runs,)

    Raises
    ------
    HybridLabError
        A run has another form, or :func:`~hybridlab.predict` refuses it.

    Examples
    --------
    >>> errors(RUNS).round(3)[:3].tolist()
    [-0.011, 0.004, 0.038]
    """
    return np.array(
        [predict(model, plan, profile, efficiency=efficiency).seconds / seconds - 1 for model, plan, seconds in checked_runs(runs)]
    )


def left_out(assumption: Assumption = AS_IT_IS) -> Floats:
    """Return the errors of the ten runs in Table 1, predicted / measured time - 1. Each run has the efficiency of the other nine.

    Parameters
    ----------
    assumption : Assumption
        The assumptions of the predictions.

    Returns
    -------
    array of float, shape (10,)

    Raises
    ------
    HybridLabError
        ``assumption`` is not an :class:`Assumption`.
    """
    if not isinstance(assumption, Assumption):
        raise HybridLabError(
            f"assumption must be one of ASSUMPTIONS, or an Assumption of your own, not {short_repr(assumption)}", "wrong-type"
        )
    found = []
    for place, run in enumerate(RUNS):
        others = RUNS[:place] + RUNS[place + 1 :]
        # An efficiency is at most 1, so "5 % higher" must not give more.
        share = min(1.0, assumption.efficiency * calibrate(others, assumption.profile))
        found.append(errors([run], assumption.profile, share))
    return np.concatenate(found)


def one_speed() -> Floats:
    """Return the errors of the ten runs, predicted / measured time - 1, if each has the mean TFLOP/s per GPU of the other nine.

    The array has shape (10,). A positive error means that the predicted time is too long.
    """
    # A time is in proportion to 1 / (TFLOP/s), so predicted / measured is the TFLOP/s of the run divided by the mean TFLOP/s of the others.
    others: Floats = (PRINTED_TFLOPS.sum() - PRINTED_TFLOPS) / (PRINTED_TFLOPS.size - 1)
    return PRINTED_TFLOPS / others - 1


def iteration_times() -> Comparison:
    """Return the comparison of the ten runs in Table 1 with predictions. Each prediction is calibrated on the other nine runs.

    >>> iteration_times()
    Comparison(iteration times, each run left out: 10 points, mean error 2.4 %, worst 5.2 %: within)
    """
    what = "iteration times, each run left out"
    # Predicted / measured is compared with 1, so long and short runs have the same weight.
    return compared(what, MEGATRON, 1 + left_out(), np.ones(PRINTED_TFLOPS.size), mean_bound=0.03, worst_bound=0.06)


def one_speed_for_all() -> Comparison:
    """Return the comparison of the ten runs with a simple rule: each GPU runs at the mean TFLOP/s of the other nine runs."""
    note = "the rule to beat"  # the planner is useful only if its errors are smaller than those of this rule
    return compared("iteration times by one TFLOP/s for all", MEGATRON, 1 + one_speed(), np.ones(PRINTED_TFLOPS.size), note=note)


def without_memory() -> Comparison:
    """Return the comparison of the ten runs with predictions in which memory traffic takes no time.

    Each prediction is calibrated on the other nine runs, under the same assumption.
    """
    note = "refitted"
    ours = 1 + left_out(WITHOUT_MEMORY)
    return compared("iteration times without memory traffic", MEGATRON, ours, np.ones(PRINTED_TFLOPS.size), note=note)


def newer_software() -> Comparison:
    """Return the comparison of two iteration times from 2022 with predictions calibrated on the runs from 2021."""
    ours = 1 + errors(RUNS_2022)
    return compared("iteration times, not refitted", "Korthikanti et al. 2022, abstract", ours, np.ones(ours.size))


def parameters() -> Comparison:
    """Return the comparison of the models' parameter counts with the printed ones in Table 1. All counts are rounded to 0.1 billion."""
    ours = [round(run.model.parameters / 1e9, 1) for run in large_runs.TABLE_1]
    return compared("billions of parameters", MEGATRON, ours, [run.billions for run in large_runs.TABLE_1], worst_bound=0.0)


def activation_memory() -> Comparison:
    """Return the comparison of activation memory with Figure 1 of Korthikanti et al., for two models with two settings each."""
    ours, theirs = [], []
    for model, size, pipeline, chunks, *printed in FIGURE_1:
        for recompute, split, gibibytes in zip(("none", "selective"), (False, True), printed, strict=True):
            # In all four cases the tensor-parallel size is 8. The figure shows GiB, which are 2^30 bytes.
            ours.append(model.activation_bytes(size, 8, pipeline, chunks, recompute, split) / 2**30)
            theirs.append(gibibytes)
    return compared("GiB of activations", "Korthikanti et al. 2022, Figure 1", ours, theirs, worst_bound=0.0)
