"""Puts a form below the cell of each number task of a lab: a page without Python then judges the answer.

`number_judge.js` judges it by the data of the task, which stand in the page; `number_tasks.js` draws the form. Without scripts a page
shows nothing more than before.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from docutils import nodes

from hybridlab.course.checking.on_page import form_of
from hybridlab.course.tasks import TASKS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CHECKED = re.compile(r'^check\("(\w+\.\w+)"', re.MULTILINE)
FORM = '<div class="number-task"><script type="application/json">{}</script></div>'


def add_forms(app: Sphinx, document: nodes.document) -> None:
    """Add the data of a number task below each cell that hands in an answer to it."""
    for cell in list(document.findall(nodes.container)):
        if "tag_task" not in cell["classes"]:
            continue
        found = CHECKED.search(next(iter(cell.findall(nodes.literal_block))).astext())
        if found and TASKS[found[1]].kind == "number":
            data = json.dumps(form_of(found[1]), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            form = nodes.raw("", FORM.format(data.replace("</", "<\\/")), format="html")
            cell.parent.insert(cell.parent.index(cell) + 1, form)


def add_scripts(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Load the scripts and the styles on pages with such a form."""
    if 'class="number-task"' in context.get("body", ""):
        app.add_css_file("number_tasks.css")
        app.add_js_file("number_judge.js", loading_method="defer")
        app.add_js_file("number_tasks.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", add_forms)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
