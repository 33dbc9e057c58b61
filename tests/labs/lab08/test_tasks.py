"""Test lab 8's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import queue
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from solutions import given_code, lab_cells

from hybridlab import Costs, Deadlock, Mesh, build
from hybridlab.course.labs.lab08.runners import LONG_BEFORE_END, operations_at_once
from hybridlab.course.labs.lab08.tasks import LOST, without_waiting
from hybridlab.course.tasks import TASKS, check
from hybridlab.engines import run
from hybridlab.schedule import Op

SOLUTION = next(cell.source for cell in lab_cells("lab08") if "solution" in cell.tags and "lab08.t5" in cell.source)
RUNNER = given_code("lab08", "in_threads") + "\n\n\n" + SOLUTION.partition("\n\ncheck")[0] + "\n"


FOR_EVER = 20.0  # seconds, far more than the patience of a judge; afterwards a thread ends, because Python waits for its threads at the end


class Patience(threading.Condition):
    """A condition for programs that wait for ever: their threads end when nobody has waked them for long."""

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(FOR_EVER if timeout is None else timeout) and timeout is None:
            raise SystemExit
        return True


def runner(*changes: tuple[str, str]) -> Callable[..., Any]:
    """Return the worked solution, and the code that the lab gives for it, with some lines replaced by what a student could write."""
    source = RUNNER
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    names: dict[str, Any] = {
        "threading": threading,
        "time": time,
        "Condition": Patience,
        "ThreadPoolExecutor": ThreadPoolExecutor,
    }
    exec(source, names)  # noqa: S102 - a cell of our own lab
    function: Callable[..., Any] = names["solution"]
    return function


WORK = "to, output, gradient = work(name, message)"
SUM = "total = total + gradient"
LOSING = f"try:\n                {WORK}\n            except Exception:\n                return"
RESULT = "[run.result() for run in runs]"
POOL = f"""    with ThreadPoolExecutor(count) as threads:
        runs = [threads.submit(thread, d) for d in range(count)]
    return {RESULT}
"""
START = """    sums = [0.0] * count
    def keep(d):
        sums[d] = thread(d)
    threads = [threading.Thread(target=keep, args=(d,)) for d in range(count)]
    for each in threads:
        each.start()
"""
JOIN = """    for each in threads:
        each.join()
