"""Puzzles: a reader writes a schedule for given times and memory. A solver has proven the shortest makespan that a schedule can have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import checked_text, counted
from hybridlab.costs import Costs
from hybridlab.errors import Deadlock, InvalidSchedule
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedule.text import Turns, split_text
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

YOUR_ORDER = "yours"  # the name of a schedule that a reader has written
# The largest relative difference of two makespans that count as equal: sums of the same times in another order differ by rounding
# errors. The script puzzle.js has the same number, because it must decide in the same way which goals are reached.
SAME_TIME = 1e-9
MOST_STRETCHES = 12  # the most parts of a critical path that a sentence lists
SOONER = 1  # in the unit of the costs; the times of all puzzles are whole numbers, so a shorter schedule is shorter by at least 1


@dataclass(frozen=True)
class Goal:
    """One goal of a puzzle. A schedule reaches the goal if it exceeds neither limit and reaches all earlier goals of the puzzle.

    Parameters
    ----------
    name : str
        A short name, such as ``"optimum"``.
    words : str
        The property that the goal asks for, as the end of a sentence that begins with "the schedule".
    makespan : float or None
        The longest makespan that is accepted, in the unit of the costs; None if there is no limit.
    memory : int or None
        The most activations that a device may hold; None if there is no limit.
    """

    name: str
    words: str
    makespan: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Standing:
    """The judgement of a reader's schedule: the goals that the schedule reaches, and what is missing for the next goal.

    Parameters
    ----------
    reached : tuple of str
        The names of the goals that the schedule reaches, from the easiest goal on.
    code : str
        One of three: (1) ``"solved"`` if the schedule reaches all goals, (2) ``"misses-"`` and the name of the next goal, (3) the code of
        the error if the text is not a schedule for this puzzle.
    sentence : str
        What is missing for the next goal, or the statement that the puzzle is solved.
    timeline : Timeline or None
        The start and end of each operation; None if the schedule cannot run.
    too_many : tuple of Op
        For each device that holds too many activations, the first forward for which this device has no room.
    """

    reached: tuple[str, ...]
    code: str
    sentence: str
    timeline: Timeline | None = None
    too_many: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Puzzle:
    """A puzzle: the reader writes a schedule for these sizes, times and memory, one line for each device. Stage d is on device d.

    Parameters
    ----------
    name, title : str
        The key in ``PUZZLES``, and a heading of a few words.
    sentence : str
        The instruction for the reader.
    devices, microbatches : int
        The numbers of devices and microbatches that the schedule must have.
    costs : Costs
        The times of operations and messages, for one setting. All times are whole numbers.
    memory : int
        The most activations that a device may hold at the same time.
    split : bool
        Whether a backward may be split into an input gradient (I) and a weight gradient (W). Full backwards (B) are always allowed.
    start : str
        The text that the reader starts with. It does not reach the last goal.
    goals : tuple of Goal
        The goals, from the easiest to the hardest. Goal 1: the schedule is complete. Goal 2: it can run. The last goal: its makespan is the
        shortest possible one.

    Examples
    --------
    >>> puzzle = PUZZLES["two-devices"]
    >>> judged = puzzle.judge(str(build("gpipe", 2, 3)))
    >>> judged.reached, judged.code
    (('complete', 'runs'), 'misses-memory')
    >>> puzzle.judge(str(build("1f1b", 2, 3))).code
    'solved'
    """

    name: str
    title: str
    sentence: str
    devices: int
    microbatches: int
    costs: Costs
    memory: int
    split: bool
    start: str
    goals: tuple[Goal, ...]

    @property
    def optimum(self) -> float:
        """The shortest possible makespan, in the unit of the costs."""
        return float(self.goals[-1].makespan or 0)

    def data(self) -> dict[str, Any]:
        """Return the puzzle as plain values for the script puzzle.js: texts, numbers, lists and dicts. None means that there is no limit.

        Returns
        -------
        dict
            The entries have the names of the parameters above. In ``costs``, the values of ``forward``, ``backward`` and
            ``weight_share`` are lists with one number for each device; ``p2p`` and ``overlap`` are single numbers. ``chunks`` is always 1.
        """
        each = {name: np.broadcast_to(getattr(self.costs, name), self.devices).tolist() for name in ("forward", "backward", "weight_share")}
        return {
            "name": self.name,
            "title": self.title,
            "sentence": self.sentence,
            "devices": self.devices,
            "microbatches": self.microbatches,
            "chunks": 1,
            "costs": each | {name: float(getattr(self.costs, name).item()) for name in ("p2p", "overlap")},
            "unit": self.costs.unit,
            "memory": self.memory,
            "split": self.split,
            "start": self.start,
            "goals": [{"name": goal.name, "words": goal.words, "makespan": goal.makespan, "memory": goal.memory} for goal in self.goals],
        }

    def judge(self, text: str) -> Standing:
        """Return which goals a schedule reaches, and a sentence about the next goal.

        Parameters
        ----------
        text : str
            One line of operations for each device, with or without the label ``device N:``.

        Raises
        ------
        HybridLabError
            If the argument is not a text. No text raises an error: if it is not a schedule, the judgement says why.
        """
        try:
            orders = split_text(checked_text(text, "the text of a schedule"))
            # Schedule() does not know the puzzle. It accepts an operation that the puzzle does not allow, or its error names only a
            # consequence of this operation. So these operations are looked for first.
            fault = self._foreign_operation(orders)
            if fault is not None:
                return Standing((), *fault)
            schedule = Schedule(YOUR_ORDER, orders)
        except Deadlock as why:
            # Schedule() finds a missing operation before a deadlock. So this schedule has all operations of its size, and it is complete
            # if its size is that of the puzzle.
            whole = len(orders) == self.devices and len({op.microbatch for order in orders for (op,) in order}) == self.microbatches
            return Standing((self.goals[0].name,) if whole else (), why.code, str(why))
        except InvalidSchedule as why:
            return Standing((), why.code, str(why))
        if schedule.devices != self.devices or schedule.microbatches != self.microbatches:
            size = f"{counted(schedule.devices, 'device')} and {counted(schedule.microbatches, 'microbatch')}"
            wanted = f"{self.devices} devices and {self.microbatches} microbatches"
            return Standing((), "another-size", f"this order can run, but it has {size}; the puzzle has {wanted}")
        return self._judge_timeline(simulate(schedule, self.costs))

    def _foreign_operation(self, orders: Turns) -> tuple[str, str] | None:
        """Return the code and the sentence for the first operation that this puzzle does not allow; None if it allows all of them."""
        for device, order in enumerate(orders):
            for turn in order:
                op = turn[0]
                if len(turn) > 1:
                    together = " and ".join(map(str, turn))
                    return "overlapped-pair", f"device {device} runs {together} at the same time: here it runs one operation at a time"
                if op.kind in (Kind.I, Kind.W) and not self.split:
                    return "split-backward", f"{op} is a part of a backward: this puzzle has forwards (F) and full backwards (B) only"
                if op.stage != device:
                    return "another-placement", f"{op} stands on device {device}: here stage {op.stage} is on device {op.stage}"
                if op.microbatch >= self.microbatches:
                    most = f"the puzzle has {self.microbatches} microbatches, numbered from 0 to {self.microbatches - 1}"
                    return "another-size", f"{op} is of microbatch {op.microbatch}, but {most}"
        return None

    def _judge_timeline(self, timeline: Timeline) -> Standing:
        """Return the judgement of a schedule that has the size of this puzzle and can run."""
        reached: list[str] = []
        peak = timeline.peak_activations
        for goal in self.goals:
            # if the goal has no limit, the largest peak serves as limit, so no device exceeds it
            over = np.flatnonzero(peak > (peak.max() if goal.memory is None else goal.memory)).tolist()
            if over:
                ops = tuple(_one_too_many(timeline, device, self.memory) for device in over)
                held = f"device {over[0]} holds {counted(int(peak[over[0]]), 'activation')} at once"
                sentence = f"{held}, and it has room for {self.memory}: {ops[0]} is one too many"
                return Standing(tuple(reached), f"misses-{goal.name}", sentence, timeline, ops)
            if goal.makespan is not None and timeline.makespan > goal.makespan * (1 + SAME_TIME):
                took = f"this order takes {self._time(timeline.makespan)}"
                needed = f"an order that reaches the next goal takes {self._time(goal.makespan)} or less and {goal.words}"
                return Standing(tuple(reached), f"misses-{goal.name}", f"{took}; {needed}{_critical_path(timeline)}", timeline)
            reached.append(goal.name)
        proven = "no order in this memory is shorter, as a solver has proven"
        return Standing(tuple(reached), "solved", f"this order takes {self._time(timeline.makespan)}: {proven}", timeline)

    def _time(self, time: float) -> str:
        """Return the text of a time with its unit."""
        return f"{time:g} {self.costs.unit}"


def _one_too_many(timeline: Timeline, device: int, memory: int) -> Op:
    """Return the first forward for which a device has no room."""
    # The number of activations increases only at the start of a forward, so the earliest operation above the limit is a forward.
    rows = np.flatnonzero((timeline.device == device) & (timeline.activations > memory))
    return timeline.ops[int(rows[np.argmin(timeline.start[rows])])]


def _critical_path(timeline: Timeline) -> str:
    """Return a sentence with a critical path of the timeline. It has the first and the last operation of each stretch on one device."""
    stretches = [[step.op for step in steps] for _, steps in groupby(timeline.breakdown().critical_path, key=lambda step: step.device)]
    names = [f"{ops[0]} to {ops[-1]}" if len(ops) > 1 else str(ops[0]) for ops in stretches[:MOST_STRETCHES]]
    more = ", and so on" * (len(stretches) > MOST_STRETCHES)
    return f". A critical path: {', '.join(names)}{more}. Every shorter order changes this path"


def _time_in_rounds(size: int, devices: int, microbatches: int, costs: Costs) -> float:
    """Return the makespan of rounds of 1F1B with ``size`` microbatches each. A round starts when the previous round has ended."""
    return microbatches / size * float(simulate(build("1f1b", devices, size), costs).makespan)


def _each_alone(devices: int, microbatches: Iterable[int]) -> str:
    """Return the text of a schedule that starts each microbatch when the previous microbatch has ended."""
    return "\n".join(f"device {d}: " + " ".join(f"{d}F{m} {d}B{m}" for m in microbatches) for d in range(devices))


def _all_forwards_first(devices: int, microbatches: int) -> str:
    """Return the text of a schedule in which each device runs all forwards, then all backwards. Each backward is split into I and W."""
    numbers = range(microbatches)
    parts = [[f"F{m}" for m in numbers], [f"{kind}{m}" for m in numbers for kind in "IW"]]
    return "\n".join(f"device {d}: " + " ".join(f"{d}{op}" for part in parts for op in part) for d in range(devices))


def _goals(memory: int, *faster: tuple[str, str, float], optimum: float) -> tuple[Goal, ...]:
    """Return the goals of a puzzle: (1) three that all puzzles have, (2) ``faster``, as (name, words, makespan), (3) the optimum."""
    return (
        Goal("complete", "has every operation once"),
        Goal("runs", "can run: no device waits for ever"),
        Goal("memory", f"holds at most {counted(memory, 'activation')} on each device", memory=memory),
        *(Goal(name, words, float(makespan), memory) for name, words, makespan in faster),
        Goal("optimum", "is as short as the shortest order that exists", float(optimum), memory),
    )


def _two_devices() -> Puzzle:
    devices, microbatches, costs, memory = 2, 3, Costs(forward=10, backward=20), 2
    alone = _time_in_rounds(1, devices, microbatches, costs)
    return Puzzle(
        "two-devices",
        "Two devices",
        "Run 3 microbatches on 2 devices. A device has room for the activations of 2 microbatches.",
        devices,
        microbatches,
        costs,
        memory,
        split=False,
        start=_each_alone(devices, range(1)),
        goals=_goals(
            memory,
            ("side-by-side", f"is shorter than one microbatch after the other, which takes {alone:g} ms", alone - SOONER),
            optimum=120,
        ),
    )


def _little_memory() -> Puzzle:
    devices, microbatches, costs, memory = 3, 4, Costs(forward=10, backward=20), 2
    return Puzzle(
        "little-memory",
        "Less memory than 1F1B needs",
        "Run 4 microbatches on 3 devices. 1F1B would hold 3 activations on device 0, and there is room for 2 on each device.",
        devices,
        microbatches,
        costs,
        memory,
        split=False,
        start=_each_alone(devices, range(microbatches)),
        goals=_goals(
            memory,
            ("rounds", "is as short as two rounds of 1F1B, each with two microbatches", _time_in_rounds(2, devices, microbatches, costs)),
            optimum=210,
        ),
    )


def _one_more_activation() -> Puzzle:
    # with these costs, F takes 12 ms, I takes 10 ms and W takes 6 ms
    devices, microbatches, costs, memory = 4, 6, Costs(forward=12, backward=16, weight_share=0.375), 5
    return Puzzle(
        "one-more-activation",
        "One activation more than ZB-H1",
        "Run 6 microbatches on 4 devices. A backward may be split. A device has room for 5 activations, one more than ZB-H1 needs.",
        devices,
        microbatches,
        costs,
        memory,
        split=True,
        start=_all_forwards_first(devices, microbatches),
        goals=_goals(memory, *_named_goals(devices, microbatches, costs), optimum=210),
    )


def _unequal_devices() -> Puzzle:
    costs = Costs(forward=[8, 12, 10, 10], backward=[16, 24, 20, 20], weight_share=0.5, p2p=4)
    devices, microbatches, memory = 4, 8, 4
    return Puzzle(
        "unequal-devices",
        "Unequal devices and slow messages",
        "Run 8 microbatches on 4 devices with unequal times. A message takes 4 ms. A device has room for 4 activations, as many as ZB-H1 "
        "needs.",
        devices,
        microbatches,
        costs,
        memory,
        split=True,
        start=_all_forwards_first(devices, microbatches),
        goals=_goals(memory, *_named_goals(devices, microbatches, costs), optimum=320),
    )


def _named_goals(devices: int, microbatches: int, costs: Costs) -> list[tuple[str, str, float]]:
    """Return two goals as (name, words, makespan): "as short as 1F1B" and "shorter than ZB-H1"."""
    plain, split = (float(simulate(build(name, devices, microbatches), costs).makespan) for name in ("1f1b", "zb-h1"))
    return [("1f1b", "is as short as 1F1B", plain), ("beats-zb-h1", f"is shorter than ZB-H1, which takes {split:g} ms", split - SOONER)]


# The makespan of each last goal comes from hybridlab.bound.optimum, which has proven it. A test repeats the proof.
PUZZLES: Mapping[str, Puzzle] = MappingProxyType(
    {each.name: each for each in (_two_devices(), _little_memory(), _one_more_activation(), _unequal_devices())}
)
