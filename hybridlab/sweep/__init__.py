"""Sweeps: schedules over a grid of settings as a table of plain rows, and the rows as lines of a picture."""

from hybridlab.sweep.table import Sweep, sweep

__all__ = ["Sweep", "sweep"]
