"""Test that a gradebook of Canvas gets the points of a lab, and stays as it is elsewhere."""

import csv
import io
from pathlib import Path

from cases import in_turn, refusal

from hybridlab.course.grading.canvas import FilledGradebook, fill_canvas
from hybridlab.course.grading.marks import Marks, TaskMark

HEADER = "Student,ID,SIS User ID,SIS Login ID,Section,Notes,Lab 1 (11),Lab 2 (12345),Lab 20 (13),Labs Current Score,Lab 2 Final Points"
GRADEBOOK = f"""{HEADER}
,,,,,,Manual Posting,Manual Posting,,,
    Points Possible,,,,,,5,10.00,,(read only),(read only)
"Li, Ana",101,S1,ana@uni.edu,"A ""one"", B",=1+1,4.00,,,80.00,7
"Zoé
Blank",102,S2,zoe,A,"+1;-1",,3.00,N/A,,
'Neill,103,S3,neill,A,,EX,EX,,,
"Student, Test",104,,test,A,,,,,,
"""


def marks(student: str, points: float = 7.5, lab: str = "lab02", file: str = "") -> Marks:
    task = TaskMark("lab02.t2", "Predict a makespan", points, 10, "wrong")
    return Marks(student, lab, "hybridlab", "final", file or f"{student}.ipynb", "0" * 64, "1f", (task,))


def fill(folder: Path, text: str, *all_marks: Marks, column: str = "") -> tuple[FilledGradebook, bytes]:
    exported = folder / "exported.csv"
    exported.write_bytes(text.encode())
    filled = fill_canvas(exported, all_marks, folder / "filled.csv", column=column)
    assert exported.read_bytes() == text.encode()
    return filled, filled.path.read_bytes()


def cells(text: bytes | str) -> list[list[str]]:
    text = text if isinstance(text, str) else text.decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


def test_the_points_of_each_student_are_in_the_column_of_the_lab(tmp_path: Path) -> None:
    filled, text = fill(tmp_path, GRADEBOOK, marks("zoe", 4), marks("ana@uni.edu"))
    before, after = cells(GRADEBOOK), cells(text)
    changed = {
        (row, place): after[row][place] for row in range(len(before)) for place in range(11) if before[row][place] != after[row][place]
    }
    assert changed == {(3, 7): "7.5", (4, 7): "4"}
    assert (filled.path, filled.column, filled.filled) == (tmp_path / "filled.csv", "Lab 2 (12345)", ("ana@uni.edu", "zoe"))


@in_turn("change", [("\n", "\n"), ("\n", "\r\n"), ("\n", "\r"), ("Student,ID", "\ufeffStudent,ID"), (",7\n", ',"7"\n'), ("7\n", "7\n\n")])
def test_other_cells_stay_byte_for_byte(tmp_path: Path, change: tuple[str, str]) -> None:
    text = GRADEBOOK.replace(*change)
    _, after = fill(tmp_path, text, marks("ana@uni.edu"))
    assert after.decode() == text.replace("4.00,,,80.00", "4.00,7.5,,80.00")


@in_turn("text", [GRADEBOOK.rstrip("\n"), GRADEBOOK.rstrip("\n,") + ",,,,,,"])
def test_a_last_line_needs_no_end(tmp_path: Path, text: str) -> None:
    assert fill(tmp_path, text, marks("test", 3))[1].decode() == text.removesuffix(",,,,") + ",3,,,"


def test_a_gradebook_with_semicolons_is_filled(tmp_path: Path) -> None:
    text = "Student;ID;SIS Login ID;Section;Lab 2 (1)\nPoints Possible;;;;10,00\nLi, Ana;1;ana;A;2,5\n"
    filled, after = fill(tmp_path, text, marks("ana"))
    assert after.decode() == text.replace("2,5", "7.5")
    assert filled.remarks == ("ana had 2,5 in the gradebook and has 7.5 now",)


@in_turn("student, row", [("ana@uni.edu", 3), ("101", 3), ("S1", 3), ("Li, Ana", 3), ("103", 5), ("'Neill", 5)])
def test_a_student_is_found_in_any_column_that_names_students(tmp_path: Path, student: str, row: int) -> None:
    _, after = fill(tmp_path, GRADEBOOK, marks(student))
    assert [place for place, each in enumerate(cells(after)) if each[7] == "7.5"] == [row]


def test_a_name_with_quotes_is_found(tmp_path: Path) -> None:
    text = GRADEBOOK.replace('"Li, Ana"', '"Li, ""Ana"""')
    assert fill(tmp_path, text, marks('Li, "Ana"'))[0].filled == ('Li, "Ana"',)


def test_the_login_counts_before_the_other_columns(tmp_path: Path) -> None:
    _, after = fill(tmp_path, GRADEBOOK.replace("104,,test", "104,,101"), marks("101"))
    assert [place for place, each in enumerate(cells(after)) if each[7] == "7.5"] == [6]


