"""The section of each schedule: its rule, its figure, its numbers, its order as text."""

import json
import re
from collections.abc import Mapping

from gallery.closed_forms import beside, formula_of, peak
from gallery.entries import Entry
from gallery.groups import Group
from gallery.words import by_device, each_device, escaped, listed, upper_first
from hybridlab import Kind, Schedule, plot

SOMETIMES = {"Longest span of one device": "span", "Idle time of a device": "bubble"}  # only where there is a closed form


def heading(group: Group) -> str:
    """Return the heading of a group and its introduction."""
    return f"## {group.title}\n\n{group.words}\n\n"


def section(entry: Entry, end: float, most: float, keys: Mapping[str, str]) -> str:
    """Return the section of one schedule.

    ``end`` and ``most`` are the scales of all figures; ``keys`` maps arXiv numbers to keys of the bibliography.
    """
    family, schedule = entry.family, entry.schedule
    kinds = {op.kind for op in schedule.ops}
    facts = {
        "Makespan": beside(entry, "makespan"),
        "Least possible": far(entry),
        **{words: beside(entry, quantity) for words, quantity in SOMETIMES.items() if formula_of(entry, quantity)},
        "Bubble ratio": beside(entry, "bubble_ratio"),
        "Peak activations": peak(entry),
        "Messages": f"{each_device(schedule.messages)}; {schedule.messages.sum()} in all",
        "Operations": listed(kind.words for kind in Kind if kind in kinds),
        "Placement": placement(schedule),
        "Sizes": family.sizes,
        "In the library": f"`{call(entry)}`",
        "Source": escaped(family.source) + citation(family.source, keys),
    }
    elsewhere = "" if entry.refusal is None else f"{escaped(upper_first(entry.refusal))}. So it is shown with {entry.size}.\n\n"
    return (
        f"({entry.anchor})=\n### {escaped(family.title)}\n\n{rule(family.summary)}.\n\n{elsewhere}{figure(entry, end, most)}\n\n"
        + "\n".join(f"- **{name}:** {fact}." for name, fact in facts.items())
        + '\n\n<details class="gallery-order"><summary>Order of every device as text</summary>\n\n'
        + f"```text\n{schedule}\n```\n\n</details>\n"
    )


def far(entry: Entry) -> str:
    """Return the least possible makespan, the function that found it, and the schedule's distance from it."""
    told = f"{entry.least:g} with these operations and activations"
    if entry.gap.optimum is None:
        return f"not below {told}, by {{func}}`~hybridlab.bound.lower_bound`; this order takes at most {entry.more:.1%} more than needed"
    source = "lower_bound" if entry.least == entry.gap.bound else "optimum"
    far_off = f"this order takes {entry.more:.1%} more" if entry.more else "this order reaches it"
    return f"{told}, by {{func}}`~hybridlab.bound.{source}`; {far_off}"


def figure(entry: Entry, end: float, most: float) -> str:
    """Return the cell that draws the timeline."""
    alt = json.dumps(plot.alt_text(entry.timeline), ensure_ascii=False)
    return (
        f"```{{code-cell}} python3\n---\ntags: [remove-input]\nmystnb:\n  image:\n    alt: {alt}\n    width: 100%\n---\n"
        f"plot.timeline(simulate({call(entry)}, costs), end={end:.10g}, peak={most:.10g})\n```"
    )


def call(entry: Entry) -> str:
    """Return the call that builds the schedule."""
    schedule = entry.schedule
    chunks = f", chunks={schedule.chunks}" if schedule.chunks > 1 else ""
    return f'build("{entry.family.name}", devices={schedule.devices}, microbatches={schedule.microbatches}{chunks})'


def placement(schedule: Schedule) -> str:
    """Return which device holds which stage."""
    if schedule.paths == (tuple(range(schedule.devices)),):
        return "stage *s* on device *s*"
    first, *others = (by_device(path) for path in schedule.paths)
    return f"stages 0 to {schedule.stages - 1} on devices {'; stages of the other copy of the weights on devices '.join([first, *others])}"


def rule(summary: str) -> str:
    """Return a summary as the beginning of a sentence, with the letters of the book in italics."""
    text = re.sub(r"(?<=\b\w)-(?=\w\b)|(?<=K)-(?=\d)", "\N{MINUS SIGN}", upper_first(summary)).replace(">=", "\N{GREATER-THAN OR EQUAL TO}")
    return re.sub(r"\b(\d*)([DFIKMWdv])\b", r"\1*\2*", escaped(text))


def citation(source: str, keys: Mapping[str, str]) -> str:
    """Return links to the papers of the bibliography whose arXiv numbers are in a source."""
    cited = dict.fromkeys(keys[number] for number in re.findall(r"\d{4}\.\d{5}", source) if number in keys)
    return f" {{cite}}`{','.join(cited)}`" if cited else ""
