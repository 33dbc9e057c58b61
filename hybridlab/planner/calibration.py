"""The calibration: it computes, from measured iteration times, the share of the peak FLOP/s that matrix products reach."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import each_of, one_time, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.hardware import Profile
from hybridlab.model import Transformer
from hybridlab.planner.iteration import LEAST_EFFICIENCY, predict
from hybridlab.planner.plan import Plan

Measured = tuple[Transformer, Plan, float]


def calibrate(runs: Iterable[Measured], profile: Profile) -> float:
    """Return the efficiency for which the times from :func:`predict` are closest to the measured times.

    The efficiency minimises the mean square of log(predicted / measured). So half the measured time and twice the measured time count as
    equally wrong. A golden-section search finds the efficiency to six digits.

    Parameters
    ----------
    runs : iterable of (Transformer, Plan, float)
        The model, the plan and the measured seconds of an iteration.
    profile : Profile
        The GPUs on which the runs were measured.

    Returns
    -------
    float
        The share of the peak FLOP/s, above 0 and at most 1.

    Raises
    ------
    HybridLabError
        The list of runs is empty, or the measured times are too long or too short for any efficiency.

    Examples
    --------
    >>> from hybridlab.hardware import A100_80GB
    >>> gpt, plan = Transformer(layers=24, hidden=2304, heads=24), Plan(1, 1, 32, microbatch=16, global_batch=512)
    >>> calibrate([(gpt, plan, predict(gpt, plan, A100_80GB, efficiency=0.5).seconds)], A100_80GB)
    0.5
    """
    measured = checked_runs(runs)
    if not measured:
        raise HybridLabError("there are no runs to calibrate on: pass at least one (model, plan, seconds)", "empty")
    seconds = np.array([time for *_, time in measured])

    def times(share: float) -> Floats:
        # These runs ran, so they fit in memory.
        return np.array([predict(model, plan, profile, efficiency=share, must_fit=False).seconds for model, plan, _ in measured])

    _refuse_faster_than_peak(measured, times(1.0).tolist(), profile)

    def loss(share: float) -> float:
        return float(np.square(np.log(times(max(share, LEAST_EFFICIENCY)) / seconds)).mean())

    golden = (math.sqrt(5) - 1) / 2  # each step of the search shrinks the range by this factor
    low, high = 0.0, 1.0
    while high - low > 1e-7:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    share = round((low + high) / 2, 6)
    if share < LEAST_EFFICIENCY:
        longest = max(time for *_, time in measured)
        raise HybridLabError(f"these runs are too slow for any efficiency: give seconds of one iteration, not {longest:g}", "too-slow")
    return share


def _refuse_faster_than_peak(measured: list[Measured], least: list[float], profile: Profile) -> None:
    """Raise an error for the first run that is faster than its time in ``least``, predicted with matrix products at peak FLOP/s."""
    for place, ((*_, seconds), fewest) in enumerate(zip(measured, least, strict=True)):
        if seconds < fewest:
            message = f"run {place} is too fast for any efficiency: at its peak {profile.name} needs {fewest:.6g} s"
            advice = "give seconds of one iteration, and the plan and the GPU that ran it"
            raise HybridLabError(f"{message}, not {seconds:.6g}; {advice}", "too-fast")


def checked_runs(runs: Any) -> list[Measured]:
    """Return measured runs as a list of (model, plan, seconds), or raise an error if a run is something else."""
    return [_measured_run(run) for run in each_of(runs, "runs must be (model, plan, seconds) each")]


def _measured_run(run: Any) -> Measured:
    """Return ``run`` if it is (model, plan, seconds) with seconds above zero, or raise an error."""
    if not isinstance(run, tuple) or len(run) != 3:
        raise HybridLabError(f"a run is (model, plan, seconds), not {short_repr(run)}", "wrong-type")
    model, plan, time = run
    seconds = one_time(time, "seconds")
    if not seconds:
        raise HybridLabError("seconds of a measured run must be above zero", "too-small")
    return model, plan, seconds
