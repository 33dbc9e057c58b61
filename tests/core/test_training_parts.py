"""Test the data, the network and the single device with which hybrid training is compared, and what training refuses."""

from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk
from profiles import examples

from hybridlab import FP16, INT8, HybridLabError, Schedule, build
from hybridlab.step.replicas import replicate
from hybridlab.training import (
    DataSet,
    Executor,
    Network,
    accuracy_check,
    batches,
    digits,
    in_running_order,
    loss_and_gradient,
    random_text,
    train,
    train_alone,
)
from hybridlab.training import data as data_module


def test_the_words_of_a_text_follow_zipfs_law_and_their_usual_next_words() -> None:
    for seed in (0, 1):
        text = random_text(seed)
        word = np.append(text.inputs.argmax(axis=1), text.held_out_inputs.argmax(axis=1))
        following = np.append(text.labels, text.held_out_labels)
        assert (np.append(text.inputs, text.held_out_inputs, axis=0).sum(axis=1) == 1).all()
        counts = np.sort(np.bincount(word, minlength=128))[::-1] / word.size
        expected = 1 / np.arange(1, 129) / (1 / np.arange(1, 129)).sum()
        assert np.abs(counts - expected).max() < 0.01
        usual = np.array([np.bincount(following[word == each]).argmax() for each in range(128)])
        assert len(set(usual)) > 120, "nearly each word has a usual next word of its own; for a rare one, chance can decide"
        assert (following == usual[word]).mean() == pytest.approx(0.7, abs=0.03)


def test_digits_are_those_of_scikit_learn_each_of_them_once() -> None:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    for seed in range(3):
        data = digits(seed)
        mine = np.column_stack([np.vstack([data.inputs, data.held_out_inputs]) * 16, np.r_[data.labels, data.held_out_labels]])
        theirs = np.column_stack([images, labels])
        assert (mine[np.lexsort(mine.T)] == theirs[np.lexsort(theirs.T)]).all()
        assert (data.inputs.shape, data.held_out_inputs.shape) == ((1400, 64), (397, 64))
    assert (digits(1).labels == digits(1).labels).all()
    assert (digits(1).labels != digits(2).labels).any()
    with pytest.raises(ValueError, match="read-only"):
        digits().inputs[0] = 1


