"""Programs, reports and measurements that others published, reproduced with their faults.

- ``timelines`` has two timelines that a simulator of hybrid training prints. The simulator calls both of them "1F1B".
- ``ring`` has the all-reduce of the same simulator.
- ``simulator`` runs the whole simulator and returns the results that it prints.
- ``report`` has the numbers that a report on hybrid training prints, and the rules by which the report computes them.
- ``benchmarks`` has the last tables of this report.
- ``sweeps`` has the settings of eight sweeps of schedules.
- ``links`` has the time of a message on real links, to be shown beside these sweeps.
- ``zero_bubble`` has measured times of operations, and the bubble rates computed from them.
- ``large_runs`` has iteration times of large runs.

In the library only ``hybridlab.course`` computes with these modules.

>>> print(step_grid(stages=2, replicas=1, microbatches=2))
Step | R0(S0) | R1(S1)
----------------------
0    |     F0     |     B0     |
1    |     B0     |     B1     |
2    |     B1     |     -      |
"""

from hybridlab.course.published import benchmarks, report, zero_bubble
from hybridlab.course.published.links import RealLinks, real_links
from hybridlab.course.published.ring import PublishedRing, published_ring
from hybridlab.course.published.simulator import Simulation, simulator
from hybridlab.course.published.sweeps import SWEEPS, PublishedSweep, not_drawn
from hybridlab.course.published.timelines import Event, EventLog, LostForwards, StepGrid, event_log, lost_forwards, step_grid

__all__ = [
    "SWEEPS",
    "Event",
    "EventLog",
    "LostForwards",
    "PublishedRing",
    "PublishedSweep",
    "RealLinks",
    "Simulation",
    "StepGrid",
    "benchmarks",
    "event_log",
    "lost_forwards",
    "not_drawn",
    "published_ring",
    "real_links",
    "report",
    "simulator",
    "step_grid",
    "zero_bubble",
]
