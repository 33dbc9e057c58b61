"""Test reports and records: every file is read back with a parser that is not ours."""

import csv
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cases import in_turn, refusal
from markdown_it import MarkdownIt

from hybridlab.course.grading.escaping import file_name
from hybridlab.course.grading.marks import Marks, TaskMark
from hybridlab.course.grading.records import read_records, write_record, write_whole
from hybridlab.course.grading.reports import HIDDEN_CASES, RUNNER, verdict, write_reports
from hybridlab.course.tasks import check

SEED, SECRET, DIGEST = 987654321, "fade5ec4e7", "d16e57" * 8
MARKDOWN = MarkdownIt("gfm-like", {"html": True})
RIGHT = TaskMark("lab02.t2", "Predict a makespan", 2, 2, "passed", ("80 ms for one device",))
PARTLY = TaskMark(
    "lab02.t6", "Build a simulator", 10 / 3, 6, "wrong-order", ("for K = 1, M = 2: the order is wrong",), ("handed in twice",), SEED
)
EMPTY = TaskMark("lab02.t1", "Write 1F1B", 0, 3, "nothing-handed-in", ("nothing handed in yet: write 1F1B",))
EVIL = "=1+1 [x](https://evil.example) <img src=x> ``` @teacher #12\n::error::x\n# heading\n\x1b[31m##[group]\x00\u202e\ufffe\ud800"


def marks(student: str = "ana", *tasks: TaskMark, **fields: Any) -> Marks:
    of_all = {"lab": "lab02", "course": "hybridlab", "run": "final", "file": f"{student}.ipynb", "digest": DIGEST, "fingerprint": SECRET}
    return Marks(student=student, tasks=tasks or (RIGHT, PARTLY, EMPTY), **(of_all | fields))


def evil_marks(student: str = EVIL) -> Marks:
    task = TaskMark("lab02.t6", EVIL, 1, 6, "wrong-order", (EVIL, "x" * 9999, "y\n" * 9999), (EVIL,), SEED)
    return marks(student, task, file=EVIL, remarks=(EVIL,), needs_person=EVIL)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_of_grades_has_a_row_for_each_student(tmp_path: Path) -> None:
    write_reports([marks("zoe", remarks=("copied",)), marks("ana", RIGHT, needs_person="two files", remarks=("copied cells",))], tmp_path)
    ana, zoe = rows(tmp_path / "grades.csv")
    assert ana == {
        "student": "ana",
        "lab": "lab02",
        "points": "2",
        "out of": "2",
        "percent": "100.0",
        "of them bonus": "0",
        "lab02.t2": "2",
        "lab02.t6": "",
        "lab02.t1": "",
        "needs a person": "two files",
        "remarks": "copied cells",
    }
    assert [zoe[name] for name in ("points", "out of", "percent", "lab02.t6", "remarks")] == [
        "5.33",
        "11",
        "48.5",
        "3.33",
        "copied; lab02.t6: handed in twice",
    ]


def test_the_table_of_tasks_counts_the_class(tmp_path: Path) -> None:
    wrong = [replace(RIGHT, points=0, code=code) for code in ("a", "b", "b", "c", "d", "d", "d")]
    write_reports(
        [marks(f"s{place}", task) for place, task in enumerate([RIGHT, *wrong, replace(EMPTY, key=RIGHT.key, title=RIGHT.title)])], tmp_path
    )
    write_reports([marks("ana", PARTLY)], tmp_path / "partly")
    (row,), (partly,) = rows(tmp_path / "tasks.csv"), rows(tmp_path / "partly" / "tasks.csv")
    assert list(row.values()) == ["lab02.t2", RIGHT.title, "2", "no", "9", "1", "0", "1", "0.22", "0.11", "d: 3, b: 2, a: 1"]
    assert list(partly.values()) == ["lab02.t6", PARTLY.title, "6", "no", "1", "0", "1", "0", "3.33", "0.56", "wrong-order: 1"]


