"""The error explorer on its lab's page, which has no kernel: every control by keyboard, and every number that it shows."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from accessibility import violations
from explorers import state_of
from playwright.sync_api import Locator

LAB = "labs/lab05_wire_formats.html"
NewPage = Any


def measured_on(site: Path) -> Any:
    """The data that the page holds."""
    states = state_of((site / LAB).read_text(encoding="utf-8"))["state"].values()
    (found,) = (state["state"]["measured"] for state in states if "measured" in state["state"])
    return found


def shown_bytes(view: Locator) -> list[int]:
    return [int(text.replace(",", "")) for text in view.locator("table.here tbody td:nth-child(4)").all_inner_texts()]


def test_every_setting_shows_its_own_numbers_by_keyboard_alone(new_page: NewPage, files: str, site: Path) -> None:
    measured = measured_on(site)
    page = new_page(files + LAB)
    view = page.locator(".hybridlab-errors")
    choose = {name: view.get_by_label(name, exact=True) for name in ("All-reduce", "Numbers")}
    slider = view.get_by_role("slider")
    for name, distribution in product(measured["algorithms"], measured["distributions"]):
        choose["All-reduce"].select_option(name)
        choose["Numbers"].select_option(distribution)
        slider.press("Home")
        for place in range(len(measured["ranks"])):
            entries = [measured["series"][f"{name}/{distribution}/{wire}"] for wire in measured["formats"]]
            assert shown_bytes(view) == [entry["nbytes"][place] for entry in entries]
            shown = view.locator("table.here tbody td:nth-child(2)").all_inner_texts()
            assert [text.split("\u2009")[0] for text in shown] == [f"{entry['nmse'][place]:.1e}".split("e")[0] for entry in entries]
            slider.press("ArrowRight")


def test_the_lab_prints_what_the_picture_shows(new_page: NewPage, files: str, site: Path) -> None:
    measured = measured_on(site)
    text = new_page(files + LAB).locator("article").inner_text()
    place = measured["ranks"].index(8)
    for wire in measured["formats"]:
        entry = measured["series"][f"ring/normal/{wire}"]
        assert f"{entry['nmse'][place]:.1e} {entry['law'][place]:.1e}" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_is_accessible_with_all_that_it_can_show(new_page: NewPage, files: str, width: int, scheme: str) -> None:
    page = new_page(files + LAB, width=width, scheme=scheme)
    view = page.locator(".hybridlab-errors")
    view.get_by_label("All-reduce", exact=True).select_option("both")
    view.locator("summary").click()
    assert violations(page, ".hybridlab-errors") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
