"""Hidden cases: their seeds come from the secret, and neither the seeds nor the secret can be found where a student looks."""

import contextlib
import hashlib
import hmac
import subprocess
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from graded_class import SECRET, answered, command, graded, hybridlab, needs_bubblewrap, quick_sandbox, save, solved

from hybridlab.course.grading.cases import Secret
from hybridlab.course.tasks import TASKS

BUILDS = [key for key, task in TASKS.items() if task.kind == "build"]
SLEEPS = 'import time\ntime.sleep(3600)\ncheck("lab02.t2", 1)'


def seed_by_hand(secret: str, task: str, student: str, run: str) -> int:
    """The documented message: each part after its length, and 64 bits of its HMAC."""
    message = f"5:cases{len(task)}:{task}{len(student)}:{student}{len(run)}:{run}"
    return int.from_bytes(hmac.new(secret.encode(), message.encode(), hashlib.sha256).digest()[:8], "big")


@pytest.fixture
def class_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    quick_sandbox(monkeypatch)
    for student in ("ana", "Zoë"):
        save(tmp_path / "in" / f"lab02_{student}.ipynb", solved("lab02", student, keys=("lab02.t5",)))
    return tmp_path


@needs_bubblewrap
def test_the_seeds_on_record_are_those_of_the_secret(class_of_two: Path) -> None:
    for student in ("ana", "Zoë"):
        save(class_of_two / "in" / f"lab02_{student}.ipynb", answered("lab02", {}, student))  # quicker, and with the same seeds
    for secret, run in ((SECRET, "final"), ("another secret of this test, as long", "practice")):
        hybridlab("grade", class_of_two / "in", "--lab", "lab02", "--out", class_of_two / "out", "--run", run, "--jobs", 1, secret=secret)
        for student, marks in graded(class_of_two / "out").items():
            seeds = {task.key: task.seed for task in marks.tasks if task.seed is not None}
            assert seeds == {key: seed_by_hand(secret, key, student.casefold(), run) for key in ("lab02.t5", "lab02.t6")}


def test_students_tasks_runs_and_secrets_have_seeds_of_their_own() -> None:
    parts = product((SECRET, SECRET + "2"), BUILDS, ("ana", "ben", "an", "a"), ("final", "practice", "nfinal"))
    seeds = [Secret(secret).seed(task, student, run) for secret, task, student, run in parts]
    assert len(set(seeds)) == len(seeds)
    assert all(0 < seed < 2**64 for seed in seeds)


def test_a_seed_draws_hidden_cases_and_other_ones_than_the_public_cases() -> None:
    build: Any = TASKS["lab02.t6"].instance(None).data
    seed = Secret(SECRET).seed("lab02.t6", "ana", "final")
    hidden, again = [[case.words for case in build._cases_of(seed)] for _ in range(2)]
    assert hidden == again
    assert hidden != [case.words for case in build.public_cases]


@needs_bubblewrap
def test_neither_seeds_nor_the_secret_are_in_what_students_get(class_of_two: Path) -> None:
    out = class_of_two / "out"
    said = hybridlab("grade", class_of_two / "in", "--lab", "lab02", "--out", out, "--jobs", 1)
    seeds = [task.seed for marks in graded(out).values() for task in marks.tasks if task.seed]
    assert len(seeds) == 4
    for path in (path for path in out.rglob("*") if path.is_file()):
        text = path.read_text()
        assert SECRET not in text, path
        if path.parent.name != "records":
            assert not [seed for seed in seeds if str(seed) in text or f"{seed:x}" in text], path
            assert Secret(SECRET).fingerprint not in text, path
    assert SECRET not in said.output
    assert not [seed for seed in seeds if str(seed) in said.output]
    assert (out / "records" / "ana.json").stat().st_size > 0
    assert SECRET not in repr(Secret(SECRET))


@contextlib.contextmanager
def started(folder: Path, out: Path, *more: object) -> Iterator["subprocess.Popen[str]"]:
    """Start the command in a process of its own, on a quick submission and one that takes an hour."""
    for student, answers in (("ana", {}), ("ben", {"lab02.t2": SLEEPS})):
        save(folder / f"lab02_{student}.ipynb", answered("lab02", answers, student))
    with command(folder.parent, "grade", folder, "--lab", "lab02", "--out", out, *more) as process:
        yield process


def below(parent: int) -> dict[int, bytes]:
    """The processes below a process, with their arguments."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            children.setdefault(int((path / "stat").read_text().rpartition(")")[2].split()[1]), []).append(int(path.name))
        except OSError:
            continue  # it has ended
    found: list[int] = list(children.get(parent, []))
    for each in found:  # it grows
        found += children.get(each, [])
    return {each: read(each, "cmdline") for each in found}


def read(process: int, name: str) -> bytes:
    try:
        return Path("/proc", str(process), name).read_bytes()
    except OSError:
        return b""


def waited_for(process: "subprocess.Popen[str]", seen: Any) -> Any:
    """What ``seen`` returns as soon as it is true; an error if the process ends before, or takes for ever."""
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        if found := seen():
            return found
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate())


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    return [each for each, said in below(process.pid).items() if b"/worker/worker.py" in said]


@pytest.mark.slow
@needs_bubblewrap
def test_the_secret_is_in_no_arguments_and_not_in_the_environment_of_a_worker(tmp_path: Path) -> None:
    with started(tmp_path / "in", tmp_path / "out", "--jobs", 2) as process:
        waited_for(process, lambda: list((tmp_path / "out").glob("records/ana.json")))
        environments = waited_for(process, lambda: [*filter(None, (read(each, "environ") for each in workers_of(process)))])
        arguments = {**below(process.pid), process.pid: read(process.pid, "cmdline")}
    assert len(arguments) > 3
    assert not [said for said in arguments.values() if SECRET.encode() in said]
    assert not [said for said in environments if SECRET.encode() in said or b"HYBRIDLAB" in said]
