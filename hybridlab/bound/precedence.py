"""Heads and tails that know the memory: what must precede an operation, and what must follow it, in every order of a step."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Floats, Ints
from hybridlab.bound.chains import Chain
from hybridlab.schedule import F, I, W

FAR = 10**9  # more microbatches than any step has: no path leads from one position to another


class Arc(NamedTuple):
    """A precedence of two positions of a chain: microbatch j of ``after`` starts when microbatch j - ``shift`` of ``before`` has arrived.

    Parameters
    ----------
    before, after : int
        The two positions.
    shift : int
        The difference of the microbatches, 0 or more.
    delay : float
        The time from the end of the operation at ``before`` to the start of the one at ``after``.
    """

    before: int
    after: int
    shift: int
    delay: float


class Precedences(NamedTuple):
    """The precedences that hold in every order of a chain's operations, with the shortest times before and after each operation.

    The orders are those in which the microbatches of a position come in increasing order. The shortest makespan is among them: at every
    position, sort the starts, and give them to the microbatches in increasing order.

    Parameters
    ----------
    arcs : list of Arc
        The precedences of positions of the chain.
    shifts : Ints
        Shape (positions, positions). Microbatch i of position x precedes microbatch j of position y in every order if i is at most
        j - shifts[x, y].
    head, tail : Floats
        Shape (positions, microbatches): the shortest possible time from the beginning of the step to the start of each operation, and from
        its end to the end of the step.
    """

    arcs: list[Arc]
    shifts: Ints
    head: Floats
    tail: Floats


def precedences_of(chain: Chain, capacity: Ints) -> Precedences:
    """Return the precedences of a chain that all microbatches of a step have.

    The head of an operation is the largest of two times. (1) The longest path of precedences that ends at it. (2) The time in which its
    device can have finished all operations that must precede it: none of them starts before its own head, and they run one after another.
    A tail is a head of the step that runs from its end to its beginning.

    Parameters
    ----------
    chain : Chain
        The chain, with one setting of times.
    capacity : Ints, shape (devices,)
        The number of activations of one chunk that each device may hold.
    """
    positions = len(chain.device)
    arcs = [*_chain_arcs(chain), *(Arc(each, each, 1, 0.0) for each in range(positions)), *_memory_arcs(chain, capacity)]
    shifts = _shifts(positions, arcs)
    backwards = [Arc(after, before, shift, delay) for before, after, shift, delay in arcs]
    forward_order, last = range(positions), range(positions - 1, -1, -1)
    head = _heads(chain, forward_order, arcs, shifts)
    tail = _heads(chain, last, backwards, shifts.T)[:, ::-1]
    return Precedences(arcs, shifts, head, tail)


def precedence_bound(chain: Chain, capacity: Ints) -> Floats:
    """Return a lower bound of the makespan for a chain that all microbatches of a step have, shape (settings...).

    The bound of a device is the makespan of Jackson's preemptive schedule, in which an operation may be interrupted. It equals the largest
    sum, over all sets of operations, of the smallest head, the time of all operations, and the smallest tail.
    """
    settings = chain.duration.shape[1:]
    bounds: Floats = np.array([_bound(each, capacity) for each in settings_of(chain)]).reshape(settings)
    return bounds


def settings_of(chain: Chain) -> list[Chain]:
    """Return the chain once for each setting of its times."""
    timed = ("duration", "head", "tail", "lifetime", "after", "release")
    count = math.prod(chain.duration.shape[1:])
    flat = {name: getattr(chain, name).reshape(-1, count) for name in timed}
    return [replace(chain, **{name: times[:, setting] for name, times in flat.items()}) for setting in range(count)]


def _bound(chain: Chain, capacity: Ints) -> float:
    """Return the bound of a chain with one setting of times."""
    _, _, head, tail = precedences_of(chain, capacity)
    duration = np.broadcast_to(chain.duration[:, None], head.shape)
    bound = float((head + duration + tail).max())
    for device in np.unique(chain.device):
        heads, tails, times = (each[chain.device == device].ravel() for each in (head, tail, duration))
        latest_first = np.argsort(-heads)
        heads, tails, times = heads[latest_first], tails[latest_first], times[latest_first]
        for least in np.unique(tails):  # the sets with this smallest tail: all operations from a head on
            chosen = tails >= least
            bound = max(bound, float((heads[chosen] + np.cumsum(times[chosen])).max() + least))
    return bound


def _chain_arcs(chain: Chain) -> list[Arc]:
    """Return the dependencies of one microbatch: each forward and backward on the one before it, each weight gradient on its backward."""
    through = int((chain.kind != W).sum())  # forwards and backwards come first in the chain
    gap = chain.head[1:through] - chain.head[: through - 1] - chain.duration[: through - 1]
    arcs = [Arc(each, each + 1, 0, float(max(0.0, gap[each]))) for each in range(through - 1)]
    split = np.flatnonzero(chain.kind == I)
    return arcs + [Arc(int(each), through + place, 0, 0.0) for place, each in enumerate(split)]


def _memory_arcs(chain: Chain, capacity: Ints) -> list[Arc]:
    """Return the precedences that follow from the memory: a forward waits until its device has room for one more activation.

    Let the device have the chunks 0, 1, ... in the order of the chain. When the forward of microbatch j in chunk i starts, at least
    j + 1 forwards of each earlier chunk and j of this chunk have started. The backwards of microbatch x run first in the last chunk, so
    if x backwards of chunk k have ended, no more than x have ended in each chunk before k. So chunks 0 to k hold at least the activations
    of their forwards above x. The device may hold one fewer than its capacity.
    """
    stages = int((chain.kind == F).sum())
    releases = {int(2 * stages - 1 - each): 2 * stages + place for place, each in enumerate(np.flatnonzero(chain.kind == I))}
    arcs = []
    for device in np.unique(chain.device):
        chunks = np.flatnonzero(chain.device[:stages] == device).tolist()
        room = int(capacity[device]) - 1
        for place, stage in enumerate(chunks):
            for other, released in enumerate(chunks):
                # ``count`` chunks up to ``other`` hold activations, and ``early`` of them have started one forward more than j. Let j - y
                # be the backwards of ``other`` that have ended. The loop finds the largest y for which the activations fit.
                early, count = min(other + 1, place), min(other, place) + 1
                less = next(y for y in range(room, -2, -1) if early * max(0, y + 1) + (count - early) * max(0, y) <= room)
                arcs.append(Arc(2 * stages - 1 - released, stage, less + 1, 0.0))
                if released in releases and other <= place:  # the weight gradient frees the memory
                    arcs.append(Arc(releases[released], stage, room + (other == place), 0.0))
    return arcs


def _shifts(positions: int, arcs: Sequence[Arc]) -> Ints:
    """Return the shortest shift of a path from each position to each other one, shape (positions, positions); FAR without a path.

    Microbatch i at position x precedes microbatch j at position y in every order if i is at most j - shift[x, y]. From a position to itself
    the shift is 1 or less, so that an operation does not precede itself.
    """
    shift = np.full((positions, positions), FAR)
    for before, after, more, _ in arcs:
        shift[before, after] = min(shift[before, after], more)
    for middle in range(positions):
        np.minimum(shift, shift[:, middle, None] + shift[None, middle], out=shift)
    shift[shift > FAR] = FAR
    return shift


def _heads(chain: Chain, order: Sequence[int], arcs: Sequence[Arc], shifts: Ints) -> Floats:
    """Return the shortest possible time before the start of each operation, shape (positions, microbatches).

    ``order`` has the positions in an order in which no arc without a shift leads back.
    """
    duration, positions, microbatches = chain.duration.tolist(), len(chain.device), chain.microbatches
    head = np.zeros((positions, microbatches))
    into: list[list[Arc]] = [[] for _ in range(positions)]
    for arc in arcs:
        into[arc.after].append(arc)
    beside = [np.flatnonzero(chain.device == device).tolist() for device in chain.device]  # the positions on the same device
    precede = [[(other, int(shifts[other, position])) for other in beside[position]] for position in range(positions)]
    at_most = [0.0] * positions  # no earlier than the end of the work that must precede the last operation of this position
    for microbatch in range(microbatches):
        for position in order:
            begin = 0.0
            for before, _, shift, delay in into[position]:
                if shift <= microbatch:
                    begin = max(begin, head[before, microbatch - shift] + duration[before] + delay)
            end = at_most[position]
            for other, shift in precede[position]:  # one more operation of each position
                if shift <= microbatch:
                    end = max(end, head[other, microbatch - shift]) + duration[other]
            if end > begin:  # so the work that must precede the operation may end later than the longest path
                counts = [(other, max(0, microbatch - shift + 1)) for other, shift in precede[position]]
                heads = np.concatenate([head[other, :count] for other, count in counts])
                latest_first = np.argsort(-heads)
                times = np.repeat([duration[other] for other, _ in counts], [count for _, count in counts])
                end = float((heads[latest_first] + np.cumsum(times[latest_first])).max())
                begin = max(begin, end)
            at_most[position] = end
            head[position, microbatch] = begin
    return head
