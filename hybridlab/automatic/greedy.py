"""Greedy schedules: each device chooses one operation at a time, in the manner of the automatic scheduler of Zero Bubble."""

from heapq import heappop, heappush
from itertools import islice, product
from typing import NamedTuple

from hybridlab.automatic.problem import Order, OrderProblem

MOST_DECISIONS = 4_000_000  # the operations that all policies choose together; this takes half a minute at most


class Policy(NamedTuple):
    """How a device chooses among the operations whose inputs have arrived.

    A weight gradient runs only if no forward and no input gradient can run.

    Parameters
    ----------
    deep_first : bool
        Of several forwards (or backwards), whether the one that is nearest to the end of its chain is chosen.
    forward_first : bool
        Whether a forward is chosen before a backward.
    patience : float
        A device starts no weight gradient if a forward or backward arrives within ``patience`` x the time of the weight gradient.
    always : bool
        Whether the limit of the warm-up holds during the whole step.
    warm_up : float
        Device d of K runs at most 1 + ``warm_up`` x (K - 1 - d) forwards of each chunk whose backwards it has not run yet. Without
        ``always``, this holds until its first backward.
    """

    deep_first: bool
    forward_first: bool
    patience: float
    always: bool
    warm_up: float


def policies(problem: OrderProblem) -> list[Policy]:
    """Return the policies to try: each of them makes a difference for this problem, and a large problem gets fewer of them."""
    warm_ups, patiences = (2, 1, 2.5, 1.5, 3, 1e9), (0.25, 0, 0.5, 0.75, 1) if problem.splits else (0,)
    depths = (True, False) if problem.template.chunks > 1 else (True,)
    # the last argument changes fastest, so that a large problem tries all warm-ups
    every = product(depths, (False, True), patiences, (False, True), warm_ups)
    return [Policy(*each) for each in islice(every, max(len(warm_ups), MOST_DECISIONS // problem.size))]


def greedy(problem: OrderProblem, policy: Policy) -> list[Order] | None:
    """Return the orders that devices choose with ``policy``, or None if memory leaves them stuck.

    The method is a simulation. Whenever a device is free, it takes the best operation that can start now. If there is none, it waits for
    the first that arrives.
    """
    template, size = problem.template, problem.size
    microbatches, stages = template.microbatches, template.stages
    lines_on = [
        [line for line in range(size // microbatches) if problem.device[line * microbatches] == device]
        for device in range(template.devices)
    ]
    most = [(1 + policy.warm_up * (template.devices - 1 - device)) * template.chunks for device in range(template.devices)]
    rank = [_rank(line, stages, policy) for line in range(size // microbatches)]
    needed_by = _needed_by(problem)
    chunks_on = [[line for line in lines if line < stages] for lines in lines_on]
    held = [0.0] * stages  # activations of each stage, in microbatches on a whole device
    end = [-1.0] * size + [0.0]  # -1 if it has not run; the last entry is for "no operation"
    done = [0] * (size // microbatches)
    orders: list[Order] = [[] for _ in lines_on]
    free, began, in_flight = [0.0] * len(lines_on), [False] * len(lines_on), [0] * len(lines_on)
    events = [(0.0, device) for device in range(len(lines_on))]  # a heap: when a device has to choose
    never = float("inf")
    while events:
        now, device = heappop(events)
        if now < free[device]:  # it has begun another operation since, and chooses when this has ended
            continue
        chosen, best, soon = -1, never, never
        for line in lines_on[device]:
            operation = line * microbatches + done[line]
            if done[line] == microbatches or end[problem.source[operation]] < 0:
                continue
            limited = policy.always or not began[device]
            if line < stages and ((limited and in_flight[device] >= most[device]) or not _has_room(problem, chunks_on[device], held, line)):
                continue
            arrival = end[problem.source[operation]] + problem.delay[operation]
            if arrival > now:
                soon = min(soon, arrival)
            elif rank[line] < best:
                chosen, best = line, rank[line]
        # lines from 2 x stages on are weight gradients, which may make more urgent work wait
        if chosen < 0 or (chosen >= 2 * stages and soon < now + policy.patience * problem.duration[chosen * microbatches]):
            if soon < never:
                heappush(events, (soon, device))
            continue
        operation = chosen * microbatches + done[chosen]
        done[chosen] += 1
        orders[device].append(operation)
        held[chosen % stages] += problem.taken[operation]
        began[device] |= chosen >= stages
        in_flight[device] += (1, -1, 0)[chosen // stages]  # forward, backward, weight gradient
        free[device] = end[operation] = ended = now + problem.duration[operation]
        heappush(events, (ended, device))
        for line in needed_by[chosen]:
            other = problem.device[line * microbatches]
            if other != device:
                heappush(events, (max(ended + problem.delay[line * microbatches], free[other]), other))
    return orders if sum(map(len, orders)) == size else None  # without events, the devices that have work left are stuck


def _has_room(problem: OrderProblem, chunks: list[int], held: list[float], stage: int) -> bool:
    """Return whether the device of a stage has memory for another forward of it.

    A device with several chunks reserves the memory of one activation for each later chunk. So the oldest microbatch can always go on.
    ``chunks`` has the stages of the device, and ``held`` the memory that each stage holds.
    """
    # 1e-9, because sums of parts of activations are rounded
    one, room = 1 / len(chunks), problem.capacity[problem.device[stage * problem.template.microbatches]] + 1e-9
    taken = one
    for chunk, each in enumerate(chunks):
        taken += held[each]
        if each >= stage and taken > room - (len(chunks) - 1 - chunk) * one:
            return False
    return True


def _rank(line: int, stages: int, policy: Policy) -> int:
    """Return the rank of the operations of a line; the smallest is chosen."""
    plane, stage = divmod(line, stages)
    first = plane if plane == 2 or policy.forward_first else 1 - plane  # weight gradients (plane 2) always come last
    last = stages - 1
    deep = (last - stage, stage, stage)[plane] if policy.deep_first else (stage, last - stage, last - stage)[plane]
    return first * stages + deep


def _needed_by(problem: OrderProblem) -> list[list[int]]:
    """Return, for each line, the lines that need its output; the last entry has the lines that need none."""
    microbatches = problem.template.microbatches
    needed_by: list[list[int]] = [[] for _ in range(problem.size // microbatches + 1)]
    for line in range(problem.size // microbatches):
        needed_by[problem.source[line * microbatches] // microbatches].append(line)
    return needed_by
