"""Figures of one timeline, or of several timelines on one time axis. Each figure has a description in words."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridlab.checks import checked_text, counted, each_of, known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.plot.bars import numbers_for, origin
from hybridlab.plot.panel import (
    AXIS,
    LEGEND_LINE,
    RIGHT,
    Entry,
    Frame,
    draw_axis,
    draw_legend,
    draw_marked_sample,
    draw_panel,
    frame_for,
    legend_lines,
    ticks_for,
)
from hybridlab.plot.picture import MARGIN, MUTED, WIDTH, Picture, after_a_number, number, page, text_width, write
from hybridlab.schedule import Op
from hybridlab.schedules import REGISTRY
from hybridlab.step.replicas import Replicated
from hybridlab.timeline import Timeline

MOST_DEVICES = 64  # limit of the rows of one figure
MOST_OPS = 1000  # largest number of operations on one device; a figure has hardly more pixels
MOST_LISTED = 16  # largest number of values in a sentence; screen readers read the sentence aloud
LONGEST_NAME = 40  # characters; longest name of the marks in the legend
BETWEEN = 0.16  # inches between a timeline and the title of the next timeline
LINE, TITLE_LINE = 0.19, 0.26  # inches; height of a line of text, and of a line of the title


def timeline(
    timeline: Timeline,
    *,
    title: str | None = None,
    activations: bool = True,
    end: float | None = None,
    peak: float | None = None,
    marked: Iterable[Op | str] = (),
    marked_as: str = "marked",
) -> Picture:
    """Return a figure of one timeline, with a row for each device, a colour for each kind of operation, and hatched idle time.

    The number in a bar is the number of its microbatch. The time axis begins at the first start of an operation or span and has the
    timeline's unit. A timeline of a hybrid step also has spans. Below the bars, a lane shows messages (sent messages above received
    messages) and the hops of rings. The optimiser is in the row of the operations.

    Parameters
    ----------
    timeline : Timeline
        One setting.
    title : str, optional
        The title. The default is the name and the sizes of the schedule.
    activations : bool
        Whether a strip below each row shows the number of activations that the device holds. One unit is the activations of one microbatch
        for all layers of the device. All strips have the same scale. A dot marks the first time at which the activations reach their peak.
    end : float, optional
        End of the time axis. None means the end of the timeline. Figures with the same ``end`` and ``peak`` have the same scales.
    peak : float, optional
        The number of activations that fills the height of a strip. None means the largest peak of any device.
    marked : iterable of Op or str
        Operations that get a thick outline, such as ``("0F0", "1B0")``. In a hybrid step, an operation is marked on all its ranks.
    marked_as : str
        The name of the marked operations in the legend and in the alternative text, such as "critical path".

    Raises
    ------
    HybridLabError
        The timeline has several settings, more than 64 devices, or more than 1,000 operations on a device; ``end`` or ``peak`` is too
        small; or a marked operation is not in the schedule.

    Examples
    --------
    >>> from hybridlab import Costs, build, simulate
    >>> timeline(simulate(build("gpipe", 2, 2), Costs(forward=1, backward=2)))
    <Figure: Timeline of GPipe, 2 devices, 2 microbatches: makespan 9 ms, bubble ratio 0.333, peak activations, in
    microbatches: 2 on every device.>
    """
    _check_drawable(timeline)
    head = _schedule_title(timeline) if title is None else checked_text(title, "title")
    ops, name = _marked_ops(timeline, marked), _marked_name(marked_as)
    frame = frame_for([timeline], activations, end, peak)
    return draw_timelines({head: timeline}, "", frame, alt_text(timeline) + _marked_text(ops, name), marked={head: ops}, marked_as=name)


def compare(
    timelines: Mapping[str, Timeline],
    *,
    title: str | None = None,
    activations: bool = True,
    marked: Mapping[str, Iterable[Op | str]] | None = None,
    marked_as: str = "marked",
) -> Picture:
    """Return a figure of several timelines on one time axis. Each timeline is below the previous timeline.

    A solid line marks the end of each timeline. A dashed line at the same time goes through all timelines below, so that a reader can
    compare the ends.

    Parameters
    ----------
    timelines : mapping of str to Timeline
        Title -> timeline. All timelines have the same unit of time, and together they have at most 64 devices.
    title : str, optional
        Title of the figure.
    activations : bool
        As in :func:`timeline`.
    marked : mapping of str to iterable of Op or str, optional
        Title of a timeline -> its operations that get a thick outline.
    marked_as : str
        As in :func:`timeline`.

    Raises
    ------
    HybridLabError
        In the same cases as :func:`timeline`, or the timelines have different units, or ``marked`` has a title that no timeline has.

    Examples
    --------
    >>> from hybridlab import Costs, build, simulate
    >>> costs = Costs(forward=1, backward=2)
    >>> compare({name: simulate(build(name, 1, 2), costs) for name in ("gpipe", "1f1b")})
    <Figure: 2 timelines on one time axis.
    gpipe (1 device, 2 microbatches): makespan 6 ms, bubble ratio 0.000, peak activations, in microbatches: 2.
    1f1b (1 device, 2 microbatches): makespan 6 ms, bubble ratio 0.000, peak activations, in microbatches: 1.>
    """
    if not isinstance(timelines, Mapping) or not timelines:
        raise HybridLabError(
            f'compare takes timelines by title, such as {{"GPipe": ...}}, not {short_repr(timelines)}',
            "empty" if isinstance(timelines, Mapping) else "wrong-type",
        )
    for head, each in timelines.items():
        _check_drawable(each)
        checked_text(head, "the title of a timeline")
    units = {each.unit: head for head, each in timelines.items()}
    if len(units) > 1:
        different = " and ".join(f"{unit or 'plain slots'} in {short_repr(head)}" for unit, head in units.items())
        raise HybridLabError(
            f"timelines on one axis have one unit of time, not {different}: give their costs the same unit", "different-units"
        )
    devices = sum(each.schedule.devices for each in timelines.values())
    if devices > MOST_DEVICES:
        raise HybridLabError(f"{devices} devices in all are more than a figure can show: compare at most {MOST_DEVICES}", "too-large")
    above = "" if title is None else checked_text(title, "title")
    if not isinstance(marked, Mapping | None):
        raise HybridLabError(f'marked has operations by title, such as {{"1F1B": ["0F0"]}}, not {short_repr(marked)}', "wrong-type")
    name = _marked_name(marked_as)
    ops = {head: _marked_ops(timelines[known_name(head, timelines, "timeline")], each) for head, each in (marked or {}).items()}
    frame = frame_for(list(timelines.values()), activations)
    return draw_timelines(timelines, above, frame, _comparison_text(timelines, ops, name), marked=ops, marked_as=name)


def alt_text(timeline: Timeline) -> str:
    """Return a description of the figure of a timeline, for readers who cannot see the figure.

    Parameters
    ----------
    timeline : Timeline
        One setting.

    Raises
    ------
    HybridLabError
        In the same cases as :func:`timeline`.

    Examples
    --------
    >>> from hybridlab import Costs, build, simulate
    >>> print(alt_text(simulate(build("1f1b", 2, 4), Costs(forward=1, backward=2))))
    Timeline of 1F1B, 2 devices, 4 microbatches: makespan 15 ms, bubble ratio 0.200, peak activations, in
    microbatches by device: 2, 1.
    """
    _check_drawable(timeline)
    return f"Timeline of {_schedule_title(timeline)}: {facts_text(timeline)}."


def _check_drawable(timeline: object) -> None:
    """Raise an error if a figure cannot show the timeline. The error names the limits of a figure."""
    if not isinstance(timeline, Timeline):
        raise HybridLabError(f"a figure shows a Timeline, such as simulate() returns, not {short_repr(timeline)}", "not-a-timeline")
    if timeline.start.ndim > 1:
        settings = timeline.start.shape[:-1]
        raise HybridLabError(f"a figure shows one setting, but this timeline holds {settings}: pick one with .at()", "several-settings")
    # [:0]: an empty array if the timeline has no spans
    spans = timeline.spans.device if timeline.spans is not None else timeline.device[:0]
    busiest = int(np.bincount(np.append(timeline.device, spans)).max())
    if timeline.schedule.devices > MOST_DEVICES or busiest > MOST_OPS:
        things = f"{counted(busiest, 'operation')}{' and spans' if spans.size else ''}"
        size = f"{counted(timeline.schedule.devices, 'device')} with up to {things} each"
        most = f"{MOST_DEVICES} devices and {MOST_OPS:,} operations a device"
        raise HybridLabError(f"{size} are more than a figure can show ({most}): draw fewer microbatches or devices", "too-large")


def draw_timelines(
    timelines: Mapping[str, Timeline],
    title: str,
    frame: Frame,
    words: str,
    results: Mapping[str, str] | None = None,
    more: Sequence[Entry] = (),
    below: float = 0.0,
    marked: Mapping[str, Sequence[Op]] | None = None,
    marked_as: str = "",
) -> Picture:
    """Return a figure with a title, every timeline below its own title, the time axis and the legend.

    Parameters
    ----------
    timelines : mapping of str to Timeline
        Timelines by their titles.
    title : str
        Title of the figure. An empty title takes no space.
    frame : Frame
        Sizes with room for all timelines.
    words : str
        The description of the figure in words (alternative text).
    results : mapping of str to str, optional
        Title of a timeline -> the text on the right of the title. The default text is the makespan and the bubble ratio.
    more : sequence of Entry
        Entries to add to the legend.
    below : float
        Inches to leave free below the legend.
    marked : mapping of str to sequence of Op, optional
        Title of a timeline -> the operations that get a thick outline.
    marked_as : str
        The name of these operations in the legend.
    """
    drawn, ops = list(timelines.values()), marked or {}
    more = [*more, *[Entry(marked_as, draw_marked_sample)] * any(ops.values())]
    titles = list(timelines)
    heads = [_head(head, (results or {}).get(head) or results_text(each)) for head, each in timelines.items()]
    # If some bars are too narrow for a number, the legend says so.
    numbered = all(numbers_for(each, frame.bar, AXIS / frame.span).rows.all() for each in drawn)
    legend = legend_lines(drawn, bool(frame.memory), numbered, more)
    title_lines = textwrap.wrap(title, 60)  # 60 bold characters of 11.5 points fit into the width
    top = MARGIN + TITLE_LINE * len(title_lines)
    heights = [LINE * len(head) + 0.06 + frame.height(each) for head, each in zip(heads, drawn, strict=True)]
    bottom = top + sum(heights) + BETWEEN * (len(drawn) - 1)
    figure = Picture(bottom + 0.34 + LEGEND_LINE * len(legend) + below, words)
    sheet = page(figure)
    for row, line in enumerate(title_lines):
        write(sheet, MARGIN, MARGIN + TITLE_LINE * (row + 0.6), line, size=11.5, weight="bold")
    # if all durations are 0, the axis shows only the tick 0
    ticks = ticks_for(frame.span) if any(each.makespan for each in drawn) else [0.0]
    for place, (head, each) in enumerate(zip(heads, drawn, strict=True)):
        for row, texts in enumerate(head):
            for x, text, style in texts:
                write(sheet, x, top + LINE * row + 0.14, text, **style)
        below = top + LINE * len(head) + 0.06
        # Dashed lines at the ends of the timelines above let a reader compare the ends.
        own = set(ops.get(titles[place], ()))
        rows = [row for row, op in enumerate(each.ops) if op in own] if own else []
        draw_panel(figure, below, each, frame, ticks, [other.makespan for other in drawn[:place]], rows)
        top += heights[place] + BETWEEN
    draw_axis(sheet, bottom + 0.2, frame, ticks, [each.makespan for each in drawn], drawn[0].unit)
    draw_legend(sheet, bottom + 0.34, legend)
    return figure


def _head(title: str, results: str) -> list[list[tuple[float, str, dict[str, Any]]]]:
    """Return the lines of text above a timeline: its title and its results. Long results get a separate line."""
    bold = {"size": 10.5, "weight": "bold"}
    lines = [[(MARGIN, line, bold)] for line in textwrap.wrap(title, 66)] or [[]]  # an empty line without a title, for the results
    last = lines[-1][0][1] if lines[-1] else ""
    # 0.3 inches: both margins and the space between title and results
    if text_width(last, 10.5, bold=True) + text_width(results, 9) + 0.3 < WIDTH:
        lines[-1].append((WIDTH - RIGHT, results, {"color": MUTED, "ha": "right"}))
    else:
        lines.append([(MARGIN, results, {"color": MUTED})])
    return lines


def _schedule_title(timeline: Timeline) -> str:
    """Return the schedule's title and sizes."""
    family = REGISTRY.get(timeline.schedule.name)
    return f"{family.title if family else timeline.schedule.name}, {sizes_text(timeline)}"


