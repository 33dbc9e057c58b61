"""The judge of lab 16's build: lists of actions in which a send waits until its receiver takes the message, checked and run on a clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybridlab.checks import counted, short_repr
from hybridlab.course.tasks.answers import Unordered, plain_values
from hybridlab.course.tasks.checking import Feedback, right, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Action, read_action

Plans = list[list[Action]]  # the actions of each rank
Fault = tuple[str, str]  # a code and a sentence
MOST_NAMED = 4  # ranks of a circle in a sentence
WAITS = {"send": "until rank {peer} receives it", "receive": "until rank {peer} sends it"}


def of_every_rank(call: Callable[..., Any], orders: list[str], needs: dict[str, str]) -> list[Any]:
    """Return what a function returns for each rank."""
    return [call(orders, needs, rank) for rank in range(len(orders))]


def read_plans(result: Any) -> Plans:
    """Return the actions of each rank, or raise an error if something else was returned."""
    return [_read_plan(rank, plan) for rank, plan in enumerate(result)]


def _read_plan(rank: int, plan: Any) -> list[Action]:
    if plan is None:
        raise HybridLabError(f"for rank {rank} the function returns None: does it end in return?", "returns-nothing")
    values = plain_values(plan)
    if not isinstance(values, list) or isinstance(values, Unordered):
        wanted = "the function returns the list of actions of one rank, such as ['run 0F0', 'send 0F0 to 1']"
        raise HybridLabError(f"{wanted}, not {short_repr(plan)}", "not-a-list")
    return [read_action(value) for value in values]


def judge_plans(plans: Plans, orders: list[str], needs: dict[str, str]) -> Feedback:
    """Judge the actions of all ranks for one order: first each list alone, then all lists together on a clock of 1 ms an operation."""
    lines = [line.split() for line in orders]
    fault = _fault_of_lists(plans, lines, needs)
    if fault is not None:
        return wrong(*fault)
    clock = Clock(plans)
    clock.run()
    if clock.stuck:
        return wrong("deadlock", f"deadlock: {clock.circle()}")
    alone = starts_alone(lines, needs)
    own, takes = 1 + max(alone.values()), 1 + max(clock.starts.values())
    if takes == own:
        return right()
    first = min((op for op in alone if clock.starts[op] > alone[op]), key=lambda op: (clock.starts[op], op))
    late = f"{first} starts at {clock.starts[first]:g} ms and could start at {alone[first]:g} ms; {clock.reason(first)}"
    return wrong("longer", f"nobody waits for ever, but with 1 ms for each operation the step takes {takes:g} ms, not {own:g} ms: {late}")


def starts_alone(lines: Sequence[Sequence[str]], needs: Mapping[str, str]) -> dict[str, float]:
    """Return when each operation starts if messages need no time and nobody waits to send; every operation takes 1 ms.

    >>> starts_alone([["0F0", "0B0"], ["1F0", "1B0"]], {"1F0": "0F0", "0B0": "1B0"})
    {'0F0': 0.0, '1F0': 1.0, '1B0': 2.0, '0B0': 3.0}
    """
    starts: dict[str, float] = {}
    free, left = [0.0] * len(lines), [list(line) for line in lines]
    while any(left):
        able = [rank for rank, line in enumerate(left) if line and needs.get(line[0], "") in ("", *starts)]
        if not able:
            raise HybridLabError("these orders cannot run", "deadlock")
        for rank in able:
            op = left[rank].pop(0)
            starts[op] = max(free[rank], starts[needs[op]] + 1 if op in needs else 0.0)
            free[rank] = starts[op] + 1
    return starts


def last_actions(plans: Plans) -> list[Action]:
    """Return the action at which each rank stands in the end."""
    clock = Clock(plans)
    clock.run()
    return [clock.standing(rank) for rank in range(len(plans))]


@dataclass
class Clock:
    """A run of all lists, in which messages need no time, but a send waits for its receiver, and a receive for its sender.

    ``starts`` has the start of each operation in ms, ``stuck`` the ranks that wait for ever, and ``waits`` for each rank the actions at
    which it has waited, each with the time at which the wait ended.
    """

    plans: Plans
    starts: dict[str, float] = field(default_factory=dict)
    stuck: list[int] = field(default_factory=list)
    waits: dict[int, list[tuple[Action, float]]] = field(default_factory=dict)

    def run(self) -> None:
        """Run the lists until they end, or until all ranks that are left wait."""
        self._now, self._at = [0.0] * len(self.plans), [0] * len(self.plans)
        self.waits = {rank: [] for rank in range(len(self.plans))}
        moved = True
        while moved:
            moved = any(self._go_on(rank) for rank in range(len(self.plans)))
        self.stuck = [rank for rank, plan in enumerate(self.plans) if self._at[rank] < len(plan)]

    def _go_on(self, rank: int) -> bool:
        """Run the actions of a rank until it waits; return whether it ran any."""
        before = self._at[rank]
        while (action := self._next(rank)) is not None:
            if action.verb == "run":
                self.starts[action.op] = self._now[rank]
                self._now[rank] += 1
            elif not self._meets(rank, action):
                break
            else:
                self._at[action.peer] += 1
            self._at[rank] += 1
        return self._at[rank] > before

    def _next(self, rank: int) -> Action | None:
        plan = self.plans[rank]
        return plan[self._at[rank]] if self._at[rank] < len(plan) else None

    def _meets(self, rank: int, action: Action) -> bool:
        """Return whether the other rank of a message is ready for it now; both then go on at the same time."""
        verb = "receive" if action.verb == "send" else "send"
        if self._next(action.peer) != Action(verb, action.op, rank):
            return False
        met = max(self._now[rank], self._now[action.peer])
        for each, done in ((rank, action), (action.peer, Action(verb, action.op, rank))):
            if self._now[each] < met:
                self.waits[each].append((done, met))
            self._now[each] = met
        return True

    def standing(self, rank: int) -> Action:
        """Return the action at which a rank waits for ever, or its last one."""
        return self.plans[rank][min(self._at[rank], len(self.plans[rank]) - 1)]

    def circle(self) -> str:
        """Return a sentence about ranks that wait for each other in a circle."""
        rank, seen = self.stuck[0], list[int]()
        while rank not in seen:
            seen.append(rank)
            rank = self.standing(rank).peer
        circle = seen[seen.index(rank) :]
        parts = []
        for each in circle[:MOST_NAMED]:
            action = self.standing(each)
            parts.append(f"rank {each} waits at '{action}' {WAITS[action.verb].format(peer=action.peer)}")
        more = len(circle) - MOST_NAMED
        return "; ".join(parts) + (f"; {counted(more, 'more rank')} in the circle" if more > 0 else "")

    def reason(self, op: str) -> str:
        """Return what the rank of a late operation has waited for."""
        rank = next(rank for rank, plan in enumerate(self.plans) if Action("run", op) in plan)
        action, until = max((wait for wait in self.waits[rank] if wait[1] <= self.starts[op]), key=lambda wait: wait[1])
        return f"before it rank {rank} waits at '{action}' until {until:g} ms"


def _fault_of_lists(plans: Plans, lines: list[list[str]], needs: Mapping[str, str]) -> Fault | None:
    """Return what is wrong with the lists before anybody waits; None if each operation runs in its place and each message is there once."""
    home = {op: rank for rank, line in enumerate(lines) for op in line}
    reader = {source: op for op, source in needs.items()}
    for rank, plan in enumerate(plans):
        left, done = list(lines[rank]), set[Action]()
        for action in plan:
            if action.op not in home:
                return "unknown-operation", f"rank {rank} has '{action}', but no line has an operation {action.op}"
            check = {"run": _fault_of_run, "send": _fault_of_send, "receive": _fault_of_receive}[action.verb]
            fault = check(action, _Place(rank, left, done, home, needs, reader))
            if fault is not None:
                return fault
            if action.verb == "run":
                left.pop(0)
            done.add(action)
        if left:
            return "missing-operation", f"rank {rank} never runs {left[0]}: its list goes on to the end of its line"
        for op in lines[rank]:
            if op in reader and not any(each.verb == "send" and each.op == op for each in done):
                return "not-sent", f"rank {rank} never sends {op}, but rank {home[reader[op]]} needs it for {reader[op]}"
    return None


@dataclass(frozen=True)
class _Place:
    """Where a rank stands in its list: what its line still has, what it has done, and what is known about all operations."""

    rank: int
    left: list[str]
    done: set[Action]
    home: Mapping[str, int]
    needs: Mapping[str, str]
    reader: Mapping[str, str]

    def has(self, verb: str, op: str) -> bool:
        return any(each.verb == verb and each.op == op for each in self.done)


def _fault_of_run(action: Action, at: _Place) -> Fault | None:
    rank, op = at.rank, action.op
    if at.home[op] != rank:
        return "another-rank", f"rank {rank} runs {op}, which is in the line of rank {at.home[op]}"
    if not at.left or at.left[0] != op:
        return "another-order", f"rank {rank} runs {op} where its line has {at.left[0] if at.left else 'nothing more'}"
    if op in at.needs and not at.has("receive", at.needs[op]):
        return "before-its-input", f"rank {rank} runs {op}, but it has not received {at.needs[op]} by then"
    return None


def _fault_of_send(action: Action, at: _Place) -> Fault | None:
    rank, op = at.rank, action.op
    if at.home[op] != rank:
        return "not-its-output", f"rank {rank} sends {op}, but rank {at.home[op]} makes it"
    if op not in at.reader:
        return "nobody-needs-it", f"rank {rank} sends {op}, but no other rank needs it"
    to = at.home[at.reader[op]]
    if action.peer != to:
        return "wrong-receiver", f"rank {rank} sends {op} to {action.peer}, but {at.reader[op]}, which needs it, is on rank {to}"
    if not at.has("run", op):
        return "not-made-yet", f"rank {rank} sends {op} before it runs it"
    if at.has("send", op):
        return "sent-twice", f"rank {rank} sends {op} twice: its receiver takes it once"
    return None


def _fault_of_receive(action: Action, at: _Place) -> Fault | None:
    rank, op = at.rank, action.op
    if op not in at.reader or at.home[at.reader[op]] != rank:
        return "not-its-input", f"rank {rank} receives {op}, but none of its operations needs it from another rank"
    if action.peer != at.home[op]:
        return "wrong-sender", f"rank {rank} receives {op} from {action.peer}, but rank {at.home[op]} makes it"
    if at.has("receive", op):
        return "received-twice", f"rank {rank} receives {op} twice: its sender sends it once"
    return None
