"""All claims by number, from the four files that hold them."""

from collections.abc import Mapping
from types import MappingProxyType

from hybridlab.course.claims.claim import Claim
from hybridlab.course.claims.programs import PROGRAMS
from hybridlab.course.claims.report_design import DESIGN
from hybridlab.course.claims.report_model import MODEL
from hybridlab.course.claims.report_results import RESULTS

_ALL = sorted((*DESIGN, *MODEL, *RESULTS, *PROGRAMS), key=lambda claim: claim.number)
CLAIMS: Mapping[int, Claim] = MappingProxyType({claim.number: claim for claim in _ALL})
