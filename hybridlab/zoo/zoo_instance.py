"""An instance of the zoo: the sizes, the times and the memory of one scheduling problem, all in whole numbers."""

import math
import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.automatic.for_times import PLACEMENTS, templates_of
from hybridlab.bound import lower_bound
from hybridlab.bound.chains import capacity_of
from hybridlab.checks import short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.zoo.reading import FORMAT, Fields, fields_of

CLASSES = ("even", "latency", "whole", "uneven", "chunks", "published")
UNITS = ("us", "ms", "s", None)
MOST_OPERATIONS = 100_000
LONGEST_TIME = 1_000_000  # so that sums of all times are exact in floating point
ROUNDING, SAME = 1e-6, 1e-9  # a sum of whole times differs by less from a whole number, at all and relative to the sum

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KINDS = {True: ("input_gradient", "weight_gradient"), False: ("backward",)}
_FIRST = ("format", "name", "class", "source", "devices", "microbatches", "chunks", "placement", "split", "memory", "latency", "unit")


@dataclass(frozen=True)
class ZooInstance:
    """One scheduling problem of the zoo. :func:`read_instance` makes it, and checks every value.

    Parameters
    ----------
    name : str
        Its name. Another problem has another name.
    group : str
        Its class: one of ``CLASSES``. The field is named ``class`` in JSON.
    source : str
        Where the times come from: "made", or a paper.
    devices, microbatches, chunks : int
        The sizes. There are devices x chunks stages, with 1 or 2 chunks on each device.
    placement : "loop", "v" or "any"
        How the path of the stages visits the devices with 2 chunks: both times in the same direction, once in each direction, or as the
        schedule chooses. With 1 chunk it is "loop": stage d is on device d.
    split : bool
        Whether a backward may be split into input gradient and weight gradient.
    memory : int, tuple of int, or None
        The most activations that a device may hold, for all devices or for each, as :attr:`Timeline.peak_activations` counts them. None
        means no limit.
    latency : int or tuple of tuple of int
        The latency of every message, or the latency from device i to device j at [i][j].
    unit : str or None
        The unit of all times: "us", "ms", "s", or None for slots.
    forward : tuple of int
        The time of the forward of each stage.
    input_gradient, weight_gradient : tuple of int or None
        The times of the two parts of a backward of each stage, if backwards may be split.
    backward : tuple of int or None
        The time of the backward of each stage, if backwards may not be split.
    """

    name: str
    group: str
    source: str
    devices: int
    microbatches: int
    chunks: int
    placement: str
    split: bool
    memory: int | tuple[int, ...] | None
    latency: int | tuple[tuple[int, ...], ...]
    unit: str | None
    forward: tuple[int, ...]
    input_gradient: tuple[int, ...] | None
    weight_gradient: tuple[int, ...] | None
    backward: tuple[int, ...] | None

    @property
    def stages(self) -> int:
        """Number of stages: devices x chunks."""
        return self.devices * self.chunks

    @property
    def operations(self) -> int:
        """Number of operations of an order that splits backwards as far as it may."""
        return (2 + self.split) * self.stages * self.microbatches

    @cached_property
    def costs(self) -> Costs:
        """The times of each stage, and the latency of messages."""
        times = {name: np.array(getattr(self, name), dtype=float) for name in ("forward", *_KINDS[self.split])}
        backward = times["input_gradient"] + times["weight_gradient"] if self.split else times["backward"]
        share = times["weight_gradient"] / backward if self.split else 0.5
        messages = {"p2p_between": self.latency} if isinstance(self.latency, tuple) else {"p2p": self.latency}
        return Costs(forward=times["forward"], backward=backward, weight_share=share, unit=self.unit, per="stage", **messages)

    @cached_property
    def templates(self) -> tuple[Schedule, ...]:
        """A simple schedule for each placement that is allowed: one microbatch after the other. It fits into every memory."""
        return tuple(templates_of(self.devices, self.microbatches, self.chunks, self.split, self.placement))

    @property
    def limit(self) -> int | tuple[int, ...]:
        """The memory as the library takes it: without a limit, all microbatches."""
        return self.microbatches if self.memory is None else self.memory

    @property
    def capacity(self) -> Ints:
        """The number of activations of one chunk that each device may hold, shape (devices,)."""
        return capacity_of(self.templates[0], self.limit)

    @cached_property
    def bound(self) -> int:
        """The makespan that no order can beat, as :func:`~hybridlab.bound.lower_bound` proves it, rounded up to a whole number."""
        return whole_bound(min(float(lower_bound(each, self.costs, self.limit)) for each in self.templates))

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the JSON file, in their order."""
        values = {each.name: _plain(getattr(self, each.name)) for each in fields(self)} | {"format": FORMAT, "class": self.group}
        return {name: values[name] for name in field_names(self.split)}


def field_names(split: bool) -> tuple[str, ...]:
    """Return the names of the fields in the JSON file of an instance, in their order.

    >>> field_names(False)[-2:]
    ('forward', 'backward')
    """
    return (*_FIRST, "forward", *_KINDS[split])


def whole_bound(bound: float) -> int:
    """Return the smallest whole number that is not below a bound. The makespan of whole times is whole, so this is a bound, too.

    >>> whole_bound(824.2), whole_bound(825.0000000001)
    (825, 825)
    """
    return math.ceil(bound - max(ROUNDING, bound * SAME))


def read_instance(source: Any) -> ZooInstance:
    """Return the instance in a JSON file, or in a mapping with the fields of such a file.

    Parameters
    ----------
    source : path or mapping
        The file, at most 4 MB, or its fields.

    Raises
    ------
    HybridLabError
        A field is missing (``missing-key``), unknown (``unknown-key``), of another type or size (``wrong-shape``,
        ``not-a-whole-number``, ``not-text``, ``unknown-name``, ``not-true-or-false``), too small, as a time of 0, or too large
        (``too-small``, ``too-large``); or the file cannot be read (``not-found``, ``not-text``, ``not-json``, ``wrong-type``,
        ``repeated-key``, ``unknown-format``).

    Examples
    --------
    >>> from hybridlab.zoo import instance
    >>> fields = instance("even-2x4-m1").to_json()
    >>> read_instance(fields) == instance("even-2x4-m1")
    True
    >>> read_instance(fields | {"forward": [10, -10]})
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the instance: forward, value 1, must be a whole number of at least 1, not -10
    """
    given = fields_of(source, "the instance")
    given.format()
    if "split" not in given.values:
        given.fail("the field 'split' is missing", "missing-key")
    split = given.boolean("split")
    given.exactly(field_names(split))
    devices, microbatches, chunks = given.whole("devices", 1), given.whole("microbatches", 1), given.whole("chunks", 1, 2)
    stages = devices * chunks
    if (2 + split) * stages * microbatches > MOST_OPERATIONS:
        given.fail(
            f"{(2 + split) * stages * microbatches:,} operations are too many: an instance has at most {MOST_OPERATIONS:,}", "too-large"
        )
    placement = given.one_of("placement", PLACEMENTS)
    if chunks == 1 and placement != "loop":
        given.fail("with 1 chunk the placement is 'loop': stage d is on device d", "does-not-fit")
    times = {name: given.each_whole(name, stages, "stage", 1, LONGEST_TIME) for name in ("forward", *_KINDS[split])}
    return ZooInstance(
        name=_name(given, "name"),
        group=given.one_of("class", CLASSES),
        source=given.text("source"),
        devices=devices,
        microbatches=microbatches,
        chunks=chunks,
        placement=placement,
        split=split,
        memory=_memory(given, devices),
        latency=_latency(given, devices),
        unit=given.one_of("unit", UNITS),
        **{"input_gradient": None, "weight_gradient": None, "backward": None, **times},  # type: ignore[arg-type]
    )


def checked_instance(value: object) -> None:
    """Raise an error if a value is no instance.

    >>> checked_instance("even-4x8-m4")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: a ZooInstance is needed, as zoo.instance('even-4x8-m4') returns, not 'even-4x8-m4'
    """
    if not isinstance(value, ZooInstance):
        message = f"a ZooInstance is needed, as zoo.instance('even-4x8-m4') returns, not {short_repr(value)}"
        raise HybridLabError(message, "wrong-type")


def _name(given: Fields, field: str) -> str:
    name = str(given.text(field))
    if not _NAME.fullmatch(name) or len(name) > 60:
        given.fail(
            f"{field} must have small letters and digits, with single hyphens between, as even-4x8-m2, not {name[:60]!r}", "not-text"
        )
    return name


def _memory(given: Fields, devices: int) -> int | tuple[int, ...] | None:
    value = given.values["memory"]
    if isinstance(value, list):
        return given.each_whole("memory", devices, "device", 1, MOST_OPERATIONS)
    return None if value is None else given.whole("memory", 1, MOST_OPERATIONS)


def _latency(given: Fields, devices: int) -> int | tuple[tuple[int, ...], ...]:
    value = given.values["latency"]
    if not isinstance(value, list):
        return given.whole("latency", 0, LONGEST_TIME)
    if len(value) != devices:
        given.fail(f"latency must be one number or a matrix with {devices} rows, not a list with {len(value)} values", "wrong-shape")
    rows = tuple(given.each_whole("latency", devices, "device", 0, LONGEST_TIME, value=row) for row in value)
    if any(row[device] for device, row in enumerate(rows)):
        given.fail("latency must have 0 on the diagonal of its matrix, because no message leaves its device there", "out-of-range")
    return rows


def _plain(value: Any) -> Any:
    return list(map(_plain, value)) if isinstance(value, tuple) else value
