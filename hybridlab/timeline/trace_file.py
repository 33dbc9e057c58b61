"""The reader of trace files. It returns the schedule, the times and the spans of a training step."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import IN_A_SECOND, counted, short_repr, true_or_false, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Operations, Schedule
from hybridlab.timeline.chrome import OWN
from hybridlab.timeline.clocks import shifts_of
from hybridlab.timeline.named_events import EXAMPLE, Rank, checked_events, checked_order, finder, with_operations
from hybridlab.timeline.own_trace import OwnTrace, read_own_trace
from hybridlab.timeline.recordings import MICROSECOND, Find, Paths, Recording, Slice, checked_pattern, chosen, files_at, operations_in
from hybridlab.timeline.spans import Spans

_DIRECTION = re.compile("forward|backward|fwd|bwd|grad", re.IGNORECASE)  # names that an error shows first
# the way out where a trace does not state its pipelines
_GROUP = "group (?P<replica>...) in the pattern or in the names of events, where these name the replica"
UNIT = "ms"  # the unit of timelines from traces that this library has not written


class Parts(NamedTuple):
    """The arguments of :class:`~hybridlab.Timeline`, as read from a trace."""

    schedule: Operations
    start: Floats
    end: Floats
    spans: Spans | None
    unit: str | None


def parts_of(path: Paths, pattern: Any, events: Any, schedule: Any, step: Any, replica: Any, name: str | None, shift_clocks: Any) -> Parts:
    """Return the arguments of the timeline in trace files. See :meth:`hybridlab.Timeline.from_chrome_trace`."""
    compiled, shift = checked_pattern(pattern), true_or_false(shift_clocks, "shift_clocks")
    kinds, asked = checked_events(events), checked_order(schedule)
    _require_fitting_options(pattern, events, schedule)
    step, replica = (
        None if each is None else whole_number(each, what, at_least=0) for each, what in ((step, "step"), (replica, "replica"))
    )
    files = files_at(path)
    find: Find | None = None if kinds is None else finder(kinds)
    if asked is None:
        find = lambda event: operations_in(str(event.get("name", "")), compiled)  # noqa: E731 - mypy needs the type of the name
    recordings = [Recording(file, find) for file in files]
    if len(files) == 1 and compiled is None and asked is None and OWN in _other_data(recordings[0]):
        if step:
            raise _no_step(step, 1)
        return Parts(*read_own_trace(OwnTrace(files[0]), replica))  # the file is read again, because OwnTrace needs other events
    if asked is not None and kinds is None:
        _require_no_ranges(recordings)
    # Without stages in the names, nothing would show that the operations of a whole rank are missing.
    empty = [recording for recording in recordings if not recording.slices]
    if len(empty) == len(files) or (asked is not None and empty):
        raise HybridLabError(_nothing_found(empty, compiled, kinds, asked is not None), "no-operations")
    _keep_replica(recordings, replica)
    ranks = _ranks_of(recordings)
    if asked is None:
        ranks = _in_device_order(ranks)
    else:
        if shift and any(rank.number is None for rank in ranks):
            message = (
                "the files do not state their ranks, so their order is that of the first forwards, which clocks that disagree do not show"
            )
            raise HybridLabError(f"{message}: leave shift_clocks out, or record with torch.profiler, which writes the rank", "no-ranks")
        ranks = with_operations(ranks, asked)
        name = (asked.name if isinstance(asked, Schedule) else asked[0]) if name is None else name
    ranks = _choose_step(_sort_ranks(ranks), step)
    made = Schedule(_name_of(name, files), [_turns_of(rank) for rank in ranks])
    times = {op: (each.start, each.end) for rank in ranks for each in rank.slices for op in each.ops}
    start, end = (np.array(column) for column in zip(*(times[op] for op in made.ops), strict=True))
    by = shifts_of(made, start, end, [rank.label for rank in ranks], MICROSECOND, shift)[made.device]
    start, end = start + by, end + by
    begin, length = start.min(), 1_000_000 / IN_A_SECOND[UNIT]  # clocks begin in 1970 or when the machine starts
    return Parts(made, (start - begin) / length, (end - begin) / length, None, UNIT)


def _require_fitting_options(pattern: object, events: object, schedule: object) -> None:
    """Raise if the options contradict each other: either a pattern, or a schedule with or without events, or none of them."""
    if pattern is not None and (events is not None or schedule is not None):
        message = "with a pattern, the names of events say stages and microbatches, so events and schedule are not needed"
        raise HybridLabError(f"{message}: give the pattern alone, or {EXAMPLE}", "two-ways")
    if events is not None and schedule is None:
        message = "events say only the kind of an operation: give the schedule that the job runs"
        raise HybridLabError(f"{message}, as in {EXAMPLE}", "no-schedule")


def _other_data(recording: Recording) -> dict[str, Any]:
    other = recording.about.get("otherData")
    return other if isinstance(other, dict) else {}


def _name_of(name: str | None, files: Sequence[Path]) -> str:
    """Return the name of the schedule: ``name``, or if it is None, the name of the file, or of the folder with all files."""
    if name is not None:
        return name
    return files[0].name.split(".")[0] if len(files) == 1 else files[0].resolve().parent.name or "recorded"


def _keep_replica(recordings: Sequence[Recording], replica: int | None) -> None:
    """Keep only the operations of one pipeline in the recordings.

    If the names of events state a replica, the events of one replica are a pipeline. If they do not and ``replica`` is given, each process
    of a single file is a pipeline.

    Raises
    ------
    HybridLabError
        ``several-replicas``: there are several pipelines, and ``replica`` is None. ``no-replicas``: the trace does not state which events
        belong to one pipeline. ``out-of-range``: there are fewer pipelines.
    """
    slices = [each for recording in recordings for each in recording.slices]
    silent = [each.name for each in slices if each.replica is None]
    if silent and len(silent) < len(slices):
        raise HybridLabError(f"the group replica has matched nothing in {short_repr(silent[0])}: it must match in each name", "no-replicas")
    if silent and replica is None:
        if len(recordings) == 1:
            _refuse_equal_processes(slices)
        return
    if silent and len(recordings) > 1:
        message = "the files do not state which ranks are one pipeline: give the files of one pipeline only, and leave replica out"
        raise HybridLabError(f"{message}; or give a {_GROUP}", "no-replicas")
    if silent:
        _require_pipelines(slices)
    names = sorted({_pipeline(each) for each in slices}, key=_natural)
    if replica is None and len(names) > 1:
        message = f"the trace has {len(names)} pipelines, {', '.join(names[:8])}"
        raise HybridLabError(f"{message}: choose replica {_numbers(len(names))}", "several-replicas")
    kept = chosen(names, replica or 0)
    for recording in recordings:
        recording.slices = [each for each in recording.slices if _pipeline(each) == kept]


def _pipeline(each: Slice) -> str:
    """Return the name of the pipeline of an event: the replica in its own name, or its process."""
    return f"process {each.track[0]}" if each.replica is None else f"replica {each.replica}"


def _refuse_equal_processes(slices: Sequence[Slice]) -> None:
    """Raise if two processes run the same operation. Where the names of events state a device, processes mean nothing."""
    process_of: dict[Op, str] = {}
    for each in slices:
        for op in () if each.device is not None else each.ops:
            if process_of.setdefault(op, _pipeline(each)) != _pipeline(each):
                count = len({_pipeline(each) for each in slices})
                message = f"{op} is in {process_of[op]} and in {_pipeline(each)}"
                advice = f"if each process is a pipeline, choose replica {_numbers(count)}; if not, give a {_GROUP}"
                raise HybridLabError(f"{message}: {advice}", "several-replicas")


def _require_pipelines(slices: Sequence[Slice]) -> None:
    """Raise unless each process can be a whole pipeline: all have the same stages. Without stages, each has several threads."""
    found: dict[str, set[Any]] = defaultdict(set)
    for each in slices:
        found[_pipeline(each)].update([op.stage for op in each.ops] if each.ops else [each.track[1]])
    wrong = ""
    if len(found) > 1 and slices[0].ops and len(set(map(frozenset, found.values()))) > 1:
        wrong = "the processes do not run the same stages"
    if len(found) > 1 and not slices[0].ops and min(map(len, found.values())) == 1:
        wrong = "a process has all its events on one thread"
    if wrong:
        message = f"{wrong}, so a process is not a whole pipeline: if the trace has one pipeline, leave replica out"
        raise HybridLabError(f"{message}; if it has several, give a {_GROUP}", "no-replicas")


def _ranks_of(recordings: Sequence[Recording]) -> list[Rank]:
    """Return the ranks in trace files. Each of several files is one rank. A single file can have all ranks on its tracks.

    Raises
    ------
    HybridLabError
        Two files are from one rank, or only some files have a clock.
    """
    if len(recordings) == 1:
        return _ranks_in(recordings[0])
    numbers = [recording.rank for recording in recordings]
    known = None not in numbers
    first: dict[Any, str] = {}
    for number, recording in zip(numbers, recordings, strict=True):
        if known and number in first:
            message = f"{first[number]} and {recording.name} are both from rank {number}: give one file for each rank"
            raise HybridLabError(f"{message}, all from one recording", "doubled-rank")
        first[number] = recording.name
    bases = [recording.base for recording in recordings]
    without = [recording.name for recording, base in zip(recordings, bases, strict=True) if base is None]
    if without and len(without) < len(bases):
        message = f"{without[0]} has no baseTimeNanoseconds, and other files have one"
        raise HybridLabError(f"{message}: record all ranks with the same version of torch", "no-clock")
    earliest = min((base for base in bases if base is not None), default=0)
    ranks = []
    for number, recording, base in zip(numbers, recordings, bases, strict=True):
        if recording.slices:
            late = 0.0 if base is None else (base - earliest) / 1000  # ns to microseconds
            label = f"rank {number} ({recording.name})" if known else recording.name
            slices = [each._replace(start=each.start + late, end=each.end + late) for each in recording.work()]
            ranks.append(Rank(label, slices, number if known else _device_in(slices)))
    return ranks


def _ranks_in(recording: Recording) -> list[Rank]:
    """Return the ranks in one file.

    If the pattern has matched a ``device`` for each operation, each device is a rank. If not, each of several processes is a rank. If there
    is only one process, each of its threads is a rank.
    """
    slices = list(recording.work())
    if all(each.device is not None for each in slices):
        key = [each.device for each in slices]
        noun = "device"
    elif len({each.track[0] for each in slices}) > 1:
        key = [each.track[0] for each in slices]
        noun = "process"
    elif recording.rank is not None:  # torch.profiler writes one file for each rank, with its threads
        return [Rank(f"rank {recording.rank} ({recording.name})", slices, recording.rank)]
    else:
        key = [each.track[1] for each in slices]
        noun = "thread"
    found: dict[Any, list[Slice]] = defaultdict(list)
    for name, each in zip(key, slices, strict=True):
        found[name].append(each)
    # The numbers of processes and threads state no order of the ranks.
    return [Rank(f"{noun} {name}", found[name], _natural(name) if noun == "device" else None) for name in sorted(found, key=_natural)]


def _device_in(slices: Sequence[Slice]) -> Any:
    """Return the device that the names of all events state. None if they state none, or different devices."""
    devices = {each.device for each in slices}
    return _natural(devices.pop()) if len(devices) == 1 and None not in devices else None


def _in_device_order(ranks: Sequence[Rank]) -> list[Rank]:
    """Return the ranks in the order of devices.

    If all ranks state a number, it is their order. If not, it is the order in which microbatch 0 visits the ranks forward. The order of
    files and the numbers of processes say nothing about the stages.
    """
    if all(rank.number is not None for rank in ranks):
        return sorted(ranks, key=lambda rank: rank.number)
    firsts: list[tuple[float, Rank]] = []
    for rank in ranks:
        stages = [op.stage for each in rank.slices for op in each.ops if op.kind is Kind.F and op.microbatch == 0]
        firsts.append((min(stages, default=float("inf")), rank))  # a rank without microbatch 0 lacks operations, and Schedule says which
    return [rank for _, rank in sorted(firsts, key=lambda each: each[0])]


def _natural(name: Any) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts "rank 2" before "rank 10": numbers in names are compared by their values."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split("([0-9]+)", str(name)) if part)


def _require_no_ranges(recordings: Sequence[Recording]) -> None:
    """Raise if names of events say which operations they are: then nothing is to be found by a schedule."""
    for recording in recordings:
        for name in recording.others:
            if operations_in(name, None) is not None:
                message = f"names of events in {recording.name} have the stage and the microbatch, such as {short_repr(name)}"
                raise HybridLabError(f"{message}: leave schedule out", "two-ways")


def _nothing_found(
    recordings: Sequence[Recording], pattern: re.Pattern[str] | None, events: Mapping[Kind, re.Pattern[str]] | None, has_schedule: bool
) -> str:
    """Return the sentence of the error for traces without an operation. It lists names of events that can be operations."""
    others: Counter[str] = Counter()
    for recording in recordings:
        others += recording.others
    example: dict[str, str] = {}  # one name of those that differ only in numbers
    count: Counter[str] = Counter()
    for name, times in others.items():
        shape = re.sub("[0-9]+", "0", name)
        example.setdefault(shape, name)
        count[shape] += times
    shapes = sorted(count, key=lambda shape: (_DIRECTION.search(shape) is None, -count[shape]))
    names = ", ".join(short_repr(example[shape]) for shape in shapes[:8]) or "none"
    wanted = "is named like 0F1 or PP:0F1" if pattern is None else f"matches the pattern {short_repr(pattern.pattern)}"
    if has_schedule:
        wanted = "is a forward operator of torch with its backward"
    if events is not None:
        wanted = "has the name " + " or ".join(short_repr(each.pattern) for each in events.values())
    where = recordings[0].name if len(recordings) == 1 else f"these {len(recordings)} files"
    advice = f"Please give a pattern with the groups kind, stage and microbatch, or events with a schedule, as in {EXAMPLE}"
    if not has_schedule and all(recording.has_operators for recording in recordings):
        advice += '. For a trace of torch.profiler, the schedule alone is enough, as in schedule="1f1b": its operators are then read'
    return f"no event in {where} {wanted}. Names of events that can be operations: {names}. {advice}"


def _sort_ranks(ranks: Sequence[Rank]) -> list[Rank]:
    """Return the ranks with their operations sorted by start and without overlaps.

    If an operation starts less than a microsecond before the operation before it ends, its start is moved to that end. A forward and a
    backward that start and end together become an overlapped pair.

    Raises
    ------
    HybridLabError
        Two operations of a rank overlap, and they are not a forward and a backward that start and end together.
    """
    sorted_ranks = []
    for rank in ranks:
        done: list[Slice] = []
        for each in sorted(rank.slices, key=lambda each: (each.start, each.end)):
            last = done[-1] if done else None
            if last is not None and each.start < last.end:
                if last.end - each.start > MICROSECOND:
                    pair = _join_pair(last, each)
                    if pair is None:
                        message = f"{each.name} starts {last.end - each.start:.1f} microseconds before {last.name} ends on {rank.label}"
                        advice = "a device runs one operation at a time: is each device on a track of its own?"
                        raise HybridLabError(f"{message}, but {advice}", "overlapping-operations")
                    done[-1] = pair
                    continue
                each = each._replace(start=last.end, end=max(last.end, each.end))  # rounding has caused the overlap
            done.append(each)
        sorted_ranks.append(rank._replace(slices=done))
    return sorted_ranks


def _join_pair(one: Slice, other: Slice) -> Slice | None:
    """Return two events as one overlapped pair if they are a forward and a full backward that start and end together. Otherwise None."""
    kinds = {op.kind for op in one.ops + other.ops}
    together = abs(one.start - other.start) <= MICROSECOND and abs(one.end - other.end) <= MICROSECOND
    if len(one.ops + other.ops) != 2 or kinds != {"F", "B"} or not together:
        return None
    forward, backward = sorted(one.ops + other.ops, key=lambda op: op.kind == "B")
    return one._replace(ops=(forward, backward), name=f"({forward};{backward})")


def _choose_step(ranks: Sequence[Rank], step: int | None) -> list[Rank]:
    """Return the ranks with the operations of one step. Other steps need not be whole: the job may have stopped in the last.

    Raises
    ------
    HybridLabError
        An operation is on two ranks (``doubled-operation``), the step lacks an operation that another step has (``missing-operation``),
        there is no such step (``out-of-range``), or ``step`` is None and there are several steps (``several-steps``).
    """
    rank_of: dict[Op, str] = {}
    runs: Counter[Op] = Counter()
    for rank in ranks:
        for op in (op for each in rank.slices for op in each.ops):
            if rank_of.setdefault(op, rank.label) != rank.label:
                message = f"{op} is on {rank_of[op]} and on {rank.label}: give the files of one pipeline only, without its replicas"
                raise HybridLabError(f"{message}, or a {_GROUP}", "doubled-operation")
            runs[op] += 1
    equal = len(set(runs.values())) == 1
    parts = [_runs(rank.slices) if equal else list(_between_repeats(rank.slices)) for rank in ranks]
    steps = max(map(len, parts))
    lacks = [_lack([part[place] if place < len(part) else [] for part in parts], rank_of) for place in range(steps)]
    whole = next((place for place, lack in enumerate(lacks) if lack), steps)  # after a gap, the steps of two ranks may not be the same
    if step is None and steps > 1 and whole:
        gap = f", but {_gap(whole, parts, ranks, lacks)}" if whole < steps else ""
        raise HybridLabError(f"the trace has {steps} steps{gap}: choose step {_numbers(whole)}", "several-steps")
    place = step or 0
    if place >= steps:
        raise _no_step(place, steps)
    if place >= whole:
        message = f"step {place} of the trace cannot be read, because {_gap(whole, parts, ranks, lacks)}"
        advice = f"choose step {_numbers(whole)}" if whole else "record whole steps"
        raise HybridLabError(f"{message}: {advice}", "missing-operation")
    return [rank._replace(slices=part[place]) for rank, part in zip(ranks, parts, strict=True)]


def _no_step(step: int, steps: int) -> HybridLabError:
    message = f"step must be at most {steps - 1}, because the trace has {counted(steps, 'step')}, not {step}"
    return HybridLabError(message, "out-of-range")


def _runs(slices: Sequence[Slice]) -> list[list[Slice]]:
    """Return the steps of a rank that runs all operations equally often. Run k of each operation (from 0) belongs to step k."""
    seen: Counter[Op] = Counter()
    steps: dict[int, list[Slice]] = defaultdict(list)
    for each in slices:
        steps[seen[each.ops[0]]].append(each)
        seen[each.ops[0]] += 1
    return [steps[place] for place in range(len(steps))]


def _between_repeats(slices: Sequence[Slice]) -> Iterator[list[Slice]]:
    """Yield the steps of a rank that lacks operations. A step begins where an operation runs again, so that a gap moves no later step."""
    step: list[Slice] = []
    seen: set[Op] = set()
    for each in slices:
        if seen.intersection(each.ops):
            yield step
            step, seen = [], set()
        step.append(each)
        seen.update(each.ops)
    yield step


def _lack(step: Iterable[Sequence[Slice]], rank_of: Mapping[Op, str]) -> str:
    """Return the first operation that is missing from a step, with its rank. "" if the step is whole."""
    missing = rank_of.keys() - {op for slices in step for each in slices for op in each.ops}
    op = next((op for op in rank_of if op in missing), None)
    return "" if op is None else f"{op} on {rank_of[op]}"


def _gap(place: int, parts: Sequence[Sequence[Sequence[Slice]]], ranks: Sequence[Rank], lacks: Sequence[str]) -> str:
    """Return in words that a step lacks an operation. The words name an operation that the step has, too."""
    has = next(f"{part[place][0].name} on {rank.label}" for rank, part in zip(ranks, parts, strict=True) if place < len(part))
    return f"step {place} has {has} and lacks {lacks[place]}"


def _numbers(count: int) -> str:
    """Return the numbers below ``count`` in words, such as "0 or 1" or "0 to 9"."""
    return "0" if count == 1 else f"0 {'or' if count == 2 else 'to'} {count - 1}"


def _turns_of(rank: Rank) -> list[tuple[Op, ...]]:
    return [each.ops for each in rank.slices]
