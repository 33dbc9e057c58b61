"""Time a hybrid step in a second way: a naive loop over events, one rank at a time, in exact fractions.

Inside the loop, every time is a whole number of ticks. A tick is a unit of time that divides all given times.

This code shares only the texts of a schedule's operations with the library. It uses no arrays. It has its own rules for inputs, for the
ranks of each ring, and for the time at which a ring may start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from oracle import Node, Orders, inputs, tick_of, where

Rank = tuple[int, int]  # replica, device of the pipeline
Time = tuple[Fraction, Fraction]


@dataclass
class Log:
    """The start and the end of everything that ran in the loop."""

    ops: dict[tuple[Rank, Node], Time] = field(default_factory=dict)
    rings: dict[int, Time] = field(default_factory=dict)  # stage -> start and end of its ring
    optimisers: dict[Rank, Time] = field(default_factory=dict)

    @property
    def makespan(self) -> Fraction:
        return max(end for times in (self.ops, self.rings, self.optimisers) for _, end in times.values())


@dataclass
class Step:
    """The setting of a step: the durations of operations, and the times of a hop, a message and the optimiser.

    ``durations[(rank, kind letter)]`` is the time of one chunk's operation. A message takes ``p2p``, or the value of ``between`` for its
    sender and its receiver.

    ``together`` maps each operation of an overlapped pair to the other one. ``saved`` has the time that a pair saves on each rank.
    """

    orders: Orders
    replicas: int
    durations: Mapping[tuple[Rank, str], Fraction | int]
    p2p: Fraction | int
    hop: Fraction | int
    optimiser: Fraction | int
    overlap: bool
    together: Mapping[Node, Node] = field(default_factory=dict)
    saved: Mapping[Rank, Fraction | int] = field(default_factory=dict)
    between: Mapping[tuple[Rank, Rank], Fraction | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.device = where(self.orders)
        self.stages = sorted({stage for _, stage, _ in self.device})
        self.holders = {stage: {self.device[node] for node in self.device if node[1] == stage} for stage in self.stages}
        self.copies = len(self.holders[0])
        self.members = self.replicas * self.copies  # of every ring

    def run(self) -> Log:
        tables = (self.durations, self.saved, self.between)
        single = (self.p2p, self.hop, self.optimiser)
        tick = tick_of([*single, *(time for table in tables for time in table.values())])
        durations, saved, between = ({key: int(time / tick) for key, time in table.items()} for table in tables)
        p2p, hop, optimiser = (int(time / tick) for time in single)
        scaled = replace(self, durations=durations, saved=saved, between=between, p2p=p2p, hop=hop, optimiser=optimiser)
        log = scaled._in_ticks()
        return Log(*({key: (start * tick, end * tick) for key, (start, end) in each.items()} for each in vars(log).values()))

    def _in_ticks(self) -> Log:
        log, now, moved = Log(), 0, True
        while moved:
            while self._start_what_can(log, now):
                pass
            later = [time for time in self._events(log) if time > now]
            moved, now = bool(later), min(later, default=now)
        return log

    def _events(self, log: Log) -> list[int]:
        ends = [end for _, end in log.ops.values()]
        late = {self.p2p, *self.between.values()}
        return (
            ends
            + [end + each for end in ends for each in late]
            + [end for times in (log.rings, log.optimisers) for _, end in times.values()]
        )

    def _start_what_can(self, log: Log, now: int) -> bool:
        ranks = [(replica, device) for replica in range(self.replicas) for device in range(len(self.orders))]
        started = False
        for rank in ranks:
            started |= self._start_turn(log, now, rank)
        if self.members > 1:
            for stage in self.stages:
                started |= self._start_ring(log, now, stage)
        for rank in ranks:
            started |= self._start_optimiser(log, now, rank, [stage for stage in self.stages if rank[1] in self.holders[stage]])
        return started

    def _start_turn(self, log: Log, now: int, rank: Rank) -> bool:
        """Start the next operation of a rank, if the rank is idle and all inputs are there; an overlapped pair starts together."""
        following = next((node for node in self.orders[rank[1]] if (rank, node) not in log.ops), None)
        busy = any(end > now for (there, _), (_, end) in log.ops.items() if there == rank)
        if following is None or busy:
            return False
        turn = [following, self.together[following]] if following in self.together else [following]
        needed = [need for node in turn for need in inputs(node, len(self.stages), self.device)]
        if not all(self._arrived(log, rank, need, now) for need in needed):
            return False
        takes = sum(self.durations[rank, node[0]] for node in turn) - (self.saved[rank] if len(turn) > 1 else 0)
        log.ops |= {(rank, node): (now, now + takes) for node in turn}
        return True

    def _arrived(self, log: Log, rank: Rank, node: Node, now: int) -> bool:
        source = rank[0], self.device[node]
        times = log.ops.get((source, node))
        return times is not None and times[1] + (self.between.get((source, rank), self.p2p) if source != rank else 0) <= now

    def _done(self, log: Log, now: int, nodes: Sequence[Node]) -> bool:
        """Return whether every replica has ended all of ``nodes``."""
        ended = {(there[0], node) for (there, node), (_, end) in log.ops.items() if end <= now}
        return all((replica, node) in ended for replica in range(self.replicas) for node in nodes)

    def _turn_of(self, stage: int) -> tuple[int, int]:
        """Return the key that sorts the rings of the stages.

        The key has the latest position of the stage's operations on any device, then the number of the stage.
        """
        return max(place for order in self.orders for place, node in enumerate(order) if node[1] == stage), stage

    def _start_ring(self, log: Log, now: int, stage: int) -> bool:
        waits_for = [node for node in self.device if node[1] == stage or not self.overlap]
        before = [each for each in self.stages if self.holders[each] & self.holders[stage] and self._turn_of(each) < self._turn_of(stage)]
        free = all(each in log.rings and log.rings[each][1] <= now for each in before)
        if stage in log.rings or not free or not self._done(log, now, waits_for):
            return False
        log.rings[stage] = (now, now + 2 * (self.members - 1) * self.hop)
        return True

    def _start_optimiser(self, log: Log, now: int, rank: Rank, stages: list[int]) -> bool:
        if rank in log.optimisers:
            return False
        rung = all(stage in log.rings and log.rings[stage][1] <= now for stage in stages) or self.members == 1
        if not rung or not self._done(log, now, [node for node in self.device if node[1] in stages or not self.overlap]):
            return False
        log.optimisers[rank] = (now, now + self.copies * self.optimiser)
        return True
