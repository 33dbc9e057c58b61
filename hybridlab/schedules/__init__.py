"""All named schedules: one rule each, which is a function that returns slots, and the registry of the rules."""

# The registry has the order of these imports. It begins with the simplest schedule.
from hybridlab.schedules import gpipe, one_f_one_b, looped, hanayo, zero_bubble, controllable_memory, bidirectional  # noqa: I001
from hybridlab.schedules.registry import REGISTRY, Family, build, forget, known_schedule, register

__all__ = [
    "REGISTRY",
    "Family",
    "bidirectional",
    "build",
    "controllable_memory",
    "forget",
    "gpipe",
    "hanayo",
    "known_schedule",
    "looped",
    "one_f_one_b",
    "register",
    "zero_bubble",
]
