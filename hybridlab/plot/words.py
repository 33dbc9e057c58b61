"""What a figure shows, in words: for readers who cannot see it, and for comparing stored outputs."""

from collections.abc import Mapping

import numpy as np

from hybridlab.errors import HybridLabError
from hybridlab.inputs import counted, shown, unit_of_time
from hybridlab.schedules import REGISTRY
from hybridlab.timeline import Timeline

MOST_DEVICES = 64  # rows of one figure
MOST_OPS = 1000  # on one device: there are hardly more pixels
MOST_LISTED = 16  # values one after the other in a sentence


def number(value: float) -> str:
    """Return a number as figures write it: up to six significant digits.

    >>> number(33.0), number(0.1 + 0.2)
    ('33', '0.3')
    """
    return f"{value:.6g}"


def title_of(timeline: Timeline) -> str:
    """Return the schedule's title and sizes."""
    family = REGISTRY.get(timeline.schedule.name)
    return f"{family.title if family else timeline.schedule.name}, {sizes_of(timeline)}"


def sizes_of(timeline: Timeline) -> str:
    """Return the numbers of devices, microbatches and, where there are several, chunks."""
    schedule = timeline.schedule
    sizes = [counted(schedule.devices, "device"), counted(schedule.microbatches, "microbatch")]
    if schedule.chunks > 1:
        sizes.append(f"{schedule.chunks} chunks a device")
    return ", ".join(sizes)


def results_of(timeline: Timeline, unit: str) -> str:
    """Return makespan and bubble ratio as a figure states them."""
    return f"makespan {number(timeline.makespan)}{' ' * bool(unit)}{unit}, bubble ratio {timeline.bubble_ratio:.3f}"


def alt_text(timeline: Timeline, unit: str = "") -> str:
    """Return what the figure of a timeline shows, with its numbers, for readers who cannot see it.

    ``unit`` names the unit of time. Raises :class:`HybridLabError` for what :func:`timeline` refuses.

    >>> from hybridlab import Costs, build, simulate
    >>> print(alt_text(simulate(build("1f1b", 2, 4), Costs.per_device(forward=1, backward=2)), unit="ms"))
    Timeline of 1F1B, 2 devices, 4 microbatches: makespan 15 ms, bubble ratio 0.200, peak activations, in
    microbatches by device: 2, 1.
    """
    checked(timeline, unit)
    return f"Timeline of {title_of(timeline)}: {results_of(timeline, unit)}, {peaks_of(timeline)}."


def comparison(timelines: Mapping[str, Timeline], unit: str) -> str:
    """Return what a figure of several timelines shows."""
    facts = (f"{title} ({sizes_of(each)}): {results_of(each, unit)}, {peaks_of(each)}." for title, each in timelines.items())
    return f"{counted(len(timelines), 'timeline')} on one time axis. {' '.join(facts)}"


def peaks_of(timeline: Timeline) -> str:
    """Return the peak activations of every device, of the extremes where they are many."""
    peaks = timeline.peak_activations
    if (peaks == peaks[0]).all():
        return f"peak activations, in microbatches: {number(peaks[0])}{' on every device' if peaks.size > 1 else ''}"
    if peaks.size > MOST_LISTED:
        low, high = int(peaks.argmin()), int(peaks.argmax())
        ends = [f"{number(peaks[device])} on device {device}" for device in (low, high)]
        return f"peak activations, in microbatches: from {ends[0]} to {ends[1]}"
    return f"peak activations, in microbatches by device: {', '.join(map(number, peaks))}"


def checked(timeline: object, unit: object) -> None:
    """Refuse what a figure cannot show, and say what it can."""
    if not isinstance(timeline, Timeline):
        raise HybridLabError(f"a figure shows a Timeline, such as simulate() returns, not {shown(timeline)}")
    unit_of_time(unit)
    if timeline.start.ndim > 1:
        settings = timeline.start.shape[:-1]
        raise HybridLabError(f"a figure shows one setting, but this timeline holds {settings}: pick one with .at()")
    busiest = int(np.bincount(timeline.device).max())
    if timeline.schedule.devices > MOST_DEVICES or busiest > MOST_OPS:
        size = f"{counted(timeline.schedule.devices, 'device')} with up to {counted(busiest, 'operation')} each"
        most = f"{MOST_DEVICES} devices and {MOST_OPS:,} operations a device"
        raise HybridLabError(f"{size} are more than a figure can show ({most}): draw fewer microbatches or devices")
