"""What was published before this course, kept apart from what is right: rules and printed numbers, reproduced as they are.

``timelines`` has two printed timelines of "1F1B" and ``rule`` the rule behind both, ``report`` the figures and the arithmetic of a report
on the same program, ``zero_bubble`` measured times and the rates computed from them. Nothing else in the library uses
these modules.

>>> print(step_grid(stages=2, replicas=1, microbatches=2))
Step | R0(S0) | R1(S1)
----------------------
0    |     F0     |     B0     |
1    |     B0     |     B1     |
2    |     B1     |     -      |
"""

from hybridlab.published import report, zero_bubble
from hybridlab.published.rule import LostForwards, lost_forwards
from hybridlab.published.timelines import Event, EventLog, StepGrid, event_log, step_grid

__all__ = [
    "Event",
    "EventLog",
    "LostForwards",
    "StepGrid",
    "event_log",
    "lost_forwards",
    "report",
    "step_grid",
    "zero_bubble",
]
