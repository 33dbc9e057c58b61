"""Predictions of a makespan by simulation and by closed forms, from measured times of operations."""

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

Form = Callable[[Schedule, float, float, float, float], float]  # (schedule, F, B, W, C) -> makespan


def replay(timeline: Timeline, p2p: float = 0.0) -> Timeline:
    """Return a simulated timeline with the measured duration of each operation.

    The measured makespan differs by the time that the simulation does not include: gaps between operations of a device, and messages.

    Parameters
    ----------
    timeline : Timeline
        A measured step.
    p2p : float
        The latency of all messages, in the unit of the timeline.

    Returns
    -------
    Timeline
        The simulated operations, without spans. The first operation starts at 0.

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


def cross_prediction(
    schedule: Operations, measured: Timeline | Sequence[Timeline], p2p: float = 0.0, *, per: str | tuple[str, str] = "device"
) -> Timeline:
    """Return the simulated timeline of a schedule, with times that were measured in steps of another schedule.

    Parameters
    ----------
    schedule : Schedule or Replicated
        The schedule to predict. The number of chunks may differ from the measured schedule.
    measured : Timeline or sequence of Timeline
        Measured steps of the other schedule, on the same number of devices.
    p2p : float
        The latency of all messages, in the unit of the timelines.
    per : str or tuple of str
        What has a time of its own, as in :meth:`Costs.from_timeline`. Take "stage" if the measured first stages are not on devices 0, 1,
        2, ... Both schedules then need the same number of stages.

    Raises
    ------
    HybridLabError
        The steps are not timelines of one schedule, or they ran on a different number of devices.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> costs = Costs(forward=[1, 1, 1.5, 1], backward=2)
    >>> step = simulate(build("gpipe", 4, 8), costs)
    >>> cross_prediction(build("1f1b", 4, 8), step).makespan == simulate(build("1f1b", 4, 8), costs).makespan
    True
    """
    return simulate(schedule, times_of_steps(measured, p2p, per=per))


def formula_prediction(
    schedule: Schedule,
    measured: Timeline | Sequence[Timeline],
    p2p: float = 0.0,
    *,
    per: str | tuple[str, str] = "device",
    slowest: bool = False,
) -> float | None:
    """Return the makespan from the closed form of a schedule. The closed form takes the mean of the measured times over the devices.

    Parameters
    ----------
    schedule : Schedule
        The schedule to predict.
    measured : Timeline or sequence of Timeline
        Measured steps.
    p2p : float
        The latency of all messages, in the unit of the timelines.
    per : str or tuple of str
        What has a time of its own, as in :func:`cross_prediction`. A device takes the times of as many stages as the schedule has chunks.
    slowest : bool
        With True, the closed form takes the largest of the measured times instead of their mean.

    Returns
    -------
    float or None
        In the unit of the timelines. None if no closed form covers this schedule with these sizes and times.

    Raises
    ------
    HybridLabError
        ``schedule`` is not a Schedule (``not-a-schedule``), the steps are not timelines of one schedule, or another argument is invalid.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> step = simulate(build("1f1b", 4, 8), Costs(forward=[1, 1, 1.5, 1], backward=[2, 2, 3, 2]))
    >>> step.makespan, formula_prediction(step.schedule, step), formula_prediction(step.schedule, step, slowest=True)
    (43.5, 37.125, 49.5)
    """
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"a closed form is for a Schedule, not {short_repr(schedule)}", "not-a-schedule")
    form, costs = FORMS.get(schedule.name), times_of_steps(measured, p2p, per=per)
    if form is None:
        return None
    one, stages = np.max if true_or_false(slowest, "slowest") else np.mean, schedule.chunks if costs.by_stage else 1
    forward, backward, weight = (stages * float(one(each)) for each in (costs.forward, costs.backward, costs.weight_gradient))
    try:
        return float(form(schedule, forward, backward, weight, float(one(costs.p2p))))
    except UnsupportedSize:
        return None


def _form(formula: Callable[..., float], *, chunks: bool = False, split: bool = False) -> Form:
    """Return a function that calls a closed form with the right arguments. A closed form for split backwards takes no latency."""

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


def times_of_steps(measured: Timeline | Sequence[Timeline], p2p: float = 0.0, *, per: str | tuple[str, str] = "device") -> Costs:
    """Return the costs from measured steps of one schedule: each time is the median of :meth:`Costs.from_timeline` over the steps.

    Parameters
    ----------
    measured : Timeline or sequence of Timeline
        The steps.
    p2p : float
        The latency of all messages, in the unit of the timelines.
    per : str or tuple of str
        What has a time of its own, as in :meth:`Costs.from_timeline`.

    Raises
    ------
    HybridLabError
        The list of steps is empty, or the steps belong to several schedules.

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
            "the measured steps belong to several schedules or units: give the steps of one schedule, in one unit", "several-schedules"
        )
    found = [Costs.from_timeline(each, per=per) for each in (first, *others)]
    # the median, because a machine that is busy for a moment makes a single step much slower
    middle = {name: np.median([getattr(each, name) for each in found], axis=0) for name in ("forward", "backward", "weight_share")}
    return Costs(**middle, p2p=p2p, unit=first.unit, per=per)


def _checked_timeline(timeline: Any) -> Timeline:
    """Return ``timeline``, or raise an error if it is not a timeline of one setting."""
    if not isinstance(timeline, Timeline):
        raise HybridLabError(f"a prediction takes a measured Timeline, not {short_repr(timeline)}", "not-a-timeline")
    if timeline.start.ndim != 1:
        raise HybridLabError("a prediction takes a timeline of one setting: choose one with timeline.at()", "several-settings")
    return timeline
