"""The page of published claims: its style and script, and a target for every row, so that pages can link to `[39](#claim-39)`."""

from docutils import nodes
from sphinx.application import Sphinx

from hybridlab.course.claims import CLAIMS

PAGE = "book/claims"


def name_rows(app: Sphinx, document: nodes.document) -> None:
    """Register `claim-1` and so on as targets: Sphinx does not find the rows, because they are in the output of cells."""
    if app.env.docname != PAGE:
        return
    domain = app.env.get_domain("std")
    for number in CLAIMS:
        name = f"claim-{number}"
        domain.anonlabels[name] = PAGE, name
        domain.labels[name] = PAGE, name, f"claim {number}"


def add_files(app: Sphinx, pagename: str, *_: object) -> None:
    if pagename == PAGE:
        app.add_css_file("claims.css")
        app.add_js_file("claims.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", name_rows)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
