"""What devices do beside the operations of a schedule: messages, hops of a ring, the optimiser; and when each ran."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import LATEST, known_name, refuse_masked, short_repr
from hybridlab.errors import HybridLabError

SPAN_KINDS = ("send", "receive", "reduce-scatter", "all-gather", "optimiser")  # a span's code is its kind's place here
SEND, RECEIVE, REDUCE_SCATTER, ALL_GATHER, OPTIMISER = range(len(SPAN_KINDS))
MOST_SPANS = 2**23  # in one timeline, settings counted: about 2 GB
DETAILS = ("stage", "microbatch", "chunk", "step", "peer", "nbytes", "row")


@dataclass(frozen=True, eq=False, repr=False)
class Spans(Frozen):
    """Stretches of time in columns, one row a span; -1 stands where a column does not apply or is not known.

    ``kind`` is a place in ``SPAN_KINDS``; ``device`` the device it is on; ``start`` and ``end`` have shape
    (settings..., spans), in the timeline's unit. The other columns:

    - ``stage``, ``microbatch``: of the operation whose output a message carries; ``stage`` also of a hop, whose ring it is
    - ``row``: the row of that operation in the schedule
    - ``chunk``, ``step``: which piece of the gradients a hop sends, and which step of its phase it is
    - ``peer``: the device at the other end: the receiver of a send and of a hop, the sender of a receive
    - ``nbytes``: the bytes that a message or a hop carries

    Raises :class:`HybridLabError` for columns of different lengths, unknown kinds, times that are not finite, and a
    span that ends before it starts.

    >>> Spans(kind=[OPTIMISER], device=[3], start=[10.0], end=[12.0]).to_rows()[0]["op"]
    'optimiser'
    """

    kind: Ints
    device: Ints
    start: Floats
    end: Floats
    stage: Ints = -1  # type: ignore[assignment]  # one value for all spans becomes a column
    microbatch: Ints = -1  # type: ignore[assignment]
    chunk: Ints = -1  # type: ignore[assignment]
    step: Ints = -1  # type: ignore[assignment]
    peer: Ints = -1  # type: ignore[assignment]
    nbytes: Ints = -1  # type: ignore[assignment]
    row: Ints = -1  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(self, name, readonly(_times(getattr(self, name), name)))
        if self.start.shape != self.end.shape:
            raise HybridLabError(f"start and end of spans must have one shape, not {self.start.shape} and {self.end.shape}")
        if not (self.end >= self.start).all():
            raise HybridLabError("no span can end before it starts")
        for name in ("kind", "device", *DETAILS):
            least = 0 if name in ("kind", "device") else -1
            object.__setattr__(self, name, readonly(_column(getattr(self, name), name, self.start.shape[-1], least)))
        if (self.kind >= len(SPAN_KINDS)).any():
            raise HybridLabError(f"kind is a place in {SPAN_KINDS}, 0 to {len(SPAN_KINDS) - 1}, not {self.kind.max()}")

    @property
    def size(self) -> int:
        """Number of spans."""
        return self.kind.size

    def of(self, *kinds: str) -> "Spans":
        """Return the spans of ``kinds``, such as "send" and "receive"."""
        codes = [SPAN_KINDS.index(known_name(kind, SPAN_KINDS, "kind of span")) for kind in kinds]
        return self.where(np.isin(self.kind, codes))

    def where(self, chosen: npt.NDArray[Any]) -> "Spans":
        """Return the spans that ``chosen``, an array of bools or of places, picks."""
        return Spans(*(readonly(getattr(self, name)[..., chosen]) for name in self.__dataclass_fields__))

    def at(self, *setting: int) -> "Spans":
        """Return the spans of one setting of a batch."""
        columns = {name: getattr(self, name) for name in ("kind", "device", *DETAILS)}
        return Spans(start=self.start[setting], end=self.end[setting], **columns)

    @property
    def latest(self) -> Floats:
        """The last end, shape (settings...); minus infinity where there is no span."""
        latest: Floats = self.end.max(axis=-1, initial=-np.inf)
        return latest

    @property
    def earliest(self) -> Floats:
        """The first start, shape (settings...); infinity where there is no span."""
        earliest: Floats = self.start.min(axis=-1, initial=np.inf)
        return earliest

    def computing(self, devices: int) -> Floats:
        """Return how long each of ``devices`` computes here, in its optimiser, shape (settings..., devices)."""
        mine = np.flatnonzero(self.kind == OPTIMISER)
        total = np.zeros((devices, *self.start.shape[:-1]))
        np.add.at(total, self.device[mine], np.moveaxis((self.end - self.start)[..., mine], -1, 0))
        return np.moveaxis(total, 0, -1)

    def to_rows(self, ops: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Return a dict a span, with the keys of ``Timeline.to_rows`` and chunk, step, peer, nbytes. One setting.

        ``ops`` are the schedule's, after which messages are named; ``activations`` is None: a span holds none of its own.
        """
        names = ("device", "kind", "stage", "microbatch", "start", "end", "chunk", "step", "peer", "nbytes")
        columns = zip(*(getattr(self, name).tolist() for name in ("row", *names)), strict=True)
        rows = []
        for row, device, kind, stage, microbatch, start, end, chunk, step, peer, nbytes in columns:
            what = f" chunk {chunk}" if kind in (REDUCE_SCATTER, ALL_GATHER) else f" {ops[row]}" if 0 <= row < len(ops) else ""
            shared = {"device": device, "op": SPAN_KINDS[kind] + what, "kind": SPAN_KINDS[kind], "stage": stage, "microbatch": microbatch}
            own = {"chunk": chunk, "step": step, "peer": peer, "nbytes": nbytes}
            rows.append(shared | {"start": start, "end": end, "activations": None} | own)
        return rows

    def __repr__(self) -> str:
        counts = np.bincount(self.kind, minlength=len(SPAN_KINDS)).tolist()
        message = ", ".join(f"{count:,} {kind}" for kind, count in zip(SPAN_KINDS, counts, strict=True) if count)
        return f"<Spans: {message or 'none'}>"


