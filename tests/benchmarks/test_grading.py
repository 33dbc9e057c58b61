"""Measure how long a class takes to grade: a hundred notebooks with worked solutions, in the sandbox, with two workers at a time."""

import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab.course.grading.cases import Secret
from hybridlab.course.grading.grade import Assignment, grade_all, grade_file
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.launch import launcher

SECTION = "grading: notebooks with worked solutions, two at a time"
LABS = ("lab02", "lab04", "lab05")
WANTED = 60  # seconds for a hundred notebooks on two cores


def test_a_class(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], tmp_path: Path) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    each, labs = (1, LABS[:1]) if benchmark.disabled else (34, LABS)
    classes = {lab: {f"student{place}": [_handed_in(tmp_path, lab, place)] for place in range(each)} for lab in labs}
    alone: list[float] = []

    def grade() -> None:
        with launcher() as workers:
            for lab, found in classes.items():
                asked = Assignment(lab, Secret("the secret of a benchmark"), common=True)
                marks = list(grade_all(found, asked, workers, tmp_path / f"records-{lab}-{time.monotonic_ns()}", jobs=min(2, each)))
                assert all(one.points == one.out_of for one in marks)

    benchmark.pedantic(grade, rounds=1)  # type: ignore[no-untyped-call]
    with launcher() as workers:
        for lab, found in classes.items():
            for paths in list(found.values())[:7]:
                begun = time.perf_counter()
                grade_file(paths[0], "ana", Assignment(lab, Secret("the secret of a benchmark"), common=True), workers)
                alone.append(time.perf_counter() - begun)
    if benchmark.stats is not None:
        seconds = benchmark.stats.stats.min
        count = each * len(labs)
        tell(
            SECTION,
            f"{count} notebooks: {seconds:.1f} s, {100 * seconds / count:.1f} s for a hundred (at most {WANTED} wanted on two cores)",
        )
        tell(
            SECTION, f"one notebook alone: median {statistics.median(alone):.2f} s, longest {max(alone):.2f} s (median of at most 1 wanted)"
        )


def _handed_in(folder: Path, lab: str, place: int) -> Path:
    path = folder / lab / f"student{place}" / f"{lab}.ipynb"
    path.parent.mkdir(parents=True)
    shutil.copy(reference(lab), path)
    return path
