"""Local search: it moves operations on the critical path to other positions, to shorten the step."""

import math
import random
from collections.abc import Iterator, Sequence

from hybridlab.automatic.problem import Order, OrderProblem, Times
from hybridlab.errors import HybridLabError

Move = tuple[int, int, int]  # (device, old position, new position)
HOT, COLD = 0.02, 0.0005  # mean of the random limit in the first and in the last attempt; share of the makespan
FAR = (1, 2, 4)  # an operation moves by one of these numbers of positions, or to an end of its block


def exchanges(problem: OrderProblem, orders: Sequence[Order], attempts: int, seed: int) -> Iterator[list[Order]]:
    """Yield the best orders so far after each attempt to shorten the step.

    The method is simulated annealing. An attempt moves one operation within a block of the critical path. A block is a sequence of
    operations on the critical path that one device runs without a break. Other moves cannot make the step shorter. A move is undone in
    three cases: (1) the order exceeds the memory; (2) devices would wait for ever; (3) the step becomes longer by more than a random limit.
    The limit falls with every attempt.

    Parameters
    ----------
    problem : OrderProblem
        The operations to order.
    orders : sequence of list of int
        Orders that can run. The function does not change them.
    attempts : int
        Number of attempts to shorten the step.
    seed : int
        Seed of the random choices.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    ran = problem.run(orders)
    if ran is None:
        raise HybridLabError("a local search needs orders that can run, and in these the devices wait for ever", "deadlock")
    now, current = max(ran[1]), [list(order) for order in orders]
    best, best_orders = now, list(map(list, current))  # copies, because the loop changes ``current`` in place
    moves = _moves(problem, current, *ran, chance)
    limit, cooling = HOT * now, (COLD / HOT) ** (1 / max(1, attempts))
    for _ in range(attempts):
        limit *= cooling
        if moves:  # without moves, no block of the path has two operations that may change places
            device, here, there = chance.choice(moves)
            order = current[device]
            order.insert(there, order.pop(here))
            ran = problem.run(current) if problem.fits(order) else None
            # Metropolis's rule: the random limit has an exponential distribution with the mean ``limit``. 1.0 - random() avoids log(0).
            if ran and max(ran[1]) <= now - limit * math.log(1.0 - chance.random()):
                now = max(ran[1])
                if now < best:
                    best, best_orders = now, list(map(list, current))
                moves = _moves(problem, current, *ran, chance)
            else:
                order.insert(here, order.pop(there))
        yield best_orders


def _moves(problem: OrderProblem, orders: Sequence[Order], start: Times, end: Times, chance: random.Random) -> list[Move]:
    """Return the possible moves within the blocks of one critical path. The function follows the path from its end to its beginning."""
    source, delay, makespan = problem.source, problem.delay, max(end)
    device = chance.choice([each for each, order in enumerate(orders) if end[order[-1]] == makespan])
    place = len(orders[device]) - 1
    moves: list[Move] = []
    while True:
        order, last = orders[device], place
        while True:
            operation = order[place]
            given = source[operation]
            # whether the operation started when its message arrived; == is exact, because ``run`` computes the start as this sum
            waited = given < problem.size and problem.device[given] != device and end[given] + delay[operation] == start[operation]
            # if the device and the message were ready at the same time, choose one of the two critical paths at random
            if place == 0 or end[order[place - 1]] < start[operation] or (waited and chance.random() < 0.5):
                break
            place -= 1
        moves += _moves_in_block(problem, order, device, place, last)
        if not waited:
            return moves
        device = problem.device[given]
        place = orders[device].index(given)


def _moves_in_block(problem: OrderProblem, order: Order, device: int, first: int, last: int) -> list[Move]:
    """Return moves of the operations from position ``first`` to ``last``. The microbatches of the same stage and kind stay in order."""
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
