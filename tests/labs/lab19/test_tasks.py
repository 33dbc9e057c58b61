"""Test lab 19's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from fractions import Fraction
from typing import Any

from cases import in_turn
from instances import instances_of
from solutions import solutions_of

from hybridlab import Costs, Schedule, build
from hybridlab.bound import lower_bound
from hybridlab.course.puzzles import PUZZLES
from hybridlab.course.tasks import TASKS

ONE_BY_ONE = "\n".join(" ".join(f"{device}F{number} {device}B{number}" for number in range(6)) for device in range(4))


def printed(name: str, microbatches: int) -> str:
    return str(build(name, 4, microbatches))


def split(text: str) -> str:
    """Cut each full backward in two."""
    return re.sub(r"(\d+)B(\d+)", r"\1I\2 \1W\2", text)


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab19.t1", PUZZLES["one-more-activation"].start, "unchanged", "0F5"),
    ("lab19.t1", printed("gpipe", 6), "misses-memory", "device 0 holds 6", "0F5"),
    ("lab19.t1", ONE_BY_ONE, "misses-1f1b", "672 ms", "252 ms", "0B0 to 0F1, 1F1, 2F1, 3F1 to 3B1, 2B1, 1B1, and so on"),
    ("lab19.t1", printed("1f1b", 6), "misses-beats-zb-h1", "252 ms", "215 ms", "216 ms"),
    ("lab19.t1", split(printed("1f1b", 6)), "misses-beats-zb-h1"),
    ("lab19.t1", printed("zb-h1", 6), "misses-beats-zb-h1", "216 ms", "0F0, 1F0, 2F0, 3F0 to 3I5, 2I5, 1I5, 0I5 to 0W5"),
    ("lab19.t1", printed("zb-h1", 6).replace(" 3W5", ""), "missing-weight-gradient", "stage 3", "microbatch 5"),
    ("lab19.t1", {"time": 210}, "not-a-list"),
    ("lab19.t2", 227, "busiest-device", "device 1", "device 3"),
    ("lab19.t2", 216, "work-alone"),
    ("lab19.t2", 228, "no-latency"),
    ("lab19.t2", 105, "forwards-alone"),
    ("lab19.t2", 248, "own-forward"),
    ("lab19.t2", 306, "full-backwards"),
    ("lab19.t2", 240, "wrong-value", "240 ms"),
    ("lab19.t3", PUZZLES["unequal-devices"].start, "unchanged", "0F4"),
    ("lab19.t3", printed("zb-h2", 8), "misses-memory", "device 0 holds 7", "0F4"),
    ("lab19.t3", printed("1f1b", 8), "misses-beats-zb-h1", "404 ms", "339 ms"),
    ("lab19.t3", printed("zb-h1", 8), "misses-beats-zb-h1", "340 ms"),
    ("lab19.t3", printed("looped-bfs", 8), "another-placement"),
    ("lab19.t3", printed("zb-h1", 8).replace("3F0 3I0", "3I0 3F0"), "too-early", "3I0"),
    ("lab19.t3", True, "not-a-list"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab19.t1", Schedule.parse(solutions_of("lab19")["lab19.t1"].strip())),
    ("lab19.t2", Fraction(237)),
    ("lab19.t3", solutions_of("lab19")["lab19.t3"].strip().splitlines()),
]


@in_turn("seed", [None, *instances_of("lab19.t2")])
def test_the_largest_sum_is_the_lower_bound_of_the_library(seed: int | None) -> None:
    instance = TASKS["lab19.t2"].instance(seed)
    *forward, _, _, microbatches, latency = map(int, re.findall(r"\d+", instance.prompt))
    costs = Costs(forward=forward, backward=[2 * time for time in forward], p2p=latency)
    assert instance.data.numbers[0].truth == lower_bound(build("zb-h1", 4, microbatches), costs, microbatches)
