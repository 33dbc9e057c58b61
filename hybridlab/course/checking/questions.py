"""Tasks whose answer is a number or a list of numbers. Right values, decimals, known mistakes and hints are data; one judge reads them."""

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

EXACT = 1e-9  # the share by which an answer may differ from a right value that needs no rounding
ROUNDED = 1e-12  # the largest distance from the right value with fewer decimals; it is only the error of a float


@dataclass(frozen=True)
class Number:
    """One number of an answer, or one list of numbers that is judged as a whole.

    Parameters
    ----------
    what : str
        What the number is, with its unit: ``"a makespan in ms"``. For a list, what each of its numbers is, without an article.
    truth : float or sequence of floats
        The right value. It comes from the library or from a closed form.
    hint : str
        The sentence for an answer that no known mistake explains.
    mistakes : sequence of (value, code, sentence)
        For each known mistake its wrong value, its code and its sentence. In place of the wrong value there may be a rule, an
        expression that is true for an answer with this mistake: ``"value < truth"``.
    given : mapping
        What the other names in rules and sentences stand for: numbers, texts, lists of them, and tables.
    label : str
        Words in front of each sentence about this number, such as ``"model b: "``, where an answer has several numbers.
    decimals : int
        How many decimals the task asks for. An answer is right if it differs from the right value by at most half a unit of the last
        decimal and both round to the same number. If the right value has no more decimals than that, the answer must equal it. An answer
        has a known mistake if it differs from the wrong value by at most half a unit.
    relative : float
        For an estimate: the share by which the answer may differ from the right value. Decimals then do not matter.
    whole : bool
        Whether the answer is a count, so that any other number is refused.
    most : int, optional
        The largest count that is accepted as an answer.
    example : str
        A number that could be an answer. It is shown to a student whose answer is not a number. By default it is whole if the task
        asks for no decimals.
    code : str
        The code that goes with the hint.
    ordered : bool
        Whether the order of a list matters. If it does not, the right value is sorted, and the answer is a list or a set of any length.
    fields : sequence of str
        The labels of the fields for the answer on the site. By default there is one, from ``what``, or one for each number of a list.

    Notes
    -----
    In rules and sentences ``value`` is the answer, and ``truth`` the right value. For a list in which the order matters, ``place`` is the
    place of its first wrong number. A sentence has expressions in braces: ``"not {value} ms"``, ``"half of it is {value / 2:.1f} ms"``.
    The module ``hybridlab.course.checking.expressions`` has the grammar. So everything about a number is data, and the site uses it, too.
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
        """Return the answer as a number, or as a list of as many numbers as the right value has; raise if it is anything else."""
        example = self.example or ("12.5" if self.decimals or self.relative else "17")
        if not self.ordered:
            return sorted(require_list(answer, self.what, example))
        if np.ndim(self.truth):
            return require_numbers(answer, len(np.asarray(self.truth)), self.what, example)
        if self.whole:
            return float(require_count(answer, self.what, example, most=self.most))
        return require_number(answer, self.what, example)

    def tolerance(self, wanted: Numbers) -> float:
        """Return the largest distance from ``wanted`` that counts as equal, by the decimals that the task asks for."""
        numbers: list[float] = [wanted] if isinstance(wanted, (int, float)) else np.ravel(wanted).tolist()
        exact = EXACT * max(1.0, *map(abs, numbers))  # a share of large numbers, and a distance for those near 0
        needs_rounding = not near(numbers, [round(number, self.decimals) for number in numbers], exact)
        return 0.5 * 10.0**-self.decimals + exact if needs_rounding else exact

    def meets(self, value: Numbers, wanted: Numbers) -> bool:
        """Whether ``value`` is ``wanted``, within the decimals or the share that the task allows."""
        return near(value, wanted, 0.0 if self.relative else self.tolerance(wanted), self.relative)

    def check(self, value: Numbers) -> Feedback | None:
        """Return the feedback on a wrong value, or None if it is right."""
        names = self.names(value)
        if self.meets(value, self.truth):
            return None if self._rounds_to_truth(value) else wrong("wrong-decimal", self.label + filled(self.near_miss, names))
        # a mistake explains more than a missing decimal, so it comes first
        known = mistake_behind(value, self.mistakes, self.meets, names)
        rounded = known or mistake_behind(value, self.too_few_decimals, lambda value, wanted: near(value, wanted, ROUNDED))
        code, sentence = rounded or (self.code, filled(self.hint, names))
        return wrong(code, self.label + sentence)

    def names(self, value: Numbers) -> dict[str, Any]:
        """Return what the names in rules and sentences stand for, if this is the answer."""
        names = {**self.given, "value": value, "truth": np.asarray(self.truth).tolist()}
        if not isinstance(value, (int, float)) and self.ordered:
            within = self.tolerance(self.truth)
            # a rule can ask for the first wrong place; 0 if there is none
            pairs = enumerate(zip(value, names["truth"], strict=True))
            names["place"] = next((place for place, (each, wanted) in pairs if not near(each, wanted, within)), 0)
        return names

    @property
    def needs_rounding(self) -> bool:
        """Whether the right value has more decimals than the task asks for."""
        return not self.relative and self.tolerance(self.truth) >= 0.5 * 10.0**-self.decimals

    def _rounds_to_truth(self, value: Numbers) -> bool:
        """Whether the answer and the right value round to the same numbers. A tie, such as 0.5, may be rounded in both directions."""
        # both can be rounded to each multiple of the unit that lies from lowest to highest
        half, unit = self.tolerance(self.truth), 10.0**-self.decimals
        highest, lowest = np.minimum(value, self.truth) + half, np.maximum(value, self.truth) - half
        return not self.needs_rounding or bool((np.floor(highest / unit) * unit >= lowest).all())

    @property
    def near_miss(self) -> str:
        """The sentence for an answer within half a unit of the last decimal that rounds to another number."""
        asked = counted(self.decimals, "decimal") if self.decimals else "a whole number"
        return f"{{value}} is close, but rounded to {asked} it is not right: compute with all digits, and round at the end"

    @property
    def too_few_decimals(self) -> list[Mistake]:
        """The known mistakes of an answer that is right, but rounded to fewer decimals than the task asks for."""
        asked = f"but the task asks for {counted(self.decimals, 'decimal')}"
        cuts = () if self.relative else range(self.decimals - 1, 0, -1)
        sentences = [f"{{value}} is right to {counted(cut, 'decimal')}, {asked}" for cut in cuts]
        return [(np.round(self.truth, cut).tolist(), "too-few-decimals", each) for cut, each in zip(cuts, sentences, strict=True)]

    @property
    def labels(self) -> list[str]:
        """The labels of the fields for the answer on the site."""
        if self.fields:
            return list(self.fields)
        what = self.what.split(" ", 1)[1] if self.what.startswith(("a ", "an ", "the ")) else self.what
        text, count = what[:1].upper() + what[1:], np.size(self.truth)
        return [text] if np.ndim(self.truth) == 0 else [f"{text}, {place} of {count}" for place in range(1, count + 1)]


@dataclass(frozen=True)
class Question:
    """One instance of a task whose answer is a number, or several.

    Parameters
    ----------
    prompt : str
        What to hand in, in one sentence.
    numbers : sequence of Number
        The numbers of the answer. With several of them the answer is a list, and each is judged on its own. Each can be a list itself.
    lesson : str
        The sentence for a right answer.
    mistakes : sequence of (values, code, sentence)
        Known mistakes of the answer as a whole, such as the right numbers in the wrong order. For lists in place of numbers, each is
        recognised by a rule, in which ``value`` is the list of all answers.
    given : mapping
        What the other names in these rules and sentences stand for.
    """

    prompt: str
    numbers: Sequence[Number]
    lesson: str
    mistakes: Sequence[Mistake] = ()
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_mistakes(self.mistakes, ["value", *self.given])

    def judge(self, answer: Any) -> Feedback:
        """Return the feedback on an answer. It names the first number that is wrong."""
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
        # a mistake of the whole answer, such as swapped numbers, explains more than the first wrong number
        mistake = mistake_behind(values, self.mistakes, lambda value, wanted: near(value, wanted, EXACT), self.given)
        return wrong(*mistake) if mistake else fault


def number_task(
    key: str, *, title: str, points: int = 1, draws: Mapping[str, Sequence[Any]] | None = None
) -> Callable[[Callable[..., Question]], Callable[..., Question]]:
    """Return a decorator that adds a task with a number for an answer.

    The decorated function returns the question for given sizes. Its defaults are the sizes in the text of the lab.

    Parameters
    ----------
    key, title, points
        The fields of :class:`~hybridlab.course.tasks.Task`.
    draws : mapping of str to sequence, optional
        For each argument of the function the values from which a seed draws one, so that each student can get other numbers. Without
        it all students get the numbers of the text.

    Examples
    --------
    >>> from hybridlab.course.tasks import TASKS, check
    >>> TASKS["lab02.t2"].instance(seed=7).prompt == TASKS["lab02.t2"].prompt
    False
    """

    def add(question: Callable[..., Question]) -> Callable[..., Question]:
        asked_with = cache(question)  # a task has few instances, and some search for their right value

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
