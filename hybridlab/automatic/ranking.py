"""The ranking of schedules for given times: schedules of the registry, the caller's schedules, and schedules that a search finds."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridlab.automatic.for_times import NAME, ScheduleForTimes, alive_in, schedule_for, templates_of, with_links, without_pairs
from hybridlab.automatic.search import OF_ORDERED, START, WORK, rounded
from hybridlab.bound.analytic import bounds_at
from hybridlab.bound.chains import beyond, capacity_of, held_by
from hybridlab.checks import counted, each_of, item_of, one_time, short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.memory import no_limit
from hybridlab.progress import Progress
from hybridlab.schedule import Schedule, W
from hybridlab.schedules import REGISTRY, build, known_schedule
from hybridlab.simulation import simulate
from hybridlab.tables import Row, Tabular, aligned

if TYPE_CHECKING:
    from hybridlab.plot import Picture

PEAK = "peak activations of a device, microbatches"
MOST_MEMORIES = 48  # a figure shows the lower bound at about this many memories at most
SEARCHES = 0.8  # share of the effort for the searches; the rest is for further numbers of chunks
OF_ENTRY = 3  # work of building, simulating and bounding a schedule, for each operation, in the unit of WORK
FIRST_ENTRIES = 1_200_000  # work for further numbers of chunks, whatever the effort is: about a second
FREED = 0.5  # the value of held_after that a ranking tries, to say whether it matters


@dataclass(frozen=True)
class Ranked:
    """A schedule in a ranking with its results for the given times, or a refused schedule with the reason.

    Parameters
    ----------
    name : str
        The name of the schedule.
    chunks : int
        Number of model chunks on each device.
    schedule : Schedule or None
        The schedule. None if the schedule does not exist for these sizes.
    makespan : float
        The makespan, in the unit of the costs.
    bound : float
        A lower bound of the makespan, for all orders with the same number of chunks and the memory of the ranking. For a schedule with
        several copies of the weights or more than 2 chunks, a lower bound only for orders of this schedule's operations.
    peak : float
        The largest number of activations on a device, counted with the ``held_after`` of the ranking.
    bubble_ratio : float
        The share of idle time over all devices.
    messages : int
        Number of messages of all devices in one step.
    refusal : str
        The reason why the schedule is not in the ranking. Empty for a ranked schedule.
    summary : str
        A sentence about the end of the search. Empty for schedules that no search has found.
    """

    name: str
    chunks: int
    schedule: Schedule | None = None
    makespan: float = float("nan")
    bound: float = float("nan")
    peak: float = float("nan")
    bubble_ratio: float = float("nan")
    messages: int = 0
    refusal: str = ""
    summary: str = ""

    @property
    def copies(self) -> int:
        """Number of copies of the weights that the devices hold together. Two copies need twice the memory for weights."""
        return self.schedule.copies if self.schedule else 1

    @property
    def title(self) -> str:
        """The name, followed by the number of chunks if it is above 1."""
        return f"{self.name}, {self.chunks} chunks" if self.chunks > 1 else self.name


@dataclass(frozen=True, repr=False)
class Ranking(Tabular):
    """Schedules for the same times, sorted by makespan. Iteration gives :class:`Ranked` entries.

    Parameters
    ----------
    entries : tuple of Ranked
        The schedules that fit in the memory, shortest makespan first.
    refused : tuple of Ranked
        The other schedules, each with its ``refusal``.
    devices, microbatches : int
        The sizes of the schedules.
    costs : Costs
        The times.
    held_after : float
        The part of an activation that a device still holds between the input gradient and the weight gradient.
    split : bool
        Whether the ranking has schedules that split backwards.
    notes : tuple of str
        Sentences about the whole ranking: an interrupt, a memory that is no limit, a better schedule with a smaller ``held_after``, and
        what is assumed about unlike devices, microbatches of unlike lengths, and messages without a latency.
    interrupted : bool
        Whether an interrupt (Ctrl-C) has ended the ranking, so that searches or schedules are missing.
    """

    entries: tuple[Ranked, ...]
    refused: tuple[Ranked, ...]
    devices: int
    microbatches: int
    costs: Costs
    held_after: float = 1.0
    split: bool = True
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def best(self) -> Ranked:
        """The schedule with the shortest makespan. Among equal makespans, the schedule with the smallest peak."""
        return self.entries[0]

    @property
    def unit(self) -> str | None:
        """The unit of the makespans."""
        return self.costs.unit

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.entries)

    def __getitem__(self, place: Any) -> Any:
        return item_of(self.entries, place, "the ranking", "schedule")

    @cached_property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Pairs of a memory and a lower bound of the makespan, for schedules with these numbers of chunks and copies of the weights.

        The memories go from 1 to the largest peak. The bounds are computed on first use.
        """
        most = max(each.peak for each in self)
        step = max(0.5, math.ceil(2 * most / MOST_MEMORIES) / 2)  # steps of halves, because one of two chunks holds half an activation
        memories = np.arange(1, most + step, step)
        searched = {each.chunks for each in self if each.summary}
        bounded = [
            (each, without_pairs(each, self.costs))
            for chunks in searched
            for each in with_links(templates_of(self.devices, self.microbatches, chunks, self.split), self.costs)
        ]
        others = (each.schedule for each in self if each.chunks not in searched or each.copies > 1)
        bounded += [(each, self.costs) for each in others if each is not None]
        curves = [
            bounds_at(each, costs, [capacity_of(each, alive_in(memory, each, self.held_after)) for memory in memories])
            for each, costs in bounded
        ]
        return tuple(zip(memories.tolist(), np.min(curves, axis=0).tolist(), strict=True))

    def to_rows(self) -> list[Row]:
        """Return one dict for each schedule that fits, with the columns of the printed table."""
        return [
            {
                "schedule": each.name,
                "chunks": each.chunks,
                "copies": each.copies,
                "makespan": each.makespan,
                "over_bound": each.makespan / each.bound - 1 if each.bound else 0.0,
                "peak": each.peak,
                "bubble_ratio": each.bubble_ratio,
                "messages": each.messages,
            }
            for each in self
        ]

    def plot(self, title: str = "") -> "Picture":
        """Return a figure of time against memory, with the lower bound for each memory, by :func:`hybridlab.plot.points`.

        Of the schedules of the registry with the same name, the figure shows the shortest. A name says so if a schedule has two copies of
        the weights.
        """
        from hybridlab.plot import points  # imported here, because it needs matplotlib

        unit = f", {self.unit}" if self.unit else ""
        shortest: dict[tuple[str, int], Ranked] = {}
        for each in self:
            shortest.setdefault((each.name, each.chunks * bool(each.summary)), each)
        places = {
            f"{each.title}, {each.copies} copies" if each.copies > 1 else each.title: (each.peak, each.makespan)
            for each in shortest.values()
        }
        return points(places, x_label=PEAK, y_label=f"makespan{unit}", title=title, bound=self.bounds)

    def __repr__(self) -> str:
        unit = f", {self.unit}" if self.unit else ""
        heads = ["schedule", f"makespan{unit}", "over bound", "copies", "peak", "idle", "messages"]
        lines = [
            [
                each.title,
                f"{each.makespan:,.6g}",
                f"{row['over_bound']:.1%}",
                f"{each.copies}",
                f"{each.peak:.6g}",
                f"{each.bubble_ratio:.1%}",
                f"{each.messages:,}",
            ]
            for each, row in zip(self, self.to_rows(), strict=True)
        ]
        searches = [f"{each.title}: {each.summary}" for each in self if each.summary]
        return "\n".join([*aligned([heads, *lines]), *searches, *self.notes, *self._left_out()])

    def _left_out(self) -> list[str]:
        """Return a sentence for each reason. For several numbers of chunks with unlike reasons, it is that of the smallest number."""
        families: dict[tuple[str, ...], list[Ranked]] = {}
        for each in self.refused:  # the first two words of a refusal tell apart the reasons, such as "it holds" 9 or 10 activations
            families.setdefault((each.name, *each.refusal.split()[:2]), []).append(each)
        alike: dict[tuple[tuple[int, ...], bool, str], list[str]] = {}
        for first, *others in families.values():
            differ = any(each.refusal != first.refusal for each in others)
            alike.setdefault((tuple(each.chunks for each in (first, *others)), differ, first.refusal), []).append(first.name)
        lines = []
        for (chunks, differ, why), names in alike.items():
            title = f"{_listed(names)}{f' with {_listed(chunks)} chunks' if chunks != (1,) else ''}"
            reason = f"each {why[3:]}" if names[1:] and why.startswith("it ") else why
            smallest = f"with {counted(chunks[0], 'chunk')} " if differ else ""
            lines.append(f"{title} {'are' if names[1:] else 'is'} left out: {smallest}{reason}")
        return lines

    def _caption(self) -> str:
        return f"{counted(len(self), 'schedule')} for {counted(self.devices, 'device')} and {counted(self.microbatches, 'microbatch')}"


