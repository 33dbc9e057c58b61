"""Static figures: one or several timelines, curves, a sweep, named points, plans of a search, bars divided into parts.

Every function returns a :class:`Picture`, a matplotlib Figure that a notebook shows by itself and that ``savefig`` writes. Its
``alt_text`` says what it shows. Nothing is printed, and no setting of matplotlib is changed.
"""

from hybridlab.plot.charts import lines, stacks
from hybridlab.plot.figures import alt_text, compare, timeline
from hybridlab.plot.picture import Picture
from hybridlab.plot.points import pareto, points
from hybridlab.plot.sweeps import panels

__all__ = ["Picture", "alt_text", "compare", "lines", "panels", "pareto", "points", "stacks", "timeline"]
