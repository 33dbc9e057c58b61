"""Greedy schedules: each device chooses one operation at a time, as in the automatic scheduler of Zero Bubble."""

from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

from hybridlab.automatic.problem import Order, OrderProblem


class Policy(NamedTuple):
    """The rule by which a device chooses among the operations whose inputs have arrived.

    A weight gradient runs only if no forward and no input gradient can run.

    Parameters
    ----------
    deep_first : bool
        Which of several forwards (or backwards) a device chooses. True: the operation nearest to the end of its pass through the stages.
    forward_first : bool
        Whether a device prefers a forward to a backward.
    patience : float
        A device does not start a weight gradient if the input of a forward or backward arrives within ``patience`` x the time of the weight
        gradient.
    always : bool
        Whether the limit ``warm_up`` holds during the whole step.
    warm_up : float
        Limit of the forwards on a device whose backwards have not run yet. For device d of K, the limit is 1 + ``warm_up`` x (K - 1 - d)
        forwards for each chunk. Without ``always``, the limit ends with the first backward of the device.
    """

    deep_first: bool
    forward_first: bool
    patience: float
    always: bool
    warm_up: float


def policies(problem: OrderProblem) -> list[Policy]:
    """Return the policies for a problem. The first ones differ most, so that a search can stop after some of them."""
    warm_ups, patiences = (2, 1, 2.5, 1.5, 3, 1e9), (0.25, 0, 0.5, 0.75, 1) if problem.splits else (0,)
    depths = (True, False) if problem.template.chunks > 1 else (True,)
    # warm_ups is the last argument and changes fastest, so the first six policies try all warm-ups
    return [Policy(*each) for each in product(depths, (False, True), patiences, (False, True), warm_ups)]


def greedy(problem: OrderProblem, policy: Policy) -> list[Order] | None:
    """Return the orders that the devices choose with ``policy``, or None if the memory is full and no device can go on.

    The method is a simulation. Whenever a device is free, it starts the best operation whose input has arrived. If no input has arrived,
    the device waits for the first input.
    """
    template, size = problem.template, problem.size
    microbatches, stages = template.microbatches, template.stages
    lines_on = [
        [line for line in range(size // microbatches) if problem.device[line * microbatches] == device]
        for device in range(template.devices)
    ]
    # in a loop, a microbatch returns to a device only after it has visited all others, and until then its forwards must go on
    loop = template.chunks > 1 and template.device_of[0] == template.device_of[template.devices]
    most = [
        (1 + policy.warm_up * (template.devices - 1 - device)) * template.chunks + template.devices * loop
        for device in range(template.devices)
    ]
    rank = [_rank(line, stages, policy) for line in range(size // microbatches)]
    needed_by = _needed_by(problem)
    chunks_on = [[line for line in lines if line < stages] for lines in lines_on]
    held = [0.0] * stages  # activations of each stage, in microbatches on a whole device
    end = [-1.0] * size + [0.0]  # -1: has not run yet; the last entry means "no operation"
    done = [0] * (size // microbatches)
    orders: list[Order] = [[] for _ in lines_on]
    free, began, in_flight = [0.0] * len(lines_on), [False] * len(lines_on), [0] * len(lines_on)
    events = [(0.0, device) for device in range(len(lines_on))]  # a heap of (time, device): at this time the device chooses
    never = float("inf")
    while events:
        now, device = heappop(events)
        if now < free[device]:  # the device is busy, and chooses again when its operation has ended
            continue
        chosen, best, soon = -1, never, never
        for line in lines_on[device]:
            operation = line * microbatches + done[line]
            if done[line] == microbatches or end[problem.source[operation]] < 0:
                continue
            limited = policy.always or not began[device]
            if line < stages and (
                (limited and in_flight[device] >= most[device]) or not _has_room(problem, chunks_on[device], held, line, loop)
            ):
                continue
            arrival = end[problem.source[operation]] + problem.delay[operation]
            if arrival > now:
                soon = min(soon, arrival)
            elif rank[line] < best:
                chosen, best = line, rank[line]
        # lines from 2 x stages on are weight gradients; a weight gradient may delay more urgent operations
        if chosen < 0 or (chosen >= 2 * stages and soon < now + policy.patience * problem.duration[chosen * microbatches + done[chosen]]):
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
    return orders if sum(map(len, orders)) == size else None  # without events, devices with remaining operations can never go on


def _has_room(problem: OrderProblem, chunks: list[int], held: list[float], stage: int, loop: bool) -> bool:
    """Return whether the device of a stage has memory for another forward of this stage, and the oldest microbatch can always go on.

    ``chunks`` has the stages of the device, and ``held`` has the memory that each stage uses. In a loop, the first chunk reserves the
    memory of a whole microbatch. Else a device reserves the memory of one activation for each later chunk.
    """
    # 1e-9 allows for rounding errors in sums of parts of activations
    one, room = 1 / len(chunks), problem.capacity[problem.device[stage * problem.template.microbatches]] + 1e-9
    if loop:
        fits = sum(held[each] for each in chunks) + one <= room
        return fits and (stage != chunks[0] or held[stage] * len(chunks) + 1 <= room)
    taken = one
    for chunk, each in enumerate(chunks):
        taken += held[each]
        if each >= stage and taken > room - (len(chunks) - 1 - chunk) * one:
            return False
    return True


def _rank(line: int, stages: int, policy: Policy) -> int:
    """Return the priority of the operations of a line. A device chooses the line with the smallest number."""
    plane, stage = divmod(line, stages)
    first = plane if plane == 2 or policy.forward_first else 1 - plane  # weight gradients (plane 2) always come last
    last = stages - 1
    deep = (last - stage, stage, stage)[plane] if policy.deep_first else (stage, last - stage, last - stage)[plane]
    return first * stages + deep


def _needed_by(problem: OrderProblem) -> list[list[int]]:
    """Return for each line the lines that need its output. The last entry has the lines that need no input."""
    microbatches = problem.template.microbatches
    needed_by: list[list[int]] = [[] for _ in range(problem.size // microbatches + 1)]
    for line in range(problem.size // microbatches):
        needed_by[problem.source[line * microbatches] // microbatches].append(line)
    return needed_by
