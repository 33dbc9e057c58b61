"""Lab 6's tasks: every way to write the right answer passes, and every typical wrong answer gets a sentence of its own."""

from typing import Any

import numpy as np
import pytest

from hybridlab.course.tasks.lab06 import plan

BOTH = plan("overlap", "chunks").makespan

# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab06.t1", 240, "the pipeline alone"),
    ("lab06.t1", 270, "lacks the optimiser"),
    ("lab06.t1", 248, "lacks the rings"),
    ("lab06.t1", 288, "2D steps"),
    ("lab06.t1", 263, "D-1 steps"),
    ("lab06.t1", 338, "at the same time"),
    ("lab06.t1", 358, "all 12 devices"),
    ("lab06.t1", 268, "rings of the 3 stages"),
    ("lab06.t1", 218, "lacks fill and drain"),
    ("lab06.t1", 308, "one pair too many"),
    ("lab06.t1", 294, "optimisers of the stages one after the other"),
    ("lab06.t1", 2184, "one device"),
    ("lab06.t1", 818, "do not share one pipeline"),
    ("lab06.t1", 300, "does not take 300 ms"),
    ("lab06.t1", "278", "a number such as"),
    ("lab06.t1", [278], "a number such as"),
    ("lab06.t2", 9, "the bubble alone"),
    ("lab06.t2", 24, "both replicas"),
    ("lab06.t2", 6, "shared by the replicas"),
    ("lab06.t2", 11, "below 3.6, take more"),
    ("lab06.t2", 13, "fewer are enough"),
    ("lab06.t2", 11.8, "whole number"),
    ("lab06.t2", 0, "at least 1"),
    ("lab06.t3", 180, "the whole all-reduce"),
    ("lab06.t3", 90, "it has to wait"),
    ("lab06.t3", 50, "the second comes on top"),
    ("lab06.t3", 40, "what is hidden"),
    ("lab06.t3", 320, "half of the 30 ms"),
    ("lab06.t3", 0, "the second has not even begun"),
    ("lab06.t3", 425, "the whole step"),
    ("lab06.t3", 285, "the pipeline"),
    ("lab06.t3", 140.5, "when can its ring start"),
    ("lab06.t3", 77, "when can its ring start"),
    ("lab06.t4", ("int8", "link", 345.1), "which is above 280"),
    ("lab06.t4", ("overlap", "int8", 360.3), "which change shortens them"),
    ("lab06.t4", ("int8", "chunks", 292.8), "at most 17.5 ms"),
    ("lab06.t4", ("link", "chunks", 292.6), "at most 17.5 ms"),
    ("lab06.t4", ("overlap", "overlap", BOTH), "twice is one change"),
    ("lab06.t4", ("overlap", "chunks", 322.7), "do not add up"),
    ("lab06.t4", ("overlap", "chunks", 275), "run hybrid_step with both"),
    ("lab06.t4", ("overlap", "chunk!", BOTH), "did you mean 'chunks'"),
    ("lab06.t4", ("overlap", "chunks"), "two changes and a time"),
    ("lab06.t4", ("overlap", "chunks", "277.6"), "a number such as"),
    ("lab06.t4", "overlap", "two changes and a time"),
]


# Task, another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab06.t1", 278),
    ("lab06.t1", np.float64(278)),
    ("lab06.t2", 12.0),
    ("lab06.t2", np.int64(12)),
    ("lab06.t3", 140),
    ("lab06.t3", 140.0),
    ("lab06.t4", ("chunks", "overlap", BOTH)),
    ("lab06.t4", ["Overlap", " CHUNKS ", 277.6]),
    ("lab06.t4", ("overlap", "chunks", np.float64(277.5))),  # without the latency
]


def test_only_one_pair_of_changes_meets_the_budget() -> None:
    """The steps in ms, from (M + K - 1)(F + B), (M + (K - 1)/v)(F + B), and 2(D - 1)(a + S/(Db)) by hand."""
    ring = {"": 6 * (0.01 + 10), "int8": 6 * (0.01 + 0.5 * 1.0078125 * 10), "link": 6 * (0.01 + 5)}
    assert plan().makespan == plan("overlap").makespan == pytest.approx(330 + ring[""])
    for each in ("int8", "link"):
        assert plan(each).makespan == plan("overlap", each).makespan == pytest.approx(330 + ring[each], abs=1e-3)
        assert plan("chunks", each).makespan == pytest.approx(262.5 + ring[each], abs=0.2)
    assert plan("chunks").makespan == pytest.approx(262.5 + ring[""], abs=0.2)
    assert plan("chunks", "overlap").makespan == pytest.approx(262.5 + ring[""] / 4, abs=0.2)
    assert plan("int8", "link").makespan == pytest.approx(330 + ring["int8"] / 2, abs=0.1)
