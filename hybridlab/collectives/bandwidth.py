"""Bandwidth of a measured collective: bytes by seconds, and what that says of the links."""

from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import known_name, numbers, short_repr, whole_number
from hybridlab.collectives.cost import MOST_BYTES, message_sizes
from hybridlab.errors import HybridLabError

PASSES = MappingProxyType({"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1, "all-to-all": 1, "broadcast": 0, "reduce": 0})
COLLECTIVES = tuple(PASSES)


def algorithm_bandwidth(nbytes: Any, seconds: Any) -> Any:
    """Return the bytes of a collective by the seconds it took: what a program sees. Numbers or arrays.

    >>> algorithm_bandwidth(1e9, 0.008)
    125000000000.0
    """
    size, time = message_sizes(nbytes), numbers(seconds, "seconds")
    if not ((time >= 1 / MOST_BYTES) & np.isfinite(time)).all():
        raise HybridLabError(f"seconds must be above zero and finite, not {short_repr(seconds)}")
    try:
        bandwidth = size / time
    except ValueError:
        raise HybridLabError(f"nbytes and seconds must fit together, but have shapes {size.shape} and {time.shape}") from None
    return bandwidth if bandwidth.ndim else float(bandwidth)


def bus_bandwidth(collective: str, ranks: int, nbytes: Any, seconds: Any) -> Any:
    """Return the bytes/s that each link must have carried one way: to be held against its peak, whatever the number of ranks.

    The :func:`algorithm_bandwidth` times what a rank must send of each byte: 2(D-1)/D for an "all-reduce", (D-1)/D for
    "reduce-scatter", "all-gather" and "all-to-all", 1 for "broadcast" and "reduce" (PERFORMANCE.md of nccl-tests).
    ``nbytes`` is the whole: what a rank holds before a reduce-scatter or after an all-gather.

    >>> bus_bandwidth("all-reduce", 8, 1e9, 0.007)
    250000000000.0
    """
    passes, ranks = PASSES[known_name(collective, PASSES, "collective")], whole_number(ranks, "ranks", at_least=2)
    return algorithm_bandwidth(nbytes, seconds) * (passes * (ranks - 1) / ranks if passes else 1)
