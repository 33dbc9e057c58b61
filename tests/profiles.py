"""Set how many examples a property test draws, and how many seeds a test tries.

There are two profiles: `quick`, the default, and `full` (`--hypothesis-profile=full`).
"""

import os

from hypothesis import HealthCheck, Phase, settings

FULL, QUICK = 100, 12  # the number of examples in a test that does not give a number


def register() -> None:
    """Register both profiles and load the quick one; in CI, every run of a profile draws the same examples."""
    by_no_clock = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # a busy machine draws slowly
    if os.environ.get("HYBRIDLAB_MUTANTS"):  # a planted fault is found by any example; the simplest one would take minutes
        by_no_clock["phases"] = [Phase.explicit, Phase.reuse, Phase.generate]
    for name, count in (("quick", QUICK), ("full", FULL)):
        settings.register_profile(name, max_examples=count, derandomize=bool(os.environ.get("CI")), **by_no_clock)
    settings.load_profile("quick")


def examples(count: int) -> settings:
    """Return a decorator for a test that draws ``count`` examples in the full profile and an eighth of them in the quick profile."""
    return settings(max_examples=max(1, count * settings().max_examples // FULL))


def seeds(count: int) -> range:
    """Return the seeds that a test tries: ``count`` in the full profile, an eighth of them in the quick profile, but at least 3."""
    return range(max(min(3, count), count * settings().max_examples // FULL))
