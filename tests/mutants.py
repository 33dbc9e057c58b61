"""Plant small faults, one at a time, in copies of the project, and tell which size of the checks finds each: `python tests/mutants.py`.

``tests/mutants.toml`` lists the faults: the file, its old text and the new one, the room whose tests must find it, and the size of the
checks that must: ``kernel`` (quick tests of the core), ``test`` (quick tests of the room), or ``check`` (all tests of the room). For the
site, the site is built again first. Arguments choose faults by their names or rooms: ``python tests/mutants.py core``.

A copy without a fault must pass first, because otherwise a fault would seem to be found.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/mutants.toml"
SIZES = {"kernel": (), "test": (), "check": ("-m", "", "--hypothesis-profile=full")}  # what pytest is told
LEFT_OUT = (".git", "dist", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__")
BESIDE = (".venv", "tests/node_modules")  # copies share them
LONGEST = 1800  # seconds; a fault can make a loop endless
BUILD_SITE = (  # as `make book`
    [".venv/bin/jupyter-book", "build", ".", "-W", "-n", "--keep-going", "--all", "--quiet"],
    [".venv/bin/python", "book/lite.py"],
)

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Mutant:
    """A fault: the text of a file that it changes, and which tests must find it."""

    name: str
    file: str
    old: str
    new: str
    room: str
    size: str

    def planted(self, text: str) -> str:
        """Return the text with the fault; its old text must stand there once."""
        if text.count(self.old) != 1:
            raise SystemExit(f"{self.name}: its old text stands {text.count(self.old)} times in {self.file}; it must stand there once")
        return text.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """Return all faults of the list."""
    return [Mutant(**row) for row in tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]]


def copied(folder: Path) -> Path:
    """Return a copy of the project in ``folder``, without the list of faults and the test that reads it: that test finds every fault."""
    top = folder / "project"
    shutil.copytree(ROOT, top, ignore=shutil.ignore_patterns(*LEFT_OUT, ".venv", "node_modules"))
    for name in BESIDE:
        (top / name).symlink_to(ROOT / name)
    for name in ("tests/mutants.toml", "tests/mutants.py", "tests/core/test_mutants.py"):
        (top / name).unlink(missing_ok=True)
    return top


def found_by(top: Path, room: str, size: str) -> str | None:
    """Return the first test of a room that fails in a copy of the project, or None if all pass."""
    setting = {name: value for name, value in os.environ.items() if name != "CI"}
    setting |= {"PYTHONPATH": str(top), "OPENBLAS_NUM_THREADS": "1", "HYBRIDLAB_MUTANTS": "1"}
    for command in BUILD_SITE if room == "site" else ():
        if subprocess.run(command, cwd=top, env=setting, capture_output=True, check=False).returncode:
            return "the build of the site"
    tests = [*SIZES[size], "-x", "-q", "-p", "no:cacheprovider", f"tests/{room}"]
    command = [sys.executable, "-m", "pytest", *tests]
    try:
        ran = subprocess.run(command, cwd=top, env=setting, capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return f"the tests do not end within {LONGEST} s"
    if ran.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, flags=re.MULTILINE)
    return failed[1] if failed else f"pytest ended with {ran.returncode}: {ran.stdout[-300:]}{ran.stderr[-300:]}"


@contextmanager
def planted(top: Path, mutant: Mutant) -> Iterator[None]:
    """Plant a fault in a copy for a while."""
    path = top / mutant.file
    kept = path.read_bytes()
    path.write_text(mutant.planted(kept.decode()), encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(kept)


def tried(top: Path, mutant: Mutant) -> tuple[str, str]:
    """Return the smallest size of the checks that finds a fault, and the test; the size is ``none`` if none does."""
    with planted(top, mutant):
        for size in ("kernel" if mutant.room == "core" else "test", "check"):
            if (size == "check" or mutant.room != "site") and (test := found_by(top, mutant.room, size)):
                return size, test
    return "none", ""


def chosen(words: Sequence[str]) -> list[Mutant]:
    """Return the faults whose name or room is one of these words; all of them without a word."""
    found = [each for each in mutants() if not words or {each.name, each.room} & set(words)]
    if not found:
        raise SystemExit(f"no fault and no room has the name {', '.join(words)}")
    return found


def told(mutant: Mutant, size: str) -> tuple[str, bool]:
    """Return in words which size has found a fault, and whether it should have."""
    order = [*SIZES, "none"]
    late = order.index(size) > order.index(mutant.size)
    return ("lost" if size == "none" else f"{size}, too late" if late else size), not late


class Copies:
    """Copies of the project, each used by one fault at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            self._free.put(copied(folder / f"copy {number}"))

    def ask(self, question: Callable[[Path], Answer]) -> tuple[Answer, float]:
        """Return what the question says of a free copy, and how many seconds it took."""
        top, begun = self._free.get(), time.monotonic()
        try:
            return question(top), time.monotonic() - begun
        finally:
            self._free.put(top)


def main(words: Sequence[str]) -> int:
    """Try the chosen faults, several at a time; return 1 if one was not found by its size, otherwise 0."""
    faults, lost = chosen(words), []
    rooms = list(dict.fromkeys(each.room for each in faults))
    processes, widest = os.cpu_count() or 1, max(len(each.name) for each in faults)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        copies = Copies(Path(folder), processes)
        without = pool.map(lambda room: copies.ask(partial(found_by, room=room, size="check" if room == "site" else "test")), rooms)
        for room, (test, seconds) in zip(rooms, without, strict=True):
            print(f"tests/{room} without a fault: {f'{test} fails' if test else 'all pass'} ({seconds:.0f} s)", flush=True)
            if test:
                return 1
        for mutant, ((size, test), seconds) in zip(
            faults, pool.map(lambda each: copies.ask(partial(tried, mutant=each)), faults), strict=True
        ):
            words_for_it, in_time = told(mutant, size)
            lost += [mutant.name] * (not in_time)
            print(f"{mutant.room:<9}{mutant.name:<{widest}}  {words_for_it:<18}{seconds:>5.0f} s  {test}", flush=True)
    print(f"{len(faults) - len(lost)} of {len(faults)} faults were found by the size that must find them.")
    print(f"Not: {', '.join(lost)}." if lost else "No fault was lost.")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
