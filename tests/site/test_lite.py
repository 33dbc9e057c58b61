"""Test JupyterLite beside the book.

It has the labs as they are written and the library's wheel, and it sends no request to other hosts before a lab is drawn. A site that
was built with Python sends none at all.
"""

import hashlib
import json
import re
import sys
import time
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lite
import pytest
from browser import PATIENCE
from cases import in_turn
from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL, PYODIDE_PYTHON_VERSION
from packaging.specifiers import SpecifierSet
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Request, Response

import hybridlab

ROOT = Path(__file__).resolve().parents[2]
LABS = sorted((ROOT / "labs").glob("*.ipynb"))
LIBRARY = ROOT / "hybridlab"
# notes when the notebook's panel is in the page, in milliseconds of the clock that Python has, too
NOTES_WHEN_DRAWN = """
new MutationObserver(() => {
  if (!window.drawnAt && document.querySelector(".jp-NotebookPanel")) window.drawnAt = Date.now();
}).observe(document, { childList: true, subtree: true });
"""
HEARTBEAT = "/api/service-worker-heartbeat"  # every twenty seconds at the top of the server, where the page's own service worker answers it
each_lab = in_turn("path", LABS)


@pytest.fixture(scope="module")
def built(site: Path) -> Path:
    folder = site / "lite"
    assert (folder / "lab/index.html").is_file(), "JupyterLite was not built: run make book first"
    return folder


