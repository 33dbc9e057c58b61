"""Closed forms from the papers: what a timeline must equal. They share no code with the clock they judge.

Letters of the book: K devices, M microbatches, v chunks a device, F and B the forward and the full backward of one
microbatch on one device, W the weight gradient's part of B, C the latency between two devices. Stages are uniform.
"""

from hybridlab.errors import UnsupportedSize
from hybridlab.inputs import known_name, times, whole_number


def gpipe_makespan(devices: int, microbatches: int, forward: float, backward: float, p2p: float = 0.0) -> float:
    """Return GPipe's makespan, (M + K-1)(F + B) + 2(K-1)C. Huang et al., arXiv 1811.06965, sec. 2.3.

    >>> gpipe_makespan(4, 8, forward=1, backward=2)
    33.0
    """
    devices, microbatches = _sizes(devices, microbatches)
    forward, backward, p2p = _times(forward, backward, p2p)
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
    devices, microbatches = _sizes(devices, microbatches)
    forward, backward, p2p = _times(forward, backward, p2p)
    if p2p and microbatches % devices:
        raise _outside("1F1B with latency", f"microbatches a multiple of devices, not {microbatches} of {devices}")
    waits = 2 * (devices - 1) * microbatches / devices + 2 * (devices - 2) if devices > 1 else 0
    return (microbatches + devices - 1) * (forward + backward) + waits * p2p


def interleaved_makespan(
    devices: int, microbatches: int, chunks: int, forward: float, backward: float, p2p: float = 0.0
) -> float:
    """Return interleaved 1F1B's makespan, (M + (K-1)/v)(F + B) + 2(vK-1)C, for C below a chunk's F/v and B/v.

    Narayanan et al., arXiv 2104.04473, sec. 2.2.2: the bubble is 1F1B's divided by v.

    >>> interleaved_makespan(4, 8, 2, forward=100, backward=200)
    2850.0
    """
    devices, microbatches = _sizes(devices, microbatches, whole_groups="interleaved 1F1B")
    chunks = whole_number(chunks, "chunks", at_least=2)
    forward, backward, p2p = _times(forward, backward, p2p)
    shortest = min(forward, backward) / chunks
    if p2p and p2p >= shortest:
        told = f"a latency below one chunk's forward and backward, {shortest:g}, not {p2p:g}"
        raise _outside("interleaved 1F1B", told)
    messages = 2 * (chunks * devices - 1) if devices > 1 else 0
    return (microbatches + (devices - 1) / chunks) * (forward + backward) + messages * p2p


def hanayo_makespan(devices: int, microbatches: int, chunks: int, forward: float) -> float:
    """Return Hanayo's makespan for B = 2F and no latency, (F/v)[3vM + 4(K-1) + (M/K-1)(2K-3)], v chunks, v/2 waves.

    The schedule is that of Liu et al., arXiv 2308.15762, its group of K microbatches repeated M/K times. The formula
    is not theirs: it equals independent simulations at all 112 sizes tried.

    >>> hanayo_makespan(4, 8, 2, forward=100)
    3250.0
    """
    devices, microbatches = _sizes(devices, microbatches, whole_groups="Hanayo")
    chunks = whole_number(chunks, "chunks", at_least=2)
    if chunks % 2:
        raise _outside("Hanayo", f"an even number of chunks, not {chunks}")
    if devices == 1:
        return 3.0 * microbatches * _times(forward)[0]
    between = (microbatches // devices - 1) * (2 * devices - 3)
    return _times(forward)[0] / chunks * (3 * chunks * microbatches + 4 * (devices - 1) + between)


def zb_h1_makespan(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-H1's makespan without latency, M(F + B) + (K-1)(F + B - 2W), for W <= B/2, W <= F, M >= K.

    Qi et al., arXiv 2401.10241, Table 2: the bubble is (K-1)(T_F + T_B - T_W) with T_B the input gradient, B - W here.

    >>> zb_h1_makespan(4, 8, forward=100, backward=200, weight_gradient=100)
    2700.0
    """
    devices, microbatches = _sizes(devices, microbatches)
    forward, backward, weight_gradient = _times(forward, backward, weight_gradient)
    if microbatches < devices:
        raise _outside("ZB-H1", f"at least as many microbatches as devices, not {microbatches} of {devices}")
    if 2 * weight_gradient > backward:
        raise _outside(
            "ZB-H1", f"a weight gradient of at most half the backward, {backward / 2:g}, not {weight_gradient:g}"
        )
    if weight_gradient > forward:
        told = f"a weight gradient no longer than the forward, {forward:g}, not {weight_gradient:g}"
        raise _outside("ZB-H1", told)
    return microbatches * (forward + backward) + (devices - 1) * (forward + backward - 2 * weight_gradient)


def bubble_ratio(devices: int, microbatches: int) -> float:
    """Return the bubble ratio of GPipe and of 1F1B without latency, (K-1)/(M + K-1): the same for both.

    >>> bubble_ratio(4, 8)
    0.2727272727272727
    """
    devices, microbatches = _sizes(devices, microbatches)
    return (devices - 1) / (microbatches + devices - 1)


def peak_activations(schedule: str, devices: int, microbatches: int, device: int = 0, chunks: int = 2) -> float:
    """Return the most activations ``device`` holds at once, in microbatches of the whole device.

    GPipe M; 1F1B min(K-d, M) (Narayanan et al., arXiv 2104.04473, sec. 2.2.1); ZB-H1 min(K, M) on every device (Qi
    et al., arXiv 2401.10241, Table 2); interleaved on device 0 [2(K-1) + (v-1)K + 1]/v, at most M (Korthikanti et
    al., arXiv 2205.05198, sec. 4.2.3). ``chunks`` counts for interleaved alone.

    >>> peak_activations("1f1b", 4, 8), peak_activations("interleaved", 4, 8, chunks=2)
    (4.0, 5.5)
    """
    devices, microbatches = _sizes(devices, microbatches)
    device = whole_number(device, "device", at_least=0, at_most=devices - 1)
    chunks = whole_number(chunks, "chunks")
    name = known_name(schedule, ("gpipe", "1f1b", "interleaved", "zb-h1"), "closed form of peak activations for")
    if name == "interleaved":
        whole_number(chunks, "chunks", at_least=2)
        if device or microbatches % devices:
            raise _outside("interleaved 1F1B", "device 0 and microbatches a multiple of devices")
        return min(2 * (devices - 1) + (chunks - 1) * devices + 1, microbatches * chunks) / chunks
    most = {"gpipe": microbatches, "1f1b": devices - device, "zb-h1": devices}[name]
    return float(min(most, microbatches))


def _sizes(devices: int, microbatches: int, whole_groups: str = "") -> tuple[int, int]:
    devices, microbatches = whole_number(devices, "devices"), whole_number(microbatches, "microbatches")
    if whole_groups and microbatches % devices:
        raise _outside(whole_groups, f"microbatches a multiple of devices, not {microbatches} of {devices}")
    return devices, microbatches


def _times(*values: float) -> tuple[float, ...]:
    """Return each value as one finite time."""
    checked = [times(value, "a closed form's times") for value in values]
    if any(value.ndim for value in checked):
        raise UnsupportedSize("a closed form takes one number for each time: uniform stages, one setting")
    return tuple(float(value) for value in checked)


def _outside(what: str, holds_for: str) -> UnsupportedSize:
    return UnsupportedSize(f"the closed form of {what} holds for {holds_for}; simulate other cases")
