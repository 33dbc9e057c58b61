"""Test the built site in a browser that runs no scripts: it has the colours of light pages, bets can be read, and no form is there."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from browser import PATIENCE, page_names
from cases import in_turn
from playwright.sync_api import Browser, Page

PARTS = ("body", "h1", "article p", "article a", "article code", "article td", "article th", ".bd-sidebar-primary a", ".bd-header-article")
COLOURS = """(parts) => parts.map((part) => {
  const found = document.querySelector(part);
  const { color, backgroundColor, borderBottomColor } = found ? getComputedStyle(found) : {};
  return [part, color, backgroundColor, borderBottomColor];
})"""


# the question of each bet, whether it is seen, and its choices
ASKED = """(notes) => notes.map((note) => {
  const question = note.querySelector("p");
  return [question.textContent, question.checkVisibility(), [...note.querySelectorAll("li")].map((each) => each.textContent)];
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


@in_turn("lab", [name for name in page_names() if name.startswith("labs/")] or ["labs"])
def test_every_bet_of_a_lab_is_asked_and_not_answered_and_no_form_is_empty(bare: Page, lab: str, files: str) -> None:
    bare.goto(files + lab)
    stored = json.loads(bare.locator('script[type="application/vnd.jupyter.widget-state+json"]').text_content())["state"]
    bets = [entry["state"] for entry in stored.values() if "choices" in entry["state"] and "truth" not in entry["state"]]
    assert bets
    bare.locator("details.fold").evaluate_all("(folds) => folds.forEach((fold) => { fold.open = true; })")  # of optional parts
    asked = bare.locator("noscript:has(> .live-widget-note)").evaluate_all(ASKED)
    for bet in bets:
        assert [bet["question"], True, list(bet["choices"])] in asked
    assert not any(bare.locator("noscript details p, .number-task").evaluate_all("(all) => all.map((each) => each.checkVisibility())"))
    assert bare.locator(".number-task").count() > 0 or lab[5:10] in ("lab17", "lab18")
