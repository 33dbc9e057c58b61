"""The page of published claims: its style and script, one fold for each table, and a target for every row.

Pages can link to a row: `[39](#claim-39)`.
"""

from docutils import nodes
from sphinx.application import Sphinx

from hybridlab.course.claims import CLAIMS

PAGE = "book/claims"
CELL = "cell_code"  # what MyST-NB calls a cell


def name_rows(app: Sphinx, document: nodes.document) -> None:
    """Register `claim-1` and so on as targets: Sphinx does not find the rows, because they are in the output of cells."""
    if app.env.docname != PAGE:
        return
    domain = app.env.get_domain("std")
    for number in CLAIMS:
        name = f"claim-{number}"
        domain.anonlabels[name] = PAGE, name
        domain.labels[name] = PAGE, name, f"claim {number}"
        # links from Markdown, such as those of the labs, look for a heading of the page
        app.env.metadata[PAGE].setdefault("myst_slugs", {})[name] = 0, name, f"claim {number}"


def join_folds(app: Sphinx, document: nodes.document) -> None:
    """Move the code of a folded cell without output into the next folded cell, so that a table has one fold above it."""
    if app.env.docname != PAGE:
        return
    for cell in list(document.findall(is_folded)):
        following = cell.next_node(descend=False, siblings=True)
        if len(cell.children) == 1 and following is not None and is_folded(following):
            following[0].insert(0, cell[0].children)
            cell.parent.remove(cell)


def is_folded(node: nodes.Node) -> bool:
    """Return whether a node is a cell whose code is folded."""
    return isinstance(node, nodes.container) and node.get("nb_element") == CELL and node.get("hide_mode") == "input"


def add_files(app: Sphinx, pagename: str, *_: object) -> None:
    if pagename == PAGE:
        app.add_css_file("claims.css")
        app.add_js_file("claims.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", name_rows)
    app.connect("doctree-read", join_folds)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
