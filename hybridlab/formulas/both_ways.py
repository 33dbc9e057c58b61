"""Closed forms of the schedules in which microbatches enter the pipeline from both ends."""

from hybridlab.formulas.ranges import ROUNDING, numbers, outside, sizes
from hybridlab.inputs import whole_number


def dualpipe_bubble(stages: int, overlapped: float, backward: float, weight_gradient: float) -> float:
    """Return the idle time of a device in DualPipe and DualPipeV, (P/2 - 1)(FB + B - 3W), for an even number P of stages.

    DeepSeek-AI, arXiv 2412.19437, Table 2. Times are those of one microbatch on one stage: FB of a forward and a full backward
    that run overlapped, B of a full backward alone, W of a weight gradient alone. DualPipe has P stages on P devices, two
    copies of each; DualPipeV P stages on P/2 devices.

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
    """Return Chimera's makespan, M(F + B) + (K-2)B, for B = F or B = 2F, even K, M a multiple of K; M counts both directions.

    From its bubble ratio: Li and Hoefler, arXiv 2107.06925.

    >>> chimera_makespan(6, 6, forward=1, backward=2)
    26.0
    """
    devices, microbatches = sizes(devices, microbatches, whole_groups="Chimera")
    forward, backward = numbers(forward, backward)
    if devices % 2:
        raise outside("Chimera", f"an even number of devices, not {devices}")
    if backward not in (forward, 2 * forward):
        raise outside("Chimera", f"a backward as long as the forward or twice as long, {forward:g} or {2 * forward:g}, not {backward:g}")
    return microbatches * (forward + backward) + (devices - 2) * backward


def chimera_bubble_ratio(devices: int, microbatches: int, forward: float, backward: float) -> float:
    """Return Chimera's bubble ratio: (K-2)/(2M + K-2) for B = F, (K-2)/(3M/2 + K-2) for B = 2F; range as its makespan's.

    Li and Hoefler, arXiv 2107.06925.

    >>> chimera_bubble_ratio(4, 4, forward=1, backward=1), chimera_bubble_ratio(4, 4, forward=1, backward=2)
    (0.2, 0.25)
    """
    makespan = chimera_makespan(devices, microbatches, forward, backward)
    return (devices - 2) * backward / makespan if makespan else 0.0
