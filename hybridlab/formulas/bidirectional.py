"""Closed forms of the schedules in which microbatches enter the pipeline from both ends."""

from hybridlab.checks import whole_number
from hybridlab.formulas.ranges import ROUNDING, numbers, outside, sizes


def dualpipe_bubble(stages: int, overlapped: float, backward: float, weight_gradient: float) -> float:
    """Return the idle time of a device in DualPipe and DualPipeV, (P/2 - 1)(FB + B - 3W), for an even number P of stages.

    DeepSeek-AI, arXiv 2412.19437, Table 2. Times are those of one microbatch on one stage: FB of a forward and a full backward
    that run overlapped, B of a full backward alone, W of a weight gradient alone. DualPipe has P stages on P devices, two
    copies of each; DualPipeV P stages on P/2 devices. In the simulated schedules it is that of the device that waits longest,
    wherever the forward is as long as the input gradient.

    >>> dualpipe_bubble(8, overlapped=3, backward=2, weight_gradient=1)
    6.0
    """
    stages = whole_number(stages, "stages")
    if stages % 2:
        raise outside("DualPipe", f"an even number of stages, not {stages}")
    overlapped, backward, weight_gradient = numbers(overlapped, backward, weight_gradient)
    bubble = overlapped + backward - 3 * weight_gradient
    if bubble < -ROUNDING * overlapped:
        raise outside("DualPipe", f"a weight gradient of at most a third of FB + B, {overlapped + backward:g}, not {weight_gradient:g}")
    return (stages / 2 - 1) * max(bubble, 0.0)


def chimera_makespan(devices: int, microbatches: int, forward: float, backward: float) -> float:
    """Return Chimera's makespan for even K and M a multiple of K, M(F + B) + (K-2)max(F, B).

    M counts both directions. It has the bubble ratios of Li and Hoefler, arXiv 2107.06925, Table 2: (K-2)/(2M + K-2) for B = F
    and (K-2)/(3M/2 + K-2) for B = 2F; at other costs it is that of the simulated schedule.

    >>> chimera_makespan(6, 6, forward=1, backward=2), chimera_makespan(4, 8, forward=1, backward=2)
    (26.0, 28.0)
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="Chimera")
    forward, backward = numbers(forward, backward)
    if devices % 2:
        raise outside("Chimera", f"an even number of devices, not {devices}")
    return microbatches * (forward + backward) + (devices - 2) * max(forward, backward)
