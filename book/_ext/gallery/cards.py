"""The cards of the gallery: a small drawing and three numbers of each schedule. A card loads its schedule into the explorer of the page."""

from html import escape
from urllib.parse import urlencode

from gallery.entries import QUANTITIES, Entry
from hybridlab import Timeline
from hybridlab.palette import shade_colour, shades_of

SORTED_BY = {"makespan": "makespan", "peak": "peak activations", "messages": "messages"}  # name of the quantity -> words


def cards(shown: list[Entry]) -> str:
    """Return the cards as HTML, in the order of the page, and a choice of the quantity to sort them by.

    The script `gallery.js` sorts the cards; without scripts there is no choice, and a card leads to the section of its schedule.
    """
    span = max(entry.timeline.makespan for entry in shown)
    choices = "".join(f'<option value="{name}">{words}</option>' for name, words in SORTED_BY.items())
    choice = f'<p class="sort" hidden><label>Sort by <select><option value="">group</option>{choices}</select></label></p>'
    return f'<div class="gallery-cards">\n{choice}\n<ul>\n{"".join(card(entry, span) for entry in shown)}</ul>\n</div>'


def card(entry: Entry, span: float) -> str:
    """Return one card. Its link is the setting of the explorer, whose place on the page the script adds."""
    schedule = entry.schedule
    setting = urlencode(
        {"schedule": schedule.name, "devices": schedule.devices, "microbatches": schedule.microbatches, "chunks": schedule.chunks}
    )
    values = {name: QUANTITIES[name](entry) for name in SORTED_BY}
    data = "".join(f' data-{name}="{value:.10g}"' for name, value in values.items())
    numbers = "".join(f"<dt>{words}</dt><dd>{values[name]:g}</dd>" for name, words in SORTED_BY.items())
    note = f"<small>{entry.size}</small>" if entry.refusal else ""
    return (
        f'<li{data}><a href="#{entry.anchor}" data-setting="{escape(setting)}"><strong>{escape(entry.family.title)}</strong>{note}'
        f"{thumbnail(entry.timeline, span)}</a><dl>{numbers}</dl></li>\n"
    )


def thumbnail(timeline: Timeline, span: float) -> str:
    """Return a timeline as a small drawing with a row a device; screen readers skip it, because the larger figure has a description."""
    schedule = timeline.schedule
    paths: dict[str, str] = {}
    shades, pairs = shades_of(schedule).tolist(), schedule.pairs.tolist()
    halves = dict.fromkeys(pairs, 0.0) | {row + 1: 0.4 for row in pairs}  # the forward of an overlapped pair is drawn above the backward
    for place, row in enumerate(timeline.to_rows()):
        colour = shade_colour(row["kind"], shades[place], schedule.copies * schedule.chunks)
        left, wide = row["start"], row["end"] - row["start"]
        top, high = row["device"] + halves.get(place, 0.0), ".4" if place in halves else ".8"
        paths[colour] = f"{paths.get(colour, '')}M{left:g} {top:g}h{wide:g}v{high}h{-wide:g}z"
    idle = "".join(f"M0 {device}h{timeline.makespan:g}v.8H0z" for device in range(schedule.devices))
    drawn = "".join(f'<path fill="{colour}" d="{path}"/>' for colour, path in paths.items())
    box = f"0 0 {span:g} {schedule.devices - 0.2:g}"
    return (
        f'<svg viewBox="{box}" preserveAspectRatio="none" style="height: {0.6 * schedule.devices:g}em" aria-hidden="true">'
        f'<path class="idle" d="{idle}"/>{drawn}</svg>'
    )
