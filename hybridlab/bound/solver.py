"""The solver CP-SAT of OR-tools: a model of whole numbers, and its best solution within a limit of work."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Event, Thread
from typing import Any, NamedTuple, TypeVar

from hybridlab.errors import HybridLabError

Result = TypeVar("Result")


class Solution(NamedTuple):
    """The best solution of a model that the solver has found.

    Parameters
    ----------
    values : list of int
        The values of the variables that the caller asked for.
    bound : float
        A lower bound of the objective.
    proven : bool
        Whether no solution has a smaller objective.
    """

    values: list[int]
    bound: float
    proven: bool


def new_model() -> Any:
    """Return an empty model. Raise an error if OR-tools is not installed."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        message = "the search for the shortest order needs OR-tools, which is not installed: pip install 'hybridlab[solver]'"
        raise HybridLabError(message, "not-installed") from None
    return cp_model.CpModel()


def solution_of(
    model: Any, variables: Sequence[Any], work: float, *, seed: int = 1, workers: int = 1, from_below: bool = False
) -> Solution | None:
    """Return the best solution that the solver finds, or None if it finds none.

    Parameters
    ----------
    model : CpModel
        The model, with its objective.
    variables : sequence of IntVar
        The variables whose values the result has.
    work : float
        Limit in the solver's own unit of work, so that the same call gives the same result on every machine.
    seed, workers : int
        Seed of random choices, and number of threads.
    from_below : bool
        Whether the search goes from the lower bound of the objective upwards. This proves more, and finds fewer good solutions on its way.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.random_seed, solver.parameters.num_workers = seed, workers
    solver.parameters.interleave_search = workers > 1  # the result of several threads then does not depend on their speed
    # The callers' models are tight already. The solver's own preparation took 95 % of the time of a proof and found nothing more.
    solver.parameters.cp_model_presolve, solver.parameters.linearization_level = False, 0
    solver.parameters.use_objective_lb_search = from_below
    solver.parameters.max_deterministic_time = work
    # The solver's own handler would end the search at Ctrl-C, but keep the interrupt from the caller.
    solver.parameters.catch_sigint_signal = False
    status = interruptible(lambda: solver.solve(model), solver.stop_search)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return Solution([solver.value(each) for each in variables], solver.best_objective_bound, status == cp_model.OPTIMAL)


def interruptible(work: Callable[[], Result], stop: Callable[[], None]) -> Result:
    """Return the result of ``work``, which runs in a thread. Call ``stop`` if an interrupt (Ctrl-C) or another signal ends the waiting.

    Python handles signals only between two of its own instructions. So work outside of Python would keep an interrupt waiting.
    """
    running: Future[Result] = Future()
    begun = Event()

    def run() -> None:
        begun.set()
        try:
            running.set_result(work())
        except BaseException as why:  # the caller gets every error
            running.set_exception(why)

    thread = Thread(target=run, daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(0.2)  # not longer: a signal that comes just before a wait begins does not end this wait
        return running.result()
    except BaseException:
        begun.wait(2)  # an interrupt can come while the thread starts, and the thread does not count as alive before it has started
        while thread.is_alive():  # several times, because ``stop`` does nothing before the work has begun
            stop()
            thread.join(0.05)
        raise
