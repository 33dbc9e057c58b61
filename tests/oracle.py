"""A second way to time a schedule: longest paths by recursion over operations, in exact fractions.

It shares nothing with the clock it judges: no arrays, no slots, and its own rules for what an operation needs and where a
stage stands. An operation is written here as the tuple (kind letter, stage, microbatch).
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from hybridlab import Costs, Schedule

Node = tuple[str, int, int]
Orders = Sequence[Sequence[Node]]
Span = tuple[Fraction, Fraction]

sys.setrecursionlimit(100_000)


@dataclass(frozen=True)
class Setting:
    """One setting of costs in plain numbers: times of one microbatch on each device, all its chunks together."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    share: tuple[float, ...]
    p2p: float

    def costs(self) -> Costs:
        return Costs.per_device(list(self.forward), list(self.backward), list(self.share), self.p2p)

    def duration(self, kind: str, device: int, chunks: int) -> Fraction:
        backward, share = Fraction(self.backward[device]), Fraction(self.share[device])
        parts = {"F": Fraction(self.forward[device]), "B": backward, "I": backward * (1 - share), "W": backward * share}
        return parts[kind] / chunks


def uniform(devices: int, forward: float, backward: float, share: float = 0.5, p2p: float = 0.0) -> Setting:
    return Setting((forward,) * devices, (backward,) * devices, (share,) * devices, p2p)


def nodes(schedule: Schedule) -> list[list[Node]]:
    return [[(op.kind.value, op.stage, op.microbatch) for op in order] for order in schedule.orders]


def inputs(node: Node, stages: int, every: Iterable[Node] | Mapping[Node, object]) -> list[Node]:
    """What must have ended before ``node``: its own forward or input gradient, and the neighbour stage's output."""
    kind, stage, microbatch = node
    if kind == "F":
        return [("F", stage - 1, microbatch)] if stage > 0 else []
    if kind == "W":
        return [("I", stage, microbatch)]
    after = [(other, stage + 1, microbatch) for other in "BI"] if stage + 1 < stages else []
    return [("F", stage, microbatch), *(node for node in after if node in every)]


def placement(orders: Orders) -> dict[int, int]:
    return {stage: device for device, order in enumerate(orders) for _, stage, _ in order}


def times(orders: Orders, setting: Setting, chunks: int, in_order: bool = True) -> dict[Node, Span]:
    """Start and end of every operation: the longest path to it through inputs, messages and the order of its device.

    Without ``in_order`` as if every operation had a device of its own.
    """
    device_of = placement(orders)
    before = {node: earlier if in_order else None for order in orders for earlier, node in pairwise([None, *order])}
    known: dict[Node, Span] = {}

    def end(node: Node) -> Fraction:
        if node not in known:
            kind, stage, _ = node
            earliest = Fraction(0)
            earlier = before[node]
            if earlier is not None:
                earliest = max(earliest, end(earlier))
            for needed in inputs(node, len(device_of), before):
                hop = Fraction(setting.p2p) if device_of[needed[1]] != device_of[stage] else Fraction(0)
                earliest = max(earliest, end(needed) + hop)
            known[node] = earliest, earliest + setting.duration(kind, device_of[stage], chunks)
        return known[node][1]

    for order in orders:
        for node in order:
            end(node)
    return known


def can_run(orders: Orders) -> bool:
    """Whether complete ``orders`` have no circle of waiting: strike out, over and over, what waits for nothing."""
    every = {node for order in orders for node in order}
    stages = 1 + max(stage for _, stage, _ in every)
    done: set[Node] = set()
    left = [list(order) for order in orders]
    moved = True
    while moved:
        moved = False
        for order in left:
            while order and done.issuperset(inputs(order[0], stages, every)):
                done.add(order.pop(0))
                moved = True
    return len(done) == len(every)


def critical_path(orders: Orders, setting: Setting, chunks: int) -> Fraction:
    """Longest chain of inputs and messages: no order can be faster."""
    return max(end for _, end in times(orders, setting, chunks, in_order=False).values())


def works(orders: Orders, setting: Setting, chunks: int) -> Iterator[Fraction]:
    """The work of each device, from its operations one by one."""
    for device, order in enumerate(orders):
        yield sum((setting.duration(kind, device, chunks) for kind, _, _ in order), Fraction(0))


def peaks(orders: Orders, chunks: int) -> list[Fraction]:
    """Most activations each device holds at once: walk its order, hold from F to its B or W, count what is held while running."""
    result = []
    for order in orders:
        held: set[tuple[int, int]] = set()
        most = 0
        for kind, stage, microbatch in order:
            if kind == "F":
                held.add((stage, microbatch))
            most = max(most, len(held))
            if kind in "BW":
                held.remove((stage, microbatch))
        result.append(Fraction(most, chunks))
    return result
