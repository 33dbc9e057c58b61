"""Test which files in a folder of submissions are hand-ins of a lab, and whose they are."""

import os
import unicodedata
from pathlib import Path

import pytest
from cases import in_turn, refusal

from hybridlab.course.grading.copies import pack, start
from hybridlab.course.grading.submissions import find_submissions, student_of

ROOT = Path("submissions")


@in_turn(
    "file, student",
    [
        ("ana/lab02.ipynb", "ana"),
        ("ana/work/deep/lab02.ipynb", "ana"),
        ("lab02-ana/lab02.ipynb", "ana"),
        ("lab02_ana/lab02_packed.ipynb", "ana"),
        ("lab-2-ana-maria/lab02.ipynb", "ana-maria"),
        ("ana-lab02/lab02.ipynb", "ana"),
        ("lab02_one_f_one_b-ana/x.ipynb", "ana"),
        ("ana_lab02.ipynb", "ana"),
        ("lab02_ana.ipynb", "ana"),
        ("Lab2 ana.ipynb", "ana"),
        ("ana.ipynb", "ana"),
        ("ana.zip", "ana"),
        ("ana_lab02_one_f_one_b.ipynb", "ana"),
        ("lab02_ana.doe@b.edu.ipynb", "ana.doe@b.edu"),
        ("doeana_12345_67890_lab02.ipynb", "doeana"),
        ("doeana_LATE_12345_67890_lab02_ana-1.ipynb", "doeana"),
        ("doeana_12345_67890_untitled.ipynb", "doeana"),
        ("12345_1_2_lab02.ipynb", "12345"),
        ("lab02/ana.ipynb", "ana"),
        ("lab02/lab02_ana.ipynb", "ana"),
        ("lab02.ipynb", "lab02"),
        ("lab02_packed.ipynb", "lab02_packed"),
        ("collaborator7/lab02.ipynb", "collaborator7"),
        ("lab2024/lab02.ipynb", "lab2024"),
        (unicodedata.normalize("NFD", "Zoë/lab02.ipynb"), "Zoë"),
        ("李明_lab02.ipynb", "李明"),
        ("=1+1/lab02.ipynb", "=1+1"),
    ],
)
def test_a_folder_or_a_file_names_the_student(file: str, student: str) -> None:
    assert student_of(ROOT / file, ROOT) == student


def test_a_file_of_another_folder_is_nobodys() -> None:
    with refusal("not-found", "lab02.ipynb", "submissions"):
        student_of(Path("elsewhere/lab02.ipynb"), ROOT)


@in_turn("name", ["ana", "Zoë O'Neill", "ana.doe@b.edu", "s1234567", "ana_maria", "李明"])
def test_a_packed_file_is_its_students(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("work")
    packed = pack(start("lab02", folder, name), folder / "in")
    assert find_submissions(folder / "in", "lab02") == {name: [packed]}


def made(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")


def found(folder: Path, lab: str = "lab02") -> dict[str, list[str]]:
    return {student: [path.relative_to(folder).as_posix() for path in paths] for student, paths in find_submissions(folder, lab).items()}


def test_the_hand_ins_of_a_lab_are_found(tmp_path: Path) -> None:
    made(
        tmp_path,
        "eva/lab02.ipynb",
        "eva/lab03.ipynb",
        "bob/lab02_bob.zip",
        "bob/notes.txt",
        "ana.ipynb",
        "ana_LAB2.IPYNB",
        "lab12_cy.ipynb",
    )
    made(
        tmp_path, "lab12_cy.ipynb", "lab03/dan.ipynb", "lab02/fay.ipynb", "lab03-guy/final.ipynb", "lab03-guy/lab02.ipynb", "hal/work.ipynb"
    )
    assert found(tmp_path) == {
        "ana": ["ana.ipynb", "ana_LAB2.IPYNB"],
        "bob": ["bob/lab02_bob.zip"],
        "eva": ["eva/lab02.ipynb"],
        "fay": ["lab02/fay.ipynb"],
        "guy": ["lab03-guy/lab02.ipynb"],
        "hal": ["hal/work.ipynb"],
    }
    assert list(found(tmp_path)) == sorted(found(tmp_path))
    assert found(tmp_path, "12")["cy"] == ["lab12_cy.ipynb"]
    assert found(tmp_path, "lab03")["guy"] == ["lab03-guy/final.ipynb"]


def test_what_programs_leave_behind_is_no_hand_in(tmp_path: Path) -> None:
    rest = [".ipynb_checkpoints/lab02-checkpoint.ipynb", "ana/.ipynb_checkpoints/lab02-checkpoint.ipynb", "__MACOSX/ana/lab02.ipynb"]
    made(tmp_path, *rest, "ana/.lab02.ipynb", "ana/._lab02.ipynb", ".git/lab02.ipynb", "ana/lab02.ipynb.bak", "ana/lab02.py")
    with refusal("no-submissions", "lab02", "ana/lab02.ipynb", "lab02_ana.ipynb"):
        find_submissions(tmp_path, "lab02")
    made(tmp_path, "ana/lab02.ipynb")
    assert found(tmp_path) == {"ana": ["ana/lab02.ipynb"]}


def test_folders_behind_links_are_not_read_and_linked_files_are_listed(tmp_path: Path) -> None:
    made(tmp_path / "outside", "lab02.ipynb")
    made(tmp_path / "in", "ana/lab02.ipynb")
    (tmp_path / "in" / "bob").symlink_to(tmp_path / "outside")
    (tmp_path / "in" / "ana" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "eva_lab02.ipynb").symlink_to(tmp_path / "outside" / "lab02.ipynb")
    assert found(tmp_path / "in") == {"ana": ["ana/lab02.ipynb"], "eva": ["eva_lab02.ipynb"]}
    (tmp_path / "linked").symlink_to(tmp_path / "in")
    assert list(found(tmp_path / "linked")) == ["ana", "eva"]


def test_a_folder_without_submissions_says_what_was_expected(tmp_path: Path) -> None:
    with refusal("no-submissions", "lab02", "ana/lab02.ipynb"):
        find_submissions(tmp_path, "lab02")
    made(tmp_path, "ana/lab03.ipynb", "bob/lab11.ipynb")
    with refusal("no-submissions", "only notebooks of lab03, lab11"):
        find_submissions(tmp_path, "lab02")
    with refusal("not-found", "nowhere"):
        find_submissions(tmp_path / "nowhere", "lab02")
    with refusal("not-found"):
        find_submissions(tmp_path / "ana" / "lab03.ipynb", "lab02")
    with refusal("unknown-name", "lab01"):
        find_submissions(tmp_path, "lab99")


def test_names_that_are_no_text_are_found(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff_lab02.ipynb")).write_text("x")
    assert len(find_submissions(tmp_path, "lab02")) == 1
