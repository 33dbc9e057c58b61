"""Fills the gallery from the registry while the book is built, so that every registered schedule is on the page.

Before `book/gallery.md` is read, Markdown replaces `{{ size }}`, `{{ findings }}`, `{{ cards }}`, `{{ table }}` and `{{ schedules }}`.
Sphinx then treats the headings, the cells that draw the figures and the links to the glossary as on any other page.
The poster that the page offers is written when the site is built.
"""

from __future__ import annotations

import re
import shutil
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from kept import folder

from gallery import poster
from gallery.cards import cards
from gallery.entries import QUANTITIES, entries
from gallery.sections import heading, section
from gallery.table import findings, size_in_words, table

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "book/gallery"
GROUP = attrgetter("group")
MARKS = re.compile(r"\{\{ (\w+) \}\}")


def fill(text: str, bibliography: str = "") -> str:
    """Return the page with the marks replaced; ``bibliography`` is BibTeX, and its entries contain arXiv numbers."""
    shown = entries()
    end, peak = (max(map(QUANTITIES[name], shown)) for name in ("makespan", "peak"))
    keys = {number: key for key, number in re.findall(r"@\w+\{([^,]+),[^@]*?arXiv (\d{4}\.\d{5})", bibliography)}
    parts = {
        "size": size_in_words(),
        "findings": findings(shown),
        "cards": cards(shown),
        "table": table(shown),
        "schedules": "\n".join(
            heading(group) + "\n".join(section(entry, end, peak, keys) for entry in members) for group, members in groupby(shown, GROUP)
        ),
    }
    return MARKS.sub(lambda mark: parts.get(mark[1], mark[0]), text)


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        source[0] = fill(source[0], bibliography=(Path(app.srcdir) / "book/references.bib").read_text(encoding="utf-8"))


def own_anchors(app: Sphinx, document: nodes.document) -> None:
    """Make a section's own link and the table of contents lead to `#schedule-1f1b`, not to a name made from its title.

    Other pages write `[1F1B](#schedule-1f1b)`.
    """
    if app.env.docname == PAGE:
        for part in document.findall(nodes.section):
            part["ids"].sort(key=lambda anchor: not anchor.startswith("schedule-"))


def add_style(app: Sphinx, pagename: str, *_: object) -> None:
    if pagename == PAGE:
        app.add_css_file("gallery.css")
        app.add_js_file("gallery.js", loading_method="defer")


def write_poster(app: Sphinx, failed: Exception | None) -> None:
    """Write the poster into the site. It is drawn once for the present sources."""
    if failed or app.builder.format != "html":
        return
    drawn = folder() / "poster"
    if not all((drawn / name).exists() for name in poster.FILES):
        poster.write_files(drawn)
    for name in poster.FILES:
        shutil.copyfile(drawn / name, Path(app.outdir) / "_static" / name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read_page)
    app.connect("doctree-read", own_anchors, priority=100)  # before Sphinx collects the table of contents
    app.connect("html-page-context", add_style)
    app.connect("build-finished", write_poster)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
