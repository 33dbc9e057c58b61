"""The bar below a lab's title, with links to run the notebook in the browser, to download it, and to read how to run it."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


BAR = """
<nav class="lab-bar" aria-label="This lab as a notebook">
<ul>
<li><a class="lab-bar-run" href="{run}" target="_blank" rel="noopener"
aria-describedby="lab-bar-outside">Run in the browser (new tab)</a></li>
<li><a href="{notebook}" download="{name}">Download the notebook</a></li>
<li><a href="{start}">How to run it</a></li>
</ul>
<p id="lab-bar-outside">Running in the browser fetches Python, about 25 MB, {source}.</p>
<p class="lab-bar-refusal" role="status"></p>
</nav>
"""
OUTSIDE = "from a content delivery network (CDN)"
INSIDE = "from this site"  # where it was built with HYBRIDLAB_PYTHON (book/runtime.py)


def bar(notebook: str, root: str) -> str:
    """Return the bar for a notebook such as ``labs/lab02.ipynb``; ``root`` is the path from the page to the site's top folder."""
    name = PurePosixPath(notebook).name
    run = f"{root}lite/lab/index.html?path={name}"
    source = INSIDE if os.environ.get("HYBRIDLAB_PYTHON") else OUTSIDE
    return BAR.format(run=run, source=source, notebook=f"{root}_sources/{notebook}", name=name, start=f"{root}book/start.html")


def add_bar(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Put the bar below the title of a page whose source is a notebook in `labs/`."""
    source = context.get("sourcename", "")
    if pagename.startswith("labs/") and source.endswith(".ipynb"):
        context["body"] = context["body"].replace("</h1>", "</h1>" + bar(source, context["content_root"]), 1)
        app.add_js_file("lab_bar.js", loading_method="defer")


def write_texts(app: Sphinx, failed: Exception | None) -> None:
    """Write each lab's notebook also as a script, the only form that a page opened as a file can read."""
    for notebook in Path(app.outdir).glob("_sources/labs/*.ipynb"):
        text = json.dumps(notebook.read_text(encoding="utf-8"))
        notebook.with_name(f"{notebook.name}.js").write_text(f"window.notebookText = {text};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_bar)
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
