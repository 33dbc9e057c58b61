"""Functions that draw static figures of timelines, curves, sweeps, named points, the plans of a search, and divided bars.

Every function returns a :class:`Picture`. This is a matplotlib Figure: a notebook shows it as the value of a cell, and its method
``savefig`` writes it to a file. Its ``alt_text`` says in words what the figure shows. No function prints anything or changes a setting
of matplotlib.
"""

from hybridlab.plot.charts import lines, stacks
from hybridlab.plot.figures import alt_text, compare, timeline
from hybridlab.plot.picture import Picture
from hybridlab.plot.points import pareto, points
from hybridlab.plot.sweeps import panels

__all__ = ["Picture", "alt_text", "compare", "lines", "panels", "pareto", "points", "stacks", "timeline"]
