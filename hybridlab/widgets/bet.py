"""A bet: the reader answers a question before the lab shows the correct answer. A later view compares both answers."""

import math
import re
from html import escape
from numbers import Real
from typing import Any

import numpy as np
import traitlets

from hybridlab.checks import checked_text, known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.still import Pictured

LONGEST_QUESTION = 600  # characters
LONGEST_CHOICE = 100
LONGEST_UNIT = 20
MOST_CHOICES = 12
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # the name of a bet; the browser stores the answer under this name

Answer = str | int | float


class AnswerTrait(traitlets.TraitType[Any, Any]):
    """A trait that holds an answer to the question of its widget, or None. Other values raise :class:`HybridLabError`."""

    def validate(self, obj: Any, value: Any) -> Answer | None:
        """Return the checked answer, or None if there is no answer."""
        return None if value is None else answer_to(value, obj.choices, f"a bet on {obj.name}")


class BetView(Pictured):
    """The base class of :class:`Bet` and :class:`Revealed`, with the question and the reader's answer."""

    _esm = FromFiles(script_of, "bet.js")
    _css = FromFiles(style_sheet, "wager", files=("bet.css",))

    name = traitlets.Unicode(read_only=True).tag(sync=True)
    question = traitlets.Unicode(read_only=True).tag(sync=True)
    choices = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    unit = traitlets.Unicode(read_only=True).tag(sync=True)
    answer = AnswerTrait(None, allow_none=True).tag(sync=True)

    def __init__(self, **fixed: Any) -> None:
        # Only set_trait can set these traits, because they are read-only for the page and for Python.
        for name, value in fixed.items():
            self.set_trait(name, value)
        super().__init__()

    def _bet_text(self) -> str:
        return "no bet placed" if self.answer is None else f"bet {_answer_text(self.answer)}"


class Bet(BetView):
    """A question that the reader answers before the lab shows the correct answer. The answer is one of several choices, or a number.

    The trait ``answer`` is None until the reader places a bet. Then ``answer`` is the choice or the number. Python can observe and set this
    trait. :meth:`reveal` shows the reader's answer beside the correct answer.

    Parameters
    ----------
    name : str
        A unique name, such as "lab02.sooner". The browser stores the answer under this name, so reloading the page does not lose the
        answer.
    question : str
        One or several sentences, at most 600 characters.
    choices : list of str or None
        The 2 to 12 answers to choose from. None means that the answer is a number.
    unit : str
        The unit of the number, if any.

    Raises
    ------
    HybridLabError
        The question is empty, there is only one choice, two choices differ only in upper and lower case, or there are choices and a unit.

    Examples
    --------
    >>> bet = Bet("lab02.sooner", "Which of the two finishes sooner?", choices=("GPipe", "1F1B", "neither"))
    >>> bet
    <Bet lab02.sooner: GPipe, 1F1B or neither; no bet placed>
    >>> bet.answer = "1F1B"
    >>> bet.reveal("neither")
    <Revealed lab02.sooner: neither; bet 1F1B>
    """

    def __init__(self, name: str, question: str, choices: Any = None, *, unit: str = "") -> None:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            wanted = "1 to 64 letters, digits, dots, dashes or underscores, such as 'lab02.sooner'"
            raise HybridLabError(f"the name of a bet must have {wanted}, not {short_repr(name)}", "malformed-name")
        sentence = _one_line(question, "the question of a bet", LONGEST_QUESTION)
        answers = [] if choices is None else _choice_texts(choices)
        unit_text = _one_line(unit, "unit", LONGEST_UNIT, may_be_empty=True)
        if answers and unit_text:
            raise HybridLabError("a bet has choices, or a number with a unit, not both: leave one of them out", "conflicting-arguments")
        super().__init__(name=str(name), question=sentence, choices=answers, unit=unit_text)

    def reveal(self, truth: Any, why: str = "") -> "Revealed":
        """Return a view with the question, the reader's answer, the correct answer, and the difference between both.

        Parameters
        ----------
        truth : str or float
            The correct choice or number. The view does not round a number, so give a rounded number.
        why : str
            The reason, in a sentence or two.

        Raises
        ------
        HybridLabError
            The correct answer (``truth``) is not a possible answer to the question.
        """
        return Revealed(self, truth, why)

    def still(self) -> str:
        """Return the question and the choices as HTML. A bet that the reader has placed is left out."""
        if self.choices:
            return f"<p>{escape(self.question)}</p><ul>{''.join(f'<li>{escape(each)}</li>' for each in self.choices)}</ul>"
        return f"<p>{escape(self.question)}</p><p>The answer is a number{f' ({escape(self.unit)})' if self.unit else ''}.</p>"

    def __repr__(self) -> str:
        """Return the name, the choices and the answer. Stored notebooks contain this text, so it is the same in every run."""
        number = f"a number, {self.unit}" if self.unit else "a number"
        wanted = f"{', '.join(self.choices[:-1])} or {self.choices[-1]}" if self.choices else number
        return f"<Bet {self.name}: {wanted}; {self._bet_text()}>"


