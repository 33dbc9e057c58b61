"""Test JupyterLite with its own Python: it names no other host and asks none. A stand-in takes the place of Pyodide's files.

Real ones are tried where a site is built with them: `tests/site/lite_alone.py`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import lite
import lite_alone
import pytest
import runtime
from browser import PATIENCE, serving
from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL
from playwright.sync_api import Browser

LAB = "lab01_mesh.ipynb"
STAND_IN = "export const loadPyodide = async () => { throw new Error('a stand-in for Python'); };"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build JupyterLite with the stand-in, and give its folder."""

    def host(folder: Path, _: str) -> None:
        pyodide = folder / "static/pyodide"
        pyodide.mkdir(parents=True)
        (pyodide / "pyodide.mjs").write_text(STAND_IN, encoding="utf-8")
        (pyodide / runtime.LOCK).write_text('{"packages": {}}', encoding="utf-8")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lite, "host", host)
        yield lite.build(tmp_path_factory.mktemp("lite"), "a folder")


def test_the_settings_name_python_in_the_site_and_no_index_elsewhere(built: Path) -> None:
    settings = json.loads((built / "jupyter-lite.json").read_text(encoding="utf-8"))["jupyter-config-data"]
    kernel = settings["litePluginSettings"]["@jupyterlite/pyodide-kernel-extension:kernel"]
    assert kernel["pyodideUrl"] == "./static/pyodide/pyodide.mjs"
    assert kernel["disablePyPIFallback"] is True
    assert all(url.startswith("./") for url in kernel["pipliteUrls"])
    assert settings["appName"] == lite.TITLE


def test_the_words_speak_of_this_site_alone(built: Path) -> None:
    for path in (built / "files").glob("*.ipynb"):
        words = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
        assert "from this site,\nabout 25 MB in all." in words
        assert "CDN" not in words
        assert "Package Index" not in words
    assert PYODIDE_CDN_URL not in (built / "lab/index.html").read_text(encoding="utf-8")


def test_a_lab_asks_the_site_for_python_and_no_other_host_for_anything_also_where_python_is_lost(browser: Browser, built: Path) -> None:
    asked: list[str] = []
    with serving(built) as root:
        for lost in (False, True):
            if lost:
                (built / "static/pyodide/pyodide.mjs").unlink()
            context = browser.new_context()
            context.set_default_timeout(PATIENCE)
            context.on("request", lambda request: asked.append(request.url))
            page = context.new_page()
            page.goto(f"{root}lab/index.html?path={LAB}")
            page.locator(".jp-Notebook .jp-CodeCell", has_text="%pip install").wait_for()
            page.wait_for_function("performance.getEntriesByName(new URL('../static/pyodide/pyodide.mjs', location).href).length")
            told = page.get_by_role("alert").filter(has_text="Python could not be fetched")
            if lost:
                told.wait_for()
            assert told.count() == lost
            context.close()
    inside = [url.removeprefix(root) for url in asked if not url.startswith(("data:", "blob:"))]
    assert "static/pyodide/pyodide.mjs" in inside
    assert not [url for url in inside if "://" in url]


def test_a_site_without_python_cannot_be_tried(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^There is no Python in .*: build the site with HYBRIDLAB_PYTHON=download make book\.$"):
        lite_alone.main(tmp_path)
