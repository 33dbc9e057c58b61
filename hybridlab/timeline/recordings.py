"""Recordings. A recording is the operations that one trace file of a job contains. They are found by the names of events."""

import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import checked_text, counted, each_of, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op
from hybridlab.timeline.events import OTHER_ENDINGS, Event, read_events
from hybridlab.timeline.operators import Run, Track, runs_between

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]

MICROSECOND = 1.0  # times in files are rounded, so times that differ by less than this count as equal
LONGEST_PATH = 4096  # characters; the longest path that Linux allows
MOST_NAMES = 10_000  # for an error, the names of events that are not operations are counted, up to this many different names
_TORCH = re.compile(r"(?:PP:)?(?P<stage>[0-9]{1,9})(?P<kind>[FBIW])(?P<microbatch>[0-9]{1,9})")
_TORCH_PAIR = re.compile(r"(?:PP:)?\(([0-9]+[FB][0-9]+);([0-9]+[FB][0-9]+)\)(?:OVERLAP_F_B)?")
_WAITS = ("c10d::", "gloo:", "nccl:", "record_param_comms")  # names of operators that send or receive begin with these
_MESSAGES = ("c10d::send", "c10d::recv")  # names of the operators with which stages send and receive
_BACKWARD = "autograd::engine::evaluate_function"  # names of the operators that run a backward begin with this
_RANGES = ("user_annotation", "python_function")  # categories of torch.profiler whose events contain waits and launches of kernels
# An error lists the names that can be operations. These categories and names of torch.profiler cannot.
_NO_OPERATIONS = ("gpu_", "cuda_", "Trace", "overhead", "Collective")
_NO_NAMES = (*_WAITS, "ProfilerStep", "PyTorch Profiler", "Optimizer.", "enumerate(", "<built-in", "nn.Module")
# the words that programs use for the kinds of operations, in lower case and with underscores
_KIND_OF = {
    Kind.F: "f fwd forward forward_step",
    Kind.B: "b bwd backward backward_step full_backward",
    Kind.I: "i input input_gradient input_grad backward_input bwd_input dgrad",
    Kind.W: "w weight weight_gradient weight_grad backward_weight bwd_weight wgrad",
}
_KINDS = {word: kind for kind, words in _KIND_OF.items() for word in words.split()}


class Match(NamedTuple):
    """What the name of an event says: operations, or only their kind, and what the groups ``device`` and ``replica`` have matched."""

    ops: tuple[Op, ...]
    kind: Kind
    device: str | None = None
    replica: str | None = None


Find = Callable[[Event], Match | None]


class Slice(NamedTuple):
    """One run of an operation or of an overlapped pair. Times are in microseconds on the clock of the file."""

    ops: tuple[Op, ...]  # empty until the order of a schedule names the operation, if the event says only its kind
    kind: Kind
    start: float
    end: float
    name: str
    device: str | None  # the text that the group ``device`` of the pattern has matched
    track: Track
    ranged: bool  # True for a range of torch.profiler, which also contains the wait for the input
    replica: str | None = None  # the text that the group ``replica`` of the pattern has matched