def test_gradescope_finds_its_fields(tmp_path: Path) -> None:
    write_reports([marks(remarks=("copied cells",))], tmp_path)
    result = json.loads((tmp_path / "results" / "ana.json").read_bytes())
    assert set(result) == {"score", "output", "output_format", "visibility", "tests"}
    assert (result["score"], result["output_format"], result["visibility"]) == (5.33, "text", "visible")
    assert result["output"] == f"5.33 out of 11 points\n{HIDDEN_CASES}\ncopied cells"
    assert [(test["score"], test["max_score"], test["status"]) for test in result["tests"]] == [
        (2, 2, "passed"),
        (3.33, 6, "failed"),
        (0, 3, "failed"),
    ]
    assert result["tests"][1]["name"] == "lab02.t6: Build a simulator"
    assert result["tests"][1]["output"].startswith("partly: 3.33 of 6 points\n  for K = 1")
    assert all(set(test) == {"name", "score", "max_score", "status", "output", "output_format"} for test in result["tests"])


WHOLE_NUMBERS = {"score", "max-score"}


def accepted_by_classroom50(result: Mapping[str, Any]) -> bool:
    """Return whether the collector of Classroom 50 takes a result, by the rules that its documentation gives."""
    strings = {"schema", "classroom", "assignment", "assignment_type", "owner", "datetime", *RUNNER}
    whole = all(type(part[name]) is int for part in (result, *result["tests"]) for name in WHOLE_NUMBERS)
    sums = all(result[name] == sum(test[name] for test in result["tests"]) for name in WHOLE_NUMBERS)
    tests = all(
        isinstance(test["passed"], bool) and test["test-name"] and 0 <= test["score"] <= test["max-score"] for test in result["tests"]
    )
    return whole and sums and tests and all(isinstance(result[name], str) and result[name] for name in strings)


def test_classroom_50_finds_its_fields(tmp_path: Path) -> None:
    told = {variable: f"submit/{variable}" for variable in RUNNER.values()} | {"CLASSROOM": "cs1", "ASSIGNMENT": "two", "OWNER": "octocat"}
    write_reports([marks()], tmp_path, runner={**told, "SECRET": SECRET})
    result = json.loads((tmp_path / "classroom" / "ana.json").read_bytes())
    assert accepted_by_classroom50(result)
    assert [result[name] for name in ("classroom", "assignment", "owner", "submission")] == [
        "cs1",
        "two",
        "octocat",
        "submit/SUBMISSION_TAG",
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result["datetime"])
    assert (result["schema"], result["score"], result["max-score"]) == ("classroom50/result/v1", 5, 11)
    assert [test["passed"] for test in result["tests"]] == [True, False, False]
    write_reports([marks("ana", replace(PARTLY, points=3.75), replace(RIGHT, points=1.5))], tmp_path)
    result = json.loads((tmp_path / "classroom" / "ana.json").read_bytes())
    assert [*(test["score"] for test in result["tests"]), result["score"]] == [3, 1, 4], "parts of a point are left out"


def test_without_its_runner_the_fields_of_classroom_50_are_those_we_know(tmp_path: Path) -> None:
    write_reports([marks()], tmp_path / "before", runner={})
    assert "datetime" in json.loads((tmp_path / "before" / "classroom" / "ana.json").read_bytes())
    write_reports([marks()], tmp_path)
    result = json.loads((tmp_path / "classroom" / "ana.json").read_bytes())
    assert set(result) == {"schema", "classroom", "assignment", "owner", "score", "max-score", "tests"}
    assert [result[name] for name in ("classroom", "assignment", "owner")] == ["hybridlab", "lab02", "ana"]


def test_junit_has_a_suite_for_each_student_and_a_failure_for_each_point_lost(tmp_path: Path) -> None:
    write_reports([marks("zoe", RIGHT), marks("ana")], tmp_path)
    ana, zoe = ElementTree.parse(tmp_path / "junit.xml").getroot().findall("testsuite")  # noqa: S314 (our own file)
    assert [suite.get("name") for suite in (ana, zoe)] == ["ana", "zoe"]
    assert [(suite.get("tests"), suite.get("failures"), len(suite.findall("testcase/failure"))) for suite in (ana, zoe)] == [
        ("3", "2", 2),
        ("1", "0", 0),
    ]
    failure = ana.findall("testcase")[1].find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.get("type")) == ("partly: 3.33 of 6 points", "wrong-order")
    assert "for K = 1, M = 2" in (failure.text or "")


