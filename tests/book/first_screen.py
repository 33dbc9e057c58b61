"""Draw the first pictures again: `python tests/book/first_screen.py`.

README shows the moving one, and so does the first page of the site without scripts. The still one is for previews of links.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from hybridlab import REGISTRY, Costs, Timeline, build, plot, simulate
from hybridlab.palette import KIND_COLOURS
from hybridlab.schedule import KINDS, Kind

PICTURE = Path(__file__).parents[2] / "book/_assets/first_screen.png"
MOVING = PICTURE.with_suffix(".svg")

TICK = 64  # milliseconds in which the moving picture plays one unit of time: 93 units take six seconds
APART = 5  # units of time from one number of the axis to the next
UNIT, LEFT = 26, 112  # pixels of one unit of time, and of the names of devices left of it
BAR, PITCH = 32, 37  # the height of a bar, and from one device to the next
HEAD, PANEL = 36, 204  # the height of the line above the bars, and from one schedule to the next
COUNTED = {"time": 200, "bubble ratio": 450, "most activations on a device": 890}  # where each word ends; its number stands behind it
MARKS = {"F": "", "B": "M3 27h{}", "I": "M3 27h{}", "W": "M3 5h{}"}  # tell the kinds apart without colour, as in all figures
STYLE = f"""
text {{ font: 18px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1F2328 }}
.title {{ font-size: 22px; font-weight: 700 }}
.figure {{ font-size: 20px; font-weight: 700; font-variant-numeric: tabular-nums }}
.word, .tick {{ fill: #59636E }}
.word, .name {{ text-anchor: end }}
.tick, .number {{ text-anchor: middle }}
.sample {{ font-size: 16px }}
.number {{ fill: #000 }}
.grid {{ stroke: #D8DEE4 }}
.idle {{ fill: url(#hatch) }}
.ground {{ fill: #F8F9FA }}
.line {{ stroke: #B4BBC4 }}
.mark {{ stroke: #000; stroke-opacity: 0.6; stroke-width: 2.5 }}
.dots {{ stroke-dasharray: 2.5 2.5 }}
.step {{ animation: appear {TICK}ms linear backwards }}
.passed {{ visibility: hidden; animation: count {TICK}ms }}
.cursor {{ stroke: #1F2328; stroke-width: 2; visibility: hidden; animation: move linear }}
@keyframes appear {{ from {{ opacity: 0 }} }}
@keyframes count {{ from, to {{ visibility: visible }} }}
@keyframes move {{ from {{ visibility: visible; transform: none }} to {{ visibility: visible; transform: translateX(var(--way)) }} }}
@media (prefers-reduced-motion: reduce) {{ * {{ animation: none !important }} }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #E6EDF3 }}
.word, .tick {{ fill: #9FA8B2 }}
.number {{ fill: #000 }}
.grid {{ stroke: #343B44 }}
.ground {{ fill: #1B2026 }}
.line {{ stroke: #4F5862 }}
.cursor {{ stroke: #E6EDF3 }}
}}
"""


def run(name: str) -> Timeline:
    """Return the timeline of a schedule: 4 devices, 8 microbatches, a backward twice as long as a forward."""
    return simulate(build(name, devices=4, microbatches=8), Costs(forward=1, backward=2, unit=None))


def first_screen() -> bytes:
    """Return a PNG that shows 1F1B above ZB-H1."""
    png, _ = plot.compare({REGISTRY[name].title: run(name) for name in ("1f1b", "zb-h1")})._repr_png_()
    return png


def moving_screen() -> str:
    """Return an SVG in which GPipe, 1F1B and ZB-H1 fill in one after the other, in six seconds; then the finished picture stays.

    It needs no script: GitHub shows it as a picture. For readers who want no motion, the finished picture stands there at once.
    """
    timelines = {REGISTRY[name].title: run(name) for name in ("gpipe", "1f1b", "zb-h1")}
    longest = max(int(timeline.makespan) for timeline in timelines.values())
    begun, panels = 0, []
    for place, (title, timeline) in enumerate(timelines.items()):
        panels += [f'<g class="panel" transform="translate(0 {10 + place * PANEL})">', *panel(title, timeline, begun, longest), "</g>"]
        begun += int(timeline.makespan)
    foot = 10 + len(timelines) * PANEL
    titles = list(timelines)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {foot + 66}" role="img" aria-labelledby="title desc">',
        f'<title id="title">Timelines of {", ".join(titles[:-1])} and {titles[-1]} below each other</title>',
        f'<desc id="desc">{description(timelines)}</desc>',
        f"<style>{STYLE}</style>",
        f"<defs>{hatch()}{''.join(bar_of(kind, length) for kind, length in lengths(timelines.values()).items())}</defs>",
        *axis(longest, foot + 4),
        *panels,
        *legend(lengths(timelines.values()), foot + 24),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def description(timelines: dict[str, Timeline]) -> str:
    """Return what the finished picture shows, and how it gets there, in words."""
    told = [
        f"{title} ends at time {figures[0]}, has a bubble ratio of {figures[1]} and holds up to {figures[2]} activations on a device."
        for title, figures in ((title, figures_at_the_end(timeline)) for title, timeline in timelines.items())
    ]
    sizes = "Four devices and eight microbatches; a backward takes twice as long as a forward."
    return f"{sizes} {' '.join(told)} While a timeline fills in, the numbers above it are those of the part that has been played."


def figures_at_the_end(timeline: Timeline) -> tuple[str, str, str]:
    return f"{timeline.makespan:g}", f"{timeline.bubble_ratio:.3f}", f"{timeline.peak_activations.max():g}"


def figures_until(timeline: Timeline, time: int) -> tuple[str, str, str]:
    """Return the time, the idle share of it, and the most activations that a device has held until then."""
    busy = (np.clip(timeline.end, 0, time) - np.clip(timeline.start, 0, time)).sum()
    most = timeline.activations[timeline.start < time].max()
    return f"{time}", f"{1 - busy / (timeline.schedule.devices * time):.3f}", f"{most:g}"


def panel(title: str, timeline: Timeline, begun: int, longest: int) -> Iterator[str]:
    """Yield the elements of one schedule, which begins to fill in when ``begun`` units of time have been played."""
    makespan, devices = int(timeline.makespan), timeline.schedule.devices
    yield f'<text class="title" y="22">{title}</text>'
    for word, x in COUNTED.items():
        yield f'<text class="word" x="{x}" y="22">{word}</text>'
    grid = "".join(f"M{LEFT + time * UNIT} {HEAD - 4}v{devices * PITCH + 3}" for time in range(0, longest + 1, APART))
    yield f'<path class="grid" d="{grid}"/>'
    for device in range(devices):
        yield f'<text class="name" x="{LEFT - 10}" y="{HEAD + device * PITCH + 22}">device {device}</text>'
    for time in range(1, makespan + 1):
        delay = f'style="animation-delay:{(begun + time - 1) * TICK}ms"'
        if time < makespan:
            yield f'<text class="figure passed" {delay} y="22">{spans(figures_until(timeline, time))}</text>'
        yield f'<g class="step" {delay}>'
        yield from ended(timeline, time)
        if time == makespan:
            yield f'<text class="figure" y="22">{spans(figures_at_the_end(timeline))}</text>'
        yield "</g>"
    timing = f"animation-delay:{begun * TICK}ms;animation-duration:{makespan * TICK}ms;--way:{makespan * UNIT}px"
    yield f'<path class="cursor" style="{timing}" d="M{LEFT} {HEAD - 4}v{devices * PITCH}"/>'


def spans(figures: Sequence[str]) -> str:
    return "".join(f'<tspan x="{x + 10}">{figure}</tspan>' for x, figure in zip(COUNTED.values(), figures, strict=True))


def ended(timeline: Timeline, time: int) -> Iterator[str]:
    """Yield what ends at a time: the operations, and one unit of time of each device that was idle before."""
    running = (timeline.start < time) & (timeline.end >= time)
    idle = sorted(set(range(timeline.schedule.devices)) - set(timeline.device[running].tolist()))
    if idle:
        cells = "".join(f"M{LEFT + (time - 1) * UNIT} {HEAD + device * PITCH}h{UNIT}v{BAR}h-{UNIT}z" for device in idle)
        yield f'<path class="idle" d="{cells}"/>'
    for row in np.flatnonzero(timeline.end == time).tolist():
        op, x, y = timeline.ops[row], LEFT + int(timeline.start[row]) * UNIT, HEAD + int(timeline.device[row]) * PITCH
        middle = x + int(timeline.end[row] - timeline.start[row]) * UNIT // 2
        yield f'<use href="#{op.kind}" x="{x}" y="{y}"/><text class="number" x="{middle}" y="{y + 22}">{op.microbatch}</text>'


def lengths(timelines: Iterable[Timeline]) -> dict[Kind, int]:
    """Return how long an operation of each kind takes; the order is that of the legend."""
    taken = {(op.kind, int(length)) for each in timelines for op, length in zip(each.ops, each.end - each.start, strict=True)}
    assert len(dict(taken)) == len(taken), "operations of one kind take different times"
    return {kind: dict(taken)[kind] for kind in KINDS if kind in dict(taken)}


def bar_of(kind: Kind, length: int) -> str:
    """Return the bar that all operations of a kind use: its colour, and the mark by which readers tell it without colour."""
    width = length * UNIT
    mark = f'<path class="mark{" dots" * (kind == "I")}" d="{MARKS[kind].format(width - 6)}"/>' if MARKS[kind] else ""
    return f'<g id="{kind}"><rect x=".5" width="{width - 1}" height="{BAR}" fill="{KIND_COLOURS[kind]}"/>{mark}</g>'


def hatch() -> str:
    lines = '<rect class="ground" width="8" height="8"/><path class="line" d="M-1 1l2-2M0 8l8-8M7 9l2-2"/>'
    return f'<pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse">{lines}</pattern>'


def axis(longest: int, y: int) -> Iterator[str]:
    """Yield the numbers of the time axis."""
    yield f'<text class="word" x="{LEFT - 28}" y="{y}">time</text>'
    for time in range(0, longest + 1, APART):
        yield f'<text class="tick" x="{LEFT + time * UNIT}" y="{y}">{time}</text>'


def legend(kinds: dict[Kind, int], top: int) -> Iterator[str]:
    """Yield a sample of each kind of operation, one of idle time, and what the numbers in bars say."""
    x = 20
    samples = [(kind.words, length, f'<use href="#{kind}" {{}}/>') for kind, length in kinds.items()]
    samples += [("idle", 1, f'<rect class="idle" width="{UNIT}" height="{BAR}" {{}}/>'), ("number: microbatch", 0, "")]
    for words, length, sample in samples:
        yield sample.format(f'x="{x}" y="{top}"')
        x += length * UNIT + 8
        yield f'<text class="sample" x="{x}" y="{top + 22}">{words}</text>'
        x += 10 * len(words) + 16


if __name__ == "__main__":
    PICTURE.write_bytes(first_screen())
    MOVING.write_text(moving_screen(), encoding="utf-8", newline="\n")