"""
END = "    return sums\n"
WAKE = """wants[d] = "end"
                news.notify_all()"""
WAKE_NOBODY = (WAKE, WAKE.partition("\n")[0])
DEVICE_0_IS_LATE = "total = 0.0\n", "total = 0.0\n        time.sleep(0.3 if d == 0 else 0)\n"
NO_WAITING = ("while name not in box:", "while False:"), ("box.pop(name)", "box.get(name)"), DEVICE_0_IS_LATE
DEVICE = "    def device(d, take, put):"
ONE_LOCK = (DEVICE, f"    one = threading.Lock()\n\n{DEVICE}"), (WORK, f"with one:\n                {WORK}")
OWN = "return in_threads(len(orders), device, stuck)"


def returning(expression: str) -> tuple[str, str]:
    """Return a change of the worked solution: what it returns, made from its ``sums``."""
    return OWN, f"{OWN.replace('return', 'sums =')}\n    return {expression}"


def one_thread(orders: Any, work: Any, lost: Any) -> Any:
    """Run all devices in the thread of the caller, as an executor without threads."""
    lines = [line.split() for line in orders]
    box, sums = {name: None for name in lines[0] if "F" in name}, [0.0] * len(lines)
    while any(lines):
        device = next(device for device, line in enumerate(lines) if line and line[0] in box)
        name = lines[device].pop(0)
        to, output, gradient = work(name, box.pop(name))
        sums[device] = sums[device] + gradient
        if name not in lost:
            box[to] = output
    return sums


def a_thread_for_each_operation(orders: Any, work: Any, lost: Any) -> Any:
    """Run each operation of a device in another thread. All of them live to the end, so no number of a thread is used twice."""
    lines, ended = [line.split() for line in orders], threading.Event()
    box, sums, threads = {name: None for name in lines[0] if "F" in name}, [0.0] * len(lines), []
    try:
        while any(lines):
            device = next(device for device, line in enumerate(lines) if line and line[0] in box)
            name, results = lines[device].pop(0), queue.Queue()
            message = box.pop(name)

            def run(name: str = name, message: Any = message, results: Any = results) -> None:
                results.put(work(name, message))
                ended.wait()

            threads.append(threading.Thread(target=run))
            threads[-1].start()
            to, output, gradient = results.get()
            sums[device] = sums[device] + gradient
            if name not in lost:
                box[to] = output
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    return sums


def with_queues(inbox: Any, keys: Any, orders: Any, work: Any, lost: Any, timeout: float = FOR_EVER, slow_links: bool = False) -> Any:
    """Take each message out of a queue, with a thread for each device. Errors of threads are raised.

    With ``slow_links`` a message to another device arrives when that device has sent what it made of the message before, even if it has
    sent that to itself.
    """
    sums, errors = [0.0] * len(orders), []
    news, sent, ended = threading.Condition(), [0] * len(orders), [0] * len(orders)  # messages to each device, operations of it

    def device(d: int) -> None:
        try:
            for name in orders[d].split():
                message = None if name.startswith("0F") else inbox[keys(name)].get(timeout=timeout)
                to, output, gradient = work(name, message)
                sums[d] = sums[d] + gradient
                if slow_links and to and to[0] == name[0]:
                    time.sleep(0.2)  # the other devices go on meanwhile
                with news:
                    if to and name not in lost:
                        other = int(to[0]) if slow_links and to[0] != name[0] else None
                        if other is not None:
                            news.wait_for(lambda other=other: ended[other] >= sent[other], timeout)
                            sent[other] += 1
                        inbox[keys(to)].put(output)
                    ended[d] += 1
                    news.notify_all()
        except Exception as why:
            errors.append(why)

    threads = [threading.Thread(target=device, args=(d,)) for d in range(len(orders))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sums


def one_queue_for_each_receiver(orders: Any, work: Any, lost: Any) -> Any:
    """Take messages in the order in which they come. The device's own output comes before those of other devices."""
    return with_queues([queue.Queue() for _ in orders], lambda name: int(name[0]), orders, work, lost, timeout=0.5, slow_links=True)


def one_queue_for_each_operation(orders: Any, work: Any, lost: Any, timeout: float = FOR_EVER) -> Any:
    """Wait for ever for a message that is lost."""
    return with_queues({name: queue.Queue() for line in orders for name in line.split()}, str, orders, work, lost, timeout)


def with_a_time_limit(orders: Any, work: Any, lost: Any) -> Any:
    return one_queue_for_each_operation(orders, work, lost, timeout=0.5)


