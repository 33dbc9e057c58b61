"""A ring all-reduce written message by message; the result of the library's ring must equal its result.

Faults can be planted in it.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from hybridlab import FP32, WireFormat

FAULTS = ("off-by-one", "re-encoded", "no mean", "dropped", "scales", "order")


def naive_ring(
    values: Any,
    wire: WireFormat = FP32,
    average: bool = True,
    *,
    rng: np.random.Generator | None = None,
    residual: Any = None,
    record: bool = False,
    fault: str = "",
) -> Any:
    """Run the ring: every rank has its own row of chunks, and at each step all ranks send at once, then all receive."""
    ranks, size = values.shape
    chunks = [[part.copy() for part in np.array_split(row, ranks)] for row in values]
    if fault == "dropped":  # all chunks have equal length, and the remaining numbers belong to no chunk
        each = size // ranks
        chunks = [[row[place * each : (place + 1) * each].copy() for place in range(ranks)] for row in values]
    residuals = None if residual is None else [[part.copy() for part in np.array_split(row, ranks)] for row in residual]
    payload, scales, held, hops = [0] * ranks, [0] * ranks, [], []

    def encoded(rank: int, chunk: int, divisor: int) -> Any:
        total = chunks[rank][chunk] if residuals is None else chunks[rank][chunk] + residuals[rank][chunk]
        packet = wire.encode(total / divisor if divisor > 1 else total, rng)
        if residuals is not None:
            residuals[rank][chunk] = total - wire.decode(packet).astype(total.dtype) * divisor
        return packet

    def step_of(phase: str, step: int, packets: list[Any], sent: list[int]) -> None:
        for rank, packet in enumerate(packets):
            payload[rank] += packet.payload_bytes
            scales[rank] += 0 if fault == "scales" else packet.scale_bytes
            receiver, arrived = (rank + 1) % ranks, wire.decode(packet)
            if phase == "reduce-scatter":
                arrived = arrived + chunks[receiver][sent[rank]]
            chunks[receiver][sent[rank]] = arrived.astype(values.dtype)
        hops.append((phase, step, sent, [packet.nbytes for packet in packets]))
        if record:
            held.append(np.array([np.concatenate(row) for row in chunks]))

    for step in range(ranks - 1):
        sent = [(rank - step) % ranks for rank in range(ranks)]
        step_of("reduce-scatter", step, [encoded(rank, chunk, 1) for rank, chunk in enumerate(sent)], sent)
    owned = [(rank + 1) % ranks for rank in range(ranks)]
    packets: list[Any] = []
    if ranks > 1:
        packets = [encoded(rank, chunk, ranks if average and fault != "no mean" else 1) for rank, chunk in enumerate(owned)]
        for rank, chunk in enumerate(owned):
            chunks[rank][chunk] = wire.decode(packets[rank]).astype(values.dtype)
    for step in range(ranks - 1):
        shift = 0 if fault == "off-by-one" else 1  # the published ring forwards the chunk before the finished one
        sent = [(rank + shift - step) % ranks for rank in range(ranks)]
        if fault in ("off-by-one", "re-encoded"):
            packets = [wire.encode(chunks[rank][chunk], rng) for rank, chunk in enumerate(sent)]
        step_of("all-gather", step, packets, sent)
        packets = packets[-1:] + packets[:-1]
    ends = [np.concatenate(row) for row in chunks]
    if fault == "dropped":
        ends = [np.append(end, row[end.size :]) for end, row in zip(ends, values, strict=True)]
    if fault == "order":
        ends = [end[::-1] for end in ends]
    after = None if residuals is None else np.array([np.concatenate(row) for row in residuals])
    counts = np.array(payload), np.array(scales)
    return SimpleNamespace(
        values=np.array(ends), payload_bytes=counts[0], scale_bytes=counts[1], bytes_sent=sum(counts), residual=after, held=held, hops=hops
    )
