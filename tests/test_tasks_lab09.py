"""Test lab 9's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hybridlab.course.published.large_runs import TABLE_1
from hybridlab.course.tasks import TASKS, check
from hybridlab.hardware import A100_80GB
from hybridlab.planner import Plan, memory, predict

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab09.t1", 0.86, "report"),
    ("lab09.t1", 365, "time-of-a-step"),
    ("lab09.t1", 2080 / 625, "sixteen-microbatches"),
    ("lab09.t1", 2080 / 690, "reading-a"),
    ("lab09.t1", 4160 / 1210, "reading-a-with-sixteen"),
    ("lab09.t1", 1040 / 625, "eight-against-sixteen"),
    ("lab09.t1", 2080 / 365, "sixteen-against-eight"),
    ("lab09.t1", 520 / 365, "four-against-eight"),
    ("lab09.t1", 1040 / 325, "no-rings"),
    ("lab09.t1", 1040 / 300, "no-fill-and-drain"),
    ("lab09.t1", 4, "nothing-lost"),
    ("lab09.t1", 260 / 365, "efficiency"),
    ("lab09.t1", 2.5, "wrong-value"),
    ("lab09.t1", 2.8, "too-few-decimals", "2 decimals"),
    ("lab09.t1", "2.85", "not-a-number"),
    ("lab09.t2", 28, "bubble-alone"),
    ("lab09.t2", 38, "rings-of-two-stages"),
    ("lab09.t2", 62, "both-replicas"),
    ("lab09.t2", 29, "reading-a"),
    ("lab09.t2", 30, "too-few", "0.8"),
    ("lab09.t2", 32, "more-than-enough"),
    ("lab09.t2", 30.5, "not-a-whole-number"),
    ("lab09.t2", 2001, "out-of-range", "2,000"),
    ("lab09.t3", [0.125, 0.125, 0.125], "one-message"),
    ("lab09.t3", [0.0625, 0.03125, 0.015625], "constant-gradients"),
    ("lab09.t3", [0.25, 0.75, 1.75], "steps-added"),
    ("lab09.t3", [0.125, 0.375, 0.875], "half-of-the-steps-added"),
    ("lab09.t3", [2, 4, 8], "bits"),
    ("lab09.t3", [0.5, 1, 2], "gigabytes"),
    ("lab09.t3", [0.125, 0.25, 0.5], "fp32"),
    ("lab09.t3", [4, 8, 16], "gigabits"),
    ("lab09.t3", [3, 6, 12], "nvlink"),
    ("lab09.t3", [6, 12, 24], "nvlink-both-ways"),
    ("lab09.t3", [0.225, 0.45, 0.9], "nine-tenths"),
    ("lab09.t3", [250, 500, 1000], "millions"),
    ("lab09.t3", [2.5e8, 5e8, 1e9], "ones"),
    ("lab09.t3", [1, 2, 3], "another-shape"),
    ("lab09.t3", [0.75, 1.5, 3], "wrong-value", "3 times"),
    ("lab09.t3", [0, 0, 0], "wrong-value", "0 times"),
    ("lab09.t3", 0.25, "not-a-list"),
    ("lab09.t4", (8, 8, 8, 1), "another-number-of-gpus", "512 GPUs", "64"),
    ("lab09.t4", (16, 1, 4, 1), "tensor-across-nodes"),
    ("lab09.t4", (8, 1, 8, 1), "states-do-not-fit"),
    ("lab09.t4", (8, 2, 4, 4), "activations-do-not-fit"),
    ("lab09.t4", (1, 64, 1, 1), "not-divisible", "48 layers"),
    ("lab09.t4", (4, 4, 4, 2), "activations-do-not-fit"),
    ("lab09.t4", (1, 16, 4, 1), "states-do-not-fit"),
    ("lab09.t4", (8, 2, 4, 3), "batch-not-divisible", "512 samples", "4 replicas", "microbatches of 3"),
    ("lab09.t4", (8, 8, 1, 1), "too-slow", "1.183", "2.6 s", "tensor parallel"),
    ("lab09.t4", (4, 16, 1, 1), "logits-weigh-more", "2.1 s", "3 layers"),
    ("lab09.t4", (4, 4, 4, 0.5), "not-a-whole-number", "1 to 512"),
    ("lab09.t4", (4, 4, 4), "wrong-length"),
    ("lab09.t4", Plan(4, 4, 4, 1, 512), "another-setting", "recompute", "'none'", "'full'"),
    ("lab09.t4", Plan(4, 4, 4, 1, 1024, recompute="none"), "another-setting", "global_batch", "512"),
    ("lab09.t4", {"tensor": 4, "pipeline": 4, "data": 4}, "wrong-shape", "microbatch"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab09.t1", 2.85),
    ("lab09.t1", np.float64(1040 / 365)),
    ("lab09.t2", 31.0),
    ("lab09.t2", np.int64(31)),
    ("lab09.t3", (0.25, 0.5, 1)),
    ("lab09.t3", np.array([0.25, 0.5, 1.0])),
    ("lab09.t3", [Fraction(1, 4), Fraction(1, 2), 1]),
    ("lab09.t4", [4, 4, 4, 1]),
    ("lab09.t4", (4, 8, 2, 2)),
    ("lab09.t4", (4, 8, 2, 1.0)),
    ("lab09.t4", Plan(4, 4, 4, 1, 512, recompute="none")),
    ("lab09.t4", {"data": 4, "tensor": 4, "microbatch": 1, "pipeline": 4}),
]


def test_thirty_one_microbatches_are_the_fewest() -> None:
    """M c / ((M + 7) c + 2 t), c = 130/8 ms and t = 5 ms."""
    efficiency = {count: count * 130 / 8 / ((count + 7) * 130 / 8 + 2 * 5) for count in range(1, 100)}
    assert min(count for count, reached in efficiency.items() if reached >= 0.8) == 31
    for count in (30, 31):
        assert f"{efficiency[count]:.4f}" in check("lab09.t2", count).messages[0]


@pytest.mark.parametrize("seed", range(20))
def test_the_fewest_microbatches_of_other_pipelines(seed: int) -> None:
    numbers = re.findall(r"[\d.]+", TASKS["lab09.t2"].instance(seed).prompt)
    stages, replicas, goal, _, ring_step = map(Fraction, numbers)
    assert ring_step == 40 / stages
    stage = Fraction(130) / stages
    count = next(m for m in range(1, 200) if m * stage * 100 >= goal * ((m + stages - 1) * stage + 2 * (replicas - 1) * ring_step))
    assert check("lab09.t2", count, seed=seed).passed


def test_plans_are_judged_by_all_plans_that_fit() -> None:
    """Every plan of the task by brute force: those that fit within a tenth of the fastest pass, and no other."""
    (model,) = (run.model for run in TABLE_1 if run.billions == 39.1)
    times: dict[tuple[int, ...], float] = {}
    for tensor in (1, 2, 4, 8):
        for pipeline in (1, 2, 4, 8, 16):
            if 64 % (tensor * pipeline):
                continue
            for size in (1, 2, 4, 8, 16, 32):
                sizes = (tensor, pipeline, 64 // tensor // pipeline, size)
                if 512 % (sizes[2] * size):
                    continue
                plan = Plan(*sizes, 512, recompute="none")
                if memory(model, plan).total <= 80e9:
                    times[sizes] = predict(model, plan, A100_80GB).seconds
                else:
                    assert not check("lab09.t4", sizes).passed
    fastest = min(times.values())
    assert {sizes for sizes in times if check("lab09.t4", sizes).passed} == {
        sizes for sizes, time in times.items() if time <= 1.1 * fastest
    }
    assert 3 <= sum(time <= 1.1 * fastest for time in times.values()) < len(times) / 2
