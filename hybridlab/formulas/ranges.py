"""What every closed form of a schedule checks: sizes, times, and the range in which it holds."""

from hybridlab.checks import times, whole_number
from hybridlab.errors import UnsupportedSize

ROUNDING = 1e-12  # relative: 0.3 - 0.1 is a little less than 0.2


def sizes(devices: int, microbatches: int, whole_groups: str = "") -> tuple[int, int]:
    """Return devices and microbatches; where ``whole_groups`` names a schedule, microbatches must be a multiple of devices."""
    devices, microbatches = whole_number(devices, "devices"), whole_number(microbatches, "microbatches")
    if whole_groups and microbatches % devices:
        raise outside(whole_groups, f"microbatches a multiple of devices, not {microbatches} of {devices}")
    return devices, microbatches


def numbers(*values: float) -> tuple[float, ...]:
    """Return each value as one finite time."""
    checked = [times(value, "a closed form's times") for value in values]
    if any(value.ndim for value in checked):
        raise UnsupportedSize("a closed form takes one number for each time: uniform stages, one setting")
    return tuple(float(value) for value in checked)


def outside(what: str, holds_for: str) -> UnsupportedSize:
    """Return the error for a size or a time that a closed form does not hold for."""
    return UnsupportedSize(f"the closed form of {what} holds for {holds_for}; simulate other cases")
