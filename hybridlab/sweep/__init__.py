"""Sweeps: schedules over a grid of settings as a table of plain rows, and which of the rows make a line of a picture."""

from hybridlab.sweep.table import Sweep, sweep

__all__ = ["Sweep", "sweep"]
