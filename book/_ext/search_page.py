"""What search quotes and suggests: the texts of all pages by section, and the terms of the glossary with their definitions.

They are written as a script, because on a page opened as a file the browser cannot fetch other pages. `search_page.js` reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# words by which readers look for a page, and which the page does not have
ALSO = {
    "book/start": "setup, installation, duration, colab",
    "book/your_times": "upload, spreadsheet, excel",
    "book/your_trace": "upload, profile, profiler",
    "book/zoo": "benchmark, TSPLIB, JSPLIB, MIPLIB, job, shop, leaderboard, unsolved",
}
NOT_QUOTED = {"script", "style", "noscript", "svg", "nav", "pre", "select", "button", "h1", "h2", "h3", "h4", "h5", "h6"}
NOT_QUOTED_CLASSES = {"headerlink", "collapsed", "expanded", "sig"}  # links to a place, titles of folded code, signatures
BLOCKS = {"p", "li", "div", "td", "th", "tr", "dt", "dd", "br", "section", "summary", "figcaption", "caption", "label", "small"}
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}  # elements without an end
ONE_LINE = {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msub", "mstyle", "semantics"}  # formulas of these read well as text
ARTICLE, TERM = "bd-article", "term-"
SPACES = re.compile(r"\s+")


class Texts(HTMLParser):
    """The texts of a page: ``sections`` as [anchor, text], and ``terms`` as [name, anchor, definition]."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sections: list[list[str]] = []
        self.terms: list[list[str]] = []
        self.inside = False  # whether this place is inside the article: the page also has sidebars, a head and a foot
        self.around: list[tuple[str, bool]] = []  # elements around this place, each with whether its text is quoted
        self.formula: list[str] | None = None  # the parts of the formula at this place; None outside formulas
        self.feed(page)
        self.close()
        for each, following in zip(reversed(self.terms[:-1]), reversed(self.terms[1:]), strict=True):
            each[2] = each[2].strip() or following[2]  # two terms with one definition
        self.sections = [[anchor, tidy(text)] for anchor, text in self.sections if text.strip()]
        self.terms = [[tidy(name), anchor, tidy(text)] for name, anchor, text in self.terms]

    def handle_starttag(self, tag: str, pairs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in pairs}
        classes = set(given.get("class", "").split())
        if tag == "article" and ARTICLE in classes:
            self.inside = True
            self.sections.append(["", ""])
        name = given.get("id", "")
        if self.inside and name and tag in {"section", "dt"}:
            self.sections.append([name, ""])
            if name.startswith(TERM):
                self.terms.append(["", name, ""])
        if tag == "math":
            self.formula = []
        elif self.formula is not None and tag not in ONE_LINE:
            self.formula.append("…")
        if tag in BLOCKS:
            self.quote(" ")
        if tag not in EMPTY:
            quoted = all(each for _, each in self.around[-1:]) and tag not in NOT_QUOTED and not classes & NOT_QUOTED_CLASSES
            self.around.append((tag, quoted))

    def handle_endtag(self, tag: str) -> None:
        while self.around and tag in {each for each, _ in self.around} and self.around.pop()[0] != tag:
            pass  # an element that HTML allows to stay open
        if tag == "math" and self.formula is not None:
            parts, self.formula = self.formula, None
            self.quote("…" if "…" in parts else "".join(parts))
        if tag in BLOCKS:
            self.quote(" ")
        self.inside = self.inside and tag != "article"

    def handle_data(self, data: str) -> None:
        if self.formula is not None:
            self.formula.append(data.strip())
        elif self.around:
            self.quote(data)

    def quote(self, text: str) -> None:
        if not self.inside or not self.around or not self.around[-1][1]:
            return
        if self.terms and self.sections[-1][0] == self.terms[-1][1]:
            self.terms[-1][0 if "dt" in {tag for tag, _ in self.around} else 2] += text
        self.sections[-1][1] += text


def tidy(text: str) -> str:
    return SPACES.sub(" ", text).strip()


def texts_script(pages: Mapping[str, str]) -> str:
    """Return a script with the texts of all pages and the terms; keys are the pages' addresses from the top of the site."""
    read = {name: Texts(page) for name, page in pages.items()}
    sections = {name: texts.sections for name, texts in read.items() if texts.sections}
    terms = [[name, f"{page}#{anchor}", text] for page, texts in read.items() for name, anchor, text in texts.terms]
    return f"window.searchTexts = {json.dumps({'pages': sections, 'terms': terms}, ensure_ascii=False, separators=(',', ':'))};\n"


def add_words(app: Sphinx, document: nodes.document) -> None:
    """Add the other words of a page, which Sphinx then finds it by."""
    if words := ALSO.get(app.env.docname):
        document.insert(0, nodes.meta(name="keywords", content=words))


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Add the script and the style that draw the results of a search."""
    if pagename == "search":
        app.add_js_file("search_page.js", loading_method="defer")
        app.add_css_file("search_page.css")


def write_texts(app: Sphinx, failed: Exception | None) -> None:
    """Write the texts of all pages that search can find."""
    if failed or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages = {f"{name}.html": (site / f"{name}.html").read_text(encoding="utf-8") for name in sorted(app.env.found_docs)}
    (site / "_static/search_texts.js").write_text(texts_script(pages), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", add_words)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
