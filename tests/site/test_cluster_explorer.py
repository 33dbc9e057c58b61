"""Test the cluster explorer in a browser, in the place of another view.

The tests use random settings by keyboard, the effect of the last change, and the printed page.
"""

import random
from typing import Any

import pytest
from accessibility import violations
from browser import held
from lab_views import cluster, errors
from lab_views.kind import choose, rows_of, setting_of
from playwright.sync_api import Locator

from hybridlab import A100_80GB, FP16, Transformer
from hybridlab.widgets import ClusterExplorer

NewPage = Any


@pytest.fixture(scope="module")
def explorer() -> ClusterExplorer:
    return ClusterExplorer()


def opened(new_page: NewPage, server: str, shown: ClusterExplorer, **page: Any) -> Locator:
    made: Locator = held(new_page(server + errors.KIND.lab, edit=errors.KIND.showing(shown), **page).locator(".hybridlab-cluster"))
    return made


@pytest.mark.parametrize(("width", "scheme", "seed"), [(1280, "light", 1), (360, "dark", 2)])
def test_random_settings_worked_by_keyboard_show_what_the_planner_says(
    new_page: NewPage, server: str, explorer: ClusterExplorer, width: int, scheme: str, seed: int
) -> None:
    view = opened(new_page, server, explorer, width=width, scheme=scheme)
    cluster.is_right(view)
    chosen = random.Random(seed)  # noqa: S311  # the same settings in every run
    kinds = set()
    for _ in range(40):
        control = view.get_by_label(chosen.choice(cluster.LABELS), exact=True)
        control.focus()
        for key in ("Home", *["ArrowDown"] * chosen.randrange(control.locator("option").count())):
            view.page.keyboard.press(key)
        cluster.is_right(view)
        said = cluster.said_of(setting_of(view))
        kinds.add("no such plan" if said.memory is None else "too large" if isinstance(said.time, str) else "fits")
    assert "fits" in kinds
    assert len(kinds) > 1
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    found = violations(view.page, ".hybridlab-cluster")
    assert not found, "\n".join(found)


def test_a_change_is_compared_with_what_was_before_it(new_page: NewPage, server: str, explorer: ClusterExplorer) -> None:
    view = opened(new_page, server, explorer)
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


def test_what_stands_on_one_gpu_is_told_of_one_gpu(new_page: NewPage, server: str) -> None:
    models = {"GPT 1.7B": Transformer(24, 2304, 24), "small": Transformer(12, 768, 12)}
    counts = [(1, 2)] * 5
    alone = ClusterExplorer(models, A100_80GB, *counts, wires=FP16, recompute="full", show={"model": "small"})
    view = opened(new_page, server, alone)
    assert " an iteration on 1 GPU, " in view.locator(".told").first.inner_text()
    assert not view.get_by_label("Recomputation", exact=True).is_visible()  # there is nothing to choose
    assert "Recomputation: full" in view.locator(".plan").inner_text()


def test_it_can_be_printed_with_its_plan_and_its_numbers(new_page: NewPage, server: str, explorer: ClusterExplorer) -> None:
    view = opened(new_page, server, explorer)
    view.page.emulate_media(media="print")
    assert not view.locator(".fields").is_visible()
    assert all(view.locator(part).is_visible() for part in (".picture", "table.time", "table.memory", ".plan"))
