"""Formulas as MathML: browsers draw them without a script, and screen readers can read them aloud."""

import re
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

BEFORE, AFTER = re.compile(r"([^\w\s]+|\w+)\Z"), re.compile(r"\xa0\S+|[^\w\s]+|\w+")  # signs, letters or a unit that touch a formula
AFTER_UNITS = 600  # units.py puts a no-break space before a unit at priority 500

LONGEST_CODE = 12  # characters of code that fit a line of every page together with the signs beside them
SIGNS = frozenset("=<>+\N{MINUS SIGN}\N{ALMOST EQUAL TO}\N{LESS-THAN OR EQUAL TO}\N{GREATER-THAN OR EQUAL TO}\N{LONG RIGHTWARDS ARROW}")


def keep_together(app: Sphinx, document: nodes.document, page: str) -> None:
    """Keep a formula, or code, and the signs beside it on one line; a browser may otherwise begin the next line with a full stop."""
    codes = (each for each in document.findall(nodes.literal) if len(each.astext()) <= LONGEST_CODE)
    for formula in [*document.findall(nodes.math), *codes]:
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
            unit = "before-unit" if together[-1].astext().startswith("\xa0") else ""
            parent[place] = nodes.inline("", "", *together, classes=["unbroken", *filter(None, [unit])])


def parts_of(formula: str) -> list[str]:
    """Return a displayed formula as several elements, of which each but the first begins with a sign such as = or +.

    A browser breaks no formula by itself, but it can begin a new line between two of them, so a long formula fits a narrow page.
    """
    whole = ElementTree.fromstring(convert(formula))  # noqa: S314  # the text is ours
    for each in whole.iter():
        each.tag = each.tag.rpartition("}")[2]  # in a page, a name with a prefix for its namespace would be no MathML
    (signs,) = whole
    depth, parts = 0, [signs[:0]]
    for each in signs:
        depth += {"(": 1, ")": -1}.get(each.text or "", 0)
        if each.text in SIGNS and not depth and parts[-1] and parts[-1][-1].text not in SIGNS:
            each.set("form", "infix")  # at the beginning of an element it would have the narrow space of the sign of a number
            parts.append([])
        parts[-1].append(each)
    elements = [ElementTree.Element("math", {"displaystyle": "true"}) for _ in parts]
    for element, part in zip(elements, parts, strict=True):
        row = ElementTree.SubElement(element, "mrow")
        row.extend(part)
        if part[1:] and all(each.tag in {"mtext", "mspace"} for each in part[1:]):
            ElementTree.SubElement(row, "mi")  # a browser leaves no room between a sign and words if nothing else follows
    return [ElementTree.tostring(element, encoding="unicode") for element in elements]


def inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append("\n".join(parts_of(node.astext())))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    app.connect("doctree-resolved", keep_together, priority=AFTER_UNITS)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
