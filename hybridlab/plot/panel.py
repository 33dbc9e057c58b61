"""One timeline on its own axes: a row a device, with its operations, its idle time and the activations it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import Affine2D, blended_transform_factory

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr, times
from hybridlab.errors import HybridLabError
from hybridlab.plot.beside import draw_spans, lane_for
from hybridlab.plot.operations import bars_of, draw_bars, draw_idle, numbers_for, origin, write_numbers
from hybridlab.plot.picture import INK, MUTED, RULE, WIDTH, Picture, sheet, write
from hybridlab.plot.words import number
from hybridlab.schedule import F, I
from hybridlab.step.replicas import Replicated
from hybridlab.timeline import Timeline

LEFT, RIGHT = 0.76, 0.14  # inches beside the time axis: the names of the devices, half a number
AXIS = WIDTH - LEFT - RIGHT
PAIRED = 1.35  # times as high is a bar with room for two
HELD, HELD_LINE = "#C4CAD1", "#59636E"


@dataclass(frozen=True)
class Frame:
    """What the panels of a figure share: the length of the time axis, and the parts of a device's row in inches.

    ``lane`` is the height of what stands below the bars, messages and hops, and ``memory`` that of the strip for
    activations, each 0 if there is none; ``most`` is what the strip has room for.
    """

    span: float
    bar: float
    lane: float
    memory: float
    gap: float
    most: float

    @property
    def pitch(self) -> float:
        """From one device's row to the next."""
        return self.bar + self.lane + self.memory + self.gap

    def height(self, timeline: Timeline) -> float:
        """Return the inches that the rows of a timeline take."""
        return self.pitch * timeline.schedule.devices - self.gap


def frame_for(timelines: Sequence[Timeline], activations: bool, end: Any = None, peak: Any = None) -> Frame:
    """Return a frame that holds all the timelines: the more devices, the lower their rows.

    ``end`` is where the time axis ends, ``peak`` the activations that fill a strip; None is what the timelines need.
    """
    longest = max(timeline.makespan for timeline in timelines)
    devices = sum(timeline.schedule.devices for timeline in timelines)
    bar, memory, gap = (0.26, 0.21, 0.1) if devices <= 8 else (0.21, 0.16, 0.07) if devices <= 20 else (0.16, 0.11, 0.05)
    if any(timeline.schedule.pairs.size for timeline in timelines):
        bar *= PAIRED
    most = max(float(timeline.peak_activations.max()) for timeline in timelines)
    held = _space(most, peak, "peak", "the most activations that a device holds")
    lane = max(lane_for(timeline, bar) for timeline in timelines)
    return Frame(_space(longest, end, "end", "the makespan") or 1.0, bar, lane, memory if activations else 0.0, gap, held)


def _space(needed: float, given: Any, name: str, what: str) -> float:
    """Return what is given, at least ``needed``, which a missing one is; refuse by ``name`` what is too small."""
    if given is None:
        return needed
    space = times(given, name)
    if space.ndim or space < needed * (1 - 1e-9):  # a makespan as it is printed will do
        raise HybridLabError(f"{name} must be one number, at least {what}, {number(needed)}, not {short_repr(given)}")
    return max(needed, float(space))


