"""Hidden cases are new, and public and hidden cases catch small changes of the worked solutions (see solution_mutants.py)."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import in_turn

from hybridlab.course.tasks import TASKS, Case

TOOL = Path(__file__).with_name("solution_mutants.py")
BUILDS = {key: known.instance(None).data for key, known in TASKS.items() if known.kind == "build"}
each_build = pytest.mark.parametrize("key", BUILDS)


@pytest.mark.slow
@each_build
def test_public_and_hidden_cases_catch_each_mutant_of_the_solution_that_is_not_listed_as_right(key: str) -> None:
    done = subprocess.run([sys.executable, str(TOOL), key], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def text_of(case: Case) -> str:
    """Return all that a table of results can know about a case: its arguments and, for functions among them, its words."""
    with np.printoptions(threshold=sys.maxsize):
        return re.sub(r" at 0x\w+", "", f"{case.words}: {case.arguments!r}")


@in_turn("key", BUILDS)
def test_at_least_half_of_the_hidden_cases_are_new(key: str) -> None:
    public = set(map(text_of, BUILDS[key].public_cases))
    hidden = [text_of(case) for case in BUILDS[key]._cases_of(1)]
    new = sum(case not in public for case in hidden)
    assert 2 * new >= len(hidden), f"only {new} of {len(hidden)} cases are new"
