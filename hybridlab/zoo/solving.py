"""The search for better orders and bounds of instances, and the records that come of it."""

import math
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from typing import Any

from hybridlab.automatic import schedule_for
from hybridlab.automatic.for_times import ScheduleForTimes
from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.progress import Progress
from hybridlab.schedule import Schedule
from hybridlab.zoo.fitting import checked_makespan, order_of
from hybridlab.zoo.zoo_instance import ZooInstance, checked_instance, whole_bound
from hybridlab.zoo.zoo_record import FoundBy, ProvenBy, Record, read_record

WE = "hybridlab"


def solve(instance: ZooInstance, seconds: float, seed: int = 0, progress: Progress = False) -> ScheduleForTimes:
    """Return the best schedule that :func:`~hybridlab.schedule_for` finds for an instance, with its bound.

    ``seconds`` is the effort, as in ``schedule_for``: about the seconds on one core.

    Raises
    ------
    HybridLabError
        The instance is none (``wrong-type``), or another argument is one that ``schedule_for`` refuses.

    Examples
    --------
    >>> from hybridlab.zoo import instance
    >>> found = solve(instance("even-4x8-m4"), seconds=0)
    >>> found.makespan, found.proven
    (270.0, True)
    """
    checked_instance(instance)
    return schedule_for(
        instance.costs,
        instance.microbatches,
        instance.memory,
        chunks=instance.chunks,
        devices=instance.devices,
        placement=instance.placement,
        split=instance.split,
        seconds=seconds,
        seed=seed,
        progress=progress,
    )


def proven_bound(instance: ZooInstance, found: ScheduleForTimes) -> int:
    """Return the bound of an instance that a search has proven, as a whole number."""
    return max(instance.bound, whole_bound(found.bound))


def record_of(instance: ZooInstance, schedule: Schedule, *, by: str, how: str, source: str | None = None, day: str | None = None) -> Record:
    """Return the record of an instance with the order of ``schedule``, whose makespan the clock computes.

    Parameters
    ----------
    instance : ZooInstance
        The instance. ``schedule`` has its sizes.
    schedule : Schedule
        The order.
    by, how, source : str
        Who found the order, how, and where more is told.
    day : str
        The date, such as 2026-01-31. Today if left out.

    Returns
    -------
    Record
        Its bound is that of :func:`~hybridlab.bound.lower_bound`.

    Raises
    ------
    HybridLabError
        The arguments are no instance and schedule (``wrong-type``), the schedule does not fit to the instance (``does-not-fit``), a text is
        none or too long (``not-text``, ``too-large``), or the date is none (``not-a-date``).
    """
    checked_instance(instance)
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"a record has the order of a Schedule, not of {short_repr(schedule)}", "wrong-type")
    order, today = order_of(schedule), date.today().isoformat() if day is None else day
    makespan = checked_makespan(Schedule.parse("\n".join(order)), instance)
    record = Record(instance.name, makespan, instance.bound, order, FoundBy(by, today, how, source), _by_bound(today))
    return read_record(record.to_json())  # which checks the texts


def record_found(instance: ZooInstance, found: ScheduleForTimes, seconds: float, seed: int, day: str | None = None) -> Record:
    """Return the record of a search with :func:`solve`."""
    how = f"schedule_for, effort {seconds:g}, seed {seed}"
    record, bound = record_of(instance, found, by=WE, how=how, day=day), proven_bound(instance, found)
    if bound == instance.bound:
        return record
    effort = max(1, math.ceil(seconds))
    return replace(record, bound=bound, proven=ProvenBy(WE, record.found.date, "solver", _programs(), seed, effort, None))


def better_of(known: Record, found: Record) -> Record:
    """Return the shorter order of two records with the higher bound. ``known`` stays where ``found`` is no better.

    A bound that is proven without a solver is better than the same bound of a solver, and a proven one is better than a claimed one.
    """
    parts: dict[str, Any] = {}
    if found.makespan < known.makespan:
        parts |= {"makespan": found.makespan, "order": found.order, "found": found.found}
    if (found.bound, _certainty(found)) > (known.bound, _certainty(known)) or known.proven.reason == "claimed":
        parts |= {"bound": found.bound, "proven": found.proven}
    return replace(known, **parts)


def _certainty(record: Record) -> tuple[int, int]:
    """Return a key that is larger for a bound that is easier to check."""
    proven = record.proven
    return {"claimed": 0, "solver": 1, "bound": 2}[proven.reason], -(proven.effort or 0)


def _by_bound(day: str) -> ProvenBy:
    return ProvenBy(WE, day, "bound", f"{_version()}, lower_bound", None, None, None)


def _programs() -> str:
    return f"{_version()}, schedule_for, OR-tools {version('ortools')}"


def _version() -> str:
    return f"{WE} {version(WE)}"
