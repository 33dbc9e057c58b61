"""Draw an answer that is a schedule or a timeline: above the student's timeline, as far as it can run, below the one that the task wants.

Under a twist (a change of the task for one student), devices and operations can have other numbers than in the lab's task. A
:class:`Renaming` replaces the numbers of the lab's task by those of the student.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import LATEST
from hybridlab.costs import Costs
from hybridlab.course.checking.partial import Ran, Stop, run_partly, timeline_of, turns_of
from hybridlab.errors import HybridLabError, InvalidSchedule
from hybridlab.schedule import Op, Problem, Schedule
from hybridlab.schedule.text import Turn, Turns
from hybridlab.step import with_rings
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import OPTIMISER, Spans

if TYPE_CHECKING:
    from hybridlab.plot import Picture

YOURS, GOAL = "yours", "the goal"  # the titles of the two timelines
_NAMED = re.compile(r"\b(?:(device |stage |microbatch )(\d+)|\d+[FBIW]\d+)\b")  # the names to replace in a sentence: "stage 2", "1F0"
MOST_DEVICES, MOST_OPS = 16, 256  # the most devices in a picture, and the most operations on one device


@dataclass(frozen=True)
class Drawing:
    r"""The picture that goes with the feedback on a schedule or a timeline.

    Parameters
    ----------
    orders : tuple of tuples of Op
        The answer: the operations of each device in the order in which the device runs them. A tuple of two operations is an overlapped
        pair. The order need not be legal: operations can be missing or occur twice, and devices can wait for ever.
    costs : Costs or None
        The times of operations and messages, for one setting. None if ``yours`` has the times. If both are None, nothing is drawn.
    goal : Timeline, optional
        The right timeline, for one setting and in the unit of the costs. It is drawn below the answer, on the same axis of time.
    marked : tuple of Op or int
        The wrong operations. A whole number stands for the all-reduce ring of the stage with this number.
    yours : Timeline, optional
        The timeline of the answer, if the answer has times. None means that each operation starts as early as it can.
    scale : mapping of str to float
        Times to show on a scale below the timelines, by their names, in the unit of the timelines. If empty, there is no scale.
    case : tuple
        The arguments of the call that returned the answer, if the answer came from a function.
    own_lines : callable, optional
        Takes a list of operations for each device, such as ``[["0F0"], ["1F0"]]``, as the task has them without a twist, and the case.
        Returns the same lists with the student's twist. If given, the picture has the student's own devices, stages and microbatches.

    Raises
    ------
    HybridLabError
        The costs have several settings (``several-settings``), or their unit is not that of the goal (``different-units``).

    Examples
    --------
    >>> from hybridlab.schedule.text import split_text
    >>> Drawing(split_text("0F0 0B0\n1B0 1F0"), Costs(forward=1, backward=2)).figure()
    <Figure: Yours, 2 devices, 1 microbatch: stops at 1 ms, peak activations, in microbatches by device: 1, 0.
    Device 0 stops at 0B0 at 1 ms: it waits for 1B0. Device 1 stops at 1B0 at 0 ms: it waits for 1F0.>
    """

    orders: tuple[tuple[Op | Turn, ...], ...]
    costs: Costs | None
    goal: Timeline | None = None
    marked: tuple[Op | int, ...] = ()
    yours: Timeline | None = None
    scale: Mapping[str, float] = field(default_factory=dict)
    case: tuple[Any, ...] = ()
    own_lines: Callable[[list[list[str]], tuple[Any, ...]], Any] | None = None

    def __post_init__(self) -> None:
        if self.costs is not None and self.costs.batch:
            raise HybridLabError(f"a drawing shows one setting, but the costs have {self.costs.batch}", "several-settings")
        if self.costs is not None and self.goal is not None and self.costs.unit != self.goal.unit:
            raise HybridLabError(f"costs and goal must have one unit, not {self.costs.unit} and {self.goal.unit}", "different-units")

    @classmethod
    def of_times(cls, starts: Any, ends: Any, goal: Timeline, marked: Iterable[Op] = ()) -> "Drawing":
        """Return the drawing of an answer that has a start and an end for each operation of the goal's schedule.

        Parameters
        ----------
        starts, ends : array_like, shape (operations,)
            The student's times in the goal's unit, in the order of ``goal.ops``. Operations can overlap or start too early. If an end is
            before its start, the picture exchanges the two. Nothing is drawn for arrays of another shape, and for times that are
            negative or not finite.
        goal : Timeline
            The right times.
        marked : iterable of Op
            The wrong operations.
        """
        times = _sound_times(starts, ends, goal.schedule.kind.size)
        zero = np.zeros(1)
        origin = Spans(np.array([OPTIMISER]), np.array([0]), zero, zero)  # of length 0, so invisible; the axis of time then begins at 0
        yours = Timeline(goal.schedule, *times, origin, goal.unit) if times is not None else None
        return cls(goal.schedule.turns if yours else (), None, goal, tuple(marked), yours)

    @classmethod
    def of_rings(cls, starts: Any, ends: Any, given: Timeline, goal: Timeline | None = None, marked: Iterable[int] = ()) -> "Drawing":
        """Return the drawing of an answer that gives the start and the end of each stage's all-reduce ring.

        Parameters
        ----------
        starts, ends : array_like, shape (stages,)
            The student's times in the unit of ``given``. Nothing is drawn for the same values as in :meth:`of_times`.
        given : Timeline
            The timeline of the operations, in which the first operation starts at 0. The rings are drawn beside these operations.
        goal : Timeline, optional
            The timeline of the same operations with the right rings: see :func:`~hybridlab.step.with_rings`.
        marked : iterable of int
            The stages whose rings are wrong.
        """
        times = _sound_times(starts, ends, given.schedule.stages)
        yours = with_rings(given, np.transpose(times)) if times is not None else None
        return cls(given.schedule.turns if yours else (), None, goal, tuple(marked), yours)

    def figure(self) -> "Picture | None":
        """Return the picture, or None if there is nothing to draw or too much to draw.

        An order that is not legal is drawn as far as it runs. A box shows where each device stops and which operation it waits for.

        Returns
        -------
        Picture or None
            None in five cases: (1) there are no operations, (2) there are more than 16 devices, (3) a device has more than 256
            operations, (4) a stage or a microbatch has a number above 255, (5) the costs are for another number of devices or have no
            time for a link between two devices.
        """
        orders = turns_of(self.orders)
        if not _drawable(orders) or (self.goal is not None and not _drawable(self.goal.schedule.turns)):
            return None
        yours, legal = self.yours, True
        stops: list[Stop] = []
        if yours is None:
            if self.costs is None:
                return None
            try:
                ran, stops = run_partly(orders, self.costs)
            except HybridLabError as why:
                # the costs do not fit this answer, for example its number of devices; then the feedback has no picture
                if why.code not in ("does-not-fit", "no-link", "out-of-range"):
                    raise
                return None
            yours, legal = timeline_of(orders, ran, self.costs.unit), _is_legal(orders)
        if self.own_lines is not None and yours.spans is None:
            renaming = Renaming.of(self.own_lines, self.case, len(orders))
            shown = replace(
                self, marked=tuple(map(renaming.op, self.marked)), goal=self.goal and renaming.timeline(self.goal), own_lines=None
            )
            return shown._figure(renaming.orders(orders), renaming.timeline(yours), legal, [renaming.stop(each) for each in stops])
        return self._figure(orders, yours, legal, stops)

    def _figure(self, orders: Turns, yours: Timeline, legal: bool, stops: Sequence[Stop]) -> "Picture":
        """Return the picture of the answer and the goal, after all operations and devices have got the student's own numbers."""
        from hybridlab.plot.marks import Stopped, marked_figure  # loads matplotlib

        timelines = {YOURS: yours} | ({GOAL: self.goal} if self.goal is not None else {})
        results = {} if legal else {YOURS: _ending(yours, bool(stops))}
        # if no operation ran, timeline_of returns one operation that ends at time 0; this operation is not marked
        rows = [row for row, op in enumerate(yours.ops) if op in self.marked and yours.end[row] > 0]
        boxes = [Stopped(stop.device, stop.time, f"{stop.op} waits for {_needed(stop, orders)}", stop.op in self.marked) for stop in stops]
        rings = [(stage, *ring) for stage in self.marked if isinstance(stage, int) for ring in _ring(yours, stage)]
        return marked_figure(timelines, results, self._words(yours, orders, stops, results), rows, rings, boxes, self.scale)

    def _words(self, yours: Timeline, orders: Turns, stops: Sequence[Stop], results: dict[str, str]) -> str:
        """Return the alternative text of the picture: the answer, where devices stop, what is marked as wrong, and the goal."""
        from hybridlab.plot.figures import facts_text, peaks_text, sizes_text

        after = f" {yours.unit}" if yours.unit else ""
        facts = f"{results[YOURS]}, {peaks_text(yours)}" if results else facts_text(yours)
        sentences = [f"Yours, {sizes_text(yours)}: {facts}."]
        sentences += [
            f"Device {each.device} stops at {each.op} at {each.time:g}{after}: it waits for {_needed(each, orders)}." for each in stops
        ]
        if self.marked:
            named = [_where(yours, each, after) for each in self.marked]
            sentences.append(f"Marked as wrong: {'; '.join(named)}.")
        if self.goal is not None:
            sentences.append(f"Below, on the same axis of time, the goal, {sizes_text(self.goal)}: {facts_text(self.goal)}.")
        if self.scale:
            sentences.append(f"On a scale: {', '.join(f'{name} {time:g}{after}' for name, time in self.scale.items())}.")
        return " ".join(sentences)


