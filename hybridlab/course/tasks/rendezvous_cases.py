"""Orders on which a student's lists of actions are tried, and programs with the known mistakes."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.course.tasks.builds import Case, Slip
from hybridlab.course.tasks.executors import lines_of_schedule, order_by_chance
from hybridlab.course.tasks.rendezvous import of_every_rank
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule, inputs_from_others
from hybridlab.schedules import REGISTRY

SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3), (3, 5), (4, 4), (4, 8), (5, 7), (2, 12)]  # devices and microbatches
OTHERS = [("eager-1f1b", 3, 6), ("zb-h1", 3, 5), ("interleaved", 2, 4), ("hanayo", 3, 6), ("zb-v", 3, 6), ("looped-bfs", 3, 3)]
CANNOT_RUN = {
    "2 lines that wait for each other": (["0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"], {"1F0": "0F0", "1F1": "0F1", "0B0": "1B0", "0B1": "1B1"}),
    "the lines ['0B0 0F0', '1F0 1B0']": (["0B0 0F0", "1F0 1B0"], {"1F0": "0F0", "0B0": "1B0"}),
}
Rule = Callable[["Rounds"], None]


def orders_to_connect(rng: np.random.Generator) -> Iterator[Case]:
    """Yield orders that can run, from the smallest up, and then two that cannot."""
    for devices, microbatches in SIZES:
        size = f"{counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
        if microbatches > 1:
            yield _connected(f"GPipe with {size}", lines_of_schedule("gpipe", devices, microbatches))
        yield _connected(f"1F1B with {size}", lines_of_schedule("1f1b", devices, microbatches))
        if devices > 1 and microbatches > 1:
            yield _connected(f"a random order with {size}", order_by_chance(rng, devices, microbatches))
    for name, devices, microbatches in OTHERS:
        words = f"{REGISTRY[name].title} with {counted(devices, 'device')} and {counted(microbatches, 'microbatch')}"
        yield _connected(words, lines_of_schedule(name, devices, microbatches))
    for words, arguments in CANNOT_RUN.items():
        yield Case(arguments, words, refused=True, run=of_every_rank)


def _connected(words: str, lines: list[str]) -> Case:
    return Case((lines, inputs_from_others(Schedule.parse("\n".join(lines)))), words, run=of_every_rank)


class Rounds:
    """Programs with known mistakes: in each round, every rank whose next operation has its input gets its actions.

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
        self.made: set[str] = set()

    def able(self) -> list[str]:
        """Return the operations that can run now."""
        able = [line[0] for line in self.left if line and (line[0] not in self.needs or self.needs[line[0]] in self.made)]
        if not able:
            raise HybridLabError("these orders cannot run", "deadlock")
        return able

    def run(self, op: str) -> None:
        """Add an operation to the list of its rank."""
        self.plans[self.home[op]].append(f"run {op}")
        self.left[self.home[op]].remove(op)
        self.made.add(op)

    def send(self, op: str) -> None:
        """Add that an output is sent, if another rank needs it."""
        if op in self.reader:
            self.plans[self.home[op]].append(f"send {op} to {self.home[self.reader[op]]}")

    def receive(self, op: str) -> None:
        """Add that the output that an operation needs is received, if it comes from another rank."""
        if op in self.needs:
            self.plans[self.home[op]].append(f"receive {self.needs[op]} from {self.home[self.needs[op]]}")

    def both(self, op: str) -> None:
        """Add a message to the lists of both ranks."""
        self.send(self.needs.get(op, ""))
        self.receive(op)


def _by_rounds(rule: Rule) -> Callable[..., Any]:
    """Return a program that follows a rule in each round."""

    def result(orders: list[str], needs: dict[str, str]) -> list[list[str]]:
        rounds = Rounds(orders, needs)
        while any(rounds.left):
            rule(rounds)
        return rounds.plans

    return result


def _of_each_rank(rule: Callable[[Rounds, list[str]], None], orders: list[str], needs: dict[str, str]) -> list[list[str]]:
    """Return what a program does that looks at the line of one rank alone."""
    rounds = Rounds(orders, needs)
    for line in [list(line) for line in rounds.left]:
        rule(rounds, line)
    return rounds.plans


def as_it_comes(orders: list[str], needs: dict[str, str]) -> list[list[str]]:
    """Return the actions of all ranks if each receives, runs and sends by its own line alone."""
    return _of_each_rank(_by_its_own_line, orders, needs)


def _by_its_own_line(rounds: Rounds, line: list[str]) -> None:
    for op in line:
        rounds.receive(op)
        rounds.run(op)
        rounds.send(op)


def _receives_ahead(rounds: Rounds, line: list[str]) -> None:
    """Receive the input of the next operation before the output of the last one is sent."""
    for place, op in enumerate(line):
        if not place:
            rounds.receive(op)
        rounds.run(op)
        for after in line[place + 1 : place + 2]:
            rounds.receive(after)
        rounds.send(op)


def _by_even_and_odd(rounds: Rounds, line: list[str]) -> None:
    (_receives_ahead if line and rounds.home[line[0]] % 2 else _by_its_own_line)(rounds, line)


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


def _per_operation(rounds: Rounds) -> None:
    for op in rounds.able():
        rounds.both(op)
        rounds.run(op)


SLIPS_OF_ACTIONS = (
    Slip(
        "as-it-comes",
        "each rank receives, runs and sends by its own line: two neighbours that send to each other then wait for ever",
        as_it_comes,
    ),
    Slip(
        "receives-ahead",
        "each rank waits for its next input before it sends its output: then nobody sends",
        partial(_of_each_rank, _receives_ahead),
    ),
    Slip(
        "even-and-odd",
        "even ranks send first and odd ranks receive first: this helps in a ring, but here two neighbours can be in different phases",
        partial(_of_each_rank, _by_even_and_odd),
    ),
    Slip(
        "sends-at-the-end",
        "outputs are sent at the end, but others need them before",
        partial(_of_each_rank, _sends_at_the_end),
    ),
    Slip("no-messages", "your ranks run their lines, but nobody sends or receives", partial(_of_each_rank, _without_messages)),
    Slip("one-way", "the outputs of forwards are sent; those of backwards are messages, too", partial(_of_each_rank, _one_way)),
    Slip(
        "one-at-a-time",
        "one operation runs at a time in your common order: operations of several ranks belong to the same round",
        _by_rounds(_one_at_a_time),
    ),
    Slip(
        "sends-first",
        "in a round all ranks send before they receive: put both ends of a message into the two lists before the next message",
        _by_rounds(_sends_first),
    ),
    Slip("runs-first", "in a round operations run before their messages have come", _by_rounds(_runs_first)),
    Slip(
        "operation-by-operation",
        "in a round each message comes just before its operation, so a rank that runs first sends late: "
        "first all messages of the round, then its operations",
        _by_rounds(_per_operation),
    ),
)
