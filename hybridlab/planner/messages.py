"""The seconds of messages between GPUs: all-reduces of a ring, and messages from one stage to the next."""

from functools import lru_cache

from hybridlab.collectives import A100_LINKS, Link, all_reduce_time, measured_time
from hybridlab.hardware import A100_80GB, Profile

NETWORK_SHARE = 0.9  # share of the nominal bandwidth of the network ports; nccl-tests with four HDR ports reach 84.8 to 96 of 100 GB/s
NETWORK_LATENCY = 14e-6  # seconds per message between nodes, from tuning.cc in the NCCL library (net_ring, protocol Simple)
MOST_MEASURED_RANKS = max(A100_LINKS)  # the largest measured number of ranks in an all-reduce over NVLink


@lru_cache(maxsize=2**14)  # the many plans of a search share few different rings
def ring_seconds(profile: Profile, ranks: int, together: int, nbytes: float) -> float:
    """Return the seconds of a ring all-reduce of ``nbytes`` among ``ranks``, at most ``together`` of them in one node.

    Within a node, the time comes from measurements on A100 GPUs. For a faster NVLink, the message size is divided by the speedup. With more
    ranks than in any measurement, the time is the time of the largest measured number of ranks. Across nodes, the slowest link determines
    the time. The slowest link is either all network ports of the ranks of one node together, or NVLink.
    """
    if ranks == 1:
        return 0.0
    speedup = profile.nvlink / A100_80GB.nvlink
    nvlink = A100_LINKS[min(max(together, 2), MOST_MEASURED_RANKS)]  # measurements exist for 2 to 8 ranks
    if ranks <= together:
        return float(measured_time(min(ranks, MOST_MEASURED_RANKS), nbytes / speedup))
    ports = network_link(profile, together)
    slowest = Link(ports.latency, min(ports.bandwidth, nvlink.bandwidth * speedup if together > 1 else ports.bandwidth))
    return float(all_reduce_time("ring", ranks, nbytes, slowest))


def network_link(profile: Profile, ports: int = 1) -> Link:
    """Return one link with the latency of one network port and the bandwidth of all ``ports`` of a node together."""
    return Link(NETWORK_LATENCY, NETWORK_SHARE * ports * profile.network)


@lru_cache(maxsize=2**14)
def message_seconds(profile: Profile, tensor: int, nbytes: float, near: bool, whole: bool) -> float:
    """Return the seconds of one message of ``nbytes`` from the ``tensor`` GPUs of a stage to the GPUs of the next stage.

    Each GPU sends one part of the message. Then the receivers all-gather the parts over NVLink (Narayanan et al., arXiv 2104.04473, sec.
    4.1). An all-gather takes half the time of an all-reduce. If ``whole`` is False (sequence parallelism), each GPU needs only its own
    part, and there is no all-gather. If ``near`` is True, the next stage is in the same node.
    """
    link = Link(A100_LINKS[2].latency, profile.nvlink) if near else network_link(profile)
    gather = ring_seconds(profile, tensor, min(tensor, profile.gpus_per_node), nbytes) / 2 if whole else 0.0
    return link.latency + nbytes / tensor / link.bandwidth + gather
