"""The 76 claims of the published documents, each with a verdict that must follow from recomputed values.

:data:`CLAIMS` has the place, the text, the printed numbers, the verdict and the reason of each claim. :func:`judged` compares the claims
with recomputed values, and raises an error if the values contradict a verdict. The book's page on the published claims does this for all
claims.
"""

from hybridlab.course.claims.claim import DOCUMENTS, VERDICTS, Claim, Finding, found
from hybridlab.course.claims.table import CLAIMS, Judged, Row, VerdictCounts, count_verdicts, judged

__all__ = ["CLAIMS", "DOCUMENTS", "VERDICTS", "Claim", "Finding", "Judged", "Row", "VerdictCounts", "count_verdicts", "found", "judged"]
