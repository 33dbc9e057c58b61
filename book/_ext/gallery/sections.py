"""One section a schedule: its rule, its figure, its numbers, its order as text."""

import inspect
import json
import re
from collections.abc import Mapping

from gallery.entries import TIMES, WEIGHT_GRADIENT, Entry
from gallery.words import by_device, each_device, escaped, listed, upper_first
from hybridlab import Kind, Schedule, UnsupportedSize, formulas, plot


def section(entry: Entry, end: float, peak: float, keys: Mapping[str, str]) -> str:
    """Return the section of one schedule; ``end`` and ``peak`` are the scales of all figures, ``keys`` tell papers by arXiv number."""
    family, schedule, timeline = entry.family, entry.schedule, entry.timeline
    kinds = {op.kind for op in schedule.ops}
    facts = {
        "Makespan": f"{timeline.makespan:g}{closed_form(entry)}; bubble ratio {timeline.bubble_ratio:.3f}",
        "Peak activations": f"{each_device(timeline.peak_activations)}, in microbatches",
        "Messages": f"{each_device(schedule.messages)}; {schedule.messages.sum()} in all",
        "Operations": listed(kind.words for kind in Kind if kind in kinds),
        "Placement": placement(schedule),
        "Sizes": family.sizes,
        "In the library": f"`{call(entry)}`",
        "Source": escaped(family.source) + citation(family.source, keys),
    }
    elsewhere = "" if entry.refusal is None else f"{escaped(upper_first(entry.refusal))}. So it is shown with {entry.size}.\n\n"
    return (
        f"({entry.anchor})=\n## {escaped(family.title)}\n\n{rule(family.summary)}.\n\n{elsewhere}{figure(entry, end, peak)}\n\n"
        + "\n".join(f"- **{name}:** {fact}." for name, fact in facts.items())
        + '\n\n<details class="gallery-order"><summary>Order of every device as text</summary>\n\n'
        + f"```text\n{schedule}\n```\n\n</details>\n"
    )


def figure(entry: Entry, end: float, peak: float) -> str:
    """Return the cell that draws the timeline."""
    alt = json.dumps(plot.alt_text(entry.timeline), ensure_ascii=False)
    return (
        f"```{{code-cell}} python3\n---\ntags: [remove-input]\nmystnb:\n  image:\n    alt: {alt}\n    width: 100%\n---\n"
        f"plot.timeline(simulate({call(entry)}, costs), end={end:.10g}, peak={peak:.10g})\n```"
    )


def call(entry: Entry) -> str:
    """Return the call that builds the schedule."""
    schedule = entry.schedule
    chunks = f", chunks={schedule.chunks}" if schedule.chunks > 1 else ""
    return f'build("{entry.family.name}", devices={schedule.devices}, microbatches={schedule.microbatches}{chunks})'


def closed_form(entry: Entry) -> str:
    """Return what the closed form of the schedule says of the makespan: nothing where there is none, or none for this size.

    It bears the name of the rule's function: `zb_h1_makespan` for `zb_h1`.
    """
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
    return f" by the clock, {value:g} by the closed form {{func}}`~hybridlab.formulas.{name}`"


def placement(schedule: Schedule) -> str:
    """Return where the stages stand."""
    if schedule.device_of == tuple(range(schedule.devices)):
        return "stage *s* on device *s*"
    return f"stages 0 to {schedule.stages - 1} on devices {by_device(schedule.device_of)}"


def rule(summary: str) -> str:
    """Return a summary as the beginning of a sentence, the letters of the book in italics."""
    text = re.sub(r"(?<=\b\w)-(?=\w\b)", "\N{MINUS SIGN}", upper_first(summary))
    return re.sub(r"\b([DKMdv])\b", r"*\1*", escaped(text))


def citation(source: str, keys: Mapping[str, str]) -> str:
    """Return links to the papers in the bibliography that a source names by arXiv number."""
    cited = dict.fromkeys(keys[number] for number in re.findall(r"\d{4}\.\d{5}", source) if number in keys)
    return f" {{cite}}`{','.join(cited)}`" if cited else ""