def test_without_scikit_learn_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    data_module._images.cache_clear()
    with refusal("not-installed", "scikit-learn", "pip install"):
        digits()
    monkeypatch.undo()
    assert digits().classes == 10


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_a_pass_takes_no_sample_twice(samples: int, batch: int, steps: int, seed: int) -> None:
    taken = batches(samples, batch, steps, np.random.default_rng(seed))
    if batch > samples:
        with refusal("too-large", batch, samples):
            next(taken)
        return
    chosen = list(taken)
    assert [len(each) for each in chosen] == [batch] * steps
    for start in range(0, steps, samples // batch):
        one_pass = np.concatenate(chosen[start : start + samples // batch])
        assert len(set(one_pass.tolist())) == one_pass.size
        assert one_pass.max() < samples


@given(st.lists(st.integers(1, 9), min_size=2, max_size=12).map(tuple), st.integers(1, 11))
def test_layers_are_spread_evenly_and_all_of_them(sizes: tuple[int, ...], count: int) -> None:
    network = Network(sizes)
    if count > network.layers:
        with refusal("too-large", count, f"the network has {network.layers}"):
            network.stages(count)
        return
    stages = network.stages(count)
    assert [layer for stage in stages for layer in stage] == list(range(network.layers))
    lengths = [len(stage) for stage in stages]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] - lengths[-1] <= 1
    assert sum(network.count(stage) for stage in stages) == network.parameters


def test_a_flat_vector_is_seen_as_layers_without_a_copy() -> None:
    network = Network((3, 4, 2))
    flat = np.arange(2.0 * network.parameters).reshape(2, -1)
    layers = network.unpacked(flat)
    assert all(np.shares_memory(part, flat) for layer in layers for part in layer)
    assert [part.shape for layer in layers for part in layer] == [(2, 3, 4), (2, 1, 4), (2, 4, 2), (2, 1, 2)]
    again = np.concatenate([part.reshape(2, -1) for layer in layers for part in layer], axis=1)
    assert (again == flat).all()


@in_turn("activation", ["tanh", "relu"])
def test_gradients_of_the_single_device_are_slopes_of_its_loss(activation: str) -> None:
    rng = np.random.default_rng(5)
    network = Network((6, 7, 5, 4), activation)
    weights = network.initial(rng) + rng.normal(0, 0.1, network.parameters)
    inputs, labels = rng.normal(size=(9, 6)), rng.integers(0, 4, 9)
    _, gradient = loss_and_gradient(network, weights, inputs, labels)
    near, slopes = 1e-6, []
    for place in range(network.parameters):
        moved = [
            loss_and_gradient(network, weights + sign * near * (np.arange(weights.size) == place), inputs, labels)[0] for sign in (1, -1)
        ]
        slopes.append((moved[0] - moved[1]) / (2 * near))
    np.testing.assert_allclose(gradient, slopes, rtol=0, atol=1e-8)


def test_the_loss_is_the_mean_of_minus_log_probability() -> None:
    network = Network((2, 3))
    weights = np.array([0.5, -1, 2, 1, 0, -2, 0.1, 0.2, 0.3])
    scores = np.array([[0.5 + 2 + 0.1, -1 + 0.2, 2 - 4 + 0.3]])
    shares = np.exp(scores) / np.exp(scores).sum()
    loss, _ = loss_and_gradient(network, weights, np.array([[1.0, 2.0]]), np.array([2]))
    assert loss == pytest.approx(-np.log(shares[0, 2]), rel=1e-12)


@in_turn("size", [1.0, 1e3, 1e6])
def test_the_loss_of_a_hopeless_network_is_right_too(size: float) -> None:
    """The loss is finite for the most unlikely label, and equals scipy's."""
    from scipy.special import log_softmax  # imported here, because it takes a second

    rng = np.random.default_rng(4)
    network, inputs, labels = Network((6, 5)), rng.normal(size=(7, 6)), rng.integers(0, 5, 7)
    weights = size * network.initial(rng)
    expected = -log_softmax(network.scores(weights, inputs), axis=1)[np.arange(7), labels].mean()
    assert loss_and_gradient(network, weights, inputs, labels)[0] == pytest.approx(expected, rel=1e-12)


def test_training_too_fast_ends_with_the_losses_of_one_device() -> None:
    fast: Any = {"learning_rate": 100, "steps": 10}
    np.testing.assert_allclose(train(build("1f1b", 2, 4), 2, **fast).losses, train_alone(**fast).losses, rtol=1e-3)


def test_the_single_device_learns() -> None:
    run = train_alone(every=50)
    assert run.checked.tolist() == [50, 100, 150, 200]
    assert run.accuracies[-1] == run.accuracy >= 0.95
    assert run.losses[0] == pytest.approx(np.log(10), abs=0.3)  # before training all classes are about equally likely
    right = run.network.scores(run.weights, digits().held_out_inputs).argmax(axis=1) == digits().held_out_labels
    assert run.accuracy == right.mean()


def test_a_check_follows_the_last_step_too() -> None:
    assert train_alone(steps=5, every=2).checked.tolist() == [2, 4, 5]
    assert train_alone(steps=4, every=2).checked.tolist() == [2, 4]


@in_turn("activation, variance", [("tanh", 1.0), ("relu", 2.0)])
def test_weights_begin_with_the_variance_of_their_papers(activation: str, variance: float) -> None:
    """The variance is 2 / (inputs + outputs) by Glorot and Bengio, and 2 / inputs by He et al.; inputs = outputs = 400."""
    weights = Network((400, 400), activation).initial(np.random.default_rng(5))
    assert weights[:160_000].var() * 400 == pytest.approx(variance, rel=0.03)
    assert not weights[160_000:].any()


def test_the_published_system_is_checked_with_a_batch_that_can_be_cut() -> None:
    """3 stages, 4 replicas and 6 microbatches make 24 parts, and 128 is not divisible by 24."""
    table = accuracy_check(build("1f1b", 3, 6), 4, formats=[(FP16, False)], seeds=[0], steps=20)
    assert table.accuracies[0, 0] == train_alone(batch=120, steps=20).accuracy
    assert [row.bytes_sent for row in table.rows] == [0, 2 * 2 * (4 - 1) * Network().parameters]  # 2 bytes a number, 2(D-1) times


def test_a_seed_of_the_accuracy_check_deals_the_digits_anew() -> None:
    table = accuracy_check(build("1f1b", 2, 2), 2, formats=[(FP16, False)], seeds=[1], steps=20)
    assert table.accuracies[0, 0] == train_alone(data=digits(1), seed=1, steps=20).accuracy
    assert table.accuracies[0, 0] != train_alone(data=digits(0), seed=1, steps=20).accuracy


def test_progress_is_called_after_every_step() -> None:
    calls: list[tuple[int, int]] = []
    train_alone(steps=3, progress=lambda done, steps: calls.append((done, steps)))
    train(build("1f1b", 2, 2), steps=2, progress=lambda done, steps: calls.append((done, steps)))
    assert calls == [(1, 3), (2, 3), (3, 3), (1, 2), (2, 2)]


@pytest.mark.slow  # lab 7 prints the table of all these runs, which the quick checks compare
def test_held_out_accuracy_reaches_95_per_cent_in_every_format() -> None:
    calls: list[tuple[int, int]] = []
    table = accuracy_check(build("1f1b", 2, 4), 4, progress=lambda done, runs: calls.append((done, runs)))
    assert [row.name for row in table.rows] == ["one device", "FP32", "FP16", "BF16", "INT8", "INT8, error feedback"]
    assert table.accuracies.shape == (6, 3)
    assert calls == [(run, 15) for run in range(1, 16)]
    for row, accuracies in zip(table.rows, table.accuracies, strict=True):
        assert row.mean == pytest.approx(np.mean(accuracies))
        assert (row.lowest, row.highest) == (min(accuracies), max(accuracies))
        assert row.mean >= 0.95
        assert abs(row.mean - table.rows[0].mean) < 0.01
    assert (table.accuracies[1] == table.accuracies[0]).all()  # FP32: the same digits are classified correctly
    lines = str(table).splitlines()
    assert lines[0] == "held-out accuracy, 1f1b, 2 devices x 4 replicas, 3 seeds"
    assert len(lines) == 3 + len(table.rows)
    assert len({len(line) for line in lines[3:-1]}) == 1
    assert max(map(len, lines)) < 80
    distance = {row.name: row.distance for row in table.rows}
    assert distance["one device"] == 0 < distance["FP32"] < 1e-6 < distance["FP16"] < distance["BF16"] < distance["INT8"]
    assert distance["INT8, error feedback"] < distance["INT8"] / 3


JUNK_ARGUMENTS = (
    "replicas",
    "batch",
    "learning_rate",
    "seed",
    "every",
    "wire",
    "error_feedback",
    "network",
    "data",
    "by_label",
    "progress",
)


@examples(300)
@given(st.sampled_from(JUNK_ARGUMENTS), junk)
def test_junk_is_refused_in_a_sentence_or_taken(name: str, value: Any) -> None:
    if name == "progress" and callable(value):
        return  # the function belongs to the caller, who is responsible for its errors
    setting = {"batch": 32, "steps": 1, "network": Network((64, 4, 10)), "replicas": 2, name: value}
    try:
        train(build("1f1b", 2, 2), **setting)
    except HybridLabError as why:
        assert str(why)  # noqa: PT017 - a value may also be accepted, and then there is no error


@given(junk)
def test_junk_in_place_of_sizes_is_refused_in_a_sentence_or_taken(value: Any) -> None:
    for make in (lambda: Network(value), lambda: Network((2, value)), lambda: DataSet(**{**RIGHT, "labels": value}), lambda: digits(value)):
        try:
            make()
        except HybridLabError as why:
            assert str(why)  # noqa: PT017 - a value may also be accepted, and then there is no error


SMALL: dict[str, Any] = {"steps": 2, "batch": 32}
RIGHT: dict[str, Any] = {"inputs": np.zeros((4, 2)), "labels": [0, 1, 0, 1], "held_out_inputs": np.zeros((1, 2)), "held_out_labels": [1]}
RNG = np.random.default_rng(0)
FLAT = Network((2, 2))  # a layer of 6 parameters
PART = np.zeros((1, 1, 3, 2)), np.zeros((1, 1, 3), dtype=int)  # 1 replica, 1 microbatch, 3 samples
TWO = np.zeros((1, 2, 3, 2)), np.zeros((1, 2, 3), dtype=int)  # 2 microbatches
MEETING = "0F0 2F1 2B1 0B0\n1F1 1F0 1B1 1B0\n0F1 2F0 2B0 0B1"  # two paths that meet on device 1


@in_turn(
    "call, code, words",
    [
        (lambda: train(build("1f1b", 5, 8)), "too-large", ["5 stages", "5 layers", "the network has 4"]),
        (lambda: train(build("hanayo", 4, 8)), "too-large", ["8 stages", "8 layers"]),
        (lambda: train(build("1f1b", 4, 8), 4, batch=100), "not-divisible", ["32 parts", 100, "try 96 or 128"]),
        (lambda: train(build("1f1b", 4, 8), 4, batch=20), "not-divisible", [20, "try 32"]),
        (lambda: train(build("1f1b", 2, 2), 2, batch=1600), "too-large", ["batch", "1,600", "1,400"]),
        (lambda: train_alone(batch=1401), "too-large", ["batch", "1,401", "1,400"]),
        (lambda: train("1f1b", 4), "not-a-schedule", ["'1f1b'"]),  # type: ignore[arg-type]
        (lambda: train(replicate(build("1f1b", 2, 4), 2), 2), "not-a-schedule", ["<Replicated"]),
        (lambda: train(build("1f1b", 2, 4), 0), "too-small", ["replicas", 0]),
        (lambda: train(build("1f1b", 2, 4), 2.0), "not-a-whole-number", ["replicas"]),  # type: ignore[arg-type]
        (lambda: train(build("1f1b", 2, 4), wire="INT8"), "wrong-type", ["wire", "WireFormat"]),  # type: ignore[arg-type]
        (lambda: train(build("1f1b", 2, 4), error_feedback=1), "not-true-or-false", ["error_feedback"]),  # type: ignore[arg-type]
        (lambda: train(build("1f1b", 2, 4), by_label=1), "not-true-or-false", ["by_label"]),  # type: ignore[arg-type]
        (lambda: train(build("1f1b", 2, 4), all_reduce=3), "wrong-type", ["all_reduce"]),  # type: ignore[arg-type]
        (lambda: train(build("1f1b", 2, 4), 2, all_reduce=lambda g: g[0]), "wrong-shape", ["all_reduce"]),
        (lambda: train(build("1f1b", 2, 4), 2, wire=INT8, learning_rate=float("nan")), "out-of-range", ["learning_rate", "nan"]),
        (lambda: train_alone(learning_rate=0), "out-of-range", ["learning_rate", 0]),
        (lambda: train_alone(learning_rate=[1, 2]), "out-of-range", ["learning_rate", [1, 2]]),  # type: ignore[arg-type]
        (lambda: train_alone(steps=0), "too-small", ["steps"]),
        (lambda: train_alone(every=0, **SMALL), "too-small", ["every"]),
        (lambda: train_alone(seed=-1, **SMALL), "too-small", ["seed"]),
        (lambda: train_alone(network=Network((64, 9)), **SMALL), "does-not-fit", ["(64, ..., 10)", "(64, 9)"]),
        (lambda: train_alone(network=Network((63, 10)), **SMALL), "does-not-fit", ["64 features", "10 classes"]),
        (lambda: train_alone(data=3), "wrong-type", ["Network", "DataSet"]),  # type: ignore[arg-type]
        (lambda: train_alone(network=Network((64, 32, 10), "relu"), learning_rate=1e150), "diverged", ["step 3", "learning_rate"]),
        (lambda: Network((64,)), "wrong-length", ["sizes", (64,)]),
        (lambda: Network(64), "not-a-list", ["sizes", 64]),  # type: ignore[arg-type]
        (lambda: Network((64, 0, 10)), "too-small", ["a size of a network", 0]),
        (lambda: Network((64, 10), "sigmoid"), "unknown-name", ["activation", "'sigmoid'"]),
        (lambda: DataSet(**{**RIGHT, "inputs": np.full((4, 2), np.nan)}), "not-finite", ["inputs"]),
        (lambda: DataSet(**{**RIGHT, "inputs": np.zeros(4)}), "wrong-shape", ["inputs", "(4,)"]),
        (lambda: DataSet(**{**RIGHT, "held_out_inputs": np.zeros((1, 3))}), "does-not-fit", ["2 and 3"]),
        (lambda: DataSet(**{**RIGHT, "labels": [0, 1]}), "wrong-shape", ["labels", 4]),
        (lambda: DataSet(**{**RIGHT, "labels": [0, 1, 0, -1]}), "out-of-range", ["labels", 4]),
        (lambda: DataSet(**{**RIGHT, "labels": [[0], [1, 2]]}), "ragged", ["labels", 4]),
        (lambda: DataSet(**{**RIGHT, "held_out_labels": [0.5]}), "not-a-whole-number", ["held_out_labels", 1]),
        (lambda: accuracy_check(build("1f1b", 2, 4), 2, formats=[INT8]), "wrong-type", ["(INT8, True)"]),  # type: ignore[list-item]
        (lambda: accuracy_check(build("1f1b", 2, 4), 2, formats=[]), "empty", ["one format and one seed"]),
        (lambda: accuracy_check(build("1f1b", 2, 4), 2, formats=[(FP16, False)], seeds=[]), "empty", ["one format and one seed"]),
        (lambda: accuracy_check(build("1f1b", 2, 4), 2, progress=3), "wrong-type", ["progress", "(done, total)"]),  # type: ignore[arg-type]
        (lambda: accuracy_check(build("1f1b", 2, 4), 2, data=random_text()), "wrong-type", ["data", "DataSet"]),  # type: ignore[arg-type]
        (lambda: train_alone(progress=3), "wrong-type", ["progress", "(done, total)"]),  # type: ignore[arg-type]
        (lambda: accuracy_check(build("1f1b", 2, 4), 2, seeds=3), "not-a-list", ["seeds"]),  # type: ignore[arg-type]
        (lambda: next(batches(10, 11, 1, RNG)), "too-large", ["batch", 11, 10]),
        (lambda: next(batches(10, 0, 1, RNG)), "too-small", ["batch", 0]),
        (lambda: next(batches(10, 2, None, RNG)), "not-a-whole-number", ["steps", None]),  # type: ignore[arg-type]
        (lambda: next(batches(10, 2, 1, 3)), "wrong-type", ["a global batch", "rng"]),  # type: ignore[arg-type]
        (lambda: FLAT.initial(0), "wrong-type", ["a network", "rng"]),  # type: ignore[arg-type]
        (lambda: FLAT.count((0, 1)), "out-of-range", ["layers", "0 to 0", (0, 1)]),
        (lambda: FLAT.unpacked(np.zeros(5)), "wrong-shape", ["1 layer", "(..., 6)", "(5,)", "float64"]),
        (lambda: FLAT.scores([0] * 6, np.zeros((3, 2))), "wrong-shape", ["(..., 6)", [0] * 6]),  # type: ignore[arg-type]
        (lambda: FLAT.scores(np.zeros(6), np.zeros(2)), "wrong-shape", ["inputs", "(..., samples, 2)", "(2,)"]),
        (lambda: FLAT.accuracy(np.zeros(6), np.zeros((3, 2)), None), "wrong-shape", ["labels", "(3,)"]),  # type: ignore[arg-type]
        (lambda: FLAT.accuracy(np.zeros(6), np.zeros((1, 2)), np.array([2])), "out-of-range", ["labels", "0 to 1", "2 to 2"]),
        (lambda: loss_and_gradient(FLAT, np.zeros(6), 2, 3), "wrong-shape", ["inputs", 2]),  # type: ignore[arg-type]
        (lambda: in_running_order("1f1b"), "not-a-schedule", ["'1f1b'"]),  # type: ignore[arg-type]
        (lambda: Executor(FLAT, [np.zeros((1, 5))], [0], *PART), "wrong-shape", ["1 stage", "[(1, 6)]"]),
        (lambda: Executor(FLAT, [np.zeros((1, 6))], [1], *PART), "uneven-stages", ["[0, 1]"]),
        (lambda: Executor(FLAT, [np.zeros((1, 6))], [], *PART), "too-small", ["stages", 0]),
        (lambda: Executor(FLAT, [np.zeros((1, 6))], 0, *PART), "not-a-list", ["device_of", 0]),  # type: ignore[arg-type]
        (lambda: Executor(FLAT, [np.zeros((1, 6))], [0], PART[0][0], PART[1][0]), "wrong-shape", ["inputs", "(1, 3, 2)"]),
        (lambda: Executor(FLAT, [np.zeros((2, 6))], [0, 1], *TWO, [0]), "wrong-length", ["copy_of", "2 microbatches", 1]),
        (lambda: Executor(FLAT, [np.zeros((2, 6))], [0, 1], *TWO, 3), "not-a-list", ["copy_of", 3]),  # type: ignore[arg-type]
        (lambda: Executor(FLAT, [np.zeros((2, 6))], [0, 1], *TWO, [0, -1]), "too-small", ["a copy", -1]),
        (lambda: Executor(FLAT, [np.zeros((2, 6))], [0], *TWO, [0, 1]), "too-small", ["stages", 0]),
        (lambda: Executor(FLAT, [np.zeros((2, 6))], [0, 0, 0], *TWO, [0, 1]), "not-divisible", ["device_of", "2 copies"]),
        (lambda: Executor(FLAT, [np.zeros((1, 6))], [0, 0], *TWO, [0, 1]), "wrong-shape", ["1 stage", "[(2, 6)]"]),
        (lambda: Executor(FLAT, [np.zeros((2, 6))], [0, 1], *TWO, [0, 1]), "uneven-stages", ["[1, 0]"]),
        (lambda: train(Schedule.parse(MEETING)), "two-copies-on-a-device", ["device 1", "stage 1"]),
        (lambda: Executor(FLAT, [np.zeros((1, 6))], [0], *PART).run(3), "not-a-list", ["operations", 3]),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused(call: Any, code: str, words: list[Any]) -> None:
    with refusal(code, *words):
        call()


def test_training_on_a_mesh_that_diverges_is_refused() -> None:
    """Either numbers become infinite in a stage, or they are too large for the wire."""
    with pytest.raises(HybridLabError) as caught:
        train(build("1f1b", 2, 4), 2, network=Network((64, 32, 10), "relu"), learning_rate=1e150)
    assert caught.value.code in ("diverged", "too-large")
