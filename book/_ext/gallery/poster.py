"""The poster: all schedules on one A2 page, as PDF and SVG, computed from the registry. `make poster` writes it, and so does each build."""

from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from gallery.entries import DEVICES, MICROBATCHES, QUANTITIES, TIMES, Entry, best, entries
from gallery.words import listed, upper_first
from hybridlab import Kind
from hybridlab.palette import KIND_COLOURS, shade_colour
from hybridlab.plot.bars import Bars, bars_of, draw_bars, draw_idle, numbers_for, write_numbers
from hybridlab.plot.panel import ACTIVATION_FILL, ACTIVATION_LINE, activation_curve, ticks_for
from hybridlab.plot.picture import INK, MUTED, RULE, number, text_width, write

SIZE = 23.39, 16.54  # inches; A2, landscape
EDGE, TOP, FOOT = 0.62, 1.8, 0.66  # inches: the margin, the head of the page, its last lines
COLUMNS, BETWEEN = 3, 0.5  # columns of schedules, and inches between two of them
WIDE = (SIZE[0] - 2 * EDGE - (COLUMNS - 1) * BETWEEN) / COLUMNS
NAMES = 0.72  # inches left of the time axis for the names of devices
AXIS = WIDE - NAMES - 0.1
BAR, MEMORY = 0.2, 0.12  # inches; the heights of a bar and of the activations below it
PITCH = BAR + MEMORY + 0.05
FILES = ("poster.svg", "poster.pdf")
TITLE = "Pipeline schedules on one page"
HOW_TO_READ = (
    "A row is a device, and time runs to the right. The number in a box is the microbatch; of two boxes one above the other both run "
    "at once. The grey area below a row is the number of activations that the device holds, and its peak stands on the left, in "
    "microbatches of the whole device. Bubble ratio: the idle share of the time of all devices. In the rules d is a device, counted "
    "from 0, K the number of devices, M the number of microbatches, v the number of chunks on a device, and F, I and W are the times "
    "of a forward, an input gradient and a weight gradient. All numbers are computed from the schedules by hybridlab."
)


def poster() -> Figure:
    """Return the page."""
    figure = Figure(figsize=SIZE, facecolor="white")
    figure.set_layout_engine("none")
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
    page.set_axis_off()
    shown = entries()
    head(page, shown)
    span, most = (max(map(QUANTITIES[name], shown)) for name in ("makespan", "peak"))
    high = (SIZE[1] - TOP - FOOT) / ceil(len(shown) / COLUMNS)
    for place, entry in enumerate(shown):
        row, column = divmod(place, COLUMNS)
        cell(figure, page, entry, EDGE + column * (WIDE + BETWEEN), TOP + row * high, span, most)
    foot(page)
    return figure


def head(page: Axes, shown: list[Entry]) -> None:
    """Write the title, the size, the legend, and which schedules have the lowest values."""
    forward, backward = TIMES.values()
    leaders = best(shown)
    words = {"makespan": "Shortest", "peak": "Least memory"}
    first = [f"{words[name]}: {listed(entry.family.title for entry in leaders[name])}" for name in words]
    write(page, EDGE, 0.94, TITLE, size=42, weight="bold")
    size = f"{DEVICES} devices, {MICROBATCHES} microbatches, forward {forward:g}, backward {backward:g}, no latency"
    write(page, EDGE, 1.28, f"{len(shown)} orders of the same work: {size}. One scale of time and one of memory.", size=15, color=MUTED)
    write(page, EDGE, 1.57, ".   ".join(first) + ".", size=11.5)
    x = SIZE[0] - EDGE - sum(wide for _, _, wide in legend())
    for words_of, colours, wide in legend():
        sample(page, x, 0.62, words_of, colours)
        x += wide


def legend() -> list[tuple[str, tuple[str, ...], float]]:
    """Return the entries of the legend: words, the colours of the sample (kinds of operations have none), and the width in inches."""
    light = (shade_colour("F", 0, 2), shade_colour("F", 1, 2))
    named = [(kind.words, ()) for kind in Kind] + [("idle", ("idle",)), ("later chunk, or other copy", light)]
    return [(words, colours, text_width(words, 12) + 0.78) for words, colours in named]


def sample(page: Axes, x: float, y: float, words: str, colours: tuple[str, ...]) -> None:
    """Draw an entry of the legend."""
    kind = next((kind.value for kind in Kind if kind.words == words), "")
    wide, high = 0.36, 0.28
    if kind:
        each = [np.array([value]) for value in (x, x + wide, y, high)]
        draw_bars(page, Bars(kind, *each, np.array([KIND_COLOURS[kind]])), points=72)
        write(page, x + wide / 2, y + high / 2, kind, size=11, ha="center", va="center_baseline")
    elif colours == ("idle",):
        draw_idle(page, *(np.array([value]) for value in (x, x + wide, y)), high)
    else:
        for place, colour in enumerate(colours):
            page.add_patch(Rectangle((x + place * wide / 2, y), wide / 2, high, color=colour, linewidth=0))
    write(page, x + wide + 0.1, y + high / 2, words, size=12, va="center_baseline")


