"""The claims of the notebook of schedule sweeps, and of a lab of a public course."""

from hybridlab.course.claims.claim import Claim

# The formatter would put each argument on its own line, so the table ends with "fmt: skip".
SWEEP_CLAIMS: tuple[Claim, ...] = ()  # fmt: skip
