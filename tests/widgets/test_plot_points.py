"""Test named points: where they are, which are filled, and that every name can be read."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from cases import in_turn, refusal
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from misuse import BrokenRepr

from hybridlab import plot

FIVE = {"a": (1, 9), "b": (2, 5), "c": (2, 5), "d": (2, 6), "e": (8, 5)}
CROWDED = {f"schedule {place}": (5 + place % 3 / 2, 5 + place // 3) for place in range(6)} | {"far": (20, 20)}


def drawn(places: Mapping[str, Any]) -> plot.Picture:
    return plot.points(places, x_label="memory", y_label="bubble")


def axes_of(figure: plot.Picture) -> Axes:
    (axes,) = [each for each in figure.axes if each.axison]
    return axes


def test_every_point_stands_at_its_place_once_and_only_the_unbeaten_are_filled() -> None:
    marks = {tuple(np.asarray(line.get_xydata())[0]): to_hex(line.get_markerfacecolor()) for line in axes_of(drawn(FIVE)).get_lines()}
    assert set(marks) == {(1, 9), (2, 5), (2, 6), (8, 5)}
    assert {place for place, colour in marks.items() if colour != "#ffffff"} == {(1, 9), (2, 5)}


def test_the_words_name_each_point_and_say_which_none_beats() -> None:
    assert drawn(FIVE).alt_text == (
        "bubble against memory. a: 9 at 1, which none beats in both. b: 5 at 2, which none beats in both. "
        "c: 5 at 2, which none beats in both. d: 6 at 2. e: 5 at 8."
    )


def test_a_rounding_error_beats_nobody() -> None:
    assert drawn({"a": (1, 0.3), "b": (1, 0.1 + 0.2)}).alt_text.count("none beats") == 2


def test_both_axes_start_at_zero_and_hold_all_points() -> None:
    axes = axes_of(drawn(FIVE))
    assert (axes.get_xlim()[0], axes.get_ylim()[0]) == (0, 0)
    assert axes.get_xlim()[1] > 8
    assert axes.get_ylim()[1] > 9


@in_turn("places", [FIVE, CROWDED, {"alone": (0, 0)}, {"a long name at the right edge": (9, 1), "left": (1, 1)}])
def test_names_stay_on_the_page_and_clear_of_each_other(places: Mapping[str, Any]) -> None:
    figure = drawn(places)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    names = [text for axes in figure.axes for text in axes.texts if text.get_text() not in ("memory", "bubble")]
    assert {part for text in names for part in text.get_text().split(", ")} == set(places)
    boxes = [text.get_window_extent(renderer) for text in names]
    width, height = renderer.get_canvas_width_height()
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height for box in boxes)
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


BOUND = [(2, 0.8), (4, 0.4), (6, 0.3), (9, 0.25)]


@in_turn(
    "places",
    [
        {"above a level": (7, 0.27), "right of a step": (3.95, 0.6), "on the bound": (4, 0.4), "at its name": (6.2, 0.24)},
        {f"schedule {place}": (2 + place / 2, 0.42 + 0.02 * (place % 3)) for place in range(9)},
    ],
)
def test_no_name_covers_the_bound_or_its_name(places: Mapping[str, Any]) -> None:
    figure = plot.points(places, x_label="memory", y_label="bubble", bound=BOUND)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    axes = axes_of(figure)
    steps = [((x, y), (x, lower), (right, lower)) for (x, y), (right, lower) in pairwise(BOUND)]
    along = [np.linspace(one, other, 200) for step in steps for one, other in pairwise(step)]
    line = axes.transData.transform(np.concatenate(along))
    boxes = {text.get_text(): text.get_window_extent(renderer) for each in figure.axes for text in each.texts}
    for name in places:
        inside = (line >= boxes[name].min) & (line <= boxes[name].max)
        assert not inside.all(axis=1).any(), name
        assert not boxes[name].overlaps(boxes["lower bound"]), name


@in_turn(
    "places, code, words",
    [
        ({}, "empty", "24"),
        ([(1, 2)], "wrong-type", "24"),
        ({str(each): (1, 1) for each in range(25)}, "too-large", "24"),
        ({"a": (1, 2, 3)}, "wrong-shape", "'a'"),
        ({"a": (1, -2)}, "out-of-range", "'a'"),
        ({"a": (1, float("nan"))}, "out-of-range", "'a'"),
        ({"a": (1, float("inf"))}, "out-of-range", "'a'"),
        ({"a": "xy"}, "not-a-number", "'a'"),
        ({3: (1, 2)}, "not-text", "name of a point"),
        ({BrokenRepr(): "xy"}, "not-text", "name of a point"),
    ],
)
def test_what_is_no_point_is_refused(places: Any, code: str, words: str) -> None:
    with refusal(code, words):
        drawn(places)
