"""Test what a reader does on the pages.

A reader searches, copies, opens a solution, goes from page to page, changes the colours, and downloads a lab.
"""

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import nbformat
import pytest
import yaml
from browser import READY, follow, held, page_names, reload_after
from cases import in_turn
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[2]
LAB = "labs/lab02_one_f_one_b.html"
each_way = pytest.mark.parametrize("way", ["server", "files"])
# some browsers do not let a page from a file use the clipboard, so the test records the copied text
CLIPBOARD = """Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } });
document.execCommand = () => { window.copied = String(getSelection()) || document.activeElement.value; return true; };"""
VIEWS = "[...new Set([...document.querySelectorAll('.hybridlab-view')].map((view) => getComputedStyle(view).colorScheme))]"
IS_SEEN = """(fold) => fold.lastElementChild.checkVisibility({ visibilityProperty: true })
  && fold.lastElementChild.getBoundingClientRect().height > 0"""


def pages_in_order() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [f"{name}.html" for name in [toc["root"], *(each["file"] for part in toc["parts"] for each in part["chapters"])]]


def test_search_finds_a_word_and_quotes_the_page_it_leads_to(new_page: Any, files: str) -> None:
    page = new_page(files + "book/intro.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("hanayo")
    page.keyboard.press("Enter")
    results = page.locator("#search-results li")
    expect(results.first).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("Found for “hanayo”")
    gallery = results.filter(has=page.locator("a[href*='book/gallery.html']")).first
    expect(gallery).to_contain_text(re.compile("hanayo", re.IGNORECASE))
    gallery.get_by_role("link").first.click()
    expect(page.locator("article h1")).to_contain_text("Gallery")


def test_the_copy_button_copies_the_code_of_its_cell(new_page: Any, files: str) -> None:
    page = new_page(files + LAB)
    page.evaluate(CLIPBOARD)
    cell = page.locator(".cell_input .highlight:visible").first
    code = cell.locator("pre").inner_text().strip()
    cell.hover()
    cell.locator(".copybtn").click()
    expect(cell.locator(".copybtn")).to_have_class(re.compile("success"))
    assert page.evaluate("window.copied").strip() == code


def test_a_lab_opened_as_a_file_folds_its_solutions_and_says_why_its_notebook_cannot_run_there(new_page: Any, files: str) -> None:
    page = new_page(files + LAB)
    page.locator("nav.lab-bar").get_by_role("link", name="Run in the browser").click()
    expect(page).to_have_url(files + LAB)
    expect(page.locator("nav.lab-bar").get_by_role("status")).to_contain_text("make serve")
    solutions = page.locator(":is(.tag_solution details, details.hide, details.fold):not(details details)")
    assert solutions.count() >= 2
    for fold in map(held, solutions.all()):
        assert fold.evaluate("(fold) => !fold.open")
        assert not fold.evaluate(IS_SEEN)
        fold.evaluate("(fold) => fold.querySelector('summary').focus()")
        page.keyboard.press("Enter")
        assert fold.evaluate(IS_SEEN)
        page.keyboard.press("Space")
        assert not fold.evaluate(IS_SEEN)


def test_previous_and_next_lead_through_all_pages_in_order(new_page: Any, site: Path, files: str) -> None:
    names = pages_in_order()
    for before, name, after in zip(["", *names], names, [*names[1:], ""], strict=False):
        text = (site / name).read_text(encoding="utf-8")
        beside = [re.findall(rf'<a class="{side}"\s+href="([^"]+)"', text) for side in ("left-prev", "right-next")]
        assert [[urljoin(name, link) for link in links] for links in beside] == [[each] if each else [] for each in (before, after)]
    page = new_page(files + "index.html")
    follow(page.locator(".right-next"), files + names[1])
    follow(page.locator(".left-prev"), files + names[0])


def test_a_link_is_followed_to_the_loaded_page_also_on_a_slow_machine(fresh_page: Any, server: str) -> None:
    page = fresh_page(server + "book/start.html")
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
    follow(page.locator(".bd-docs-nav").get_by_role("link", name="Lab 2"), server + LAB)
    assert page.evaluate(READY)


def test_the_contents_beside_every_page_list_all_pages(new_page: Any, files: str) -> None:
    page = new_page(files + LAB)
    contents = page.locator(".bd-docs-nav")
    assert contents.is_visible()
    assert contents.locator("a").evaluate_all("links => links.map((link) => link.href.replace(/#$/, ''))") == [
        files + name for name in pages_in_order()
    ]
    follow(contents.get_by_text("Glossary"), files + "book/glossary.html")
    expect(contents.locator(".current.active")).to_have_text("Glossary")


def test_on_a_phone_the_contents_open_from_a_button(new_page: Any, files: str) -> None:
    page = new_page(files + LAB, width=360, is_mobile=True, has_touch=True)
    contents = page.locator(".bd-docs-nav").first
    assert not contents.is_visible()
    page.locator(".primary-toggle").first.tap()
    link = page.locator(".bd-docs-nav:visible").get_by_text("Lab 4: The ring")
    expect(link).to_be_in_viewport()
    link.tap()
    expect(page).to_have_url(files + "labs/lab04_ring.html")


@each_way
def test_the_switch_changes_the_colours_and_they_stay(new_page: Any, request: Any, way: str) -> None:
    page = new_page(request.getfixturevalue(way) + LAB)
    ground = "getComputedStyle(document.body).backgroundColor"
    picture = "getComputedStyle(document.querySelector('.hybridlab-explorer .tick')).fill"
    seen = set()
    for _ in range(3):  # light, dark, or the setting of the system
        page.locator(".theme-switch-button:visible").click()
        theme = page.evaluate("document.documentElement.dataset.theme")
        seen.add((theme, page.evaluate(ground), page.evaluate(picture)))
        assert page.evaluate(VIEWS) == [theme]
    assert {theme for theme, *_ in seen} == {"light", "dark"}
    assert len(seen) == 2, "text and picture follow"

    def dark() -> None:
        while page.evaluate("document.documentElement.dataset.mode") != "dark":
            page.locator(".theme-switch-button:visible").click()

    reload_after(page, dark, kept="document.documentElement.dataset.theme === 'dark'")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(VIEWS) == ["light"], "paper is white"


@in_turn("lab", [name for name in page_names() if name.startswith("labs/")] or ["labs"])
def test_the_bar_of_a_lab_leads_to_its_notebook_here_and_in_the_browser(site: Path, lab: str) -> None:
    name = Path(lab).with_suffix(".ipynb").name
    bar = re.search(r'<nav class="lab-bar.*?</nav>', (site / lab).read_text(encoding="utf-8"), re.DOTALL)
    assert bar
    links = re.findall(r'href="([^"]+)"', html.unescape(bar[0]))
    (download,) = (site / urljoin(lab, link) for link in links if link.endswith(".ipynb") and "lite" not in link)
    notebook = nbformat.read(download, as_version=4)
    nbformat.validate(notebook)
    source = nbformat.read(ROOT / "labs" / name, as_version=4)
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in source.cells]
    (run,) = (urlsplit(urljoin(lab, link)) for link in links if "lite/" in link)
    assert (run.path, parse_qs(run.query)) == ("lite/lab/index.html", {"path": [name]})
    assert (site / run.path).is_file()
    assert "CDN" in bar[0]


