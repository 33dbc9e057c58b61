"""Collectives: all-reduces on real arrays, the bytes that each rank sends, and the time of an all-reduce.

Every all-reduce takes values of shape (ranks, n). After the all-reduce, all ranks have exactly the same bits.

>>> from hybridlab import INT8
>>> result = ring_all_reduce([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], INT8)
>>> result.payload_bytes.tolist(), result.scale_bytes.tolist()
([3, 3], [8, 8])
"""

from hybridlab.collectives.cost import (
    ALGORITHMS,
    Factors,
    Link,
    all_reduce_factors,
    all_reduce_time,
    double_tree_time,
    least_factors,
    two_level_time,
)
from hybridlab.collectives.measured import (
    A100_KNOTS,
    A100_LINKS,
    A100_SECONDS,
    bus_bandwidth,
    measured_time,
)
from hybridlab.collectives.one_shot import one_shot_all_reduce
from hybridlab.collectives.result import AllReduceResult
from hybridlab.collectives.ring import Hop, RingResult, ring_all_reduce

__all__ = [
    "A100_KNOTS",
    "A100_LINKS",
    "A100_SECONDS",
    "ALGORITHMS",
    "AllReduceResult",
    "Factors",
    "Hop",
    "Link",
    "RingResult",
    "all_reduce_factors",
    "all_reduce_time",
    "bus_bandwidth",
    "double_tree_time",
    "least_factors",
    "measured_time",
    "one_shot_all_reduce",
    "ring_all_reduce",
    "two_level_time",
]
