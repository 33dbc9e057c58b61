"""Fills the gallery from the registry while the book is built, so that a schedule is on the page once it is registered.

In `book/gallery.md` this puts Markdown in the place of `{{ size }}`, `{{ findings }}`, `{{ table }}` and `{{ schedules }}`
before the page is read: headings, cells that draw the figures, links to the glossary are then those of any other page.
"""

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from hybridlab import REGISTRY, Costs, HybridLabError, Kind, Schedule, Timeline, UnsupportedSize, build, formulas, plot, simulate
from hybridlab.schedules import Family

PAGE = "book/gallery"
DEVICES, MICROBATCHES = 4, 8
TIMES = {"forward": 1.0, "backward": 2.0}  # the other costs are those that Costs.per_device takes by itself
WEIGHT_GRADIENT = 0.5 * TIMES["backward"]
COSTS = Costs.per_device(**TIMES)
MARKS = re.compile(r"\{\{ (\w+) \}\}")


@dataclass(frozen=True)
class Entry:
    """A schedule of the registry at the common size, or, where it refuses that with ``refusal``, at the nearest it supports."""

    family: Family
    timeline: Timeline
    refusal: str | None

    @property
    def schedule(self) -> Schedule:
        return self.timeline.schedule

    @property
    def anchor(self) -> str:
        return nodes.make_id(f"schedule-{self.family.name}")

    @property
    def size(self) -> str:
        return f"{counted(self.schedule.devices, 'device')}, {counted(self.schedule.microbatches, 'microbatch')}"

    @property
    def peak(self) -> float:
        return float(self.timeline.peak_activations.max())

    @property
    def messages(self) -> int:
        return int(self.schedule.messages.sum())


def entries(registry: Mapping[str, Family] = REGISTRY) -> list[Entry]:
    """Return what the page shows of each schedule, in the order of the registry."""
    made = []
    for name, family in registry.items():
        devices, microbatches = nearest_size(family)
        timeline = simulate(build(name, devices, microbatches), COSTS)
        made.append(Entry(family, timeline, family.refusal(DEVICES, MICROBATCHES, family.fewest_chunks)))
    return made


def nearest_size(family: Family) -> tuple[int, int]:
    """Return the devices and microbatches nearest to the common ones that a schedule supports, with its fewest chunks."""

    def distance(size: tuple[int, int]) -> tuple[int, int, int]:
        devices, microbatches = size
        return abs(devices - DEVICES), abs(microbatches - MICROBATCHES), -microbatches

    sizes = product(range(1, 4 * DEVICES + 1), range(1, 4 * MICROBATCHES + 1))
    for devices, microbatches in sorted(sizes, key=distance):
        if family.refusal(devices, microbatches, family.fewest_chunks) is None:
            return devices, microbatches
    raise HybridLabError(f"the gallery finds no size near {DEVICES} devices and {MICROBATCHES} microbatches for {family.name}")


def size_in_words() -> str:
    """Return the sentence that tells the size and the costs of all figures."""
    forward, backward = TIMES.values()
    work = MICROBATCHES * (forward + backward)
    return (
        f"*D* = {DEVICES} {{term}}`devices <device>` and *M* = {MICROBATCHES} {{term}}`microbatches <microbatch>`; one microbatch "
        f"on one device takes {forward:g} forward and {backward:g} backward, of which the {{term}}`weight gradient` is "
        f"{WEIGHT_GRADIENT:g}; no {{term}}`latency`. So every device computes for {work:g}, and the rest of the "
        "{term}`makespan` is {term}`bubble`"
    )


def findings(shown: list[Entry]) -> str:
    """Return a list that names the schedules with the least of each quantity, among those at the common size."""
    same = [entry for entry in shown if entry.refusal is None]
    if not same:
        return ""
    told = {
        "Shortest": (lambda entry: entry.timeline.makespan, "{term}`makespan` {least:g}"),
        "Least memory": (lambda entry: entry.peak, "no device holds more than the {term}`activations <activation>` of {least}"),
        "Fewest messages": (lambda entry: entry.messages, "{least} in all"),
    }
    lines = []
    for head, (quantity, words) in told.items():
        least = min(map(quantity, same))
        names = listed(f"[{escaped(entry.family.title)}](#{entry.anchor})" for entry in same if math.isclose(quantity(entry), least))
        figure = counted(least, "microbatch") if head == "Least memory" else f"{least:g}"
        lines.append(f"- **{head}:** {names}, {words.replace('{least:g}', figure).replace('{least}', figure)}.")
    return "\n".join(lines)


