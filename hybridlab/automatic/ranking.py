"""The ranking of schedules for given times: schedules of the registry, the caller's schedules, and schedules that a search finds."""

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridlab.automatic.for_times import NAME, ScheduleForTimes, bound_of, schedule_for, templates_of, with_links
from hybridlab.automatic.search import rounded
from hybridlab.bound import lower_bound
from hybridlab.bound.chains import capacity_of
from hybridlab.checks import counted, each_of, item_of, one_time, short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build, known_schedule
from hybridlab.simulation import simulate

if TYPE_CHECKING:
    from hybridlab.plot import Picture

PEAK = "peak activations of a device, microbatches"
MOST_MEMORIES = 48  # a figure shows the lower bound at about this many memories at most
COLUMNS = ("schedule", "chunks", "makespan", "over_bound", "peak", "bubble_ratio", "messages")


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
        The largest number of activations on a device.
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
        """Number of copies of the weights."""
        return self.schedule.copies if self.schedule else 1

    @property
    def title(self) -> str:
        """The name, followed by the number of chunks if it is above 1."""
        return f"{self.name}, {self.chunks} chunks" if self.chunks > 1 else self.name


@dataclass(frozen=True, repr=False)
class Ranking:
    """Schedules for the same times, sorted by makespan. Iteration gives :class:`Ranked` entries.

    Parameters
    ----------
    entries : tuple of Ranked
        The schedules that fit in the memory, shortest makespan first.
    refused : tuple of Ranked
        The other schedules, each with its ``refusal``.
    devices, microbatches : int
        The sizes of the schedules.
    unit : str or None
        The unit of the makespans.
    bounds : tuple of (float, float)
        Pairs of a memory and a lower bound of the makespan, for schedules with these numbers of chunks and copies of the weights.
    """

    entries: tuple[Ranked, ...]
    refused: tuple[Ranked, ...]
    devices: int
    microbatches: int
    unit: str | None
    bounds: tuple[tuple[float, float], ...]

    @property
    def best(self) -> Ranked:
        """The schedule with the shortest makespan. Among equal makespans, the schedule with the smallest peak."""
        return self.entries[0]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.entries)

    def __getitem__(self, place: Any) -> Any:
        return item_of(self.entries, place, "the ranking", "schedule")

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dict for each schedule that fits, with the columns of the printed table."""
        return [
            {
                "schedule": each.name,
                "chunks": each.chunks,
                "makespan": each.makespan,
                "over_bound": each.makespan / each.bound - 1 if each.bound else 0.0,
                "peak": each.peak,
                "bubble_ratio": each.bubble_ratio,
                "messages": each.messages,
            }
            for each in self
        ]

    def to_csv(self) -> str:
        """Return the table as CSV text, one row for each schedule that fits."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.to_rows())
        return text.getvalue()

    def plot(self, title: str = "") -> "Picture":
        """Return a figure of time against memory, with the lower bound for each memory, by :func:`hybridlab.plot.points`."""
        from hybridlab.plot import points  # imported here, because it needs matplotlib

        unit = f", {self.unit}" if self.unit else ""
        # reversed: among equal titles, the best entry stays
        places = {each.title: (each.peak, each.makespan) for each in reversed(self.entries)}
        return points(places, x_label=PEAK, y_label=f"makespan{unit}", title=title, bound=self.bounds)

    def __repr__(self) -> str:
        unit = f", {self.unit}" if self.unit else ""
        heads = ["schedule", f"makespan{unit}", "over bound", "peak", "idle", "messages"]
        lines = [
            [
                each.title,
                f"{each.makespan:,.6g}",
                f"{row['over_bound']:.1%}",
                f"{each.peak:g}",
                f"{each.bubble_ratio:.1%}",
                f"{each.messages:,}",
            ]
            for each, row in zip(self, self.to_rows(), strict=True)
        ]
        wide = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
        table = [
            "  ".join(cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(zip(line, wide, strict=True)))
            for line in [heads, *lines]
        ]
        searches = [f"{each.title}: {each.summary}" for each in self if each.summary]
        return "\n".join([*table, *searches, *(f"{each.title} is left out: {each.refusal}" for each in self.refused)])