@each_way
def test_a_notebook_is_downloaded(new_page: Any, request: Any, way: str, tmp_path: Path) -> None:
    root = request.getfixturevalue(way)
    page = new_page(root + LAB)
    bar = page.locator("nav.lab-bar")
    with page.expect_download() as download:
        bar.get_by_role("link", name="Download the notebook").click()
    name = Path(LAB).with_suffix(".ipynb").name
    assert download.value.suggested_filename == name
    download.value.save_as(tmp_path / name)
    assert [cell.id for cell in nbformat.read(tmp_path / name, as_version=4).cells] == [
        cell.id for cell in nbformat.read(ROOT / "labs" / name, as_version=4).cells
    ]
    follow(bar.get_by_role("link", name="How to run it"), root + "book/start.html")


def test_the_focus_returns_to_the_button_of_a_sidebar_that_is_closed(new_page: Any, files: str) -> None:
    page = new_page(files + LAB, width=360)
    for side in ("primary", "secondary"):
        button = page.locator(f".{side}-toggle").first
        button.focus()
        page.keyboard.press("Enter")
        expect(page.locator(f"#pst-{side}-sidebar-modal")).to_have_attribute("open", "")
        page.keyboard.press("Escape")
        expect(button).to_be_focused()


def test_numbers_of_the_gallery_stand_below_the_heads_of_their_columns(new_page: Any, files: str) -> None:
    page = new_page(files + "book/gallery.html")
    columns = """() => [...document.querySelectorAll(".gallery-table tr")].filter((row) => row.cells.length > 2)
      .map((row) => [...row.cells].map((cell) => getComputedStyle(cell).textAlign).join())"""
    (alignment,) = set(page.evaluate(columns))
    assert alignment.startswith("left,left,right,right"), "names and makespans begin at the left, other numbers end at the right"
