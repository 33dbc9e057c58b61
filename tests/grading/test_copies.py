"""Test the copies of the labs for students, and the file that a student hands in."""

import ast
import builtins
import contextlib
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from cases import in_turn, refusal
from folds import OPTIONAL
from notebooks import LABS, cells_of, with_folds

from hybridlab.course.grading import copies
from hybridlab.course.grading.copies import pack, reveal, start, student_copy, usable_name
from hybridlab.course.grading.labs import lab_name, lab_notebooks, reference
from hybridlab.course.grading.notebook import MOST_BYTES, read_submission
from hybridlab.course.grading.reveal import cells_left_out, held_back, revealed
from hybridlab.course.grading.specs import HAND_IN, spec_of
from hybridlab.course.tasks import TASKS, Student

NAMES = sorted(path.name[:5] for path in LABS.glob("lab*.ipynb"))
EVERY = [(lab, student) for lab in NAMES for student in ("", "ana")]
copy_of = cache(student_copy)  # for tests that only read it
Cell = dict[str, Any]


def own(cell: Cell) -> dict[str, str]:
    return dict(cell["metadata"].get("hybridlab", {}))


def code_of(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell["cell_type"] == "code"]


# The labs


def test_a_lab_is_understood_in_several_ways() -> None:
    assert NAMES
    assert list(lab_notebooks()) == NAMES
    for asked in ("lab02", "lab2", "2", "02", "Lab 2", " lab-02 ", "lab02_one_f_one_b", "LAB02_one_f_one_b.ipynb"):
        assert lab_name(asked) == "lab02"
        assert reference(asked) == LABS / "lab02_one_f_one_b.ipynb"


@in_turn("asked", ["lab99", "0", "", "lab02_wrong", "../lab02", "lab002x", None, 2, "99999999999"])
def test_an_unknown_lab_is_refused_with_those_that_exist(asked: Any) -> None:
    with refusal("unknown-name", "lab", "lab01", "lab19"):
        lab_name(asked)


def test_a_wheel_without_labs_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("hybridlab.course.grading.labs.PLACES", (tmp_path / "labs",))
    with refusal("not-found", "install"):
        lab_name("lab02")


# What a copy leaves out


@in_turn("lab, student", EVERY)
def test_a_copy_is_a_valid_notebook_without_outputs(lab: str, student: str) -> None:
    copy = copy_of(lab, student)
    nbformat.validate(nbformat.from_dict(copy))
    assert (copy["nbformat"], copy["nbformat_minor"]) == (4, 5)
    assert copy["metadata"]["hybridlab"] == {"lab": lab, "course": "hybridlab", "student": student}
    for cell in code_of(copy["cells"]):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
    assert len({cell["id"] for cell in copy["cells"]}) == len(copy["cells"])


@in_turn("lab, student", EVERY)
def test_no_line_of_a_solution_is_in_a_copy(lab: str, student: str) -> None:
    cells = cells_of(reference(lab))
    shown = "\n".join(cell["source"] for cell in copy_of(lab, student)["cells"])
    elsewhere = "\n".join(cell.source for cell in cells if not {"solution", "reveals"} & set(cell.tags))
    lines = {line.strip() for cell in cells if "solution" in cell.tags for line in cell.source.splitlines()}
    secret = {line for line in lines if len(line) > 12 and line not in elsewhere}
    assert secret
    assert not {line for line in secret if line in shown}