def test_feedback_has_the_words_of_the_check(tmp_path: Path) -> None:
    told = check("lab02.t1", "")
    write_reports([marks("ana", RIGHT, PARTLY, replace(EMPTY, messages=told.messages), remarks=("copied cells",))], tmp_path)
    text = (tmp_path / "feedback" / "ana.md").read_text(encoding="utf-8")
    assert repr(told) in text
    for line in ("# lab02: 5.33 out of 11 points", HIDDEN_CASES, "lab02.t2: passed", "lab02.t6: partly: 3.33 of 6 points", "copied cells"):
        assert f"{line}\n" in text
    assert "  handed in twice\n" in text


def test_the_points_of_optional_tasks_come_on_top(tmp_path: Path) -> None:
    """With full points and a bonus of 2 of 3: more than 100 %. A bonus that is missing costs nothing anywhere."""
    full, extra, nothing = replace(PARTLY, points=6), replace(EMPTY, points=2, bonus=True), replace(EMPTY, bonus=True)
    write_reports([marks("ana", full, extra), marks("ben", full, nothing), marks("cy", replace(full, points=1.5), extra)], tmp_path)
    names = ("points", "out of", "percent", "of them bonus", "lab02.t1")
    assert [[row[name] for name in names] for row in rows(tmp_path / "grades.csv")] == [
        ["8", "6", "133.3", "2", "2"],
        ["6", "6", "100.0", "0", "0"],
        ["3.5", "6", "58.3", "2", "2"],
    ]
    assert [row["bonus"] for row in rows(tmp_path / "tasks.csv")] == ["no", "yes"]
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 (our own file)
    assert [(suite.get("failures"), suite.get("skipped")) for suite in suites] == [("0", "1"), ("0", "1"), ("1", "1")]
    assert [len(list(suites.iter(kind))) for kind in ("failure", "skipped")] == [1, 3]
    results = [json.loads((tmp_path / "results" / f"{student}.json").read_bytes()) for student in ("ana", "ben")]
    assert [result["score"] for result in results] == [8, 6]
    assert results[0]["output"].startswith("8 out of 6 points, 2 of them bonus points\n")
    assert [test["name"] for test in results[0]["tests"]] == ["lab02.t6: Build a simulator", "lab02.t1: Write 1F1B (bonus)"]
    collected = [json.loads((tmp_path / "classroom" / f"{student}.json").read_bytes()) for student in ("ana", "ben", "cy")]
    assert [(result["score"], result["max-score"]) for result in collected] == [(8, 8), (6, 6), (3, 8)]
    assert all(0 <= test["score"] <= test["max-score"] for result in collected for test in result["tests"])
    feedback = (tmp_path / "feedback" / "ana.md").read_text(encoding="utf-8")
    assert feedback.startswith("# lab02: 8 out of 6 points, 2 of them bonus points\n")
    assert "## Write 1F1B (bonus)\n" in feedback


def test_hidden_cases_are_named_where_they_were_run(tmp_path: Path) -> None:
    write_reports([marks("ana", RIGHT)], tmp_path)
    assert HIDDEN_CASES not in (tmp_path / "feedback" / "ana.md").read_text(encoding="utf-8")


@in_turn("points, words", [(0, "not yet"), (3, "partly: 3 of 6 points"), (2.5, "partly: 2.5 of 6 points"), (6, "passed")])
def test_a_verdict_says_passed_partly_or_not_yet(points: float, words: str) -> None:
    assert verdict(replace(PARTLY, points=points)) == words


