"""Test that the training curves show the values of the runs.

They must also refuse bad input with clear errors, and print the same text in every run.
"""

import json
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from misuse import junk
from profiles import examples

from hybridlab import INT8, HybridLabError, build
from hybridlab.training import Trained, TrainedAlone, train, train_alone
from hybridlab.widgets import TrainingCurves, page_data, training_curves
from hybridlab.widgets.training_curves import curves_data

CHOICES = ("Messages", "Digits")
SETTING: dict[str, Any] = {"steps": 6, "every": 2}


@cache
def alone() -> TrainedAlone:
    return train_alone(**SETTING)


@cache
def some_run(key: tuple[str, ...] = ("FP32", "at random")) -> Trained:
    wire: dict[str, Any] = {"wire": INT8} if key[0] == "INT8" else {}
    return train(build("1f1b", 2, 2), 2, by_label=key[1] == "by label", **wire, **SETTING)


def some_runs() -> dict[tuple[str, ...], Trained]:
    return {key: some_run(key) for key in product(("FP32", "INT8"), ("at random", "by label"))}


def view() -> TrainingCurves:
    return TrainingCurves(CHOICES, some_runs(), alone())


def test_the_data_are_the_curves_of_the_runs() -> None:
    data = view().data
    assert data["axes"] == [{"name": "Messages", "values": ["FP32", "INT8"]}, {"name": "Digits", "values": ["at random", "by label"]}]
    assert (data["steps"], data["checked"]) == (6, [2, 4, 6])
    assert list(data["runs"]) == ["FP32|at random", "FP32|by label", "INT8|at random", "INT8|by label"]
    for key, run in some_runs().items():
        entry = data["runs"]["|".join(key)]
        np.testing.assert_allclose(entry["losses"], run.losses, rtol=5.1e-4)
        np.testing.assert_allclose(entry["accuracies"], run.accuracies, atol=5.1e-5)
        assert entry["spread"] == [0, 0, 0]
        assert entry["bytes"] == run.bytes_sent
    np.testing.assert_allclose(data["alone"]["losses"], alone().losses, rtol=5.1e-4)
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_the_powers_of_ten_hold_every_loss() -> None:
    data = view().data
    low, high = data["decades"]
    losses = [loss for curves in (data["alone"], *data["runs"].values()) for loss in curves["losses"]]
    assert 10**low <= min(losses) <= 10 ** (low + 1)
    assert 10 ** (high - 1) <= max(losses) <= 10**high


def test_the_difference_between_replicas_is_the_largest_until_each_check() -> None:
    broken = train(build("1f1b", 2, 2), 2, all_reduce=lambda gradients: gradients, **SETTING)
    entry = curves_data(("Ring",), {("broken",): broken}, alone())["runs"]["broken"]
    assert entry["spread"] == [float(f"{broken.spread[:check].max():.2g}") for check in (2, 4, 6)]
    assert min(entry["spread"]) > 0
    assert entry["bytes"] is None


def test_a_view_begins_with_the_first_values_and_at_the_end() -> None:
    curves = view()
    assert (curves.chosen, curves.step) == (["FP32", "at random"], 6)
    assert repr(curves) == "<TrainingCurves: 4 runs of 6 steps; FP32, at random>"
    curves.chosen = ("INT8", "by label")
    curves.step = 3
    assert repr(curves) == "<TrainingCurves: 4 runs of 6 steps; INT8, by label>"


def test_what_a_page_sends_is_taken_and_nonsense_is_not() -> None:
    curves = view()
    curves.set_state({"chosen": ["INT8", "at random"], "step": 1})
    assert (curves.chosen, curves.step) == (["INT8", "at random"], 1)
    with refusal("unknown-name", "Messages 'INT9': did you mean 'INT8'"):
        curves.set_state({"chosen": ["INT9", "at random"]})
    assert curves.chosen == ["INT8", "at random"]


@pytest.fixture(scope="module")
def shared() -> TrainingCurves:
    """Give one view that all examples of junk share."""
    return view()


@examples(200)
@given(junk)
def test_junk_is_refused_in_a_sentence_or_taken(shared: TrainingCurves, value: Any) -> None:
    for name in ("chosen", "step"):
        try:
            setattr(shared, name, value)
        except HybridLabError as why:
            assert str(why)  # noqa: PT017 - what is refused has a sentence, what is taken has none
    assert "|".join(shared.chosen) in shared.data["runs"]
    assert 1 <= shared.step <= 6


@in_turn(
    "choices, runs, beside, code, word",
    [
        (CHOICES, dict, alone, "wrong-type", "up to 500 finished runs"),
        (CHOICES, lambda: [some_run()], alone, "wrong-type", "up to 500 finished runs"),
        ((), lambda: {(): some_run()}, alone, "wrong-type", "up to 500 finished runs"),
        (3, some_runs, alone, "not-a-list", "choices"),
        (("a|b", "c"), some_runs, alone, "malformed-name", "'a|b'"),
        (("", "c"), some_runs, alone, "malformed-name", "1 to 40"),
        (("a", 2), some_runs, alone, "not-text", "name of a choice"),
        (("a",), some_runs, alone, "wrong-type", "('FP32', 'at random')"),
        (("a",), lambda: {"x": some_run()}, alone, "wrong-type", "'x'"),
        (("a",), lambda: {(1,): some_run()}, alone, "not-text", "a value to choose"),
        (("a",), lambda: {("x",): alone()}, alone, "wrong-type", "train()"),
        (("a",), lambda: {("x",): some_run()}, lambda: 3, "wrong-type", "train_alone() returns it, not 3"),
        (
            CHOICES,
            lambda: {key: run for key, run in some_runs().items() if key[0] == "FP32" or key[1] == "by label"},
            alone,
            "missing-run",
            "('INT8', 'at random')",
        ),
        (("a",), lambda: {("x",): some_run()}, lambda: train_alone(steps=5), "does-not-fit", "steps"),
        (("a",), lambda: {("x",): some_run()}, lambda: train_alone(steps=6), "does-not-fit", "every"),
    ],
)
def test_runs_that_do_not_fit_together_are_refused(
    choices: Any, runs: Callable[[], Any], beside: Callable[[], Any], code: str, word: str
) -> None:
    with refusal(code, word):
        TrainingCurves(choices, runs(), beside())


def test_too_much_for_a_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_data, "MOST_BYTES", 500)
    with refusal("too-large", "0.0005 MB"):
        view()


def test_curves_differ_without_colour() -> None:
    style = Path(training_curves.__file__).with_suffix(".css").read_text(encoding="utf-8")
    assert "stroke-dasharray" in style.split(".curve.alone {")[1].split("}")[0]
    assert "stroke-dasharray" not in style.split(".curve {")[1].split("}")[0]
