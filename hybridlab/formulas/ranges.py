"""Checks for closed forms: sizes, times, and the range in which a formula holds."""

from hybridlab.checks import times, whole_number
from hybridlab.errors import UnsupportedSize

ROUNDING = 1e-12  # relative; for example, 0.3 - 0.1 is a little less than 0.2


def sizes(devices: int, microbatches: int, whole_groups: str = "") -> tuple[int, int]:
    """Return the numbers of devices and microbatches as ints; raise an error if they are not whole numbers of at least 1.

    If ``whole_groups`` is the name of a schedule, the number of microbatches must be a multiple of the number of devices.
    """
    devices, microbatches = whole_number(devices, "devices"), whole_number(microbatches, "microbatches")
    if whole_groups and microbatches % devices:
        raise outside_range(whole_groups, f"microbatches a multiple of devices, not {microbatches} of {devices}")
    return devices, microbatches


def single_times(*values: float) -> tuple[float, ...]:
    """Return each value as a float; raise an error if it is not one finite time."""
    checked = [times(value, "a closed form's times") for value in values]
    if any(value.ndim for value in checked):  # the formulas are for equal stages
        message = "a closed form takes one number for each time: uniform stages, one setting"
        raise UnsupportedSize(message, "several-settings")
    return tuple(float(value) for value in checked)


def outside_range(schedule: str, condition: str) -> UnsupportedSize:
    """Return the error for a size or a time for which a closed form does not hold. ``condition`` says when it holds."""
    return UnsupportedSize(f"the closed form of {schedule} holds for {condition}; simulate other cases", "outside-the-formula")