class Recording:
    """The operations in one trace file, and the events that show which time in an operation is work and which is a wait.

    ``find`` finds the operations by the names of events. None means that the operators between messages are the operations.
    """

    def __init__(self, path: Path, find: Find | None) -> None:
        self.name, self._find = path.name, find
        self.slices: list[Slice] = []
        self.others: Counter[str] = Counter()
        self._open: dict[Track, list[Event]] = {}
        self._operators: dict[Track, array[float]] = {}  # an array takes 8 bytes for each start; a trace can have millions
        self._ends: dict[tuple[Track, float], float] = {}  # the end of each operator, by its thread and its start
        self._runs: dict[Any, list[Run]] = defaultdict(list)  # for each process, its forward and backward operators
        self._messages: dict[Track, array[float]] = {}
        self._launches: dict[Track, list[tuple[float, int]]] = {}
        self._kernels: dict[Any, dict[int, tuple[float, float]]] = defaultdict(dict)  # process: correlation number: start and end
        self._launcher: dict[int, Any] = {}  # the process that has launched each correlation number
        self._doubled: set[int] = set()  # the correlation numbers that several processes have launched
        self.about = read_events(path, self._take)
        self.slices = list(_without_inner(self.slices) if find else self._slices_between())
        for launches in self._launches.values():
            launches.sort()  # events can be in any order in a file, and _kernels_of needs sorted times
        self._starts, self._sent = (
            {track: np.sort(starts) for track, starts in found.items()} for found in (self._operators, self._messages)
        )

    @property
    def rank(self) -> int | None:
        """The rank that torch.profiler has written into the file. None if there is no rank in the file."""
        about = self.about.get("distributedInfo")
        rank = about.get("rank") if isinstance(about, dict) else None
        return rank if isinstance(rank, int) else None

    @property
    def has_operators(self) -> bool:
        """Whether torch.profiler has recorded operators in this file."""
        return bool(self._operators)

    @property
    def base(self) -> int | None:
        """The time, in ns since 1970, at which the clock of the file is 0. None if the file does not say it."""
        base = self.about.get("baseTimeNanoseconds")
        return base if isinstance(base, int) else None

    def _take(self, event: Event) -> None:
        """Store the values of an event that are needed later. Most events of a trace are not needed."""
        phase, category = event.get("ph"), event.get("cat")
        if phase in ("B", "E"):
            self._join_begin_and_end(event, phase)
        elif phase == "s" and category == "fwdbwd" and self._find is None:  # an arrow from a forward operator to its backward operator
            start, track = self._time(event, "ts"), _track(event)
            self._runs[track[0]].append(Run(start, start, Kind.F, track))  # the arrow begins where its operator begins
        elif phase != "X" or category == "gpu_user_annotation":  # torch.profiler writes each range a second time for the GPU
            return
        elif category == "cpu_op":
            name = str(event.get("name"))
            if self._find is None:
                self._add_operator(event, name)
            if name.startswith(_MESSAGES):
                self._messages.setdefault(_track(event), array("d")).append(self._time(event, "ts"))
            elif not name.startswith(_WAITS):
                self._operators.setdefault(_track(event), array("d")).append(self._time(event, "ts"))
        elif category in ("cuda_runtime", "cuda_driver", "kernel"):
            self._add_gpu_event(event, category)
        else:
            self._add_range(event)

    def _join_begin_and_end(self, event: Event, phase: str) -> None:
        """Join an event that begins a range (phase B) and the event that ends it (phase E) into one range."""
        # Ranges on a track are nested, so an end belongs to the last begin that has no end yet.
        stack = self._open.setdefault(_track(event), [])
        if phase == "B":
            stack.append(event)
        elif stack:
            begin = stack.pop()
            self._add_range(begin | {"dur": self._time(event, "ts") - self._time(begin, "ts")})

    def _add_gpu_event(self, event: Event, category: str) -> None:
        """Store a kernel, or the call that has launched a kernel. A kernel and its call have the same correlation number."""
        arguments = event.get("args")
        number = arguments.get("correlation") if isinstance(arguments, dict) else None
        # Kernels of NCCL are not the work of an operation, because they send and receive.
        if not isinstance(number, int) or str(event.get("name")).startswith("nccl"):
            return
        start, (process, _) = self._time(event, "ts"), _track(event)
        if category == "kernel":
            end = start + self._time(event, "dur")
            known = self._kernels[process].get(number, (start, end))  # all kernels of a CUDA graph have the number of one launch
            self._kernels[process][number] = min(start, known[0]), max(end, known[1])
        else:
            self._launches.setdefault(_track(event), []).append((start, number))
            if self._launcher.setdefault(number, process) != process:
                self._doubled.add(number)

    def _add_operator(self, event: Event, name: str) -> None:
        """Store when an operator ends, and all of it if it runs a backward."""
        start, track = self._time(event, "ts"), _track(event)
        end = start + self._time(event, "dur")
        self._ends[track, start] = end
        if name.startswith(_BACKWARD):
            self._runs[track[0]].append(Run(start, end, Kind.B, track))

    def _slices_between(self) -> Iterator[Slice]:
        """Yield the forwards and backwards that the operators of each process form."""
        for process, runs in self._runs.items():
            sent = [Run(time, time, None, track) for track, times in self._messages.items() if track[0] == process for time in times]
            known = [run._replace(end=max(run.end, self._ends.get((run.track, run.start), run.end))) for run in runs]
            for run in runs_between([*known, *sent]):
                if run.kind is not None:
                    yield Slice((), run.kind, run.start, run.end, f"{run.kind.words} operators", None, run.track, ranged=True)

    def _add_range(self, event: Event) -> None:
        """Store an event if it is an operation. If not, count its name, for the error of a trace without operations."""
        found = self._find(event) if self._find else None
        if found is not None:
            start, name = self._time(event, "ts"), str(event.get("name", ""))
            ranged = event.get("cat") in _RANGES
            end = start + self._time(event, "dur")
            self.slices.append(Slice(found.ops, found.kind, start, end, name, found.device, _track(event), ranged, found.replica))
            return
        name = names_of(event)[-1]
        if str(event.get("cat")).startswith(_NO_OPERATIONS) or name.startswith(_NO_NAMES):
            return
        if name in self.others or len(self.others) < MOST_NAMES:
            self.others[name] += 1

    def _time(self, event: Event, key: str) -> float:
        """Return ``ts`` or ``dur`` of an event in microseconds."""
        value = event.get(key)
        # 1e18 microseconds are 30,000 years, so a larger number means that the file is damaged
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18 and (key == "ts" or value >= 0):
            return value
        name = short_repr(event.get("name"))
        if value is None:
            message = f"the event {name} in {self.name} has no {key}: a complete event (ph X) has a start ts and a length dur"
            raise HybridLabError(f"{message}, in microseconds", "missing-time")
        wanted = "a number of microseconds" if key == "ts" else "zero or more microseconds"
        raise HybridLabError(f"the event {name} in {self.name} has {key} = {short_repr(value)}: give {wanted}", "not-a-time")

    def work(self) -> Iterator[Slice]:
        """Yield the operations in the order in which they have run. Their times are without the waits for inputs.

        :meth:`hybridlab.Timeline.from_chrome_trace` describes the rule for these times.
        """
        free: dict[Track, float] = {}
        for each in sorted(self.slices, key=lambda each: (each.start, each.end)):
            if each.ranged and self._kernels:
                # a range without a kernel gets length 0, and starts no earlier than the end of the operation before it
                start, end = self._kernels_of(each) or (max(each.end, free.get(each.track, each.end)),) * 2
            elif each.ranged and self._starts and self._find:
                start, end = self._first_operator(each), self._end_of_work(each)
            else:
                start, end = each.start, each.end
            free[each.track] = end
            yield each._replace(start=start, end=end)

    def _first_operator(self, each: Slice) -> float:
        """Return the start of the first operator in a range, except operators that send or receive. Without any, the end of the range."""
        firsts: list[float] = []
        for track in sorted(self._starts, key=lambda track: track != each.track):  # the thread of the range comes first
            if track[0] == each.track[0] and (track == each.track or not firsts):
                starts = self._starts[track]
                place = int(np.searchsorted(starts, each.start))
                if place < starts.size and starts[place] < each.end:
                    firsts.append(float(starts[place]))
        return min(firsts, default=each.end)

    def _end_of_work(self, each: Slice) -> float:
        """Return the start of the first message after the last operator of a range, or the end of the range if it has no such message."""
        operators, messages = (times.get(each.track, np.empty(0)) for times in (self._starts, self._sent))
        last = operators[np.searchsorted(operators, each.end) - 1] if operators.size else each.start
        after = messages[np.searchsorted(messages, max(last, each.start)) :]
        return float(after[0]) if after.size and after[0] < each.end and last >= each.start else each.end

    def _kernels_of(self, each: Slice) -> tuple[float, float] | None:
        """Return the start of the first and the end of the last kernel that a range has launched. None if it has launched no kernel."""
        times = []
        for track, launches in self._launches.items():
            if track[0] == each.track[0]:
                low, high = (bisect_left(launches, (time, -1)) for time in (each.start, each.end))  # -1 is below all correlation numbers
                times += [kernel for _, number in launches[low:high] if (kernel := self._kernel(number, track[0])) is not None]
        return (min(start for start, _ in times), max(end for _, end in times)) if times else None

    def _kernel(self, number: int, process: Any) -> tuple[float, float] | None:
        """Return the start and the end of the kernel with this correlation number that a process has launched. None without such a kernel.

        In a file of one rank, kernels have the number of their GPU as process. In a merged file, the numbers of several ranks can be equal.

        Raises
        ------
        HybridLabError
            ``doubled-kernel``: the file does not say which rank has launched the kernel.
        """
        own = self._kernels[process].get(number) if process in self._kernels else None
        if own is not None:
            return own
        found = [kernels[number] for kernels in self._kernels.values() if number in kernels]
        if len(found) > 1 or (found and number in self._doubled):
            message = (
                f"several ranks in {self.name} have a kernel with the correlation number {number}, and the file does not say whose is whose"
            )
            advice = "give the file of each rank, or merge them so that the kernels of a rank have the pid of the rank"
            raise HybridLabError(f"{message}: {advice}", "doubled-kernel")
        return found[0] if found else None


