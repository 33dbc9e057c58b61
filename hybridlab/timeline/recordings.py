"""Recordings. A recording is the operations that one trace file of a job contains. They are found by the names of events."""

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import checked_text, each_of, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op
from hybridlab.timeline.events import Event, read_events

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
Track = tuple[Any, Any]  # process and thread of an event: its pid and tid

MOST_NAMES = 10_000  # for an error, the names of events that are not operations are counted, up to this many different names
_TORCH = re.compile(r"(?:PP:)?(?P<stage>[0-9]{1,9})(?P<kind>[FBIW])(?P<microbatch>[0-9]{1,9})")
_TORCH_PAIR = re.compile(r"(?:PP:)?\(([0-9]+[FB][0-9]+);([0-9]+[FB][0-9]+)\)(?:OVERLAP_F_B)?")
_WAITS = ("c10d::", "gloo:", "nccl:", "record_param_comms")  # names of operators that send or receive begin with these
# the words that programs use for the kinds of operations, in lower case and with underscores
_KIND_OF = {
    Kind.F: "f fwd forward forward_step",
    Kind.B: "b bwd backward backward_step full_backward",
    Kind.I: "i input input_gradient input_grad backward_input bwd_input dgrad",
    Kind.W: "w weight weight_gradient weight_grad backward_weight bwd_weight wgrad",
}
_KINDS = {word: kind for kind, words in _KIND_OF.items() for word in words.split()}


class Slice(NamedTuple):
    """One run of an operation or of an overlapped pair. Times are in microseconds on the clock of the file."""

    ops: tuple[Op, ...]
    start: float
    end: float
    name: str
    device: str | None  # the text that the group ``device`` of the pattern has matched
    track: Track
    ranged: bool  # True for a range of torch.profiler, which also contains the wait for the input


class Recording:
    """The operations in one trace file, and the events that show which time in an operation is work and which is a wait."""

    def __init__(self, path: Path, pattern: re.Pattern[str] | None) -> None:
        self.name, self.pattern = path.name, pattern
        self.slices: list[Slice] = []
        self.others: Counter[str] = Counter()
        self._open: dict[Track, list[Event]] = {}
        self._operators: dict[Track, array[float]] = {}  # an array takes 8 bytes for each start; a trace can have millions
        self._launches: dict[Track, list[tuple[float, int]]] = {}
        self._kernels: dict[int, tuple[float, float]] = {}
        self.about = read_events(path, self._take)
        for launches in self._launches.values():
            launches.sort()  # events can be in any order in a file, and _kernels_of needs sorted times
        self._starts = {track: np.sort(starts) for track, starts in self._operators.items()}

    @property
    def rank(self) -> Any:
        """The rank that torch.profiler has written into the file. None if there is no rank in the file."""
        about = self.about.get("distributedInfo")
        return about.get("rank") if isinstance(about, dict) else None

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
        elif phase != "X" or category == "gpu_user_annotation":  # torch.profiler writes each range a second time for the GPU
            return
        elif category == "cpu_op":
            if not str(event.get("name")).startswith(_WAITS):
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
        number = event.get("args", {}).get("correlation")
        # Kernels of NCCL are not the work of an operation, because they send and receive.
        if number is None or str(event.get("name")).startswith("nccl"):
            return
        start = self._time(event, "ts")
        if category == "kernel":
            self._kernels[number] = (start, start + self._time(event, "dur"))
        else:
            self._launches.setdefault(_track(event), []).append((start, number))

    def _add_range(self, event: Event) -> None:
        """Store an event if its name is an operation. If not, count the name."""
        name = str(event.get("name", ""))
        found = operations_in(name, self.pattern)
        if found is None:
            if name in self.others or len(self.others) < MOST_NAMES:
                self.others[name] += 1
            return
        ops, device = found
        start = self._time(event, "ts")
        ranged = event.get("cat") == "user_annotation"
        self.slices.append(Slice(ops, start, start + self._time(event, "dur"), name, device, _track(event), ranged))

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
            elif each.ranged and self._starts:
                start, end = self._first_operator(each), each.end
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

    def _kernels_of(self, each: Slice) -> tuple[float, float] | None:
        """Return the start of the first and the end of the last kernel that a range has launched. None if it has launched no kernel."""
        times = []
        for track, launches in self._launches.items():
            if track[0] == each.track[0]:
                low, high = (bisect_left(launches, (time, -1)) for time in (each.start, each.end))  # -1 is below all correlation numbers
                times += [self._kernels[number] for _, number in launches[low:high] if number in self._kernels]
        return (min(start for start, _ in times), max(end for _, end in times)) if times else None


def _track(event: Event) -> Track:
    return event.get("pid", 0), event.get("tid", 0)


def operations_in(name: str, pattern: re.Pattern[str] | None) -> tuple[tuple[Op, ...], str | None] | None:
    """Return the operations that the name of an event contains, and its device if the pattern has the group ``device``.

    Return None if the name contains no operation.

    >>> operations_in("PP:2F0", None)
    ((Op(kind=<Kind.F: 'F'>, stage=2, microbatch=0),), None)
    >>> operations_in("PP:2SEND_F0", None) is None
    True
    """
    if pattern is None:
        pair = _TORCH_PAIR.fullmatch(name)
        if pair:
            return tuple(map(Op.parse, pair.groups())), None
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
    return (Op(_KINDS[word], int(numbers[0]), int(numbers[1])),), groups.get("device")


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


def files_at(path: Paths) -> list[Path]:
    """Return the files that ``path`` names. It is a file, a folder of traces, a glob such as ``"run/*.json.gz"``, or a list of these."""
    if not isinstance(path, (str, PathLike)):
        listed = list(each_of(path, "path must be a file, a folder, or a list of files"))
        if not listed:
            raise HybridLabError("the list of trace files is empty: give one for each rank", "empty")
        return [file for each in listed for file in files_at(_one_path(each))]
    place = Path(path)
    if place.is_dir():
        found = sorted(each for each in place.iterdir() if each.name.endswith((".json", ".json.gz")))
    elif any(mark in str(path) for mark in "*?[") and not place.exists():  # the name of an existing file can contain *, ? or [
        found = sorted(Path(place.anchor).glob(str(place.relative_to(place.anchor))))
    else:
        return [place]
    if not found:
        raise HybridLabError(f"there is no trace at {short_repr(str(path))}: traces end in .json or .json.gz", "not-found")
    return found


def _one_path(each: object) -> str | PathLike[str]:
    if not isinstance(each, (str, PathLike)):
        raise HybridLabError(f"path must be a file, a folder, or a list of files, not {short_repr(each)}", "not-a-list")
    return each
