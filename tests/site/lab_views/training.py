"""Check that training curves show the right runs: both plots, the table and the announcement for the chosen run and step."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import Locator

from hybridlab import INT8, build, published
from hybridlab.training import Network, Trained, TrainedAlone, train, train_alone
from lab_views.kind import Kind, rows_of, setting_of, with_no_data, words_of

STEPS, EVERY = 100, 5  # this value and the next ones are the same as in the lab
NETWORK = Network((64, 48, 40, 32, 10))
LEFT, RIGHT, TOP, BOTTOM = 50, 408, 12, 216  # the size of a plot, in its own units
POINTS = re.compile(r"[ML]([\d.]+) ([\d.]+)")
SHOWN = """(root) => [...root.querySelectorAll("svg.plot")].map((plot) => ({
  run: plot.querySelector("path.run").getAttribute("d"), alone: plot.querySelector("path.alone").getAttribute("d"),
  marker: Number(plot.querySelector(".marker").getAttribute("x1")), words: plot.getAttribute("aria-label"),
  dots: plot.querySelectorAll("circle.run").length,
  ticks: [...plot.querySelectorAll(".tick.row")].map((tick) => [Number(tick.textContent), Number(tick.getAttribute("y")) - 5]),
}))"""


def published_mean(gradients: Any) -> Any:
    ranks, size = gradients.shape
    return published.published_ring(np.pad(gradients, ((0, 0), (0, -size % ranks))), "FP32").values[:, :size]


SETTINGS: dict[str, dict[str, Any]] = {
    "right ring, FP32": {},
    "right ring, INT8": {"wire": INT8},
    "right ring, INT8, error feedback": {"wire": INT8, "error_feedback": True},
    "published ring": {"all_reduce": published_mean},
    "published ring, 4 x the rate": {"all_reduce": published_mean, "learning_rate": 4 * 0.3},
}


class Runs(NamedTuple):
    """What a view is given: a function that returns a run for its choices, the run of one device, and the accuracy interval.

    The accuracy is computed once in so many steps.
    """

    run_of: Callable[[str, str], Trained]
    alone: Callable[[], TrainedAlone]
    every: int


@cache
def run_of(ring: str, dealt: str) -> Trained:
    return train(build("1f1b", 2, 4), 4, network=NETWORK, steps=STEPS, every=EVERY, by_label=dealt == "by label", **SETTINGS[ring])


@cache
def alone() -> TrainedAlone:
    return train_alone(network=NETWORK, steps=STEPS, every=EVERY)


def curve_is(path: str, shares: Any, heights: Any) -> None:
    """Raise AssertionError unless a path runs through these heights; a height is a share of the plot's height."""
    wanted = np.column_stack([LEFT + shares * (RIGHT - LEFT), BOTTOM - heights * (BOTTOM - TOP)])
    np.testing.assert_allclose(np.array(POINTS.findall(path), dtype=float), wanted, atol=0.11)


def is_right(view: Locator, runs: Runs) -> None:
    setting = setting_of(view)
    step, run, alone = int(setting["Read at step"]), runs.run_of(setting["All-reduce"], setting["Digits dealt"]), runs.alone()
    steps = alone.losses.size
    loss, accuracy = view.evaluate(SHOWN)
    (low, bottom), (high, top) = loss["ticks"][0], loss["ticks"][-1]
    assert (bottom, top) == (BOTTOM, TOP)
    assert all(value > 0 and np.isclose(np.log10(value) % 1, 0) for value, _ in loss["ticks"])
    for name, each in (("run", run), ("alone", alone)):
        curve_is(loss[name], np.arange(1, steps + 1) / steps, np.log10(each.losses / low) / np.log10(high / low))
        curve_is(accuracy[name], each.checked / steps, each.accuracies)
        assert percent(each.accuracies[-1]) in accuracy["words"]
    assert accuracy["ticks"] == [[value, BOTTOM - value / 100 * (BOTTOM - TOP)] for value in (0, 25, 50, 75, 100)]
    assert accuracy["dots"] == run.checked.size
    for plot in (loss, accuracy):
        assert abs(plot["marker"] - (LEFT + step / steps * (RIGHT - LEFT))) <= 0.06

    check = step // runs.every - 1
    rows = rows_of(view)
    for cells, each in zip(rows, (run, alone), strict=True):
        assert abs(float(cells[1]) / each.losses[step - 1] - 1) <= 6e-4
        assert cells[2] == ("not taken yet" if check < 0 else f"{percent(each.accuracies[check])} after step {each.checked[check]}")
    spread = run.spread[: run.checked[check]].max() if check >= 0 else None
    assert rows[0][3] == ("not taken yet" if spread is None else "0, bit for bit" if spread == 0 else f"{float(f'{spread:.2g}'):g}")
    assert rows[0][4] == ("not counted" if run.bytes_sent is None else f"{run.bytes_sent:,}")
    assert rows[1][3:] == ["no replicas", "none"]
    caption = f"{setting['All-reduce']}, {setting['Digits dealt']}: step {step} of {steps}"
    assert words_of(view, "caption") == caption
    told = words_of(view, ".unseen[role=status]")
    assert told.startswith(f"{caption}. ")
    assert all(f"loss {cells[1]}, accuracy {cells[2]}" in told for cells in rows)


def percent(share: float) -> str:
    return f"{100 * round(float(share), 4):.1f} %"


def without_runs(state: Any) -> None:
    state["data"]["runs"] = {}


def with_words_for_losses(state: Any) -> None:
    for run in state["data"]["runs"].values():
        run["losses"] = ["much"] * STEPS


def without_losses(state: Any) -> None:
    for run in state["data"]["runs"].values():
        run["losses"] = run["losses"][:3]


def with_a_lower_loss(state: Any) -> None:
    for run in state["data"]["runs"].values():
        run["losses"][40] /= 1.1


def with_a_better_end(state: Any) -> None:
    for run in state["data"]["runs"].values():
        run["accuracies"][-1] += 0.01


def with_fewer_bytes(state: Any) -> None:
    for run in state["data"]["runs"].values():
        run["bytes"] = (run["bytes"] or 0) + 1


def with_replicas_apart(state: Any) -> None:
    for run in state["data"]["runs"].values():
        run["spread"][-1] = 1e-9


KIND = Kind(
    "training",
    "TrainingCurves",
    "labs/lab07_accuracy.html",
    is_right,
    given=(Runs(run_of, alone, EVERY),),
    begin={"All-reduce": "published ring"},
    damages=(without_runs, with_words_for_losses, without_losses, with_no_data),
    faults=(with_a_lower_loss, with_a_better_end, with_fewer_bytes, with_replicas_apart),
    python=("step", 42),
)
