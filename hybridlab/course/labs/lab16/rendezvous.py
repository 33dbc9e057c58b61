"""The coding task ("build") of lab 16, lists of actions: judge, clock, cases, known mistakes, examples and changed tasks ("twists").

An action runs an operation, sends its output, or receives an input. A send waits until the other rank receives, and a receive waits until
the other rank sends. Messages that are joined in one entry of a list start together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from typing import Any

import numpy as np

from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Unordered, plain_values
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.maps import REVERSED, Map, like, of_value, one_way, refuse, shifted
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab07.executors import lines_of_schedule, order_by_chance
from hybridlab.errors import Deadlock, HybridLabError
from hybridlab.schedule import Action, Schedule, inputs_from_others, read_actions, written_actions
from hybridlab.schedule.actions import AND
from hybridlab.schedules import REGISTRY
from hybridlab.simulation import durations
from hybridlab.timeline import Timeline

Entry = tuple[Action, ...]  # an action, or messages that start together
Plans = list[list[Entry]]  # for each rank, the entries of its list
Fault = tuple[str, str]  # the code of a fault, and the sentence for the student
MOST_NAMED = 4  # a sentence about a circle names at most this number of ranks
WAITS = {"send": "until rank {peer} receives it", "receive": "until rank {peer} sends it"}


def of_every_rank(call: Callable[..., Any], orders: list[str], needs: dict[str, str]) -> list[Any]:
    """Return the results of the student's function for all ranks, in a list."""
    return [call(orders, needs, rank) for rank in range(len(orders))]


def read_plans(result: Any) -> Plans:
    """Return the list of actions of each rank. Raise an error if a result is not a list of actions."""
    return [_read_plan(rank, plan) for rank, plan in enumerate(result)]


def _read_plan(rank: int, plan: Any) -> list[Entry]:
    if plan is None:
        raise HybridLabError(f"for rank {rank} the function returns None: does it end in return?", "returns-nothing")
    values = plain_values(plan)
    if not isinstance(values, list) or isinstance(values, Unordered):
        wanted = "the function returns the list of actions of one rank, such as ['run 0F0', 'send 0F0 to 1']"
        raise HybridLabError(f"{wanted}, not {short_repr(plan)}", "not-a-list")
    return [read_actions(value) for value in values]


def judge_plans(plans: Plans, orders: list[str], needs: dict[str, str]) -> Feedback:
    """Return the feedback on the lists of all ranks for one order.

    First each list is checked alone. Then all lists are simulated together, with 1 ms for each operation.
    """
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
    late = f"{first} starts at {clock.starts[first]:g} ms, but it could start at {alone[first]:g} ms; {clock.reason(first)}"
    return wrong("longer", f"no rank waits for ever, but with 1 ms for each operation the step takes {takes:g} ms, not {own:g} ms: {late}")


def starts_alone(lines: Sequence[Sequence[str]], needs: Mapping[str, str]) -> dict[str, float]:
    """Return the start of each operation in ms if messages take no time and no send waits. Every operation takes 1 ms.

    >>> starts_alone([["0F0", "0B0"], ["1F0", "1B0"]], {"1F0": "0F0", "0B0": "1B0"})
    {'0F0': 0.0, '1F0': 1.0, '1B0': 2.0, '0B0': 3.0}
    """
    starts: dict[str, float] = {}
    free, left = [0.0] * len(lines), [list(line) for line in lines]
    while any(left):
        able = [rank for rank, line in enumerate(left) if line and needs.get(line[0], "") in ("", *starts)]
        if not able:
            raise Deadlock("these orders cannot run", "deadlock")
        for rank in able:
            op = left[rank].pop(0)
            starts[op] = max(free[rank], starts[needs[op]] + 1 if op in needs else 0.0)
            free[rank] = starts[op] + 1
    return starts


