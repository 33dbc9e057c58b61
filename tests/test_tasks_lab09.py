"""Lab 9's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from typing import Any

import numpy as np

from hybridlab.course.published.megatron import TABLE_1
from hybridlab.course.tasks import check
from hybridlab.hardware import A100_80GB
from hybridlab.planner import Plan, memory, predict

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab09.t1", 0.86, "1210 ms are those of reading A"),
    ("lab09.t1", 365, "the time of a step in ms"),
    ("lab09.t1", 2080 / 625, "8 microbatches for each replica, 16 in all"),
    ("lab09.t1", 2080 / 690, "this is reading A, where"),
    ("lab09.t1", 4160 / 1210, "this is reading A with 8"),
    ("lab09.t1", 1040 / 625, "give both the same work"),
    ("lab09.t1", 2080 / 365, "no four GPUs are more than 4 times"),
    ("lab09.t1", 520 / 365, "those of one replica"),
    ("lab09.t1", 1040 / 325, "lacks the rings"),
    ("lab09.t1", 1040 / 300, "lacks fill and drain"),
    ("lab09.t1", 4, "with nothing lost"),
    ("lab09.t1", 260 / 365, "this is the efficiency"),
    ("lab09.t1", 2.5, "the rings"),
    ("lab09.t1", "2.85", "a number such as"),
    ("lab09.t2", 28, "the bubble alone"),
    ("lab09.t2", 38, "a quarter of their gradients"),
    ("lab09.t2", 62, "both replicas"),
    ("lab09.t2", 29, "reading A"),
    ("lab09.t2", 30, "below 0.8, take more"),
    ("lab09.t2", 32, "fewer are enough"),
    ("lab09.t2", 30.5, "whole number"),
    ("lab09.t2", 2001, "at most 2,000"),
    ("lab09.t3", [0.125, 0.125, 0.125], "D times what one message holds"),
    ("lab09.t3", [0.0625, 0.03125, 0.015625], "the time of a step is constant"),
    ("lab09.t3", [0.25, 0.75, 1.75], "2(D-1)/D times"),
    ("lab09.t3", [0.125, 0.375, 0.875], "D-1 pieces are not"),
    ("lab09.t3", [2, 4, 8], "200 Gb/s are bits: an HDR"),
    ("lab09.t3", [0.5, 1, 2], "GB of gradients"),
    ("lab09.t3", [0.125, 0.25, 0.5], "FP32"),
    ("lab09.t3", [4, 8, 16], "bits, and a parameter's"),
    ("lab09.t3", [3, 6, 12], "this is NVLink, at 300"),
    ("lab09.t3", [6, 12, 24], "both directions"),
    ("lab09.t3", [0.225, 0.45, 0.9], "nine tenths"),
    ("lab09.t3", [250, 500, 1000], "millions"),
    ("lab09.t3", [2.5e8, 5e8, 1e9], "give billions of them"),
    ("lab09.t3", [1, 2, 3], "find S for each D"),
    ("lab09.t3", [0.75, 1.5, 3], "3 times as many"),
    ("lab09.t3", [0, 0, 0], "0 times as many"),
    ("lab09.t3", 0.25, "a list of 3 numbers"),
    ("lab09.t4", (8, 8, 8, 1), "512 GPUs, not 64"),
    ("lab09.t4", (16, 1, 4, 1), "leaves the node"),
    ("lab09.t4", (8, 1, 8, 1), "pipeline the states alone"),
    ("lab09.t4", (8, 2, 4, 4), "smaller microbatches hold less"),
    ("lab09.t4", (1, 64, 1, 1), "48 layers cannot be cut"),
    ("lab09.t4", (4, 4, 4, 2), "smaller microbatches hold less"),
    ("lab09.t4", (1, 16, 4, 1), "pipeline the states alone"),
    ("lab09.t4", (8, 2, 4, 3), "512 samples cannot be dealt out to 4 replicas in microbatches of 3"),
    ("lab09.t4", (8, 8, 1, 1), "1.183 times the fastest, with 2.6 s more tensor parallel: which of the four numbers"),
    ("lab09.t4", (4, 16, 1, 1), "with 2.1 s more matmul: the last stage has the logits as well, and beside 3 layers"),
    ("lab09.t4", (4, 4, 4, 0.5), "a whole number from 1 to 512"),
    ("lab09.t4", (4, 4, 4), "a list of 4 numbers"),
]

# Task, another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab09.t1", 2.85),
    ("lab09.t1", np.float64(1040 / 365)),
    ("lab09.t2", 31.0),
    ("lab09.t2", np.int64(31)),
    ("lab09.t3", (0.25, 0.5, 1)),
    ("lab09.t3", np.array([0.25, 0.5, 1.0])),
    ("lab09.t4", [4, 4, 4, 1]),
    ("lab09.t4", (4, 8, 2, 2)),
    ("lab09.t4", (4, 8, 2, 1.0)),
]


def test_thirty_one_microbatches_are_the_fewest() -> None:
    """M c / ((M + 7) c + 2 t), c = 130/8 ms and t = 5 ms."""
    efficiency = {count: count * 130 / 8 / ((count + 7) * 130 / 8 + 2 * 5) for count in range(1, 100)}
    assert min(count for count, reached in efficiency.items() if reached >= 0.8) == 31
    for count in (30, 31):
        assert f"{efficiency[count]:.4f}" in check("lab09.t2", count).messages[0]


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
