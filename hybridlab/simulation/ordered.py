"""Simulation with messages that keep their order, or block: each device has a list of operations, sends and receives."""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats, readonly
from hybridlab.checks import counted, each_of, known_name, short_repr
from hybridlab.costs import Costs
from hybridlab.errors import Deadlock, HybridLabError, UnsupportedSize
from hybridlab.schedule import Action, Op, Operations, Problem, Schedule, inputs_from_others, read_actions
from hybridlab.schedule.text import is_communication, split_words
from hybridlab.simulation.times import latencies, running_times

MESSAGE = re.compile(r"([0-9]{1,9})(SEND|RECV)_([FB])([0-9]{1,9})")  # a word of torch.distributed.pipelining
MOST_NAMED = 4  # a sentence about a circle names at most this number of devices
WAITS = {"send": "until device {} receives it", "receive": "until device {} sends it"}


def ordered_actions(schedule: Schedule) -> list[list[str]]:
    r"""Return the list of actions of each device, in the order in which ``simulate(..., messages="ordered")`` runs them.

    The order is that of ``_add_send_recv`` in torch.distributed.pipelining. Go through the devices again and again, one operation each.
    If the source of a device's next operation is already in a list, append this operation to the list of the device. Then append the send
    of its output to the same list, and at once the receive to the list of the device that needs the output. So all lists have the messages
    in one common order, and no device waits for ever. The runtime of torch first adds other actions, such as REDUCE_GRAD. With
    several chunks on a device, this can change the order of the last messages of a step.

    Parameters
    ----------
    schedule : Schedule
        A schedule without overlapped pairs.

    Returns
    -------
    list of list of str
        The actions of each device, in the form that :func:`hybridlab.engines.run_actions` reads.

    Raises
    ------
    HybridLabError
        ``schedule`` is not a Schedule, or it has overlapped pairs (``overlapped-pairs``): no text of an action can name a pair.

    Examples
    --------
    >>> for actions in ordered_actions(Schedule.parse("0F0 0B0\n1F0 1B0")):
    ...     print(actions)
    ['run 0F0', 'send 0F0 to 1', 'receive 1B0 from 1', 'run 0B0']
    ['receive 0F0 from 0', 'run 1F0', 'run 1B0', 'send 1B0 to 0']
    """
    _require_single_operations(schedule)
    names, device, receiver = list(map(str, schedule.ops)), schedule.device.tolist(), _receivers(schedule)
    lists: list[list[str]] = [[] for _ in range(schedule.devices)]
    for (row,) in _in_common_order(schedule):
        op, home = names[row], device[row]
        lists[home].append(str(Action("run", op)))
        if row in receiver:
            lists[home].append(str(Action("send", op, receiver[row])))
            lists[receiver[row]].append(str(Action("receive", op, home)))
    return lists


def torch_actions(schedule: Schedule, text: str) -> list[list[str]]:
    r"""Return the list of actions of each device in a text that torch.distributed.pipelining wrote with sends and receives.

    Parameters
    ----------
    schedule : Schedule
        The schedule that :meth:`Schedule.parse` reads from ``text``.
    text : str
        A line of words for each device, such as ``0F0,0SEND_F0,0RECV_B0,0B0``. Words such as UNSHARD are left out.

    Returns
    -------
    list of list of str
        The actions of each device, for ``simulate(..., messages=...)`` and :func:`hybridlab.engines.run_actions`. There, each message
        blocks.

    Raises
    ------
    HybridLabError
        ``schedule`` is not a Schedule, or has overlapped pairs (``overlapped-pairs``), or it has no operation that sends one of the
        messages, or none that needs it (``nobody-needs-it``).
    InvalidSchedule
        ``text`` is no schedule.

    Examples
    --------
    >>> text = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0"
    >>> torch_actions(Schedule.parse(text), text) == ordered_actions(Schedule.parse(text))
    True
    """
    _require_single_operations(schedule)
    home = dict(zip(map(str, schedule.ops), schedule.device.tolist(), strict=True))

    def read(line: int, word: re.Match[str]) -> list[str]:
        message = MESSAGE.fullmatch(word.group())
        if message is None:
            return [] if is_communication(word.group()) else [str(Action("run", str(Op.parse(word.group()))))]
        here, kind, microbatch = int(message[1]), message[3], int(message[4])
        there = here + (1 if (message[2] == "SEND") == (kind == "F") else -1)
        source, reader = (here, there) if message[2] == "SEND" else (there, here)
        ends = [_name_in(home, stage, kind, microbatch) for stage in (source, reader)]
        if None in ends:
            raise HybridLabError(
                f"line {line}, column {word.start() + 1}: no operation needs the message {word.group()}", "nobody-needs-it"
            )
        op = str(ends[0])
        return [str(Action("send", op, home[str(ends[1])]) if message[2] == "SEND" else Action("receive", op, home[op]))]

    return [list(actions) for actions in split_words(text, read)]


