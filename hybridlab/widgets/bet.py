"""The bet: a question that is asked before its answer is seen, and the look back that puts the two side by side."""

import math
import re
from numbers import Real
from typing import Any

import anywidget
import numpy as np
import traitlets

from hybridlab.checks import checked_text, known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.view import style_of

LONGEST_QUESTION = 600  # characters
LONGEST_CHOICE = 100
LONGEST_UNIT = 20
MOST_CHOICES = 12
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # the browser keeps the answer under it

Answer = str | int | float


class Placed(traitlets.TraitType[Any, Any]):
    """A trait that takes an answer to the widget's question, or None, and refuses the rest in this library's words."""

    def validate(self, obj: Any, value: Any) -> Answer | None:
        return None if value is None else answer_to(value, obj.choices, f"a bet on {obj.name}")


class Asked(anywidget.AnyWidget):
    """What a bet and the look back at it share: the question, and the answer that was placed."""

    _esm = script_of("bet.js")
    _css = style_of("bet", "revealed", sheets=("bet.css",))

    name = traitlets.Unicode(read_only=True).tag(sync=True)
    question = traitlets.Unicode(read_only=True).tag(sync=True)
    choices = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    unit = traitlets.Unicode(read_only=True).tag(sync=True)
    answer = Placed(None, allow_none=True).tag(sync=True)

    def __init__(self, **fixed: Any) -> None:
        for name, value in fixed.items():
            self.set_trait(name, value)
        super().__init__()

    def _placed(self) -> str:
        return "no bet placed" if self.answer is None else f"bet {_written(self.answer)}"


class Bet(Asked):
    """A question to answer before its answer is seen: one of several ``choices``, or a number (in ``unit``, if it has one).

    ``name`` tells the bet from all others, such as "lab02.sooner": the reader's browser keeps the answer under it, also
    across a reload. ``answer`` is None until a bet is placed, then the choice, or the number; it can be observed and set.
    :meth:`reveal` shows it beside the truth.

    Raises :class:`HybridLabError` for an empty question, fewer than two choices or two alike, and an answer that is none of them.

    >>> bet = Bet("lab02.sooner", "Which of the two finishes sooner?", choices=("GPipe", "1F1B", "neither"))
    >>> bet
    <Bet lab02.sooner: GPipe, 1F1B or neither; no bet placed>
    >>> bet.answer = "1F1B"
    >>> bet.reveal("neither")
    <Revealed lab02.sooner: neither; bet 1F1B>
    """

    def __init__(self, name: str, question: str, choices: Any = None, *, unit: str = "") -> None:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            wanted = "letters, digits, dots, dashes or underscores, 64 at most, such as 'lab02.sooner'"
            raise HybridLabError(f"the name of a bet is made of {wanted}, not {short_repr(name)}")
        asked = _text(question, "the question of a bet", LONGEST_QUESTION)
        answers = [] if choices is None else _choices(choices)
        measured_in = _text(unit, "unit", LONGEST_UNIT, may_be_empty=True)
        if answers and measured_in:
            raise HybridLabError("a bet has choices, or a number with a unit, not both: leave one of them out")
        super().__init__(name=str(name), question=asked, choices=answers, unit=measured_in)

    def reveal(self, truth: Any, why: str = "") -> "Revealed":
        """Return the look back: the question, the bet that was placed, ``truth`` beside it, and how far apart the two are.

        ``truth`` is one of the choices, or a number, rounded as it is to be shown. ``why`` is the reason, in a sentence or two.
        """
        return Revealed(self, truth, why)

    def __repr__(self) -> str:
        """Return the same text for the same question and answer, whatever the run."""
        a_number = f"a number, {self.unit}" if self.unit else "a number"
        wanted = f"{', '.join(self.choices[:-1])} or {self.choices[-1]}" if self.choices else a_number
        return f"<Bet {self.name}: {wanted}; {self._placed()}>"


class Revealed(Asked):
    """The look back at a bet, as :meth:`Bet.reveal` makes it: the answer that was placed beside ``truth``, and ``why``.

    ``answer`` follows that of the bet. Raises :class:`HybridLabError` for a truth that the bet cannot have.
    """

    truth = traitlets.Any(read_only=True).tag(sync=True)
    why = traitlets.Unicode(read_only=True).tag(sync=True)

    def __init__(self, bet: Bet, truth: Any, why: str = "") -> None:
        if not isinstance(bet, Bet):
            raise HybridLabError(f"a look back is at a bet, such as bet.reveal(27), not at {short_repr(bet)}")
        answer = answer_to(truth, bet.choices, f"the truth about {bet.name}")
        reason = _text(why, "why", LONGEST_QUESTION, may_be_empty=True)
        super().__init__(
            name=bet.name, question=bet.question, choices=bet.choices, unit=bet.unit, answer=bet.answer, truth=answer, why=reason
        )
        traitlets.link((bet, "answer"), (self, "answer"))

    def __repr__(self) -> str:
        """Return the same text for the same question, truth and answer, whatever the run."""
        return f"<Revealed {self.name}: {_written(self.truth)}; {self._placed()}>"


def answer_to(value: Any, choices: list[str], what: str) -> Answer:
    """Return ``value`` as one of the choices, or, where there are none, as a finite number; or refuse it as ``what``.

    >>> answer_to(27.0, [], "a bet on lab03.microbatches")
    27
    >>> answer_to("gpipe", ["GPipe", "1F1B"], "a bet on lab02.sooner")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown choice 'gpipe': did you mean 'GPipe'? Known: GPipe, 1F1B
    """
    if choices:
        return known_name(value, choices, "choice")
    one = value.item() if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0 else value
    if isinstance(one, bool) or not isinstance(one, Real):
        raise HybridLabError(f"{what} must be a number, not {short_repr(value)}")
    try:
        number = float(one)
    except OverflowError:  # a whole number that is too large
        number = math.inf
    if not math.isfinite(number):
        raise HybridLabError(f"{what} must be a finite number, not {short_repr(value)}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _written(answer: Answer) -> str:
    return answer if isinstance(answer, str) else f"{answer:.12g}"


def _choices(choices: Any) -> list[str]:
    """Return the choices as a list: two or more, each another text."""
    if not isinstance(choices, (list, tuple)):  # the order of a set differs from run to run
        raise HybridLabError(f'choices are a list of answers, such as ["GPipe", "1F1B"], not {short_repr(choices)}')
    texts = [_text(choice, "a choice", LONGEST_CHOICE) for choice in choices]
    if not 2 <= len(texts) <= MOST_CHOICES:
        raise HybridLabError(f"a bet has 2 to {MOST_CHOICES} choices, not {len(texts)}; without choices it asks for a number")
    seen: dict[str, str] = {}
    for text in texts:
        if text.lower() in seen:
            raise HybridLabError(f"the choices {seen[text.lower()]!r} and {text!r} are alike: a reader could not tell them apart")
        seen[text.lower()] = text
    return texts


def _text(value: Any, what: str, longest: int, *, may_be_empty: bool = False) -> str:
    """Return the text in one line; refuse what is none, empty, too long, or cannot be printed."""
    text = " ".join(checked_text(value, what).split())
    if not text and not may_be_empty:
        raise HybridLabError(f"{what} is empty: write at least a word")
    if len(text) > longest:
        raise HybridLabError(f"{what} has {len(text):,} characters: {longest} at most fit on the page")
    if not text.isprintable():
        raise HybridLabError(f"{what} has characters that cannot be printed: {short_repr(text)}")
    return text
