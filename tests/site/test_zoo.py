"""Test the page of open problems: its table sorts and filters, a row opens its schedules, and the page judges an order.

What a page requests from outside, and what it says on the console, is a fault in every test (conftest.py).
"""

from typing import Any

import pytest
import zoo_page
from accessibility import violations
from browser import address_of, reload
from playwright.sync_api import Page, Route, expect
from test_share import CONTROLS, FOLLOWED, LOOK, TALK, copied, look_at_a_timeline
from visits import in_order

from hybridlab import build, zoo

ZOO = "book/zoo.html"
ALL = [each.name for each in zoo.instances()]
RECORDS = {name: zoo.record(name) for name in ALL}
SOLVED = [name for name in ALL if zoo_page.state_of(RECORDS[name]) == "closed"]
CLOSED = "even-4x8-m4"  # which ZB-H1 solves


def shown(page: Page) -> list[str]:
    rows = page.locator(".zoo-table tbody tr")
    return list(rows.evaluate_all("(rows) => rows.filter((row) => row.checkVisibility()).map((row) => row.id)"))


def told(page: Page, count: int) -> None:
    expect(page.locator(".zoo-filter output")).to_have_text(f"{count} of {len(ALL)} instances are shown.")
    assert len(shown(page)) == count


# ---- the table ----


def a_head_sorts_by_keyboard_and_once_more_turns_the_order(page: Page) -> None:
    assert shown(page) == ALL
    head = page.get_by_role("columnheader", name="best")
    expect(head).to_have_attribute("aria-sort", "none")
    head.get_by_role("button").focus()
    for way, sign in (("ascending", 1), ("descending", -1)):
        page.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-sort", way)
        makespans = [sign * RECORDS[name].makespan * zoo_page.LENGTHS[zoo.instance(name).unit] for name in shown(page)]
        assert makespans == sorted(makespans)
        assert len(makespans) == len(ALL)
    page.get_by_role("columnheader", name="gap").get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "none")
    gaps = [RECORDS[name].gap for name in shown(page)]
    assert gaps == sorted(gaps)


def the_filter_shows_a_class_a_state_and_words_and_the_address_keeps_them(page: Page) -> None:
    page.get_by_label("State").focus()
    page.keyboard.type("closed")
    told(page, len(SOLVED))
    page.get_by_label("Class").select_option("chunks")
    page.get_by_label("Words in the row").fill("8x16 -V-")
    wanted = [name for name in SOLVED if name.startswith("chunks-8x16-v-")]
    assert wanted
    assert shown(page) == wanted
    assert address_of(page).endswith("?state=closed&class=chunks&text=8x16+-V-")
    reload(page)
    told(page, len(wanted))
    page.get_by_label("Words in the row").fill("no such words")
    told(page, 0)


def a_link_to_a_hidden_row_shows_all_rows(page: Page) -> None:
    page.get_by_label("State").select_option("open")
    page.evaluate(f"location.hash = '#{CLOSED}'")
    expect(page.locator(".zoo-row h3")).to_have_text(CLOSED)
    told(page, len(ALL))
    expect(page.locator(f"#{CLOSED}")).to_have_attribute("aria-current", "true")


def test_the_table(new_page: Any, files: str) -> None:
    questions = (
        a_head_sorts_by_keyboard_and_once_more_turns_the_order,
        the_filter_shows_a_class_a_state_and_words_and_the_address_keeps_them,
        a_link_to_a_hidden_row_shows_all_rows,
    )
    page = new_page(files + ZOO)
    in_order(page, questions, again=lambda page: page.goto(files + ZOO))


def test_without_scripts_the_table_is_whole_and_has_no_controls(new_page: Any, server: str) -> None:
    page = new_page(server + ZOO, edit=lambda text: text.replace("zoo.js", "print.js"))
    assert shown(page) == ALL
    assert page.locator(".zoo :is(button, select, input)").count() == 0
    expect(page.locator(".zoo-check")).to_be_hidden()


# ---- a row ----


def makespans(page: Page, part: str) -> dict[str, float]:
    rows = page.locator(f"{part} .readout tbody tr")
    expect(rows.first).to_be_visible()
    return {row.locator("th").inner_text(): float(row.locator("td").first.inner_text()) for row in rows.all()}


@pytest.mark.parametrize("way", ["files", "server"])
def test_an_address_opens_a_row_with_the_best_order_and_the_best_of_the_gallery(new_page: Any, request: Any, way: str) -> None:
    page = new_page(f"{request.getfixturevalue(way)}{ZOO}#{CLOSED}")
    assert makespans(page, ".zoo-row") == {"best known": RECORDS[CLOSED].makespan, "ZB-H1": 270}
    expect(page.locator(".zoo-row h3")).to_be_in_viewport()
    for name in ("latency-8x16-slow3-m8", "chunks-4x8-v-m4"):  # links with a latency of their own, and two chunks
        page.get_by_role("link", name=name, exact=True).focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=name)).to_be_focused()
        expect(page.locator(".zoo-facts")).to_contain_text("Best order")
        assert makespans(page, ".zoo-row")["best known"] == RECORDS[name].makespan
        for folder in ("instances", "records"):
            link = page.locator(f".zoo-row a[download][href$='{folder}/{name}.json']")
            assert way == "files" or page.request.get(link.evaluate("(link) => link.href")).ok
    page.go_back()
    expect(page.locator(".zoo-row h3")).to_have_text("latency-8x16-slow3-m8")


