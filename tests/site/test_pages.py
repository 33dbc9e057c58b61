"""Every page, light and dark, from files and from a server: it loads whole, is accessible, fits a phone and prints on white paper."""

from typing import Any

import pytest
from accessibility import violations
from playwright.sync_api import Page

from hybridlab import widgets

# texts that reach beyond the page, or beyond a box that hides what does not fit; what scrolls in a box of its own may be wider
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
# on paper: what is to be seen, when the browser is about to print (the page has then been told so)
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
# what has changed in the look of the views since the last call: of one element of each tag, class and parent's class in each view
CHANGED = """() => {
  const [before, now] = [window.looks ?? new Map(), (window.looks = new Map())];
  [...document.querySelectorAll(".hybridlab-view")].forEach((view, place) => {
    for (const part of [view, ...view.querySelectorAll("*")]) {
      const classes = [part.parentElement, part].map((each) => each.getAttribute("class"));
      const name = [place, view.className, part.localName, ...classes].join(" ");
      if (now.has(name)) continue;
      const style = getComputedStyle(part);
      now.set(name, new Map([...style].map((each) => [each, style.getPropertyValue(each)])));
    }
  });
  return [...now].flatMap(([name, look]) => [...look].filter(([each, value]) => before.get(name)?.get(each) !== value)
    .map(([each, value]) => `${name}: ${each} ${before.get(name)?.get(each)} -> ${value}`));
}"""
PICTURES = ".hybridlab-view :is(.picture, .plots) svg"
CONTROLS = "button, select, [type=range], .lab-bar, .bd-header, .bd-header-article, [class*=bd-sidebar], .prev-next-area"
HEAVIEST = 3_000_000  # bytes of a printed page
A4 = 718  # px: 210 mm less two margins of 1 cm


def has_its_colours(page: Page, scheme: str) -> bool:
    return bool(page.evaluate("document.documentElement.dataset.theme") == scheme)


@pytest.mark.parametrize(("way", "scheme"), [("files", "light"), ("server", "dark")])
def test_the_page_loads_whole_and_is_accessible(new_page: Any, request: Any, page_name: str, way: str, scheme: str) -> None:
    page = new_page(request.getfixturevalue(way) + page_name, scheme=scheme)
    assert page.title()
    assert page.locator("h1:visible").count() == 1
    assert has_its_colours(page, scheme)
    found = violations(page)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("way", "scheme"), [("server", "light"), ("files", "dark")])
def test_the_page_fits_a_phone(new_page: Any, request: Any, page_name: str, way: str, scheme: str) -> None:
    phone = {"width": 360, "is_mobile": True, "has_touch": True, "device_scale_factor": 3}
    page = new_page(request.getfixturevalue(way) + page_name, scheme=scheme, **phone)
    assert has_its_colours(page, scheme)
    assert page.evaluate("innerWidth") == 360, "the page is laid out wider than the phone"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360, "the page scrolls sideways"
    cut = page.evaluate(CUT, 360)
    assert not cut, "\n".join(cut)


def test_the_page_prints_on_white_paper_without_controls(new_page: Any, files: str, page_name: str) -> None:
    page = new_page(files + page_name, width=A4, scheme="dark")
    for control in page.locator(".hybridlab-view").locator("select:visible, [type=range]:visible").all():
        control.press("End")  # the widest picture
    pictures = page.locator(PICTURES).count()
    assert bool(pictures) == (page.locator(".hybridlab-view").count() > 0)
    page.emulate_media(media="print")
    page.evaluate(ON_PAPER, [CUT, CONTROLS, PICTURES])
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert len(page.pdf(format="A4")) <= HEAVIEST
    paper = page.evaluate("window.onPaper")
    assert set(paper.pop("ground")) <= {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}
    assert paper == {"left": [], "pictures": pictures, "reaching": [], "cut": []}
    assert has_its_colours(page, "dark"), "after printing, the page is dark again"


def test_no_kind_of_view_changes_the_look_of_another(new_page: Any, files: str, lab: str) -> None:
    page = new_page(files + lab)
    assert len(page.evaluate(CHANGED)) > 1000  # all is new
    for name in widgets.__all__:
        page.add_style_tag(content=getattr(widgets, name)._css)
    changed = page.evaluate(CHANGED)
    assert not changed, "\n".join(changed[:20])
    page.add_style_tag(content=".hybridlab-view p { padding-left: 1px }")
    assert page.evaluate(CHANGED), "a planted change is not seen"


def test_axe_finds_planted_faults(new_page: Any, files: str) -> None:
    page = new_page(files + "book/intro.html", scheme="dark")
    page.evaluate("""document.querySelector("article h1").insertAdjacentHTML("afterend",
        '<img src="data:," /><p id="pale" style="color: #333">Dark on dark</p>')""")
    told = violations(page)
    assert [line.split(":")[0] for line in told] == ["color-contrast", "image-alt"]
    assert "#pale" in told[0]


def test_planted_texts_that_do_not_fit_are_seen(new_page: Any, files: str) -> None:
    page = new_page(files + "book/intro.html", width=360)
    assert page.evaluate(CUT, 360) == []
    page.evaluate("""document.querySelector("article h1").insertAdjacentHTML("afterend",
        '<div style="width: 9em; overflow: hidden; white-space: nowrap">hidden because it is longer than its box</div>' +
        '<div style="width: 9em; overflow: auto; white-space: nowrap">scrolls because it is longer than its box</div>' +
        '<div style="position: absolute; left: 300px; width: 200px">beyond the edge of the page, where nobody looks</div>')""")
    assert {text.split()[0] for text in page.evaluate(CUT, 360)} == {"hidden", "beyond"}
