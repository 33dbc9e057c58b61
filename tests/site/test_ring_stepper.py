"""Test the ring stepper of lab 4 in a browser.

It is right at every step of up to eight ranks. Buttons, keys, the slider and the select box move it.
"""

from typing import Any

import pytest
from browser import held
from lab_views.kind import choose
from lab_views.ring import KIND, is_right
from playwright.sync_api import Page, expect

from hybridlab import published
from hybridlab.collectives import ring_all_reduce
from hybridlab.widgets import RingStepper

NewPage = Any


def correct(values: Any) -> Any:
    return ring_all_reduce(values, average=False, record=True).hops


def as_published(values: Any) -> Any:
    return published.published_ring(values, "FP32").hops


@pytest.mark.parametrize(("width", "sizes"), [(360, (6, 8)), (1280, (3, 8))])
def test_every_step_of_both_rings_is_right_and_every_text_keeps_inside_its_box(
    new_page: NewPage, server: str, width: int, sizes: tuple[int, ...]
) -> None:
    stepper = RingStepper({"correct": correct, "published": as_published}, sizes)
    view = held(new_page(server + KIND.lab, width=width, edit=KIND.showing(stepper)).locator(".hybridlab-ring").first)
    for ranks in sizes:
        choose(view, {"Ranks, D": str(ranks)})
        for step in range(2 * ranks - 1):
            choose(view, {"Step": str(step)})
            is_right(view, ("correct", "published"))
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width


def test_buttons_keys_slider_and_select_move(new_page: NewPage, server: str) -> None:
    page: Page = new_page(server + KIND.lab)
    view = KIND.views(page)[0]
    told = view.locator("output")
    choose(view, {"Ranks, D": "4"})
    for button, step in [("Back", 0), ("Next", 1), ("Next", 2), ("Last", 6), ("Next", 6), ("Back", 5), ("First", 0)]:
        view.get_by_role("button", name=button).click(force=True)  # at an end it is marked as disabled, but keeps the focus
        expect(told).to_contain_text(f"{step} of 6")
    for button, step in [("Last", 6), ("Back", 5), ("First", 0), ("Next", 1)]:
        view.get_by_role("button", name=button).press("Enter")
        expect(told).to_contain_text(f"{step} of 6")
    for key, step in [("ArrowRight", 2), ("ArrowLeft", 1), ("End", 6), ("ArrowRight", 6), ("Home", 0), ("Space", 1)]:
        page.keyboard.press(key)
        expect(told).to_contain_text(f"{step} of 6")
    view.get_by_role("slider").press("End")
    choose(view, {"Ranks, D": "2"})
    expect(told).to_contain_text("2 of 2")  # a step that fewer ranks do not have becomes their last step
    KIND.is_right(view)


@pytest.mark.parametrize(("width", "beside"), [(1280, True), (360, False)])
def test_rings_stand_side_by_side_where_there_is_room(new_page: NewPage, files: str, width: int, beside: bool) -> None:
    view = KIND.views(new_page(files + KIND.lab, width=width))[1]
    choose(view, {"Ranks, D": "4"})
    tops = view.locator(".rings svg").evaluate_all("(drawings) => drawings.map((each) => each.getBoundingClientRect().top)")
    assert (tops[0] == tops[1]) == beside