def on_a_clock(schedule: Schedule, actions_of: Callable[..., Any], costs: Costs) -> Timeline:
    r"""Return the timeline of a step in which each rank follows its list of actions. A send waits for its receiver. Messages take no time.

    Parameters
    ----------
    schedule : Schedule
        The operations of each device.
    actions_of : callable
        ``actions_of(orders, needs, rank)`` returns the actions of a rank, as the function of the student does.
    costs : Costs
        The times of the operations.

    Raises
    ------
    Deadlock
        Ranks wait for each other for ever. The error names them.
    HybridLabError
        The list of a rank has a fault, such as an operation that it leaves out.

    Examples
    --------
    >>> on_a_clock(Schedule.parse("0F0 0B0\n1F0 1B0"), in_rounds, Costs(forward=10, backward=20)).makespan
    60.0
    """
    orders, needs = [" ".join(map(str, order)) for order in schedule.orders], inputs_from_others(schedule)
    plans = read_plans(of_every_rank(actions_of, orders, needs))
    fault = _fault_of_lists(plans, [line.split() for line in orders], needs)
    if fault is not None:
        raise HybridLabError(fault[1], fault[0])
    takes = dict(zip(map(str, schedule.ops), durations(schedule, costs).tolist(), strict=True))
    clock = Clock(plans, takes)
    clock.run()
    if clock.stuck:
        raise Deadlock(clock.circle(), "deadlock")
    return Timeline.from_times(schedule, {op: (start, start + takes[op]) for op, start in clock.starts.items()}, costs.unit)


def last_entries(plans: Plans) -> list[Entry]:
    """Return for each rank the entry at which the rank waits for ever. For a rank that does not wait, return its last entry."""
    clock = Clock(plans)
    clock.run()
    return [clock.standing(rank) for rank in range(len(plans))]


@dataclass
class Clock:
    """A simulation of the lists of all ranks. Messages take no time.

    A send waits until the other rank receives, and a receive waits until the other rank sends. The messages of one entry start together.
    A rank goes on when all messages of the entry have ended. A send and a receive belong together by the name of the operation, as they do
    by a tag in MPI. NCCL has no names: it pairs the messages between two ranks in their order.

    Parameters
    ----------
    plans : list of list of tuple of Action
        The entries of each rank's list.
    takes : mapping
        The time of each operation in ms. An operation that is not in it takes 1 ms.
    starts : dict
        The start of each operation in ms.
    stuck : list of int
        The ranks that wait for ever.
    waits : dict
        For each rank, the entries at which it has waited, each with the time in ms when the wait ended.
    """

    plans: Plans
    takes: Mapping[str, float] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)
    stuck: list[int] = field(default_factory=list)
    waits: dict[int, list[tuple[Entry, float]]] = field(default_factory=dict)

    def run(self) -> None:
        """Run the lists until all lists end, or until each rank with further actions waits."""
        self._now, self._at = [0.0] * len(self.plans), [0] * len(self.plans)
        self._ended: list[dict[Action, float]] = [{} for _ in self.plans]  # of each rank's entry, the messages that have ended, and when
        self.waits = {rank: [] for rank in range(len(self.plans))}
        moved = True
        while moved:
            moved = any(self._go_on(rank) for rank in range(len(self.plans)))
        self.stuck = [rank for rank, plan in enumerate(self.plans) if self._at[rank] < len(plan)]

    def _go_on(self, rank: int) -> bool:
        """Go through the entries of a rank until the rank waits or its list ends. Return whether an entry or a message has ended."""
        moved = False
        while entry := self._entry(rank):
            if entry[0].verb == "run":
                self.starts[entry[0].op] = self._now[rank]
                self._now[rank] += self.takes.get(entry[0].op, 1.0)
            else:
                met = [self._meets(rank, action) for action in self._left(rank)]
                moved = moved or any(met)
                if not all(met):
                    break
                self._wait(rank, entry)
            self._at[rank] += 1
            moved = True
        return moved

    def _entry(self, rank: int) -> Entry:
        """Return the entry to which a rank has come. Return an empty entry at the end of its list."""
        plan = self.plans[rank]
        return plan[self._at[rank]] if self._at[rank] < len(plan) else ()

    def _left(self, rank: int) -> list[Action]:
        """Return the messages of a rank's entry that have not ended."""
        return [action for action in self._entry(rank) if action not in self._ended[rank]]

    def _meets(self, rank: int, action: Action) -> bool:
        """Return whether both ranks of a message have come to the message. If so, it ends for both when the later one has come."""
        same = Action("receive" if action.verb == "send" else "send", action.op, rank)
        if same not in self._left(action.peer):
            return False
        met = max(self._now[rank], self._now[action.peer])
        self._ended[rank][action] = self._ended[action.peer][same] = met
        return True

    def _wait(self, rank: int, entry: Entry) -> None:
        """Let a rank wait until the last message of its entry has ended."""
        until = max(self._ended[rank].values())
        if self._now[rank] < until:
            self.waits[rank].append((entry, until))
        self._now[rank] = until
        self._ended[rank].clear()

    def standing(self, rank: int) -> Entry:
        """Return the entry at which a rank waits for ever. For a rank that does not wait, return its last entry."""
        return self.plans[rank][min(self._at[rank], len(self.plans[rank]) - 1)]

    def circle(self) -> str:
        """Return a sentence that names the ranks that wait for each other in a circle, and the message that each waits for."""
        rank, seen = self.stuck[0], list[int]()
        while rank not in seen:
            seen.append(rank)
            rank = self._left(rank)[0].peer
        circle = seen[seen.index(rank) :]
        parts = []
        for each in circle[:MOST_NAMED]:
            action = self._left(each)[0]
            parts.append(f"rank {each} waits at '{action}' {WAITS[action.verb].format(peer=action.peer)}")
        more = len(circle) - MOST_NAMED
        return "; ".join(parts) + (f"; {counted(more, 'more rank')} in the circle" if more > 0 else "")

    def reason(self, op: str) -> str:
        """Return a sentence about the last wait of a rank before its late operation ``op``."""
        rank = next(rank for rank, plan in enumerate(self.plans) if (Action("run", op),) in plan)
        entry, until = max((wait for wait in self.waits[rank] if wait[1] <= self.starts[op]), key=lambda wait: wait[1])
        return f"before this operation, rank {rank} waits at '{written_actions(entry)}' until {until:g} ms"


