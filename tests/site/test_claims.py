"""Test the built page of published claims: what its filter shows, by keyboard and by link, and what is there without scripts."""

import re
from typing import Any

import pytest
from accessibility import violations
from playwright.sync_api import Page, expect

from hybridlab.course.claims import CLAIMS, VERDICTS

CLAIMS_PAGE = "book/claims.html"
COUNT = {verdict: sum(claim.verdict == verdict for claim in CLAIMS.values()) for verdict in VERDICTS}


def shown(page: Page) -> list[str]:
    rows = page.locator("tr[data-verdict]")
    return list(rows.evaluate_all("(rows) => rows.filter((row) => row.checkVisibility()).map((row) => row.dataset.verdict)"))


def test_the_keyboard_chooses_which_verdicts_are_shown(new_page: Any, files: str) -> None:
    page = new_page(files + CLAIMS_PAGE)
    expect(page.locator(".claims-filter output")).to_have_text("76 of 76 claims are shown.")
    page.get_by_role("radio", name="all").focus()
    for verdict in VERDICTS:
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("radio", name=verdict)).to_be_focused()
        expect(page.locator(".claims-filter output")).to_have_text(f"{COUNT[verdict]} of 76 claims are shown.")
        assert shown(page) == [verdict] * COUNT[verdict]
        tables, empty = page.locator("table.claims"), page.locator("table.claims[hidden] + .claims-none:visible")
        assert page.locator("table.claims:visible").count() + empty.count() == tables.count()
        assert not violations(page, "article")
    page.keyboard.press("ArrowRight")
    assert len(shown(page)) == 76
    assert page.locator(".claims-none").count() == 0


def test_a_link_to_a_hidden_claim_shows_it(new_page: Any, files: str) -> None:
    page = new_page(files + CLAIMS_PAGE)
    page.get_by_role("radio", name="right").check()
    expect(page.locator("#claim-39")).to_be_hidden()
    page.locator("article ul a[href='#claim-39']").first.click()
    expect(page.locator("#claim-39")).to_be_in_viewport()
    assert len(shown(page)) == 76


def test_an_address_leads_to_its_claim(new_page: Any, server: str) -> None:
    page = new_page(f"{server}{CLAIMS_PAGE}#claim-76")
    expect(page.locator("#claim-76")).to_be_in_viewport()


def test_without_its_script_every_claim_is_shown_and_no_control(new_page: Any, server: str) -> None:
    tag = re.compile(r"<script[^>]*/claims\.js[^>]*></script>")
    page = new_page(server + CLAIMS_PAGE, edit=lambda text: tag.sub("", text))
    assert len(shown(page)) == 76
    assert page.locator(".claims-filter").count() == 0


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_verdicts_can_be_told_without_colours(new_page: Any, files: str, width: int, scheme: str) -> None:
    page = new_page(files + CLAIMS_PAGE, width=width, scheme=scheme)
    for verdict, sign in {"right": "✓", "wrong": "✗", "depends": "±"}.items():
        words = page.locator(f"tr[data-verdict={verdict}] .verdict").all_inner_texts()
        assert words == [f"{sign} {verdict}"] * COUNT[verdict]
    row = page.get_by_role("row").filter(has=page.locator("a[href='#claim-42']"))
    expect(row.get_by_role("cell")).to_have_count(3)  # on a narrow page a row looks like a card, but is still a row
    expect(row.get_by_role("rowheader")).to_have_count(1)
    assert not violations(page, "article")