def test_nothing_is_swallowed(tmp_path: Path) -> None:
    filled, _ = fill(tmp_path, GRADEBOOK.replace("10.00", "20"), marks("zoe"), marks("neill"), marks("nobody"), marks("\x1b[31mno"))
    assert filled.missing == ("\x1b[31mno", "nobody")
    assert filled.without_marks == ("Li, Ana", "Student, Test")
    assert set(filled.remarks) == {
        "the column is out of 20 points and lab02 out of 10: the points are entered as they are",
        "zoe had 3.00 in the gradebook and has 7.5 now",
        "neill had EX in the gradebook and has 7.5 now",
        "nobody is not in the gradebook",
        "no is not in the gradebook",
        "Li, Ana of the gradebook has no marks",
        "Student, Test of the gradebook has no marks",
    }


NAMES = ["Lab 2 (1)", "lab02", "LAB_02: schedules (77)", "Week 3, Lab 2", "Lab-2", "Lab 002 (5)"]


@in_turn("name", NAMES)
def test_the_column_is_found_by_the_lab(tmp_path: Path, name: str) -> None:
    header = f'Student,ID,SIS Login ID,Section,"{name}",Lab 12 (2),Lab 21,Collab 2,Final (2)\n'
    filled, after = fill(tmp_path, header + "Ana,1,ana,A,,,,,\n", marks("ana"))
    assert (filled.column, after.decode()) == (name, header + "Ana,1,ana,A,7.5,,,,\n")


@in_turn("column", ["Lab 20 (13)", "Lab 20", " Lab 20 "])
def test_a_column_can_be_chosen(tmp_path: Path, column: str) -> None:
    assert fill(tmp_path, GRADEBOOK, marks("zoe"), column=column)[0].column == "Lab 20 (13)"


@in_turn("column", ["Lab 3", "Section", "Student", "Lab 2 Final Points", "("])
def test_an_unknown_column_is_refused_with_those_that_exist(tmp_path: Path, column: str) -> None:
    with refusal("unknown-column", "'Lab 1 (11)'", "'Lab 2 (12345)'", "--column"):
        fill(tmp_path, GRADEBOOK, marks("zoe"), column=column)
    with refusal("unknown-column", "lab03", "'Lab 2 (12345)'"):
        fill(tmp_path, GRADEBOOK, marks("zoe", lab="lab03"))


def test_several_columns_are_named(tmp_path: Path) -> None:
    text = GRADEBOOK.replace("Lab 20 (13)", "Lab 2 again (13)")
    with refusal("several-columns", "'Lab 2 (12345)'", "'Lab 2 again (13)'", "--column"):
        fill(tmp_path, text, marks("zoe"))
    with refusal("several-columns"):
        fill(tmp_path, GRADEBOOK.replace("Lab 20 (13)", "Lab 2 (13)"), marks("zoe"), column="Lab 2")


def test_two_students_are_never_one_row_and_two_rows_never_one_student(tmp_path: Path) -> None:
    with refusal("several-rows", "101", "S1", "row 4"):
        fill(tmp_path, GRADEBOOK, marks("S1"), marks("101"))
    with refusal("several-rows", "rows 5 and 7", "zoe"):
        fill(tmp_path, GRADEBOOK.replace(",test,", ",zoe,"), marks("zoe"))
    with refusal("student-twice", "one.ipynb", "two.ipynb"):
        fill(tmp_path, GRADEBOOK, marks("zoe", file="one.ipynb"), marks("zoe", file="two.ipynb"))


def test_marks_are_of_one_lab(tmp_path: Path) -> None:
    with refusal("several-labs", "lab02, lab03"):
        fill(tmp_path, GRADEBOOK, marks("zoe"), marks("neill", lab="lab03"))
    with refusal("several-labs", "none"):
        fill(tmp_path, GRADEBOOK)


NO_GRADEBOOKS = [
    "",
    "\n",
    "a,b\n",
    "Student,ID\n",
    "Section,Student,ID\n",
    GRADEBOOK + "one,two\n",
    GRADEBOOK + '"a"b,,,,,,,,,,\n',
    GRADEBOOK + '"a',
]


@in_turn("text", NO_GRADEBOOKS)
def test_what_is_no_gradebook_is_refused(tmp_path: Path, text: str) -> None:
    with refusal("no-gradebook", "exported.csv"):
        fill(tmp_path, text, marks("zoe"))
    assert not (tmp_path / "filled.csv").exists()


def test_a_file_that_is_not_there_or_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_bytes(GRADEBOOK.encode("cp1252"))
    for name in ("old.csv", "none.csv"):
        with refusal("no-gradebook", name, "export it from Canvas again"):
            fill_canvas(tmp_path / name, [marks("zoe")], tmp_path / "filled.csv")


def test_the_exported_file_is_never_written(tmp_path: Path) -> None:
    exported = tmp_path / "exported.csv"
    exported.write_text(GRADEBOOK, encoding="utf-8")
    (tmp_path / "filled").mkdir()
    for out in (exported, tmp_path, tmp_path / "filled" / ".." / "exported.csv"):
        with refusal("same-file"):
            fill_canvas(exported, [marks("zoe")], out)
        assert fill_canvas(exported, [marks("zoe")], tmp_path / "filled").path == tmp_path / "filled" / "exported.csv"
