"""Test attacks on the grader: each earns exactly the points of its honest part, and leaves nothing behind."""

import json
import os
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attack_files import ATTACKS
from grading_worlds import World, cell, cheapest, honest_cells, in_time, lab_spec, new_world, shared_runtime

from hybridlab.course.checking.checking import check_with
from hybridlab.course.grading import marking
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.grading.session import Session

pytestmark = pytest.mark.needs("bwrap")
SECRET = "a-secret-of-the-grader"  # noqa: S105 - of the tests
LIMITS = Limits().with_time(0.4)  # many attacks use all the time of a class, and the honest part, one number, needs nearly none
MOST_GROWTH = 250_000  # KB by which the grader's memory may grow at most in one attack
# what is tried in the quick tests: one of each kind
QUICK = {"copied-cells", "judges-imported", "forged-reply-of-run", "workflow-commands", "exit"}
QUICK |= {"memory-in-one-piece", "written-outside", "connection", "background-thread", "raised-limits"}
ON_ARRAYS = (
    "changed-arguments",
    "close-to-everything",
    "equal-to-everything",
    "exit-in-a-function",
    "forged-reply-of-call",
    "huge-numbers",
    "kept-cases",
    "names-of-the-lab",
    "no-numbers",
    "own-part",
    "poisoned-exceptions",
    "subclasses",
    "walked-frames",
)
ON_HANDLES = ("kept-handles", "poisoned-exceptions", "huge-numbers", "fork-bomb", "walked-frames", "tall-rings", "kept-by-the-grader")
ON_HANDLES += ("infinite-threads", "named-arguments", "empty-handles", "deep-replies", "odd-errors")
ON_THREADS = ("false-threads", "false-sleep", "named-arguments", "infinite-threads")
SPENT = ("many-exits", "nearly-all")  # these use up what a notebook has, so it earns nothing


