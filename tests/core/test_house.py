"""Test the structure of the code: imports point down only, labs and book use public names only."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

from cases import in_turn
from IPython.core.inputtransformer2 import TransformerManager
from notebooks import cells_of

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "hybridlab"
FLOORS = {
    "arrays": 0,
    "checks": 0,
    "errors": 0,
    "progress": 0,
    "sheets": 0,
    "tables": 0,
    "mesh": 1,
    "wire": 1,
    "collectives": 2,
    "costs": 2,
    "hardware": 2,
    "schedule": 2,
    "formulas": 3,
    "memory": 3,
    "model": 3,
    "schedules": 3,
    "simulation": 3,
    "timeline": 3,
    "bound": 4,
    "engines": 4,
    "palette": 4,
    "planner": 4,
    "step": 4,
    "sweep": 4,
    "training": 4,
    "automatic": 5,
    "course": 5,
    "plot": 5,
    "widgets": 5,
    "zoo": 5,
    "__main__": 6,
    "commands": 6,
}
BESIDES_NUMPY = {
    "__main__": {"click"},
    "commands": {"click"},
    "bound": {"ortools"},
    "course": {
        "IPython",
        "click",
        "landlockpy",
        "psutil",
        "results",
        "values",
    },  # the last two: files of it, as the worker's program sees them
    "engines": {"cloudpickle", "mpi4py", "torch"},
    "plot": {"matplotlib", "PIL"},
    "progress": {"tqdm"},
    "tables": {"pandas"},
    "training": {"sklearn"},
    "widgets": {"IPython", "anywidget", "traitlets"},
}
PUBLIC = {
    "automatic",
    "bound",
    "collectives",
    "course",
    "engines",
    "formulas",
    "hardware",
    "model",
    "palette",
    "planner",
    "plot",
    "schedules",
    "step",
}
PUBLIC |= {"sweep", "training", "widgets", "wire", "zoo"}
SOURCES = sorted(LIBRARY.rglob("*.py"))
PAGES = sorted((ROOT / "labs").glob("*.ipynb")) + sorted((ROOT / "book").glob("*.md")) + sorted((ROOT / "book").rglob("*.py"))
each_source = in_turn("path", SOURCES)
each_page = in_turn("path", PAGES)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path) for path in SOURCES}


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Return every (module, name) that a file imports anywhere; the name is empty for a plain import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole module"
            yield from ((node.module or "", alias.name) for alias in node.names)


@cache
def modules_imported(path: Path) -> set[str]:
    """Return the modules that a file imports; in `from package import module`, the module counts."""
    pairs = imported(tree_of(path))
    return {f"{module}.{name}" if f"{module}.{name}" in MODULES else module for module, name in pairs}


def room(module: str) -> str:
    """Return the part of the library that a module belongs to: `schedules` for hybridlab.schedules.gpipe."""
    return module.removeprefix("hybridlab").lstrip(".").split(".")[0]


@each_source
def test_imports_point_down(path: Path) -> None:
    here = room(module_of(path))
    if not here:
        return  # hybridlab/__init__.py is above all other parts
    for module in modules_imported(path):
        if module.split(".")[0] == "hybridlab":
            assert room(module), f"{path.name} imports the whole house"
            assert FLOORS[room(module)] <= FLOORS[here], f"{here} is below {module}"


@in_turn("path", [path for path in SOURCES if path.parent.parent == LIBRARY / "course" / "labs"])
def test_a_lab_uses_what_labs_share_and_earlier_labs(path: Path) -> None:
    own = module_of(path).split(".")[3]
    course = [module.removeprefix("hybridlab.course.") for module in modules_imported(path) if module.startswith("hybridlab.course.")]
    assert not [each for each in course if each.startswith(("tasks", "grading", "claims"))]
    assert not [each for each in course if each.startswith("labs.") and each.split(".")[1] > own]


@each_source
def test_each_floor_needs_only_what_is_allowed_there(path: Path) -> None:
    allowed = {"hybridlab", "numpy"} | BESIDES_NUMPY.get(room(module_of(path)), set())
    outside = {module.split(".")[0] for module in modules_imported(path)} - set(sys.stdlib_module_names)
    assert outside <= allowed


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {module_of(path): modules_imported(path) & MODULES for path in SOURCES}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules of a cycle


def test_closed_forms_share_nothing_with_the_simulation_they_judge() -> None:
    reached, found = ["hybridlab.formulas"], set()
    paths = {module_of(path): path for path in SOURCES}
    while reached:
        module = reached.pop()
        if module not in found:
            found.add(module)
            reached += modules_imported(paths[module]) & MODULES
    judged = ("simulation", "timeline", "schedule", "costs", "collectives", "wire", "step")
    assert not {room(module) for module in found} & set(judged)


def test_the_picture_of_the_house_has_every_room_on_its_floor() -> None:
    rooms = {path.stem for path in LIBRARY.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}
    assert rooms == set(FLOORS)
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"The library has {len(rooms)} rooms" in guide
    drawn, floor = {}, None
    for line in guide.split("```text\n")[1].split("```")[0].splitlines():
        floor = int(line[2]) if line[2].isdigit() else floor
        drawn |= dict.fromkeys((name for name in re.findall(r"(\w+)(?:/|\.py)(?= |$)", line) if name in rooms), floor)
    assert drawn == FLOORS


WORDS = {6: "six", 7: "seven", 8: "eight", 9: "nine"}


def test_readme_and_the_pages_name_the_same_numbers() -> None:
    """The floors are those of this file, and the weeks those of the page for instructors, whose table another test counts."""
    readme, guide, teach = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md", "book/teach.md"))
    floors = sorted(set(FLOORS.values()))
    assert f"The library has {WORDS[len(floors)]} floors." in readme
    assert f" rooms on {WORDS[len(floors)]} floors." in guide
    assert [int(floor) for floor in re.findall(r"^\| (\d) \|", readme, flags=re.MULTILINE)] == floors
    [weeks] = re.findall(r"^## (\w+) weeks$", teach, flags=re.MULTILINE)
    assert f"has a plan for {weeks.lower()} weeks" in readme


REFUSALS = {"HybridLabError", "InvalidSchedule", "Deadlock", "UnsupportedSize", "Refused"}


@each_source
def test_every_refusal_has_a_code(path: Path) -> None:
    """The code is the second argument of an error, or ``code``; if it is a literal, it has lower-case words with hyphens."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REFUSALS:
            named = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            codes = [*node.args[1:2], *named]
            assert len(codes) == 1, f"line {node.lineno}: the error has no code"
            if isinstance(codes[0], ast.Constant):
                assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", str(codes[0].value)), f"line {node.lineno}: {codes[0].value!r} is no code"