def table(shown: list[Entry]) -> str:
    """Return the comparison as an HTML table: Markdown has neither captions nor headers of rows."""
    same = [entry for entry in shown if entry.refusal is None]
    columns: dict[str, Callable[[Entry], float]] = {
        "makespan": lambda entry: entry.timeline.makespan,
        "bubble ratio": lambda entry: entry.timeline.bubble_ratio,
        "largest peak": lambda entry: entry.peak,
        "messages in all": lambda entry: entry.messages,
    }
    least = {name: min(map(value, same), default=-1.0) for name, value in columns.items()}
    most = {name: max(map(value, shown)) for name, value in columns.items()}

    def number(entry: Entry, name: str, form: str = "g", bar: bool = False) -> str:
        value = columns[name](entry)
        text = f"{value:{form}}"
        bold = entry.refusal is None and math.isclose(value, least[name])
        text = f"<strong>{text}</strong>" if bold else text
        share = value / most[name] if most[name] else 0
        drawn = f' <span class="bar" aria-hidden="true"><i style="width: {share:.1%}"></i></span>' if bar else ""
        return f"<td>{text}{drawn}</td>"

    rows = []
    for entry in shown:
        note = "" if entry.refusal is None else f"<small>{entry.size}</small>"
        rows.append(
            f'<tr><th scope="row"><a href="#{entry.anchor}">{escape(entry.family.title)}</a>{note}</th>'
            f"<td>{entry.schedule.chunks}</td>{number(entry, 'makespan')}{number(entry, 'bubble ratio', '.3f', bar=True)}"
            f"{number(entry, 'largest peak', bar=True)}<td>{by_device(entry.timeline.peak_activations)}</td>"
            f"{number(entry, 'messages in all')}<td>{by_device(entry.schedule.messages)}</td></tr>"
        )
    heads = "".join(
        f'<th scope="col">{head}</th>'
        for head in (
            "schedule",
            "chunks a device",
            "makespan",
            "bubble ratio",
            "largest peak",
            "peak activations by device",
            "messages in all",
            "messages by device",
        )
    )
    caption = f"Every schedule with {DEVICES} devices and {MICROBATCHES} microbatches. Bold: the least of its column."
    return (
        '<div class="gallery-table" role="region" aria-label="Comparison of the schedules" tabindex="0">\n'
        f"<table>\n<caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table>\n</div>"
    )


def section(entry: Entry, span: float, room: float, keys: Mapping[str, str]) -> str:
    """Return the section of one schedule; ``span`` and ``room`` are the scales of all figures, ``keys`` tell papers by arXiv number."""
    family, schedule, timeline = entry.family, entry.schedule, entry.timeline
    call = f'build("{family.name}", devices={schedule.devices}, microbatches={schedule.microbatches}'
    call += f", chunks={schedule.chunks})" if schedule.chunks > 1 else ")"
    chunks = f" ({schedule.chunks} chunks a device)" if schedule.chunks > 1 else ""
    kinds = {op.kind for op in schedule.ops}
    cited = [keys[number] for number in re.findall(r"\d{4}\.\d{5}", family.source) if number in keys]
    cite = f" {{cite}}`{','.join(dict.fromkeys(cited))}`" if cited else ""
    facts = {
        "Makespan": f"{timeline.makespan:g}{closed_form(entry)}; {{term}}`bubble ratio` {timeline.bubble_ratio:.3f}",
        "{term}`Peak activations`": f"{by_device(timeline.peak_activations)} microbatches by device",
        "Messages": f"{by_device(schedule.messages)} by device, {entry.messages} in all",
        "Operations": f"{listed(kind.words for kind in Kind if kind in kinds)}",
        "{term}`Placement`": placement(schedule),
        "Sizes": family.sizes,
        "In the library": f"`{call}`",
        "Source": f"{escaped(family.source)}{cite}",
    }
    elsewhere = "" if entry.refusal is None else f"Not at the common size: {escaped(entry.refusal)}. Shown with {entry.size}.\n\n"
    cell = (
        f"```{{code-cell}} python3\n---\ntags: [remove-input]\nmystnb:\n  image:\n    alt: {json.dumps(plot.alt_text(timeline))}\n"
        f"    width: 100%\n---\nplot.timeline(simulate({call}, costs), span={span:.10g}, room={room:.10g})\n```"
    )
    return (
        f"({entry.anchor})=\n## {escaped(family.title)}\n\n{escaped(upper_first(family.summary))}{chunks and ''}.\n\n{elsewhere}{cell}\n\n"
        + "\n".join(f"- **{name}:** {fact}." for name, fact in facts.items())
        + f"\n\n<details><summary>Order of every device as text</summary>\n\n```text\n{schedule}\n```\n\n</details>\n"
    )


