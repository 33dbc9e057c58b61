"""Test the static figures of the pages in a real browser: as matplotlib draws them, readable in light and dark, whole on a phone."""

import re
from base64 import b64encode
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from page_figures import on_page
from PIL import Image
from playwright.sync_api import Browser, Page
from test_views import MAKE
from visits import show

from hybridlab import Costs, build, hybrid_step, plot, simulate
from hybridlab.widgets import TimelineFilm

SIZES = "(all) => all.map((each) => [each.clientWidth, each.clientHeight])"


@in_turn("width", [1280, 360])
def test_a_figure_that_is_not_drawn_yet_takes_the_room_that_it_will_need(new_page: Any, files: str, width: int) -> None:
    page = new_page(files + "book/gallery.html", width=width)
    figures = page.locator(".figure-on-page > svg")
    before = figures.evaluate_all(SIZES)
    assert figures.evaluate_all("(all) => all.every((each) => getComputedStyle(each).contentVisibility === 'auto')")
    page.add_style_tag(content=".figure-on-page > svg { content-visibility: visible !important }")
    assert figures.evaluate_all(SIZES) == before
    assert all(width and height for width, height in before)


def ground_and_ink(page: Page) -> tuple[Any, float]:
    """Return the colour in the corner of the page's first figure, and the greatest contrast to it of any pixel in the figure."""
    shot = page.locator(".figure-on-page > svg").first.screenshot()
    picture = np.asarray(Image.open(BytesIO(shot)).convert("RGB")) / 255
    linear = np.where(picture <= 0.04045, picture / 12.92, ((picture + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
    low, high = np.minimum(linear, linear[2, 2]), np.maximum(linear, linear[2, 2])
    return (255 * picture[2, 2]).round().astype(int).tolist(), float(((high + 0.05) / (low + 0.05)).max())


@in_turn("name", ["labs/lab04_ring.html", "book/gallery.html"])  # curves, and a timeline
def test_a_figure_has_the_ground_of_the_page_in_light_and_dark(new_page: Any, files: str, name: str) -> None:
    page = new_page(files + name, scheme="dark")
    for scheme in ("dark", "light"):
        show(page, 1280, scheme)
        ground, contrast = ground_and_ink(page)
        channels = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert ground == list(map(int, channels[:3]))
        assert sum(ground) < 150 if scheme == "dark" else sum(ground) > 700
        assert contrast > 12


def test_a_phone_shows_the_whole_figure_and_enlarges_it(new_page: Any, files: str) -> None:
    page = new_page(files + "labs/lab03_bubbles_and_memory.html", width=360)
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


@in_turn("name", FIGURES)
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


# The contrast of each text of a figure to the shape below its middle, or to the page. A shape through which one sees is passed over.
CONTRASTS = """() => [...document.querySelectorAll("svg text")].map((text) => {
  const { x, y, width, height } = text.getBoundingClientRect();
  const clear = (each) => ["none", ""].includes(each.fill) || each.fill.startsWith("url") || Number(each.fillOpacity) < 1;
  const shapes = document.elementsFromPoint(x + width / 2, y + height / 2).filter((each) => each.matches("svg :is(path, use, rect)"));
  const below = shapes.map((each) => getComputedStyle(each)).find((each) => !clear(each));
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).map((each) => Number(each) / 255);
    const [r, g, b] = parts.map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const lights = [getComputedStyle(text).fill, below?.fill ?? getComputedStyle(document.body).backgroundColor].map(light);
  return [Math.max(...lights) / Math.min(...lights), text.textContent, below?.fill];
})"""
# the colours of the theme, as in a page of the site
PAGE_COLOURS = """:root { color-scheme: %s; --pst-color-text-base: %s; --pst-color-text-muted: %s; --pst-color-background: %s; }
  body { margin: 0; background: var(--pst-color-background); } svg { display: block; width: 720px; pointer-events: all; }"""
STILLS = {name: lambda make=make: make().still() for name, make in MAKE.items()}
STILLS["TimelineFilm"] = lambda: TimelineFilm(("1f1b", "zb-h1"), devices=2, microbatches=2).still()


@in_turn("name", [*STILLS, *FIGURES])
def test_each_text_of_a_figure_has_contrast_to_what_is_below_it(browser: Browser, name: str) -> None:
    figure = on_page((STILLS | FIGURES)[name]().svg(), "words", "a-")
    page = browser.new_page(viewport={"width": 800, "height": 3000})
    for colours in (("light", "#222832", "#48566b", "#ffffff"), ("dark", "#ced6dd", "#9ca4af", "#121212")):
        page.set_content(f"<!DOCTYPE html><style>{PAGE_COLOURS % colours}</style>{figure}")
        found = page.evaluate(CONTRASTS)
        assert found
        assert [each for each in found if each[0] < 4.5] == [], colours[0]
    page.close()
