"""Test the script that judges number tasks on pages: on thousands of answers it gives the code and the sentence of ``check``."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from hypothesis import settings
from number_texts import ASSETS, STRANGE, answer_in, as_text, near_misses, texts_of, verdicts
from profiles import QUICK
from test_tasks_answers import listed

from hybridlab.course.checking.answers import plain_values
from hybridlab.course.checking.expressions import filled, sentence_parts
from hybridlab.course.checking.on_page import form_of
from hybridlab.course.checking.questions import Question
from hybridlab.course.tasks import TASKS, check

NUMBER_TASKS = [key for key, known in TASKS.items() if known.kind == "number"]
Row = tuple[list[str], Any]  # the texts in the fields, and the answer that Python gets


def question_on_page(key: str) -> Question:
    data = TASKS[key].instance(None).data
    assert isinstance(data, Question)
    return data


def answers_with_one_wrong_number(question: Question, rng: np.random.Generator) -> Iterator[Any]:
    """Right answers, known mistakes and what lies beside them. All other numbers of an answer are right."""
    right = [np.asarray(number.truth).tolist() for number in question.numbers]
    for place, number in enumerate(question.numbers):
        for wrong in [number.truth, *(value for value, *_ in number.mistakes if not isinstance(value, str))]:
            values = np.asarray(wrong, dtype=float).tolist()
            for near in zip(*(near_misses(each, rng) for each in np.ravel(values).tolist()), strict=True):
                part: Any = [float(each) for each in near] if isinstance(values, list) else float(near[0])
                if isinstance(part, list) and rng.random() < 0.5:  # one number of the list is wrong
                    at = int(rng.integers(len(part)))
                    part = [*values[:at], part[at], *values[at + 1 :]]
                yield [*right[:place], part, *right[place + 1 :]] if len(right) > 1 else part


def drawn_answers(question: Question, rng: np.random.Generator) -> Iterator[Any]:
    """Answers of whole numbers in all places; lists of any length where the order does not matter."""
    for _ in range(100):
        parts: list[Any] = []
        for number in question.numbers:
            most = int(rng.choice([3, 20, 1000]))
            count = len(number.labels) if number.ordered else int(rng.integers(1, 7))
            drawn = rng.integers(-1, most, count).tolist()
            falling = sorted(drawn, reverse=True) if rng.random() < 0.5 else drawn
            parts.append(falling if np.ndim(number.truth) else falling[0])
        yield parts if len(parts) > 1 else parts[0]
    if len(question.numbers) > 1:
        yield [np.asarray(number.truth).tolist() for number in question.numbers][::-1]


def strange_texts(question: Question, rng: np.random.Generator) -> Iterator[Row]:
    """Each strange text in all fields, and in some of them; the other ones have a whole number, or now and then a strange text as well."""
    for_lists = [not number.ordered for number in question.numbers for _ in number.labels]
    for text, value in STRANGE:
        yield _with_lists([(text, value)] * len(for_lists), for_lists, question)
        for place in range(0, len(for_lists), THINNED):
            cells: list[tuple[str, Any]] = [("4", 4.0)] * len(for_lists)
            for at in {place, int(rng.integers(10 * len(for_lists)))} & set(range(len(for_lists))):
                cells[at] = (text, value) if at == place else STRANGE[int(rng.integers(len(STRANGE)))]
            yield _with_lists(cells, for_lists, question)


def _with_lists(cells: list[tuple[str, Any]], for_lists: list[bool], question: Question) -> Row:
    """The texts and their answer. A field for a list has one number here; a text with a comma or a space in it would be two."""
    cells = [
        ("4", 4.0) if many and len(text.replace(",", " ").split()) > 1 else (text, read)
        for many, (text, read) in zip(for_lists, cells, strict=True)
    ]
    values = [[read] if many and read is not None else read for many, (_, read) in zip(for_lists, cells, strict=True)]
    return [text for text, _ in cells], answer_in(question, values)


THINNED = 8 if settings().max_examples == QUICK else 1  # one in so many of the drawn answers is tried


def rows_of(key: str, thinned: int = THINNED) -> Iterator[Row]:
    question, rng = question_on_page(key), np.random.default_rng(0)
    for answer in islice((*answers_with_one_wrong_number(question, rng), *drawn_answers(question, rng)), None, None, thinned):
        texts = texts_of(question, answer)
        assert texts, answer
        yield texts, answer
    for name in ("RIGHT", "WRONG"):
        for task, answer, *_ in listed(name):
            plain = plain_values(answer) if task == key and not callable(answer) else None
            texts = texts_of(question, plain)
            if texts:
                yield texts, plain
    yield from strange_texts(question, rng)


def differing(key: str, rows: list[Row], said: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each answer on which the script and ``check`` differ, and for each mistake that no answer makes."""
    codes = set()
    for (texts, answer), verdict in zip(rows, said, strict=True):
        feedback = check(key, answer)
        codes.add(feedback.code)
        if (verdict["passed"], verdict["code"], verdict["sentence"]) != (feedback.passed, feedback.code, "\n".join(feedback.messages)):
            yield f"{texts}: {feedback} and on the page {verdict}"
    question = question_on_page(key)
    mistakes = [*question.mistakes, *(mistake for number in question.numbers for mistake in number.mistakes)]
    known = {code for _, code, _ in mistakes} | {number.code for number in question.numbers}
    yield from ({"passed", "nothing-handed-in", "not-a-number", *known} - codes)