def _listed(items: Sequence[object]) -> str:
    """Return items as words, such as '2, 3 and 4'."""
    *others, last = map(str, items)
    return f"{', '.join(others)} and {last}" if others else last


def rank(
    costs: Costs,
    microbatches: int,
    memory: Any = None,
    schedules: Any = None,
    *,
    devices: int | None = None,
    most_chunks: int = 8,
    split: bool = True,
    held_after: float = 1.0,
    messages: str = "free",
    seconds: float = 10.0,
    progress: Progress = None,
) -> Ranking:
    """Return a ranking of the given schedules and of the schedules that :func:`schedule_for` finds with 1 and with 2 chunks.

    An interrupt (Ctrl-C) ends the ranking. The result then has what is known so far, and says so. If nothing is known yet, the interrupt
    goes on to the caller.

    Parameters
    ----------
    costs : Costs
        The measured times, one setting.
    microbatches : int
        Number of microbatches.
    memory : number, sequence of numbers, or Memory, optional
        The largest number of activations that a device may hold, as in :func:`schedule_for`. :class:`~hybridlab.Memory` counts in bytes,
        and has less room for a schedule with two copies of the weights. None means no limit.
    schedules : iterable, optional
        The schedules to rank: names of the registry, pairs (name, chunks), or Schedule values. A name alone has its smallest number of
        chunks. None means all schedules of the registry, each with all numbers of chunks up to ``most_chunks`` that it supports. (Times of
        each stage fit one number of chunks only.)
    devices : int, optional
        Number of devices. Required if the costs are the same for all devices. For times of each stage, the default is the number of stages.
    most_chunks : int
        The largest number of chunks on a device, such as its number of layers. Schedules and searches with more are left out. It does not
        apply to ``schedules``, nor to times of each stage.
    split : bool
        Whether backwards may be split. With False, schedules that split a backward are left out, and the searches split none.
    held_after : float
        The part of an activation that a device still holds between the input gradient and the weight gradient, as in
        :func:`schedule_for`. If a smaller value would give a shorter schedule, a note of the ranking says so.
    messages : "free" or "ordered"
        How messages run, as in :func:`schedule_for`.
    seconds : float
        Effort of the ranking, about the seconds on one core, as in :func:`schedule_for`. Most of it is for the two searches. The schedules
        with their smallest number of chunks are timed before; with 64 devices and 512 microbatches, all that does not depend on the effort
        takes about 12 seconds. With little effort, schedules with more chunks are left out, and the table says so.
    progress : bool or callable, optional
        Whether to show a progress bar, as in :func:`schedule_for`.

    Raises
    ------
    HybridLabError
        As in :func:`schedule_for`; or ``schedules`` is no list (``not-a-list``), or an entry of it is unknown (``unknown-name``) or of
        another type (``wrong-type``).

    Examples
    --------
    >>> costs = Costs(forward=[10, 12, 10, 11], backward=[20, 24, 21, 22], p2p=1)
    >>> rank(costs, 8, memory=4, schedules=["gpipe", "1f1b", "zb-h1"], seconds=0)
    schedule                        makespan, ms  over bound  copies  peak   idle  messages
    made for these times, 2 chunks        303.25        3.1%       1     4  14.3%       112
    made for these times                   317.5        2.6%       1     4  18.1%        48
    zb-h1                                  321.5        3.9%       1     4  19.1%        48
    1f1b                                     384       24.1%       1     4  32.3%        48
    made for these times, 2 chunks: the solver was given no time: no order is shorter than 294, and this one takes 303.25, 3.1% more
    made for these times: the solver was given no time: no order is shorter than 309.5, and this one takes 317.5, 2.6% more
    if your engine frees a part of an activation early, say so: with held_after=0.5 a schedule with 1 chunk takes 317 instead of 317.5
    the times are of devices. If your stages differ, give times of stages: with several chunks or copies, a device runs other stages
    gpipe is left out: it holds 8 activations on device 0, more than 4
    """
    effort, count = one_time(seconds, "seconds"), whole_number(microbatches, "microbatches")
    most_chunks = whole_number(most_chunks, "most_chunks")
    asked = None if schedules is None else list(_asked(schedules))
    searched, refused, number = _searches(
        costs, count, memory, devices, most_chunks, split, held_after, messages, effort * SEARCHES, progress
    )
    stopped = any(each.interrupted for each in searched.values())
    times = _Times(costs, number, count, memory, split, float(held_after), messages)
    entries = []
    try:
        own_work = (1 - SEARCHES) * effort * WORK
        registry = times.of_registry(most_chunks, max(2 * START, own_work), max(FIRST_ENTRIES, own_work))
        others = registry if asked is None else times.of(asked)
        for entry in others:
            entries.append(entry)  # noqa: PERF402 - after an interrupt, the list has the entries so far
        held_note = "" if stopped else times.note_of_held(searched)
    except KeyboardInterrupt:
        if stopped:  # this is the second interrupt
            raise
        stopped, held_note = True, ""
    # take the bound of the search: it is for the same operations, and a proof can raise it
    ranked = [
        replace(each, bound=min(searched[each.chunks].bound, each.makespan)) if each.chunks in searched and each.copies == 1 else each
        for each in entries
        if not each.refusal
    ]
    fitting = [*searched.values(), *(each.schedule for each in ranked if each.schedule)]
    free = no_limit(memory, (each for each in fitting if each.copies == 1), count)
    ranked += [
        replace(times.figures(_made_name(each), each, each.bound), summary=each.summary.removesuffix(f"; {free}"))
        for each in searched.values()
    ]
    if not ranked:
        raise HybridLabError(f"no schedule fits: {(*refused, *entries)[-1].refusal}", "does-not-fit")
    ranked.sort(key=lambda each: (rounded(each.makespan), rounded(each.peak)))
    notes = ("an interrupt ended the ranking: this is what was known" if stopped else "", free, held_note, *_assumed(costs, ranked))
    left_out = (*refused, *(each for each in entries if each.refusal))
    return Ranking(tuple(ranked), left_out, number, count, costs, times.held_after, split, tuple(filter(None, notes)), stopped)


