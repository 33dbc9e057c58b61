"""Lab 12, chunks and waves: the two functions that students build, interleaved 1F1B for every size and the critical path of a timeline."""

from dataclasses import replace

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import Orders
from hybridlab.course.tasks.builds import build_task
from hybridlab.course.tasks.checking import Feedback, Rung, right, wrong
from hybridlab.course.tasks.chunk_orders import INTERLEAVED_SLIPS, goal_of, read_lines, sizes_of_chunks
from hybridlab.course.tasks.critical_paths import PATH_SLIPS, PATH_TWISTS, WITHIN, Row, Rows, read_path, runs_of_many_kinds, schedule_of
from hybridlab.course.tasks.drawing import Drawing, first_differences, marked_by
from hybridlab.course.tasks.pipeline_twists import placements
from hybridlab.errors import InvalidSchedule
from hybridlab.schedule import Schedule
from hybridlab.simulation import simulate

UNIT_COSTS = Costs(forward=1, backward=2)


@build_task(
    "lab12.t5",
    title="Build interleaved 1F1B",
    prompt="write a function interleaved(devices, microbatches, chunks) that returns one line of operations for each device",
    points=6,
    signature="interleaved(devices, microbatches, chunks)",
    cases=sizes_of_chunks,
    reads=read_lines,
    slips=INTERLEAVED_SLIPS,
    lesson="a warm-up of min(2(K-1-d) + (v-1)K, vM) forwards, then pairs, then the backwards that are left",
    without=("build",),
    rungs=[
        Rung("complete and able to run for all sizes", 1 / 3, ("another-placement", "longer-and-larger")),
        Rung("complete, and either its time or its peaks are those of interleaved 1F1B", 1 / 2, ("longer", "larger")),
        Rung("complete, with the time and the peaks of interleaved 1F1B", 2 / 3, ("another-order",)),
    ],
    twists=placements(read_lines, chunks=True),
)
def build_interleaved(orders: Orders, devices: int, microbatches: int, chunks: int) -> Feedback:
    """Judge the orders of one size: they can run, and every device runs interleaved 1F1B."""
    if len(orders) != devices:
        return wrong("another-size", f"the result has {counted(len(orders), 'line')}, not one for each of {counted(devices, 'device')}")
    wanted = goal_of(devices, microbatches, chunks)
    goal = simulate(wanted, UNIT_COSTS)
    try:
        schedule = Schedule("yours", orders)
    except InvalidSchedule as why:
        return replace(wrong(why.code, str(why)), drawing=Drawing(orders, UNIT_COSTS, goal, marked_by(why)))
    feedback = _compared(schedule, wanted)
    if feedback.passed:
        return replace(feedback, drawing=Drawing(orders, UNIT_COSTS))
    return replace(feedback, drawing=Drawing(orders, UNIT_COSTS, goal, first_differences(orders, goal)))


def _compared(schedule: Schedule, wanted: Schedule) -> Feedback:
    """Return the feedback on an order that can run."""
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
        return wrong("another-placement", f"{where}: chunk c of device d is stage cK + d, here with K = {wanted.devices}")
    if schedule.orders == wanted.orders:
        return right()
    mine, goal = simulate(schedule, UNIT_COSTS), simulate(wanted, UNIT_COSTS)
    longer = mine.makespan > goal.makespan + WITHIN
    larger = bool((mine.peak_activations > goal.peak_activations + WITHIN).any())
    code = {(False, False): "another-order", (True, False): "longer", (False, True): "larger", (True, True): "longer-and-larger"}
    return wrong(code[longer, larger], _first_difference(schedule, wanted))


def _first_difference(schedule: Schedule, wanted: Schedule) -> str:
    """Return the first operation that differs from interleaved 1F1B, and how many operations of its device come before it."""
    differing = (
        (device, place, op, other)
        for device, (mine, goal) in enumerate(zip(schedule.orders, wanted.orders, strict=True))
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
    cases=runs_of_many_kinds,
    reads=read_path,
    slips=PATH_SLIPS,
    twists=PATH_TWISTS,
    lesson="go back from the last operation: each one has waited for the one before it on its device, or for its input",
    without=("blocking_operation",),
)
def build_critical_path(path: list[str], rows: Rows, latency: float) -> Feedback:
    """Judge a path: it is a chain of operations that wait for each other, without gaps, from the begin to the end of the step."""
    row_of = {row["op"]: row for row in rows}
    unknown = next((op for op in path if op not in row_of), None)
    if unknown is not None:
        return wrong("no-such-operation", f"the path has {unknown!r}, which is no operation of the rows")
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
    """Return what is wrong with two operations that follow each other in a path."""
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