@pytest.fixture(scope="module")
def python(built: Path) -> str:
    """Give the address of Python: below JupyterLite's folder if the site was built with it, and otherwise on another host."""
    return "static/pyodide/pyodide.mjs" if (built / "static/pyodide").is_dir() else f"{PYODIDE_CDN_URL}/pyodide.mjs"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def written(cell: dict[str, Any]) -> tuple[str, str, dict[str, Any], str]:
    """Return what an author wrote in a cell, where only the text is kept of a link that leads out of the labs' folder."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        source = re.sub(r"\[([^\]]*)\]\(\.\./[^\s)]*\)", r"\1", source)
    return cell["id"], cell["cell_type"], cell["metadata"], source


def test_it_holds_the_labs_and_nothing_else(built: Path) -> None:
    listed = [entry["path"] for entry in read(built / "api/contents/all.json")["content"]]
    assert sorted(listed) == [path.name for path in LABS]
    assert sorted(path.name for path in (built / "files").rglob("*")) == [path.name for path in LABS]
    assert not list(built.rglob("*.map")), "no source maps, which are larger than all the rest"


@each_lab
def test_a_lab_is_as_it_is_written_after_two_cells_that_install(built: Path, python: str, path: Path) -> None:
    lab = read(built / "files" / path.name)
    words, install, *cells = lab["cells"]
    assert [written(cell) for cell in cells] == [written(cell) for cell in read(path)["cells"]]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in lab["cells"] if cell["cell_type"] == "code")
    assert lab["metadata"]["kernelspec"]["name"] == "python", "else JupyterLite asks which kernel to take"
    assert words["cell_type"] == "markdown"
    assert all(word in words["source"] for word in ("MB", "kept in this browser"))
    assert ("CDN" in words["source"]) == (PYODIDE_CDN_URL in python)
    here = {name: version(name) for name in ("anywidget", "ipywidgets")}  # the versions of their JavaScript in the site
    pinned = [f"hybridlab=={hybridlab.__version__}", *(f"{name}=={number}" for name, number in here.items())]
    trains = "hybridlab.training" in path.read_text(encoding="utf-8")
    compiled = ["matplotlib", "pillow", *(["scikit-learn"] if trains else [])]
    assert install["source"].split() == ["%pip", "install", "-q", *pinned, *compiled]
    assert ("scikit-learn" in words["source"]) == trains


def test_the_wheel_in_its_index_is_the_library(built: Path) -> None:
    (release,) = read(built / "pypi/all.json")["hybridlab"]["releases"][hybridlab.__version__]
    wheel = built / "pypi" / release["url"]
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == release["digests"]["sha256"]
    assert f"{PYODIDE_PYTHON_VERSION}.0" in SpecifierSet(release["requires_python"])
    sources = [path for path in LIBRARY.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.suffix for path in sources} >= {".py", ".js", ".css"}
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if name.startswith("hybridlab/")}
    assert inside == {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in sources}


def test_the_wheel_is_in_the_index_that_the_kernel_reads(built: Path) -> None:
    settings = read(built / "jupyter-lite.json")["jupyter-config-data"]["litePluginSettings"]
    urls = settings["@jupyterlite/pyodide-kernel-extension:kernel"]["pipliteUrls"]
    digest = hashlib.sha256((built / "pypi/all.json").read_bytes()).hexdigest()
    assert f"./pypi/all.json?sha256={digest}" in urls


@in_turn("name", ["@jupyter-widgets/jupyterlab-manager", "anywidget", "@jupyterlite/pyodide-kernel-extension"])
def test_what_draws_widgets_and_runs_python_is_in_it(built: Path, name: str) -> None:
    extensions = read(built / "jupyter-lite.json")["jupyter-config-data"]["federated_extensions"]
    (load,) = [extension["load"] for extension in extensions if extension["name"] == name]
    assert (built / "extensions" / name / load).is_file()


@in_turn("width, ends", [(1280, ".ipynb"), (360, ".ipynb&mode=single-document")])
def test_a_lab_runs_in_a_new_tab_and_alone_on_a_phone(new_page: Any, server: str, width: int, ends: str) -> None:
    link = new_page(f"{server}labs/{LABS[0].stem}.html", width=width).get_by_role("link", name="Run in the browser (new tab)")
    assert link.get_attribute("target") == "_blank"
    assert str(link.get_attribute("href")).endswith(ends)


def watched(context: BrowserContext, address: str) -> tuple[list[str], list[tuple[float, str]], list[str]]:
    """Record the requests of the context's pages.

    The result has the requests to the site, the requests to other hosts with times, and all faults except the missing Python.
    """
    inside: list[str] = []
    outside: list[tuple[float, str]] = []
    faults: list[str] = []

    def asked(request: Request) -> None:
        if request.url.startswith(address) or request.url.endswith(HEARTBEAT):
            inside.append(request.url)
        elif not request.url.startswith(("data:", "blob:")):
            outside.append((time.time(), request.url))

    def wrong(what: str) -> None:
        if PYODIDE_CDN_URL not in what:
            faults.append(what)

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            wrong(f"{message.type}: {message.text} {message.location['url']}")

    def answered(response: Response) -> None:
        if response.status >= 400:
            wrong(f"{response.status} {response.url}")

    context.on("request", asked)
    context.on("response", answered)
    context.on("console", said)
    context.on("weberror", lambda error: wrong(str(error.error)))
    return inside, outside, faults


def test_a_lab_opens_and_asks_outside_for_python_alone_and_only_then(browser: Browser, server: str, python: str) -> None:
    """The network is cut, so Python from another host does not arrive; the notebook must be shown without it."""
    elsewhere = python.startswith("https:")
    lab = LABS[0]
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    context.add_init_script(NOTES_WHEN_DRAWN)
    inside, outside, faults = watched(context, server)
    page = context.new_page()
    with context.expect_event("request", lambda request: request.url.endswith(python)):
        page.goto(f"{server}lite/lab/index.html?path={lab.name}")
    title = "".join(read(lab)["cells"][0]["source"]).splitlines()[0].lstrip("# ")
    page.locator(".jp-Notebook h1", has_text=title).wait_for()
    page.locator(".jp-Notebook .jp-CodeCell", has_text="%pip install").wait_for()
    drawn = page.evaluate("window.drawnAt") / 1000
    told = page.get_by_role("alert").filter(has_text="Python could not be fetched, so no cell of this lab can run here.")
    if elsewhere:
        told.wait_for()
    context.close()
    assert {url for _, url in outside} == ({python} if elsewhere else set())
    assert all(when > drawn for when, _ in outside), "Python is fetched only when the notebook is drawn"
    assert any("/extensions/anywidget/" in url for url in inside)
    assert not faults, "\n".join(faults)


def test_without_a_book_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lite, "SITE", tmp_path)
    with pytest.raises(lite.LiteError, match="run make book"):
        lite.main()


def test_a_failure_is_told_with_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(lite.LiteError, match=r"^Building the wheel failed; its last lines:\n.*no_such_module"):
        lite.run("Building the wheel", sys.executable, "-m", "no_such_module", folder=tmp_path)
