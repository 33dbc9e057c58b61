"""A run over MPI in which each rank has its own list of actions, and a send waits until the receiver takes the message.

Messages of one entry start together, as between ncclGroupStart and ncclGroupEnd in NCCL, and batch_isend_irecv in PyTorch.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

from hybridlab.checks import in_a_second, short_repr
from hybridlab.costs import Costs
from hybridlab.engines.group import Group
from hybridlab.engines.job import require_schedule
from hybridlab.engines.mpi import POLL
from hybridlab.engines.run import run
from hybridlab.engines.work import StepWork
from hybridlab.errors import Deadlock, HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedule.actions import inputs_from_others, read_actions
from hybridlab.schedules import build
from hybridlab.simulation import durations
from hybridlab.timeline import Timeline

LONGEST_WAIT = 3.0  # seconds; a waiting rank gives up after the summed work of all ranks plus this time
ActionsFunction = Callable[[list[str], dict[str, str], int], Sequence[str]]  # (lines, inputs, rank) -> the actions of the rank


class _ActionWork(StepWork):
    """The actions of each rank, run one entry after the other; a send ends when its receiver takes the message."""

    def __init__(self, actions_of: ActionsFunction, lines: list[str], needs: dict[str, str], takes: dict[str, float]) -> None:
        self._actions_of, self._lines, self._needs, self._takes = actions_of, lines, needs, takes

    def result(self, rank: int) -> tuple[dict[str, tuple[float, float]], str]:
        """Return the start and end of each operation in seconds, and the entry at which the rank gave up ("" if the rank finished)."""
        from mpi4py import MPI

        comm = MPI.COMM_WORLD.Dup()  # a new communicator, because old messages of a deadlocked run must not reach the next run
        spans: dict[str, tuple[float, float]] = {}
        most = sum(self._takes.values()) + LONGEST_WAIT
        names = {name: tag for tag, name in enumerate(self._takes)}  # operation -> MPI tag of its output
        for text in self._actions_of(self._lines, self._needs, rank):
            actions = read_actions(text)
            start = time.perf_counter()
            if actions[0].verb == "run":
                op = actions[0].op
                time.sleep(self._takes[op])
                spans[op] = start, time.perf_counter()
                continue
            messages = [(action, np.zeros(1)) for action in actions]
            requests = [
                # Issend ends when the receiver takes the message; Isend would end earlier for a small message
                comm.Issend(message, peer, names[op]) if verb == "send" else comm.Irecv(message, peer, names[op])
                for (verb, op, peer), message in messages
            ]
            while not MPI.Request.Testall(requests):
                if time.perf_counter() - start > most:
                    for request in requests:
                        request.Cancel()
                    return spans, text
                time.sleep(POLL)
        return spans, ""


def run_actions(schedule: Schedule, actions_of: ActionsFunction, costs: Costs, group: Group) -> Timeline:
    """Return the measured timeline of a run over MPI in which each rank follows its own list of actions.

    An operation sleeps for its cost. A rank does one entry of its list after the other. A send ends when the receiver takes the message. A
    receive ends when the message has arrived. Messages that are joined by "and" start together, and the rank waits until all have ended.

    Parameters
    ----------
    schedule : Schedule
        The operations of each device.
    actions_of : callable
        ``actions_of(lines, needs, rank)`` returns the actions of a rank as texts. ``lines`` has the operations of each device as text, and
        ``needs`` is what :func:`inputs_from_others` returns. Each rank calls this function in its own process.
    costs : Costs
        The times of the operations, with a unit.
    group : Group
        Processes of the engine "mpi", one for each device.

    Returns
    -------
    Timeline
        The measured times, in the unit of the costs.

    Raises
    ------
    Deadlock
        Ranks wait for each other. The error names the action at which each rank waits.
    HybridLabError
        An argument is not what is listed above, the group does not fit, a text is not an action, or a rank leaves out an operation.
    """
    require_schedule(schedule, costs)
    fits: bool = callable(actions_of) and isinstance(costs, Costs)
    if not fits:
        wanted = "run_actions takes a function of lines, needs and rank, and Costs"
        raise HybridLabError(f"{wanted}, not {short_repr(actions_of)} and {short_repr(costs)}", "wrong-type")
    if not isinstance(group, Group) or group.engine != "mpi" or group.ranks != schedule.devices:
        wanted = f"run_actions takes Group('mpi', {schedule.devices}), with a process for each device"
        raise HybridLabError(f"{wanted}, not {short_repr(group)}", "wrong-number-of-processes")
    ops = list(map(str, schedule.ops))
    second = in_a_second(costs.unit, "a run")
    takes = dict(zip(ops, (durations(schedule, costs) / second).tolist(), strict=True))
    lines = [" ".join(map(str, order)) for order in schedule.orders]
    work = _ActionWork(actions_of, lines, inputs_from_others(schedule), takes)
    # ``run`` needs a schedule, but this schedule has no effect: ``_ActionWork.result`` runs the actions of a rank.
    results = run(build("1f1b", schedule.devices, 1), work, engine=group).results
    stuck = [f"rank {rank} waits at {place!r}" for rank, (_, place) in enumerate(results) if place]
    if stuck:
        raise Deadlock(f"ranks wait for each other: {'; '.join(stuck)}", "deadlock")
    spans = {op: span for found, _ in results for op, span in found.items()}
    missing = next((op for op in ops if op not in spans), None)
    if missing is not None:
        raise HybridLabError(f"no rank runs {missing}: the actions leave it out", "missing-operation")
    start, end = np.array([spans[op] for op in ops]).T
    return Timeline(schedule, (start - start.min()) * second, (end - start.min()) * second, unit=costs.unit)
