"""Compare figures with their timelines: the drawing, the labels, the description, and what is refused."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cases import in_turn, refusal
from IPython.core.formatters import DisplayFormatter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from strategies import supported

from hybridlab import REGISTRY, Costs, Schedule, Timeline, build, plot, simulate
from hybridlab.palette import shade_colour
from hybridlab.plot import bars

COSTS = Costs(forward=1, backward=2)


def made(name: str, devices: int, microbatches: int, chunks: int | None = None, **costs: Any) -> Timeline:
    times = {"forward": 1, "backward": 2} | costs
    return simulate(build(name, devices, microbatches, chunks), Costs(**times))


TIMELINES = {
    **{f"{name}, 4 devices": made(name, *supported(name, 4, 8)) for name in REGISTRY},
    **{f"{name}, fewest": made(name, *supported(name, 1, 1)) for name in REGISTRY},
    "1f1b, fewer microbatches than devices": made("1f1b", 6, 2),
    "1f1b, a slow device and latency": made("1f1b", 4, 8, forward=[6.7, 6.7, 8.71, 6.7], backward=13.1, p2p=5.0),
    "hanayo, 2 waves": made("hanayo", 4, 8, 4),
    "zb-h1, weight gradients that take no time": made("zb-h1", 3, 5, weight_share=0.0),
    "1f1b, nothing takes any time": made("1f1b", 2, 3, forward=0, backward=0),
    "dualpipe, half of it overlapped, latency": made("dualpipe", 4, 10, overlap=0.5, p2p=0.3),
    "dualpipe-v, unequal devices": made("dualpipe-v", 3, 6, forward=[1, 2, 1], overlap=1.0),
    "dualpipe, 16 devices": made("dualpipe", 16, 32),
    "chimera, 8 devices": made("chimera", 8, 16),
    "1f1b, very long times": made("1f1b", 2, 12, forward=123456.7, backward=234567.8),
    "gpipe, 16 devices, 64 microbatches": made("gpipe", 16, 64),
}
EVERY_LOOK = ("1f1b", "zb-h1", "interleaved", "hanayo", "chimera", "dualpipe", "dualpipe-v")


def shows_more(name: str) -> bool:
    """Return whether a timeline shows something that those of ``EVERY_LOOK`` on 4 devices do not show in less time."""
    schedule, _, size = name.partition(", ")
    if size == "4 devices":
        return schedule in EVERY_LOOK
    return name == "1f1b, fewest" or not any(word in size for word in ("fewest", "8 devices", "16"))


QUICK = [timeline for name, timeline in TIMELINES.items() if shows_more(name)]
SLOW = [timeline for name, timeline in TIMELINES.items() if not shows_more(name)]


def each_timeline(test: Callable[[Timeline], None]) -> Callable[[list[Timeline]], None]:
    """Run a test with all timelines in turn: those that show something new, and as a slow case the others."""

    def with_all(timelines: list[Timeline]) -> None:
        in_turn("timeline", timelines)(test)()

    with_all.__name__ = test.__name__
    cases = [pytest.param(QUICK, id="quick"), pytest.param(SLOW, id="slow", marks=pytest.mark.slow)]
    return pytest.mark.parametrize("timelines", cases)(with_all)


@cache
def drawn(timeline: Timeline) -> plot.Picture:
    """Return the figure of a timeline, drawn once for all tests that only look at it."""
    return plot.timeline(timeline)


def panels(figure: plot.Picture) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_gid() == "timeline"]


def of(axes: Axes, gid: str) -> PolyCollection | LineCollection:
    (found,) = [each for each in axes.collections if each.get_gid() == gid]
    return found


def rectangles(drawn: PolyCollection) -> npt.NDArray[np.float64]:
    """Return left, right, top and bottom of each rectangle: times, and inches below the top of the panel."""
    corners = np.array([path.vertices[:4] for path in drawn.get_paths()])
    return np.concatenate([corners.min(1), corners.max(1)], 1)[:, [0, 2, 1, 3]]


def rows(timeline: Timeline) -> list[dict]:
    first = timeline.start.min()
    return [row | {"start": row["start"] - first, "end": row["end"] - first} for row in timeline.to_rows()]


def png(figure: plot.Picture) -> bytes:
    return DisplayFormatter().format(figure, include=["image/png"])[0]["image/png"]


@each_timeline
def test_every_operation_is_a_bar_from_its_start_to_its_end_in_the_row_of_its_device(timeline: Timeline) -> None:
    (axes,) = panels(drawn(timeline))
    idle, halves = rectangles(of(axes, "idle")), halves_of(timeline.schedule)
    for kind in {row["kind"] for row in rows(timeline)}:
        own = [row for row in rows(timeline) if row["kind"] == kind]
        for row, (left, right, top, bottom) in zip(own, rectangles(of(axes, f"operations {kind}")), strict=True):
            above, below = idle[row["device"], 2:]
            if row["op"] in halves:
                middle = (above + below) / 2
                above, below = (above, middle) if kind == "F" else (middle, below)
            assert (left, right) == (row["start"], row["end"])
            assert (top, bottom) == pytest.approx((above, below))


def halves_of(schedule: Schedule) -> set[str]:
    """Return the operations of overlapped pairs, read from the schedule's text."""
    return set(re.findall(r"\d+[FB]\d+", " ".join(re.findall(r"\(.*?\)", str(schedule)))))


