"""Test the search page of the built site: what it finds, in which order, what it quotes, and what it says to a screen reader."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from accessibility import violations
from browser import follow
from playwright.sync_api import Page, expect

Ask = Callable[..., Page]
RESULTS = "#search-results"
MARKUP = ("</", "\\frac", "\\(", "$", "&quot;", ">>>", "import ", "_esm")
ERRORS = {"buble": "bubble", "bubbel": "bubble", "microbach": "microbatch", "pipelinne": "pipeline", "gradiant": "gradient"}


@pytest.fixture(params=["files", "server"])
def ask(request: pytest.FixtureRequest, new_page: Any) -> Ask:
    """Give a function that searches from files and from a server, and returns the page with the results."""
    top = request.getfixturevalue(request.param)

    def asked(words: str, **settings: Any) -> Page:
        page = new_page(f"{top}search.html?q={quote(words)}", **settings)
        expect(page.get_by_role("status")).not_to_have_text("Searching")
        return page

    return asked


def titles(page: Page) -> list[str]:
    return list(page.locator(f"{RESULTS} > ul > li > a").all_inner_texts())


def addresses(page: Page) -> list[str]:
    return list(page.locator(f"{RESULTS} > ul > li > a").evaluate_all("(links) => links.map((link) => link.getAttribute('href'))"))


@pytest.mark.parametrize(
    ("words", "anchor"), [("bubble ratio", "term-bubble-ratio"), ("1f1b", "term-1F1B"), ("allreduce", "term-all-reduce")]
)
def test_a_term_comes_first_and_its_link_leads_to_it(ask: Ask, words: str, anchor: str) -> None:
    page = ask(words)
    first = page.locator(f"{RESULTS} li > a").first
    assert first.get_attribute("href") == f"book/glossary.html#{anchor}"
    follow(first, f"**/book/glossary.html#{anchor}")
    expect(page.locator(f"#{anchor}")).to_be_in_viewport()


@pytest.mark.parametrize("words", ["bubble", "ring", "simulate", "memory"])
def test_labs_come_before_other_pages_and_the_library_comes_last(ask: Ask, words: str) -> None:
    def place(address: str) -> int:
        starts = ("book/glossary.html#term-", "labs/", "book/", "book/api.html")
        return max(number for number, start in enumerate(starts) if address.startswith(start) and not (number == 2 and "#term-" in address))

    places = [place(each) for each in addresses(ask(words))]
    assert places == sorted(places)
    assert {1, 2, 3} <= set(places)


def test_a_lab_with_the_word_in_its_title_comes_before_the_others(ask: Ask) -> None:
    found = [title for title in titles(ask("bubble")) if title.startswith("Lab")]
    assert set(found[:2]) == {"Lab 3: Bubbles and memory", "Lab 13: Zero bubble"}
    assert len(found) == len(set(found)) > 5


@pytest.mark.parametrize("wrong", ERRORS)
def test_one_typing_error_is_forgiven_and_told(ask: Ask, wrong: str) -> None:
    page = ask(wrong)
    told, found = page.get_by_role("status").inner_text(), titles(page)
    assert told.startswith(f"No page has “{wrong}”, so this is what was found for “{ERRORS[wrong]}”: ")
    assert found == titles(ask(ERRORS[wrong]))
    assert page.get_by_role("status").inner_text().startswith(f"Found for “{ERRORS[wrong]}”: ")


def test_of_two_words_only_the_wrong_one_is_replaced(ask: Ask) -> None:
    assert "found for “bubble memory”" in ask("buble memory").get_by_role("status").inner_text()


def test_two_typing_errors_are_too_many(ask: Ask) -> None:
    page = ask("bublle xyzzyq")
    assert page.get_by_role("status").inner_text().endswith("Try fewer words, or look in the glossary.")
    assert not titles(page)
    follow(page.get_by_role("status").get_by_role("link"), "**/book/glossary.html")


@pytest.mark.parametrize("words", ["***", "$ \\ <>", "zzyzx"])
def test_words_that_no_page_has_find_nothing(ask: Ask, words: str) -> None:
    page = ask(words)
    expect(page.get_by_role("status")).to_contain_text(f"No page has all words of “{words}”.")
    assert not titles(page)


def test_what_is_quoted_is_text(ask: Ask) -> None:
    quoted = [
        text for words in ("bubble ratio", "makespan", "chunk") for text in ask(words).locator(f"{RESULTS} p:not([role])").all_inner_texts()
    ]
    assert len(quoted) > 50
    assert not [text for text in quoted if any(mark in text for mark in MARKUP)]
    assert all(len(text) <= 230 for text in quoted)


def test_words_are_marked_in_results_and_on_the_page_but_not_in_sidebars(ask: Ask) -> None:
    page = ask("bubbles")
    assert {text.lower() for text in page.locator("mark").all_inner_texts()} <= {"bubble", "bubbles", "bubblewrap"}
    assert page.locator("nav mark, header mark").count() == 0
    follow(page.get_by_role("link", name="Lab 3: Bubbles and memory").last, "**/labs/lab03_bubbles_and_memory.html")
    expect(page.locator("article .highlighted").first).to_be_attached()
    assert page.locator(".bd-sidebar-primary .highlighted, .bd-sidebar-secondary .highlighted").count() == 0


def test_a_page_that_is_not_opened_from_the_results_marks_nothing(ask: Ask, server: str) -> None:
    page = ask("bubbles")
    page.goto(server + "labs/lab03_bubbles_and_memory.html")
    page.wait_for_timeout(200)  # the theme marks words 10 ms after a page has opened
    assert page.locator(".highlighted").count() == 0


def test_a_name_of_the_library_is_found_with_its_kind_and_its_first_sentence(ask: Ask) -> None:
    page = ask("ring_all_reduce")
    entry = page.locator(f"{RESULTS} > ul > li").filter(has=page.get_by_role("link", name="ring_all_reduce", exact=False)).last
    expect(entry.locator("small")).to_have_text("Python function")
    expect(entry.locator("p")).to_contain_text("all-reduce")


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_results_are_accessible_and_fit_a_phone(ask: Ask, width: int, scheme: str) -> None:
    page = ask("buble", width=width, scheme=scheme)
    assert not violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_keyboard_leads_from_the_summary_to_a_group(ask: Ask) -> None:
    page = ask("bubble")
    page.get_by_role("status").get_by_role("link", name="Library").press("Enter")
    expect(page.get_by_role("heading", name="Library")).to_be_in_viewport()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')").startswith("book/api.html")


def test_without_the_texts_pages_are_still_found(new_page: Any, server: str, faults: list[str]) -> None:
    page = new_page(f"{server}book/start.html")
    page.context.route("**/search_texts.js", lambda route: route.abort())
    page.goto(f"{server}search.html?q=bubble")
    expect(page.get_by_role("status")).to_contain_text("Found for “bubble”")
    assert "Lab 13: Zero bubble" in titles(page)
    assert page.locator(f"{RESULTS} p:not([role])").count() == 0
    assert all("search_texts.js" in fault or "ERR_FAILED" in fault for fault in faults)
    faults.clear()
