"""A course and a library on hybrid parallel training: schedules, costs and timelines, with numbers that tests check.

A schedule is an order of operations. Costs are the times of operations. A timeline has the order and the times.

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
from hybridlab.hardware import A100_40GB, A100_80GB, B200, B300, GB200, GB300, H100, H200, V100
from hybridlab.memory import Memory
from hybridlab.mesh import Mesh
from hybridlab.model import Transformer
from hybridlab.planner import Plan, predict, search
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.schedules import REGISTRY, build, register
from hybridlab.simulation import simulate, simulate_many
from hybridlab.step import HybridStep, hybrid_step, recomputed_peak
from hybridlab.sweep import Sweep, sweep
from hybridlab.timeline import Timeline
from hybridlab.wire import BF16, E4M3, E5M2, FP16, FP32, INT4, INT8, WireFormat

if TYPE_CHECKING:
    from hybridlab import plot, widgets
    from hybridlab.automatic import best_cut, rank, schedule_for
    from hybridlab.course import published
    from hybridlab.course.tasks import Student, check

__version__ = "0.1.0"

__all__ = [
    "A100_40GB",
    "A100_80GB",
    "B200",
    "B300",
    "BF16",
    "E4M3",
    "E5M2",
    "FP16",
    "FP32",
    "GB200",
    "GB300",
    "H100",
    "H200",
    "INT4",
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
    "Memory",
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
    "best_cut",
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

# Names that are imported on first use (PEP 562): the course, and all modules that need more than numpy. Public name -> (module, name in the
# module).
_ON_FIRST_USE = {
    "Student": ("hybridlab.course.tasks", "Student"),
    "best_cut": ("hybridlab.automatic", "best_cut"),
    "check": ("hybridlab.course.tasks", "check"),
    "part": ("hybridlab.course.parts", "part"),
    "plot": ("hybridlab.plot", ""),
    "published": ("hybridlab.course.published", ""),
    "rank": ("hybridlab.automatic", "rank"),
    "schedule_for": ("hybridlab.automatic", "schedule_for"),
    "widgets": ("hybridlab.widgets", ""),
}
_ON_FIRST_USE |= {name: (f"hybridlab.{name}", "") for name in ("automatic", "bound", "course", "engines", "palette", "training", "zoo")}


def __getattr__(name: str) -> Any:
    # Python calls this function for a name that is not yet in the module.
    if name in _ON_FIRST_USE:
        module, inside = _ON_FIRST_USE[name]
        loaded = import_module(module)
        value = getattr(loaded, inside) if inside else loaded
        globals()[name] = value  # store the value, so that the next use does not call this function
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})  # includes names that are not yet imported, for completion