def _assumed(costs: Costs, ranked: Sequence[Ranked]) -> Iterator[str]:
    """Yield a sentence for each assumption about the times that can decide between these schedules."""
    schedules = [each.schedule for each in ranked if each.schedule is not None]
    in_order = (tuple(range(schedules[0].devices)),)
    if costs.devices is not None and _differ(costs, "device") and any(each.paths != in_order for each in schedules):
        yield (
            "the times are of devices. If your stages differ, give times of stages: "
            "with several chunks or copies, a device runs other stages"
        )
    if _differ(costs, "microbatch"):
        yield "the microbatches take unlike times, but in peak and in memory each counts as one activation"
    if not costs.p2p.any() and costs.p2p_between is None and any(each.chunks > 1 for each in schedules):
        yield "messages take no time here, so many chunks look free: give a p2p time"


def _differ(costs: Costs, place: str) -> bool:
    """Return whether times differ from one device to another, or from one microbatch to another."""
    words = (costs.per,) if isinstance(costs.per, str) else costs.per
    if place not in words:
        return False
    axis = words.index(place) - len(words)
    return any(np.ptp(each, axis=axis).any() for each in (costs.forward, costs.backward, costs.weight_share))


def _made_name(made: ScheduleForTimes) -> str:
    """Return the name of a schedule from a search. If the search found no shorter one than the registry's, the name says so."""
    return NAME if made.name == NAME else f"{NAME}: {made.name}"


