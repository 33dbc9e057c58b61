"""The picture of an answer: the student's own timeline, as far as it runs, above the timeline that the task asks for."""

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
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import ALL_GATHER, OPTIMISER, REDUCE_SCATTER, Spans

if TYPE_CHECKING:
    from hybridlab.plot import Picture

YOURS, GOAL = "yours", "the goal"  # the titles of the two timelines
_NAMED = re.compile(r"\b(?:(device |stage |microbatch )(\d+)|\d+[FBIW]\d+)\b")  # what a sentence can name: "stage 2", "1F0"
MOST_DEVICES, MOST_OPS = 16, 256  # devices of a timeline that is drawn, and operations on one device


@dataclass(frozen=True)
class Drawing:
    r"""The picture that goes with the feedback on a schedule or a timeline.

    Parameters
    ----------
    orders : tuple of tuples of Op
        The answer: the operations of each device in running order. A tuple of two operations is an overlapped pair. The order need not
        be legal: operations can be missing or doubled, and devices can wait for ever.
    costs : Costs or None
        One setting. None if ``yours`` has the times; nothing is drawn if both are None.
    goal : Timeline, optional
        The timeline that was asked for, drawn below on the same axis of time. It has one setting and the unit of the costs.
    marked : tuple of Op or int
        The wrong operations. A number is a stage whose ring is wrong.
    yours : Timeline, optional
        The timeline of the answer, if the answer has times of its own. None means that each operation starts as early as it can.
    scale : mapping of str to float
        Times by name that a line below the timelines shows, in the same unit. Empty for no line.
    case : tuple
        The arguments of the call that returned the answer, if it came from a function.
    own_lines : callable, optional
        Takes the operations of each line without a twist, as texts such as ``"1F0"``, and the case. Returns them with the student's twist.
        The picture then has the student's own devices, stages and microbatches.

    Raises
    ------
    HybridLabError
        The costs have several settings (``several-settings``), or another unit than the goal (``different-units``).

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
            The student's times in the goal's unit, in the order of ``goal.ops``. Operations can overlap or start too early. An operation
            that ends before it starts is drawn between the two times. Nothing is drawn for other shapes, for times that are not finite
            and for times before 0.
        goal : Timeline
            The right times.
        marked : iterable of Op
            The wrong operations.
        """
        times = _sound_times(starts, ends, goal.schedule.kind.size)
        zero = np.zeros(1)
        origin = Spans(np.array([OPTIMISER]), np.array([0]), zero, zero)  # not drawn; with it, the axis of time begins at 0
        yours = Timeline(goal.schedule, *times, origin, goal.unit) if times is not None else None
        return cls(goal.schedule.turns if yours else (), None, goal, tuple(marked), yours)

    @classmethod
    def of_rings(cls, starts: Any, ends: Any, given: Timeline, goal: Timeline | None = None, marked: Iterable[int] = ()) -> "Drawing":
        """Return the drawing of an answer that has the start and the end of each stage's all-reduce.

        Parameters
        ----------
        starts, ends : array_like, shape (stages,)
            The student's times in the unit of ``given``. Nothing is drawn for the same values as in :meth:`of_times`.
        given : Timeline
            The operations, which the rings are drawn beside; the first of them starts at 0.
        goal : Timeline, optional
            The same operations beside the right rings: see :func:`with_rings`.
        marked : iterable of int
            The stages whose rings are wrong.
        """
        times = _sound_times(starts, ends, given.schedule.stages)
        yours = with_rings(given, *times) if times is not None else None
        return cls(given.schedule.turns if yours else (), None, goal, tuple(marked), yours)

    def figure(self) -> "Picture | None":
        """Return the picture; None if there is nothing to draw or too much of it.

        An order that is not legal is drawn as far as it runs, and a box shows where each device stops and what it waits for.

        Returns
        -------
        Picture or None
            None for an order without operations, more than 16 devices, more than 256 operations on a device, a stage or a microbatch
            of a number above 255, and costs that are for another number of devices or lack a link between two devices.
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
                # these costs do not go with this answer; the feedback needs no picture
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
        """Return the picture of timelines that already have the student's own names."""
        from hybridlab.plot.marks import Stopped, marked_figure  # loads matplotlib

        timelines = {YOURS: yours} | ({GOAL: self.goal} if self.goal is not None else {})
        results = {} if legal else {YOURS: _ending(yours, bool(stops))}
        # an operation that ends at 0 stands for a run in which nothing ran: see timeline_of
        rows = [row for row, op in enumerate(yours.ops) if op in self.marked and yours.end[row] > 0]
        boxes = [Stopped(stop.device, stop.time, f"{stop.op} waits for {_needed(stop, orders)}", stop.op in self.marked) for stop in stops]
        rings = [(stage, *ring) for stage in self.marked if isinstance(stage, int) for ring in _ring(yours, stage)]
        return marked_figure(timelines, results, self._words(yours, orders, stops, results), rows, rings, boxes, self.scale)

    def _words(self, yours: Timeline, orders: Turns, stops: Sequence[Stop], results: dict[str, str]) -> str:
        """Return the alternative text: the answer, what is marked in it, where devices stop, and the goal."""
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
    """The names of devices and operations under a twist, for pictures and sentences."""

    lines: list[int]  # for each line of the student, the device that it has without the twist
    own: Callable[[str], str]  # renames an operation

    @classmethod
    def of(cls, own_lines: Callable[..., Any], case: tuple[Any, ...], devices: int) -> "Renaming":
        """Return the renaming of ``own_lines`` for so many devices."""
        marks = [f"line:{device}" for device in range(devices)]  # these are no operations, so a twist can only move them
        places = [marks.index(mark) for (mark,) in own_lines([[mark] for mark in marks], case)]
        return cls(places, lambda op: own_lines([[op]] * devices, case)[0][0])

    def op(self, op: Op | int) -> Op | int:
        """Return an operation under its own name; the number of a stage with a wrong ring as it is."""
        return op if isinstance(op, int) else Op.parse(self.own(str(op)))

    def sentence(self, sentence: str) -> str:
        """Return a sentence with the student's own devices, stages, microbatches and operations."""

        def rename(found: re.Match[str]) -> str:
            word, number = found[1], int(found[2] or 0)
            if word == "device ":
                return f"{word}{self.lines.index(number)}" if number in self.lines else found[0]
            # a twist renames operations alone, so one of this stage or microbatch shows the new number
            if word == "stage ":
                return f"{word}{Op.parse(self.own(f'{number}F0')).stage}"
            if word == "microbatch ":
                return f"{word}{Op.parse(self.own(f'0F{number}')).microbatch}"
            return self.own(found[0])

        return _NAMED.sub(rename, sentence)

    def turn(self, turn: Turn) -> Turn:
        """Return a turn with the own names of its operations."""
        return tuple(Op.parse(self.own(str(op))) for op in turn)

    def orders(self, orders: Turns) -> Turns:
        """Return orders with the student's own lines and operations."""
        return tuple(tuple(map(self.turn, orders[place])) for place in self.lines)

    def stop(self, stop: Stop) -> Stop:
        """Return where a device stops, under the own names."""
        op, needed = self.turn((stop.op, stop.needed))
        return Stop(self.lines.index(stop.device), op, needed, stop.time)

    def timeline(self, timeline: Timeline) -> Timeline:
        """Return a timeline under the own names of devices and operations. It stays as it is even if no run could give it."""
        rows = zip(timeline.ops, timeline.schedule.device.tolist(), timeline.start.tolist(), timeline.end.tolist(), strict=True)
        ran: list[list[Ran]] = [[] for _ in self.lines]
        for op, device, start, end in rows:
            mine = ran[self.lines.index(device)]
            if mine and mine[-1].start == start and mine[-1].end == end > start:  # an overlapped pair
                mine[-1] = mine[-1]._replace(turn=(*mine[-1].turn, *self.turn((op,))))
            else:
                mine.append(Ran(self.turn((op,)), start, end))
        return timeline_of(tuple(tuple(each.turn for each in turns) for turns in ran), ran, timeline.unit)