def sizes_text(timeline: Timeline) -> str:
    """Return the numbers of devices and microbatches in words. Numbers of chunks and copies of the weights follow if they exceed 1."""
    schedule = timeline.schedule
    sizes = [counted(schedule.devices, "device"), counted(schedule.microbatches, "microbatch")]
    if isinstance(schedule, Replicated):
        # The devices of a replicated schedule are ranks, so show devices of a pipeline and replicas instead.
        sizes[:1] = [f"{counted(schedule.mesh.stages, 'device')} a pipeline", counted(schedule.replicas, "replica")]
    if schedule.chunks > 1:
        sizes.append(f"{schedule.chunks} chunks a device")
    if schedule.copies > 1:
        sizes.append(f"{schedule.copies} copies of the weights")
    return ", ".join(sizes)


def results_text(timeline: Timeline) -> str:
    """Return the makespan and the bubble ratio in words."""
    return f"makespan {number(timeline.makespan)}{after_a_number(timeline.unit)}, bubble ratio {timeline.bubble_ratio:.3f}"


def _comparison_text(timelines: Mapping[str, Timeline], marked: Mapping[str, Sequence[Op]], name: str) -> str:
    """Return a description of a figure of several timelines in words."""
    facts = (
        f"{title} ({sizes_text(each)}): {facts_text(each)}.{_marked_text(marked.get(title, ()), name)}" for title, each in timelines.items()
    )
    return f"{counted(len(timelines), 'timeline')} on one time axis. {' '.join(facts)}"


