"""A student of a graded course: seeds from the name, own sizes, own twists, and functions that are saved for later labs."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal
from hypothesis import given
from misuse import outcome, usual_or_junk
from profiles import examples

from hybridlab import Student, check, part
from hybridlab.course.checking.twists import Twist
from hybridlab.course.parts import ELSEWHERE
from hybridlab.course.tasks import TASKS, Question

NUMBERS = [key for key, task in TASKS.items() if task.kind == "number"]
BUILDS = [key for key, task in TASKS.items() if task.kind == "build"]
DRAWN = [key for key in NUMBERS if any(TASKS[key].instance(seed).prompt != TASKS[key].prompt for seed in range(30))]
CLASS = [f"student-{number}" for number in range(20)]


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ELSEWHERE, str(tmp_path / "mine"))
    return tmp_path / "mine"


def twist_of(name: str, key: str) -> Twist:
    twist = TASKS[key].personal(Student(name).seed(key)).data.twist
    assert isinstance(twist, Twist)
    return twist


def student_with(key: str, twist: str) -> Student:
    """Return a student who has a twist."""
    return Student(next(name for name in (f"someone-{number}" for number in range(1000)) if twist_of(name, key).name == twist))


def right_answer(name: str, key: str) -> Any:
    question = TASKS[key].personal(Student(name).seed(key)).data
    assert isinstance(question, Question)
    truths = [number.truth for number in question.numbers]
    return truths[0] if len(truths) == 1 else truths


def peaks(orders: list[str]) -> list[int]:
    """Count as a student does whose devices hold one more activation all the time."""
    found = []
    for line in orders:
        held = most = MORE
        for op in line.split():
            held += ("F" in op) - ("B" in op or "W" in op)
            most = max(most, held)
        found.append(most)
    return found


MORE = 1


def test_a_name_is_the_same_with_blanks_and_capital_letters() -> None:
    assert {Student(name).seed("lab02.t2") for name in ("ana", "Ana ", " ANA", "ana\n")} == {Student("ana").seed("lab02.t2")}
    assert Student("Jürgen").seed("lab02.t2") == Student("Ju\u0308rgen").seed("lab02.t2")


def test_the_seed_is_that_of_the_public_digest() -> None:
    """The first 8 digits of ``printf 'hybridlab\\nhybridlab\\nana\\nlab02.t2' | sha256sum``."""
    assert f"{Student('ana').seed('lab02.t2'):08x}" == "11b460f9"


def test_another_name_another_course_and_another_task_have_other_seeds() -> None:
    seeds = [
        Student(name, course).seed(key) for name in ("ana", "ben") for course in ("hybridlab", "spring") for key in ("lab02.t2", "lab03.t2")
    ]
    assert len(set(seeds)) == 8
    assert all(0 <= seed < 2**32 for seed in seeds)


@in_turn("name", ["", " ", "\t\n"])
def test_a_student_without_a_name_is_refused(name: str) -> None:
    with refusal("empty", "Student('ana')"):
        Student(name)


@examples(200)
@given(name=usual_or_junk(["ana"]), course=usual_or_junk(["hybridlab"]), key=usual_or_junk(["lab02.t2", "lab02.t5"]))
def test_junk_is_refused_in_a_sentence(name: Any, course: Any, key: Any) -> None:
    student = outcome(Student, name, course)
    if student is not None:
        outcome(student, key)
        outcome(student.check, key, name)
        outcome(student.undo_twist, key, name)


def test_what_has_no_twist_cannot_be_undone() -> None:
    with refusal("not-a-build", "lab02.t2"):
        Student("ana").undo_twist("lab02.t2", peaks)
    with refusal("not-a-function", "'peaks'"):
        Student("ana").undo_twist("lab03.t3", "peaks")  # type: ignore[arg-type]


@in_turn("key", NUMBERS)
def test_a_task_with_a_number_has_at_least_16_sizes_besides_those_in_the_text(key: str) -> None:
    prompts = {TASKS[key].personal(seed).prompt for seed in range(160)}
    assert TASKS[key].prompt not in prompts
    assert len(prompts) >= 16


@in_turn("key", NUMBERS)
def test_the_answer_to_the_own_sizes_passes(key: str) -> None:
    for name in CLASS[:3]:
        feedback = Student(name).check(key, right_answer(name, key))
        assert feedback.passed, feedback
        assert feedback.task == key


@in_turn("key", DRAWN)
def test_the_answer_of_a_neighbour_passes_for_two_thirds_of_a_class_at_most(key: str) -> None:
    """Two students can have the same sizes, and a number can be right for several sizes."""
    passed = [Student(name).check(key, right_answer(other, key)).passed for name, other in pairwise(CLASS)]
    assert sum(passed) <= len(passed) * 2 / 3


def test_a_statement_names_the_student_and_the_own_sizes_or_twist() -> None:
    mine = Student("Ana")
    assert repr(mine("lab02.t2")).startswith("lab02.t2, for ana:\n")
    said = " ".join(repr(mine("lab02.t5")).split())
    assert "In your task, " + " ".join(twist_of("ana", "lab02.t5").sentence.split()) in said


@in_turn("key", BUILDS)
def test_a_stub_has_handed_in_nothing(key: str) -> None:
    def stub(*arguments: Any) -> None: ...

    for nothing in (stub, None, "", ...):
        assert Student("ana").check(key, nothing).code == "nothing-handed-in", nothing


@in_turn("key", DRAWN)
def test_the_numbers_of_the_page_are_named(key: str) -> None:
    page = TASKS[key].instance(None).data
    truths = [number.truth for number in page.numbers]
    answer = truths[0] if len(truths) == 1 else truths
    assert check(key, answer).passed
    found = {(feedback.passed, feedback.code) for feedback in (Student(name).check(key, answer) for name in CLASS)}
    assert (False, "numbers-of-the-page") in found
    assert found <= {(False, "numbers-of-the-page"), (True, "passed")}  # a number can be right for several sizes


def test_the_feedback_on_the_numbers_of_the_page_has_the_own_numbers() -> None:
    mine = Student("ana")
    feedback = mine.check("lab02.t2", 120)
    assert feedback.messages == (f"this is right for the numbers in the text, but yours are others: {mine('lab02.t2').prompt}",)
    assert mine.check("lab02.t2", 121).code == "wrong-value"
    assert mine.check("lab02.t2", "many").code == "not-a-number"


def test_an_answer_with_as_many_numbers_as_on_the_page_is_named() -> None:
    """Eight ranks on the page, another number for this student: the judge of the own numbers cannot even read the list."""
    page = [7, 0, 1, 2, 3, 4, 5, 6]
    assert check("lab04.t1", page).passed
    assert Student("s1234567").check("lab04.t1", page).code == "numbers-of-the-page"
    assert Student("s1234567").check("lab04.t1", page[1:]).code != "numbers-of-the-page"


def test_a_twisted_function_passes_for_its_student_alone() -> None:
    assert student_with("lab03.t3", "one-held").check("lab03.t3", peaks).passed
    assert not student_with("lab03.t3", "two-held").check("lab03.t3", peaks).passed
    assert not check("lab03.t3", peaks).passed


def test_a_kept_function_does_the_task_of_the_page(parts: Path) -> None:
    feedback = student_with("lab03.t3", "one-held").check("lab03.t3", peaks)
    assert "saved as" in feedback.messages[-1]
    kept = part("peaks", otherwise=None)
    assert kept.source == parts / "peaks.py"
    assert peaks(["0F0 0F1 0B0 0B1"]) == [3]
    assert kept(["0F0 0F1 0B0 0B1"]) == [2]
    assert check("lab03.t3", kept.function).passed


def test_a_function_that_has_failed_is_not_kept(parts: Path) -> None:
    student_with("lab03.t3", "two-held").check("lab03.t3", peaks)
    assert not parts.exists()


def test_the_feedback_on_a_twisted_build_ends_with_the_twist_and_an_example() -> None:
    feedback = student_with("lab03.t3", "two-held").check("lab03.t3", peaks)
    assert feedback.messages[-1].startswith("for example, peaks(")
    assert feedback.messages[-2].endswith("in your task, each device holds two more activations all the time, which no operation frees")


def test_a_student_is_written_as_the_code_that_makes_it() -> None:
    mine = Student(" Ana", course="spring's")
    again = eval(repr(mine), {"Student": Student})  # noqa: S307 - written by the library
    assert (again.name, again.course, again.seed("lab02.t2")) == ("ana", "spring's", mine.seed("lab02.t2"))
