"""Test what the film of timelines plays: the figures that are counted along are those of the timelines cut off at each time."""

from collections.abc import Callable
from typing import Any

import numpy as np
from playwright.sync_api import Locator, expect
from visits import THE_VIEW, as_new, in_order

from hybridlab import Costs, Timeline, build, simulate
from hybridlab.widgets import TimelineExplorer, TimelineFilm

Alone = Callable[[Any], Locator]
NAMES = ("gpipe", "1f1b", "zb-h1")


def timelines() -> list[Timeline]:
    return [simulate(build(name, 4, 8), Costs(forward=1, backward=2, unit=None)) for name in NAMES]


def film(alone: Alone) -> Locator:
    return alone(TimelineFilm(NAMES, devices=4, microbatches=8))


def rows(view: Locator) -> list[list[str]]:
    return [head.locator("b").all_text_contents() for head in view.locator(".title").all()]


def counted(run: Timeline, time: float) -> list[str]:
    """Return the figures above a timeline that is cut off at a time."""
    if time == 0:
        return ["", "", ""]
    busy = np.clip(run.end, 0, time) - np.clip(run.start, 0, time)
    most = 0
    for device in range(4):
        mine = [row for row in range(len(run.ops)) if run.device[row] == device]
        starts = [float(run.start[row]) for row in mine if run.ops[row].kind == "F" and run.start[row] < time]
        ends = [float(run.end[row]) for row in mine if run.ops[row].kind in "BW"]
        most = max([most, *(sum(other <= start for other in starts) - sum(end <= start for end in ends) for start in starts)])
    return [f"{time:g}", f"{1 - busy.sum() / (4 * time):.3f}", str(most)]


def without_motion_the_finished_picture_stands_there(view: Locator) -> None:
    assert rows(view) == [["33", "0.273", "8"], ["33", "0.273", "4"], ["27", "0.111", "4"]]  # as in the papers' figures
    expect(view.get_by_role("button", name="Play")).to_be_visible()
    assert [veil.is_visible() for veil in view.locator(".veil").all()] == [False] * 3


def the_figures_are_counted_along(view: Locator) -> None:
    runs = timelines()
    slider = view.locator("input[id$=-time]")
    for time in (0, 4, 12.5, 33, 40, 66, 70.5, 80, 93):
        slider.evaluate("(each, time) => { each.value = time; each.dispatchEvent(new Event('input', { bubbles: true })); }", time)
        begins = (0, 33, 66)
        wanted = [counted(run, min(max(time - begin, 0), run.makespan)) for run, begin in zip(runs, begins, strict=True)]
        assert rows(view) == wanted, time


def a_schedule_that_has_not_begun_waits_for_nothing(view: Locator) -> None:
    view.locator("input[id$=-time]").evaluate("(each) => { each.value = 40; each.dispatchEvent(new Event('input', { bubbles: true })); }")
    told = """(panel) => [...panel.querySelectorAll('.waits, .peak, .cursor, span')]
      .filter((each) => each.checkVisibility({ visibilityProperty: true })).map((each) => each.textContent)"""
    *begun, ahead = (panel.evaluate(told) for panel in view.locator(".panel").all())
    assert ahead == ["time"], "the name of the axis"
    assert "waits for 1B0" in begun[1]


def paper_shows_the_end(view: Locator) -> None:
    view.locator("input[id$=-time]").press("Home")
    view.page.pdf()
    assert [row[0] for row in rows(view)] == ["33", "33", "27"]
    assert [veil.is_visible() for veil in view.locator(".veil").all()] == [False] * 3


def it_begins_by_itself_and_can_be_stopped(view: Locator) -> None:
    view.page.emulate_media(reduced_motion="no-preference")
    view.page.reload()
    view.get_by_role("button", name="Pause").click()
    expect(view.get_by_role("button", name="Play")).to_be_visible()
    stopped = rows(view)
    view.page.evaluate("new Promise((passed) => setTimeout(passed, 200))")  # some frames, in which a film that plays would go on
    assert rows(view) == stopped


def a_link_to_a_time_stands_there_and_the_address_follows_the_reader(view: Locator) -> None:
    page = view.page
    page.emulate_media(reduced_motion="no-preference")
    page.evaluate("location.hash = '#view1?time=40'")
    page.reload()
    page.evaluate("new Promise((passed) => setTimeout(passed, 200))")  # some frames, in which a film that plays would go on
    assert [row[0] for row in rows(view)] == ["33", "7", ""]
    view.locator("input[id$=-time]").press("Home")
    page.wait_for_function("location.hash === '#view1?time=0'")
    page.evaluate("history.replaceState(null, '', location.pathname)")


def it_is_played_to_the_end(view: Locator) -> None:
    view.page.emulate_media(reduced_motion="no-preference")
    view.get_by_label("Speed").select_option("4")
    view.get_by_role("button", name="Play").click()
    expect(view.locator(".title").last.locator("b").first).to_have_text("27")
    expect(view.get_by_role("button", name="Play")).to_be_visible()


def without_motion_a_pause_ends_the_jumps(view: Locator) -> None:
    view.get_by_label("Speed").select_option("4")
    view.locator("input[id$=-time]").press("Home")
    view.get_by_role("button", name="Play").click()
    expect(view.locator(".title").first.locator("b").first).not_to_have_text("")
    view.get_by_role("button", name="Pause").click()
    stopped = rows(view)
    view.page.evaluate("new Promise((passed) => setTimeout(passed, 600))")  # four times as long as between two events
    assert rows(view) == stopped


def on_a_phone_the_slider_has_a_line_of_its_own(view: Locator) -> None:
    slider, play = view.get_by_role("slider", name="Time"), view.get_by_role("button", name="Play")
    view.page.set_viewport_size({"width": 360, "height": 900})
    line, width, above, below = (
        each.evaluate("(each, side) => each.getBoundingClientRect()[side]", side)
        for each, side in ((slider, "top"), (slider, "width"), (view.get_by_label("Speed"), "top"), (play, "bottom"))
    )
    assert line > below > above
    assert width > 300
    assert view.get_by_label("Speed").evaluate("(speed) => speed.selectedOptions[0].text") == "speed 1"


def test_a_time_between_events_is_told_in_four_digits(alone: Alone) -> None:
    view = alone(TimelineExplorer(schedules="1f1b", devices=4, microbatches=4, forward=1.0003, backward=2))
    slider, told = view.get_by_role("slider", name="Time"), view.locator(".player output")
    drag = "(slider, time) => { slider.value = time; slider.dispatchEvent(new Event('input', { bubbles: true })); }"
    slider.evaluate(drag, 4.857793)
    assert told.inner_text() == "4.86 ms"
    assert float(slider.input_value()) == 4.857793, "the cursor itself stands where it was put"
    slider.press("Home")
    slider.press("ArrowRight")
    assert told.inner_text() == "1.0003 ms", "an event has its own time"


def test_a_film(alone: Alone) -> None:
    questions = (
        the_figures_are_counted_along,
        without_motion_the_finished_picture_stands_there,
        a_schedule_that_has_not_begun_waits_for_nothing,
        paper_shows_the_end,
        it_begins_by_itself_and_can_be_stopped,
        a_link_to_a_time_stands_there_and_the_address_follows_the_reader,
        it_is_played_to_the_end,
        without_motion_a_pause_ends_the_jumps,
        on_a_phone_the_slider_has_a_line_of_its_own,
    )
    in_order(alone(TimelineFilm(NAMES, devices=4, microbatches=8)).page, questions, again=as_new, part=THE_VIEW)
