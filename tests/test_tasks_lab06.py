"""Test lab 6's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from typing import Any

import numpy as np
import pytest

from hybridlab.course.tasks.lab06 import changed_step

BOTH = changed_step("overlap", "chunks").makespan

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab06.t1", 240, "pipeline-alone"),
    ("lab06.t1", 270, "no-optimiser"),
    ("lab06.t1", 248, "no-rings"),
    ("lab06.t1", 288, "d-ring-steps"),
    ("lab06.t1", 263, "one-half-of-the-ring"),
    ("lab06.t1", 338, "rings-in-turn"),
    ("lab06.t1", 358, "one-ring-over-all"),
    ("lab06.t1", 268, "rings-of-stages"),
    ("lab06.t1", 218, "no-fill-and-drain"),
    ("lab06.t1", 308, "one-pair-too-many"),
    ("lab06.t1", 294, "optimisers-in-turn"),
    ("lab06.t1", 2184, "one-device-alone"),
    ("lab06.t1", 818, "one-pipeline-for-all"),
    ("lab06.t1", 300, "wrong-value", "300 ms"),
    ("lab06.t1", "278", "not-a-number"),
    ("lab06.t1", [278], "not-a-number"),
    ("lab06.t2", 9, "bubble-alone"),
    ("lab06.t2", 24, "both-replicas"),
    ("lab06.t2", 6, "shared"),
    ("lab06.t2", 11, "too-few"),
    ("lab06.t2", 13, "more-than-enough"),
    ("lab06.t2", 11.8, "not-a-whole-number"),
    ("lab06.t2", 0, "out-of-range"),
    ("lab06.t3", 180, "no-overlap"),
    ("lab06.t3", 90, "last-ring-alone"),
    ("lab06.t3", 50, "first-ring-alone"),
    ("lab06.t3", 40, "hidden-part"),
    ("lab06.t3", 320, "whole-ring-steps"),
    ("lab06.t3", 0, "nothing-exposed"),
    ("lab06.t3", 425, "whole-step"),
    ("lab06.t3", 285, "pipeline-alone"),
    ("lab06.t3", 140.5, "wrong-value"),
    ("lab06.t3", 77, "wrong-value"),
    ("lab06.t4", ("int8", "link", 345.1), "no-chunks", "int8 and link", "280"),
    ("lab06.t4", ("overlap", "int8", 360.3), "no-chunks", "overlap and int8"),
    ("lab06.t4", ("int8", "chunks", 292.8), "rings-exposed", "int8 and chunks"),
    ("lab06.t4", ("link", "chunks", 292.6), "rings-exposed", "link and chunks"),
    ("lab06.t4", ("overlap", "overlap", BOTH), "same-change-twice", "overlap"),
    ("lab06.t4", ("overlap", "chunks", 322.7), "gains-added"),
    ("lab06.t4", ("overlap", "chunks", 275), "wrong-length-of-step"),
    ("lab06.t4", ("overlap", "chunk!", BOTH), "unknown-name", "'chunks'"),
    ("lab06.t4", ("overlap", "chunks"), "wrong-shape"),
    ("lab06.t4", ("overlap", "chunks", "277.6"), "not-a-number"),
    ("lab06.t4", "overlap", "wrong-shape"),
]


# Each row has a task and another way to write its right answer.
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
    assert changed_step().makespan == changed_step("overlap").makespan == pytest.approx(330 + ring[""])
    for each in ("int8", "link"):
        assert changed_step(each).makespan == changed_step("overlap", each).makespan == pytest.approx(330 + ring[each], abs=1e-3)
        assert changed_step("chunks", each).makespan == pytest.approx(262.5 + ring[each], abs=0.2)
    assert changed_step("chunks").makespan == pytest.approx(262.5 + ring[""], abs=0.2)
    assert changed_step("chunks", "overlap").makespan == pytest.approx(262.5 + ring[""] / 4, abs=0.2)
    assert changed_step("int8", "link").makespan == pytest.approx(330 + ring["int8"] / 2, abs=0.1)
