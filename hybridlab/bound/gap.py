"""How far a schedule is from the shortest order with the same memory."""

from dataclasses import dataclass

from hybridlab.bound.analytic import lower_bound, reached
from hybridlab.bound.exact import optimum
from hybridlab.checks import one_time
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.simulation import simulate


@dataclass(frozen=True)
class OptimalityGap:
    """A schedule's ``makespan``, the ``bound`` that no order beats, and the ``optimum``, None where it is not proven."""

    makespan: float
    bound: float
    optimum: float | None

    @property
    def ratio(self) -> float:
        """The makespan over that of the optimum, or over the bound where the optimum is not known: then it is at most that far."""
        best = self.bound if self.optimum is None else self.optimum
        return self.makespan / best if best else 1.0


def optimality_gap(schedule: Schedule, costs: Costs, *, seconds: float = 0.0) -> OptimalityGap:
    """Return how far ``schedule`` is from the best order with its activations, at one setting of costs.

    The bound is :func:`lower_bound`; where the schedule does not reach it, :func:`optimum` searches for ``seconds``, if there are any.

    >>> from hybridlab import build
    >>> optimality_gap(build("1f1b", devices=4, microbatches=8), Costs(forward=1, backward=2))
    OptimalityGap(makespan=33.0, bound=33.0, optimum=33.0)
    >>> optimality_gap(build("hanayo", devices=4, microbatches=8), Costs(forward=1, backward=2)).ratio
    1.1403508771929824
    """
    seconds = one_time(seconds, "seconds")
    bound, timeline = lower_bound(schedule, costs), simulate(schedule, costs)
    if costs.batch:
        raise HybridLabError(f"a distance is that of one setting of costs, but these have settings {costs.batch}")
    if reached(timeline.makespan, bound):
        return OptimalityGap(timeline.makespan, bound, timeline.makespan)
    best = optimum(schedule, costs, seconds=seconds) if seconds else None
    return OptimalityGap(timeline.makespan, bound, best.makespan if best and best.proven else None)
