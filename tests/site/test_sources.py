"""Widgets as the sources of this checkout draw them, each on a page of its own: these tests need a browser but no built site."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect
from test_views import MAKE

from hybridlab import widgets
from hybridlab.widgets import Bet

Alone = Callable[[Any], Locator]
BET = Bet("sources.sooner", "Which is sooner?", choices=("GPipe", "1F1B"))
EACH = {**MAKE, "Bet": lambda: BET, "Revealed": lambda: BET.reveal("GPipe")}


def test_every_widget_is_drawn_here() -> None:
    assert set(EACH) == set(widgets.__all__)


@pytest.mark.parametrize("name", EACH)
def test_a_widget_is_drawn_without_a_fault(alone: Alone, name: str) -> None:
    view = alone(EACH[name]())
    expect(view).to_have_class(re.compile(r"hybridlab-"))
    assert len(view.locator("*").all()) > 5
