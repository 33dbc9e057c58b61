"""Test lab 16's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import groupby, product
from typing import Any

import numpy as np
from cases import in_turn
from honest import changes
from profiles import seeds
from solutions import lab_cells, solutions_of

from hybridlab import Costs, Schedule, build, simulate
from hybridlab.course.labs.lab07.executors import lines_of_schedule, order_by_chance
from hybridlab.course.labs.lab16.rendezvous import MISTAKES, as_it_comes, judge_plans, read_plans, starts_alone
from hybridlab.course.tasks import TASKS, check
from hybridlab.schedule import inputs_from_others

SOLUTION = next(cell.source for cell in lab_cells("lab16") if "solution" in cell.tags and "lab16.t4" in cell.source)
PROGRAMS = {mistake.code: mistake.result for mistake in MISTAKES}


def rewritten(*changes: tuple[str, str]) -> Callable[..., Any]:
    """Return the worked solution with some of its code replaced by what a student could write."""
    source = SOLUTION.partition("\n\ncheck")[0] + "\n"
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102 - a cell of our own lab
    function: Callable[..., Any] = names["solution"]
    return function


def program(code: str) -> Callable[..., Any]:
    """Return a known mistake as a student's function, which is called for one rank."""
    return lambda orders, needs, rank: PROGRAMS[code](orders, needs)[rank]


def changed(change: Callable[[list[str], int], Any]) -> Callable[..., Any]:
    """Return the worked solution with a change to the list of each rank."""
    whole = rewritten()
    return lambda orders, needs, rank: change(whole(orders, needs, rank), rank)


def with_entry(place: int, entry: str, of_rank: int = 0) -> Callable[..., Any]:
    """Put one more action into the list of a rank that sends something."""

    def change(plan: list[str], rank: int) -> list[str]:
        return [*plan[:place], entry, *plan[place:]] if rank == of_rank and any("send" in each for each in plan) else plan

    return changed(change)


def joined(actions: list[str]) -> list[str]:
    """Join the messages between two operations."""
    parts = [list(part) for _, part in groupby(actions, lambda text: text.startswith("run"))]
    return [text for part in parts for text in (part if part[0].startswith("run") else [" and ".join(part)])]


def in_turn_of_ranks(orders: list[str], needs: dict[str, str], rank: int) -> list[str]:
    """Go from rank to rank; each runs its next operation if it can, and sends the output at once."""
    lines = [line.split() for line in orders]
    home = {op: place for place, line in enumerate(lines) for op in line}
    reader = {source: op for op, source in needs.items()}
    plans: list[list[str]] = [[] for _ in lines]
    made: set[str | None] = {None}
    while any(lines):
        before = len(made)
        for place, line in enumerate(lines):
            if line and needs.get(line[0]) in made:
                op = line.pop(0)
                made.add(op)
                plans[place].append(f"run {op}")
                if op in reader:
                    to = home[reader[op]]
                    plans[place].append(f"send {op} to {to}")
                    plans[to].append(f"receive {op} from {place}")
        if len(made) == before:
            raise RuntimeError("deadlock")
    return plans[rank]


def as_soon_as_made(orders: list[str], needs: dict[str, str], rank: int) -> list[str]:
    """Send each output at the end of the round in which it is made: the other honest way."""
    lines = [line.split() for line in orders]
    home = {op: place for place, line in enumerate(lines) for op in line}
    reader = {source: op for op, source in needs.items()}
    made: set[str | None] = {None}
    actions: list[str] = []
    while any(lines):
        able = [line.pop(0) for line in lines if line and needs.get(line[0]) in made]
        if not able:
            raise RuntimeError("deadlock")
        actions += [f"run {op}" for op in able if home[op] == rank]
        for op in [op for op in able if op in reader]:
            ends = home[op], home[reader[op]]
            actions += [f"send {op} to {ends[1]}"] * (rank == ends[0]) + [f"receive {op} from {ends[0]}"] * (rank == ends[1])
        made |= {*able}
    return actions