def _marked_ops(timeline: Timeline, marked: Any) -> list[Op]:
    """Return the operations to mark, each one once, or raise an error if the timeline does not have one of them."""
    wanted = 'marked must be a list of operations, such as ("0F0", "1B0")'
    if isinstance(marked, str):
        raise HybridLabError(f"{wanted}, not {short_repr(marked)}", "not-a-list")
    ops = [each if isinstance(each, Op) else Op.parse(each) for each in each_of(marked, wanted)]
    known = set(timeline.ops)
    for op in ops:
        if op not in known:
            raise HybridLabError(f"{_schedule_title(timeline)}, has no operation {op} to mark", "unknown-operation")
    return list(dict.fromkeys(ops))


def _marked_name(name: Any) -> str:
    """Return the name of the marks in the legend, or raise an error if it is no short text."""
    if not checked_text(name, "marked_as").strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise HybridLabError(
            f"marked_as must be a few words of at most {LONGEST_NAME} characters, not {short_repr(name)}", "malformed-name"
        )
    return str(name)


def _marked_text(ops: Sequence[Op], name: str) -> str:
    """Return a sentence that names the marked operations, with a space before it. Empty without marks."""
    listed = ", ".join(map(str, ops[:MOST_LISTED]))
    more = f" and {len(ops) - MOST_LISTED} more" if len(ops) > MOST_LISTED else ""
    return f" {name[:1].upper()}{name[1:]}: {listed}{more}." if ops else ""


