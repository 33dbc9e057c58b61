"""The optimality gap: how much longer a schedule takes than the shortest order with the same memory."""

from dataclasses import dataclass
from typing import Any

from hybridlab.bound.analytic import lower_bound, reached
from hybridlab.bound.chains import beyond
from hybridlab.bound.exact import optimum
from hybridlab.checks import one_time
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.simulation import simulate


@dataclass(frozen=True)
class OptimalityGap:
    """The makespan of a schedule and the shortest possible makespan. Times are in the unit of the costs.

    Parameters
    ----------
    makespan : float
        The schedule's makespan.
    bound : float
        The result of :func:`lower_bound`. No order has a shorter makespan.
    optimum : float or None
        The shortest possible makespan. None if it is not proven.
    """

    makespan: float
    bound: float
    optimum: float | None

    @property
    def ratio(self) -> float:
        """The makespan divided by ``optimum``. If ``optimum`` is None, the makespan divided by ``bound``: the true ratio may be smaller."""
        best = self.bound if self.optimum is None else self.optimum
        return self.makespan / best if best else 1.0


def optimality_gap(schedule: Schedule, costs: Costs, memory: Any = None, *, seconds: float = 0.0) -> OptimalityGap:
    """Return the makespan of ``schedule`` and the shortest possible makespan with the same memory.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    costs : Costs
        Costs with one setting.
    memory : number, sequence of numbers, or Memory, optional
        The largest number of activations that a device may hold, as in :func:`lower_bound`. None means the peak of ``schedule``.
    seconds : float
        Limit of the search by :func:`optimum`. There is a search only if the makespan is above the lower bound. 0 means no search.

    Raises
    ------
    HybridLabError
        The costs have several settings (``several-settings``), the schedule holds more than ``memory`` (``does-not-fit``), or an error of
        :func:`lower_bound` or :func:`optimum` for these arguments.

    Examples
    --------
    >>> from hybridlab import build
    >>> optimality_gap(build("1f1b", devices=4, microbatches=8), Costs(forward=1, backward=2))
    OptimalityGap(makespan=33.0, bound=33.0, optimum=33.0)
    >>> optimality_gap(build("hanayo", devices=4, microbatches=8), Costs(forward=1, backward=2)).ratio
    1.1206896551724137
    """
    seconds = one_time(seconds, "seconds")
    bound, timeline = lower_bound(schedule, costs, memory), simulate(schedule, costs)
    if costs.batch:
        message = f"an optimality gap is computed for one setting of costs, but these have settings {costs.batch}"
        raise HybridLabError(message, "several-settings")
    if memory is not None and (over := beyond(schedule, memory)):
        raise HybridLabError(f"a gap is for a schedule that fits in the memory, but {over}", "does-not-fit")
    if reached(timeline.makespan, bound):
        return OptimalityGap(timeline.makespan, bound, timeline.makespan)
    best = optimum(schedule, costs, memory, seconds=seconds) if seconds else None  # without a search, the solver need not be installed
    return OptimalityGap(timeline.makespan, bound, best.makespan if best and best.proven else None)