def _without_inner(slices: Iterable[Slice]) -> Iterator[Slice]:
    """Yield the events, but not those that run within another on the same track and say only their kind.

    A function ``forward_step`` can call another function ``forward_step``, and a backward can compute a forward again. Only the forward
    and the backward of an overlapped pair start and end together.
    """
    outer: dict[Any, Slice] = {}
    for each in sorted(slices, key=lambda each: (each.start, -each.end)):
        line = each.track, each.device, each.replica  # several devices can share a track
        around = outer.get(line)
        if around is not None and not each.ops and each.end <= around.end:
            together = each.start - around.start <= MICROSECOND and around.end - each.end <= MICROSECOND
            if each.kind is around.kind or not together:
                continue
        yield each
        outer[line] = each


def _track(event: Event) -> Track:
    process, thread = event.get("pid", 0), event.get("tid", 0)  # numbers or texts; whatever else a file has there becomes a text
    return tuple(each if isinstance(each, (int, str)) else str(each) for each in (process, thread))


def names_of(event: Event) -> tuple[str, ...]:
    """Return the name of an event. For the call of a Python function, return also the name of the function alone.

    >>> names_of({"cat": "python_function", "name": "pipe/stage.py(857): forward_one_chunk"})
    ('pipe/stage.py(857): forward_one_chunk', 'forward_one_chunk')
    """
    name = str(event.get("name", ""))
    return (name, name.rpartition("): ")[2]) if event.get("cat") == "python_function" else (name,)


