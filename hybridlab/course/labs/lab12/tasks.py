"""Lab 12, chunks and waves: the tasks and the feedback on their answers."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache

from hybridlab import formulas
from hybridlab.checks import counted, short_repr
from hybridlab.costs import Costs
from hybridlab.course.checking.answers import Orders
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, PartialCredit, right, wrong
from hybridlab.course.checking.drawing import Drawing, first_differences, marked_by
from hybridlab.course.checking.expressions import Mistake, Table, filled
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab02.one_f_one_b import UNIT_COSTS, read_lines
from hybridlab.course.labs.lab12 import critical_path, interleaved
from hybridlab.course.labs.lab12.critical_path import WITHIN, Row, Rows, schedule_of
from hybridlab.course.labs.lab12.interleaved import goal_of
from hybridlab.errors import InvalidSchedule
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

LAYERS = 24  # layers of each device in task 4


@number_task("lab12.t1", title="Fold it twice", draws={"devices": range(3, 9), "chunks": (4, 6, 8)})
def fold_it_twice(devices: int = 3, chunks: int = 4) -> Question:
    """Ask for the device of every stage in the folded placement."""
    truth = list(REGISTRY["hanayo"].device_of(devices, chunks))
    stages, last = range(len(truth)), devices - 1
    there_and_back = [*range(devices), *range(last - 1, 0, -1)]

    directions = (f"up from device 0 to device {last}", f"down from device {last} to device 0")
    held = [f"count(value, {device})" for device in range(devices)]
    placement = Number(
        "device of a stage",
        truth,
        hint="stage {place} is not on device {value[place]:g}: chunk {chunks[place]} runs {directions[place]}",
        given={
            "devices": range(devices),
            "chunks": [stage // devices for stage in stages],
            "directions": [directions[stage // devices % 2] for stage in stages],
        },
        fields=[f"Device of stage {stage}" for stage in stages],
        mistakes=[
            ([device + 1 for device in truth], "devices-from-1", f"devices are counted from 0: the last one is device {last}"),
            (
                [last - device for device in truth],
                "reversed",
                "this is folded, but it begins on the last device: stage 0 is on device 0",
            ),
            (
                [stage % devices for stage in stages],
                "looped",
                "this is the looped placement: in the folded placement every second chunk runs from the last device to the first",
            ),
            (
                [stage // chunks for stage in stages],
                "one-long-chunk",
                f"each device has {chunks} stages in a row: that is one chunk, {chunks} times as long",
            ),
            (
                [there_and_back[stage % len(there_and_back)] for stage in stages],
                "one-stage-a-turn",
                "at a turn two stages are on one device: where a chunk ends, the next one begins on the same device",
            ),
            (
                "len(without(value, devices)) > 0",
                "no-such-device",
                f"there is no device {{without(value, devices)[0]:g}}: the devices are {_listed(range(devices))}",
            ),
            (
                " or ".join(f"{count} != {chunks}" for count in held),
                "uneven",
                f"devices {_listed(range(devices))} hold {_listed(f'{{{count}}}' for count in held)} stages: "
                f"each device holds {chunks}, one of every chunk",
            ),
        ],
    )
    return Question(
        f"give the device of each of the {len(truth)} stages of {devices} devices with {chunks} chunks each, folded, "
        f"as a list of {len(truth)} numbers",
        [placement],
        f"v/2 = {chunks // 2} waves: at each turn two stages in a row stand on one device, and nothing is sent between them",
    )


@number_task("lab12.t2", title="Messages of a step", draws={"devices": (5, 7, 8), "groups": (2, 3, 4), "chunks": (4, 6)})
@cache
def messages_of_a_step(devices: int = 6, groups: int = 2, chunks: int = 4) -> Question:
    """Ask how many messages a step of interleaved 1F1B and a step of Hanayo have, with ``groups`` times K microbatches."""
    microbatches = groups * devices
    looped, folded = (float(build(name, devices, microbatches, chunks).messages.sum()) for name in ("interleaved", "hanayo"))
    one_chunk = 2 * (devices - 1) * microbatches  # messages of a pipeline with one chunk a device

    def messages(name: str, truth: float, between_chunks: Mistake) -> Number:
        mistakes: list[Mistake] = [
            between_chunks,
            (truth / microbatches, "one-microbatch-alone", f"this counts one microbatch: a step has {microbatches} microbatches"),
            (truth / 2, "one-way", "this counts one direction: for each activation that goes to another device, a gradient comes back"),
            (
                truth / 2 / microbatches,
                "one-microbatch-one-way",
                f"this counts one microbatch in one direction: a step has {microbatches} microbatches, and their gradients come back",
            ),
            (
                one_chunk,
                "no-chunks",
                f"this is a pipeline without chunks: with {chunks} of them each microbatch passes the devices {chunks} times",
            ),
            (
                2 * chunks * devices * microbatches,
                "one-an-operation",
                "this is one message for each operation: the last forward and the last backward send none",
            ),
        ]
        hint = "not {value} messages; count how often one microbatch moves to another device, there and back"
        return Number("number of messages of a schedule", truth, hint, mistakes, label=f"{name}: ", fields=(f"Messages of {name}",))

    at_ends = "the messages from chunk to chunk are missing: the last device sends to the first"
    at_turns = "where a chunk ends the next one begins on the same device: a turn needs no message"
    swapped = "these are the right numbers in the wrong order: interleaved 1F1B comes first, and Hanayo saves messages"
    return Question(
        "give how many messages all devices send in a step of interleaved 1F1B and of Hanayo, "
        f"with {devices} devices, {microbatches} microbatches and {chunks} chunks, as [number, number]",
        [
            messages("interleaved 1F1B", looped, (chunks * one_chunk, "no-message-between-chunks", at_ends)),
            messages("Hanayo", folded, (looped, "messages-at-turns", at_turns)),
        ],
        "at each of the v - 1 turns of the fold a microbatch saves two messages, one on the way there and one on the way back",
        [([folded, looped], "swapped", swapped)],
    )


@number_task(
    "lab12.t3",
    title="A step by formula",
    draws={"devices": (6, 7), "groups": (2, 3), "chunks": (3, 4), "forward": (24, 36), "latency": (2.5, 5)},
)
def a_step_by_formula(devices: int = 5, groups: int = 3, chunks: int = 3, forward: int = 12, latency: float = 2) -> Question:
    """Ask for interleaved 1F1B's makespan with ``groups`` times K microbatches. A backward takes twice as long as a forward."""
    backward, microbatches, passed = 2 * forward, groups * devices, chunks * devices - 1  # passed: boundaries between stages
    truth = formulas.interleaved_makespan(devices, microbatches, chunks, forward, backward, latency)
    # ms: all operations of a device; one message there and one back; fill and drain without chunks
    work, both_ways, fill = microbatches * 3 * forward, 2 * latency, (devices - 1) * 3 * forward
    fill_of_chunks = fill / chunks
    time = Number(
        "a makespan in ms",
        truth,
        hint="the step does not take {value} ms: add up M(F+B), (K-1)(F+B)/v and 2(vK-1)C",
        mistakes=[
            (work + fill_of_chunks, "no-messages", "this lacks the messages: the step waits for 2(vK-1) of them"),
            (work + passed * both_ways, "no-fill-and-drain", "this lacks fill and drain, (K-1)(F+B)/v"),
            (
                work + fill + passed * both_ways,
                "1f1b",
                "this has the fill and drain of 1F1B: with chunks they are divided by v",
            ),
            (
                work + fill_of_chunks + passed * latency,
                "one-way",
                "this has the messages of the forwards alone: the backwards send as many messages",
            ),
            (
                work + fill_of_chunks + (passed + 1) * both_ways,
                "vk-messages",
                "this has one message too many in each direction: the last of the vK stages has no next stage",
            ),
            (
                work + fill_of_chunks + (devices - 1) * both_ways,
                "messages-of-one-chunk",
                f"without chunks the step waits for 2(K-1) messages: here a microbatch passes {passed + 1} stages",
            ),
            (
                work + fill_of_chunks + chunks * (devices - 1) * both_ways,
                "folded",
                "2v(K-1) messages are those of a folded placement: here a message also goes from each chunk to the next",
            ),
            (
                work + fill_of_chunks + microbatches * passed * both_ways,
                "all-microbatches",
                f"this has the messages of all {microbatches} microbatches: the step waits for those of only one microbatch",
            ),
            (
                work / chunks + fill_of_chunks + passed * both_ways,
                "work-divided",
                f"this divides the work of a device: a device still runs {chunks} chunks of a {'third' if chunks == 3 else 'quarter'} each",
            ),
            (work, "work-alone", "this is only the work of a device: add fill, drain and messages"),
            (truth / 1000, "seconds", "this is in seconds: give ms"),
        ],
        decimals=2,
        example="480",
    )
    return Question(
        f"give the makespan in ms of interleaved 1F1B with {chunks} chunks on {devices} devices, {microbatches} microbatches, "
        f"a forward of {forward} and a backward of {backward} ms, and a latency of {latency:g} ms",
        [time],
        "chunks divide fill and drain by v; the step waits for 2(vK-1) messages, with any number of microbatches",
    )