def only_the_example(orders: Any, work: Any, lost: Any) -> Any:
    """Return the results of the examples."""
    if lost:
        raise RuntimeError("deadlock")
    return [np.array([0.5, -1.0])]


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab08.t1", 18, "pipelines-alone"),
    ("lab08.t1", 12, "rings-alone"),
    ("lab08.t1", 21, "one-way"),
    ("lab08.t1", 42, "ring-both-ways"),
    ("lab08.t1", 26, "ring-not-closed"),
    ("lab08.t1", 36, "pipeline-closed"),
    ("lab08.t1", 9, "one-of-each"),
    ("lab08.t1", 132, "all-pairs"),
    ("lab08.t1", 31, "wrong-value", "31 queues"),
    ("lab08.t1", 30.4, "wrong-value", "30.4 queues"),
    ("lab08.t1", "30", "not-a-number"),
    ("lab08.t2", "1F0", "more-are-early", "stage 0"),
    ("lab08.t2", "1F0 0B0", "more-are-early", "stage 0"),
    ("lab08.t2", "0B0 0B1", "more-are-early", "stage 1"),
    ("lab08.t2", "0B0", "more-are-early", "stage 0", "stage 1"),
    ("lab08.t2", "1F0 1F1", "in-time", "1F1", "130 ms", "0F1", "100 ms"),
    ("lab08.t2", "1F0 0B0 0B1 1F1", "in-time", "1F1", "130 ms", "0F1", "100 ms"),
    ("lab08.t2", "1F0 0B0 0B1 1B1", "in-time", "1B1", "180 ms", "1F1"),
    ("lab08.t2", "0F0 1F0 0B0 0B1", "needs-nothing", "0F0"),
    ("lab08.t2", "2F0", "not-in-the-schedule", "2F0", "2 stages"),
    ("lab08.t2", "F0", "unknown-operation", "'F0'"),
    ("lab08.t2", 3, "not-text"),
    ("lab08.t2", "1F0 1F0 0B0 0B1", "twice", "1F0"),
    ("lab08.t2", ["1F0", "0B0", "0B1", "0B0"], "twice", "0B0"),
    ("lab08.t2", ["1F0", 3], "unknown-operation", "3"),
    ("lab08.t3", 4160, "forwards-included"),
    ("lab08.t3", 1600, "forwards-alone"),
    ("lab08.t3", 640, "one-device-alone"),
    ("lab08.t3", 1280, "one-replica-alone"),
    ("lab08.t3", 1210, "step-of-sleeping-threads"),
    ("lab08.t3", 1170, "pipeline-of-sleeping-threads"),
    ("lab08.t3", 80, "one-backward"),
    ("lab08.t3", 320, "one-microbatch"),
    ("lab08.t3", 1040, "one-device-with-forwards"),
    ("lab08.t3", 2.56, "seconds"),
    ("lab08.t3", 2600, "ring-included"),
    ("lab08.t3", 2000, "wrong-value", "2000 ms"),
    ("lab08.t3", [2560], "not-a-number"),
    ("lab08.t4", ["0F0", "1B1", "2F1"], "gets-past", "device 0", "0F0"),
    ("lab08.t4", ["0B0", "1B1", "2F1"], "gets-past", "device 0", "0B0", "1B0"),
    ("lab08.t4", ["0B3", "1B1", "2F1"], "never-gets-there", "device 0", "0B3"),
    ("lab08.t4", ["0B1", "1F1", "2F1"], "gets-past", "device 1", "1F1"),
    ("lab08.t4", ["0B1", "1B3", "2F1"], "never-gets-there", "device 1", "1B3"),
    ("lab08.t4", ["0B1", "1B1", "2F2"], "never-gets-there", "device 2", "2F2"),
    ("lab08.t4", ["0B1", "1B1", "1F1"], "not-in-the-order", "1F1", "device 2", "2F0", "2B0"),
    ("lab08.t4", ["0B1", "1B1", "2F1", "2B1"], "wrong-shape"),
    ("lab08.t4", ["0B1", "1B1", 1], "unknown-operation"),
    ("lab08.t4", "0B1 1B1", "wrong-shape"),
    ("lab08.t5", one_thread, "one-thread", "2 devices and 1 microbatch", "0 and 1"),
    ("lab08.t5", a_thread_for_each_operation, "another-thread", "0B0", "device 0"),
    ("lab08.t5", runner(*ONE_LOCK), "not-at-once", "2 devices and 2 microbatches", "0F1", "1F0"),
    ("lab08.t5", runner(*NO_WAITING), "too-early", "2 devices and 1 microbatch", "1F0"),
    ("lab08.t5", one_queue_for_each_receiver, "wrong-message", "GPipe with 2 devices and 2 microbatches", "1F1"),
    ("lab08.t5", one_queue_for_each_operation, "waits-for-ever", "0B0 0F0", "all threads wait"),
    ("lab08.t5", with_a_time_limit, "gave-up", "0F0 takes 1.8 s", "raises Empty"),
    ("lab08.t5", runner((POOL, START + END)), "missing-operation", "0F0 has not run", "join the"),
    ("lab08.t5", runner((POOL, START + JOIN + END)), "deadlock-not-told", "0B0 0F0"),
    ("lab08.t5", runner(("if name not in lost:", "if True:")), "lost-arrives", "is lost", "sends nothing"),
    ("lab08.t5", runner(WAKE_NOBODY), "waits-for-ever", "all threads wait"),
    ("lab08.t5", runner((WORK, LOSING)), "error-lost", "1 device", "in 0"),
    ("lab08.t5", runner((SUM, "total = gradient")), "last-microbatch", "1 device and 2 microbatches"),
    ("lab08.t5", runner((SUM, f"{SUM} + gradient")), "added-twice"),
    ("lab08.t5", runner(returning("[each / len(orders[0].split()) * 2 for each in sums]")), "mean-of-microbatches"),
    ("lab08.t5", runner(returning("sums[::-1]")), "reversed", "2 devices"),
    ("lab08.t5", runner((WORK, f"{WORK}\n            if name == orders[d].split()[-1]: gradient = gradient * 0")), "without-the-last"),
    ("lab08.t5", runner((WORK, WORK.replace("name,", "name[1:],"))), "raises", "takes the name of an operation", "'F0'"),
    ("lab08.t5", runner((WORK, WORK.replace("message", "1.0"))), "wrong-message", "0F0 gets 1.0"),
    ("lab08.t5", runner(("in orders[d].split():", "in orders[d].split()[:-1]:")), "missing-operation", "0B0 has not run"),
    ("lab08.t5", runner(("in orders[d].split():", "in orders[d].split()[::-1]:")), "raises", "deadlock at 0B0"),
    ("lab08.t5", runner(returning("sums[:1]")), "another-size", "1 gradient", "2 devices"),
    ("lab08.t5", runner(returning("[each[:3] for each in sums]")), "another-shape", "(3,)"),
    ("lab08.t5", runner(returning("[1.01 * each for each in sums]")), "wrong-gradient", "number 0 of device 0"),
    ("lab08.t5", runner(returning("[each.tolist() for each in sums]")), "wrong-dtype", "device 0"),
    ("lab08.t5", runner(returning("dict(enumerate(sums))")), "not-a-list"),
    ("lab08.t5", runner(returning("None")), "returns-nothing"),
    ("lab08.t5", runner(returning("[sums[0]] * 2")), "aliased-ranks"),
    ("lab08.t5", lambda orders: [], "signature"),
    ("lab08.t5", only_the_example, "missing-operation", "0F0"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab08.t1", 30.0),
    ("lab08.t1", np.int64(30)),
    ("lab08.t2", "0B0 0B1 1F0"),
    ("lab08.t2", "1F0, 0B0,0B1"),
    ("lab08.t2", ["1F0", "0B0", "0B1"]),
    ("lab08.t2", {Op.parse("1F0"), Op.parse("0B0"), Op.parse("0B1")}),
    ("lab08.t2", [["0B0", "0B1"], ["1F0"]]),
    ("lab08.t2", "device 0: 0B0 0B1\ndevice 1: 1F0"),
    ("lab08.t2", ["device 0: 0B0 0B1", "device 1: 1F0"]),
    ("lab08.t3", 2560.0),
    ("lab08.t3", np.float64(2560)),
    ("lab08.t3", Fraction(2560)),
    ("lab08.t4", ("0B1", "1B1", "2F1")),
    ("lab08.t4", "0B1 1B1 2F1"),
    ("lab08.t4", "0B1,1B1,2F1"),
    ("lab08.t4", "Device 0: 0B1\nDevice 1: 1B1\nDevice 2: 2F1"),
    ("lab08.t4", {0: "0B1", 1: "1B1", 2: "2F1"}),
    ("lab08.t4", {"0B1", "1B1", "2F1"}),
    ("lab08.t4", [Op.parse("0B1"), Op.parse("1B1"), Op.parse("2F1")]),
    ("lab08.t5", runner()),
    ("lab08.t5", runner(returning("tuple(sums)"))),
]


