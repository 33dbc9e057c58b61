"""The texts that search quotes below a result, as a script: on a page opened as a file, the browser cannot fetch other pages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


ARTICLE = re.compile(r'<article class="bd-article">(.*?)</article>', re.DOTALL)
UNSEEN = re.compile(r'<(script|style|noscript|svg|math|nav)\b.*?</\1>|<a class="headerlink".*?</a>', re.DOTALL)
TAG = re.compile(r"<(?!/?(?:section|dt)\b)[^>]*>")


def text_of(page: str) -> str:
    """Return a page's text in the form that Sphinx's search reads: the tags of sections and terms stay, all other tags are removed."""
    article = ARTICLE.search(page)
    return f'<div role="main">{TAG.sub("", UNSEEN.sub(" ", article[1]))}</div>' if article else ""


def texts_script(pages: Mapping[str, str]) -> str:
    """Return a script with the text of each page that has one; keys are the pages' addresses from the top of the site."""
    texts = {name: text for name, page in pages.items() if (text := text_of(page))}
    return f"window.searchTexts = {json.dumps(texts, ensure_ascii=False)};\n"


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Add the script to the search page; it quotes pages where a browser cannot fetch them."""
    if pagename == "search":
        app.add_js_file("offline_search.js")


def write_texts(app: Sphinx, failed: Exception | None) -> None:
    """Write the texts of all pages that search can find."""
    if failed or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages = {f"{name}.html": (site / f"{name}.html").read_text(encoding="utf-8") for name in sorted(app.env.found_docs)}
    (site / "_static/search_texts.js").write_text(texts_script(pages), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
