"""The boundary around each submission: whatever a notebook does, it costs one student, and the class goes on.

The functions that run apart are those of Python itself, because a process of the boundary can import no test.
"""

import contextlib
import json
import operator
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import end_of
from graded_class import command, graded, needs_bubblewrap, save, solved

from hybridlab.course.grading.boundary import Broken, each_apart


def apart(work: Any, *items: tuple[Any, ...], **settings: Any) -> dict[str, Any]:
    """Return the results of a function for some arguments, each computed in a process of its own."""
    settings = {"jobs": 2, "seconds": 60.0, "memory": 2**30, **settings}
    return dict(each_apart(work, [(str(number), item) for number, item in enumerate(items)], **settings))


@pytest.mark.skipif(sys.platform != "linux", reason="work is graded on Linux")
def test_an_error_a_crash_no_end_and_too_much_memory_cost_one_item_each() -> None:
    results = apart(operator.truediv, (6, 3), (1, 0), (6, 2))
    assert (results["0"], results["2"]) == (2.0, 3.0)
    assert results["1"].why.startswith("the grader has failed with ZeroDivisionError")
    results = apart(os._exit, (3,))
    assert "exit code 3" in results["0"].why
    results = apart(time.sleep, (0,), (3600,), (0,), seconds=5.0)
    assert results == {"0": None, "1": Broken("it was not graded within 5 s"), "2": None}
    results = apart(bytearray, (10,), (2**31,))
    assert results["0"] == bytearray(10)
    assert results["1"].why.startswith("the grader has failed with MemoryError")


def test_no_process_is_left_when_nobody_asks_for_more_results() -> None:
    results = each_apart(time.sleep, [("first", (0,)), ("second", (3600,)), ("third", (3600,))], jobs=2, seconds=7200.0, memory=2**30)
    assert next(results) == ("first", None)
    begun = time.monotonic()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begun < 3000


HOSTILE: Mapping[str, list[str]] = {
    "ends": ["import os\nos._exit(0)", *(f"import os\nos._exit({number})" for number in range(25))],
    "loops": ["while True: pass", "while 1: pass", "while 2: pass"],
    "deep": ["answer = []\nfor _ in range(400): answer = [answer]\ncheck('lab02.t3', answer)"],
    "forger": [
        "import gc\nworker = next(each for each in gc.get_objects() if type(each).__name__ == 'Worker')\n"
        "worker._encode_other = lambda value: {'handle': []}\ncheck('lab02.t3', print)"
    ],
}
LOST = {"ends": 0.0, "loops": 26.0, "deep": 26.0, "forger": 26.0}  # the points of each: its tasks are right, and cells beside them attack


def with_cells(notebook: dict[str, Any], sources: list[str]) -> dict[str, Any]:
    """Return a notebook with more code cells above its tasks."""
    cells = [
        {
            **notebook["cells"][1],
            "cell_type": "code",
            "id": f"more-{place}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for place, source in enumerate(sources)
    ]
    return {**notebook, "cells": [*cells, *notebook["cells"]]}


def hostile_class(folder: Path) -> None:
    """Write the notebooks of a class in which two students are honest, and all others attack the grader."""
    for name in ("ana", "zoe"):
        save(folder / f"lab02_{name}.ipynb", solved("lab02", name))
    for name, sources in HOSTILE.items():
        save(folder / f"lab02_{name}.ipynb", with_cells(solved("lab02", name), sources))
    blank = solved("lab02", "blank")
    blank["metadata"]["hybridlab"]["student"] = " "
    save(folder / "lab02_blank.ipynb", blank)


@pytest.fixture
def here() -> Iterator[Path]:
    """Return a folder that workers of another user can enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.slow
@needs_bubblewrap
def test_no_notebook_stops_the_class_or_changes_the_marks_of_another_one(here: Path) -> None:
    hostile_class(here / "in")
    with command(here / "tmp", "grade", here / "in", "--lab", "lab02", "--out", here / "out", "--jobs", 2) as process:
        _, errors = end_of(process, 600)
    assert process.returncode == 4, errors
    marks = graded(here / "out")
    assert {name: each.points for name, each in marks.items()} == {"ana": 26.0, "zoe": 26.0, "blank": 26.0, **LOST}
    # three endless cells use 15 s of the notebook's 20 s, so on a slow machine the whole notebook can come near its limit
    assert {name for name, each in marks.items() if each.needs_person} - {"loops"} == {"blank"}
    assert "lab02.t5, lab02.t6 in lab02_ana.ipynb" in (here / "out" / "grades.csv").read_text(), "their programs are those of the tests"
    assert not list((here / "tmp").iterdir())


@pytest.mark.slow
@needs_bubblewrap
def test_right_copies_have_all_points_on_a_busy_machine_and_twice_the_same_bytes(here: Path) -> None:
    """Twenty copies of the three labs that take the most time, beside eight busy loops."""
    students = {"lab05": 7, "lab07": 7, "lab08": 6}
    for lab, count in students.items():
        for number in range(count):
            save(here / "in" / f"{lab}_s{number}.ipynb", solved(lab, f"s{number}"))
    written: list[dict[Path, bytes]] = []
    with busy(8):
        for run in ("first", "second"):
            for lab in students:
                with command(here / "tmp", "grade", here / "in", "--lab", lab, "--out", here / run / lab, "--jobs", 2) as process:
                    said, errors = process.communicate()
                assert errors == "", said
                assert all(each.points >= each.out_of for each in graded(here / run / lab).values()), said
            files = [path for path in (here / run).rglob("*.*") if path.parent.name != "classroom"]  # these have the time of the run
            written.append({path.relative_to(here / run): path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert len([path for path in written[0] if path.parent.name == "records"]) == 20


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep the machine busy with loops. They end with this process, whatever ends it."""
    loop = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    with contextlib.ExitStack() as loops:
        for _ in range(count):
            process = loops.enter_context(subprocess.Popen([sys.executable, "-c", loop]))
            loops.callback(process.kill)
        yield


@pytest.mark.slow
@needs_bubblewrap
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"])
def test_a_stopped_run_leaves_reports_of_what_is_done_and_no_temporary_file(here: Path, number: signal.Signals, code: int) -> None:
    save(here / "in" / "lab02_ana.ipynb", solved("lab02", "ana", keys=("lab02.t2",)))
    for name in ("ben", "chi"):
        save(here / "in" / f"lab02_{name}.ipynb", with_cells(solved("lab02", name, keys=("lab02.t2",)), ["import time\ntime.sleep(50)"]))
    with command(here / "tmp", "grade", here / "in", "--lab", "lab02", "--out", here / "out", "--jobs", 2) as process:
        while process.poll() is None and not (here / "out" / "records" / "ana.json").exists():
            time.sleep(0.05)
        time.sleep(0.2)
        os.killpg(process.pid, number)
        _, errors = end_of(process, 600)
    assert process.returncode == code, errors
    assert number == signal.SIGINT or "ended by the signal SIGTERM" in errors
    assert not list((here / "tmp").iterdir())
    if number == signal.SIGINT:
        assert "1 of 3 submissions graded" in errors
        assert json.loads((here / "out" / "results" / "ana.json").read_text())["score"] == 2
        assert sorted(path.stem for path in (here / "out" / "feedback").iterdir()) == ["ana"]
