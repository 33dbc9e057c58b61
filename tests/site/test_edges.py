"""Test the sign that a box scrolls: the edge behind which there is more fades."""

from collections.abc import Callable
from pathlib import Path

from cases import in_turn
from playwright.sync_api import Browser, Page

from hybridlab.widgets import MeshView

SHEET = Path(__file__).resolve().parents[2] / "book/_assets/site.css"
PAGE = """<!DOCTYPE html><style>{sheet} .box {{ width: 300px; overflow-x: auto; }}</style>
<div class="highlight"><pre class="box" tabindex="0">{line}</pre></div><div class="highlight"><pre class="box">short</pre></div>"""
# Gives the opacity of the mask at the left edge and at the right edge of each box: 1 where nothing fades.
FADES = """() => [...document.querySelectorAll(".box")].map((box) => {
  const mask = getComputedStyle(box).maskImage;
  const clear = "rgba(0, 0, 0, 0)";
  const rightwards = mask.startsWith("linear-gradient(to right");
  const first = mask.includes(`(to right, ${clear}`) || (!rightwards && mask.endsWith(`${clear})`));
  const last = mask.includes(`(to left, ${clear}`) || (rightwards && mask.endsWith(`${clear})`));
  return [first, last];
})"""


@in_turn("place, left, right", [(0, False, True), (0.5, True, True), (1, True, False)])
def test_an_edge_fades_where_there_is_more_behind_it(browser: Browser, place: float, left: bool, right: bool) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 600})
    page.set_content(PAGE.format(sheet=SHEET.read_text(encoding="utf-8"), line="a long line of code " * 10))
    page.evaluate("(place) => { const b = document.querySelector('.box'); b.scrollLeft = place * (b.scrollWidth - b.clientWidth); }", place)
    page.wait_for_function("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    assert page.evaluate(FADES) == [[left, right], [False, False]], "a box with nothing more to show has no such sign"
    page.locator(".box").first.focus()
    page.keyboard.press("Shift")  # now the focus is one of the keyboard, and its ring must be whole
    assert page.evaluate(FADES)[0] == [False, False]
    page.locator(".box").first.blur()
    page.emulate_media(media="print")
    assert page.evaluate(FADES) == [[False, False]] * 2
    page.close()


@in_turn("replicas, top, end", [(6, "1", "0"), (2, "0", "0")])
def test_on_a_phone_the_lower_edge_of_a_picture_fades_while_there_is_more_below(
    together: Callable[..., Page], replicas: int, top: str, end: str
) -> None:
    page = together(MeshView((3,), (replicas,)))
    page.set_viewport_size({"width": 360, "height": 740})
    drawn = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
    for place, wanted in ((0, top), (9999, end)):
        page.locator(".picture").evaluate("(box, place) => (box.scrollTop = place)", place)
        page.evaluate(drawn)
        assert page.locator(".picture").evaluate("(box) => getComputedStyle(box, '::after').opacity") == wanted
    page.set_viewport_size({"width": 1280, "height": 740})
    assert page.locator(".picture").evaluate("(box) => getComputedStyle(box, '::after').content") == "none"
