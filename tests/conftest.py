"""Set up what all tests share: the profiles of hypothesis, the rule that in CI a skipped test is an error, and the rule for torch."""

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import profiles
import pytest
import torch_version

profiles.register()

# these files have no doctests to run, and importing them takes seconds
collect_ignore = ["labs/run_labs.py", "labs/stored_labs.py"]
# programs that run in processes of their own: some import torch, and one has schedules that wait or kill their process
collect_ignore += [f"engines/{name}.py" for name in ("torch_ddp", "torch_facts", "torch_runtime", "torch_stages", "sweep_worker")]

if TYPE_CHECKING:
    from hybridlab.schedules import Family

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
SHARED = Path(__file__).resolve().parents[2] / "shared"


def skips_are_errors(test: str) -> bool:
    """Return whether it is an error that ``test`` (a node id) was skipped.

    It is an error in CI, where everything that the tests need is available. A public runner has no reference data beside the repository, so
    tests that read them are skipped there. On such a runner, only a skipped test of the site or of grading is an error, because a browser
    and a sandbox are there.
    """
    return bool(os.environ.get("CI")) and (SHARED.is_dir() or test.startswith(("tests/site/", "tests/grading/")))


@pytest.fixture
def families() -> Iterator[dict[str, "Family"]]:
    """Return the registry as a dict that a test may change; after the test, the registry and its order are as before."""
    from hybridlab.schedules import registry  # imported here, since some tests run before the library can be imported

    kept = dict(registry._FAMILIES)
    yield registry._FAMILIES
    registry._FAMILIES.clear()
    registry._FAMILIES.update(kept)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Switch Python's garbage collector off while tests are collected.

    It would find nothing to free at that time, and would take a quarter of the time. Modules and tests stay in memory until the end, so
    later runs of the garbage collector leave them out, too.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return forbid_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return forbid_skip((yield))


def forbid_skip(report: Report) -> Report:
    """Return the report; where a skip is an error, the report of a skip becomes a failure."""
    if report.skipped and not hasattr(report, "wasxfail") and skips_are_errors(report.nodeid):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped where nothing may be: {report.longrepr}"
    return report


LEFT_OUT = pytest.StashKey[int]()  # how many tests need a torch that is not there


def pytest_configure(config: pytest.Config) -> None:
    torch_version.must_be_there()
    config.stash[LEFT_OUT] = 0


@pytest.hookimpl(trylast=True)  # tests that were not asked for are out by then
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = torch_version.take_out(items)
    config.stash[LEFT_OUT] = len(out)
    if out:
        config.hook.pytest_deselected(items=out)
    if hasattr(config, "workeroutput"):  # one of several processes that run tests: it tells the one that reports
        config.workeroutput["left out"] = len(out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a process that runs tests has told; all of them collect the same tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.stash[LEFT_OUT]:
        terminalreporter.write_line(torch_version.sentence(config.stash[LEFT_OUT]))