def rank(
    costs: Costs,
    microbatches: int,
    memory: Any = None,
    schedules: Any = None,
    *,
    devices: int | None = None,
    seconds: float = 2.0,
    progress: bool | None = None,
) -> Ranking:
    """Return a ranking of the given schedules and of the schedules that :func:`schedule_for` finds with 1 and with 2 chunks.

    Parameters
    ----------
    costs : Costs
        The measured times, one setting.
    microbatches : int
        Number of microbatches.
    memory : number or sequence of numbers, optional
        The largest number of activations that a device may hold, as in :func:`schedule_for`. None means no limit.
    schedules : iterable, optional
        The schedules to rank: names of the registry, pairs (name, chunks), or Schedule values. None means all schedules of the registry,
        each with its smallest number of chunks.
    devices : int, optional
        Number of devices. Required if the costs are the same for all devices. For times of each stage, the default is the number of stages.
    seconds : float
        Effort of each search, as in :func:`schedule_for`.
    progress : bool, optional
        Whether to show a progress bar, as in :func:`schedule_for`.

    Raises
    ------
    HybridLabError
        As in :func:`schedule_for`, or an entry of ``schedules`` is unknown.

    Examples
    --------
    >>> costs = Costs(forward=[10, 12, 10, 11], backward=[20, 24, 21, 22], p2p=1)
    >>> rank(costs, 8, memory=4, schedules=["gpipe", "1f1b", "zb-h1"], seconds=0)
    schedule                              makespan, ms  over bound  peak   idle  messages
    made for these times: zb-v, 2 chunks        303.75        3.3%     4  14.4%        96
    made for these times                         317.5        6.2%     4  18.1%        48
    zb-h1                                        321.5        7.5%     4  19.1%        48
    1f1b                                           384       28.4%     4  32.3%        48
    made for these times: zb-v, 2 chunks: the solver was given no time: no order is shorter than 294, and this one takes 303.75, 3.3% more
    made for these times: the solver was given no time: no order is shorter than 299, and this one takes 317.5, 6.2% more
    gpipe is left out: it holds 8 activations on device 0, more than 4
    """
    effort, count = one_time(seconds, "seconds"), whole_number(microbatches, "microbatches")
    asked = list(_entries(schedules))
    number, searched, refused = devices, {}, []
    fault = None
    for chunks in (1, 2):
        try:
            searched[chunks] = schedule_for(costs, count, memory=memory, chunks=chunks, devices=number, seconds=effort, progress=progress)
            number = searched[chunks].devices  # the number from the costs, if ``devices`` is None
        except HybridLabError as why:
            if why.code != "does-not-fit":  # times of each stage fit only one number of chunks
                raise
            fault = why
            refused.append(Ranked(NAME, chunks, refusal=str(why)))
    if number is None or not searched:
        raise fault or HybridLabError("no schedule was found", "empty")
    ranked = []
    for name, chunks, own in asked:
        entry = _entry(name, chunks, own, number, count, costs, memory)
        if entry.refusal:
            refused.append(entry)
        else:
            # take the bound of the search: it is for the same operations, and a proof can raise it
            same = chunks in searched and entry.copies == 1
            ranked.append(replace(entry, bound=searched[chunks].bound) if same else entry)
    for each in searched.values():
        name = NAME if each.name == NAME else f"{NAME}: {each.name}"
        ranked.append(replace(_figures(name, each, costs, each.bound), summary=each.summary))
    ranked.sort(key=lambda each: (rounded(each.makespan), rounded(each.peak)))
    return Ranking(tuple(ranked), tuple(refused), number, count, costs.unit, _bounds(searched, costs, ranked))


def _entries(schedules: Any) -> Iterator[tuple[str, int, Schedule | None]]:
    """Yield (name, chunks, schedule) for each entry to rank. ``schedule`` is None for a schedule of the registry."""
    wanted = "schedules are names, such as '1f1b', pairs such as ('interleaved', 4), or schedules"
    for each in each_of(
        [schedules] if isinstance(schedules, (str, Schedule)) else list(REGISTRY) if schedules is None else schedules, wanted
    ):
        if isinstance(each, Schedule):
            yield each.name, each.chunks, each
        elif isinstance(each, tuple) and len(each) == 2:
            yield known_schedule(each[0]), whole_number(each[1], "chunks"), None
        elif isinstance(each, str):
            yield known_schedule(each), REGISTRY[known_schedule(each)].fewest_chunks, None
        else:
            raise HybridLabError(f"{wanted}, not {short_repr(each)}", "wrong-type")


def _entry(name: str, chunks: int, own: Schedule | None, devices: int, microbatches: int, costs: Costs, memory: Any) -> Ranked:
    """Return a schedule with its results, or with the reason for its refusal."""

    def refused(why: str) -> Ranked:
        return Ranked(name, chunks, refusal=why)

    if own is None:
        refusal = REGISTRY[name].refusal(devices, microbatches, chunks)
        if refusal:
            return refused(refusal)
    schedule = own or build(name, devices, microbatches, chunks)
    if (schedule.devices, schedule.microbatches) != (devices, microbatches):
        sizes = f"{counted(schedule.devices, 'device')} and {counted(schedule.microbatches, 'microbatch')}"
        return refused(f"it has {sizes}, not {devices} and {microbatches}")
    if costs.stages not in (None, schedule.stages):
        return refused(f"it has {counted(schedule.stages, 'stage')}, but the times are for {counted(costs.stages or 0, 'stage')}")
    if memory is not None:
        needed, limits = capacity_of(schedule), capacity_of(schedule, memory)
        over = np.flatnonzero(needed > limits)
        if over.size:
            most, limit = (float(each[over[0]] / schedule.chunks) for each in (needed, limits))
            return refused(f"it holds {most:g} activations on device {over[0]}, more than {limit:g}")
    try:
        return _figures(name, schedule, costs, float(lower_bound(schedule, costs, microbatches if memory is None else memory)))
    except HybridLabError as why:  # for example, a link without a latency
        return refused(str(why))


def _figures(name: str, schedule: Schedule, costs: Costs, bound: float) -> Ranked:
    """Return a schedule with its results for the times."""
    timeline = simulate(schedule, costs)
    figures = (timeline.makespan, bound, float(timeline.peak_activations.max()), timeline.bubble_ratio, int(schedule.messages.sum()))
    return Ranked(name, schedule.chunks, schedule, *figures)


def _bounds(searched: dict[int, ScheduleForTimes], costs: Costs, ranked: list[Ranked]) -> tuple[tuple[float, float], ...]:
    """Return pairs (memory, lower bound of the makespan) for memories from 1 to the largest peak."""
    most = max(each.peak for each in ranked)
    step = max(0.5, math.ceil(2 * most / MOST_MEMORIES) / 2)  # steps of halves, because one of two chunks holds half an activation
    memories = np.arange(1, most + step, step).tolist()
    one = next(iter(searched.values()))
    templates = [
        each for chunks in searched for each in with_links(templates_of(searched[chunks].devices, one.microbatches, chunks), costs)
    ]
    others = [each.schedule for each in ranked if each.schedule and (each.chunks not in searched or each.schedule.copies > 1)]
    return tuple(
        (memory, min([bound_of(each, costs, memory) for each in templates] + [lower_bound(each, costs, memory) for each in others]))
        for memory in memories
    )
