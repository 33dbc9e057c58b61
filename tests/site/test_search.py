"""Test the search page of the built site: what it finds, in which order, what it quotes, and what it says to a screen reader."""

from typing import Any
from urllib.parse import quote

import pytest
from accessibility import thinned, violations
from browser import follow
from playwright.sync_api import Page, expect
from visits import in_order

RESULTS = "#search-results"
MARKUP = ("</", "\\frac", "\\(", "$", "&quot;", ">>>", "import ", "_esm")
# the theme marks words 10 ms after a page has opened
MARKED = "new Promise((marked) => setTimeout(() => marked(true), 100))"
ERRORS = {"buble": "bubble", "bubbel": "bubble", "microbach": "microbatch", "pipelinne": "pipeline", "gradiant": "gradient"}


def search(page: Page, words: str) -> Page:
    """Search for other words with the field of the page of results."""
    page.goto(f"{page.url.partition('?')[0]}?q={quote(words)}")
    expect(page.get_by_role("status")).not_to_have_text("Searching")
    return page


def titles(page: Page) -> list[str]:
    return list(page.locator(f"{RESULTS} > ul > li > a").all_inner_texts())


def addresses(page: Page) -> list[str]:
    return list(page.locator(f"{RESULTS} > ul > li > a").evaluate_all("(links) => links.map((link) => link.getAttribute('href'))"))


def a_term_comes_first_and_its_link_leads_to_it(page: Page) -> None:
    found = page.url
    for words, anchor in (("bubble ratio", "term-bubble-ratio"), ("1f1b", "term-1F1B"), ("allreduce", "term-all-reduce")):
        first = search(page, words).locator(f"{RESULTS} li > a").first
        assert first.get_attribute("href") == f"book/glossary.html#{anchor}"
    follow(first, f"**/book/glossary.html#{anchor}")
    expect(page.locator(f"#{anchor}")).to_be_in_viewport()
    page.goto(found)


def place(address: str) -> int:
    """Return the group in which an address must stand: terms, labs, other pages, the library."""
    starts = ("book/glossary.html#term-", "labs/", "book/", "book/api.html")
    return max(number for number, start in enumerate(starts) if address.startswith(start) and not (number == 2 and "#term-" in address))


def labs_come_before_other_pages_and_the_library_comes_last(page: Page) -> None:
    for words in ("bubble", "ring", "simulate", "memory"):
        places = [place(each) for each in addresses(search(page, words))]
        assert places == sorted(places), words
        assert {1, 2, 3} <= set(places), words


def a_lab_with_the_word_in_its_title_comes_before_the_others(page: Page) -> None:
    found = [title for title in titles(search(page, "bubble")) if title.startswith("Lab")]
    assert set(found[:2]) == {"Lab 3: Bubbles and memory", "Lab 13: Zero bubble"}
    assert len(found) == len(set(found)) > 5


def one_typing_error_is_forgiven_and_told(page: Page) -> None:
    for wrong, right in ERRORS.items():
        told, found = search(page, wrong).get_by_role("status").inner_text(), titles(page)
        assert told.startswith(f"No page has “{wrong}”, so this is what was found for “{right}”: ")
        assert found
    assert found == titles(search(page, right))
    assert page.get_by_role("status").inner_text().startswith(f"Found for “{right}”: ")


def readers_find_what_they_ask_for(page: Page) -> None:
    """In their own words: written together, in a whole question, in words that the page itself does not have."""
    asked = (("ring allreduce", "labs/lab04_ring.html"), ("upload csv", "book/your_times.html"), ("job shop", "book/zoo.html"))
    for words, wanted in asked:
        assert wanted in addresses(search(page, words)), words
    assert addresses(search(page, "how long does a lab take"))[0] == "book/start.html#how-long-a-lab-takes"


def of_two_words_only_the_wrong_one_is_replaced(page: Page) -> None:
    assert "found for “bubble memory”" in search(page, "buble memory").get_by_role("status").inner_text()


def two_typing_errors_are_too_many(page: Page) -> None:
    found = page.url
    search(page, "bublle xyzzyq")
    assert page.get_by_role("status").inner_text().endswith("Try fewer words, or look in the glossary.")
    assert not titles(page)
    follow(page.get_by_role("status").get_by_role("link"), "**/book/glossary.html")
    page.goto(found)


def words_that_no_page_has_find_nothing(page: Page) -> None:
    for words in ("***", "$ \\ <>", "zzyzx"):
        expect(search(page, words).get_by_role("status")).to_contain_text(f"No page has all words of “{words}”.")
        assert not titles(page)


