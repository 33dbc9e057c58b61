"""A second way to time a hybrid step: a naive loop over events, one rank at a time, in exact fractions.

It shares nothing with the library but the texts of a schedule's operations: no arrays, and rules of its own for inputs,
for who is in whose ring, and for when a ring may start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from oracle import Node, Orders, inputs, placement

Rank = tuple[int, int]  # replica, device of the pipeline
Time = tuple[Fraction, Fraction]


@dataclass
class Log:
    """What the loop saw."""

    ops: dict[tuple[Rank, Node], Time] = field(default_factory=dict)
    rings: dict[int, Time] = field(default_factory=dict)  # stage -> start and end of its ring
    optimisers: dict[Rank, Time] = field(default_factory=dict)

    @property
    def makespan(self) -> Fraction:
        return max(end for times in (self.ops, self.rings, self.optimisers) for _, end in times.values())


@dataclass
class Step:
    """The setting: durations[(rank, kind letter)] of a chunk's operation, and the times of hop, message and optimiser."""

    orders: Orders
    replicas: int
    durations: dict[tuple[Rank, str], Fraction]
    p2p: Fraction
    hop: Fraction
    optimiser: Fraction
    overlap: bool

    def run(self) -> Log:
        log, now, moved = Log(), Fraction(0), True
        while moved:
            while self._start_what_can(log, now):
                pass
            later = [time for time in self._events(log) if time > now]
            moved, now = bool(later), min(later, default=now)
        return log

    def _events(self, log: Log) -> list[Fraction]:
        ends = [end for _, end in log.ops.values()]
        return ends + [end + self.p2p for end in ends] + [end for times in (log.rings, log.optimisers) for _, end in times.values()]

    def _start_what_can(self, log: Log, now: Fraction) -> bool:
        device_of = placement(self.orders)
        every = {node for order in self.orders for node in order}
        started = False
        for replica in range(self.replicas):
            for device, order in enumerate(self.orders):
                rank = (replica, device)
                following = next((node for node in order if (rank, node) not in log.ops), None)
                idle = all(end <= now for (where, _), (_, end) in log.ops.items() if where == rank)
                if following is None or not idle:
                    continue
                if all(self._arrived(log, replica, node, device, device_of, now) for node in inputs(following, len(device_of), every)):
                    log.ops[rank, following] = (now, now + self.durations[rank, following[0]])
                    started = True
        for device, order in enumerate(self.orders):
            left = list(dict.fromkeys(stage for _, stage, _ in reversed(order)))  # a device's rings: first done, first served
            while left and left[-1] in log.rings:
                left.pop()
            if left:
                started |= self._start_ring(log, now, left[-1], [each for each in device_of if device_of[each] == device])
        for rank in ((replica, device) for replica in range(self.replicas) for device in range(len(self.orders))):
            started |= self._start_optimiser(log, now, rank, [stage for stage in device_of if device_of[stage] == rank[1]])
        return started

    def _arrived(self, log: Log, replica: int, node: Node, device: int, device_of: dict[int, int], now: Fraction) -> bool:
        source = device_of[node[1]]
        times = log.ops.get(((replica, source), node))
        return times is not None and times[1] + (self.p2p if source != device else 0) <= now

    def _done(self, log: Log, now: Fraction, nodes: Sequence[Node]) -> bool:
        """Whether every replica has ended all of ``nodes``."""
        ended = {(where[0], node) for (where, node), (_, end) in log.ops.items() if end <= now}
        return all((replica, node) in ended for replica in range(self.replicas) for node in nodes)

    def _start_ring(self, log: Log, now: Fraction, stage: int, on_this_device: list[int]) -> bool:
        every = [node for order in self.orders for node in order]
        waits_for = [node for node in every if node[1] == stage] if self.overlap else every
        busy = any(log.rings[other][1] > now for other in on_this_device if other in log.rings)
        if self.replicas == 1 or stage in log.rings or busy or not self._done(log, now, waits_for):
            return False
        log.rings[stage] = (now, now + 2 * (self.replicas - 1) * self.hop)
        return True

    def _start_optimiser(self, log: Log, now: Fraction, rank: Rank, stages: list[int]) -> bool:
        if rank in log.optimisers:
            return False
        every = [node for order in self.orders for node in order if node[1] in stages or not self.overlap]
        rung = all(stage in log.rings and log.rings[stage][1] <= now for stage in stages) or self.replicas == 1
        if not rung or not self._done(log, now, every):
            return False
        log.optimisers[rank] = (now, now + self.optimiser)
        return True
