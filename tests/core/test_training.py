"""Test that training on a mesh equals training on one device, operation by operation, for every schedule of the registry."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from strategies import Size, crossing_orders, sizes

from hybridlab import BF16, E4M3, E5M2, FP16, FP32, INT4, INT8, REGISTRY, Costs, HybridLabError, Op, Schedule, WireFormat, build, simulate
from hybridlab.arrays import Floats
from hybridlab.collectives import ring_all_reduce
from hybridlab.training import DataSet, Executor, Network, Trained, digits, in_running_order, loss_and_gradient, train, train_alone
from hybridlab.training import stages as stages_module
from hybridlab.training import training as training_module
from hybridlab.training.alone import generators

WIRES = (
    FP32,
    FP16,
    BF16,
    INT8,
    WireFormat("INT8", block=64),
    WireFormat("INT8", stochastic=True),
    INT4,
    WireFormat("INT4", block=3),
    E4M3,
    E5M2,
)


def schedules(devices: int, microbatches: int) -> list[Schedule]:
    """Return every schedule of the registry that supports this size."""
    fitting = [name for name, family in REGISTRY.items() if family.refusal(devices, microbatches, family.fewest_chunks) is None]
    return [build(name, devices, microbatches) for name in fitting]


def executed(schedule: Schedule, network: Network, replicas: int = 2, samples: int = 2, seed: int = 0) -> tuple[Executor, Any]:
    """Run one step of random data through a schedule; return it with the losses and gradients of a single device.

    There is one loss for each replica, and one gradient for each copy of each replica. The gradient is that of the mean loss over the
    samples of this copy.
    """
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(replicas, schedule.microbatches, samples, network.sizes[0]))
    labels = rng.integers(0, network.sizes[-1], inputs.shape[:-1])
    weights = np.stack([network.initial(rng) for _ in range(replicas * schedule.copies)])  # all values differ, so that a wrong use is found
    ends = np.cumsum([network.count(layers) for layers in network.stages(schedule.stages)])[:-1]
    step = Executor(network, np.split(weights, ends, axis=1), sum(schedule.paths, ()), inputs, labels, schedule.copy_of)
    found = []
    for row, flat in enumerate(weights):
        replica, copy = divmod(row, schedule.copies)
        mine = [microbatch for microbatch in range(schedule.microbatches) if schedule.copy_of[microbatch] == copy]
        assert len(mine) * schedule.copies == schedule.microbatches, "every copy trains with equally many microbatches"
        samples_seen = inputs[replica, mine].reshape(-1, network.sizes[0])
        found.append(loss_and_gradient(network, flat, samples_seen, labels[replica, mine].ravel()))
    losses, gradients = zip(*found, strict=True)
    return step, (np.reshape(losses, (replicas, -1)).mean(axis=1), gradients)


def agrees(step: Executor, alone: Any) -> None:
    losses, gradients = alone
    np.testing.assert_allclose(np.concatenate(step.gradients, axis=1), gradients, rtol=0, atol=1e-13)
    np.testing.assert_allclose(step.losses, losses, rtol=0, atol=1e-13)


@examples(60)
@given(sizes(), st.sampled_from(["tanh", "relu"]), st.integers(0, 3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_gradients_are_those_of_one_device(size: Size, activation: str, more: int, replicas: int, seed: int) -> None:
    schedule = size.build()
    widths = np.random.default_rng(seed).integers(1, 6, schedule.stages + more - 1 or 1)
    network = Network((5, *widths.tolist(), 3), activation)
    step, alone = executed(schedule, network, replicas, seed=seed)
    step.run(in_running_order(schedule))
    agrees(step, alone)


@examples(60)
@given(sizes(), st.randoms(use_true_random=False))
def test_activations_held_are_the_peak_of_the_schedule(size: Size, rng: Any) -> None:
    schedule = size.build()
    network = Network((3,) * (schedule.stages + 1))
    step, alone = executed(schedule, network, replicas=1, samples=1)
    # Devices advance in any order that the mailboxes allow, not slot by slot. Each keeps its own order.
    left = [list(order) for order in schedule.orders]
    done: set[Op] = set()
    held = np.zeros(schedule.devices)

    def running() -> Any:
        while any(left):
            ready = [device for device, order in enumerate(left) if order and done.issuperset(schedule.needs(order[0]))]
            op = left[rng.choice(ready)].pop(0)
            yield op
            done.add(op)
            now = [schedule.paths[schedule.copy_of[microbatch]][stage] for stage, microbatch in (*step._activations, *step._halfway)]
            np.maximum(held, np.bincount(now, minlength=schedule.devices) / schedule.chunks, out=held)

    step.run(running())
    agrees(step, alone)
    expected = simulate(schedule, Costs(forward=1, backward=2)).peak_activations
    assert step.peak_activations.tolist() == held.tolist() == expected.tolist()


@in_turn("devices, microbatches, replicas", [(4, 4, 1), (2, 4, 3), (1, 1, 5), (4, 2, 3)])
def test_steps_with_fp32_messages_equal_one_device(devices: int, microbatches: int, replicas: int) -> None:
    equal_one_device(devices, microbatches, replicas, steps=3)


@pytest.mark.slow
@in_turn("devices, microbatches, replicas", [(4, 8, 4), (4, 4, 1), (2, 4, 3), (1, 1, 5), (1, 4, 1), (4, 2, 3)])
def test_twenty_steps_with_fp32_messages_equal_one_device(devices: int, microbatches: int, replicas: int) -> None:
    equal_one_device(devices, microbatches, replicas, steps=20)


def equal_one_device(devices: int, microbatches: int, replicas: int, steps: int) -> None:
    layers = max(8, *(schedule.stages for schedule in schedules(devices, microbatches)))
    network = Network((64, *[24] * (layers - 1), 10))
    setting: dict[str, Any] = {"network": network, "batch": 32 * replicas, "steps": steps, "seed": 3}
    alone = train_alone(**setting)
    for schedule in schedules(devices, microbatches):
        trained = train(schedule, replicas, **setting)
        assert np.abs(trained.replicas - alone.weights).max() < 1e-6
        np.testing.assert_allclose(trained.losses, alone.losses, atol=1e-6)
        assert (trained.peak_activations == simulate(schedule, Costs(forward=1, backward=2)).peak_activations).all()


@examples(25)
@given(schedule=crossing_orders(), replicas=st.integers(1, 2))
def test_copies_on_any_paths_train_what_one_device_trains(schedule: Schedule, replicas: int) -> None:
    """One copy may have more microbatches than another."""
    layers = Network((64, *[8] * (schedule.stages - 1), 10))
    setting: dict[str, Any] = {"network": layers, "batch": 4 * replicas * schedule.microbatches, "steps": 5}
    trained = train(schedule, replicas, **setting)
    assert trained.replicas.shape == (replicas * schedule.copies, layers.parameters)
    assert np.abs(trained.replicas - train_alone(**setting).weights).max() < 1e-6
    assert not trained.spread.any()
    assert (trained.peak_activations == simulate(schedule, Costs(forward=1, backward=2)).peak_activations).all()


def test_every_schedule_of_the_registry_takes_part() -> None:
    assert {schedule.name for schedule in schedules(4, 8)} == set(REGISTRY)
    assert {"W", "I"} <= {op.kind.value for schedule in schedules(4, 8) for op in schedule.ops}


def test_without_a_ring_nothing_is_lost_at_all() -> None:
    trained, alone = train(build("zb-h1", 4, 8), 1, steps=20), train_alone(steps=20)
    assert np.abs(trained.weights - alone.weights).max() < 1e-13
    assert trained.bytes_sent == 0


SIZES = {"1f1b": (3, 2), "dualpipe": (2, 4), "chimera": (4, 4)}


@in_turn("name, wires", [("1f1b", WIRES), ("dualpipe", WIRES[3:4]), ("chimera", WIRES[5:])])
@in_turn("feedback", [False, True])
def test_all_holders_have_the_same_bits_after_every_step(name: str, wires: tuple[WireFormat, ...], feedback: bool) -> None:
    for wire in wires:
        the_same_bits(name, wire, feedback, steps=3)


@pytest.mark.slow
@in_turn("name", SIZES)
@in_turn("wire", WIRES)
@in_turn("feedback", [False, True])
def test_all_holders_have_the_same_bits_in_every_format_and_learn(name: str, wire: WireFormat, feedback: bool) -> None:
    assert the_same_bits(name, wire, feedback, steps=10).accuracy > 0.3


def the_same_bits(name: str, wire: WireFormat, feedback: bool, steps: int) -> Trained:
    schedule = build(name, *SIZES[name])
    trained = train(schedule, 4, wire=wire, error_feedback=feedback, steps=steps, batch=64)
    assert len(trained.replicas) == 4 * schedule.copies
    assert trained.spread.tolist() == [0.0] * steps
    assert (trained.replicas == trained.replicas[0]).all()
    return trained


@in_turn("wire", WIRES)
def test_the_same_seed_gives_the_same_bits_and_leaves_numpys_own_generator_alone(wire: WireFormat) -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002 - the test is about the global generator
    first, again, other = (train(build("1f1b", 2, 2), 3, wire=wire, steps=2, batch=60, seed=seed) for seed in (7, 7, 8))
    assert (first.replicas == again.replicas).all()
    assert (first.losses == again.losses).all()
    assert (first.weights != other.weights).any()
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002


def test_the_seed_reaches_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stochastic rounding draws from the third generator of the seed, and all rings of a run use this one generator."""
    states: list[Any] = []

    def watched(*given: Any, rng: np.random.Generator, **named: Any) -> Any:
        states.append(rng.bit_generator.state)
        return ring_all_reduce(*given, rng=rng, **named)

    monkeypatch.setattr(training_module, "ring_all_reduce", watched)
    for seed in (7, 8):
        states.clear()
        train(build("1f1b", 2, 2), 3, wire=WireFormat("INT8", stochastic=True), steps=1, batch=60, seed=seed)
        assert states[0] == generators(seed)[2].bit_generator.state
        assert states[0] != states[1]


