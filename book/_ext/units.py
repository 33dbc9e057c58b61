"""Keeps a number and its unit on one line: it puts a no-break space between them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

UNIT = r" (?=(?:%|[mµ]?s|[KMGT]i?B)(?!\w))"
AFTER_DIGIT, AT_START = re.compile(rf"(?<=\d){UNIT}"), re.compile(UNIT)
AS_WRITTEN = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)
FIXED = "\N{NO-BREAK SPACE}"


def keep_units(app: Sphinx | None, document: nodes.document, name: str) -> None:
    """Change the spaces between numbers and units in the text of a page. A number can stand in an element of its own, such as bold text."""
    for parent in document.findall(nodes.Element):
        if isinstance(parent, AS_WRITTEN):
            continue
        for place, text in enumerate(parent.children):
            if not isinstance(text, nodes.Text):
                continue
            kept = AFTER_DIGIT.sub(FIXED, text)
            if AT_START.match(kept) and place and parent[place - 1].astext()[-1:].isdigit():
                kept = FIXED + kept[1:]
            if kept != text:
                parent[place] = nodes.Text(kept)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", keep_units)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
