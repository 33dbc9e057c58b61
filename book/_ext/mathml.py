"""Formulas as MathML: browsers draw them without a script, and screen readers can read them aloud."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

BEFORE, AFTER = re.compile(r"([^\w\s]+|\w+)\Z"), re.compile(r"[^\w\s]+|\w+")  # signs or letters that touch a formula


def keep_together(app: Sphinx, document: nodes.document, page: str) -> None:
    """Keep a formula and the signs beside it on one line, where a browser otherwise may begin the next line with a full stop."""
    for formula in list(document.findall(nodes.math)):
        parent, place = formula.parent, formula.parent.index(formula)
        together: list[nodes.Node] = [formula]
        before = parent.children[place - 1] if place else None
        if isinstance(before, nodes.Text) and (found := BEFORE.search(before)):
            parent[place - 1] = nodes.Text(before[: found.start()])
            together.insert(0, nodes.Text(found[0]))
        after = parent.children[place + 1] if place + 1 < len(parent) else None
        if isinstance(after, nodes.Text) and (found := AFTER.match(after)):
            parent[place + 1] = nodes.Text(after[found.end() :])
            together.append(nodes.Text(found[0]))
        if len(together) > 1:
            parent[place] = nodes.inline("", "", *together, classes=["unbroken"])


def inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(convert(node.astext(), display="block"))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    app.connect("doctree-resolved", keep_together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
