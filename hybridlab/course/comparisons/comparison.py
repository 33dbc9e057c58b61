"""One comparison of this library with values that others published or measured."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridlab.checks import numbers, short_repr
from hybridlab.errors import HybridLabError


@dataclass(frozen=True)
class Comparison:
    """How far the library is from ``points`` values of ``source``: the mean and the largest error, each as a share.

    An error is relative, ``abs(ours / theirs - 1)``, unless ``note`` says what else it is. ``mean_bound`` and ``worst_bound`` are what was
    demanded before the errors were known, or None.

    >>> compared("forwards", "made up", ours=[1.0, 2.1], theirs=[1.0, 2.0], worst_bound=0.1)
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
        """The bounds there are, by what they bound: "mean" or "worst"."""
        return tuple((name, bound) for name, bound in (("mean", self.mean_bound), ("worst", self.worst_bound)) if bound is not None)

    @property
    def holds(self) -> bool | None:
        """Whether every bound is kept; None where there is none."""
        error = {"mean": self.mean_error, "worst": self.worst_error}
        return all(error[name] <= bound for name, bound in self.bounds) if self.bounds else None

    @property
    def verdict(self) -> str:
        """What to say of it: "within", "beyond" or "no bound"."""
        return {True: "within", False: "beyond", None: "no bound"}[self.holds]

    def __repr__(self) -> str:
        errors = f"mean error {percent(self.mean_error)}, worst {percent(self.worst_error)}"
        return f"Comparison({self.what}: {self.points} points, {errors}: {self.verdict})"


def compared(what: str, source: str, ours: Any, theirs: Any, *, difference: bool = False, **more: Any) -> Comparison:
    """Return the comparison of two rows of numbers of one length; ``more`` are its bounds and its note.

    Errors are relative, those of numbers that are both zero none; with ``difference`` they are ``abs(ours - theirs)``.
    """
    found, wanted = numbers(ours, "ours"), numbers(theirs, "theirs")
    if found.shape != wanted.shape or found.ndim != 1:
        raise HybridLabError(f"ours and theirs must be two rows of one length, not of shapes {found.shape} and {wanted.shape}")
    if not np.isfinite(found).all() or not np.isfinite(wanted).all():
        raise HybridLabError("ours and theirs must be finite numbers")
    with np.errstate(divide="ignore", over="ignore"):  # something where nothing was published is infinitely far
        apart = np.abs(found - wanted)
        errors = apart if difference else np.divide(apart, np.abs(wanted), out=np.zeros(apart.size), where=apart > 0)
        return Comparison(what, source, found.size, float(errors.mean()), float(errors.max()), **more)


def percent(share: float) -> str:
    """Return a share in per cent, with two digits.

    >>> percent(0.02361), percent(0.1319), percent(0.0), percent(3e-16)
    ('2.4 %', '13 %', '0', 'below 1e-10 %')
    """
    value = numbers(share, "share")
    if value.ndim or np.isnan(value):
        raise HybridLabError(f"share must be one number, not {short_repr(share)}")
    if not value:
        return "0"
    return f"{100 * float(value):.2g} %" if abs(value) > 1e-12 else "below 1e-10 %"
