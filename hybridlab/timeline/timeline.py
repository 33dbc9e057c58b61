"""A timeline: the start and the end of each operation, measures such as makespan and bubble, and a trace for Perfetto."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Frozen, Ints, one_object, readonly, unchanging
from hybridlab.checks import LATEST, counted, in_a_second, item_of, numbers, short_repr, unit_of_time
from hybridlab.errors import HybridLabError
from hybridlab.schedule import KINDS, F, I, Op, Operations, Schedule
from hybridlab.schedule.text import join_csv
from hybridlab.tables import Row, Tabular
from hybridlab.timeline.chrome import OWN, chrome_trace
from hybridlab.timeline.spans import Spans, require_fitting_spans

if TYPE_CHECKING:
    from hybridlab.timeline.breakdown import Breakdown


@dataclass(frozen=True, eq=False, repr=False)
class Timeline(Frozen, Tabular):
    """When each operation of a schedule started and ended, simulated or measured.

    A timeline is a table with a row for each operation and each span. ``len(timeline)`` is the number of rows, and ``timeline[0]`` is the
    first row, as in :meth:`to_rows`. If the timeline has several settings, :meth:`at` gives the timeline of one of them.

    Parameters
    ----------
    schedule : Schedule or Replicated
        The operations. Those of device 0 come first, in the order in which the device runs them, then those of device 1, and so on.
    start, end : array_like, shape (settings..., operations)
        Start and end of each operation. If several settings were simulated together, the axes before the last are for the settings.
    spans : Spans, optional
        The messages, the hops of rings and the optimisers. None if they are not known.
    unit : str or None
        The unit of all times: "s", "ms", "us", or None for time slots without a length.

    Raises
    ------
    HybridLabError
        A time is not finite, an operation ends before it starts, or the shapes of times, spans and schedule do not fit together.

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> timeline = Timeline(Schedule("one", [["0F0", "0B0"]]), start=[0, 2], end=[1, 4])
    >>> timeline.makespan, timeline.busy, timeline.bubble_ratio
    (4.0, array([3.]), 0.25)
    >>> len(timeline), timeline[-1]["op"], timeline[-1]["end"]
    (2, '0B0', 4.0)
    """

    schedule: Operations
    start: Floats
    end: Floats
    spans: Spans | None = None
    unit: str | None = "ms"

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, Operations):
            raise HybridLabError(f"the schedule of a timeline must be a Schedule, not {short_repr(self.schedule)}", "not-a-schedule")
        unit_of_time(self.unit)
        for name in ("start", "end"):
            array = getattr(self, name)
            if not (isinstance(array, np.ndarray) and array.dtype == np.float64 and array.size and unchanging(array)):
                array = readonly(numbers(array, name))  # the array is copied, except if nobody can change it
            if array.shape[-1:] != self.schedule.kind.shape:
                wanted = f"{self.schedule.kind.size} values on the last axis, one for each operation"
                raise HybridLabError(f"{name} must have {wanted}, not shape {array.shape}", "wrong-shape")
            object.__setattr__(self, name, array)
        if self.start.shape != self.end.shape:
            raise HybridLabError(f"start and end must have the same shape, not {self.start.shape} and {self.end.shape}", "does-not-fit")
        if not (self.start.min() >= -LATEST and self.end.max() <= LATEST):  # false for NaN too
            raise HybridLabError(f"every operation must start and end at a finite time, within {LATEST:g} of 0", "not-finite")
        if not (self.end >= self.start).all():
            raise HybridLabError("no operation can end before it starts", "ends-before-start")
        if self.spans is not None:
            require_fitting_spans(self.spans, self.start.shape[:-1], self.schedule.devices, self.start.shape[-1])

    @classmethod
    def from_times(cls, schedule: Any, times: Any, unit: str | None = "ms") -> "Timeline":
        """Return the timeline of a schedule from the start and the end of each operation, such as those that a program of your own returns.

        Parameters
        ----------
        schedule : Schedule or Replicated
            The operations.
        times : mapping of str or Op to (start, end)
            The times of each operation of the schedule, in ``unit``, such as ``{"0F0": (0, 50)}``.
        unit : str or None
            As in :class:`Timeline`.

        Raises
        ------
        HybridLabError
            An operation has no times, the times name an operation that the schedule does not have, or the values are no times.

        Examples
        --------
        >>> from hybridlab.schedule import Schedule
        >>> Timeline.from_times(Schedule("one", [["0F0", "0B0"]]), {"0F0": (0, 1), "0B0": (2, 4)}).busy
        array([3.])
        """
        if not isinstance(schedule, Operations):
            raise HybridLabError(f"the schedule of a timeline must be a Schedule, not {short_repr(schedule)}", "not-a-schedule")
        if not isinstance(times, Mapping):
            wanted = 'times must have the start and the end of each operation, such as {"0F0": (0, 50)}'
            raise HybridLabError(f"{wanted}, not {short_repr(times)}", "wrong-type")
        given = {str(op): span for op, span in times.items()}
        names = [str(op) for op in schedule.ops]
        missing = next((name for name in names if name not in given), None)
        if missing is not None:
            raise HybridLabError(f"{missing} has no times, but the schedule has this operation", "missing-operation")
        unknown = given.keys() - set(names)
        if unknown:
            raise HybridLabError(f"{min(unknown)} has times, but the schedule has no such operation", "unknown-operation")
        spans = numbers([given[name] for name in names], "times")
        if spans.shape != (len(names), 2):
            raise HybridLabError("each operation has two times, its start and its end", "wrong-shape")
        return cls(schedule, spans[:, 0], spans[:, 1], unit=unit)

    @classmethod
    def from_chrome_trace(
        cls,
        path: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        pattern: str | None = None,
        events: Mapping[str, str] | None = None,
        schedule: str | tuple[str, int] | Schedule | None = None,
        step: int | None = None,
        replica: int | None = None,
        name: str | None = None,
        shift_clocks: bool = False,
    ) -> "Timeline":
        r"""Return the timeline of a training step from trace files. The names of the files end in .json or .json.gz.

        There are five kinds of files:

        - A file with the result of :meth:`to_chrome_trace`. The timeline that is read equals the timeline that was written.
        - The files of torch.profiler, one for each rank, from a job that runs torch.distributed.pipelining. In these files, each operation
          has a range such as ``PP:0F1``. The files are merged by ``distributedInfo.rank`` and ``baseTimeNanoseconds``.
        - The files of torch.profiler without such ranges, as from torch's own Schedule1F1B and ScheduleGPipe. ``schedule`` alone reads
          them: a forward or backward is its operators from one send or receive to the next.
        - A trace of a program whose events say only forward or backward, such as ``forward_step`` of Megatron-LM. ``events`` names the
          events, and ``schedule`` says which operation each of them is.
        - A trace of a program that writes stage and microbatch into the names of its events. ``pattern`` says which events are operations.

        With ``schedule``, event n of a rank is operation n of its device. The kinds of all events are checked against the schedule.

        Devices have the numbers of the ranks if all files state their ranks (``distributedInfo.rank``, or a group ``device``). If not,
        device 0 is the rank that runs the first stage, device 1 the next rank that microbatch 0 visits forward, and so on. Names of files
        and numbers of processes mean nothing.

        A range of torch.profiler also contains the wait for the input. So the range is not the time of the operation. Without GPU kernels
        in the file, the operation starts at the first ``cpu_op`` in its range that does not send or receive (``c10d::``, ``gloo:``,
        ``nccl:``). It ends with the range, or at a ``c10d::send`` that comes after all other operators of the range. With GPU kernels, the
        operation starts with the first kernel that the range has launched, and ends with the last. If a range has no such ``cpu_op`` or
        kernel, its operation has length 0.

        Times in files are in microseconds, whatever ``displayTimeUnit`` says. Except for traces of this library, the timeline is in ms and
        begins at 0. A trace of 200 MB takes about 520 MB of memory and 13 seconds.

        Parameters
        ----------
        path : str, path, or list of these
            A file, a folder with one file for each rank, a glob such as ``"run/rank*.json.gz"``, or a list.
        pattern : str, optional
            A regular expression that is searched for in the names of events. It has three named groups: ``kind`` (F, B, I, W, or a word
            such as forward, bwd, dgrad, wgrad, in capital or small letters), ``stage`` and ``microbatch``. A group ``device`` is optional.
            Without ``device``, each of several files is a device. In a single file, each process is a device; if there is only one
            process, each thread is a device.
        events : mapping of str to str, optional
            For each kind (F and B, or F, I and W) a regular expression that matches whole names of events, such as ``"forward_step"`` or
            ``"forward_step|forward-compute"``. For an event of a Python function, such as ``schedules.py(243): forward_step``, the name of
            the function is enough. A group ``device`` is optional, as in ``pattern``. An event within another one does not count.
        schedule : str, (str, int) or Schedule, optional
            The schedule that the job runs: a name, a name with the number of chunks, or a schedule. With a name, the number of devices is
            the number of ranks, and the number of microbatches is that of the forwards. If the trace has several steps, their number is the
            smallest with which all events agree. Without ``events``, forwards are the operators of torch that have a backward, and
            backwards are the operators of its autograd engine.
        step : int, optional
            The number of the step to read, from 0, if the files have several steps. Run k of each operation (from 0) belongs to step k. If
            some steps lack operations, a step begins where an operation of a rank runs again. So the whole steps of a run that was
            killed can be read. With ``events``, this needs a Schedule as ``schedule``.
        replica : int, optional
            The number of the pipeline to read, from 0, if the files have several (data parallelism). The trace must state which events are
            one pipeline: by a group ``replica`` in the pattern or in the names of events, or by a process for each pipeline in a single
            file, with its devices on threads. Pipelines are sorted by this name. Of several files, give those of one pipeline.
        name : str, optional
            The name of the schedule. By default, the name of ``schedule``, of the only file, or of the folder with the files.
        shift_clocks : bool
            Whether to shift clocks that disagree. They are shifted until the fastest messages in both directions take the same time.

        Raises
        ------
        HybridLabError
            A file is damaged or of another format, no event is an operation, an operation is missing, occurs twice or has no time, two
            operations of a device overlap, an event contradicts ``schedule``, there are several steps, or clocks disagree. The message
            names the event. Or an option is wrong, such as a ``pattern`` without a group that is needed, or the step is not whole, or the
            trace does not state which ranks are one pipeline.

        Examples
        --------
        >>> import json
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from hybridlab import Costs, build, simulate
        >>> timeline = simulate(build("1f1b", devices=2, microbatches=4), Costs(forward=1, backward=2))
        >>> path = Path(mkdtemp()) / "trace.json"
        >>> _ = path.write_text(json.dumps(timeline.to_chrome_trace()))
        >>> Timeline.from_chrome_trace(path) == timeline
        True
        >>> names = [("forward of stage 0, microbatch 0", 0), ("backward of stage 0, microbatch 0", 2000)]
        >>> events = [{"ph": "X", "name": name, "ts": start, "dur": 2000, "pid": 0, "tid": 0} for name, start in names]
        >>> _ = path.write_text(json.dumps(events))
        >>> Timeline.from_chrome_trace(path, pattern=r"(?P<kind>\w+) of stage (?P<stage>\d+), microbatch (?P<microbatch>\d+)").makespan
        4.0
        >>> names = ["forward_step", "forward_step", "backward_step", "backward_step"]
        >>> events = [{"ph": "X", "name": name, "ts": 9000 * n, "dur": 2000} for n, name in enumerate(names)]
        >>> _ = path.write_text(json.dumps(events))
        >>> print(Timeline.from_chrome_trace(path, events={"F": "forward_step", "B": "backward_step"}, schedule="gpipe").schedule)
        device 0: 0F0 0F1 0B0 0B1
        """
        from hybridlab.timeline.trace_file import parts_of  # imported here, because it loads json, gzip and re

        return cls(*parts_of(path, pattern, events, schedule, step, replica, name, shift_clocks))

    @property
    def ops(self) -> tuple[Op, ...]:
        """All operations, in the order of the last axis of ``start`` and ``end``."""
        return self.schedule.ops

    @property
    def device(self) -> Ints:
        """The device of each operation, shape (operations,)."""
        return self.schedule.device

    @property
    def makespan(self) -> Any:
        """Time from the first start to the last end of all operations and spans. A float, or an array of shape (settings...)."""
        whole = [0]  # one segment for reduceat: it is faster than min() and max() if the last axis is not contiguous in memory
        first = np.minimum.reduceat(self.start, whole, axis=-1)[..., 0]
        last = np.maximum.reduceat(self.end, whole, axis=-1)[..., 0]
        if self.spans is not None:
            first, last = np.minimum(first, self.spans.earliest), np.maximum(last, self.spans.latest)
        return self._plain(last - first)

    @property
    def device_span(self) -> Any:
        """The longest time of a device from the start of its first operation to the end of its last. Spans do not count.

        This is the time of a step as Qi et al., arXiv 2401.10241, define it.
        """
        first = self.schedule.first
        starts = np.minimum.reduceat(self.start, first, axis=-1)
        ends = np.maximum.reduceat(self.end, first, axis=-1)
        return self._plain((ends - starts).max(axis=-1))

    @property
    def busy(self) -> Floats:
        """Time that each device runs operations or its optimiser, shape (settings..., devices). An overlapped pair counts once."""
        duration = self.end - self.start
        duration[..., self.schedule.pairs + 1] = 0  # count a pair once: both its rows have the time of the pair
        busy: Floats = np.add.reduceat(duration, self.schedule.first, axis=-1)
        return busy if self.spans is None else busy + self.spans.computing(self.schedule.devices)

    @property
    def bubble_ratio(self) -> Any:
        """Share of the time in which devices are idle: 1 - sum(busy) / (devices * makespan). 0 if the makespan is 0."""
        total = np.asarray(self.makespan) * self.schedule.devices
        idle = np.maximum(total - self.busy.sum(axis=-1), 0.0)  # rounding can make the idle time slightly negative
        return self._plain(np.divide(idle, total, out=np.zeros_like(total), where=total > 0))

    @property
    def peak_activations(self) -> Floats:
        """The largest number of activations that each device holds at the same time, shape (settings..., devices).

        The unit is the activation of one microbatch on a whole device. With v chunks, the activation of one chunk counts as 1/v. A
        device holds an activation from the start of the forward to the end of the full backward or of the weight gradient. The peak
        depends on the order of the operations, but not on their times.
        """
        peak = np.maximum.reduceat(self.activations, self.schedule.first)
        return np.broadcast_to(peak, (*self.start.shape[:-1], self.schedule.devices))

    @cached_property
    def activations(self) -> Floats:
        """For each operation, the activations that its device holds while it runs, shape (operations,). Unit as in ``peak_activations``."""
        stores, frees = self.schedule.kind == F, (self.schedule.kind != F) & (self.schedule.kind != I)
        # Each device frees all its activations, so the running count is 0 again where the rows of the next device begin.
        alive: Floats = (np.cumsum(stores) - np.cumsum(frees) + frees) / self.schedule.chunks
        return readonly(alive)

    def blocking_operation(self) -> Ints:
        """Return, for each operation, the row of the operation that it waited for, shape (operations,).

        If the device was idle just before an operation, the operation waited for its input: the row is that of the operation whose output
        it needs. Otherwise the row is that of the operation before it on the device. -1 means that it waited for no operation.

        Raises
        ------
        HybridLabError
            The timeline has several settings.

        Examples
        --------
        >>> from hybridlab import Costs, build, simulate
        >>> timeline = simulate(build("1f1b", devices=2, microbatches=1), Costs(forward=1, backward=2))
        >>> [str(op) for op in timeline.ops], timeline.blocking_operation().tolist()
        (['0F0', '0B0', '1F0', '1B0'], [-1, 3, 0, 2])
        """
        self._require_one_setting("blocking_operation()")
        before = self.schedule.before
        # a device is free from the start of the step until its first operation
        free = np.where(before >= 0, self.end[before], self.start.min())
        return np.where(self.start > free, self._latest_input(), before)

    def _latest_input(self) -> Ints:
        """Return, for each operation, the row of the operation whose output it needs.

        An overlapped pair has two inputs. Both operations of the pair get the row of the input that came later.
        """
        source, first = self.schedule.source.copy(), self.schedule.pairs
        pair = np.stack([first, first + 1])
        ended = np.append(self.end, -np.inf)[source[pair]]  # the source -1 reads minus infinity, which is never the latest end
        ended[
            ~self.schedule.crosses[pair] & (ended < self.start[pair])
        ] = -np.inf  # the pair did not wait for an input that its own device computed earlier
        source[pair] = source[pair[ended.argmax(axis=0), np.arange(first.size)]]
        return source

    def breakdown(self) -> "Breakdown":
        """Return the work and the waits of each device, and the critical path.

        Raises
        ------
        HybridLabError
            The timeline has several settings.

        Examples
        --------
        >>> from hybridlab import Costs, build, simulate
        >>> where = simulate(build("1f1b", devices=2, microbatches=4), Costs(forward=1, backward=2, p2p=0.5)).breakdown()
        >>> where
        <Breakdown of 17, in ms>
        device  forward  backward  warm-up  steady  cool-down  after
             0        4         8        3       0          2      0
             1        4         8      1.5       1          0    2.5
        critical path: 15 of work + 2 between operations
        >>> " ".join(str(step.op) for step in where.critical_path)
        '0F0 1F0 1B0 0B0 0F2 1F2 1B2 1F3 1B3 0B3'
        """
        from hybridlab.timeline.breakdown import breakdown_of  # imported here, because it is rarely needed

        self._require_one_setting("breakdown()")
        first, last = self.start.min(), self.end.max()
        if self.spans is not None:
            first, last = min(first, self.spans.earliest), max(last, self.spans.latest)
        optimiser = np.zeros(self.schedule.devices) if self.spans is None else self.spans.computing(self.schedule.devices)
        return breakdown_of(self, self._latest_input(), optimiser, first, last)

    def at(self, *setting: int) -> "Timeline":
        """Return the timeline of one setting. With fewer indices than axes, return the timeline of all settings with these first indices.

        Parameters
        ----------
        setting : int
            Indices on the axes of the settings. A negative index counts from the end.

        Raises
        ------
        HybridLabError
            There is no such setting (``out-of-range``).

        Examples
        --------
        >>> from hybridlab import Costs, build, simulate
        >>> batch = simulate(build("1f1b", devices=2, microbatches=4), Costs(forward=[[1], [2]], backward=2))
        >>> batch.at(1).makespan
        20.0
        """
        shape = self.start.shape[:-1]
        known = len(setting) <= len(shape) and all(
            isinstance(place, (int, np.integer)) and not isinstance(place, bool) and -length <= place < length
            for place, length in zip(setting, shape, strict=False)
        )
        if not known:
            raise HybridLabError(f"there is no setting {short_repr(setting)}: the settings have shape {shape}", "out-of-range")
        spans = None if self.spans is None else self.spans.at(*setting)
        return Timeline(self.schedule, self.start[setting], self.end[setting], spans, self.unit)

    def to_rows(self) -> list[Row]:
        """Return one dict for each operation, with the keys device, op, kind, stage, microbatch, start, end, activations.

        The spans follow, with the keys of :meth:`~hybridlab.timeline.Spans.to_rows`.

        Raises
        ------
        HybridLabError
            The timeline has several settings.
        """
        self._require_one_setting("to_rows()")
        return self._rows(slice(None), slice(None))

    def __len__(self) -> int:
        self._require_one_setting("len()")
        return self.start.size + (0 if self.spans is None else self.spans.size)

    def __iter__(self) -> Iterator[Row]:
        self._require_one_setting("a loop over the rows")
        return iter(self.to_rows())

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        self._require_one_setting("an index of a row")
        chosen: Any = item_of(range(len(self)), place, "the timeline", "row")
        if isinstance(chosen, tuple):
            return item_of(self.to_rows(), place, "the timeline", "row")
        after = chosen - self.start.size  # the place among the spans, negative for an operation
        return self._rows(slice(chosen, chosen + 1), slice(max(after, 0), max(after + 1, 0)))[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return one_object(self)

    def _rows(self, operations: slice, spans: slice) -> list[Row]:
        """Return the rows of some operations, and then those of some spans, of a timeline with one setting."""
        columns = (self.schedule.device, self.schedule.kind, self.schedule.stage, self.schedule.microbatch)
        values = zip(*(column[operations].tolist() for column in (*columns, self.start, self.end, self.activations)), strict=True)
        names = ("device", "op", "kind", "stage", "microbatch", "start", "end", "activations")
        rows = [
            dict(
                zip(
                    names,
                    (device, f"{stage}{KINDS[kind]}{microbatch}", KINDS[kind].value, stage, microbatch, *rest),
                    strict=True,
                )
            )
            for device, kind, stage, microbatch, *rest in values
        ]
        return rows if self.spans is None else rows + self.spans.where(spans).to_rows(self.ops)

    def to_chrome_trace(self) -> dict[str, Any]:
        """Return a trace in Chrome's format. Perfetto (ui.perfetto.dev) opens it from a file written with ``json.dump``.

        Raises
        ------
        HybridLabError
            The timeline has several settings or no unit, or its times in microseconds are too large.

        Examples
        --------
        >>> from hybridlab.schedule import Schedule
        >>> trace = Timeline(Schedule("one", [["0F0", "0B0"]]), start=[0, 1], end=[1, 3]).to_chrome_trace()
        >>> [(event["name"], event["ts"], event["dur"]) for event in trace["traceEvents"] if event["ph"] == "X"]
        [('0F0', 0.0, 1000.0), ('0B0', 1000.0, 2000.0)]
        """
        self._require_one_setting("to_chrome_trace()")
        microseconds = 1e6 / in_a_second(self.unit, "a trace")
        latest = np.abs([self.start, self.end]).max()  # in microseconds the numbers are larger than in a unit such as "s"
        if self.spans is not None:
            latest = max(latest, np.abs(self.spans.end).max(initial=0), np.abs(self.spans.start).max(initial=0))
        if latest > LATEST / microseconds:
            raise HybridLabError(f"the trace's times must stay within {LATEST:g} microseconds: give smaller times", "too-large")
        replicas = getattr(self.schedule, "replicas", 0)  # 0 means that the schedule is a Schedule and not a Replicated
        one = self.schedule.turns[: self.schedule.devices // max(1, replicas)]  # all replicas run the same orders
        about = {"orders": join_csv(one), "unit": self.unit, "replicas": replicas, "spans": self.spans is not None}
        return chrome_trace(self.to_rows(), microseconds, self.schedule.name) | {"otherData": {OWN: about}}

    def _require_one_setting(self, reader: str) -> None:
        """Raise an error if the timeline has several settings. The error says what reads one."""
        if self.start.ndim > 1:
            settings = self.start.shape[:-1]
            raise HybridLabError(f"{reader} reads one setting, but this timeline holds {settings}: pick one with at()", "several-settings")

    def _plain(self, value: Floats) -> Any:
        """Return ``value`` as a float if the timeline has one setting, and as it is if the timeline has several."""
        return float(value) if self.start.ndim == 1 else value

    def _caption(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.schedule.name}, {counted(self.schedule.devices, 'device')}, makespan {self.makespan:g}{unit}"

    def _repr_html_(self) -> str | None:
        return None if self.start.ndim > 1 else super()._repr_html_()  # a notebook then shows the repr of several settings

    def __repr__(self) -> str:
        settings = f", settings {self.start.shape[:-1]}" if self.start.ndim > 1 else f", makespan {self.makespan:g}"
        return f"<Timeline of {self.schedule!r}{settings}>"


def computed_timeline(schedule: Operations, start: Floats, end: Floats, unit: str | None) -> Timeline:
    """Return a timeline without checking its times, because the library itself has computed them. The arrays must be read-only.

    >>> from hybridlab.schedule import Schedule
    >>> computed_timeline(Schedule("one", [["0F0", "0B0"]]), readonly(np.array([0.0, 1.0])), readonly(np.array([1.0, 3.0])), "ms").makespan
    3.0
    """
    timeline = object.__new__(Timeline)  # __init__ is not called, because its checks take longer than a small simulation
    timeline.__dict__.update(schedule=schedule, start=start, end=end, spans=None, unit=unit)
    return timeline
