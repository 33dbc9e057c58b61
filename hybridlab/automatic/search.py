"""The steps of the search for a short schedule: the registry, greedy schedulers, local search, windows, and the solver."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from hybridlab.automatic.exchange import exchanges
from hybridlab.automatic.greedy import greedy, policies
from hybridlab.automatic.problem import Order, OrderProblem
from hybridlab.automatic.windows import windows
from hybridlab.bound import optimum
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import B, Schedule, W
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate

# Work is counted in operations that a local search computes. So the same arguments give the same schedule on every machine.
WORK = 1_200_000  # work of one second of effort, so that it takes about a second of one core
OF_POLICY = 6  # work of a greedy policy for each operation
OF_REGISTRY = 3  # work of building and simulating a schedule of the registry, for each operation
OF_ORDERED = 25  # further work of a simulation with messages in order, for each operation
START = 6_000_000  # most work for the schedules of the registry, whatever the effort is: about five seconds
FIRST_POLICIES = 600_000  # work for greedy policies, whatever the effort is: about half a second
GREEDY = 0.6  # largest share of the effort for further policies
LOCAL = 0.3  # share of the remaining effort for local search if OR-tools is there
WINDOWS = 0.25  # share of the effort that then remains for windows; the solver gets the rest
OF_MODEL = 250  # work of giving a whole step to the solver, for each operation
OF_WINDOW = WORK // 20, 10  # work of the solver for a window, and further work for each operation of the step
RESTARTS = 3  # local searches that share the attempts: one alone can end at a bad place
TRIES = 300  # largest number of attempts of a local search for each operation; further attempts rarely help
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


def candidate_of(problem: OrderProblem, orders: list[Order] | None, costs: Costs, messages: str) -> Candidate | None:
    """Return the candidate with these ``orders``. Return None if ``orders`` is None or cannot run in this memory."""
    if messages != "free" and orders and all(map(problem.fits, orders)) and problem.run(orders):
        timed = _of_schedule(problem.schedule(orders, "timed"), orders, costs, messages)
        return timed._replace(peak=rounded(max(map(problem.peak, orders))), orders=[list(order) for order in orders], schedule=None)
    ran = problem.run(orders) if orders and all(map(problem.fits, orders)) else None
    if orders is None or ran is None:
        return None
    start, end = ran
    span = max(end[order[-1]] - start[order[0]] for order in orders)
    return Candidate(rounded(max(end)), rounded(span), rounded(max(map(problem.peak, orders))), [list(order) for order in orders])


class WorkPlan(NamedTuple):
    """What a search does for each problem, within its effort.

    Parameters
    ----------
    families : tuple of tuple of str
        The names of the schedules of the registry to simulate.
    policies : tuple of int
        The number of greedy policies to try.
    attempts : int
        The number of attempts of the local search.
    windows : int
        The number of windows that the solver of OR-tools orders anew.
    solver : float
        The effort of the solver, in seconds. With 0 the solver does not run.
    left_out : str
        What the effort does not suffice for. Empty if it suffices for all schedules of the registry and all policies.
    """

    families: tuple[tuple[str, ...], ...]
    policies: tuple[int, ...]
    attempts: int
    windows: int
    solver: float
    left_out: str

    @property
    def steps(self) -> int:
        """The number of steps for a progress bar."""
        return (
            1 + sum(map(len, self.families)) + sum(self.policies) + len(self.policies) * (self.attempts + self.windows + (self.solver > 0))
        )


def work_plan(problems: Sequence[OrderProblem], seconds: float, with_solver: bool, messages: str) -> WorkPlan:
    """Return what a search does with an effort of ``seconds``.

    The schedules of the registry and the first policies do not depend on the effort, but their work has limits, too. Of the effort, further
    policies get what they need, up to a share. Then the local search and the windows each get a share of the rest, and the solver the
    remaining effort. Without a solver for the whole step, the windows get it; without OR-tools, the local search.
    """
    size, count, effort = problems[0].size, len(problems), seconds * WORK
    ordered = OF_ORDERED * (messages != "free")
    of_policy, of_registry = OF_POLICY + ordered, OF_REGISTRY + 2 * ordered  # a schedule of the registry is timed whole and split
    fitting = [_families(problem) for problem in problems]
    families = [each[: int(START / count / of_registry / size)] for each in fitting]
    known = len(policies(problems[0]))
    tried = min(known, int(max(FIRST_POLICIES, GREEDY * effort) / count / of_policy / size))
    left = max(0.0, effort - max(0, tried * count * of_policy * size - FIRST_POLICIES))
    installed = find_spec("ortools") is not None
    attempts = max(0, min(TRIES * size, int(left * (LOCAL if installed else 1.0) / size / count) - REPORTS * ordered))
    left = max(0.0, left - (attempts + REPORTS * ordered * (attempts > 0)) * size * count) / count
    of_window = OF_WINDOW[0] + (OF_WINDOW[1] + 2 * ordered) * size
    windows = int(left * (WINDOWS if with_solver else 1.0) / of_window) if installed else 0
    solver = max(0.0, left - windows * of_window - OF_MODEL * size) / WORK if with_solver else 0.0
    simulated, all_families = (sum(map(len, each)) for each in (families, fitting))
    left_out = [f"{simulated} of {all_families} schedules of the registry were simulated"] * (simulated < all_families)
    left_out += [f"{tried * count} of {known * count} policies were tried"] * (tried < known)
    return WorkPlan(tuple(map(tuple, families)), (tried,) * count, attempts, windows, solver, " and ".join(left_out))


def search_steps(
    problems: Sequence[OrderProblem], bounds: Sequence[float], costs: Costs, plan: WorkPlan, seed: int, messages: str
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
    plan : WorkPlan
        What the search does.
    seed : int
        Seed of the local search.
    messages : str
        How messages run, as in :func:`~hybridlab.simulate`. The devices of the greedy scheduler, the local search and the solver do not
        wait for messages in order, but their orders are timed so.
    """
    # start with the templates: one microbatch at a time fits into any memory
    state = State(tuple(_of_schedule(each.template, each.numbers_of(each.template), costs, messages) for each in problems), tuple(bounds))
    yield 1, state
    for place, problem in enumerate(problems):
        for name in plan.families[place]:
            for found in registry_candidates(problem, name, costs, messages):
                state = state.better(place, found)
            yield 1, state
    for place, problem in enumerate(problems):
        for policy in policies(problem)[: plan.policies[place]]:
            state = state.better(place, candidate_of(problem, greedy(problem, policy), costs, messages))
            yield 1, state
    for place, problem in enumerate(problems):
        if plan.attempts and not state.proven(place):
            report, last = -(-plan.attempts // REPORTS), None
            for number, orders in enumerate(_local(problem, state.found[place].orders, plan.attempts, seed), start=1):
                if number % report == 0 or number == plan.attempts:
                    if orders is not last:  # the local search yields the same list until it has found a shorter order
                        state, last = state.better(place, candidate_of(problem, orders, costs, messages)), orders
                    yield report, state
                    if state.proven(place):
                        break
    for place, problem in enumerate(problems):
        if plan.windows and not state.proven(place):
            last = None
            for orders in windows(problem, state.found[place].orders, plan.windows):
                if orders is not last:
                    state, last = state.better(place, candidate_of(problem, orders, costs, messages)), orders
                yield 1, state
                if state.proven(place):
                    break
    # start with the problem of the lowest bound: its proof can make the other problem unnecessary
    for place in sorted(range(len(problems)), key=lambda each: state.bounds[each]):
        if plan.solver and not state.proven(place):
            state = ask_solver(state, place, problems[place], costs, plan.solver, messages)
            yield 1, state


def _local(problem: OrderProblem, orders: list[Order], attempts: int, seed: int) -> Iterator[list[Order]]:
    """Yield the best orders of several local searches after each attempt. Each begins with the same orders, and has a seed of its own."""
    best, shortest = orders, float("inf")
    for again in range(RESTARTS):
        share = attempts * (again + 1) // RESTARTS - attempts * again // RESTARTS
        last = None
        for found in exchanges(problem, orders, share, seed + again):
            if found is not last:
                last, ran = found, problem.run(found)
                if ran and max(ran[1]) < shortest:
                    best, shortest = found, max(ran[1])
            yield best


def _families(problem: OrderProblem) -> list[str]:
    """Return the names of the registry's schedules with the placement of ``problem`` and one copy of the weights."""
    template = problem.template
    sizes = (template.devices, template.microbatches, template.chunks)
    return [
        family.name
        for family in REGISTRY.values()
        if family.copies == 1 and not family.refusal(*sizes) and family.device_of(template.devices, template.chunks) == template.device_of
    ]


def registry_candidates(problem: OrderProblem, name: str, costs: Costs, messages: str) -> Iterator[Candidate]:
    """Yield a schedule of the registry if it fits into the memory of ``problem``.

    If the problem splits backwards and the schedule does not, or the schedule has overlapped pairs, a candidate without them follows.
    """
    template = problem.template
    schedule = build(name, template.devices, template.microbatches, template.chunks)
    if W in schedule.kind and not problem.splits:
        return
    orders = problem.numbers_of(schedule)
    if all(map(problem.fits, orders)):
        yield _of_schedule(schedule, orders, costs, messages)
        if schedule.pairs.size or (problem.splits and B in schedule.kind):
            split = candidate_of(problem, orders, costs, messages)
            if split is not None:
                yield split


def ask_solver(state: State, place: int, problem: OrderProblem, costs: Costs, effort: float, messages: str) -> State:
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
            return state.better(place, candidate_of(problem, problem.numbers_of(best.schedule), costs, messages))
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


def _of_schedule(schedule: Schedule, orders: list[Order], costs: Costs, messages: str) -> Candidate:
    """Return the candidate for a schedule. ``orders`` has the orders of the schedule as numbers of operations."""
    timeline = simulate(schedule, costs, messages=messages)
    peak = float(timeline.peak_activations.max())
    return Candidate(rounded(timeline.makespan), rounded(timeline.device_span), rounded(peak), orders, schedule)


def rounded(time: float) -> float:
    """Return a time rounded to 10 digits, so that rounding errors do not decide which of two times is shorter.

    >>> rounded(0.1 + 0.2) == rounded(0.3)
    True
    """
    return float(f"{time:.{DIGITS}g}")
