"""Test what all figures share: they describe themselves, notebooks show them, and matplotlib's settings stay unchanged."""

import re
import sys
from io import BytesIO
from xml.etree import ElementTree as ET

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest
from first_screen import MOVING, PICTURE, first_screen, moving_screen
from IPython.core.formatters import DisplayFormatter
from matplotlib.image import imread

from hybridlab import Costs, Timeline, build, plot, simulate


def made(name: str, devices: int, microbatches: int) -> Timeline:
    return simulate(build(name, devices, microbatches), Costs(forward=1, backward=2))


def png(figure: plot.Picture) -> bytes:
    return figure._repr_png_()[0]


def test_alt_text_states_the_numbers() -> None:
    assert plot.alt_text(made("1f1b", 4, 8)) == (
        "Timeline of 1F1B, 4 devices, 8 microbatches: makespan 33 ms, bubble ratio 0.273, "
        "peak activations, in microbatches by device: 4, 3, 2, 1."
    )
    assert plot.alt_text(made("1f1b", 1, 1)).endswith(
        "1 device, 1 microbatch: makespan 3 ms, bubble ratio 0.000, peak activations, in microbatches: 1."
    )
    assert "2 chunks a device" in plot.alt_text(made("interleaved", 2, 2))
    assert plot.alt_text(made("dualpipe", 4, 8)) == (
        "Timeline of DualPipe, 4 devices, 8 microbatches, 2 copies of the weights: makespan 26 ms, bubble ratio 0.077, peak activations, "
        "in microbatches: 5 on every device; through each copy of the weights: 4 microbatches from device 0 on, 4 microbatches from "
        "device 3 on; a forward and a backward run at the same time in 12 overlapped pairs."
    )
    assert "copies" not in plot.alt_text(made("dualpipe-v", 2, 4))
    assert "pair" not in plot.alt_text(made("chimera", 2, 2))
    assert plot.alt_text(made("1f1b", 20, 40)).endswith("in microbatches: from 1 on device 19 to 20 on device 0.")


def test_a_figure_says_what_it_shows() -> None:
    timeline = made("gpipe", 4, 8)
    assert plot.timeline(timeline).alt_text == plot.alt_text(timeline)
    assert repr(plot.timeline(timeline)) == f"<Figure: {plot.alt_text(timeline)}>"
    assert plot.compare({"GPipe": timeline}).alt_text == (
        "1 timeline on one time axis. GPipe (4 devices, 8 microbatches): makespan 33 ms, bubble ratio 0.273, "
        "peak activations, in microbatches: 8 on every device."
    )


def test_a_notebook_shows_a_figure_as_a_picture_and_in_words() -> None:
    data, metadata = DisplayFormatter().format(plot.timeline(made("1f1b", 2, 2)))
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"].startswith("<Figure: Timeline of 1F1B, 2 devices")
    assert imread(BytesIO(data["image/png"])).shape[1] > metadata["image/png"]["width"] == 720


