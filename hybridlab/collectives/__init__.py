"""Collectives: all-reduces on real arrays, the bytes that each rank sends, and the time that an all-reduce takes.

Every all-reduce takes values of shape (ranks, n) and leaves all ranks with the same bits.

>>> from hybridlab import INT8
>>> result = ring_all_reduce([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], INT8)
>>> result.payload_bytes.tolist(), result.scale_bytes.tolist()
([3, 3], [8, 8])
"""

from hybridlab.collectives.cost import (
    ALGORITHMS,
    Factors,
    Link,
    all_gather_time,
    all_reduce_factors,
    all_reduce_time,
    flat_ring_time,
    least_factors,
    reduce_scatter_time,
    two_level_time,
)
from hybridlab.collectives.double_tree import double_tree_time
from hybridlab.collectives.encoded import encoded_bytes, encoded_time, encoded_two_level_time
from hybridlab.collectives.measured import (
    A100_KNOTS,
    A100_LINKS,
    A100_SECONDS,
    COLLECTIVES,
    algorithm_bandwidth,
    bus_bandwidth,
    fit_knots,
    fit_link,
    measured_time,
)
from hybridlab.collectives.others import (
    one_shot_all_reduce,
    parameter_server_all_reduce,
    tree_all_reduce,
    two_level_all_reduce,
)
from hybridlab.collectives.result import AllReduceResult
from hybridlab.collectives.ring import Hop, RingResult, ring_all_reduce

__all__ = [
    "A100_KNOTS",
    "A100_LINKS",
    "A100_SECONDS",
    "ALGORITHMS",
    "COLLECTIVES",
    "AllReduceResult",
    "Factors",
    "Hop",
    "Link",
    "RingResult",
    "algorithm_bandwidth",
    "all_gather_time",
    "all_reduce_factors",
    "all_reduce_time",
    "bus_bandwidth",
    "double_tree_time",
    "encoded_bytes",
    "encoded_time",
    "encoded_two_level_time",
    "fit_knots",
    "fit_link",
    "flat_ring_time",
    "least_factors",
    "measured_time",
    "one_shot_all_reduce",
    "parameter_server_all_reduce",
    "reduce_scatter_time",
    "ring_all_reduce",
    "tree_all_reduce",
    "two_level_all_reduce",
    "two_level_time",
]