def cases() -> Iterator[Any]:
    """Yield each attack with the lab on which it is tried."""
    for lab, names, quick in (
        ("lab02", tuple(ATTACKS), QUICK),
        ("lab05", ON_ARRAYS, set()),
        ("lab07", ON_HANDLES, {"kept-handles"}),
        ("lab08", ON_THREADS, set()),
    ):
        for name in names:
            yield pytest.param(lab, name, marks=() if name in quick else pytest.mark.slow, id=f"{lab}-{name}")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives all that workers say, and put a secret into the environment of the grader."""
    monkeypatch.setenv("HYBRIDLAB_SECRET", SECRET)
    heard: list[str] = []
    received = Session._receive

    def listening(self: Session, *given: Any) -> dict[str, Any]:
        reply = received(self, *given)
        heard.append(json.dumps(reply))
        return reply

    monkeypatch.setattr(Session, "_receive", listening)
    return heard


def left_processes() -> list[str]:
    """Return the processes that still live in a sandbox of these tests."""
    deadline = time.monotonic() + 60
    while (left := _in_a_sandbox()) and time.monotonic() < deadline:  # the kernel ends a namespace some moments after its first process
        time.sleep(0.02)
    return left


def _in_a_sandbox() -> list[str]:
    name, left = shared_runtime().folder.name, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if name in (folder / "mountinfo").read_text() or name.encode() in (folder / "cmdline").read_bytes():
                left.append((folder / "cmdline").read_text())
        except OSError:
            continue
    return left


def written_files(watched: Path) -> list[Path]:
    """Return files that a worker has written outside of its sandbox."""
    found = list(watched.iterdir())
    for folder in map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/", "/packages", "/worker")):  # noqa: S108 - looked at only
        if folder.is_dir():
            found += folder.glob("hybridlab-was-here*")
    return found


@pytest.mark.parametrize(("lab", "name"), [*cases()])
def test_an_attack_earns_what_its_honest_part_earns(lab: str, name: str, said: list[str], listener: Any, watched: Path) -> None:
    world = new_world(LIMITS)
    attack, honest = ATTACKS[name], honest_cells(lab)
    cells = attack.cells(lab_spec(lab), honest, listener.port, str(watched))
    assert list(cells) != honest
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    marks: list[TaskMark] = in_time(lambda: world.mark(cells, lab))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    points = {mark.key: mark.points for mark in marks if mark.points}
    solved = next(task for task in lab_spec(lab).tasks if task.key == cheapest(lab_spec(lab)))
    assert points == ({} if name in SPENT else {solved.key: float(solved.points)})
    told = " ".join(text for mark in marks for text in (*mark.messages, *mark.remarks, mark.code))
    assert "MARKER" not in told, "text of the student is in the feedback"
    assert len(told) < 20_000
    assert SECRET not in told
    assert SECRET not in " ".join(said)
    assert not left_processes()
    assert not listener.heard
    assert not written_files(watched)
    assert grown < MOST_GROWTH, f"the grader has taken {grown:,} KB more"


def test_the_quick_tests_try_an_attack_of_each_kind() -> None:
    assert {attack.on for attack in ATTACKS.values()} == {ATTACKS[name].on for name in QUICK}
    assert set(ATTACKS) >= {*ON_ARRAYS, *ON_HANDLES, *ON_THREADS, *SPENT}


@pytest.mark.parametrize("lab", ["lab02", pytest.param("lab05", marks=pytest.mark.slow), pytest.param("lab07", marks=pytest.mark.slow)])
def test_a_reference_earns_all_and_an_empty_copy_nothing(lab: str, world: World) -> None:
    spec = lab_spec(lab)
    assert world.earned(honest_cells(lab, spec.stubs), lab) == {task.key: float(task.points) for task in spec.tasks}
    assert world.earned(honest_cells(lab, []), lab) == {}


def test_the_watchers_see_what_a_worker_without_a_sandbox_does(listener: Any, watched: Path, said: list[str]) -> None:
    """The attacks above would be harmless, too, if nobody looked: here is what looks, on harmless deeds."""
    with socket.create_connection(("127.0.0.1", listener.port), timeout=5):
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.sendto(b"x", ("127.0.0.1", listener.port))
    deadline = time.monotonic() + 60
    while len(listener.heard) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(listener.heard) == ["a connection", "a datagram"]
    listener.heard.clear()
    (watched / "x").write_text("1")
    assert written_files(watched) == [watched / "x"]
    (watched / "x").unlink()
    session = new_world().open("bare")
    assert _in_a_sandbox()
    session.run(f"check('lab02.t2', '{SECRET}')", "code cell 1")
    session.close()
    assert SECRET in " ".join(said)
    assert not left_processes()


def test_a_function_cannot_learn_whether_it_must_raise_an_error(world: World) -> None:
    spec = lab_spec("lab05")
    guard = "    if not np.isfinite(values).all():\n"
    honest = spec.solutions["lab05.t1"]
    assert guard in honest
    looks = "    import sys\n    names = sys._getframe(1).f_locals\n    if names.get('refused') or names.get('refusing'):\n"
    cells = [cell(honest.replace(guard, looks), "lab05.t1")]
    assert world.earned([cell(honest)], "lab05", ["lab05.t1"]) == {"lab05.t1": 6.0}
    assert world.earned(cells, "lab05", ["lab05.t1"]) == {}


def test_the_cell_that_stuffs_the_pipe_is_left_out_and_not_the_next_one(world: World) -> None:
    stuffs = ATTACKS["forged-reply-of-run"].cells(lab_spec("lab02"), honest_cells("lab02"))[-1]
    answers = honest_cells("lab02", ["lab02.t2", "lab02.t3"])
    assert world.earned([stuffs, *answers], "lab02") == {"lab02.t2": 2.0, "lab02.t3": 2.0}


def test_an_answer_that_breaks_a_judge_costs_its_own_task_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = lab_spec("lab02")

    def breaks(task: Any, asked: Any, answer: Any) -> Any:
        if task.key == "lab02.t2":
            raise OverflowError
        return check_with(task, asked, answer)

    monkeypatch.setattr(marking, "check_with", breaks)
    marks = {mark.key: mark for mark in world.mark(honest_cells("lab02", spec.stubs), "lab02")}
    assert marks["lab02.t2"].code == "judge-failed"
    assert sum(mark.points for mark in marks.values()) == sum(task.points for task in spec.tasks) - 2


def test_the_secret_is_there_for_those_who_can_see_it(said: list[str]) -> None:
    assert os.environ["HYBRIDLAB_SECRET"] == SECRET
