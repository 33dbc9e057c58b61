"""Closed forms against the clock, over many sizes and costs; and what they do outside their range."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hybridlab import Costs, Timeline, UnsupportedSize, build, formulas, simulate

devices = st.integers(1, 9)
microbatches = st.integers(1, 24)
groups = st.integers(1, 5)
times = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.integers(0, 400).map(lambda number: number / 8))
halves = st.sampled_from([0.0, 0.125, 0.25, 0.5])


def run(
    name: str, sizes: tuple[int, ...], forward: float, backward: float, share: float = 0.5, p2p: float = 0.0
) -> Timeline:
    return simulate(build(name, *sizes), Costs.per_device(forward, backward, share, p2p))


def equal(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


many = settings(max_examples=100)


@many
@given(devices, microbatches, times, times, times)
def test_gpipe(devices: int, microbatches: int, forward: float, backward: float, p2p: float) -> None:
    timeline = run("gpipe", (devices, microbatches), forward, backward, p2p=p2p)
    assert timeline.makespan == equal(formulas.gpipe_makespan(devices, microbatches, forward, backward, p2p))


@many
@given(devices, microbatches, times, times)
def test_1f1b_without_latency(devices: int, microbatches: int, forward: float, backward: float) -> None:
    timeline = run("1f1b", (devices, microbatches), forward, backward)
    assert timeline.makespan == equal(formulas.one_f_one_b_makespan(devices, microbatches, forward, backward))


@many
@given(devices, groups, times, times, times)
def test_1f1b_with_latency(devices: int, groups: int, forward: float, backward: float, p2p: float) -> None:
    timeline = run("1f1b", (devices, groups * devices), forward, backward, p2p=p2p)
    assert timeline.makespan == equal(formulas.one_f_one_b_makespan(devices, groups * devices, forward, backward, p2p))


@many
@given(devices, groups, st.integers(2, 5), times, times, st.sampled_from([0.0, 0.1, 0.5, 0.99]))
def test_interleaved(devices: int, groups: int, chunks: int, forward: float, backward: float, part: float) -> None:
    """With latency up to the shorter of a chunk's forward and backward."""
    p2p = part * min(forward, backward) / chunks
    sizes = devices, groups * devices, chunks
    timeline = run("interleaved", sizes, forward, backward, p2p=p2p)
    assert timeline.makespan == equal(formulas.interleaved_makespan(*sizes, forward, backward, p2p))


@many
@given(devices, groups, st.sampled_from([2, 4, 6]), times)
def test_hanayo(devices: int, groups: int, chunks: int, forward: float) -> None:
    sizes = devices, groups * devices, chunks
    timeline = run("hanayo", sizes, forward, 2 * forward)
    assert timeline.makespan == equal(formulas.hanayo_makespan(*sizes, forward))


@many
@given(devices, microbatches, times, times, halves)
def test_zb_h1(devices: int, microbatches: int, forward: float, backward: float, share: float) -> None:
    assume(share * backward <= forward and microbatches >= devices)
    timeline = run("zb-h1", (devices, microbatches), forward, backward, share)
    weight_gradient = share * backward
    assert timeline.makespan == equal(
        formulas.zb_h1_makespan(devices, microbatches, forward, backward, weight_gradient)
    )


@many
@given(devices, microbatches, times, times)
def test_the_bubble_of_gpipe_and_1f1b_is_the_same(
    devices: int, microbatches: int, forward: float, backward: float
) -> None:
    assume(forward + backward > 0)
    for name in ("gpipe", "1f1b"):
        timeline = run(name, (devices, microbatches), forward, backward)
        assert timeline.bubble_ratio == equal(formulas.bubble_ratio(devices, microbatches))


@many
@given(devices, microbatches, times, times, times)
def test_peak_activations(devices: int, microbatches: int, forward: float, backward: float, p2p: float) -> None:
    """Whatever the costs: the order alone decides."""
    for name in ("gpipe", "1f1b", "zb-h1"):
        peaks = run(name, (devices, microbatches), forward, backward, p2p=p2p).peak_activations
        for device, peak in enumerate(peaks.tolist()):
            assert peak == formulas.peak_activations(name, devices, microbatches, device)


