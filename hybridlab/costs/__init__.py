"""Costs: the time of each operation and each message, given as numbers or read from a file."""

from hybridlab.costs.costs import Costs

__all__ = ["Costs"]
