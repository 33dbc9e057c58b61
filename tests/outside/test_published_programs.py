"""Test the published simulator against the programs themselves, for any size, and the stored runs against fresh ones."""

import ast
import json
import re
from itertools import product

import numpy as np
import published_programs as programs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from profiles import examples

from hybridlab.course.published import Simulation, simulator
from hybridlab.course.published.simulator import MODULES

PROGRAM = "hybrid-simulator.txt"


def test_the_stored_runs_are_those_of_the_program() -> None:
    """If this fails, `python tests/outside/published_programs.py` stores them again."""
    stored, fresh = json.loads(programs.FILE.read_text(encoding="utf-8")), programs.recorded()
    assert len(stored["runs"]) == len(fresh["runs"])
    for ours, theirs in zip(stored["runs"], fresh["runs"], strict=True):
        assert ours.pop("weight_difference") == pytest.approx(theirs.pop("weight_difference"), rel=1e-6)
        assert ours == theirs
    assert stored.keys() == fresh.keys()


def check(run: Simulation, theirs: object, printed: str) -> None:
    """Raise where the library's run differs from that of the program."""
    assert f"Total Communication Bytes: {run.comm_bytes}" in printed
    assert f"Prediction Accuracy: {run.accuracy:.2f}%" in printed
    assert run.weight_difference == pytest.approx(programs.apart(theirs), rel=1e-6)
    assert [" ".join(row) for row in run.timeline] == programs.timeline(theirs)


def test_the_modules_are_all_that_the_program_imports() -> None:
    imports = [node for node in ast.walk(ast.parse(programs.text_of(PROGRAM))) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [name.name for node in imports for name in node.names] == list(MODULES)


@examples(100)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(1, 6)),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["INT8", "FP16"]),
)
@example((1, 1, 1, 1), 0, "INT8")
@example((4, 3, 2, 1), 0, "FP16")
def test_a_run_of_any_size_equals_that_of_the_program(size: tuple[int, int, int, int], seed: int, mode: str) -> None:
    k, d, m, width = size
    check(simulator(k, d, m, d * width, mode, seed), *programs.run(PROGRAM, seed, mode, K=k, D=d, M=m, GRAD_SIZE=d * width))


@examples(100)
@given(st.integers(0, 2**32 - 1), st.sampled_from([-3, -0.25, 0, 0.01, 0.5, 7]), st.sampled_from(["INT8", "FP16"]))
def test_a_run_from_any_weight_equals_that_of_the_program(seed: int, weight: float, mode: str) -> None:
    check(simulator(comm_mode=mode, seed=seed, initial_weight=weight), *programs.run(PROGRAM, seed, mode, weight=weight))


def test_the_events_are_those_of_the_second_program() -> None:
    """The second program adds a gradient in 8 steps, the first one in 6, so that its replicas differ a little more."""
    theirs, printed = programs.run("event-timeline.txt", seed=0)
    run = simulator(seed=0)
    assert [(time, rank, event) for time, rank, _, event in run.events] == theirs.timeline
    assert f"Total Communication Bytes = {run.comm_bytes}" in printed
    apart = [float(number) for number in re.findall(r"Max Weight Difference = (\S+)", printed)]
    assert np.mean(apart) == pytest.approx(np.mean(run.weight_difference) * np.sqrt(8 / 6), rel=0.2)


def test_the_program_itself_is_mended_by_one_chunk() -> None:
    """With this change, the weights after the step are 1 - 0.01 x the mean of the random gradients. Without it they are not."""
    draw = np.random.RandomState(5)
    drawn = np.zeros((12, 120), dtype=np.float32)
    for step, rank in product(range(8), range(12)):
        if 0 <= step - (2 - rank % 3) < 6:
            drawn[rank] += draw.standard_normal(120).astype(np.float32)
    for mend, (least, most) in {True: (0, 5e-4), False: (0.02, 1)}.items():
        theirs, _ = programs.run(PROGRAM, 5, "INT8", mend)
        error = [np.abs(theirs.stage_groups[s][0].weight - (1 - 0.01 * drawn[s::3].mean(axis=0))).max() for s in range(3)]
        assert least <= min(error) <= max(error) <= most