def test_what_the_wire_has_lost_is_sent_in_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    given, left = list[Any](), list[Any]()  # for each step and each stage

    def watched(*arguments: Any, residual: Any, **named: Any) -> Any:
        result = ring_all_reduce(*arguments, residual=residual, **named)
        given.append(residual)
        left.append(result.residual)
        return result

    monkeypatch.setattr(training_module, "ring_all_reduce", watched)
    train(build("1f1b", 2, 2), 3, wire=INT8, error_feedback=True, steps=2, batch=60)
    assert [each.any() for each in given] == [False, False, True, True]
    assert [each.tolist() for each in given[2:]] == [each.tolist() for each in left[:2]]


def test_digits_in_the_order_of_their_labels_train_the_same_network() -> None:
    alone, sorted_ = train_alone(steps=20), train(build("1f1b", 2, 4), 4, steps=20, by_label=True)
    assert np.abs(sorted_.weights - alone.weights).max() < 1e-6


def test_bytes_are_those_of_the_ring() -> None:
    network = Network((64, 32, 10))
    for wire, number in [(FP32, 4), (FP16, 2), (INT8, 1)]:
        trained = train(build("gpipe", 2, 2), 5, wire=wire, network=network, steps=1, batch=40)
        scales = 4 * 2 * (5 - 1) * 5 * 2 if wire is INT8 else 0  # 4 bytes a message, 2(D-1) messages a rank, 5 ranks, 2 stages
        assert trained.bytes_sent == number * 2 * (5 - 1) * network.parameters + scales
        both = train(build("chimera", 2, 2), 3, wire=wire, network=network, steps=1, batch=42)
        scales = 4 * 2 * (6 - 1) * 6 * 2 if wire is INT8 else 0  # rings of 6: two copies of 3 replicas
        assert both.bytes_sent == number * 2 * (6 - 1) * network.parameters + scales


