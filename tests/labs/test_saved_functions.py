"""Later cells of a lab run with a student's own saved functions, whatever the twist that they were written for."""

import ast
import contextlib
import io
import re
from collections.abc import Iterable, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
from grading_worlds import lab_spec
from honest import honest_cell
from solutions import NAMES_OF_LABS, is_solution, lab_cells

from hybridlab import check
from hybridlab.course.parts import ELSEWHERE
from hybridlab.course.tasks import TASKS, Build, Feedback, Twist

BUILDS: dict[str, Build] = {key: task.instance(None).data for key, task in TASKS.items() if task.kind == "build"}
KEYS = {build.name: key for key, build in BUILDS.items()}
SAVED = re.compile(r'\bpart\("(\w+)"')


# in lab 7, 20 steps of training in place of 100
FEWER = {"steps=100": "steps=20", '"steps": 100': '"steps": 20', "range(10, 101, 10)": "range(10, 21, 10)"}


def sources(lab: str) -> list[str]:
    """Return the code cells of a lab, without those in which a student hands in an answer. Trainings are short."""
    cells = (cell.source for cell in lab_cells(lab) if cell.kind == "code" and ("task" not in cell.tags or is_solution(cell)))
    return [reduce(lambda text, pair: text.replace(*pair), FEWER.items(), cell) for cell in cells]


TAKE_LONG = ("lab07", "lab16", "lab18")  # they train, search or start processes
USERS = [lab for lab in NAMES_OF_LABS if any(map(SAVED.search, sources(lab)))]


def defines(source: str) -> set[str]:
    """Return the names that a cell defines."""
    nodes = list(ast.walk(ast.parse(source)))
    found = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    found |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return found | {alias.asname or alias.name for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}


def needs(source: str) -> set[str]:
    """Return the names that a cell takes from the cells above it."""
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)} - defines(source)


@cache
def split(lab: str) -> tuple[list[str], list[str]]:
    """Return the cells that define what the users of saved functions need, and these users, in the order of the lab."""
    cells = sources(lab)
    first = next(place for place, source in enumerate(cells) if SAVED.search(source))
    before, users = cells[:first], []
    of_saved: set[str] = set()
    needed: set[str] = set()
    for source in cells[first:]:
        if SAVED.search(source) or needs(source) & of_saved:
            users.append(source)
            of_saved |= defines(source)
        else:
            before.append(source)
            of_saved -= defines(source)
    for source in users:
        needed |= needs(source)
    definers = []
    for source in reversed(before):
        if defines(source) & needed:
            definers.insert(0, source)
            needed |= needs(source)
    return definers, users


def passing(key: str, answer: Any = None) -> Feedback:
    """Check an answer, which must be right."""
    feedback = check(key, answer)
    assert feedback.passed, feedback
    return feedback


def run(cells: Iterable[str], namespace: dict[str, Any]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        for source in cells:
            exec(compile(source, "cell", "exec"), namespace)  # noqa: S102 - a cell of our own lab
            if "check" in namespace:
                namespace["check"] = passing


@cache
def defined(lab: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    run(split(lab)[0], namespace)
    return namespace


def save(folder: Path, key: str, twist: Twist) -> None:
    """Write the file that a check writes for a student with this twist."""
    build = BUILDS[key]
    published = lab_spec(key[:5]).solutions[key]
    own = re.sub(r"^check\(.*$", "", honest_cell(key, twist, build.name, published), flags=re.MULTILINE)
    undone = f"with_twist(next(each for each in build.variants if each.name == {twist.name!r})).twist.undo({build.name})"
    names = "from solutions import NAMES\nglobals().update(NAMES)"  # what cells above the solution define
    source = f"{names}\n{own}\nfrom hybridlab.course.tasks import TASKS\nbuild = TASKS[{key!r}].instance(None).data\n"
    (folder / f"{build.name}.py").write_text(f"{source}{build.name} = build.{undone}\n", encoding="utf-8")


def run_with(lab: str, twists: Sequence[tuple[str, Twist]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the later cells of a lab with saved functions that have these twists."""
    monkeypatch.setenv(ELSEWHERE, str(folder))
    for key, twist in twists:
        save(folder, key, twist)
    run(split(lab)[1], dict(defined(lab)))


def saved_in(lab: str) -> list[str]:
    """Return the keys of the builds whose functions a lab uses."""
    return [KEYS[name] for source in split(lab)[1] for name in SAVED.findall(source)]


def test_every_build_is_used_by_a_later_cell() -> None:
    assert {name for lab in NAMES_OF_LABS for source in sources(lab) for name in SAVED.findall(source)} == KEYS.keys()


@pytest.mark.parametrize("lab", [lab for lab in USERS if lab not in TAKE_LONG])
def test_later_cells_run_with_twisted_functions(lab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_with(lab, [(key, BUILDS[key].variants[-1]) for key in saved_in(lab)], tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("lab", USERS)
def test_later_cells_run_with_every_twist(lab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = saved_in(lab)
    most = max(len(BUILDS[key].twists) for key in keys)
    for place in range(most):  # those of all functions at once
        twists = [(key, BUILDS[key].twists[place % len(BUILDS[key].twists)]) for key in keys]
        run_with(lab, twists, tmp_path, monkeypatch)
