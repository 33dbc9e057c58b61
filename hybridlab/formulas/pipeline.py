"""Closed forms for schedules with full backwards. They share no source code with the simulation, and must agree with it.

There are K devices, M microbatches and v chunks on each device. F and B are the times of the forward and the full backward of one
microbatch on one device with all its chunks. C is the latency between two devices. All stages take equally long. All times and all results
have the same unit.
"""

from hybridlab.checks import whole_number
from hybridlab.formulas.ranges import outside_range, single_times, sizes


def gpipe_makespan(devices: int, microbatches: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return GPipe's makespan, (M + K-1)(F + B) + 2(K-1)C.

    Parameters
    ----------
    devices, microbatches : int
        K and M.
    forward, backward, p2p : float
        F, B and C.

    Raises
    ------
    HybridLabError
        K or M is not a whole number of at least 1, or a time is not one finite number of zero or more. The form holds for all others.

    References
    ----------
    Huang et al., NeurIPS 2019, arXiv 1811.06965, sec. 2.3.

    Examples
    --------
    >>> gpipe_makespan(4, 8, forward=1, backward=2)
    33.0
    """
    devices, microbatches = sizes(devices, microbatches)
    forward, backward, p2p = single_times(forward, backward, p2p)
    # The last device starts later than the first by K-1 forwards and K-1 messages. The first device ends later than the last by K-1
    # backwards and K-1 messages.
    return (microbatches + devices - 1) * (forward + backward) + 2 * (devices - 1) * p2p


def one_f_one_b_makespan(devices: int, microbatches: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return 1F1B's makespan, (M + K-1)(F + B) + [2(K-1)M/K + 2(K-2)]C.

    Without latency, the makespan equals that of GPipe, and the formula holds for every M. With latency, M must be a multiple of K. Then
    1F1B waits once for every K microbatches, while messages travel to the last device and back.

    Parameters
    ----------
    devices, microbatches : int
        K and M.
    forward, backward, p2p : float
        F, B and C.

    Raises
    ------
    UnsupportedSize
        There is latency and M is not a multiple of K.

    References
    ----------
    Without latency: Narayanan et al., SC 2021, arXiv 2104.04473, sec. 2.2.1.

    Examples
    --------
    >>> one_f_one_b_makespan(4, 8, forward=1, backward=2)
    33.0
    >>> one_f_one_b_makespan(32, 64, forward=12.5, backward=25, p2p=16)
    6506.5
    """
    devices, microbatches = sizes(devices, microbatches)
    forward, backward, p2p = single_times(forward, backward, p2p)
    if p2p and microbatches % devices:
        raise outside_range("1F1B with latency", f"a number of microbatches that is divisible by the {devices} devices, not {microbatches}")
    # the number of latencies during which devices wait; a single device sends no messages
    messages = 2 * (devices - 1) * microbatches / devices + 2 * (devices - 2) if devices > 1 else 0
    return (microbatches + devices - 1) * (forward + backward) + messages * p2p


def eager_one_f_one_b_makespan(devices: int, microbatches: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return eager 1F1B's makespan, (M + K-1)(F + B) + 2(K-1)C, for C up to (F + B)/2.

    The makespan equals that of GPipe with the same latency. The formula is not from the paper. A message to the next device and a message
    back take no longer than one forward and one backward on a device. So only the first and the last microbatch wait for messages.

    Parameters
    ----------
    devices, microbatches : int
        K and M.
    forward, backward, p2p : float
        F, B and C.

    Raises
    ------
    UnsupportedSize
        The latency is more than (F + B)/2.

    References
    ----------
    The schedule: Zhuang et al., MLSys 2023, arXiv 2211.05322.

    Examples
    --------
    >>> eager_one_f_one_b_makespan(4, 8, forward=1, backward=2, p2p=1)
    39.0
    """
    devices, microbatches = sizes(devices, microbatches)
    forward, backward, p2p = single_times(forward, backward, p2p)
    if p2p > (forward + backward) / 2:
        condition = f"a latency of at most half the forward and backward, {(forward + backward) / 2:g}, not {p2p:g}"
        raise outside_range("eager 1F1B", condition)
    return (microbatches + devices - 1) * (forward + backward) + 2 * (devices - 1) * p2p


def interleaved_makespan(devices: int, microbatches: int, chunks: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return interleaved 1F1B's makespan, (M + (K-1)/v)(F + B) + 2(vK-1)C.

    Without latency, the bubble is the bubble of 1F1B divided by v.

    Parameters
    ----------
    devices, microbatches, chunks : int
        K, M and v. M must be a multiple of K, and v at least 2.
    forward, backward, p2p : float
        F, B and C. C must be shorter than F/v and B/v, the times of one chunk.

    Raises
    ------
    UnsupportedSize
        M is not a multiple of K, or the latency is too long.

    References
    ----------
    Without latency: Narayanan et al., SC 2021, arXiv 2104.04473, sec. 2.2.2.

    Examples
    --------
    >>> interleaved_makespan(4, 8, 2, forward=100, backward=200)
    2850.0
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="interleaved 1F1B")
    chunks = whole_number(chunks, "chunks", at_least=2)
    forward, backward, p2p = single_times(forward, backward, p2p)
    shortest = min(forward, backward) / chunks
    if p2p and p2p >= shortest:
        condition = f"a latency below one chunk's forward and backward, {shortest:g}, not {p2p:g}"
        raise outside_range("interleaved 1F1B", condition)
    messages = 2 * (chunks * devices - 1) if devices > 1 else 0  # from the first stage to the last and back
    return (microbatches + (devices - 1) / chunks) * (forward + backward) + messages * p2p


def looped_bfs_makespan(devices: int, microbatches: int, chunks: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return looped BFS's makespan, for all sizes and times.

    All forwards together take (v-1) max(Mx, K(x + C)) + (K-1)(x + C) + Mx, where x = F/v is the time of one chunk. All backwards together
    take the same with x = B/v. The maximum has two terms, because a device starts its next chunk after two events: it has finished all
    microbatches of its current chunk, and the first microbatch has passed through all devices. The formula is not from the paper. Without
    latency and for M >= K, it gives the makespan of interleaved 1F1B, (M + (K-1)/v)(F + B).

    Parameters
    ----------
    devices, microbatches, chunks : int
        K, M and v. v must be at least 2.
    forward, backward, p2p : float
        F, B and C.

    Raises
    ------
    HybridLabError
        K or M is not a whole number of at least 1, v is not one of at least 2, or a time is not one finite number of zero or more. The form
        holds for all others.

    References
    ----------
    Lamy-Poirier, MLSys 2023, arXiv 2211.05953.

    Examples
    --------
    >>> looped_bfs_makespan(4, 8, 2, forward=100, backward=200)
    2850.0
    """
    devices, microbatches = sizes(devices, microbatches)
    chunks = whole_number(chunks, "chunks", at_least=2)
    forward, backward, p2p = single_times(forward, backward, p2p)
    message = p2p if devices > 1 else 0.0  # a single device sends no messages
    chunk_times = (forward / chunks, backward / chunks)
    # A chunk takes the longer of two times: M operations, or the first microbatch's way through all devices.
    first_chunks = sum((chunks - 1) * max(microbatches * time, devices * (time + message)) for time in chunk_times)
    last_chunk = sum((devices - 1) * (time + message) + microbatches * time for time in chunk_times)
    return first_chunks + last_chunk


def hanayo_makespan(devices: int, microbatches: int, chunks: int, forward: float) -> float:
    """Return Hanayo's makespan for B = 2F and no latency, (F/v)[3vM + 4(K-1) + (M/K-1)(2K-3)].

    The formula is not from the paper, but it agreed with independent simulations for all 112 sizes that were tried. The schedule in the
    paper has one group of K microbatches. Here there are M/K such groups, with v/2 waves each.

    Parameters
    ----------
    devices, microbatches, chunks : int
        K, M and v. M must be a multiple of K, and v must be even.
    forward : float
        F.

    Raises
    ------
    UnsupportedSize
        M is not a multiple of K, or v is odd.

    References
    ----------
    The schedule: Liu et al., SC 2023, arXiv 2308.15762.

    Examples
    --------
    >>> hanayo_makespan(4, 8, 2, forward=100)
    3250.0
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="Hanayo")
    chunks = whole_number(chunks, "chunks", at_least=2)
    if chunks % 2:
        raise outside_range("Hanayo", f"an even number of chunks, not {chunks}")
    if devices == 1:  # a single device never waits, but 2K-3 would be negative
        return 3.0 * microbatches * single_times(forward)[0]
    between_groups = (microbatches // devices - 1) * (2 * devices - 3)
    return single_times(forward)[0] / chunks * (3 * chunks * microbatches + 4 * (devices - 1) + between_groups)


def bubble_ratio(devices: int, microbatches: int) -> float:
    """Return the bubble ratio of GPipe, 1F1B or eager 1F1B without latency, (K-1)/(M + K-1).

    Parameters
    ----------
    devices, microbatches : int
        K and M.

    Returns
    -------
    float
        The idle time of all devices, divided by (number of devices x makespan). From 0 to 1.

    Raises
    ------
    HybridLabError
        K or M is not a whole number of at least 1. The form holds for all others.

    Examples
    --------
    >>> bubble_ratio(4, 8)
    0.2727272727272727
    """
    devices, microbatches = sizes(devices, microbatches)
    return (devices - 1) / (microbatches + devices - 1)
