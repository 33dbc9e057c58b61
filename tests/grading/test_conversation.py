"""Test the conversation with a worker, without a sandbox: whose replies count, how time is used up, and which part is given."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cases import in_turn, refusal

from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.grading.session import Ended, Session

FOUND = "import gc\nworker = next(each for each in gc.get_objects() if type(each).__name__ == 'Worker')\n"


@pytest.fixture(scope="module")
def workers() -> Iterator[Launcher]:
    with launcher("none") as found:
        yield found


@pytest.fixture
def session(workers: Launcher) -> Iterator[Session]:
    opened = workers.open("bare", Budget(Limits()))
    yield opened
    opened.close()


def handed(session: Session, source: str) -> list[tuple[str, Any]]:
    pairs, error = session.run(source, "cell 1")
    assert error is None, error
    return pairs


@in_turn("change", ["worker._nonce = 'guessed'", "worker._id += 1", "worker._id -= 1"])
def test_a_reply_counts_with_the_nonce_and_the_number_of_its_request_alone(workers: Launcher, change: str) -> None:
    session = workers.open("bare", Budget(Limits()))
    assert handed(session, f"{FOUND}check('a', worker._id)") == [("a", 2)]
    with refusal("unasked" if "-=" in change else "ended", "what nobody had asked", kind=Ended):
        session.run(change, "cell 2")
    assert not session.alive


def test_computing_time_counts_and_sleep_does_not(workers: Launcher) -> None:
    budget = Budget(replace(Limits(), seconds_a_task=0.5, seconds_a_notebook=1.2))
    session = workers.open("bare", budget)
    budget.begin("code cell 1")
    session.run("import time\ntime.sleep(1.5)", "code cell 1")
    assert budget.used["code cell 1"] < 0.5
    for key in ("lab02.t5", "lab02.t6"):
        budget.begin(key)
        with refusal("too-slow", "longer than 0.5 s of computing time", "come to an end", kind=Ended):
            session.run("while True: pass", "a cell")
        session = workers.open("bare", budget)
    budget.begin("lab02.t1")
    with refusal("too-slow", "your notebook has used its 1.2 s of computing time", "lab02.t5 took", "lab02.t6 took", kind=Ended):
        session.run("while True: pass", "a cell")


def test_what_sleeps_ends_by_the_clock(workers: Launcher) -> None:
    budget = Budget(Limits())
    session = workers.open("bare", budget)  # a busy machine takes its time for this
    budget.limits = replace(Limits(), clock_a_request=0.3)
    with refusal("too-slow", "within 0.3 s on the clock", "does it sleep", kind=Ended):
        session.run("import time\ntime.sleep(3600)", "a cell")


def test_a_function_that_calls_the_grader_for_ever_ends(workers: Launcher) -> None:
    budget = Budget(replace(Limits(), seconds_a_task=0.5))
    with contextlib.closing(workers.open("bare", budget)) as session:
        ((_, function),) = handed(session, "def ask(ring):\n    while True: ring(1)\ncheck('t', ask)")
        with refusal("too-slow", "0.5 s of computing time"):
            session.call(function.number, (abs,), fresh=False, cell="a cell")


def test_a_result_near_a_limit_is_told() -> None:
    budget = Budget(Limits())
    for owner, seconds in (("lab02.t5", 4.5), ("lab02.t6", 5.5), ("lab02.t1", 1.0)):
        budget.begin(owner)
        budget.charge(seconds, 0.0)
    assert budget.near == "near the limit of computing time: lab02.t5 used 4.5 of its 5 s"
    budget.charge(6.0, 0.0)
    assert budget.near.endswith("lab02.t5 used 4.5 of its 5 s, the notebook used 17.0 of its 20 s")


def test_a_part_is_what_is_given_or_else_the_last_function_of_its_name(session: Session) -> None:
    for source in ("def encode(x): return 1", "def encode(x): return 2", "def encode(x): ...", "def decode(x): return 3"):
        handed(session, f"{source}\ncheck('t', {source[4:10]})")
    assert handed(session, "check('t', [part('encode')(0), part('encode', lambda x: 4)(0), part('ring')])") == [("t", [2, 4, None])]