@number_task("lab12.t4", title="How many chunks?", points=3, draws={"forward": (36, 42, 48, 54, 60), "latency": (3, 4, 5, 6)})
@cache
def how_many_chunks(forward: int = 48, latency: int = 3) -> Question:
    """Ask for the numbers of chunks with the shortest steps. Each of 8 devices cuts its 24 layers into chunks.

    A step has 16 microbatches. A backward takes twice as long as a forward.
    """
    names = ("interleaved", "looped-bfs")
    steps = [{cut: makespan(name, 8, 16, cut, forward, latency) for cut in range(2, LAYERS + 1) if LAYERS % cut == 0} for name in names]
    best = [min(times, key=times.__getitem__) for times in steps]
    cuts = ", ".join(str(cut) for cut in steps[0] if cut < LAYERS)
    work, fill = 16 * 3 * forward, 7 * 3 * forward

    given = {
        "names": [REGISTRY[name].title for name in names],
        "cuts": [*steps[0]],
        "step": Table(lambda rows: [steps[place][cut] for place, cut in rows], [(place, cut) for place in (0, 1) for cut in steps[0]]),
    }
    takes = "{names[place]} takes {step(place, value[place]):.1f} ms with {value[place]:g} chunks"
    fills, waits = f"{fill} / value[place]", f"step(place, value[place]) - {work} - {fill} / value[place]"
    why = "looped BFS waits for only 2(K-1) messages if a message takes no longer than a chunk's forward; but it needs more memory"
    chunks = Number(
        "number of chunks",
        best,
        hint=f"{takes}, of which {{{waits}:.1f}} ms are waits for messages: fewer chunks make the step shorter",
        given=given,
        fields=[f"Chunks of {name}" for name in ("interleaved 1F1B", "looped BFS")],
        code="too-many",
        mistakes=[
            (
                "value[place] not in cuts",
                "not-divisible",
                f"{LAYERS} layers make chunks of the same size if there are {cuts} or {LAYERS} of them, not {{value[place]:g}}",
            ),
            (
                "value[place] < truth[place]",
                "too-few",
                f"{takes}, of which {{{fills}:.1f}} ms are fill and drain: more chunks make the step shorter",
            ),
        ],
    )
    return Question(
        "give the number of chunks with the shortest step for interleaved 1F1B and for looped BFS, "
        f"with a forward of {forward}, a backward of {2 * forward} and a latency of {latency} ms, as [number, number]",
        [chunks],
        f"{'; '.join(filled(takes, {**given, 'value': best, 'place': place}) for place in range(2))}\n{why}",
    )


