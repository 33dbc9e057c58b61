"""Test lab 19's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from typing import Any

from solutions import solutions_of

from hybridlab import Schedule, build
from hybridlab.course.puzzles import PUZZLES

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
    ("lab19.t2", PUZZLES["unequal-devices"].start, "unchanged", "0F4"),
    ("lab19.t2", printed("zb-h2", 8), "misses-memory", "device 0 holds 7", "0F4"),
    ("lab19.t2", printed("1f1b", 8), "misses-beats-zb-h1", "404 ms", "339 ms"),
    ("lab19.t2", printed("zb-h1", 8), "misses-beats-zb-h1", "340 ms"),
    ("lab19.t2", printed("looped-bfs", 8), "another-placement"),
    ("lab19.t2", printed("zb-h1", 8).replace("3F0 3I0", "3I0 3F0"), "too-early", "3I0"),
    ("lab19.t2", True, "not-a-list"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab19.t1", Schedule.parse(solutions_of("lab19")["lab19.t1"].strip())),
    ("lab19.t2", solutions_of("lab19")["lab19.t2"].strip().splitlines()),
]