@in_turn("lab", NAMES)
def test_a_copy_has_the_other_cells_in_their_order_and_with_their_ids(lab: str) -> None:
    stored = json.loads(reference(lab).read_text(encoding="utf-8"))["cells"]
    hidden = {cell["id"] for cell in stored if {"solution", "reveals"} & set(cell["metadata"].get("tags", ()))}
    titles = {cell["id"]: "".join(cell["source"]).strip() for cell in stored if cell["cell_type"] == "markdown"}
    ids = [cell["id"] for cell in copy_of(lab)["cells"]]
    gone = [cell["id"] for cell in stored if cell["id"] not in ids]
    own = [name for name in ids if re.match(r"(more|bonus)-lab\d\d-t\d", name)]
    assert [name for name in ids if name not in own] == ["how-to-work", *(cell["id"] for cell in stored if cell["id"] in ids)]
    assert hidden <= set(gone)
    headings = [titles[name].partition("\n")[0] for name in gone if re.match("#+ ", titles.get(name, ""))]
    others = [heading for heading in headings if not re.match(r"#+ (Solution|Answer|What this shows)", heading)]
    of_lab11 = ["#### Why the plan with the most work can be the fastest", "### Which schedules save memory"]
    assert others == {"lab09": ["#### What decides"], "lab11": of_lab11}.get(lab, [])
    assert not any(re.match(r"#+ Solution", titles.get(name, "")) for name in ids)


def test_what_gives_an_answer_away_is_left_out_and_other_answers_stay() -> None:
    texts = {lab: "\n".join(cell["source"] for cell in copy_of(lab)["cells"]) for lab in NAMES}
    assert "Answer as a formula" not in texts["lab02"]
    assert "one_f_one_b_makespan(**sizes)" not in texts["lab02"]
    assert "Answer to the two questions" in texts["lab02"]
    assert "four that fit and two that do not" not in texts["lab11"]
    assert '("looped-bfs", 3, 64' not in texts["lab11"]
    assert "4 pays some of each" not in texts["lab09"]
    assert "weights -1" not in texts["lab07"]  # text and a cell without a tag behind a solution, in its section
    assert "passes the two checks" not in texts["lab04"]
    for lab in NAMES:
        assert re.search(r"^## .*\bbets?\b", texts[lab], flags=re.MULTILINE), "the look back at the bets stays"
        details = sum(cell.source.count("<details>") for cell in cells_of(reference(lab)))
        assert texts[lab].count("<details>") == details


def sections_left_out(*cells: tuple[str, str, list[str]]) -> str:
    """Return the sources of the cells that a student gets, joined; a cell is its kind, its source and its tags."""
    made = [{"cell_type": kind, "source": source, "metadata": {"tags": tags}} for kind, source, tags in cells]
    gone = cells_left_out(made)
    return " ".join(cell["source"] for place, cell in enumerate(made) if place not in gone)


def test_a_section_ends_at_the_next_heading_of_its_level() -> None:
    shown = sections_left_out(
        ("markdown", "## 1", []), ("markdown", "#### Solution", []), ("code", "secret", ["solution"]), ("markdown", "##### deeper", []),
        ("markdown", "```\n# no heading\n```", []), ("code", "more", []), ("markdown", "#### Next", []), ("code", "given", []),
        ("markdown", "### Answer", []), ("code", "kept", []), ("markdown", "### Answer", []), ("code", "told", ["reveals"]),
        ("code", "in it", []), ("markdown", "## 2", []), ("code", "late", ["solution"]), ("code", "end", []),
    )  # fmt: skip
    assert shown == "## 1 #### Next given ### Answer kept ## 2 end"


def test_the_beginning_of_a_section_goes_when_nothing_else_of_it_is_left() -> None:
    shown = sections_left_out(
        ("markdown", "## 1", []), ("markdown", "### Why", []), ("markdown", "#### Solution", []), ("code", "secret", ["solution"]),
        ("markdown", "## 2\n\nText.", []), ("code", "told", ["reveals"]), ("markdown", "## 3", []), ("markdown", "## 4", []),
        ("markdown", "Of 4.\n\n### Why", []), ("code", "told", ["reveals"]),
    )  # fmt: skip
    assert shown == "## 3 ## 4 Of 4.\n\n### Why"


# What comes back


