"""Build JupyterLite into `_build/html/lite`: the labs run in a browser, without an installation and without a server that computes.

Run `python book/lite.py` after the book is built. It needs no network: JupyterLite and its widgets come from the installed packages,
and the library's own wheel is built here. The reader's browser downloads Python when a lab is opened. With `HYBRIDLAB_PYTHON` set, Python
is put into the site, too (`runtime.py`), and then no lab asks another host.
`lite/lab/index.html?path=NAME.ipynb` opens a lab.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jupyterlite_pyodide_kernel.constants import DISABLE_PYPI_FALLBACK, PYODIDE_CDN_URL, PYODIDE_KERNEL_PLUGIN_ID
from runtime import LiteError, host, run, source

ROOT = Path(__file__).resolve().parents[1]
# make setup moves the extensions that only JupyterLite can run here, where JupyterLab does not look
EXTENSIONS = Path(sys.prefix) / "share/jupyterlite/labextensions"
SITE = ROOT / "_build/html"
TITLE = "Hybrid parallel training"
SETTINGS = {
    "jupyter-lite-schema-version": 0,
    "jupyter-config-data": {"appName": TITLE, "disabledExtensions": ["@jupyterlab/terminal-extension"]},
}
# with its own Python, the site says what it does not have, and does not look elsewhere
ALONE = {"litePluginSettings": {PYODIDE_KERNEL_PLUGIN_ID: {DISABLE_PYPI_FALLBACK: True}}}
ICON = '<link rel="icon" href="favicon.ico">'  # without it a browser looks for an icon in the server's top folder
# When the notebook is drawn, the page asks for Python once more, because a kernel that does not get it says nothing.
WITHOUT_PYTHON = """
<script>
new MutationObserver((_, observer) => {
  if (!document.querySelector(".jp-NotebookPanel")) return;
  observer.disconnect();
  fetch("%s/pyodide.mjs", { mode: "no-cors" }).then((answer) => answer.ok || answer.type === "opaque", () => false).then((here) => {
    if (here) return;
    const told = document.createElement("p");
    told.id = "without-python";
    told.setAttribute("role", "alert");
    told.style = "position: fixed; inset: auto 0 0; z-index: 1000; margin: 0; padding: 12px 16px; background: #fff3cd; color: #000";
    told.textContent = "Python could not be fetched, so no cell of this lab can run here. Check the connection and load the page again, " +
      "or run the lab on your machine: the page Run the labs says how.";
    document.body.append(told);
  });
}).observe(document, { childList: true, subtree: true });
</script>
"""
BOOK_LINK = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")  # a link out of the folder of labs, which JupyterLite cannot follow
KERNEL = {"display_name": "Python (Pyodide)", "language": "python", "name": "python"}
# Pyodide has its own build of these packages. The widgets must have the versions whose JavaScript is in the site.
COMPILED = ("matplotlib", "pillow")
TRAINS = re.compile(r"^(?:from|import) .*\btraining\b", re.MULTILINE)  # a lab that trains a network needs the handwritten digits
DIGITS = ("scikit-learn",)
DIGITS_WORDS = " This lab also needs scikit-learn for its data, about as much again."
WIDGETS = ("anywidget", "ipywidgets")
OUTSIDE = """\
Your browser downloads Python, NumPy and Matplotlib from a CDN (content delivery network), and the packages
for widgets from the Python Package Index, about 25 MB in all. The library of the course comes from this site."""
INSIDE = """\
Your browser downloads Python, NumPy, Matplotlib, the packages for widgets and the library of the course from this site,
about 25 MB in all."""
WORDS = """\
**This copy of the lab runs in your browser.** Run the next cell first, and wait until a number appears before it. On the first visit
this takes up to a minute. %s

