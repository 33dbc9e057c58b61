"""What all tests share: no time limit for an example of hypothesis, and no silent skips where everything is at hand."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

settings.register_profile("hybridlab", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("hybridlab")

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
SHARED = Path(__file__).resolve().parents[2] / "shared"


def skips_are_errors() -> bool:
    """Whether a skipped test is an error: in CI, where the reference data stands beside the repository.

    On a public runner it does not, and the tests that read it are skipped there.
    """
    return bool(os.environ.get("CI")) and SHARED.is_dir()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return forbid_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return forbid_skip((yield))


def forbid_skip(report: Report) -> Report:
    """Return the report; one of a skip as a failure where skips are errors."""
    if report.skipped and not hasattr(report, "wasxfail") and skips_are_errors():
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped where nothing may be: {report.longrepr}"
    return report