TAKE_LONG = ("lab07.t4", "lab16.t4")  # they train, and start processes
HELD_BACK = ["lab02.t2", "lab04.t6", "lab07.t4", "lab09.t4", "lab11.t3", "lab11.t4", "lab16.t4", "lab17.t2", "lab18.t2"]


def test_every_cell_that_is_left_out_comes_back_with_its_task_or_is_a_solution() -> None:
    assert [key for lab in NAMES for key in held_back(json.loads(reference(lab).read_bytes())["cells"])] == HELD_BACK
    for lab in NAMES:
        stored = json.loads(reference(lab).read_bytes())["cells"]
        kept = [cell["id"] for cell in copy_of(lab)["cells"]]
        back = [cell["id"] for key in HELD_BACK if key[:5] == lab for cell in revealed(key).cells]
        for cell in stored:
            solution = "solution" in cell["metadata"].get("tags", ()) or re.fullmatch(r"#+ Solution", "".join(cell["source"]).strip())
            assert [*kept, *back].count(cell["id"]) == (not solution), cell["source"]
        assert [name for name in kept if name.startswith("more-")] == [
            f"more-{key.replace('.', '-')}" for key in HELD_BACK if key[:5] == lab
        ]


def test_a_copy_says_what_comes_back_and_does_not_say_the_answer() -> None:
    """Lab 11 asked which schedules save memory, and never answered."""
    cells = student_copy("lab11", "ana")["cells"]
    place = next(place for place, cell in enumerate(cells) if cell["id"] == "more-lab11-t4")
    assert cells[place]["source"].endswith("when `lab11.t4` has passed, `hybridlab reveal lab11.t4` in a terminal shows it.")
    assert cells[place + 1]["source"].startswith("## 6.")
    assert "save memory" not in "".join(cell["source"] for cell in cells)
    assert "the most work can be" not in "".join(cell["source"] for cell in cells)
    text = revealed("lab11.t4").text
    assert text.startswith("### Which schedules save memory\n")
    assert "v-min                  4.0      1.30\n" in text, "printed outputs are there, and the code is not"
    assert "recomputed_peak(schedule" not in text


@pytest.mark.parametrize(
    "key", [key if key == "lab02.t2" else pytest.param(key, marks=pytest.mark.slow) for key in HELD_BACK if key not in TAKE_LONG]
)
def test_the_revealed_cells_can_be_run(key: str, tmp_path: Path) -> None:
    folder = tmp_path / "revealed"
    text, path = reveal(key, folder)
    assert path == folder / f"{key[:5]}_{key[6:]}_revealed.ipynb"
    notebook = json.loads(path.read_bytes())
    nbformat.validate(nbformat.from_dict(notebook))
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for cell in code_of(notebook["cells"]):
            exec(cell["source"], names)  # noqa: S102 - a cell of our own lab
    stored = [output for cell in notebook["cells"] for output in cell.get("outputs", ()) if output["output_type"] == "stream"]
    assert all("".join(output["text"]) in printed.getvalue() and "".join(output["text"]).rstrip() in text for output in stored)
    path.write_text("my notes", encoding="utf-8")
    assert reveal(key, folder) == (text, path)
    assert path.read_text(encoding="utf-8") == "my notes"


def test_what_cannot_be_revealed_is_named(tmp_path: Path) -> None:
    with refusal("nothing-to-reveal", "lab11.t1", "lab11.t3, lab11.t4"):
        reveal("lab11.t1", tmp_path)
    with refusal("nothing-to-reveal", "lab10.t1"):
        reveal("lab10.t1", tmp_path)
    with refusal("unknown-name"):
        reveal("lab99.t1", tmp_path)
    assert not list(tmp_path.iterdir())


# Bonus points


