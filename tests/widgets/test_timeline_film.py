"""Test the film of timelines: its data in Python, and what it plays in a browser is tested in tests/site/test_timeline_film.py."""

import json

import numpy as np
from cases import in_turn, refusal

from hybridlab import UnsupportedSize, build
from hybridlab.widgets import TimelineFilm


def test_the_data_are_the_orders_of_the_registry_and_the_costs() -> None:
    film = TimelineFilm(("gpipe", "zb-h1"), devices=3, microbatches=4, forward=10, backward=30, unit="ms")
    assert json.loads(json.dumps(film.data)) == film.data
    assert film.data["costs"] == {"forward": 10, "backward": 30, "weight_share": 0.5, "p2p": 0}
    for entry in film.data["schedules"]:
        assert entry["orders"] == [line.split(": ")[1] for line in str(build(entry["name"], 3, 4)).splitlines()]


def test_the_text_is_the_same_in_every_run_and_changes_with_the_data() -> None:
    texts = [repr(TimelineFilm(names, devices=2, microbatches=2)) for names in (("gpipe", "1f1b"), ("gpipe", "1f1b"), ("1f1b", "gpipe"))]
    assert texts[0] == texts[1] != texts[2]


def test_what_cannot_run_is_refused() -> None:
    with refusal("unsupported-size", "interleaved", kind=UnsupportedSize):
        TimelineFilm(("gpipe", "interleaved"), devices=4, microbatches=6)
    with refusal("unknown-name", "'1f1b'"):
        TimelineFilm("1f1", devices=4, microbatches=6)
    with refusal("negative", "forward"):
        TimelineFilm("1f1b", devices=4, microbatches=6, forward=-1)
    with refusal("wrong-shape", "forward", "[1, 2]"):
        TimelineFilm("1f1b", devices=2, microbatches=6, forward=[1, 2])  # type: ignore[arg-type]


@in_turn("sizes", [(1, 1), (1, 3), (4, 1), (np.int64(2), np.int64(2))])
def test_the_smallest_sizes_can_be_played(sizes: tuple[int, int]) -> None:
    assert len(json.loads(json.dumps(TimelineFilm(("gpipe", "1f1b"), *sizes).data))["schedules"]) == 2