def _fault_of_lists(plans: Plans, lines: list[list[str]], needs: Mapping[str, str]) -> Fault | None:
    """Return the first fault of a single list, or None if no list has a fault.

    A list has no fault if its rank runs the operations of its line in order, and sends and receives each message once.
    """
    home = {op: rank for rank, line in enumerate(lines) for op in line}
    reader = {source: op for op, source in needs.items()}
    for rank, plan in enumerate(plans):
        left, done = list(lines[rank]), set[Action]()
        for action in chain.from_iterable(plan):
            if action.op not in home:
                return "unknown-operation", f"rank {rank} has the action '{action}', but no line of `orders` has an operation {action.op}"
            check = {"run": _fault_of_run, "send": _fault_of_send, "receive": _fault_of_receive}[action.verb]
            fault = check(action, _Place(rank, left, done, home, needs, reader))
            if fault is not None:
                return fault
            if action.verb == "run":
                left.pop(0)
            done.add(action)
        if left:
            return "missing-operation", f"rank {rank} never runs {left[0]}: its list must run all operations of its line"
        for op in lines[rank]:
            if op in reader and not any(each.verb == "send" and each.op == op for each in done):
                return "not-sent", f"rank {rank} never sends {op}, but rank {home[reader[op]]} needs it for {reader[op]}"
    return None


@dataclass(frozen=True)
class _Place:
    """The state of a rank at one action of its list.

    Parameters
    ----------
    rank : int
    left : list of str
        The operations of its line that it has not run yet.
    done : set of Action
        The actions before this one.
    home : mapping
        The rank of each operation.
    needs : mapping
        For an operation, the operation on another rank whose output it needs.
    reader : mapping
        For an operation, the operation on another rank that needs its output.
    """

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
        return "before-its-input", f"rank {rank} runs {op} before it receives {at.needs[op]}, which {op} needs"
    return None