def _searches(
    costs: Costs,
    count: int,
    memory: Any,
    devices: int | None,
    most_chunks: int,
    split: bool,
    held_after: float,
    messages: str,
    effort: float,
    progress: Progress,
) -> tuple[dict[int, ScheduleForTimes], list[Ranked], int]:
    """Return what searches with 1 and with 2 chunks find, by the number of chunks, the searches left out, and the number of devices."""
    searched: dict[int, ScheduleForTimes] = {}
    refused, number = [], devices
    only = isinstance(costs, Costs) and costs.stages is not None  # times of each stage fit one search only
    for chunks in (1, 2):
        if any(each.interrupted for each in searched.values()):
            refused.append(Ranked(NAME, chunks, refusal="an interrupt ended the ranking before this search"))
            break
        if chunks > most_chunks and not only:
            refused.append(Ranked(NAME, chunks, refusal=_at_most(most_chunks)))
            break
        try:
            share = 1.0 if only else chunks / 3  # two chunks have twice the operations
            found = schedule_for(
                costs,
                count,
                memory,
                chunks=chunks,
                devices=number,
                split=split,
                held_after=held_after,
                messages=messages,
                seconds=share * effort,
                progress=progress,
            )
        except HybridLabError as why:
            if why.code != "does-not-fit":
                raise
            if chunks == 2 and not searched and (devices is None or costs.stages is None or costs.stages % devices):
                raise
            refused.append(Ranked(NAME, chunks, refusal=str(why)))
        else:
            searched[chunks], number = found, found.devices  # the number from the costs, if ``devices`` is None
    return searched, refused, number  # type: ignore[return-value]  # a search has found the number if the argument is None


