"""Test the cluster explorer in a browser, as the sources of this checkout draw it.

The tests use random settings by keyboard, the effect of the last change, the map of plans, pinned plans, and the printed page.
"""

import copy
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from lab_views import cluster, plan_map
from lab_views.kind import DRAWN, choose, rows_of, setting_of
from playwright.sync_api import Locator
from visits import THE_VIEW, as_new, in_order

from hybridlab import A100_80GB, B200, FP16, Transformer
from hybridlab.widgets import ClusterExplorer

Alone = Callable[[Any], Locator]
BOXES = """(root, selectors) => selectors.map((selector) => {
  const [box, whole] = [root.querySelector(selector), root].map((element) => element.getBoundingClientRect());
  return [box.left - whole.left, box.right - whole.left, box.top - whole.top, box.bottom - whole.top];
})"""


@pytest.fixture(scope="module")
def explorer() -> ClusterExplorer:
    return ClusterExplorer()


def opened(alone: Alone, shown: ClusterExplorer, width: int = 1280, scheme: str = "light") -> Locator:
    view = alone(shown)
    view.page.set_viewport_size({"width": width, "height": 900})
    view.page.emulate_media(color_scheme=scheme)
    view.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    return view


def said_by(view: Locator) -> tuple[float, float]:
    """Return the seconds and the gigabytes of the plan that the map describes."""
    match = re.match(r"([\d.,]+) s, ([\d.]+) GB", view.locator(".said").inner_text())
    assert match
    return float(match[1].replace(",", "")), float(match[2])


def random_settings_worked_by_keyboard_show_what_the_planner_says(view: Locator) -> None:
    cluster.is_right(view)
    chosen = random.Random(1)  # noqa: S311  # the same settings in every run
    kinds = set()
    for _ in range(16):
        control = view.get_by_label(chosen.choice(cluster.LABELS), exact=True)
        control.focus()
        for key in ("Home", *["ArrowDown"] * chosen.randrange(control.locator("option").count())):
            view.page.keyboard.press(key)
        cluster.is_right(view)
        said = cluster.said_of(setting_of(view))
        kinds.add("no such plan" if said.memory is None else "too large" if isinstance(said.time, str) else "fits")
    assert "fits" in kinds
    assert len(kinds) > 1
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 1280


def a_change_is_compared_with_what_was_before_it(view: Locator) -> None:
    told = view.locator(".told").first
    assert "Before" not in told.inner_text()
    choose(view, {"Gradients sent as": "INT8, block 256"})
    assert "Before, with Gradients sent as = FP16: " in told.inner_text()
    assert len(rows_of(view, "table.time tbody tr")[0]) == 4
    choose(view, {"Stages K": "4"})
    assert told.inner_text().startswith("Not possible on 512 GPUs: the plan needs 94.0 GB a GPU")
    choose(view, {"Stages K": "16"})
    assert told.inner_text().endswith("Before, with Stages K = 4: not possible.")
    cluster.is_right(view)


def test_what_stands_on_one_gpu_is_told_of_one_gpu(alone: Alone) -> None:
    models = {"GPT 1.7B": Transformer(24, 2304, 24), "small": Transformer(12, 768, 12)}
    shown = ClusterExplorer(models, A100_80GB, *[(1, 2)] * 5, wires=FP16, recompute="full", show={"model": "small"})
    view = opened(alone, shown)
    assert " an iteration on 1 GPU, " in view.locator(".told").first.inner_text()
    assert not view.get_by_label("Recomputation", exact=True).is_visible()  # there is nothing to choose
    assert "Recomputation: full" in view.locator(".plan").inner_text()


def a_plan_chosen_by_keyboard_is_described_and_loaded(view: Locator) -> None:
    best = plan_map.front_of(plan_map.expected(view.evaluate(plan_map.SEEN), setting_of(view), cluster.MODELS)[0])
    wanted = best[-1]
    view.locator(".map").focus()
    view.page.keyboard.press("End")
    seconds, gigabytes = said_by(view)
    assert cluster.near(str(seconds), wanted.seconds)
    assert gigabytes == round(wanted.gigabytes, 1)
    assert "on the Pareto front" in view.locator(".said").inner_text()
    view.page.keyboard.press("Enter")
    assert plan_map.plan_of(setting_of(view)) == wanted.plan
    cluster.is_right(view)


def page_keys_follow_the_pareto_front_and_arrows_lead_to_the_next_plan(view: Locator) -> None:
    points, profile = plan_map.expected(view.evaluate(plan_map.SEEN), setting_of(view), cluster.MODELS)
    best = plan_map.front_of(points)
    view.locator(".map").focus()
    keys = ["Home", *["PageDown"] * (len(best) - 1)]
    for key, wanted in zip(keys, best, strict=True):
        view.page.keyboard.press(key)
        assert said_by(view)[1] == round(wanted.gigabytes, 1)
    drawn = sorted(each.gigabytes for each in points if each.gigabytes <= 2 * profile.memory / 1e9)
    assert drawn[0] == best[-1].gigabytes  # so that arrows start at the plan with the least memory
    for wanted in drawn[1:12]:
        view.page.keyboard.press("ArrowRight")
        assert said_by(view)[1] == round(wanted, 1)
    before = said_by(view)[0]
    view.page.keyboard.press("ArrowDown")
    assert said_by(view)[0] <= before


