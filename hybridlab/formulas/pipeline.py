"""Closed forms from the papers: what a timeline must equal. They share no code with the clock they judge.

Letters of the book: K devices, M microbatches, v chunks a device, F and B the forward and the full backward of one
microbatch on one device, C the latency between two devices. Stages are uniform.
"""

from hybridlab.checks import whole_number
from hybridlab.formulas.ranges import numbers, outside, sizes


def gpipe_makespan(devices: int, microbatches: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return GPipe's makespan, (M + K-1)(F + B) + 2(K-1)C. Huang et al., arXiv 1811.06965, sec. 2.3.

    >>> gpipe_makespan(4, 8, forward=1, backward=2)
    33.0
    """
    devices, microbatches = sizes(devices, microbatches)
    forward, backward, p2p = numbers(forward, backward, p2p)
    return (microbatches + devices - 1) * (forward + backward) + 2 * (devices - 1) * p2p


def one_f_one_b_makespan(devices: int, microbatches: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return 1F1B's makespan, (M + K-1)(F + B) + [2(K-1)M/K + 2(K-2)]C; with latency only for M a multiple of K.

    Without latency it is GPipe's, and holds for every M (Narayanan et al., arXiv 2104.04473, sec. 2.2.1). With it,
    1F1B waits one round trip for every K microbatches.

    >>> one_f_one_b_makespan(4, 8, forward=1, backward=2)
    33.0
    >>> one_f_one_b_makespan(32, 64, forward=12.5, backward=25, p2p=16)
    6506.5
    """
    devices, microbatches = sizes(devices, microbatches)
    forward, backward, p2p = numbers(forward, backward, p2p)
    if p2p and microbatches % devices:
        raise outside("1F1B with latency", f"microbatches a multiple of devices, not {microbatches} of {devices}")
    waits = 2 * (devices - 1) * microbatches / devices + 2 * (devices - 2) if devices > 1 else 0
    return (microbatches + devices - 1) * (forward + backward) + waits * p2p


def eager_one_f_one_b_makespan(devices: int, microbatches: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return eager 1F1B's makespan, (M + K-1)(F + B) + 2(K-1)C, for C up to (F + B)/2: GPipe's, with latency too.

    The schedule is that of Zhuang et al., arXiv 2211.05322. The formula is not theirs: each message has the time of one
    forward and one backward to travel there and back, so that only the first and the last microbatch wait.

    >>> eager_one_f_one_b_makespan(4, 8, forward=1, backward=2, p2p=1)
    39.0
    """
    devices, microbatches = sizes(devices, microbatches)
    forward, backward, p2p = numbers(forward, backward, p2p)
    if p2p > (forward + backward) / 2:
        message = f"a latency of at most half the forward and backward, {(forward + backward) / 2:g}, not {p2p:g}"
        raise outside("eager 1F1B", message)
    return (microbatches + devices - 1) * (forward + backward) + 2 * (devices - 1) * p2p


def interleaved_makespan(devices: int, microbatches: int, chunks: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return interleaved 1F1B's makespan, (M + (K-1)/v)(F + B) + 2(vK-1)C, for C below a chunk's F/v and B/v.

    Narayanan et al., arXiv 2104.04473, sec. 2.2.2: the bubble is 1F1B's divided by v.

    >>> interleaved_makespan(4, 8, 2, forward=100, backward=200)
    2850.0
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="interleaved 1F1B")
    chunks = whole_number(chunks, "chunks", at_least=2)
    forward, backward, p2p = numbers(forward, backward, p2p)
    shortest = min(forward, backward) / chunks
    if p2p and p2p >= shortest:
        message = f"a latency below one chunk's forward and backward, {shortest:g}, not {p2p:g}"
        raise outside("interleaved 1F1B", message)
    messages = 2 * (chunks * devices - 1) if devices > 1 else 0
    return (microbatches + (devices - 1) / chunks) * (forward + backward) + messages * p2p


def looped_bfs_makespan(devices: int, microbatches: int, chunks: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return looped BFS's makespan, (M + (K-1)/v)(F + B) without latency for M >= K: that of interleaved 1F1B.

    Lamy-Poirier, arXiv 2211.05953. In general, for a chunk's time x (F/v on the way there, B/v on the way back), each way
    takes (v-1) max(Mx, K(x + C)) + (K-1)(x + C) + Mx: before a chunk starts, the one before it has run and its first
    microbatch has come round. That holds always, and is not the paper's.

    >>> looped_bfs_makespan(4, 8, 2, forward=100, backward=200)
    2850.0
    """
    devices, microbatches = sizes(devices, microbatches)
    chunks = whole_number(chunks, "chunks", at_least=2)
    forward, backward, p2p = numbers(forward, backward, p2p)
    message = p2p if devices > 1 else 0.0
    ways = (forward / chunks, backward / chunks)
    rounds = sum(max(microbatches * time, devices * (time + message)) for time in ways)
    last = sum((devices - 1) * (time + message) + microbatches * time for time in ways)
    return (chunks - 1) * rounds + last


def hanayo_makespan(devices: int, microbatches: int, chunks: int, forward: float) -> float:
    """Return Hanayo's makespan for B = 2F and no latency, (F/v)[3vM + 4(K-1) + (M/K-1)(2K-3)], v chunks, v/2 waves.

    The schedule is that of Liu et al., arXiv 2308.15762, its group of K microbatches repeated M/K times. The formula
    is not theirs: it equals independent simulations at all 112 sizes tried.

    >>> hanayo_makespan(4, 8, 2, forward=100)
    3250.0
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="Hanayo")
    chunks = whole_number(chunks, "chunks", at_least=2)
    if chunks % 2:
        raise outside("Hanayo", f"an even number of chunks, not {chunks}")
    if devices == 1:
        return 3.0 * microbatches * numbers(forward)[0]
    between = (microbatches // devices - 1) * (2 * devices - 3)
    return numbers(forward)[0] / chunks * (3 * chunks * microbatches + 4 * (devices - 1) + between)


def bubble_ratio(devices: int, microbatches: int) -> float:
    """Return the bubble ratio of GPipe, of 1F1B and of eager 1F1B without latency, (K-1)/(M + K-1): the same for all.

    >>> bubble_ratio(4, 8)
    0.2727272727272727
    """
    devices, microbatches = sizes(devices, microbatches)
    return (devices - 1) / (microbatches + devices - 1)
