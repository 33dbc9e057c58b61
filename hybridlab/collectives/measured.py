"""All-reduce times as measured: 2 to 8 A100s on NVLink with NCCL, and two rules fitted to them.

Source: the measured tables of the vTrain project (Bang et al. 2023, arXiv 2312.12391; MIT licence), of which only what was fitted
is here: messages of 1 MiB to 1 GiB within one node. The mean errors are relative, on 20 sizes for each number of ranks:

- one link for each number of ranks, ``A100_LINKS``: 1.1 to 1.6 % over sizes in equal steps of 1 MiB (read off straight
  lines between the 20), most of which are large. Over the 20 sizes, most of which are small, it is 5 to 14 %, and no link has
  less than 2.2 to 5.2 %, for below 50 MB times are no straight line;
- six pieces, :func:`measured_time`: 0.8 to 1.7 % over the 20 sizes, 0.3 to 1.1 % over those in equal steps. A size left out of
  the fit and then predicted is off by 2.0 to 3.3 %, or by 0.5 to 1.8 % where each counts as much as lies around it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import whole_number
from hybridlab.collectives.cost import Link, message_sizes
from hybridlab.errors import UnsupportedSize

# a link for each number of ranks: fit_link with the weights numpy.gradient(nbytes)
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
# seconds at the knots for each number of ranks: fit_knots
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
    """Return the seconds of an all-reduce of ``nbytes`` among 2 to 8 A100s of one node, as measured; a number or an array.

    Straight pieces between the sizes ``A100_KNOTS`` on two logarithmic axes. Below the first knot the time stays that of the
    knot, which is more than a small message takes; beyond the last the bandwidth stays. One rank takes no time. More than
    eight were not measured and are refused with :class:`UnsupportedSize`.

    >>> round(1e3 * measured_time(8, 2**30), 2)  # ms
    8.19
    """
    ranks = whole_number(ranks, "ranks")
    if ranks > max(A100_SECONDS):
        raise UnsupportedSize(f"2 to 8 GPUs of one node were measured, not {ranks}: reckon with two_level_time and A100_LINKS[8]")
    size = message_sizes(nbytes)
    if ranks == 1:
        return np.zeros(size.shape) if size.ndim else 0.0
    within = np.log(np.clip(size, A100_KNOTS[0], A100_KNOTS[-1]))
    pieces = np.exp(np.interp(within, np.log(A100_KNOTS), np.log(A100_SECONDS[ranks])))
    seconds = pieces * np.maximum(1, size / A100_KNOTS[-1])
    return seconds if seconds.ndim else float(seconds)
