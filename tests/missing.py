"""The rule for tests that need something beside Python's packages: where it is missing, they are left out, and one line says so.

Such a test, or its whole file, has a mark, and its file can be imported without what it needs::

    pytestmark = pytest.mark.needs("bwrap")          # for all tests of a file
    @pytest.mark.needs("node")                       # for one test
    @pytest.mark.torch(since="2.15")                 # torch has a mark of its own, so that -m torch finds its tests

In CI, where ``.ci/run`` installs what is missing, such a test fails instead. There are four exceptions: torch, whose tests are left out
unless ``HYBRIDLAB_TORCH=1`` says that it is installed, packages that run a sweep and that the project does not install, what only root can
do, and what the kernel of the system cannot do.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OLDEST, TOO_NEW = (2, 13), (2, 16)  # versions of torch; the extra `torch` of pyproject.toml says the same


@dataclass(frozen=True)
class Tool:
    """Something that tests need: whether it is here, what to say where it is not, and whether CI must have it."""

    here: Callable[[], bool]
    missing: str
    in_ci: bool = True


def bubblewrap_starts() -> bool:
    """Return whether bubblewrap is installed and the system lets it start: many containers do not."""
    program = shutil.which("bwrap")
    command = [str(program), "--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "true"]
    return program is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


def landlock_works() -> bool:
    """Return whether workers of the grader can run under Landlock here."""
    from hybridlab import HybridLabError
    from hybridlab.course.grading.landlock import require_landlock

    try:
        require_landlock()
    except HybridLabError:
        return False
    return True


def a_browser_is_here() -> bool:
    from browser import program  # the room of the site has the rule

    return program() is not None


def node_is_here() -> bool:
    from node import program  # the room of the widgets has the rule

    return program() is not None


TOOLS = {
    "axe": Tool(
        lambda: (ROOT / "tests/node_modules/axe-core").is_dir(), "axe-core is not installed (npm ci --prefix tests, or make site-check)"
    ),
    "browser": Tool(a_browser_is_here, "there is no Chromium on the path (apt-get install chromium, or name Chrome's program in CHROMIUM)"),
    "bwrap": Tool(bubblewrap_starts, "bubblewrap is not installed, or may not start here (as root: .ci/sandbox)"),
    **{
        name: Tool(lambda name=name: find_spec(name) is not None, f"{name} is not installed (pip install {name})", in_ci=False)  # type: ignore[misc]
        for name in ("executorlib", "parsl", "ray")
    },
    "git": Tool(lambda: shutil.which("git") is not None, "git is not installed (apt-get install git)"),
    "landlock": Tool(landlock_works, "this system has no Landlock (a newer Linux)", in_ci=False),
    "node": Tool(node_is_here, "node is not installed (make lint)"),
    "root": Tool(lambda: os.geteuid() == 0, "only root can do this (sudo)", in_ci=False),
}
here = cache(lambda name: TOOLS[name].here())


def torch_installed() -> tuple[int, int] | None:
    """Return the version of torch, such as (2, 13), or None if there is none or its version is not one of those that the tests know."""
    try:
        found = numbered(importlib.metadata.version("torch"))
    except importlib.metadata.PackageNotFoundError:
        return None
    return found if OLDEST <= found < TOO_NEW else None


def numbered(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version.

    >>> numbered("2.13.0+cpu")
    (2, 13)
    """
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def torch_must_be_there() -> None:
    """Raise an error if ``HYBRIDLAB_TORCH=1`` says that torch is installed, and it is not."""
    if os.environ.get("HYBRIDLAB_TORCH") == "1" and torch_installed() is None:
        raise pytest.UsageError("HYBRIDLAB_TORCH=1 asks for the tests of torch, but no torch 2.13 to 2.15 is installed: make setup-torch")


def needed(item: pytest.Item) -> Iterator[str]:
    """Yield a sentence for each thing that a test needs and that is missing."""
    for mark in item.iter_markers("needs"):
        yield from (TOOLS[name].missing for name in mark.args if not here(name))
    for mark in item.iter_markers("torch"):
        if (torch := torch_installed()) is None:
            yield "torch is not installed (make setup-torch)"
        elif torch < numbered(mark.kwargs.get("since", "2.13")):
            yield "the installed torch is too old (make setup-torch)"


def take_out(items: list[pytest.Item]) -> Counter[str]:
    """Remove the tests that need what is missing from ``items``, and return how many, by the first sentence that holds for each.

    In CI, tests stay where the machine must have what they need. :func:`must_be_here` lets them fail.
    """
    kept: list[pytest.Item] = []
    out: Counter[str] = Counter()
    for item in items:
        why = next(needed(item), None)
        if why is None or must_have(item):
            kept.append(item)
        else:
            out[why] += 1
    items[:] = kept
    return out


def must_have(item: pytest.Item) -> list[str]:
    """Return the sentences for what a test needs, CI must have, and is missing."""
    if not os.environ.get("CI"):
        return []
    asked = [name for mark in item.iter_markers("needs") for name in mark.args]
    return [TOOLS[name].missing for name in asked if TOOLS[name].in_ci and not here(name)]


def must_be_here(item: pytest.Item) -> None:
    """Let a test fail in CI if what it needs is missing."""
    if missing := must_have(item):
        pytest.fail(f"in CI no test is left out, but {missing[0]}", pytrace=False)


def lines(left_out: Counter[str]) -> list[str]:
    """Return a line for each thing that is missing, with the number of tests that were left out.

    >>> lines(Counter({"node is not installed (make lint)": 2}))
    ['2 tests left out: node is not installed (make lint)']
    """
    return [f"{count} test{'s' * (count != 1)} left out: {why}" for why, count in sorted(left_out.items())]
