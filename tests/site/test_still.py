"""Test the still pictures of views: they have the boxes, the numbers and the names of the picture that the view's script draws."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from cases import in_turn
from playwright.sync_api import Locator

from hybridlab import sweep
from hybridlab.widgets import (
    ClusterExplorer,
    ErrorExplorer,
    MeshView,
    RingStepper,
    ScheduleEditor,
    StepExplorer,
    SweepExplorer,
    TimelineExplorer,
    TimelineFilm,
)

TEXTS = "(root) => [...root.querySelectorAll('svg text')].map((text) => text.textContent).filter(Boolean)"
TABLE = sweep(["gpipe", "1f1b"], {"devices": [2, 4], "microbatches": 8, "forward": 1, "backward": 2, "p2p": [0, 1]})
VIEWS = {
    "timeline": lambda: TimelineExplorer(show={"devices": 3, "microbatches": 4, "compare": "1f1b"}),
    "step": StepExplorer,
    "editor": lambda: ScheduleEditor(devices=2, microbatches=2),
    "film": lambda: TimelineFilm(("gpipe", "zb-h1"), devices=3, microbatches=4),
    "ring": lambda: RingStepper(ranks=3, show={"step": 2}),
    "mesh": lambda: MeshView(stages=3, replicas=2, show={"rank": 4}),
    "errors": lambda: ErrorExplorer(ranks=(2, 4), size=256),
    "cluster": ClusterExplorer,
    "sweep": lambda: SweepExplorer(TABLE, "devices"),
}
# What only the script writes: other ticks, the numbers of ranks in one text, shares beside seconds, and the map of plans.
OTHER = {
    "step": r"stage \d",
    "film": r"\d+",
    "ring": r"[012]+|7",
    "errors": r"10\S+",
    "cluster": r".* %|One iteration: 20.7 s|Fullest GPU: 50.5 of 80 GB.*|states 45.2 GB|\d+|80 GB|GB on the fullest GPU",
    "sweep": r"0\.\d",
}


def parts_of(texts: list[str]) -> Counter[str]:
    """Return how often each operation is named, such as F0."""
    return Counter(text for text in texts if re.fullmatch(r"[FB]\d+", text))


@in_turn("name", list(VIEWS))
def test_a_still_picture_says_what_the_view_says(alone: Callable[[Any], Locator], name: str) -> None:
    view = VIEWS[name]()
    drawn = alone(view).evaluate(TEXTS)
    still = re.findall(r">([^<>]+)</text>", view.still().svg())
    assert len(drawn) > 3
    assert parts_of(drawn) == parts_of(still)
    assert [text for text in drawn if text not in still and not re.fullmatch(OTHER.get(name, ""), text)] == []
