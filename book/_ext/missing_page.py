"""The page that a server shows where there is none: GitHub Pages shows `404.html` at every address without a page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
LINKED = ("book/start", "book/gallery", "book/glossary", "book/api")  # below the first page


def write_page(app: Sphinx, failed: Exception | None) -> None:
    """Write the page. Its styles are inside it, because it may be shown at an address in any folder."""
    if failed or app.builder.format != "html":
        return
    address = app.config.html_baseurl
    listed = [app.config.root_doc, *(name for name in LINKED if name in app.env.titles)]
    links = "\n".join(f'<li><a href="{name}.html">{escape(app.env.titles[name].astext())}</a></li>' for name in listed)
    base = f'<base href="{escape(address)}">' if address else ""
    title = escape(app.config.html_title or app.config.project)
    page = PAGE.substitute(language=app.config.language, title=title, base=base, links=links)
    (Path(app.outdir) / "404.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
