"""Test the built page of published claims: what its filter shows, by keyboard and by link, and what is there without scripts."""

import re
from typing import Any

import pytest
from accessibility import thinned, violations
from browser import address_of, reload
from cases import in_turn
from playwright.sync_api import Page, expect
from visits import in_order

from hybridlab.course.claims import CLAIMS, VERDICTS
from hybridlab.course.claims.ledger import LEDGER

CLAIMS_PAGE = "book/claims.html"
GROUPS = """() => {
  const seen = (element) => element.checkVisibility();
  const places = [...document.querySelectorAll("article section section, article .cell")];
  const groups = places.filter((each) => each.querySelector("table.claims"));
  const empty = groups.filter((each) => seen(each) && ![...each.querySelectorAll("tr[data-verdict]")].some(seen));
  const dead = [...document.querySelectorAll(".bd-sidebar-secondary a[href^='#']")].filter((link) => seen(link)
    && !seen(document.getElementById(link.hash.slice(1))));
  const left = [...document.querySelectorAll("tr.readings")].filter((row) => seen(row) && !seen(row.previousElementSibling));
  return [...left.map((row) => row.className), ...empty.map((each) => each.id || each.className),
    ...dead.map((link) => link.hash)];
}"""
ALL = len(CLAIMS)
COUNT = {verdict: sum(claim.verdict == verdict for claim in CLAIMS.values()) for verdict in VERDICTS}


def shown(page: Page) -> list[str]:
    rows = page.locator("tr[data-verdict]")
    return list(rows.evaluate_all("(rows) => rows.filter((row) => row.checkVisibility()).map((row) => row.dataset.verdict)"))


def the_keyboard_chooses_which_verdicts_are_shown(page: Page) -> None:
    expect(page.locator(".claims-filter output")).to_have_text(f"{ALL} of {ALL} claims are shown.")
    page.get_by_role("radio", name="all").focus()
    for verdict in VERDICTS:
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("radio", name=verdict)).to_be_focused()
        expect(page.locator(".claims-filter output")).to_have_text(f"{COUNT[verdict]} of {ALL} claims are shown.")
        assert shown(page) == [verdict] * COUNT[verdict]
        assert empty_groups(page) == []
    page.keyboard.press("ArrowRight")
    assert len(shown(page)) == ALL
    assert page.locator("article [hidden]").count() == 0


def empty_groups(page: Page) -> list[str]:
    """Return the headings and the folds that are visible although no claim of theirs is, and links to headings that are hidden."""
    return list(page.evaluate(GROUPS))


def every_table_has_one_fold(page: Page) -> None:
    tables = page.locator("table.claims")
    assert page.locator("article details.hide").count() == tables.count()
    assert page.locator(".cell:has(> details.hide):has(table.claims)").count() == tables.count()


def a_link_to_a_hidden_claim_shows_it(page: Page) -> None:
    page.get_by_role("radio", name="right").check()
    expect(page.locator("#claim-39")).to_be_hidden()
    page.locator("article ul a[href='#claim-39']").first.click()
    expect(page.locator("#claim-39")).to_be_in_viewport()
    assert len(shown(page)) == ALL


def a_link_to_a_place_in_a_hidden_section_shows_it(page: Page) -> None:
    page.get_by_role("radio", name="depends").check()
    inside = page.locator("article section[hidden] [id]:not([hidden])").first
    expect(inside).to_be_hidden()
    name = inside.get_attribute("id")
    page.evaluate("(name) => { location.hash = name; }", name)
    expect(page.get_by_role("radio", name="all")).to_be_checked()
    assert len(shown(page)) == ALL


def a_group_that_stays_empty_is_seen(page: Page) -> None:
    page.get_by_role("radio", name="depends").check()
    hidden = page.locator("article section[hidden]")
    assert hidden.count() > 0
    hidden.first.evaluate("(section) => { section.hidden = false }")
    assert len(empty_groups(page)) > 0
    page.get_by_role("radio", name="all").check()


def the_readings_of_a_claim_unfold_by_keyboard(page: Page) -> None:
    fold = page.locator("tr[data-verdict] + tr.readings details").first
    expect(fold.locator("td").first).to_be_hidden()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.locator("td").first).to_be_visible()
    expect(fold.locator("tbody tr")).to_have_count(int(fold.locator("summary").inner_text().split()[1]))


