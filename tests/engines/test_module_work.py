"""Test the training of torch modules over processes: the weights are those of torch's own training in one process.

torch is imported in the processes of the engine alone.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from cases import refusal

from hybridlab import FP16, FP32, REGISTRY, build
from hybridlab.engines import Group, ModuleWork, StepWork, run, trained_weights

pytestmark = [pytest.mark.torch, pytest.mark.slow]
STEPS, RATE, LAYERS = 3, 0.3, 8


class Stages:
    """The stages of tests/engines/torch_stages.py, which only a process with torch can import."""

    def __init__(self, stages: int) -> None:
        self.stages = stages

    def __call__(self, stage: int) -> Any:
        return import_module("torch_stages").Stages(self.stages)(stage)


def samples(*place: int) -> Any:
    return import_module("torch_stages").samples(*place)


def loss(*given: Any) -> Any:
    return import_module("torch_stages").loss(*given)


class Alone(StepWork):
    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    def result(self, rank: int) -> Any:
        return import_module("torch_stages").Alone(*self.sizes).result(rank)


@pytest.fixture(scope="module")
def group() -> Iterator[Group]:
    with Group("torch", 8) as group:
        yield group


def trained(name: str, devices: int, replicas: int, group: Group, wire: Any = None) -> tuple[Any, Any, int]:
    """Return the weights of all replicas, the losses of the steps and the number of microbatches."""
    family = REGISTRY[name]
    microbatches = next(m for m in (4, 8, 16) if family.refusal(devices, m, family.fewest_chunks) is None)
    schedule = build(name, devices, microbatches)
    work = ModuleWork(schedule, replicas, Stages(schedule.stages), samples, loss, learning_rate=RATE)
    results = run(schedule, work, engine=group, replicas=replicas, wire=wire, steps=STEPS).results
    return trained_weights(schedule, results), np.sum([each.losses for each in results], axis=0), microbatches


def alone(replicas: int, microbatches: int, group: Group) -> Any:
    return run(build("1f1b", 1, 1), Alone(replicas, microbatches, STEPS), engine=group).results[0]


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (4, 2)])
def test_the_weights_of_every_schedule_are_those_of_torch_in_one_process(size: tuple[int, int], group: Group) -> None:
    devices, replicas = size
    expected: dict[int, Any] = {}
    for name in sorted(REGISTRY):
        if REGISTRY[name].refusal(devices, 8, REGISTRY[name].fewest_chunks) is not None:
            continue  # two copies of the weights need two devices
        weights, losses, microbatches = trained(name, devices, replicas, group)
        if microbatches not in expected:
            expected[microbatches] = alone(replicas, microbatches, group)
        right, right_losses = expected[microbatches]
        np.testing.assert_allclose(weights, np.broadcast_to(right, weights.shape), rtol=0, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(losses, right_losses, rtol=1e-12, err_msg=name)


def test_a_wire_format_changes_the_weights_a_little_and_all_replicas_alike(group: Group) -> None:
    right, _ = alone(2, 4, group)
    errors = {}
    for wire in (FP32, FP16):
        weights, _, _ = trained("1f1b", 2, 2, group, wire)
        assert (weights[0] == weights[1]).all()
        errors[wire.name] = np.abs(weights[0] - right).max()
    assert 0 < errors["FP32"] < 1e-7 < errors["FP16"] < 1e-3


def test_arguments_that_are_no_functions_are_refused() -> None:
    schedule = build("1f1b", 2, 4)
    with refusal("wrong-type", "make_stage", 3):
        ModuleWork(schedule, 1, 3, samples, loss)  # type: ignore[arg-type]
    with refusal("out-of-range", "learning_rate", 0):
        ModuleWork(schedule, 1, Stages(2), samples, loss, learning_rate=0)
    with refusal("not-a-schedule", "1f1b"):
        ModuleWork("1f1b", 1, Stages(2), samples, loss)  # type: ignore[arg-type]
