"""Test what the timeline explorer does over time: the cursor, waits, the critical path, labels, the zoom, and what a change rebuilds.

The explorers are drawn from the sources of this checkout, so no built site is needed.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browser import open_page
from cases import in_turn
from explorers import VIEW
from playwright.sync_api import Locator, expect
from visits import THE_VIEW, as_new, in_order

from hybridlab import Costs, Timeline, build, simulate
from hybridlab.widgets import TimelineExplorer

Alone = Callable[[Any], Locator]
SMALL: dict[str, Any] = {"schedules": ("1f1b", "gpipe"), "devices": 4, "microbatches": (4, 8), "forward": 1, "backward": 2, "p2p": 0.5}
LARGE: dict[str, Any] = {"schedules": ("zb-h1", "1f1b"), "devices": 8, "microbatches": (16, 32), "show": {"microbatches": 32}}


def timeline(name: str = "1f1b", microbatches: int = 4, p2p: float = 0.5) -> Timeline:
    return simulate(build(name, 4, microbatches), Costs(forward=1, backward=2, p2p=p2p))


def at(view: Locator, share: float) -> float:
    """Move the time cursor to a share of the whole time, and return the time in words."""
    view.locator("input[id$=-time]").evaluate(
        "(slider, share) => { slider.value = share * slider.max; slider.dispatchEvent(new Event('input', { bubbles: true })); }", share
    )
    return float(view.locator(".player output").inner_text().split()[0])


def bar(view: Locator, text: str) -> Locator:
    """Return the bar of an operation: its row in the data is the place of the bar in the picture."""
    return view.locator(".op").nth([str(op) for op in timeline().ops].index(text))


# ---- the cursor ----


def the_cursor_says_what_each_device_waits_for_and_holds(view: Locator) -> None:
    run = timeline()
    blockers = run.blocking_operation()
    for share in (0.05, 0.25, 0.45, 0.7, 0.95):
        time = at(view, share)
        waits = view.locator(".waits").all_text_contents()
        held = view.locator(".names .peak").all_text_contents()
        for device in range(4):
            rows = (run.device == device).nonzero()[0]
            later = [row for row in rows if run.end[row] > time]
            alive = sum((str(run.ops[row])[1] == "F") * (run.start[row] <= time) for row in rows)
            alive -= sum((str(run.ops[row])[1] == "B") * (run.end[row] <= time) for row in rows)
            assert held[device] == f"holds {alive}"
            if not later:
                assert waits[device] == "done"
            elif run.start[later[0]] <= time:
                assert waits[device] == ""
            else:
                assert waits[device] == f"waits for {run.ops[blockers[later[0]]]}"


def messages_travel_between_their_devices(view: Locator) -> None:
    run = timeline()
    levels = view.locator(".paper").evaluate_all(
        "(all) => all.map((each) => Number(each.getAttribute('y')) + Number(each.getAttribute('height')) / 2)"
    )
    moving = 0
    for share in (0.08, 0.14, 0.2, 0.31, 0.33, 0.47, 0.64, 0.66):
        time = at(view, share)
        heights = sorted(float(dot.get_attribute("cy") or "nan") for dot in view.locator(".dot").all())
        expected = []
        for row, source in enumerate(run.schedule.source.tolist()):
            if source >= 0 and run.device[source] != run.device[row] and run.end[source] <= time < run.end[source] + 0.5:
                part = (time - run.end[source]) / 0.5
                one, other = levels[run.device[source]], levels[run.device[row]]
                expected.append(one + part * (other - one))
        assert heights == pytest.approx(sorted(expected), abs=0.6)  # the words of the time have six digits
        moving += len(heights)
    assert moving


def the_cursor_plays_to_the_end_and_stops(view: Locator) -> None:
    view.page.emulate_media(reduced_motion="no-preference")
    view.get_by_label("Speed").select_option("4")
    view.get_by_role("button", name="Play").click()
    expect(view.get_by_role("button", name="Pause")).to_be_visible()
    expect(view.locator(".veil")).to_be_visible()
    expect(view.get_by_role("button", name="Play")).to_be_visible()
    assert view.locator(".player output").inner_text() == f"{timeline().makespan:g} ms"
    expect(view.locator(".veil")).to_be_hidden()


def without_motion_the_cursor_jumps_from_event_to_event(view: Locator) -> None:
    run = timeline()
    events = {f"{time:g}" for time in [*run.start.tolist(), *run.end.tolist()]}
    view.get_by_label("Speed").select_option("4")
    view.evaluate("""(root) => {
      window.times = [];
      const note = () => window.times.push(root.querySelector(".player output").textContent.split(" ")[0]);
      new MutationObserver(note).observe(root.querySelector(".player output"), { childList: true });
    }""")
    view.get_by_role("button", name="Play").click()
    view.page.wait_for_function("window.times.length > 6")
    view.get_by_role("button", name="Pause").click()
    assert set(view.evaluate("() => window.times")) <= events


def the_cursor_works_from_the_keyboard(view: Locator) -> None:
    run = timeline()
    events = sorted({*run.start.tolist(), *run.end.tolist()})
    slider = view.locator("input[id$=-time]")
    slider.press("Home")
    seen = []
    for _ in range(5):
        slider.press("ArrowRight")
        seen.append(float(str(slider.get_attribute("aria-valuetext")).split()[0]))
    assert seen == events[1:6]
    slider.press("ArrowLeft")
    assert float(str(slider.get_attribute("aria-valuetext")).split()[0]) == events[4]


# ---- waits and paths ----


def test_an_idle_time_says_who_is_waited_for_and_what_runs_meanwhile(alone: Alone) -> None:
    """Worked out by hand: without latency, device 0 runs four forwards, and its first gradient comes back at 10 ms."""
    view = alone(TimelineExplorer(**SMALL | {"p2p": 0}))
    gap = view.locator(".idles .idle").first
    gap.click()
    told = view.locator(".told")
    assert told.inner_text() == (
        "Idle. Device 0 is idle from 4 to 10 ms. The next operation, 0B0, needs 1B0 of device 1, which ends at 10. "
        "Meanwhile device 3 runs 3B0, device 2 runs 2B0 and device 1 runs 1B0."
    )
    view.locator(".op").nth(2).hover()
    assert told.inner_text().startswith("Idle."), "a click keeps it"
    view.page.keyboard.press("Escape")
    for place in (1, 2):
        view.locator(".op").nth(place).hover()
    assert told.inner_text().startswith("0F2: the forward")
    assert told.inner_text().endswith("1F2 on device 1 needs its output.")
    view = alone(TimelineExplorer("gpipe", devices=2, microbatches=4))
    view.locator(".idles .idle").first.click()
    assert view.locator(".told").inner_text().endswith("Meanwhile device 1 runs 1F3 and 1B0."), "a device is named once for what it runs"


def test_a_device_that_has_finished_waits_for_nobody(alone: Alone) -> None:
    view = alone(TimelineExplorer(**SMALL | {"p2p": 0}))
    view.locator(".idles .idle").last.click()
    assert "It has finished its part, and the step ends when device 0 ends 0B3." in view.locator(".told").inner_text()


@in_turn("p2p", [0, 0.5])
def test_a_critical_path_is_coloured_and_its_sum_is_the_makespan(alone: Alone, p2p: float) -> None:
    view, run = alone(TimelineExplorer(**SMALL | {"p2p": p2p})), timeline(p2p=p2p)
    button = view.get_by_role("button", name="Critical path")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    found = view.locator(".op").evaluate_all("(all) => all.map((each) => each.classList.contains('path'))")
    path = [str(op) for op, on in zip(run.ops, found, strict=True) if on]
    rows = [row for row, on in enumerate(found) if on]
    rows.sort(key=lambda row: run.start[row])
    waits = sum(float(run.start[after] - run.end[before]) for before, after in pairwise(rows))
    work = sum(float(run.end[row] - run.start[row]) for row in rows)
    assert work + waits == pytest.approx(run.makespan)
    assert len(path) == len(run.breakdown().critical_path)
    numbers = [float(each) for each in re.findall(r"\(([\d.]+)\)", view.locator(".told").inner_text())]
    assert sum(numbers) == pytest.approx(run.makespan)
    sums = view.locator(".told").inner_text()
    view.locator(".idles .idle").first.click()
    told = view.locator(".told").inner_text()
    assert told.startswith("Idle.")
    assert told.endswith(sums), "with an idle time chosen, the sum is still told"
    button.click()
    assert view.locator(".op.path").count() == 0


def test_a_comparison_tells_the_difference_and_outlines_bubbles_that_are_gone(alone: Alone) -> None:
    view = alone(TimelineExplorer(**SMALL | {"show": {"compare": "gpipe", "microbatches": 8}}))
    one, other = timeline("1f1b", 8), timeline("gpipe", 8)
    words = view.locator(".difference").inner_text()
    assert words.startswith(f"1F1B takes {one.makespan - other.makespan:g} ms more than GPipe")
    assert "its largest peak is 4 instead of 8 activations" in words
    scale = view.evaluate("(root) => Number(root.querySelector('line.end').getAttribute('x1'))") / one.makespan
    outlines = str(view.locator(".gone").first.get_attribute("d"))
    boxes = [float(width) + 2 for width in re.findall(r"h(\d[\d.]*)v", outlines)]
    assert sum(boxes) / scale == pytest.approx(gone(one, other), abs=0.1)


def gone(one: Timeline, other: Timeline) -> float:
    """Return for how long a device of ``one`` computes while the same device of ``other`` is idle, before the end of ``other``; sampled."""
    step, total = 0.25, 0.0  # all times are multiples of 0.5
    for device in range(4):
        for place in range(round(other.makespan / step)):
            time = (place + 0.5) * step
            busy = [((run.device == device) & (run.start <= time) & (time < run.end)).any() for run in (one, other)]
            total += step * (busy == [True, False] and time < one.makespan)
    return total


# ---- labels, zoom, and what a change rebuilds ----

OVERLAPS = """(root) => {
  const boxes = [...root.querySelectorAll(".op text")].map((text) => text.getBoundingClientRect());
  const lines = Map.groupBy(boxes, (box) => Math.round(box.top));
  return [...lines.values()].flatMap((line) => {
    const sorted = line.sort((one, other) => one.left - other.left);
    return sorted.slice(1).filter((box, place) => box.left < sorted[place].right);
  }).length;
}"""


@in_turn("width", [360, 1280])
def test_labels_never_overlap_and_the_whole_step_is_seen(alone: Alone, width: int) -> None:
    view = alone(TimelineExplorer(**LARGE))
    view.page.set_viewport_size({"width": width, "height": 900})
    picture = view.locator(".picture")
    expect(view.locator(".veil")).to_be_hidden()
    kinds = []
    for _ in range(6):
        assert view.evaluate(OVERLAPS) == 0
        texts = view.locator(".op text").all_text_contents()
        assert len(texts) in (0, 3 * 8 * 32), "one rule holds for the whole picture"
        kinds.append("none" if not texts else "both" if texts[0][0] in "FBIW" else "number")
        if len(kinds) == 1:
            assert picture.evaluate("(box) => box.scrollWidth <= box.clientWidth"), "at first the picture fits into its box"
        view.get_by_role("button", name="Zoom in").click()
    assert kinds[0] == "none"
    assert kinds[-1] == "both"
    assert picture.evaluate("(box) => box.scrollWidth > 2 * box.clientWidth")
    assert "more-right" in str(picture.get_attribute("class")) or "more-left" in str(picture.get_attribute("class"))
    view.get_by_role("button", name="Fit").click()
    assert picture.evaluate("(box) => box.scrollWidth <= box.clientWidth")


def test_a_new_time_moves_the_bars_and_makes_no_new_ones(alone: Alone) -> None:
    view = alone(TimelineExplorer(**LARGE))
    view.evaluate("""(root) => {
      window.made = 0;
      const count = (changes) => (window.made += changes.flatMap(({ addedNodes }) => [...addedNodes]).length);
      new MutationObserver(count).observe(root.querySelector(".picture"), { childList: true, subtree: true });
      window.kept = root.querySelector(".op");
    }""")
    before = view.locator(".op polygon").last.get_attribute("points")
    field = view.get_by_role("spinbutton", name="Latency")
    field.fill("0.75")
    field.press("Enter")
    assert view.locator(".op polygon").last.get_attribute("points") != before
    assert view.evaluate("(root) => root.querySelector('.op') === window.kept")
    idle = view.locator(".idles .idle").count()
    assert view.evaluate("() => window.made") < idle + 60, "the axis and new idle times alone are made"
    view.evaluate("() => (window.made = 0)")
    field.fill("0.8")
    field.press("Enter")
    assert view.evaluate("() => window.made") < 60, "idle times move, and the axis alone is made again"


def test_two_views_of_one_widget_show_the_same_setting(alone: Alone) -> None:
    page = alone(TimelineExplorer(**SMALL)).page
    address = page.url.removesuffix(".html") + "-twice.html"
    text = Path(urlsplit(page.url).path).read_text(encoding="utf-8")
    Path(urlsplit(address).path).write_text(VIEW.sub(lambda found: 2 * found[0], text, count=1), encoding="utf-8")
    open_page(page, address)
    ends = [each.locator(".op polygon").last for each in page.locator(".hybridlab-explorer").all()]
    before = [end.get_attribute("points") for end in ends]
    field = page.get_by_role("spinbutton", name="Latency").first
    field.fill("0.75")
    field.press("Enter")
    after = [end.get_attribute("points") for end in ends]
    assert len(after) == 2
    assert before[0] == before[1] != after[0] == after[1]


# the height of the view without its last row, which has the buttons for links and files
ABOVE_FILES = "(root) => root.querySelector('.share').getBoundingClientRect().top - root.getBoundingClientRect().top"


@in_turn("compare", ["", "gpipe"])
def test_all_of_it_fits_on_a_small_screen(alone: Alone, compare: str) -> None:
    view = alone(TimelineExplorer(**SMALL | {"show": {"compare": compare, "microbatches": 8}}))
    view.page.set_viewport_size({"width": 800, "height": 720})
    assert view.evaluate(ABOVE_FILES) <= 720
    view.page.set_viewport_size({"width": 1000, "height": 720})
    told, picture = (view.locator(each).bounding_box() for each in (".told", ".picture"))
    assert told is not None
    assert picture is not None
    assert told["x"] >= picture["x"] + picture["width"], "on a wide screen the readout stands beside the picture"


def test_the_cursor(alone: Alone) -> None:
    questions = (
        the_cursor_says_what_each_device_waits_for_and_holds,
        messages_travel_between_their_devices,
        without_motion_the_cursor_jumps_from_event_to_event,
        the_cursor_works_from_the_keyboard,
        the_cursor_plays_to_the_end_and_stops,
    )
    in_order(alone(TimelineExplorer(**SMALL)).page, questions, again=as_new, part=THE_VIEW)