@pytest.mark.needs("node")
@pytest.mark.parametrize("part", range(4))
def test_the_page_says_what_python_says(part: int, tmp_path: Path) -> None:
    rows = {key: list(rows_of(key)) for key in NUMBER_TASKS[part::4]}
    said = verdicts(tmp_path, [(form_of(key), [texts for texts, _ in asked]) for key, asked in rows.items()])
    off = {key: list(differing(key, asked, heard)) for (key, asked), heard in zip(rows.items(), said, strict=True)}
    assert not any(off.values()), {key: (len(told), told[:3]) for key, told in off.items() if told}


# a planted fault, and a task with an answer that shows it
FAULTS = [
    ("off(best.value) <= off(hit.value)", "off(best.value) > off(hit.value)", "lab05.t4"),  # the farthest mistake
    ("if (unit === null) return true", "return true", "lab03.t1"),  # rounded the wrong way
    ("Math.abs(each) > LARGEST", "false", "lab02.t2"),
    ("mistakeBehind(values, form.mistakes, form.names)) ||", "false) ||", "lab12.t2"),
    ("?? mistakeBehind(value, number.fewer, names)", "", "lab13.t2"),
    ("names.place = Math.max(place, 0)", "names.place = 0", "lab11.t2"),
]


@pytest.mark.slow
@pytest.mark.needs("node")
@in_turn("right, planted, key", FAULTS)
def test_a_fault_in_the_script_is_found(right: str, planted: str, key: str, tmp_path: Path) -> None:
    code = (ASSETS / "number_judge.js").read_text(encoding="utf-8")
    assert code.count(right) == 1
    scripts = tmp_path / "faulty"
    scripts.mkdir(exist_ok=True)
    (scripts / "number_judge.js").write_text(code.replace(right, planted), encoding="utf-8")
    rows = list(rows_of(key, thinned=1))
    (said,) = verdicts(tmp_path, [(form_of(key), [texts for texts, _ in rows])], scripts)
    assert any(verdict["sentence"] != "\n".join(check(key, answer).messages) for (_, answer), verdict in zip(rows, said, strict=True))


@pytest.mark.needs("node")
def test_numbers_are_divided_and_written_as_python_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ties = [0.5, 1.5, 2.5, 0.125, 0.375, 0.25, 0.75, 1234567.5, 1234566.5, 12345678.125, 12345678.375, 0.00048828125, 99999.5, 9.5]
    drawn = [float(sign * mantissa * 10.0**power) for power in range(-12, 15) for mantissa in rng.uniform(1, 10, 5) for sign in (1, -1)]
    short = [float(np.round(value, 3)) for value in drawn]
    edges = [0.0, -0.0, 1e15, -1e15, 999999.5, 9999999999.5, 1e-5, 0.0001, 0.00001234, 100000.0, 1e6, 0.05, 0.15]
    values = [*edges, *ties, *drawn, *short]
    sentences = [f"it is {{value:{form}}}" for form in ("g", ".10g", ".2g", ".0f", ".1f", ".4f", ",.0f", ",.1f")]
    sentences += [f"it is {{value {sign} {other}:.15g}}" for sign in ("//", "%") for other in ("3", "-3", "0.1", "-0.1")]
    plain = form_of("lab02.t2")
    number = {**plain["numbers"][0], "truth": 7e14, "mistakes": []}
    forms = [{**plain, "numbers": [{**number, "hint": sentence_parts(sentence)}]} for sentence in sentences]
    said = verdicts(tmp_path, [(form, [[as_text(value)] for value in values]) for form in forms])
    off = [
        (sentence, value, verdict["sentence"])
        for sentence, heard in zip(sentences, said, strict=True)
        for value, verdict in zip(values, heard, strict=True)
        if verdict["sentence"] != filled(sentence, {"value": value})
    ]
    assert not off, off[:5]


def test_each_field_has_a_label_of_its_own() -> None:
    for key in NUMBER_TASKS:
        labels = [field["label"] for number in form_of(key)["numbers"] for field in number["fields"]]
        assert len(set(labels)) == len(labels), key
        assert all(0 < len(label) <= 60 for label in labels), key
