"""Test that the right answer to a task about all schedules stays right after a student has registered one more schedule."""

from typing import Any

import numpy as np
import pytest
from solutions import solutions_of

from hybridlab import Costs, build, simulate
from hybridlab.arrays import Ints
from hybridlab.course.tasks import check
from hybridlab.schedules import Family, register

NAMES = {"title": "Another", "summary": "one more schedule", "source": "a student's"}
ABOUT_ALL = ("lab14.t2", "lab18.t1")  # the tasks whose answer is one of all schedules


def twelve_in_flight(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of a zero-bubble schedule between ZB-H1 and ZB-H2, whose devices hold 12 microbatches each."""
    device, microbatch = np.ogrid[:devices, :microbatches]
    warm_up = np.minimum(3 * (devices - device) // 2 + 1, 12)
    forward = device + 3 * microbatch
    return np.stack([forward, forward + 3 * warm_up - 2, forward + 3 * 12 - 1])


def breaks_down(devices: int, microbatches: int, chunks: int) -> Ints:
    """Stand for an unfinished rule, which nobody has handed in."""
    raise NotImplementedError


@pytest.mark.parametrize("rule", [twelve_in_flight, breaks_down])
@pytest.mark.parametrize("task", ABOUT_ALL)
def test_the_solution_passes_with_one_more_schedule_and_after_it_is_removed(task: str, rule: Any, families: dict[str, Family]) -> None:
    solution = solutions_of(task[:5])[task]
    register("another", **NAMES)(rule)
    assert check(task, solution).passed
    del families["another"]
    assert check(task, solution).passed


@pytest.mark.usefixtures("families")
def test_a_registered_schedule_that_is_shorter_and_fits_passes_as_well() -> None:
    register("another", **NAMES)(twelve_in_flight)
    run = simulate(build("another", 8, 24), Costs(forward=10, backward=20, weight_share=0.6, p2p=5))
    assert run.peak_activations.max() == 12
    assert run.makespan < 902
    assert check("lab18.t1", ("another", run.makespan)).passed
    assert check("lab18.t1", ("another", 902)).code == "wrong-length-of-step"


@pytest.mark.usefixtures("families")
def test_a_registered_schedule_that_does_not_suit_the_task_is_refused_alone() -> None:
    register("another", **NAMES, min_microbatches_per_device=9)(twelve_in_flight)
    assert check("lab18.t1", ("another", 902)).code == "unsupported-size"
    assert check("lab18.t1", ("zb-h1", 902)).passed
