"""Test the fitted times of measured all-reduces, and the bandwidth that a measured time means."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import refusal

from hybridlab import UnsupportedSize
from hybridlab.collectives import A100_KNOTS, A100_SECONDS, Link, all_reduce_time, bus_bandwidth, measured_time


def pieces(knots: Any, nbytes: Any) -> Any:
    """Return the times of straight pieces on logarithmic axes, one size at a time; beyond the ends, as measured_time says."""
    found = []
    for size in np.atleast_1d(nbytes):
        if size >= A100_KNOTS[-1]:
            found.append(knots[-1] * size / A100_KNOTS[-1])
            continue
        right = max(1, sum(place < size for place in A100_KNOTS))
        (x0, x1), (y0, y1) = A100_KNOTS[right - 1 : right + 1], knots[right - 1 : right + 1]
        found.append(y0 * (max(size, x0) / x0) ** (np.log(y1 / y0) / np.log(x1 / x0)))
    return np.array(found)


@pytest.mark.parametrize("ranks", range(2, 9))
def test_larger_messages_take_longer_and_lie_on_the_pieces(ranks: int) -> None:
    sizes = np.geomspace(1e4, 1e11, 500)
    assert (np.diff(measured_time(ranks, sizes)) >= 0).all()
    assert measured_time(ranks, sizes) == pytest.approx(pieces(A100_SECONDS[ranks], sizes), rel=1e-9)
    assert measured_time(ranks, 0) == pytest.approx(A100_SECONDS[ranks][0], rel=1e-12)


def test_one_rank_takes_no_time_and_nine_were_not_measured() -> None:
    assert measured_time(1, 1e9) == 0
    assert measured_time(1, [1e6, 1e9]).tolist() == [0, 0]
    with refusal("unsupported-size", "2 to 8 GPUs", 9, kind=UnsupportedSize):
        measured_time(9, 1e9)


def test_the_bus_bandwidth_is_that_of_the_links() -> None:
    """On links of 200 GB/s, the bus bandwidth must be 200 GB/s for any number of ranks and any collective, as nccl-tests defines it."""
    for ranks in (2, 3, 8, 64):
        half = (ranks - 1) / ranks * 1e9 / 200e9
        taken = {
            "all-reduce": all_reduce_time("ring", ranks, 1e9, Link(0, 200e9)),
            "reduce-scatter": half,
            "all-gather": half,
            "all-to-all": half,
            "broadcast": 1e9 / 200e9,
            "reduce": 1e9 / 200e9,
        }
        for name, seconds in taken.items():
            assert bus_bandwidth(name, ranks, 1e9, seconds) == pytest.approx(200e9), name
    assert bus_bandwidth("broadcast", 2, [1e9, 2e9], 0.5).tolist() == [2e9, 4e9]


@pytest.mark.parametrize(("call", "code", "words"), [
    (lambda: measured_time(0, 1), "too-small", ["ranks", 0]),
    (lambda: measured_time(2, -1), "out-of-range", ["nbytes", -1]),
    (lambda: measured_time(2, [1, np.nan]), "out-of-range", ["nbytes", "nan"]),
    (lambda: bus_bandwidth("reduce", 2, 1, 0), "out-of-range", ["seconds", 0]),
    (lambda: bus_bandwidth("reduce", 2, [1, 2], [1, 2, 3]), "does-not-fit", ["nbytes", "seconds", "(2,)", "(3,)"]),
    (lambda: bus_bandwidth("all-reduce", 1, 1, 1), "too-small", ["ranks", 2, 1]),
    (lambda: bus_bandwidth("allreduce", 2, 1, 1), "unknown-name", ["'allreduce'", "'all-reduce'"]),
])  # fmt: skip
def test_what_has_no_measured_time_or_bandwidth(call: Callable[[], Any], code: str, words: list[Any]) -> None:
    with refusal(code, *words):
        call()
