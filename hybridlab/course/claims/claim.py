"""A claim of the published documents, and what was found where it was recomputed."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from hybridlab.checks import checked_text, known_name, short_repr, whole_number
from hybridlab.errors import HybridLabError

VERDICTS = ("right", "wrong", "depends")
DOCUMENTS = {
    "report": "report on hybrid parallelism",
    "notes": "implementation notes",
    "simulator": "simulator with a step grid",
    "event log": "simulator with an event log",
}
Printed = tuple[float | tuple[float, float], ...]


@dataclass(frozen=True)
class Claim:
    """One claim: ``where`` in which ``document`` it stands, what it says (``text``, our words), the verdict and ``why``.

    ``printed`` has the numbers that it prints, in ``unit``; a pair is a range, from and to. ``sources`` are keys of the
    bibliography, ``labs`` the labs that treat the claim.

    >>> from hybridlab.course.claims import CLAIMS
    >>> print(CLAIMS[34])
    34. report, section 5.3: right. Filling the pipeline costs one forward, draining it one backward. Printed: 50, 80, 130 ms
    """

    number: int
    document: str
    where: str
    text: str
    verdict: str
    why: str
    printed: Printed = ()
    unit: str = ""
    sources: tuple[str, ...] = ()
    labs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole_number(self.number, "the number of a claim")
        known_name(self.document, DOCUMENTS, "document")
        known_name(self.verdict, VERDICTS, "verdict")

    @property
    def figures(self) -> str:
        """The printed numbers as text, with their unit; empty where there is none.

        >>> Claim(1, "report", "abstract", "", "wrong", "", printed=((6, 8),), unit="times").figures
        '6 to 8 times'
        """
        numbers = ", ".join(" to ".join(f"{each:.6g}" for each in np.atleast_1d(number)) for number in self.printed)
        return f"{numbers} {self.unit}".strip()

    def __str__(self) -> str:
        message = f"{self.number}. {self.document}, {self.where}: {self.verdict}. {self.text}"
        return f"{message} Printed: {self.figures}" if self.printed else message


@dataclass(frozen=True)
class Finding:
    """One recomputed result: its ``text``, the ``numbers`` in it, and whether the claim ``holds`` there, None: compare."""

    text: str
    numbers: tuple[Any, ...]
    holds: bool | None = None

    def agrees(self, claim: Claim) -> bool:
        """Return whether the claim holds here: as was said, or if each printed number is the first, second ... found one.

        A number agrees to the digits that are printed, a range where the number lies in it.
        """
        if self.holds is not None:
            return self.holds
        if not claim.printed:
            raise HybridLabError(f"claim {claim.number} prints no number to compare with: say with holds= whether it holds")
        if len(self.numbers) < len(claim.printed):
            message = f"claim {claim.number} prints {claim.figures}"
            raise HybridLabError(f"{message}: give as many numbers to compare, in this order, not {short_repr(self.numbers)}")
        return all(_agree(printed, number) for printed, number in zip(claim.printed, self.numbers, strict=False))


def found(message: str, *numbers: Any, holds: Any = None) -> Finding:
    """Return a recomputed result: ``message`` with the ``numbers`` in its braces, as ``str.format`` puts them there.

    The first numbers are held against those that the claim prints, unless ``holds`` says whether the claim holds. Numbers may be
    texts where what was found is one, such as a year or a volume. Raises :class:`HybridLabError` for braces without a number
    and for numbers that are not finite.

    >>> found("{:.2f} times with {} microbatches", 4160 / 1210, 8).text
    '3.44 times with 8 microbatches'
    """
    for number in numbers:
        if not isinstance(number, str) and not _is_finite(number):
            raise HybridLabError(f"what was found is a finite number or a text, not {short_repr(number)}")
    if holds is not None and not isinstance(holds, bool | np.bool_):
        raise HybridLabError(f"holds must be True or False, not {short_repr(holds)}")
    checked_text(message, "message")
    try:
        text = message.format(*numbers)
    except (IndexError, KeyError, ValueError, AttributeError) as why:
        raise HybridLabError(f"{short_repr(message)} does not fit the numbers {short_repr(numbers)}: {why}") from why
    return Finding(text, numbers, None if holds is None else bool(holds))


def _is_finite(number: Any) -> bool:
    try:
        return isinstance(number, Real) and math.isfinite(number)
    except OverflowError:  # a whole number beyond all floats
        return False


def _agree(printed: float | tuple[float, float], number: Any) -> bool:
    """Return whether ``number``, rounded as ``printed`` is, is that number or lies in that range."""
    low, high = printed if isinstance(printed, tuple) else (printed, printed)
    half = 0.5 * min(_last_digit(low), _last_digit(high)) * (1 + 1e-9)
    return not isinstance(number, str) and bool(low - half <= number <= high + half)


def _last_digit(number: float) -> float:
    """Return what the last printed digit stands for: 0.01 for 3.47, 1 for 1040."""
    whole, _, power = repr(float(number)).partition("e")
    decimals = whole.partition(".")[2].rstrip("0")
    return float(10.0 ** (int(power or 0) - len(decimals)))