def _fault_of_send(action: Action, at: _Place) -> Fault | None:
    rank, op = at.rank, action.op
    if at.home[op] != rank:
        return "not-its-output", f"rank {rank} sends {op}, but rank {at.home[op]} makes it"
    if op not in at.reader:
        return "nobody-needs-it", f"rank {rank} sends {op}, but no other rank needs its output"
    to = at.home[at.reader[op]]
    if action.peer != to:
        return (
            "wrong-receiver",
            f"rank {rank} sends {op} to {action.peer}, but {at.reader[op]} needs it, and {at.reader[op]} is on rank {to}",
        )
    if not at.has("run", op):
        return "not-made-yet", f"rank {rank} sends {op} before it runs {op}"
    if at.has("send", op):
        return "sent-twice", f"rank {rank} sends {op} twice: the other rank receives it once, so send it once"
    return None


def _fault_of_receive(action: Action, at: _Place) -> Fault | None:
    rank, op = at.rank, action.op
    if op not in at.reader or at.home[at.reader[op]] != rank:
        return "not-its-input", f"rank {rank} receives {op}, but none of its operations needs {op} from another rank"
    if action.peer != at.home[op]:
        return "wrong-sender", f"rank {rank} receives {op} from {action.peer}, but rank {at.home[op]} makes it"
    if at.has("receive", op):
        return "received-twice", f"rank {rank} receives {op} twice: the other rank sends it once, so receive it once"
    return None


SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3)]  # devices and microbatches
DRAWN = 15  # the number of further random orders; their sizes are random, too
# Further schedules, with multiples of the devices as microbatches. Each has random sizes.
OTHERS = ("gpipe", "1f1b", "eager-1f1b", "zb-h1", "interleaved", "hanayo", "zb-v", "looped-bfs")
# Orders that cannot run, by their name in the feedback, with the arguments ``orders`` and ``needs``
CANNOT_RUN = {
    "2 lines that wait for each other": (["0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"], {"1F0": "0F0", "1F1": "0F1", "0B0": "1B0", "0B1": "1B1"}),
    "the lines ['0B0 0F0', '1F0 1B0']": (["0B0 0F0", "1F0 1B0"], {"1F0": "0F0", "0B0": "1B0"}),
}
Rule = Callable[["Rounds"], None]


def orders_to_connect(rng: np.random.Generator) -> Iterator[Case]:
    """Yield orders that can run, small ones first, and then two orders that cannot run."""
    cases = []
    for devices, microbatches in SIZES:
        names = ["gpipe", "1f1b"] if microbatches > 1 else ["1f1b"]  # with one microbatch both are the same
        cases += [_scheduled(name, devices, microbatches) for name in names]
    sizes = [size for size in SIZES if min(size) > 1] + [(int(rng.integers(2, 6)), int(rng.integers(2, 9))) for _ in range(DRAWN)]
    sizes.append((2, int(rng.integers(11, 14))))  # some microbatches have numbers of two digits
    for devices, microbatches in sizes:
        size = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
        cases.append(_connected(f"a random order with {size}", order_by_chance(rng, devices, microbatches)))
    for name in OTHERS:
        devices = int(rng.integers(2, 6))
        cases.append(_scheduled(name, devices, devices * int(rng.integers(1, 4))))
    yield from sorted(cases, key=lambda case: sum(len(line.split()) for line in case.arguments[0]))
    for words, arguments in CANNOT_RUN.items():
        yield Case(arguments, words, refused=True, run=of_every_rank)


def _scheduled(name: str, devices: int, microbatches: int) -> Case:
    words = f"{REGISTRY[name].title} with {counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
    return _connected(words, lines_of_schedule(name, devices, microbatches))


def _connected(words: str, lines: list[str]) -> Case:
    return Case((lines, inputs_from_others(Schedule.parse(lines))), words, run=of_every_rank)


