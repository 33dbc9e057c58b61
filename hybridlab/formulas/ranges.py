"""Checks of the arguments of closed forms, and the error for arguments for which a formula does not hold."""

from hybridlab.checks import times, whole_number
from hybridlab.errors import UnsupportedSize

ROUNDING = 1e-12  # relative size of rounding errors that checks accept; for example, 0.3 - 0.1 is a little less than 0.2


def sizes(devices: int, microbatches: int, whole_groups: str = "") -> tuple[int, int]:
    """Return the numbers of devices and microbatches as ints. Raise an error if they are not whole numbers of at least 1.

    If ``whole_groups`` is the name of a schedule, the number of microbatches must be a multiple of the number of devices.
    """
    devices, microbatches = whole_number(devices, "devices"), whole_number(microbatches, "microbatches")
    if whole_groups and microbatches % devices:
        raise outside_range(whole_groups, f"a number of microbatches that is divisible by the {devices} devices, not {microbatches}")
    return devices, microbatches


def single_times(*values: float) -> tuple[float, ...]:
    """Return each value as a float. Raise an error if a value is not a single finite time."""
    checked = [times(value, "a closed form's times") for value in values]
    if any(value.ndim for value in checked):  # an array would mean unequal stages
        message = "a closed form is for equal stages and one setting: give one number for each time"
        raise UnsupportedSize(message, "several-settings")
    return tuple(float(value) for value in checked)


def split_times(forward: float, backward: float, weight_gradient: float) -> tuple[float, float, float]:
    """Return F, I and W for given F, B and W, where I = B - W is the input gradient. Raise an error if W is longer than B."""
    forward, backward, weight_gradient = single_times(forward, backward, weight_gradient)
    if weight_gradient > backward:
        message = f"a weight gradient cannot be longer than the backward: give at most {backward:g}, not {weight_gradient:g}"
        raise UnsupportedSize(message, "out-of-range")
    return forward, backward - weight_gradient, weight_gradient  # I = B - W


def outside_range(schedule: str, condition: str) -> UnsupportedSize:
    """Return the error for arguments for which a closed form does not hold. ``condition`` says when the form holds."""
    return UnsupportedSize(f"the closed form of {schedule} holds for {condition}; simulate other cases", "outside-the-formula")
