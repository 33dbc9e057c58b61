"""Static figures: a timeline, several on one time axis, curves, a sweep, named points, plans, bars of parts, and all of them in words.

Every function returns a matplotlib Figure that a notebook shows by itself, that ``savefig`` writes, and whose
``alt_text`` says what can be seen in it. Nothing is printed and no setting of matplotlib is changed.
"""

from hybridlab.plot.curves import lines
from hybridlab.plot.figures import compare, timeline
from hybridlab.plot.pareto import pareto
from hybridlab.plot.picture import Picture
from hybridlab.plot.points import points
from hybridlab.plot.stacks import stacks
from hybridlab.plot.sweeps import panels
from hybridlab.plot.words import alt_text

__all__ = ["Picture", "alt_text", "compare", "lines", "panels", "pareto", "points", "stacks", "timeline"]