class Rounds:
    """The lists of actions that a program writes round by round. The programs with known mistakes use this class.

    In each round, every rank whose next operation has its input gets further actions.

    Parameters
    ----------
    orders, needs
        The arguments of the student's function.
    """

    def __init__(self, orders: list[str], needs: Mapping[str, str]) -> None:
        self.left = [line.split() for line in orders]
        self.home = {op: rank for rank, line in enumerate(self.left) for op in line}
        self.needs, self.reader = needs, {source: op for op, source in needs.items()}
        self.plans: list[list[str]] = [[] for _ in orders]
        self.ran: set[str] = set()

    def able(self) -> list[str]:
        """Return the operations that can run in the next round: the next operation of each rank whose next input has been computed."""
        able = [line[0] for line in self.left if line and (line[0] not in self.needs or self.needs[line[0]] in self.ran)]
        if not able:
            raise Deadlock("these orders cannot run", "deadlock")
        return able

    def run(self, op: str) -> None:
        """Add an operation to the list of its rank."""
        self.plans[self.home[op]].append(f"run {op}")
        self.left[self.home[op]].remove(op)
        self.ran.add(op)

    def send(self, op: str) -> None:
        """Add the send of the output of ``op`` to the list of its rank, if another rank needs this output."""
        if op in self.reader:
            self.plans[self.home[op]].append(f"send {op} to {self.home[self.reader[op]]}")

    def receive(self, op: str) -> None:
        """Add the receive of the input of ``op`` to the list of its rank, if this input comes from another rank."""
        if op in self.needs:
            self.plans[self.home[op]].append(f"receive {self.needs[op]} from {self.home[self.needs[op]]}")

    def both(self, op: str) -> None:
        """Add the message with the input of ``op`` to both lists: the send on one rank, the receive on the other."""
        self.send(self.needs.get(op, ""))
        self.receive(op)

    def join(self, rank: int) -> None:
        """Join the messages between two operations in the list of a rank, so that they start together."""
        parts = groupby(self.plans[rank], key=lambda text: text.startswith("run "))
        self.plans[rank] = [text for runs, part in parts for text in (part if runs else [AND.join(part)])]


def _by_rounds(rule: Rule) -> Callable[..., Any]:
    """Return a program that applies a rule in each round until all operations are in the lists."""

    def result(orders: list[str], needs: dict[str, str]) -> list[list[str]]:
        rounds = Rounds(orders, needs)
        while any(rounds.left):
            rule(rounds)
        return rounds.plans

    return result


def _of_each_rank(rule: Callable[[Rounds, list[str]], None], orders: list[str], needs: dict[str, str]) -> list[list[str]]:
    """Return the lists of a program that looks only at the line of a rank when it writes the list of this rank."""
    rounds = Rounds(orders, needs)
    for line in [list(line) for line in rounds.left]:
        rule(rounds, line)
    return rounds.plans


def as_it_comes(orders: list[str], needs: dict[str, str]) -> list[list[str]]:
    """Return the actions of all ranks if each rank follows its own line: receive the input, run, send the output."""
    return _of_each_rank(_by_its_own_line, orders, needs)


def _by_its_own_line(rounds: Rounds, line: list[str]) -> None:
    for op in line:
        rounds.receive(op)
        rounds.run(op)
        rounds.send(op)


def _receives_ahead(rounds: Rounds, line: list[str]) -> None:
    """Add the actions of one line, with each receive ahead: the next input is received before the last output is sent."""
    for place, op in enumerate(line):
        if not place:
            rounds.receive(op)
        rounds.run(op)
        for after in line[place + 1 : place + 2]:
            rounds.receive(after)
        rounds.send(op)


def _by_even_and_odd(rounds: Rounds, line: list[str]) -> None:
    (_receives_ahead if line and rounds.home[line[0]] % 2 else _by_its_own_line)(rounds, line)


def _joins_by_its_own_line(rounds: Rounds, line: list[str]) -> None:
    """Add the actions of one line. Each send starts together with the next receive."""
    _by_its_own_line(rounds, line)
    for rank in {rounds.home[op] for op in line}:
        rounds.join(rank)


def _sends_at_the_end(rounds: Rounds, line: list[str]) -> None:
    for op in line:
        rounds.receive(op)
        rounds.run(op)
    for op in line:
        rounds.send(op)


def _without_messages(rounds: Rounds, line: list[str]) -> None:
    for op in line:
        rounds.run(op)