def _name_in(home: Mapping[str, int], stage: int, kind: str, microbatch: int) -> str | None:
    """Return the name of a forward or a backward in ``home``. A backward can be split. None if there is no such operation."""
    names = (f"{stage}{each}{microbatch}" for each in ("F" if kind == "F" else "BI"))
    return next((name for name in names if name in home), None)


def run_in_order(schedule: Operations, costs: Costs, messages: Any) -> tuple[Floats, Floats]:
    """Return the start and the end of each operation, shape (settings..., operations). See :func:`hybridlab.simulate` for the rules.

    ``messages`` is "ordered", or a list of actions for each device.

    Raises
    ------
    Deadlock
        Devices wait for each other.
    HybridLabError
        A list of actions has a fault, or ``messages`` is an unknown name.
    """
    if isinstance(messages, str):
        known_name(messages, ("free", "ordered"), "value of messages")
        both = _times_in_order(schedule, _Times(schedule, costs))
    else:
        both = _Clock(schedule, _Times(schedule, costs), _given_plans(schedule, messages)).run()
    start, end = (np.moveaxis(readonly(np.array(each)), 0, -1) for each in both)
    return start, end


class _Times:
    """The times of operations and messages. A time is a float for one setting, because a loop over floats is faster, or else an array."""

    def __init__(self, schedule: Operations, costs: Costs) -> None:
        takes, late = (np.moveaxis(each, -1, 0) for each in (running_times(schedule, costs), latencies(schedule, costs)))
        self.takes = _listed(takes)  # for each operation
        # for each message: the latency, by the operation whose output it carries
        self.late = dict(zip(schedule.source[schedule.crosses].tolist(), _listed(late[schedule.crosses]), strict=True))
        self.later: Any = np.maximum if costs.batch else max
        self.zero: Any = np.zeros(costs.batch) if costs.batch else 0.0


def _listed(rows: Floats) -> list[Any]:
    return rows.tolist() if rows.ndim == 1 else list(rows)


def _times_in_order(schedule: Operations, times: _Times) -> tuple[list[Any], list[Any]]:
    """Return the start and the end of each operation if messages keep the order of :func:`ordered_actions`.

    The loop goes through the common order, in which both devices of a message have come to it when it is reached.
    """
    size, later = schedule.kind.size, times.later
    device, receiver = schedule.device.tolist(), _receivers(schedule)
    awaited = np.where(schedule.crosses, schedule.source, -1).tolist()  # -1 for an operation that waits for no message
    starts, ends = [times.zero] * size, [times.zero] * size
    arrived = [times.zero] * (size + 1)  # for each operation, when its output arrives; the last entry is read for -1
    computed = [times.zero] * schedule.devices  # when each device has ended its operations so far
    reached = [times.zero] * schedule.devices  # when each device has ended its operations and messages so far
    for turn in _in_common_order(schedule):
        home = device[turn[0]]
        begin = computed[home]
        for row in turn:  # both operations of an overlapped pair
            begin = later(begin, arrived[awaited[row]])
        end = computed[home] = begin + times.takes[turn[0]]
        reached[home] = later(reached[home], end)
        for row in turn:
            starts[row], ends[row] = begin, end
            if row in receiver:
                other = receiver[row]
                arrived[row] = reached[home] = reached[other] = later(reached[home], reached[other]) + times.late[row]
    return starts, ends


def _in_common_order(schedule: Operations) -> Iterator[tuple[int, ...]]:
    """Yield the rows of each turn in the order of :func:`ordered_actions`. A turn is an operation or an overlapped pair."""
    source, left = schedule.source.tolist(), list(map(deque, _turns(schedule)))
    placed = [False] * schedule.kind.size + [True]  # the last entry is read for the source -1: no operation
    while any(left):
        for turns in left:
            if turns and placed[source[turns[0][0]]] and placed[source[turns[0][-1]]]:
                turn = turns.popleft()
                for row in turn:
                    placed[row] = True
                yield turn


def _turns(schedule: Operations) -> Iterator[list[tuple[int, ...]]]:
    """Yield for each device the rows of its turns in running order."""
    second = set((schedule.pairs + 1).tolist())
    pairs = {row - 1 for row in second}
    for low, high in pairwise([*schedule.first.tolist(), schedule.kind.size]):
        yield [(row, row + 1) if row in pairs else (row,) for row in range(low, high) if row not in second]


