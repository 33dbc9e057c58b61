"""Tasks whose answer is a number or a list of numbers: the right value, decimals, known mistakes and a hint as data, and one judge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.course.tasks.answers import (
    Mistake,
    Numbers,
    filled_in,
    mistake_behind,
    near,
    require_count,
    require_list,
    require_number,
    require_numbers,
    require_parts,
)
from hybridlab.course.tasks.checking import Feedback, Instance, Task, add_task, right, wrong

EXACT = 1e-9  # a share: how far an answer may be from a right value that needs no rounding


@dataclass(frozen=True)
class Number:
    """One number of an answer, or one list of numbers that is judged as a whole.

    Parameters
    ----------
    what : str
        What the number is, with its unit: ``"a makespan in ms"``. For a list, what each of its numbers is, without an article.
    truth : float or sequence of floats
        The right value. It comes from the library or from a closed form.
    hint : str or callable
        The sentence for an answer that no known mistake explains. ``{value}`` in it stands for the answer; a callable gets the answer.
    mistakes : sequence of (value, code, sentence)
        For each known mistake its wrong value, its code and its sentence. In place of the wrong value there may be a function that
        says whether an answer has this mistake; in place of the sentence a function of the answer that returns the sentence.
    label : str
        Words in front of each sentence about this number, such as ``"model b: "``, where an answer has several numbers.
    decimals : int
        How many decimals the task asks for. An answer is right if it differs from the right value by at most half a unit of the last
        decimal and both round to the same number. If the right value has no more decimals than that, the answer must equal it. Wrong
        values of mistakes are met within half a unit.
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
    """

    what: str
    truth: Numbers
    hint: str | Callable[[Any], str]
    mistakes: Sequence[Mistake] = ()
    label: str = ""
    decimals: int = 0
    relative: float = 0.0
    whole: bool = False
    most: int | None = None
    example: str = ""
    code: str = "wrong-value"
    ordered: bool = True

    def read(self, answer: Any) -> Numbers:
        """Return the answer as a number, or as a list of as many numbers as the right value has; raise if it is anything else."""
        example = self.example or ("12.5" if self.decimals or self.relative else "17")
        if not self.ordered:
            return sorted(require_list(answer, self.what, example))
        if np.ndim(self.truth):
            return require_numbers(answer, len(np.asarray(self.truth)), self.what, example)
        if self.whole:
            return require_count(answer, self.what, example, most=self.most)
        return require_number(answer, self.what, example)

    def tolerance(self, wanted: Numbers) -> float:
        """Return the largest distance from ``wanted`` that counts as equal, by the decimals that the task asks for."""
        numbers: list[float] = [wanted] if isinstance(wanted, (int, float)) else np.ravel(wanted).tolist()
        exact = EXACT * max(1.0, *map(abs, numbers))
        needs_rounding = not near(numbers, [round(number, self.decimals) for number in numbers], exact)
        return 0.5 * 10.0**-self.decimals + exact if needs_rounding else exact

    def meets(self, value: Numbers, wanted: Numbers) -> bool:
        """Whether ``value`` is ``wanted``, within the decimals or the share that the task allows."""
        return near(value, wanted, 0.0 if self.relative else self.tolerance(wanted), self.relative)

    def judged(self, value: Numbers) -> Feedback | None:
        """Return the feedback on a wrong value, or None if it is right."""
        if self.meets(value, self.truth):
            return None if self.relative or self._rounds_to_truth(value) else wrong("wrong-decimal", self.label + self._near_miss(value))
        mistake = mistake_behind(value, self.mistakes, self.meets) or self._too_few_decimals(value)
        code, sentence = mistake or (self.code, filled_in(self.hint, value))
        return wrong(code, self.label + sentence)

    def _rounds_to_truth(self, value: Numbers) -> bool:
        """Whether some numbers with the decimals of the task are nearest to both the answer and the right value; ties have two nearest."""
        half, unit = self.tolerance(self.truth), 10.0**-self.decimals
        highest, lowest = np.minimum(value, self.truth) + half, np.maximum(value, self.truth) - half
        return half < unit / 2 or bool((np.floor(highest / unit) * unit >= lowest).all())

    def _near_miss(self, value: Numbers) -> str:
        """Return the sentence for an answer within half a unit of the last decimal that rounds to another number."""
        asked = counted(self.decimals, "decimal") if self.decimals else "a whole number"
        told = f"{{value}} is close, but rounded to {asked} it is not right: compute with all digits, and round at the end"
        return filled_in(told, value)

    def _too_few_decimals(self, value: Numbers) -> tuple[str, str] | None:
        """Return the code and the sentence for an answer that is right, but rounded to fewer decimals than the task asks for; else None."""
        if self.relative:
            return None
        for cut in range(self.decimals - 1, 0, -1):
            if near(value, np.round(value, cut).tolist(), 1e-12) and near(value, np.round(self.truth, cut).tolist(), 1e-12):
                asked = f"the task asks for {counted(self.decimals, 'decimal')}"
                return "too-few-decimals", filled_in(f"{{value}} is right to {counted(cut, 'decimal')}, but {asked}", value)
        return None


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
        recognised by a function.
    """

    prompt: str
    numbers: Sequence[Number]
    lesson: str
    mistakes: Sequence[Mistake] = ()

    def judge(self, answer: Any) -> Feedback:
        """Return the feedback on an answer. It names the first number that is wrong."""
        first = self.numbers[0]
        if len(self.numbers) == 1:
            return first.judged(first.read(answer)) or right(self.lesson)
        parts: list[Any]
        if any(np.ndim(number.truth) for number in self.numbers):
            parts = require_parts(answer, len(self.numbers), f"{len(self.numbers)} lists, each with each {first.what}")
        else:
            names = [number.what for number in self.numbers]
            example = "12.5" if any(number.decimals or number.relative for number in self.numbers) else "17"
            parts = require_numbers(answer, len(names), " or the ".join(dict.fromkeys(names)), example, names)
        values: list[Any] = [number.read(part) for number, part in zip(self.numbers, parts, strict=True)]
        faults = [number.judged(value) for number, value in zip(self.numbers, values, strict=True)]
        fault = next((fault for fault in faults if fault), None)
        if fault is None:
            return right(self.lesson)
        mistake = mistake_behind(values, self.mistakes, lambda value, wanted: near(value, wanted, EXACT))
        return wrong(*mistake) if mistake else fault


def number_task(
    key: str, *, title: str, points: int = 1, draws: Mapping[str, Sequence[Any]] | None = None
) -> Callable[[Callable[..., Question]], Callable[..., Question]]:
    """Return a decorator that adds a task with a number for an answer.

    The decorated function returns the question for given sizes. Its defaults are the sizes on the page.

    Parameters
    ----------
    key, title, points
        The fields of :class:`~hybridlab.course.tasks.Task`.
    draws : mapping of str to sequence, optional
        For each argument of the function the values from which a seed draws one, so that each student can get other numbers. Without
        it all students get the numbers on the page.

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
                rng = np.random.default_rng(seed)
                drawn = {name: values[int(rng.integers(len(values)))] for name, values in (draws or {}).items()}
            asked = asked_with(**drawn)
            return Instance(asked.prompt, asked.judge, asked)

        add_task(Task(key, title, points, "number", instance))
        return question

    return add
