"""The search for better orders and bounds of instances, and the records that come of it."""

import math
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from typing import Any

from hybridlab.automatic import schedule_for
from hybridlab.automatic.for_times import ScheduleForTimes
from hybridlab.progress import Progress
from hybridlab.schedule import Schedule
from hybridlab.simulation import simulate
from hybridlab.zoo.zoo_instance import ZooInstance, whole_bound
from hybridlab.zoo.zoo_record import FoundBy, ProvenBy, Record

WE = "hybridlab"


def solve(instance: ZooInstance, seconds: float, seed: int = 0, progress: Progress = False) -> ScheduleForTimes:
    """Return the best schedule that :func:`~hybridlab.schedule_for` finds for an instance, with its bound.

    ``seconds`` is the effort, as in ``schedule_for``: about the seconds on one core.

    >>> from hybridlab.zoo import instance
    >>> found = solve(instance("even-4x8-m4"), seconds=0)
    >>> found.makespan, found.proven
    (270.0, True)
    """
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


def order_of(schedule: Schedule) -> tuple[str, ...]:
    """Return a line of operations for each device. The operations of an overlapped pair stand one after the other.

    >>> order_of(Schedule.parse("0F0 0F1 0B0 0B1"))
    ('0F0 0F1 0B0 0B1',)
    """
    return tuple(" ".join(str(op) for turn in order for op in turn) for order in schedule.turns)


def record_of(instance: ZooInstance, schedule: Schedule, *, by: str, how: str, source: str | None = None, day: str = "") -> Record:
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
    """
    order, today = order_of(schedule), day or date.today().isoformat()
    makespan = round(simulate(Schedule.parse("\n".join(order)), instance.costs).makespan)
    return Record(instance.name, makespan, instance.bound, order, FoundBy(by, today, how, source), _by_bound(today))


def record_found(instance: ZooInstance, found: ScheduleForTimes, seconds: float, seed: int, day: str = "") -> Record:
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
