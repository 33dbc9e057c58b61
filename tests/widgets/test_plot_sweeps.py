"""Test the panels of a sweep: lines through the values of the table, gaps for missing values, one scale, and a description."""

from typing import Any

import numpy as np
from cases import in_turn, refusal
from hypothesis import given
from misuse import outcome, usual_or_junk
from profiles import examples
from sweep_tables import DEVICES, LATENCIES, NAMES, bubble_ratio, is_refused, makespan, some_table, table

from hybridlab import plot
from hybridlab.palette import line_style
from hybridlab.widgets import SweepExplorer

LAWS = {"makespan": makespan, "bubble_ratio": bubble_ratio}


def plots_of(figure: plot.Picture) -> list[Any]:
    return [axes for axes in figure.axes if axes.axison]


def texts_of(figure: plot.Picture) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def values_of(name: str, p2p: float) -> list[list[float]]:
    return [[np.nan if is_refused(line, devices) else LAWS[name](line, devices, p2p) for devices in DEVICES] for line in range(len(NAMES))]


@in_turn("quantities", ["makespan", ("bubble_ratio", "makespan")])
def test_every_plot_has_the_lines_of_its_value(quantities: Any) -> None:
    figure = plot.panels(some_table(), "devices", quantities, panels="p2p")
    names = [quantities] if isinstance(quantities, str) else quantities
    plots = plots_of(figure)
    assert len(plots) == len(names) * len(LATENCIES)
    for axes, (name, p2p) in zip(plots, [(name, p2p) for name in names for p2p in LATENCIES], strict=True):
        assert [line.get_label() for line in axes.lines] == NAMES
        assert all(line.get_xdata().tolist() == list(DEVICES) for line in axes.lines)
        np.testing.assert_allclose([line.get_ydata() for line in axes.lines], values_of(name, p2p), rtol=1e-8)
        assert axes.get_xticks().tolist() == list(DEVICES)


def test_plots_of_one_quantity_share_one_scale_that_holds_all() -> None:
    plots = plots_of(plot.panels(some_table(), "devices", ("makespan", "bubble_ratio"), panels="p2p"))
    for name, three in (("makespan", plots[:3]), ("bubble_ratio", plots[3:])):
        ((low, high),) = {axes.get_ylim() for axes in three}
        assert low == 0
        assert np.nanmax([values_of(name, p2p) for p2p in LATENCIES]) <= high


def test_a_scale_with_negative_values_is_shared_too() -> None:
    made = table(("x", "p2p", "gain"), [(x, p2p, x * (p2p - 3)) for x in (1, 2) for p2p in (0, 4)])
    ((low, high),) = {axes.get_ylim() for axes in plots_of(plot.panels(made, "x", "gain"))}
    assert low < -6
    assert high > 2


def test_columns_that_vary_besides_are_panels_unless_some_are_named() -> None:
    rows = [(k, p2p, part, k + p2p + part) for k in (1, 2) for p2p in (0, 4) for part in (0, 0.5)]
    made = table(("devices", "p2p", "recompute", "makespan"), rows)
    figure = plot.panels(made, "devices", "makespan")
    heads = [f"Latency = {p2p} ms, Recompute ratio = {part}" for p2p in ("0", "4") for part in ("0", "0.5")]
    assert set(heads) <= set(texts_of(figure))
    with refusal("ambiguous", "'recompute'", "sweep.where(recompute=...)"):
        plot.panels(made, "devices", "makespan", panels="p2p")


def test_lines_are_those_of_the_view() -> None:
    view = SweepExplorer(some_table(), "devices").data["lines"]
    axes = plots_of(plot.panels(some_table(), "devices", "makespan"))[0]
    assert [line.get_label() for line in axes.lines] == [line["name"] for line in view]
    assert [line.get_color() for line in axes.lines] == [line["colours"][0] for line in view]
    assert [line.get_marker() for line in axes.lines] == [line_style(place).marker for place in range(len(view))]
    assert set(NAMES) <= set(texts_of(plot.panels(some_table(), "devices", "makespan")))
    last = SweepExplorer(some_table(), "devices", show={"drawn": NAMES[-1:]}).still()
    assert not isinstance(last, str)
    assert set(NAMES) & set(texts_of(last)) == set(NAMES[-1:])
    assert [line.get_color() for line in plots_of(last)[0].lines] == [view[-1]["colours"][0]]


