"""Test what `import hybridlab` loads, and the names that it offers."""

import json
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from cases import in_turn

import hybridlab
from hybridlab import published

FIRST_USES = {
    "hybridlab.plot.__name__": "hybridlab.plot",
    "hybridlab.widgets.__name__": "hybridlab.widgets",
    "hybridlab.published.__name__": "hybridlab.course.published",
    "hybridlab.bound.__name__": "hybridlab.bound",
    "hybridlab.engines.run.__module__": "hybridlab.engines.run",
    "hybridlab.check.__module__": "hybridlab.course.checking.checking",
    "hybridlab.rank.__module__": "hybridlab.automatic.ranking",
}
HEAVY = {"matplotlib", "ipywidgets", "anywidget", "IPython", "traitlets", "scipy", "pandas"}


@cache
def fresh() -> dict[str, Any]:
    """Return what a new interpreter has loaded after numpy, `import hybridlab` and a simulation, and what it finds at first use."""
    program = f"""
import json, sys
import numpy.random  # numpy loads it at the first use of Generator
result = {{"numpy": [*sys.modules]}}
import hybridlab
result["hybridlab"] = [*sys.modules]
schedule, costs = hybridlab.build("1f1b", 2, 4), hybridlab.Costs(forward=1, backward=2)
hybridlab.simulate(schedule, costs).to_chrome_trace()
result["simulation"] = [*sys.modules]
result.update({{use: eval(use) for use in {list(FIRST_USES)!r}}})
print(json.dumps(result))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def packages(after: str) -> set[str]:
    """Return the top-level names of all modules that the new interpreter has loaded by then."""
    return {name.partition(".")[0] for name in fresh()[after]}


def test_importing_the_library_loads_numpy_alone() -> None:
    new = packages("hybridlab") - packages("numpy") - set(sys.stdlib_module_names)
    assert {name for name in new if not name.startswith("_")} == {"hybridlab"}


def test_importing_the_library_loads_no_course_figures_or_widgets() -> None:
    rooms = {name.split(".")[1] for name in fresh()["hybridlab"] if name.startswith("hybridlab.")}
    assert "costs" in rooms
    assert not rooms & {"automatic", "course", "plot", "widgets"}


def test_simulating_loads_nothing_more() -> None:
    assert not packages("simulation") & HEAVY


@in_turn("use", FIRST_USES)
def test_names_that_are_loaded_on_first_use_work_in_a_fresh_interpreter(use: str) -> None:
    assert fresh()[use] == FIRST_USES[use]


def test_all_public_names_are_there_and_listed() -> None:
    assert set(hybridlab.__all__) <= set(dir(hybridlab))
    for name in hybridlab.__all__:
        assert getattr(hybridlab, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    for owner in (hybridlab, published):
        with pytest.raises(AttributeError, match=rf"module '{owner.__name__}' has no attribute 'nothing'"):
            _ = owner.nothing
        assert not hasattr(owner, "nothing")
