"""Test the ring stepper of lab 4 in a browser.

It is right at every step of up to eight ranks, and between the steps. Play, buttons, keys, the slider and the select box move it.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from browser import held
from cases import in_turn
from lab_views.kind import choose
from lab_views.ring import DRAWN, KIND, is_right, states
from playwright.sync_api import Locator, expect

from hybridlab import published
from hybridlab.collectives import ring_all_reduce
from hybridlab.widgets import RingStepper

NewPage = Any
Alone = Callable[[Any], Locator]
NAMES = ("correct", "published")
BOXES = "(root, parts) => [...root.querySelectorAll(parts)].map((part) => part.getBoundingClientRect().toJSON())"
PLACE = "(root) => root.querySelector('.mover').getAttribute('transform')"
PUT = "(root, place) => root.querySelector('.mover').setAttribute('transform', place)"
# draws the view once more with a model that `told` changes, as messages of a kernel do
BEHIND_A_KERNEL = """async () => {
  const kept = JSON.parse(document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]').textContent).state;
  const [{ state }] = Object.values(kept);
  const listeners = [];
  const changed = (traits) => {
    Object.assign(state, traits);
    for (const [event, listener] of [...listeners]) if (Object.keys(traits).some((name) => event === `change:${name}`)) listener();
  };
  const model = { get: (name) => state[name], set: (name, value) => changed({ [name]: value }), save_changes() {} };
  Object.assign(model, { on: (...pair) => listeners.push(pair), off() {} });
  const view = await import(URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" })));
  const box = document.createElement("div");
  document.body.append(box);
  await view.default.render({ model, el: box });
  window.told = async (traits) => changed(traits);
}"""
# the places of the first chunk that travels, and what a screen reader is told, from now on
WATCH = """(root) => {
  const [places, said] = [new Set(), new Set()];
  const spoken = root.querySelector(".unseen");
  window.watched = [places, said];
  const look = () => {
    const place = root.querySelector(".mover")?.getAttribute("transform");
    if (place) places.add(place);
  };
  new MutationObserver(look).observe(root.querySelector(".circle"), { subtree: true, childList: true, attributes: true });
  new MutationObserver(() => said.add(spoken.textContent)).observe(spoken, { childList: true });
}"""


def correct(values: Any) -> Any:
    return ring_all_reduce(values, average=False, record=True).hops


def as_published(values: Any) -> Any:
    return published.published_ring(values, "FP32").hops


def stepper(sizes: Any = (2, 3, 4), **show: int) -> RingStepper:
    return RingStepper({"correct": correct, "published": as_published}, sizes, show=show)


@pytest.mark.parametrize(("width", "sizes"), [(360, (8,)), (1280, (3,))])
def test_every_step_of_both_rings_is_right_and_every_text_keeps_inside_its_box(
    new_page: NewPage, server: str, width: int, sizes: tuple[int, ...]
) -> None:
    view = held(new_page(server + KIND.lab, width=width, edit=KIND.showing(stepper((2, *sizes)))).locator(".hybridlab-ring").first)
    for ranks in sizes:
        choose(view, {"Ranks, D": str(ranks)})
        for step in range(2 * ranks - 1):
            choose(view, {"Step": str(step)})
            is_right(view, NAMES)
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_chunk_is_on_its_link_at_every_time_between_two_steps(alone: Alone) -> None:
    view = held(alone(stepper((2, 3, 5, 8))))
    for ranks in ("2", "3", "5", "8"):
        choose(view, {"Ranks, D": ranks})
        for time in (0.5, 1.2, 1.5, 1.8, 2 * int(ranks) - 2.5):
            choose(view, {"Step": str(time)})
            is_right(view, NAMES)


@in_turn("fault", ["other chunks", "another receiver", "one less", "beside its link", "too far"])
def test_a_fault_in_what_travels_is_seen(alone: Alone, fault: str) -> None:
    widget = stepper(ranks=4, step=2)
    for state in (state for ring in widget.data["runs"]["4"]["rings"] for state in ring):
        sent = state["messages"]
        if fault == "other chunks":
            sent[:] = [[sender, to, chunk] for (sender, to, _), (*_, chunk) in zip(sent, sent[1:] + sent[:1], strict=True)]
        elif fault == "another receiver":
            sent[:] = [[sender, sender - 1 if sender else 3, chunk] for sender, _, chunk in sent]
        elif fault == "one less":
            del sent[:1]
    view = held(alone(widget))
    choose(view, {"Step": "2.7"})
    later = view.evaluate(PLACE)
    choose(view, {"Step": "2.5"})
    if fault in ("beside its link", "too far"):
        is_right(view, NAMES)
        x, y = map(float, re.findall(r"[\d.]+", view.evaluate(PLACE)))
        view.evaluate(PUT, later if fault == "too far" else f"translate({x} {y + 4})")
    with pytest.raises(AssertionError):
        is_right(view, NAMES)


def the_other_way(values: Any) -> Any:
    """Run the ring backwards: each rank sends to the rank before it."""
    last = len(values) - 1
    return [replace(hop, sender=last - hop.sender, receiver=last - hop.receiver, held=hop.held[::-1]) for hop in correct(values[::-1])]


def test_a_ring_that_turns_the_other_way_or_ends_early_is_drawn_from_its_messages(alone: Alone) -> None:
    rings = {"whole": correct, "back": the_other_way, "short": lambda values: correct(values)[:-1]}
    view = held(alone(RingStepper(rings, 5)))
    for step, counts in (("1.5", [5, 5, 5]), ("7.5", [5, 5, 0])):
        choose(view, {"Step": step})
        drawn = view.evaluate(DRAWN)
        assert [len(ring["movers"]) for ring in drawn] == counts
        hops = [ring(np.eye(5))[int(float(step))] for ring in (correct, the_other_way)]
        for ring, hop in zip(drawn, hops, strict=False):
            ends = [[nearest(ring["nodes"], link[end]) for end in ("from", "to")] for link in ring["links"] if link["used"]]
            assert sorted(ends) == sorted(map(list, zip(hop.sender, hop.receiver, strict=True)))
            ways = [
                [nearest(ring["nodes"], ring["links"][int(np.argmin(mover["far"]))][end]) for end in ("from", "to")]
                for mover in ring["movers"]
            ]
            sent = [[*way, mover["chunk"]] for way, mover in zip(ways, ring["movers"], strict=True)]
            assert sorted(sent) == sorted(map(list, zip(hop.sender, hop.receiver, hop.chunk, strict=True)))


def nearest(nodes: list[list[float]], point: list[float]) -> int:
    return int(np.hypot(*(np.array(nodes) - point).T).argmin())


def test_python_can_set_fewer_ranks_before_the_smaller_step_and_stops_the_time(alone: Alone) -> None:
    view = alone(stepper((2, 4), ranks=4, step=5))
    view.page.emulate_media(reduced_motion="no-preference")
    view.page.evaluate(BEHIND_A_KERNEL)
    second = held(view.page.locator(".hybridlab-ring").last)
    for traits in ({"ranks": 2}, {"step": 2}):  # two messages, and the page draws after each
        view.page.evaluate("(traits) => window.told(traits)", traits)
    is_right(second, NAMES)
    view.page.evaluate("() => window.told({ ranks: 4 })")
    second.get_by_role("button", name="Play").click()
    view.page.evaluate("() => window.told({ step: 5 })")
    is_right(second, NAMES)
    assert second.locator("output").text_content() == "5 of 6, all-gather"
    assert second.get_by_role("button", name="Play").count() == 1


def test_playing_passes_all_steps_and_ends_at_the_last(alone: Alone) -> None:
    view = held(alone(stepper(ranks=3)))
    view.page.emulate_media(reduced_motion="no-preference")
    view.get_by_label("Speed").select_option("4")
    view.evaluate(WATCH)
    view.get_by_role("button", name="Play").click()
    expect(view.locator("output")).to_have_text("4 of 4, all-gather")
    expect(view.get_by_role("button", name="Play")).to_be_visible()  # no longer Pause
    is_right(view, NAMES)
    places, said = view.evaluate("() => window.watched.map((each) => [...each])")
    assert len(places) > 8, "the chunks do not slide"
    assert len(said) == 1, "a screen reader hears the end, not each step"


def test_a_time_that_is_stopped_between_two_steps_is_told(alone: Alone) -> None:
    view = held(alone(stepper(ranks=4, step=2)))
    view.page.emulate_media(reduced_motion="no-preference")
    view.get_by_label("Speed").select_option("0.25")
    view.get_by_role("button", name="Play").click()
    expect(view.locator("output")).to_contain_text("2 of 6, step 3 runs")
    view.get_by_role("button", name="Pause").click()
    is_right(view, NAMES)


def test_without_motion_the_cursor_jumps_from_step_to_step(alone: Alone) -> None:
    view = held(alone(stepper(ranks=2)))  # this fixture asks for reduced motion
    view.evaluate(WATCH)
    view.get_by_role("button", name="Play").click()
    expect(view.locator("output")).to_have_text("2 of 2, all-gather")
    places, _ = view.evaluate("() => window.watched.map((each) => [...each])")
    assert len(places) <= 2
    is_right(view, NAMES)


def test_buttons_keys_slider_and_select_move(alone: Alone) -> None:
    view = held(alone(stepper((2, 4))))
    told, keyboard = view.locator("output"), view.page.keyboard
    choose(view, {"Ranks, D": "4"})
    back, on = (view.get_by_role("button", name=name) for name in ("To the event before", "To the next event"))
    for button, step in [(back, 0), (on, 1), (on, 2), (back, 1)]:
        button.click()
        expect(told).to_contain_text(f"{step} of 6")
    for control in (view.get_by_role("slider"), on, back, view.get_by_role("button", name="Play")):
        control.focus()
        for key, step in [("End", 6), ("ArrowRight", 6), ("ArrowLeft", 5), ("Home", 0), ("ArrowLeft", 0), ("ArrowUp", 1), ("ArrowDown", 0)]:
            keyboard.press(key)
            expect(told).to_contain_text(f"{step} of 6")
            is_right(view, NAMES)
    choose(view, {"Step": "4.6"})
    view.get_by_role("slider").press("ArrowLeft")
    expect(told).to_contain_text("4 of 6")
    choose(view, {"Ranks, D": "2"})
    expect(told).to_contain_text("2 of 2")  # a step that fewer ranks do not have becomes their last step
    is_right(view, NAMES)


def test_pointing_at_the_ring_or_at_the_matrix_tells_the_same(alone: Alone) -> None:
    view = held(alone(stepper(ranks=4, step=6)))
    ring, box = view.locator("section").nth(1), '[data-rank="1"][data-chunk="2"]'
    words = "On rank 1 chunk 2 holds 4, rank 2 alone. It was a whole sum and is overwritten."
    for picture in (".circle", ".matrix"):
        ring.locator(f'{picture} [data-rank="3"][data-chunk="1"]').hover()
        expect(ring.locator(".held")).to_have_text("On rank 3 chunk 1 holds 2, rank 1 alone.")
        ring.locator(f"{picture} {box}").click()
        expect(ring.locator(".held")).to_have_text(words)
        expect(view.locator("section").first.locator(".held")).to_have_text(
            "On rank 1 chunk 2 holds 15, ranks 0, 1, 2 and 3. The sum is whole."
        )
    for picture in (".circle", ".matrix"):
        ring.locator(f'{picture} text[data-rank="2"], {picture} [data-rank="2"] > text').click()
        every = [f"chunk {chunk} holds {2**chunk}, rank {chunk} alone" for chunk in range(4)]
        expect(ring.locator(".held")).to_have_text(f"On rank 2 {'; '.join(every)}.")


def test_arrow_keys_on_the_matrix_choose_a_chunk(alone: Alone) -> None:
    view = held(alone(stepper(ranks=3, step=1)))
    view.locator(".matrix").first.focus()
    chosen = [("End", 2, 2), ("ArrowDown", 2, 2), ("ArrowLeft", 1, 2), ("ArrowUp", 1, 1), ("Home", 0, 0), ("ArrowRight", 1, 0)]
    state = states("correct", 3)[1]
    for key, rank, chunk in chosen:
        view.page.keyboard.press(key)
        expect(view.locator(".held").first).to_contain_text(f"On rank {rank} chunk {chunk} holds {state.values[rank, chunk]:g}, ")
    view.page.keyboard.press("ArrowUp")
    expect(view.locator(".held").first).to_contain_text("On rank 1 chunk 0 holds 3, ranks 0 and 1; chunk 1 holds")


def test_the_frame_of_the_choice_is_around_the_same_chunk_in_ring_and_matrix(alone: Alone) -> None:
    view = held(alone(stepper(ranks=4, step=2)))
    assert view.locator(".chosen:visible").count() == 0
    chunk = '[data-rank="2"][data-chunk="3"]'
    view.locator(f".matrix {chunk}").first.hover()
    for section in view.locator("section").all():
        for picture, part in ((".circle", ".row"), (".matrix", ".box")):
            around, inside = (section.locator(f"{picture} {each}").bounding_box() for each in (".chosen", f"{part}{chunk}"))
            assert around["x"] <= inside["x"]
            assert around["y"] <= inside["y"]
            assert around["x"] + around["width"] >= inside["x"] + inside["width"]
            assert around["y"] + around["height"] >= inside["y"] + inside["height"]
            assert around["height"] < inside["height"] + 12


@in_turn("names, ranks", [(("ring",), 2), (("ring",), 6), (("ring",), 8), (NAMES, 3)])
def test_controls_pictures_and_words_fit_on_a_screen_800_px_wide(alone: Alone, names: tuple[str, ...], ranks: int) -> None:
    view = held(alone(RingStepper(dict.fromkeys(names, correct), ranks)))
    view.page.set_viewport_size({"width": 800, "height": 720})
    for step in range(2 * ranks - 1):
        choose(view, {"Step": str(step)})
        height = view.evaluate("(root) => root.querySelector('.rings').getBoundingClientRect().bottom - root.getBoundingClientRect().top")
        assert height <= 720, step


def boxes_at(view: Any, width: int, selector: str) -> list[dict[str, float]]:
    """Return the boxes of some elements on a page of a given width, when all is drawn for it."""
    view.page.set_viewport_size({"width": width, "height": 800})
    view.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    boxes: list[dict[str, float]] = view.evaluate(BOXES, selector)
    return boxes


@in_turn("width, beside", [(655, True), (360, False)])
def test_the_matrix_stands_beside_the_ring_where_there_is_room(alone: Alone, width: int, beside: bool) -> None:
    view = held(alone(RingStepper(ranks=6)))
    circle, matrix = boxes_at(view, width, ".circle, .matrix svg")
    assert (matrix["left"] > circle["right"]) == beside
    assert (matrix["top"] > circle["bottom"] - 1) != beside
    assert all(box["left"] >= 0 and box["right"] <= width for box in (circle, matrix))
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width


@in_turn("width, beside", [(1280, True), (360, False)])
def test_rings_stand_side_by_side_where_there_is_room(alone: Alone, width: int, beside: bool) -> None:
    view = held(alone(stepper(ranks=4)))
    first, second = boxes_at(view, width, ".circle")
    assert (first["top"] == second["top"]) == beside
