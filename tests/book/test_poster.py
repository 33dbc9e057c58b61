"""Test the poster: its texts are those of the registry, its numbers those of the clock, and it is the same in every run."""

import re
from html import unescape

import pytest
from cases import in_turn
from gallery import poster
from matplotlib.figure import Figure

from hybridlab import REGISTRY, Costs, build, simulate

COSTS = Costs(forward=1, backward=2, weight_share=0.5)


def texts(svg: bytes) -> list[str]:
    return [unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", svg.decode())]


def test_the_poster_has_every_schedule_with_the_numbers_of_the_library() -> None:
    page = poster.poster()
    drawn = poster.written(page, "poster.svg")
    found = texts(drawn)
    for name, family in REGISTRY.items():
        at = found.index(family.title)
        timeline = simulate(build(name, devices=4, microbatches=8), COSTS)
        peaks = timeline.peak_activations
        numbers = {
            "makespan": f"{timeline.makespan:g}",
            "bubble ratio": f"{timeline.bubble_ratio:.3f}",
            "peak activations": f"{peaks.max():g}",
        }
        assert dict(zip(found[at - 5 : at : 2], found[at - 6 : at : 2], strict=True)) == numbers, name
        following = found[at + 1 :]
        following = following[: following.index("peak activations") if "peak activations" in following else None]
        assert [text for text in following if text.startswith("peak ")] == [f"peak {peak:g}" for peak in peaks], name
        words = " ".join(following).replace("\N{GREATER-THAN OR EQUAL TO}", ">=").lower()
        assert f"{family.summary}. ".lower() in words, name
        assert family.source.lower() in words, name
    assert b'width="1684.' in drawn, "points of A2, landscape"


@in_turn("name", poster.FILES)
def test_equal_pages_give_equal_bytes_at_any_time(name: str) -> None:
    page = Figure(figsize=(1, 1))
    page.add_subplot().fill_between([0, 1], 1, hatch="/")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "0")
        long_ago = poster.written(page, name)
    assert poster.written(page, name) == long_ago
