"""The registry of schedules, and the families of schedules. A schedule is a rule for slots and its registration."""

# The order of these imports is the order of the registry, from the simplest schedule on.
from hybridlab.schedules import gpipe, one_f_one_b, looped, hanayo, zero_bubble, controllable_memory, bidirectional  # noqa: I001
from hybridlab.schedules.registry import REGISTRY, Family, build, known_schedule, register

__all__ = [
    "REGISTRY",
    "Family",
    "bidirectional",
    "build",
    "controllable_memory",
    "gpipe",
    "hanayo",
    "known_schedule",
    "looped",
    "one_f_one_b",
    "register",
    "zero_bubble",
]