def with_joined_rounds(orders: list[str], needs: dict[str, str], rank: int) -> list[str]:
    """Join all messages of a round, the receive first: the order in which they are joined does not matter."""
    lines = [line.split() for line in orders]
    home = {op: place for place, line in enumerate(lines) for op in line}
    made: set[str | None] = {None}
    actions: list[str] = []
    while any(lines):
        able = [line.pop(0) for line in lines if line and needs.get(line[0]) in made]
        if not able:
            raise RuntimeError("deadlock")
        pairs = [(needs[op], op) for op in able if op in needs]
        receives = [f"receive {source} from {home[source]}" for source, op in pairs if home[op] == rank]
        sends = [f"send {source} to {home[op]}" for source, op in pairs if home[source] == rank]
        actions += [" and ".join(receives + sends)] * bool(receives + sends)
        actions += [f"run {op}" for op in able if home[op] == rank]
        made |= {*able}
    return actions


def only_the_example(orders: list[str], needs: dict[str, str], rank: int) -> list[str]:
    """Return the results of the examples."""
    return ["run 0F0", "send 0F0 to 1", "receive 1B0 from 1", "run 0B0"]


OTHER_WAY_ROUND = ("for op in able:  # all", "for op in able[:: -1 if rank == 2 else 1]:  # all")
# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab16.t1", 4.1, "sign"),
    ("lab16.t1", 4.2, "of-the-prediction"),
    ("lab16.t1", -4.2, "divided-by-the-prediction"),
    ("lab16.t1", -0.0407, "share"),
    ("lab16.t1", -28, "ms"),
    ("lab16.t1", 28, "ms-and-sign"),
    ("lab16.t1", 95.9, "not-less-one"),
    ("lab16.t1", -7, "wrong-value", "-7 %"),
    ("lab16.t1", "-4.1", "not-a-number"),
    ("lab16.t2", 742.5, "mean-times"),
    ("lab16.t2", 990, "all-slow"),
    ("lab16.t2", 660, "no-slow-stage"),
    ("lab16.t2", 720, "slow-stage-alone"),
    ("lab16.t2", 300, "forwards-alone"),
    ("lab16.t2", 780, "slow-fill"),
    ("lab16.t2", 870, "wrong-value", "870 ms"),
    ("lab16.t2", [900], "not-a-number"),
    ("lab16.t3", ["run 0F3", "send 1F1 to 2", "send 2B0 to 1"], "runs", "rank 0", "run 0F3"),
    ("lab16.t3", ["send 0F9 to 1", "send 1F1 to 2", "send 2B0 to 1"], "not-in-the-list", "send 0F9 to 1"),
    ("lab16.t3", ["send 0F1 to 1", "send 1F1 to 2", "send 2B0 to 1"], "gets-past", "rank 0", "send 0F1 to 1"),
    ("lab16.t3", ["receive 1B0 from 1", "send 1F1 to 2", "send 2B0 to 1"], "never-gets-there", "rank 0", "receive 1B0 from 1"),
    ("lab16.t3", ["send 0F2 to 1", "receive 2B0 from 2", "send 2B0 to 1"], "never-gets-there", "rank 1"),
    ("lab16.t3", ["send 0F2 to 1", "send 1F1 to 2", "receive 1F1 from 1"], "never-gets-there", "rank 2"),
    ("lab16.t3", ["0F2", "1F1", "2B0"], "not-an-action", "'0F2'"),
    ("lab16.t3", ["send 0F2 to 1", "send 1F1 to 2"], "wrong-shape"),
    ("lab16.t3", [1, 2, 3], "not-text", "1"),
    ("lab16.t4", program("as-it-comes"), "as-it-comes", "1F1B with 2 devices and 2 microbatches", "send 0F1 to 1", "send 1B0 to 0"),
    ("lab16.t4", program("receives-ahead"), "receives-ahead", "1F1B with 2 devices and 1 microbatch", "receive 1B0 from 1"),
    ("lab16.t4", program("even-and-odd"), "even-and-odd"),
    ("lab16.t4", program("joins-by-its-own-line"), "joins-by-its-own-line"),
    ("lab16.t4", program("sends-at-the-end"), "sends-at-the-end"),
    ("lab16.t4", program("no-messages"), "no-messages", "rank 0 runs 0B0", "1B0"),
    ("lab16.t4", program("one-way"), "one-way"),
    ("lab16.t4", program("one-at-a-time"), "one-at-a-time", "7 ms, not 6 ms"),
    ("lab16.t4", program("sends-first"), "sends-first"),
    ("lab16.t4", program("runs-first"), "runs-first"),
    ("lab16.t4", program("operation-by-operation"), "operation-by-operation"),
    ("lab16.t4", rewritten(OTHER_WAY_ROUND), "deadlock", "with 3 devices", "rank 2 waits at"),
    ("lab16.t4", in_turn_of_ranks, "longer", "could start at"),
    ("lab16.t4", lambda *given: joined(in_turn_of_ranks(*given)), "longer", " and ", "could start at"),
    ("lab16.t4", changed(lambda plan, rank: plan[:-1]), "missing-operation", "rank 0 never runs 0B0"),
    ("lab16.t4", changed(lambda plan, rank: [each for each in plan if "send" not in each]), "not-sent", "rank 0 never sends 0F0"),
    ("lab16.t4", changed(lambda plan, rank: [each for each in plan if "receive" not in each]), "before-its-input", "0B0", "1B0"),
    ("lab16.t4", changed(lambda plan, rank: [each.replace("to 1", "to 0") for each in plan]), "wrong-receiver", "to 0"),
    ("lab16.t4", changed(lambda plan, rank: [each.replace("from 1", "from 0") for each in plan]), "wrong-sender", "from 0"),
    ("lab16.t4", changed(lambda plan, rank: plan[::-1]), "another-order", "rank 0 runs 0B0 where its line has 0F0"),
    ("lab16.t4", with_entry(0, "send 0F0 to 1"), "not-made-yet", "rank 0 sends 0F0"),
    ("lab16.t4", with_entry(2, "send 0F0 to 1"), "sent-twice", "sends 0F0 twice"),
    ("lab16.t4", with_entry(3, "receive 1B0 from 1"), "received-twice", "receives 1B0 twice"),
    ("lab16.t4", with_entry(4, "send 0B0 to 1"), "nobody-needs-it", "sends 0B0"),
    ("lab16.t4", with_entry(0, "send 1F0 to 1"), "not-its-output", "rank 1 makes it"),
    ("lab16.t4", with_entry(0, "receive 0F0 from 0"), "not-its-input", "receives 0F0"),
    ("lab16.t4", with_entry(0, "run 1F0"), "another-rank", "the line of rank 1"),
    ("lab16.t4", with_entry(0, "run 9F9"), "unknown-operation", "9F9"),
    ("lab16.t4", with_entry(0, "wait for 1"), "not-an-action", "'wait for 1'"),
    ("lab16.t4", with_entry(2, "send 0F0 to 1 and send 0F0 to 1"), "sent-twice", "sends 0F0 twice"),
    ("lab16.t4", changed(lambda plan, rank: [" and ".join(plan)] if rank else plan), "joined-operation", "'run 1F0'"),
    ("lab16.t4", rewritten(('raise ValueError("these orders cannot run")', "return")), "not-refused"),
    ("lab16.t4", changed(lambda plan, rank: "; ".join(plan)), "not-a-list", "run 0F0; run 0B0"),
    ("lab16.t4", changed(lambda plan, rank: {*plan}), "not-a-list"),
    ("lab16.t4", changed(lambda plan, rank: None), "returns-nothing", "rank 0"),
    ("lab16.t4", lambda orders, needs, rank: needs.clear() or orders.clear() or [], "changes-its-argument"),
    ("lab16.t4", lambda orders, rank: [], "signature", "communication(orders, needs, rank)"),
    ("lab16.t4", only_the_example, "nobody-needs-it", "1 device and 1 microbatch", "sends 0F0"),
    ("lab16.t4", ["run 0F0"], "not-a-function", "run 0F0"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab16.t1", -4.07),
    ("lab16.t1", np.float64(-4.1)),
    ("lab16.t2", 900.0),
    ("lab16.t2", Fraction(900)),
    ("lab16.t3", ("send 0F2 to 1", "send 1F1 to 2", "send 2B0 to 1")),
    ("lab16.t4", rewritten()),
    ("lab16.t4", as_soon_as_made),
    ("lab16.t4", with_joined_rounds),
    ("lab16.t4", changed(lambda plan, rank: joined(plan))),
    ("lab16.t4", changed(lambda plan, rank: tuple(plan))),
    ("lab16.t4", changed(lambda plan, rank: iter(plan))),
]


