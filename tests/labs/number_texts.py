"""Texts that readers may write into the fields of a number task on the site, and the answers that Python gets for them."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from node import run

from hybridlab.course.checking.questions import Number, Question

ASSETS = Path(__file__).resolve().parents[2] / "book/_assets"
JUDGED = """
import "./number_judge.js";
const answer = (asked) => asked.map(({ form, rows }) => rows.map((texts) => numberJudge.judged(form, texts)));
"""
# A text in a field and what Python gets for it.
STRANGE: list[tuple[str, Any]] = [
    ("", None), ("   ", None), ("...", None), ("…", None), ("device 3:", None),
    ("150", 150.0), ("  150 ", 150.0), ("+7", 7.0), ("1e3", 1000.0), ("1.5E-2", 0.015), (".5", 0.5), ("7.", 7.0), ("007", 7.0),
    ("-0", -0.0), ("0", 0.0), ("2.5", 2.5), ("2,5", 2.5), ("0,125", 0.125), ("\u22124.1", -4.1), ("2.0000000001", 2.0000000001),
    ("1e15", 1e15), ("1e-300", 1e-300), ("1000001", 1000001.0), ("1000000000000001", 1000000000000001.0),
    ("12345678901234567890", 12345678901234567890.0), ("-1e16", -1e16), ("1e400", math.inf), ("-1e400", -math.inf),
    ("nan", "nan"), ("inf", "inf"), ("abc", "abc"), ("120 ms", "120 ms"), ("5/7", "5/7"), ("1,420", "1,420"), ("1,234,567", "1,234,567"),
    ("1e", "1e"), ("--3", "--3"), ("0x10", "0x10"), ("1_000", "1_000"), ("it's", "it's"), ('"5"', '"5"'), ("it's \"5\"", "it's \"5\""),
    ("a\\b", "a\\b"), ("5\u00a0ms", "5\u00a0ms"), ("zwölf", "zwölf"), ("\U0001f600", "\U0001f600"), ("x\u200by", "x\u200by"),
    ("y" * 200, "y" * 200),
]  # fmt: skip


def verdicts(folder: Path, asked: Sequence[tuple[Any, Sequence[Sequence[str]]]], scripts: Path = ASSETS) -> list[list[dict[str, Any]]]:
    """Return the feedback of the site's script on rows of texts in the fields of a form, for several forms in one process."""
    said: list[list[dict[str, Any]]] = run(folder, JUDGED, [{"form": form, "rows": rows} for form, rows in asked], scripts)
    return said


def as_text(value: Any) -> str:
    """Return a number, or a list of them, as a reader writes it."""
    return ", ".join(map(as_text, value)) if isinstance(value, list) else repr(value)


def texts_of(question: Question, answer: Any) -> list[str] | None:
    """Return the texts of an answer for the fields of a question; None if the answer does not fit into the fields."""
    parts = answer if len(question.numbers) > 1 else [answer]
    texts: list[str] = []
    if type(parts) is not list or len(parts) != len(question.numbers):
        return None
    for number, part in zip(question.numbers, parts, strict=True):
        values = part if np.ndim(number.truth) and number.ordered else [part]
        if type(values) is not list or len(values) != len(number.labels) or not all(_fits(number, each) for each in values):
            return None
        texts += map(as_text, values)
    return texts


def _fits(number: Number, value: Any) -> bool:
    values = [value] if number.ordered else value
    return type(values) is list and len(values) > 0 and all(type(each) in (int, float) and math.isfinite(each) for each in values)


def answer_in(question: Question, values: Sequence[Any]) -> Any:
    """Return the answer for these values in the fields of a question."""
    left = list(values)
    parts = []
    for number in question.numbers:
        own, left = left[: len(number.labels)], left[len(number.labels) :]
        parts.append(own if np.ndim(number.truth) and number.ordered else own[0])
    return parts if len(parts) > 1 else parts[0]


def near_misses(value: float, rng: np.random.Generator) -> Iterator[float]:
    """Yield numbers near a value: some units of a decimal away, rounded, scaled, and with the last bit changed."""
    yield from (value, -value, 1 / value if value else 1.0, np.nextafter(value, math.inf), np.nextafter(value, -math.inf))
    for decimals in range(-1, 5):
        unit = 10.0**-decimals
        yield round(value, decimals)
        yield from (value + step * unit for step in (-1, -0.5, -0.49999, 0.49999, 0.5, 0.50001, 1))
        yield (math.floor(value / unit) + 0.5) * unit  # a tie
    yield from (value * factor for factor in (2, 0.5, 10, 100, 1e-2, 1e-3, 1e3, 1.06, 0.94, 1.0005, 0.9995))
    yield from rng.uniform(-1, 2, 4) * value
    yield from (float(rng.integers(0, 20)), float(rng.integers(0, 20000)))
