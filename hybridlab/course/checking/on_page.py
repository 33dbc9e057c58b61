"""Export a number task as plain data. The script on the site's pages judges answers by this data, with the same verdicts as ``check``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridlab.checks import known_name
from hybridlab.course.checking.answers import Numbers
from hybridlab.course.checking.checking import TASKS, check
from hybridlab.course.checking.expressions import Mistake, Table, parsed, sentence_parts
from hybridlab.course.checking.questions import EXACT, ROUNDED, Number, Question

Refuse = Callable[[Any, str], list[str]]


def form_of(key: str) -> dict[str, Any]:
    """Return a number task, with the numbers that the lab's notebook shows, as plain values for JSON.

    Parameters
    ----------
    key : str
        The task, such as ``"lab02.t2"``. Its answer must be a number or a list of numbers.

    Returns
    -------
    dict
        The data that the script ``book/_assets/number_judge.js`` reads: the right values, the largest distance of a right answer from
        each right value, and each sentence with its code. Where a sentence ends with the answer, this end is left out, and the script adds
        the student's answer.

    Raises
    ------
    HybridLabError
        There is no number task with this key.

    Examples
    --------
    >>> import hybridlab.course.tasks  # adds the tasks of the labs
    >>> form = form_of("lab02.t2")
    >>> form["numbers"][0]["truth"], form["numbers"][0]["fields"][0]["label"]
    (120.0, 'Makespan in ms')
    """
    numbered = [each for each, known in TASKS.items() if known.kind == "number"]
    asked: Question = TASKS[known_name(key, numbered, "task with a number")].instance(None).data
    nothing = check(key)  # an empty answer; its sentence comes from check, so the page shows the same sentence
    return {
        "key": key,
        "nothing": [nothing.code, nothing.messages[0]],
        "lesson": asked.lesson,
        "mistakes": [_mistake(each, lambda wanted: EXACT) for each in asked.mistakes],
        "names": _plain(asked.given),
        "numbers": [_number(key, asked, place) for place in range(len(asked.numbers))],
    }


def _number(key: str, asked: Question, place: int) -> dict[str, Any]:
    """Return the data of one number of a task; ``place`` is the index of this number."""
    number = asked.numbers[place]

    def refuse(value: Any, shown: str) -> list[str]:
        """Return the code and the sentence for an answer in which only this number is wrong. Remove ``shown`` from the sentence's end."""
        parts = [_plain(each.truth) for each in asked.numbers]
        parts[place] = value
        feedback = check(key, parts if len(parts) > 1 else value)
        return [feedback.code, feedback.messages[0].removesuffix(shown)]

    def within(wanted: Numbers) -> Any:
        # the script compares distances only, so the relative tolerance of an estimate becomes an absolute one
        return (number.relative * np.abs(wanted)).tolist() if number.relative else number.tolerance(wanted)

    return {
        "truth": _plain(number.truth),
        "within": within(number.truth),
        "unit": 10.0**-number.decimals if number.needs_rounding else None,
        "ordered": number.ordered,
        "count": {"most": number.most, "fraction": refuse(1.5, "1.5"), "range": refuse(0, "0")} if number.whole else None,
        "fields": [_field(number, label, refuse, at) for at, label in enumerate(number.labels)],
        "nearMiss": _sentence(number.near_miss, number.label),
        "mistakes": [_mistake(each, within, number.label) for each in number.mistakes],
        "fewer": [_mistake(each, lambda wanted: ROUNDED, number.label) for each in number.too_few_decimals],
        "code": number.code,
        "hint": _sentence(number.hint, number.label),
        "names": _plain(number.given),
    }


def _field(number: Number, label: str, refuse: Refuse, at: int) -> dict[str, Any]:
    """Return the data of an input field: its label, and the sentences for an empty field and for a text that is not a number."""

    def answer_with(value: Any) -> Any:
        """Return the answer of a student who writes ``value`` in this field and right values in the number's other fields."""
        if not number.ordered:
            return value and [value]  # a list without an order has one field for all its numbers
        if not np.ndim(number.truth):
            return value
        return [value if place == at else wanted for place, wanted in enumerate(_plain(number.truth))]

    return {"label": label, "missing": refuse(answer_with(None), ""), "strange": refuse(answer_with("x"), "'x'")}


def _mistake(mistake: Mistake, within: Callable[[Numbers], Any], label: str = "") -> dict[str, Any]:
    wrong_value, code, sentence = mistake
    known = {"rule": parsed(wrong_value)} if isinstance(wrong_value, str) else {"value": _plain(wrong_value), "within": within(wrong_value)}
    return {**known, "code": code, "sentence": _sentence(sentence, label)}


def _sentence(sentence: str, label: str) -> list[Any]:
    return [*([label] if label else []), *sentence_parts(sentence)]


def _plain(value: Any) -> Any:
    """Return a value that can be written as JSON: numpy numbers become Python's, sequences become lists, tables become their values."""
    if isinstance(value, Table):
        return value.values()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
