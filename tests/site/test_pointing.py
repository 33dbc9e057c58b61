"""Test that the pictures with a marker answer mouse, touch and keys in the same way, each widget alone on a page.

These tests need a browser, but no built site. A place in a picture is found by the number that the axis has there.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from accessibility import violations
from missing import here
from playwright.sync_api import Locator, Page, expect
from sweep_tables import some_table
from test_views import MAKE
from visits import DRAWN, as_new, in_order

from hybridlab.widgets import ErrorExplorer, SweepExplorer

Alone = Callable[[Any], Locator]


class Case(NamedTuple):
    make: Callable[[], Any]
    slider: str  # its label
    told: tuple[str, str]  # where the page says what is read, and the words before and after the value
    values: tuple[int, int, int]  # three values of the axis; the marker stands at the first
    picture: str = ".picture"


CASES = {
    "errors": Case(
        lambda: ErrorExplorer((2, 4, 8), distributions="normal", size=64, show={"ranks": 4}),
        "Ranks at the marker", ("table.here caption", r"On {} ranks"), (4, 2, 8),
    ),
    "sweep": Case(
        lambda: SweepExplorer(some_table(), "devices", show={"at": 3}), "Read at Devices K", (".told", r"at Devices K = {}[:,]"), (3, 2, 8)
    ),
    "training": Case(MAKE["TrainingCurves"], "Read at step", ("caption", r"step {} of 3"), (3, 1, 2), ".plots"),
}  # fmt: skip
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


# in one script, because the picture is drawn anew when the pointer moves
WHERE = """(root, [plot, text]) => {
  const svg = root.querySelectorAll(".picture svg, svg.plot")[plot];
  svg.scrollIntoView({ block: "nearest" });
  const tick = [...svg.querySelectorAll(".tick:not(.left, .row)")].find((each) => each.textContent === text);
  const { x, y, width } = tick.getBoundingClientRect();
  return [x + width / 2, y - 60];
}"""


def where(view: Locator, value: int, plot: int = 0) -> tuple[float, float]:
    """Return the point of the window that is 60 px above the number of the axis, in the middle of the number."""
    x, y = view.evaluate(WHERE, [plot, str(value)])
    return float(x), float(y)


def reads(view: Locator, case: Case, value: int) -> None:
    """Wait until the page says what it says at a value and the marker stands there."""
    selector, words = case.told
    expect(view.locator(selector)).to_have_text(re.compile(words.format(value)))
    for plot in range(view.locator("svg .marker").count()):
        marker = view.locator("svg .marker").nth(plot).bounding_box()
        assert marker
        assert abs(marker["x"] + marker["width"] / 2 - where(view, value, plot)[0]) <= 0.6


def slider_at(view: Locator, case: Case, value: int) -> None:
    expect(view.locator(".field").filter(has_text=case.slider).locator("output")).to_have_text(str(value))


def the_pointer_tells_and_changes_no_setting(page: Page, case: Case) -> None:
    view = page.locator(".live-widget > *")
    first, *others = case.values
    told = view.locator("p[role=status]")
    for plot in range(view.locator("svg .marker").count()):
        for value in others:
            view.page.mouse.move(*where(view, value, plot))
            reads(view, case, value)
            slider_at(view, case, first)
            expect(told).to_have_attribute("aria-live", "off")  # a screen reader would read every place on the way
        view.page.mouse.move(1, 1)
        reads(view, case, first)
        expect(told).to_have_attribute("aria-live", "polite")


def a_click_keeps_until_escape_or_a_click_beside_lets_go(page: Page, case: Case) -> None:
    view = page.locator(".live-widget > *")
    page, picture = view.page, view.locator(case.picture)
    _, one, other = case.values
    for let_go in (lambda: page.keyboard.press("Escape"), lambda: view.locator("table").first.click(position={"x": 1, "y": 1})):
        page.mouse.click(*where(view, one))
        expect(picture).to_have_class(re.compile("kept"))
        page.mouse.move(*where(view, other))
        reads(view, case, one)
        let_go()
        expect(picture).not_to_have_class(re.compile("kept"))
        page.mouse.move(*where(view, other))
        reads(view, case, other)
        page.mouse.move(1, 1)
        reads(view, case, one)
        slider_at(view, case, one)


def arrow_keys_move_the_marker_after_a_click(page: Page, case: Case) -> None:
    view = page.locator(".live-widget > *")
    low, middle, high = sorted(case.values)
    view.page.mouse.click(*where(view, middle))
    view.page.mouse.move(1, 1)
    for key, value in (("ArrowRight", high), ("ArrowLeft", middle), ("ArrowLeft", low), ("End", high)):
        view.page.keyboard.press(key)
        reads(view, case, value)
        slider_at(view, case, value)
        expect(view.locator(case.picture)).not_to_have_class(re.compile("kept"))


def a_drag_keeps_where_it_ends(page: Page, case: Case) -> None:
    view = page.locator(".live-widget > *")
    first, one, other = case.values
    view.page.mouse.move(*where(view, first))
    view.page.mouse.down()
    for value in (one, other):
        view.page.mouse.move(*where(view, value), steps=3)
        reads(view, case, value)
    view.page.mouse.up()
    view.page.mouse.move(1, 1)
    reads(view, case, other)
    slider_at(view, case, other)


def a_finger_keeps_where_it_taps_and_where_it_is_lifted_after_a_drag(page: Page, case: Case) -> None:
    view = page.locator(".live-widget > *")
    view.page.set_viewport_size({"width": 360, "height": 800})
    view.page.evaluate(DRAWN)
    tools = view.page.context.new_cdp_session(view.page)
    tools.send("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def touch(kind: str, *points: tuple[float, float]) -> None:
        tools.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": [{"x": x, "y": y} for x, y in points]})

    first, one, other = case.values
    touch("Start", where(view, one))
    touch("End")
    reads(view, case, one)
    slider_at(view, case, one)
    touch("Start", where(view, one))
    (start, y), (end, _) = where(view, one), where(view, other)
    for part in (0.2, 0.6, 1):
        touch("Move", (start + part * (end - start), y))
    touch("End")
    reads(view, case, other)
    slider_at(view, case, other)
    assert view.page.evaluate("scrollX") == 0
    assert first not in (one, other)
    tools.send("Emulation.setTouchEmulationEnabled", {"enabled": False})


def a_kept_place_is_seen_and_is_accessible(page: Page, case: Case) -> None:
    view = page.locator(".live-widget > *")
    marker = view.locator("svg .marker").first
    thin = marker.evaluate("(line) => parseFloat(getComputedStyle(line).strokeWidth)")
    view.page.mouse.click(*where(view, case.values[1]))
    assert marker.evaluate("(line) => parseFloat(getComputedStyle(line).strokeWidth)") >= thin + 1
    if here("axe"):
        found = violations(view.page, ".hybridlab-view")
        assert not found, "\n".join(found)


@each_case
def test_a_picture_with_a_marker(alone: Alone, case: Case) -> None:
    questions = (
        the_pointer_tells_and_changes_no_setting,
        a_click_keeps_until_escape_or_a_click_beside_lets_go,
        arrow_keys_move_the_marker_after_a_click,
        a_drag_keeps_where_it_ends,
        a_kept_place_is_seen_and_is_accessible,
        a_finger_keeps_where_it_taps_and_where_it_is_lifted_after_a_drag,
    )
    in_order(alone(case.make()).page, questions, case, again=as_new)