@in_turn("seed", [None, *range(20)])
def test_the_number_of_queues_is_that_of_neighbours_and_rings(seed: int | None) -> None:
    prompt = TASKS["lab08.t1"].instance(seed).prompt
    stages, replicas = map(int, re.findall(r"\d+", prompt))
    mesh = Mesh(stages, replicas)
    along = [pair for replica in range(replicas) for pair in pairwise(mesh.pipeline(replica))]
    around = [pair for stage in range(stages) for pair in mesh.ring(stage)]
    assert check("lab08.t1", len({*along, *((b, a) for a, b in along), *around}), seed=seed).passed


def test_the_operations_that_are_too_early_are_those_of_threads_that_do_not_wait() -> None:
    """The starts are measured. A busy machine shifts them by some ms, so the test tries again, also with longer operations."""
    schedule = build("1f1b", 2, 2)
    expected = {op: start for op, (start, _) in without_waiting(schedule, 50, 80).items()}
    for longer in np.repeat([1, 4, 16], 15):
        ran = run(schedule, costs=Costs(forward=50 * longer, backward=80 * longer), wait=False).timeline
        start, end = (dict(zip(ran.ops, times / longer, strict=True)) for times in (ran.start, ran.end))
        if max(abs(start[op] - expected[op]) for op in ran.ops) < 14:  # the two nearest starts are 30 ms apart
            early = [str(op) for op in ran.ops if any(start[op] < end[need] - 1 for need in schedule.needs(op))]
            assert check("lab08.t2", " ".join(early)).passed
            return
    pytest.fail("no try was quick enough")


