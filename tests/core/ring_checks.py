"""Check what every ring all-reduce must satisfy, by comparing its result with something that is not a ring."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab import BF16, E4M3, FP16, FP32, INT4, INT8, WireFormat

Ring = Callable[..., Any]
Floats = npt.NDArray[np.float64]
FORMATS = (
    FP32,
    FP16,
    BF16,
    INT8,
    WireFormat("INT8", block=4),
    WireFormat("INT8", block=4, scale="FP16"),
    WireFormat("INT8", stochastic=True),
    INT4,
    WireFormat("INT4", block=3),
    E4M3,
    WireFormat("E5M2", block=4, scale="FP16"),
)


def gradients(ranks: int, size: int, seed: int = 0, kind: Any = np.float32) -> Any:
    return np.random.default_rng(seed).standard_normal((ranks, size)).astype(kind)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def lost(messages: Floats, wire: WireFormat) -> Floats:
    """Return the largest error of each number when a message with magnitudes up to ``messages`` is rounded once."""
    if wire.roundoff is not None:
        # half the distance between two neighbouring subnormal numbers, in E4M3 times the scale, or in FP16
        smallest = messages.max(initial=0) * 2.0**-18 if wire.coding.scaled else 2.0**-25
        return messages * wire.roundoff * (1 + 2.0**-15) + smallest
    steps = np.empty_like(messages)
    for start in range(0, messages.size, wire.block or max(messages.size, 1)):
        part = slice(start, start + (wire.block or messages.size))
        steps[part] = messages[part].max() / {"INT8": 127, "INT4": 7}[wire.name]
    slack = 1 + 2.0**-9 if wire.scale == "FP16" else 1 + 2.0**-20  # because the scale is rounded up
    return steps * slack * (1.0 if wire.stochastic else 0.5) + 2.0**-24


def worst(values: Any, wire: WireFormat) -> Floats:
    """Return the largest error that each number of a ring's mean may have.

    It is computed from the exact partial sums and the largest rounding errors.
    """
    ranks = len(values)
    chunks = [np.array_split(row.astype(np.float64), ranks) for row in values]
    most = []
    for chunk in range(ranks):
        rows = [chunks[(chunk + step) % ranks][chunk] for step in range(ranks)]
        total, off, size = rows[0], np.zeros_like(rows[0]), np.abs(rows[0])
        for row in rows[1:]:
            off = off + lost(np.abs(total) + off, wire)
            total, size = total + row, size + np.abs(row)
            off = off + size * 2.0**-23  # the rounding error of an addition in float32
        off = off / ranks
        most.append(off + lost(np.abs(total) / ranks + off, wire) + size * 2.0**-23)
    return np.concatenate(most)


def is_the_mean(ring: Ring) -> None:
    """The result must be numpy's mean, with an error of at most 1e-6 of its norm."""
    for ranks, size in [(2, 64), (4, 120), (5, 333), (8, 1001), (16, 4096)]:
        for kind in (np.float32, np.float64):
            values = gradients(ranks, size, ranks, kind)
            mean = values.mean(axis=0, dtype=np.float64)
            for row in ring(values).values:
                assert np.linalg.norm(row - mean) <= 1e-6 * np.linalg.norm(mean)


def is_the_mean_of_uneven_chunks(ring: Ring) -> None:
    for ranks, size in [(3, 4), (4, 7), (7, 50), (5, 3), (8, 1), (6, 6)]:
        values = gradients(ranks, size, size)
        assert np.abs(ring(values).values - values.mean(axis=0, dtype=np.float64)).max() <= 1e-6


def rounds_within_its_bound(ring: Ring) -> None:
    for wire in FORMATS:
        for ranks, size in [(2, 30), (4, 120), (7, 100), (5, 3)]:
            values = gradients(ranks, size, ranks + size)
            off = np.abs(ring(values, wire, rng=rng()).values - values.mean(axis=0, dtype=np.float64))
            assert (off <= worst(values, wire)).all(), f"{wire}, {ranks} ranks: {(off / worst(values, wire)).max()}"


def leaves_all_ranks_with_the_same_bits(ring: Ring) -> None:
    for wire in FORMATS:
        for ranks, size in [(4, 120), (3, 7), (8, 500)]:
            rows = ring(gradients(ranks, size), wire, rng=rng()).values
            assert all(row.tobytes() == rows[0].tobytes() for row in rows), str(wire)


def sends_the_bytes_of_the_published_configuration(ring: Ring) -> None:
    """A ring must send the bytes given in reference/collectives.md: three rings of four ranks, 120 numbers."""
    rings = {wire: [ring(gradients(4, 120, stage), wire) for stage in range(3)] for wire in (INT8, FP16)}
    assert sum(int(each.payload_bytes.sum()) for each in rings[INT8]) == 2160
    assert sum(int(each.bytes_sent.sum()) for each in rings[INT8]) == 2448
    assert sum(int(each.bytes_sent.sum()) for each in rings[FP16]) == 4320


CHECKS = (
    is_the_mean,
    is_the_mean_of_uneven_chunks,
    rounds_within_its_bound,
    leaves_all_ranks_with_the_same_bits,
    sends_the_bytes_of_the_published_configuration,
)
