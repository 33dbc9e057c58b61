"""What was published before this course, kept apart from what is right: rules and printed numbers, reproduced as they are.

``timelines`` has two printed timelines of "1F1B" and ``rule`` the rule behind both, ``report`` the figures and the arithmetic of a report
on the same program, ``benchmarks`` the report's last tables, ``zero_bubble`` measured times and the rates computed from them. ``ring``
is the program's all-reduce and ``simulator`` a run of it with all that it prints. ``sweeps`` are the settings of eight comparisons of
schedules. ``megatron`` and ``korthikanti`` have iteration times of large runs.
In the library only ``hybridlab.course`` computes with these modules.

>>> print(step_grid(stages=2, replicas=1, microbatches=2))
Step | R0(S0) | R1(S1)
----------------------
0    |     F0     |     B0     |
1    |     B0     |     B1     |
2    |     B1     |     -      |
"""

from hybridlab.course.published import benchmarks, report, zero_bubble
from hybridlab.course.published.ring import PublishedRing, published_ring
from hybridlab.course.published.rule import LostForwards, lost_forwards
from hybridlab.course.published.simulator import Simulation, simulator
from hybridlab.course.published.sweeps import SWEEPS, PublishedSweep, not_drawn
from hybridlab.course.published.timelines import Event, EventLog, StepGrid, event_log, step_grid
from hybridlab.renamed import renamed

__all__ = [
    "SWEEPS",
    "Event",
    "EventLog",
    "LostForwards",
    "PublishedRing",
    "PublishedSweep",
    "Simulation",
    "StepGrid",
    "benchmarks",
    "event_log",
    "lost_forwards",
    "not_drawn",
    "published_ring",
    "report",
    "simulator",
    "step_grid",
    "zero_bubble",
]

__getattr__ = renamed(__name__, ring_all_reduce="published_ring")
