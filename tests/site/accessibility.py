"""Find accessibility faults in a page with axe-core.

Such faults matter to readers who use a screen reader, who use no mouse, or who see badly.
"""

from functools import cache

import pytest
from browser import SITE
from playwright.sync_api import Page

AXE = SITE.parents[1] / "tests/node_modules/axe-core/axe.min.js"
NO_AXE = "axe-core is not installed: run make site-check, or npm ci --prefix tests"
OF_COLOURS = ("color-contrast", "link-in-text-block")  # these rules depend on whether a page is light or dark
# Two texts look the same if they have the same element, class and letters on the same backgrounds. Of all texts that look the same, only
# two are checked for contrast. Of all links that look the same, only two are compared with the text around them. A page has thousands of
# code words and operation numbers that look the same, and each check would take a millisecond.
VIOLATIONS = """async ([within, rules]) => {
  const grounds = new Map();
  const groundsOf = (element) => {
    if (!element) return "";
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity, filter, mixBlendMode, position } = getComputedStyle(element);
      const own = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode, position === "static" ? "" : position].join();
      grounds.set(element, groundsOf(element.parentElement) + (own === "rgba(0, 0, 0, 0),none,1,none,normal," ? "" : `|${own}`));
    }
    return grounds.get(element);
  };
  const asked = new Map();
  const isText = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  for (const element of document.querySelectorAll(within.flatMap((each) => [each, `${each} *`]).join())) {
    if (!element.matches("input, select, textarea") && !isText(element)) continue;
    const { color, fill, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    const names = [element.localName, element.getAttribute("class"), element.parentElement?.getAttribute("class")];
    const look = [...names, color, fill, fontSize, fontWeight, textShadow, groundsOf(element)].join(";");
    asked.set(look, [...(asked.get(look) ?? []), element]);
  }
  const chosen = [...asked.values()].flatMap((alike) => alike.slice(0, 2));
  for (const element of chosen) element.setAttribute("data-contrast", "");
  const links = ":is(a[href], [role=link])[data-contrast]";
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-contrast]" }, { id: "link-in-text-block", selector: links }] });
  const options = { iframes: false, preload: false, resultTypes: ["violations"], ...(rules.length ? { runOnly: rules } : {}) };
  const { violations } = await axe.run({ include: within.map((selector) => [selector]) }, options);
  for (const element of chosen) element.removeAttribute("data-contrast");
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, help, nodes }) => [`${id}: ${help}`, ...nodes.map(({ target }) => target.join(" "))].join("\\n    "));
}"""

# If many words of code look alike, two keep their elements and the others become plain text. If many bars of a picture differ only in place
# and words, two stay and the others are removed. Such words and bars are most of a page's elements. A bar without words looks different
# from a bar with words, so it stays.
THINNED = """() => {
  const seen = new Map();
  for (const word of document.querySelectorAll(".highlight span[class]:not([id]), .sig span[class]:not([id])")) {
    const look = [word.className, word.parentElement.className].join(";");
    seen.set(look, (seen.get(look) ?? 0) + 1);
    if (seen.get(look) > 2 && !word.childElementCount && word.attributes.length === 1) word.replaceWith(word.textContent);
  }
  const places = / (x|y|x1|x2|y1|y2|cx|cy|width|height|transform|points|d|aria-label|data-[a-z]+)="[^"]+"/g;
  for (const part of document.querySelectorAll(".hybridlab-view svg :is(g, rect, line, path, polygon, text)")) {
    if (!part.isConnected) continue;
    const own = part.outerHTML.replaceAll(places, " $1").replaceAll(/>[^<]+</g, ">.<");
    const look = [part.parentElement.getAttribute("class"), own].join(";");
    seen.set(look, (seen.get(look) ?? 0) + 1);
    if (seen.get(look) > 2) part.remove();
  }
  document.body.normalize();
}"""


@cache
def axe() -> str:
    return AXE.read_text(encoding="utf-8")


def thinned(page: Page) -> None:
    """Keep only two of all elements that look alike. Afterwards only :func:`violations` or checks that load the page again may follow."""
    page.evaluate(THINNED)


def violations(page: Page, *within: str, rules: tuple[str, ...] = ()) -> list[str]:
    """Return the serious and critical faults of the page, or of the elements that the selectors match.

    Each fault names the elements that have it. ``rules`` are the axe rules to check; without them, all rules are checked.
    """
    if not AXE.is_file():
        pytest.skip(NO_AXE)
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(axe())
    return list(page.evaluate(VIOLATIONS, [within or ["html"], rules]))