class Renaming(NamedTuple):
    """The student's own numbers of devices and operations under a twist, to use in pictures and sentences."""

    lines: list[int]  # for each device of the student, the number of this device in the task without a twist
    own: Callable[[str], str]  # takes an operation of the task without a twist, as text, and returns the student's own text for it

    @classmethod
    def of(cls, own_lines: Callable[..., Any], case: tuple[Any, ...], devices: int) -> "Renaming":
        """Return the renaming that ``own_lines`` (see :class:`Drawing`) makes, for this number of devices."""
        # These texts are not operations: a twist can move them to other devices, but does not change them.
        marks = [f"line:{device}" for device in range(devices)]
        places = [marks.index(mark) for (mark,) in own_lines([[mark] for mark in marks], case)]
        return cls(places, lambda op: own_lines([[op]] * devices, case)[0][0])

    def op(self, op: Op | int) -> Op | int:
        """Return an operation with the student's own numbers. Return an int, the stage of a wrong ring, unchanged."""
        return op if isinstance(op, int) else Op.parse(self.own(str(op)))

    def sentence(self, sentence: str) -> str:
        """Return a sentence in which all devices, stages, microbatches and operations have the student's own numbers."""

        def rename(found: re.Match[str]) -> str:
            word, number = found[1], int(found[2] or 0)
            if word == "device ":
                return f"{word}{self.lines.index(number)}" if number in self.lines else found[0]
            # a twist can rename operations only, so the new number of a stage or microbatch is taken from one of its operations
            if word == "stage ":
                return f"{word}{Op.parse(self.own(f'{number}F0')).stage}"
            if word == "microbatch ":
                return f"{word}{Op.parse(self.own(f'0F{number}')).microbatch}"
            return self.own(found[0])

        return _NAMED.sub(rename, sentence)

    def turn(self, turn: Turn) -> Turn:
        """Return a turn (one operation or an overlapped pair) with the student's own numbers."""
        return tuple(Op.parse(self.own(str(op))) for op in turn)

    def orders(self, orders: Turns) -> Turns:
        """Return orders with the student's own numbers of devices and operations."""
        return tuple(tuple(map(self.turn, orders[place])) for place in self.lines)

    def stop(self, stop: Stop) -> Stop:
        """Return the stop of a device with the student's own numbers."""
        op, needed = self.turn((stop.op, stop.needed))
        return Stop(self.lines.index(stop.device), op, needed, stop.time)

    def timeline(self, timeline: Timeline) -> Timeline:
        """Return a timeline with the student's own numbers. The times do not change, even if no run could produce this timeline."""
        rows = zip(timeline.ops, timeline.schedule.device.tolist(), timeline.start.tolist(), timeline.end.tolist(), strict=True)
        ran: list[list[Ran]] = [[] for _ in self.lines]
        for op, device, start, end in rows:
            mine = ran[self.lines.index(device)]
            if mine and mine[-1].start == start and mine[-1].end == end > start:  # an overlapped pair
                mine[-1] = mine[-1]._replace(turn=(*mine[-1].turn, *self.turn((op,))))
            else:
                mine.append(Ran(self.turn((op,)), start, end))
        return timeline_of(tuple(tuple(each.turn for each in turns) for turns in ran), ran, timeline.unit)


