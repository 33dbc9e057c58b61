"""The one place that asks a constraint solver: shortest starts of operations, in whole ticks."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.errors import HybridLabError
from hybridlab.schedule import B, F, Schedule, W

WORK = 0.25  # the solver's own measure of what it does in a second on one core
MISSING = "the shortest order is found by OR-tools, which is not installed: pip install 'hybridlab[solver]'"


@dataclass(frozen=True)
class Problem:
    """Operations to start, the rows of ``schedule``, with times in ticks: see :func:`shortest_starts`."""

    schedule: Schedule
    duration: Ints
    latency: Ints  # of the message that brings an operation's input
    head: Ints  # the least time before an operation
    tail: Ints  # and after it
    room: Ints  # activations that each device may hold
    alike: list[Ints]  # rows of operations that differ in their microbatch alone
    start: Ints | None  # starts that keep to everything
    least: int  # no makespan is shorter
    most: int  # one is not longer


def shortest_starts(problem: Problem, seconds: float, workers: int) -> tuple[Ints | None, float]:
    """Return the starts with the shortest makespan found, None where none was, and what no makespan can be below.

    Operations that differ in their microbatch alone start in the order of their microbatches. No order is lost by that: give the
    starts of such operations to the microbatches from the earliest on, at every place on their way, and every operation still
    follows its input, every device runs the same intervals and holds as many activations as before.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise HybridLabError(MISSING) from None
    schedule, duration = problem.schedule, problem.duration.tolist()
    model = cp_model.CpModel()
    latest = (problem.most - problem.tail - problem.duration).tolist()
    start = [model.new_int_var(*domain, "") for domain in zip(problem.head.tolist(), latest, strict=True)]
    end = [begin + time for begin, time in zip(start, duration, strict=True)]
    makespan = model.new_int_var(problem.least, problem.most, "makespan")
    for row, source in enumerate(schedule.source.tolist()):
        model.add(makespan >= end[row] + int(problem.tail[row]))
        if source >= 0:
            model.add(start[row] >= end[source] + int(problem.latency[row]))
    for rows in problem.alike:
        for before, after in pairwise(rows.tolist()):
            model.add(start[after] >= end[before])
        if problem.start is not None:
            for row, hint in zip(rows.tolist(), np.sort(problem.start[rows]).tolist(), strict=True):
                model.add_hint(start[row], hint)
    taken, freed = _activations(schedule)
    for device, room in enumerate(problem.room.tolist()):
        mine = np.flatnonzero(schedule.device == device).tolist()
        model.add_no_overlap([model.new_fixed_size_interval_var(start[row], duration[row], "") for row in mine])
        held = np.flatnonzero(schedule.device[taken] == device)
        if held.size > room:
            pairs = zip(taken[held].tolist(), freed[held].tolist(), strict=True)
            stays = [model.new_interval_var(start[f], model.new_int_var(0, problem.most, ""), end[b], "") for f, b in pairs]
            model.add_cumulative(stays, [1] * held.size, room)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.random_seed = 1
    solver.parameters.num_workers = workers
    solver.parameters.interleave_search = True  # the same answer however fast the machine and its threads are
    solver.parameters.max_deterministic_time = seconds * WORK
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, float(problem.least)
    return np.array([solver.value(begin) for begin in start], dtype=np.intp), solver.best_objective_bound


def _activations(schedule: Schedule) -> tuple[Ints, Ints]:
    """Return the row that takes each activation and the row that frees it."""
    activation = schedule.stage * schedule.microbatches + schedule.microbatch
    taken, freed = np.flatnonzero(schedule.kind == F), np.flatnonzero((schedule.kind == B) | (schedule.kind == W))
    return taken[np.argsort(activation[taken])], freed[np.argsort(activation[freed])]
