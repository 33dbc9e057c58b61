"""Give the gallery page with known optima, split the page into its parts, and say what the registry requires on it.

The optima were found by the solver earlier, so a test does not run the solver.
"""

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from unittest import mock

import gallery

from hybridlab import REGISTRY, Costs, Schedule, build, simulate
from hybridlab.bound import OptimalityGap, optimality_gap
from hybridlab.schedules import Family

BOOK = Path(__file__).parents[2] / "book"

TEXT = (BOOK / "gallery.md").read_text(encoding="utf-8")
REFERENCES = (BOOK / "references.bib").read_text(encoding="utf-8")
COSTS = Costs(forward=1, backward=2, unit=None)
TITLES = [
    "One chunk a device",
    "One chunk a device, backward split",
    "Several chunks in a loop",
    "Chunks folded into a V",
    "Two copies of the weights",
]
ENTRIES = import_module("gallery.entries")
OPTIMA = {  # optimal makespans at the common size, proven by the solver
    "hanayo": 30.0,
    "v-half": 26.5,
    "v-min": 29.5,
    "dualpipe-v": 25.5,
    "chimera": 28.0,
    "dualpipe": 25.0,
}


def made(name: str) -> Schedule:
    """Return the schedule at the size that the page shows."""
    return build(name, *ENTRIES.nearest_size(REGISTRY[name]))


def title_of_group(family: Family) -> str:
    """Return the title of the group that a schedule belongs to.

    The group follows from the schedule's registration. Only a split backward is recognised by the operations of the schedule.
    """
    if family.bidirectional:
        return TITLES[4]
    if family.fewest_chunks > 1:
        return TITLES[3] if family.placement == "folded" else TITLES[2]
    return TITLES[1] if "W" in str(made(family.name)) else TITLES[0]


def groups() -> dict[str, list[str]]:
    """Return the names of the schedules in each group.

    Groups are in the order of the page. Within a group, names are in the order of the registry.
    """
    members: dict[str, list[str]] = {title: [] for title in TITLES}
    for name, family in REGISTRY.items():
        members[title_of_group(family)].append(name)
    return {title: names for title, names in members.items() if names}


def names() -> list[str]:
    """Return the names of all schedules in the order of the page."""
    return [name for members in groups().values() for name in members]


def anchor(name: str) -> str:
    return "schedule-" + re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def longest() -> float:
    """Return the end of the time axis that all figures share."""
    return max(simulate(made(name), COSTS).makespan for name in REGISTRY)


@cache
def known(schedule: Schedule) -> OptimalityGap:
    """Return what the solver would answer for the page, with the optimum taken from ``OPTIMA``."""
    return replace(found, optimum=OPTIMA.get(schedule.name)) if (found := optimality_gap(schedule, COSTS)).optimum is None else found


def page() -> str:
    return page_of(tuple(REGISTRY.values()))


@cache
def page_of(families: tuple[Family, ...]) -> str:
    """Return the page with these schedules; it is made only once."""
    assert families == tuple(REGISTRY.values())
    return filled_in(TEXT, REFERENCES)


def filled_in(text: str, bibliography: str = "") -> str:
    """Return the text with its marks replaced as the book's extension does it, but without running the solver."""
    with mock.patch.object(ENTRIES, "_gap", known):
        return gallery.fill(text, bibliography)


def sections(filled: str) -> dict[str, str]:
    """Return the text of each schedule's section, by the section's anchor."""
    parts = re.split(r"^\(([\w-]+)\)=\n", filled, flags=re.M)
    return {anchor: part for anchor, part in zip(parts[1::2], parts[2::2], strict=True) if anchor.startswith("schedule-")}


class Table(HTMLParser):
    """Read a table: its rows as lists of texts, its links, and the scopes of its headers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.scopes: list[str | None] = []
        self.bold: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "th":
            self.scopes.append(dict(attrs).get("scope"))
        if tag == "a":
            self.links.append(dict(attrs)["href"] or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Do nothing, because such an element (for example the path of a drawing) has no text."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.rows and "tr" in self.open:
            self.rows[-1][-1] += ("|" if "small" in self.open else "") + data
            if "strong" in self.open:
                self.bold.append(f"{self.rows[-1][0].split('|')[0]}: {data}")


def table(filled: str) -> Table:
    return Table(filled[filled.index("<table>") : filled.index("</table>") + 8])


def rows(filled: str) -> list[list[str]]:
    """Return the rows of the schedules, in the order of the page."""
    return [row for row in table(filled).rows[1:] if len(row) > 1]