def test_the_devices_stand_where_the_threads_stand() -> None:
    with pytest.raises(Deadlock) as caught:
        run(build("1f1b", 3, 4), lost=[LOST])
    problems: Any = caught.value.problems
    assert check("lab08.t4", [str(each.op) for each in problems]).passed
    assert Op.parse("1F1") == LOST


def test_the_lock_is_held_for_every_backward_of_every_device() -> None:
    schedule = build("1f1b", 2, 8)
    backwards = sum(str(op.kind) == "B" for op in schedule.ops)
    assert check("lab08.t3", 2 * backwards * 80).passed


def needed_by(name: str, orders: list[str]) -> set[str]:
    """All operations that must end before this one starts, found along the lines and the messages."""
    op, last = Op.parse(name), len(orders) - 1
    line = next(line.split() for line in orders if name in line.split())
    direct = set(line[: line.index(name)])
    if str(op.kind) == "F":
        direct |= {f"{op.stage - 1}F{op.microbatch}"} if op.stage else set()
    else:
        direct |= {f"{op.stage}F{op.microbatch}"} | ({f"{op.stage + 1}B{op.microbatch}"} if op.stage < last else set())
    return direct.union(*(needed_by(each, orders) for each in direct))


@pytest.mark.slow
def test_operations_that_must_run_at_the_same_time_do_not_need_each_other() -> None:
    found = 0
    for case in TASKS["lab08.t5"].instance(None).data.public_cases:
        orders, *_, trouble = case.arguments
        together = () if trouble.raises else operations_at_once(orders)
        found += len(together) > 1
        for one, other in product(together, repeat=2):
            assert one not in needed_by(other, orders)
    assert found >= 10


def test_a_function_that_waits_for_ever_gets_a_sentence_and_leaves_no_hook_behind() -> None:
    before = threading.excepthook
    feedback = check("lab08.t5", one_queue_for_each_operation)
    assert feedback.code == "waits-for-ever"
    assert threading.excepthook is before


@in_turn("place", [0, 1, 2])
def test_a_device_that_ends_last_and_wakes_nobody_is_found_out(place: int) -> None:
    """Device 0 sleeps by then, so nobody sees the deadlock, or the error, of device 1."""
    build = TASKS["lab08.t5"].instance(None).data
    late = [each for each in build.public_cases if each.arguments[-1].long == LONG_BEFORE_END and each.arguments[-1].raises]
    case = late[place]
    alone = replace(build, cases=lambda rng: [case])
    assert alone.check(runner()).passed
    assert alone.check(runner(WAKE_NOBODY)).code == "waits-for-ever"


def test_the_thread_that_died_is_named() -> None:
    """Its error would otherwise be printed and lost."""
    feedback = check("lab08.t5", runner((POOL, START + JOIN + END), (SUM, "total = total + gradient[0]")))
    assert feedback.code == "missing-operation"
    assert "a thread has ended with TypeError" in " ".join(feedback.messages)


def test_a_python_without_threads_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert check("lab08.t5", one_thread).code == "no-threads"
