"""Time a schedule in a second way: longest paths by recursion over operations, in exact fractions.

This code shares nothing with the simulator that it checks: it uses no arrays and no slots. It has its own rules for the inputs of an
operation and for the device of a stage. An operation is written here as the tuple (kind letter, stage, microbatch).
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from types import MappingProxyType
from typing import Any

from hybridlab import Costs, Schedule

Node = tuple[str, int, int]
Orders = Sequence[Sequence[Node]]
Span = tuple[Fraction, Fraction]

DEEPEST = 100_000  # calls within calls: one for each operation of a path


@contextmanager
def deep_calls() -> Iterator[None]:
    """Allow many calls within calls. Afterwards the limit is as before, because other tests count on it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(DEEPEST)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@dataclass(frozen=True)
class Setting:
    """The costs of one setting in plain numbers.

    A time is that of one microbatch on one device, for all chunks of the device together, or that of one microbatch in one stage, if the
    times are ``per`` "stage". With "microbatch", each microbatch has a time. With a pair of words, each device or stage has a row with a
    time for each microbatch. A message takes ``p2p``. If there is a matrix ``between``, a message takes the value in the sender's row and
    the receiver's column instead.
    """

    forward: tuple[Any, ...]
    backward: tuple[Any, ...]
    share: tuple[Any, ...]
    p2p: float
    overlap: float = 0.0
    between: tuple[tuple[float, ...], ...] | None = None
    per: str | tuple[str, str] = "device"

    def costs(self) -> Costs:
        return Costs(
            forward=list(self.forward),
            backward=list(self.backward),
            weight_share=list(self.share),
            overlap=self.overlap,
            per=self.per,
            **({"p2p": self.p2p} if self.between is None else {"p2p_between": self.between}),
        )

    def hop(self, sender: int, receiver: int) -> float:
        """Return the time of a message; it is 0 within one device."""
        if sender == receiver:
            return 0.0
        return self.p2p if self.between is None else self.between[sender][receiver]

    def saved(self, device: int, chunks: int) -> Fraction:
        """Return the time that an overlapped pair saves, compared with running its two operations one after the other."""
        return Fraction(self.overlap) * min(self.duration("F", device, chunks), self.duration("B", device, chunks))

    def duration(self, kind: str, device: int, chunks: int) -> Fraction:
        backward, share = Fraction(self.backward[device]), Fraction(self.share[device])
        parts = {"F": Fraction(self.forward[device]), "B": backward, "I": backward * (1 - share), "W": backward * share}
        return parts[kind] / chunks

    def takes(self, node: Node, device: int, chunks: int) -> Fraction:
        """Return the time of an operation alone."""
        kind, stage, microbatch = node
        if self.per == "device":
            return self.duration(kind, device, chunks)
        if self.per == "stage":
            return self.duration(kind, stage, 1)
        rows = (self.forward, self.backward, self.share)
        if self.per != "microbatch":
            place = stage if "stage" in self.per else device
            rows = tuple(values[place] for values in rows)  # type: ignore[assignment]
        one = Setting(*((values[microbatch],) for values in rows), 0)  # type: ignore[arg-type]
        return one.duration(kind, 0, 1 if "stage" in self.per else chunks)


def uniform(
    devices: int,
    forward: float,
    backward: float,
    share: float = 0.5,
    p2p: float = 0.0,
    overlap: float = 0.0,
    between: tuple[tuple[float, ...], ...] | None = None,
) -> Setting:
    return Setting((forward,) * devices, (backward,) * devices, (share,) * devices, p2p, overlap, between)


def nodes(schedule: Schedule) -> list[list[Node]]:
    return [[(op.kind.value, op.stage, op.microbatch) for op in order] for order in schedule.orders]


def partners(schedule: Schedule) -> dict[Node, Node]:
    """Map each operation of every overlapped pair to the other operation of the pair, read from the schedule's text."""
    found: dict[Node, Node] = {}
    for numbers in re.findall(r"\((\d+)([FB])(\d+);(\d+)([FB])(\d+)\)", str(schedule)):
        stage, kind, microbatch, other_stage, other_kind, other_microbatch = numbers
        one, other = (kind, int(stage), int(microbatch)), (other_kind, int(other_stage), int(other_microbatch))
        found |= {one: other, other: one}
    return found


