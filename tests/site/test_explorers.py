"""Test timeline explorers of the site, by keyboard and by pointer: their controls change the picture, and what is drawn is right.

The pages here have one explorer of each kind: with all schedules, with one, with two, and with measured steps. test_visits.py looks at the
explorers of all pages.
"""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import PATIENCE, open_page, record
from cases import in_turn
from explorers import CHOICES, NAMES, TIMES, Explorer, explorers_of, is_right, with_state
from playwright.sync_api import Browser, Locator, Page

from hybridlab import Timeline

NewPage = Any
FOCUSED = "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.id"


PAGES = ("book/gallery.html", "labs/lab02_one_f_one_b.html", "labs/lab16_real_processes.html")


def on(*names: str) -> pytest.MarkDecorator:
    """Return the mark of a test of explorers that asks the same code on every page."""
    pages = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]
    return pytest.mark.parametrize("opened", pages, indirect=True, scope="module")


gallery, one_page, two_pages = on(PAGES[0]), on(PAGES[1]), on(*PAGES[1:])


# all tests of a page go to the same worker, which opens the page once
@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PAGES])
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
        explorer.choose(**{name: value for name, value in setting.items() if name not in ("schedule", "compare", "slowdown")})
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


@on(PAGES[0], PAGES[2])
def test_every_control_works_by_keyboard_alone_and_changes_the_picture_and_the_figures(explorers: list[Explorer]) -> None:
    for explorer in explorers:
        page: Page = explorer.view.page
        enter(explorer.view)
        assert sum(explorer.control(name).is_visible() for name in NAMES) >= 3
        is_right(explorer)
        for name in NAMES:
            if name == "p2p":  # the last schedule can be a measured one, whose times no control changes
                explorer.choose(compare="", schedule=explorer.data["schedules"][0]["name"])
            if not explorer.control(name).is_visible():  # another schedule can have other controls
                continue
            for _ in range(1 + (name in TIMES)):  # a time has a field, and then its slider
                page.keyboard.press("Tab")
            control = explorer.control(name)
            assert control.evaluate("each => each === document.activeElement"), f"Tab does not reach {name}"
            page.keyboard.press("Home")
            values = control.evaluate("each => each.options?.length ?? Number(each.max) + 1")
            assert values >= (50 if name in TIMES else 2)
            drawn = [explorer.shown()]
            for _ in range(min(values, 3) - 1):
                page.keyboard.press("ArrowDown" if name in CHOICES else "ArrowRight")
                drawn.append(explorer.shown())
            is_right(explorer)
            different = {str((each["panels"], each["rows"])) for each in drawn}
            assert len(different) == len(drawn), f"two values of {name} look the same"
        explorer.choose(compare="")
        explorer.view.get_by_role("button", name="Fit").focus()
        page.keyboard.press("Tab")
        assert page.evaluate("Boolean(document.activeElement.closest('.picture .op'))"), "Tab leads on to the picture"


@one_page
def test_any_time_can_be_typed_and_a_wrong_one_is_told(explorers: list[Explorer]) -> None:
    explorer = explorers[0]
    for name, value in (("p2p", 0.123), ("forward", 1.7), ("backward", 31.25)):
        explorer.choose(**{name: value})
        assert explorer.shown()["setting"][name] == value
        is_right(explorer)
    explorer.choose(slow_device="1")
    explorer.choose(slowdown=2.5)
    is_right(explorer)
    before = explorer.shown()
    field = explorer.view.get_by_role("spinbutton", name="Latency")
    field.fill("-1")
    field.press("Enter")
    assert explorer.view.get_by_role("alert").filter(has_text="type a number of zero or more").is_visible()
    assert explorer.shown() == before
    explorer.choose(slow_device="none", p2p=0)


def test_what_is_drawn_is_right_all_over_the_grid(explorers: list[Explorer]) -> None:
    chosen = random.Random(1)  # noqa: S311  # a choice of settings, the same in every run
    for explorer in explorers:
        names = [each["name"] for each in explorer.data["schedules"]]
        for _ in range(3):
            schedule, *others = chosen.sample(names, min(2, len(names)))
            sizes: dict[str, Any] = {name: chosen.choice(explorer.data[name]) for name in ("devices", "microbatches")}
            times = {name: chosen.randrange(1, 400) / 4 for name in ("p2p", "forward", "backward")}
            explorer.choose(compare="", schedule=schedule)
            explorer.choose(**sizes, **times, chunks=chosen.choice(explorer.chunks(schedule)), compare=chosen.choice(["", *others]))
            is_right(explorer)


@one_page
def test_a_click_on_a_slider_changes_the_picture(explorers: list[Explorer]) -> None:
    for explorer in explorers:
        slider = explorer.control("microbatches")
        for place, index in ((0.99, -1), (0.01, 0)):
            box = slider.bounding_box()
            assert box
            slider.click(position={"x": place * box["width"], "y": box["height"] / 2})
            assert explorer.shown()["setting"]["microbatches"] == explorer.data["microbatches"][index]
            is_right(explorer)


@one_page
def test_pointing_at_an_operation_says_what_it_is(explorers: list[Explorer]) -> None:
    for explorer in explorers:
        for bar in (explorer.view.locator(".op").nth(place) for place in (0, 3)):
            bar.hover(force=True)
            told = explorer.view.locator(".told:not(.hint)").inner_text()
            assert re.match(r"\d+[FBIW]\d+: the ", told)
            assert "now" in (bar.get_attribute("class") or "")


