"""Compare closed forms with simulated timelines for many sizes and costs; test what they do outside their range."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import assume, example, given
from hypothesis import strategies as st
from profiles import examples

from hybridlab import REGISTRY, Costs, Schedule, Timeline, UnsupportedSize, build, formulas, simulate

devices = st.integers(1, 9)
microbatches = st.integers(1, 24)
groups = st.integers(1, 5)
times = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.integers(0, 400).map(lambda number: number / 8))
parts = st.integers(0, 60).map(lambda number: number / 4)  # forward, input gradient and weight gradient; any of them may be the longest


def run(name: str, sizes: tuple[int, ...], forward: float, backward: float, share: float = 0.5, p2p: float = 0.0) -> Timeline:
    return simulate(build(name, *sizes), Costs(forward=forward, backward=backward, weight_share=share, p2p=p2p))


def split(
    name: str, sizes: tuple[int, ...], forward: float, input_gradient: float, weight_gradient: float
) -> tuple[Timeline, tuple[float, float, float]]:
    """Return the timeline, and its times in the form that a closed form takes."""
    backward = input_gradient + weight_gradient
    timeline = run(name, sizes, forward, backward, weight_gradient / backward if backward else 0)
    return timeline, (forward, backward, weight_gradient)


def equal(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


many = examples(100)


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
    """The closed form holds if the latency is at most the shorter of a chunk's forward and backward."""
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
@given(devices, microbatches, times, times, st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_eager_1f1b(devices: int, microbatches: int, forward: float, backward: float, part: float) -> None:
    """The closed form holds if the latency is at most half of the sum of a forward and a backward."""
    p2p = part * (forward + backward) / 2
    timeline = run("eager-1f1b", (devices, microbatches), forward, backward, p2p=p2p)
    assert timeline.makespan == equal(formulas.eager_one_f_one_b_makespan(devices, microbatches, forward, backward, p2p))


@many
@given(devices, microbatches, st.integers(2, 5), times, times, times)
def test_looped_bfs(devices: int, microbatches: int, chunks: int, forward: float, backward: float, p2p: float) -> None:
    sizes = devices, microbatches, chunks
    timeline = run("looped-bfs", sizes, forward, backward, p2p=p2p)
    assert timeline.makespan == equal(formulas.looped_bfs_makespan(*sizes, forward, backward, p2p))


@many
@given(devices, groups, st.integers(2, 5), times, times)
def test_the_bubble_of_looped_bfs_is_that_of_interleaved(devices: int, groups: int, chunks: int, forward: float, backward: float) -> None:
    """By Lamy-Poirier (arXiv 2211.05953), both bubbles are 1F1B's bubble divided by the number of chunks."""
    sizes = devices, groups * devices, chunks
    looped, interleaved = (run(name, sizes, forward, backward).makespan for name in ("looped-bfs", "interleaved"))
    assert looped == equal(interleaved)


@many
@given(devices, microbatches, parts, parts, parts)
def test_zb_h1(devices: int, microbatches: int, forward: float, input_gradient: float, weight_gradient: float) -> None:
    assume(microbatches >= devices)
    timeline, costs = split("zb-h1", (devices, microbatches), forward, input_gradient, weight_gradient)
    assert timeline.makespan == equal(formulas.zb_h1_makespan(devices, microbatches, *costs))


@many
@given(devices, groups, st.integers(2, 4), parts, parts, parts)
def test_interleaved_zb(devices: int, groups: int, chunks: int, forward: float, input_gradient: float, weight_gradient: float) -> None:
    sizes = devices, groups * devices, chunks
    timeline, costs = split("interleaved-zb", sizes, forward, input_gradient, weight_gradient)
    assert timeline.makespan == equal(formulas.interleaved_zb_makespan(*sizes, *costs))


@many
@given(devices, microbatches, parts, parts, parts)
def test_zb_h2(devices: int, more: int, forward: float, input_gradient: float, weight_gradient: float) -> None:
    sizes = devices, 2 * devices - 2 + more
    timeline, costs = split("zb-h2", sizes, forward, input_gradient, weight_gradient)
    assert timeline.makespan == equal(formulas.zb_h2_makespan(*sizes, *costs))
    assert timeline.device_span == equal(formulas.zb_h2_span(*sizes, *costs))


@many
@given(devices, microbatches, parts, parts, parts)
def test_zb_v(devices: int, more: int, forward: float, input_gradient: float, weight_gradient: float) -> None:
    assume(max(forward, weight_gradient) <= input_gradient)
    sizes = devices, 2 * devices - 2 + more
    timeline, costs = split("zb-v", sizes, forward, input_gradient, weight_gradient)
    assert timeline.makespan == equal(formulas.zb_v_makespan(*sizes, *costs))


@in_turn(
    "name, chunks, published",
    [
        ("zb-h1", (), lambda f, i, w: f + i - w),  # Qi et al., arXiv 2401.10241, Table 2
        ("zb-h2", (), lambda f, i, w: f + f + i - 2 * w),  # the same for one device; the last device starts K-1 forwards late
        ("interleaved-zb", (2,), lambda f, i, w: (f + i - w) / 2),
        ("zb-v", (), lambda f, i, w: f / 2),  # sec. 6: no device idles, but the last starts K-1 forwards of a chunk late
    ],
)
def test_the_bubbles_of_the_papers_where_all_parts_take_the_same(name: str, chunks: tuple[int, ...], published: Any) -> None:
    for devices, microbatches in [(2, 4), (4, 8), (4, 12), (8, 16), (8, 64)]:
        timeline, _ = split(name, (devices, microbatches, *chunks), 6, 6, 6)
        assert timeline.makespan - microbatches * 18 == (devices - 1) * published(6, 6, 6)


@many
@given(devices, microbatches, times)
def test_zb_h2_and_zb_v_keep_every_device_busy_where_all_parts_take_the_same(devices: int, microbatches: int, time: float) -> None:
    """If all parts take the same time, each device has no bubble between its first and its last operation.

    The source is Qi et al., arXiv 2401.10241, Table 2 and sec. 6.
    """
    for name in ("zb-h2", "zb-v"):
        timeline, _ = split(name, (devices, 2 * devices - 2 + microbatches), time, time, time)
        assert timeline.device_span == equal(timeline.busy[0])


@many
@given(devices, microbatches, times, times)
def test_the_bubble_of_gpipe_and_1f1b_is_the_same(devices: int, microbatches: int, forward: float, backward: float) -> None:
    assume(forward + backward > 0)
    for name in ("gpipe", "1f1b", "eager-1f1b"):
        timeline = run(name, (devices, microbatches), forward, backward)
        assert timeline.bubble_ratio == equal(formulas.bubble_ratio(devices, microbatches))


@many
@given(devices, microbatches, times, times, times)
def test_peak_activations(devices: int, microbatches: int, forward: float, backward: float, p2p: float) -> None:
    """The peaks hold for any costs, because only the order decides."""
    for name in ("gpipe", "1f1b", "eager-1f1b", "looped-bfs", "zb-h1", "zb-h2", "zb-v"):
        peaks = run(name, (devices, microbatches), forward, backward, p2p=p2p).peak_activations
        for device, peak in enumerate(peaks.tolist()):
            assert peak == formulas.peak_activations(name, devices, microbatches, device)


@many
@given(devices, groups, st.integers(2, 5))
def test_peak_activations_of_interleaved(devices: int, groups: int, chunks: int) -> None:
    sizes = devices, groups * devices, chunks
    peak = run("interleaved", sizes, 1, 2).peak_activations[0]
    assert peak == equal(formulas.peak_activations("interleaved", devices, groups * devices, chunks=chunks))


@many
@given(devices, groups, st.integers(2, 5))
def test_peak_activations_of_interleaved_zb(devices: int, groups: int, chunks: int) -> None:
    for device, peak in enumerate(run("interleaved-zb", (devices, groups * devices, chunks), 1, 2).peak_activations):
        assert peak == equal(formulas.peak_activations("interleaved-zb", devices, groups * devices, device, chunks))


@in_turn(
    "name, peaks",
    [
        ("v-half", {1: 2, 2: 2, 3: 3, 4: 3, 5: 4, 8: 5}),
        ("v-min", {1: 1, 2: 2, 3: 2, 4: 2, 5: 3, 8: 4}),
        ("dualpipe-v", {2: 2.5, 4: 4.5}),
        ("dualpipe", {4: 5, 8: 9}),
    ],
)
def test_peak_activations_where_the_most_of_any_device_is_known(name: str, peaks: dict[int, float]) -> None:
    for devices, peak in peaks.items():
        assert formulas.peak_activations(name, devices, 2 * devices) == peak
        for microbatches in (2 * devices, 4 * devices):
            assert run(name, (devices, microbatches), 1, 2).peak_activations.max() == peak


halves = st.integers(1, 5)


@many
@given(halves, groups)
def test_peak_activations_of_chimera(half: int, groups: int) -> None:
    devices = 2 * half
    for device, peak in enumerate(run("chimera", (devices, groups * devices), 1, 2).peak_activations):
        assert peak == formulas.peak_activations("chimera", devices, groups * devices, device)


@many
@given(halves, groups, times, times)
def test_chimeras_makespan(half: int, groups: int, forward: float, backward: float) -> None:
    size = (2 * half, 2 * half * groups)
    assert run("chimera", size, forward, backward).makespan == equal(formulas.chimera_makespan(*size, forward, backward))


@in_turn("devices, ratio, groups", product([2, 4, 6, 8, 32], (1, 2), (1, 2, 5)))
def test_chimera_has_the_published_bubble_ratio(devices: int, ratio: int, groups: int) -> None:
    """By Li and Hoefler (arXiv 2107.06925), it is (K-2)/(2M + K-2) for B = F, and (K-2)/(3M/2 + K-2) for B = 2F."""
    published = (devices - 2) / ({1: 2, 2: 1.5}[ratio] * groups * devices + devices - 2)
    assert run("chimera", (devices, groups * devices), 1, ratio).bubble_ratio == equal(published)


@many
@given(halves, groups, times, times)
def test_groups_of_chimera_that_share_no_slot_wait_for_each_other(half: int, groups: int, forward: float, backward: float) -> None:
    """Every group has the order of the first one, and starts 2K slots after the previous group; here a slot counts as two."""
    family, devices = REGISTRY["chimera"], 2 * half
    one = family.rule(devices, devices, 1)
    slots = np.concatenate([np.where(one < 0, -1, one + 4 * devices * group) for group in range(groups)], axis=2)
    apart = Schedule.from_slots("apart", slots, family.device_of(devices, 1), copies=2)
    longer = (groups - 1) * (devices - 2) * abs(backward - forward)
    makespan = simulate(apart, Costs(forward=forward, backward=backward)).makespan
    assert makespan == equal(formulas.chimera_makespan(devices, groups * devices, forward, backward) + longer)


@many
@given(st.sampled_from(["dualpipe", "dualpipe-v"]), halves, st.integers(0, 5), times, st.floats(0, 4), st.floats(0, 1))
@example("dualpipe", 2, 4, 1.0, 3.0, 0.0)  # the formula would give 0, the simulation gives 2
def test_dualpipes_bubble(name: str, half: int, more: int, forward: float, weight: float, overlap: float) -> None:
    """By DeepSeek-AI (arXiv 2412.19437, Table 2), it is (P/2 - 1)(FB + B - 3W). That holds for F = I >= W, and is refused for W > I."""
    devices, microbatches = (2 * half, 4 * half + 2 * more) if name == "dualpipe" else (half, 2 * half + more)
    schedule = build(name, devices, microbatches)
    backward, share = forward * (1 + weight), weight / (1 + weight)
    timeline = simulate(schedule, Costs(forward=forward, backward=backward, weight_share=share, overlap=overlap))
    times = (forward + backward - overlap * forward, backward, forward * weight)
    each = [time / schedule.chunks for time in times]
    assume(weight <= 1 or weight > 1 + 1e-6)
    if weight > 1 and forward:
        with refusal("outside-the-formula", "DualPipe", "weight gradient", kind=UnsupportedSize):
            formulas.dualpipe_bubble(2 * half, *each)
    else:
        idle = timeline.makespan - timeline.busy.min()
        assert idle == pytest.approx(formulas.dualpipe_bubble(2 * half, *each), rel=1e-9, abs=1e-9 * timeline.makespan)


def test_what_1f1b_gains_is_memory_not_time() -> None:
    """By Narayanan et al. (arXiv 2104.04473, sec. 2.2.1), it has GPipe's bubble, but holds at most D activations instead of M."""
    gpipe, one_f_one_b = (run(name, (4, 64), 1, 2) for name in ("gpipe", "1f1b"))
    assert gpipe.makespan == one_f_one_b.makespan
    assert gpipe.peak_activations.tolist() == [64, 64, 64, 64]
    assert one_f_one_b.peak_activations.tolist() == [4, 3, 2, 1]


def test_a_range_is_not_missed_by_a_rounding() -> None:
    """In floats, 0.3 - 0.1 is a little less than 0.2, and 3 x 0.2 is a little more than 0.6."""
    assert formulas.zb_v_makespan(4, 8, 0.2, 0.3, 0.1) == equal(8 * 0.5 + 3 * 0.1)
    assert formulas.dualpipe_bubble(8, 0.3, 0.3, 0.15) == equal(3 * 0.15)
    assert formulas.dualpipe_bubble(8, 0.30000000000000004, 0.2, 0.1) == equal(3 * 0.2)


@in_turn(
    "formula, arguments, words",
    [
        (formulas.one_f_one_b_makespan, (4, 6, 1, 2, 0.5), ("1F1B with latency", "microbatches", "not 6")),
        (formulas.interleaved_makespan, (4, 6, 2, 1, 2), ("interleaved 1F1B", "microbatches", "not 6")),
        (formulas.interleaved_makespan, (4, 8, 2, 1, 2, 0.5), ("latency", "0.5, not 0.5")),
        (formulas.interleaved_makespan, (4, 8, 2, 9, 1, 1), ("latency", "0.5, not 1")),
        (formulas.hanayo_makespan, (4, 6, 2, 1), ("Hanayo", "microbatches", "not 6")),
        (formulas.hanayo_makespan, (4, 8, 3, 1), ("Hanayo", "chunks", "not 3")),
        (formulas.zb_h1_makespan, (4, 3, 1, 2, 1), ("ZB-H1", "microbatches", "not 3 of 4")),
        (formulas.zb_h2_makespan, (4, 6, 1, 2, 1), ("ZB-H2", "7 for 4 devices", "not 6")),
        (formulas.zb_h2_span, (4, 6, 1, 2, 1), ("ZB-H2", "7 for 4 devices", "not 6")),
        (formulas.zb_v_makespan, (4, 6, 1, 2, 1), ("ZB-V", "7 for 4 devices", "not 6")),
        (formulas.zb_v_makespan, (4, 8, 3, 3, 1), ("ZB-V", "input gradient, 2,", "not 3 and 1")),
        (formulas.interleaved_zb_makespan, (4, 6, 2, 1, 2, 1), ("interleaved zero bubble", "microbatches", "not 6")),
        (formulas.eager_one_f_one_b_makespan, (4, 8, 1, 2, 1.75), ("eager 1F1B", "1.5, not 1.75")),
        (formulas.dualpipe_bubble, (7, 3, 2, 1), ("DualPipe", "stages", "not 7")),
        (formulas.dualpipe_bubble, (4, 5, 4, 3), ("DualPipe", "weight gradient", "input gradient, 1, not 3")),
        (formulas.dualpipe_bubble, (4, 1.5, 2, 1), ("DualPipe", "pair", "from 2 to 3, not 1.5")),
        (formulas.dualpipe_bubble, (4, 4, 2, 1), ("DualPipe", "pair", "from 2 to 3, not 4")),
        (formulas.chimera_makespan, (5, 5, 1, 1), ("Chimera", "devices", "not 5")),
        (formulas.chimera_makespan, (4, 6, 1, 1), ("Chimera", "microbatches", "not 6")),
        (formulas.peak_activations, ("chimera", 5, 5), ("Chimera", "devices", "not 5")),
        (formulas.peak_activations, ("interleaved", 4, 8, 1), ("interleaved 1F1B", "device 0, not 1")),
        (formulas.peak_activations, ("interleaved", 4, 6), ("interleaved 1F1B", "microbatches", "not 6")),
        (formulas.peak_activations, ("interleaved-zb", 4, 6), ("interleaved zero bubble", "microbatches", "not 6")),
        (formulas.peak_activations, ("v-half", 4, 7), ("v-half", "8 for 4 devices", "not 7")),
    ],
)
def test_outside_its_range_a_closed_form_says_so(formula: Any, arguments: tuple[Any, ...], words: tuple[str, ...]) -> None:
    with refusal("outside-the-formula", *words, "simulate", kind=UnsupportedSize):
        formula(*arguments)


def test_a_closed_form_takes_one_setting_and_a_weight_gradient_within_the_backward() -> None:
    with refusal("several-settings", kind=UnsupportedSize):
        formulas.gpipe_makespan(4, 8, [1, 2], 2)  # type: ignore[arg-type]
    with refusal("out-of-range", "weight gradient", "2, not 3", kind=UnsupportedSize):
        formulas.zb_h1_makespan(4, 8, 1, 2, 3)


@in_turn(
    "schedule, chunks, code, word",
    [
        (np.zeros((2, 3)), 2, "unknown-name", "peak activations"),
        (np.zeros(2, dtype=[("a", int)]), 2, "unknown-name", "peak activations"),
        ("interleaved", 1, "too-small", "chunks"),
    ],
)
def test_peak_activations_of_no_schedule_or_of_too_few_chunks_are_refused(schedule: Any, chunks: int, code: str, word: str) -> None:
    with refusal(code, word):
        formulas.peak_activations(schedule, 4, 8, chunks=chunks)


@in_turn(
    "name, sizes, costs, formula",
    [
        ("1f1b", (4, 6), (1, 2, 0.5, 0.5), lambda: 9 * 3 + (2 * 3 * 6 / 4 + 4) * 0.5),
        ("interleaved", (4, 8, 2), (2, 1, 0.5, 0.75), lambda: (8 + 1.5) * 3 + 14 * 0.75),
        ("eager-1f1b", (4, 8), (1, 2, 0.5, 1.75), lambda: 11 * 3 + 6 * 1.75),
        ("zb-h1", (4, 8), (1, 8, 0.25), lambda: 8 * 9 + 3 * 5),  # Table 2 alone, where W > F
        ("zb-h1", (4, 8), (8, 8, 0.75), lambda: 8 * 16 + 3 * 4),  # where W > I
        ("zb-h1", (4, 2), (2, 4, 0.5), lambda: 2 * 6 + 3 * 2),
        ("zb-h2", (4, 6), (2, 4, 0.25), lambda: 6 * 6 + 3 * 3),
        ("zb-v", (4, 6), (2, 4, 0.25), lambda: 6 * 6 + 3 * 2),
        ("zb-v", (4, 8), (4, 4, 0.5), lambda: 8 * 8 + 3 * 1),
        ("zb-v", (4, 8), (2, 8, 0.75), lambda: 8 * 10 + 3 * 1),
    ],
)
def test_the_ranges_are_needed(name: str, sizes: tuple[int, ...], costs: tuple[float, ...], formula: Any) -> None:
    """Outside its range, a formula's value is not the makespan."""
    assert abs(run(name, sizes, *costs).makespan - formula()) > 0.1
