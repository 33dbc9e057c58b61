"""The coding task ("build") ``overlapped_rings`` of lab 6: training steps to try, known mistakes, changes of the task ("twists")."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Unordered, plain_values, require_count, require_number, require_orders
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import Map, each_number, one_way, refuse, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.step import replicate
from hybridlab.step.replicas import holders
from hybridlab.step.step import ring_times
from hybridlab.timeline import Timeline

Rows = list[dict[str, Any]]  # from Timeline.to_rows(): a dict for each operation
Rings = dict[int, tuple[float, float]]  # start and end of the ring of each stage, in ms
Times = Callable[
    [float, float, tuple[Any, ...]], tuple[float, float]
]  # start and end of a ring, arguments of the call -> two other numbers

EVEN, BY_DEVICE, BY_RANK = "", ", some devices slower", ", one replica slower"
# Here the gradients of stage 0 are complete before those of stage 1. No registered schedule with 2 stages on a device has this order.
LATE_WEIGHTS = "an order with late weight gradients"
LATE_WEIGHTS_ORDER = "device 0: 0F0 1F0 0F1 1F1 1I0 0I0 1I1 0I1 1W0 0W0 0W1 1W1"
# Schedule, devices K, replicas D, microbatches M, chunks, which devices are slower, and the length of a step of the ring in ms.
STEPS = [
    ("1f1b", 1, 2, 1, 1, EVEN, 4),
    ("1f1b", 2, 2, 1, 1, EVEN, 10),
    ("gpipe", 2, 2, 3, 1, EVEN, 12),
    ("zb-h1", 2, 3, 2, 1, EVEN, 5),
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
    """The content of the rows of a step: the timeline of all ranks, the number of devices in a pipeline, the number of replicas."""

    timeline: Timeline
    devices: int
    replicas: int


def steps_of_many_kinds(rng: np.random.Generator) -> Iterator[Case]:
    """Yield training steps, small ones first.

    Steps with one replica come after the first steps with chunks, because their rings take no time.
    """
    for name, devices, replicas, microbatches, chunks, uneven, ring_step in STEPS:
        forward, backward = (int(rng.integers(*limits)) for limits in ((4, 9), (9, 16)))
        ranks = devices * replicas
        slower = np.ones(ranks)
        if uneven == BY_DEVICE:
            slower = np.tile(rng.integers(2, 7, devices) / 2, replicas)
        elif uneven == BY_RANK:
            slower[devices : 2 * devices] = 1.5  # replica 1: not the first, and with three replicas not the last
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
    """Return the schedule of one pipeline, by its name in ``STEPS`` and its sizes."""
    return Schedule.parse(LATE_WEIGHTS_ORDER, name=name) if name == LATE_WEIGHTS else build(name, devices, microbatches, chunks)


def given_by(rows: Rows) -> Given:
    """Return the content of the rows: their timeline, and the numbers of devices and replicas."""
    ranks = 1 + max(row["device"] for row in rows)
    replicas = replicas_in(rows)
    orders = [[row["op"] for row in rows if row["device"] == device] for device in range(ranks // replicas)]
    schedule = replicate(Schedule("the step", require_orders([" ".join(order) for order in orders])), replicas)
    start, end = (np.array([row[name] for row in rows]) for name in ("start", "end"))
    return Given(Timeline(schedule, start, end), ranks // replicas, replicas)


def replicas_in(rows: Rows) -> int:
    """Return the number of replicas. Each replica runs the operation 0F0 once, so it equals the number of rows for 0F0."""
    return sum(row["op"] == "0F0" for row in rows)


def rings_of(given: Given, ring_time: float, overlap: bool = True) -> Rings:
    """Return the right start and end of the ring of each stage, as the library computes them."""
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
    """Return the end of the last operation of these kinds for each stage. A stage without such operations is left out."""
    ends: dict[int, float] = {}
    for row in rows:
        if row["kind"] in kinds:
            ends[row["stage"]] = max(ends.get(row["stage"], 0.0), row["end"])
    return ends


def _at_once(ready: dict[int, float], ring_time: float) -> Rings:
    """Return rings that start at the times in ``ready`` and do not wait for other rings."""
    return {stage: (start, start + ring_time) for stage, start in ready.items()}


def _in_turn(rows: Rows, ring_time: float, ready: dict[int, float], turn: Callable[[int], float] | None = None) -> Rings:
    """Return rings that start at the times in ``ready`` or later: the rings of a device run one after the other.

    ``turn`` takes a stage and says which ring of a device runs first. The default is the one whose time in ``ready`` is earliest.
    """
    holder = {row["stage"]: row["device"] for row in rows}  # the device of the last replica, which stands for those of all replicas
    free, rings = dict[int, float](), {}
    for stage in sorted(ready, key=turn or ready.__getitem__):
        start = max(ready[stage], free.get(holder[stage], 0.0))
        rings[stage] = start, start + ring_time
        free[holder[stage]] = start + ring_time
    return rings


def _with_ready(ready_of: Callable[[Rows], dict[int, float]]) -> Callable[[Rows, float], Rings]:
    """Return a program whose rings start at wrong times. ``ready_of`` takes the rows and returns the time for each stage."""
    return lambda rows, ring_time: _in_turn(rows, ring_time, ready_of(rows))


def _with_turn(turn: Callable[[int], float]) -> Callable[[Rows, float], Rings]:
    """Return a program that runs the rings of a device in a wrong order, which ``turn`` gives."""
    return lambda rows, ring_time: _in_turn(rows, ring_time, _ready(rows), turn)


def _waiting(turn: Callable[[Rows, int], float]) -> Callable[[Rows, float], Rings]:
    """Return a program whose rings wait for the end of all operations; ``turn`` says which ring of a device runs first."""

    def rings(rows: Rows, ring_time: float) -> Rings:
        end = max(row["end"] for row in rows)
        return _in_turn(rows, ring_time, dict.fromkeys(_ready(rows), end), lambda stage: turn(rows, stage))

    return rings


def _first_gradients(rows: Rows) -> dict[int, float]:
    ends: dict[int, float] = {}
    for row in rows:
        if row["kind"] in "BW":
            ends[row["stage"]] = min(ends.get(row["stage"], row["end"]), row["end"])
    return ends


def _first_replica(rows: Rows) -> dict[int, float]:
    devices = given_by(rows).devices
    return _ready([row for row in rows if row["device"] < devices])


def _last_replica(rows: Rows) -> dict[int, float]:
    """Return the end of the last row of each stage. The rows of the last replica come last."""
    return {row["stage"]: row["end"] for row in rows if row["kind"] in "BW"}


def _one_link(rows: Rows, ring_time: float) -> Rings:
    free, rings = 0.0, {}
    for end, stage in sorted((end, stage) for stage, end in _ready(rows).items()):
        rings[stage] = (max(end, free), max(end, free) + ring_time)
        free = rings[stage][1]
    return rings


def _for_each_rank(rows: Rows, ring_time: float) -> Rings:
    """Return a ring for each rank. The keys are ranks in place of stages."""
    return _at_once(_ready([row | {"stage": row["device"]} for row in rows]), ring_time)


def _after_the_device(rows: Rows, ring_time: float) -> Rings:
    """Return the rings if each device runs them one after the other, after the end of its last operation on all replicas."""
    devices, ready, ends = given_by(rows).devices, _ready(rows), dict[int, float]()
    for row in rows:
        ends[row["device"] % devices] = max(ends.get(row["device"] % devices, 0.0), row["end"])
    late = {row["stage"]: ends[row["device"] % devices] for row in rows}
    return _in_turn(rows, ring_time, late, ready.__getitem__)


MISTAKES = (
    *(
        KnownMistake(
            "waits-for-the-pipelines",
            "your rings wait until the pipelines have ended: under overlap a ring waits only for the gradients of its own stage",
            _waiting(turn),
        )
        for turn in (lambda rows, stage: _ready(rows)[stage], lambda rows, stage: stage, lambda rows, stage: -stage)
    ),
    KnownMistake(
        "link-never-busy",
        "your result has two rings of a device at the same time: the rings of a device share its link",
        lambda rows, ring_time: _at_once(_ready(rows), ring_time),
        under={"link-rests": "your rings do not wait for each other: the rings of a device share its link, which pauses after each ring"},
    ),
    KnownMistake(
        "input-gradients",
        "your rings start after the last input gradient (I): where the backward is split, the weight gradient (W) comes after I",
        _with_ready(lambda rows: _ready(rows, "BI")),
    ),
    KnownMistake(
        "full-backwards-alone",
        "your function looks for full backwards (B) alone: where the backward is split, the gradients come from the weight gradients (W)",
        _with_ready(lambda rows: _ready(rows, "B")),
    ),
    KnownMistake(
        "first-gradient",
        "your rings start after the first backward of their stage: each microbatch adds to the gradients, so wait for the last backward",
        _with_ready(_first_gradients),
    ),
    *(
        KnownMistake(
            "one-replica-alone",
            "your rings wait for one replica alone: a ring joins devices of all replicas, and waits for the slowest replica",
            _with_ready(ready_of),
        )
        for ready_of in (_first_replica, _last_replica)
    ),
    KnownMistake(
        "one-link-for-all",
        "in your result all rings share one link: devices with other stages have links of their own, and their rings run at the same time",
        _one_link,
    ),
    KnownMistake(
        "by-stage-number",
        "you run the rings of a device in the order of the stage numbers: the stage whose gradients are complete first goes first",
        _with_turn(lambda stage: stage),
    ),
    KnownMistake(
        "last-stage-first",
        "you run the rings of a device from its last stage to its first: the stage whose gradients are complete first goes first",
        _with_turn(lambda stage: -stage),
    ),
    KnownMistake(
        "by-rank",
        "your result has a ring for each rank: all ranks with the same stage share one ring, and its key is the stage",
        _for_each_rank,
    ),
    KnownMistake(
        "after-the-device",
        "your rings wait until their device has ended all its work: a ring waits only for the gradients of its own stage",
        _after_the_device,
    ),
    KnownMistake(
        "no-time",
        "your rings take no time: the end of a ring is its start plus ring_time",
        lambda rows, ring_time: _at_once(_ready(rows), 0.0),
        under={
            "one-half": "your rings take no time: the end of a ring is its start plus twice ring_time",
            "one-step": "your rings take no time: the end of a ring is its start plus 2(D-1) times ring_time",
            "start-and-length": "your rings take no time: the length of a ring is ring_time",
            "optimiser-ends": "your rings take no time: the optimiser of a stage starts when its ring has ended",
        },
    ),
    KnownMistake(
        "length-for-the-end",
        "your second number is the length of the ring: return the time at which the ring ends",
        lambda rows, ring_time: {stage: (start, ring_time) for stage, (start, _) in rings_of(given_by(rows), ring_time).items()},
        under={
            "start-and-length": None,
            "optimiser-ends": "your second number is the time from the start of the ring: return the time at which the optimiser ends",
        },
    ),
)


class Sample(list[dict[str, Any]]):
    """The rows of an example. Their text shows only the first row."""

    def __repr__(self) -> str:
        first = {name: self[0][name] for name in ("device", "stage", "kind", "start", "end", "duration") if name in self[0]}
        return f"[{first}, ... as in the second example]"


def _times(apply: Times, undo: Times) -> Map:
    """Return the map (a change and its undo) of the two times of each ring."""

    def change(times_of: Times) -> Callable[[Any, tuple[Any, ...]], Any]:
        def changed(rings: Any, case: tuple[Any, ...]) -> Any:
            if not isinstance(rings, (dict, list, tuple, np.ndarray)):
                refuse(rings, "a dict from each stage to two times")
            by_stage = rings.items() if isinstance(rings, dict) else enumerate(rings)
            return {stage: times_of(start, end, case) for stage, (start, end) in by_stage}

        return changed

    return Map(change(apply), change(undo))


def _steps(case: tuple[Any, ...]) -> int:
    return max(2 * (replicas_in(case[0]) - 1), 1)  # a ring of one replica has 0 steps; 1 avoids a division by 0


def _last_end(case: tuple[Any, ...]) -> float:
    return float(max(row["end"] for row in case[0]))


def _with_durations(rows: Rows) -> Rows:
    others = ({name: value for name, value in row.items() if name != "end"} for row in rows)
    return type(rows)(other | {"duration": row["end"] - row["start"]} for other, row in zip(others, rows, strict=True))


OPTIMISER = 5.0  # ms
SECOND_EXAMPLE = simulate(
    replicate(build("interleaved", 1, 1, 2), 2), Costs(forward=10, backward=20)
)  # the second example in the lab's task
EXAMPLES = (Example((Sample(SECOND_EXAMPLE.to_rows()), 30), {0: (50.0, 80.0), 1: (20.0, 50.0)}),)
TWISTS = (
    Twist(
        "one-half",
        "ring_time is the time of the reduce-scatter alone; the all-gather takes as long again",
        given={1: scaled(1 / 2)},
        about="ring_time",
    ),
    Twist(
        "one-step",
        "ring_time is the time of one step of the ring, which has 2(D-1) steps for D replicas",
        given={1: each_number(lambda time, case: time / _steps(case), lambda time, case: time * _steps(case))},
        about="ring_time",
    ),
    Twist(
        "link-rests",
        "after each ring its ranks pause for as long as it took, before their next ring; the end is without the pause",
        given={1: scaled(1 / 2)},  # the lab's ring without a twist takes as long as this half and the pause together
        result=_times(lambda start, end, case: (start, end - case[1] / 2), lambda start, end, case: (start, end + case[1] / 2)),
        about="ring_time",
    ),
    Twist(
        "start-and-length",
        "the function returns (start, length) for each stage: the start of its ring, and its length",
        result=_times(lambda start, end, case: (start, end - start), lambda start, length, case: (start, start + length)),
        about="result",
    ),
    Twist(
        "after-the-pipelines",
        "start and end are counted from the end of the last operation of all ranks, and can be negative",
        result=_times(
            lambda start, end, case: (start - _last_end(case), end - _last_end(case)),
            lambda start, end, case: (start + _last_end(case), end + _last_end(case)),
        ),
        about="result",
    ),
    Twist(
        "optimiser-ends",
        f"the second time of a stage is the end of its optimiser, which takes {OPTIMISER:g} ms after the ring; no other ring waits for it",
        result=_times(lambda start, end, case: (start, end + OPTIMISER), lambda start, end, case: (start, end - OPTIMISER)),
        about="result",
    ),
    Twist(
        "durations",
        'a row has "duration" in place of "end": how long the operation takes, in ms, from its "start" on',
        given={0: one_way(_with_durations)},
    ),
)
