"""Test that a lab says how long it takes, by the rule that the book states, and that it is not too long."""

import re
from pathlib import Path
from types import SimpleNamespace

import lab_time
import pytest
from lab_time import LabTime, minutes, time_of
from notebooks import LABS, Cell, cells_of

SENTENCE = re.compile(r"\bIt takes [^.]*\.")
START = Path(__file__).resolve().parents[2] / "book/start.md"


def faults(cells: tuple[Cell, ...]) -> list[str]:
    """Return a sentence for each fault in what a lab says about its length, and for a lab that is too long."""
    time = time_of(cells)
    said = SENTENCE.findall(cells[0].source.replace("\n", " "))
    found = [] if said == [time.sentence()] else [f"its first cell says {said}, not {time.sentence()!r}"]
    if minutes(time.core) > lab_time.LONGEST:
        found.append(f"it takes {minutes(time.core):.1f} minutes without its optional parts, more than {lab_time.LONGEST}")
    return found


def test_a_lab_says_how_long_it_takes_and_is_not_too_long() -> None:
    assert {path.name: found for path in sorted(LABS.glob("lab*.ipynb")) if (found := faults(cells_of(path)))} == {}


def text(source: str) -> Cell:
    return Cell("markdown", source, (), ())


def code(source: str, *tags: str, shows: tuple[str, ...] = ()) -> Cell:
    return Cell("code", source, tags, tuple({"output_type": "execute_result", "data": {"text/plain": [each]}} for each in shows))


SECTION = (
    text("# Lab 9: How long\n\nIt takes about 25\nminutes; the optional parts take another 20."),
    text("A [link](lab01_mesh.ipynb) and\n<details>\n<summary>Answer</summary>\n\nThis is folded.\n\n</details>\n| a | b |\n|---|---|"),
    code("bet", "bet", "remove-input", shows=("<Bet lab09.bytes>",)),
    code("x = 1  # one\n\n# a comment\nprint(x)", shows=("1", "2")),
    code("MeshView()", shows=("<MeshView: 16 sizes>",)),
    code("bet.reveal(3)", "hide-input", shows=("<Revealed lab09.bytes>",)),
    code("hidden", "hide-cell", shows=("3",)),
    text("### Task 1"),
    code('my_rank = ...\ncheck("lab01.t1", my_rank)', "task", shows=("not yet",)),
    text("#### Solution"),
    text("This is folded, too."),
    code('check("lab01.t1", 4)', "solution", shows=("passed",)),
    text("### Task 2"),
    code('def rank():\n    ...\n\ncheck("lab01.t2", rank)', "task", shows=("not yet",)),
    text("#### Solution"),
    code('# It is 4.\ndef rank():\n    return 4\n\ncheck("lab01.t2", rank)', "solution", shows=("passed",)),
    text("#### Answer"),
    code("1 + 1", shows=("2",)),
    text("### Optional: more"),
    code("3\n4", shows=("4",)),
    text("#### Task 3"),
    code('my_group = ...\ncheck("lab01.t3", my_group)', "task", shows=("not yet",)),
    text("##### Solution"),
    code('def ranks(K):\n    return K\nmy_group = ranks(5)\ncheck("lab01.t3", my_group)', "solution", shows=("passed",)),
    text("## The end"),
)


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"lab01.t1": "number", "lab01.t2": "build", "lab01.t3": "build"}
    monkeypatch.setattr(lab_time, "TASKS", {key: SimpleNamespace(kind=kind) for key, kind in kinds.items()})


@pytest.mark.usefixtures("kinds")
def test_what_a_student_sees_is_counted() -> None:
    assert time_of(SECTION) == LabTime(
        core={
            "words": 4 + 11 + 6 + 2 + 2 + 2,  # titles, the sentence, a link with its words, a summary, and two cells of a table
            "lines of code": 3 + 1,
            "outputs": 2 + 1,
            "bets": 1,
            "views": 1,
            "number tasks": 1,
            "build tasks": 1,
            "lines to build": 1,
        },
        optional={"words": 2 + 2, "lines of code": 2, "outputs": 1, "build tasks": 1, "lines to build": 3},
    )


@pytest.mark.usefixtures("kinds")
def test_the_minutes_are_those_of_the_rule() -> None:
    time = time_of(SECTION)
    assert minutes(time.core) == pytest.approx(27 / 130 + 0.4 + 1 + 1 + 5 + 4 + 9 + 2.5)
    assert minutes(time.optional) == pytest.approx(4 / 130 + 0.2 + 1 / 3 + 9 + 3 * 2.5)
    assert minutes({"written tasks": 2, "puzzle tasks": 1}) == 2 * 6 + 25


@pytest.mark.usefixtures("kinds")
def test_a_lab_with_another_number_or_none_or_too_long_is_found() -> None:
    first, *rest = SECTION
    said = "It takes about 25 minutes; the optional parts take another 20."
    assert faults(SECTION) == []
    for wrong in ("It takes about 15 minutes; the optional parts take another 20.", "It takes about 25 minutes.", "", said + " " + said):
        assert len(faults((text(f"# Lab 9: How long\n\n{wrong}"), *rest))) == 1
    assert "more than 90" in faults((first, *rest, text("word " * 130 * 70)))[-1]


def test_the_book_states_the_numbers_of_the_rule() -> None:
    section = START.read_text(encoding="utf-8").partition("## How long a lab takes")[2].partition("\n##")[0]
    task = lab_time.TASK
    assert [float(number) for number in re.findall(r"\d+(?:\.\d+)?", section)] == [
        lab_time.WORDS_A_MINUTE, lab_time.CODE_LINES_A_MINUTE, lab_time.OUTPUT_SECONDS, lab_time.BET, lab_time.VIEW,
        task["number"], task["written"], task["puzzle"], task["build"] - lab_time.OWN_CHANGE, lab_time.BUILD_LINE, lab_time.OWN_CHANGE,
        lab_time.ROUNDED_UP_TO, lab_time.LONGEST,
    ]  # fmt: skip