def test_the_all_reduce_is_given_a_row_a_holder() -> None:
    seen: list[Any] = []

    def mean(gradients: Floats) -> Any:
        seen.append(gradients)
        return np.tile(gradients.mean(axis=0), (len(gradients), 1))

    network = Network((64, 32, 10))
    train(build("chimera", 2, 2), 3, all_reduce=mean, network=network, steps=1, batch=42)
    assert [each.shape for each in seen] == [(6, network.count((stage,))) for stage in (0, 1)]
    assert all((each[row] != each[row + 1]).any() for each in seen for row in range(5)), "each row has seen other samples"


def wrong(order: list[Op], *, first: str, second: str) -> list[Op]:
    places = [order.index(Op.parse(text)) for text in (first, second)]
    order[places[0]], order[places[1]] = order[places[1]], order[places[0]]
    return order


@in_turn(
    "name, first, second, words",
    [
        ("1f1b", "0F0", "1F0", ["1F0", "the forward of microbatch 0 on stage 1", "no input"]),
        ("1f1b", "0F0", "0B0", ["0B0", "the backward of microbatch 0 on stage 0", "its forward"]),
        ("1f1b", "1B1", "2B1", ["1B1", "the backward of microbatch 1 on stage 1", "stage 2"]),
        ("zb-h1", "1I0", "1W0", ["1W0", "the weight gradient of microbatch 0 on stage 1", "its input gradient"]),
        ("zb-h1", "0I1", "1I1", ["0I1", "the input gradient of microbatch 1 on stage 0", "stage 1 "]),
    ],
)
def test_an_operation_before_its_input_is_refused(name: str, first: str, second: str, words: list[str]) -> None:
    schedule = build(name, 3, 2)
    step, _ = executed(schedule, Network((4, 3, 3, 3)))
    with refusal("too-early", *words):
        step.run(wrong(list(in_running_order(schedule)), first=first, second=second))


