"""Test the sweep explorer in a browser, put in the place of another view.

The tests cover keyboard, touch, gaps, logarithmic axes, damaged data and the printed page.
"""

from typing import Any

import pytest
from accessibility import violations, without_others
from cases import in_turn
from lab_views import errors, sweep
from lab_views.kind import Damage, Kind, choose, setting_of, walk
from sweep_tables import LINES, NAMES, some_table, table

from hybridlab.widgets import SweepExplorer

NewPage = Any
DRAWN = sweep.Drawn(
    some_table(),
    "devices",
    "Devices K",
    {"Bubble ratio": "bubble_ratio", "Makespan, ms": "makespan"},
    {"Latency, ms": "p2p"},
    dict(zip(LINES, NAMES, strict=True)),
)
KIND = Kind("sweep", "SweepExplorer", errors.KIND.lab, sweep.is_right, (), (), ("at", 2), given=(DRAWN,), begin={"Latency, ms": "16"})
LATENCY = sweep.Drawn(DRAWN.table, "p2p", "Latency, ms", DRAWN.quantities, {"Devices K": "devices"}, DRAWN.names)


def explorer(**named: Any) -> SweepExplorer:
    return SweepExplorer(some_table(), "devices", **named)


@pytest.mark.needs("axe")
def test_every_control_works_by_keyboard_on_a_phone_and_what_it_changes_is_right(new_page: NewPage, server: str) -> None:
    page = new_page(server + KIND.lab, width=360, scheme="dark", edit=errors.KIND.showing(explorer()))
    (view,) = KIND.views(page)
    KIND.is_right(view)
    choose(view, KIND.begin)
    walk(view, KIND, 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    without_others(page, ".hybridlab-sweep")
    found = violations(page, ".hybridlab-sweep")
    assert not found, "\n".join(found)


def test_zeros_have_no_place_on_logarithmic_axes_and_are_told(new_widgets: NewPage, server: str) -> None:
    logarithmic = explorer(logarithmic=("devices", "bubble_ratio"))
    (view,) = KIND.views(new_widgets(server + KIND.lab, edit=errors.KIND.showing(logarithmic)))
    KIND.is_right(view)
    assert "A logarithmic axis has no place for 0 or less: 3 points left out of the picture." in view.locator(".notes").inner_text()
    choose(view, {"Latency, ms": "0.5"})
    KIND.is_right(view)
    assert "no place" not in view.locator(".notes").inner_text()


def test_a_zero_on_the_horizontal_axis_is_left_out_too(new_widgets: NewPage, server: str) -> None:
    across = SweepExplorer(some_table(), "p2p", logarithmic="p2p", show={"at": 0})
    (view,) = KIND.views(new_widgets(server + KIND.lab, edit=errors.KIND.showing(across)))
    for devices in ("2", "3", "8"):
        choose(view, {"Devices K": devices})
        for place in ("0", "1", "2"):
            choose(view, {"Read at Latency, ms": place})
            sweep.is_right(view, LATENCY)


@in_turn("values", [(0, 0), (5, 5), (-3, -1), (-2, 4), (0.001, 1e5), (2, 1999)])
def test_any_range_of_values_has_its_axis(new_widgets: NewPage, server: str, values: tuple[float, float]) -> None:
    rows = [("1f1b", 1, 3 * place, each, None) for place, each in enumerate(values)]
    made = table(("schedule", "chunks", "size", "gain", "refused"), rows)
    drawn = sweep.Drawn(made, "size", "Size", {"Gain": "gain"}, {}, {("1f1b", 1): "1F1B"})
    (view,) = KIND.views(new_widgets(server + KIND.lab, edit=errors.KIND.showing(SweepExplorer(made, "size", y="gain"))))
    sweep.is_right(view, drawn)
    if max(values) > 0:
        view.get_by_label("Gain", exact=True).check()
        sweep.is_right(view, drawn) if min(values) > 0 else None
    assert view.get_by_role("alert").count() == 0


def test_another_quantity_keeps_its_own_scale(new_widgets: NewPage, server: str) -> None:
    (view,) = KIND.views(new_widgets(server + KIND.lab, edit=errors.KIND.showing(explorer(logarithmic="makespan"))))
    view.get_by_label("Bubble ratio", exact=True).check()
    choose(view, {"Vertical axis": "Makespan, ms"})
    assert view.get_by_label("Makespan", exact=True).is_checked()
    view.get_by_label("Makespan", exact=True).uncheck()
    choose(view, {"Vertical axis": "Bubble ratio"})
    assert view.get_by_label("Bubble ratio", exact=True).is_checked()
    KIND.is_right(view)


def test_a_touch_moves_what_is_read_to_the_nearest_value(new_page: NewPage, server: str) -> None:
    page = new_page(server + KIND.lab, width=360, has_touch=True, edit=errors.KIND.showing(explorer()))
    (view,) = KIND.views(page)
    picture = view.locator(".picture")
    box = picture.bounding_box()
    for share, devices in ((0.95, 8), (0.35, 3), (0.05, 2)):
        picture.tap(position={"x": share * box["width"], "y": box["height"] / 2})
        assert setting_of(view)["Read at Devices K"] == str(devices)
        KIND.is_right(view)


def test_it_can_be_printed_with_its_legend_and_its_numbers(new_page: NewPage, server: str) -> None:
    page = new_page(server + KIND.lab, edit=errors.KIND.showing(explorer()))
    (view,) = KIND.views(page)
    page.emulate_media(media="print")
    assert not view.locator(".fields").is_visible()
    assert all(view.locator(part).is_visible() for part in (".picture", ".lines", ".told", "table"))


@in_turn("damage", sweep.DAMAGES)
def test_damaged_data_are_told(new_widgets: NewPage, server: str, faults: list[str], damage: Damage) -> None:
    (view,) = KIND.views(new_widgets(server + KIND.lab, edit=errors.KIND.showing(explorer(), damage)))
    assert "missing or damaged" in view.get_by_role("alert").inner_text()
    faults.clear()  # the view warns on the console


def with_a_lower_value(state: Any) -> None:
    state["data"]["values"]["bubble_ratio"][2] /= 1.02


def with_another_reason(state: Any) -> None:
    state["data"]["reasons"] = ["it rains"]


FAULTS: tuple[Damage, ...] = (with_a_lower_value, sweep.with_a_gap, with_another_reason, sweep.with_names_swapped)


@in_turn("fault", FAULTS)
def test_a_planted_fault_in_the_data_is_seen(new_widgets: NewPage, server: str, fault: Damage) -> None:
    (view,) = KIND.views(new_widgets(server + KIND.lab, edit=errors.KIND.showing(explorer(), fault)))
    with pytest.raises(AssertionError):
        KIND.is_right(view)
    assert view.get_by_role("alert").count() == 0
