"""Give junk to figures, to published results and to the grid of a view.

The outcome must be a valid result, or a HybridLabError that says what would work.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from misuse import BATCH, TIMELINE, outcome, small, usual_or_junk
from profiles import examples

from hybridlab import A100_80GB, FP16, Transformer, plot, search
from hybridlab.course import published
from hybridlab.widgets import ClusterExplorer

GPT = Transformer(layers=2, hidden=64, heads=2)
FOUND = search(GPT, 1, A100_80GB, 2)

timeline = usual_or_junk([TIMELINE, BATCH])
words = usual_or_junk(["", "ms"])


@examples(100)
@given(
    timeline=timeline,
    title=usual_or_junk([None, "mine"]),
    activations=usual_or_junk([True, False]),
    end=usual_or_junk([None, 100.0]),
    peak=usual_or_junk([None, 8]),
)
def test_plot_timeline(timeline: Any, title: Any, activations: Any, end: Any, peak: Any) -> None:
    picture = outcome(plot.timeline, timeline, title=title, activations=activations, end=end, peak=peak)
    assert picture is None or picture.alt_text


@examples(60)
@given(
    timelines=usual_or_junk([{}, {"a": TIMELINE}, {"a": TIMELINE, "b": BATCH}, [TIMELINE]]),
    title=usual_or_junk([None, "mine"]),
)
def test_plot_compare(timelines: Any, title: Any) -> None:
    picture = outcome(plot.compare, timelines, title=title)
    assert picture is None or picture.alt_text


@examples(100)
@given(
    x=usual_or_junk([[1, 2, 4], []]),
    series=usual_or_junk([{}, {"a": [1, 2, 3]}, {"a": [1, 2]}, {"a": [1, float("nan"), 3]}, {1: [1, 2, 3]}]),
    label=words,
)
def test_plot_lines(x: Any, series: Any, label: Any) -> None:
    picture = outcome(plot.lines, x, series, x_label=label, y_label="y")
    assert picture is None or picture.alt_text


@given(found=usual_or_junk([FOUND, FOUND.found, GPT]), title=usual_or_junk(["", "mine"]))
def test_plot_pareto(found: Any, title: Any) -> None:
    picture = outcome(plot.pareto, found, title=title)
    assert picture is None or picture.alt_text


@examples(100)
@given(
    models=usual_or_junk([{"a": GPT}, {"a": GPT, "b": None}, {}, {1: GPT}, [GPT]]),
    gpus=usual_or_junk([A100_80GB, [A100_80GB], [A100_80GB, "H100"]]),
    counts=st.lists(usual_or_junk([1, (1, 2)]), min_size=5, max_size=5),
    links=usual_or_junk([{"a": 1e9}, {"a": 0}, {"a": "b"}]),
    wires=usual_or_junk([FP16, "FP16"]),
    recompute=usual_or_junk(["full", ("none", "full")]),
    show=usual_or_junk([None, {"stages": 1}, {"stage": 1}]),
)
def test_cluster_explorer(models: Any, gpus: Any, counts: list[Any], links: Any, wires: Any, recompute: Any, show: Any) -> None:
    explorer = outcome(ClusterExplorer, models, gpus, *counts, links=links, wires=wires, recompute=recompute, show=show)
    assert explorer is None or explorer.plan.gpus >= 1


@given(timeline=timeline)
def test_alt_text(timeline: Any) -> None:
    text = outcome(plot.alt_text, timeline)
    assert text is None or "devices" in text


@given(stages=small, replicas=small, microbatches=small)
def test_published_timelines(stages: Any, replicas: Any, microbatches: Any) -> None:
    for table in (published.step_grid, published.event_log):
        made = outcome(table, stages, replicas, microbatches)
        assert made is None or (made.stages, made.replicas) == (stages, replicas)
    outcome(published.lost_forwards, stages, microbatches)


@given(values=st.lists(usual_or_junk([1, 2, 50.0]), min_size=6, max_size=6))
def test_the_reports_arithmetic(values: list[Any]) -> None:
    outcome(published.report.estimate, *values)


@given(timeline=timeline)
def test_bubble_rate(timeline: Any) -> None:
    rate = outcome(published.zero_bubble.bubble_rate, timeline)
    assert rate is None or 0 <= rate < 1