def _receivers(schedule: Operations) -> dict[int, int]:
    """Return, for each operation whose output another device needs, this other device."""
    return dict(zip(schedule.source[schedule.crosses].tolist(), schedule.device[schedule.crosses].tolist(), strict=True))


class Step(NamedTuple):
    """One action of a device. For "run", ``row`` is the operation. For a message, it is the operation whose output the message carries."""

    verb: str
    row: int
    peer: int = -1


Entry = tuple[Step, ...]  # one operation, or messages that start together
Plans = list[list[Entry]]  # for each device, the entries of its list


class _Clock:
    """The times of a schedule whose devices go through their lists entry by entry.

    A message starts when its sender and its receiver have come to it, and its link has carried all messages before it. It takes the latency
    of the link. A device goes on when all messages of its entry have ended.
    """

    def __init__(self, schedule: Operations, times: _Times, plans: Plans) -> None:
        self._schedule, self._times, self._plans = schedule, times, plans
        self._starts, self._ends = [times.zero] * schedule.kind.size, [times.zero] * schedule.kind.size
        self._now = [times.zero] * len(plans)
        self._at = [0] * len(plans)
        self._ended: list[dict[Step, Any]] = [{} for _ in plans]  # the messages of each device's entry that have ended, and when
        self._free: dict[tuple[int, int], Any] = {}  # when each link has carried its last message
        self._carried: dict[tuple[int, int], int] = {}  # number of messages that each link has carried
        self._number = {verb: _numbers_on_links(plans, verb) for verb in WAITS}

    def run(self) -> tuple[list[Any], list[Any]]:
        """Return the start and the end of each operation. Raise an error if devices wait for each other."""
        able = deque(range(len(self._plans)))
        while able:
            self._go_on(able.popleft(), able)
        stuck = [device for device, plan in enumerate(self._plans) if self._at[device] < len(plan)]
        if stuck:
            raise self._deadlock(stuck)
        return self._starts, self._ends

    def _go_on(self, device: int, able: deque[int]) -> None:
        """Go through the entries of a device until it waits or its list ends. Add to ``able`` the devices whose messages have ended."""
        plan = self._plans[device]
        while self._at[device] < len(plan):
            entry = plan[self._at[device]]
            if entry[0].verb == "run":
                row = entry[0].row
                self._starts[row] = self._now[device]
                self._ends[row] = self._now[device] = self._now[device] + self._times.takes[row]
            else:
                able.extend([step.peer for step in entry if step not in self._ended[device] and self._carry(device, step)])
                if len(self._ended[device]) < len(entry):
                    return
                for ended in self._ended[device].values():
                    self._now[device] = self._times.later(self._now[device], ended)
                self._ended[device].clear()
            self._at[device] += 1

    def _carry(self, device: int, step: Step) -> bool:
        """Let a message end if both devices have come to it and it is the next of its link. Return whether it has ended."""
        other = Step("receive" if step.verb == "send" else "send", step.row, device)
        link = (device, step.peer) if step.verb == "send" else (step.peer, device)
        carried = self._carried.get(link, 0)
        if other not in self._entry(step.peer) or any(self._number[verb][step.row] != carried for verb in WAITS):
            return False
        begin = self._times.later(self._now[device], self._now[step.peer])
        if carried:
            begin = self._times.later(begin, self._free[link])
        self._free[link] = self._ended[device][step] = self._ended[step.peer][other] = begin + self._times.late[step.row]
        self._carried[link] = carried + 1
        return True

    def _entry(self, device: int) -> Entry:
        """Return the entry to which a device has come. Return an empty entry at the end of its list."""
        plan = self._plans[device]
        return plan[self._at[device]] if self._at[device] < len(plan) else ()

    def _deadlock(self, stuck: Sequence[int]) -> Deadlock:
        """Return the error that names a circle of devices that wait for each other, and the message at which each waits."""
        first = {device: next(step for step in self._entry(device) if step not in self._ended[device]) for device in stuck}
        circle = list(stuck[:1])
        while first[circle[-1]].peer not in circle:  # the other device of a message waits, too: its list has the same message
            circle.append(first[circle[-1]].peer)
        circle = circle[circle.index(first[circle[-1]].peer) :]
        problems = [self._problem(device, first[device]) for device in (*circle, *(each for each in stuck if each not in circle))]
        sentence = "; ".join(problem.sentence for problem in problems[: min(len(circle), MOST_NAMED)])
        if len(circle) > MOST_NAMED:
            sentence += f"; {counted(len(circle) - MOST_NAMED, 'more device')} in the circle"
        crossed = any(self._number["send"][step.row] != self._number["receive"][step.row] for step in first.values())
        rule = ": a link carries messages in the order of their sends" if crossed else ""
        return Deadlock(f"devices wait for each other for ever{rule}: {sentence}", "deadlock", tuple(problems))

    def _problem(self, device: int, step: Step) -> Problem:
        op = self._schedule.ops[step.row]
        place = f"{Action(step.verb, str(op), step.peer)}"
        sentence = f"device {device} waits at '{place}' {WAITS[step.verb].format(step.peer)}"
        return Problem(sentence, "deadlock", device, None, op, step.peer)


