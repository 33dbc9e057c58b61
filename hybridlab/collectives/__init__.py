"""Collectives on real arrays: what each rank ends with, which bytes it sent, how long that takes.

Every all-reduce takes values of shape (ranks, n) and gives all ranks the same bits.

>>> from hybridlab import INT8
>>> result = ring_all_reduce([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], INT8)
>>> result.payload_bytes.tolist(), result.scale_bytes.tolist()
([3, 3], [8, 8])
"""

from hybridlab.collectives.cost import ALGORITHMS, Factors, Link, all_reduce_factors, all_reduce_time, two_level_time
from hybridlab.collectives.hops import Hop
from hybridlab.collectives.others import (
    one_shot_all_reduce,
    parameter_server_all_reduce,
    tree_all_reduce,
    two_level_all_reduce,
)
from hybridlab.collectives.result import AllReduceResult
from hybridlab.collectives.ring import RingResult, ring_all_reduce

__all__ = [
    "ALGORITHMS",
    "AllReduceResult",
    "Factors",
    "Hop",
    "Link",
    "RingResult",
    "all_reduce_factors",
    "all_reduce_time",
    "one_shot_all_reduce",
    "parameter_server_all_reduce",
    "ring_all_reduce",
    "tree_all_reduce",
    "two_level_all_reduce",
    "two_level_time",
]