def _one_way(rounds: Rounds, line: list[str]) -> None:
    for op in line:
        if "F" in op:
            rounds.receive(op)
        rounds.run(op)
        if "F" in op:
            rounds.send(op)


def _one_at_a_time(rounds: Rounds) -> None:
    op = rounds.able()[0]
    rounds.both(op)
    rounds.run(op)


def _sends_first(rounds: Rounds) -> None:
    able = rounds.able()
    for op in able:
        rounds.send(rounds.needs.get(op, ""))
    for op in able:
        rounds.receive(op)
    for op in able:
        rounds.run(op)


def _runs_first(rounds: Rounds) -> None:
    able = rounds.able()
    for op in able:
        rounds.run(op)
    for op in able:
        rounds.both(op)


def _messages_first(rounds: Rounds) -> None:
    able = rounds.able()
    for op in able:
        rounds.both(op)
    for op in able:
        rounds.run(op)


def in_rounds(orders: list[str], needs: dict[str, str], rank: int) -> list[str]:
    """Return the actions of one rank in a right program: in each round, first all messages in one common order, then the operations.

    >>> in_rounds(["0F0 0B0", "1F0 1B0"], {"1F0": "0F0", "0B0": "1B0"}, 0)
    ['run 0F0', 'send 0F0 to 1', 'receive 1B0 from 1', 'run 0B0']
    """
    return list(_by_rounds(_messages_first)(orders, needs)[rank])


def _per_operation(rounds: Rounds) -> None:
    for op in rounds.able():
        rounds.both(op)
        rounds.run(op)


MISTAKES = (
    KnownMistake(
        "as-it-comes",
        "each rank receives, runs and sends in the order of its own line: two neighbours that send to each other wait for ever",
        as_it_comes,
    ),
    KnownMistake(
        "receives-ahead",
        "in your lists each rank waits for its next input before it sends its output: then no rank sends",
        partial(_of_each_rank, _receives_ahead),
    ),
    KnownMistake(
        "even-and-odd",
        "even ranks send first and odd ranks receive first: this order helps in a ring, but here two neighbours can be in different phases",
        partial(_of_each_rank, _by_even_and_odd),
        under={
            "ranks-from-1": "odd ranks send first and even ranks receive first: this order helps in a ring, but here two neighbours can be "
            "in different phases"
        },
    ),
    KnownMistake(
        "joins-by-its-own-line",
        "each rank joins its send with its next receive, but looks only at its own line: where the other rank receives later, the sender "
        "still waits and does not run its next operation",
        partial(_of_each_rank, _joins_by_its_own_line),
    ),
    KnownMistake(
        "sends-at-the-end",
        "your ranks send all outputs at the end, but other ranks need them earlier",
        partial(_of_each_rank, _sends_at_the_end),
    ),
    KnownMistake("no-messages", "your ranks run their lines, but no rank sends or receives", partial(_of_each_rank, _without_messages)),
    KnownMistake(
        "one-way",
        "your ranks send only the outputs of forwards: the outputs of backwards are messages, too",
        partial(_of_each_rank, _one_way),
    ),
    KnownMistake(
        "one-at-a-time",
        "your lists run one operation after the other: operations of several ranks belong to the same round",
        _by_rounds(_one_at_a_time),
    ),
    KnownMistake(
        "sends-first",
        "in your rounds all ranks send before they receive: put a message into both lists before the next message, or join the messages "
        "of the round",
        _by_rounds(_sends_first),
    ),
    KnownMistake(
        "runs-first",
        "in your rounds operations run before their messages arrive: put all messages of the round before its operations",
        _by_rounds(_runs_first),
    ),
    KnownMistake(
        "operation-by-operation",
        "in your rounds each message comes just before its operation, so a rank that runs an operation first sends late: "
        "put all messages of the round first, then its operations",
        _by_rounds(_per_operation),
    ),
)


# A function that changes a message. It takes the message and the arguments of the student's function.
Change = Callable[[Action, tuple[Any, ...]], Action]