def what_is_quoted_is_text_with_as_many_of_the_words_as_it_can_have(page: Page) -> None:
    quoted = [
        text for words in ("bubble ratio", "makespan") for text in search(page, words).locator(f"{RESULTS} p:not([role])").all_inner_texts()
    ]
    assert len(quoted) > 30
    assert not [text for text in quoted if any(mark in text for mark in MARKUP)]
    assert all(len(text) <= 230 for text in quoted)
    search(page, "bubble ratio")
    entry = page.locator(f"{RESULTS} > ul > li").filter(has=page.get_by_role("link", name="Lab 3: Bubbles and memory")).first
    assert {text.lower() for text in entry.locator("> p mark").all_inner_texts()} >= {"bubble", "ratio"}


def words_are_marked_in_results_and_on_the_page_but_not_in_sidebars(page: Page) -> None:
    found = page.url
    search(page, "bubbles")
    assert {text.lower() for text in page.locator("mark").all_inner_texts()} <= {"bubble", "bubbles", "bubblewrap"}
    assert page.locator("nav mark, header mark").count() == 0
    follow(page.get_by_role("link", name="Lab 3: Bubbles and memory").last, "**/labs/lab03_bubbles_and_memory.html")
    expect(page.locator("article .highlighted").first).to_be_attached()
    assert page.locator(".bd-sidebar-primary .highlighted, .bd-sidebar-secondary .highlighted").count() == 0
    page.goto(found)


def a_page_that_is_not_opened_from_the_results_marks_nothing(page: Page) -> None:
    found = page.url
    search(page, "bubbles")
    page.goto(found.replace("search.html", "labs/lab03_bubbles_and_memory.html").partition("?")[0])
    page.wait_for_function(MARKED)
    assert page.locator(".highlighted").count() == 0
    page.goto(found)


def a_name_of_the_library_is_found_with_its_kind_and_its_first_sentence(page: Page) -> None:
    search(page, "ring_all_reduce")
    entry = page.locator(f"{RESULTS} > ul > li").filter(has=page.get_by_role("link", name="ring_all_reduce", exact=False)).last
    expect(entry.locator("small")).to_have_text("Python function")
    expect(entry.locator("p")).to_contain_text("all-reduce")


def the_keyboard_leads_from_the_summary_to_a_group(page: Page) -> None:
    search(page, "bubble")
    page.get_by_role("status").get_by_role("link", name="Library").press("Enter")
    expect(page.get_by_role("heading", name="Library")).to_be_in_viewport()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')").startswith("book/api.html")


QUESTIONS = (
    a_term_comes_first_and_its_link_leads_to_it,
    labs_come_before_other_pages_and_the_library_comes_last,
    a_lab_with_the_word_in_its_title_comes_before_the_others,
    one_typing_error_is_forgiven_and_told,
    readers_find_what_they_ask_for,
    of_two_words_only_the_wrong_one_is_replaced,
    two_typing_errors_are_too_many,
    words_that_no_page_has_find_nothing,
    what_is_quoted_is_text_with_as_many_of_the_words_as_it_can_have,
    words_are_marked_in_results_and_on_the_page_but_not_in_sidebars,
    a_page_that_is_not_opened_from_the_results_marks_nothing,
    a_name_of_the_library_is_found_with_its_kind_and_its_first_sentence,
    the_keyboard_leads_from_the_summary_to_a_group,
)


def test_the_page_of_results_from_a_server(new_page: Any, server: str) -> None:
    in_order(new_page(f"{server}search.html?q=bubble"), QUESTIONS)


def test_the_page_of_results_from_a_file(new_page: Any, files: str) -> None:
    """What a file must do in another way: it loads the texts as a script."""
    questions = (
        a_term_comes_first_and_its_link_leads_to_it,
        of_two_words_only_the_wrong_one_is_replaced,
        words_that_no_page_has_find_nothing,
        a_name_of_the_library_is_found_with_its_kind_and_its_first_sentence,
    )
    in_order(new_page(f"{files}search.html?q=bubble"), questions)


@pytest.mark.needs("axe")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_results_are_accessible_and_fit_a_phone(new_page: Any, files: str, width: int, scheme: str) -> None:
    page = new_page(f"{files}search.html?q=buble", width=width, scheme=scheme)
    expect(page.get_by_role("status")).not_to_have_text("Searching")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    thinned(page)
    assert not violations(page)


def test_without_the_texts_pages_are_still_found(new_page: Any, server: str, faults: list[str]) -> None:
    page = new_page(f"{server}book/start.html")
    page.context.route("**/search_texts.js", lambda route: route.abort())
    page.goto(f"{server}search.html?q=bubble")
    expect(page.get_by_role("status")).to_contain_text("Found for “bubble”")
    assert "Lab 13: Zero bubble" in titles(page)
    assert page.locator(f"{RESULTS} p:not([role])").count() == 0
    assert all("search_texts.js" in fault or "ERR_FAILED" in fault for fault in faults)
    faults.clear()
