"""The first picture of a lab stands at its top: the still picture of its first view, with a link to the section where it can be changed.

Later sections explain the view, and readers place a bet before they use it. So the view itself stays where it is.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from docutils import nodes
from page_figures import SVG, TEXT, on_page

from hybridlab.plot.picture import MARGIN
from hybridlab.plot.stills import LINE
from hybridlab.widgets.still import HINT

if TYPE_CHECKING:
    from sphinx.application import Sphinx

VIEW = "application/vnd.jupyter.widget-view+json"
FIGURE = """<figure class="first-picture" style="--ratio: {ratio:.3f}">{picture}
<figcaption>You meet this picture again in <a href="#{anchor}">{title}</a>, where you can change it.</figcaption></figure>
"""


def without_hint(svg: str) -> str:
    """Return a still picture without its last line, which tells readers of a notebook to run the cell."""
    root = ET.fromstring(svg)  # noqa: S314 - our own figure
    for parent in root.iter():
        for text in [each for each in parent if each.tag == TEXT and each.text == HINT]:
            parent.remove(text)
    x, y, width, height = map(float, root.attrib["viewBox"].split())
    root.set("viewBox", f"{x:g} {y:g} {width:g} {height - 72 * (LINE + MARGIN):g}")  # 72 points are an inch
    return ET.tostring(root, encoding="unicode")


def first_view(document: nodes.document) -> tuple[str, nodes.section] | None:
    """Return the file of the still picture of the first view that is no bet, and the section of the view."""
    for bundle in document.findall(nodes.container):
        forms = {form["mime_type"]: form for form in bundle.children} if bundle.get("nb_element") == "mime_bundle" else {}
        words = forms["text/plain"].astext() if "text/plain" in forms else ""
        if VIEW not in forms or re.match(r"<(Bet|LookBack)\b", words):
            continue
        for image in bundle.findall(nodes.image):
            if image["uri"].endswith(".svg"):
                around: Any = bundle
                while not isinstance(around, nodes.section):
                    around = around.parent
                return image["uri"], around
    return None


def put_in(app: Sphinx, doctree: nodes.document) -> None:
    """Put the picture below the first paragraph of a lab."""
    found = first_view(doctree) if app.env.docname.startswith("labs/") else None
    begin = next(iter(doctree.findall(nodes.paragraph)), None)
    if found is None or begin is None:
        return
    uri, section = found
    svg = without_hint(Path(app.srcdir, uri.lstrip("/")).read_text(encoding="utf-8"))
    root = ET.fromstring(svg)  # noqa: S314 - our own figure
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    text = FIGURE.format(
        ratio=width / height,
        picture=on_page(svg, root.findtext(f"{SVG}title", ""), "first-"),
        anchor=section["ids"][0],
        title=escape(next(iter(section.findall(nodes.title))).astext()),
    )
    begin.parent.insert(begin.parent.index(begin) + 1, nodes.raw("", text, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", put_in, priority=300)  # before page_figures replaces the images by what they show
    return {"parallel_read_safe": True, "parallel_write_safe": True}
