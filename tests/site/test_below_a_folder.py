"""The site below a folder of its server, as on GitHub Pages: every page, its widgets and the search work there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import open_page, page_names, record, serving
from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def address(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    top = tmp_path_factory.mktemp("server")
    (top / "owner").mkdir()
    (top / "owner/course").symlink_to(site)
    with serving(top) as root:
        yield f"{root}owner/course/"


def test_every_page_asks_for_nothing_outside_the_folder(browser: Browser, address: str) -> None:
    faults: list[str] = []
    context = browser.new_context()
    record(context, faults, (address,))
    for name in page_names():
        open_page(context, address + name).close()
    context.close()
    assert not faults, "\n".join(faults)


def test_the_search_finds_a_lab(browser: Browser, address: str) -> None:
    faults: list[str] = []
    context = browser.new_context()
    record(context, faults, (address,))
    page = open_page(context, f"{address}search.html?q=bubble")
    found = page.locator("#search-results a", has_text="Lab 3").first
    found.wait_for()
    with page.expect_navigation():
        found.click()
    assert page.url.startswith(f"{address}labs/")
    context.close()
    assert not faults, "\n".join(faults)
