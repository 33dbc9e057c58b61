"""A claim of the published documents, its readings, and the findings that confirm or contradict it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any

import numpy as np

from hybridlab.checks import checked_text, known_name, short_repr, whole_number
from hybridlab.errors import HybridLabError

VERDICTS = ("right", "wrong", "depends")
FAULTS = {  # what can be wrong with a claim; the page and the labs explain these words once
    "false statement": "what the claim says, a number, a name or a fact, is not so in any reading",
    "faulty program": "a program did print this, but the program does not do what it says",
    "false reason": "the number or the observation may be true, but it does not have this cause or this consequence",
}
AXES = {  # what a reader can understand in more than one way
    "times": "whether 50 and 80 ms are the times of one stage (A) or of the whole model (B)",
    "work": "whether each replica runs all microbatches, or the replicas share them",
    "baseline": "what the claim compares with",
    "limit": "what is equal in a comparison: the number of microbatches, or the memory for activations",
    "stages": "whether all stages take the same time",
    "messages": "whether messages between stages take time",
    "counting": "what is counted, and how",
    "setting": "the sizes of the model, of the cluster and of the batch",
}
DOCUMENTS = {
    "report": "report on hybrid parallelism",
    "notes": "implementation notes",
    "simulator": "simulator with a step grid",
    "event log": "simulator with an event log",
    "sweeps": "notebook of schedule sweeps",
    "course": "lab of a public course",
}
# The names of the notebooks. The links to the pages of the labs use them.
LAB_1, LAB_2, LAB_3, LAB_4 = "lab01_mesh", "lab02_one_f_one_b", "lab03_bubbles_and_memory", "lab04_ring"
LAB_5, LAB_6, LAB_7, LAB_8 = "lab05_wire_formats", "lab06_hybrid_step", "lab07_accuracy", "lab08_threads"
LAB_9, LAB_10, LAB_11 = "lab09_a100_report", "lab10_scaling", "lab11_recompute_and_microbatches"
LAB_12, LAB_13, LAB_14, LAB_15 = "lab12_chunks_and_waves", "lab13_zero_bubble", "lab14_latency", "lab15_imbalance"
Printed = tuple[float | tuple[float, float], ...]  # printed numbers; a pair is a range


@dataclass(frozen=True)
class Claim:
    """One claim with its verdict.

    Parameters
    ----------
    number : int
        From 1 up. The claims that were found first have the small numbers, so a number says nothing about a place.
    document : str
        A key of ``DOCUMENTS``.
    where : str
        Place in the document.
    text : str
        The statement of the claim, in our words.
    verdict : {"right", "wrong", "depends"}
    why : str
        The reason for the verdict, in one sentence.
    printed : tuple
        The numbers that the claim prints. A pair is a range, from its lower to its upper end.
    unit : str
        Unit of the printed numbers.
    sources : tuple of str
        Keys of the bibliography.
    labs : tuple of str
        Labs that treat the claim.
    fault : str
        A key of ``FAULTS`` if the verdict is "wrong", and an empty text otherwise.

    Raises
    ------
    HybridLabError
        The document, the verdict or the fault is unknown, or a fault does not fit the verdict.

    Examples
    --------
    >>> from hybridlab.course.claims import CLAIMS
    >>> print(CLAIMS[33])
    33. report, section 5.3: right. The ring all-reduce takes 2(D-1) steps of 20 ms, 40 ms in all. Printed: 40 ms
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
    fault: str = ""

    def __post_init__(self) -> None:
        whole_number(self.number, "the number of a claim")
        known_name(self.document, DOCUMENTS, "document")
        known_name(self.verdict, VERDICTS, "verdict")
        if self.fault:
            known_name(self.fault, FAULTS, "fault")
        if (self.verdict == "wrong") != bool(self.fault):
            raise HybridLabError(
                f"claim {self.number} is {self.verdict}: a claim has a fault, one of {', '.join(FAULTS)}, if and only if it is wrong",
                "does-not-fit",
            )

    @property
    def judgement(self) -> str:
        """The verdict in words, with the fault of a wrong claim.

        >>> Claim(1, "report", "abstract", "", "wrong", "", fault="false reason").judgement
        'wrong: false reason'
        """
        return f"{self.verdict}: {self.fault}" if self.fault else self.verdict

    @property
    def figures(self) -> str:
        """The printed numbers as text with their unit, or an empty text if the claim prints no number.

        >>> Claim(1, "report", "abstract", "", "right", "", printed=((6, 8),), unit="times").figures
        '6 to 8 times'
        """
        numbers = ", ".join(" to ".join(f"{each:.6g}" for each in np.atleast_1d(number)) for number in self.printed)
        return f"{numbers} {self.unit}".strip()

    def __str__(self) -> str:
        sentence = f"{self.number}. {self.document}, {self.where}: {self.judgement}. {self.text}"
        return f"{sentence} Printed: {self.figures}" if self.printed else sentence


