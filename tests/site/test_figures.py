"""Test the static figures of the pages in a real browser: as matplotlib draws them, readable in light and dark, whole on a phone."""

from base64 import b64encode
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from page_figures import on_page
from PIL import Image
from playwright.sync_api import Browser, Locator

from hybridlab import Costs, build, hybrid_step, plot, simulate

# timelines, curves, marks, points and stacks
PAGES = [
    "labs/lab03_bubbles_and_memory.html",
    "labs/lab06_hybrid_step.html",
    "labs/lab10_scaling.html",
    "book/gallery.html",
    "book/trust.html",
]
# The contrast of each text of a figure to what is behind its middle: the first shape there with a plain colour, or the page.
CONTRASTS = """async (svg) => {
  svg.scrollIntoView({ block: "center" });
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))); // a figure far from the screen is not drawn
  const luminance = (colour) => {
    const [red, green, blue] = colour.match(/[\\d.]+/g).map((each) => each / 255).map((each) =>
      each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  return [...svg.querySelectorAll("text")].map((text) => {
    text.scrollIntoView({ block: "center" });
    const { left, right, top, bottom } = text.getBoundingClientRect();
    const behind = document.elementsFromPoint((left + right) / 2, (top + bottom) / 2)
      .filter((each) => svg.contains(each) && ["path", "use", "rect"].includes(each.localName)).map((each) => getComputedStyle(each).fill)
      .find((fill) => fill.startsWith("rgb("));
    const [ink, ground] = [getComputedStyle(text).fill, behind ?? getComputedStyle(document.body).backgroundColor].map(luminance);
    return [text.textContent, (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)];
  });
}"""


def seen_figures(page: Any) -> list[Locator]:
    figures = page.locator(".figure-on-page > svg")
    return [figures.nth(place) for place in range(figures.count()) if figures.nth(place).is_visible()]


SIZES = "(all) => all.map((each) => [each.clientWidth, each.clientHeight])"


@pytest.mark.parametrize("width", [1280, 360])
def test_a_figure_that_is_not_drawn_yet_takes_the_room_that_it_will_need(new_page: Any, files: str, width: int) -> None:
    page = new_page(files + "book/gallery.html", width=width)
    figures = page.locator(".figure-on-page > svg")
    before = figures.evaluate_all(SIZES)
    assert figures.evaluate_all("(all) => all.every((each) => getComputedStyle(each).contentVisibility === 'auto')")
    page.add_style_tag(content=".figure-on-page > svg { content-visibility: visible !important }")
    assert figures.evaluate_all(SIZES) == before
    assert all(width and height for width, height in before)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_text_of_a_figure_can_be_read(new_page: Any, files: str, name: str, scheme: str) -> None:
    page = new_page(files + name, scheme=scheme)
    figures = seen_figures(page)
    assert figures
    for figure in figures:
        contrasts = figure.evaluate(CONTRASTS)
        assert contrasts
        assert not [each for each in contrasts if each[1] < 4.5]


def test_a_text_that_cannot_be_read_is_found(new_page: Any, files: str) -> None:
    page = new_page(files + PAGES[0], scheme="dark")
    figure = seen_figures(page)[0]
    figure.evaluate("(svg) => { svg.querySelector('text').style.fill = '#333333' }")
    assert [text for text, contrast in figure.evaluate(CONTRASTS) if contrast < 4.5] == [figure.locator("text").first.text_content()]


def test_a_phone_shows_the_whole_figure_and_enlarges_it(new_page: Any, files: str) -> None:
    page = new_page(files + PAGES[0], width=360)
    box = page.locator(".figure-on-page").first
    wide = box.bounding_box()["width"]
    assert box.locator("svg").bounding_box()["width"] == pytest.approx(wide, abs=1)
    choice = box.get_by_role("checkbox", name="Enlarge the figure")
    choice.focus()
    page.keyboard.press("Space")
    assert box.locator("svg").bounding_box()["width"] == pytest.approx(720, abs=1)
    assert box.evaluate("(box) => [box.scrollWidth > box.clientWidth, document.documentElement.scrollWidth]") == [True, 360]
    page.keyboard.press("Space")
    assert box.locator("svg").bounding_box()["width"] == pytest.approx(wide, abs=1)
    page.set_viewport_size({"width": 1280, "height": 900})
    assert not choice.is_visible()


FIGURES = {
    "step": lambda: plot.timeline(
        hybrid_step(build("zb-h1", 2, 4), Costs(forward=1, backward=2, p2p=0.5), 2, ring_step=1, optimiser=1).timeline
    ),
    "pairs": lambda: plot.timeline(simulate(build("dualpipe", 4, 8), Costs(forward=1, backward=2)), activations=True),
    "lines": lambda: plot.lines([1, 2, 4, 8], {f"line {each}": [each, 2 * each, 5, 3] for each in range(6)}, x_label="x", y_label="y"),
    "stacks": lambda: plot.stacks({"a": {"one": 1, "two": 2}, "b": {"one": 3, "two": 1}}, x_label="x"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_on_a_light_page_a_figure_looks_as_matplotlib_wrote_it(browser: Browser, name: str) -> None:
    svg = FIGURES[name]().svg()
    page = browser.new_page(viewport={"width": 800, "height": 1200})
    shots = []
    for html in (f"<img alt='' src='data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}'>", on_page(svg, "words", "a-")):
        style = "body { margin: 0; background: white; } img, svg { display: block; width: 720px; height: auto; }"
        page.set_content(f"<!DOCTYPE html><style>{style}</style>{html}")
        shot = Image.open(BytesIO(page.locator("img, svg").first.screenshot())).convert("RGB")
        shots.append(np.asarray(shot.reduce(4)).astype(int))  # a text may stand half a pixel lower
    page.close()
    assert shots[0].shape == shots[1].shape
    assert np.abs(shots[0] - shots[1]).max() < 64
