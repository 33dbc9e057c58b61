"""Spans. A span is the start and the end of something that is not an operation of a schedule: a message, a hop of a ring, an optimiser."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Frozen, Ints, readonly, unchanging
from hybridlab.checks import LATEST, known_name, refuse_masked, short_repr
from hybridlab.errors import HybridLabError

SPAN_KINDS = ("send", "receive", "reduce-scatter", "all-gather", "optimiser")  # the code of a kind is its index
SEND, RECEIVE, REDUCE_SCATTER, ALL_GATHER, OPTIMISER = range(len(SPAN_KINDS))
MOST_SPANS = 2**23  # the largest product spans x settings in one timeline; this many spans take about 2 GB of memory
DETAILS = ("stage", "microbatch", "chunk", "step", "peer", "nbytes", "row")
COLUMNS = {"kind": 0, "device": 0} | dict.fromkeys(DETAILS, -1)  # for each column of whole numbers, the smallest allowed number


@dataclass(frozen=True, eq=False, repr=False)
class Spans(Frozen):
    """A table of spans. It has one array for each column. Each array has one element for each span.

    In all columns except ``kind``, ``device``, ``start`` and ``end``, -1 means that the value is not known or has no meaning for this
    kind of span. If one number is given for a column, all spans get this number.

    Parameters
    ----------
    kind : array of int, shape (spans,)
        Indices in ``SPAN_KINDS``.
    device : array of int, shape (spans,)
        The sender of a send or of a hop, the receiver of a receive, or the device of an optimiser.
    start, end : array of float, shape (settings..., spans)
        Times in the unit of the timeline.
    stage : array of int, shape (spans,)
        For a message, the stage of the operation whose output it carries. For a hop, the stage whose gradients the ring averages.
    microbatch : array of int, shape (spans,)
        For a message, the microbatch of the operation whose output it carries.
    chunk, step : array of int, shape (spans,)
        For a hop, the chunk of the gradients that it sends, and the number of its step in the reduce-scatter or the all-gather.
    peer : array of int, shape (spans,)
        The other device of a message or hop: the receiver of a send or of a hop, or the sender of a receive.
    nbytes : array of int, shape (spans,)
        Bytes of a message or hop.
    row : array of int, shape (spans,)
        For a message, the row in the schedule of the operation whose output it carries.

    Raises
    ------
    HybridLabError
        Columns differ in length, a kind is unknown, a time is not finite, or a span ends before it starts.

    Examples
    --------
    >>> Spans(kind=[OPTIMISER], device=[3], start=[10.0], end=[12.0]).to_rows()[0]["op"]
    'optimiser'
    """

    kind: Ints
    device: Ints
    start: Floats
    end: Floats
    stage: Ints = -1  # type: ignore[assignment]  # __post_init__ changes one value for all spans into a column
    microbatch: Ints = -1  # type: ignore[assignment]
    chunk: Ints = -1  # type: ignore[assignment]
    step: Ints = -1  # type: ignore[assignment]
    peer: Ints = -1  # type: ignore[assignment]
    nbytes: Ints = -1  # type: ignore[assignment]
    row: Ints = -1  # type: ignore[assignment]

    def __post_init__(self) -> None:
        start, end = (_times(getattr(self, name), name) for name in ("start", "end"))
        if start.shape != end.shape:
            raise HybridLabError(f"start and end of spans must have the same shape, not {start.shape} and {end.shape}", "does-not-fit")
        # Most tables are right, so a fast check of the smallest and the largest time comes first. NaN fails this check too.
        if not (np.abs([start.min(initial=0.0), end.max(initial=0.0)]) <= LATEST).all() or not (end >= start).all():
            _refuse_times(start, end)
        columns = _columns({name: getattr(self, name) for name in COLUMNS}, start.shape[-1])
        # The fields of a frozen dataclass cannot be assigned, so they are written into __dict__.
        self.__dict__.update(columns, start=readonly(start), end=readonly(end))

    @property
    def size(self) -> int:
        """Number of spans."""
        return self.kind.size

    def of(self, *kinds: str) -> "Spans":
        """Return the spans of these ``kinds``, such as "send" and "receive"."""
        codes = [SPAN_KINDS.index(known_name(kind, SPAN_KINDS, "kind of span")) for kind in kinds]
        return self.where(np.isin(self.kind, codes))

    def where(self, chosen: npt.NDArray[Any] | slice) -> "Spans":
        """Return some of the spans, selected by an array of bools, an array of indices or a slice, as in ``array[chosen]``."""
        return _from_checked({name: getattr(self, name)[..., chosen] for name in self.__dataclass_fields__})

    def at(self, *setting: int) -> "Spans":
        """Return the spans of one setting of a batch."""
        columns = {name: getattr(self, name) for name in ("kind", "device", *DETAILS)}
        return _from_checked({"start": self.start[setting], "end": self.end[setting], **columns})

    @property
    def latest(self) -> Floats:
        """The latest end of all spans, shape (settings...). Minus infinity if there are no spans."""
        latest: Floats = self.end.max(axis=-1, initial=-np.inf)
        return latest

    @property
    def earliest(self) -> Floats:
        """The earliest start of all spans, shape (settings...). Infinity if there are no spans."""
        earliest: Floats = self.start.min(axis=-1, initial=np.inf)
        return earliest

    def computing(self, devices: int) -> Floats:
        """Return the time that each device spends in its optimiser, shape (settings..., devices). Messages and hops do not count."""
        optimisers = np.flatnonzero(self.kind == OPTIMISER)
        total = np.zeros((devices, *self.start.shape[:-1]))  # devices are the first axis, because np.add.at adds along the first axis
        np.add.at(total, self.device[optimisers], np.moveaxis((self.end - self.start)[..., optimisers], -1, 0))
        return np.moveaxis(total, 0, -1)

    def to_rows(self, ops: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Return one dict for each span of a table with one setting.

        Parameters
        ----------
        ops : sequence
            The operations of the schedule. The name of a message contains its operation, as in "send 0F0".

        Returns
        -------
        list of dict
            Each dict has the keys of ``Timeline.to_rows``, and chunk, step, peer and nbytes. The value of ``activations`` is None.
        """
        names = ("device", "kind", "stage", "microbatch", "start", "end", "chunk", "step", "peer", "nbytes")
        columns = zip(*(getattr(self, name).tolist() for name in ("row", *names)), strict=True)
        rows = []
        for row, device, kind, stage, microbatch, start, end, chunk, step, peer, nbytes in columns:
            suffix = f" chunk {chunk}" if kind in (REDUCE_SCATTER, ALL_GATHER) else f" {ops[row]}" if 0 <= row < len(ops) else ""
            shared = {"device": device, "op": SPAN_KINDS[kind] + suffix, "kind": SPAN_KINDS[kind], "stage": stage, "microbatch": microbatch}
            details = {"chunk": chunk, "step": step, "peer": peer, "nbytes": nbytes}
            rows.append(shared | {"start": start, "end": end, "activations": None} | details)
        return rows

    def __repr__(self) -> str:
        counts = np.bincount(self.kind, minlength=len(SPAN_KINDS)).tolist()
        nonzero = ", ".join(f"{count:,} {kind}" for kind, count in zip(SPAN_KINDS, counts, strict=True) if count)
        return f"<Spans: {nonzero or 'none'}>"


