"""Test what all figures share: they describe themselves, notebooks show them, and matplotlib's settings stay unchanged."""

import sys
from io import BytesIO

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest
from first_screen import PICTURE, first_screen
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
    return [png(plot.timeline(made("zb-h1", 2, 4))), png(plot.compare({"GPipe": made("gpipe", 2, 4)})), png(curves)]


@pytest.fixture(scope="module")
def usual() -> list[bytes]:
    return some_pictures()


@pytest.mark.parametrize("style", ["default", "dark_background", "ggplot", "fivethirtyeight"])
def test_a_figure_is_the_same_whatever_the_settings_of_matplotlib_and_changes_none(style: str, usual: list[bytes]) -> None:
    with mpl.style.context(style):
        mpl.get_backend()  # the first call finds the backend and changes the settings
        before = mpl.rcParams.copy()
        assert some_pictures() == usual
        assert mpl.rcParams == before


def test_no_figure_stays_open() -> None:
    plot.timeline(made("1f1b", 2, 2))
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_the_picture_of_readme_is_the_one_the_library_draws() -> None:
    stored, drawn = imread(PICTURE), imread(BytesIO(first_screen()))
    assert stored.shape == drawn.shape
    assert np.abs(stored - drawn).mean() < 0.005, "run python tests/first_screen.py"
