"""Linked text: a term of the glossary shows its entry where it is used, an operation in the text lights its box in a picture.

The script `linked_text.js` does this in the page. A page cannot read another one without a server, so this extension puts the entries of
the terms that a page uses into the page.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

GLOSSARY = "book/glossary"
LINK = re.compile(r'href="(?:[^"#]*/)?glossary\.html#(term-[^"]+)"')
LONGEST = 320  # characters of an entry in a page


def entries_of(doctree: nodes.document) -> dict[str, str]:
    """Return the text of each entry of the glossary by the anchors of its terms, cut after a whole sentence."""
    entries = {}
    for item in doctree.findall(nodes.definition_list_item):
        text = shortened(" ".join(item.next_node(nodes.definition).astext().split()))
        for term in item.findall(nodes.term):
            entries |= dict.fromkeys(term["ids"], text)
    return entries


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return the first sentences of a text that are together not too long; at least one.

    >>> shortened("One. Two. Three.", longest=10)
    'One. Two.'
    """
    kept, *others = re.split(r"(?<=[.!?]) (?=[A-Z*])", text)
    for sentence in others:
        if len(kept) + 1 + len(sentence) > longest:
            break
        kept += f" {sentence}"
    return kept


def add_entries(app: Sphinx, pagename: str, _: str, context: dict[str, str], doctree: nodes.document | None) -> None:
    """Add the entries of all terms that a page links to, and the script, to the page."""
    if doctree is None or pagename == GLOSSARY or GLOSSARY not in app.env.all_docs:
        return
    app.add_js_file("linked_text.js", loading_method="defer")
    known = app.env.temp_data.setdefault("glossary entries", None) or entries_of(app.env.get_doctree(GLOSSARY))
    app.env.temp_data["glossary entries"] = known
    used = {anchor: known[anchor] for anchor in dict.fromkeys(LINK.findall(context["body"])) if anchor in known}
    if used:
        data = json.dumps(used, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
        context["body"] += f'<script type="application/json" id="glossary-entries">{data}</script>\n'


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
