"""Test that twists suit functions that live in another process, where arrays and functions travel as copies."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import in_turn
from grading_worlds import PATIENT

from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.session import Budget, Remote
from hybridlab.course.tasks import TASKS, Feedback

HONEST = Path(__file__).parents[1] / "labs"  # with honest solutions of twists in the folder of each lab
HONEST = [  # of each kind of renaming one
    ("lab04.t7", "backwards-one-ahead"),
    ("lab05.t1", "short-block-first-and-unsigned"),
    ("lab05.t3", "unsigned-and-scales-first"),
    ("lab05.t6", "doubled-residual-and-residual-first"),
    ("lab06.t5", "one-step-and-start-and-length"),
    ("lab07.t1", "last-microbatch-first-and-kept-first"),
    ("lab07.t1", "microbatch-before-stage-and-weight-gradient-first"),
    ("lab07.t6", "columns-of-weighted-means"),
    ("lab08.t5", "last-device-first-and-delivered"),
    ("lab08.t5", "message-first-and-means"),
    ("lab09.t5", "bits-and-shares"),
    ("lab09.t5", "gpus-and-fp32"),
    ("lab13.t5", "last-stage-first-and-gigabytes"),
    ("lab13.t5", "two-latencies"),
    ("lab13.t5", "other-letters-and-caps"),
]
QUICK = ("lab04.t7", "lab05.t1", "lab05.t3", "lab05.t6", "lab06.t5", "lab09.t5", "lab13.t5")
SPOILING = """
def spoiling(codes, scales, block):
    numbers = SOLUTIONS["lab05.t3", "unsigned"](codes.copy(), scales, block)
    codes[:] = 0
    return numbers

check("lab05.t3", spoiling)
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[Launcher]:
    with launcher("none", PATIENT) as found:
        yield found


def judged(workers: Launcher, key: str, name: str, hand_in: str) -> Feedback:
    """Return the feedback on what a cell hands in under a twist."""
    names = [twist.name for twist in TASKS[key].instance(None).data.twists]
    build = TASKS[key].personal(names.index(name)).data
    session = workers.open(build.worker, Budget(PATIENT.seconds_a_notebook))
    try:
        handed, error = session.run((HONEST / key[:5] / "honest.py").read_text(encoding="utf-8") + hand_in, "cell 1")
        assert error is None
        (_, function), *_ = handed
        feedback: Feedback = build.judged(Remote(session, function, fresh=build.fresh, cell="cell 1", provide=lambda missing: False))
        return feedback
    finally:
        session.close()


def honest_passes(workers: Launcher, key: str, name: str) -> None:
    feedback = judged(workers, key, name, f"\ncheck({key!r}, SOLUTIONS[{key!r}, {name!r}])\n")
    assert feedback.passed, feedback.messages


@in_turn("key, name", [each for each in HONEST if each[0] in QUICK])
def test_an_honest_solution_passes(workers: Launcher, key: str, name: str) -> None:
    honest_passes(workers, key, name)


@pytest.mark.slow
@in_turn("key, name", [each for each in HONEST if each[0] not in QUICK])
def test_an_honest_solution_passes_where_it_takes_longer(workers: Launcher, key: str, name: str) -> None:
    honest_passes(workers, key, name)


def test_a_change_of_a_renamed_argument_is_found_out(workers: Launcher) -> None:
    assert judged(workers, "lab05.t3", "unsigned", SPOILING).code == "changes-its-argument"
