"""Test the way of a reader who installs nothing and has no network: from the first page to a schedule of their own, and a link to it."""

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from hybridlab import Costs, Schedule, build, simulate
from hybridlab.course.puzzles import PUZZLES

# two rounds of 1F1B on 3 devices, with two microbatches each: no device holds more than two activations, and 1F1B would hold three
ROUNDS = "\n".join(
    f"device {device}: " + " ".join(re.sub(r"(?<=[FB])\d", lambda found, add=2 * turn: str(int(found[0]) + add), line) for turn in (0, 1))
    for device, line in enumerate(each.split(": ")[1] for each in str(build("1f1b", 3, 2)).splitlines())
)


def drag(view: Locator, label: str, share: float) -> None:
    """Drag the thumb of a slider from its left end to a share of its width."""
    slider = view.get_by_role("slider", name=label)
    box = slider.bounding_box()
    assert box
    page, height = view.page, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8, height)
    page.mouse.down()
    page.mouse.move(box["x"] + share * box["width"], height, steps=5)
    page.mouse.up()


def made(page: Page) -> Locator:
    """Return the editor of the puzzle with little memory on the page of lab 17."""
    return page.locator(".hybridlab-editor", has_text=PUZZLES["little-memory"].title).first


def test_a_reader_without_network_plays_asks_drags_writes_and_sends(fresh_page: Any, files: str) -> None:
    page = fresh_page(files + "book/intro.html", reduced_motion="no-preference", permissions=["clipboard-read", "clipboard-write"])
    page.context.set_offline(True)

    # plays the film on the first page
    film = page.locator(".hybridlab-film")
    film.scroll_into_view_if_needed()
    film.get_by_label("Speed").select_option("4")
    expect(film.locator(".title").last.locator("b").first).to_have_text("27")

    # follows it to lab 2, and asks why device 0 idles
    page.locator("article a[href$='lab02_one_f_one_b.html']").first.click()
    view = page.locator(".hybridlab-explorer").last
    view.locator(".idles .idle").first.click()
    expect(view.locator(".told")).to_contain_text("Idle. Device 0 is idle from")
    expect(view.locator(".told")).to_contain_text("The next operation, 0B0, needs 1B0 of device 1")

    # drags the latency, and the step takes as long as the library says
    before = view.locator("tbody td").first.inner_text()
    drag(view, "Latency", 0.6)
    latency = float(view.get_by_role("spinbutton", name="Latency").input_value())
    assert latency > 0
    makespan = view.locator("tbody td").first.inner_text()
    assert makespan != before
    wanted = simulate(build("gpipe", 4, 8), Costs(forward=1, backward=2, p2p=latency)).makespan
    assert makespan == f"{wanted:.6g}"

    # writes a schedule that holds less than 1F1B
    page.locator("nav a[href$='lab17_design_your_own.html']").first.click()
    editor = made(page)
    text = editor.get_by_label("Your schedule, one line for each device")
    text.fill(ROUNDS)
    puzzle = PUZZLES["little-memory"]
    held = simulate(Schedule.parse(ROUNDS), puzzle.costs).peak_activations.max()
    assert held < simulate(build("1f1b", 3, 4), puzzle.costs).peak_activations.max()
    expect(editor).to_contain_text("This order is complete and can run.")
    expect(editor).to_contain_text("2, 2, 1 (room for 2)")

    # sends the link; who opens it sees the same schedule
    editor.locator("summary", has_text="Link").click()
    editor.get_by_role("button", name="Copy a link").click()
    page.wait_for_function("location.hash.startsWith('#view')")
    link = page.evaluate("location.href")
    other = page.context.new_page()
    other.goto(link)
    expect(made(other).get_by_label("Your schedule, one line for each device")).to_have_value(ROUNDS)
    other.close()
