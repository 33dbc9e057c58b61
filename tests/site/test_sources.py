"""Test the widgets as the sources of this checkout draw them, each on a page of its own.

These tests need a browser, but no built site.
"""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator
from test_views import MAKE

from hybridlab import widgets
from hybridlab.widgets import Bet, MeshView

Alone = Callable[[Any], Locator]
BET = Bet("sources.sooner", "Which is sooner?", choices=("GPipe", "1F1B"))
EACH = {**MAKE, "Bet": lambda: BET, "Revealed": lambda: BET.reveal("GPipe")}


def test_every_widget_is_drawn_here() -> None:
    assert set(EACH) == set(widgets.__all__)


@pytest.mark.parametrize("name", EACH)
def test_a_widget_is_drawn_without_a_fault(alone: Alone, name: str) -> None:
    view = alone(EACH[name]())
    assert "hybridlab-" in str(view.get_attribute("class"))
    assert view.locator("*").count() > 5


def test_every_rank_of_a_mesh_can_be_chosen(alone: Alone) -> None:
    view = alone(MeshView(stages=2, replicas=3))
    assert view.get_by_role("radio").count() == 6
