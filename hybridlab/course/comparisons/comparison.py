"""One comparison of the library's results with values that others published or measured."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridlab.checks import checked_text, numbers, one_time, short_repr, true_or_false
from hybridlab.errors import HybridLabError


@dataclass(frozen=True)
class Comparison:
    """The mean and the largest error of the library for a set of published or measured values. :func:`compared` returns it.

    Errors are relative, ``abs(ours / theirs - 1)``, unless ``note`` names another kind of error.

    Parameters
    ----------
    what : str
        The compared quantity.
    source : str
        The paper or the program that the values come from.
    points : int
        Number of values.
    mean_error, worst_error : float
        Errors as shares: 0.02 is 2 %.
    mean_bound, worst_bound : float, optional
        The largest errors that are accepted. They were chosen before the errors were known.
    note : str
        A remark, such as "difference" for absolute errors.

    Examples
    --------
    >>> compared("forwards", "an example", ours=[1.0, 2.1], theirs=[1.0, 2.0], worst_bound=0.1)
    Comparison(forwards: 2 points, mean error 2.5 %, worst 5 %: within)
    """

    what: str
    source: str
    points: int
    mean_error: float
    worst_error: float
    mean_bound: float | None = None
    worst_bound: float | None = None
    note: str = ""

    @property
    def bounds(self) -> tuple[tuple[str, float], ...]:
        """The bounds that are not None, as pairs: ("mean", bound) and ("worst", bound)."""
        return tuple((name, bound) for name, bound in (("mean", self.mean_bound), ("worst", self.worst_bound)) if bound is not None)

    @property
    def holds(self) -> bool | None:
        """Whether every error is within its bound, or None if the comparison has no bound."""
        error = {"mean": self.mean_error, "worst": self.worst_error}
        return all(error[name] <= bound for name, bound in self.bounds) if self.bounds else None

    @property
    def verdict(self) -> str:
        """The result in words: "within", "beyond" or "no bound"."""
        return {True: "within", False: "beyond", None: "no bound"}[self.holds]

    def __repr__(self) -> str:
        errors = f"mean error {percent(self.mean_error)}, worst {percent(self.worst_error)}"
        return f"Comparison({self.what}: {self.points} points, {errors}: {self.verdict})"


def compared(
    what: str,
    source: str,
    ours: Any,
    theirs: Any,
    *,
    difference: bool = False,
    mean_bound: float | None = None,
    worst_bound: float | None = None,
    note: str = "",
) -> Comparison:
    """Return the comparison of the library's numbers with the published or measured ones.

    Parameters
    ----------
    what, source : str
        As in :class:`Comparison`.
    ours, theirs : array of float, shape (points,)
        The library's numbers, and the published or measured ones.
    difference : bool
        False takes relative errors, which are zero where both numbers are zero. True takes ``abs(ours - theirs)``.
    mean_bound, worst_bound, note
        As in :class:`Comparison`.

    Raises
    ------
    HybridLabError
        ``ours`` or ``theirs`` has a number that is not finite, or the two have different lengths. A bound is not a number of zero or more.

    Examples
    --------
    >>> compared("forwards", "an example", ours=[1.0, 2.1], theirs=[1.0, 2.0]).worst_error
    0.050000000000000044
    """
    checked_text(note, "note")
    mean_bound, worst_bound = (
        None if bound is None else one_time(bound, name) for name, bound in (("mean_bound", mean_bound), ("worst_bound", worst_bound))
    )
    difference = true_or_false(difference, "difference")
    own, published = numbers(ours, "ours"), numbers(theirs, "theirs")
    if own.shape != published.shape or own.ndim != 1:
        raise HybridLabError(
            f"ours and theirs must be lists of the same length, not of shapes {own.shape} and {published.shape}",
            "wrong-length" if own.ndim == published.ndim == 1 else "wrong-shape",
        )
    if not np.isfinite(own).all() or not np.isfinite(published).all():
        raise HybridLabError("ours and theirs must be finite numbers", "not-finite")
    with np.errstate(divide="ignore", over="ignore"):  # the relative error against a published zero is infinite
        distance = np.abs(own - published)
        # If both numbers are zero, the error is zero and 0 / 0 is not computed.
        errors = distance if difference else np.divide(distance, np.abs(published), out=np.zeros(distance.size), where=distance > 0)
        return Comparison(what, source, own.size, float(errors.mean()), float(errors.max()), mean_bound, worst_bound, note)


def percent(share: float) -> str:
    """Return a share as text in per cent, rounded to two significant digits.

    Parameters
    ----------
    share : float
        0.02 is 2 %.

    Raises
    ------
    HybridLabError
        ``share`` is not one number, or it is NaN.

    Examples
    --------
    >>> percent(0.02361), percent(0.1319), percent(0.0), percent(3e-16)
    ('2.4 %', '13 %', '0', 'below 1e-10 %')
    """
    value = numbers(share, "share")
    if value.ndim or np.isnan(value):
        raise HybridLabError(f"share must be one number, not {short_repr(share)}", "wrong-shape" if value.ndim else "not-finite")
    if not value:
        return "0"
    # Shares below 1e-12 come from the rounding of floats. Their digits differ from machine to machine, so no digits are shown.
    return f"{100 * float(value):.2g} %" if abs(value) > 1e-12 else "below 1e-10 %"
