"""Test in a browser how the moving picture of README fills in."""

from cases import in_turn
from first_screen import MOVING, TICK
from playwright.sync_api import Browser, Page

PAUSED = "<style>* { animation-play-state: paused !important; margin: 0 }</style>"
GO_TO = """(time) => {
  globalThis.every ??= document.getAnimations();
  for (const each of every) each.currentTime = time;
}"""
SHOWN = """() => [
  [...document.querySelectorAll(".step")].filter((each) => getComputedStyle(each).opacity === "1").length,
  ...[...document.querySelectorAll(".figure")].filter((each) => getComputedStyle(each).visibility === "visible"
    && each.checkVisibility({ opacityProperty: true })).map((each) => each.firstChild.textContent),
]"""


def opened(browser: Browser, motion: str, scheme: str = "light") -> Page:
    page = browser.new_page(viewport={"width": 1000, "height": 700}, reduced_motion=motion, color_scheme=scheme)
    page.set_content(PAUSED + MOVING.read_text(encoding="utf-8"))
    return page


@in_turn("scheme", ["light", "dark"])
def test_the_picture_ends_as_it_stands_without_motion(browser: Browser, scheme: str) -> None:
    still, moving = (opened(browser, motion, scheme) for motion in ("reduce", "no-preference"))
    assert still.evaluate("document.getAnimations().length") == 0
    assert still.evaluate(SHOWN) == [33 + 33 + 27, "33", "33", "27"]
    moving.evaluate(GO_TO, 1000)
    assert moving.screenshot() != still.screenshot()
    moving.evaluate(GO_TO, 6500)
    assert moving.screenshot() == still.screenshot()
    still.close()
    moving.close()


def test_the_schedules_fill_in_one_after_the_other(browser: Browser) -> None:
    page = opened(browser, "no-preference")
    ended = ["33", "33", "27"]
    for step, figures in ((0, ["1"]), (12, ["13"]), (33, ["33", "1"]), (65, ended[:2]), (66, [*ended[:2], "1"]), (92, ended)):
        page.evaluate(GO_TO, (step + 0.5) * TICK)
        assert page.evaluate(SHOWN) == [step, *figures]
    page.close()