@dataclass(frozen=True)
class Finding:
    """One recomputed result, as :func:`found` and :func:`does_not_apply` return it.

    Parameters
    ----------
    text : str
        The result in words.
    numbers : tuple
        The numbers in the text. The first ones are compared with the printed numbers of the claim, one by one.
    holds : bool or None
        Whether the claim holds. With None, the comparison of the numbers decides this.
    applies : bool
        False if the reading makes no sense. Then ``text`` says why, and the finding does not count for the verdict.
    """

    text: str
    numbers: tuple[Any, ...]
    holds: bool | None = None
    applies: bool = True

    def agrees(self, claim: Claim) -> bool:
        """Return whether the claim holds. This is ``holds``; if ``holds`` is None, the comparison of the numbers decides.

        Printed and recomputed numbers at the same position are compared. They agree if they are equal after rounding to the printed digits.
        A recomputed number agrees with a printed range if it lies in the range after rounding to one digit more than the ends have.

        Raises
        ------
        HybridLabError
            ``holds`` is None, and the claim prints no numbers or more numbers than the finding has.
        """
        if self.holds is not None:
            return self.holds
        if not claim.printed:
            raise HybridLabError(
                f"claim {claim.number} prints no number to compare with: pass holds=True or holds=False to found()", "no-number"
            )
        if len(self.numbers) < len(claim.printed):
            raise HybridLabError(
                f"claim {claim.number} prints {claim.figures}: give as many numbers to compare, in this order, "
                f"not {short_repr(self.numbers)}",
                "wrong-length",
            )
        return all(_agree(printed, number) for printed, number in zip(claim.printed, self.numbers, strict=False))


def found(message: str, *numbers: Any, holds: Any = None) -> Finding:
    """Return a recomputed result: the text of ``message`` with the ``numbers`` in its braces.

    Parameters
    ----------
    message : str
        A template as ``str.format`` takes it.
    numbers : float or str
        Results. The first ones are compared with the printed numbers of a claim. A result that cannot be compared is given as a text,
        for example a year or the volume of a journal.
    holds : bool, optional
        Whether the claim holds. If it is given, no numbers are compared.

    Raises
    ------
    HybridLabError
        The message has braces without a number, or a number is not finite.

    Examples
    --------
    >>> found("{:.2f} times with {} microbatches", 4160 / 1210, 8).text
    '3.44 times with 8 microbatches'
    """
    for number in numbers:
        if not isinstance(number, str) and not _is_finite(number):
            code = "not-finite" if isinstance(number, Real) else "not-a-number"
            raise HybridLabError(f"a result is a finite number or a text, not {short_repr(number)}", code)
    if holds is not None and not isinstance(holds, bool | np.bool_):
        raise HybridLabError(f"holds must be True or False, not {short_repr(holds)}", "not-true-or-false")
    checked_text(message, "message")
    try:
        text = message.format(*numbers)
    # str.format raises each of these errors for some wrong template.
    except (IndexError, KeyError, ValueError, AttributeError, TypeError) as why:
        raise HybridLabError(f"{short_repr(message)} does not fit the numbers {short_repr(numbers)}: {why}", "does-not-fit") from why
    return Finding(text, numbers, None if holds is None else bool(holds))


def does_not_apply(why: str) -> Finding:
    """Return the finding of a reading that makes no sense.

    Parameters
    ----------
    why : str
        Why the claim cannot be read in this way, in a few words.

    Raises
    ------
    HybridLabError
        ``why`` is not a text.

    Examples
    --------
    >>> does_not_apply("one stage has no messages").applies
    False
    """
    return Finding(checked_text(why, "why"), (), None, applies=False)


