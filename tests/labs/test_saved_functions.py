"""Later cells of a lab run with a student's own saved functions, whatever the twist, and show what these functions return."""

import ast
import contextlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from importlib import import_module
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
OWN_FILE = re.compile(r"^\w+: your own, from .*$", flags=re.MULTILINE)  # names the folder
SAVED = re.compile(r'\bpart\("(\w+)"')


# in lab 7, 20 steps of training in place of 100
FEWER = {"steps=100": "steps=20", '"steps": 100': '"steps": 20', "range(10, 101, 10)": "range(10, 21, 10)"}


def sources(lab: str) -> list[str]:
    """Return the code cells of a lab, without those in which a student hands in an answer. Trainings are short."""
    cells = (cell.source for cell in lab_cells(lab) if cell.kind == "code" and ("task" not in cell.tags or is_solution(cell)))
    return [reduce(lambda text, pair: text.replace(*pair), FEWER.items(), cell) for cell in cells]


# In these labs no twist of these functions changes what they return, or a later cell cannot run it. So the ends of their files change them.
OTHERS = {
    ("lab07", "lab04.t7"): """
def ring_all_reduce(values, right=ring_all_reduce):
    averages, messages = right(values)
    return averages / 2, messages
""",
    ("lab07", "lab07.t1"): """
def run_pipeline(orders, forward, backward, inputs, right=run_pipeline):
    loss, gradients = right(orders, forward, backward, inputs)
    return loss, [each / 2 for each in gradients]
""",
    ("lab08", "lab08.t5"): """
from threading import Thread
def run_in_threads(orders, work, lost):  # waits for no message
    threads = [Thread(target=lambda line=line: [work(op, None) for op in line.split()]) for line in orders]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
""",
    ("lab16", "lab16.t4"): """
def communication(orders, needs, rank):  # looks at the line of its own rank alone, as `joined_line` of the lab
    home = {op: r for r, line in enumerate(orders) for op in line.split()}
    reader, entries = {source: op for op, source in needs.items()}, [""]
    for op in orders[rank].split():
        messages = [f"receive {needs[op]} from {home[needs[op]]}"] if op in needs else []
        for text in [*messages, f"run {op}", *([f"send {op} to {home[reader[op]]}"] if op in reader else [])]:
            alone = "run" in text + entries[-1] or not entries[-1]
            entries = [*entries, text] if alone else [*entries[:-1], f"{entries[-1]} and {text}"]
    return entries[1:]
""",
}

# they train, search, wait or draw a lot
TAKE_LONG = ("lab05", "lab07", "lab08", "lab09", "lab10", "lab13", "lab14", "lab15", "lab16", "lab18")
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


def run(cells: Iterable[str], namespace: dict[str, Any], judge: Callable[..., Feedback] = passing) -> list[str]:
    """Run cells, and return what each shows: printed text, and its last value as text, in which pictures and views have their numbers.

    The cells hand in answers to ``judge``.
    """
    shown = []
    for source in cells:
        tree = ast.parse(source)
        last = [tree.body.pop()] if isinstance(tree.body[-1], ast.Expr) else []
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, "cell", "exec"), namespace)  # noqa: S102 - a cell of our own lab
            for each in last:
                print(repr(eval(compile(ast.Expression(each.value), "cell", "eval"), namespace)))  # noqa: S307
            if "check" in namespace:
                namespace["check"] = judge
        shown.append(OWN_FILE.sub("", printed.getvalue()))
    return shown


@cache
def defined(lab: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    run(split(lab)[0], namespace)
    return namespace


def save(folder: Path, key: str, twist: Twist, undone: bool = True) -> None:
    """Write the file that a check writes for a student with this twist. If not ``undone``, the function is still that of the twist."""
    build = BUILDS[key]
    published = lab_spec(key[:5]).solutions[key]
    own = re.sub(r"^check\(.*$", "", honest_cell(key, twist, build.name, published), flags=re.MULTILINE)
    change = f"build.with_twist(next(each for each in build.variants if each.name == {twist.name!r})).twist.undo({build.name})"
    names = "from solutions import NAMES\nglobals().update(NAMES)"  # what cells above the solution define
    source = f"{names}\n{own}\nfrom hybridlab.course.tasks import TASKS\nbuild = TASKS[{key!r}].instance(None).data\n"
    (folder / f"{build.name}.py").write_text(f"{source}{build.name} = {change if undone else build.name}\n", encoding="utf-8")


def run_with(lab: str, twists: Sequence[tuple[str, Twist]], folder: Path, monkeypatch: pytest.MonkeyPatch, changed: str = "") -> list[str]:
    """Run the later cells of a lab with saved functions that have these twists, which are undone except in the ``changed`` build."""
    monkeypatch.setenv(ELSEWHERE, str(folder))
    for key, twist in twists:
        save(folder, key, twist, undone=key != changed)
    if (lab, changed) in OTHERS:
        save(folder, changed, dict(twists)[changed])
        with (folder / f"{BUILDS[changed].name}.py").open("a", encoding="utf-8") as file:
            file.write(OTHERS[lab, changed])
    judge = check if changed else passing  # an answer that uses a changed function need not pass
    return run(split(lab)[1], {**defined(lab), "check": judge}, judge)


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
        twists = {key: BUILDS[key].twists[place % len(BUILDS[key].twists)] for key in keys}
        shown = run_with(lab, list(twists.items()), tmp_path, monkeypatch)

    compared = import_module("run_labs").compared
    again = run_with(lab, list(twists.items()), tmp_path, monkeypatch)
    steady = [compared(one) == compared(other) for one, other in zip(shown, again, strict=True)]  # some pictures have measured times

    def differs(key: str, twist: Twist) -> bool:
        with contextlib.suppress(Exception):  # the function of a twist may return what a later cell cannot take
            outputs = run_with(lab, [*(twists | {key: twist}).items()], tmp_path, monkeypatch, changed=key)
            return any(same and compared(one) != compared(other) for same, one, other in zip(steady, shown, outputs, strict=True))
        return False

    unseen = [key for key in dict.fromkeys(keys) if not any(differs(key, twist) for twist in BUILDS[key].twists)]
    assert not unseen, "no output of a later cell is other if this function returns something else"
