"""Test the schedule editor on a page without a kernel: typing, dragging, keys, goals, what the browser keeps, export, damaged data."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from accessibility import OF_COLOURS, violations
from browser import address_of, reload, reload_after
from cases import in_turn
from playwright.sync_api import Locator, Page, expect
from visits import DRAWN, THE_VIEW, as_new, in_order

from hybridlab import Costs, Schedule, build, simulate
from hybridlab.course.puzzles import PUZZLES
from hybridlab.widgets import ScheduleEditor

Alone = Callable[[Any], Locator]
TWO = "device 0: 0F0 0F1 0B0 0B1\ndevice 1: 1F0 1B0 1F1 1B1"
KEY = "hybridlab.schedule.two-devices"
# A view of a model as in a notebook: what Python sets reaches the script, and what the script sends is kept.
MOUNT = """async ([code, state]) => {
  const { default: { render } } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const listeners = [];
  const model = {
    sent: [],
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      model.sent.push(value);
      for (const [event, listener] of [...listeners]) if (event === `change:${name}`) listener();
    },
    on: (event, listener) => listeners.push([event, listener]),
    off: () => {},
    save_changes: () => {},
  };
  const el = document.createElement("div");
  document.body.replaceChildren(el);
  window.mounted = { model, end: render({ model, el }) };
}"""


def small(**changes: Any) -> ScheduleEditor:
    return ScheduleEditor(**{"devices": 2, "microbatches": 2} | changes)


def area(view: Locator) -> Locator:
    return view.get_by_label("Your schedule, one line for each device")


def figures(view: Locator) -> dict[str, str]:
    return dict(row.locator("th, td").all_text_contents() for row in view.locator(".side tr").all())


def chips(view: Locator, device: int) -> list[str]:
    return view.get_by_role("listbox", name=f"device {device}").get_by_role("option").all_text_contents()


def bars(view: Locator) -> int:
    """Return the number of operations in the picture, which is drawn in the next frame."""
    view.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    return view.locator(".picture .op").count()


def text_of(view: Locator) -> str:
    return area(view).input_value()


def middle(chip: Locator) -> tuple[float, float]:
    box = chip.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def chip(view: Locator, word: str) -> Locator:
    return view.locator(".chip").get_by_text(word, exact=True)


def test_the_picture_the_figures_and_the_verdict_follow_each_key(alone: Alone) -> None:
    view = alone(small(show={"text": ""}, forward=[1, 2], backward=[2, 3], p2p=0.5))
    area(view).focus()
    seen = set()
    for letter in TWO:
        view.page.keyboard.insert_text(letter)
        seen.add((bars(view), view.locator(".verdict").text_content()))
    timeline = simulate(Schedule.parse(TWO), Costs(forward=[1, 2], backward=[2, 3], p2p=0.5))
    assert text_of(view) == TWO
    assert len(seen) > 6, "the picture grows while the reader types"
    expect(view.locator(".verdict")).to_have_text("This order is complete and can run.")
    assert bars(view) == 8
    assert figures(view) == {
        "Makespan": f"{timeline.makespan:g} ms",
        "Bubble ratio": f"{timeline.bubble_ratio:.3f}",
        "Peak activations": "2, 1",
    }
    assert [chips(view, device) for device in (0, 1)] == [line.split()[2:] for line in TWO.splitlines()]


@in_turn(
    "text, sentence, selected",
    [
        (TWO.replace("0B0", "0X0"), "Line 1, column 19: '0X0' is not an operation: write stage", "0X0"),
        (TWO.replace("1B0", "1B1"), "Stage 1 runs the backward of microbatch 1 twice.", "1B1"),
        (TWO.replace("0F0 0F1", "0F1 0F0").replace("1F0 1B0", "1B0 1F0"), "Device 1 runs 1B0 before 1F0", "1B0"),
        (TWO.replace("device 1", "device 3"), "Line 2, column 1: device 1 must come here, not device 3.", "device 3: 1F0 1B0 1F1 1B1"),
        (TWO.replace("0F1", "0F5"), "0F5 is of microbatch 5, but this editor has 2 microbatches", "0F5"),
    ],
)
def test_a_fault_has_a_sentence_and_a_button_that_leads_to_it(alone: Alone, text: str, sentence: str, selected: str) -> None:
    view = alone(small(show={"text": text}))
    fault = view.locator(".faults li").filter(has_text=sentence)
    expect(fault).to_be_visible()
    fault.get_by_role("button").click()
    assert area(view).evaluate("(box) => box.value.slice(box.selectionStart, box.selectionEnd)") == selected
    assert area(view).evaluate("(box) => box === document.activeElement")
    if " " not in selected:
        expect(view.locator(".chip.wrong").first).to_have_text(selected)


def test_a_deadlock_shows_what_runs_before_it_and_the_circle(alone: Alone) -> None:
    view = alone(small(show={"text": "0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0"}))
    sentences = view.locator(".faults li").all_text_contents()
    assert [each.removesuffix(" Go there") for each in sentences] == [
        "Device 0 stops at 0B0: it waits for 1B0, which is behind 1F1 on device 1.",
        "Device 1 stops at 1F1: it waits for 0F1, which is behind 0B0 on device 0.",
        "Device 0 waits for device 1, which waits for device 0.",
    ]
    assert bars(view) == 1
    assert view.locator(".chip.ran").all_text_contents() == ["0F0"]
    expect(view.locator(".verdict")).to_have_text("No schedule yet: 1 operation can run.")


def test_the_time_is_played_and_devices_say_what_they_wait_for(alone: Alone) -> None:
    view = alone(small(show={"text": TWO}, p2p=0.5))
    slider, timeline = view.get_by_role("slider", name="Time"), simulate(Schedule.parse(TWO), Costs(forward=1, backward=2, p2p=0.5))
    expect(slider).to_have_attribute("aria-valuetext", f"{timeline.makespan:g} ms")
    expect(view.locator(".moment")).to_be_hidden()
    slider.press("Home")
    moments = sorted({0.0, *timeline.start.tolist(), *timeline.end.tolist()})
    seen = set()
    for time in moments[:-1]:
        expect(slider).to_have_attribute("aria-valuetext", f"{time:g} ms")
        waits = view.locator(".moment .waits").all_text_contents()
        for device, words in enumerate(waits):
            computes = any((timeline.start <= time) & (time < timeline.end) & (timeline.device == device))
            assert computes == (words == "")
        seen.update(waits)
        seen.add(f"{view.locator('.dot').count()} on the way")
        slider.press("ArrowRight")
    assert seen >= {"waits for 0F0", "waits for 1B0", "done", "1 on the way", "0 on the way"}
    expect(view.locator(".moment")).to_be_hidden()
    slider.press("ArrowLeft")
    area(view).fill(TWO.replace("0F0 0F1 0B0", "0F0 0B0 0F1"))
    assert bars(view) == 8
    expect(view.locator(".moment")).to_be_hidden()
    area(view).fill("")
    assert bars(view) == 0
    expect(slider).to_be_hidden()


def test_where_an_order_cannot_go_on_the_time_ends_and_each_device_says_what_it_waits_for(alone: Alone) -> None:
    view = alone(small(show={"text": "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"}))
    assert bars(view) == 2
    slider = view.get_by_role("slider", name="Time")
    expect(slider).to_have_attribute("aria-valuetext", "2 ms")
    slider.press("ArrowLeft")
    assert view.locator(".moment .waits").all_text_contents() == ["waits for 1B0", ""]
    view.locator(".idle").first.hover()
    expect(view.locator(".told")).to_have_text("Idle. Device 0 is idle from 1 to 2 ms. It waits for 1B0, which does not run.")


def a_chip_is_dragged_with_the_mouse_and_one_undo_takes_it_back(view: Locator) -> None:
    mouse = view.page.mouse
    mouse.move(*middle(chip(view, "0B0")))
    mouse.down()
    mouse.move(*middle(chip(view, "0F1")), steps=4)
    x, y = middle(chip(view, "0F0"))
    mouse.move(x - 8, y, steps=6)
    assert chips(view, 0) == ["0B0", "0F0", "0F1", "0B1"]
    assert bars(view) == 0, "the picture follows while the chip is dragged: with 0B0 first, nothing can run"
    mouse.up()
    assert text_of(view) == TWO.replace("0F0 0F1 0B0", "0B0 0F0 0F1")
    mouse.move(x + 200, y)
    assert chips(view, 0)[0] == "0B0", "after the drag the pointer moves nothing"
    view.get_by_role("button", name="Undo").click()
    assert text_of(view) == TWO
    view.get_by_role("button", name="Redo").click()
    assert chips(view, 0)[0] == "0B0"


def escape_takes_a_drag_back(view: Locator) -> None:
    mouse = view.page.mouse
    chip(view, "1F0").focus()
    mouse.move(*middle(chip(view, "1F0")))
    mouse.down()
    mouse.move(*middle(chip(view, "1B1")), steps=8)
    assert chips(view, 1)[0] != "1F0"
    view.page.keyboard.press("Escape")
    assert text_of(view) == TWO
    mouse.up()
    assert text_of(view) == TWO


def a_chip_is_dragged_with_a_finger(view: Locator) -> None:
    session = view.page.context.new_cdp_session(view.page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    (x, y), (to, _) = middle(chip(view, "1F1")), middle(chip(view, "1F0"))
    for kind, at in (("touchStart", x), *(("touchMove", x + (to - 8 - x) * step / 6) for step in range(1, 7))):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": at, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(area(view)).to_have_value(TWO.replace("1F0 1B0 1F1", "1F1 1F0 1B0"))
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": False})


def chips_are_chosen_and_moved_from_the_keyboard_alone(view: Locator) -> None:
    press = view.page.keyboard.press
    focused = "document.activeElement.getAttribute('aria-label')"
    view.get_by_role("button", name="Use this schedule").focus()
    while not view.page.evaluate("document.activeElement.matches('.chip')"):
        press("Tab")
    assert view.page.evaluate(focused) == "0F0, 1 of 4"
    for key, name in (
        ("ArrowRight", "0F1"),
        ("ArrowDown", "1B0"),
        ("End", "1B1"),
        ("ArrowRight", "1B1"),
        ("Home", "1F0"),
        ("ArrowUp", "0F0"),
    ):
        press(key)
        assert view.page.evaluate(focused).startswith(f"{name}, ")
    press("ArrowDown")
    press("Alt+ArrowRight")
    press("Alt+ArrowRight")
    assert chips(view, 1) == ["1B0", "1F1", "1F0", "1B1"]
    assert view.page.evaluate(focused) == "1F0, 3 of 4, not run"
    expect(view.locator("[aria-live]").filter(has_text="1F0 is now at place 3 of 4.")).to_be_attached()
    press("Alt+ArrowLeft")
    press("Alt+ArrowLeft")
    press("Alt+ArrowLeft")
    assert text_of(view) == TWO
    press("Control+z")
    assert chips(view, 1) == ["1B0", "1F0", "1F1", "1B1"]
    press("Control+Shift+z")
    assert text_of(view) == TWO
    press("Tab")
    assert view.page.evaluate("!document.activeElement.matches('.chip')"), "the chips are one stop of the Tab key"


def test_a_step_back_goes_to_the_word_before_also_after_chips_were_moved(alone: Alone) -> None:
    view = alone(small(show={"text": "0F0"}))
    area(view).focus()
    press = view.page.keyboard.press
    press("End")
    view.page.keyboard.type(" 0F1 0B0")
    assert text_of(view) == "0F0 0F1 0B0"
    chip(view, "0B0").focus()
    press("Alt+ArrowLeft")
    area(view).focus()
    steps = [text_of(view)]
    for _ in range(3):
        press("Control+z")
        steps.append(text_of(view))
    assert steps == ["0F0 0B0 0F1", "0F0 0F1 0B0", "0F0 0F1", "0F0"]
    press("Control+z")
    assert text_of(view) == "0F0"
    expect(view.get_by_role("button", name="Undo")).to_be_disabled()
    press("Control+y")
    view.page.keyboard.type("x")
    assert text_of(view) == "0F0 0F1x"
    expect(view.get_by_role("button", name="Redo")).to_be_disabled()


def test_every_schedule_of_these_sizes_can_be_a_start(alone: Alone) -> None:
    editor = small(devices=4, microbatches=8)
    view = alone(editor)
    for start in editor.data["starts"]:
        view.get_by_label("Start from").select_option(start["name"])
        view.get_by_role("button", name="Use this schedule").click()
        assert text_of(view) == start["text"]
        verdict = "This order is complete and can run." if start["name"] else "No schedule yet: nothing can run."
        expect(view.locator(".verdict")).to_have_text(verdict)
        assert bars(view) == len(re.findall(r"\d[FBIW]", start["text"]))


@in_turn("name", PUZZLES)
def test_every_schedule_that_a_puzzle_offers_belongs_there(name: str) -> None:
    starts = ScheduleEditor(PUZZLES[name]).data["starts"]
    offered = [start["text"] for start in starts if start["name"] not in ("start", "")]
    assert len(offered) > 2
    assert all(PUZZLES[name].judge(text).reached[:2] == ("complete", "runs") for text in offered)


def test_goals_are_reached_one_after_the_other_and_announced(alone: Alone) -> None:
    puzzle = PUZZLES["little-memory"]
    view = alone(ScheduleEditor(puzzle))
    for text in ("", str(build("gpipe", 3, 4)), str(build("1f1b", 3, 4)), puzzle.start, "0F0\n1F0\n2F0"):
        area(view).fill(text)
        reached = view.locator(".goals li.reached").count()
        assert reached == len(puzzle.judge(text).reached)
        assert view.locator(".goals li").filter(has_text="not reached: ").count() == len(puzzle.goals) - reached
    area(view).fill(puzzle.start)
    expect(view.locator("[aria-live]").filter(has_text="Goal reached: the schedule can run")).to_be_attached()


def test_the_best_schedule_is_kept_in_the_browser(alone: Alone) -> None:
    view = alone(ScheduleEditor(PUZZLES["two-devices"]))
    page = view.page
    slow, fast = str(build("gpipe", 2, 3)), str(build("1f1b", 2, 3))
    assert view.locator(".best").text_content() == ""
    area(view).fill(slow)
    expect(view.locator(".best")).to_contain_text("Your best so far: 2 of 5 goals")
    area(view).fill(fast)
    expect(view.locator(".best")).to_have_text("Your best so far: 5 of 5 goals, 120 ms.")
    area(view).fill(slow)
    expect(view.locator(".best")).to_have_text("Your best so far: 5 of 5 goals, 120 ms.")
    # a browser that loses the last text it was to store has kept the one before it
    reload_after(page, lambda: (area(view).fill(slow), area(view).fill(fast)), f"localStorage.getItem('{KEY}') === {json.dumps(fast)}")
    assert text_of(view) == PUZZLES["two-devices"].start
    view.get_by_role("button", name="Show it").click()
    assert text_of(view) == fast
    expect(view.get_by_role("button", name="Show it")).to_be_hidden()


@in_turn("kept", ["", "0F0 0B0", "x" * 200_000])
def test_what_the_browser_keeps_may_be_damaged(alone: Alone, kept: str) -> None:
    view = alone(ScheduleEditor(PUZZLES["two-devices"]))
    view.page.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, kept])
    reload(view.page)
    assert view.locator(".best").text_content() == ""
    area(view).fill(str(build("1f1b", 2, 3)))
    expect(view.locator(".best")).to_have_text("Your best so far: 5 of 5 goals, 120 ms.")


def test_a_browser_that_keeps_nothing_shows_the_best_of_the_page(alone: Alone) -> None:
    editor = ScheduleEditor(PUZZLES["two-devices"])
    view = alone(editor)
    page = view.page
    page.evaluate("Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('refused', 'SecurityError'); } })")
    area(view).fill(str(build("1f1b", 2, 3)))
    area(view).fill("")
    expect(view.locator(".best")).to_have_text("Your best so far: 5 of 5 goals, 120 ms.")


def test_the_text_and_what_it_is_as_csv_are_saved_and_the_editor_reads_both(alone: Alone) -> None:
    schedule = build("dualpipe-v", 2, 4)
    view = alone(small(microbatches=4, chunks=2, show={"text": str(schedule)}))
    assert schedule.pairs.size
    view.get_by_text("Link and files").click()
    for button, name, content in (
        ("Save text", "schedule.txt", str(schedule)),
        ("Save CSV", "schedule-2x4.csv", schedule.to_csv()),
    ):
        with view.page.expect_download() as saved:
            view.get_by_role("button", name=button).click()
        assert saved.value.suggested_filename == name
        assert saved.value.path().read_text(encoding="utf-8") == content
        for text in (content, "sep=;\n# as Excel writes it in Germany\n" + content.replace(",", ";")):
            area(view).fill("")
            area(view).fill(text)
            expect(view.locator(".verdict")).to_have_text("This order is complete and can run.")
            expect(view.locator(".chip")).to_have_count(len(schedule.ops) - schedule.pairs.size)


def test_a_link_brings_the_text(alone: Alone) -> None:
    view = alone(small())
    page = view.page
    area(view).fill(TWO)
    page.wait_for_function("location.hash.includes('text=')")
    address = address_of(page)
    page.goto("about:blank")
    page.goto(address)
    assert text_of(view) == TWO
    expect(view.locator(".verdict")).to_have_text("This order is complete and can run.")


def test_what_python_sets_is_shown_and_what_the_reader_writes_is_sent(alone: Alone) -> None:
    editor = small(show={"text": TWO})
    page: Page = alone(editor).page
    state = editor.get_state()
    page.evaluate(MOUNT, [state["_esm"], {"data": state["data"], "text": state["text"]}])
    view = page.locator(".hybridlab-editor")
    page.evaluate("mounted.model.set('text', 'device 0: 0F0')")
    assert text_of(view) == "device 0: 0F0"
    assert bars(view) == 1
    area(view).press("End")
    page.keyboard.type(" 0F1")
    assert page.evaluate("mounted.model.sent.at(-1)") == "device 0: 0F0 0F1"
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    assert page.evaluate("mounted.model.sent.at(-1)") == TWO
    page.evaluate("mounted.end()")


@in_turn(
    "part, value",
    [
        ("data", {}),
        ("data", None),
        ("text", 3),
        ("costs", {"forward": [1]}),
        ("devices", 0),
        ("goals", []),
        ("starts", None),
        ("kinds", None),
    ],
)
def test_damaged_data_show_a_sentence(alone: Alone, faults: list[str], part: str, value: Any) -> None:
    editor = small()
    page: Page = alone(editor).page
    state = {"data": editor.data, "text": editor.text}
    state = state | {part: value} if part in state else state | {"data": editor.data | {part: value}}
    page.evaluate(MOUNT, [str(ScheduleEditor._esm), json.loads(json.dumps(state))])
    expect(page.get_by_role("alert")).to_contain_text("The data of this editor are missing or damaged")
    faults.clear()  # the console tells which part it was


def a_box_fades_at_the_edge_behind_which_there_is_more(view: Locator) -> None:
    """The longest lines of the text are wider than a phone; there, three lines of chips for each device are more than the box can show."""
    masks = """(root) => ["textarea", ".chips", ".judgement"]
      .map((each) => getComputedStyle(root.querySelector(each)).maskImage.slice(0, 23))"""
    area(view).fill(str(build("zb-h1", 4, 8)))
    area(view).blur()
    for width, wanted in ((360, ["linear-gradient(to left", "linear-gradient(to top,", "none"]), (1280, ["none"] * 3)):
        view.page.set_viewport_size({"width": width, "height": 720})
        area(view).evaluate("(area) => (area.scrollLeft = 0)")
        view.page.evaluate(DRAWN)
        assert view.evaluate(masks) == wanted


@pytest.mark.needs("axe")
def test_the_editor_is_accessible_and_fits(alone: Alone) -> None:
    view = alone(ScheduleEditor(PUZZLES["unequal-devices"]))
    page = view.page
    page.evaluate("document.body.style.margin = 0")
    a_box_fades_at_the_edge_behind_which_there_is_more(view)
    for text in (str(build("zb-h1", 4, 8)), "device 0: 0F0 0G0\ndevice 2: 1F0"):
        area(view).fill(text)
        for width in (360, 688, 800, 1280):  # 688 is the width of a column of the site
            page.set_viewport_size({"width": width, "height": 720})
            page.evaluate(DRAWN)
            box = view.evaluate("(root) => [root.scrollWidth - root.clientWidth, root.getBoundingClientRect().height]")
            assert box[0] <= 0
            assert width == 360 or box[1] <= 720
        assert violations(page, ".hybridlab-editor .write", ".hybridlab-editor .side") == []
        page.emulate_media(color_scheme="dark")
        assert violations(page, ".hybridlab-editor .write", ".hybridlab-editor .side", rules=OF_COLOURS) == []
        page.emulate_media(color_scheme="light")


def test_chips(alone: Alone) -> None:
    questions = (
        a_chip_is_dragged_with_the_mouse_and_one_undo_takes_it_back,
        escape_takes_a_drag_back,
        a_chip_is_dragged_with_a_finger,
        chips_are_chosen_and_moved_from_the_keyboard_alone,
    )
    in_order(alone(small(show={"text": TWO})).page, questions, again=as_new, part=THE_VIEW)