def test_the_two_of_a_pair_share_one_stretch_of_time_the_forward_above_the_backward() -> None:
    """Worked out by hand: device 0 of DualPipe runs (0F3;3B5) from 7 to 10, and (3F6;0B0) from 11 to 14."""
    (axes,) = panels(plot.timeline(made("dualpipe", 4, 8)))
    bar = rectangles(of(axes, "idle"))[0, 3]
    first = {kind: [each for each in rectangles(of(axes, f"operations {kind}")).tolist() if each[3] < bar + 0.01] for kind in "FB"}
    for left, right in ((7, 10), (11, 14)):
        assert [each for each in first["F"] if each[0] == left] == [[left, right, 0, pytest.approx(bar / 2)]]
        assert [each for each in first["B"] if each[0] == left] == [[left, right, pytest.approx(bar / 2), pytest.approx(bar)]]
    written = {(text.get_position()[0], text.get_text()) for text in axes.texts if text.get_position()[1] < bar}
    assert {(8.5, "F3"), (8.5, "B5"), (12.5, "F6"), (12.5, "B0")} <= written


def test_the_legend_tells_pairs_chunks_and_copies_only_where_they_are() -> None:
    def told(*names: str) -> set[str]:
        figure = plot.compare({name: made(name, 4, 8) for name in names})
        return {text.get_text() for text in figure.axes[0].texts}

    pair, chunks, copies = "overlapped pair: both at once", "first to last chunk", "copies of the weights: from device 0, from device 3"
    assert not told("1f1b") & {pair, chunks, copies}
    assert told("chimera") & {pair, chunks, copies} == {copies}
    assert told("dualpipe-v") & {pair, chunks, copies} == {pair, chunks}
    assert told("dualpipe", "interleaved") & {pair, chunks, copies} == {pair, chunks, copies}
    unlike = plot.compare({"4": made("chimera", 4, 8), "2": made("chimera", 2, 8)})
    assert "copies of the weights: first, second" in {text.get_text() for text in unlike.axes[0].texts}


def test_the_number_of_a_microbatch_is_in_both_halves_of_every_pair() -> None:
    timeline = made("dualpipe", 8, 20)  # too many for the other bars
    (axes,) = panels(drawn(timeline))
    assert sum(text.get_color() == "black" for text in axes.texts) >= 2 * timeline.schedule.pairs.size
    assert sum(text.get_color() == "black" for text in axes.texts) < len(timeline.ops)


