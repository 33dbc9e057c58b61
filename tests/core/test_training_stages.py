"""Test the stages of a network as functions, and training by an executor of one's own that is built on them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st

from hybridlab import REGISTRY, build
from hybridlab.training import Network, loss_and_gradient, stage_functions, train, train_alone

WITH_WHOLE_BACKWARDS = ("gpipe", "1f1b", "eager-1f1b")  # and stage d on device d


def one_after_the_other(orders: Sequence[str], forward: Any, backward: Any, inputs: Sequence[Any]) -> tuple[float, list[Any]]:
    """Run each microbatch through all stages and back; the order is not that of the schedule."""
    total, sums = 0.0, [np.zeros(1) for _ in orders]
    for microbatch, value in enumerate(inputs):
        kept = []
        for stage in range(len(orders)):
            value, left = forward(stage, microbatch, value)
            kept.append(left)
        total += value
        gradient: Any = 1.0
        for stage in reversed(range(len(orders))):
            gradient, found = backward(stage, microbatch, gradient, kept[stage])
            sums[stage] = sums[stage] + found
    return total, sums


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3), st.sampled_from(["tanh", "relu"]), st.integers(0, 2**32 - 1))
def test_the_microbatches_of_the_stages_add_up_to_the_whole_batch(
    stages: int, microbatches: int, samples: int, activation: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    network = Network((3, 5, 4, 4, 2), activation)
    weights = rng.normal(size=network.parameters)
    inputs, labels = rng.normal(size=(microbatches, samples, 3)), rng.integers(0, 2, (microbatches, samples))
    cuts = np.cumsum([network.count(layers) for layers in network.stages(stages)])[:-1]
    functions = stage_functions(network, np.split(weights, cuts), labels)
    loss, gradients = one_after_the_other([""] * stages, *functions, list(inputs))
    expected, gradient = loss_and_gradient(network, weights, inputs.reshape(-1, 3), labels.ravel())
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(np.concatenate(gradients), gradient, rtol=1e-9, atol=1e-12)


@in_turn("name", WITH_WHOLE_BACKWARDS)
def test_training_by_an_executor_of_ones_own_ends_where_one_device_ends(name: str) -> None:
    given_orders = []

    def run(orders: Sequence[str], *others: Any) -> Any:
        given_orders.append(list(orders))
        return one_after_the_other(orders, *others)

    trained = train(build(name, 2, 4), 2, steps=5, run_pipeline=run)
    alone = train_alone(steps=5)
    assert np.abs(trained.replicas - alone.weights).max() < 1e-6
    np.testing.assert_allclose(trained.losses, alone.losses, rtol=1e-6)
    assert trained.peak_activations is None
    text = str(build(name, 2, 4)).splitlines()
    assert given_orders == [[line.partition(": ")[2] for line in text]] * 10  # 2 replicas, 5 steps


def test_an_executor_that_forgets_a_gradient_gives_other_weights() -> None:
    def halved(*given: Any) -> Any:
        loss, gradients = one_after_the_other(*given)
        return loss, [gradients[0] / 2, *gradients[1:]]

    off = train(build("1f1b", 2, 4), 2, steps=5, run_pipeline=halved).weights - train_alone(steps=5).weights
    assert np.abs(off).max() > 1e-3


@in_turn("name", [name for name in REGISTRY if name not in WITH_WHOLE_BACKWARDS])
def test_other_schedules_are_refused(name: str) -> None:
    with refusal("does-not-fit", "run_pipeline", name):
        train(build(name, 2, 4), 2, steps=1, run_pipeline=one_after_the_other)


@in_turn(
    "result, code",
    [
        (None, "wrong-shape"),
        ((1.0,), "wrong-shape"),
        ((1.0, 2.0), "wrong-shape"),
        ((1.0, [np.zeros(5080)]), "wrong-shape"),
        ((1.0, [np.zeros(5080), np.zeros(5080)]), "wrong-shape"),
        ((np.zeros(2), [np.zeros(5080), np.zeros(1642)]), "wrong-shape"),
        ((1.0, [np.zeros(5080), np.array(["a"] * 1642)]), "not-a-number"),
        ((float("nan"), [np.zeros(5080), np.zeros(1642)]), "diverged"),
    ],
)
def test_another_result_is_refused(result: Any, code: str) -> None:
    with refusal(code):
        train(build("1f1b", 2, 4), 1, steps=1, run_pipeline=lambda *given: result)


def test_what_is_no_executor_is_refused() -> None:
    with refusal("wrong-type", "run_pipeline"):
        train(build("1f1b", 2, 4), run_pipeline=3)  # type: ignore[arg-type]
    with refusal("not-a-list", "weights"):
        stage_functions(Network(), 3, np.zeros((1, 1), dtype=int))  # type: ignore[arg-type]
