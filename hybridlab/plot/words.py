"""What a figure shows, in words: for readers who cannot see it, and for comparing stored outputs."""

from collections.abc import Mapping

import numpy as np

from hybridlab.checks import counted, removed_arguments, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY
from hybridlab.step.replicas import Replicated
from hybridlab.timeline import Timeline

MOST_DEVICES = 64  # rows of one figure
MOST_OPS = 1000  # on one device: there are hardly more pixels
UNIT_GONE = "the unit is that of the timeline, which has it from its costs, as in Costs(..., unit='ms')"
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
    """Return the numbers of devices, microbatches and, where there are several, chunks and copies of the weights."""
    schedule = timeline.schedule
    sizes = [counted(schedule.devices, "device"), counted(schedule.microbatches, "microbatch")]
    if isinstance(schedule, Replicated):
        sizes[:1] = [f"{counted(schedule.mesh.stages, 'device')} a pipeline", counted(schedule.replicas, "replica")]
    if schedule.chunks > 1:
        sizes.append(f"{schedule.chunks} chunks a device")
    if schedule.copies > 1:
        sizes.append(f"{schedule.copies} copies of the weights")
    return ", ".join(sizes)


def after_a_number(unit: str | None) -> str:
    """Return the unit of time as it stands behind a number: a space and its name; nothing for plain slots."""
    return f" {unit}" if unit else ""


def results_of(timeline: Timeline) -> str:
    """Return makespan and bubble ratio as a figure states them."""
    return f"makespan {number(timeline.makespan)}{after_a_number(timeline.unit)}, bubble ratio {timeline.bubble_ratio:.3f}"


@removed_arguments(unit=UNIT_GONE)
def alt_text(timeline: Timeline) -> str:
    """Return what the figure of a timeline shows, with its numbers, for readers who cannot see it.

    Raises :class:`HybridLabError` for what :func:`timeline` refuses.

    >>> from hybridlab import Costs, build, simulate
    >>> print(alt_text(simulate(build("1f1b", 2, 4), Costs(forward=1, backward=2))))
    Timeline of 1F1B, 2 devices, 4 microbatches: makespan 15 ms, bubble ratio 0.200, peak activations, in
    microbatches by device: 2, 1.
    """
    checked(timeline)
    return f"Timeline of {title_of(timeline)}: {_facts_of(timeline)}."


def comparison(timelines: Mapping[str, Timeline]) -> str:
    """Return what a figure of several timelines shows."""
    facts = (f"{title} ({sizes_of(each)}): {_facts_of(each)}." for title, each in timelines.items())
    return f"{counted(len(timelines), 'timeline')} on one time axis. {' '.join(facts)}"


def _facts_of(timeline: Timeline) -> str:
    """Return the results, the peaks and, where there are any, copies of the weights, overlapped pairs and spans."""
    facts = f"{results_of(timeline)}, {peaks_of(timeline)}{_copies_of(timeline)}"
    if timeline.schedule.pairs.size:
        facts += f"; a forward and a backward run at the same time in {counted(timeline.schedule.pairs.size, 'overlapped pair')}"
    if timeline.spans is None or not timeline.spans.size:
        return facts
    spans, after = timeline.spans, after_a_number(timeline.unit)
    first = min(float(timeline.start.min()), float(spans.earliest))
    messages, hops, updates = spans.of("send"), spans.of("reduce-scatter", "all-gather"), spans.of("optimiser")
    message = [counted(messages.size, "message")] if messages.size else []
    if hops.size:
        ends = number(float(hops.start.min()) - first), number(float(hops.end.max()) - first)
        message.append(f"{counted(hops.size, 'hop')} of rings from {ends[0]} to {ends[1]}{after}")
    if (updates.end > updates.start).any():
        message.append(f"{counted(updates.size, 'optimiser')} of {number(float((updates.end - updates.start).max()))}{after}")
    return "; beside the operations: ".join((facts, *filter(None, [", ".join(message)])))


def _copies_of(timeline: Timeline) -> str:
    """Return how many microbatches run through each copy of the weights, and from which device on; nothing for one copy."""
    schedule = timeline.schedule
    if schedule.copies == 1:
        return ""
    counts = np.bincount(schedule.copy_of, minlength=schedule.copies).tolist()
    message = [f"{counted(count, 'microbatch')} from device {path[0]} on" for count, path in zip(counts, schedule.paths, strict=True)]
    return f"; through each copy of the weights: {', '.join(message[:MOST_LISTED])}{', ...' * (len(message) > MOST_LISTED)}"


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


def checked(timeline: object) -> None:
    """Refuse what a figure cannot show, and say what it can."""
    if not isinstance(timeline, Timeline):
        raise HybridLabError(f"a figure shows a Timeline, such as simulate() returns, not {short_repr(timeline)}")
    if timeline.start.ndim > 1:
        settings = timeline.start.shape[:-1]
        raise HybridLabError(f"a figure shows one setting, but this timeline holds {settings}: pick one with .at()")
    spans = timeline.spans.device if timeline.spans is not None else timeline.device[:0]
    busiest = int(np.bincount(np.append(timeline.device, spans)).max())
    if timeline.schedule.devices > MOST_DEVICES or busiest > MOST_OPS:
        things = f"{counted(busiest, 'operation')}{' and spans' if spans.size else ''}"
        size = f"{counted(timeline.schedule.devices, 'device')} with up to {things} each"
        most = f"{MOST_DEVICES} devices and {MOST_OPS:,} operations a device"
        raise HybridLabError(f"{size} are more than a figure can show ({most}): draw fewer microbatches or devices")
