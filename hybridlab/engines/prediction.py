"""Prediction from measured times: simulation and closed forms, with the times of operations that really ran."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.checks import each_of, one_time, short_repr, true_or_false
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.schedule import Operations, Schedule
from hybridlab.simulation import simulate, simulate_rows
from hybridlab.timeline import Timeline

Form = Callable[[Schedule, float, float, float, float], float]  # takes a schedule and the times F, B, W and C; returns the makespan


def replay(timeline: Timeline, p2p: float = 0.0) -> Timeline:
    """Return the simulated timeline in which each operation takes exactly as long as it took in a measured one.

    The difference between both timelines is the time that the model does not know: between two operations of a device, and for messages.

    Parameters
    ----------
    timeline : Timeline
        A measured step.
    p2p : float
        The latency of all messages, in the unit of the timeline.

    Returns
    -------
    Timeline
        The operations alone, without spans. The first of them starts at 0.

    Raises
    ------
    HybridLabError
        ``timeline`` is not a Timeline, or it has several settings.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> step = simulate(build("1f1b", 4, 8), Costs(forward=[1, 1, 1.5, 1], backward=2, p2p=0.5))
    >>> bool((replay(step, p2p=0.5).start == step.start).all()), replay(step).makespan < step.makespan
    (True, True)
    """
    ran = _checked_timeline(timeline)
    return simulate_rows(ran.schedule, ran.end - ran.start, one_time(p2p, "p2p"), ran.unit)


def cross_prediction(schedule: Operations, measured: Timeline | Sequence[Timeline], p2p: float = 0.0) -> Timeline:
    """Return the timeline of a schedule, simulated with times that were measured in steps of another schedule.

    Parameters
    ----------
    schedule : Schedule or Replicated
        The schedule to predict. It may have another number of chunks.
    measured : Timeline or sequence of Timeline
        Measured steps of the other schedule, on as many devices.
    p2p : float
        The latency of all messages, in the unit of the timelines.

    Raises
    ------
    HybridLabError
        The steps are not timelines of one schedule, or they ran on another number of devices.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> costs = Costs(forward=[1, 1, 1.5, 1], backward=2)
    >>> step = simulate(build("gpipe", 4, 8), costs)
    >>> cross_prediction(build("1f1b", 4, 8), step).makespan == simulate(build("1f1b", 4, 8), costs).makespan
    True
    """
    return simulate(schedule, times_of_steps(measured, p2p))


def formula_prediction(
    schedule: Schedule, measured: Timeline | Sequence[Timeline], p2p: float = 0.0, *, slowest: bool = False
) -> float | None:
    """Return the makespan by the closed form of a schedule. It takes one time for all devices: the mean of the measured times.

    Parameters
    ----------
    schedule : Schedule
        The schedule to predict.
    measured : Timeline or sequence of Timeline
        Measured steps.
    p2p : float
        The latency of all messages, in the unit of the timelines.
    slowest : bool
        With True the time for all devices is that of the slowest one.

    Returns
    -------
    float or None
        In the unit of the timelines. None if there is no closed form for this schedule, its sizes and these times.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> step = simulate(build("1f1b", 4, 8), Costs(forward=[1, 1, 1.5, 1], backward=[2, 2, 3, 2]))
    >>> step.makespan, formula_prediction(step.schedule, step), formula_prediction(step.schedule, step, slowest=True)
    (43.5, 37.125, 49.5)
    """
    form, costs = FORMS.get(schedule.name), times_of_steps(measured, p2p)
    if form is None:
        return None
    one = np.max if true_or_false(slowest, "slowest") else np.mean
    try:
        return float(form(schedule, *(float(one(each)) for each in (costs.forward, costs.backward, costs.weight_gradient, costs.p2p))))
    except UnsupportedSize:
        return None


def _form(formula: Callable[..., float], *, chunks: bool = False, split: bool = False) -> Form:
    """Return a function that calls a closed form with the sizes and times that it takes; with split backwards it has no latency."""

    def form(schedule: Schedule, forward: float, backward: float, weight: float, p2p: float) -> float:
        if split and p2p:
            raise UnsupportedSize(f"the closed form of {schedule.name} has no latency", "outside-the-formula")
        sizes = (schedule.devices, schedule.microbatches, *([schedule.chunks] if chunks else []))
        return formula(*sizes, forward, backward, weight if split else p2p)

    return form


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "gpipe": _form(formulas.gpipe_makespan),
        "1f1b": _form(formulas.one_f_one_b_makespan),
        "eager-1f1b": _form(formulas.eager_one_f_one_b_makespan),
        "interleaved": _form(formulas.interleaved_makespan, chunks=True),
        "looped-bfs": _form(formulas.looped_bfs_makespan, chunks=True),
        "zb-h1": _form(formulas.zb_h1_makespan, split=True),
        "zb-h2": _form(formulas.zb_h2_makespan, split=True),
        "interleaved-zb": _form(formulas.interleaved_zb_makespan, chunks=True, split=True),
        "zb-v": _form(formulas.zb_v_makespan, split=True),
    }
)


def times_of_steps(measured: Timeline | Sequence[Timeline], p2p: float = 0.0) -> Costs:
    """Return the costs that measured steps of one schedule show: for each time, the median of :meth:`Costs.from_timeline` over the steps.

    Parameters
    ----------
    measured : Timeline or sequence of Timeline
        The steps.
    p2p : float
        The latency of all messages, in the unit of the timelines.

    Raises
    ------
    HybridLabError
        There is no step, or they are of several schedules.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> times_of_steps(simulate(build("zb-v", 2, 4), Costs(forward=4, backward=[8, 10], weight_share=0.25))).weight_gradient
    array([2. , 2.5])
    """
    steps = [measured] if isinstance(measured, Timeline) else list(each_of(measured, "measured steps are a list of timelines"))
    first, *others = [_checked_timeline(each) for each in steps] or [_checked_timeline(None)]  # an empty list raises
    if any(each.schedule != first.schedule or each.unit != first.unit for each in others):
        raise HybridLabError(
            "measured steps are steps of one schedule, in one unit: give those of each schedule apart", "several-schedules"
        )
    found = [Costs.from_timeline(each) for each in (first, *others)]
    # the median, because a machine that is busy for a moment makes one step much slower
    middle = {name: np.median([getattr(each, name) for each in found], axis=0) for name in ("forward", "backward", "weight_share")}
    return Costs(**middle, p2p=p2p, unit=first.unit)


def _checked_timeline(timeline: Any) -> Timeline:
    """Return ``timeline``; raise an error if it is not a timeline of one setting."""
    if not isinstance(timeline, Timeline):
        raise HybridLabError(f"this takes a measured Timeline, not {short_repr(timeline)}", "not-a-timeline")
    if timeline.start.ndim != 1:
        raise HybridLabError("this takes a timeline of one setting: pick one with at()", "several-settings")
    return timeline
