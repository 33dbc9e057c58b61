"""Test what stands in tables: formulas on a phone, and numbers below their heads. These tests need a browser, but no built site."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cases import in_turn
from playwright.sync_api import Browser, Locator
from test_views import MAKE

STYLE = Path(__file__).parents[2] / "book/_assets/site.css"
FORMULA = "<math><mn>2</mn><mo>(</mo><mi>K</mi><mo>-</mo><mn>1</mn><mo>)</mo><mi>M</mi></math>"
REST = "a cell with many words, which make the first column of the table as narrow as it can be on a phone"
# a rule as strong as that of the site's theme for the cells of tables, which stands before the sheets of the views
THEME = """() => {
  const theme = document.createElement("style");
  theme.textContent = "div:not(.none) td { text-align: left }";
  document.head.prepend(theme);
}"""


def test_a_formula_in_a_table_of_a_phone_is_whole(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 900})
    page.set_content(f"<!DOCTYPE html><table><tr><td><p>{FORMULA}</p></td><td>{REST}</td></tr></table>")
    page.add_style_tag(content=STYLE.read_text(encoding="utf-8"))
    assert page.locator("math").evaluate("(formula) => formula.scrollWidth <= formula.clientWidth")
    page.close()


def test_numbers_of_a_markdown_table_stand_below_their_heads(browser: Browser) -> None:
    page = browser.new_page()
    head, cell = '<th class="text-right">time</th>', '<td class="text-right">5.7 s</td>'
    page.set_content(f'<!DOCTYPE html><div class="body"><table><tr>{head}</tr><tr>{cell}</tr></table></div>')
    page.add_style_tag(content="div.body td { text-align: left } :is(td, th).text-right { text-align: right }")  # as the theme does
    page.add_style_tag(content=STYLE.read_text(encoding="utf-8"))
    assert page.locator("td, th").evaluate_all("(cells) => cells.map((cell) => getComputedStyle(cell).textAlign)") == ["right"] * 2
    page.close()


@in_turn("name", ["ClusterExplorer", "SweepExplorer"])
def test_numbers_stand_below_their_heads_under_the_rules_of_a_page(alone: Callable[[Any], Locator], name: str) -> None:
    view = alone(MAKE[name]())
    view.page.evaluate(THEME)
    sides = view.locator("td").evaluate_all("(cells) => cells.map((cell) => getComputedStyle(cell).textAlign)")
    assert sides
    assert set(sides) == {"right"}
