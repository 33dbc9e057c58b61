"""The registry of all named schedules with the sizes that they support, and the function that builds a schedule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from hybridlab.arrays import Ints
from hybridlab.checks import MOST_CELLS, checked_text, counted, known_name, short_repr, whole_number
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.schedule import Schedule
from hybridlab.schedules.recently_used import RecentlyUsed

Rule = Callable[[int, int, int], Ints]
Placement = Literal["looped", "folded"]


@dataclass(frozen=True)
class Family:
    """A named schedule: its rule, the sizes it supports, and where it was published.

    Parameters
    ----------
    name : str
        The name that :func:`build` takes.
    title : str
        The name that figures, tables and views show.
    rule : Callable[[int, int, int], Ints]
        A function of devices, microbatches and chunks. It returns slots, as :meth:`Schedule.from_slots` takes them.
    summary : str
        The rule in a few words, for the gallery.
    source : str
        The publication of the schedule, with the arXiv number of the paper.
    placement : "looped" or "folded"
        Which stage chunk c of device d is, with K devices. Looped: stage c*K + d. Folded: stage c*K + d for even c, and stage c*K + K-1-d
        for odd c.
    fewest_chunks : int
        The smallest number of chunks per device that the schedule supports.
    chunk_step : int
        The distance from one supported number of chunks to the next. With 0 the schedule supports only ``fewest_chunks``.
    whole_groups : bool
        Whether the number of microbatches must be a multiple of the number of devices.
    min_microbatches_per_device : int
        The number of microbatches must be at least this number times the number of devices.
    bidirectional : bool
        Whether microbatches enter at both the first device and the last device. If so, there are two copies of the weights, and each device
        holds stages of both copies. The stages of the second copy run from the last device to the first. The numbers of devices and of
        microbatches must be even.
    """

    name: str
    title: str
    rule: Rule
    summary: str
    source: str
    placement: Placement = "looped"
    fewest_chunks: int = 1
    chunk_step: int = 0
    whole_groups: bool = False
    min_microbatches_per_device: int = 0
    bidirectional: bool = False

    @property
    def copies(self) -> int:
        """Copies of the weights.

        >>> REGISTRY["1f1b"].copies
        1
        """
        return 2 if self.bidirectional else 1

    def device_of(self, devices: int, chunks: int) -> tuple[int, ...]:
        """Return the device of every stage. The stages of a second copy of the weights come after all stages of the first copy.

        Raises
        ------
        HybridLabError
            ``devices`` or ``chunks`` is not a whole number of at least 1.

        Examples
        --------
        >>> REGISTRY["hanayo"].device_of(devices=3, chunks=2)
        (0, 1, 2, 2, 1, 0)
        """
        devices, chunks = whole_number(devices, "devices"), whole_number(chunks, "chunks")
        forth = tuple(range(devices))
        path = (forth + (forth[::-1] if self.placement == "folded" else forth)) * (chunks // 2) + forth * (chunks % 2)
        return path + path[::-1] if self.bidirectional else path

    @property
    def sizes(self) -> str:
        """The sizes that the schedule supports, in words.

        >>> REGISTRY["1f1b"].sizes, REGISTRY["hanayo"].sizes
        ('any numbers of devices and microbatches; 1 chunk a device',
         'any number of devices, microbatches divisible by it; 2, 4, 6, ... chunks a device')
        """
        chunks = f"{self._chunk_counts} chunks" if self.chunk_step else counted(self.fewest_chunks, "chunk")
        devices = "an even number of devices" if self.bidirectional else "any number of devices"
        conditions = [
            *["microbatches divisible by it"] * self.whole_groups,
            *["an even number of microbatches"] * (self.bidirectional and not self.whole_groups),
            *[f"at least {self.min_microbatches_per_device} microbatches for each device"] * bool(self.min_microbatches_per_device),
        ]
        if not self.bidirectional and not conditions:
            devices = "any numbers of devices and microbatches"
        return f"{', '.join([devices, *conditions])}; {chunks} a device"

    @property
    def _chunk_counts(self) -> str:
        """The three smallest numbers of chunks that the schedule supports, as text. Only for a schedule that supports several numbers."""
        return ", ".join(str(self.fewest_chunks + self.chunk_step * more) for more in range(3)) + ", ..."

    def refusal(self, devices: int, microbatches: int, chunks: int) -> str | None:
        """Return None if the sizes are supported. If not, return a sentence with the reason and with sizes that are supported.

        Raises
        ------
        HybridLabError
            A size is not a whole number of at least 1.

        Examples
        --------
        >>> REGISTRY["interleaved"].refusal(devices=4, microbatches=6, chunks=2)
        'interleaved needs microbatches divisible by devices: 6 is not divisible by 4; try 4 or 8'
        """
        devices, microbatches = whole_number(devices, "devices"), whole_number(microbatches, "microbatches")
        chunks = whole_number(chunks, "chunks")
        fewest, step = self.fewest_chunks, self.chunk_step
        if step == 0 and chunks != fewest:
            return f"{self.name} has {counted(fewest, 'chunk')} a device, not {chunks}; leave chunks out"
        if step and (chunks < fewest or (chunks - fewest) % step):
            return f"{self.name} supports {self._chunk_counts} chunks a device, not {chunks}"
        if self.bidirectional and devices % 2:
            near = f"{devices - 1} or {devices + 1}" if devices > 1 else "2"
            return f"{self.name} needs an even number of devices, not {devices}; try {near}"
        # the distance between two supported numbers of microbatches; it divides the number of devices, and so ``least`` too
        apart = devices if self.whole_groups else self.copies
        least = max(apart, self.min_microbatches_per_device * devices)
        if microbatches % apart:
            below = microbatches - microbatches % apart
            near = f"{below} or {below + apart}" if below >= least else f"{max(least, below + apart)}"
            if not self.whole_groups:
                return f"{self.name} needs an even number of microbatches, not {microbatches}; try {near}"
            message = f"{microbatches} is not divisible by {devices}; try {near}"
            return f"{self.name} needs microbatches divisible by devices: {message}"
        # Check ``least`` microbatches too, because a sentence below advises this number.
        if 3 * devices * chunks * self.copies * max(microbatches, least) > MOST_CELLS:
            size = f"{devices} devices x {chunks} chunks x {microbatches} microbatches"
            fewer = "devices" if least > microbatches else "microbatches"
            return f"{size} is more than the {MOST_CELLS // (3 * self.copies):,} that fit in memory; try fewer {fewer}"
        if microbatches < least:
            message = f"{microbatches} are too few for {counted(devices, 'device')}; try {least}"
            return f"{self.name} needs at least {self.min_microbatches_per_device} microbatches for each device: {message}"
        return None


BYTES = 400  # most bytes of memory for each operation of a schedule, including the arrays that the schedule computes later
MOST_BYTES = 2**26  # most bytes of memory for all stored schedules
_BUILT: RecentlyUsed[tuple[str, int, int, int], tuple[Family, Schedule]] = RecentlyUsed(MOST_BYTES)
_FAMILIES: dict[str, Family] = {}
REGISTRY: Mapping[str, Family] = MappingProxyType(_FAMILIES)


def register(
    name: str,
    *,
    title: str,
    summary: str,
    source: str,
    placement: Placement = "looped",
    fewest_chunks: int = 1,
    chunk_step: int = 0,
    whole_groups: bool = False,
    min_microbatches_per_device: int = 0,
    bidirectional: bool = False,
) -> Callable[[Rule], Rule]:
    """Return a decorator that adds a rule to the registry under ``name``. :class:`Family` explains the other arguments.

    Raises
    ------
    HybridLabError
        The name is registered already (``duplicate-name``), a text is not a string, the placement is unknown, a number is not a whole
        number, or a flag is not True or False.
    """
    for what, text in {"name": name, "title": title, "summary": summary, "source": source}.items():
        checked_text(text, f"a schedule's {what}")
    # ``build`` does not distinguish capital and small letters
    taken = next((known for known in _FAMILIES if known.lower() == name.lower()), None)
    if taken is not None:
        raise HybridLabError(f"a schedule named {taken!r} is registered already: choose another name", "duplicate-name")
    known_name(placement, get_args(Placement), "placement")
    fewest_chunks = whole_number(fewest_chunks, "fewest_chunks")
    chunk_step = whole_number(chunk_step, "chunk_step", at_least=0)
    least = whole_number(min_microbatches_per_device, "min_microbatches_per_device", at_least=0)
    for what, flag in {"whole_groups": whole_groups, "bidirectional": bidirectional}.items():
        if not isinstance(flag, bool):
            raise HybridLabError(f"{what} must be True or False, not {short_repr(flag)}", "not-true-or-false")

    def add(rule: Rule) -> Rule:
        if not callable(rule):
            raise HybridLabError(f"a rule is a function of devices, microbatches and chunks, not {short_repr(rule)}", "wrong-type")
        sizes = (placement, fewest_chunks, chunk_step, whole_groups, least, bidirectional)
        _FAMILIES[name] = Family(name, title, rule, summary, source, *sizes)
        return rule

    return add


def known_schedule(name: object) -> str:
    """Return the registered name that equals ``name`` except for capital letters. Raise an error if there is none.

    Raises
    ------
    HybridLabError
        No schedule has this name.

    Examples
    --------
    >>> known_schedule("ZB-H1")
    'zb-h1'
    """
    return known_name(name, REGISTRY, "schedule", any_case=True)


def build(name: str, devices: int, microbatches: int, chunks: int | None = None) -> Schedule:
    """Return a named schedule for these sizes.

    Parameters
    ----------
    name : str
        A name in ``REGISTRY``, in capital or small letters.
    devices, microbatches : int
        The number of devices and the number of microbatches.
    chunks : int, optional
        The number of model chunks on each device. None means the smallest number that the schedule supports.

    Returns
    -------
    Schedule
        The schedule. It is complete, and proven to run. The most recently used schedules are stored, up to 64 MiB. While a schedule is
        stored, a call with the same arguments returns the same object.

    Raises
    ------
    HybridLabError
        The name is unknown, or a size is not a whole number of at least 1.
    UnsupportedSize
        The schedule does not exist for these sizes. The message names supported sizes.

    Examples
    --------
    >>> print(build("1f1b", devices=2, microbatches=3))
    device 0: 0F0 0F1 0B0 0F2 0B1 0B2
    device 1: 1F0 1B0 1F1 1B1 1F2 1B2
    """
    family = REGISTRY[known_schedule(name)]
    devices = whole_number(devices, "devices")
    microbatches = whole_number(microbatches, "microbatches")
    chunks = family.fewest_chunks if chunks is None else whole_number(chunks, "chunks")
    size = (family.name, devices, microbatches, chunks)
    built = _BUILT.get(size)
    if built is not None and built[0] is family:  # the name may have been registered again with another rule
        return built[1]
    refusal = family.refusal(devices, microbatches, chunks)
    if refusal:
        raise UnsupportedSize(refusal, "unsupported-size")
    slots = family.rule(devices, microbatches, chunks)
    schedule = Schedule.from_slots(family.name, slots, family.device_of(devices, chunks), family.copies)
    if schedule.microbatches != microbatches:
        message = f"the rule of {family.name} gave {schedule.microbatches} microbatches, not {microbatches}"
        raise HybridLabError(message, "does-not-fit")
    _BUILT.keep(size, (family, schedule), BYTES * schedule.kind.size)
    return schedule


def forget() -> None:
    """Delete the schedules that :func:`build` has stored."""
    _BUILT.clear()