def operations_in(name: str, pattern: re.Pattern[str] | None) -> Match | None:
    """Return the operations that the name of an event contains, and its device and replica if the pattern has these groups.

    Return None if the name contains no operation.

    >>> operations_in("PP:2F0", None).ops
    (Op(kind=<Kind.F: 'F'>, stage=2, microbatch=0),)
    >>> operations_in("PP:2SEND_F0", None) is None
    True
    """
    if pattern is None:
        pair = _TORCH_PAIR.fullmatch(name)
        if pair:
            ops = tuple(map(Op.parse, pair.groups()))
            return Match(ops, ops[0].kind)
        match = _TORCH.fullmatch(name)
    else:
        match = pattern.search(name)
    if match is None:
        return None
    groups = match.groupdict()
    word = str(groups["kind"]).lower().replace("-", "_").replace(" ", "_")
    if word not in _KINDS:
        known = ", ".join(words.split()[0].upper() + " or " + words.split()[1] for words in _KIND_OF.values())
        message = f"the pattern finds the kind {groups['kind']!r} in {short_repr(name)}: a kind is {known}"
        raise HybridLabError(message, "unknown-kind")
    numbers = [groups[key] for key in ("stage", "microbatch")]
    if not all(number is not None and re.fullmatch("[0-9]{1,9}", number) for number in numbers):
        message = f"the pattern finds stage {numbers[0]!r} and microbatch {numbers[1]!r} in {short_repr(name)}"
        raise HybridLabError(f"{message}: both are whole numbers from 0", "not-a-whole-number")
    op = Op(_KINDS[word], int(numbers[0]), int(numbers[1]))
    return Match((op,), op.kind, groups.get("device"), groups.get("replica"))


