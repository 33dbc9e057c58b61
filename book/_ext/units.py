"""Keeps a number and its unit on one line, and a short name with a hyphen, such as ZB-H1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

UNIT = r" (?=(?:%|[mµ]?s|[KMGT]i?B)(?!\w))"
AFTER_DIGIT, AT_START = re.compile(rf"(?<=\d){UNIT}"), re.compile(UNIT)
NAME = re.compile(r"\b\w+-(?:[A-Z]\d?|Half|Min)\b")
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


def keep_names(app: Sphinx | None, document: nodes.document, page: str) -> None:
    """Put each name with a hyphen into an element that is not broken at the end of a line."""
    texts = [text for text in document.findall(nodes.Text) if NAME.search(text) and not isinstance(text.parent, AS_WRITTEN)]
    for text in texts:
        parts: list[nodes.Node] = []
        end = 0
        for found in NAME.finditer(text):
            parts += [nodes.Text(text[end : found.start()]), nodes.inline("", found[0], classes=["unbroken"])]
            end = found.end()
        text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", keep_units)
    app.connect("doctree-resolved", keep_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
