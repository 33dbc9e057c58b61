"""The steps on which a student's overlapped rings are tried, and programs with a wrong rule."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Unordered, plain_values, require_count, require_number, require_orders
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.step import replicate
from hybridlab.step.replicas import holders
from hybridlab.step.step import ring_times
from hybridlab.timeline import Timeline

Rows = list[dict[str, Any]]  # of Timeline.to_rows()
Rings = dict[int, tuple[float, float]]  # start and end of the ring of each stage

EVEN, BY_DEVICE, BY_RANK = "", ", some devices slower", ", one replica slower"
# No registered schedule with 2 stages on a device has this: the gradients of stage 0 are complete before those of stage 1.
LATE_WEIGHTS = "an order with late weight gradients"
LATE_WEIGHTS_ORDER = "device 0: 0F0 1F0 0F1 1F1 1I0 0I0 1I1 0I1 1W0 0W0 0W1 1W1"
# Schedule, devices K, replicas D, microbatches M, chunks, which devices are slower, and the length of a step of the ring in ms.
STEPS = [
    ("1f1b", 1, 2, 1, 1, EVEN, 4),
    ("1f1b", 2, 2, 1, 1, EVEN, 10),
    ("gpipe", 2, 2, 3, 1, EVEN, 12),
    ("zb-h1", 2, 2, 2, 1, EVEN, 5),
    ("1f1b", 2, 3, 4, 1, BY_RANK, 3),
    ("1f1b", 3, 2, 5, 1, BY_DEVICE, 20),
    ("gpipe", 4, 2, 4, 1, BY_RANK, 30),
    ("zb-h1", 3, 2, 5, 1, BY_DEVICE, 14),
    ("1f1b", 4, 2, 2, 1, EVEN, 60),
    ("interleaved", 1, 2, 2, 2, EVEN, 40),
    ("interleaved", 1, 2, 2, 2, EVEN, 1),
    ("interleaved", 2, 2, 4, 2, EVEN, 25),
    ("hanayo", 2, 2, 2, 2, EVEN, 1),
    ("hanayo", 2, 2, 4, 2, EVEN, 30),
    ("1f1b", 1, 1, 1, 1, EVEN, 3),
    ("1f1b", 2, 1, 2, 1, EVEN, 6),
    ("interleaved", 1, 1, 2, 2, EVEN, 4),
    ("interleaved", 2, 2, 4, 2, BY_DEVICE, 12),
    ("interleaved", 2, 3, 4, 4, BY_RANK, 5),
    ("hanayo", 3, 2, 6, 4, BY_DEVICE, 9),
    ("zb-v", 2, 2, 4, 2, EVEN, 20),
    (LATE_WEIGHTS, 1, 2, 2, 2, EVEN, 20),
    ("interleaved", 4, 2, 8, 2, EVEN, 60),
    ("interleaved", 4, 2, 4, 4, BY_DEVICE, 22),
]


class Given(NamedTuple):
    """What the rows of a step say: the operations of all ranks, and the numbers of devices in a pipeline and of replicas."""

    timeline: Timeline
    devices: int
    replicas: int


def steps_of_many_kinds(rng: np.random.Generator) -> Iterator[Case]:
    """Yield steps from the smallest up, but those of one replica, whose rings take no time, after the first ones with chunks."""
    for name, devices, replicas, microbatches, chunks, uneven, ring_step in STEPS:
        forward, backward = (int(rng.integers(*limits)) for limits in ((4, 9), (9, 16)))
        ranks = devices * replicas
        slower = np.ones(ranks)
        if uneven == BY_DEVICE:
            slower = np.tile(rng.integers(2, 7, devices) / 2, replicas)
        elif uneven == BY_RANK:
            slower[devices : 2 * devices] = 1.5  # replica 1: never the first one, and of three not the last one
        latency = float(rng.choice([0, 1, 2])) if devices > 1 else 0.0
        costs = Costs(forward=forward * slower, backward=backward * slower, p2p=latency)
        timeline = simulate(replicate(pipeline_of(name, devices, microbatches, chunks), replicas), costs)
        ring_time = 2.0 * (replicas - 1) * (ring_step + int(rng.integers(0, 3)))
        each = f" with {chunks} stages each" if chunks > 1 else ""
        sizes = f"{counted(devices, 'device')}{each}, {counted(replicas, 'replica')}, {counted(microbatches, 'microbatch')}"
        title = REGISTRY[name].title if name in REGISTRY else name
        words = f"{title} on {sizes}{uneven}, rings of {ring_time:g} ms"
        yield Case((timeline.to_rows(), ring_time), words)


def pipeline_of(name: str, devices: int, microbatches: int, chunks: int) -> Schedule:
    """Return one pipeline of a row of ``STEPS``."""
    return Schedule.parse(LATE_WEIGHTS_ORDER, name=name) if name == LATE_WEIGHTS else build(name, devices, microbatches, chunks)


def given_by(rows: Rows) -> Given:
    """Return the timeline of all ranks whose rows these are."""
    ranks = 1 + max(row["device"] for row in rows)
    replicas = sum(row["op"] == "0F0" for row in rows)
    orders = [[row["op"] for row in rows if row["device"] == device] for device in range(ranks // replicas)]
    schedule = replicate(Schedule("the step", require_orders([" ".join(order) for order in orders])), replicas)
    start, end = (np.array([row[name] for row in rows]) for name in ("start", "end"))
    return Given(Timeline(schedule, start, end), ranks // replicas, replicas)


def rings_of(given: Given, ring_time: float, overlap: bool = True) -> Rings:
    """Return what the library's step has: start and end of the ring of each stage."""
    hop = ring_time / max(2 * (given.replicas - 1), 1)
    pipeline = Schedule("one pipeline", given.timeline.schedule.turns[: given.devices])
    edges = ring_times(given.timeline, holders(pipeline, given.replicas), hop, overlap)
    return {stage: (float(times[0]), float(times[-1])) for stage, times in enumerate(edges)}