def inputs(node: Node, stages: int, every: Iterable[Node] | Mapping[Node, object]) -> list[Node]:
    """Return the operations that must end before ``node`` starts.

    These are its own forward or input gradient, and the operation of the neighbour stage.
    """
    kind, stage, microbatch = node
    if kind == "F":
        return [("F", stage - 1, microbatch)] if stage > 0 else []
    if kind == "W":
        return [("I", stage, microbatch)]
    after = [(other, stage + 1, microbatch) for other in "BI"] if stage + 1 < stages else []
    return [("F", stage, microbatch), *(node for node in after if node in every)]


def placement(orders: Orders) -> dict[int, int]:
    return {stage: device for device, order in enumerate(orders) for _, stage, _ in order}


def where(orders: Orders) -> dict[Node, int]:
    """Return the device of every operation."""
    return {node: device for device, order in enumerate(orders) for node in order}


def times(
    orders: Orders, setting: Setting, chunks: int, in_order: bool = True, together: Mapping[Node, Node] = MappingProxyType({})
) -> dict[Node, Span]:
    """Return the start and end of every operation, from the longest path to it.

    A path goes through inputs, messages and the order of operations on a device. Without ``in_order``, every operation has its own device.
    Operations that are ``together`` start and end at the same time.
    """
    device_of = where(orders)
    stages = 1 + max(stage for _, stage, _ in device_of)
    before: dict[Node, Node | None] = {}
    for order in orders:
        for earlier, node in pairwise([None, *order]):
            before[node] = before[earlier] if earlier and together.get(node) == earlier else earlier
    devices = range(len(orders))
    alone = {node: setting.takes(node, device, chunks) for node, device in device_of.items()}
    exact = {
        **alone,
        **{(node, "saved"): Fraction(setting.overlap) * min(alone[node], alone[other]) for node, other in together.items()},
        **{(device, other): Fraction(setting.hop(device, other)) for device in devices for other in devices},
    }
    tick = tick_of(exact.values())
    ticks = {key: int(time / tick) for key, time in exact.items()}
    known: dict[Node, tuple[int, int]] = {}

    def earliest(node: Node) -> int:
        start = 0
        earlier = before[node] if in_order else None
        if earlier is not None:
            start = end(earlier)
        for needed in inputs(node, stages, before):
            start = max(start, end(needed) + ticks[device_of[needed], device_of[node]])
        return start

    def end(node: Node) -> int:
        if node not in known:
            both = [node, together[node]] if node in together else [node]
            start = max(earliest(each) for each in both)
            known[node] = start, start + sum(ticks[each] for each in both) - (ticks[node, "saved"] if len(both) > 1 else 0)
        return known[node][1]

    with deep_calls():
        for node in (node for order in orders for node in order):
            end(node)
    return {node: (start * tick, end * tick) for node, (start, end) in known.items()}


def tick_of(times: Iterable[Fraction]) -> Fraction:
    """Return a unit of time such that all ``times`` are whole multiples of it."""
    return Fraction(1, lcm(*(time.denominator for time in times)))


def can_run(orders: Orders) -> bool:
    """Return whether complete ``orders`` have no cycle of waiting.

    Operations that wait for nothing are removed again and again; the orders can run if nothing is left.
    """
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
    """Return the length of the longest chain of inputs and messages; no order can be faster."""
    return max(end for _, end in times(orders, setting, chunks, in_order=False).values())


def works(orders: Orders, setting: Setting, chunks: int, together: Mapping[Node, Node] = MappingProxyType({})) -> Iterator[Fraction]:
    """Return the work of each device, added up operation by operation; an overlapped pair counts less by the time that it saves."""
    for device, order in enumerate(orders):
        alone = {node: setting.takes(node, device, chunks) for node in order}
        shorter = (min(alone[node], alone[together[node]]) for node in order if node in together)  # each pair twice
        yield sum(alone.values(), Fraction(0)) - Fraction(setting.overlap) * sum(shorter, Fraction(0)) / 2


def peaks(orders: Orders, chunks: int) -> list[Fraction]:
    """Return the most activations that each device holds at once.

    The code goes through the order of each device, and holds an activation from its F to its B or W.
    """
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


# Messages that keep their order: a second simulation, from moment to moment

Doing = tuple[str, tuple[Node, ...], int]  # "run", "send" or "receive"; the operations; the other device, or -1
Lists = list[list[list[Doing]]]  # for each device its entries; the messages of one entry start together


