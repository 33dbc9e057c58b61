"""Functions of students that a passed check saves as files, and that later labs load, with all that they use and with their own errors."""

import importlib
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal

import hybridlab
from hybridlab import check, part
from hybridlab.course.parts import ELSEWHERE, FOLDER, folder, save, source_of

ONE_F_ONE_B = """
def one_f_one_b(devices, microbatches):
    return [line_of(device, devices, microbatches) for device in range(devices)]
"""
HELPERS = """
import numpy as np
from itertools import chain as joined
FORWARD, BACKWARD = "F", "B"

def line_of(device, devices, microbatches):
    ahead = int(np.minimum(devices - 1 - device, microbatches))
    warmup = [[f"{device}{FORWARD}{mb}"] for mb in range(ahead)]
    pairs = [[f"{device}{FORWARD}{mb + ahead}"] * (mb + ahead < microbatches) + [f"{device}{BACKWARD}{mb}"] for mb in range(microbatches)]
    return " ".join(op for op in joined(*warmup, *pairs))
"""


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ELSEWHERE, str(tmp_path / "mine"))
    return tmp_path / "mine"


def cell(source: str, notebook: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a cell as a notebook does: with a file name of its own, whose lines can be found. Return the names of the notebook."""
    names: dict[str, Any] = {"__name__": "__main__"} if notebook is None else notebook
    name = f"cell_{len(linecache.cache)}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), names)  # noqa: S102 - source of this test
    return names


def in_notebook(*cells: str, name: str = "one_f_one_b") -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    for source in cells:
        cell(source, names)
    function: Callable[..., Any] = names[name]
    return function


def test_a_function_that_passes_is_saved_with_all_that_it_uses(parts: Path) -> None:
    verdict = check("lab02.t5", in_notebook(HELPERS, ONE_F_ONE_B))
    assert verdict.passed
    assert verdict.messages[-1] == f"saved as {parts.as_posix()}/one_f_one_b.py, where `part` finds it"
    mine = part("one_f_one_b", otherwise=max)
    assert (mine.own, mine(2, 3)) == (True, ["0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"])
    assert repr(mine) == f"one_f_one_b: your own, from {parts.as_posix()}/one_f_one_b.py"
    written = (parts / "one_f_one_b.py").read_text()
    assert [written.count(text) for text in ("import numpy as np", "from itertools import chain as joined", "FORWARD = 'F'")] == [1, 1, 1]
    assert check("lab02.t5", mine.function).passed, "the file can be handed in, too"


def test_without_a_part_the_library_is_used_and_the_lab_says_so() -> None:
    other = part("one_f_one_b", otherwise=lambda devices, microbatches: "the library's")
    assert (other.own, other(2, 3)) == (False, "the library's")
    assert repr(other) == "one_f_one_b: the library's, because you have not built yours yet"


@in_turn(
    "name, otherwise, code",
    [
        (3, max, "not-text"), (None, max, "not-text"), ("", max, "unknown-name"), ("../secret", max, "unknown-name"),
        ("a b", max, "unknown-name"), ("double", 3, "wrong-type"), ("double", "max", "wrong-type"),
    ],
)  # fmt: skip
def test_a_part_without_a_name_or_a_function_is_refused(name: Any, otherwise: Any, code: str) -> None:
    with refusal(code):
        part(name, otherwise=otherwise)


def test_a_part_without_a_function_says_so_when_it_is_called() -> None:
    with refusal("no-function", "double"):
        part("double", otherwise=None)(2)


def test_a_wrong_function_a_solution_and_a_graded_one_are_not_saved(parts: Path) -> None:
    right = in_notebook(HELPERS, ONE_F_ONE_B)
    assert not check("lab02.t5", in_notebook("def one_f_one_b(devices, microbatches): return []")).passed
    assert check("lab02.t5", in_notebook(HELPERS, ONE_F_ONE_B.replace("one_f_one_b", "solution"), name="solution")).passed
    assert check("lab02.t5", right, seed=1).passed
    assert not parts.exists()


LINES = "[line_of(device, devices, microbatches) for device in range(devices)]"
BY_OTHER_NAMES = [
    ONE_F_ONE_B.replace("one_f_one_b", "mine"),
    f"mine, other = (lambda a, b: [b]), (\n    lambda devices, microbatches:\n        {LINES})\nmine = other",
    f"mine, other = lambda devices, microbatches: {LINES}, lambda devices, microbatches: []",
    "import functools\n@functools.cache\n" + ONE_F_ONE_B.strip().replace("one_f_one_b", "mine"),
    f"class Mine:\n    base = 0\n    def __init__(self): self.calls = self.base\n    def __call__(self, devices, microbatches):\n"
    f"        self.calls += 1\n        return {LINES}\nmine = Mine()",
]


@in_turn("source", BY_OTHER_NAMES)
def test_a_right_answer_is_saved_under_the_name_of_the_task(source: str) -> None:
    verdict = check("lab02.t5", in_notebook(HELPERS, source, name="mine"))
    assert verdict.passed
    assert verdict.messages[-1].startswith("saved as ")
    assert part("one_f_one_b", otherwise=max)(2, 2) == ["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]
    (folder() / "one_f_one_b.py").unlink()


def test_two_functions_with_the_name_of_the_task_are_not_saved(parts: Path) -> None:
    verdict = check("lab02.t5", in_notebook(HELPERS, ONE_F_ONE_B, "def mine(K, M): return one_f_one_b(K, M)", name="mine"))
    assert verdict.messages[-1].startswith("not saved for later labs: it uses another function one_f_one_b")
    assert not (parts / "one_f_one_b.py").exists()


def test_a_function_inside_another_is_not_saved() -> None:
    function = in_notebook(
        "def outer():\n    factor = 2\n    def double(x): return factor * x\n    return double\ndouble = outer()", name="double"
    )
    assert "it uses factor of the function around it" in save("double", function)


def test_a_better_function_takes_the_place_of_the_first(parts: Path) -> None:
    save("double", in_notebook("def double(x): return x + x", name="double"))
    save("double", in_notebook("def double(x): return 2 * x", name="double"))
    assert "2 * x" in (parts / "double.py").read_text()
    assert [path.name for path in parts.iterdir() if path.name != "__pycache__"] == ["double.py"]


@in_turn(
    "cells, words",
    [
        (["values = object()", "def double(x): return values"], "uses values"),
        (["import numpy\nvalues = numpy.zeros(2)", "def double(x): return values"], "uses values"),
    ],
)
def test_what_cannot_be_saved_is_named_and_the_check_still_passes(cells: list[str], words: str) -> None:
    sentence = save("double", in_notebook(*cells, name="double"))
    assert sentence.startswith("not saved for later labs: ")
    assert words in sentence


def test_a_function_without_source_is_not_saved() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("def double(x): return 2 * x", names)  # noqa: S102 - source of this test
    assert "source of double is not known" in save("double", names["double"])


def test_a_folder_that_cannot_be_written_is_named(parts: Path) -> None:
    parts.write_text("a file in the place of the folder")
    assert save("double", in_notebook("def double(x): return 2 * x", name="double")).startswith("not saved for later labs: ")


@in_turn(
    "source, used",
    [
        ("def f(x):\n    return math.sqrt(x)", ["import math"]),
        ("def f(x):\n    return m.sqrt(x)", ["import math as m"]),
        ("def f(x: m.Any = None) -> 'y':\n    return x", ["import math as m"]),
        ("def f(x):\n    return f(x - 1) if x else g(x)", ["def g(x)", "BASE = 3"]),
        ("def f(x):\n    def inner():\n        return BASE\n    return inner()", ["BASE = 3"]),
        ("def f(m):\n    BASE = m\n    return BASE", []),
        ("def f(x):\n    return C().value", ["class C"]),
        ("def f(x):\n    return Op.parse(x)", ["from hybridlab import Op"]),
        ("def f(x):\n    return D().value()", ["class D", "BASE = 3"]),
        ("k, h = lambda x: BASE, g\ndef f(x):\n    return k(x) + h(x)", ["k = (lambda x: ", "h = g", "def g(x)", "BASE = 3"]),
    ],
)
def test_the_names_that_a_function_uses_come_along(source: str, used: list[str]) -> None:
    before = "import math, math as m\nfrom hybridlab import Op\nm.Any = int\nBASE = 3\ndef g(x): return BASE\nclass C:\n    value = 1\n"
    before += "class D:\n    def value(self): return BASE\n"
    function = in_notebook(before, source, name="f")
    try:
        text = source_of(function, "f")
    except hybridlab.HybridLabError:
        assert "class C" in used, "older Pythons do not find the source of a class without methods in a notebook"
        return
    assert all(line in text for line in used)
    assert text.count("import") + text.count("BASE =") - ("BASE = m" in text) == sum("import" in line or "BASE" in line for line in used)


@in_turn(
    "text, words",
    [
        ("def double(x): return 2 *", ["double.py", "SyntaxError"]),
        ("import nowhere_at_all", ["line 1 of", "ModuleNotFoundError"]),
        ("\n\ndouble = 1 / 0", ["line 3 of", "ZeroDivisionError"]),
        ("double = 3", ["does not define the function double"]),
        ("", ["does not define the function double"]),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(text: str, words: list[str]) -> None:
    folder().mkdir(exist_ok=True)
    (folder() / "double.py").write_text(text)
    with refusal("unreadable-part", *words):
        part("double", otherwise=max)


def test_the_folder_stands_beside_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ELSEWHERE)
    assert folder() == Path(FOLDER) == Path("my_parts")


def test_a_part_may_use_a_part() -> None:
    save("double", in_notebook("def double(x): return 2 * x", name="double"))
    names = {"__name__": "__main__", "double": part("double", otherwise=max)}
    cell("def fourfold(x): return double(double(x))", names)
    assert save("fourfold", names["fourfold"]).startswith("saved as ")
    assert part("fourfold", otherwise=max)(3) == 12


def test_what_stands_in_for_a_part_is_saved_with_the_part_that_uses_it() -> None:
    names: dict[str, Any] = {"__name__": "__main__", "part": part}
    cell("def thrice(x): return 3 * x", names)
    names["triple"] = part("triple", otherwise=names["thrice"])
    cell("def ninefold(x): return triple(triple(x))", names)
    assert save("ninefold", names["ninefold"]).startswith("saved as ")
    assert part("ninefold", otherwise=max)(2) == 18
    save("triple", in_notebook("def triple(x): return 4 * x", name="triple"))
    assert part("ninefold", otherwise=max)(2) == 32


def test_part_is_public_and_loaded_on_first_use() -> None:
    assert hybridlab.part is importlib.import_module("hybridlab.course.parts").part