def test_no_two_public_functions_or_classes_of_modules_share_a_name() -> None:
    """A search for a name then finds only one definition."""
    where: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(module_of(path))
    assert not {name: modules for name, modules in where.items() if len(modules) > 1}


def code_of(path: Path) -> Iterator[ast.Module]:
    """Return the code that a lab, a page of the book or an extension of the book runs."""
    if path.suffix == ".py":
        yield ast.parse(path.read_text(encoding="utf-8"))
        return
    if path.suffix == ".ipynb":
        cells = [cell.source for cell in cells_of(path) if cell.kind == "code"]
    else:
        blocks = path.read_text(encoding="utf-8").split("```{code-cell}")[1:]
        cells = [block.split("```")[0].split("\n", 1)[1] for block in blocks]
        cells = [cell.split("\n---\n")[-1] for cell in cells]  # the options of a cell are above its code, between lines of dashes
    for cell in cells:
        yield ast.parse(TransformerManager().transform_cell(cell))


@each_page
def test_labs_and_book_use_public_names_only(path: Path) -> None:
    for tree in code_of(path):
        for module, name in imported(tree):
            if module.split(".")[0] != "hybridlab":
                continue
            assert not room(module) or room(module) in PUBLIC, f"{module} is not public"
            public = getattr(import_module(module), "__all__", None)
            assert not name or public is None or name in public or f"{module}.{name}" in MODULES, f"{module}.{name} is not public"
        hidden = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match("_(?!_)", node.attr)}
        assert not hidden, f"{hidden} is not public"


def test_nothing_imports_from_labs_or_book() -> None:
    for path in SOURCES + [each for each in sorted((ROOT / "tests").rglob("*.py")) if "node_modules" not in each.parts]:
        assert not re.search(r"^\s*(from|import) (labs|book)\b", path.read_text(encoding="utf-8"), flags=re.MULTILINE), path
