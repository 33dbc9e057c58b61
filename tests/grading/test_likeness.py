"""Test how programs that are alike are found: names and layout do not matter, all else does, and nothing in a notebook stops the search."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from cases import in_turn
from graded_class import answered, right_answer, save
from grading_worlds import lab_spec
from own_words import in_own_words

from hybridlab.course.grading.labs import lab_notebooks
from hybridlab.course.grading.likeness import add_likenesses, fingerprint_of, known_programs, likenesses, programs_in
from hybridlab.course.grading.marks import Marks
from hybridlab.course.grading.notebook import CodeCell

OWN = """
def {name}(devices, microbatches):
    lines = []
    for device in range(devices):
        warmup = min(devices - device - {less}, microbatches)
        names = [f"{{device}}F{{number}}" for number in range(warmup)]
        for number in range(microbatches - warmup):
            names += [f"{{device}}F{{number + warmup}}", f"{{device}}B{{number}}"]
        lines.append(" ".join(names + [f"{{device}}B{{number}}" for number in range(microbatches - warmup, microbatches)]))
    return lines
check("lab02.t5", {name})
"""
PUBLISHED = "the published lab02_one_f_one_b.ipynb"


class _Renamed(ast.NodeTransformer):
    """Give all arguments, variables and functions of a program other names, and give each function a docstring."""

    def __init__(self, tree: ast.AST) -> None:
        nodes = list(ast.walk(tree))
        self._names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        self._names |= {node.arg for node in nodes if isinstance(node, ast.arg)} | {
            node.name for node in nodes if isinstance(node, ast.FunctionDef)
        }

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._own(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._own(node.arg))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.name, node.body, node.returns = self._own(node.name), [ast.Expr(ast.Constant("Do it.")), *node.body], ast.Constant("int")
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        own = isinstance(node.func, ast.Name) and node.func.id in self._names
        self.generic_visit(node)
        node.keywords = [ast.keyword(self._own(each.arg) if own and each.arg else each.arg, each.value) for each in node.keywords[::-1]]
        return node

    def _own(self, name: str) -> str:
        return f"my_{name}" if name in self._names else name


def renamed(source: str) -> str:
    """Return a program with other names and another layout."""
    tree = ast.parse(source)
    return ast.unparse(ast.fix_missing_locations(_Renamed(tree).visit(tree)))


def sentences(sources: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    cells = {file: [CodeCell(source) for source in given] for file, given in sources.items()}
    return likenesses(cells, lab_spec("lab02"), known_programs("lab02"))


@in_turn("lab", lab_notebooks())
def test_a_published_solution_with_other_names_is_found(lab: str) -> None:
    spec = lab_spec(lab)
    copied = programs_in([CodeCell(renamed(source)) for source in spec.solutions.values()], spec)
    for key, published in known_programs(lab)[next(iter(known_programs(lab)))].items():
        assert copied[key] == published
        assert published or key in ("lab05.t3", "lab05.t6"), f"{key} is too small to have a fingerprint"


def test_what_is_not_a_name_matters() -> None:
    source = OWN.format(name="own", less=0)
    same = fingerprint_of(source, "own")
    assert same
    changes = {"- 0": "- 1", "range(warmup)": "range(devices)", '" ".join': '"".join', "names +=": "names = names +", "min": "max"}
    for old, new in changes.items():
        assert old in source
        assert fingerprint_of(source.replace(old, new), "own") != same, old
    assert fingerprint_of(source, "another") == ""


def test_both_files_are_named_and_the_order_of_the_class_does_not_matter() -> None:
    ana, ben = OWN.format(name="one_f_one_b", less=0), renamed(OWN.format(name="one_f_one_b", less=0))
    chi, dia = renamed(lab_spec("lab02").solutions["lab02.t5"]), OWN.format(name="one_f_one_b", less=1)
    helped = f"{ana}\ncheck('lab02.t5', lambda *sizes: one_f_one_b(*sizes)[::-1])"
    given = {"ana.ipynb": [ana], "ben.ipynb": [ben], "chi.ipynb": [chi], "dia.ipynb": [dia], "eva.ipynb": [helped]}
    aside = "names and layout aside,"
    wanted = {
        "ana.ipynb": [f"lab02.t5 in ana.ipynb: {aside} the same program as in ben.ipynb"],
        "ben.ipynb": [f"lab02.t5 in ben.ipynb: {aside} the same program as in ana.ipynb"],
        "chi.ipynb": [f"lab02.t5 in chi.ipynb: {aside} the same program as in {PUBLISHED}"],
        "eva.ipynb": [f"lab02.t5 in eva.ipynb: {aside} a function as in ana.ipynb, ben.ipynb"],
    }
    assert sentences(given) == wanted
    assert sentences(dict(reversed(given.items()))) == wanted


@pytest.mark.parametrize("labs", [["lab02"], pytest.param(lab_notebooks(), marks=pytest.mark.slow)], ids=["one", "all"])
def test_students_with_programs_of_their_own_are_not_alike(labs: Sequence[str]) -> None:
    for lab in labs:
        spec = lab_spec(lab)
        keys = [task.key for task in spec.tasks if task.kind == "build"]
        cells = {name: [CodeCell(in_own_words(right_answer(key, name), name), key) for key in keys] for name in ("ana", "ben")}
        assert all(programs_in(cells["ana"], spec)[key] for key in keys), lab
        assert likenesses(cells, spec, known_programs(lab)) == {}, lab


def test_a_class_that_has_copied_one_file_is_told_in_a_short_sentence() -> None:
    found = sentences({f"{number}.ipynb": [OWN.format(name=f"own_{number}", less=0)] for number in range(9)})
    assert found["8.ipynb"] == ["lab02.t5 in 8.ipynb: names and layout aside, the same program as in 0.ipynb, 1.ipynb, 2.ipynb and 5 more"]


@pytest.mark.needs("bwrap")
def test_a_solution_of_the_tests_is_found_and_no_mark_changes(tmp_path: Path) -> None:
    copies = {"ana": {"lab02.t6": right_answer("lab02.t6", "ana")}, "ben": {}}
    found = {name: [save(tmp_path / name / "lab02.ipynb", answered("lab02", copies[name], name))] for name in copies}
    found["chi"] = [tmp_path / "chi" / "lab02.ipynb"]  # a file that does not exist
    marks = [Marks(name, "lab02", "course", "final", "lab02.ipynb", "", "", (), needs_person="why" * (name == "ana")) for name in found]
    first, *others = add_likenesses(marks, found, "lab02")
    assert others == marks[1:]
    why, told = first.needs_person.split("; ")
    assert why == "why"
    assert told == f"lab02.t6 in ana/lab02.ipynb: names and layout aside, a function as in tests/labs/lab02/honest.py, {PUBLISHED}"
    assert known_programs("lab02", tmp_path).keys() == {PUBLISHED}, "an installed package has no tests"


@in_turn(
    "source",
    [
        "def f(:",
        "x = " + "(" * 20_000 + ")" * 20_000,
        "x = " + "-" * 20_000 + "1",
        "def f(a):\n    if a: pass\n" + "".join(f"    elif a == {number}: return {number}\n" for number in range(2_000)),
        "def f(a):\n    return " + " + ".join(["a"] * 9_000),
        "f = g\ng = f",
        "def f(a):\n    \0return 1",
        "f = '\ud800'",
        "x = 1\n" * 60_000,
        "%matplotlib inline\n!ls\nawait f()\nreturn 1",
        "check('lab02.t5')\ncheck(*[], **{})",
    ],
)
def test_no_cell_stops_the_search(source: str) -> None:
    assert fingerprint_of(source, "f") == ""
    assert sentences({"ana.ipynb": [source, OWN.format(name="own", less=0)], "ben.ipynb": [f"{source}\ncheck('lab02.t5', f)"]}) == {}
