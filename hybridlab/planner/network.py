"""Times of messages between the GPUs of a cluster: within a node as measured, between nodes by latency and line rate."""

from functools import lru_cache

from hybridlab.collectives import A100_LINKS, Link, all_reduce_time, measured_time
from hybridlab.hardware import A100_80GB, Profile

NETWORK_SHARE = 0.9  # of the ports' line rate: 84.8 to 96 of 100 GB/s in nccl-tests with four HDR ports
NETWORK_LATENCY = 14e-6  # seconds a message between nodes: net_ring, protocol Simple, in the NCCL library's tuning.cc
MEASURED = max(A100_LINKS)  # ranks, the most that were measured on NVLink


@lru_cache(maxsize=2**14)
def ring_seconds(profile: Profile, ranks: int, together: int, nbytes: float) -> float:
    """Return the seconds of a ring all-reduce of ``nbytes`` among ``ranks``, at most ``together`` of them in each node.

    Inside a node it takes as long as measured on A100s, where a message is the smaller the faster the GPU's NVLink is; more
    ranks than were measured count as the most that were. Over several nodes the slowest link sets the pace: the
    ports of a node's ranks together, or NVLink if that is slower.
    """
    if ranks == 1:
        return 0.0
    faster = profile.nvlink / A100_80GB.nvlink
    inside = A100_LINKS[min(max(together, 2), MEASURED)]
    if ranks <= together:
        return float(measured_time(min(ranks, MEASURED), nbytes / faster))
    ports = network_link(profile, together)  # flat_ring_time wants full groups, and replicas need not fill their last node
    slowest = Link(ports.latency, min(ports.bandwidth, inside.bandwidth * faster if together > 1 else ports.bandwidth))
    return float(all_reduce_time("ring", ranks, nbytes, slowest))


def network_link(profile: Profile, ports: int = 1) -> Link:
    """Return the link that so many ports to other nodes make together."""
    return Link(NETWORK_LATENCY, NETWORK_SHARE * ports * profile.network)


@lru_cache(maxsize=2**14)
def message_seconds(profile: Profile, tensor: int, nbytes: float, near: bool, whole: bool) -> float:
    """Return the seconds in which each of ``tensor`` GPUs hands on its part of a message of ``nbytes`` to the next stage.

    The GPUs of a stage all hold the whole message, send a part each and gather the parts over NVLink, half an all-reduce
    (Narayanan et al., arXiv 2104.04473, sec. 4.1); where they hold a part each, ``whole`` is False and nothing is gathered.
    ``near``: the next stage is in the same node.
    """
    link = Link(A100_LINKS[2].latency, profile.nvlink) if near else network_link(profile)
    gather = ring_seconds(profile, tensor, min(tensor, profile.gpus_per_node), nbytes) / 2 if whole else 0.0
    return link.latency + nbytes / tensor / link.bandwidth + gather
