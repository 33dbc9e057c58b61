"""What axe-core finds wrong with a page for readers with a screen reader, without a mouse, or with weak eyes."""

import pytest
from browser import SITE
from playwright.sync_api import Page

AXE = SITE.parents[1] / "tests/site/node_modules/axe-core/axe.min.js"
NO_AXE = "axe-core is not installed: run make site-check, or npm ci in tests/site"
VIOLATIONS = """async (within) => {
  const options = { iframes: false, preload: false, resultTypes: ["violations"] };
  const { violations } = await axe.run({ include: within.map((selector) => [selector]) }, options);
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, help, nodes }) => [`${id}: ${help}`, ...nodes.map(({ target }) => target.join(" "))].join("\\n    "));
}"""


def violations(page: Page, *within: str) -> list[str]:
    """Return what is serious or critical in the page, or in what these selectors find there, each with the elements concerned."""
    if not AXE.is_file():
        pytest.skip(NO_AXE)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return list(page.evaluate(VIOLATIONS, list(within or ["html"])))