@in_turn("seed", [None, *range(30)])
def test_the_error_is_that_of_the_prompt(seed: int | None) -> None:
    predicted, measured = map(int, re.findall(r"(\d+) ms", TASKS["lab16.t1"].instance(seed).prompt))
    assert check("lab16.t1", (predicted - measured) / measured * 100, seed=seed).passed
    assert check("lab16.t1", (measured - predicted) / measured * 100, seed=seed).code == "sign"


@in_turn("seed", [None, *range(30)])
def test_gpipe_passes_the_slow_stage_once_there_and_once_back(seed: int | None) -> None:
    prompt = TASKS["lab16.t2"].instance(seed).prompt
    devices, microbatches, forward, backward, slow = map(
        int, re.findall(r"on (\d+) dev.* (\d+) micro.* takes (\d+) ms.* (\d+) ms.* stage (\d+)", prompt)[0]
    )
    assert 0 < slow < devices
    there = (devices - 1) * forward + 1.5 * forward + (microbatches - 1) * 1.5 * forward
    assert check("lab16.t2", there * (1 + backward / forward), seed=seed).passed


def stands_after(lines: list[str], needs: dict[str, str]) -> list[str]:
    """The action at which each rank stands, found by trying one pair of actions after the other."""
    plans = [list(plan) for plan in as_it_comes(lines, needs)]
    moved = True
    while moved:
        moved = False
        for one, other in product(range(len(plans)), repeat=2):
            while plans[one] and plans[one][0].startswith("run"):
                plans[one].pop(0)
                moved = True
            if plans[one] and plans[other] and plans[one][0].split()[::3] == ["send", str(other)]:
                op = plans[one][0].split()[1]
                if plans[other][0] == f"receive {op} from {one}":
                    plans[one].pop(0)
                    plans[other].pop(0)
                    moved = True
    return [plan[0] for plan in plans]