def _with_entries(plan: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(plan, (list, tuple)):
        refuse(plan, "a list of actions")
    return like(plan, [change(entry) for entry in plan])


def _of_messages(apply: Change, undo: Change) -> Map:
    """Return the map that applies ``apply`` to each message in a list of actions, and ``undo`` in the other direction."""

    def changed(entry: Any, change: Change, case: tuple[Any, ...]) -> Any:
        try:
            actions = read_actions(entry)
        except HybridLabError:
            return entry  # the judge reports entries that are not actions
        return entry if actions[0].verb == "run" else written_actions(change(action, case) for action in actions)

    return Map(
        lambda plan, case: _with_entries(plan, lambda entry: changed(entry, apply, case)),
        lambda plan, case: _with_entries(plan, lambda entry: changed(entry, undo, case)),
    )


def _readers(needs: Mapping[str, str]) -> dict[str, str]:
    """Return for each operation the operation on another rank that needs its output."""
    return {source: op for op, source in needs.items()}


def _named_by_source(action: Action, case: tuple[Any, ...]) -> Action:
    if action.op not in case[1]:
        refuse(str(action), "messages with the name of the operation that needs them")
    return action._replace(op=case[1][action.op])


def _from_0(action: Action, case: tuple[Any, ...]) -> Action:
    if not action.peer:
        refuse(str(action), "ranks that are counted from 1")
    return action._replace(peer=action.peer - 1)


def _as_tuple(text: str) -> tuple[Any, ...]:
    tuples = tuple(action[:2] if action.verb == "run" else tuple(action) for action in read_actions(text))
    return tuples if len(tuples) > 1 else tuples[0]


def _as_text(entry: Any) -> str:
    if isinstance(entry, (list, tuple)) and entry and all(isinstance(part, (list, tuple)) for part in entry):
        return AND.join(map(_action_as_text, entry))
    return _action_as_text(entry)


def _action_as_text(entry: Any) -> str:
    lengths = {"run": 2, "send": 3, "receive": 3}
    if not isinstance(entry, (list, tuple)) or not entry or len(entry) != lengths.get(str(entry[0])):
        refuse(entry, "tuples such as ('run', '1F0') and ('send', '0F0', 1)")
    return str(Action(*entry))


EXAMPLES = (
    Example((["0F0 0B0", "1F0 1B0"], {"1F0": "0F0", "0B0": "1B0"}, 1), ["receive 0F0 from 0", "run 1F0", "run 1B0", "send 1B0 to 0"]),
)
TWISTS = (
    Twist(
        "last-rank-first",
        "the lines of `orders` go from the last rank to the first: the first line belongs to the last rank",
        given={0: REVERSED},
    ),
    Twist(
        "who-needs-it",
        "`needs` is turned round: for an operation it gives the operation on another rank that needs its output",
        given={1: one_way(_readers)},
        about="needs",
    ),
    Twist(
        "ranks-from-1",
        "ranks are counted from 1, in the argument `rank` and in messages",
        given={2: shifted(1)},
        result=_of_messages(lambda action, case: action._replace(peer=action.peer + 1), _from_0),
        about="ranks",
    ),
    Twist(
        "named-by-reader",
        "a message has the name of the operation that needs it: 1F0 for the output of 0F0",
        result=_of_messages(lambda action, case: action._replace(op=_readers(case[1])[action.op]), _named_by_source),
        about="needs",
    ),
    Twist(
        "distances",
        "the number in a message says how many ranks further on the other rank is, and rank 0 follows the last one: of 3 ranks, rank 2 "
        "sends to rank 1 with the number 2",
        result=_of_messages(
            lambda action, case: action._replace(peer=(action.peer - case[2]) % len(case[0])),
            lambda action, case: action._replace(peer=(action.peer + case[2]) % len(case[0])),
        ),
        about="ranks",
    ),
    Twist(
        "tuples",
        "an action is a tuple: `('run', operation)`, `('send', operation, number)` or `('receive', operation, number)`; joined messages "
        "are a tuple of such tuples",
        result=of_value(lambda plan: _with_entries(plan, _as_tuple), lambda plan: _with_entries(plan, _as_text)),
    ),
)
