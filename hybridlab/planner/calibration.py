"""The one calibrated constant: from measured iterations to the share of peak that matrix products reach."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridlab.checks import each_of, one_time, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.hardware import Profile
from hybridlab.model import Transformer
from hybridlab.planner.iteration import LEAST_EFFICIENCY, predict
from hybridlab.planner.plan import Plan

Measured = tuple[Transformer, Plan, float]


def calibrate(runs: Iterable[Measured], profile: Profile) -> float:
    """Return the efficiency with which predictions come nearest to measured runs: (model, plan, seconds) each.

    Nearest: the mean square of log(predicted / measured) is least, so that half as long and twice as long count alike. A
    prediction is a + b/efficiency, with a and b of its own for each run. Found to six digits by golden-section search. Raises
    :class:`HybridLabError` for runs that no efficiency explains: so slow, or faster than the GPU is at its peak.

    >>> from hybridlab.hardware import A100_80GB
    >>> gpt, plan = Transformer(layers=24, hidden=2304, heads=24), Plan(1, 1, 32, microbatch=16, global_batch=512)
    >>> calibrate([(gpt, plan, predict(gpt, plan, A100_80GB, efficiency=0.5).seconds)], A100_80GB)
    0.5
    """
    measured = checked_runs(runs)
    if not measured:
        raise HybridLabError("there are no runs to calibrate on: pass at least one (model, plan, seconds)")
    ends = np.array([[predict(model, plan, profile, efficiency=share).seconds for share in (1.0, 0.5)] for model, plan, _ in measured])
    _refuse_faster_than_peak(measured, ends[:, 0].tolist(), profile)
    variable = ends[:, 1] - ends[:, 0]  # b: 1/efficiency grows from 1 to 2
    constant, seconds = ends[:, 0] - variable, np.array([time for *_, time in measured])

    def loss(share: float) -> float:
        return float(np.square(np.log((constant + variable / share) / seconds)).mean())

    golden = (math.sqrt(5) - 1) / 2
    low, high = 0.0, 1.0
    while high - low > 1e-7:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    share = round((low + high) / 2, 6)
    if share < LEAST_EFFICIENCY:
        longest = max(time for *_, time in measured)
        raise HybridLabError(f"these runs are too slow for any efficiency: give seconds of one iteration, not {longest:g}")
    return share


def _refuse_faster_than_peak(measured: list[Measured], least: list[float], profile: Profile) -> None:
    """Raise for the first run that takes fewer seconds than the least, those predicted at the peak of the GPU."""
    for place, ((*_, seconds), fewest) in enumerate(zip(measured, least, strict=True)):
        if seconds < fewest:
            message = f"run {place} is too fast for any efficiency: at its peak {profile.name} needs {fewest:.6g} s"
            raise HybridLabError(f"{message}, not {seconds:.6g}; give seconds of one iteration, and the plan and the GPU that ran it")


def checked_runs(runs: Any) -> list[Measured]:
    """Return measured runs as a list, or refuse what is none."""
    return [_run(run) for run in each_of(runs, "runs must be (model, plan, seconds) each")]


def _run(run: Any) -> Measured:
    if not isinstance(run, tuple) or len(run) != 3:
        raise HybridLabError(f"a run is (model, plan, seconds), not {short_repr(run)}")
    model, plan, time = run
    seconds = one_time(time, "seconds")
    if not seconds:
        raise HybridLabError("seconds of a measured run must be above zero")
    return model, plan, seconds
