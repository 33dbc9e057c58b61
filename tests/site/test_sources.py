"""Test the widgets as the sources of this checkout draw them, each on a page of its own.

These tests need a browser, but no built site.
"""

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

from playwright.sync_api import Locator, Page, expect
from test_views import MAKE

from hybridlab import widgets
from hybridlab.widgets import Bet, ErrorExplorer, MeshView, StepExplorer, TimelineExplorer, TimelineFilm

Alone = Callable[[Any], Locator]
Together = Callable[..., Page]
BET = Bet("sources.sooner", "Which is sooner?", choices=("GPipe", "1F1B"))
# the vertical space between each label and the focus ring of its control: negative if the ring covers the label
RINGS = """async (root) => {
  const light = (colour) => {
    const [red, green, blue] = colour.match(/[\\d.]+/g).map((each) => each / 255)
      .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  const ground = light(getComputedStyle(root).backgroundColor);
  const labelled = [...root.querySelectorAll("label")].filter((label) => label.control?.checkVisibility());
  const above = labelled.filter((label) => label.getBoundingClientRect().bottom <= label.control.getBoundingClientRect().top + 1);
  return above.map((label) => {
    label.control.focus({ focusVisible: true });
    const { outlineStyle, outlineOffset, outlineWidth, outlineColor } = getComputedStyle(label.control);
    if (outlineStyle === "none") throw new Error(`${label.textContent} has no ring`);
    if (contrast(light(outlineColor), ground) < 3) throw new Error(`the ring of ${label.textContent} cannot be seen`);
    const ring = Math.max(parseFloat(outlineOffset) + parseFloat(outlineWidth), 0);
    return label.control.getBoundingClientRect().top - ring - label.getBoundingClientRect().bottom;
  });
}"""
NUMBER_BET = Bet("sources.years", "How many years?", unit="years")
EACH = {
    **MAKE,
    "Bet": lambda: BET,
    "Revealed": lambda: BET.reveal("GPipe"),
    "TimelineFilm": lambda: TimelineFilm(("gpipe", "1f1b"), devices=2, microbatches=2),
}


def test_every_widget_is_drawn_here() -> None:
    assert set(EACH) == set(widgets.__all__)


def test_each_widget_is_drawn_without_a_fault_and_the_focus_ring_of_a_control_does_not_cover_its_label(together: Together) -> None:
    page = together(*(make() for make in EACH.values()), NUMBER_BET)
    for name, box in zip([*EACH, "a number"], page.locator(".live-widget").all(), strict=True):
        view = box.locator("> *")
        assert "hybridlab-" in str(view.get_attribute("class")), name
        assert view.locator("*").count() > 5, name
        if name in MAKE or name == "a number":
            spaces = view.evaluate(RINGS)
            assert spaces, name
            assert all(space >= -0.5 for space in spaces), (name, spaces)


def test_every_rank_of_a_mesh_can_be_chosen(alone: Alone) -> None:
    view = alone(MeshView(stages=2, replicas=3))
    assert view.get_by_role("radio").count() == 6


def test_a_legend_lists_forward_before_backward(alone: Alone) -> None:
    sizes: dict[str, Any] = {"devices": 2, "microbatches": 2}
    for widget in (TimelineExplorer("1f1b", **sizes), StepExplorer("1f1b", **sizes, replicas=1, ring_step=1)):
        samples = alone(widget).locator(".legend li").all_text_contents()
        assert samples[:3] == ["Fforward", "Bbackward", "idle"]


def test_lines_of_an_error_explorer_are_named_with_their_all_reduce_only_where_both_are_shown(alone: Alone) -> None:
    view = alone(ErrorExplorer((2, 4), distributions="normal", size=2048))
    names, picture = view.locator(".picture text.end"), view.locator(".picture")
    formats = view.locator("fieldset label span").all_text_contents()
    both = [f"{name} ({way})" for way in ("ring", "one-shot") for name in formats]
    for width, (way, wanted) in product((1280, 600, 360), {"ring": formats, "one-shot": formats, "both": both}.items()):
        view.page.set_viewport_size({"width": width, "height": 900})
        expect(picture.locator("svg")).to_have_attribute("width", str(picture.evaluate("(box) => box.clientWidth")))
        view.get_by_label("All-reduce").select_option(way)
        assert view.locator("table.here tbody th").all_text_contents() == wanted
        assert sorted(names.all_text_contents()) == (
            sorted(wanted) if width >= 800 else [] if width == 360 or way == "both" else sorted(formats)
        )
        assert ("hollow" in str(view.locator(".key").text_content())) == (way == "both")
        left, right = picture.evaluate(
            "(box) => [box.querySelector('.axis').getBoundingClientRect().left, box.getBoundingClientRect().right]"
        )
        boxes = [each.bounding_box() for each in names.all()]
        assert all(box and left < box["x"] and box["x"] + box["width"] <= right for box in boxes), "a name is cut"
        tops = sorted(box["y"] for box in boxes if box)
        assert all(low - top >= 14 for top, low in pairwise(tops)), "names overlap"


def test_a_rank_and_its_number_stand_on_one_line_on_a_phone(alone: Alone) -> None:
    view = alone(MeshView(stages=3, replicas=4, show={"rank": 4}))
    view.page.set_viewport_size({"width": 320, "height": 740})
    lines = """(cells) => cells.map((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getClientRects().length;
    })"""
    assert set(view.locator("td").evaluate_all(lines)) == {1}
    assert view.evaluate("(root) => root.scrollWidth <= root.clientWidth")
