"""Test names and modules of the previous version, and what `import hybridlab` loads."""

import importlib
import inspect
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal

import hybridlab
from hybridlab import Costs, bound, build, hybrid_step, published, simulate
from hybridlab.course import claims
from hybridlab.course.published import large_runs
from hybridlab.renamed import MOVED_MODULES, MovedModules

ROOT = Path(__file__).resolve().parents[2]
STEP = hybrid_step(build("1f1b", 2, 2), Costs(forward=1, backward=2), 2)


def fresh(program: str, *options: str) -> Any:
    """Return what ``program`` leaves in ``result``, after a run in an interpreter of its own."""
    run = [sys.executable, *options, "-c", f"import json\n{program}\nprint(json.dumps(result))"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@in_turn(
    "owner, old, new",
    [
        (STEP, "single_device", "HybridStep.single_device_time"),
        (STEP.timeline, "waited_for", "Timeline.blocking_operation"),
        (bound, "distance", "hybridlab.bound.optimality_gap"),
        (bound, "Distance", "hybridlab.bound.OptimalityGap"),
        (published, "ring_all_reduce", "hybridlab.course.published.published_ring"),
        (published.zero_bubble, "Run", "hybridlab.course.published.zero_bubble.ZeroBubbleRun"),
        (large_runs, "RUNS", "hybridlab.course.published.large_runs.RUNS_2022"),
        (claims, "counted", "hybridlab.course.claims.count_verdicts"),
        (claims, "Counts", "hybridlab.course.claims.VerdictCounts"),
    ],
)
def test_a_renamed_name_is_refused_with_the_new_one(owner: Any, old: str, new: str) -> None:
    with refusal("removed-name", f".{old} ", new):
        getattr(owner, old)
    assert old not in getattr(owner, "__all__", ())
    assert getattr(owner, new.rpartition(".")[2], None) is not None


def test_tools_that_list_attributes_skip_a_renamed_one() -> None:
    assert not hasattr(STEP, "single_device")
    assert not hasattr(STEP.timeline, "waited_for")
    names = [name for name, _ in inspect.getmembers(STEP)]
    assert "single_device_time" in names
    assert "single_device" not in names


def test_importing_a_renamed_name_gives_the_sentence() -> None:
    with refusal("removed-name", "optimality_gap"):
        from hybridlab.bound import distance  # noqa: F401
    with pytest.raises(ImportError):
        from hybridlab.bound import nearness  # noqa: F401


def test_classes_with_a_renamed_attribute_can_be_read_by_documentation_tools() -> None:
    for owner, old in ((hybridlab.HybridStep, "single_device"), (hybridlab.Timeline, "waited_for")):
        assert getattr(owner, old) is vars(owner)[old]


OLD_IMPORTS = {
    "from hybridlab.published import simulator": ("hybridlab.published", "simulator.__module__", "hybridlab.course.published.simulator"),
    "import hybridlab.published.report as r": ("hybridlab.published.report", "r.__name__", "hybridlab.course.published.report"),
    "import hybridlab.published.claims as c": ("hybridlab.published.claims", "c.__name__", "hybridlab.course.claims"),
    "from hybridlab.published.megatron import TABLE_1 as t": (
        "hybridlab.published.megatron",
        "type(t[0]).__module__",
        "hybridlab.course.published.large_runs",
    ),
    "import hybridlab.published.korthikanti as k": (
        "hybridlab.published.korthikanti",
        "k.__name__",
        "hybridlab.course.published.large_runs",
    ),
    "from hybridlab import trust": ("hybridlab.trust", "trust.__name__", "hybridlab.course.comparisons"),
    "import hybridlab; c = hybridlab.clock": ("hybridlab.clock", "c.__name__", "hybridlab.simulation"),
    "from hybridlab.tasks.lab01 import __name__ as n": ("hybridlab.tasks.lab01", "n", "hybridlab.course.tasks.lab01"),
    "from hybridlab.replicas import replicate as f": ("hybridlab.replicas", "f.__module__", "hybridlab.step.replicas"),
    "from hybridlab.spans import Spans": ("hybridlab.spans", "Spans.__module__", "hybridlab.timeline.spans"),
    "from hybridlab.validation import Problem": ("hybridlab.validation", "Problem.__module__", "hybridlab.schedule.validation"),
}


@cache
def after_old_imports() -> dict[str, list[Any]]:
    """For each old import, all in one fresh interpreter: the warnings, the name found, and whether the module was loaded once."""
    return fresh(f"""
import sys, warnings
from hybridlab.renamed import MOVED_MODULES
result = {{}}
for statement, (old, expression, _) in {OLD_IMPORTS!r}.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(statement)
    new = next(new + old[len(old_name):] for old_name, new in MOVED_MODULES.items() if (old + ".").startswith(old_name + "."))
    module = sys.modules[new]
    once = module is sys.modules[old] and module.__name__ == module.__spec__.name == new
    result[statement] = [[each.category.__name__ + ": " + str(each.message) for each in caught], eval(expression), new, once]
""")


@in_turn("statement", OLD_IMPORTS)
def test_an_old_module_path_works_and_warns_of_the_new_one(statement: str) -> None:
    """The module at the new place is loaded once, and keeps its own name and spec."""
    old, _, expected = OLD_IMPORTS[statement]
    warned, found, new, once = after_old_imports()[statement]
    assert f"DeprecationWarning: {old} is now {new}: import it from there" in warned
    assert found == expected
    assert once


def test_a_submodule_that_left_its_package_is_found_in_the_old_package() -> None:
    found = fresh("""
import hybridlab, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from hybridlab.published import claims, korthikanti
    result = [claims.__name__, korthikanti.__name__, hybridlab.published.megatron.__name__, [str(each.message)[:29] for each in caught]]
""")
    large_runs = "hybridlab.course.published.large_runs"
    assert found[:3] == ["hybridlab.course.claims", large_runs, large_runs]
    assert {"hybridlab.published.claims is", "hybridlab.published.korthikan", "hybridlab.published.megatron "} <= set(found[3])


def test_the_warning_points_at_the_line_that_imports(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("import hybridlab\nfrom hybridlab.published import simulator\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=ROOT, env=None, check=True)
    assert f"{script}:2: DeprecationWarning: hybridlab.published is now hybridlab.course.published" in done.stderr


def test_moved_modules_exist_and_their_old_files_do_not() -> None:
    for old, new in MOVED_MODULES.items():
        assert importlib.import_module(new).__name__ == new
        folder = ROOT.joinpath(*old.split("."))
        assert not folder.with_suffix(".py").exists()
        assert not (folder / "__init__.py").exists()


def test_the_import_hook_looks_at_moved_modules_alone() -> None:
    hook = MovedModules()
    for name in ("hybridlab", "hybridlab.costs", "hybridlab.clocks", "hybridlab.spans_of", "numpy", "published", "xhybridlab.clock"):
        assert hook.find_spec(name) is None, name
    for name in MOVED_MODULES:
        assert hook.find_spec(name) is not None
        assert hook.find_spec(f"{name}.part") is not None


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("hybridlab.nothing")
    with pytest.warns(DeprecationWarning, match="hybridlab.published"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("hybridlab.published.nothing")


# What `import hybridlab` loads


def test_importing_the_library_loads_no_course_figures_or_widgets() -> None:
    loaded = fresh("import sys, hybridlab\nresult = [name for name in sys.modules if name.startswith('hybridlab')]", "-W", "error")
    assert "hybridlab.costs" in loaded
    assert not {name.split(".")[1] for name in loaded if "." in name} & {"course", "plot", "widgets"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("hybridlab.plot.__name__", "hybridlab.plot"),
        ("hybridlab.widgets.__name__", "hybridlab.widgets"),
        ("hybridlab.published.__name__", "hybridlab.course.published"),
        ("hybridlab.check.__module__", "hybridlab.course.tasks.checking"),
    ],
)
def test_names_that_are_loaded_on_first_use_work_in_a_fresh_interpreter(expression: str, expected: str) -> None:
    assert fresh(f"import hybridlab\nresult = {expression}", "-W", "error") == expected


def test_all_public_names_are_there_and_listed() -> None:
    assert set(hybridlab.__all__) <= set(dir(hybridlab))
    for name in hybridlab.__all__:
        assert getattr(hybridlab, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    for owner in (hybridlab, bound, published):
        with pytest.raises(AttributeError, match=rf"module '{owner.__name__}' has no attribute 'nothing'"):
            _ = owner.nothing
        assert not hasattr(owner, "nothing")
    assert simulate is hybridlab.simulate