def join_spans(*parts: Spans) -> Spans:
    """Return one table with the spans of all ``parts`` in order. All parts must have the same settings."""
    columns = {name: [getattr(part, name) for part in parts] for name in Spans.__dataclass_fields__}
    return _from_checked({name: np.concatenate(values, axis=-1) for name, values in columns.items()})


def _from_checked(columns: dict[str, npt.NDArray[Any]]) -> Spans:
    """Return spans whose columns come from other ``Spans``. Those have checked the values, so only shapes can be wrong here."""
    columns = {name: readonly(column) for name, column in columns.items()}
    if columns["kind"].ndim != 1 or columns["start"].shape[-1:] != columns["kind"].shape:
        return Spans(**columns)  # raises an error with a sentence
    spans = object.__new__(Spans)
    for name, column in columns.items():
        object.__setattr__(spans, name, column)
    return spans


def require_fitting_spans(spans: Spans, settings: tuple[int, ...], devices: int, rows: int) -> None:
    """Raise if ``spans`` are not :class:`Spans`, have another shape of settings, or name a device or a row that does not exist."""
    if not isinstance(spans, Spans):
        raise HybridLabError(f"the spans of a timeline are Spans, or None, not {short_repr(spans)}", "wrong-type")
    if spans.start.shape[:-1] != settings:
        raise HybridLabError(f"the spans have settings {spans.start.shape[:-1]}, but the operations have {settings}", "does-not-fit")
    for name, values, count in (("device", spans.device, devices), ("device", spans.peer, devices), ("row", spans.row, rows)):
        if values.max(initial=-1) >= count:
            raise HybridLabError(f"there is no {name} {values.max()} for a span: the last one is {count - 1}", "out-of-range")


