"""Number tasks: the answer is a number or a list of numbers.

Each number task is data: right values, numbers of decimals, known mistakes and hints. All number tasks have the same judge, which reads
these data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.course.checking.answers import (
    Numbers,
    near,
    require_count,
    require_list,
    require_number,
    require_numbers,
    require_parts,
)
from hybridlab.course.checking.checking import Feedback, Instance, Task, add_task, right, wrong
from hybridlab.course.checking.expressions import Mistake, filled, mistake_behind, require_mistakes, require_sentence

EXACT = 1e-9  # the largest relative difference between an answer and a right value that needs no rounding
ROUNDED = 1e-12  # the largest difference between an answer with too few decimals and the rounded right value; it allows float errors only


@dataclass(frozen=True)
class Number:
    """One number of an answer, or one list of numbers that is judged as a whole.

    Parameters
    ----------
    what : str
        What the number is, with its unit: ``"a makespan in ms"``. For a list, what each of its numbers is, without an article.
    truth : float or sequence of floats
        The right value. The library or a closed form computes it.
    hint : str
        The sentence for an answer that no known mistake explains.
    mistakes : sequence of (value, code, sentence)
        For each known mistake its wrong value, its code and its sentence. A rule can replace the wrong value: an expression such as
        ``"value < truth"`` that is true for an answer with this mistake.
    given : mapping
        The values of the other names in rules and sentences: numbers, texts, lists of these, and tables.
    label : str
        The words in front of each sentence about this number, such as ``"model b: "``, if an answer has several numbers.
    decimals : int
        The number of decimals that the task asks for. An answer is right if it differs from the right value by at most half a unit of the
        last decimal, and if both round to the same number. If the right value has no more decimals than the task asks for, the answer
        must equal the right value. An answer has a known mistake if it differs from the wrong value by at most half a unit.
    relative : float
        For an estimate: the largest relative difference between the answer and the right value. Decimals then do not matter.
    whole : bool
        Whether the answer is a count. Then any number that is not whole, or is below 1, is an error.
    most : int, optional
        The largest count that is accepted as an answer.
    example : str
        A number that could be an answer. The error shows this number to a student whose answer is not a number. The default is a whole
        number if the task asks for no decimals.
    code : str
        The code of the feedback whose sentence is the hint.
    ordered : bool
        Whether the order of a list matters. If it does not, ``truth`` must be sorted, and the answer is a list or a set of any length.
    fields : sequence of str
        The labels of the input fields on the site. By default they come from ``what``: one label, or one for each number of a list.

    Notes
    -----
    In rules and sentences, ``value`` is the answer and ``truth`` is the right value. For a list in which the order matters, ``place`` is
    the index of the first wrong number. A sentence can have expressions in braces: ``"not {value} ms"``, ``"this is {value / 2:.1f} ms"``.
    The module ``hybridlab.course.checking.expressions`` describes their grammar. Rules and sentences are texts, not functions, because
    the script on the site evaluates the same texts.
    """

    what: str
    truth: Numbers
    hint: str
    mistakes: Sequence[Mistake] = ()
    label: str = ""
    decimals: int = 0
    relative: float = 0.0
    whole: bool = False
    most: int | None = None
    example: str = ""
    code: str = "wrong-value"
    ordered: bool = True
    given: Mapping[str, Any] = field(default_factory=dict)
    fields: Sequence[str] = ()

    def __post_init__(self) -> None:
        known = ["value", "truth", "place", *self.given]
        require_mistakes(self.mistakes, known)
        require_sentence(self.hint, known)

    def read(self, answer: Any) -> Numbers:
        """Return the answer as a number or as a list of numbers. Raise an error if its form differs from that of ``truth``."""
        example = self.example or ("12.5" if self.decimals or self.relative else "17")
        if not self.ordered:
            return sorted(require_list(answer, self.what, example))
        if np.ndim(self.truth):
            return require_numbers(answer, len(np.asarray(self.truth)), self.what, example)
        if self.whole:
            return float(require_count(answer, self.what, example, most=self.most))
        return require_number(answer, self.what, example)

    def tolerance(self, wanted: Numbers) -> float:
        """Return the largest distance from ``wanted`` at which an answer counts as equal, for the decimals that the task asks for."""
        numbers: list[float] = [wanted] if isinstance(wanted, (int, float)) else np.ravel(wanted).tolist()
        exact = EXACT * max(1.0, *map(abs, numbers))  # relative to large numbers; absolute for numbers below 1
        needs_rounding = not near(numbers, [round(number, self.decimals) for number in numbers], exact)
        return 0.5 * 10.0**-self.decimals + exact if needs_rounding else exact

    def meets(self, value: Numbers, wanted: Numbers) -> bool:
        """Return whether ``value`` equals ``wanted`` up to the rounding or the relative difference that the task allows."""
        return near(value, wanted, 0.0 if self.relative else self.tolerance(wanted), self.relative)

    def check(self, value: Numbers) -> Feedback | None:
        """Return the feedback on a value if it is wrong; None if it is right."""
        names = self.names(value)
        if self.meets(value, self.truth):
            return None if self._rounds_to_truth(value) else wrong("wrong-decimal", self.label + filled(self.near_miss, names))
        # known mistakes are tried before too few decimals, because a sentence about a mistake explains more
        known = mistake_behind(value, self.mistakes, self.meets, names)
        rounded = known or mistake_behind(value, self.too_few_decimals, lambda value, wanted: near(value, wanted, ROUNDED))
        code, sentence = rounded or (self.code, filled(self.hint, names))
        return wrong(code, self.label + sentence)

    def names(self, value: Numbers) -> dict[str, Any]:
        """Return the values of the names in rules and sentences, for an answer with this value."""
        names = {**self.given, "value": value, "truth": np.asarray(self.truth).tolist()}
        if not isinstance(value, (int, float)) and self.ordered:
            within = self.tolerance(self.truth)
            # the index of the first wrong number, which rules can use; 0 if no number is wrong
            pairs = enumerate(zip(value, names["truth"], strict=True))
            names["place"] = next((place for place, (each, wanted) in pairs if not near(each, wanted, within)), 0)
        return names

    @property
    def needs_rounding(self) -> bool:
        """Whether the right value has more decimals than the task asks for."""
        return not self.relative and self.tolerance(self.truth) >= 0.5 * 10.0**-self.decimals

    def _rounds_to_truth(self, value: Numbers) -> bool:
        """Return whether the answer and the right value round to the same numbers. A tie, such as 0.5, may be rounded up or down."""
        # the two values can round to the same number if a multiple of the unit lies between lowest and highest
        half, unit = self.tolerance(self.truth), 10.0**-self.decimals
        highest, lowest = np.minimum(value, self.truth) + half, np.maximum(value, self.truth) - half
        return not self.needs_rounding or bool((np.floor(highest / unit) * unit >= lowest).all())

    @property
    def near_miss(self) -> str:
        """The sentence for an answer that is at most half a unit of the last decimal away, but does not round to the right number."""
        asked = counted(self.decimals, "decimal") if self.decimals else "a whole number"
        return f"{{value}} is close, but rounded to {asked} it is not right: compute with all digits, and round at the end"

    @property
    def too_few_decimals(self) -> list[Mistake]:
        """The known mistakes of an answer with too few decimals: one mistake for each number of decimals from 1 that is too small."""
        asked = f"but the task asks for {counted(self.decimals, 'decimal')}"
        cuts = () if self.relative else range(self.decimals - 1, 0, -1)
        sentences = [f"{{value}} is right to {counted(cut, 'decimal')}, {asked}" for cut in cuts]
        return [(np.round(self.truth, cut).tolist(), "too-few-decimals", each) for cut, each in zip(cuts, sentences, strict=True)]

    @property
    def labels(self) -> list[str]:
        """The labels of the input fields on the site."""
        if self.fields:
            return list(self.fields)
        what = self.what.split(" ", 1)[1] if self.what.startswith(("a ", "an ", "the ")) else self.what
        text, count = what[:1].upper() + what[1:], np.size(self.truth)
        return [text] if np.ndim(self.truth) == 0 else [f"{text}, {place} of {count}" for place in range(1, count + 1)]


@dataclass(frozen=True)
class Question:
    """One instance of a number task: a prompt, the right numbers and the known mistakes.

    Parameters
    ----------
    prompt : str
        What to hand in, in one sentence.
    numbers : sequence of Number
        The numbers of the answer. If there are several, the answer is a list, and each item is judged on its own. An item can be a list.
    lesson : str
        The sentence for a right answer.
    mistakes : sequence of (values, code, sentence)
        Known mistakes of the answer as a whole, such as the right numbers in the wrong order. If items of the answer are lists, each of
        these mistakes must have a rule in place of values. In a rule, ``value`` is the list of all items.
    given : mapping
        The values of the other names in these rules and sentences.
    """

    prompt: str
    numbers: Sequence[Number]
    lesson: str
    mistakes: Sequence[Mistake] = ()
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_mistakes(self.mistakes, ["value", *self.given])

    def judge(self, answer: Any) -> Feedback:
        """Return the feedback on an answer. It is about the first wrong number, or about a known mistake of the answer as a whole."""
        first = self.numbers[0]
        if len(self.numbers) == 1:
            return first.check(first.read(answer)) or right(self.lesson)
        parts: list[Any]
        if any(np.ndim(number.truth) for number in self.numbers):
            parts = require_parts(answer, len(self.numbers), f"{len(self.numbers)} lists, each with each {first.what}")
        else:
            names = [number.what for number in self.numbers]
            usual = "12.5" if any(number.decimals or number.relative for number in self.numbers) else "17"
            example = first.example or usual
            parts = require_numbers(answer, len(names), " or the ".join(dict.fromkeys(names)), example, names)
        values: list[Any] = [number.read(part) for number, part in zip(self.numbers, parts, strict=True)]
        faults = [number.check(value) for number, value in zip(self.numbers, values, strict=True)]
        fault = next((fault for fault in faults if fault), None)
        if fault is None:
            return right(self.lesson)
        # a sentence about the whole answer, such as "you have swapped the numbers", explains more than one about its first wrong number
        mistake = mistake_behind(values, self.mistakes, lambda value, wanted: near(value, wanted, EXACT), self.given)
        return wrong(*mistake) if mistake else fault


def number_task(
    key: str, *, title: str, points: int = 1, draws: Mapping[str, Sequence[Any]] | None = None
) -> Callable[[Callable[..., Question]], Callable[..., Question]]:
    """Return a decorator that adds a number task.

    The decorated function returns the question for given sizes. The defaults of its arguments are the sizes in the lab's notebook.

    Parameters
    ----------
    key, title, points
        The fields of :class:`~hybridlab.course.tasks.Task`.
    draws : mapping of str to sequence, optional
        For each argument of the function, the values from which a seed draws one. So each student can get other numbers. Without
        ``draws``, all students get the numbers in the lab's notebook.

    Examples
    --------
    >>> from hybridlab.course.tasks import TASKS, check
    >>> TASKS["lab02.t2"].instance(seed=7).prompt == TASKS["lab02.t2"].prompt
    False
    """

    def add(question: Callable[..., Question]) -> Callable[..., Question]:
        asked_with = cache(question)  # to compute a right value can take long, and a task has few instances

        def instance(seed: int | None) -> Instance:
            drawn = {}
            if seed is not None:
                # one generator for all arguments, in the order of ``draws``: a seed always gives the same sizes
                rng = np.random.default_rng(seed)
                drawn = {name: values[int(rng.integers(len(values)))] for name, values in (draws or {}).items()}
            asked = asked_with(**drawn)
            return Instance(asked.prompt, asked.judge, asked)

        add_task(Task(key, title, points, "number", instance))
        return question

    return add
