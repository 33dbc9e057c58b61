"""Test the examples "Add a task" of CONTRIBUTING: they run as they are printed, and their tasks pass the tests of all tasks."""

import doctest
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hybridlab.course.checking import checking
from hybridlab.course.tasks import TASKS, check
from hybridlab.formulas import peak_activations

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = GUIDE[GUIDE.index("## Add a task") : GUIDE.index("## Add or change a widget")]
NUMBER, BUILD = "lab03.t97", "lab03.t98"


@pytest.fixture(autouse=True)
def _guide() -> Iterator[None]:
    example = doctest.DocTestParser().get_doctest(SECTION, {"__name__": "guide"}, "guide", "CONTRIBUTING.md", 0)
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, clear_globs=False)
    assert results.attempted > 10
    assert results.failed == 0
    yield
    for key in (NUMBER, BUILD):
        del checking._TASKS[key]


def test_the_task_with_a_number_takes_numbers_from_a_seed() -> None:
    for seed in range(50):
        (time,) = TASKS[NUMBER].instance(seed).data.numbers
        assert check(NUMBER, time.truth, seed=seed).passed
        assert {check(NUMBER, value, seed=seed).code for value, _, _ in time.mistakes} == {"k-for-k-1", "fill-alone", "drain-alone"}


def test_the_build_passes_a_right_function_and_names_its_mistakes() -> None:
    def right(devices: int, microbatches: int) -> list[int]:
        return [min(devices - device, microbatches) for device in range(devices)]

    assert right(3, 2) == [peak_activations("1f1b", 3, 2, device) for device in range(3)]
    assert check(BUILD, right).passed
    assert check(BUILD, lambda devices, microbatches: np.arange(devices) + 1).code == "reversed"
    assert check(BUILD, lambda devices, microbatches: right(devices, microbatches)[:2]).code == "another-size"
