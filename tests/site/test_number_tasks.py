"""Test the forms below number tasks on the built pages: they give the verdicts of `check`, and the browser keeps the answers.

test_visits.py hands in the right answer to every number task on its page.
"""

from typing import Any

import pytest
from accessibility import violations, without_others
from browser import reload, reload_after
from playwright.sync_api import Locator, Page, expect
from visits import in_order

from hybridlab.course.tasks import check

LAB1, LAB3 = "labs/lab01_mesh.html", "labs/lab03_bubbles_and_memory.html"
KEY = "hybridlab.task.lab03.t1"
REFUSING = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('refused', 'SecurityError'); } });"
FILLED = "document.querySelector('.number-task input').value === '0,71'"  # of lab03.t1, the first on its page
HEIGHTS = "(box) => [...box.querySelectorAll('input, button')].map((each) => each.getBoundingClientRect().height)"


def task(page: Page, key: str) -> Locator:
    return page.locator(".number-task").filter(has_text=f"Check your answer to {key} here")


def says(box: Locator, key: str, answer: Any) -> None:
    """Wait until the form shows the feedback that Python gives."""
    feedback = check(key, answer)
    verdict = "Passed" if feedback.passed else "Not yet"
    expect(box.get_by_role("status")).to_have_text(f"{verdict}: {' '.join(feedback.messages)}")
    expect(box).to_have_attribute("data-code", feedback.code)
    expect(box).to_have_attribute("data-verdict", "passed" if feedback.passed else "wrong")


@pytest.mark.parametrize("way", ["files", "server"])
def test_an_answer_is_checked_with_the_keyboard_and_kept(new_page: Any, request: Any, way: str) -> None:
    page = new_page(request.getfixturevalue(way) + LAB3)
    box = task(page, "lab03.t1")
    field = box.get_by_label("Idle / ideal")
    field.focus()
    page.keyboard.type("0.417")
    page.keyboard.press("Enter")
    says(box, "lab03.t1", 0.417)
    page.keyboard.press("Backspace")
    expect(box.get_by_role("status")).to_be_empty()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("0,71")
    page.keyboard.press("Tab")
    expect(box.get_by_role("button", name="Check")).to_be_focused()
    page.keyboard.press("Space")
    says(box, "lab03.t1", 0.71)
    assert page.evaluate("key => localStorage.getItem(key)", KEY) == '["0,71"]'

    def again() -> None:
        if not page.evaluate(FILLED):
            field.fill("0,71")
            field.press("Enter")

    reload_after(page, again, FILLED)
    expect(task(page, "lab03.t1").get_by_label("Idle / ideal")).to_have_value("0,71")
    says(task(page, "lab03.t1"), "lab03.t1", 0.71)
    expect(task(page, "lab03.t2").get_by_role("status")).to_be_empty()


def a_text_that_is_no_number_is_refused_in_its_field(page: Page) -> None:
    box = task(page, "lab01.t1")
    stage, replica = box.get_by_label("Stage"), box.get_by_label("Replica")
    stage.fill("3")
    replica.fill("four")
    box.get_by_role("button", name="Check").click()
    says(box, "lab01.t1", [3, "four"])
    expect(replica).to_be_focused()
    expect(replica).to_have_attribute("aria-invalid", "true")
    expect(stage).not_to_have_attribute("aria-invalid", "true")
    expect(replica).to_have_accessible_description(
        "Write digits, such as 12.5 or 1e6. Not yet: " + check("lab01.t1", [3, "four"]).messages[0]
    )
    replica.fill("4")
    expect(replica).not_to_have_attribute("aria-invalid", "true")
    replica.press("Enter")
    says(box, "lab01.t1", [3, 4])


def a_list_has_one_field_where_its_length_is_part_of_the_answer(page: Page) -> None:
    box = task(page, "lab01.t2")
    first, second = box.get_by_role("textbox").all()
    first.fill("2, 7 12")
    second.fill("5, 6, 7, 8")
    second.press("Enter")
    says(box, "lab01.t2", [[2, 7, 12], [5, 6, 7, 8]])


def an_empty_answer_is_not_kept(page: Page) -> None:
    box = task(page, "lab03.t1")
    for text, kept in (("1", '["1"]'), ("", None)):
        box.get_by_role("textbox").fill(text)
        box.get_by_role("textbox").press("Enter")
        says(box, "lab03.t1", float(text) if text else None)
        assert page.evaluate("key => localStorage.getItem(key)", KEY) == kept


def what_else_the_browser_has_kept_is_no_answer(page: Page) -> None:
    for damaged in ("{", "[1]", '["1", "2"]'):
        page.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, damaged])
        reload(page)
        expect(task(page, "lab03.t1").get_by_role("textbox")).to_have_value("")


def on_paper_there_is_no_form(page: Page) -> None:
    page.emulate_media(media="print")
    assert page.locator(".number-task").evaluate_all("(boxes) => boxes.map((box) => box.checkVisibility())") == [False] * 4
    page.emulate_media(media="screen")


def test_two_tasks_of_lab_1(new_page: Any, files: str) -> None:
    questions = (a_text_that_is_no_number_is_refused_in_its_field, a_list_has_one_field_where_its_length_is_part_of_the_answer)
    in_order(new_page(files + LAB1), questions)


def test_a_task_of_lab_3(new_page: Any, files: str) -> None:
    questions = (on_paper_there_is_no_form, an_empty_answer_is_not_kept, what_else_the_browser_has_kept_is_no_answer)
    in_order(new_page(files + LAB3), questions)


def test_a_browser_that_stores_nothing_says_so(fresh_page: Any, files: str, faults: list[str]) -> None:
    page = fresh_page(files + LAB3)
    page.add_init_script(REFUSING)
    reload(page)
    box = task(page, "lab03.t1")
    box.get_by_role("textbox").fill("0.71")
    box.get_by_role("button").click()
    says(box, "lab03.t1", 0.71)
    expect(box).to_contain_text("This browser does not store anything for this page: your answer will not survive a reload.")
    faults.clear()  # the theme's scripts do not catch errors when they store something


def test_damaged_data_say_so(new_page: Any, server: str, faults: list[str]) -> None:
    page = new_page(
        server + LAB3,
        edit=lambda text: text.replace('<script type="application/json">{"key":"lab03.t1"', '<script type="application/json">{"'),
    )
    expect(page.locator(".number-task").first).to_have_text(
        "The data of this task are missing or damaged, so the page cannot check an answer. Reload the page."
    )
    expect(page.locator(".number-task form")).to_have_count(3)
    faults.clear()  # the warning on the console


@pytest.mark.needs("axe")
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_forms_are_accessible_before_and_after(new_page: Any, files: str, width: int, scheme: str) -> None:
    page = new_page(files + LAB1, scheme=scheme, width=width)
    without_others(page, ".number-task")
    for texts in (None, ("3", "4"), ("4", "3"), ("four", "")):
        box = task(page, "lab01.t1")
        if texts:
            for field, text in zip(box.get_by_role("textbox").all(), texts, strict=True):
                field.fill(text)
            box.get_by_role("button").click()
        assert violations(page, ".number-task") == [], texts
        assert min(box.evaluate(HEIGHTS)) >= 44
        assert page.evaluate("document.documentElement.scrollWidth") <= width
