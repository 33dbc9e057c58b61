"""A sweep times schedules at every point of a grid and returns a table of rows; a picture can draw the rows as lines."""

from hybridlab.sweep.table import Sweep, sweep

__all__ = ["Sweep", "sweep"]