def a_click_loads_the_nearest_plan(view: Locator) -> None:
    seen = view.evaluate(plan_map.SEEN)
    x, y = plan_map.scale_of(seen["columns"]), plan_map.scale_of(seen["rows"])
    points, _ = plan_map.expected(seen, setting_of(view), cluster.MODELS)
    for wanted in (*plan_map.front_of(points)[:3], next(each for each in points if not each.fits and each.gigabytes < 150)):
        where = (float(x(wanted.gigabytes)), float(y(wanted.seconds)))
        view.locator(".map").hover(position={"x": where[0], "y": where[1]})
        told = said_by(view)
        view.locator(".map").click(position={"x": where[0], "y": where[1]})
        found = plan_map.plan_of(setting_of(view))
        loaded = next(each for each in points if each.plan == found)
        assert abs(x(loaded.gigabytes) - where[0]) + abs(y(loaded.seconds) - where[1]) < 1  # others may lie within a pixel
        assert told[1] == round(loaded.gigabytes, 1)
        cluster.is_right(view)


def two_pinned_plans_are_compared(view: Locator) -> None:
    compared = view.locator(".compared")
    one = cluster.said_of(setting_of(view))
    view.get_by_role("button", name="Pin as A").click()
    assert compared.inner_text() == "Plan A is pinned with 20.7 s. Pin another plan as B to compare the two."
    choose(view, {"Recomputation": "selective", "Sequence parallel": "yes", "Chunks v": "2"})
    other = cluster.said_of(setting_of(view))
    view.get_by_role("button", name="Pin as B").click()
    assert one.memory
    assert other.memory
    assert not isinstance(one.time, str)
    assert not isinstance(other.time, str)
    less, larger = 100 * (1 - other.time.seconds / one.time.seconds), (other.memory.total - one.memory.total) / 1e9
    assert compared.inner_text().startswith(f"Plan B takes {less:.1f} % less time than plan A and needs {abs(larger):.1f} GB more memory")
    assert "Recomputation is selective instead of full, Sequence parallel is yes instead of no and Chunks v is 2 instead of 1." in (
        compared.inner_text()
    )
    rows = {row[0]: row[1:] for row in rows_of(view, "table.pins tbody tr")}
    assert all(cluster.near(text, each.time.seconds) for text, each in zip(rows["seconds"], (one, other), strict=True))
    assert rows["GB on the fullest GPU"] == [cluster.gigabytes(one.memory.total), cluster.gigabytes(other.memory.total)]
    assert rows["Chunks v"] == ["1", "2"]
    assert view.locator(".map .pin").all_text_contents() == ["A", "B"]
    choose(view, {"Chunks v": "4", "Microbatches M": "4"})
    view.get_by_role("button", name="Pin as B").click()
    assert compared.inner_text().startswith("Plan B is not possible, so times are not compared.")


def test_a_swapped_memory_is_seen(alone: Alone) -> None:
    models = {name: cluster.MODELS[name] for name in ("GPT 18B", "GPT 1.7B")}
    shown = ClusterExplorer(models, (A100_80GB, B200), (4, 8), (1, 2), (1, 2), (2, 4, 8), (1, 2))
    cluster.is_right(alone(shown))
    state = {"data": copy.deepcopy(shown.data)}
    cluster.with_memory_swapped(state)
    shown.set_trait("data", state["data"])
    view = alone(shown)
    with pytest.raises(AssertionError):
        plan_map.is_right(view, setting_of(view), cluster.MODELS)


def test_controls_bars_and_map_fit_on_one_screen(alone: Alone, explorer: ClusterExplorer) -> None:
    view = opened(alone, explorer, 800)
    choose(view, {"Recomputation": "selective", "Microbatch size": "2"})
    assert max(bottom for *_, bottom in view.evaluate(BOXES, [".fields", ".readout", ".plane"])) <= 720
    view.page.set_viewport_size({"width": 1280, "height": 900})
    readout, plane = view.evaluate(BOXES, [".readout", ".plane"])
    assert readout[1] < plane[0]
    assert max(readout[3], plane[3]) <= 720


def the_map_is_kept_while_its_plans_stay_the_same(view: Locator) -> None:
    view.page.evaluate(DRAWN)  # the map follows the width of the window, which another question has changed
    view.evaluate("(root) => { root.kept = root.querySelector('.map svg'); }")
    kept = "(root) => root.kept === root.querySelector('.map svg')"
    for change in ({"Recomputation": "none"}, {"Chunks v": "4"}, {"Sequence parallel": "yes"}):
        choose(view, change)
        assert view.evaluate(kept)
        cluster.is_right(view)
    choose(view, {"Replicas D": "8"})
    assert not view.evaluate(kept)


def it_can_be_printed_with_its_plan_and_its_numbers(view: Locator) -> None:
    view.page.emulate_media(media="print")
    assert not view.locator(".fields").is_visible()
    assert not view.get_by_role("button").first.is_visible()
    assert all(view.locator(part).is_visible() for part in (".picture", ".map", ".head", "table.time", "table.memory", ".plan"))


def test_the_explorer(alone: Alone, explorer: ClusterExplorer) -> None:
    """The page is loaded again before each question."""
    page = opened(alone, explorer).page
    questions = (
        random_settings_worked_by_keyboard_show_what_the_planner_says,
        a_change_is_compared_with_what_was_before_it,
        page_keys_follow_the_pareto_front_and_arrows_lead_to_the_next_plan,
        a_click_loads_the_nearest_plan,
        two_pinned_plans_are_compared,
        the_map_is_kept_while_its_plans_stay_the_same,
        it_can_be_printed_with_its_plan_and_its_numbers,
        a_plan_chosen_by_keyboard_is_described_and_loaded,
    )
    in_order(page, questions, again=as_new, part=THE_VIEW)