def read_rings(result: Any) -> Rings:
    """Return the start and the end of each ring, from a dict by stage, or from a list in the order of the stages."""
    values = plain_values(result)
    wanted = "the function returns a dict from each stage to the start and the end of its ring, such as {0: (330, 450)}"
    if isinstance(values, list) and not isinstance(values, Unordered):
        values = dict(enumerate(values))
    if not isinstance(values, dict):
        raise HybridLabError(f"{wanted}, not {short_repr(values)}", "not-a-dict")
    rings = {}
    for stage, times in values.items():
        if not isinstance(times, list) or len(times) != 2 or isinstance(times, Unordered) or isinstance(times[1], list):
            raise HybridLabError(f"{wanted}, but yours has {short_repr(stage)}: {short_repr(times)}", "not-a-start-and-an-end")
        number = require_count(stage, "a stage", "0", least=0)
        start, end = (require_number(time, f"a time of the ring of stage {number}") for time in times)
        rings[number] = start, end
    return rings


def _ready(rows: Rows, kinds: str = "BW") -> dict[int, float]:
    """Return when the last operation of these kinds ends, for each stage that has one."""
    ends: dict[int, float] = {}
    for row in rows:
        if row["kind"] in kinds:
            ends[row["stage"]] = max(ends.get(row["stage"], 0.0), row["end"])
    return ends


def _at_once(ready: dict[int, float], ring_time: float) -> Rings:
    """Return rings that start at these times and wait for no other ring."""
    return {stage: (start, start + ring_time) for stage, start in ready.items()}


def _waiting(rows: Rows, ring_time: float) -> Rings:
    return rings_of(given_by(rows), ring_time, overlap=False)


def _first_gradients(rows: Rows, ring_time: float) -> Rings:
    return _at_once({row["stage"]: row["end"] for row in reversed(rows) if row["kind"] in "BW"}, ring_time)


def _first_replica(rows: Rows, ring_time: float) -> Rings:
    devices = given_by(rows).devices
    return _at_once(_ready([row for row in rows if row["device"] < devices]), ring_time)


