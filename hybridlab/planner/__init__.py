"""The planner: it predicts the iteration time and the memory of a model on a cluster, and searches for the fastest plan.

>>> from hybridlab.hardware import A100_80GB
>>> from hybridlab.model import Transformer
>>> gpt = Transformer(layers=96, hidden=12288, heads=96)
>>> predict(gpt, Plan(tensor=8, pipeline=8, data=4, microbatch=1, global_batch=256), A100_80GB)
IterationTime(20.624 s, 142.4 TFLOP/s a GPU: matmul 61.9 %, memory_traffic 16.1 %, tensor_parallel 10.0 %, point_to_point 0.3 %,
 bubble 9.5 %, data_parallel 1.9 %, optimiser 0.5 %)
"""

from hybridlab.planner.calibration import calibrate
from hybridlab.planner.iteration import EFFICIENCY, IterationTime, layer_seconds, predict
from hybridlab.planner.layouts import Chunk, Cut, read_cut, write_cut
from hybridlab.planner.memory import GPUMemory, memory
from hybridlab.planner.plan import Plan
from hybridlab.planner.search import Found, Search, search

__all__ = [
    "EFFICIENCY",
    "Chunk",
    "Cut",
    "Found",
    "GPUMemory",
    "IterationTime",
    "Plan",
    "Search",
    "calibrate",
    "layer_seconds",
    "memory",
    "predict",
    "read_cut",
    "search",
    "write_cut",
]