def the_ledger_is_folded_and_leads_to_claims(page: Page) -> None:
    ledgers = page.locator(".ledger details")
    expect(ledgers).to_have_count(len(LEDGER.documents))
    expect(page.locator(".ledger table").first).to_be_hidden()
    page.get_by_role("radio", name="right").check()
    for at, document in enumerate(LEDGER.documents):
        ledgers.nth(at).locator("summary").click()
        expect(ledgers.nth(at).get_by_role("rowheader")).to_have_count(len(LEDGER.of(document).statements))
    page.locator(".ledger a[href='#claim-39']").first.click()
    expect(page.locator("#claim-39")).to_be_in_viewport()
    assert len(shown(page)) == ALL


def test_the_filter(new_page: Any, files: str) -> None:
    questions = (
        the_keyboard_chooses_which_verdicts_are_shown,
        every_table_has_one_fold,
        a_link_to_a_hidden_claim_shows_it,
        a_link_to_a_place_in_a_hidden_section_shows_it,
        a_group_that_stays_empty_is_seen,
        the_readings_of_a_claim_unfold_by_keyboard,
        the_ledger_is_folded_and_leads_to_claims,
    )
    in_order(new_page(files + CLAIMS_PAGE), questions)


@pytest.mark.parametrize("way", ["files", "server"])
def test_the_address_keeps_the_choice(new_page: Any, request: pytest.FixtureRequest, way: str) -> None:
    page = new_page(request.getfixturevalue(way) + CLAIMS_PAGE)
    page.get_by_role("radio", name="wrong").check()
    assert address_of(page).endswith(f"{CLAIMS_PAGE}?verdict=wrong")
    reload(page)
    expect(page.get_by_role("radio", name="wrong")).to_be_checked()
    assert shown(page) == ["wrong"] * COUNT["wrong"]
    page.get_by_role("radio", name="all").check()
    assert address_of(page).endswith(CLAIMS_PAGE)


@in_turn(
    "asked, rows, claim, kept",
    [
        *((f"?verdict={verdict}", COUNT[verdict], "", f"?verdict={verdict}") for verdict in ("right", "depends")),
        ("?verdict=rihgt", ALL, "", "?verdict=rihgt"),
        ("?verdict=right#claim-39", ALL, "#claim-39", "#claim-39"),  # which is not right
        ("#claim-76", ALL, "#claim-76", "#claim-76"),
    ],
)
def test_an_address_brings_a_choice_and_a_claim(new_page: Any, server: str, asked: str, rows: int, claim: str, kept: str) -> None:
    page = new_page(server + CLAIMS_PAGE + asked)
    assert len(shown(page)) == rows
    if claim:
        expect(page.locator(claim)).to_be_in_viewport()
    assert address_of(page).endswith(CLAIMS_PAGE + kept)


def test_without_its_script_every_claim_is_shown_and_no_control(new_page: Any, server: str) -> None:
    tag = re.compile(r"<script[^>]*/claims\.js[^>]*></script>")
    page = new_page(server + CLAIMS_PAGE, edit=lambda text: tag.sub("", text))
    assert len(shown(page)) == ALL
    assert page.locator(".claims-filter").count() == 0


def test_verdicts_can_be_told_without_colours(new_page: Any, files: str) -> None:
    page = new_page(files + CLAIMS_PAGE)
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        for verdict, sign in {"right": "✓", "wrong": "✗", "depends": "±"}.items():
            words = page.locator(f"tr[data-verdict={verdict}] .verdict").all_inner_texts()
            assert words == [f"{sign} {verdict}"] * COUNT[verdict]
        row = page.get_by_role("row").filter(has=page.locator("a[href='#claim-42']"))
        expect(row.get_by_role("cell")).to_have_count(3)  # on a narrow page a row looks like a card, but is still a row
        expect(row.get_by_role("rowheader")).to_have_count(1)


@pytest.mark.needs("axe")
def test_the_tables_are_accessible_and_fit_a_narrow_page_where_some_claims_are_hidden(new_page: Any, files: str) -> None:
    page = new_page(files + CLAIMS_PAGE, width=360)
    page.get_by_role("radio", name="depends").check()
    page.locator("article details").evaluate_all("(folds) => folds.forEach((fold) => { fold.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    thinned(page)
    assert not violations(page, "article")
