"""Figures of timelines: one, or several on one time axis."""

import textwrap
from collections.abc import Mapping
from typing import Any

from hybridlab.checks import checked_text, removed_arguments, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.plot.legend import LEGEND_LINE, draw_axis, draw_legend, entries_for, ticks_for
from hybridlab.plot.operations import numbers_for
from hybridlab.plot.panel import AXIS, RIGHT, Frame, draw_panel, frame_for
from hybridlab.plot.picture import MARGIN, MUTED, WIDTH, Picture, page, text_width, write
from hybridlab.plot.words import MOST_DEVICES, UNIT_GONE, alt_text, checked, comparison, results_of, title_of
from hybridlab.timeline import Timeline

BETWEEN = 0.16  # inches from one timeline to the head of the next
LINE, TITLE = 0.19, 0.26  # inches that a line of text takes


@removed_arguments(unit=UNIT_GONE)
def timeline(
    timeline: Timeline,
    *,
    title: str | None = None,
    activations: bool = True,
    end: float | None = None,
    peak: float | None = None,
) -> Picture:
    """Return a figure of one timeline: a row a device, operations coloured by kind, idle time hatched.

    The number in a bar is its microbatch. Below each row stand the activations that the device holds, in microbatches of the
    whole device, all rows to one scale, with a dot where the peak is first reached; ``activations`` False leaves
    them out. Time starts at the first start, in the timeline's unit. ``title`` None takes the schedule's name and sizes.
    Spans, such as those of a hybrid step, stand in a lane between the two: messages sent above those received, and hops of a
    ring, below them where they meet; the optimiser stands among the operations.

    The time axis ends with the timeline and the activations fill their strips, unless ``end`` says where the axis ends and
    ``peak`` how many activations fill a strip: figures with the same two have the same scales.

    Raises :class:`HybridLabError` for a batch of settings, more than 64 devices, more than 1,000 operations on one, and for
    an end or a peak that is too small.

    >>> from hybridlab import Costs, build, simulate
    >>> timeline(simulate(build("gpipe", 2, 2), Costs(forward=1, backward=2)))
    <Figure: Timeline of GPipe, 2 devices, 2 microbatches: makespan 9 ms, bubble ratio 0.333, peak activations, in
    microbatches: 2 on every device.>
    """
    checked(timeline)
    head = title_of(timeline) if title is None else checked_text(title, "title")
    frame = frame_for([timeline], activations, end, peak)
    return _stacked({head: timeline}, "", frame, alt_text(timeline))


@removed_arguments(unit=UNIT_GONE)
def compare(timelines: Mapping[str, Timeline], *, title: str | None = None, activations: bool = True) -> Picture:
    """Return a figure of several timelines, one below the other on one time axis; the keys are their titles.

    A solid line marks the end of each timeline, a dashed one carries it on through those below, so that they can be compared. The
    rest is as in :func:`timeline`, with at most 64 devices in all and one unit of time.

    >>> from hybridlab import Costs, build, simulate
    >>> costs = Costs(forward=1, backward=2)
    >>> compare({name: simulate(build(name, 1, 2), costs) for name in ("gpipe", "1f1b")})
    <Figure: 2 timelines on one time axis.
    gpipe (1 device, 2 microbatches): makespan 6 ms, bubble ratio 0.000, peak activations, in microbatches: 2.
    1f1b (1 device, 2 microbatches): makespan 6 ms, bubble ratio 0.000, peak activations, in microbatches: 1.>
    """
    if not isinstance(timelines, Mapping) or not timelines:
        raise HybridLabError(f'compare takes timelines by title, such as {{"GPipe": ...}}, not {short_repr(timelines)}')
    for head, each in timelines.items():
        checked(each)
        checked_text(head, "the title of a timeline")
    units = {each.unit: head for head, each in timelines.items()}
    if len(units) > 1:
        message = " and ".join(f"{unit or 'plain slots'} in {short_repr(head)}" for unit, head in units.items())
        raise HybridLabError(f"timelines on one axis have one unit of time, not {message}: give their costs the same unit")
    devices = sum(each.schedule.devices for each in timelines.values())
    if devices > MOST_DEVICES:
        raise HybridLabError(f"{devices} devices in all are more than a figure can show: compare at most {MOST_DEVICES}")
    above = "" if title is None else checked_text(title, "title")
    frame = frame_for(list(timelines.values()), activations)
    return _stacked(timelines, above, frame, comparison(timelines))


def _stacked(timelines: Mapping[str, Timeline], title: str, frame: Frame, words: str) -> Picture:
    """Draw the title, every timeline under its head, the time axis, the legend."""
    drawn = list(timelines.values())
    heads = [_head(head, results_of(each)) for head, each in timelines.items()]
    numbered = all(numbers_for(each, frame.bar, AXIS / frame.span).rows.all() for each in drawn)
    legend = entries_for(drawn, bool(frame.memory), numbered)
    above = textwrap.wrap(title, 60)
    top = MARGIN + TITLE * len(above)
    heights = [LINE * len(head) + 0.06 + frame.height(each) for head, each in zip(heads, drawn, strict=True)]
    bottom = top + sum(heights) + BETWEEN * (len(drawn) - 1)
    figure = Picture(bottom + 0.34 + LEGEND_LINE * len(legend), words)
    sheet = page(figure)
    for place, line in enumerate(above):
        write(sheet, MARGIN, MARGIN + TITLE * (place + 0.6), line, size=11.5, weight="bold")
    ticks = ticks_for(frame.span) if any(each.makespan for each in drawn) else [0.0]
    for place, (head, each) in enumerate(zip(heads, drawn, strict=True)):
        for number, texts in enumerate(head):
            for x, text, style in texts:
                write(sheet, x, top + LINE * number + 0.14, text, **style)
        below = top + LINE * len(head) + 0.06
        draw_panel(figure, below, each, frame, ticks, [other.makespan for other in drawn[:place]])
        top += heights[place] + BETWEEN
    draw_axis(sheet, bottom + 0.2, frame, ticks, [each.makespan for each in drawn], drawn[0].unit)
    draw_legend(sheet, bottom + 0.34, legend)
    return figure


def _head(title: str, results: str) -> list[list[tuple[float, str, dict[str, Any]]]]:
    """Return the texts above a timeline, line by line: the title, and the results to its right or on a line of their own."""
    bold = {"size": 10.5, "weight": "bold"}
    lines = [[(MARGIN, line, bold)] for line in textwrap.wrap(title, 66)] or [[]]
    last = lines[-1][0][1] if lines[-1] else ""
    if text_width(last, 10.5, bold=True) + text_width(results, 9) + 0.3 < WIDTH:
        lines[-1].append((WIDTH - RIGHT, results, {"color": MUTED, "ha": "right"}))
    else:
        lines.append([(MARGIN, results, {"color": MUTED})])
    return lines
