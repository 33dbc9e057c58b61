"""Local search: operations on the critical path change places, and the step becomes shorter."""

import math
import random
from collections.abc import Iterator, Sequence

from hybridlab.automatic.problem import Order, OrderProblem, Times
from hybridlab.errors import HybridLabError

Move = tuple[int, int, int]  # on this device, the operation at the first position goes to the second position
HOT, COLD = 0.02, 0.0005  # the typical limit of an attempt, as a part of the makespan: in the first attempt and in the last
FAR = (1, 2, 4)  # an operation moves by this many positions, or to the end of its block


def exchanges(problem: OrderProblem, orders: Sequence[Order], attempts: int, seed: int) -> Iterator[list[Order]]:
    """Yield the best orders so far after each attempt to shorten the step.

    The method is simulated annealing. An attempt moves one operation within a block of the critical path. A block has operations that one
    device runs without a break, and that delay the end of the step. Other moves cannot make the step shorter. A move is undone if it
    exceeds the memory, if devices would wait for ever, or if the step becomes longer by more than a random limit, which falls with time.

    Parameters
    ----------
    problem : OrderProblem
        The operations.
    orders : sequence of list of int
        Orders that can run; they are not changed.
    attempts : int
        Number of attempts.
    seed : int
        Seed of the random choices.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    ran = problem.run(orders)
    if ran is None:
        raise HybridLabError("a local search needs orders that can run, and in these the devices wait for ever", "deadlock")
    now, current = max(ran[1]), [list(order) for order in orders]
    best, best_orders = now, list(map(list, current))  # copies, because ``current`` changes in place
    moves = _moves(problem, current, *ran, chance)
    limit, cooling = HOT * now, (COLD / HOT) ** (1 / max(1, attempts))
    for _ in range(attempts):
        limit *= cooling
        if moves:  # a path can have no block in which two operations may change places
            device, here, there = chance.choice(moves)
            order = current[device]
            order.insert(there, order.pop(here))
            ran = problem.run(current) if problem.fits(order) else None
            # The limit is exponentially distributed with the mean ``limit``: Metropolis's rule. The 1.0 - avoids log(0).
            if ran and max(ran[1]) <= now - limit * math.log(1.0 - chance.random()):
                now = max(ran[1])
                if now < best:
                    best, best_orders = now, list(map(list, current))
                moves = _moves(problem, current, *ran, chance)
            else:
                order.insert(here, order.pop(there))
        yield best_orders


def _moves(problem: OrderProblem, orders: Sequence[Order], start: Times, end: Times, chance: random.Random) -> list[Move]:
    """Return the moves within the blocks of one critical path, which is followed from the end of the step to its beginning."""
    source, delay, makespan = problem.source, problem.delay, max(end)
    device = chance.choice([each for each, order in enumerate(orders) if end[order[-1]] == makespan])
    place = len(orders[device]) - 1
    moves: list[Move] = []
    while True:
        order, last = orders[device], place
        while True:
            operation = order[place]
            given = source[operation]
            # whether its message came just then; exact, because ``run`` has computed the start as this very sum
            waited = given < problem.size and problem.device[given] != device and end[given] + delay[operation] == start[operation]
            # if both the device and the message were late, either is on a critical path
            if place == 0 or end[order[place - 1]] < start[operation] or (waited and chance.random() < 0.5):
                break
            place -= 1
        moves += _moves_in_block(problem, order, device, place, last)
        if not waited:
            return moves
        device = problem.device[given]
        place = orders[device].index(given)


def _moves_in_block(problem: OrderProblem, order: Order, device: int, first: int, last: int) -> list[Move]:
    """Return moves of the operations at the positions from ``first`` to ``last``; no operation passes one of its own line."""
    microbatches = problem.template.microbatches
    moves = []
    for here in range(first, last + 1):
        line = order[here] // microbatches
        for step, limit in ((-1, first), (1, last)):
            there = here
            while there != limit and order[there + step] // microbatches != line:
                there += step
                if there == limit or abs(there - here) in FAR:
                    moves.append((device, here, there))
    return moves