def cell(figure: Figure, page: Axes, entry: Entry, left: float, top: float, span: float, most: float) -> None:
    """Draw one schedule: its name, its numbers, its rule, its timeline, its source."""
    page.hlines([top], left, left + WIDE, color=INK, linewidth=1.4)
    x = left + WIDE
    for words, value in reversed(list(numbers_of(entry).items())):
        x = written_left(page, x, top + 0.3, value, size=15, weight="bold") - 0.07
        x = written_left(page, x, top + 0.3, words, size=10, color=MUTED) - 0.17
    title = entry.family.title
    write(page, left, top + 0.3, title, size=min(19, 19 * (x - left) / text_width(title, 19, bold=True)), weight="bold")
    for place, line in enumerate(lines_of(rule_of(entry), 10.5, WIDE)):
        write(page, left, top + 0.53 + place * 0.18, line, size=10.5)
    above = top + 0.84
    rows = entry.schedule.devices
    bottom = above + rows * PITCH
    box = (left + NAMES) / SIZE[0], 1 - bottom / SIZE[1], AXIS / SIZE[0], rows * PITCH / SIZE[1]
    timeline_of(figure.add_axes(box, xlim=(0, span), ylim=(rows * PITCH, 0)), entry, span, most)
    for device, peak in enumerate(entry.timeline.peak_activations):
        y = above + device * PITCH
        write(page, left + NAMES - 0.09, y + BAR / 2, f"device {device}", size=9, ha="right", va="center_baseline")
        write(
            page,
            left + NAMES - 0.09,
            y + BAR + MEMORY / 2 + 0.02,
            f"peak {peak:.3g}",
            size=7.5,
            color=MUTED,
            ha="right",
            va="center_baseline",
        )
    for time in ticks_for(span):
        write(page, left + NAMES + time / span * AXIS, bottom + 0.11, number(time), size=8, color=MUTED, ha="center")
    source = " ".join(filter(None, [f"{entry.group.title}.", f"With {entry.size}." if entry.refusal else "", entry.family.source]))
    for place, line in enumerate(lines_of(source, 8.5, WIDE)):
        write(page, left, bottom + 0.27 + place * 0.14, line, size=8.5, color=MUTED)


def numbers_of(entry: Entry) -> dict[str, str]:
    """Return the numbers beside a schedule's name, by their words."""
    forms = {"makespan": ("makespan", "g"), "bubble ratio": ("bubble ratio", ".3f"), "peak activations": ("peak", ".3g")}
    return {words: f"{QUANTITIES[name](entry):{form}}" for words, (name, form) in forms.items()}


def rule_of(entry: Entry) -> str:
    """Return the rule of a schedule as a sentence."""
    return upper_first(entry.family.summary).replace(">=", "\N{GREATER-THAN OR EQUAL TO}") + "."


def lines_of(text: str, size: float, width: float) -> list[str]:
    """Return the lines of a text of ``size`` points, each at most ``width`` inches wide."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def written_left(page: Axes, right: float, y: float, text: str, size: float, **style: Any) -> float:
    """Write a text that ends at ``right``, and return where it begins."""
    write(page, right, y, text, size=size, ha="right", **style)
    return right - text_width(text, size, "weight" in style)


def timeline_of(axes: Axes, entry: Entry, span: float, most: float) -> None:
    """Draw the timeline with the activations below each device."""
    axes.set_axis_off()
    timeline = entry.timeline
    devices = np.arange(entry.schedule.devices, dtype=float)
    axes.vlines(ticks_for(span), 0, devices.size * PITCH - 0.03, color=RULE, linewidth=0.7, zorder=0)
    draw_idle(axes, 0 * devices, 0 * devices + timeline.makespan, devices * PITCH, BAR)
    for bars in bars_of(timeline, PITCH, BAR):
        draw_bars(axes, bars, AXIS * 72 / span)
    write_numbers(axes, timeline, numbers_for(timeline, BAR, AXIS / span), PITCH, BAR)
    for device in range(devices.size):
        times, held = activation_curve(timeline, device)
        floor = device * PITCH + BAR + 0.02 + MEMORY
        level = floor - held / most * MEMORY
        axes.fill_between(times, floor, level, step="post", color=ACTIVATION_FILL, linewidth=0)
        axes.plot(times, level, drawstyle="steps-post", color=ACTIVATION_LINE, linewidth=0.8)
    axes.vlines([timeline.makespan], -0.02, devices.size * PITCH - 0.02, color=INK, linewidth=1.4, clip_on=False, zorder=3)


def foot(page: Axes) -> None:
    """Write how to read the page."""
    for place, line in enumerate(lines_of(HOW_TO_READ, 10, SIZE[0] - 2 * EDGE)):
        write(page, EDGE, SIZE[1] - FOOT + 0.14 + place * 0.19, line, size=10, color=MUTED)


def written(page: Figure, name: str) -> bytes:
    """Return the page as the file of this name. Equal schedules give equal bytes."""
    drawn = BytesIO()
    pdf = name.endswith(".pdf")
    dates: dict[str, Any] = {"CreationDate": None, "Producer": None} if pdf else {"Date": None}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hybridlab", "pdf.fonttype": 42}):
        page.savefig(drawn, format=name.rpartition(".")[2], metadata={"Creator": None, "Title": TITLE, **dates})
    return drawn.getvalue()


def write_files(folder: Path) -> None:
    """Draw the poster and write it into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    page = poster()
    for name in FILES:
        (folder / name).write_bytes(written(page, name))
