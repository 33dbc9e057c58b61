"""Folds solutions, answers and optional parts of labs: a section with such a title opens at its title, without scripts.

In the notebook the same sections are folded by the metadata of their heading (see CONTRIBUTING, *Fold a solution, an answer or an
optional part*).

The address of a section belongs to its folded content. A browser opens a fold when a link leads into it, but not when a link leads to
the fold itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

ANSWERS = re.compile(r"(Solution|Answer)\b")  # the table of contents of a page does not list them
OPTIONAL = re.compile(r"Optional\b")
TASK = re.compile(r"Task (\d+)\b")
BEFORE_CONTENTS = 400  # Sphinx collects the table of contents from the sections that it finds at priority 500


class Fold(nodes.General, nodes.Element):
    """A folded section; its first child is its title."""


class FoldTitle(nodes.General, nodes.TextElement):
    """The title of a folded section, which stays visible."""


def fold(document: nodes.document, titles: re.Pattern[str]) -> None:
    """Replace every section whose title begins with one of the words by a fold."""
    for section in list(document.findall(nodes.section)):
        title, *content = section.children
        if titles.match(title.astext()):
            section.replace_self(Fold("", FoldTitle("", "", *title.children), *content, ids=section["ids"]))


def fold_answers(app: Sphinx, document: nodes.document) -> None:
    fold(document, ANSWERS)


def fold_optional_parts(app: Sphinx, document: nodes.document, page: str) -> None:
    name_tasks(document)
    fold(document, OPTIONAL)


def name_tasks(document: nodes.document) -> None:
    """Write the numbers of the tasks inside an optional part into its title: a reader who counts tasks misses none of them."""
    for section in document.findall(nodes.section):
        title = section[0]
        numbers = [found[1] for inner in section.findall(nodes.title) if (found := TASK.match(inner.astext()))]
        if OPTIONAL.match(title.astext()) and numbers:
            title += nodes.Text(f" (task{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)})")


def visit_fold(writer: HTML5Translator, node: Fold) -> None:
    writer.section_level += 1
    writer.body.append('<details class="fold">\n')


def depart_fold(writer: HTML5Translator, node: Fold) -> None:
    writer.section_level -= 1
    writer.body.append("</section>\n</details>\n")


def visit_title(writer: HTML5Translator, node: FoldTitle) -> None:
    writer.body.append(f"<summary><h{writer.section_level}>")


def depart_title(writer: HTML5Translator, node: FoldTitle) -> None:
    spans = "".join(f'<span id="{each}"></span>' for each in node.parent["ids"][1:])
    writer.body.append(f'</h{writer.section_level}></summary>\n<section id="{node.parent["ids"][0]}">{spans}\n')


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(Fold, html=(visit_fold, depart_fold))
    app.add_node(FoldTitle, html=(visit_title, depart_title))
    app.connect("doctree-read", fold_answers, priority=BEFORE_CONTENTS)
    app.connect("doctree-resolved", fold_optional_parts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
