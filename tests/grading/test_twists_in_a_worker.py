"""Test that twists suit functions that live in another process, where arrays and functions travel as copies."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from cases import in_turn
from grading_worlds import lab_spec
from honest import honest_cell, spread

from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.grading.session import Remote, Session
from hybridlab.course.tasks import TASKS, Build, Feedback, Twist

BUILDS: dict[str, Build] = {key: task.instance(None).data for key, task in TASKS.items() if task.kind == "build"}
del BUILDS["lab05.t6"]  # its solution calls functions of cells above it: test_whole_course.py runs them
SPOILING = """
def spoiling(codes, scales, block):
    numbers = decode(codes.copy(), scales, block)
    codes[:] = 0
    return numbers

check("lab05.t3", spoiling)
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[Launcher]:
    with launcher("none") as found:
        yield found


def judged(workers: Launcher, key: str, twist: Twist, more: str = "") -> Feedback:
    """Return the feedback on the last function that a cell hands in under a twist, on a few cases."""
    build = BUILDS[key]
    few = [build.public_cases[place] for place in spread(build)]
    mine = replace(build, cases=lambda rng: few).with_twist(twist)
    session = workers.open(build.worker, Budget(Limits()))
    try:
        lab = lab_spec(key[:5])
        cell = honest_cell(key, twist, build.name, lab.solutions[key])
        handed, error = session.run(cell + more, "cell 1")
        assert error is None
        _, function = handed[-1]
        remote = Remote(
            session, function, fresh=build.fresh, cell="cell 1", provide=lambda name: _given(session, lab.providers(name, [key]))
        )
        feedback: Feedback = mine.check(remote)
        return feedback
    finally:
        session.close()


def _given(session: Session, cells: Sequence[str]) -> bool:
    """Run the cells of a lab that give code to students; return whether there are such cells."""
    for cell in cells:
        session.run(cell, "a cell of the lab")
    return bool(cells)


@in_turn("key", ["lab02.t5", "lab05.t1", "lab07.t6", "lab08.t5"])  # text, arrays, functions of the grader, and threads
def test_an_honest_solution_passes(workers: Launcher, key: str) -> None:
    feedback = judged(workers, key, BUILDS[key].variants[-1])
    assert feedback.passed, feedback.messages


@pytest.mark.slow
@in_turn("key, twist", [(key, twist) for key, build in BUILDS.items() for twist in build.twists])
def test_an_honest_solution_of_each_twist_passes(workers: Launcher, key: str, twist: Twist) -> None:
    feedback = judged(workers, key, twist)
    assert feedback.passed, feedback.messages


def test_a_change_of_an_argument_in_its_own_form_is_found(workers: Launcher) -> None:
    (unsigned,) = (twist for twist in BUILDS["lab05.t3"].twists if twist.name == "unsigned")
    assert judged(workers, "lab05.t3", unsigned, SPOILING).code == "changes-its-argument"
