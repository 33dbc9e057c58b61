"""All named schedules, and their registry. Each schedule has one rule: a function that returns the slots of all operations."""

# These imports register the schedules, so their order is the order of the registry. The simplest schedule comes first.
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