def checked_pattern(pattern: object) -> re.Pattern[str] | None:
    """Return ``pattern`` as a compiled regular expression. Raise an error if it is not one or lacks a group that is needed."""
    if pattern is None:
        return None
    example = r"(?P<kind>fwd|bwd) stage (?P<stage>\d+) mb (?P<microbatch>\d+)"
    try:
        compiled = pattern if isinstance(pattern, re.Pattern) else re.compile(checked_text(pattern, "pattern"))
    except re.error as why:
        raise HybridLabError(f"the pattern is not a regular expression: {why}", "not-a-pattern") from None
    missing = [group for group in ("kind", "stage", "microbatch") if group not in compiled.groupindex]
    if missing:
        raise HybridLabError(f"the pattern has no group {missing[0]}: write it like {example}", "not-a-pattern")
    return compiled


def chosen(pipelines: Sequence[str], replica: int) -> str:
    """Return one of the pipelines of a trace.

    Raises
    ------
    HybridLabError
        ``out-of-range``: there are fewer pipelines.

    >>> chosen(["process 7", "process 9"], 1)
    'process 9'
    """
    if replica >= len(pipelines):
        message = f"the trace has {counted(len(pipelines), 'pipeline')}, {', '.join(pipelines[:8])}, so there is no replica {replica}"
        raise HybridLabError(f"{message}: replicas are numbered from 0", "out-of-range")
    return pipelines[replica]


def files_at(path: Paths) -> list[Path]:
    """Return the files that ``path`` names. It is a file, a folder of traces, a glob such as ``"run/*.json.gz"``, or a list of these."""
    if not isinstance(path, (str, PathLike)):
        listed = list(each_of(path, "path must be a file, a folder, or a list of files"))
        if not listed:
            raise HybridLabError("the list of trace files is empty: give one for each rank", "empty")
        return [file for each in listed for file in files_at(_one_path(each))]
    text = str(path)
    if text.lstrip()[:1] in ("{", "[") and (len(text) > LONGEST_PATH or '"' in text):
        raise HybridLabError(f"path is the text of a trace, {short_repr(text)}: write the text to a file, and give its path", "not-a-path")
    if "\0" in text or len(text) > LONGEST_PATH:
        raise HybridLabError(f"{short_repr(text)} is not the path of a file", "not-a-path")
    place = Path(path)
    if place.is_dir():
        files = sorted(place.iterdir())
        found = [each for each in files if each.name.endswith((".json", ".json.gz"))]
        # a file of another format is read, so that the error says how to convert it
        found = found or [each for each in files if each.name.endswith(OTHER_ENDINGS)][:1]
    elif any(mark in text for mark in "*?[") and not place.exists():  # the name of an existing file can contain *, ? or [
        found = sorted(Path(place.anchor).glob(str(place.relative_to(place.anchor))))
    else:
        return [place]
    if not found:
        raise HybridLabError(f"there is no trace at {short_repr(text)}: traces end in .json or .json.gz", "not-found")
    return found


def _one_path(each: object) -> str | PathLike[str]:
    if not isinstance(each, (str, PathLike)):
        raise HybridLabError(f"path must be a file, a folder, or a list of files, not {short_repr(each)}", "not-a-list")
    return each
