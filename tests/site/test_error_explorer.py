"""Test the second error explorer of lab 5 in a browser: the lab prints what the picture shows, and a touch moves the marker."""

from typing import Any

from lab_views.errors import KIND, RANKS, WIRES, read
from lab_views.kind import choose, rows_of, setting_of

NewPage = Any


def test_the_lab_prints_what_the_picture_shows(new_page: NewPage, files: str) -> None:
    page = new_page(files + KIND.lab)
    (view,) = KIND.views(page)
    text = page.locator("article").inner_text()
    choose(view, {"Ranks at the marker": str(RANKS.index(8))})
    for wire, nmse, law, *_ in rows_of(view, "table.here tbody tr"):
        assert wire in WIRES
        assert f"{read(nmse):.1e} {read(law):.1e}" in text


def test_a_touch_moves_the_marker_to_the_nearest_ranks(new_page: NewPage, server: str) -> None:
    page = new_page(server + KIND.lab, width=360, has_touch=True)
    (view,) = KIND.views(page)
    picture = view.locator(".picture")
    box = picture.bounding_box()
    for share, ranks in ((0.99, 64), (0.15, 2)):
        picture.tap(position={"x": share * box["width"], "y": box["height"] / 2})
        assert setting_of(view)["Ranks at the marker"] == f"{ranks} ranks"
        KIND.is_right(view, 0)
