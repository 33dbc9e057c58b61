"""Test pages with damaged data, and widgets of unknown kinds.

A sentence replaces each such widget, and the rest of the page still works.
"""

from collections.abc import Callable
from typing import Any

from browser import follow
from cases import in_turn
from explorers import STATE, VIEW, drawn_again, with_state

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


def without_starts(state: Any) -> None:
    for entry in state["data"]["pipelines"].values():
        entry["start"] = [[]]


def without_pipelines(state: Any) -> None:
    state["data"].pop("pipelines")


def with_no_data(state: Any) -> None:
    state["data"] = None


def with_words_for_times(state: Any) -> None:
    state["forward"] = "ninety"


def with_broken_orders(state: Any) -> None:
    for entry in state["data"]["pipelines"].values():
        entry["orders"] = ["0F0 junk" for _ in entry["orders"]]


def with_an_unknown_schedule(state: Any) -> None:
    state["schedule"] = "none"


def with_broken_code(state: Any) -> None:
    state["_esm"] += "\n}"


def only_warnings(faults: list[str]) -> None:
    """Check that the page has only warned of the damage on the console; nothing else may be wrong."""
    assert faults
    assert all(fault.startswith("console warning") for fault in faults), "\n".join(faults)
    faults.clear()


DAMAGES = (
    without_starts, without_pipelines, with_no_data, with_words_for_times, with_broken_orders, with_an_unknown_schedule, with_broken_code,
)  # fmt: skip


def test_each_damage_of_an_explorer_is_told(new_page: Any, server: str, faults: list[str]) -> None:
    page = new_page(server + LAB, edit=lambda text: drawn_again(text, lambda state: "data" in state, DAMAGES))
    whole, *damaged = page.locator(".live-widget").all()
    assert whole.locator("svg").count() > 0
    for damage, box in zip(DAMAGES, damaged, strict=True):
        assert TOLD in box.inner_text(), damage.__name__
        assert box.locator("svg").count() == 0, damage.__name__
    only_warnings(faults)


def test_beside_a_damaged_explorer_the_other_widgets_are_drawn(new_page: Any, server: str, faults: list[str]) -> None:
    def damage(states: Any) -> None:
        (state,) = (each for each in states.values() if "data" in each)
        without_starts(state)

    page = new_page(server + LAB, edit=lambda text: with_state(text, damage))
    assert page.locator(".hybridlab-explorer svg").count() == 0
    told = [box.inner_text() for box in page.locator(".live-widget").all()]
    assert len(told) >= 3
    assert [TOLD in words for words in told].count(True) == 1
    assert page.get_by_text(TOLD).is_visible()
    only_warnings(faults)


@in_turn("cut", [lambda text: text[: len(text) // 2], lambda text: "", lambda text: "[]", lambda text: '{"state": null}'])
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
