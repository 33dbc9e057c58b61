"""The page of the gallery with the solver's optima, the parts of the page, and what the registry requires on it."""

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

BOOK = Path(__file__).parents[1] / "book"

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
OPTIMA = {  # at the common size: proven by the solver, which takes a minute for all; None where it does not find one in time
    "hanayo": 30.0,
    "v-half": None,
    "v-min": 29.5,
    "dualpipe-v": None,
    "chimera": 28.0,
    "dualpipe": 25.0,
}


def made(name: str) -> Schedule:
    """The schedule at the size that the page shows."""
    return build(name, *ENTRIES.nearest_size(REGISTRY[name]))


def title_of_group(family: Family) -> str:
    """The group of a schedule, from its registration; only the split backward is found from its order."""
    if family.bidirectional:
        return TITLES[4]
    if family.fewest_chunks > 1:
        return TITLES[3] if family.placement == "folded" else TITLES[2]
    return TITLES[1] if "W" in str(made(family.name)) else TITLES[0]


def groups() -> dict[str, list[str]]:
    """The names of the schedules of each group, in the order of the page; within a group, in the order of the registry."""
    members: dict[str, list[str]] = {title: [] for title in TITLES}
    for name, family in REGISTRY.items():
        members[title_of_group(family)].append(name)
    return {title: names for title, names in members.items() if names}


def names() -> list[str]:
    """The names of all schedules in the order of the page."""
    return [name for members in groups().values() for name in members]


def anchor(name: str) -> str:
    return "schedule-" + re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def longest() -> float:
    """The end of the time axis that all figures share."""
    return max(simulate(made(name), COSTS).makespan for name in REGISTRY)


def known(schedule: Schedule) -> OptimalityGap:
    """The answer of the solver for the page, taken from the optima above."""
    return replace(found, optimum=OPTIMA.get(schedule.name)) if (found := optimality_gap(schedule, COSTS)).optimum is None else found


def page() -> str:
    return page_of(tuple(REGISTRY.values()))


@cache
def page_of(families: tuple[Family, ...]) -> str:
    """The page with these schedules, made once."""
    assert families == tuple(REGISTRY.values())
    return filled_in(TEXT, REFERENCES)


def filled_in(text: str, bibliography: str = "") -> str:
    """The text with its marks replaced, as the extension does it, but without asking the solver."""
    with mock.patch.object(ENTRIES, "_gap", known):
        return gallery.fill(text, bibliography)


def sections(filled: str) -> dict[str, str]:
    """The text of each schedule's section by its anchor."""
    parts = re.split(r"^\(([\w-]+)\)=\n", filled, flags=re.M)
    return {anchor: part for anchor, part in zip(parts[1::2], parts[2::2], strict=True) if anchor.startswith("schedule-")}


class Table(HTMLParser):
    """The rows of a table as lists of texts, its links, and the scopes of its headers."""

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
        """Do nothing: such an element, the path of a drawing, has no text."""

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
    """The rows of the schedules, in the order of the page."""
    return [row for row in table(filled).rows[1:] if len(row) > 1]
