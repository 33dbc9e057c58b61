"""Test that a page has each script and style sheet of its widgets only once; test_visits.py weighs what a first visit transfers."""

import json
from pathlib import Path
from typing import Any

from explorers import STATE
from live_widgets import each_text_once


def test_a_page_has_each_script_and_style_sheet_once(site: Path) -> None:
    repeated = []
    for path in sorted(site.glob("labs/*.html")):
        for _, states, _ in STATE.findall(path.read_text(encoding="utf-8")):
            texts = [entry["state"].get(name, "") for entry in json.loads(states)["state"].values() for name in ("_esm", "_css")]
            long = [each for each in texts if each and isinstance(each, str)]
            assert len(long) == len(set(long)), path.name
            repeated += [each for each in texts if not isinstance(each, str)]
    assert repeated, "no lab has two widgets of one kind"


def test_a_repeated_script_becomes_the_name_of_the_first_widget_that_has_it() -> None:
    states: dict[str, Any] = {
        "a": {"state": {"_esm": "one", "_css": "wide"}},
        "b": {"state": {"_esm": "two", "_css": "wide"}},
        "c": {"state": {"_esm": "one", "_css": ""}},
        "d": {"state": {"value": 3}},
    }
    each_text_once(states)
    assert states["a"]["state"] == {"_esm": "one", "_css": "wide"}
    assert states["b"]["state"] == {"_esm": "two", "_css": {"as": "a"}}
    assert states["c"]["state"] == {"_esm": {"as": "a"}, "_css": ""}
    assert states["d"]["state"] == {"value": 3}
