"""Test folded sections in a browser, in a notebook with a section of each kind: on a page, and in a running JupyterLab."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from browser import PATIENCE
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebook_server import CONNECTED, ask
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from visits import in_order

pytestmark = pytest.mark.xdist_group("jupyterlab")  # one site and one JupyterLab for all, also for those of test_live.py
ROOT = Path(__file__).resolve().parents[2]
RUN_ALL = "() => jupyterapp.commands.execute('notebook:run-all-cells')"
SELECT = """(cell) => {
  const notebook = jupyterapp.shell.currentWidget.content;
  [notebook.activeCellIndex, notebook.mode] = [cell, "command"];
  notebook.activeCell.node.focus();
}"""


def code(word: str) -> NotebookNode:
    """Return a cell that shows a word; it has run, as the cells of a stored lab have."""
    return new_code_cell(f'print("{word}")', outputs=[nbformat.v4.new_output("stream", text=f"{word}\n")], execution_count=1)


def folded(heading: str) -> NotebookNode:
    return new_markdown_cell(heading, metadata={"jp-MarkdownHeadingCollapsed": True})


CELLS = [
    new_markdown_cell("# Lab\n\nIt leads to [more](#optional-more)."),
    new_markdown_cell("## Task 1\n\nHow many?"), code("not yet"),
    folded("### Solution"), new_markdown_cell("In words."), code("passed"),
    folded("## Optional: more"), code("deep"),
    new_markdown_cell("### Task 2"), folded("#### Solution"), code("deeper"),
    new_markdown_cell("## The end"), code("last"),
]  # fmt: skip
SOLUTION, OPTIONAL = 3, 6
CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT / "book/_ext")!r})
project, extensions, html_theme = "Folds", ["myst_nb", "folds"], "sphinx_book_theme"
nb_execution_mode, html_static_path, html_css_files = "off", [{str(ROOT / "book/_assets")!r}], ["site.css"]
html_theme_options, myst_heading_anchors = {{"use_download_button": False}}, 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("folds")
    (made / "index.ipynb").write_text(
        nbformat.writes(new_notebook(cells=CELLS, metadata={"language_info": {"name": "python"}})), encoding="utf-8"
    )
    (made / "conf.py").write_text(CONFIG, encoding="utf-8")
    return made


# ---- on a page ----


@pytest.fixture(scope="module")
def built(folder: Path) -> str:
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", folder, folder / "site"], check=True)
    return (folder / "site/index.html").as_uri()


def the_title_of_an_optional_part_names_the_tasks_in_it(page: Page) -> None:
    titles = [title.evaluate("(title) => title.firstChild.data") for title in page.locator("details > summary").locator("h2, h3, h4").all()]
    assert titles == ["Solution", "Optional: more (task 2)", "Solution"]


def words(page: Page) -> list[str]:
    """Return the words that the cells of the page show."""
    return [each.inner_text().strip() for each in page.locator(".cell_output").all() if each.is_visible()]


def press(fold: Locator, key: str) -> None:
    fold.locator("summary").first.press(key)  # this also moves the focus there


def a_folded_section_opens_and_closes_by_keyboard(page: Page) -> None:
    solution, optional, inner = page.locator("details.fold").all()
    assert words(page) == ["not yet", "last"]
    for key in ("Enter", "Space"):
        press(solution, key)
        assert words(page) == ["not yet", "passed", "last"]
        expect(page.get_by_text("In words.")).to_be_visible()
        press(solution, key)
        assert words(page) == ["not yet", "last"]
    press(optional, "Enter")
    assert words(page) == ["not yet", "deep", "last"]
    press(inner, "Enter")
    assert words(page) == ["not yet", "deep", "deeper", "last"]


def the_tab_key_reaches_each_title_once(page: Page) -> None:
    page.locator("details.fold summary").first.focus()
    page.keyboard.press("Tab")
    expect(page.locator("details.fold summary").nth(1)).to_be_focused()


def a_title_stays_a_heading_of_its_level(page: Page) -> None:
    assert page.locator("details.fold > summary > *").evaluate_all("(all) => all.map((each) => each.localName)") == ["h3", "h2", "h4"]
    expect(page.locator("details.fold h3", has_text="Task 2")).to_have_count(1)


def a_link_into_a_folded_section_opens_it(page: Page) -> None:
    page.locator("article").get_by_role("link", name="more").click()
    assert words(page) == ["not yet", "deep", "last"]


def the_contents_list_optional_parts_and_no_solutions(page: Page) -> None:
    listed = page.locator("nav.page-toc a").all_text_contents()
    assert [each.strip() for each in listed] == ["Task 1", "Optional: more", "Task 2", "The end"]


def folded_sections_are_printed_open(page: Page) -> None:
    page.emulate_media(media="print")
    assert words(page) == ["not yet", "passed", "deep", "deeper", "last"]


def test_folds_on_a_page_without_scripts(browser: Browser, built: str) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.set_default_timeout(PATIENCE)
    page.goto(built)
    questions = (
        the_title_of_an_optional_part_names_the_tasks_in_it,
        a_folded_section_opens_and_closes_by_keyboard,
        the_tab_key_reaches_each_title_once,
        a_title_stays_a_heading_of_its_level,
        a_link_into_a_folded_section_opens_it,
        the_contents_list_optional_parts_and_no_solutions,
        folded_sections_are_printed_open,
    )
    in_order(page, questions, again=lambda page: page.goto(built))
    page.close()


# ---- in JupyterLab ----


@pytest.fixture
def notebook(lab_context: BrowserContext, lab_server: tuple[str, Path], folder: Path) -> Iterator[Page]:
    """Give the notebook in JupyterLab after *Run All Cells*."""
    address, root = lab_server
    shutil.copy(folder / "index.ipynb", root / "folds.ipynb")
    ask(f"{address}/api/sessions", "POST", {"path": "folds.ipynb", "name": "", "type": "notebook", "kernel": {"name": "python3"}})
    made = lab_context.new_page()
    made.goto(f"{address}/doc/tree/folds.ipynb")
    made.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    made.evaluate(CONNECTED)
    made.evaluate(RUN_ALL)
    yield made
    made.close()


def outputs(page: Page) -> Any:
    """Return what can be expected of the outputs that the notebook shows."""
    return expect(page.locator(".jp-OutputArea-output:visible"))


def test_jupyterlab_keeps_sections_folded_when_all_cells_run_and_opens_them_by_mouse_and_keyboard(notebook: Page) -> None:
    before, opened, deep = ["not yet\n", "last\n"], ["not yet\n", "passed\n", "last\n"], ["not yet\n", "deep\n", "last\n"]
    expect(notebook.locator(".jp-InputPrompt:visible").last).to_have_text("[5]:")  # all five cells with code have run
    outputs(notebook).to_have_text(before)
    notebook.get_by_role("button", name="2 cells hidden").click()
    outputs(notebook).to_have_text(opened)
    notebook.evaluate(SELECT, SOLUTION)
    notebook.keyboard.press("ArrowLeft")
    outputs(notebook).to_have_text(before)
    notebook.keyboard.press("ArrowDown")  # to the next heading, past the folded cells
    notebook.keyboard.press("ArrowRight")
    outputs(notebook).to_have_text(deep)
    notebook.evaluate(RUN_ALL)
    outputs(notebook).to_have_text(deep)
