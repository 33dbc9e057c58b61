"""Removes the empty heads of tables: Markdown has no tables without a head, and screen readers would announce columns without names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def remove_empty(app: Sphinx, doctree: nodes.document) -> None:
    for head in list(doctree.findall(nodes.thead)):
        if not head.astext().strip():
            head.parent.remove(head)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", remove_empty)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
