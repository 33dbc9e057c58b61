"""Test charts: curves go through their values, and the parts and numbers of bars are where they belong."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from colours import contrast
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from hybridlab import plot

PARTS = ("matmul", "memory traffic", "tensor parallel", "point to point", "bubble", "data parallel", "optimiser")
SEVEN = {f"model {size}": {part: size / (place + 1) ** 2 for place, part in enumerate(PARTS)} for size in (1, 4, 10)}


def drawn(bars: Any) -> plot.Picture:
    return plot.stacks(bars, x_label="seconds", title="Parts")


def parts_of(figure: plot.Picture) -> list[Rectangle]:
    return [patch for patch in figure.axes[-1].patches if isinstance(patch, Rectangle)]


def test_parts_follow_each_other_and_are_as_long_as_their_values() -> None:
    found = parts_of(drawn(SEVEN))
    scale = max(sum(parts.values()) for parts in SEVEN.values()) / 1.0
    whole = max(part.get_x() + part.get_width() for part in found)
    values = [value for parts in SEVEN.values() for value in parts.values()]
    assert [part.get_width() / whole for part in found] == pytest.approx([value / scale for value in values])
    for row in range(len(SEVEN)):
        bar = found[7 * row : 7 * row + 7]
        assert bar[0].get_x() == 0
        for before, after in itertools.pairwise(bar):
            assert after.get_x() == pytest.approx(before.get_x() + before.get_width())


def test_a_part_has_one_colour_in_all_bars_and_no_other_part_has_it() -> None:
    figure = drawn(SEVEN)
    colours = [to_hex(part.get_facecolor()) for part in parts_of(figure)]
    assert colours == colours[:7] * 3
    assert len(set(colours[:7])) == 7
    legend = [to_hex(patch.get_facecolor()) for patch in figure.axes[0].patches]
    assert legend == colours[:7]
    assert {text.get_text() for text in figure.axes[0].texts} >= set(PARTS)


@in_turn("bars", [SEVEN, {"a": {"b": 0}}, {"a bar with a long name of many words": {"x": 1e-9, "y": 3e8}}])
def test_numbers_stay_within_their_parts_and_names_on_the_page(bars: Any) -> None:
    figure = drawn(bars)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    width, height = renderer.get_canvas_width_height()
    parts = [part.get_window_extent(renderer) for part in parts_of(figure)]
    for axes in figure.axes:
        for text in axes.texts:
            box = text.get_window_extent(renderer)
            assert box.x0 >= 0
            assert box.x1 <= width
            assert box.y0 >= 0
            assert box.y1 <= height
            if axes is figure.axes[-1] and text.get_ha() == "center":
                assert any(part.x0 <= box.x0 and box.x1 <= part.x1 and part.y0 < box.y0 < part.y1 for part in parts)


def test_the_sum_stands_at_the_end_of_its_bar_and_each_number_in_its_part() -> None:
    figure = drawn({"a": {"x": 15, "y": 0.01}, "b": {"x": 8, "y": 16}})
    texts = {text.get_text(): text.get_position()[0] for text in figure.axes[-1].texts}
    assert set(texts) == {"a", "b", "15", "8", "16", "24"}, "0.01 has no room, and 15.01 has three digits: 15"
    first, _, second, third = parts_of(figure)
    assert texts["8"] == pytest.approx(second.get_width() / 2)
    assert texts["16"] == pytest.approx(third.get_x() + third.get_width() / 2)
    assert texts["24"] > third.get_x() + third.get_width()
    assert texts["15"] > first.get_width(), "written last, the sum of the first bar"


def test_the_words_have_every_number() -> None:
    figure = drawn({"a": {"x": 1.5, "y": 0}, "b": {"x": 0.25, "y": 2}})
    assert figure.alt_text == "Parts: seconds. a: 1.5, of which x 1.5, y 0. b: 2.25, of which x 0.25, y 2."


def test_numbers_have_three_digits() -> None:
    assert drawn({"a": {"x": 1234.5, "y": 0.012345, "z": 59.06}}).alt_text.endswith("a: 1290, of which x 1230, y 0.0123, z 59.1.")


@in_turn(
    "bars, code, words",
    [
        ({}, "empty", "16"),
        ([("a", {"x": 1})], "wrong-type", "16"),
        ({str(each): {"x": 1} for each in range(17)}, "too-large", "16"),
        ({"a": {}}, "empty", "10 parts"),
        ({"a": {str(each): 1 for each in range(11)}}, "too-large", "10 parts"),
        ({"a": [1, 2]}, "wrong-type", "parts"),
        ({"a": {"x": -1}}, "out-of-range", "1e100"),
        ({"a": {"x": float("nan")}}, "out-of-range", "1e100"),
        ({"a": {"x": "1"}}, "not-a-number", "'a'"),
        ({"a": {"x": [1, 2]}}, "wrong-shape", "'a'"),
        ({"a": {"x": 1}, "b": {"y": 1}}, "does-not-fit", "the first, x"),
        ({"a": {"x": 1, "y": 1}, "b": {"y": 1, "x": 1}}, "does-not-fit", "the first, x, y"),
        ({3: {"x": 1}}, "not-text", "name of a bar"),
        ({"a": {3: 1}}, "not-text", "name of a part"),
    ],
)
def test_what_is_no_bar_of_parts_is_refused(bars: Any, code: str, words: str) -> None:
    with refusal(code, words):
        drawn(bars)


# Curves


def test_curves_pass_through_their_values_and_differ_in_more_than_colour() -> None:
    x = [1, 2, 4, 8]
    series = {name: np.arange(4) + place for place, name in enumerate("abcdef")}
    (axes,) = [axes for axes in plot.lines(x, series, x_label="x", y_label="y").axes if axes.axison]
    assert [line.get_xdata().tolist() for line in axes.lines] == [x] * 6
    assert [line.get_ydata().tolist() for line in axes.lines] == [values.tolist() for values in series.values()]
    assert len({line.get_marker() for line in axes.lines}) == 6
    assert len({line.get_color() for line in axes.lines}) == 6
    assert all(contrast(line.get_color(), "#FFFFFF") >= 3 for line in axes.lines)  # the least contrast of graphics by WCAG 2.2


@in_turn("x, scale", [([1, 2, 4, 8], "log"), ([1, 2, 3, 4], "linear"), ([0, 1, 2, 4], "linear"), ([1, 2], "linear")])
def test_values_that_grow_by_one_factor_are_spaced_evenly(x: list[int], scale: str) -> None:
    (axes,) = [axes for axes in plot.lines(x, {"a": x}, x_label="x", y_label="y").axes if axes.axison]
    assert axes.get_xscale() == scale
    if scale == "log":
        assert axes.get_xticks().tolist() == x


def test_curves_in_words() -> None:
    figure = plot.lines([1, 8], {"GPipe": [0.75, 3 / 11]}, x_label="microbatches", y_label="bubble ratio", title="4 devices")
    assert figure.alt_text == "4 devices: bubble ratio against microbatches from 1 to 8. GPipe: from 0.75 to 0.272727."


def test_a_logarithmic_axis_has_a_line_for_each_power_and_none_below_zero() -> None:
    figure = plot.lines([1, 2, 4], {"a": [0.5, 20, 3000]}, x_label="x", y_label="y", log_y=True)
    axes = figure.axes[-1]
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    assert 0 < low <= 0.5
    assert high >= 3000
    for bad in (0, -1):
        with refusal("too-small", "log_y"):
            plot.lines([1, 2], {"a": [1, bad]}, x_label="x", y_label="y", log_y=True)


REFUSED_CURVES = {
    "no curve": (lambda: plot.lines([1], {}, x_label="x", y_label="y"), "empty", "series", "6 curves", "{}"),
    "a list of curves": (lambda: plot.lines([1], [[1]], x_label="x", y_label="y"), "wrong-type", "series", "[[1]]"),
    "too few values": (lambda: plot.lines([1, 2], {"a": [1]}, x_label="x", y_label="y"), "wrong-length", "'a'", "1 values", "2 of x"),
    "a value that is none": (
        lambda: plot.lines([1, 2], {"a": [1, float("nan")]}, x_label="x", y_label="y"),
        "not-finite", "'a'", "[1, nan]",
    ),
    "a value too large": (lambda: plot.lines([1, 2], {"a": [1, 1e101]}, x_label="x", y_label="y"), "too-large", "'a'", "1e100"),
    "x that shrinks": (lambda: plot.lines([2, 1], {"a": [1, 2]}, x_label="x", y_label="y"), "not-growing", "x", "[2, 1]"),
    "a label that is no text": (lambda: plot.lines([1], {"a": [1]}, x_label=None, y_label="y"), "not-text", "x_label", "None"),
}  # fmt: skip


@in_turn("call, code, words", [(call, code, words) for call, code, *words in REFUSED_CURVES.values()])
def test_what_is_no_curve_is_refused(call: Callable[[], object], code: str, words: list[str]) -> None:
    with refusal(code, *words):
        call()