def makespan(name: str, devices: int, microbatches: int, chunks: int, forward: float, latency: float) -> float:
    """Return the makespan of a schedule whose backward takes twice as long as its forward.

    >>> makespan("interleaved", 8, 16, 2, forward=50, latency=4)
    3045.0
    """
    costs = Costs(forward=forward, backward=2 * forward, p2p=latency)
    return float(simulate(build(name, devices, microbatches, chunks), costs).makespan)


def _listed(items: Iterable[object]) -> str:
    """Return the items as words, such as "0, 1 and 2"."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}"


@build_task(
    "lab12.t5",
    title="Build interleaved 1F1B",
    prompt="write a function interleaved(devices, microbatches, chunks) that returns one line of operations for each device",
    points=6,
    signature="interleaved(devices, microbatches, chunks)",
    cases=interleaved.sizes_of_chunks,
    reads=read_lines,
    mistakes=interleaved.MISTAKES,
    twists=interleaved.TWISTS,
    examples=interleaved.EXAMPLES,
    lesson="a warm-up of min(2(K-1-d) + (v-1)K, vM) forwards, then pairs, then the backwards that are left",
    partial_credit=[
        PartialCredit("complete and able to run for all sizes", 1 / 3, ("another-placement", "longer-and-larger")),
        PartialCredit("complete, and either its time or its peaks are those of interleaved 1F1B", 1 / 2, ("longer", "larger")),
        PartialCredit("complete, with the time and the peaks of interleaved 1F1B", 2 / 3, ("another-order",)),
    ],
)
def build_interleaved(orders: Orders, devices: int, microbatches: int, chunks: int) -> Feedback:
    """Judge the orders of one size: they must be able to run, and every device must run interleaved 1F1B."""
    if len(orders) != devices:
        return wrong("another-size", f"the result has {counted(len(orders), 'line')}, not one for each of {counted(devices, 'device')}")
    goal = _run_of_goal(devices, microbatches, chunks)
    try:
        schedule = Schedule("yours", orders)
    except InvalidSchedule as why:
        return replace(wrong(why.code, str(why)), drawing=Drawing(orders, UNIT_COSTS, goal, marked_by(why)))
    feedback = _compare(schedule, goal)
    if feedback.passed:
        return replace(feedback, drawing=Drawing(orders, UNIT_COSTS))
    return replace(feedback, drawing=Drawing(orders, UNIT_COSTS, goal, first_differences(orders, goal)))


@lru_cache(64)  # the cache has room for all public cases, because they are judged many times
def _run_of_goal(devices: int, microbatches: int, chunks: int) -> Timeline:
    return simulate(goal_of(devices, microbatches, chunks), UNIT_COSTS)


def _compare(schedule: Schedule, goal: Timeline) -> Feedback:
    """Return the feedback on an order that can run."""
    wanted = goal.schedule
    if schedule.microbatches != wanted.microbatches:
        return wrong("another-number", f"the order has {counted(schedule.microbatches, 'microbatch')}, not {wanted.microbatches}")
    if schedule.stages != wanted.stages:
        return wrong("another-number-of-stages", f"the order has {counted(schedule.stages, 'stage')}, not {wanted.stages}")
    split = next((op for op in schedule.ops if op.kind in "IW"), None)
    if split:
        return wrong("split-backward", f"the order has {split.words}; interleaved 1F1B runs full backwards (B), not their parts")
    if schedule.device_of != wanted.device_of:
        stage = next(stage for stage in range(wanted.stages) if schedule.device_of[stage] != wanted.device_of[stage])
        where = f"stage {stage} is on device {schedule.device_of[stage]}"
        there = f"it belongs on device {wanted.device_of[stage]}, because the chunks of a device are K = {wanted.devices} stages apart"
        return wrong("another-placement", f"{where}: {there}")
    if schedule.orders == wanted.orders:
        return right()
    mine = simulate(schedule, UNIT_COSTS)
    longer = mine.makespan > goal.makespan + WITHIN
    larger = bool((mine.peak_activations > goal.peak_activations + WITHIN).any())
    code = {(False, False): "another-order", (True, False): "longer", (False, True): "larger", (True, True): "longer-and-larger"}
    return wrong(code[longer, larger], _first_difference(schedule.orders, wanted.orders))


def _first_difference(orders: Orders, wanted: Orders) -> str:
    """Return a sentence about the first operation that differs from interleaved 1F1B."""
    differing = (
        (device, place, op, other)
        for device, (mine, goal) in enumerate(zip(orders, wanted, strict=True))
        for place, (op, other) in enumerate(zip(mine, goal, strict=True))
        if op != other
    )
    device, place, op, other = next(differing)
    should = f"a {other.kind.words} of another {'stage' if other.stage != op.stage else 'microbatch'}"
    if other.kind != op.kind:
        should = f"a {other.kind.words}"
    return f"the order can run, but device {device} runs {op} after {counted(place, 'operation')}; interleaved 1F1B has {should} there"


@build_task(
    "lab12.t6",
    title="Build the critical path",
    prompt="write a function critical_path(rows, latency) that returns the operations of a critical path, from first to last",
    points=6,
    signature="critical_path(rows, latency)",
    cases=critical_path.runs_of_many_kinds,
    reads=critical_path.read_path,
    mistakes=critical_path.MISTAKES,
    twists=critical_path.TWISTS,
    examples=critical_path.EXAMPLES,
    lesson="go back from the last operation: each one has waited for the one before it on its device, or for its input",
)
def build_critical_path(path: list[str], rows: Rows, latency: float) -> Feedback:
    """Judge a path from the beginning to the end of the step: each operation must have waited for the operation before it in the path."""
    row_of = {row["op"]: row for row in rows}
    unknown = next((op for op in path if op not in row_of), None)
    if unknown is not None:
        return wrong("no-such-operation", f"the path has {short_repr(unknown)}, which is no operation of the rows")
    chain, last = [row_of[op] for op in path], max(row["end"] for row in rows)
    if chain[-1]["end"] < last - WITHIN:
        there = f"the path ends with {path[-1]} at {chain[-1]['end']:g} ms, but the step ends at {last:g} ms"
        return wrong("not-to-the-end", f"{there}: begin with the operation that ends last, and go back")
    schedule = schedule_of(rows)
    needs = {str(op): {str(each) for each in schedule.needs(op)} for op in schedule.ops}
    for before, now in zip(reversed(chain[:-1]), reversed(chain[1:]), strict=True):
        if (feedback := _step(before, now, rows, before["op"] in needs[now["op"]], latency)) is not None:
            return feedback
    if chain[0]["start"] > WITHIN:
        there = f"the path begins with {path[0]} at {chain[0]['start']:g} ms, but the step begins at 0 ms"
        return wrong("not-from-the-begin", f"{there}: what has {path[0]} waited for?")
    return right()


def _step(before: Row, now: Row, rows: Rows, is_input: bool, latency: float) -> Feedback | None:
    """Return what is wrong with two operations that follow each other in a path, None if nothing is wrong."""
    place = rows.index(now)
    next_to_it = place > 0 and rows[place - 1] is before and before["device"] == now["device"]
    if not (next_to_it or is_input):
        why = "which neither makes its input nor runs just before it on its device"
        return wrong("no-dependency", f"{now['op']} does not wait for {before['op']}, {why}")
    crosses = before["device"] != now["device"]
    arrives = before["end"] + latency * crosses
    if abs(arrives - now["start"]) > WITHIN:
        with_message = f", and its result arrives at {arrives:g} ms" if crosses and latency else ""
        ends = f"{before['op']} ends at {before['end']:g} ms{with_message}"
        return wrong("gap", f"{ends}, but {now['op']} starts at {now['start']:g} ms: it waited for something else")
    return None
