"""The rule for tests that need torch: they run where it is installed, and ``HYBRIDLAB_TORCH=1`` makes a missing torch an error.

Such a test has the mark ``torch``, and its file can be imported without torch::

    pytestmark = pytest.mark.torch                  # for all tests of a file
    @pytest.mark.torch(since="2.15")                # for one test that needs a newer torch

It runs torch in a process of its own (:mod:`torch_start`), because importing torch takes seconds and gives warnings.
"""

import importlib.metadata
import os
import re
from collections.abc import Sequence

import pytest

OLDEST, TOO_NEW = (2, 13), (2, 16)  # the extra `torch` of pyproject.toml says the same


def installed() -> tuple[int, int] | None:
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


def must_be_there() -> None:
    """Raise an error if ``HYBRIDLAB_TORCH=1`` says that torch is installed, and it is not."""
    if os.environ.get("HYBRIDLAB_TORCH") == "1" and installed() is None:
        raise pytest.UsageError("HYBRIDLAB_TORCH=1 asks for the tests of torch, but no torch 2.13 to 2.15 is installed: make setup-torch")


def take_out(items: list[pytest.Item]) -> Sequence[pytest.Item]:
    """Remove the tests that need a torch that is not there from ``items``, and return them."""
    here = installed()
    kept: list[pytest.Item] = []
    out: list[pytest.Item] = []
    for item in items:
        missing = any(here is None or here < needed(mark) for mark in item.iter_markers("torch"))
        (out if missing else kept).append(item)
    items[:] = kept
    return out


def needed(mark: pytest.Mark) -> tuple[int, int]:
    """Return the version that a mark asks for."""
    return numbered(mark.kwargs.get("since", "2.13"))


def sentence(left_out: int) -> str:
    """Return the line that says how many tests were left out."""
    tests = f"{left_out} test{'s' * (left_out != 1)}"
    if installed() is None:
        return f"{tests} of torch left out: it is not installed (make setup-torch)"
    return f"{tests} of torch left out: the installed version is too old for them"