def test_nothing_of_a_student_is_obeyed_in_feedback(tmp_path: Path) -> None:
    write_reports([evil_marks()], tmp_path)
    text = (tmp_path / "feedback" / f"{file_name(EVIL)}.md").read_text(encoding="utf-8")
    found = [each for token in MARKDOWN.parse(text) for each in (token, *(token.children or []))]
    kinds = {"heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "text", "code_inline", "fence"}
    assert {token.type for token in found} <= kinds
    assert [sum(token.type == kind for token in found) for kind in ("heading_open", "fence", "code_inline")] == [2, 2, 3]
    outside = " ".join(token.content for token in found if token.type == "text")
    assert not re.search(r"[@\[\]<>]|#\d|evil", outside)


def test_nothing_of_a_student_is_obeyed_in_a_table(tmp_path: Path) -> None:
    write_reports([evil_marks()], tmp_path)
    for path in (tmp_path / "grades.csv", tmp_path / "tasks.csv"):
        (row,) = rows(path)
        assert any(cell.startswith("'=1+1") for cell in row.values())
        assert not any(part.lstrip().startswith(tuple("=+-@\t\r")) for cell in row.values() for part in re.split("[;\n]", cell))


def test_no_report_has_a_command_or_an_unseen_character(tmp_path: Path) -> None:
    for path in write_reports([evil_marks(), marks("::error::x")], tmp_path):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*::|##\[|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text, re.MULTILINE), path.name
        if path.suffix == ".json":
            texts = [part for test in json.loads(text)["tests"] for part in test.values() if isinstance(part, str)]
            assert not re.search(r"^\s*::|##\[|[\x00\x1b\u202e]", "\n".join(texts), re.MULTILINE)


def test_long_text_is_cut_in_reports(tmp_path: Path) -> None:
    write_reports([evil_marks("ana")], tmp_path)
    for path in (tmp_path / "feedback" / "ana.md", tmp_path / "results" / "ana.json"):
        assert path.stat().st_size < 8000


def test_no_report_has_a_seed_or_a_digest(tmp_path: Path) -> None:
    for path in write_reports([marks()], tmp_path):
        text = path.read_text(encoding="utf-8")
        assert not any(secret in text for secret in (str(SEED), SECRET, DIGEST, "seed", "digest", "fingerprint")), path.name


def test_a_person_is_asked_for_in_the_table_alone(tmp_path: Path) -> None:
    written = write_reports([marks(needs_person="same code as zoe")], tmp_path)
    assert [path.name for path in written if "same code" in path.read_text(encoding="utf-8")] == ["grades.csv"]


def test_all_files_that_were_written_are_returned(tmp_path: Path) -> None:
    written = write_reports([marks("ana"), marks("Ana"), marks("a/na")], tmp_path)
    assert sorted(written) == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(written) == 3 + 3 * 3


def test_a_class_without_students_gives_tables_without_rows(tmp_path: Path) -> None:
    write_reports([], tmp_path)
    assert rows(tmp_path / "grades.csv") == rows(tmp_path / "tasks.csv") == []


def test_two_files_of_one_student_are_named(tmp_path: Path) -> None:
    with refusal("student-twice", "first.ipynb", "second.ipynb", "ana"):
        write_reports([marks(file="first.ipynb"), marks("zoe"), marks(file="second.ipynb")], tmp_path)
    assert not list(tmp_path.iterdir())


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def full(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_an_interrupted_report_leaves_the_old_files_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.read_bytes() for path in write_reports([marks()], tmp_path)}
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_reports([marks("ana", EMPTY)], tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", full)
    with refusal("not-writable", "No space left", "--out"):
        write_record(marks(), tmp_path / "records")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "grades").write_text("")
    with refusal("not-writable", "choose another folder with --out"):
        write_reports([marks()], tmp_path / "grades")


@in_turn("student", ["ana", "Ana", "a/../na", EVIL, ""])
def test_a_record_is_read_as_it_was_written(tmp_path: Path, student: str) -> None:
    folder = tmp_path / file_name(student)
    path = write_record(evil_marks(student), folder)
    assert read_records(folder) == [evil_marks(student)]
    assert path == folder / f"{file_name(student)}.json"


def test_records_come_in_the_order_of_their_files_and_none_from_no_folder(tmp_path: Path) -> None:
    for student in ("zoe", "ana"):
        write_record(marks(student), tmp_path)
    (tmp_path / "bob.json.tmp").write_text("{")
    assert [each.student for each in read_records(tmp_path)] == ["ana", "zoe"]
    assert read_records(tmp_path / "none") == []


WHOLE = json.dumps(marks().to_json())
DAMAGED = ["", "{", "[]", "null", "1", WHOLE[:-9], "[" * 100_000, WHOLE.replace('"lab"', '"labs"'), WHOLE.replace('"title"', '"titles"')]
DAMAGED += [WHOLE.replace('"out_of": 3', f'"out_of": {bad}') for bad in ("NaN", '"3"', "-1", "null", "[]")]
DAMAGED += [WHOLE.replace('"lab02"', "2"), WHOLE.replace('"student": "ana"', '"student": "zoe"'), WHOLE.replace('"passed"', "{}"), "\x00"]


@in_turn("text", DAMAGED)
def test_a_damaged_record_is_named(tmp_path: Path, text: str) -> None:
    write_whole(tmp_path / "ana.json", text)
    with refusal("damaged-record", "ana.json", "delete it"):
        read_records(tmp_path)
