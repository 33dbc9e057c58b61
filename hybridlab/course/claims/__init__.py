"""The claims of the published documents, each with a verdict that must follow from recomputed values.

:data:`CLAIMS` has the place, the text, the printed numbers, the verdict and the reason of each claim. :func:`readings` tries every way to
read a claim. :func:`judged` compares the claims with recomputed values, and raises an error if the values contradict a verdict. The book's
page on the published claims does this for all claims. The labs show the same verdicts with :func:`verdicts`.
"""

from hybridlab.course.claims.claim import AXES, DOCUMENTS, FAULTS, VERDICTS, Claim, Finding, Readings, does_not_apply, found, readings
from hybridlab.course.claims.table import CLAIMS, Judged, Row, VerdictCounts, Verdicts, count_verdicts, judged, verdicts

__all__ = [
    "AXES",
    "CLAIMS",
    "DOCUMENTS",
    "FAULTS",
    "VERDICTS",
    "Claim",
    "Finding",
    "Judged",
    "Readings",
    "Row",
    "VerdictCounts",
    "Verdicts",
    "count_verdicts",
    "does_not_apply",
    "found",
    "judged",
    "readings",
    "verdicts",
]