@examples(60)
@given(sizes(), st.randoms(use_true_random=False))
def test_any_two_operations_swapped_raise_or_change_nothing(size: Size, rng: Any) -> None:
    schedule = size.build()
    order = list(in_running_order(schedule))
    one, other = (rng.randrange(len(order)) for _ in range(2))
    order[one], order[other] = order[other], order[one]
    ends = {op: place for place, op in enumerate(order)}
    runs = all(ends[need] < place for op, place in ends.items() for need in schedule.needs(op))
    step, alone = executed(schedule, Network((3,) * (schedule.stages + 1)), replicas=1, samples=1)
    if runs:
        step.run(order)
        agrees(step, alone)
    else:
        with refusal("too-early"):
            step.run(order)


@in_turn("change", [lambda ops: ops[:-1], lambda ops: ops[1:], lambda ops: [*ops, ops[-1]], lambda ops: [ops[0], *ops]])
def test_an_operation_that_is_missing_or_doubled_is_refused(change: Callable[[list[Op]], list[Op]]) -> None:
    for schedule in schedules(2, 2):
        step, _ = executed(schedule, Network((4, 3, 3, 3, 3)))
        with pytest.raises(HybridLabError) as caught:
            step.run(change(list(in_running_order(schedule))))
        assert caught.value.code in ("too-early", "unfinished")


def test_what_is_not_finished_is_named() -> None:
    step, _ = executed(build("1f1b", 2, 2), Network((4, 3, 3)))
    with refusal("unfinished", "microbatch 1", "stage 0"):
        step.run([op for op in in_running_order(build("1f1b", 2, 2)) if str(op) != "0B1"])


@in_turn("junk", [None, "0F0", ("F", 0, 0), Op.parse("9F0"), Op._make((None, 0, 0)), Op._make(("F", 0, [0]))])
def test_what_is_no_operation_is_refused(junk: Any) -> None:
    step, _ = executed(build("1f1b", 2, 2), Network((4, 3, 3)))
    with refusal("unknown-operation", "2 stages"):
        step.run([junk])


# Planted bugs: each must change the weights by far more than the tolerance, or make replicas differ.
MEANS: dict[str, Callable[[Floats], Any]] = {
    "the ring does not sum": lambda gradients: gradients,
    "a sum for a mean": lambda gradients: np.tile(gradients.sum(axis=0), (len(gradients), 1)),
    "one replica misses a number": lambda gradients: (
        np.where(np.arange(len(gradients))[:, None] == 2, 1 + 1e-9, 1) * gradients.mean(axis=0)
    ),
    "a replica is left out": lambda gradients: np.tile(gradients[1:].mean(axis=0), (len(gradients), 1)),
}


STEPS = 4


@pytest.fixture(scope="module")
def found() -> Callable[[Trained], bool]:
    """A function that tells whether training differs from that on one device."""
    alone = train_alone(steps=STEPS)
    return lambda trained: bool(np.abs(trained.replicas - alone.weights).max() > 1e-6 or trained.spread.any())


@in_turn("schedule, replicas", [(build("1f1b", 2, 4), 4), (build("chimera", 2, 4), 2)])
def test_a_planted_fault_of_the_all_reduce_is_found(found: Callable[[Trained], bool], schedule: Schedule, replicas: int) -> None:
    for name, mean in MEANS.items():
        assert found(train(schedule, replicas, steps=STEPS, all_reduce=mean)), name
    assert not found(train(schedule, replicas, steps=STEPS))


def test_a_planted_fault_of_the_executor_is_found(found: Callable[[Trained], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bug in {
        "slope": lambda outputs, activation: np.ones_like(outputs),
        "activated": lambda sums, activation: np.tanh(sums + 1e-4),
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(stages_module, name, bug)
            assert found(train(build("zb-h1", 2, 4), 4, steps=STEPS)), name


def test_nothing_changes_its_inputs() -> None:
    parts = [getattr(digits(), name).copy() for name in ("inputs", "labels", "held_out_inputs", "held_out_labels")]
    given = [part.copy() for part in parts]
    data = DataSet(*given)
    train(build("1f1b", 2, 4), 2, data=data, steps=2)
    train_alone(data=data, steps=2)
    assert all((old == new).all() and new.flags.writeable for old, new in zip(parts, given, strict=True))
    step, _ = executed(build("1f1b", 2, 2), Network((4, 3, 3)))
    layers = [layer for stage in step._stages for layer in stage.layers]
    before = [layer.matrix.copy() for layer in layers]
    step.run(in_running_order(build("1f1b", 2, 2)))
    assert all((old == layer.matrix).all() for old, layer in zip(before, layers, strict=True))
