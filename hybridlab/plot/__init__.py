"""Functions that draw static figures of timelines, curves, sweeps, named points, the plans of a search, and divided bars.

Every function returns a :class:`Picture`, a matplotlib Figure. A notebook shows a Picture as the value of a cell. The method ``savefig``
writes the figure to a file, and ``alt_text`` describes the figure in words. No function prints anything or changes a setting of matplotlib.
"""

from hybridlab.plot.charts import lines, stacks
from hybridlab.plot.figures import alt_text, compare, timeline
from hybridlab.plot.picture import Picture
from hybridlab.plot.points import pareto, points
from hybridlab.plot.sweeps import panels

__all__ = ["Picture", "alt_text", "compare", "lines", "panels", "pareto", "points", "stacks", "timeline"]
