"""A sweep simulates schedules at every point of a grid and returns a table with one row for each schedule and point."""

from hybridlab.sweep.table import Sweep, sweep

__all__ = ["Sweep", "sweep"]