def _at_most(most_chunks: int) -> str:
    return f"the ranking is for at most {counted(most_chunks, 'chunk')} on a device"


def _asked(schedules: Any) -> Iterator[tuple[str, int, Schedule | None]]:
    """Yield (name, chunks, schedule) for each entry to rank. ``schedule`` is None for a schedule of the registry."""
    wanted = "schedules are names, such as '1f1b', pairs such as ('interleaved', 4), or schedules"
    for each in each_of([schedules] if isinstance(schedules, (str, Schedule)) else schedules, wanted):
        if isinstance(each, Schedule):
            yield each.name, each.chunks, each
        elif isinstance(each, tuple) and len(each) == 2:
            yield known_schedule(each[0]), whole_number(each[1], "chunks"), None
        elif isinstance(each, str):
            yield known_schedule(each), REGISTRY[known_schedule(each)].fewest_chunks, None
        else:
            raise HybridLabError(f"{wanted}, not {short_repr(each)}", "wrong-type")


@dataclass(frozen=True)
class _Times:
    """The times, sizes and memory that all entries of a ranking share. The fields are those of :func:`rank`."""

    costs: Costs
    devices: int
    microbatches: int
    memory: Any
    split: bool
    held_after: float
    messages: str

    def of(self, asked: Sequence[tuple[str, int, Schedule | None]]) -> Iterator[Ranked]:
        """Yield an entry for each schedule that the caller asks for."""
        for each in asked:
            yield self.entry(*each)

    def of_registry(self, most_chunks: int, start: float, more: float) -> Iterator[Ranked]:
        """Yield an entry for each schedule of the registry: with its smallest number of chunks, then with others up to ``most_chunks``.

        ``start`` is the most work for the first, and ``more`` for the others. An entry for which no work is left says so.
        """
        others = []
        for name, family in REGISTRY.items():
            chunks = family.fewest_chunks
            if self.costs.stages is not None and not family.refusal(self.devices, self.microbatches, self.costs.stages // self.devices):
                chunks = self.costs.stages // self.devices
            if chunks > most_chunks and self.costs.stages is None:
                yield Ranked(name, chunks, refusal=_at_most(most_chunks))
                continue
            start -= self._work(chunks)
            entry = self._entry_within(start, name, chunks)
            yield entry
            # what is refused for its sizes or for a missing link is refused with more chunks, too; then ``schedule`` is None
            if entry.schedule is not None and family.chunk_step and self.costs.stages is None:
                others += [(each, name) for each in range(chunks + family.chunk_step, most_chunks + 1, family.chunk_step)]
        for chunks, name in sorted(others):
            more -= self._work(chunks)
            yield self._entry_within(more, name, chunks)

    def _work(self, chunks: int) -> float:
        """Return the most work of an entry with this number of chunks: that of a schedule with split backwards."""
        of_one = OF_ENTRY + OF_ORDERED * (self.messages != "free")
        return 3.0 * of_one * self.devices * self.microbatches * chunks

    def _entry_within(self, work: float, name: str, chunks: int) -> Ranked:
        """Return the entry of a schedule of the registry if ``work`` is left, that is, not below zero."""
        return self.entry(name, chunks) if work >= 0 else Ranked(name, chunks, refusal="the effort did not suffice: give more seconds")

    def entry(self, name: str, chunks: int, own: Schedule | None = None) -> Ranked:
        """Return a schedule with its results, or with the reason for its refusal."""

        def refused(why: str, schedule: Schedule | None = None) -> Ranked:
            return Ranked(name, chunks, schedule, refusal=why)

        devices, microbatches, stages = self.devices, self.microbatches, self.costs.stages
        if own is None:
            refusal = REGISTRY[name].refusal(devices, microbatches, chunks)
            if refusal:
                return refused(refusal)
        schedule = own or build(name, devices, microbatches, chunks)
        if (schedule.devices, schedule.microbatches) != (devices, microbatches):
            sizes = f"{counted(schedule.devices, 'device')} and {counted(schedule.microbatches, 'microbatch')}"
            return refused(f"it has {sizes}, not {devices} and {microbatches}")
        if not self.split and (schedule.kind == W).any():
            return refused("it splits backwards, and the ranking is without split backwards")
        if stages not in (None, schedule.stages):
            return refused(f"it has {counted(schedule.stages, 'stage')}, but the times are for {counted(stages or 0, 'stage')}")
        try:
            over = "" if self.memory is None else beyond(schedule, self.memory, self.held_after)
        except HybridLabError as why:  # two copies of the weights leave no room
            over = str(why)
        if over:
            return refused(over, schedule)
        try:
            return self.figures(name, schedule)
        except HybridLabError as why:  # for example, a link without a latency
            return refused(str(why))

    def figures(self, name: str, schedule: Schedule, bound: float | None = None) -> Ranked:
        """Return a schedule with its results. If ``bound`` is None, the lower bound is that of the schedule's own operations."""
        timeline = simulate(schedule, self.costs, messages=self.messages)
        if bound is None:
            # without precedences, which would take most of the time of a ranking
            (highest,) = bounds_at(schedule, self.costs, [capacity_of(schedule, alive_in(self.memory, schedule, self.held_after))])
            bound = min(float(highest), timeline.makespan)  # because rounding can raise a bound above the makespan
        peak, messages = float(held_by(schedule, self.held_after).max()), int(schedule.messages.sum())
        return Ranked(name, schedule.chunks, schedule, timeline.makespan, bound, peak, timeline.bubble_ratio, messages)

    def note_of_held(self, searched: dict[int, ScheduleForTimes]) -> str:
        """Return a sentence if a smaller ``held_after`` would give shorter schedules than these. Otherwise an empty text."""
        if not self.split or self.held_after < 1 or self.memory is None or no_limit(self.memory, searched.values(), self.microbatches):
            return ""
        shorter = []
        for chunks, made in searched.items():
            freed = schedule_for(
                self.costs,
                self.microbatches,
                self.memory,
                chunks=chunks,
                devices=self.devices,
                held_after=FREED,
                messages=self.messages,
                seconds=0,
                progress=False,
            )
            if freed.interrupted:
                raise KeyboardInterrupt
            spans = [float(simulate(each, self.costs, messages=self.messages).device_span) for each in (freed, made)]
            with_chunks = f"with {counted(chunks, 'chunk')}"
            if rounded(freed.makespan) < rounded(made.makespan):
                shorter.append(f"a schedule {with_chunks} takes {freed.makespan:.6g} instead of {made.makespan:.6g}")
            elif rounded(freed.makespan) == rounded(made.makespan) and rounded(spans[0]) < rounded(spans[1]):
                # the search's own second criterion; the published bubble rates of Zero Bubble are those of this span
                each_device = f"a device {with_chunks} needs at most {spans[0]:.6g} instead of {spans[1]:.6g}"
                shorter.append(f"{each_device} from its first operation to its last")
        why = f"if your engine frees a part of an activation early, say so: with held_after={FREED:g}"
        return f"{why} {', and '.join(shorter)}" if shorter else ""