@in_turn("lab", NAMES)
def test_the_tasks_of_optional_sections_are_for_bonus_points(lab: str) -> None:
    spec = spec_of(reference(lab))
    folded = {key for cell, folds in with_folds(cells_of(reference(lab))) if "task" in cell.tags and any(map(OPTIONAL.match, folds))
              for key in HAND_IN.findall(cell.source)}  # fmt: skip
    assert spec.bonus == folded
    assert spec.out_of == sum(task.points for key, task in TASKS.items() if key.startswith(lab) and key not in folded) > 0
    cells = copy_of(lab, "ana")["cells"]
    above = {own(cell)["task"]: " ".join(each["source"] for each in cells[place - 2 : place]) for place, cell in enumerate(cells)
             if "task" in own(cell)}  # fmt: skip
    assert {key for key, text in above.items() if "**Bonus:**" in text} == folded
    assert all(f"{TASKS[key].points} point" in above[key] and f"on top of the {spec.out_of} points" in above[key] for key in folded)


@in_turn("lab, student", EVERY)
def test_no_link_of_a_copy_leads_out_of_the_folder(lab: str, student: str) -> None:
    for cell in copy_of(lab, student)["cells"]:
        if cell["cell_type"] == "markdown":
            targets = re.findall(r"\]\(([^)\s]+)\)", cell["source"])
            assert all(target.startswith("https://") for target in targets), targets
            assert ".ipynb)" not in cell["source"]


def test_links_become_their_text() -> None:
    linked = "[Lab\n3](lab03_x.ipynb) [table](../book/a.md#b-c) [doi](https://doi.org/1.md) `a[0](1)` ![p](p.md) [here](#x.md)"
    left = copies.TO_ANOTHER_PAGE.sub(r"\1", linked)
    assert left == "Lab\n3 table [doi](https://doi.org/1.md) `a[0](1)` ![p](p.md) [here](#x.md)"


# The answers


