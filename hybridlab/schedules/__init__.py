"""The registry of schedules, and one family a file. A family is a rule for slots and a line of data."""

# The order of these imports is the order of the registry, from the simplest schedule on.
from hybridlab.schedules import gpipe, one_f_one_b, interleaved, looped_bfs, hanayo, zero_bubble, zb_v  # noqa: I001
from hybridlab.schedules import controllable_memory, chimera, dualpipe
from hybridlab.schedules.registry import REGISTRY, Family, build, known_schedule, register

__all__ = [
    "REGISTRY",
    "Family",
    "build",
    "chimera",
    "controllable_memory",
    "dualpipe",
    "gpipe",
    "hanayo",
    "interleaved",
    "known_schedule",
    "looped_bfs",
    "one_f_one_b",
    "register",
    "zb_v",
    "zero_bubble",
]
