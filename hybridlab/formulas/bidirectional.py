"""Closed forms for schedules in which microbatches enter the pipeline at both ends."""

from hybridlab.checks import whole_number
from hybridlab.formulas.ranges import ROUNDING, outside_range, single_times, sizes, split_times


def dualpipe_bubble(stages: int, overlapped: float, backward: float, weight_gradient: float) -> float:
    """Return the idle time of a device in DualPipe and DualPipeV, (P/2 - 1)(FB + B - 3W), for even P, F = I and W <= I.

    DualPipe has P stages on P devices, with two copies of each stage. DualPipeV has P stages on P/2 devices. The device that waits longest
    has this idle time, if a forward F takes as long as an input gradient I = B - W, and a weight gradient takes no longer. For other
    times, the simulation gives another idle time. F is not an argument: the caller gives FB for a forward of the time I.

    Parameters
    ----------
    stages : int
        P.
    overlapped, backward, weight_gradient : float
        Times of one microbatch on one stage, all in the same unit. FB is the time of an overlapped pair (a forward and a full backward),
        from B to I + B. B is the time of a full backward alone, and W the time of a weight gradient alone.

    Raises
    ------
    UnsupportedSize
        P is odd, W is longer than I, or FB is not between B and I + B (``outside-the-formula``). W is longer than B (``out-of-range``).

    References
    ----------
    DeepSeek-AI, DeepSeek-V3, arXiv 2412.19437, Table 2.

    Examples
    --------
    >>> dualpipe_bubble(8, overlapped=3, backward=2, weight_gradient=1)
    6.0
    """
    stages = whole_number(stages, "stages")
    if stages % 2:
        raise outside_range("DualPipe", f"an even number of stages, not {stages}")
    (overlapped,) = single_times(overlapped)
    _, input_gradient, weight_gradient = split_times(0.0, backward, weight_gradient)
    backward, tolerance = input_gradient + weight_gradient, ROUNDING * overlapped
    if weight_gradient > input_gradient + tolerance:
        condition = f"a weight gradient of at most the input gradient, {input_gradient:g}, not {weight_gradient:g}"
        raise outside_range("DualPipe", condition)
    if not backward - tolerance <= overlapped <= input_gradient + backward + tolerance:
        condition = f"an overlapped pair that takes from {backward:g} to {input_gradient + backward:g}, not {overlapped:g}"
        raise outside_range("DualPipe with a forward as long as the input gradient", condition)
    return (stages / 2 - 1) * max(overlapped + backward - 3 * weight_gradient, 0.0)  # rounding can make 0 slightly negative


def chimera_makespan(devices: int, microbatches: int, forward: float, backward: float) -> float:
    """Return Chimera's makespan, M(F + B) + (K-2)max(F, B), for even K and M a multiple of K.

    The paper prints bubble ratios for two cases: (K-2)/(2M + K-2) for B = F, and (K-2)/(3M/2 + K-2) for B = 2F. The formula gives the same
    ratios. For other times the formula is not from the paper, but it agreed with the simulation for all times that were tried.

    Parameters
    ----------
    devices, microbatches : int
        K and M. M is the number of microbatches in both directions together.
    forward, backward : float
        F and B.

    Raises
    ------
    UnsupportedSize
        K is odd, or M is not a multiple of K.

    References
    ----------
    Li and Hoefler, SC 2021, arXiv 2107.06925, Table 2.

    Examples
    --------
    >>> chimera_makespan(6, 6, forward=1, backward=2), chimera_makespan(4, 8, forward=1, backward=2)
    (26.0, 28.0)
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="Chimera")
    forward, backward = single_times(forward, backward)
    if devices % 2:
        raise outside_range("Chimera", f"an even number of devices, not {devices}")
    return microbatches * (forward + backward) + (devices - 2) * max(forward, backward)