def _numbers_on_links(plans: Plans, verb: str) -> dict[int, int]:
    """Return, for each message, how many messages come before it on its link: in the sender's list, or in the receiver's list."""
    numbers: dict[int, int] = {}
    for plan in plans:
        counts: dict[int, int] = {}
        for step in chain.from_iterable(plan):
            if step.verb == verb:
                numbers[step.row] = counts.get(step.peer, 0)
                counts[step.peer] = numbers[step.row] + 1
    return numbers


def _require_single_operations(schedule: Any) -> None:
    """Raise an error if ``schedule`` is not a Schedule without overlapped pairs."""
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"lists of actions belong to the Schedule of one pipeline, not to {short_repr(schedule)}", "not-a-schedule")
    if schedule.pairs.size:
        pair = f"({schedule.ops[schedule.pairs[0]]};{schedule.ops[schedule.pairs[0] + 1]})"
        message = f"{pair} is an overlapped pair, and an action runs one operation"
        raise UnsupportedSize(f"{message}: take messages='ordered', or a schedule without pairs", "overlapped-pairs")


def _given_plans(schedule: Any, messages: Any) -> Plans:
    """Return the entries of the lists that a caller gave. Raise an error at the first fault."""
    _require_single_operations(schedule)
    wanted = "messages is 'free', 'ordered', or a list of actions for each device, such as [['run 0F0', 'send 0F0 to 1'], ...]"
    lists = [list(each_of(plan, wanted)) for plan in each_of(messages, wanted)]
    if len(lists) != schedule.devices:
        message = f"messages has {counted(len(lists), 'list')} of actions, but the schedule has {counted(schedule.devices, 'device')}"
        raise HybridLabError(f"{message}: give one list for each device", "wrong-length")
    row_of = {str(op): row for row, op in enumerate(schedule.ops)}
    plans: Plans = []
    for device, texts in enumerate(lists):
        entries = [read_actions(text) for text in texts]
        _require_complete(schedule, device, list(chain.from_iterable(entries)))
        plans.append([tuple(Step(action.verb, row_of[action.op], action.peer) for action in entry) for entry in entries])
    return plans


def _require_complete(schedule: Schedule, device: int, actions: list[Action]) -> None:
    """Raise an error if the actions of a device do not run its operations in order, with each of its messages once and in time."""
    needs, home = inputs_from_others(schedule), dict(zip(map(str, schedule.ops), schedule.device.tolist(), strict=True))
    order = [str(op) for op in schedule[device]]
    sends = {Action("send", source, home[op]) for op, source in needs.items() if home[source] == device}
    receives = {Action("receive", needs[op], home[needs[op]]) for op in order if op in needs}
    left, done, messages = deque(order), set[Action](), sends | receives
    for action in actions:
        if action.verb == "run":
            if not left or left[0] != action.op:
                message = f"device {device} has '{action}' where its order has {left[0] if left else 'no further operation'}"
                raise HybridLabError(f"{message}: run its operations in the order of the schedule", "another-order")
            source = needs.get(left.popleft())
            if source is not None and Action("receive", source, home[source]) not in done:
                message = f"device {device} has '{action}' before it receives {source}"
                raise HybridLabError(f"{message}: put 'receive {source} from {home[source]}' before it", "before-its-input")
        elif action not in messages:
            raise HybridLabError(f"device {device} has '{action}', but no operation needs this message", "nobody-needs-it")
        elif action in done:
            raise HybridLabError(f"device {device} has '{action}' twice: each message is sent once and received once", "sent-twice")
        elif action.verb == "send" and Action("run", action.op) not in done:
            raise HybridLabError(
                f"device {device} has '{action}' before 'run {action.op}': send an output after its operation", "not-made-yet"
            )
        done.add(action)
    missing = [*(str(Action("run", op)) for op in left), *sorted(str(action) for action in messages - done)]
    if missing:
        raise HybridLabError(f"the list of device {device} lacks '{missing[0]}'", "missing-action")