def some_pictures() -> list[bytes]:
    curves = plot.lines([1, 2, 4, 8], {"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]}, x_label="x", y_label="y")
    return [png(plot.compare({"ZB-H1": made("zb-h1", 2, 4)})), png(curves)]


def test_a_figure_is_the_same_whatever_the_settings_of_matplotlib_and_changes_none() -> None:
    usual = some_pictures()
    with mpl.style.context(["dark_background", "ggplot", "fivethirtyeight"]):
        mpl.get_backend()  # the first call finds the backend and changes the settings
        before = mpl.rcParams.copy()
        assert some_pictures() == usual
        assert mpl.rcParams == before


def test_no_figure_stays_open() -> None:
    plot.timeline(made("1f1b", 2, 2))
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_the_still_first_picture_is_the_one_the_library_draws() -> None:
    stored, drawn = imread(PICTURE), imread(BytesIO(first_screen()))
    assert stored.shape == drawn.shape
    assert np.abs(stored - drawn).mean() < 0.005, "run python tests/book/first_screen.py"


# ---- the moving picture of README ----

SVG = "{http://www.w3.org/2000/svg}"
PLAYED = {"GPipe": "gpipe", "1F1B": "1f1b", "ZB-H1": "zb-h1"}
Box = tuple[float, float, int, str, int]  # start, end, device, kind, microbatch


def stored() -> ET.Element:
    return ET.fromstring(MOVING.read_text(encoding="utf-8"))  # noqa: S314 - our own picture


def of_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [each for each in root.iter() if name in each.get("class", "").split()]


def delay(each: ET.Element) -> int:
    """Return after how many milliseconds the animation of an element begins."""
    return int(re.search(r"animation-delay:(\d+)ms", each.attrib["style"])[1])


def boxes_of(root: ET.Element, panel: ET.Element) -> list[Box]:
    """Return the operations that a panel shows; the numbers of the axis tell the times."""
    ticks = {int(each.text): float(each.attrib["x"]) for each in of_class(root, "tick")}
    unit = (ticks[30] - ticks[0]) / 30
    bars = {each.attrib["id"]: each[0] for each in root.iter(f"{SVG}g") if "id" in each.attrib}
    lines = [float(each.attrib["y"]) for each in of_class(panel, "name")]
    found = []
    for use, number in zip(panel.iter(f"{SVG}use"), of_class(panel, "number"), strict=True):
        kind = use.attrib["href"].removeprefix("#")
        start, length = (float(use.attrib["x"]) - ticks[0]) / unit, float(bars[kind].attrib["width"]) / unit
        assert float(number.attrib["x"]) == pytest.approx(ticks[0] + unit * (start + round(length) / 2))
        device = int(np.argmin(np.abs(np.array(lines) - float(number.attrib["y"]))))
        found.append((start, start + round(length), device, kind, int(number.text)))
    return found


def figures_from(boxes: list[Box], time: int) -> list[str]:
    """Count the figures of the first ``time`` units from the boxes, a unit of time and a device at a time."""
    busy, most = 0, 0
    for unit in range(time):
        for device in range(4):
            mine = [box for box in boxes if box[2] == device]
            busy += any(start <= unit < end for start, end, *_ in mine)
            forwards = sum(kind == "F" and start <= unit for start, _, _, kind, _ in mine)
            most = max(most, forwards - sum(kind in "BW" and end <= unit for _, end, _, kind, _ in mine))
    return [str(time), f"{1 - busy / (4 * time):.3f}", str(most)]


def test_the_moving_picture_is_the_one_that_its_tool_draws() -> None:
    assert MOVING.read_text(encoding="utf-8") == moving_screen(), "run python tests/book/first_screen.py"
    assert MOVING.stat().st_size < 60_000


def test_the_moving_picture_shows_every_operation_in_its_place() -> None:
    root = stored()
    panels = of_class(root, "panel")
    assert [of_class(panel, "title")[0].text for panel in panels] == list(PLAYED)
    for panel, name in zip(panels, PLAYED.values(), strict=True):
        run = made(name, 4, 8)
        rows = zip(run.start, run.end, run.device, (op.kind for op in run.ops), (op.microbatch for op in run.ops), strict=True)
        assert sorted(boxes_of(root, panel)) == sorted(rows)
        idle = sum(path.attrib["d"].count("M") for path in of_class(panel, "idle"))
        assert idle == 4 * run.makespan - (run.end - run.start).sum()


def test_the_moving_picture_ends_with_the_numbers_of_the_library_and_counts_up_to_them() -> None:
    root = stored()
    for panel, name in zip(of_class(root, "panel"), PLAYED.values(), strict=True):
        run, boxes = made(name, 4, 8), boxes_of(root, panel)
        *passed, last = ([span.text for span in each] for each in of_class(panel, "figure"))
        final = [f"{run.makespan:g}", f"{run.bubble_ratio:.3f}", f"{max(run.peak_activations):g}"]
        assert last == final == figures_from(boxes, int(run.makespan))
        assert passed == [figures_from(boxes, time) for time in range(1, int(run.makespan))]


def test_the_moving_picture_plays_once_in_six_seconds_and_not_for_readers_who_want_no_motion() -> None:
    root = stored()
    style = next(root.iter(f"{SVG}style")).text
    tick = int(re.search(r"animation: appear (\d+)ms", style)[1])
    assert [delay(each) for each in of_class(root, "step")] == [tick * step for step in range(33 + 33 + 27)]
    ends = [delay(each) + tick for each in of_class(root, "step") + of_class(root, "passed")]
    ends += [delay(each) + int(re.search(r"duration:(\d+)ms", each.attrib["style"])[1]) for each in of_class(root, "cursor")]
    assert 5000 <= max(ends) <= 6500
    assert "infinite" not in style
    assert "@media (prefers-reduced-motion: reduce) { * { animation: none !important } }" in style
    assert not any("animation" in each.get("style", "") for each in of_class(root, "figure") if "passed" not in each.get("class", ""))


def test_the_moving_picture_needs_no_script_and_no_other_file() -> None:
    text = MOVING.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"<script|https?:|@import|url\((?!#)|href=\"(?!#)|\bon\w+=", text)