@each_timeline
def test_bars_have_the_colour_of_their_kind_and_chunk(timeline: Timeline) -> None:
    (axes,) = panels(drawn(timeline))
    devices, chunks, copies = timeline.schedule.devices, timeline.schedule.chunks, timeline.schedule.copies
    entered = {row["microbatch"]: row["device"] for row in rows(timeline) if row["stage"] == 0}  # the other way in the second copy
    for kind in {row["kind"] for row in rows(timeline)}:
        colours = of(axes, f"operations {kind}").get_facecolor()
        wanted = [
            shade_colour(kind, (entered[row["microbatch"]] > 0) * chunks + row["stage"] // devices, chunks * copies)
            for row in rows(timeline)
            if row["kind"] == kind
        ]
        assert np.allclose(colours[:, :3], [to_rgb(colour) for colour in wanted])


@each_timeline
def test_idle_time_is_hatched_from_the_first_start_to_the_makespan(timeline: Timeline) -> None:
    idle = of(panels(drawn(timeline))[0], "idle")
    assert idle.get_hatch()
    assert [tuple(each[:2]) for each in rectangles(idle)] == [(0, timeline.makespan)] * timeline.schedule.devices


@each_timeline
def test_the_number_in_a_bar_is_its_microbatch_and_stays_within_the_bar(timeline: Timeline) -> None:
    figure = drawn(timeline)
    (axes,) = panels(figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    bars = {}
    for kind in {row["kind"] for row in rows(timeline)}:
        own = [row for row in rows(timeline) if row["kind"] == kind]
        for row, (left, right, top, bottom) in zip(own, rectangles(of(axes, f"operations {kind}")), strict=True):
            bars[row["device"], row["op"]] = (left, right, top, bottom, row)
    written = [text for text in axes.texts if text.get_color() == "black"]
    for text in written:
        x, y = text.get_position()
        (row,) = [row for left, right, top, bottom, row in bars.values() if left < x < right and top < y < bottom]
        assert text.get_text() in (str(row["microbatch"]), f"{row['kind']}{row['microbatch']}")
        box = text.get_window_extent(renderer).transformed(axes.transData.inverted())
        assert row["start"] <= box.x0 < box.x1 <= row["end"]
    shown = {text.get_text() for text in figure.axes[0].texts}
    if len(written) == len(bars):
        assert "number: microbatch" in shown
    else:
        assert f"microbatches 0 to {timeline.schedule.microbatches - 1}: narrow bars have no number" in shown


@each_timeline
def test_a_figure_of_usual_size_numbers_every_bar(timeline: Timeline) -> None:
    """A bar has room for a number if it takes at least a 70th of the time axis.

    Only a schedule that idles for long has narrower bars.
    """
    if timeline not in [TIMELINES[f"{name}, 4 devices"] for name in REGISTRY]:
        return
    wide = timeline.end - timeline.start >= timeline.makespan / 70
    assert wide.any()
    (axes,) = panels(drawn(timeline))
    assert sum(text.get_color() == "black" for text in axes.texts) >= wide.sum()


@each_timeline
def test_the_activation_curve_reaches_the_peak_and_holds_every_microbatch_for_its_time(timeline: Timeline) -> None:
    (axes,) = panels(drawn(timeline))
    curves = [line for line in axes.lines if line.get_gid() == "activations"]
    dots = [line for line in axes.lines if line.get_gid() == "peak"]
    assert [line.get_ydata().max() for line in curves] == timeline.peak_activations.tolist()
    assert [float(line.get_ydata()[0]) for line in dots] == timeline.peak_activations.tolist()
    begun = {(row["stage"], row["microbatch"]): row["start"] for row in rows(timeline) if row["kind"] == "F"}
    held = np.zeros(timeline.schedule.devices)
    for row in rows(timeline):
        if row["kind"] in "BW":
            held[row["device"]] += (row["end"] - begun[row["stage"], row["microbatch"]]) / timeline.schedule.chunks
    areas = [float(np.sum(np.diff(line.get_xdata()) * line.get_ydata()[:-1])) for line in curves]
    assert np.allclose(areas, held)
    names = [text.get_text() for text in axes.texts if text.get_text().startswith("peak")]
    assert names == [f"peak {peak:g}" for peak in timeline.peak_activations]


def test_activations_can_be_left_out() -> None:
    figure = plot.timeline(made("1f1b", 4, 8), activations=False)
    assert not panels(figure)[0].lines
    assert figure.get_figheight() < plot.timeline(made("1f1b", 4, 8)).get_figheight()
    assert "activations, peak" not in {text.get_text() for text in figure.axes[0].texts}


def test_overlapping_measured_operations_still_peak_where_the_order_says() -> None:
    simulated = made("1f1b", 3, 4)
    measured = Timeline(simulated.schedule, simulated.start - 0.3, simulated.end + 0.3)
    (axes,) = panels(plot.timeline(measured))
    curves = [line for line in axes.lines if line.get_gid() == "activations"]
    assert [line.get_ydata().max() for line in curves] == [3, 2, 1]
    assert all((np.diff(line.get_xdata()) >= 0).all() for line in curves)


def test_time_starts_at_the_first_start() -> None:
    timeline = made("1f1b", 3, 4)
    later = Timeline(timeline.schedule, timeline.start + 64, timeline.end + 64)
    assert png(plot.timeline(later)) == png(plot.timeline(timeline))


def test_kinds_differ_without_colour_by_a_mark() -> None:
    two_kinds = Schedule("both", [["0F0", "0I0", "0W0", "0F1", "0B1"]])
    (axes,) = panels(plot.timeline(simulate(two_kinds, COSTS)))
    bar = rectangles(of(axes, "idle"))[0]
    marks = {}
    for kind in "BIW":
        mark = of(axes, f"marks {kind}")
        height = mark.get_segments()[0][0, 1]
        marks[kind] = ("low" if height > bar[3] / 2 else "high", mark.get_linestyles()[0][1] is None)
    assert marks == {"B": ("low", True), "I": ("low", False), "W": ("high", True)}
    assert not [each for each in axes.collections if each.get_gid() == "marks F"]


FIGURES = {
    "long title": lambda: plot.timeline(made("1f1b", 2, 4), title="cost $5, then $6; " * 9),
    "compare": lambda: plot.compare({name: made(name, 4, 8) for name in ("1f1b", "zb-h1", "interleaved")}, title="Three"),
    "near ends": lambda: plot.compare({"one": made("gpipe", 2, 9, forward=1.01), "two": made("gpipe", 2, 9)}),
    "marked": lambda: plot.timeline(made("zb-v", 4, 8), marked=["0F0"], marked_as="critical path: its work and its latency"),
    "lines": lambda: plot.lines([1, 2, 4, 8], {"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]}, x_label="x", y_label="y", title="t"),
}


@each_timeline
def test_texts_of_a_timeline_stay_on_the_page_and_clear_of_each_other(timeline: Timeline) -> None:
    check_texts(drawn(timeline))


@in_turn("name", FIGURES)
def test_texts_stay_on_the_page_and_clear_of_each_other(name: str) -> None:
    check_texts(FIGURES[name]())


def check_texts(figure: plot.Picture) -> None:
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    ticks = [tick for axes in figure.axes if axes.axison for tick in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    texts = [text for axes in figure.axes for text in axes.texts] + ticks
    boxes = np.array([text.get_window_extent(renderer).extents for text in texts if text.get_text()])
    width, height = renderer.get_canvas_width_height()
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2] <= width).all()
    assert (boxes[:, 3] <= height).all()
    x0, y0, x1, y1 = (boxes[:, [place]] for place in range(4))
    wide = np.minimum(x1, x1.T) - np.maximum(x0, x0.T)
    high = np.minimum(y1, y1.T) - np.maximum(y0, y0.T)
    overlaps = (np.minimum(wide, high) > 1) & ~np.eye(len(boxes), dtype=bool)  # the empty corners of texts may overlap by a pixel
    assert not overlaps.any()


def test_compared_timelines_share_one_time_axis_on_which_each_ends_with_a_line() -> None:
    timelines = {name: made(name, 4, 8) for name in ("gpipe", "zb-h1", "1f1b")}
    figure = plot.compare(timelines)
    drawn = panels(figure)
    assert {axes.get_xlim() for axes in drawn} == {(0, 33)}
    assert len({(axes.get_position().x0, axes.get_position().x1) for axes in drawn}) == 1
    assert [of(axes, "makespan").get_segments()[0][0, 0] for axes in drawn] == [33, 27, 33]
    assert [[line[0, 0] for line in of(axes, "makespans above").get_segments()] for axes in drawn] == [[], [33], [33, 27]]
    bold = [text.get_text() for text in figure.axes[0].texts if text.get_weight() == "bold"]
    assert bold == ["gpipe", "zb-h1", "1f1b", "33", "27"]


def test_the_end_of_another_timeline_crosses_no_number() -> None:
    """The dashed line is drawn over idle time and below bars: it could make 6 look like 8."""
    later = panels(plot.compare({name: made(name, 4, 8) for name in ("zb-h1", "1f1b")}))[1]
    drawn = [each.get_gid() for each in sorted(later.collections, key=lambda each: float(each.get_zorder()))]
    bars = [place for place, gid in enumerate(drawn) if str(gid).startswith("operations")]
    assert drawn.index("idle") < drawn.index("makespans above") < min(bars)


def test_figures_with_one_span_and_one_room_have_the_same_scales() -> None:
    timelines = {name: made(name, 4, 8) for name in ("gpipe", "zb-h1", "1f1b")}
    figures = {name: panels(plot.timeline(each, end=33, peak=8))[0] for name, each in timelines.items()}
    tallest = heights(figures["gpipe"])[0]
    for name, axes in figures.items():
        assert axes.get_xlim() == (0, 33)
        assert of(axes, "makespan").get_segments()[0][0, 0] == timelines[name].makespan
        assert heights(axes) == pytest.approx(tallest * timelines[name].peak_activations / 8)


def heights(axes: Axes) -> list[float]:
    """Return how high each activation curve rises, in inches."""
    curves = [line for line in axes.lines if line.get_gid() == "activations"]
    tops = [(line.get_transform() - axes.transData).transform([[0, line.get_ydata().max()], [0, 0]]) for line in curves]
    return [bottom[1] - top[1] for top, bottom in tops]


def test_a_longer_span_leaves_the_end_of_the_axis_empty() -> None:
    figure = plot.timeline(made("1f1b", 2, 2), end=50)
    (axes,) = panels(figure)
    assert {tuple(each[:2]) for each in rectangles(of(axes, "idle"))} == {(0, 9)}
    shown = {text.get_text() for text in figure.axes[0].texts}
    assert {"9", "40"} <= shown  # the timeline's end, and a tick beyond it
    assert figure.alt_text == plot.alt_text(made("1f1b", 2, 2))


def test_a_printed_makespan_is_span_enough() -> None:
    timeline = made("1f1b", 3, 5, forward=1 / 3, backward=1 / 7)
    assert plot.timeline(timeline, end=float(f"{timeline.makespan:.10g}")).axes[1].get_xlim()[1] == timeline.makespan


def test_a_figure_writes_makespan_and_bubble_ratio() -> None:
    texts = {text.get_text() for text in plot.timeline(made("1f1b", 4, 8)).axes[0].texts}
    assert {"makespan 33 ms, bubble ratio 0.273", "time, ms", "1F1B, 4 devices, 8 microbatches"} <= texts


def test_ten_microbatches_are_numbered_with_one_figure() -> None:
    """Ten microbatches have numbers up to 9, so a number fits where 10 would not."""
    wide = bars.text_width("9", bars.SMALLEST) + 0.04
    assert wide < bars.text_width("10", bars.SMALLEST)
    timeline = simulate(build("1f1b", 2, 10), Costs(forward=1, backward=1))
    numbers = bars.numbers_for(timeline, height=0.25, inches=wide)
    assert numbers.rows.all()


def test_the_largest_figure_can_be_drawn() -> None:
    figure = plot.timeline(made("gpipe", 64, 64))
    assert len(rectangles(of(panels(figure)[0], "operations F"))) == 64 * 64


BATCH = simulate(build("1f1b", 2, 2), Costs(forward=[[1], [2]], backward=2))
REFUSED = {
    "a batch": (lambda: plot.timeline(BATCH), "several-settings", "(2,)", ".at()"),
    "a batch in words": (lambda: plot.alt_text(BATCH), "several-settings", "(2,)", ".at()"),
    "a schedule": (lambda: plot.timeline(build("1f1b", 1, 1)), "not-a-timeline", "<Schedule 1f1b: 1 device, 1 microbatch, 1 chunk>"),
    "many operations": (
        lambda: plot.timeline(made("1f1b", 2, 501)),
        "too-large", "2 devices", "1,002 operations", "64 devices and 1,000 operations",
    ),
    "many devices": (
        lambda: plot.timeline(made("1f1b", 65, 1)),
        "too-large", "65 devices", "2 operations", "64 devices and 1,000 operations",
    ),
    "many devices in all": (lambda: plot.compare({name: made("1f1b", 33, 1) for name in "ab"}), "too-large", "66 devices", "at most 64"),
    "a list to compare": (lambda: plot.compare([made("1f1b", 1, 1)]), "wrong-type", "compare", "[<Timeline of <Schedule 1f1b: 1 device"),
    "nothing to compare": (lambda: plot.compare({}), "empty", "compare", "{}"),
    "a title that is no text": (lambda: plot.timeline(made("1f1b", 1, 1), title=3), "not-text", "title", "3"),
    "a key that is no text": (lambda: plot.compare({1: made("1f1b", 1, 1)}), "not-text", "title of a timeline", "1"),
    "two units": (
        lambda: plot.compare({"one": made("1f1b", 1, 1), "other": made("1f1b", 1, 1, unit=None)}),
        "different-units", "ms in 'one'", "plain slots in 'other'",
    ),
    "a short span": (lambda: plot.timeline(made("1f1b", 2, 2), end=8), "too-small", "end", "makespan, 9", "8"),
    "several spans": (lambda: plot.timeline(made("1f1b", 2, 2), end=[9, 10]), "wrong-shape", "end", "makespan, 9", "[9, 10]"),
    "an endless span": (lambda: plot.timeline(made("1f1b", 2, 2), end=float("inf")), "not-finite", "end", "inf"),
    "a small peak": (lambda: plot.timeline(made("1f1b", 2, 2), peak=1.5), "too-small", "peak", "2", "1.5"),
    "a peak that is no number": (lambda: plot.timeline(made("1f1b", 2, 2), peak="large"), "not-a-number", "peak", "'large'"),
    "one marked text": (lambda: plot.timeline(made("1f1b", 2, 2), marked="0F0"), "not-a-list", "marked must be a list", "'0F0'"),
    "a marked number": (lambda: plot.timeline(made("1f1b", 2, 2), marked=[3]), "unknown-operation", "3 is not an operation"),
    "a mark of another schedule": (
        lambda: plot.timeline(made("1f1b", 2, 2), marked=["1F0", "0F2"]),
        "unknown-operation", "1F1B, 2 devices, 2 microbatches, has no operation 0F2",
    ),
    "a long name of marks": (lambda: plot.timeline(made("1f1b", 2, 2), marked_as="m" * 41), "malformed-name", "at most 40 characters"),
    "a mark in no timeline": (lambda: plot.compare({"a": made("1f1b", 2, 2)}, marked={"b": []}), "unknown-name", "unknown timeline 'b'"),
    "marks without a title": (lambda: plot.compare({"a": made("1f1b", 2, 2)}, marked=["0F0"]), "wrong-type", "operations by title"),
}  # fmt: skip


@in_turn("call, code, words", [(call, code, words) for call, code, *words in REFUSED.values()])
def test_what_cannot_be_drawn_is_refused_with_what_can(call: Callable[[], object], code: str, words: list[str]) -> None:
    with refusal(code, *words):
        call()
