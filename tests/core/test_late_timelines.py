"""Test that a measured timeline may begin before 0 or long after 0 without changing the quantities read from it."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from profiles import examples
from strategies import Size, quarters, settings_of, sizes

from hybridlab import Costs, Schedule, Timeline, build, hybrid_step, plot, simulate

LATER = (-(2.0**30), -5.25, 7.5, 2.0**30)  # sums with eighths are exact


def later(timeline: Timeline, by: float) -> Timeline:
    """Return the same run, with all times measured from another zero."""
    spans = timeline.spans
    moved = None if spans is None else replace(spans, start=spans.start + by, end=spans.end + by)
    return replace(timeline, start=timeline.start + by, end=timeline.end + by, spans=moved)


def is_the_same_run(run: Timeline, by: float) -> None:
    other = later(run, by)
    for quantity in ("makespan", "device_span", "bubble_ratio"):
        assert getattr(other, quantity) == getattr(run, quantity), quantity
    for quantity in ("busy", "peak_activations", "activations"):
        assert np.array_equal(getattr(other, quantity), getattr(run, quantity)), quantity
    assert other.blocking_operation().tolist() == run.blocking_operation().tolist()
    assert other.to_rows() == [row | {"start": row["start"] + by, "end": row["end"] + by} for row in run.to_rows()]
    traces = [replace(each, unit="us").to_chrome_trace()["traceEvents"] for each in (run, other)]
    assert traces[1] == [event | ({"ts": event["ts"] + by} if "ts" in event else {}) for event in traces[0]]


@examples(80)
@given(size=sizes(), data=st.data(), by=st.sampled_from(LATER))
def test_a_run_is_the_same_whenever_it_begins(size: Size, data: st.DataObject, by: float) -> None:
    assume(not size.chunks & (size.chunks - 1))  # a third is not exact in binary
    is_the_same_run(simulate(size.build(), data.draw(settings_of(size.devices, exact=True)).costs()), by)


@examples(40)
@given(size=sizes().filter(lambda size: size.chunks in (1, 2, 4)), overlap=st.booleans(), hop=quarters, by=st.sampled_from(LATER))
def test_so_is_a_step_with_messages_rings_and_optimisers(size: Size, overlap: bool, hop: float, by: float) -> None:
    costs = Costs(forward=1, backward=2, p2p=0.25)
    is_the_same_run(hybrid_step(size.build(), costs, 2, ring_step=hop, overlap=overlap, optimiser=0.5).timeline, by)


def test_what_starts_with_the_first_operation_has_waited_for_none() -> None:
    """Worked out by hand: 0F0 takes no time, so 1F0 starts at the same time as 0F0.

    1F1 starts when 0F1 ends, and 0B0 starts one latency after the end of 1B0.
    """
    schedule = Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1")
    for noon in (0, 12, -12):
        start = noon + np.array([0, 0, 6, 8, 0, 2, 3, 5])
        timeline = Timeline(schedule, start, noon + np.array([0, 2, 8, 9, 0, 3, 5, 6]))
        assert timeline.blocking_operation().tolist() == [-1, 0, 6, 2, -1, 1, 5, 6]


def test_a_device_that_starts_before_0_has_waited_for_its_input() -> None:
    timeline = Timeline(Schedule.parse("0F0 0B0\n1F0 1B0"), np.array([-9, -5, -8, -7]), np.array([-8, -4, -7, -5]))
    assert timeline.blocking_operation().tolist() == [-1, 3, 0, 2]
    assert (timeline.makespan, timeline.device_span) == (5, 5)


def test_a_figure_begins_at_the_first_start() -> None:
    """Drawings and descriptions must be the same, to the last bar."""
    costs = Costs(forward=1, backward=2, p2p=0.25)
    step = hybrid_step(build("dualpipe", 2, 4), costs, 2, ring_step=0.5, optimiser=1)
    for run, by in ((simulate(build("zb-h1", 3, 5), costs), 2.0**30), (step.timeline, -5.25)):
        one, other = (plot.timeline(each) for each in (run, later(run, by)))
        assert other.alt_text == one.alt_text
        for panel, late in zip(one.axes, other.axes, strict=True):
            assert late.get_xlim() == panel.get_xlim()
            assert [text.get_text() for text in late.texts] == [text.get_text() for text in panel.texts]
            for bars, drawn in zip(panel.collections, late.collections, strict=True):
                corners = [[np.asarray(path.vertices).tolist() for path in each.get_paths()] for each in (bars, drawn)]
                assert corners[0] == corners[1]
            for line, curve in zip(panel.lines, late.lines, strict=True):
                assert np.array_equal(line.get_xydata(), curve.get_xydata())
