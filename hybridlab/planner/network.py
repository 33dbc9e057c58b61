"""Times of messages between the GPUs of a cluster: within a node as measured, between nodes by latency and line rate."""

from functools import lru_cache

from hybridlab.collectives import A100_KNOTS, measured_time
from hybridlab.hardware import A100_80GB, Profile

NETWORK_SHARE = 0.9  # of the ports' line rate: 84.8 to 96 of 100 GB/s in nccl-tests with four HDR ports
MEASURED = 8  # ranks, the most that were measured on NVLink
# Seconds of the NCCL library's own model (tuning.cc, protocol Simple): once, for a step inside a node, for one between nodes
LATENCY, INSIDE, BETWEEN = 8.4e-6, 3.4e-6, 14e-6


def ring_seconds(profile: Profile, ranks: int, together: int, nbytes: float) -> float:
    """Return the seconds of a ring all-reduce of ``nbytes`` among ``ranks``, ``together`` of them in each node.

    Inside a node it is the time measured on A100s, of a message smaller by as much as the GPU's NVLink is faster. Between nodes
    2(D-1) latencies, those of NCCL's model, and 2(D-1)/D of the bytes at the rate of the ports of the ranks in a node, or of NVLink if that is less.
    """
    if ranks == 1 or not nbytes:
        return 0.0
    if ranks <= together:
        return inside_node(profile, ranks, nbytes)
    steps, between = 2 * (ranks - 1), 2 * (ranks // together - 1)
    rate = NETWORK_SHARE * together * profile.network
    if together > 1:
        rate = min(rate, nbytes / inside_node(profile, together, nbytes) * 2 * (together - 1) / together)
    return LATENCY + (steps - between) * INSIDE + between * BETWEEN + steps / ranks * nbytes / rate


def message_seconds(profile: Profile, nbytes: float) -> float:
    """Return the seconds of one message to another node."""
    return LATENCY + BETWEEN + nbytes / (NETWORK_SHARE * profile.network)


@lru_cache(maxsize=4096)
def inside_node(profile: Profile, ranks: int, nbytes: float) -> float:
    """Return the seconds of an all-reduce inside one node; more ranks than were measured count as the most that were."""
    return float(measured_time(min(ranks, MEASURED), nbytes * A100_80GB.nvlink / profile.nvlink))