def facts_text(timeline: Timeline) -> str:
    """Return results and peaks in words, then copies of the weights, overlapped pairs and spans if the timeline has them."""
    facts = f"{results_text(timeline)}, {peaks_text(timeline)}{_copies_text(timeline)}"
    if timeline.schedule.pairs.size:
        facts += f"; a forward and a backward run at the same time in {counted(timeline.schedule.pairs.size, 'overlapped pair')}"
    if timeline.spans is None or not timeline.spans.size:
        return facts
    spans, after = timeline.spans, after_a_number(timeline.unit)
    first = origin(timeline)
    messages, hops, updates = spans.of("send"), spans.of("reduce-scatter", "all-gather"), spans.of("optimiser")
    parts = [counted(messages.size, "message")] if messages.size else []
    if hops.size:
        ends = number(float(hops.start.min()) - first), number(float(hops.end.max()) - first)
        parts.append(f"{counted(hops.size, 'hop')} of rings from {ends[0]} to {ends[1]}{after}")
    # The figure does not show optimisers without duration, so the text omits them too.
    if (updates.end > updates.start).any():
        parts.append(f"{counted(updates.size, 'optimiser')} of {number(float((updates.end - updates.start).max()))}{after}")
    return f"{facts}; beside the operations: {', '.join(parts)}" if parts else facts


def _copies_text(timeline: Timeline) -> str:
    """Return in words, for each copy of the weights, its number of microbatches and their first device. Empty for one copy."""
    schedule = timeline.schedule
    if schedule.copies == 1:
        return ""
    counts = np.bincount(schedule.copy_of, minlength=schedule.copies).tolist()
    parts = [f"{counted(count, 'microbatch')} from device {path[0]} on" for count, path in zip(counts, schedule.paths, strict=True)]
    return f"; through each copy of the weights: {', '.join(parts[:MOST_LISTED])}{', ...' * (len(parts) > MOST_LISTED)}"


def peaks_text(timeline: Timeline) -> str:
    """Return the peak activations of every device in words. For many devices, name only the lowest and the highest peak."""
    peaks = timeline.peak_activations
    if (peaks == peaks[0]).all():
        return f"peak activations, in microbatches: {number(peaks[0])}{' on every device' if peaks.size > 1 else ''}"
    if peaks.size > MOST_LISTED:
        low, high = int(peaks.argmin()), int(peaks.argmax())
        ends = [f"{number(peaks[device])} on device {device}" for device in (low, high)]
        return f"peak activations, in microbatches: from {ends[0]} to {ends[1]}"
    return f"peak activations, in microbatches by device: {', '.join(map(number, peaks))}"
