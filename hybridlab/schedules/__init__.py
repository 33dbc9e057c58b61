"""The registry of schedules, and one family a file. A family is a rule for slots and a line of data."""

from hybridlab.schedules import gpipe, hanayo, interleaved, one_f_one_b, zero_bubble
from hybridlab.schedules.registry import REGISTRY, Family, build, register

__all__ = ["REGISTRY", "Family", "build", "gpipe", "hanayo", "interleaved", "one_f_one_b", "register", "zero_bubble"]
