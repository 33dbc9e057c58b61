"""The top of the gallery: the common size, the best schedules by each quantity, and the table that compares all schedules."""

from html import escape

from gallery.entries import DEVICES, MICROBATCHES, QUANTITIES, TIMES, WEIGHT_GRADIENT, Entry, best
from gallery.groups import GROUPS
from gallery.words import by_device, counted, escaped, listed


def size_in_words() -> str:
    """Return the size and the costs of all figures."""
    forward, backward = TIMES.values()
    return (
        f"*K* = {DEVICES} {{term}}`devices <device>` and *M* = {MICROBATCHES} {{term}}`microbatches <microbatch>`. On one device, one "
        f"microbatch takes {forward:g} for the forward and {backward:g} for the backward; {WEIGHT_GRADIENT:g} of these {backward:g} is "
        "for the {term}`weight gradient`. There is no {term}`latency`. So every device computes for "
        f"{MICROBATCHES * (forward + backward):g}, and the rest of the {{term}}`makespan` is {{term}}`bubble`"
    )


def findings(shown: list[Entry]) -> str:
    """Return a list that names, for each quantity, the schedules with the lowest value at the common size."""
    leaders = best(shown)
    if not any(leaders.values()):
        return ""
    first = {name: listed(f"[{escaped(entry.family.title)}](#{entry.anchor})" for entry in same) for name, same in leaders.items()}
    least = {name: QUANTITIES[name](same[0]) for name, same in leaders.items()}
    held = counted(least["peak"], "microbatch")
    return (
        f"- **Shortest:** {first['makespan']}, with a makespan of {least['makespan']:g}.\n"
        f"- **Least memory:** {first['peak']}, with the {{term}}`activations <activation>` of at most {held} on a device.\n"
        f"- **Fewest messages:** {first['messages']}, with {least['messages']:g} in all."
    )


def table(shown: list[Entry]) -> str:
    """Return the comparison as an HTML table: Markdown has neither captions nor headers of rows."""
    leaders = best(shown)

    def cell(entry: Entry, name: str, form: str = "g", below: str = "") -> str:
        value = QUANTITIES[name](entry)
        number = f"<strong>{value:{form}}</strong>" if entry in leaders[name] else f"{value:{form}}"
        return f"<td>{number}{below and f'<small>{below}</small>'}</td>"

    rows = {
        entry.anchor: f'<tr><th scope="row"><a href="#{entry.anchor}">{escape(entry.family.title)}</a>'
        f"{''.join(f'<small>{note}</small>' for note in notes(entry))}</th>"
        f"{cell(entry, 'makespan')}<td>{least_possible(entry)}</td>{cell(entry, 'bubble ratio', '.3f')}"
        f"{cell(entry, 'peak', below=by_device(entry.timeline.peak_activations))}"
        f"<td>{entry.schedule.copies}</td>{cell(entry, 'messages', below=by_device(entry.schedule.messages))}</tr>"
        for entry in shown
    }
    heads = "".join(
        f'<th scope="col">{head}{below and f"<small>{below}</small>"}</th>'
        for head, below in (
            ("schedule", ""),
            ("makespan", ""),
            ("least possible", "distance"),
            ("bubble ratio", ""),
            ("peak activations", "by device"),
            ("weights", "copies"),
            ("messages", "sent by device"),
        )
    )
    caption = (
        f"Every schedule with {DEVICES} devices and {MICROBATCHES} microbatches: the largest peak and the number of all messages, "
        "and below them the values of each device. Bold: the lowest value of the column."
    )
    if any(entry.refusal for entry in shown):
        caption += " A schedule with a size below its name does not run at the common size; bold values do not take it into account."
    bodies = []
    for group in GROUPS:
        if members := [rows[entry.anchor] for entry in shown if entry.group is group]:
            bodies += [f'<tbody>\n<tr><th scope="rowgroup" colspan="7"><span>{group.title}</span></th></tr>', *members, "</tbody>"]
    body = "\n".join(bodies)
    return (
        '<div class="gallery-table" role="region" aria-label="Comparison of the schedules" tabindex="0">\n'
        f"<table>\n<caption><span>{caption}</span></caption>\n<thead><tr>{heads}</tr></thead>\n{body}\n</table>\n</div>"
    )


def least_possible(entry: Entry) -> str:
    """Return the least possible makespan and the distance from it."""
    unproven = entry.gap.optimum is None
    far = f"{'at most ' * unproven}+{entry.more:.1%}" if entry.more else "reached"
    return f"{'≥ ' * unproven}{entry.least:g}<small>{far}</small>"


def notes(entry: Entry) -> list[str]:
    """Return the notes below the name of a schedule: its chunks, and its size if it is not the common one."""
    several = [f"{entry.schedule.chunks} chunks"] if entry.schedule.chunks > 1 else []
    return several + ([] if entry.refusal is None else [f"with {entry.size}"])
