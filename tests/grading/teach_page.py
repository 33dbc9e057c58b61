"""The commands on the page for instructors: `python tests/grading/teach_page.py refresh` runs them and stores what they print.

They run as people would run them: a student's commands in one folder, an instructor's in another. Between the commands, ten students work
on their copies. Each block of the page that begins with ````console has commands, and below each command its output.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/labs"), str(ROOT / "book/_ext")]  # for the command, and for honest solutions

from honest import honest_cell  # noqa: E402 - it can be imported only now
from own_words import in_own_words  # noqa: E402

from hybridlab.course.grading.copies import pack, start  # noqa: E402
from hybridlab.course.grading.labs import reference  # noqa: E402
from hybridlab.course.grading.specs import spec_of  # noqa: E402
from hybridlab.course.tasks import TASKS, Student  # noqa: E402

PAGE = ROOT / "book/teach.md"
BLOCK = re.compile(r"^````console\n(.*?)^````$", flags=re.DOTALL | re.MULTILINE)
SECRET = "the secret of the page for instructors"  # noqa: S105 - of no course
LAB = "lab02"
ON_A_LAPTOP = ("hybridlab start", "hybridlab check", "hybridlab pack")
SPEC = spec_of(reference(LAB))
HOSTILE = """
import builtins, os, sys
builtins.print("::error::graded by nobody")
for module in list(sys.modules.values()):
    for name in ("check", "judge", "passed"):
        if hasattr(module, name):
            setattr(module, name, lambda *arguments, **named: True)
check("lab02.t2", "::error::=HYPERLINK(1)")
os.system("touch /tmp/graded; kill -9 -1")
os._exit(0)
"""
COMMAND = "from hybridlab.__main__ import command; command()"
GRADEBOOK = "Student,ID,SIS Login ID,Section,Lab 2 (7001)\nPoints Possible,,,,26\n"

Write = Callable[[str], str]  # takes the key of a task, and returns the cell of its answer


@dataclass(frozen=True)
class Shown:
    """A block of the page: its commands, and what stands below each."""

    commands: tuple[str, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        lines = (f"$ {command}\n{output}" for command, output in zip(self.commands, self.outputs, strict=True))
        return f"````console\n{''.join(lines)}````"


def blocks(page: str) -> list[Shown]:
    """Return the blocks of a page that have commands."""
    found = []
    for body in BLOCK.findall(page):
        parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)
        assert not parts[0], "a block begins with a command"
        found.append(Shown(tuple(parts[1::2]), tuple(parts[2::2])))
    return found


def run_blocks(shown: Iterable[Shown], folder: Path) -> Iterator[Shown]:
    """Run the commands of blocks in an empty folder, and yield the blocks with what is printed now, without progress."""
    (folder / "bin").mkdir()
    program = folder / "bin/hybridlab"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{COMMAND}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    laptop, course = folder / "laptop", folder / "course"
    laptop.mkdir()
    course.mkdir()
    environment = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HYBRIDLAB_SECRET": SECRET,
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder),
    }
    for block in shown:
        prepare(block.commands[0], laptop, course)
        where = laptop if block.commands[0].startswith(ON_A_LAPTOP) else course
        script = "".join(f"printf '\\0'\n(exit $code)\n{command}\ncode=$?\n" for command in block.commands)
        done = subprocess.run(["/bin/bash", "-c", f"code=0\n{script}"], cwd=where, env=environment, capture_output=True, check=False)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        yield Shown(block.commands, tuple(done.stdout.decode().split("\0")[1:]))


def prepare(command: str, laptop: Path, course: Path) -> None:
    """Do what people do before a command of the page: work on a copy, hand it in, or export a gradebook."""
    if command.startswith("hybridlab check"):
        answer(laptop / "lab02.ipynb", half(Student("ben")))
    if command == "ls submissions":
        hand_in(course / "submissions", laptop)
    if "--canvas" in command:
        names = sorted(path.stem.removeprefix("lab02_") for path in (course / "submissions").iterdir())
        rows = (f'"{name.title()}",{900 + place},{name},Section 1,\n' for place, name in enumerate(names))
        (course / "gradebook.csv").write_text(GRADEBOOK + "".join(rows), encoding="utf-8")


def hand_in(submissions: Path, laptop: Path) -> None:
    """Write what ten students hand in: good, half done, copied, empty, hostile and damaged notebooks."""
    everybody: Mapping[str, Write] = {
        "ana": right(Student("ana")),
        "chi": copied,
        "dia": right(Student("dia")),
        "eva": lambda key: SPEC.stubs[key],
        "fei": lambda key: HOSTILE if key == "lab02.t5" else SPEC.stubs[key],
        "gus": lambda key: f"while True: pass\n{SPEC.stubs[key]}" if key == "lab02.t2" else right(Student("gus"))(key),
        "hana": lambda key: SPEC.stubs[key] if TASKS[key].kind == "build" else right(Student("hana"))(key),
    }
    submissions.mkdir()
    for name, write in everybody.items():
        copy = start(LAB, submissions / name, name)
        answer(copy, write)
        pack(copy, submissions)
        shutil.rmtree(copy.parent)  # the packed file is in another folder
    (submissions / "lab02_ben.ipynb").write_bytes((laptop / "lab02_ben.ipynb").read_bytes())
    (submissions / "lab02_ian.ipynb").write_bytes((submissions / "lab02_ana.ipynb").read_bytes())  # a friend's work
    (submissions / "lab02_jo.ipynb").write_bytes((submissions / "lab02_dia.ipynb").read_bytes()[:2000])  # the upload was cut off


def answer(notebook: Path, write: Write) -> None:
    """Write answers into a student's copy, as in an editor."""
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        if key := cell["metadata"].get("hybridlab", {}).get("task"):
            cell["source"] = write(key)
    notebook.write_text(json.dumps(content), encoding="utf-8")


def right(student: Student) -> Write:
    """Return a function that writes the right answers of a student."""

    def write(key: str) -> str:
        asked = TASKS[key].personal(student.seed(key))
        if TASKS[key].kind == "number":
            (number,) = asked.data.numbers
            return f'check("{key}", {number.truth})'
        if TASKS[key].kind == "build":
            return in_own_words(honest_cell(key, asked.data.twist, asked.data.name, SPEC.solutions[key]), student.name)
        return SPEC.solutions[key]

    return write


def half(student: Student) -> Write:
    """Return a function that writes a student's answers, half of them right: one is wrong, one is empty, and one is the public solution."""

    def write(key: str) -> str:
        if key == "lab02.t2":
            asked = TASKS[key].personal(student.seed(key))
            return f'my_makespan = {asked.data.numbers[0].mistakes[0][0]}\ncheck("{key}", my_makespan)'
        if key in ("lab02.t4", "lab02.t5"):
            return SPEC.stubs[key] if key == "lab02.t4" else SPEC.solutions[key]
        return right(student)(key)

    return write


def copied(key: str) -> str:
    """Return the solution that is published."""
    return SPEC.solutions[key]


def refresh() -> None:
    """Store in the page what its commands print now."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        texts = map(str, run_blocks(blocks(page), Path(folder)))
        PAGE.write_text(BLOCK.sub(lambda block: next(texts), page), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["refresh"]:
        sys.exit(__doc__)
    refresh()
