"""The gate of a release: it holds for every lab, each of its conditions finds a planted fault, and then nothing is released."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn
from graded_class import hybridlab, lab_spec, needs_bubblewrap, quick_sandbox, shared_launcher

from hybridlab.course.checking.builds import Build
from hybridlab.course.checking.checking import Instance, Task, right
from hybridlab.course.checking.twists import Twist
from hybridlab.course.grading import release
from hybridlab.course.grading.labs import lab_notebooks
from hybridlab.course.grading.specs import LabSpec

pytestmark = needs_bubblewrap
GATES = [
    "the worked solutions get all points",
    "an empty copy gets none",
    "no known wrong answer passes",
    "no counter and no table of public results passes",
    "no build accepts the public solution",
]
CLASS = release.CLASS
Plant = Callable[[pytest.MonkeyPatch], None]


def planted(monkeypatch: pytest.MonkeyPatch, change: Callable[[LabSpec], LabSpec]) -> None:
    own = release.spec_of
    monkeypatch.setattr(release, "spec_of", lambda path: change(own(path)))


def with_task(spec: LabSpec, changed: Task) -> LabSpec:
    return replace(spec, tasks=tuple(changed if task.key == changed.key else task for task in spec.tasks))


def accepting(task: Task) -> Task:
    """A task whose judge accepts everything."""

    def instance(seed: int | None) -> Instance:
        page = task.instance(seed)
        data = page.data
        if isinstance(data, Build):
            data = replace(data, judge=lambda *given: right("yes"), reads=lambda result: result, twists=())
            return Instance(page.prompt, data.check, data)
        return replace(page, judge=lambda answer: right("yes"))

    return replace(task, instance=instance)


def a_judge_that_accepts_everything(key: str) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        planted(monkeypatch, lambda spec: with_task(spec, accepting(next(task for task in spec.tasks if task.key == key))))

    return plant


def a_solution_that_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda spec: replace(spec, solutions={**spec.solutions, "lab02.t2": 'check("lab02.t2", 111)'}))


def a_twist_that_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(spec: LabSpec) -> LabSpec:
        task = next(task for task in spec.tasks if task.key == "lab02.t5")
        page = task.instance(None)
        same = Instance(page.prompt, page.judge, replace(page.data, twists=(Twist("nothing", "nothing is different"),)))
        return with_task(spec, replace(task, instance=lambda seed: same))

    planted(monkeypatch, change)


def hidden_cases_that_are_the_public_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(spec: LabSpec) -> LabSpec:
        task = next(task for task in spec.tasks if task.key == "lab02.t5")
        page = task.instance(None)
        public = replace(page.data, cases=lambda rng: page.data.public_cases)
        same = Instance(page.prompt, public.check, public)
        return with_task(spec, replace(task, instance=lambda seed: same if seed is None else task.instance(seed)))

    planted(monkeypatch, change)


def an_empty_copy_that_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    own = release.student_copy

    def with_an_answer(lab: str, *rest: Any, **named: Any) -> Any:
        copy = own(lab, *rest, **named)
        cell = next(cell for cell in copy["cells"] if cell["metadata"].get("hybridlab", {}).get("task") == "lab02.t4")
        cell["source"] = lab_spec(lab).solutions["lab02.t4"]
        return copy

    monkeypatch.setattr(release, "student_copy", with_an_answer)


FAULTS: Mapping[str, tuple[Plant, list[str]]] = {
    "a judge of numbers": (
        a_judge_that_accepts_everything("lab02.t2"),
        ["no known wrong answer passes: lab02.t2 accepts one-device-alone"],
    ),
    "a judge of functions": (
        a_judge_that_accepts_everything("lab02.t5"),
        [
            "no known wrong answer passes: lab02.t5 accepts all-forwards-first",
            "no counter and no table of public results passes: lab02.t5 accepts a counter",
        ],
    ),
    "a solution": (a_solution_that_was_changed, ["the worked solutions get all points: lab02.t2 gets 0%"]),
    "a twist": (
        a_twist_that_does_nothing,
        [f"no build accepts the public solution: lab02.t5 accepts the public solution from {name}" for name in CLASS[:1]],
    ),
    "a table": (
        hidden_cases_that_are_the_public_ones,
        ["no counter and no table of public results passes: lab02.t5 accepts a table"],
    ),
    "a copy": (an_empty_copy_that_passes, ["an empty copy gets none: lab02.t4 gets 100%"]),
}


@pytest.mark.slow
@in_turn("fault", FAULTS)
def test_each_condition_of_the_gate_finds_a_planted_fault_and_nothing_is_released(fault: str, tmp_path: Path) -> None:
    plant, sentences = FAULTS[fault]
    dist = tmp_path / "dist"
    with pytest.MonkeyPatch.context() as patched:
        quick_sandbox(patched)
        patched.setattr(release, "CLASS", CLASS[:1])
        plant(patched)
        said = hybridlab("release", "lab02", "--out", dist, secret=None)
    assert said.exit_code == 1
    first, *found = [line for line in said.stderr.splitlines() if not line.startswith("trying ")]
    assert first.startswith("lab02 is not released; its gate has found ")
    assert set(sentences) <= set(found)
    assert {line.partition(":")[0] for line in found} == {line.partition(":")[0] for line in sentences}
    assert said.stdout == ""
    assert not dist.exists()


@pytest.mark.slow
def test_a_lab_is_released_with_its_copy_and_its_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_sandbox(monkeypatch)
    said = hybridlab("release", "2", "--out", tmp_path, secret=None)
    assert said.exit_code == 0, said.output
    assert [line.rpartition(": ")[0] for line in said.stdout.splitlines()] == [*GATES, str(tmp_path / "lab02.ipynb")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["AGENTS.md", "lab02.ipynb", "lab02.json"]
    about = json.loads((tmp_path / "lab02.json").read_text())
    assert (about["lab"], about["points"], [task["key"] for task in about["tasks"]]) == ("lab02", 15, list(lab_spec("lab02").stubs))
    assert [task["key"] for task in about["tasks"] if task["bonus"]] == ["lab02.t3", "lab02.t4", "lab02.t5"]
    assert [gate["name"] for gate in about["gate"]] == GATES
    assert all(gate["tried"] > 0 for gate in about["gate"])
    copy = json.loads((tmp_path / "lab02.ipynb").read_text())
    assert copy["metadata"]["hybridlab"] == {"lab": "lab02", "course": "hybridlab", "student": ""}


def test_a_worker_that_does_not_start_releases_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a wrong answer that was never tried would count as refused."""
    quick_sandbox(monkeypatch, replace(shared_launcher(), runtime=replace(shared_launcher().runtime, folder=tmp_path, mounts=())))
    said = hybridlab("release", "lab02", "--out", tmp_path / "dist")
    assert said.exit_code == 1
    assert "lab02 is not released: lab02.t1 was not graded" in said.stderr
    assert "no worker could be started" in said.stderr
    assert not (tmp_path / "dist").exists()


def test_a_release_into_a_file_is_refused_before_anything_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_sandbox(monkeypatch)
    (tmp_path / "dist").write_text("a file")
    said = hybridlab("release", "lab02", "--out", tmp_path / "dist")
    assert (said.exit_code, "trying" in said.stderr) == (2, False)
    assert "choose another one with --out" in said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("lab", lab_notebooks())
def test_all_conditions_hold(lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "CLASS", CLASS[:1])
    for gate in release.gates(lab, shared_launcher(), "a course of these tests"):
        assert gate.faults == ()
