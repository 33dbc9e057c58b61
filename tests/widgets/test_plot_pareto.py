"""Test the picture of a search's plans: their places, the plans on the line, and the name of the fastest plan."""

from functools import cache
from typing import Any

import numpy as np
from cases import in_turn, refusal
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from misuse import BrokenRepr

from hybridlab import A100_80GB, H100, Plan, Transformer, plot, search
from hybridlab.planner import Found, Search
from hybridlab.plot.points import plan_words

GPT = Transformer(layers=24, hidden=2304, heads=24)
PLAN = Plan(tensor=8, pipeline=16, data=64, microbatch=128, global_batch=2**17, chunks=12, recompute="selective", sequence_parallel=True)


def made(*places: tuple[float, float]) -> Search:
    """Return a search whose plans take these seconds and gigabytes, the fastest plan first."""
    return Search(GPT, H100, tuple(Found(PLAN, seconds, 100.0, gigabytes * 1e9) for seconds, gigabytes in places), 99)


SPREAD = made((2, 60), (2.5, 70), (3, 30), (3.5, 40), (4, 10), (20, 5), (21, 9))
EVERY = {"spread": SPREAD, "alone": made((0.1, 79)), "at the left": made((3, 0.01), (9, 50)), "at the right": made((3, 80))}
each = in_turn("name", ["real", *EVERY])


@cache
def drawn(name: str) -> tuple[Search, plot.Picture]:
    """Return a search and its figure, drawn once for all tests that only look at it."""
    found = search(GPT, 32, A100_80GB, global_batch=64) if name == "real" else EVERY[name]
    return found, plot.pareto(found, title="All plans")


def lines_of(figure: plot.Picture) -> dict[str, Line2D]:
    return {str(line.get_gid()): line for axes in figure.axes if axes.axison for line in axes.get_lines()}


def xy_of(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


@each
def test_all_plans_stand_at_memory_and_seconds_but_the_slow_ones(name: str) -> None:
    found, figure = drawn(name)
    (axes,) = [axes for axes in figure.axes if axes.axison]
    end = axes.get_ylim()[1]
    places = [(plan.memory / 1e9, plan.seconds) for plan in found.found]
    np.testing.assert_allclose(xy_of(lines_of(figure)["plans"]), [place for place in places if place[1] <= end])
    missing = sum(y > end for _, y in places)
    assert (f"{missing} slower plan" in figure.alt_text) == bool(missing)
    assert end >= 1.4 * min(y for x, y in places)
    assert axes.get_xlim()[1] > found.profile.memory / 1e9
    assert axes.get_ylim()[0] == axes.get_xlim()[0] == 0


@each
def test_the_line_joins_those_that_no_other_beats_in_both(name: str) -> None:
    found, figure = drawn(name)
    places = {(plan.memory / 1e9, plan.seconds) for plan in found.found}
    unbeaten = {(x, y) for x, y in places if not any((u <= x and v <= y) and (u, v) != (x, y) for u, v in places)}
    line = lines_of(figure)["front"]
    assert set(xy_of(line)) == unbeaten
    assert xy_of(line) == sorted(unbeaten)
    assert line.get_drawstyle() == "steps-post"  # with more memory than a plan needs, its time stays the best until the next plan fits


@each
def test_the_capacity_is_marked_and_named(name: str) -> None:
    found, figure = drawn(name)
    assert set(np.asarray(lines_of(figure)["capacity"].get_xdata())) == {80.0}
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert f"80 GB of {found.profile.name}" in texts


@each
def test_the_fastest_is_named_on_the_page_below_all_plans_and_clear_of_the_capacity(name: str) -> None:
    found, figure = drawn(name)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    texts = [text for axes in figure.axes for text in axes.texts]
    (first,) = (place for place, text in enumerate(texts) if text.get_text().startswith("fastest"))
    told = texts[first:]
    assert f"fastest: {found.best.seconds:.3g} s" == told[0].get_text()
    assert " ".join(text.get_text() for text in told[1:]) == plan_words(found.best.plan)
    (axes,) = [axes for axes in figure.axes if axes.axison]
    _, lowest = axes.transData.transform((0, found.best.seconds))
    edge, _ = axes.transData.transform((80, 0))
    for text in told:
        box = text.get_window_extent(renderer)
        assert axes.get_window_extent(renderer).x0 <= box.x0
        assert box.x1 < edge
        assert axes.get_window_extent(renderer).y0 <= box.y0
        assert box.y1 < lowest


def test_the_words_tell_the_ends_of_the_line() -> None:
    assert plot.pareto(SPREAD, title="Mine").alt_text == (
        "Mine: seconds of an iteration against memory of the fullest GPU, GB: 7 plans that fit in 80 GB of H100-SXM5-80GB. "
        f"No other beats 4 of them in both. The fastest: 2 s, 60.0 GB, {plan_words(PLAN)}. The smallest: 20 s, 5.0 GB, {plan_words(PLAN)}. "
        "2 slower plans not drawn."
    )


def test_a_plan_in_words_leaves_out_what_it_does_not_do() -> None:
    assert plan_words(Plan(1, 1, 2, 4, 8, recompute="none")) == "tensor 1, pipeline 1, data 2, microbatch 4"
    words = "tensor 8, pipeline 16, data 64, microbatch 128, 12 chunks, selective recomputation, sequence parallel"
    assert plan_words(PLAN) == words


@in_turn(
    "found, title, code, word",
    [
        (SPREAD.found, "", "wrong-type", "pareto"),
        (None, "", "wrong-type", "None"),
        (BrokenRepr(), "", "wrong-type", "BrokenRepr"),
        (SPREAD, 3, "not-text", "title"),
        (SPREAD, BrokenRepr(), "not-text", "title"),
    ],
)
def test_what_is_no_search_is_refused(found: Any, title: Any, code: str, word: str) -> None:
    with refusal(code, word):
        plot.pareto(found, title=title)