def with_rings(timeline: Timeline, starts: Any, ends: Any) -> Timeline:
    """Return a timeline with a ring beside the operations of each stage: a reduce-scatter, then an all-gather of the same length.

    Parameters
    ----------
    timeline : Timeline
        One setting. Its spans are replaced.
    starts, ends : array_like, shape (stages,)
        Start and end of the all-reduce of each stage.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> with_rings(simulate(build("1f1b", 2, 2), Costs(forward=1, backward=2)), [9, 8], [10, 9]).makespan
    10.0
    """
    start, end = np.asarray(starts, dtype=float), np.asarray(ends, dtype=float)
    stages, middle = np.arange(timeline.schedule.stages), (start + end) / 2
    kinds = np.repeat([REDUCE_SCATTER, ALL_GATHER], stages.size)
    devices = np.tile(timeline.schedule.device_of, 2)
    spans = Spans(kinds, devices, np.append(start, middle), np.append(middle, end), stage=np.tile(stages, 2))
    return Timeline(timeline.schedule, timeline.start, timeline.end, spans, timeline.unit)


def marked_by(error: InvalidSchedule) -> tuple[Op, ...]:
    """Return the operations that the error puts in brackets.

    >>> try:
    ...     Schedule.parse("0F0 0B0 0B0")
    ... except InvalidSchedule as error:
    ...     print(*marked_by(error))
    0B0
    """
    ops = (problem.op for problem in error.problems if isinstance(problem, Problem))
    return tuple(dict.fromkeys(op for op in ops if op is not None))


