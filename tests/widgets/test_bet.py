"""Test that a bet accepts answers to its question and refuses all other values, and that its text is the same in every run."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, outcome, usual_or_junk
from notebooks import cells_of
from profiles import examples

from hybridlab.widgets import Bet, Revealed
from hybridlab.widgets.bet import LONGEST_CHOICE, answer_to

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = str(Bet._esm)
CHOICES = ("GPipe", "1F1B", "neither")


def of_choices(**changes: Any) -> Bet:
    arguments: dict[str, Any] = {"name": "lab02.sooner", "question": "Which ends sooner?", "choices": CHOICES} | changes
    return Bet(**arguments)


def of_a_number(**changes: Any) -> Bet:
    arguments: dict[str, Any] = {"name": "lab03.microbatches", "question": "How many are enough?", "unit": "microbatches"} | changes
    return Bet(**arguments)


def test_before_it_is_placed_a_bet_has_no_answer() -> None:
    assert of_choices().answer is None
    assert of_a_number().answer is None
    assert of_choices().reveal("neither").answer is None


@in_turn("placed", CHOICES)
def test_one_of_the_choices_can_be_placed(placed: str) -> None:
    bet = of_choices()
    bet.set_state({"answer": placed})  # a message from the page sets it in this way
    assert bet.answer == placed
    bet.answer = None
    assert bet.answer is None


@in_turn(
    "given, kept",
    [
        *[(27, 27), (27.0, 27), (-0.5, -0.5), (1e300, 1e300), (Fraction(1, 4), 0.25)],
        *[(np.int64(3), 3), (np.float32(0.5), 0.5), (np.array(2.0), 2)],
    ],
)
def test_any_finite_number_can_be_placed(given: Any, kept: float) -> None:
    bet = of_a_number()
    bet.answer = given
    assert bet.answer == kept
    assert type(bet.answer) is type(kept)
    assert json.loads(json.dumps(bet.get_state("answer"))) == {"answer": kept}


@in_turn(
    "bet, value, code, words",
    [
        (of_choices(), "gpipe", "unknown-name", ("'gpipe'", "'GPipe'", "1F1B, neither")),
        (of_choices(), 3, "unknown-name", ("choice 3",)),
        (of_choices(), "", "unknown-name", ("choice ''",)),
        (of_a_number(), "27", "not-a-number", ("lab03.microbatches", "'27'")),
        (of_a_number(), True, "not-a-number", ("True",)),
        (of_a_number(), [27], "not-a-number", ("[27]",)),
        (of_a_number(), 1j, "not-a-number", ("1j",)),
        (of_a_number(), math.nan, "not-finite", ("nan",)),
        (of_a_number(), -math.inf, "not-finite", ("-inf",)),
        (of_a_number(), 10**400, "not-finite", ("1000",)),
    ],
)
def test_another_answer_is_refused_and_changes_nothing(bet: Bet, value: Any, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        bet.answer = value
    assert bet.answer is None


@in_turn(
    "make, changes, code, word",
    [
        (of_choices, {"name": ""}, "malformed-name", "not ''"),
        (of_choices, {"name": "lab 02/sooner"}, "malformed-name", "'lab 02/sooner'"),
        (of_choices, {"name": "a" * 65}, "malformed-name", "64"),
        (of_choices, {"name": "lab02.sooner\n"}, "malformed-name", "name of a bet"),
        (of_choices, {"name": None}, "malformed-name", "None"),
        (of_choices, {"question": ""}, "empty", "question"),
        (of_choices, {"question": " \n "}, "empty", "question"),
        (of_choices, {"question": 4}, "not-text", "question of a bet must be a string, not 4"),
        (of_choices, {"question": "a" * 601}, "too-long", "601 characters: 600"),
        (of_choices, {"question": "\ud800?"}, "not-printable", "question"),
        (of_choices, {"choices": ()}, "wrong-length", "2 to 12 choices, not 0"),
        (of_choices, {"choices": ["yes"]}, "wrong-length", "2 to 12 choices, not 1"),
        (of_choices, {"choices": list("abcdefghijklm")}, "wrong-length", "13"),
        (of_choices, {"choices": "yes"}, "not-a-list", '["GPipe", "1F1B"], not \'yes\''),
        (of_choices, {"choices": {"yes", "no"}}, "not-a-list", "choices"),
        (of_choices, {"choices": ["1F1B", "neither", "1f1b "]}, "duplicate-name", "'1F1B' and '1f1b'"),
        (of_choices, {"choices": ["one", 2]}, "not-text", "a choice must be a string, not 2"),
        (of_choices, {"choices": ["one", ""]}, "empty", "a choice"),
        (of_choices, {"choices": ["one", "a" * 101]}, "too-long", "101"),
        (of_choices, {"unit": "ms"}, "conflicting-arguments", "unit"),
        (of_a_number, {"unit": 3}, "not-text", "unit must be a string, not 3"),
        (of_a_number, {"unit": "a" * 21}, "too-long", "20"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(make: Any, changes: dict[str, Any], code: str, word: str) -> None:
    with refusal(code, word):
        make(**changes)


@in_turn(
    "bet, arguments, code, word",
    [
        (of_choices(), ("Neither",), "unknown-name", "'neither'"),
        (of_choices(), (None,), "unknown-name", "None"),
        (of_a_number(), (None,), "not-a-number", "lab03.microbatches"),
        (of_a_number(), (math.nan,), "not-finite", "nan"),
        (of_a_number(), (27, 3), "not-text", "why"),
        (of_a_number(), (27, "a" * 601), "too-long", "600"),
    ],
)
def test_a_truth_that_the_bet_cannot_have_is_refused(bet: Bet, arguments: tuple[Any, ...], code: str, word: str) -> None:
    with refusal(code, word):
        bet.reveal(*arguments)


def test_a_look_back_is_at_a_bet() -> None:
    with refusal("wrong-type", "bet.reveal(27)", "'lab02.sooner'"):
        Revealed("lab02.sooner", "neither")  # type: ignore[arg-type]


def test_the_look_back_follows_the_bet_and_the_bet_follows_it() -> None:
    bet = of_a_number()
    back = bet.reveal(27)
    bet.answer = 10
    assert back.answer == 10
    back.set_state({"answer": 30})  # the page set it: its view that looks back got the new answer first
    assert bet.answer == 30
    assert bet.reveal(27).answer == 30


def test_observers_follow_the_answer() -> None:
    bet = of_choices()
    seen: list[Any] = []
    bet.observe(lambda change: seen.append(change["new"]), "answer")
    bet.set_state({"answer": "GPipe"})
    bet.set_state({"answer": "neither"})
    assert seen == ["GPipe", "neither"]


def test_the_question_stands_in_one_line_and_cannot_be_changed() -> None:
    bet = of_choices(question="Which of the two\n    ends sooner?")
    assert bet.question == "Which of the two ends sooner?"
    with pytest.raises(Exception, match="read-only"):
        bet.question = "another"


def test_the_text_says_the_kind_of_the_answer_and_the_answer() -> None:
    bet = Bet("a.b", "How many?", unit="ms")
    assert (repr(bet), repr(bet.reveal(2.5))) == ("<Bet a.b: a number, ms; no bet placed>", "<Revealed a.b: 2.5; no bet placed>")
    bet.answer = 3
    assert (repr(bet), repr(bet.reveal(2.5))) == ("<Bet a.b: a number, ms; bet 3>", "<Revealed a.b: 2.5; bet 3>")
    assert repr(Bet("a.b", "How many?")) == "<Bet a.b: a number; no bet placed>"


def test_the_stored_output_carries_that_text() -> None:
    for widget in (of_choices(), of_choices().reveal("neither", why="Both take 33 ms.")):
        bundle = widget._repr_mimebundle_()
        assert bundle is not None
        assert bundle[0]["text/plain"] == repr(widget)
        assert "application/vnd.jupyter.widget-view+json" in bundle[0]


@examples(150)
@given(
    name=usual_or_junk(["lab02.sooner"]),
    question=usual_or_junk(["Which?"]),
    choices=usual_or_junk([None, ["a", "b"]]),
    unit=usual_or_junk(["", "ms"]),
)
def test_junk_is_refused_or_asked(name: Any, question: Any, choices: Any, unit: Any) -> None:
    bet = outcome(Bet, name, question, choices, unit=unit)
    assert bet is None or json.dumps(bet.get_state(["name", "question", "choices", "unit"]), allow_nan=False).encode()


@examples(150)
@given(value=usual_or_junk(["GPipe", 27]), why=usual_or_junk(["", "So."]), numeric=st.booleans())
def test_junk_is_no_truth_and_no_answer(value: Any, why: Any, numeric: bool) -> None:
    bet = of_a_number() if numeric else of_choices()
    back = outcome(bet.reveal, value, why)
    assert back is None or repr(back).endswith("no bet placed>")
    outcome(setattr, bet, "answer", value)
    json.dumps(bet.get_state("answer"), allow_nan=False)


@examples(100)
@given(junk)
def test_a_number_is_finite_and_plain(value: Any) -> None:
    number = outcome(answer_to, value, [], "a bet")
    assert number is None or (type(number) in (int, float) and math.isfinite(number))


def test_script_and_classes_name_the_same_traits() -> None:
    asked = set(re.findall(r'model\.get\("(\w+)"\)', SCRIPT))
    base = set(Bet.__mro__[2].class_traits(sync=True))  # traits that every widget has
    own = {name for made in (Bet, Revealed) for name in made.class_traits(sync=True)} - base
    assert asked == own
    assert set(re.findall(r'model\.set\("(\w+)"', SCRIPT)) == {"answer"}
    assert "truth" not in Bet.class_traits(sync=True)  # the script recognises a bet by this trait


def test_the_page_keeps_every_answer_that_there_can_be() -> None:
    longest = re.search(r"const LONGEST = (\d+);", SCRIPT)
    assert longest
    assert len(json.dumps("\U0001f600" * LONGEST_CHOICE, ensure_ascii=False)) <= int(longest[1])
    assert len(json.dumps('"' * LONGEST_CHOICE)) <= int(longest[1])


@in_turn("path", sorted((ROOT / "labs").glob("*.ipynb")))
def test_every_lab_asks_a_bet_and_looks_back_on_each(path: Path) -> None:
    cells = [cell for cell in cells_of(path) if cell.kind == "code"]
    texts = [(cell, text) for cell in cells for text in cell.results()]
    bets = [(cell, re.match(r"<Bet ([\w.-]+): .*; no bet placed>", text)) for cell, text in texts]
    asked = [(cell, match[1]) for cell, match in bets if match]
    revealed = [match[1] for _, text in texts if (match := re.match(r"<Revealed ([\w.-]+): .*; no bet placed>", text))]
    assert revealed == [name for _, name in asked] != []
    assert len(set(revealed)) == len(revealed)
    assert all(name.startswith(path.stem[:5] + ".") for name in revealed)
    assert [cell for cell in cells if "bet" in cell.tags] == [cell for cell, _ in asked]