def _times(value: Any, name: str) -> Floats:
    """Return ``value`` as a float64 array of times. The last axis is for the spans. An array that nobody can change is not copied."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and unchanging(value):
        array = value
    else:
        refuse_masked(value, f"{name} of spans")
        try:
            given = np.array(value)
        except (ValueError, TypeError):
            given = np.empty(0, dtype=object)
        if given.dtype.kind not in "iuf":
            raise HybridLabError(f"{name} of spans must be an array of times, not {short_repr(value)}", "not-a-number")
        with np.errstate(over="ignore"):  # a longdouble above the range of float64 becomes inf, and _refuse_times refuses inf
            array = given.astype(np.float64)
    if not array.ndim:
        raise HybridLabError(f"{name} of spans must have one time for each span, not {short_repr(value)}", "wrong-shape")
    return array


def _refuse_times(start: Floats, end: Floats) -> None:
    """Raise for times that are not finite or too large, or for a span that ends before it starts."""
    if not (np.abs([start, end]) <= LATEST).all():  # false for NaN too
        raise HybridLabError(f"every span must start and end at a finite time, within {LATEST:g} of 0", "not-finite")
    raise HybridLabError("no span can end before it starts", "ends-before-start")


def _columns(given: dict[str, Any], size: int) -> dict[str, Ints]:
    """Return all columns as rows of one read-only array, checked in one pass."""
    table = np.empty((len(COLUMNS), size), dtype=np.intp)
    for row, (name, value) in zip(table, given.items(), strict=True):
        # an array that already has the right type and shape needs no further check
        row[:] = value if type(value) is np.ndarray and value.dtype == np.intp and value.shape == (size,) else _column(value, name, size)
    smallest = table.min(axis=1, initial=0)
    for (name, least), found in zip(COLUMNS.items(), smallest.tolist(), strict=True):
        if found < least:
            raise HybridLabError(f"{name} of spans must be whole numbers of at least {least}, not {found}", "too-small")
    if table[0].max(initial=0) >= len(SPAN_KINDS):
        last = len(SPAN_KINDS) - 1
        raise HybridLabError(f"kind is an index in {SPAN_KINDS}, 0 to {last}, not {table[0].max()}", "out-of-range")
    return dict(zip(given, readonly(table), strict=True))


def _column(value: Any, name: str, size: int) -> Ints:
    """Return ``value``, one whole number or one for each span, as integers of shape () or (size,)."""
    try:
        array = np.array(value)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.size == 0 and size == 0:
        array = array.astype(np.intp)
    if array.dtype.kind not in "iu" or array.shape not in ((), (size,)):
        wanted = f"{name} of spans must be whole numbers, one for each of the {size} spans"
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-a-whole-number" if array.dtype.kind not in "iu" else "wrong-length")
    if array.size and array.max() > np.iinfo(np.intp).max:
        raise HybridLabError(f"{name} of spans must be whole numbers up to {np.iinfo(np.intp).max:,}, not {array.max():,}", "too-large")
    return array.astype(np.intp)
