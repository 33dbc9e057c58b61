"""A timeline: when each operation ran, and all that follows from it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import LATEST, in_a_second, numbers, removed_arguments, short_repr, unit_of_time
from hybridlab.errors import HybridLabError
from hybridlab.schedule import KINDS, F, I, Op, Operations
from hybridlab.timeline.spans import Spans, fit_to
from hybridlab.timeline.trace import chrome_trace


@dataclass(frozen=True, eq=False, repr=False)
class Timeline(Frozen):
    """When each operation of ``schedule`` started and ended, simulated or measured.

    ``start`` and ``end`` have shape (settings..., operations), the operations in the order of the schedule's rows:
    device by device, as they ran. ``spans`` is what devices did beside the operations: messages, hops of a ring, the optimiser; None
    where the timeline does not tell. ``unit`` is the unit of all times: "s", "ms", "us", or None for plain slots.
    """

    schedule: Operations
    start: Floats
    end: Floats
    spans: Spans | None = None
    unit: str | None = "ms"

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, Operations):
            raise HybridLabError(f"a timeline is of a Schedule, not of {short_repr(self.schedule)}")
        unit_of_time(self.unit)
        for name in ("start", "end"):
            array = getattr(self, name)
            kept = isinstance(array, np.ndarray) and array.dtype == np.float64 and not array.flags.writeable
            if not (kept and array.size):
                array = readonly(numbers(array, name))  # a copy of its own; what nobody can write to needs none
            if array.shape[-1:] != self.schedule.kind.shape:
                wanted = f"{self.schedule.kind.size} values on the last axis, one an operation"
                raise HybridLabError(f"{name} must have {wanted}, not shape {array.shape}")
            object.__setattr__(self, name, array)
        if self.start.shape != self.end.shape:
            raise HybridLabError(f"start and end must have one shape, not {self.start.shape} and {self.end.shape}")
        if not (self.start.min() >= -LATEST and self.end.max() <= LATEST):  # false for NaN as well
            raise HybridLabError(f"every operation must start and end at a finite time, within {LATEST:g} of 0")
        if not (self.end >= self.start).all():
            raise HybridLabError("no operation can end before it starts")
        if self.spans is not None:
            fit_to(self.spans, self.start.shape[:-1], self.schedule.devices, self.start.shape[-1])

    @property
    def ops(self) -> tuple[Op, ...]:
        """Every operation, in the order of ``start`` and ``end``."""
        return self.schedule.ops

    @property
    def device(self) -> Ints:
        """The device of every operation."""
        return self.schedule.device

    @property
    def makespan(self) -> Any:
        """First start to last end over all devices, spans included: a float, or an array over the settings."""
        every = [0]  # min() and max() along an axis that is not the last in memory are slow
        first = np.minimum.reduceat(self.start, every, axis=-1)[..., 0]
        last = np.maximum.reduceat(self.end, every, axis=-1)[..., 0]
        if self.spans is not None:
            first, last = np.minimum(first, self.spans.earliest), np.maximum(last, self.spans.latest)
        return self._plain(last - first)

    @property
    def device_span(self) -> Any:
        """The longest first-start-to-last-end of one device's operations (the definition of Qi et al., arXiv 2401.10241)."""
        first = self.schedule.first
        starts = np.minimum.reduceat(self.start, first, axis=-1)
        ends = np.maximum.reduceat(self.end, first, axis=-1)
        return self._plain((ends - starts).max(axis=-1))

    @property
    def busy(self) -> Floats:
        """Time each device computes, operations and optimiser, shape (settings..., devices); an overlapped pair counts once."""
        lasted = self.end - self.start
        lasted[..., self.schedule.pairs + 1] = 0
        busy: Floats = np.add.reduceat(lasted, self.schedule.first, axis=-1)
        return busy if self.spans is None else busy + self.spans.computing(self.schedule.devices)

    @property
    def bubble_ratio(self) -> Any:
        """Idle share of all device time, 1 - sum(busy) / (devices * makespan); 0 where nothing takes any time."""
        total = np.asarray(self.makespan) * self.schedule.devices
        idle = np.maximum(total - self.busy.sum(axis=-1), 0.0)  # rounding can leave it just below
        return self._plain(np.divide(idle, total, out=np.zeros_like(total), where=total > 0))

    @property
    def peak_activations(self) -> Floats:
        """Most activations each device holds at once, in microbatches of a whole device, shape (settings..., devices).

        An activation is held from the start of its forward to the end of its full backward or of its weight gradient;
        that of one of v chunks counts 1/v. The order alone decides it.
        """
        peak = np.maximum.reduceat(self.activations, self.schedule.first)
        return np.broadcast_to(peak, (*self.start.shape[:-1], self.schedule.devices))

    @cached_property
    def activations(self) -> Floats:
        """Activations that an operation's device holds while it runs, in microbatches of the whole device."""
        taken, frees = self.schedule.kind == F, (self.schedule.kind != F) & (self.schedule.kind != I)
        # Every device ends with none, so one running count serves them all.
        held: Floats = (np.cumsum(taken) - np.cumsum(frees) + frees) / self.schedule.chunks
        return readonly(held)

    def blocking_operation(self) -> Ints:
        """Return for every operation the row of the one whose end let it start, -1 for those that waited for none.

        It is the operation's input where the device stood idle for it, else the operation before it on the device.
        One setting only.
        """
        self._one_setting("blocking_operation")
        before = self.schedule.before
        free = np.where(before >= 0, self.end[before], self.start.min())
        return np.where(self.start > free, self._input(), before)

    def _input(self) -> Ints:
        """Return the source of every operation, and for an overlapped pair the one of the two that came later."""
        source, first = self.schedule.source.copy(), self.schedule.pairs
        both = np.stack([first, first + 1])
        ended = np.append(self.end, -np.inf)[source[both]]
        ended[~self.schedule.crosses[both] & (ended < self.start[both])] = -np.inf  # was there before, without a message
        source[both] = source[both[ended.argmax(axis=0), np.arange(first.size)]]
        return source

    def at(self, *setting: int) -> "Timeline":
        """Return the timeline of one setting of a batch."""
        shape = self.start.shape[:-1]
        known = len(setting) <= len(shape) and all(
            isinstance(place, (int, np.integer)) and not isinstance(place, bool) and -length <= place < length
            for place, length in zip(setting, shape, strict=False)
        )
        if not known:
            raise HybridLabError(f"there is no setting {short_repr(setting)}: the settings have shape {shape}")
        spans = None if self.spans is None else self.spans.at(*setting)
        return Timeline(self.schedule, self.start[setting], self.end[setting], spans, self.unit)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict an operation: device, op, kind, stage, microbatch, start, end, activations. One setting.

        After the operations come the spans, if there are any, with the keys of :meth:`~hybridlab.timeline.Spans.to_rows`.
        """
        self._one_setting("to_rows")
        columns = (self.schedule.device, self.schedule.kind, self.schedule.stage, self.schedule.microbatch)
        values = zip(*(column.tolist() for column in (*columns, self.start, self.end, self.activations)), strict=True)
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
        return rows if self.spans is None else rows + self.spans.to_rows(self.ops)

    @removed_arguments(microseconds="the length of the unit is that of the timeline's unit, as in Costs(..., unit='ms')")
    def to_chrome_trace(self) -> dict[str, Any]:
        """Return a trace that Perfetto (ui.perfetto.dev) opens once written with ``json.dump``. One setting only.

        Its times are in microseconds, whatever the timeline's unit; plain slots, which have no length, are refused.

        >>> from hybridlab.schedule import Schedule
        >>> trace = Timeline(Schedule("one", [["0F0", "0B0"]]), start=[0, 1], end=[1, 3]).to_chrome_trace()
        >>> [(event["name"], event["ts"], event["dur"]) for event in trace["traceEvents"] if event["ph"] == "X"]
        [('0F0', 0.0, 1000.0), ('0B0', 1000.0, 2000.0)]
        """
        microseconds = 1e6 / in_a_second(self.unit, "a trace")
        latest = np.abs([self.start, self.end]).max()
        if self.spans is not None:
            latest = max(latest, np.abs(self.spans.end).max(initial=0), np.abs(self.spans.start).max(initial=0))
        if latest > LATEST / microseconds:
            raise HybridLabError(f"the trace's times must stay within {LATEST:g} microseconds: give smaller times")
        return chrome_trace(self.to_rows(), microseconds, self.schedule.name)

    def _one_setting(self, method: str) -> None:
        if self.start.ndim > 1:
            settings = self.start.shape[:-1]
            raise HybridLabError(f"{method}() reads one setting, but this timeline holds {settings}: pick one with at()")

    def _plain(self, value: Floats) -> Any:
        return float(value) if self.start.ndim == 1 else value

    def __repr__(self) -> str:
        settings = f", settings {self.start.shape[:-1]}" if self.start.ndim > 1 else f", makespan {self.makespan:g}"
        return f"<Timeline of {self.schedule!r}{settings}>"