def test_logarithmic_axes_leave_out_what_has_no_place_on_them_and_say_so() -> None:
    figure = plot.panels(some_table(), "devices", "bubble_ratio", logarithmic=("devices", "bubble_ratio"))
    for axes, p2p in zip(plots_of(figure), LATENCIES, strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        values = np.array(values_of("bubble_ratio", p2p))
        np.testing.assert_allclose([line.get_ydata() for line in axes.lines], np.where(values > 0, values, np.nan), rtol=1e-8)
        assert axes.get_ylim()[0] > 0
    note = "Not drawn: 6 points without a result; 3 points at 0 or less, where a logarithmic axis has no place."
    assert note in texts_of(figure)
    assert note in figure.alt_text


def test_a_logarithmic_axis_across_leaves_out_zero() -> None:
    figure = plot.panels(some_table(), "p2p", "makespan", logarithmic="p2p", panels="devices")
    for axes in plots_of(figure):
        assert axes.get_xticks().tolist() == [0.5, 16]
        assert all(np.isnan(line.get_ydata()[0]) for line in axes.lines)


def test_every_value_has_a_tick_and_a_number_where_there_is_room() -> None:
    made = table(("x", "makespan"), [(x, x) for x in (1, 2, 3, 1000, 2000)])
    (axes,) = plots_of(plot.panels(made, "x", "makespan"))
    assert axes.get_xticks().tolist() == [1, 2, 3, 1000, 2000]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "", "", "1000", "2000"]


def test_the_figure_in_words_holds_its_numbers() -> None:
    made = table(("schedule", "devices", "p2p", "makespan", "refused"), [("gpipe", 2, 0, 9.5, None), ("gpipe", 4, 0, 20, None)])
    figure = plot.panels(made, "devices", "makespan", title="Weak scaling")
    assert figure.alt_text == "Weak scaling: Makespan, ms against Devices K from 2 to 4. GPipe from 9.5 to 20."
    refused = table(made.columns, [*made.values, ("hanayo", 2, 0, None, "no"), ("hanayo", 4, 0, None, "no")])
    assert "GPipe from 9.5 to 20; Hanayo has no result. Not drawn: 2 points" in plot.panels(refused, "devices", "makespan").alt_text


def test_one_point_all_zeros_and_negative_values_can_be_drawn() -> None:
    for values in ([0], [0, 0], [-1, 2], [5]):
        made = table(("x", "gain"), list(enumerate(values)))
        (axes,) = plots_of(plot.panels(made, "x", "gain"))
        low, high = axes.get_ylim()
        assert low <= min(values) <= max(values) <= high
        assert low < high


def test_a_figure_is_the_same_each_time() -> None:
    one, other = (plot.panels(some_table(), "devices", "makespan")._repr_png_() for _ in range(2))
    assert one == other


@in_turn(
    "named, code, words",
    [
        ({"panels": "p2q"}, "unknown-name", ("'p2q'", "'p2p'")),
        ({"panels": "schedule"}, "unknown-name", ("'schedule'",)),
        ({"title": 3}, "not-text", ("title", "3")),
        ({"logarithmic": "p2p"}, "unknown-name", ("axis 'p2p'",)),
        ({"lines": 3}, "not-a-list", ("lines", "3")),
        ({"drawn": []}, "empty", ("drawn names no line",)),
        ({"drawn": "1F2B"}, "unknown-name", ("line '1F2B'",)),
    ],
)
def test_what_cannot_be_drawn_is_refused(named: dict[str, Any], code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        plot.panels(some_table(), "devices", "makespan", **named)


def test_too_many_plots_are_refused() -> None:
    made = table(("x", "p2p", "makespan"), [(x, p2p, 1) for x in (1, 2) for p2p in range(21)])
    with refusal("too-large", "21 plots", "20"):
        plot.panels(made, "x", "makespan")


columns = usual_or_junk(["devices", "p2p", "makespan", "bubble_ratio", ("makespan", "bubble_ratio"), ()])


@examples(60)
@given(x=columns, y=columns, panels=columns, lines=columns, logarithmic=columns, labels=usual_or_junk([None, {"p2p": "T_C"}]))
def test_junk_at_panels(x: Any, y: Any, panels: Any, lines: Any, logarithmic: Any, labels: Any) -> None:
    figure = outcome(plot.panels, some_table(), x, y, panels=panels, lines=lines, logarithmic=logarithmic, labels=labels)
    assert figure is None or figure.alt_text