class Revealed(BetView):
    """A view of a bet with the reader's answer beside the correct answer, the result of :meth:`Bet.reveal`.

    The trait ``answer`` follows the answer of the bet.

    Parameters
    ----------
    bet : Bet
        The bet.
    truth : str or float
        The correct choice, or the correct number.
    why : str
        The reason, in a sentence or two.

    Raises
    ------
    HybridLabError
        The correct answer (``truth``) is not a possible answer to the question.
    """

    truth = traitlets.Any(read_only=True).tag(sync=True)
    why = traitlets.Unicode(read_only=True).tag(sync=True)

    def __init__(self, bet: Bet, truth: Any, why: str = "") -> None:
        if not isinstance(bet, Bet):
            raise HybridLabError(f"a look back needs a Bet, as in bet.reveal(27), not {short_repr(bet)}", "wrong-type")
        right = answer_to(truth, bet.choices, f"the truth about {bet.name}")
        reason = _one_line(why, "why", LONGEST_QUESTION, may_be_empty=True)
        super().__init__(
            name=bet.name, question=bet.question, choices=bet.choices, unit=bet.unit, answer=bet.answer, truth=right, why=reason
        )
        # The link updates this view when the reader changes the answer of the bet.
        traitlets.link((bet, "answer"), (self, "answer"))

    def still(self) -> str:
        """Return the question as HTML, with the correct answer in a fold."""
        answer = f"{escape(_answer_text(self.truth))} {escape(self.unit)}".strip()
        fold = f"<details><summary>Show the answer</summary><p>The answer: {answer}. {escape(self.why)}</p></details>"
        return f"<p>{escape(self.question)}</p>{fold}"

    def __repr__(self) -> str:
        """Return the name and both answers. Stored notebooks contain this text, so it is the same in every run."""
        return f"<Revealed {self.name}: {_answer_text(self.truth)}; {self._bet_text()}>"


def answer_to(value: Any, choices: list[str], subject: str) -> Answer:
    """Return a value if it is a possible answer: one of the choices, or a finite number if there are no choices.

    Parameters
    ----------
    value : object
        The answer to check.
    choices : list of str
        The possible answers. Empty if the question asks for a number.
    subject : str
        A name for the value; the message of an error begins with this name.

    Returns
    -------
    str, int or float
        A number without a fraction becomes an int.

    Raises
    ------
    HybridLabError
        If the value is not one of the choices (``unknown-name``), or not a finite number (``not-a-number``, ``not-finite``).

    Examples
    --------
    >>> answer_to(27.0, [], "a bet on lab03.microbatches")
    27
    >>> answer_to("gpipe", ["GPipe", "1F1B"], "a bet on lab02.sooner")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown choice 'gpipe': did you mean 'GPipe'? Known: GPipe, 1F1B
    """
    if choices:
        return known_name(value, choices, "choice")
    scalar = value.item() if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0 else value
    if isinstance(scalar, bool) or not isinstance(scalar, Real):  # bool first, because True is a number in Python
        raise HybridLabError(f"{subject} must be a number, not {short_repr(value)}", "not-a-number")
    try:
        number = float(scalar)
    except OverflowError:  # a whole number beyond the largest float
        number = math.inf
    if not math.isfinite(number):
        raise HybridLabError(f"{subject} must be a finite number, not {short_repr(value)}", "not-finite")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number  # up to 2**53, JavaScript has exact whole numbers


def _answer_text(answer: Answer) -> str:
    return answer if isinstance(answer, str) else f"{answer:.12g}"


def _choice_texts(choices: Any) -> list[str]:
    """Return the choices as a list of two or more texts. No two texts are equal apart from upper and lower case."""
    if not isinstance(choices, (list, tuple)):  # the order of a set differs from run to run
        raise HybridLabError(f'choices must be a list of answers, such as ["GPipe", "1F1B"], not {short_repr(choices)}', "not-a-list")
    texts = [_one_line(choice, "a choice", LONGEST_CHOICE) for choice in choices]
    if not 2 <= len(texts) <= MOST_CHOICES:
        hint = "without choices it asks for a number"
        raise HybridLabError(f"a bet has 2 to {MOST_CHOICES} choices, not {len(texts)}; {hint}", "wrong-length")
    seen: dict[str, str] = {}
    for text in texts:
        if text.lower() in seen:
            pair = f"{seen[text.lower()]!r} and {text!r}"
            raise HybridLabError(f"the choices {pair} are alike: a reader could not tell them apart", "duplicate-name")
        seen[text.lower()] = text
    return texts


def _one_line(value: Any, subject: str, longest: int, *, may_be_empty: bool = False) -> str:
    """Return a text as a single line, or raise an error if the text is empty, too long or not printable."""
    text = " ".join(checked_text(value, subject).split())  # line breaks of a long string in a notebook cell become spaces
    if not text and not may_be_empty:
        raise HybridLabError(f"{subject} is empty: write at least a word", "empty")
    if len(text) > longest:
        raise HybridLabError(f"{subject} has {len(text):,} characters: {longest} or fewer fit on a page", "too-long")
    if not text.isprintable():
        raise HybridLabError(f"{subject} has characters that cannot be printed: {short_repr(text)}", "not-printable")
    return text