def _one_link(rows: Rows, ring_time: float) -> Rings:
    free, rings = 0.0, {}
    for end, stage in sorted((end, stage) for stage, end in _ready(rows).items()):
        rings[stage] = (max(end, free), max(end, free) + ring_time)
        free = rings[stage][1]
    return rings


def _by_number(rows: Rows, ring_time: float) -> Rings:
    """Return the rings of a device in the order of the stages, the first of which is the last to be ready."""
    devices, ready = given_by(rows).devices, _ready(rows)
    return {stage: (start := ready[stage % devices] + stage // devices * ring_time, start + ring_time) for stage in ready}


def _last_stage_first(rows: Rows, ring_time: float) -> Rings:
    """Return the rings of a device in the order of the stages from the last to the first."""
    ready, holder, free, rings = _ready(rows), {row["stage"]: row["device"] for row in rows}, dict[int, float](), {}
    for stage in sorted(ready, reverse=True):
        start = max(ready[stage], free.get(holder[stage], 0.0))
        rings[stage] = start, start + ring_time
        free[holder[stage]] = start + ring_time
    return rings


def _for_each_rank(rows: Rows, ring_time: float) -> Rings:
    """Return a ring for each rank, under the number of the rank."""
    return _at_once(_ready([row | {"stage": row["device"]} for row in rows]), ring_time)


def _after_the_device(rows: Rows, ring_time: float) -> Rings:
    """Return the rings of a device one after the other, from the end of its last operation on."""
    devices, ready = given_by(rows).devices, _ready(rows)
    last = {stage: sum(other % devices == stage % devices for other in ready if other > stage) for stage in ready}
    return {stage: (start := ready[stage % devices] + last[stage] * ring_time, start + ring_time) for stage in ready}


MISTAKES = [
    KnownMistake(
        "waits-for-the-pipelines",
        "these rings wait until the pipelines have ended: under overlap each waits for the gradients of its own stage",
        _waiting,
    ),
    KnownMistake(
        "link-never-busy",
        "the rings of a device share its link: here two of them run at the same time",
        lambda rows, ring_time: _at_once(_ready(rows), ring_time),
    ),
    KnownMistake(
        "input-gradients",
        "these rings start after the last input gradient (I): where the backward is split, the weight gradient (W) follows it",
        lambda rows, ring_time: _at_once(_ready(rows, "BI"), ring_time),
    ),
    KnownMistake(
        "full-backwards-alone",
        "this looks for full backwards (B) alone: where the backward is split, the gradients come from the weight gradients (W)",
        lambda rows, ring_time: _at_once(_ready(rows, "B"), ring_time),
    ),
    KnownMistake(
        "first-gradient",
        "these rings start after the first backward of their stage: each microbatch adds to the gradients, so the last one counts",
        _first_gradients,
    ),
    KnownMistake(
        "one-replica-alone",
        "these rings wait for one replica alone: a ring joins the devices of all replicas and waits for the slowest",
        _first_replica,
    ),
    KnownMistake(
        "one-link-for-all",
        "this has one link for all: devices with other stages have links of their own, and their rings run at the same time",
        _one_link,
    ),
    KnownMistake(
        "by-stage-number",
        "this runs the rings of a device in the order of the stage numbers: the stage whose gradients are complete first goes first",
        _by_number,
    ),
    KnownMistake(
        "last-stage-first",
        "this runs the rings of a device from its last stage to its first: the stage whose gradients are complete first goes first",
        _last_stage_first,
    ),
    KnownMistake(
        "by-rank",
        "this has a ring for each rank: all ranks with the same stage share one ring, and its key is the stage",
        _for_each_rank,
    ),
    KnownMistake(
        "after-the-device",
        "these rings wait until their device has ended all its work: each waits for the gradients of its own stage only",
        _after_the_device,
    ),
    KnownMistake(
        "no-time",
        "these rings take no time: the end of a ring is its start plus ring_time",
        lambda rows, ring_time: _at_once(_ready(rows), 0.0),
    ),
    KnownMistake(
        "length-for-the-end",
        "the second number of a ring is the time at which it ends, not how long it takes",
        lambda rows, ring_time: {stage: (start, ring_time) for stage, start in _ready(rows).items()},
    ),
]
