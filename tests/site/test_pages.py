"""Test every page in light and dark colours, from files and from a server.

A page must load completely, be accessible, fit a phone, and print on white paper. A page is loaded only once from files and once from the
server; then its width and its colours are changed for one check after the other.
"""

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accessibility import OF_COLOURS, thinned, violations
from browser import reload
from PIL import Image
from playwright.sync_api import Error, Page

from hybridlab import widgets

# Finds texts that reach beyond the page, or beyond a box that hides what does not fit. The content of a box that scrolls may be wider.
CUT = """(wide) => {
  const cut = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const boxes = new Map();
  const boxOf = (element) => {
    if (!boxes.has(element)) boxes.set(element, [getComputedStyle(element), element.getBoundingClientRect()]);
    return boxes.get(element);
  };
  const beyond = (rect, element) => {
    for (let each = element; each && each !== document.body; each = each.parentElement) {
      const [style, box] = boxOf(each);
      if (style.overflowX === "auto" || style.overflowX === "scroll") return false;
      const hides = style.overflowX !== "visible" && style.display !== "inline" && box.width > 2; // narrower: for screen readers only
      if (style.overflowX !== "visible" && box.width <= 2) return false;
      if (hides && (rect.right > box.right + 1 || rect.left < box.left - 1)) return true;
      if (style.position === "fixed") break;
    }
    return rect.right > wide + 1 || rect.left < -1;
  };
  while (walker.nextNode()) {
    const { currentNode: node } = walker;
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest("script, style, dialog:not([open]), select")) continue;
    range.selectNodeContents(node);
    if ([...range.getClientRects()].some((rect) => rect.width > 1 && beyond(rect, element))) cut.add(node.data.trim().slice(0, 60));
  }
  return [...cut];
}"""
# Finds boxes that scroll sideways although the Tab key reaches neither the box nor anything in it.
OUT_OF_REACH = """() => [...document.querySelectorAll("article *")].filter((each) => each.scrollWidth > each.clientWidth + 1
  && ["auto", "scroll"].includes(getComputedStyle(each).overflowX) && each.checkVisibility() && each.tabIndex < 0
  && !each.querySelector("a[href], button, select, input, [tabindex='0']")).map((each) => `${each.localName} ${each.className}`)"""
# Finds what is visible on paper, just before the browser prints (the page has already got the event).
ON_PAPER = """([cut, controls, pictures]) => addEventListener("beforeprint", () => {
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility({ opacityProperty: true }));
  const wide = document.documentElement.clientWidth;
  const reaching = seen(pictures).filter((each) => each.getBoundingClientRect().right > wide + 1);
  window.onPaper = {
    ground: [document.documentElement, document.body].map((each) => getComputedStyle(each).backgroundColor),
    left: seen(controls).map((each) => `${each.tagName.toLowerCase()} ${each.className}`),
    pictures: seen(pictures).length,
    reaching: reaching.map((each) => Math.round(each.getBoundingClientRect().right)),
    cut: eval(cut)(wide),
  };
})"""
# Finds rules in the style sheet of a view (sheets are named by the view's class) that also reach elements outside such views.
BEYOND = """(sheets) => {
  const told = [];
  for (const [name, css, own] of sheets) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    const rules = [...sheet.cssRules];
    for (const rule of rules) {
      if (rule instanceof CSSMediaRule || rule instanceof CSSContainerRule) rules.push(...rule.cssRules);
      else if (!(rule instanceof CSSStyleRule)) told.push(`${name}: ${rule.cssText.slice(0, 60)} is no rule of style`);
      else if (rule.cssRules.length) told.push(`${name}: ${rule.selectorText} holds other rules`);
      else {
        // the element that has a pseudo-element, and in every state
        const selector = rule.selectorText.replaceAll(/::[\\w-]+|:(hover|active|focus(-visible|-within)?)(?![\\w-])/g, ":not(none)");
        const reached = [...document.querySelectorAll(selector)].filter((each) => !each.closest(own));
        if (reached.length) told.push(`${name}: ${rule.selectorText} reaches a ${reached[0].localName} elsewhere`);
      }
    }
  }
  return told;
}"""
# Moves one control after the other to its end, and lets the view draw.
TO_THE_END = """async () => {
  for (const view of document.querySelectorAll(".hybridlab-view")) {
    const controls = () => [...view.querySelectorAll("select, [type=range]")].filter((each) => each.checkVisibility());
    for (let place = 0; place < controls().length; place++) {
      const control = controls()[place];
      if (control.options) control.selectedIndex = control.options.length - 1;
      else control.value = control.max;
      for (const event of ["input", "change"]) control.dispatchEvent(new Event(event, { bubbles: true }));
      await new Promise(queueMicrotask);
    }
  }
}"""
DRAWN = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
PHONE = {"is_mobile": True, "has_touch": True}
SCREEN = 900  # px, of a laptop whose window is 1280 px wide
OWN = re.compile(r"\.(hybridlab-(?!view\b)\w+)")  # the class of a kind of view
PICTURES = ".hybridlab-view :is(.picture, .plots) svg"
CONTROLS = "button, select, [type=range], .lab-bar, .bd-header, .bd-header-article, [class*=bd-sidebar], .prev-next-area"
HEAVIEST = 3_000_000  # bytes of a printed page
A4 = 718  # in px: 210 mm less two margins of 1 cm