def joined(*parts: Spans) -> Spans:
    """Return the spans of all ``parts``, one part after the other; their settings must be the same."""
    columns = {name: [getattr(part, name) for part in parts] for name in Spans.__dataclass_fields__}
    return Spans(**{name: readonly(np.concatenate(values, axis=-1)) for name, values in columns.items()})


def fit_to(spans: Spans, settings: tuple[int, ...], devices: int, rows: int) -> None:
    """Refuse what is no :class:`Spans`, or not spans of these settings and devices and of a schedule of so many rows."""
    if not isinstance(spans, Spans):
        raise HybridLabError(f"the spans of a timeline are Spans, or None, not {short_repr(spans)}")
    if spans.start.shape[:-1] != settings:
        raise HybridLabError(f"the spans have settings {spans.start.shape[:-1]}, but the operations have {settings}")
    for name, values, count in (("device", spans.device, devices), ("device", spans.peer, devices), ("row", spans.row, rows)):
        if values.max(initial=-1) >= count:
            raise HybridLabError(f"there is no {name} {values.max()} for a span: the last one is {count - 1}")


def _times(value: Any, name: str) -> Floats:
    """Return ``value`` as a float array of finite times with spans on its last axis, a copy unless it cannot be written."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and not value.flags.writeable:
        array = value
    else:
        refuse_masked(value, f"{name} of spans")
        try:
            given = np.array(value)
        except (ValueError, TypeError):
            given = np.empty(0, dtype=object)
        if given.dtype.kind not in "iuf":
            raise HybridLabError(f"{name} of spans must be an array of times, not {short_repr(value)}")
        with np.errstate(over="ignore"):  # a longer float beyond float64 becomes inf, which is refused
            array = given.astype(np.float64)
    if not array.ndim:
        raise HybridLabError(f"{name} of spans must have one time a span, not {short_repr(value)}")
    if not (np.abs(array) <= LATEST).all():  # false for NaN as well
        raise HybridLabError(f"every span must start and end at a finite time, within {LATEST:g} of 0")
    return array


def _column(value: Any, name: str, size: int, least: int) -> Ints:
    """Return ``value``, one whole number or one a span, as a column: a copy unless it cannot be written."""
    if isinstance(value, np.ndarray) and value.dtype == np.intp and value.shape == (size,) and not value.flags.writeable:
        if size and value.min() < least:
            raise HybridLabError(f"{name} of spans must be whole numbers of at least {least}, not {value.min()}")
        return value
    try:
        array = np.array(value)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.size == 0 and size == 0:
        array = array.astype(np.intp)
    if array.dtype.kind not in "iu" or array.shape not in ((), (size,)):
        raise HybridLabError(f"{name} of spans must be whole numbers, one for each of the {size} spans, not {short_repr(value)}")
    if array.size and (array.min() < least or array.max() > np.iinfo(np.intp).max):
        raise HybridLabError(f"{name} of spans must be whole numbers of at least {least}, not {array.min()} to {array.max()}")
    return np.broadcast_to(array.astype(np.intp), (size,)).copy()
