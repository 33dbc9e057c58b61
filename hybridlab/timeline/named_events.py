"""Events whose names say only the kind of an operation, such as ``forward_step``. A schedule says which operation each of them is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

from hybridlab.checks import checked_text, counted, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import REGISTRY, build, known_schedule
from hybridlab.timeline.events import Event
from hybridlab.timeline.recordings import Find, Match, Slice, names_of

EXAMPLE = 'events={"F": "forward_step", "B": "backward_step"}, schedule="1f1b"'
Asked = Schedule | tuple[str, int | None]  # a schedule, or its name and its number of chunks
_STOPPED = ". If the job stopped in a later step, give the orders of a whole step, not a name: a Schedule, or for the command a CSV file"


class Rank(NamedTuple):
    """The operations of one rank, sorted by their starts. Times are in microseconds, on one clock for all ranks."""

    label: str
    slices: list[Slice]
    number: Any = None  # sorts the ranks, if the file or the name of the events states it


class Contradiction(NamedTuple):
    """The first place where the events of a rank are not those of a schedule."""

    time: float  # start of the event in microseconds
    message: str


def checked_events(events: object) -> dict[Kind, re.Pattern[str]] | None:
    """Return the compiled regular expression for each kind. None if ``events`` is None.

    Raises
    ------
    HybridLabError
        ``events`` is not a mapping of F, B, I or W to regular expressions, or there is nothing for forwards or for backwards.
    """
    if events is None:
        return None
    if not isinstance(events, Mapping):
        raise HybridLabError(f"events give a name for each kind, as in {EXAMPLE}, not {short_repr(events)}", "wrong-type")
    found: dict[Kind, re.Pattern[str]] = {}
    for kind, name in events.items():
        if not (isinstance(kind, str) and kind in tuple(Kind)):
            raise HybridLabError(f"events have the kinds F, B, I and W, as in {EXAMPLE}, not {short_repr(kind)}", "unknown-kind")
        try:
            found[Kind(kind)] = (
                name if isinstance(name, re.Pattern) else re.compile(checked_text(name, f"the name of the events of kind {kind}"))
            )
        except re.error as why:
            raise HybridLabError(f"{short_repr(name)} is not a regular expression: {why}", "not-a-pattern") from None
    if Kind.F not in found or not {Kind.B, Kind.I} & found.keys():
        kinds = ", ".join(found) or "none"
        raise HybridLabError(f"events need a name for F and for B (or for I and W), as in {EXAMPLE}; given: {kinds}", "missing-kind")
    return found


def checked_order(schedule: object) -> Asked | None:
    """Return the schedule, or its name and its number of chunks. None if ``schedule`` is None."""
    if schedule is None or isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, str):
        return known_schedule(schedule), None
    if isinstance(schedule, (tuple, list)) and len(schedule) == 2:
        return known_schedule(schedule[0]), whole_number(schedule[1], "chunks")
    wanted = 'schedule is a name such as "1f1b", a name with its number of chunks such as ("interleaved", 2), or a Schedule'
    raise HybridLabError(f"{wanted}, not {short_repr(schedule)}", "wrong-type")


def finder(events: Mapping[Kind, re.Pattern[str]]) -> Find:
    """Return the function that finds the kind of an event by its name.

    >>> find = finder({Kind.F: re.compile("forward_step|fwd"), Kind.B: re.compile("backward_step")})
    >>> find({"name": "backward_step"}).kind, find({"name": "forward_step_func"})
    (<Kind.B: 'B'>, None)
    """

    def find(event: Event) -> Match | None:
        for name in names_of(event):
            for kind, pattern in events.items():
                match = pattern.fullmatch(name)
                if match:
                    groups = match.groupdict()
                    return Match((), kind, groups.get("device"), groups.get("replica"))
        return None

    return find


def with_operations(ranks: Sequence[Rank], asked: Asked) -> list[Rank]:
    """Return the ranks in the order of devices, with the operation of each event.

    The n-th event of a rank is the n-th operation of its device. After whole steps of a given schedule, the trace may end in the middle of
    a step. For the name of a schedule, the number of microbatches is the number of forwards of a rank, divided by
    the number of chunks. If the trace has several steps, it is divided by their number, too: the smallest number with which all events
    agree with the schedule.

    Raises
    ------
    HybridLabError
        ``contradicts-schedule``: an event is not what the schedule runs there. ``wrong-size``: the numbers of ranks or of forwards do not
        fit. ``no-ranks``: the files do not state their ranks, and the order of ranks cannot be seen.
    """
    ranks = [Rank(rank.label, sorted(rank.slices, key=lambda each: (each.start, each.end)), rank.number) for rank in ranks]
    if all(rank.number is not None for rank in ranks):
        ranks.sort(key=lambda rank: rank.number)
    else:
        ranks = _in_running_order(ranks, asked)
    refused: Contradiction | None = None
    for schedule in _candidates(ranks, asked):
        orders = list(zip(ranks, schedule.orders, strict=True))
        steps: float = max(1, round(sum(len(rank.slices) for rank in ranks) / schedule.kind.size))
        if isinstance(asked, Schedule) and all(len(rank.slices) >= len(order) for rank, order in orders):
            steps = float("inf")  # the first step is whole, and the job may have stopped in any later one
        wrong = [each for rank, order in orders if (each := _contradiction(rank, order, schedule, steps)) is not None]
        if not wrong:
            return [
                rank._replace(slices=[each._replace(ops=(op,)) for each, op in zip(rank.slices, cycle(order), strict=False)])
                for rank, order in orders
            ]
        refused = refused or min(wrong, key=lambda each: each.time)  # the error is that of one step
    message = refused.message if refused else "the schedule is empty"
    raise HybridLabError(message if isinstance(asked, Schedule) else message + _STOPPED, "contradicts-schedule")


def _in_running_order(ranks: Sequence[Rank], asked: Asked) -> list[Rank]:
    """Return the ranks in the order in which microbatch 0 visits them. Each rank must wait for the one before it."""
    copies = asked.copies if isinstance(asked, Schedule) else REGISTRY[asked[0]].copies
    if copies > 1:
        # the first forwards at both ends of the pipeline start together
        message = "with two copies of the weights, the order of the ranks cannot be seen in the trace, and the files do not state it"
        advice = "record with torch.profiler, which writes distributedInfo.rank, or give the events a group (?P<device>...)"
        raise HybridLabError(f"{message}: {advice}", "no-ranks")
    ends = [min((each.end for each in rank.slices if each.kind is Kind.F), default=float("inf")) for rank in ranks]
    sorted_ranks = [rank for _, rank in sorted(zip(ends, ranks, strict=True), key=lambda each: each[0])]
    if isinstance(asked, Schedule) and asked.devices == len(ranks):
        device_of = list(dict.fromkeys(asked.device_of))
        return [sorted_ranks[device_of.index(device)] for device in range(asked.devices)]
    return sorted_ranks


def _candidates(ranks: Sequence[Rank], asked: Asked) -> Iterator[Schedule]:
    """Yield the schedules that the events of a trace can be: the given one, or one for each number of steps."""
    if isinstance(asked, Schedule):
        if asked.devices != len(ranks):
            message = f"the trace has {counted(len(ranks), 'rank')}, but the schedule {asked.name!r} has {counted(asked.devices, 'device')}"
            raise HybridLabError(f"{message}: the ranks are {_listed(ranks)}", "wrong-size")
        yield asked
        return
    name, chunks = asked
    chunks = REGISTRY[name].fewest_chunks if chunks is None else chunks
    forwards = {rank.label: sum(each.kind is Kind.F for each in rank.slices) for rank in ranks}
    (fewest, count), (most, other) = (choose(forwards.items(), key=lambda each: each[1]) for choose in (min, max))
    if count != other:
        message = f"{fewest} has {counted(count, 'forward')}, but {most} has {other}"
        raise HybridLabError(
            f"{message}: record whole steps of all ranks, and check that events names each forward once{_STOPPED}", "wrong-size"
        )
    if count % chunks or not count:
        message = f"each rank has {counted(count, 'forward')}, which is not a multiple of {counted(chunks, 'chunk')}"
        raise HybridLabError(f"{message}: give the number of chunks, as in schedule=({name!r}, 2)", "wrong-size")
    microbatches = count // chunks
    sizes = [microbatches // steps for steps in range(1, microbatches + 1) if microbatches % steps == 0]
    supported = [size for size in sizes if REGISTRY[name].refusal(len(ranks), size, chunks) is None]
    # Where no number of steps has a schedule, build() says why.
    yield from (build(name, len(ranks), size, chunks) for size in supported or sizes[:1])


def _contradiction(rank: Rank, order: Sequence[Op], schedule: Schedule, steps: float) -> Contradiction | None:
    """Return the first event of a rank that is not the operation of the schedule's order at its place. None if all events agree.

    With infinity for ``steps``, the last step need not be whole.
    """
    runs = f"{schedule.name} on {counted(schedule.devices, 'rank')} with {counted(schedule.microbatches, 'microbatch')}"
    for place, each in enumerate(rank.slices):
        op = order[place % len(order)] if place < steps * len(order) else None
        if op is None or op.kind is not each.kind:
            wanted = "ends before it" if op is None else f"runs {op} there, {op.words}"
            where = f"event {place} of {rank.label} is {each.name!r}, {_article(each.kind)}"
            advice = "is this the schedule of the job, and are these the ranks of one pipeline? If not, choose one with replica"
            return Contradiction(each.start, f"{where}, but {runs} {wanted}: {advice}")
    if steps < float("inf") and len(rank.slices) < steps * len(order):
        op, end = order[len(rank.slices) % len(order)], max((each.end for each in rank.slices), default=0.0)
        message = f"{rank.label} ends after {counted(len(rank.slices), 'event')}, but {runs} then runs {op}, {op.words}"
        return Contradiction(end, f"{message}: record whole steps")
    return None


def _article(kind: Kind) -> str:
    return f"{'an' if kind is Kind.I else 'a'} {kind.words}"


def _listed(ranks: Sequence[Rank]) -> str:
    labels = [rank.label for rank in ranks]
    return ", ".join(labels if len(labels) <= 8 else [*labels[:7], "...", labels[-1]])