def closed_form(entry: Entry) -> str:
    """Return what the closed form of the schedule's rule says of the makespan: nothing where there is none, or none for this size."""
    name = f"{getattr(entry.family.rule, '__name__', '')}_makespan"
    formula = getattr(formulas, name, None)
    if formula is None:
        return ""
    schedule = entry.schedule
    known = TIMES | {"devices": schedule.devices, "microbatches": schedule.microbatches, "chunks": schedule.chunks}
    known |= {"weight_gradient": WEIGHT_GRADIENT, "p2p": 0.0}
    try:
        value = formula(**{argument: known[argument] for argument in inspect.signature(formula).parameters})
    except UnsupportedSize:
        return ""
    return f" by the {{term}}`clock`, {value:g} by the {{term}}`closed form` {{func}}`~hybridlab.formulas.{name}`"


def placement(schedule: Schedule) -> str:
    """Return where the stages stand."""
    if schedule.device_of == tuple(range(schedule.devices)):
        return "stage *s* on device *s*"
    return f"stages 0 to {schedule.stages - 1} on devices {by_device(schedule.device_of)}"


def fill(text: str, registry: Mapping[str, Family] = REGISTRY, bibliography: str = "") -> str:
    """Return the page with every mark replaced; ``bibliography`` is BibTeX, whose entries name their arXiv number."""
    shown = entries(registry)
    span, room = (max(values) for values in zip(*((entry.timeline.makespan, entry.peak) for entry in shown), strict=True))
    keys = {number: key for key, number in re.findall(r"@\w+\{([^,]+),[^@]*?arXiv (\d{4}\.\d{5})", bibliography)}
    parts = {
        "size": size_in_words(),
        "findings": findings(shown),
        "table": table(shown),
        "schedules": "\n".join(section(entry, span, room, keys) for entry in shown),
    }
    return MARKS.sub(lambda mark: parts[mark[1]], text)


def by_device(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def counted(count: float, thing: str) -> str:
    return f"{count:g} {thing}{'' if count == 1 else 'es' if thing.endswith('ch') else 's'}"


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def escaped(text: str) -> str:
    """Return text in which no sign has a meaning in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", text)


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        source[0] = fill(source[0], bibliography=(Path(app.srcdir) / "book/references.bib").read_text(encoding="utf-8"))


def own_anchors_first(app: Sphinx, document: nodes.document) -> None:
    """Let a section's own link and the table of contents lead to `#schedule-1f1b`, not to a name made from the title."""
    if app.env.docname == PAGE:
        for part in document.findall(nodes.section):
            part["ids"].sort(key=lambda anchor: not anchor.startswith("schedule-"))


def add_style(app: Sphinx, pagename: str, *_: object) -> None:
    if pagename == PAGE:
        app.add_css_file("gallery.css")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read_page)
    app.connect("doctree-read", own_anchors_first, priority=100)  # before the table of contents is gathered
    app.connect("html-page-context", add_style)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
