"""Test the templates for GitHub Actions: what they may do, and what their shell steps do, with the real command `hybridlab`."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import teach_page
import yaml
from cases import in_turn
from graded_class import COMMAND

import hybridlab
from hybridlab.course.grading.copies import start
from hybridlab.course.tasks import Student

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {name: (ROOT / f"book/templates/{name}.yml").read_text(encoding="utf-8") for name in ("student", "course")}
TEMPLATES: dict[str, dict[Any, Any]] = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
EVENTS = True  # YAML 1.1 reads the key `on` as a truth value
HOSTILE = """
import os, sys
for stream in (sys.stdout, sys.stderr, sys.__stdout__):
    print("::error::graded by nobody", file=stream, flush=True)
os.write(1, b"\\n::add-mask::a\\n##[error]b\\n```\\n# heading <script>\\n")
check("lab02.t4", "::error::graded by nobody\\n##[error]```\\n# heading <script>")
raise ValueError("\\n::error::graded by nobody\\n##[error]\\n# heading")
"""
each_template = in_turn("name", [*TEMPLATES])
needs_sandbox = pytest.mark.needs("bwrap")


def job(name: str) -> dict[str, Any]:
    (only,) = TEMPLATES[name]["jobs"].values()
    return dict(only)


# What they may do


@each_template
def test_a_template_may_only_read_and_ends(name: str) -> None:
    assert TEMPLATES[name]["permissions"] == {"contents": "read"}
    assert "permissions" not in job(name)
    assert 0 < job(name)["timeout-minutes"] <= 60
    assert TEMPLATES[name]["concurrency"]["group"]
    checkout = job(name)["steps"][0]
    assert checkout["uses"].startswith("actions/checkout@")
    assert checkout["with"] == {"persist-credentials": False}


@each_template
def test_everything_that_a_template_installs_is_pinned(name: str) -> None:
    for step in job(name)["steps"]:
        assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v1"))
    installed = re.findall(r"pip install (.*)", TEXTS[name])
    assert installed == [f"'./hybridlab-{hybridlab.__version__}-py3-none-any.whl[grade]'"]


@each_template
def test_no_step_of_a_shell_has_an_expression_in_it(name: str) -> None:
    """Else a name in a repository or an input could be a command of the shell."""
    assert not [step["run"] for step in job(name)["steps"] if "${{" in step.get("run", "")]


def test_a_student_has_no_secret_and_a_course_has_one_that_no_pull_request_sees() -> None:
    assert "secrets." not in TEXTS["student"]
    assert "environment" not in job("student")
    assert TEMPLATES["student"][EVENTS] == "push"
    assert [*TEMPLATES["course"][EVENTS]] == ["workflow_dispatch"]
    assert job("course")["environment"] == "grading"
    secret = [step for step in job("course")["steps"] if "secrets." in str(step)]
    assert [step["env"]["HYBRIDLAB_SECRET"] for step in secret] == ["${{ secrets.HYBRIDLAB_SECRET }}"]
    assert secret[0]["name"] == "Grade", "no other step has it"
    kept = job("course")["steps"][-1]
    assert kept["uses"].startswith("actions/upload-artifact@")
    assert kept["with"]["retention-days"] <= 7


# What their steps do


class Runner:
    """A machine on which the steps of a template run: programs that change a system are recorded, all others are real."""

    def __init__(self, folder: Path) -> None:
        self.repository, self.summary, self.calls = folder / "repository", folder / "summary.md", folder / "calls"
        programs = folder / "bin"
        for each in (self.repository, programs):
            each.mkdir()
        self.calls.touch()
        for program in ("sudo", "apt-get", "apparmor_parser", "pip"):
            self.program(programs / program, f'echo "{program} $*" >>"{self.calls}"')
        self.program(programs / "hybridlab", f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -c "{COMMAND}" "$@"')
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def run(self, name: str, **variables: str) -> tuple[int, str]:
        """Run the shell steps as GitHub does, up to the first that fails. Return its exit code, and the log."""
        log = ""
        for step in job(name)["steps"]:
            if "run" not in step:
                continue
            own = {key: variables.get(key, "") for key in step.get("env", {})}
            command = ["/bin/bash", "-e", "-c", step["run"]]
            done = subprocess.run(
                command, cwd=self.repository, env=self.environment | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
            log += done.stdout.decode()
            if done.returncode:
                return done.returncode, log
        return 0, log

    def read_summary(self) -> str:
        return self.summary.read_text(encoding="utf-8")

    @staticmethod
    def program(path: Path, line: str) -> None:
        path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        path.chmod(0o755)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def commands_in(log: str) -> list[str]:
    """Return the lines that GitHub obeys."""
    return [line for line in log.splitlines() if re.match(r"\s*::", line) or re.search(r"##\[", line)]


def obeyed_in(summary: str) -> list[str]:
    """Return the lines of a summary that are neither code nor those of the template."""
    own = ("## What hybridlab check says", "## Marks", "This is advice on public cases. Hidden cases run when the work is graded.")
    return [line for line in summary.splitlines() if line.strip() and not line.startswith("    ") and line not in own]


@pytest.mark.slow
def test_a_student_gets_advice_and_a_run_that_does_not_fail(runner: Runner) -> None:
    copy = start("lab02", runner.repository, "ben")
    teach_page.answer(copy, teach_page.half(Student("ben")))
    (runner.repository / "lab03; touch hacked.ipynb").write_text("no notebook", encoding="utf-8")
    code, log = runner.run("student")
    assert code == 0
    assert "    15 of 15 points, 2 of them bonus points, on public cases; hidden cases run at grading" in runner.read_summary()
    assert "    ./lab02.ipynb" in runner.read_summary()
    assert "damaged" in runner.read_summary(), "what is no notebook is named, too"
    assert not commands_in(log)
    assert not obeyed_in(runner.read_summary())
    assert sorted(path.name for path in runner.repository.iterdir()) == ["AGENTS.md", "lab02.ipynb", "lab03; touch hacked.ipynb"]
    assert runner.calls.read_text(encoding="utf-8").startswith("pip install ./hybridlab-")


def test_a_student_without_notebooks_gets_an_empty_summary(runner: Runner) -> None:
    assert runner.run("student")[0] == 0
    assert "What hybridlab check says" in runner.read_summary()


def test_what_a_hostile_notebook_prints_is_no_command_of_a_students_run(runner: Runner) -> None:
    copy = start("lab02", runner.repository, "fei")
    teach_page.answer(copy, lambda key: HOSTILE if key == "lab02.t4" else teach_page.SPEC.stubs[key])
    code, log = runner.run("student")
    assert code == 0
    assert not commands_in(log)
    assert not obeyed_in(runner.read_summary())


def handed_in(runner: Runner, **answers: Any) -> None:
    for name, write in answers.items():
        copy = start("lab02", runner.repository / "submissions/lab02" / name, name)
        teach_page.answer(copy, write)


VARIABLES = {"HYBRIDLAB_SECRET": teach_page.SECRET, "LAB": "lab02", "LABEL": "final"}


@pytest.mark.slow
@needs_sandbox
def test_a_course_is_graded_and_a_submission_that_needs_a_person_is_a_warning(runner: Runner) -> None:
    handed_in(runner, ana=teach_page.copied, fei=lambda key: HOSTILE if key == "lab02.t4" else teach_page.SPEC.stubs[key])
    evil = runner.repository / "submissions/lab02/::error::evil##[error]"
    evil.mkdir()
    (evil / "lab02.ipynb").write_text(json.dumps({"cells": []}), encoding="utf-8")
    code, log = runner.run("course", **VARIABLES)
    assert code == 0, log
    (warning,) = commands_in(log)
    assert warning.startswith("::warning title=A submission needs a person::")
    assert "needs a person" in runner.read_summary()
    assert not obeyed_in(runner.read_summary())
    assert (runner.repository / "grades/grades.csv").is_file()
    assert teach_page.SECRET not in log + runner.read_summary()
    calls = runner.calls.read_text(encoding="utf-8")
    for words in (
        "apt-get install --yes bubblewrap apparmor-profiles",
        "extra-profiles/bwrap-userns-restrict /etc/apparmor.d/",
        "apparmor_parser --replace",
    ):
        assert words in calls


@pytest.mark.slow
@needs_sandbox
def test_a_course_without_warning_or_with_a_fault(runner: Runner) -> None:
    handed_in(runner, ana=teach_page.copied)
    assert runner.run("course", **VARIABLES)[0] == 0
    code, log = runner.run("course", **VARIABLES | {"LAB": "lab99; touch hacked"})
    assert code == 2
    assert "lab99" in log
    assert runner.run("course", **VARIABLES | {"HYBRIDLAB_SECRET": ""})[0] == 2
    assert not (runner.repository / "hacked").exists()


def test_a_course_without_a_sandbox_grades_nothing(runner: Runner) -> None:
    handed_in(runner, ana=teach_page.copied)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # nobody starts it
        Runner.program(Path(folder) / "bwrap", "exit 1")
        runner.environment["PATH"] = f"{folder}:{runner.environment['PATH']}"
        code, log = runner.run("course", **VARIABLES)
    assert code == 3, log
    assert not (runner.repository / "grades").exists()
