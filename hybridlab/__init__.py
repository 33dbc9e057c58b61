"""Hybrid parallel training, taught with numbers that hold: schedules, costs, timelines.

A schedule is an order. Costs are time. A timeline is both.

>>> timeline = simulate(build("1f1b", devices=4, microbatches=8), Costs(forward=1, backward=2))
>>> timeline.makespan, timeline.bubble_ratio
(33.0, 0.2727272727272727)
"""

from hybridlab import formulas, published
from hybridlab.clock import simulate
from hybridlab.collectives import Link, RingResult, ring_all_reduce
from hybridlab.costs import Costs
from hybridlab.errors import Deadlock, HybridLabError, InvalidSchedule, UnsupportedSize
from hybridlab.hardware import A100_40GB, A100_80GB, B200, H100, H200, V100
from hybridlab.mesh import Mesh
from hybridlab.model import Transformer
from hybridlab.ops import Kind, Op
from hybridlab.planner import Plan, predict, search
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
    "A100_40GB",
    "A100_80GB",
    "B200",
    "BF16",
    "FP16",
    "FP32",
    "H100",
    "H200",
    "INT8",
    "REGISTRY",
    "V100",
    "Costs",
    "Deadlock",
    "HybridLabError",
    "HybridStep",
    "InvalidSchedule",
    "Kind",
    "Link",
    "Mesh",
    "Op",
    "Plan",
    "RingResult",
    "Schedule",
    "Sweep",
    "Timeline",
    "Transformer",
    "UnsupportedSize",
    "WireFormat",
    "build",
    "check",
    "formulas",
    "hybrid_step",
    "predict",
    "published",
    "recomputed_peak",
    "register",
    "ring_all_reduce",
    "search",
    "simulate",
    "sweep",
]