def lists_in_order(orders: Orders, together: Mapping[Node, Node] = MappingProxyType({})) -> Lists:
    """Return the list of each device by the rule of torch: a send and its receive are written down when the operation is."""
    home = where(orders)
    stages = 1 + max(stage for _, stage, _ in home)
    reader = {needed: node for node in home for needed in inputs(node, stages, home) if home[needed] != home[node]}
    left = [[node for node in order if together.get(node, ("X", 0, 0))[0] != "F"] for order in orders]  # a pair stands at its forward
    lists: Lists = [[] for _ in orders]
    written: set[Node] = set()
    while any(left):
        for device, order in enumerate(left):
            turn = (order[0], together[order[0]]) if order and order[0] in together else tuple(order[:1])
            if not turn or not written.issuperset(needed for node in turn for needed in inputs(node, stages, home)):
                continue
            order.pop(0)
            written.update(turn)
            lists[device].append([("run", turn, -1)])
            for node in turn:
                if node in reader:
                    lists[device].append([("send", (node,), home[reader[node]])])
                    lists[home[reader[node]]].append([("receive", (node,), device)])
    return lists


def lists_in_words(lists: Lists) -> list[list[str]]:
    words = {"run": "run {}", "send": "send {} to {}", "receive": "receive {} from {}"}
    return [
        [" and ".join(words[verb].format(f"{ops[0][1]}{ops[0][0]}{ops[0][2]}", peer) for verb, ops, peer in entry) for entry in entries]
        for entries in lists
    ]


def run_lists(
    lists: Lists, setting: Setting, chunks: int, blocking: bool, together: Mapping[Node, Node] = MappingProxyType({})
) -> dict[Node, Span] | None:
    """Return the start and end of every operation, or None if devices wait for ever.

    At each moment, everything starts that can start. Then the clock goes to the next end.
    """
    every = [(device, number, doing) for device, entries in enumerate(lists) for number, entry in enumerate(entries) for doing in entry]
    home = {node: device for device, _, (verb, ops, _) in every if verb == "run" for node in ops}
    stages = 1 + max(stage for _, stage, _ in home)
    ends: dict[tuple[int, Doing], Fraction] = {}  # what has started, and when it ends
    spans: dict[Node, Span] = {}
    now = Fraction(0)

    def over(device: int, doing: Doing) -> bool:
        return ends.get((device, doing), now + 1) <= now

    def all_over(device: int, number: int, verbs: tuple[str, ...]) -> bool:
        return all(over(device, doing) for entry in lists[device][:number] for doing in entry if doing[0] in verbs)

    def next_of_link(device: int, doing: Doing) -> bool:
        line = [each for entry in lists[device] for each in entry if (each[0], each[2]) == (doing[0], doing[2])]
        return all(over(device, each) for each in line[: line.index(doing)])

    def starts(device: int, number: int, doing: Doing) -> bool:
        verb, ops, peer = doing
        if (device, doing) in ends:
            return False
        if verb == "run":
            needed = {each for node in ops for each in inputs(node, stages, home) if home[each] != device}
            arrived = all(over(device, ("receive", (each,), home[each])) for each in needed)
            return arrived and all_over(device, number, ("run", "send", "receive") if blocking else ("run",))
        if verb == "receive":
            return False  # it starts with its send
        other: Doing = ("receive", ops, device)
        place = next(place for place, entry in enumerate(lists[peer]) if other in entry)
        both = ((device, number, doing), (peer, place, other))
        return all(all_over(at, each, ("run", "send", "receive")) and next_of_link(at, one) for at, each, one in both)

    while True:
        able = [each for each in every if starts(*each)]
        for device, _, (verb, ops, peer) in able:
            if verb == "run":
                saved = Fraction(setting.overlap) * min(setting.takes(node, device, chunks) for node in ops) if len(ops) > 1 else 0
                end = now + sum(setting.takes(node, device, chunks) for node in ops) - saved
                spans |= dict.fromkeys(ops, (now, end))
                ends[device, (verb, ops, peer)] = end
            else:
                ends[device, (verb, ops, peer)] = ends[peer, ("receive", ops, device)] = now + Fraction(setting.hop(device, peer))
        later = [end for end in ends.values() if end > now]
        if later and not (able and now in ends.values()):
            now = min(later)
        elif not able:
            return spans if len(ends) == len(every) else None