@two_pages
def test_arrow_keys_move_in_the_picture_and_enter_goes_to_what_was_waited_for(explorers: list[Explorer]) -> None:
    for explorer in explorers:
        explorer.choose(compare="")
        page, timeline = explorer.view.page, timeline_of(explorer)
        ops, waited = [str(op) for op in timeline.ops], timeline.blocking_operation().tolist()
        on_device = [items_of(timeline, device) for device in range(timeline.schedule.devices)]

        def press(key: str, page: Page = page) -> str:
            page.keyboard.press(key)
            told = str(page.evaluate(FOCUSED))
            return "idle" if told.startswith("Idle.") else told.split(":")[0]

        explorer.view.locator('.op[tabindex="0"]').focus()
        assert press("Home") == on_device[0][0]
        assert [press("ArrowRight"), press("ArrowRight"), press("ArrowLeft")] == [*on_device[0][1:3], on_device[0][1]]
        assert press("ArrowDown") in on_device[1]
        assert press("ArrowUp") in on_device[0]
        press("Home")
        assert [press("ArrowRight") for _ in on_device[0][1:]] == on_device[0][1:]
        while (last := press("ArrowLeft")) == "idle":
            pass
        here = ops.index(last)
        while waited[here] >= 0:  # back along a critical path to the first operation
            here = waited[here]
            assert press("Enter") == ops[here]
        assert page.evaluate(FOCUSED).endswith(explorer.view.locator(".told:not(.hint)").inner_text())


def items_of(timeline: Timeline, device: int) -> list[str]:
    """Return the operations and the idle times of a device, in the order of time."""
    rows = (timeline.device == device).nonzero()[0]
    items, free = [], 0.0
    for row in rows:
        items += ["idle"] * bool(timeline.start[row] - free > 1e-9 * timeline.makespan)
        items.append(str(timeline.ops[row]))
        free = timeline.end[row]
    return items + ["idle"] * bool(timeline.makespan - free > 1e-9 * timeline.makespan)


@gallery
def test_a_size_that_a_schedule_refuses_is_told_and_its_buttons_lead_to_one_that_runs(explorers: list[Explorer]) -> None:
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


PLANTED: dict[str, tuple[str, str]] = {
    "a message without latency": ("links[source.device][device] : p2p", "0 : 0"),
    "a peak": ("held[device] -= 1;", "held[device] -= 0;"),
    "a bubble ratio": ("(devices * makespan)", "makespan"),
    "a stage": ("`${stage - 1}F${microbatch}`", "`${Math.max(stage - 2, 0)}F${microbatch}`"),
    "a pair": ("overlap * Math.min(f, B[device])", "Math.min(f, B[device])"),
    "a width": ("round(x + width)", "round(x + width / 2)"),
}


@in_turn("planted", PLANTED.values())
def test_a_planted_fault_in_the_script_is_seen(new_widgets: NewPage, server: str, site: Path, planted: tuple[str, str]) -> None:
    html = (site / "book/gallery.html").read_text(encoding="utf-8")

    def plant(states: Any) -> None:
        (state,) = (each for each in states.values() if "data" in each)
        assert planted[0] in state["_esm"]
        state["_esm"] = state["_esm"].replace(*planted)

    (explorer,) = explorers_of(new_widgets(server + "book/gallery.html", edit=lambda text: with_state(text, plant)), html)
    found = []
    for schedule in ("1f1b", "dualpipe"):
        explorer.choose(schedule=schedule, devices=4, microbatches=8, p2p=0.5)
        try:
            is_right(explorer)
        except AssertionError:
            found.append(schedule)
    assert found


FAULTS: dict[str, Callable[[Any], None]] = {
    "a pair that is none": lambda entry: entry.update(orders=[re.sub(r"\((\w+);(\w+)\)", r"\1 \2", each) for each in entry["orders"]]),
    "two operations exchanged": lambda entry: entry["orders"].__setitem__(0, re.sub(r"^(\w+) (\w+)", r"\2 \1", entry["orders"][0])),
}


@in_turn("fault", FAULTS.values())
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
    explorer.view.locator('.op[tabindex="0"]').focus()
    for _ in range(40):
        if not str(page.evaluate(FOCUSED)).startswith("3F6:"):
            page.keyboard.press("ArrowRight")
    told = explorer.view.locator(".told")
    assert told.inner_text() == (
        "3F6: the forward of microbatch 6 on stage 3 of the second copy of the weights, device 0, from 11 to 14. It runs together with "
        "0B0. It waited for its input 2F6, which ended at 11. Device 0 stood idle for 1. 3B6 needs its output."
    )
    assert explorer.view.locator(".op.together").count() == 1
    page.keyboard.press("ArrowRight")
    assert {"now", "half"} <= set(page.evaluate(classes))
    assert "It runs together with 3F6. It waited with 3F6 for its input 2F6, which ended at 11." in told.inner_text()
    page.keyboard.press("Enter")
    assert str(page.evaluate(FOCUSED)).startswith("2F6: the forward of microbatch 6 on stage 2")
