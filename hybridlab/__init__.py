"""Hybrid parallel training, taught with numbers that hold: schedules, costs, timelines.

A schedule is an order. Costs are time. A timeline is both.

>>> timeline = simulate(build("1f1b", devices=4, microbatches=8), Costs.per_device(forward=1, backward=2))
>>> timeline.makespan, timeline.bubble_ratio
(33.0, 0.2727272727272727)
"""

from hybridlab import formulas, published
from hybridlab.clock import simulate
from hybridlab.collectives import RingResult, ring_all_reduce
from hybridlab.costs import Costs
from hybridlab.errors import Deadlock, HybridLabError, InvalidSchedule, UnsupportedSize
from hybridlab.mesh import Mesh
from hybridlab.ops import Kind, Op
from hybridlab.recomputation import recomputed_peak
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build, register
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.sweep import Sweep, sweep
from hybridlab.tasks import check
from hybridlab.timeline import Timeline
from hybridlab.wire import BF16, FP16, FP32, INT8, WireFormat

__version__ = "0.1.0"

__all__ = [
    "BF16",
    "FP16",
    "FP32",
    "INT8",
    "REGISTRY",
    "Costs",
    "Deadlock",
    "HybridLabError",
    "HybridStep",
    "InvalidSchedule",
    "Kind",
    "Mesh",
    "Op",
    "RingResult",
    "Schedule",
    "Sweep",
    "Timeline",
    "UnsupportedSize",
    "WireFormat",
    "build",
    "check",
    "formulas",
    "hybrid_step",
    "published",
    "recomputed_peak",
    "register",
    "ring_all_reduce",
    "simulate",
    "sweep",
]
