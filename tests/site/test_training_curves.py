"""Test training curves in a browser: replicas that drift apart, runs that count no bytes, and the narrowest page."""

from itertools import product
from typing import Any

from lab_views.kind import choose
from lab_views.training import KIND, Runs, is_right

from hybridlab import INT8, build
from hybridlab.training import train, train_alone
from hybridlab.widgets import TrainingCurves

NewPage = Any
RINGS: dict[str, dict[str, Any]] = {"ring": {"wire": INT8}, "none": {"all_reduce": lambda each: each}}
DEALT = ("at random", "by label")


def test_every_run_is_drawn_and_told_as_it_was(new_page: NewPage, server: str) -> None:
    alone = train_alone(steps=20, every=5)
    runs = {
        (ring, dealt): train(build("1f1b", 2, 2), 2, steps=20, every=5, by_label=dealt == "by label", **RINGS[ring])
        for ring, dealt in product(RINGS, DEALT)
    }
    given = Runs(lambda *key: runs[key], lambda: alone, 5)
    curves = TrainingCurves(("All-reduce", "Digits dealt"), runs, alone)
    page = new_page(server + KIND.lab, width=320, edit=KIND.showing(curves))
    (view,) = KIND.views(page)
    for ring, dealt in product(RINGS, DEALT):
        choose(view, {"All-reduce": ring, "Digits dealt": dealt})
        for step in (20, 12, 3):
            choose(view, {"Read at step": str(step)})
            is_right(view, given)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_curves_of_the_published_ring_leave_those_of_one_device(new_widgets: NewPage, server: str) -> None:
    (view,) = KIND.views(new_widgets(server + KIND.lab))
    paths = {}
    for ring, dealt in product(("right ring, FP32", "published ring"), DEALT):
        choose(view, {"All-reduce": ring, "Digits dealt": dealt})
        plot = view.locator("svg.plot").last
        paths[ring, dealt], beside = (plot.locator(f"path.{name}").get_attribute("d") for name in ("run", "alone"))
        assert (paths[ring, dealt] == beside) == (ring == "right ring, FP32")
    assert len(set(paths.values())) == 3
