"""The registry of schedules, and one family a file. A family is a rule for slots and a line of data."""

# The order of these imports is the order of the registry, from the simplest schedule on.
from hybridlab.schedules import gpipe, one_f_one_b, interleaved, hanayo, zero_bubble, controllable_memory  # noqa: I001
from hybridlab.schedules.registry import REGISTRY, Family, build, register

__all__ = ["REGISTRY", "Family", "build", "controllable_memory", "gpipe", "hanayo", "interleaved", "one_f_one_b", "register", "zero_bubble"]
