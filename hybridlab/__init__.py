"""Hybrid parallel training, taught with checked numbers: schedules, costs, timelines.

A schedule is an order. Costs are time. A timeline is both.

>>> timeline = simulate(build("1f1b", devices=4, microbatches=8), Costs(forward=1, backward=2))
>>> timeline.makespan, timeline.bubble_ratio
(33.0, 0.2727272727272727)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hybridlab import formulas
from hybridlab.collectives import Link, RingResult, ring_all_reduce
from hybridlab.costs import Costs
from hybridlab.errors import Deadlock, HybridLabError, InvalidSchedule, RunFailed, UnsupportedSize
from hybridlab.hardware import A100_40GB, A100_80GB, B200, H100, H200, V100
from hybridlab.mesh import Mesh
from hybridlab.model import Transformer
from hybridlab.planner import Plan, predict, search
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import REGISTRY, build, register
from hybridlab.simulation import simulate, simulate_many
from hybridlab.step import HybridStep, hybrid_step, recomputed_peak
from hybridlab.sweep import Sweep, sweep
from hybridlab.timeline import Timeline
from hybridlab.wire import BF16, FP16, FP32, INT8, WireFormat

if TYPE_CHECKING:
    from hybridlab import plot, widgets
    from hybridlab.automatic import rank, schedule_for
    from hybridlab.course import published
    from hybridlab.course.tasks import Student, check

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
    "RunFailed",
    "Schedule",
    "Student",
    "Sweep",
    "Timeline",
    "Transformer",
    "UnsupportedSize",
    "WireFormat",
    "build",
    "check",
    "formulas",
    "hybrid_step",
    "part",
    "plot",
    "predict",
    "published",
    "rank",
    "recomputed_peak",
    "register",
    "ring_all_reduce",
    "schedule_for",
    "search",
    "simulate",
    "simulate_many",
    "sweep",
    "widgets",
]

# Loaded on first use (PEP 562): the course, and everything that needs more than numpy. Each public name has its module and its name in that
# module.
_ON_FIRST_USE = {
    "Student": ("hybridlab.course.tasks", "Student"),
    "check": ("hybridlab.course.tasks", "check"),
    "part": ("hybridlab.course.parts", "part"),
    "plot": ("hybridlab.plot", ""),
    "published": ("hybridlab.course.published", ""),
    "rank": ("hybridlab.automatic", "rank"),
    "schedule_for": ("hybridlab.automatic", "schedule_for"),
    "widgets": ("hybridlab.widgets", ""),
}


def __getattr__(name: str) -> Any:
    # Python calls this function for a name that the module does not have yet.
    if name in _ON_FIRST_USE:
        module, inside = _ON_FIRST_USE[name]
        loaded = import_module(module)
        value = getattr(loaded, inside) if inside else loaded
        globals()[name] = value  # so that the next use finds it without this function
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})  # so that completion offers names that are not loaded yet
