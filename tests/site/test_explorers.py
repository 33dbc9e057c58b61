"""Test every timeline explorer of the site, by keyboard and by pointer.

Its controls change the picture, and what is drawn is right.
"""

import random
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from browser import PATIENCE, SITE, open_page, page_names, record
from explorers import NAMES, Explorer, explorers_of, is_right, with_state
from playwright.sync_api import Browser, Locator, Page

from hybridlab import Timeline

NewPage = Any
FOCUSED = "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.id"


def with_explorers() -> list[str]:
    """Return the pages that hold the code of a timeline explorer."""
    return [name for name in page_names() if "hybridlab-explorer" in (SITE / name).read_text(encoding="utf-8")]


# all tests of a page go to the same worker, which opens the page once
@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in with_explorers() or ["labs"]])
def opened(
    request: pytest.FixtureRequest, browser: Browser, server: str, files: str, site: Path, every_fault: list[str]
) -> Iterator[list[tuple[Explorer, dict[str, Any]]]]:
    """Give the explorers of a page, each with its first setting; the page stays open for all tests of them."""
    html = (site / request.param).read_text(encoding="utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    record(context, every_fault, (server, files))
    context.set_default_timeout(PATIENCE)
    found = explorers_of(open_page(context.new_page(), files + request.param), html)
    assert found
    yield [(explorer, explorer.shown()["setting"]) for explorer in found]
    context.close()


@pytest.fixture
def explorers(opened: list[tuple[Explorer, dict[str, Any]]], faults: list[str]) -> Iterator[list[Explorer]]:
    """Give the explorers of a page, set back to their first settings."""
    for explorer, setting in opened:
        explorer.choose(compare="", schedule=setting["schedule"])
        explorer.choose(**{name: value for name, value in setting.items() if name not in ("schedule", "compare")})
        explorer.choose(compare=setting["compare"])
    yield [explorer for explorer, _ in opened]
    assert not faults, "\n".join(dict.fromkeys(faults))


def timeline_of(explorer: Explorer) -> Timeline:
    (timeline,) = explorer.timelines(explorer.shown()["setting"])
    assert isinstance(timeline, Timeline)
    return timeline


def enter(view: Locator) -> None:
    """Put the focus where the Tab key would leave it just before the view."""
    view.evaluate("""(root) => {
        const before = Object.assign(document.createElement("span"), { tabIndex: 0 });
        root.before(before);
        before.focus();
        before.addEventListener("blur", () => before.remove());
    }""")


def test_there_are_explorers_to_test() -> None:
    assert set(with_explorers()) >= {"book/gallery.html", "labs/lab02_one_f_one_b.html", "labs/lab03_bubbles_and_memory.html"}


def test_every_control_works_by_keyboard_alone_and_changes_the_picture_and_the_figures(explorers: list[Explorer]) -> None:
    for explorer in explorers:
        page: Page = explorer.view.page
        enter(explorer.view)
        visible = [name for name in NAMES if explorer.control(name).is_visible()]
        assert len(visible) >= 3
        is_right(explorer)
        for name in visible:
            page.keyboard.press("Tab")
            control = explorer.control(name)
            assert control.evaluate("each => each === document.activeElement"), f"Tab does not reach {name}"
            page.keyboard.press("Home")
            count = control.evaluate("each => each.options?.length ?? Number(each.max) + 1")
            assert count >= 2
            drawn = [explorer.shown()]
            for _ in range(count - 1):
                page.keyboard.press("ArrowDown" if name in ("schedule", "compare") else "ArrowRight")
                is_right(explorer)
                drawn.append(explorer.shown())
            different = {str((each["panels"], each["rows"])) for each in drawn}
            assert len(different) == count, f"two values of {name} look the same"
        explorer.choose(compare="")
        explorer.control(visible[-1]).focus()
        page.keyboard.press("Tab")
        assert page.evaluate("Boolean(document.activeElement.closest('.picture .op'))"), "Tab leads on to the picture"


def test_what_is_drawn_is_right_all_over_the_grid(explorers: list[Explorer]) -> None:
    chosen = random.Random(1)  # noqa: S311  # a choice of settings, the same in every run
    for explorer in explorers:
        names = [each["name"] for each in explorer.data["schedules"]]
        for _ in range(10):
            schedule, *others = chosen.sample(names, min(2, len(names)))
            sizes = {name: chosen.choice(explorer.data[name]) for name in ("devices", "microbatches", "p2p")}
            explorer.choose(compare="", schedule=schedule)
            explorer.choose(**sizes, chunks=chosen.choice(explorer.chunks(schedule)), compare=chosen.choice(["", *others]))
            is_right(explorer)


def test_a_click_on_a_slider_changes_the_picture(explorers: list[Explorer]) -> None:
    for explorer in explorers:
        slider = explorer.control("microbatches")
        for place, index in ((0.99, -1), (0.01, 0)):
            box = slider.bounding_box()
            assert box
            slider.click(position={"x": place * box["width"], "y": box["height"] / 2})
            assert explorer.shown()["setting"]["microbatches"] == explorer.data["microbatches"][index]
            is_right(explorer)


def test_pointing_at_an_operation_says_what_it_is(explorers: list[Explorer]) -> None:
    for explorer in explorers:
        for bar in (explorer.view.locator(".op").nth(place) for place in (0, 3)):
            bar.hover(force=True)
            told = explorer.view.locator(".panel .told:not(.hint)").first.inner_text()
            assert (bar.get_attribute("aria-label") or "").endswith(told)
            assert "now" in (bar.get_attribute("class") or "")


def test_arrow_keys_move_in_the_picture_and_enter_goes_to_what_was_waited_for(explorers: list[Explorer]) -> None:
    for explorer in explorers:
        explorer.choose(compare="")
        page, timeline = explorer.view.page, timeline_of(explorer)
        ops, waited = [str(op) for op in timeline.ops], timeline.blocking_operation().tolist()
        on_device = [[ops[row] for row in (timeline.device == device).nonzero()[0]] for device in range(timeline.schedule.devices)]

        def press(key: str, page: Page = page) -> str:
            page.keyboard.press(key)
            return str(page.evaluate(FOCUSED)).split(":")[0]

        explorer.view.locator('.op[tabindex="0"]').focus()
        assert press("Home") == on_device[0][0]
        assert [press("ArrowRight"), press("ArrowRight"), press("ArrowLeft")] == [*on_device[0][1:3], on_device[0][1]]
        assert press("ArrowDown") in on_device[1]
        assert press("ArrowUp") in on_device[0]
        here = ops.index(press("End"))
        assert ops[here] == on_device[0][-1]
        while waited[here] >= 0:  # back along the critical path to the first operation
            here = waited[here]
            assert press("Enter") == ops[here]
        assert page.evaluate(FOCUSED).endswith(explorer.view.locator(".panel .told:not(.hint)").first.inner_text())


def test_a_size_that_a_schedule_refuses_is_told_and_its_buttons_lead_to_one_that_runs(explorers: list[Explorer]) -> None:
    if "gallery" in explorers[0].view.page.url:
        assert explorers[0].refused(), "the gallery offers every schedule, and some refuse some sizes"
    for explorer in explorers:
        for key in explorer.refused()[:3]:
            name, *sizes = key.split("/")
            explorer.choose(compare="", schedule=name)
            explorer.choose(**dict(zip(("devices", "microbatches", "chunks"), map(int, sizes), strict=True)))
            assert explorer.view.locator(".refused").is_visible()
            is_right(explorer)
            button = explorer.view.locator(".refused button").first
            button.focus()
            explorer.view.page.keyboard.press("Enter")
            is_right(explorer)
            assert explorer.view.locator(".refused").count() == 0
            assert explorer.view.page.evaluate(FOCUSED), "the focus goes to the control that changed"


@pytest.mark.parametrize("planted", ["start", "makespan", "peak", "bubble", "orders"])
def test_a_planted_fault_in_the_data_is_seen(new_widgets: NewPage, server: str, site: Path, planted: str) -> None:
    name = with_explorers()[0]
    html = (site / name).read_text(encoding="utf-8")

    def plant(states: Any) -> None:
        (state,) = (each for each in states.values() if "data" in each)
        for entry in (each for each in state["data"]["pipelines"].values() if "orders" in each):
            if planted == "start":
                entry["start"] = [[*times[:-1], times[-1] - 0.2] for times in entry["start"]]
            elif planted == "orders":
                first, second, *rest = entry["orders"][0].split()
                entry["orders"][0] = " ".join([second, first, *rest])
            else:
                entry[planted][0] += 1

    page = new_widgets(server + name, edit=lambda text: with_state(text, plant))
    (explorer,) = explorers_of(page, html)
    with pytest.raises(AssertionError):
        is_right(explorer)


FAULTS: dict[str, Callable[[Any], None]] = {
    "a pair that is shorter": lambda entry: entry["duration"].update(pair=[time - 0.2 for time in entry["duration"]["pair"]]),
    "a pair that is none": lambda entry: entry.update(orders=[re.sub(r"\((\w+);(\w+)\)", r"\1 \2", each) for each in entry["orders"]]),
    "the wrong one came late": lambda entry: entry.update(
        late=[sorted({row + 1 if row in pairs_in(entry) else row for row in rows}) for rows in entry["late"]]
    ),
    "the other copy": lambda entry: entry.update(copy=[1 - copy for copy in entry["copy"]]),
}


def pairs_in(entry: Any) -> list[int]:
    """Return the rows of all forwards in overlapped pairs."""
    words = [word for order in entry["orders"] for word in order.split()]
    rows = list(accumulate((1 + word.count(";") for word in words), initial=0))
    return [row for row, word in zip(rows, words, strict=False) if ";" in word]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_in_pairs_and_copies_is_seen(new_widgets: NewPage, server: str, site: Path, fault: Callable[[Any], None]) -> None:
    html = (site / "book/gallery.html").read_text(encoding="utf-8")

    def plant(states: Any) -> None:
        (state,) = (each for each in states.values() if "data" in each)
        fault(state["data"]["pipelines"]["dualpipe/4/8/1"])

    (whole,) = explorers_of(new_widgets(server + "book/gallery.html"), html)
    whole.choose(schedule="dualpipe", devices=4, microbatches=8)
    is_right(whole)
    (explorer,) = explorers_of(new_widgets(server + "book/gallery.html", edit=lambda text: with_state(text, plant)), html)
    explorer.choose(schedule="dualpipe", devices=4, microbatches=8)
    with pytest.raises(AssertionError):
        is_right(explorer)


def test_the_cursor_marks_both_of_a_pair_and_tells_the_other(new_page: NewPage, server: str, site: Path) -> None:
    """The setting is DualPipe with 4 devices and 8 microbatches.

    Worked out by hand: device 0 runs (3F6;0B0) after 3B5, as soon as 2F6 and 1B0 have ended.
    """
    (explorer,) = explorers_of(new_page(server + "book/gallery.html"), (site / "book/gallery.html").read_text(encoding="utf-8"))
    explorer.choose(schedule="dualpipe", devices=4, microbatches=8)
    page, classes = explorer.view.page, "document.activeElement.getAttribute('class').split(' ')"
    explorer.view.locator('.op[aria-label^="3F6:"]').focus()
    told = explorer.view.locator(".panel .told")
    assert told.inner_text() == (
        "3F6: the forward of microbatch 6 on stage 3 of the second copy of the weights, device 0, from 11 to 14. It runs together with "
        "0B0. It waited for its input 2F6, which ended at 11. Device 0 stood idle for 1."
    )
    other = explorer.view.locator(".op.together")
    assert (other.count(), str(other.get_attribute("aria-label")).split(":")[0]) == (1, "0B0")
    page.keyboard.press("ArrowRight")
    assert {"now", "half"} <= set(page.evaluate(classes))
    assert "It runs together with 3F6. It waited with 3F6 for its input 2F6, which ended at 11." in told.inner_text()
    page.keyboard.press("Enter")
    assert str(page.evaluate(FOCUSED)).startswith("2F6: the forward of microbatch 6 on stage 2")