def is_empty(tree: ast.Module) -> bool:
    """Return whether an answer cell has nothing but dots, empty text, its call of check, and functions that it does not hand in."""
    *others, hand_in = tree.body
    handed_in = {node.id for node in ast.walk(hand_in) if isinstance(node, ast.Name)}
    own = [part for part in others if not isinstance(part, ast.FunctionDef) or part.name in handed_in]
    for node in (node for part in own for node in ast.walk(part)):
        if isinstance(node, ast.FunctionDef) and not (len(node.body) == 1 and ast.unparse(node.body[0]) == "..."):
            return False
        if isinstance(node, ast.Assign):
            values = [each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
            keys = [key.value for each in ast.walk(node.value) if isinstance(each, ast.Dict) for key in each.keys]  # type: ignore[union-attr]
            if any(value is not ... and value not in keys and re.sub(r"device \d: \.\.\.|\s", "", str(value)) for value in values):
                return False
    return True


@in_turn("lab, student", EVERY)
def test_every_task_has_one_empty_answer_cell_that_is_as_in_the_lab(lab: str, student: str) -> None:
    given = {cell.source for cell in cells_of(reference(lab)) if "task" in cell.tags}
    cells = code_of(copy_of(lab, student)["cells"])
    answers = {own(cell)["task"]: cell for cell in cells if own(cell)["role"] == "answer"}
    assert {cell["source"] for cell in answers.values()} == given
    assert sorted(answers) == sorted(key for key in TASKS if key.startswith(f"{lab}."))
    assert {own(cell)["role"] for cell in cells} == {"answer", "given"}
    for cell in cells:
        assert cell["metadata"].get("deletable", True) == (own(cell)["role"] == "given")
        assert ("task" in own(cell)) == (own(cell)["role"] == "answer")
    for key, cell in answers.items():
        assert is_empty(ast.parse(cell["source"])), cell["source"]
        feedback: list[Any] = []
        exec(cell["source"], {"check": lambda key, answer, kept=feedback: kept.append((key, TASKS[key].instance(None), answer))})  # noqa: S102
        assert [asked for asked, _, _ in feedback] == [key]


@in_turn(
    "source, empty",
    [
        ("a, b = ..., ...\ncheck('lab01.t1', (a, b))", True),
        ("x = [..., 3]\ncheck('lab01.t1', x)", False),
        ("x = {'a': '', 'b': ''}\ncheck('lab01.t1', x)", True),
        ("x = {'a': 'BCD'}\ncheck('lab01.t1', x)", False),
        ("def f(a):\n    return a\ncheck('lab01.t6', f)", False),
        ("def given(a):\n    return a\ndef f(a):\n    ...\ncheck('lab01.t6', f)", True),
        ("x = '0F0 0B0'\ncheck('lab01.t1', x)", False),
    ],
)
def test_an_answer_in_a_lab_would_be_found(source: str, empty: bool) -> None:
    assert is_empty(ast.parse(source)) is empty


def names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell defines, and those that it only uses."""
    nodes = list(ast.walk(ast.parse(source)))
    defined = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    defined |= {each.asname or each.name.split(".")[0] for node in imports for each in node.names}
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return defined, used - defined


def undefined(sources: Iterator[str] | list[str]) -> list[str]:
    """Return the names that a cell uses and no cell above it defines."""
    known, missing = {*dir(builtins)}, []
    for source in sources:
        defined, used = names(source)
        missing += sorted(used - known)
        known |= defined
    return missing


@in_turn("lab, student", EVERY)
def test_no_cell_needs_a_cell_that_is_left_out(lab: str, student: str) -> None:
    before = undefined([cell.source for cell in cells_of(reference(lab)) if cell.kind == "code"])  # functions use names of later cells
    assert set(undefined([cell["source"] for cell in code_of(copy_of(lab, student)["cells"])])) <= set(before)


def test_a_name_that_nobody_defines_is_found() -> None:
    assert undefined(["a = 1", "def f(x):\n    return x + a + b"]) == ["b"]


# A student's own numbers


def test_a_copy_with_a_name_asks_for_the_students_own_numbers() -> None:
    cells = student_copy("lab02", "ana", course="nn-26")["cells"]
    sources = [cell["source"] for cell in cells]
    first = next(place for place, cell in enumerate(cells) if cell["cell_type"] == "code")
    who = "from hybridlab import Student\n\nmine = Student('ana', course='nn-26')\ncheck = mine.check"
    assert sources[first].startswith("import")
    assert sources[first + 1] == who
    asked = [place for place, source in enumerate(sources) if source.startswith("**Yours, ana:**")]
    assert [own(cells[place + 1])["task"] for place in asked] == [f"lab02.t{number}" for number in (2, 3, 5, 6)]
    for place in asked:
        assert (cells[place]["cell_type"], own(cells[place])) == ("markdown", {})
        key = own(cells[place + 1])["task"]
        words = Student("ana", course="nn-26")(key).prompt
        assert words.replace("`", "") in " ".join(sources[place].replace("`", "").split())
    others = [cell for place, cell in enumerate(cells) if place not in {0, first + 1, *asked}]
    assert others == student_copy("lab02")["cells"][1:]


def test_the_line_above_an_answer_is_the_students_own_task() -> None:
    """The numbers of lab02.t2 and the change of lab02.t5 for ana, as `Student("ana")` has them."""
    texts = {cell["id"]: cell["source"] for cell in student_copy("lab02", "ana")["cells"]}
    assert texts["mine-lab02-t2"] == f"**Yours, ana:** {Student('ana')('lab02.t2').prompt}."
    assert texts["mine-lab02-t2"] != f"**Yours, ana:** {TASKS['lab02.t2'].prompt}."
    build = TASKS["lab02.t5"].personal(Student("ana").seed("lab02.t5")).data
    assert texts["mine-lab02-t5"].startswith("**Yours, ana:** write a function `one_f_one_b(devices, microbatches)` that returns")
    assert f"\n\nIn your task, {build.twist.sentence}. {copies.WITHOUT_IT} With it, for example:\n\n" in texts["mine-lab02-t5"]
    assert texts["mine-lab02-t5"].replace("`", "").endswith(f"\n- {build.calls[-1]}")


@in_turn("lab", NAMES)
def test_a_copy_says_first_which_numbers_count(lab: str) -> None:
    first, *others = copy_of(lab, "ana")["cells"]
    assert first["source"].startswith(f"**Your copy of lab {int(lab[3:])}, ana.**")
    assert first["source"].endswith("begins with **Yours, ana**,\nthis line counts.")
    assert any(cell["source"].startswith("**Yours, ana:**") for cell in others), "what the first cell speaks of is there"
    assert "Yours" not in "".join(cell["source"] for cell in copy_of(lab)["cells"])


@in_turn("student", [f"someone-{number}" for number in range(2)])
def test_the_students_own_task_is_plain_text_for_markdown(student: str) -> None:
    """A sign that Markdown obeys would be lost: only code has such signs, between backticks, and names keep their underscores."""
    for lab in NAMES:
        for cell in student_copy(lab, student)["cells"]:
            if cell["source"].startswith("**Yours"):
                text = re.sub(r"`[^`]*`", "", cell["source"].removeprefix(f"**Yours, {student}:**"))
                assert not re.search(r"[*<>$|~\\]|(?<!\w)_|_(?!\w)|\]\(", text), text
                assert ".." not in text.replace("...", "")


@in_turn("name, shown", [("a*b*", r"a\*b\*"), ("<b>", r"\<b\>"), ("Bo-Erik", "Bo-Erik"), ("$x_1$", r"\$x\_1\$"), ("[a](b)", r"\[a\](b)")])
def test_a_name_stays_text_in_markdown(name: str, shown: str) -> None:
    first = student_copy("lab02", name)["cells"][0]["source"]
    assert first.startswith(f"**Your copy of lab 2, {shown}.**")


def test_every_lab_begins_with_its_imports() -> None:
    for lab in NAMES:
        first, second = code_of(copy_of(lab, "ana")["cells"])[:2]
        assert all(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.parse(first["source"]).body), lab
        assert second["id"] == "mine"


def test_tasks_with_drawn_numbers_and_builds_differ_by_student() -> None:
    differ = {key for key, task in TASKS.items() if copies._differs_by_student(task)}
    assert {key for key, task in TASKS.items() if task.kind == "build"} <= differ
    assert not differ & {key for key, task in TASKS.items() if task.kind == "written"}
    assert {"lab01.t1", "lab02.t2", "lab12.t4", "lab05.t7"} <= differ
    assert not {"lab03.t5", "lab11.t3"} & differ


@in_turn("name", ["a", "Zoë O'Neill", "李明", "x" * 80, "o'b', course=1) #", "{0}%s", "=1+1", "12345", "a@b.edu", "'''", "ana);import os"])
def test_a_name_stays_text_in_the_copy(name: str) -> None:
    source = next(cell["source"] for cell in student_copy("lab02", name, name)["cells"] if cell["id"] == "mine")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert len(calls) == 1
    assert [ast.literal_eval(each) for each in (calls[0].args[0], calls[0].keywords[0].value)] == [name, name]
    assert len(ast.parse(source).body) == 3


UNPRINTABLE = ["a\nb", "a\rb", "a\u2028b", "a\u202eb", "\ud800", "\x00", "\t"]
BAD_NAMES = [*UNPRINTABLE, "x" * 81, " ana", "ana ", "a/b", "a\\b", 'a"b', ".", "..", ".ana", 7, None]


@in_turn("name", BAD_NAMES)
def test_a_name_that_cannot_be_used_is_refused(name: Any) -> None:
    with refusal("bad-name", "name of a student", "80"):
        student_copy("lab02", name)
    with refusal("bad-name", "name of a course"):
        student_copy("lab02", "ana", name)
    with refusal("bad-name"):
        usable_name("", "course")


# Start


def test_start_writes_a_copy_and_never_overwrites(tmp_path: Path) -> None:
    path = start("2", tmp_path / "new" / "folder", "ana")
    assert path == tmp_path / "new/folder/lab02.ipynb"
    assert json.loads(path.read_bytes()) == student_copy("lab02", "ana")
    assert b"\r" not in path.read_bytes()
    about = path.with_name("AGENTS.md")
    assert "Explain, ask back, and do not solve." in about.read_text(encoding="utf-8")
    path.write_text("my work", encoding="utf-8")
    about.write_text("my teacher's own rules", encoding="utf-8")
    with refusal("exists-already", "lab02.ipynb", "--to"):
        start("lab02", path.parent)
    assert path.read_text(encoding="utf-8") == "my work"
    read = read_submission(start("lab03", path.parent, "ana", "nn"))
    assert about.read_text(encoding="utf-8") == "my teacher's own rules"
    assert (read.student, read.course, read.lab) == ("ana", "nn", "lab03")
    assert [cell.task for cell in read.cells if cell.task] == [f"lab03.t{number}" for number in range(1, 8)]


def test_start_refuses_before_it_writes(tmp_path: Path) -> None:
    for lab, student in (("lab99", "ana"), ("lab02", "a/b")):
        with refusal("unknown-name" if lab == "lab99" else "bad-name"):
            start(lab, tmp_path / "new", student)
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with refusal("cannot-write"):
            start("lab02", folder)


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(notebook: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies, "_file_of", no_room)
    with refusal("cannot-write", "lab02.ipynb", "No space left"):
        start("lab02", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_start_does_not_write_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "lab02.ipynb").symlink_to(tmp_path / "elsewhere")
    with refusal("exists-already"):
        start("lab02", tmp_path)
    assert not (tmp_path / "elsewhere").exists()


# Pack


def worked_on(folder: Path, student: str = "ana") -> Path:
    """Return a copy with an answer, an output, a count, an attachment and the state of widgets."""
    path = start("lab02", folder, student)
    notebook = json.loads(path.read_bytes())
    answer = next(cell for cell in notebook["cells"] if cell["metadata"].get("hybridlab", {}).get("task") == "lab02.t2")
    answer["source"] = ["my_makespan = 120\n", 'check("lab02.t2", my_makespan)']
    answer["execution_count"] = 7
    answer["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * (MOST_BYTES + 1)}]
    notebook["cells"][0]["attachments"] = {"a.png": {"image/png": "QUJD"}}
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    notebook["metadata"]["language_info"]["version"] = "3.99"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_pack_keeps_the_answers_and_nothing_else(tmp_path: Path) -> None:
    path = worked_on(tmp_path)
    packed = pack(path)
    assert packed == tmp_path / "lab02_ana.ipynb"
    notebook = json.loads(packed.read_bytes())
    nbformat.validate(nbformat.from_dict(notebook))
    assert packed.stat().st_size < 100_000
    assert not any(word in packed.read_text(encoding="utf-8") for word in ("xxx", "QUJD", "widget-state", "3.99", "source_hidden"))
    assert all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in code_of(notebook["cells"]))
    read, before = read_submission(packed), student_copy("lab02", "ana")
    assert (read.student, read.course, read.lab) == ("ana", "hybridlab", "lab02")
    (answer,) = (cell for cell in read.cells if cell.task == "lab02.t2")
    assert answer.source == 'my_makespan = 120\ncheck("lab02.t2", my_makespan)'
    assert [cell["id"] for cell in notebook["cells"]] == [cell["id"] for cell in before["cells"]]
    assert [own(cell) for cell in notebook["cells"]] == [own(cell) for cell in before["cells"]]


def test_pack_replaces_what_it_has_packed_and_nothing_else(tmp_path: Path) -> None:
    path = worked_on(tmp_path)
    packed = pack(path)
    content = packed.read_bytes()
    assert pack(path) == packed
    assert pack(packed) == packed
    assert packed.read_bytes() == content
    path.write_bytes(path.read_bytes().replace(b"= 120", b"= 121"))
    assert pack(path).read_bytes() == content.replace(b"= 120", b"= 121")
    for other in (
        packed.read_bytes().replace(b'"execution_count": null', b'"execution_count": 3'),  # it has been worked on
        packed.read_bytes().replace(b'"ana"', b'"ben"'),
        path.read_bytes(),
        b"no notebook",
    ):
        assert other != packed.read_bytes()
        packed.write_bytes(other)
        with refusal("exists-already", "lab02_ana.ipynb"):
            pack(path)
        assert packed.read_bytes() == other
    assert pack(path, tmp_path / "new").read_bytes() == content.replace(b"= 120", b"= 121")


@in_turn(
    "student, file",
    [
        ("", "lab02_packed.ipynb"),
        ("李明", "lab02_李明.ipynb"),
        ("a:b?", "lab02_a-b-.ipynb"),
        ("con.", "lab02_con.ipynb"),
        ("\U00020000" * 80, f"lab02_{chr(0x20000) * 50}.ipynb"),
    ],
)
def test_the_packed_file_has_the_students_name(student: str, file: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert pack(start("lab02", tmp_path_factory.mktemp("work"), student)).name == file


def test_metadata_cannot_lead_pack_out_of_the_folder(tmp_path: Path) -> None:
    notebook = student_copy("lab02")
    notebook["metadata"]["hybridlab"] = {"lab": "../../lab02", "student": "../../../etc/x", "course": 3}
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "mine.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert pack(path).parent == tmp_path / "in"
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["in", "mine.ipynb", "mine_-..-..-etc-x.ipynb"]


def test_pack_mends_ids_and_reads_old_notebooks(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "source": "1", "outputs": [], "execution_count": None}
    cells = [{**cell, "id": "a"}, {**cell, "id": "a"}, cell, {**cell, "id": "cell-1"}, {**cell, "id": "no id!"}, {"cell_type": 3}]
    path = tmp_path / "lab03.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 2, "metadata": {}, "cells": cells}), encoding="utf-8")
    packed = json.loads(pack(path).read_bytes())
    nbformat.validate(nbformat.from_dict(packed))
    assert [each["id"] for each in packed["cells"]][:2] == ["a", "cell-1"]
    old = {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": "a = 1"}, {"cell_type": "heading", "source": "T"}]}]}
    path.write_text(json.dumps(old), encoding="utf-8")
    packed = json.loads(pack(path, tmp_path / "old").read_bytes())
    nbformat.validate(nbformat.from_dict(packed))
    assert [each["source"] for each in packed["cells"]] == ["a = 1", "T"]


def test_pack_refuses_what_could_not_be_handed_in(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    markdown = {"cell_type": "markdown", "metadata": {}, "source": "x" * MOST_BYTES}
    code = {"cell_type": "code", "metadata": {}, "source": "1", "outputs": [], "execution_count": None}
    for content, code_of_error in (
        ("no notebook", "not-json"),
        ('{"a": 1}', "not-a-notebook"),
        (json.dumps({"nbformat": 4, "cells": [{**markdown, "source": "x"}]}), "empty-notebook"),
        (json.dumps({"nbformat": 4, "cells": [code, markdown]}), "too-large"),
        (json.dumps({"nbformat": 4, "cells": [code] * 2001}), "too-large"),
    ):
        path.write_text(content, encoding="utf-8")
        with refusal(code_of_error, "a.ipynb"):
            pack(path)
    with refusal("not-found"):
        pack(tmp_path / "none.ipynb")
    assert [each.name for each in tmp_path.iterdir()] == ["a.ipynb"]
