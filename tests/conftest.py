"""Set up what all tests share: profiles of hypothesis, the rule for what is missing, and the budget of tests."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import budget
import missing
import profiles
import pytest

profiles.register()

# these files have no doctests to run, and importing them takes seconds
collect_ignore = ["labs/run_labs.py", "labs/stored_labs.py"]
# programs that run in processes of their own: some import torch, and one has schedules that wait or kill their process
collect_ignore += [f"engines/{name}.py" for name in ("torch_ddp", "torch_facts", "torch_runtime", "torch_stages", "sweep_worker")]

if TYPE_CHECKING:
    from hybridlab.schedules import Family

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
LEFT_OUT = pytest.StashKey[Counter[str]]()  # how many tests need what is missing, by the sentence that says what
COUNTS = pytest.StashKey[dict[str, Counter[str]]]()  # how many tests each folder has, for each size


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
    """Return the report; in CI, the report of a skip becomes a failure, because a test that needs something has a mark for it."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped where nothing may be: {report.longrepr}"
    return report


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts programs in the background so, and tests interrupt programs
        signal.signal(signal.SIGINT, signal.default_int_handler)
    missing.torch_must_be_there()
    config.stash[LEFT_OUT], config.stash[COUNTS] = Counter(), {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, None]:
    # slow tests count here even in a quick run, so that the quick run finds what would end a full run after half an hour
    config.stash[COUNTS] = budget.counted((item.nodeid, item.get_closest_marker("slow") is not None) for item in items)
    yield  # now pytest takes out the tests that were not asked for
    before = list(items)
    config.stash[LEFT_OUT] = missing.take_out(items)
    if len(items) < len(before):
        kept = set(map(id, items))
        config.hook.pytest_deselected(items=[item for item in before if id(item) not in kept])
    if hasattr(config, "workeroutput"):  # one of several processes that run tests: it tells the one that reports
        config.workeroutput["left out"] = dict(config.stash[LEFT_OUT])
        config.workeroutput["counts"] = {size: dict(folders) for size, folders in config.stash[COUNTS].items()}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run one process more than there are cores, because some tests wait and need no core."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    missing.must_be_here(item)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a process that runs tests has told; all of them collect the same tests."""
    told = getattr(node, "workeroutput", {})
    node.config.stash[LEFT_OUT] = Counter(told.get("left out", {}))
    node.config.stash[COUNTS] = told.get("counts", {})


def pytest_sessionfinish(session: pytest.Session) -> None:
    if budget.too_many(session.config.stash[COUNTS]) and not hasattr(session.config, "workeroutput"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in missing.lines(config.stash[LEFT_OUT]) + budget.too_many(config.stash[COUNTS]):
        terminalreporter.write_line(line)
