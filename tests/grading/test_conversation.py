"""Test the conversation with a worker, without a sandbox: whose replies count, how time is used up, and which part is given."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from cases import in_turn, refusal
from grading_worlds import PATIENT

from hybridlab.course.grading import session as conversation
from hybridlab.course.grading.launch import Launcher, launcher
from hybridlab.course.grading.session import Budget, Ended, Session

FOUND = "import gc\nworker = next(each for each in gc.get_objects() if type(each).__name__ == 'Worker')\n"


@pytest.fixture(scope="module")
def workers() -> Iterator[Launcher]:
    with launcher("none", PATIENT) as found:
        yield found


@pytest.fixture
def session(workers: Launcher) -> Iterator[Session]:
    opened = workers.open("bare", Budget(100.0))
    yield opened
    opened.close()


def handed(session: Session, source: str) -> list[tuple[str, Any]]:
    pairs, error = session.run(source, "cell 1")
    assert error is None, error
    return pairs


@in_turn("change", ["worker._nonce = 'guessed'", "worker._id += 1", "worker._id -= 1"])
def test_a_reply_counts_with_the_nonce_and_the_number_of_its_request_alone(workers: Launcher, change: str) -> None:
    session = workers.open("bare", Budget(100.0))
    assert handed(session, f"{FOUND}check('a', worker._id)") == [("a", 2)]
    with refusal("unasked" if "-=" in change else "ended", "what nobody had asked", kind=Ended):
        session.run(change, "cell 2")
    assert not session.alive


def test_all_cells_of_a_notebook_share_its_seconds(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that goes on by 40 s in each cell."""
    now, allowed = [0.0], []

    def asked(do: str, request: Any, seconds: float) -> dict[str, Any]:
        allowed.append(seconds)
        now[0] += 40.0
        return {"handed": [], "error": None}

    monkeypatch.setattr(conversation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(session, "_ask", asked)
    for _ in range(3):
        session.run("1", "a cell")
    assert allowed == [100.0, 60.0, 20.0]
    with refusal("too-slow", "the notebook has used its 3000 s", kind=Ended):
        session.run("1", "a cell")


def test_a_part_is_what_is_given_or_else_the_last_function_of_its_name(session: Session) -> None:
    for source in ("def encode(x): return 1", "def encode(x): return 2", "def encode(x): ...", "def decode(x): return 3"):
        handed(session, f"{source}\ncheck('t', {source[4:10]})")
    assert handed(session, "check('t', [part('encode')(0), part('encode', lambda x: 4)(0), part('ring')])") == [("t", [2, 4, None])]
