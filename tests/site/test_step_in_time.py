"""Test how the step explorer plays the time, zooms and answers the pointer, each explorer alone on a page.

These tests need a browser, but no built site.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accessibility import violations
from cases import in_turn
from playwright.sync_api import Locator, expect
from visits import THE_VIEW, as_new, in_order

from hybridlab.step import HybridStep
from hybridlab.widgets import StepExplorer

Alone = Callable[[Any], Locator]
MADE: dict[str, Callable[[], StepExplorer]] = {
    "chunks": lambda: StepExplorer(
        ("1f1b", "interleaved"), 4, 2, 8, forward=10, backward=20, ring_step=(10, 60), show={"schedule": "interleaved", "overlap": True}
    ),
    "many": lambda: StepExplorer(
        ("gpipe", "1f1b"), 8, (1, 2), (16, 32), forward=10, backward=20, p2p=1, ring_step=(10, 20), optimiser=5,
        show={"schedule": "1f1b", "microbatches": 32},
    ),
    "pairs": lambda: StepExplorer("dualpipe", 4, 2, 8, p2p=0.25, pair_overlap=0.5, ring_step=0.3, optimiser=0.5),
    "latency": lambda: StepExplorer(("1f1b", "zb-h1"), 3, 2, 4, forward=50, backward=80, p2p=14, ring_step=30, optimiser=15),
}  # fmt: skip
each_explorer = in_turn("make", MADE.values())
BOX = (
    "(all) => all.map((each) => { const { left, top, right, bottom } = each.getBoundingClientRect(); return [left, top, right, bottom]; })"
)
# sets a control and counts the elements that this makes, and all that there are then
COUNT = """(root, [name, value]) => {
  const known = new Set();
  const made = (changes) => changes.forEach(({ addedNodes }) => addedNodes.forEach((node) => {
    for (const each of [node, ...(node.querySelectorAll?.("*") ?? [])]) if (each.nodeType === Node.ELEMENT_NODE) known.add(each);
  }));
  const before = new Set(root.querySelectorAll("*"));
  const observer = new MutationObserver(() => {});
  observer.observe(root, { childList: true, subtree: true });
  const control = root.querySelector(`[id$=-${name}]`);
  control.value = value;
  control.dispatchEvent(new Event(control.localName === "select" ? "change" : "input", { bubbles: true }));
  return Promise.resolve().then(() => {
    made(observer.takeRecords());
    observer.disconnect();
    return { made: [...known].filter((each) => !before.has(each)).length, all: root.querySelectorAll("*").length };
  });
}"""


def boxes(found: Locator) -> list[list[float]]:
    return list(found.evaluate_all(BOX))


def apart(found: list[list[float]], least: float = -0.5) -> bool:
    """Return whether any two of these boxes have ``least`` pixels between them, or stand above each other."""
    return not any(
        min(one[2], other[2]) - max(one[0], other[0]) > -least and min(one[3], other[3]) - max(one[1], other[1]) > 0.5
        for place, one in enumerate(found)
        for other in found[:place]
    )


def moved(view: Locator, time: float) -> None:
    """Set the time of the player, which then veils the future."""
    view.locator("input[id$=-time]").evaluate(
        "(slider, time) => { slider.value = time; slider.dispatchEvent(new Event('input', { bubbles: true })); }", time
    )


def now(view: Locator) -> float:
    return float(view.locator("input[id$=-time]").input_value())


def point(view: Locator, rank: int, time: float, step: HybridStep) -> dict[str, float]:
    """Return the place of a time in the lane of a rank, from the corner of the picture."""
    rows = view.locator(".plot path.paper").get_attribute("d") or ""
    left, top, width = [(float(x), float(y), float(across)) for x, y, across in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", rows)][rank]
    return {"x": 5 + left + time / step.makespan * width, "y": 1 + top + 8}


# ---- the labels, the width ----


@each_explorer
def test_labels_never_overlap_and_one_rule_holds_for_a_picture(alone: Alone, make: Callable[[], StepExplorer]) -> None:
    explorer = make()
    view = alone(explorer)
    count, seen = len(explorer.step.timeline.schedule.ops), set()
    for _ in range(6):
        labels = view.locator(".plot .texts text")
        assert apart(boxes(labels))
        assert apart(boxes(view.locator(".plot .axis text")), least=2), view.locator(".plot .axis text").all_text_contents()
        texts = [text for text in view.locator(".plot .op.texts text").all_text_contents() if text != "opt"]
        assert len(texts) in (0, count), "all operations have a label, or none has"
        assert len({bool(re.fullmatch(r"\d+", text)) for text in texts}) <= 1
        seen.add(texts[0] if texts else "")
        view.get_by_label("Zoom in").click()
    assert "F0" in seen


# The width inside the box around the picture; on a phone, the box next to it has no size of its own.
ROOM = """(box) => {
  let around = box.parentNode;
  while (getComputedStyle(around).display === "contents") around = around.parentNode;
  const { paddingLeft, paddingRight } = getComputedStyle(around);
  return around.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
}"""


@in_turn("make", [MADE["chunks"], MADE["many"]])
def test_the_whole_step_is_seen_until_the_reader_zooms(alone: Alone, make: Callable[[], StepExplorer]) -> None:
    view = alone(make())
    picture = view.locator(".picture")

    def inside() -> bool:
        (left, _, right, _), (end, *_) = boxes(picture)[0], boxes(view.locator(".plot line.end"))[0]
        return left <= end <= right and bool(picture.evaluate("(box) => box.scrollWidth <= box.clientWidth"))

    for width in (1280, 800, 360):
        view.page.set_viewport_size({"width": width, "height": 720})
        expect(picture).to_have_js_property("clientWidth", int(picture.evaluate(ROOM)))
        view.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        assert inside(), width
        assert not re.search("more", picture.get_attribute("class") or "")
    view.get_by_label("Zoom in").click()
    assert not inside()
    expect(picture).to_have_class(re.compile("more-right"))
    picture.evaluate("(box) => { box.scrollLeft = 1e6; }")
    expect(picture).to_have_class(re.compile("more-left"))
    expect(picture).not_to_have_class(re.compile("more-right"))
    view.get_by_label("Fit").click()
    assert inside()


def test_controls_picture_and_readout_fit_on_a_small_screen_and_stand_beside_on_a_large_one(alone: Alone) -> None:
    view = alone(MADE["chunks"]())
    view.page.set_viewport_size({"width": 800, "height": 720})
    view.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert boxes(view.locator(".told"))[0][3] <= 720
    view.page.set_viewport_size({"width": 1280, "height": 720})
    (picture,), (told,) = boxes(view.locator(".picture")), boxes(view.locator(".told"))
    assert told[0] >= picture[2]


def on_paper_there_are_no_controls_and_no_veil_and_the_picture_is_whole(view: Locator) -> None:
    view.get_by_label("Zoom in").click()
    moved(view, 300)
    view.page.set_viewport_size({"width": 720, "height": 900})
    view.page.emulate_media(media="print")
    assert not any(control.is_visible() for control in view.locator("select, input, button, .veil, .waits").all())
    assert view.locator(".told").is_visible()
    (plot,), (root,) = boxes(view.locator(".plot")), boxes(view)
    assert plot[2] <= root[2]
    assert view.locator(".picture").evaluate("(box) => getComputedStyle(box).maskImage") == "none"


# ---- the time ----


def test_the_time_begins_where_the_trait_stands_and_nothing_is_veiled(alone: Alone) -> None:
    view = alone(StepExplorer("1f1b", 2, 2, 4, forward=50, backward=80, ring_step=20, show={"time": 120, "rank": 1}))
    assert now(view) == 120
    assert (view.locator(".told").text_content() or "").startswith("Rank 1 (stage 1, replica 0) at 120 ms")
    assert not view.locator(".veil").is_visible()
    moved(view, 200)
    assert view.locator(".veil").is_visible()
    assert "at 200 ms" in (view.locator(".told").text_content() or "")


def play_ends_at_the_makespan(view: Locator) -> None:
    explorer = MADE["latency"]()
    view.page.emulate_media(reduced_motion="no-preference")
    view.get_by_label("Speed", exact=True).select_option("4")
    view.get_by_role("button", name="Play").click()
    expect(view.locator(".veil")).to_be_visible()
    expect(view.get_by_role("button", name="Pause")).to_be_visible()
    assert view.locator(".told").get_attribute("aria-live") == "off"
    expect(view.get_by_role("button", name="Play")).to_be_visible()
    assert now(view) == pytest.approx(explorer.step.makespan, rel=1e-8)
    assert (view.locator(".told").text_content() or "").endswith("is done: the step has ended.")
    assert view.locator(".told").get_attribute("aria-live") == "polite"
    assert not view.locator(".veil").is_visible()


def without_motion_the_time_goes_from_event_to_event(view: Locator) -> None:
    explorer = MADE["latency"]()
    edges = sorted({row[edge] for row in explorer.step.timeline.to_rows() for edge in ("start", "end")})
    view.get_by_label("Speed", exact=True).select_option("4")
    view.locator("input[id$=-time]").evaluate(
        "(slider) => { window.times = []; new MutationObserver(() => window.times.push(Number(slider.value)))"
        ".observe(slider, { attributes: true, attributeFilter: ['aria-valuetext'] }); }"
    )
    view.get_by_role("button", name="Play").click()
    view.page.wait_for_function("window.times.length >= 4")
    view.get_by_role("button", name="Pause").click()
    assert view.page.evaluate("window.times.slice(0, 4)") == pytest.approx(edges[1:5])


@in_turn("name", ["latency", "chunks"])
def test_each_message_and_each_hop_is_a_dot_on_its_way(alone: Alone, name: str) -> None:
    explorer = MADE[name]()
    view, step = alone(explorer), explorer.step
    rows = [row for row in step.timeline.to_rows() if row["op"].split()[0] in ("send", "reduce-scatter", "all-gather")]
    tops = [float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)h", view.locator(".plot path.paper").get_attribute("d") or "")]
    pitch, most = tops[1] - tops[0], 0
    for time in np.linspace(0.003, 0.997, 24) * step.makespan:
        moved(view, time)
        flying = [row for row in rows if row["start"] <= time < row["end"]]
        dots = sorted(float(dot.get_attribute("cy") or "nan") for dot in view.locator(".dots circle").all())
        parts = [(time - row["start"]) / (row["end"] - row["start"]) for row in flying]
        places = [(tops[row["device"]], tops[row["peer"]]) for row in flying]
        ways = sorted(one + (other - one) * part for (one, other), part in zip(places, parts, strict=True))
        assert len(dots) == len(flying)
        assert all(0 < dot - way < pitch for dot, way in zip(dots, ways, strict=True)), "in the lane of messages below a rank's bars"
        most = max(most, len(dots))
    assert most > 1


def ranks_that_compute_nothing_say_at_the_cursor_what_they_wait_for(view: Locator) -> None:
    timeline = MADE["latency"]().step.timeline
    schedule, blocking = timeline.schedule, timeline.blocking_operation()
    seen = 0
    for time in np.linspace(0.01, 0.7, 30) * timeline.end.max():
        moved(view, time)
        wanted = []
        for rank in range(6):
            own = schedule.device == rank
            if ((timeline.start <= time) & (time < timeline.end) & own).any() or not (own & (timeline.start > time)).any():
                continue
            row = blocking[np.flatnonzero(own & (timeline.start > time))[0]]
            wanted.append(f"waits for {schedule.ops[row]} of rank {schedule.device[row]}")
        assert view.locator(".waits text").all_text_contents()[: len(wanted)] == wanted
        seen += len(wanted)
    assert seen > 20


@pytest.mark.needs("axe")
def test_a_time_that_plays_is_accessible_in_light_and_dark_and_fits_a_phone(alone: Alone) -> None:
    view = alone(MADE["latency"]())
    moved(view, 300)
    for width, scheme in ((1280, "light"), (360, "dark")):
        view.page.set_viewport_size({"width": width, "height": 900})
        view.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        view.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        found = violations(view.page, ".hybridlab-step")
        assert not found, "\n".join(found)
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width


# ---- little work for a change ----


def test_a_change_of_a_control_makes_few_elements(alone: Alone) -> None:
    """The step has 512 operations and 896 messages; 16 ranks have 2,000 more."""
    view = alone(MADE["many"]())
    for name, value in (("schedule", "0"), ("microbatches", "0"), ("ring", "1"), ("overlap", "1"), ("replicas", "1")):
        made = view.evaluate(COUNT, [name, value])
        assert 0 < made["made"] < 200, name
        assert made["all"] < 500, name


def test_the_time_moves_without_new_elements(alone: Alone) -> None:
    view = alone(StepExplorer("gpipe", 2, 1, 4, forward=50, backward=80))
    moved(view, 10)
    assert view.evaluate(COUNT, ["time", "40"])["made"] == 0


# ---- the pointer ----


def the_pointer_tells_a_click_keeps_and_escape_or_a_click_beside_lets_go(view: Locator) -> None:
    step = MADE["latency"]().step
    plot, told = view.locator(".plot"), view.locator(".told strong")
    before = told.text_content()

    def at(rank: int, part: float) -> dict[str, Any]:
        return {"position": point(view, rank, part * step.makespan, step), "force": True}

    def says(rank: int) -> None:
        expect(told).to_have_text(re.compile(f"^Rank {rank} "))

    plot.hover(**at(4, 0.3))
    says(4)
    assert now(view) == 0, "the pointer changes no setting"
    view.page.mouse.move(5, 5)
    expect(told).to_have_text(str(before))
    for let_go in (lambda: view.page.keyboard.press("Escape"), lambda: view.page.mouse.click(5, 700)):
        plot.click(**at(2, 0.5))
        says(2)
        assert now(view) == pytest.approx(0.5 * step.makespan, rel=0.01)
        plot.hover(**at(4, 0.3))
        says(2)
        let_go()
        plot.hover(**at(4, 0.6))
        says(4)
        view.page.mouse.move(5, 5)
        says(2)


def test_arrow_keys_move_the_cursor_and_scroll_to_it(alone: Alone) -> None:
    explorer = MADE["many"]()
    view = alone(explorer)
    for _ in range(3):
        view.get_by_label("Zoom in").click()
    picture = view.locator(".picture")
    picture.focus()
    picture.press("End")
    assert now(view) == pytest.approx(explorer.step.makespan, rel=1e-8)
    assert picture.evaluate("(box) => box.scrollLeft + box.clientWidth >= box.scrollWidth - 150")
    picture.press("Home")
    picture.press("ArrowDown")
    assert (view.locator(".told").text_content() or "").startswith("Rank 1 (stage 1, replica 0) at 0 ms")
    assert picture.evaluate("(box) => box.scrollLeft") == 0


def test_the_time(alone: Alone) -> None:
    questions = (
        play_ends_at_the_makespan,
        without_motion_the_time_goes_from_event_to_event,
        ranks_that_compute_nothing_say_at_the_cursor_what_they_wait_for,
        the_pointer_tells_a_click_keeps_and_escape_or_a_click_beside_lets_go,
        on_paper_there_are_no_controls_and_no_veil_and_the_picture_is_whole,
    )
    in_order(alone(MADE["latency"]()).page, questions, again=as_new, part=THE_VIEW)
