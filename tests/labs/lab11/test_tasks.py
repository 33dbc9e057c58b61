"""Test lab 11's tasks: every way to write a right answer passes, and every typical wrong answer gets the right code."""

import re
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from lab11 import student_recomputation as student

from hybridlab import REGISTRY, Costs, build, check, formulas, simulate
from hybridlab.course.labs.lab11.recomputed_peaks import orders_and_shares, peak_of_line
from hybridlab.course.labs.lab11.tasks import run_batch
from hybridlab.course.tasks import TASKS

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab11.t1", 3150, "old-bubble"),
    ("lab11.t1", 3237.5, "backward-halved"),
    ("lab11.t1", 2750, "nothing-recomputed"),
    ("lab11.t1", 3900, "all-recomputed"),
    ("lab11.t1", 2925, "old-busy-time"),
    ("lab11.t1", 2800, "busy-time-alone"),
    ("lab11.t1", 525, "bubble-alone"),
    ("lab11.t1", 4025, "1f1b"),
    ("lab11.t1", 3400, "k-for-k-1"),
    ("lab11.t1", 3000, "wrong-value"),
    ("lab11.t1", "3325", "not-a-number"),
    ("lab11.t2", [0, 0], "no-floor"),
    ("lab11.t2", [0.9032, 0.1346], "a-trip-each"),
    ("lab11.t2", [1.1667, 0.1346], "idle-over-ideal"),
    ("lab11.t2", [0.5714, 0.1346], "k-messages"),
    ("lab11.t2", [0.3684, 0.1346], "one-way"),
    ("lab11.t2", [0.1346, 0.5385], "swapped"),
    ("lab11.t2", [0.5385, 0], "all-hidden"),
    ("lab11.t2", [0.5385, 0.5385], "eight-in-flight"),
    ("lab11.t2", [0.5385, 0.0769], "sixteen-in-flight"),
    ("lab11.t2", [0.5385, 0.2692], "halved"),
    ("lab11.t2", [53.85, 13.46], "per-cent", "53.85", "0.5385"),
    ("lab11.t2", [0.5385, 0.3], "wrong-value", "eager 1F1B", "0.3"),
    ("lab11.t2", [0.4, 0.1346], "wrong-value", "of 1F1B", "0.4"),
    ("lab11.t2", [0.54, 0.13], "too-few-decimals", "0.54, 0.13", "3 decimals"),
    ("lab11.t2", [0.541, 0.135], "wrong-value", "of 1F1B", "0.541"),
    ("lab11.t2", [0.539, 0.135], "wrong-value", "of 1F1B", "0.539"),
    ("lab11.t2", [0.538, 0.134], "wrong-value", "eager 1F1B", "0.134"),
    ("lab11.t2", [0.5388, 0.135], "wrong-decimal", "0.5388, 0.135"),
    ("lab11.t2", [0.538, 0.1343], "wrong-decimal", "3 decimals"),
    ("lab11.t2", [0.5385], "wrong-length"),
    ("lab11.t3", ("1f1b", 1, 64, False), "no-recomputation"),
    ("lab11.t3", ("dualpipe", 1, 64, False), "does-not-fit", "DualPipe", "14 samples"),
    ("lab11.t3", ("chimera", 1, 64, False), "does-not-fit", "Chimera", "1460.0 ms", "13 samples"),
    ("lab11.t3", ("zb-h2", 1, 64, False), "does-not-fit", "ZB-H2", "15 samples"),
    ("lab11.t3", ("gpipe", 1, 64, False), "does-not-fit", "GPipe", "64 samples"),
    ("lab11.t3", ("zb-h1", 1, 32, True), "does-not-fit", "ZB-H1", "16 samples"),
    ("lab11.t3", ("gpipe", 1, 32, True), "large-microbatches"),
    ("lab11.t3", ("looped-bfs", 3, 32, True), "large-microbatches"),
    ("lab11.t3", ("gpipe", 1, 64, True), "waits-for-messages"),
    ("lab11.t3", ("eager-1f1b", 1, 64, True), "waits-for-messages", "1500"),
    ("lab11.t3", ("looped-bfs", 6, 64, True), "waits-for-messages", "1500"),
    ("lab11.t3", ("looped-bfs", 3, 48, True), "samples-not-divisible"),
    ("lab11.t3", ("looped-bfs", 1, 64, True), "unsupported-size", "looped-bfs"),
    ("lab11.t3", ("interleaved", 2, 4, False), "unsupported-size", "interleaved", "devices"),
    ("lab11.t3", ("looped", 3, 64, True), "unknown-name", "'looped-bfs'"),
    ("lab11.t3", ("looped-bfs", 3, 64, 1), "wrong-shape"),
    ("lab11.t3", ("looped-bfs", 3, 64), "wrong-shape"),
    ("lab11.t3", {"schedule": "looped-bfs", "chunks": 3}, "wrong-shape"),
    ("lab11.t3", ("looped-bfs", 3.5, 64, True), "not-a-whole-number"),
    ("lab11.t3", (3, 3, 64, True), "not-text"),
    ("lab11.t4", student.keeps_all, "nothing-recomputed", "GPipe of 2 devices and 3 microbatches, kept = 0.25", "its peak is 1.5"),
    ("lab11.t4", student.never_whole, "never-whole", "GPipe of 1 device and 1 microbatch, kept = 0.1", "you returned 0.1"),
    ("lab11.t4", student.throws_away_late, "whole-in-the-forward"),
    ("lab11.t4", student.input_gradient_frees, "frees-at-input-gradient"),
    ("lab11.t4", student.thrown_away_between, "one-whole-at-most"),
    ("lab11.t4", student.computes_again_for_w, "one-whole-at-most"),
    ("lab11.t4", student.full_backwards_alone, "ignores-split-backwards"),
    ("lab11.t4", student.adds_a_whole_one, "kept-and-whole"),
    ("lab11.t4", student.counts_after_the_release, "counted-after-the-release"),
    ("lab11.t4", student.by_formula, "one-whole-at-most", "split backwards"),
    ("lab11.t4", student.of_all_devices, "one-peak-for-all"),
    ("lab11.t4", student.from_the_last, "reversed"),
    ("lab11.t4", student.largest_first, "sorted"),
    ("lab11.t4", student.always_a_tenth, "tenth-always", "kept = 0.25"),
    ("lab11.t4", student.at_the_end, "held-at-the-end"),
    ("lab11.t4", student.read_at(1), "one-digit", "11 devices and 12 microbatches", "10F0"),
    ("lab11.t4", student.read_at(-2), "one-digit-microbatch", "0F10"),
    ("lab11.t4", student.a_half, "too-little", "device 0 runs 0F0 0B0", "its peak is 1", "you returned 0.5"),
    ("lab11.t4", student.examples_of_the_text, "too-much", "you returned 1.2"),
    ("lab11.t4", student.first_line_alone, "another-size", "2 in all", "1 number"),
    ("lab11.t4", student.one_number, "another-size", "not 1.0"),
    ("lab11.t4", student.not_numbers, "not-a-number"),
    ("lab11.t4", student.without_the_share, "signature"),
    ("lab11.t4", student.asks_the_library, "not-your-own", "`recomputed_peak`"),
    ("lab11.t4", [1.7], "not-a-function", "recomputed_peaks(orders, kept)"),
]
# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab11.t1", np.float64(3325)),
    ("lab11.t2", (0.538, 0.135)),
    ("lab11.t2", (0.5385, 0.1346)),
    ("lab11.t2", np.array([7 / 13, 7 / 52])),
    ("lab11.t2", (Fraction(7, 13), Fraction(7, 52))),
    ("lab11.t4", student.right_peaks),
    ("lab11.t4", lambda orders, kept: np.array(student.right_peaks(orders, kept))),
    ("lab11.t4", lambda orders, kept: (peak + 1e-13 for peak in student.right_peaks(orders, kept))),
    ("lab11.t3", ("looped-bfs", 2, 64, True)),
    ("lab11.t3", ["Looped-BFS ", 4, 64.0, np.bool_(True)]),
    ("lab11.t3", {"schedule": "looped-bfs", "chunks": 3, "recompute": True, "microbatches": 64}),
]


