"""Test how many bytes a first visit of a lab and of the gallery transfers, and that a page has each script of its widgets only once.

Every file that the browser requests is counted as a public server would send it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from browser import MOST_BYTES, page_names, weight_of
from explorers import STATE
from live_widgets import each_text_once

HEAVY = [(name, most) for name in page_names() for start, most in MOST_BYTES.items() if name.startswith(start)]


@pytest.mark.parametrize(("name", "most"), HEAVY or [("labs", 0)])
def test_a_first_visit_of_a_lab_or_the_gallery_is_light(new_page: Any, server: str, site: Path, name: str, most: int) -> None:
    page = new_page(server + name)
    page.evaluate("document.fonts.ready")  # the last file that a page requests
    sizes = weight_of(page, site, server)
    pictures = {".png"} if page.locator("article img[src$='.png']").count() else set()
    assert {".css", ".html", ".js", ".woff2"} | pictures <= {Path(name).suffix for name in sizes}
    heaviest = ", ".join(f"{name} {size / 1e3:.0f} kB" for name, size in sorted(sizes.items(), key=lambda each: -each[1])[:6])
    assert sum(sizes.values()) <= most, f"{sum(sizes.values()) / 1e3:.0f} kB: {heaviest}"


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
