"""Closed forms of the schedules that split the backward, without latency.

Letters as in :mod:`hybridlab.formulas.pipeline`; B = I + W, input gradient and weight gradient, of which Qi et al. call I T_B.
Each bubble is K-1 times the largest of a few terms: the paper's, and those that take its place where the weight gradient is
too long to fit into the idle time. The others are not the paper's: they equal simulations at all costs tried.
"""

from hybridlab.checks import whole_number
from hybridlab.errors import UnsupportedSize
from hybridlab.formulas.ranges import ROUNDING, numbers, outside, sizes


def zb_h1_makespan(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-H1's makespan, M(F + B) + (K-1) max(F + I - W, F, I), for M >= K.

    Qi et al., arXiv 2401.10241, Table 2: the first term, the largest while W is no longer than F and I.

    >>> zb_h1_makespan(4, 8, forward=100, backward=200, weight_gradient=100)
    2700.0
    """
    devices, microbatches = sizes(devices, microbatches)
    if microbatches < devices:
        raise outside("ZB-H1", f"at least as many microbatches as devices, not {microbatches} of {devices}")
    return _with_bubble(devices, microbatches, 1, _kinds(forward, backward, weight_gradient))


def interleaved_zb_makespan(devices: int, microbatches: int, chunks: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return interleaved zero bubble's makespan, M(F + B) + (K-1)/v max(F + I - W, F, I): ZB-H1's bubble divided by v.

    >>> interleaved_zb_makespan(4, 8, 2, forward=100, backward=200, weight_gradient=100)
    2550.0
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="interleaved zero bubble")
    chunks = whole_number(chunks, "chunks", at_least=2)
    return _with_bubble(devices, microbatches, chunks, _kinds(forward, backward, weight_gradient))


def zb_h2_makespan(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-H2's makespan, M(F + B) + (K-1) max(F, F + I - 2W, I - F), for M >= 2K-1.

    Where W fits, the first term: the last device starts K-1 forwards after the first one.

    >>> zb_h2_makespan(4, 8, forward=100, backward=200, weight_gradient=100)
    2700.0
    """
    devices, microbatches = _enough("ZB-H2", devices, microbatches)
    forward, input_gradient, weight_gradient = _kinds(forward, backward, weight_gradient)
    bubble = max(forward, forward + input_gradient - 2 * weight_gradient, input_gradient - forward)
    return microbatches * (forward + input_gradient + weight_gradient) + (devices - 1) * bubble


def zb_h2_span(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-H2's device span, M(F + B) + (K-1) max(F + I - 2W, I - F, 0), for M >= 2K-1.

    Qi et al., arXiv 2401.10241, Table 2: the first term. At F = I = W no device waits between its start and its end.

    >>> zb_h2_span(4, 8, forward=100, backward=200, weight_gradient=100)
    2400.0
    """
    devices, microbatches = _enough("ZB-H2", devices, microbatches)
    forward, input_gradient, weight_gradient = _kinds(forward, backward, weight_gradient)
    bubble = max(forward + input_gradient - 2 * weight_gradient, input_gradient - forward, 0.0)
    return microbatches * (forward + input_gradient + weight_gradient) + (devices - 1) * bubble


def zb_v_makespan(devices: int, microbatches: int, forward: float, backward: float, weight_gradient: float) -> float:
    """Return ZB-V's makespan, M(F + B) + (K-1) max(I/2, I - W), for F and W at most I and M >= 2K-1.

    Qi et al., arXiv 2401.10241, sec. 6: at F = I = W no device waits between its start and its end, and the last one
    starts K-1 forwards of a chunk after the first.

    >>> zb_v_makespan(4, 8, forward=100, backward=200, weight_gradient=100)
    2550.0
    """
    devices, microbatches = _enough("ZB-V", devices, microbatches)
    forward, input_gradient, weight_gradient = _kinds(forward, backward, weight_gradient)
    if max(forward, weight_gradient) > input_gradient * (1 + ROUNDING):
        message = f"a forward and a weight gradient of at most the input gradient, {input_gradient:g}"
        raise outside("ZB-V", f"{message}, not {forward:g} and {weight_gradient:g}")
    bubble = max(input_gradient / 2, input_gradient - weight_gradient)
    return microbatches * (forward + input_gradient + weight_gradient) + (devices - 1) * bubble


def _with_bubble(devices: int, microbatches: int, chunks: int, kinds: tuple[float, float, float]) -> float:
    forward, input_gradient, weight_gradient = kinds
    bubble = max(forward + input_gradient - weight_gradient, forward, input_gradient)
    return microbatches * sum(kinds) + (devices - 1) / chunks * bubble


def _kinds(forward: float, backward: float, weight_gradient: float) -> tuple[float, float, float]:
    """Return F, I and W."""
    forward, backward, weight_gradient = numbers(forward, backward, weight_gradient)
    if weight_gradient > backward:
        raise UnsupportedSize(f"a weight gradient is a part of the backward, {backward:g}, not {weight_gradient:g}: make it smaller")
    return forward, backward - weight_gradient, weight_gradient


def _enough(what: str, devices: int, microbatches: int) -> tuple[int, int]:
    devices, microbatches = sizes(devices, microbatches)
    if microbatches < 2 * devices - 1:
        raise outside(what, f"at least 2K-1 microbatches, {2 * devices - 1} for {devices} devices, not {microbatches}")
    return devices, microbatches
