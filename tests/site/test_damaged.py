"""Test pages with damaged data, and widgets of unknown kinds.

A sentence replaces each such widget, and the rest of the page still works.
"""

from collections.abc import Callable
from typing import Any

import pytest
from browser import follow
from explorers import STATE, VIEW, with_state
from lab_views import Kind, each_of
from lab_views.kind import Damage

LAB = "labs/lab03_bubbles_and_memory.html"
TOLD = "missing or damaged"
STOCK = """
<script type="application/vnd.jupyter.widget-state+json">
{"version_major": 2, "version_minor": 0, "state": {
  "s": {"model_name": "IntSliderModel", "model_module": "@jupyter-widgets/controls", "state": {"value": 3}},
  "a": {"model_name": "AnyModel", "model_module": "anywidget",
        "state": {"_esm": "export default { render({ el }) { el.textContent = 'drawn'; } }"}}}}
</script>
<script type="application/vnd.jupyter.widget-view+json">{"version_major": 2, "version_minor": 0, "model_id": "s"}</script>
<script type="application/vnd.jupyter.widget-view+json">{"version_major": 2, "version_minor": 0, "model_id": "a"}</script>
<script type="application/vnd.jupyter.widget-view+json">{"version_major": 2, "version_minor": 0, "model_id": "none"}</script>
"""


def explorer_of(states: Any) -> Any:
    (state,) = (each for each in states.values() if "data" in each)
    return state


def without_starts(states: Any) -> None:
    for entry in explorer_of(states)["data"]["pipelines"].values():
        entry["start"] = [[]]


def without_pipelines(states: Any) -> None:
    explorer_of(states)["data"].pop("pipelines")


def with_no_data(states: Any) -> None:
    explorer_of(states)["data"] = None


def with_words_for_times(states: Any) -> None:
    explorer_of(states)["forward"] = "ninety"


def with_broken_orders(states: Any) -> None:
    for entry in explorer_of(states)["data"]["pipelines"].values():
        entry["orders"] = ["0F0 junk" for _ in entry["orders"]]


def with_an_unknown_schedule(states: Any) -> None:
    explorer_of(states)["schedule"] = "none"


def with_broken_code(states: Any) -> None:
    explorer_of(states)["_esm"] += "\n}"


def only_warnings(faults: list[str]) -> None:
    """Check that the page has only warned of the damage on the console; nothing else may be wrong."""
    assert faults
    assert all(fault.startswith("console warning") for fault in faults), "\n".join(faults)
    faults.clear()


@pytest.mark.parametrize(
    "damage",
    [
        without_starts,
        without_pipelines,
        with_no_data,
        with_words_for_times,
        with_broken_orders,
        with_an_unknown_schedule,
        with_broken_code,
    ],
)
def test_a_damaged_explorer_says_so_and_the_other_widgets_are_drawn(
    new_page: Any, server: str, faults: list[str], damage: Callable[[Any], None]
) -> None:
    page = new_page(server + LAB, edit=lambda text: with_state(text, damage))
    assert page.locator(".hybridlab-explorer svg").count() == 0
    told = [box.inner_text() for box in page.locator(".live-widget").all()]
    assert len(told) >= 3
    assert [TOLD in words for words in told].count(True) == 1
    assert page.get_by_text(TOLD).is_visible()
    only_warnings(faults)


@pytest.mark.parametrize(("kind", "damage"), each_of("damages"))
def test_a_damaged_view_of_a_lab_says_so_and_the_other_widgets_are_drawn(
    new_widgets: Any, server: str, faults: list[str], kind: Kind, damage: Damage
) -> None:
    page = new_widgets(server + kind.lab, edit=kind.changing(damage))
    boxes = page.locator(".live-widget")
    assert boxes.count() >= 3
    assert all(box.inner_text() for box in boxes.all())
    (damaged,) = boxes.filter(has_text=TOLD).all()
    assert damaged.is_visible()
    assert damaged.locator("svg").count() == 0
    others = boxes.filter(has_not_text=TOLD).locator(f".hybridlab-{kind.name}").all()
    assert len(others) == len(kind.given) - 1
    for place, view in enumerate(others, start=1):
        kind.is_right(view, place)
    only_warnings(faults)


@pytest.mark.parametrize("cut", [lambda text: text[: len(text) // 2], lambda text: "", lambda text: "[]", lambda text: '{"state": null}'])
def test_a_page_whose_state_is_cut_off_says_so_in_the_place_of_every_widget(
    new_page: Any, server: str, faults: list[str], cut: Callable[[str], str]
) -> None:
    page = new_page(server + LAB, edit=lambda text: STATE.sub(lambda match: match[1] + cut(match[2]) + match[3], text))
    boxes = page.locator(".live-widget").all()
    assert len(boxes) >= 3
    assert all(TOLD in box.text_content() for box in boxes), "also in a folded section, which shows no text yet"
    only_warnings(faults)


def test_a_widget_of_another_kind_says_that_it_needs_a_notebook_and_how_to_start_one(new_page: Any, server: str, faults: list[str]) -> None:
    page = new_page(server + LAB, edit=lambda text: STATE.sub("", VIEW.sub("", text)).replace("</article>", f"{STOCK}</article>"))
    stock, own, missing = page.locator(".live-widget").all()
    assert "needs a running notebook" in stock.inner_text()
    assert own.inner_text() == "drawn"
    assert TOLD in missing.inner_text()
    only_warnings(faults)
    follow(stock.get_by_role("link"), server + "book/start.html")