def numbers_of(key: str, seed: int | None) -> list[int]:
    """The whole numbers in the prompt of a task."""
    return [int(number) for number in re.findall(r"\b\d+\b", TASKS[key].instance(seed).prompt)]


@in_turn("seed", [None, *range(5)])
def test_the_step_of_task_1_is_the_clock_s(seed: int | None) -> None:
    devices, microbatches, forward = numbers_of("lab11.t1", seed)
    costs = Costs(forward=forward, backward=2.5 * forward, weight_share=0.4)
    assert check("lab11.t1", simulate(build("zb-h1", devices, microbatches), costs).makespan, seed=seed).passed


@in_turn("seed", [None, *range(4)])
def test_the_floors_of_task_2_are_where_the_clock_arrives(seed: int | None) -> None:
    devices, latency, _ = numbers_of("lab11.t2", seed)
    costs = Costs(forward=50, backward=100, p2p=latency)
    floors = []
    for name, in_flight in (("1f1b", devices), ("eager-1f1b", 2 * devices - 1)):
        fewer, more = (simulate(build(name, devices, count * in_flight), costs).makespan for count in (40, 80))
        floors.append(1 - 40 * in_flight * 150 / (more - fewer))
    assert check("lab11.t2", floors, seed=seed).passed
    assert seed is not None or floors == pytest.approx([7 / 13, 7 / 52])


def test_only_looped_bfs_with_recomputation_meets_task_3() -> None:
    passing, least = set(), float("inf")
    for family, microbatches, recompute, chunks in product(REGISTRY.values(), (1, 2, 4, 8, 16, 32, 64), (False, True), range(1, 9)):
        if family.refusal(8, microbatches, chunks) is None:
            timeline, samples = run_batch(family.name, microbatches, recompute, chunks)
            if not recompute:
                assert samples == pytest.approx(timeline.peak_activations.max() * 64 / microbatches + 5 * (family.copies - 1))
                least = min(least, timeline.makespan) if samples <= 12 else least
            if samples <= 12 and timeline.makespan <= 1500:
                passing.add((family.name, chunks, microbatches, recompute))
    assert passing == {("looped-bfs", chunks, 64, True) for chunks in (2, 3, 4)}
    assert least == 1857.5
    for chunks in (2, 3, 4):
        assert run_batch("looped-bfs", 64, True, chunks)[0].makespan == pytest.approx(
            formulas.looped_bfs_makespan(8, 64, chunks, 5, 15, 10)
        )


@in_turn("seed", range(5))
def test_the_judge_of_task_4_counts_as_a_walk_along_the_order(seed: int) -> None:
    for case in orders_and_shares(np.random.default_rng(seed)):
        orders, kept = case.arguments
        walked = student.right_peaks(orders, kept)
        assert [peak_of_line(order, kept) for order in orders] == pytest.approx(walked, abs=1e-12)