def test_a_link_brings_the_same_schedules_to_another_browser_and_a_line_embeds_them(new_page: Any, fresh_page: Any, files: str) -> None:
    page = new_page(f"{files}{ZOO}#chunks-4x8-v-m4")
    view = page.locator(".zoo-row .hybridlab-view")
    view.get_by_label("Latency, us, slider").press("ArrowRight")
    page.evaluate(f"location.hash = '#{CLOSED}'")
    expect(view.locator(".panel .title").first).to_contain_text("4 devices, 8 microbatches")
    page.evaluate(FOLLOWED)
    assert address_of(page).endswith(f"#{CLOSED}")
    view.get_by_label("Latency, us, slider").press("ArrowRight")
    look_at_a_timeline(view)
    page.evaluate(FOLLOWED)
    link, seen = address_of(page), [view.evaluate(CONTROLS), view.evaluate(LOOK)]
    assert copied(view) == link
    again = fresh_page(link)
    shown = again.locator(".zoo-row .hybridlab-view")
    expect(shown.locator(".path").first).to_be_attached()
    again.evaluate(FOLLOWED)
    assert [shown.evaluate(CONTROLS), shown.evaluate(LOOK)] == seen
    view.get_by_role("button", name="Embed").press("Enter")
    expect(view.locator(".share [role=status]")).to_contain_text("is copied")
    line = page.evaluate("navigator.clipboard.readText()")
    page.goto(f"{files}labs/lab01_mesh.html")
    page.set_content(f"{TALK}{line}")
    frame = page.frame_locator("iframe")
    expect(frame.locator(".path").first).to_be_visible()
    expect(frame.locator(".zoo")).to_be_hidden()
    expect(frame.get_by_role("link", name="Open problems")).to_be_visible()
    assert frame.locator("html").evaluate("() => document.title").startswith(f"{CLOSED}, Open problems")
    assert page.evaluate("scrollY") == 0
    page.goto(f"{files}{ZOO}#view:none?p2p=1")
    expect(page.get_by_role("alert")).to_have_text("This page has no instance of this name.")


# ---- an order ----


def check(page: Page, text: str, name: str = CLOSED) -> str:
    """Hand in an order with the keyboard, and return the first sentence of the answer."""
    page.get_by_label("Instance", exact=True).select_option(name)
    page.get_by_label("Order, one line for each device").fill(text)
    page.get_by_role("button", name="Check this order").press("Enter")
    answer = page.locator(".zoo-answer")
    expect(answer.locator("li, td").first).to_be_visible()
    return str(answer.locator("li, strong").last.inner_text())


def the_best_order_is_equal_also_as_csv(page: Page) -> None:
    best = RECORDS[CLOSED]
    for text in ("\n".join(best.order), best.schedule.to_csv()):
        assert check(page, text) == "Equal to the best known order: 270 us, and no order is shorter."
        assert makespans(page, ".zoo-check") == {"your order": 270, "best known": 270}


def a_longer_order_is_longer(page: Page) -> None:
    assert check(page, str(build("1f1b", 4, 8))) == "60 us longer than the best known order, which takes 270 us."
    expect(page.locator(".zoo-how")).to_be_hidden()


def an_order_that_needs_more_memory_is_refused(page: Page) -> None:
    assert check(page, str(build("gpipe", 4, 8))) == "It holds 8 activations on device 0, more than 4."
    expect(page.locator(".zoo-check .readout")).to_have_count(0)


def an_order_that_cannot_run_is_refused_with_its_faults(page: Page) -> None:
    assert check(page, "0B0 0F0") == "Device 0 runs 0B0 before 0F0, the forward that it needs."
    assert "is not an operation" in check(page, "<b>0F0</b>")
    expect(page.locator(".zoo-answer b")).to_have_count(0)
    assert check(page, " ").startswith("The text is empty")


def an_old_answer_goes_when_the_order_changes(page: Page) -> None:
    check(page, "0B0 0F0")
    page.get_by_label("Order, one line for each device").press("End")
    page.keyboard.type(" 0W0")
    expect(page.locator(".zoo-answer")).to_be_empty()


def test_the_page_judges_an_order(new_page: Any, files: str) -> None:
    questions = (
        the_best_order_is_equal_also_as_csv,
        a_longer_order_is_longer,
        an_order_that_needs_more_memory_is_refused,
        an_order_that_cannot_run_is_refused_with_its_faults,
        an_old_answer_goes_when_the_order_changes,
    )
    in_order(new_page(files + ZOO), questions)


def test_a_new_best_is_told_with_the_way_to_send_it_and_a_missing_script_is_told(new_page: Any, server: str, faults: list[str]) -> None:
    page = new_page(server + ZOO)
    best = "\n".join(RECORDS[CLOSED].order)
    script = f"**/_static/zoo/{CLOSED}.js"

    def longer(route: Route) -> None:
        route.fulfill(body=route.fetch().text().replace('"makespan":270', '"makespan":280'), content_type="text/javascript")

    page.context.route(script, lambda route: route.abort())
    page.get_by_label("Instance", exact=True).select_option(CLOSED)
    page.get_by_role("button", name="Check this order").click()
    expect(page.locator(".zoo-answer")).to_have_text("A part of the site could not be loaded. Reload the page.")
    assert faults  # the request, and what the console says of it
    faults.clear()
    page.context.unroute(script)
    page.context.route(script, longer)
    assert check(page, best) == "New best, 10 us shorter: 270 us, and no order is shorter."
    expect(page.locator(".zoo-how")).to_contain_text(f"hybridlab zoo record {CLOSED} order.txt")


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_open_page_is_accessible_and_fits_a_phone(new_page: Any, files: str, scheme: str) -> None:
    page = new_page(f"{files}{ZOO}#{CLOSED}", width=360, scheme=scheme)
    makespans(page, ".zoo-row")
    page.get_by_role("columnheader", name="gap").get_by_role("button").click()
    check(page, str(build("1f1b", 4, 8)))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert not violations(page, ".zoo", ".zoo-check")
