"""Lower bounds of the makespan and shortest orders. They show how much longer a schedule takes than the best order with the same memory."""

from hybridlab.bound.analytic import lower_bound
from hybridlab.bound.exact import Optimum, optimum
from hybridlab.bound.gap import OptimalityGap, optimality_gap

__all__ = ["OptimalityGap", "Optimum", "lower_bound", "optimality_gap", "optimum"]