@many
@given(devices, groups, st.integers(2, 5))
def test_peak_activations_of_interleaved(devices: int, groups: int, chunks: int) -> None:
    sizes = devices, groups * devices, chunks
    peak = run("interleaved", sizes, 1, 2).peak_activations[0]
    assert peak == equal(formulas.peak_activations("interleaved", devices, groups * devices, chunks=chunks))


def test_what_1f1b_gains_is_memory_not_time() -> None:
    """Narayanan et al., arXiv 2104.04473, sec. 2.2.1: the same bubble, at most D activations in place of M."""
    gpipe, one_f_one_b = (run(name, (4, 64), 1, 2) for name in ("gpipe", "1f1b"))
    assert gpipe.makespan == one_f_one_b.makespan
    assert gpipe.peak_activations.tolist() == [64, 64, 64, 64]
    assert one_f_one_b.peak_activations.tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("formula", "arguments", "told"),
    [
        (formulas.one_f_one_b_makespan, (4, 6, 1, 2, 0.5), "microbatches a multiple of devices, not 6 of 4"),
        (formulas.interleaved_makespan, (4, 6, 2, 1, 2), "microbatches a multiple of devices, not 6 of 4"),
        (
            formulas.interleaved_makespan,
            (4, 8, 2, 1, 2, 0.5),
            "a latency below one chunk's forward and backward, 0.5, not 0.5",
        ),
        (
            formulas.interleaved_makespan,
            (4, 8, 2, 9, 1, 1),
            "a latency below one chunk's forward and backward, 0.5, not 1",
        ),
        (formulas.hanayo_makespan, (4, 6, 2, 1), "microbatches a multiple of devices, not 6 of 4"),
        (formulas.hanayo_makespan, (4, 8, 3, 1), "an even number of chunks, not 3"),
        (formulas.zb_h1_makespan, (4, 3, 1, 2, 1), "at least as many microbatches as devices, not 3 of 4"),
        (formulas.zb_h1_makespan, (4, 8, 9, 4, 3), "a weight gradient of at most half the backward, 2, not 3"),
        (formulas.zb_h1_makespan, (4, 8, 1, 4, 2), "a weight gradient no longer than the forward, 1, not 2"),
        (formulas.peak_activations, ("interleaved", 4, 8, 1), "device 0 and microbatches a multiple of devices"),
        (formulas.peak_activations, ("interleaved", 4, 6), "device 0 and microbatches a multiple of devices"),
    ],
)
def test_outside_its_range_a_closed_form_says_so(formula: Any, arguments: tuple[Any, ...], told: str) -> None:
    with pytest.raises(UnsupportedSize) as why:
        formula(*arguments)
    assert told in str(why.value)
    assert str(why.value).endswith("simulate other cases")


@pytest.mark.parametrize(
    ("name", "sizes", "costs", "formula"),
    [
        ("1f1b", (4, 6), (1, 2, 0.5, 0.5), lambda: 9 * 3 + (2 * 3 * 6 / 4 + 4) * 0.5),
        ("interleaved", (4, 8, 2), (2, 1, 0.5, 0.75), lambda: (8 + 1.5) * 3 + 14 * 0.75),
        ("zb-h1", (4, 8), (1, 8, 0.25), lambda: 8 * 9 + 3 * 5),
        ("zb-h1", (4, 8), (8, 8, 0.75), lambda: 8 * 16 + 3 * 4),
        ("zb-h1", (4, 2), (2, 4, 0.5), lambda: 2 * 6 + 3 * 2),
    ],
)
def test_the_ranges_are_needed(name: str, sizes: tuple[int, ...], costs: tuple[float, ...], formula: Any) -> None:
    """Outside them the formula's value is not the makespan."""
    assert abs(run(name, sizes, *costs).makespan - formula()) > 0.1
