"""Puzzles: write a schedule for given times, as short as the memory allows. A solver has proven how short the shortest one is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
SAME_TIME = 1e-9  # two makespans count as equal if their relative difference is at most this, since rounding causes small differences
SOONER = 1  # in the unit of the costs: the times of all puzzles are whole numbers, so a shorter order is shorter by at least 1


@dataclass(frozen=True)
class Goal:
    """One rung of a puzzle. A schedule stands on it if it keeps to both limits and stands on all rungs before.

    Parameters
    ----------
    name : str
        A short name, such as ``"optimum"``.
    words : str
        What holds for the schedule, as the end of a sentence that begins with "the schedule".
    makespan : float or None
        The longest makespan that is accepted, in the unit of the costs; None if every makespan is.
    memory : int or None
        The most activations that a device may hold; None if every number is accepted.
    """

    name: str
    words: str
    makespan: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Standing:
    """How far a text has come.

    Parameters
    ----------
    reached : tuple of str
        The names of the rungs that it stands on, from the first one up.
    code : str
        ``"solved"`` if it stands on all rungs. Else ``"misses-"`` and the name of the next rung, or the name of the fault for which the
        text is no schedule of this size.
    sentence : str
        What is missing for the next rung, or that nothing is.
    timeline : Timeline or None
        The schedule in time, if it can run.
    too_many : tuple of Op
        For each device that holds too many activations: the first forward for which it has no room.
    """

    reached: tuple[str, ...]
    code: str
    sentence: str
    timeline: Timeline | None = None
    too_many: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Puzzle:
    """A size, times and a memory for which a reader writes a schedule, one line for each device; stage d is on device d.

    Parameters
    ----------
    name, title : str
        The name in ``PUZZLES``, and a few words.
    sentence : str
        What to do.
    devices, microbatches : int
        The size.
    costs : Costs
        One setting. All times are whole numbers.
    memory : int
        The most activations that a device may hold at once.
    split : bool
        Whether a backward may be split into an input gradient (I) and a weight gradient (W). Full backwards (B) are allowed always.
    start : str
        A text to start with. It does not stand on the last rung.
    rungs : tuple of Goal
        From the lowest to the highest. The first two are a complete schedule and one that can run, and the last is the shortest
        makespan that any order has.

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
    rungs: tuple[Goal, ...]

    @property
    def optimum(self) -> float:
        """The makespan of the shortest order, in the unit of the costs."""
        return float(self.rungs[-1].makespan or 0)

    def data(self) -> dict[str, Any]:
        """Return the puzzle as plain values for the script of a page: text, numbers, lists and dicts, and None for no limit.

        Returns
        -------
        dict
            The costs have one value for each device. ``memory`` is the limit for every device, ``split`` says whether I and W are
            allowed, and a device has one chunk.
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
            "rungs": [{"name": rung.name, "words": rung.words, "makespan": rung.makespan, "memory": rung.memory} for rung in self.rungs],
        }

    def judge(self, text: str) -> Standing:
        """Return which rungs a schedule stands on, and a sentence about the next one.

        Parameters
        ----------
        text : str
            One line of operations for each device, with or without the label ``device N:``.

        Raises
        ------
        HybridLabError
            The argument is not a text. No text raises an error.
        """
        try:
            orders = split_text(checked_text(text, "the text of a schedule"))
            fault = self._of_another_kind(orders)
            if fault is not None:
                return Standing((), *fault)
            schedule = Schedule(YOUR_ORDER, orders)
        except Deadlock as why:
            whole = len(orders) == self.devices and len({op.microbatch for order in orders for (op,) in order}) == self.microbatches
            return Standing((self.rungs[0].name,) if whole else (), why.code, str(why))
        except InvalidSchedule as why:
            return Standing((), why.code, str(why))
        if schedule.devices != self.devices or schedule.microbatches != self.microbatches:
            size = f"{counted(schedule.devices, 'device')} and {counted(schedule.microbatches, 'microbatch')}"
            wanted = f"{self.devices} devices and {self.microbatches} microbatches"
            return Standing((), "another-size", f"this order can run, but it has {size}; the puzzle has {wanted}")
        return self._judged(simulate(schedule, self.costs))

    def _of_another_kind(self, orders: Turns) -> tuple[str, str] | None:
        """Return the code and the sentence of the first operation that does not belong into this puzzle, if there is one."""
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

    def _judged(self, timeline: Timeline) -> Standing:
        """Return how far a schedule of this puzzle has come that can run."""
        reached: list[str] = []
        peak = timeline.peak_activations
        for rung in self.rungs:
            over = np.flatnonzero(peak > (peak.max() if rung.memory is None else rung.memory)).tolist()
            if over:
                ops = tuple(_one_too_many(timeline, device, self.memory) for device in over)
                held = f"device {over[0]} holds {counted(int(peak[over[0]]), 'activation')} at once"
                sentence = f"{held}, and it has room for {self.memory}: {ops[0]} is one too many"
                return Standing(tuple(reached), f"misses-{rung.name}", sentence, timeline, ops)
            if rung.makespan is not None and timeline.makespan > rung.makespan * (1 + SAME_TIME):
                took = f"this order takes {self._time(timeline.makespan)}"
                needed = f"an order on the next rung takes {self._time(rung.makespan)} or less and {rung.words}"
                return Standing(tuple(reached), f"misses-{rung.name}", f"{took}; {needed}{_longest_pause(timeline)}", timeline)
            reached.append(rung.name)
        proven = "no order in this memory is shorter, as a solver has proven"
        return Standing(tuple(reached), "solved", f"this order takes {self._time(timeline.makespan)}: {proven}", timeline)

    def _time(self, time: float) -> str:
        return f"{time:g} {self.costs.unit}"


def _one_too_many(timeline: Timeline, device: int, memory: int) -> Op:
    """Return the first forward for which a device has no room."""
    rows = np.flatnonzero((timeline.device == device) & (timeline.activations > memory))
    return timeline.ops[int(rows[np.argmin(timeline.start[rows])])]


def _longest_pause(timeline: Timeline) -> str:
    """Return a sentence about the longest time for which a device is idle between two of its operations; empty if none is ever idle."""
    waits = []
    for device in range(timeline.schedule.devices):
        rows = np.flatnonzero(timeline.device == device)
        idle = timeline.start[rows][1:] - timeline.end[rows][:-1]
        place = int(np.argmax(idle))
        waits.append((float(idle[place]), device, int(rows[place]), int(rows[place + 1])))
    longest, device, before, after = max(waits, key=lambda wait: wait[0])
    if longest < SAME_TIME * timeline.makespan:
        return ""
    unit = f" {timeline.unit}" if timeline.unit else ""
    times = f"from {timeline.end[before]:g} to {timeline.start[after]:g}{unit}"
    return f". The longest wait: device {device} is idle {times}, between {timeline.ops[before]} and {timeline.ops[after]}"


def _in_rounds(size: int, devices: int, microbatches: int, costs: Costs) -> float:
    """Return the makespan if the microbatches run in rounds, each of them 1F1B with ``size`` microbatches."""
    return microbatches / size * float(simulate(build("1f1b", devices, size), costs).makespan)


def _each_alone(devices: int, microbatches: Iterable[int]) -> str:
    """Return the text of a schedule that starts a microbatch when the one before has ended."""
    return "\n".join(f"device {d}: " + " ".join(f"{d}F{m} {d}B{m}" for m in microbatches) for d in range(devices))


def _all_forwards_first(devices: int, microbatches: int) -> str:
    """Return the text of GPipe with split backwards."""
    numbers = range(microbatches)
    parts = [[f"F{m}" for m in numbers], [f"{kind}{m}" for m in numbers for kind in "IW"]]
    return "\n".join(f"device {d}: " + " ".join(f"{d}{op}" for part in parts for op in part) for d in range(devices))


def _rungs(memory: int, *faster: tuple[str, str, float], optimum: float) -> tuple[Goal, ...]:
    """Return the rungs of a puzzle from its memory, from names, words and makespans, and from the shortest makespan."""
    return (
        Goal("complete", "has every operation once"),
        Goal("runs", "can run: no device waits for ever"),
        Goal("memory", f"holds at most {counted(memory, 'activation')} on each device", memory=memory),
        *(Goal(name, words, float(makespan), memory) for name, words, makespan in faster),
        Goal("optimum", "is as short as the shortest order that exists", float(optimum), memory),
    )


def _two_devices() -> Puzzle:
    devices, microbatches, costs, memory = 2, 3, Costs(forward=10, backward=20), 2
    alone = _in_rounds(1, devices, microbatches, costs)
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
        rungs=_rungs(
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
        rungs=_rungs(
            memory,
            ("rounds", "is as short as two rounds of 1F1B, each with two microbatches", _in_rounds(2, devices, microbatches, costs)),
            optimum=210,
        ),
    )


def _one_more_activation() -> Puzzle:
    # F, I and W take 12, 10 and 6 ms
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
        rungs=_rungs(memory, *_of_registry(devices, microbatches, costs), optimum=210),
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
        rungs=_rungs(memory, *_of_registry(devices, microbatches, costs), optimum=320),
    )


def _of_registry(devices: int, microbatches: int, costs: Costs) -> list[tuple[str, str, float]]:
    """Return the rungs that are made from 1F1B and from ZB-H1."""
    plain, split = (float(simulate(build(name, devices, microbatches), costs).makespan) for name in ("1f1b", "zb-h1"))
    return [("1f1b", "is as short as 1F1B", plain), ("beats-zb-h1", f"is shorter than ZB-H1, which takes {split:g} ms", split - SOONER)]


# The makespans of the last rungs are proven by hybridlab.bound.optimum; a test proves them again.
PUZZLES: Mapping[str, Puzzle] = MappingProxyType(
    {each.name: each for each in (_two_devices(), _little_memory(), _one_more_activation(), _unequal_devices())}
)