@dataclass(frozen=True)
class Readings:
    """All readings of a claim, and what was found in each, as :func:`readings` returns them.

    Parameters
    ----------
    axes : mapping of str to tuple of str
        The words for each choice, by the name of the axis, a key of ``AXES``. Empty if the claim can be read in one way only.
    findings : tuple of Finding
        One for each combination of choices. The choice of the last axis changes first, as in ``itertools.product``.
    """

    axes: Mapping[str, tuple[str, ...]]
    findings: tuple[Finding, ...]

    @property
    def combinations(self) -> tuple[tuple[str, ...], ...]:
        """The words of each combination, in the order of the findings."""
        return tuple(product(*self.axes.values()))


def readings(finding: Callable[..., Finding], **axes: Mapping[str, Any] | Sequence[Any]) -> Readings:
    """Return what is found in every reading of a claim. All combinations of the choices are tried, so nobody picks one.

    Parameters
    ----------
    finding : callable
        Called with one choice for each axis, as arguments with the names of the axes. It returns the result of :func:`found`, or of
        :func:`does_not_apply` if the combination makes no sense.
    **axes : mapping or sequence
        The choices of each axis. A mapping has the words for each choice and the value to call ``finding`` with. The values of a sequence
        are their own words. The names are keys of ``AXES``.

    Raises
    ------
    HybridLabError
        An axis is unknown or has no choice, there is no axis, or ``finding`` returns something else.

    Examples
    --------
    >>> from hybridlab.course.published.benchmarks import reading_step
    >>> speedup = lambda times, work: found("{:.2f} times", reading_step(times, microbatches=work).speedup)
    >>> tried = readings(speedup, times="AB", work={"8 each": 8, "8 shared": 4})
    >>> for words, each in zip(tried.combinations, tried.findings):
    ...     print(*words, each.text, sep=", ")
    A, 8 each, 3.44 times
    A, 8 shared, 3.01 times
    B, 8 each, 3.33 times
    B, 8 shared, 2.85 times
    """
    choices: dict[str, dict[str, Any]] = {}
    for name, given in axes.items():
        known_name(name, AXES, "axis")
        choices[name] = dict(given) if isinstance(given, Mapping) else {str(each): each for each in given}
        if not choices[name]:
            raise HybridLabError(f"the axis {name} has no choice", "empty")
    if not choices:
        raise HybridLabError(f"readings() needs an axis, one of {', '.join(AXES)}; a claim with one reading takes found()", "empty")
    results = tuple(
        finding(**dict(zip(choices, combination, strict=True))) for combination in product(*(each.values() for each in choices.values()))
    )
    if strange := [each for each in results if not isinstance(each, Finding)]:
        raise HybridLabError(f"a reading gives the result of found() or of does_not_apply(), not {short_repr(strange[0])}", "wrong-type")
    return Readings({name: tuple(each) for name, each in choices.items()}, results)


def _is_finite(number: Any) -> bool:
    try:
        return isinstance(number, Real) and math.isfinite(number)
    except OverflowError:  # a whole number beyond all floats
        return False


def _agree(printed: float | tuple[float, float], number: Any) -> bool:
    """Return whether ``number`` is the printed number to its digits, or lies in the printed range to one digit more."""
    is_range = isinstance(printed, tuple)
    low, high = printed if isinstance(printed, tuple) else (printed, printed)
    # The rounding error is at most half a unit of the last digit. With the printed digits alone, 0.62 would lie in 1 to 2. The factor
    # allows for the rounding of floats.
    half = (0.05 if is_range else 0.5) * min(_last_digit(low), _last_digit(high)) * (1 + 1e-9)
    return not isinstance(number, str) and bool(low - half <= number <= high + half)  # a text, such as a year, never agrees with a number


def _last_digit(number: float) -> float:
    """Return the unit of the last printed digit: 0.01 for 3.47, 1 for 1040."""
    # repr writes very small and very large numbers with a power of ten. A float does not store zeros at the end, as in 49.00.
    whole, _, power = repr(float(number)).partition("e")
    decimals = whole.partition(".")[2].rstrip("0")
    return float(10.0 ** (int(power or 0) - len(decimals)))
