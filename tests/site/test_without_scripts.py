"""Test the built site in a browser that runs no scripts: it has the colours of light pages, and bets can be read."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from browser import PATIENCE
from playwright.sync_api import Browser, Page, expect

PARTS = ("body", "h1", "article p", "article a", "article code", "article td", "article th", ".bd-sidebar-primary a", ".bd-header-article")
COLOURS = """(parts) => parts.map((part) => {
  const found = document.querySelector(part);
  const { color, backgroundColor, borderBottomColor } = found ? getComputedStyle(found) : {};
  return [part, color, backgroundColor, borderBottomColor];
})"""


@pytest.fixture
def bare(browser: Browser) -> Iterator[Page]:
    """Give an empty page without scripts, for a reader who prefers dark pages."""
    context = browser.new_context(java_script_enabled=False, color_scheme="dark")
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def test_the_colours_are_those_of_light_pages(bare: Page, new_page: Any, files: str) -> None:
    address = files + "book/notation.html"
    bare.goto(address)
    wanted = new_page(address).evaluate(COLOURS, PARTS)
    assert bare.evaluate(COLOURS, PARTS) == wanted
    assert [part for part, colour, *_ in wanted if colour is None] == []


def test_every_bet_of_a_lab_is_asked_and_not_answered(bare: Page, lab: str, files: str) -> None:
    bare.goto(files + lab)
    stored = json.loads(bare.locator('script[type="application/vnd.jupyter.widget-state+json"]').text_content())["state"]
    bets = [entry["state"] for entry in stored.values() if "choices" in entry["state"] and "truth" not in entry["state"]]
    assert bets
    asked = {each.locator("p").first.text_content(): each for each in bare.locator("noscript:has(> .live-widget-note)").all()}
    bare.locator("details.fold").evaluate_all("(folds) => folds.forEach((fold) => { fold.open = true; })")  # of optional parts
    for bet in bets:
        expect(asked[bet["question"]].locator("p").first).to_be_visible()
        assert asked[bet["question"]].locator("li").all_text_contents() == bet["choices"]
    assert not any(answer.is_visible() for answer in bare.locator("noscript details p").all())