def first_differences(orders: Iterable[Iterable[Op | Turn]], goal: Timeline) -> tuple[Op, ...]:
    """Return the first wrong operation of each device whose order differs from that of the goal.

    >>> from hybridlab import build, simulate
    >>> gpipe, goal = build("gpipe", 2, 2), simulate(build("1f1b", 2, 2), Costs(forward=1, backward=2))
    >>> [str(op) for op in first_differences(gpipe.turns, goal)]
    ['1F1']
    """
    pairs = (zip(*each, strict=False) for each in zip(turns_of(orders), goal.schedule.turns, strict=False))
    firsts = (next((mine for mine, right in pair if mine != right), ()) for pair in pairs)
    return tuple(op for turn in firsts for op in turn)


def _sound_times(starts: Any, ends: Any, count: int) -> tuple[Floats, Floats] | None:
    """Return starts and ends in which no operation ends before it starts; None unless each has ``count`` finite times from 0 on."""
    try:
        times = np.array([starts, ends], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    sound = times.shape == (2, count) and bool(((times >= 0) & (times <= LATEST)).all())
    return (times.min(axis=0), times.max(axis=0)) if sound else None


def _drawable(orders: Turns) -> bool:
    """Return whether there is an operation to draw, and no more devices and operations than a picture can show."""
    # numbers of stages and microbatches, too: the arrays of a timeline have a place for each number below the largest
    ops = [[op for turn in order for op in turn] for order in orders]
    small = len(ops) <= MOST_DEVICES and all(len(order) <= MOST_OPS for order in ops)
    return any(ops) and small and all(op.stage < MOST_OPS and op.microbatch < MOST_OPS for order in ops for op in order)


def _is_legal(orders: Turns) -> bool:
    """Whether orders are a valid schedule."""
    try:
        Schedule(YOURS, orders)
    except InvalidSchedule:
        return False
    return True


def _needed(stop: Stop, orders: Turns) -> str:
    """Return the operation that a device waits for, and whether it is missing in all orders."""
    present = any(stop.needed in turn for order in orders for turn in order)
    return f"{stop.needed}{'' if present else ', which is missing'}"


def _ending(timeline: Timeline, stopped: bool) -> str:
    """Return in words how an order that is not legal ends."""
    after = f" {timeline.unit}" if timeline.unit else ""
    time = f"{timeline.makespan:g}{after}"
    return f"stops at {time}" if stopped else f"ends at {time}, but is not a valid schedule"


def _ring(timeline: Timeline, stage: int) -> list[tuple[int, float, float]]:
    """Return device, start and end of the ring of a stage, in a list; an empty list if there is no such ring."""
    if timeline.spans is None:
        return []
    rings = timeline.spans.where(timeline.spans.stage == stage)
    return [(int(rings.device[0]), float(rings.start.min()), float(rings.end.max()))] if rings.size else []


def _where(timeline: Timeline, marked: Op | int, after: str) -> str:
    """Return in words where a marked operation or ring is in the timeline."""
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