def marked_by(error: InvalidSchedule) -> tuple[Op, ...]:
    """Return the operations that an error about a schedule marks as wrong. The error's message shows them in brackets.

    >>> try:
    ...     Schedule.parse("0F0 0B0 0B0")
    ... except InvalidSchedule as error:
    ...     print(*marked_by(error))
    0B0
    """
    ops = (problem.op for problem in error.problems if isinstance(problem, Problem))
    return tuple(dict.fromkeys(op for op in ops if op is not None))


def first_differences(orders: Iterable[Iterable[Op | Turn]], goal: Timeline) -> tuple[Op, ...]:
    """Return, for each device whose order differs from that of the goal, the first operation that differs.

    >>> from hybridlab import build, simulate
    >>> gpipe, goal = build("gpipe", 2, 2), simulate(build("1f1b", 2, 2), Costs(forward=1, backward=2))
    >>> [str(op) for op in first_differences(gpipe.turns, goal)]
    ['1F1']
    """
    pairs = (zip(*each, strict=False) for each in zip(turns_of(orders), goal.schedule.turns, strict=False))
    firsts = (next((mine for mine, right in pair if mine != right), ()) for pair in pairs)
    return tuple(op for turn in firsts for op in turn)


def _sound_times(starts: Any, ends: Any, count: int) -> tuple[Floats, Floats] | None:
    """Return starts and ends as arrays. If an end is before its start, the two are exchanged.

    Return None unless there are ``count`` starts and ``count`` ends, all of them finite and not negative.
    """
    try:
        times = np.array([starts, ends], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    sound = times.shape == (2, count) and bool(((times >= 0) & (times <= LATEST)).all())
    return (times.min(axis=0), times.max(axis=0)) if sound else None


def _drawable(orders: Turns) -> bool:
    """Return whether orders have an operation to draw, and no more devices, operations, stages and microbatches than a picture can show."""
    # Large numbers of stages and microbatches need much memory: a timeline's arrays have an item for each number up to the largest.
    ops = [[op for turn in order for op in turn] for order in orders]
    small = len(ops) <= MOST_DEVICES and all(len(order) <= MOST_OPS for order in ops)
    return any(ops) and small and all(op.stage < MOST_OPS and op.microbatch < MOST_OPS for order in ops for op in order)


def _is_legal(orders: Turns) -> bool:
    """Return whether orders are a valid schedule."""
    try:
        Schedule(YOURS, orders)
    except InvalidSchedule:
        return False
    return True


def _needed(stop: Stop, orders: Turns) -> str:
    """Return the operation that a device waits for, as text, with the words ", which is missing" if no order contains it."""
    present = any(stop.needed in turn for order in orders for turn in order)
    return f"{stop.needed}{'' if present else ', which is missing'}"


def _ending(timeline: Timeline, stopped: bool) -> str:
    """Return a text that says when an illegal order ends, and whether devices stop and wait."""
    after = f" {timeline.unit}" if timeline.unit else ""
    time = f"{timeline.makespan:g}{after}"
    return f"stops at {time}" if stopped else f"ends at {time}, but is not a valid schedule"


def _ring(timeline: Timeline, stage: int) -> list[tuple[int, float, float]]:
    """Return a list with the device, start and end of a stage's ring; an empty list if the timeline has no ring for this stage."""
    if timeline.spans is None:
        return []
    rings = timeline.spans.where(timeline.spans.stage == stage)
    return [(int(rings.device[0]), float(rings.start.min()), float(rings.end.max()))] if rings.size else []


def _where(timeline: Timeline, marked: Op | int, after: str) -> str:
    """Return a text that says on which device and at what time a marked operation or ring is in the timeline."""
    if isinstance(marked, int):
        places = [f" on device {device} from {start:g} to {end:g}{after}" for device, start, end in _ring(timeline, marked)]
        return f"the ring of stage {marked}{''.join(places)}"
    rows = [row for row, op in enumerate(timeline.ops) if op == marked and timeline.end[row] > 0]
    if not rows:
        return f"{marked} (never starts)"
    device = timeline.device[rows].tolist()
    times = [
        f"on device {device} from {timeline.start[row]:g} to {timeline.end[row]:g}{after}" for device, row in zip(device, rows, strict=True)
    ]
    return f"{marked} {' and '.join(times)}"