This copy has no stored outputs: run the cells one after the other with Shift+Enter. Your work is kept in this browser only;
*File > Download* saves a copy."""


def prepared(lab: dict[str, Any], requirements: list[str], downloads: str) -> dict[str, Any]:
    """Return the lab for a browser: without outputs, with Pyodide's kernel, and with an explained installation at the top.

    ``downloads`` says what the browser downloads, and from where.
    """
    trains = any(TRAINS.search("".join(cell["source"])) for cell in lab["cells"] if cell["cell_type"] == "code")
    told = downloads.replace("25 MB in all.", f"25 MB in all.{DIGITS_WORDS}") if trains else downloads
    packages = [*requirements, *DIGITS] if trains else requirements
    first = [
        {"cell_type": "markdown", "id": "lite-words", "metadata": {}, "source": WORDS % told},
        code_cell("lite-install", {}, f"%pip install -q {' '.join(packages)}"),
    ]
    cells = [
        code_cell(cell["id"], cell["metadata"], cell["source"])
        if cell["cell_type"] == "code"
        else cell | {"source": BOOK_LINK.sub(r"\1", "".join(cell["source"]))}
        for cell in lab["cells"]
    ]
    return lab | {"cells": first + cells, "metadata": lab["metadata"] | {"kernelspec": KERNEL}}


def code_cell(name: str, metadata: dict[str, Any], source: str | list[str]) -> dict[str, Any]:
    """Return a code cell that has not run."""
    return {"cell_type": "code", "execution_count": None, "id": name, "metadata": metadata, "outputs": [], "source": source}


def library(folder: Path) -> Path:
    """Put what the wheel is built from into a folder, and return it. The labs stay out: the browser gets them as files."""
    shutil.copytree(ROOT / "hybridlab", folder / "hybridlab", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def build(work: Path, python: str | None = None) -> Path:
    """Build JupyterLite in the empty folder ``work``; return the folder that contains it.

    ``python`` is where Pyodide's packages come from if the site hosts Python, and otherwise None.
    """
    module = (sys.executable, "-m")
    wheels, files, output = work / "pypi", work / "files", work / "lite"
    with tempfile.TemporaryDirectory() as folder:
        copy = library(Path(folder) / "source")
        run("Building the library's wheel", *module, "hatchling", "build", "--target", "wheel", "--directory", str(wheels), folder=copy)
    (wheel,) = wheels.glob("*.whl")
    name, number = wheel.name.split("-")[:2]
    requirements = [f"{name}=={number}", *(f"{package}=={version(package)}" for package in WIDGETS), *COMPILED]
    labs = sorted((ROOT / "labs").glob("*.ipynb"))
    files.mkdir()
    for path in labs:
        lab = prepared(json.loads(path.read_text(encoding="utf-8")), requirements, INSIDE if python else OUTSIDE)
        (files / path.name).write_text(json.dumps(lab, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if python:
        host(work, python)
    config = SETTINGS["jupyter-config-data"] | (ALONE if python else {})
    (work / "jupyter-lite.json").write_text(json.dumps(SETTINGS | {"jupyter-config-data": config}), encoding="utf-8")
    extensions = {"extra_labextensions_path": [str(EXTENSIONS)]} if EXTENSIONS.is_dir() else {}
    (work / "jupyter_lite_config.json").write_text(json.dumps({"FederatedExtensionAddon": extensions}), encoding="utf-8")
    newest = max(int(path.stat().st_mtime) for path in labs)
    run(
        "Building JupyterLite",
        *(*module, "jupyterlite_core", "build", "--lite-dir", str(work), "--output-dir", str(output), "--apps", "lab"),
        *("--no-sourcemaps", "--no-unused-shared-packages", "--source-date-epoch", os.environ.get("SOURCE_DATE_EPOCH", str(newest))),
        folder=work,
    )
    page = output / "lab/index.html"
    head = f"{ICON}{WITHOUT_PYTHON % ('../static/pyodide' if python else PYODIDE_CDN_URL)}</head>"
    page.write_text(page.read_text(encoding="utf-8").replace("</head>", head, 1), encoding="utf-8")
    return output


def main() -> None:
    """Replace the old JupyterLite by a new one."""
    if not (SITE / "index.html").is_file():
        raise LiteError("There is no book in _build/html to put JupyterLite beside: run make book.")
    with tempfile.TemporaryDirectory() as work:
        built = build(Path(work), source())
        for path in built.rglob("*"):
            path.touch()  # a browser caches older files for longer, and some files come with a date of 1985
        shutil.rmtree(SITE / "lite", ignore_errors=True)
        shutil.move(built, SITE / "lite")


if __name__ == "__main__":
    try:
        main()
    except LiteError as error:
        sys.exit(str(error))
