"""What the published documents claim, 76 claims in all, each with a verdict that has to follow from a recomputation.

:data:`CLAIMS` has what is written down: where a claim stands, what it says and prints, the verdict and why. :func:`judged` puts
recomputed values beside it and refuses a verdict that they contradict. The book's page on the published claims does so for all.
"""

from hybridlab.course.claims.claim import DOCUMENTS, VERDICTS, Claim, Finding, found
from hybridlab.course.claims.rows import CLAIMS
from hybridlab.course.claims.table import Counts, Judged, Row, counted, judged

__all__ = ["CLAIMS", "DOCUMENTS", "VERDICTS", "Claim", "Counts", "Finding", "Judged", "Row", "counted", "found", "judged"]
