"""Closed forms for schedules with split backwards, without latency.

The letters K, M, v, F and B are the same as in :mod:`hybridlab.formulas.pipeline`. The input gradient takes the time I (Qi et al. write
T_B). The weight gradient takes the time W. A full backward takes B = I + W. In each formula, the bubble is K-1 times the largest of a few
terms. The first term is from the paper. The other terms matter if the weight gradient is too long for the idle time. They are not from the
paper, but the formulas agreed with the simulation for all costs that were tried.
"""

from hybridlab.checks import whole_number
from hybridlab.formulas.ranges import ROUNDING, outside_range, sizes, split_times


def zb_h1_makespan(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-H1's makespan, M(F + B) + (K-1) max(F + I - W, F, I), for M >= K.

    The first term is the largest if W is at most F and at most I.

    Parameters
    ----------
    devices, microbatches : int
        K and M.
    forward, backward, weight_gradient : float
        F, B and W.

    Raises
    ------
    UnsupportedSize
        M is smaller than K, or W is longer than B.

    References
    ----------
    Qi et al., ICLR 2024, arXiv 2401.10241, Table 2.

    Examples
    --------
    >>> zb_h1_makespan(4, 8, forward=100, backward=200, weight_gradient=100)
    2700.0
    """
    devices, microbatches = sizes(devices, microbatches)
    if microbatches < devices:
        raise outside_range("ZB-H1", f"at least as many microbatches as devices, not {microbatches} of {devices}")
    return _zb_h1_form(devices, microbatches, 1, split_times(forward, backward, weight_gradient))


def interleaved_zb_makespan(devices: int, microbatches: int, chunks: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return interleaved zero bubble's makespan, M(F + B) + (K-1)/v max(F + I - W, F, I).

    The bubble is the bubble of ZB-H1 divided by v.

    Parameters
    ----------
    devices, microbatches, chunks : int
        K, M and v. M must be a multiple of K, and v at least 2.
    forward, backward, weight_gradient : float
        F, B and W.

    Raises
    ------
    UnsupportedSize
        M is not a multiple of K, or W is longer than B.

    Examples
    --------
    >>> interleaved_zb_makespan(4, 8, 2, forward=100, backward=200, weight_gradient=100)
    2550.0
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="interleaved zero bubble")
    chunks = whole_number(chunks, "chunks", at_least=2)
    return _zb_h1_form(devices, microbatches, chunks, split_times(forward, backward, weight_gradient))


def zb_h2_makespan(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-H2's makespan, M(F + B) + (K-1) max(F, F + I - 2W, I - F), for M >= 2K-1.

    If the weight gradients fit into the idle time, the first term, F, is the largest. Then the bubble is (K-1)F, because the last device
    starts K-1 forwards later than the first device.

    Parameters
    ----------
    devices, microbatches : int
        K and M.
    forward, backward, weight_gradient : float
        F, B and W.

    Raises
    ------
    UnsupportedSize
        M is smaller than 2K-1, or W is longer than B.

    Examples
    --------
    >>> zb_h2_makespan(4, 8, forward=100, backward=200, weight_gradient=100)
    2700.0
    """
    devices, microbatches = _enough_microbatches("ZB-H2", devices, microbatches)
    forward, input_gradient, weight_gradient = split_times(forward, backward, weight_gradient)
    bubble = max(forward, forward + input_gradient - 2 * weight_gradient, input_gradient - forward)
    return microbatches * (forward + input_gradient + weight_gradient) + (devices - 1) * bubble


def zb_h2_span(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-H2's device span, M(F + B) + (K-1) max(F + I - 2W, I - F, 0), for M >= 2K-1.

    The device span is the longest time of a device from the start of its first operation to the end of its last. For F = I = W, no device
    waits in this time.

    Parameters
    ----------
    devices, microbatches : int
        K and M.
    forward, backward, weight_gradient : float
        F, B and W.

    Raises
    ------
    UnsupportedSize
        M is smaller than 2K-1, or W is longer than B.

    References
    ----------
    The first term: Qi et al., ICLR 2024, arXiv 2401.10241, Table 2.

    Examples
    --------
    >>> zb_h2_span(4, 8, forward=100, backward=200, weight_gradient=100)
    2400.0
    """
    devices, microbatches = _enough_microbatches("ZB-H2", devices, microbatches)
    forward, input_gradient, weight_gradient = split_times(forward, backward, weight_gradient)
    bubble = max(forward + input_gradient - 2 * weight_gradient, input_gradient - forward, 0.0)
    return microbatches * (forward + input_gradient + weight_gradient) + (devices - 1) * bubble


def zb_v_makespan(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-V's makespan, M(F + B) + (K-1) max(I/2, I - W), for F and W at most I and M >= 2K-1.

    For F = I = W, no device waits between the start of its first operation and the end of its last. The last device starts later than the
    first device by K-1 forwards of one chunk.

    Parameters
    ----------
    devices, microbatches : int
        K and M.
    forward, backward, weight_gradient : float
        F, B and W.

    Raises
    ------
    UnsupportedSize
        M is smaller than 2K-1, or F or W is longer than I.

    References
    ----------
    The case F = I = W: Qi et al., ICLR 2024, arXiv 2401.10241, sec. 6.

    Examples
    --------
    >>> zb_v_makespan(4, 8, forward=100, backward=200, weight_gradient=100)
    2550.0
    """
    devices, microbatches = _enough_microbatches("ZB-V", devices, microbatches)
    forward, input_gradient, weight_gradient = split_times(forward, backward, weight_gradient)
    if max(forward, weight_gradient) > input_gradient * (1 + ROUNDING):  # rounding can make I = B - W slightly too small
        condition = f"a forward and a weight gradient of at most the input gradient, {input_gradient:g}"
        raise outside_range("ZB-V", f"{condition}, not {forward:g} and {weight_gradient:g}")
    bubble = max(input_gradient / 2, input_gradient - weight_gradient)
    return microbatches * (forward + input_gradient + weight_gradient) + (devices - 1) * bubble


def _zb_h1_form(devices: int, microbatches: int, chunks: int, times: tuple[float, float, float]) -> float:
    """Return M(F + B) + (K-1)/v max(F + I - W, F, I) for the times F, I and W."""
    forward, input_gradient, weight_gradient = times
    bubble = max(forward + input_gradient - weight_gradient, forward, input_gradient)
    return microbatches * sum(times) + (devices - 1) / chunks * bubble


def _enough_microbatches(schedule: str, devices: int, microbatches: int) -> tuple[int, int]:
    """Return the numbers of devices and microbatches as ints. Raise an error if there are fewer than 2K-1 microbatches."""
    devices, microbatches = sizes(devices, microbatches)
    if microbatches < 2 * devices - 1:
        raise outside_range(schedule, f"at least 2K-1 microbatches, {2 * devices - 1} for {devices} devices, not {microbatches}")
    return devices, microbatches
