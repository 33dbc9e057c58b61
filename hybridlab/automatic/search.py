"""The steps of the search for a short schedule: the registry, greedy schedulers, local search, and the solver."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybridlab.automatic.exchange import exchanges
from hybridlab.automatic.greedy import greedy, policies
from hybridlab.automatic.problem import Order, OrderProblem
from hybridlab.bound import optimum
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule, W
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate

DIGITS = 10  # two makespans count as equal if they agree in this many digits
REPORTS = 50  # a local search yields about this many states
UNCOUNTABLE = {"not-a-fraction", "too-large"}  # codes of errors: the solver cannot represent the times as whole numbers
NO_PROOF = {
    "not-installed": "OR-tools, which may prove more, is not installed: pip install 'hybridlab[solver]'",
    "too-small": "the solver takes no operations without time",
}
FINEST = 10_000  # unit of rounded times: the longest time / FINEST


class Candidate(NamedTuple):
    """A schedule that the search has found.

    Parameters
    ----------
    makespan, span, peak : float
        The makespan, the ``device_span`` and the largest number of activations on a device. The values are rounded, so that rounding errors
        do not decide which of two schedules is better. A comparison looks first at the makespan, then at the span, then at the peak.
    orders : list of list of int
        The orders as numbers of operations.
    schedule : Schedule or None
        The schedule if it is from the registry, else None.
    """

    makespan: float
    span: float
    peak: float
    orders: list[Order]
    schedule: Schedule | None = None


class State(NamedTuple):
    """The state of a search after a step: the best schedules and the lower bounds so far.

    Parameters
    ----------
    found : tuple of Candidate
        The best schedule of each problem.
    bounds : tuple of float
        For each problem, a lower bound of the makespan.
    note : str
        The reason why the solver has not run. Empty if the solver has run or was not needed.
    """

    found: tuple[Candidate, ...]
    bounds: tuple[float, ...]
    note: str = ""

    @property
    def best(self) -> tuple[int, Candidate]:
        """The index of the problem with the best schedule, and this schedule."""
        return min(enumerate(self.found), key=lambda each: each[1][:3])

    def proven(self, place: int | None = None) -> bool:
        """Return whether the best schedule is proven optimal, against all orders of the problem ``place`` (None: of all problems)."""
        bound = min(self.bounds) if place is None else self.bounds[place]
        return self.best[1].makespan <= bound * (1 + 10.0 ** (1 - DIGITS))

    def better(self, place: int, found: Candidate | None) -> "State":
        """Return the state with ``found`` as the schedule of a problem, if ``found`` is better than the previous schedule."""
        if found is None or self.found[place][:3] <= found[:3]:
            return self
        return self._replace(found=(*self.found[:place], found, *self.found[place + 1 :]))


def candidate_of(problem: OrderProblem, orders: list[Order] | None) -> Candidate | None:
    """Return the candidate with these ``orders``. Return None if ``orders`` is None or cannot run in this memory."""
    ran = problem.run(orders) if orders and all(map(problem.fits, orders)) else None
    if orders is None or ran is None:
        return None
    start, end = ran
    span = max(end[order[-1]] - start[order[0]] for order in orders)
    return Candidate(rounded(max(end)), rounded(span), rounded(max(map(problem.peak, orders))), [list(order) for order in orders])


def search_steps(
    problems: Sequence[OrderProblem], bounds: Sequence[float], costs: Costs, attempts: int, effort: float, seed: int
) -> Iterator[tuple[int, State]]:
    """Yield for each step of the search its number of attempts and the state after the step.

    Parameters
    ----------
    problems : sequence of OrderProblem
        The problems, one for each way to place the stages on devices.
    bounds : sequence of float
        A lower bound of the makespan of each problem.
    costs : Costs
        The times.
    attempts : int
        Number of attempts of the local search for each problem.
    effort : float
        Effort of the solver for each problem. With 0 the solver does not run.
    seed : int
        Seed of the local search.
    """
    # start with the templates: one microbatch at a time fits into any memory
    state = State(tuple(_of_schedule(each.template, each.numbers_of(each.template), costs) for each in problems), tuple(bounds))
    for place, problem in enumerate(problems):
        for found in registry_candidates(problem, costs):
            state = state.better(place, found)
    yield 1, state
    for place, problem in enumerate(problems):
        for policy in policies(problem):
            state = state.better(place, candidate_of(problem, greedy(problem, policy)))
            yield 1, state
    for place, problem in enumerate(problems):
        if attempts and not state.proven(place):
            report = -(-attempts // REPORTS)
            for number, orders in enumerate(exchanges(problem, state.found[place].orders, attempts, seed), start=1):
                if number % report == 0 or number == attempts:
                    state = state.better(place, candidate_of(problem, orders))
                    yield report, state
                    if state.proven(place):
                        break
    # start with the problem of the lowest bound: its proof can make the other problem unnecessary
    for place in sorted(range(len(problems)), key=lambda each: state.bounds[each]):
        if effort and not state.proven(place):
            state = ask_solver(state, place, problems[place], costs, effort)
            yield 1, state


def registry_candidates(problem: OrderProblem, costs: Costs) -> Iterator[Candidate]:
    """Yield the schedules of the registry with the placement of ``problem`` that fit into its memory.

    The schedules have one copy of the weights. If the problem splits backwards, each schedule is followed by a candidate with split
    backwards.
    """
    template = problem.template
    sizes = (template.devices, template.microbatches, template.chunks)
    for family in REGISTRY.values():
        if family.copies > 1 or family.refusal(*sizes) or family.device_of(template.devices, template.chunks) != template.device_of:
            continue
        schedule = build(family.name, *sizes)
        if W in schedule.kind and not problem.splits:
            continue
        orders = problem.numbers_of(schedule)
        if all(map(problem.fits, orders)):
            yield _of_schedule(schedule, orders, costs)
            split = candidate_of(problem, orders)
            if split is not None:
                yield split


def ask_solver(state: State, place: int, problem: OrderProblem, costs: Costs, effort: float) -> State:
    """Return the state after the solver of OR-tools has searched for a shorter order or a proof for one problem."""
    start = problem.schedule(state.found[place].orders, "start")
    in_unit, unit = costs, 1.0
    for _ in range(2):  # first with the exact times, then with rounded times
        try:
            best = optimum(start, in_unit, seconds=effort, memory=problem.capacity)
        except HybridLabError as why:
            if why.code not in UNCOUNTABLE or unit != 1.0:
                return state._replace(note=NO_PROOF.get(why.code or "", str(why)))
            in_unit, unit = _in_whole_numbers(costs)
        else:
            bound = max(state.bounds[place], best.bound * unit)
            state = state._replace(bounds=(*state.bounds[:place], bound, *state.bounds[place + 1 :]))
            return state.better(place, candidate_of(problem, problem.numbers_of(best.schedule)))
    return state


def _in_whole_numbers(costs: Costs) -> tuple[Costs, float]:
    """Return costs rounded down to whole numbers of a small unit, and this unit. A lower bound for them also holds for the exact times."""
    weight = costs.weight_gradient
    parts = [costs.forward, costs.backward - weight, weight, costs.p2p]
    unit = max(float(part.max()) for part in parts) / FINEST
    forward, input_gradient, weight, p2p = (np.floor(part / unit) for part in parts)
    backward = input_gradient + weight
    share = np.divide(weight, backward, out=np.zeros_like(backward), where=backward > 0)
    between = None if costs.p2p_between is None else np.floor(costs.p2p_between / unit)
    return replace(costs, forward=forward, backward=backward, weight_share=share, p2p=p2p, p2p_between=between), unit


def _of_schedule(schedule: Schedule, orders: list[Order], costs: Costs) -> Candidate:
    """Return the candidate for a schedule. ``orders`` has the orders of the schedule as numbers of operations."""
    timeline = simulate(schedule, costs)
    peak = float(timeline.peak_activations.max())
    return Candidate(rounded(timeline.makespan), rounded(timeline.device_span), rounded(peak), orders, schedule)


def rounded(time: float) -> float:
    """Return a time rounded to 10 digits, so that rounding errors do not decide which of two times is shorter.

    >>> rounded(0.1 + 0.2) == rounded(0.3)
    True
    """
    return float(f"{time:.{DIGITS}g}")