def has_its_colours(page: Page, scheme: str) -> bool:
    return bool(page.evaluate("document.documentElement.dataset.theme") == scheme)


def show(page: Page, width: int, scheme: str) -> None:
    """Give the page another width and other colours, and wait until they are applied."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, media="screen", reduced_motion="reduce")
    page.wait_for_function(
        "([wide, scheme]) => innerWidth === wide && document.documentElement.dataset.theme === scheme", arg=[width, scheme]
    )
    page.evaluate(DRAWN)


def fits_a_phone(page: Page) -> None:
    """Raise AssertionError unless a page that is 360 pixels wide shows all of its texts, directly or in boxes that scroll."""
    assert page.evaluate("innerWidth") == 360, "the page is laid out wider than the phone"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360, "the page scrolls sideways"
    for found in (CUT, OUT_OF_REACH):  # the theme hides its sidebar; 300 ms later it makes boxes that scroll reachable by the Tab key
        try:
            page.wait_for_function(f"(width) => ({found})(width).length === 0", arg=360, polling=200)
        except Error:
            raise AssertionError("\n".join(page.evaluate(found, 360))) from None


def is_whole(page: Page, scheme: str) -> None:
    assert page.title()
    assert page.locator("h1:visible").count() == 1
    assert has_its_colours(page, scheme)


def sheets() -> list[tuple[str, str, str]]:
    """Return (name, style sheet, selector of its views) of every widget; two sheets must not be for the same class of views."""
    found = {str(getattr(widgets, name)._css): name for name in widgets.__all__}  # two widgets may share a sheet
    own = {css: sorted(set(OWN.findall(css))) for css in found}
    assert all(own.values())
    assert len(set().union(*own.values())) == sum(map(len, own.values()))
    return [(name, css, ", ".join(f".{each}" for each in own[css])) for css, name in found.items()]


def prints_on_white_paper(page: Page) -> None:
    """Raise AssertionError unless a page in dark colours is printed in light colours, complete and without controls."""
    page.evaluate(TO_THE_END)  # the widest pictures
    pictures = page.locator(PICTURES).count()
    assert bool(pictures) == (page.locator(".hybridlab-view").count() > 0)
    page.emulate_media(media="print")
    page.evaluate(ON_PAPER, [CUT, CONTROLS, PICTURES])
    page.evaluate(DRAWN)
    assert len(page.pdf(format="A4")) <= HEAVIEST
    paper = page.evaluate("window.onPaper")
    assert set(paper.pop("ground")) <= {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}
    assert paper == {"left": [], "pictures": pictures, "reaching": [], "cut": []}
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")  # again, after printing


def test_the_page_from_a_server_fits_a_phone_and_can_be_read_in_the_dark(new_page: Any, server: str, own_page: str) -> None:
    page = new_page(server + own_page, width=360, scheme="light", **PHONE)
    is_whole(page, "light")
    fits_a_phone(page)
    show(page, 320, "light")
    page.wait_for_function("document.documentElement.scrollWidth <= 320")  # the smallest phones
    show(page, 1280, "dark")
    thinned(page)
    found = violations(page, rules=OF_COLOURS)
    assert not found, "\n".join(found)


def test_the_page_from_a_file_is_accessible_fits_a_phone_in_the_dark_and_prints(new_page: Any, files: str, own_page: str) -> None:
    page = new_page(files + own_page, scheme="light", **PHONE)
    is_whole(page, "light")
    beyond = page.evaluate(BEYOND, sheets())
    assert not beyond, "\n".join(beyond)
    thinned(page)
    found = violations(page)
    assert not found, "\n".join(found)
    reload(page)
    show(page, 360, "dark")
    fits_a_phone(page)
    show(page, A4, "dark")
    prints_on_white_paper(page)


def ground_and_ink(page: Page) -> tuple[Any, float]:
    """Return the colour in the corner of the page's first figure, and the greatest contrast to it of any pixel in the figure."""
    shot = page.locator(".figure-on-page > svg").first.screenshot()
    picture = np.asarray(Image.open(BytesIO(shot)).convert("RGB")) / 255
    linear = np.where(picture <= 0.04045, picture / 12.92, ((picture + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
    low, high = np.minimum(linear, linear[2, 2]), np.maximum(linear, linear[2, 2])
    return (255 * picture[2, 2]).round().astype(int).tolist(), float(((high + 0.05) / (low + 0.05)).max())


@pytest.mark.parametrize("name", ["labs/lab04_ring.html", "book/gallery.html"])  # curves, and a timeline
def test_a_figure_has_the_ground_of_the_page_in_light_and_dark(new_page: Any, files: str, name: str) -> None:
    page = new_page(files + name, scheme="dark")
    for scheme in ("dark", "light"):
        show(page, 1280, scheme)
        ground, contrast = ground_and_ink(page)
        channels = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert ground == list(map(int, channels[:3]))
        assert sum(ground) < 150 if scheme == "dark" else sum(ground) > 700
        assert contrast > 12


def test_a_style_sheet_that_changes_the_views_of_others_is_seen(new_page: Any, files: str) -> None:
    page = new_page(files + "labs/lab03_bubbles_and_memory.html")
    planted = [(name, f"{css} .hybridlab-view p {{ padding-left: 1px }}", own) for name, css, own in sheets()]
    assert any(told.startswith("ErrorExplorer: .hybridlab-view p ") for told in page.evaluate(BEYOND, planted))
    assert page.evaluate(BEYOND, sheets()) == []


def test_axe_finds_planted_faults(new_page: Any, files: str) -> None:
    page = new_page(files + "book/intro.html", scheme="dark")
    page.evaluate("""document.querySelector("article h1").insertAdjacentHTML("afterend",
        '<img src="data:," /><p id="pale" style="color: #333">Dark on dark</p>')""")
    told = violations(page)
    assert [line.split(":")[0] for line in told] == ["color-contrast", "image-alt"]
    assert "#pale" in told[0]


def test_an_operation_without_words_is_found_among_many_that_look_like_it(new_page: Any, files: str) -> None:
    page = new_page(files + "labs/lab02_one_f_one_b.html")
    page.evaluate("""() => document.querySelector('.hybridlab-explorer .op[tabindex="0"]').removeAttribute("aria-label")""")
    thinned(page)
    assert len(violations(page, ".hybridlab-explorer")) == 1


def test_planted_texts_that_do_not_fit_are_seen(new_page: Any, files: str) -> None:
    page = new_page(files + "book/intro.html", width=360)
    assert page.evaluate(CUT, 360) == []
    page.evaluate("""document.querySelector("article h1").insertAdjacentHTML("afterend",
        '<div style="width: 9em; overflow: hidden; white-space: nowrap">hidden because it is longer than its box</div>' +
        '<div style="width: 9em; overflow: auto; white-space: nowrap">scrolls because it is longer than its box</div>' +
        '<div style="position: absolute; left: 300px; width: 200px">beyond the edge of the page, where nobody looks</div>')""")
    assert {text.split()[0] for text in page.evaluate(CUT, 360)} == {"hidden", "beyond"}


def test_a_planted_box_that_scrolls_and_cannot_be_reached_is_seen(new_page: Any, files: str) -> None:
    page = new_page(files + "book/intro.html", width=360)
    assert page.evaluate(OUT_OF_REACH) == []
    page.evaluate("""() => {
      const box = (marks) => `<div ${marks} style="width: 9em; overflow: auto"><p style="width: 20em">wide</p></div>`;
      const planted = box('class="unreachable"') + box('class="reachable" tabindex="0"');
      document.querySelector("article h1").insertAdjacentHTML("afterend", planted);
    }""")
    assert page.evaluate(OUT_OF_REACH) == ["div unreachable"]


@pytest.mark.parametrize("number", range(1, 18))
def test_a_figure_with_controls_stands_on_the_first_two_screens_of_a_lab(new_page: Any, site: Path, files: str, number: int) -> None:
    (lab,) = (site / "labs").glob(f"lab{number:02}_*.html")
    page = new_page(files + f"labs/{lab.name}")
    top = page.locator(".hybridlab-view:not(.hybridlab-bet)").first.evaluate("(view) => view.getBoundingClientRect().top + scrollY")
    assert 0 < top < 2 * SCREEN - 50, "a part of it can be seen"