def draw_panel(figure: Picture, top: float, timeline: Timeline, frame: Frame, ticks: list[float], others: list[float]) -> None:
    """Add a timeline ``top`` inches below the figure's edge; x is time from the first start on.

    A solid line stands at its end, a dashed one at the ends ``others`` of timelines above.
    """
    height = frame.height(timeline)
    axes = sheet(figure, LEFT, top, AXIS, height, frame.span)
    axes.set_gid("timeline")
    devices = np.arange(timeline.schedule.devices, dtype=float)
    axes.vlines(ticks, -0.02, height + 0.04, color=RULE, linewidth=0.7, zorder=0, clip_on=False)
    draw_idle(axes, 0 * devices, 0 * devices + timeline.makespan, devices * frame.pitch, frame.bar)
    for bars in bars_of(timeline, frame.pitch, frame.bar):
        draw_bars(axes, bars, AXIS * 72 / frame.span)
    write_numbers(axes, timeline, numbers_for(timeline, frame.bar, AXIS / frame.span), frame.pitch, frame.bar)
    draw_spans(axes, timeline, frame.pitch, frame.bar, frame.lane, AXIS * 72 / frame.span)
    kind = "rank" if isinstance(timeline.schedule, Replicated) else "device"
    for device, peak in enumerate(timeline.peak_activations.tolist()):
        _name(axes, kind, device, peak, frame)
        if frame.memory:
            _memory(axes, timeline, device, frame)
    before = axes.vlines(others, -0.02, height + 0.05, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), clip_on=False)
    before.set_gid("makespans above")
    end = axes.vlines([timeline.makespan], -0.04, height + 0.05, color=INK, linewidth=1.2, clip_on=False, zorder=3)
    end.set_gid("makespan")


def _name(axes: Axes, kind: str, device: int, peak: float, frame: Frame) -> None:
    beside = blended_transform_factory(axes.figure.dpi_scale_trans, axes.transData)
    size = min(9.0, frame.bar * 45)
    y = device * frame.pitch + frame.bar / 2
    write(axes, LEFT - 0.09, y, f"{kind} {device}", size=size, ha="right", va="center_baseline", transform=beside)
    if frame.memory:
        y += frame.lane + (frame.bar + frame.memory) / 2 + 0.02
        style = {"size": size - 1, "color": MUTED, "ha": "right", "va": "center_baseline", "transform": beside}
        write(axes, LEFT - 0.09, y, f"peak {number(peak)}", **style)


def activation_curve(timeline: Timeline, device: int) -> tuple[Floats, Floats]:
    """Return times from the first start on, and the activations that the device holds from each of them to the next.

    >>> from hybridlab import Costs, build, simulate
    >>> times, held = activation_curve(simulate(build("gpipe", 1, 2), Costs(forward=1, backward=2)), device=0)
    >>> times.tolist(), held.tolist()
    ([0.0, 0.0, 1.0, 4.0, 6.0, 6.0], [0.0, 1.0, 2.0, 1.0, 0.0, 0.0])
    """
    schedule = timeline.schedule
    rows = np.flatnonzero((schedule.device == device) & (schedule.kind != I))
    takes = schedule.kind[rows] == F
    when = np.where(takes, timeline.start[rows], timeline.end[rows]) - origin(timeline)
    when = np.maximum.accumulate(when)  # measured operations can overlap: their order decides what is held
    held = timeline.activations[rows] - ~takes / schedule.chunks
    refilled = (np.diff(when) == 0) & (np.diff(held) > 0)  # freed and taken at one moment
    kept = np.append(~refilled, True)
    return np.concatenate([[0.0], when[kept], [timeline.makespan]]), np.concatenate([[0.0], held[kept], [0.0]])


def _memory(axes: Axes, timeline: Timeline, device: int, frame: Frame) -> None:
    """Draw the activations of a device below its bars, the peak with a dot."""
    times, held = activation_curve(timeline, device)
    floor = device * frame.pitch + frame.bar + frame.lane + frame.memory
    scale = Affine2D().scale(1, -(frame.memory - 0.045) / frame.most).translate(0, floor) + axes.transData
    axes.fill_between(times, held, step="post", color=HELD, linewidth=0, transform=scale, clip_on=False)
    style: dict[str, Any] = {"transform": scale, "clip_on": False}
    curve = Line2D(times, held, drawstyle="steps-post", color=HELD_LINE, linewidth=0.9, gid="activations", **style)
    curve.set_solid_capstyle("butt")
    curve.set_solid_joinstyle("miter")
    peak = [int(held.argmax())]
    dot = Line2D(times[peak], held[peak], color=INK, marker="o", markersize=3.2, markeredgewidth=0, gid="peak", **style)
    axes.add_artist(curve)
    axes.add_artist(dot)
