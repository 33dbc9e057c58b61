"""Test the workflows: they parse, use targets that exist, and have no more permissions than they need."""

import re
from pathlib import Path
from typing import Any

import runtime
import yaml
from cases import in_turn

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github/workflows"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yml"))}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
EVENTS = True  # YAML 1.1 reads the key `on` as a truth value
each_workflow = in_turn("workflow", WORKFLOWS.values())


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every step of every job."""
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@each_workflow
def test_every_make_target_exists(workflow: dict[str, Any]) -> None:
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    targets = re.findall(r"^\s*make\s+(?:-\S+\s+)*([\w-]+)", "\n".join(commands), flags=re.MULTILINE)
    assert targets, "a workflow does what make does, so that it can be tried anywhere"
    assert set(targets) <= TARGETS


@each_workflow
def test_a_workflow_may_only_read(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    granted = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert granted in ({}, {"deploy": {"pages": "write", "id-token": "write"}}, {"publish": {"id-token": "write"}})


@each_workflow
def test_every_action_is_of_github_itself_and_of_a_major_version(workflow: dict[str, Any]) -> None:
    """There is one exception: PyPI's own action for publishing, whose major version is a branch."""
    for action in (step["uses"] for step in steps(workflow) if "uses" in step):
        assert re.fullmatch(r"actions/[\w-]+@v\d+|pypa/gh-action-pypi-publish@release/v\d+", action), action


@each_workflow
def test_no_job_runs_for_ever(workflow: dict[str, Any]) -> None:
    assert all(0 < job["timeout-minutes"] <= 45 for job in workflow["jobs"].values())


def test_the_site_that_is_published_is_the_one_that_was_tested() -> None:
    pages = WORKFLOWS["pages"]
    assert set(pages[EVENTS]) == {"push", "workflow_dispatch"}
    assert pages[EVENTS]["push"] == {"branches": ["main"]}
    order = [step.get("run") or step["uses"].split("@")[0] for step in pages["jobs"]["build"]["steps"]]
    assert order[-2:] == ["make check", "actions/upload-pages-artifact"]
    assert pages["jobs"]["build"]["steps"][-1]["with"]["path"] == "_build/html"
    assert pages["jobs"]["deploy"]["needs"] == "build"
    assert "main" in pages["jobs"]["deploy"]["if"], "by hand, too, only the main branch is published"
    assert pages["concurrency"]["cancel-in-progress"] is False


def test_python_is_put_into_the_site_only_where_it_is_asked_for() -> None:
    pages = WORKFLOWS["pages"]
    (asked,) = pages[EVENTS]["workflow_dispatch"]["inputs"].values()
    assert asked["type"] == "boolean"
    assert asked["default"] is False
    (check,) = [step for step in pages["jobs"]["build"]["steps"] if step.get("run") == "make check"]
    assert check["env"][runtime.VARIABLE] == "${{ inputs.python && 'download' || vars.HYBRIDLAB_PYTHON }}"


def test_what_is_released_has_passed_the_checks_and_was_tried_alone() -> None:
    release = WORKFLOWS["release"]
    assert release[EVENTS] == {"push": {"tags": ["v*"]}}
    publish = release["jobs"]["publish"]
    assert set(publish["needs"]) == set(release["jobs"]) - {"publish"}
    assert publish["environment"] == "pypi"
    assert not any("run" in step for step in publish["steps"]), "the job that may publish runs no program of its own"
    assert "with" not in publish["steps"][-1] or "password" not in publish["steps"][-1]["with"]
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in release["jobs"].items()}
    assert commands["check"][-1] == "make check"
    assert commands["wheel"] == ["python tests/book/wheel_alone.py try dist/hybridlab-*.whl"]
    order = [
        next(place for place, command in enumerate(commands["build"]) if words in command)
        for words in ("version", "build dist", "twine check")
    ]
    assert order == sorted(order), "a tag of another version builds nothing"
    assert release["concurrency"]["cancel-in-progress"] is False
