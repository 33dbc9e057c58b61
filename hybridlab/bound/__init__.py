"""What no order can beat: how far a schedule is from the best with the same memory."""

from hybridlab.bound.analytic import lower_bound
from hybridlab.bound.distance import Distance, distance
from hybridlab.bound.exact import Optimum, optimum

__all__ = ["Distance", "Optimum", "distance", "lower_bound", "optimum"]
