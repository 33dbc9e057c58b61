"""What no order can beat: how far a schedule is from the best with the same memory."""

from hybridlab.bound.analytic import lower_bound

__all__ = ["lower_bound"]
