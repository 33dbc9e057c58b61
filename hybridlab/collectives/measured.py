"""Times and bandwidths of measured all-reduces. The times were fitted to measurements of 2 to 8 A100 GPUs with NCCL over NVLink.

Source: the measured tables of the vTrain project (Bang et al. 2023, arXiv 2312.12391; MIT licence). Only fitted values are stored here,
for messages of 1 MiB to 1 GiB within one node. There are two fits. The error of a fit is the mean relative error for one number of ranks.
Each mean is taken in two ways. (1) Over the 20 measured sizes. Most of these are small. (2) Over sizes in equal steps of 1 MiB. Most of
these are large, and their times are interpolated between measured times.

- ``A100_LINKS`` has one link (latency and bandwidth) for each number of ranks. Its error is 5 to 14 % over the 20 sizes, and 1.1 to 1.6 %
  over equal steps. The link that fits the 20 sizes best would still have an error of 2.2 to 5.2 % over the 20 sizes, because below 50 MB
  the time is not a linear function of the size.
- :func:`measured_time` has six straight lines on logarithmic axes. Its error is 0.8 to 1.7 % over the 20 sizes, and 0.3 to 1.1 % over equal
  steps. If each size is left out of the fit and then predicted, the error over the 20 sizes is 2.0 to 3.3 %, and 0.5 to 1.8 % if each size
  is weighted by the range of sizes around it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import known_name, numbers, short_repr, whole_number
from hybridlab.collectives.cost import LARGEST_MESSAGE, Link, message_sizes
from hybridlab.errors import HybridLabError, UnsupportedSize

# for a collective of D ranks, the number of times that each rank sends (D-1)/D of the bytes; 0 means that all bytes are sent once
PASSES = MappingProxyType({"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1, "all-to-all": 1, "broadcast": 0, "reduce": 0})

# One link for each number of ranks, fitted by tests/outside/fit_links.py. The fit weights each size by the range of sizes around it.
A100_LINKS: Mapping[int, Link] = MappingProxyType(
    {
        2: Link(2.950e-05, 196.22e9),
        3: Link(1.746e-05, 210.73e9),
        4: Link(1.090e-05, 220.35e9),
        5: Link(1.053e-05, 224.66e9),
        6: Link(8.095e-06, 228.73e9),
        7: Link(8.253e-06, 229.69e9),
        8: Link(5.734e-06, 230.78e9),
    }
)
A100_KNOTS = (1e6, 3e6, 6e6, 16e6, 50e6, 200e6, 1100e6)  # bytes
# for each number of ranks, the seconds at the sizes A100_KNOTS, fitted by the same script
A100_SECONDS: Mapping[int, tuple[float, ...]] = MappingProxyType(
    {
        2: (43.76e-6, 55.34e-6, 70.69e-6, 127.1e-6, 309.8e-6, 1.099e-3, 5.589e-3),
        3: (63.46e-6, 74.64e-6, 86.48e-6, 149.2e-6, 374e-6, 1.341e-3, 6.912e-3),
        4: (51.06e-6, 59.63e-6, 102.1e-6, 153.9e-6, 395.4e-6, 1.452e-3, 7.4e-3),
        5: (62.76e-6, 62.95e-6, 99.69e-6, 180.6e-6, 440.1e-6, 1.525e-3, 7.833e-3),
        6: (73e-6, 73.01e-6, 102e-6, 196.7e-6, 430.5e-6, 1.577e-3, 8.008e-3),
        7: (77.97e-6, 77.97e-6, 101.9e-6, 212.3e-6, 455.6e-6, 1.665e-3, 8.162e-3),
        8: (92.84e-6, 92.84e-6, 104.6e-6, 217.2e-6, 436.7e-6, 1.6e-3, 8.388e-3),
    }
)


def measured_time(ranks: int, nbytes: Any) -> Any:
    """Return the seconds of an all-reduce among 2 to 8 A100s of one node, from a fit to measurements.

    On logarithmic axes, the time is a straight line between two neighbouring sizes in ``A100_KNOTS``. Below the smallest of these sizes the
    result is constant, although a smaller message takes less time in reality. Above the largest of these sizes the bandwidth is constant.

    Parameters
    ----------
    ranks : int
        The number of GPUs, 1 to 8. One rank takes no time.
    nbytes : float or array
        Bytes that one rank holds.

    Returns
    -------
    float or array
        Seconds, in the shape of ``nbytes``.

    Raises
    ------
    UnsupportedSize
        ``ranks`` is more than 8. No such all-reduce was measured.

    Examples
    --------
    >>> round(1e3 * measured_time(8, 2**30), 2)  # ms
    8.19
    """
    ranks = whole_number(ranks, "ranks")
    if ranks > max(A100_SECONDS):
        raise UnsupportedSize(
            f"2 to 8 GPUs of one node were measured, not {ranks}: use two_level_time with A100_LINKS[8]",
            "unsupported-size",
        )
    size = message_sizes(nbytes)
    if ranks == 1:
        return np.zeros(size.shape) if size.ndim else 0.0
    within = np.log(np.clip(size, A100_KNOTS[0], A100_KNOTS[-1]))
    # Interpolate on logarithmic axes, so that small and large messages have similar relative errors.
    pieces = np.exp(np.interp(within, np.log(A100_KNOTS), np.log(A100_SECONDS[ranks])))
    seconds = pieces * np.maximum(1, size / A100_KNOTS[-1])  # above the largest size in A100_KNOTS, the time is proportional to the size
    return seconds if seconds.ndim else float(seconds)


def bus_bandwidth(collective: str, ranks: int, nbytes: Any, seconds: Any) -> Any:
    """Return the bandwidth that each link used in one direction. It can be compared with the peak bandwidth of the link.

    The result is bytes divided by seconds, times the share of the bytes that a rank must send. With D ranks the share is 2(D-1)/D for
    "all-reduce", (D-1)/D for "reduce-scatter", "all-gather" and "all-to-all", and 1 for "broadcast" and "reduce". If the links are the
    bottleneck, the result does not depend on D.

    Parameters
    ----------
    collective : str
        One of the six names above.
    ranks : int
        The number of ranks, D, at least two.
    nbytes : float or array
        Bytes of the whole data: the bytes that a rank holds before a reduce-scatter, or after an all-gather.
    seconds : float or array
        The time that the collective took. Its shape must broadcast with the shape of ``nbytes``.

    Returns
    -------
    float or array
        Bytes a second.

    Raises
    ------
    HybridLabError
        ``seconds`` is not above zero, or the shapes do not broadcast.

    References
    ----------
    PERFORMANCE.md of nccl-tests.

    Examples
    --------
    >>> bus_bandwidth("all-reduce", 8, 1e9, 0.007)
    250000000000.0
    """
    passes, ranks = PASSES[known_name(collective, PASSES, "collective")], whole_number(ranks, "ranks", at_least=2)
    size, time = message_sizes(nbytes), numbers(seconds, "seconds")
    if not ((time >= 1 / LARGEST_MESSAGE) & np.isfinite(time)).all():  # a shorter time could give an infinite bandwidth
        raise HybridLabError(f"seconds must be above zero and finite, not {short_repr(seconds)}", "out-of-range")
    try:
        bandwidth = size / time * (passes * (ranks - 1) / ranks if passes else 1)
    except ValueError:
        raise HybridLabError(
            f"nbytes and seconds must fit together, but have shapes {size.shape} and {time.shape}", "does-not-fit"
        ) from None
    return bandwidth if bandwidth.ndim else float(bandwidth)