def test_the_ranks_stand_where_pairs_of_actions_leave_them() -> None:
    lines = lines_of_schedule("1f1b", 3, 4)
    assert check("lab16.t3", stands_after(lines, inputs_from_others(Schedule.parse("\n".join(lines))))).passed


@in_turn("seed", seeds(20))
def test_an_order_alone_takes_as_long_as_on_the_library_s_clock(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines = order_by_chance(rng, int(rng.integers(1, 5)), int(rng.integers(1, 8)))
    schedule = Schedule.parse("\n".join(lines))
    starts = starts_alone([line.split() for line in lines], inputs_from_others(schedule))
    clock = simulate(schedule, Costs(forward=1, backward=1))
    assert starts == dict(zip(map(str, clock.ops), clock.start.tolist(), strict=True))


@in_turn("name", ["gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "interleaved", "hanayo", "zb-v", "v-half", "dualpipe-v", "looped-bfs"])
def test_the_worked_solution_connects_every_schedule_with_one_copy_of_the_weights(name: str) -> None:
    schedule = build(name, 4, 8)
    lines, needs = [" ".join(map(str, order)) for order in schedule.orders], inputs_from_others(schedule)
    plans = [solutions_of("lab16")["lab16.t4"](lines, needs, rank) for rank in range(4)]
    assert judge_plans(read_plans(plans), lines, needs).passed


@in_turn("twist", [twist.name for twist in TASKS["lab16.t4"].instance(None).data.twists])
def test_joined_messages_pass_under_every_twist(twist: str) -> None:
    build = TASKS["lab16.t4"].instance(None).data
    mine = build.with_twist(next(each for each in build.twists if each.name == twist))
    assert mine.check(changes()["lab16.t4", twist](with_joined_rounds)).passed


@in_turn("name, ends", [("gpipe", True), ("1f1b", True), ("eager-1f1b", False), ("zb-h2", False), ("interleaved", False)])
def test_a_send_joined_with_the_next_receive_is_enough_for_gpipe_and_1f1b_alone(name: str, ends: bool) -> None:
    lines = lines_of_schedule(name, 4, 8)
    needs = inputs_from_others(Schedule.parse("\n".join(lines)))
    plans = [joined(plan) for plan in as_it_comes(lines, needs)]
    assert judge_plans(read_plans(plans), lines, needs).passed == ends


@in_turn("name, dead", [("gpipe", False), ("1f1b", True)])
def test_each_by_its_own_line_works_under_gpipe_and_not_under_1f1b(name: str, dead: bool) -> None:
    lines = lines_of_schedule(name, 4, 8)
    needs = inputs_from_others(Schedule.parse("\n".join(lines)))
    assert (judge_plans(read_plans(as_it_comes(lines, needs)), lines, needs).code == "deadlock") == dead
