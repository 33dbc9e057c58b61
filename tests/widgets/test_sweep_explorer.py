"""Test that the sweep explorer has the values of its table.

It must also refuse bad values with clear errors, and print the same text in every run.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal
from hypothesis import given
from misuse import junk
from profiles import examples
from sweep_tables import DEVICES, LATENCIES, NAMES, WHY, bubble_ratio, is_refused, makespan, some_table, table

from hybridlab import HybridLabError
from hybridlab.palette import line_style
from hybridlab.widgets import SweepExplorer, page_data, sweep_explorer

SWEEPS = Path(__file__).resolve().parents[1] / "data" / "sweeps.json"


def explorer(unit: str | None = "ms", **named: Any) -> SweepExplorer:
    return SweepExplorer(some_table(unit), "devices", **named)


@pytest.fixture(scope="module")
def shared() -> SweepExplorer:
    """A view that all examples of junk share."""
    return explorer()


def test_the_data_are_the_cells_of_the_table() -> None:
    data = explorer(unit="ms").data
    assert data["x"] == {"name": "devices", "label": "Devices K", "unit": "", "positive": True, "values": list(DEVICES)}
    assert [(each["name"], each["label"], each["unit"]) for each in data["quantities"]] == [
        ("bubble_ratio", "Bubble ratio", ""),
        ("makespan", "Makespan", "ms"),
    ]
    (choice,) = data["choices"]
    assert (choice["name"], choice["label"], choice["unit"], choice["values"]) == ("p2p", "Latency", "ms", list(LATENCIES))
    assert choice["titles"] == ["0", "0.5", "16"]
    assert [line["name"] for line in data["lines"]] == NAMES
    assert data["reasons"] == [WHY]
    place = 0
    for p2p in LATENCIES:
        for line in range(len(NAMES)):
            for devices in DEVICES:
                refused = is_refused(line, devices)
                assert data["why"][place] == int(refused)
                for name, law in (("bubble_ratio", bubble_ratio), ("makespan", makespan)):
                    expected = None if refused else pytest.approx(law(line, devices, p2p), rel=1e-8)
                    assert data["values"][name][place] == expected
                place += 1
    assert place == len(data["why"]) == len(data["values"]["makespan"])
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_a_row_that_is_not_there_is_a_gap_with_a_reason() -> None:
    made = table(("schedule", "x", "makespan"), [("gpipe", 1, 5), ("gpipe", 2, 6), ("1f1b", 2, 7)])
    data = SweepExplorer(made, "x", y="makespan").data
    assert data["values"]["makespan"] == [5, 6, None, 7]
    assert [data["reasons"][why - 1] if why else "" for why in data["why"]] == ["", "", "the sweep has no such row", ""]


def test_lines_have_the_styles_of_the_static_figures() -> None:
    for place, line in enumerate(explorer().data["lines"]):
        style = line_style(place)
        assert line["colours"] == [style.colour, style.on_dark]
        assert line["dash"] == [pytest.approx(part * style.width, abs=0.006) for part in style.dash]
    shapes = [line_style(place).marker for place in range(6)]
    assert set(shapes) == set(sweep_explorer.SHAPES)


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_lines_can_be_read_on_light_and_on_dark_paper() -> None:
    for style in map(line_style, range(6)):
        assert 1.05 / (luminance(style.colour) + 0.05) >= 4.5  # WCAG 2.2: the contrast of text, because each line's name has its colour
        assert (luminance(style.on_dark) + 0.05) / (luminance("#14181D") + 0.05) >= 4.5


def test_a_view_begins_with_the_first_of_everything_at_the_last_x() -> None:
    made = explorer()
    assert (made.quantity, made.chosen, made.at, made.drawn, made.logarithmic) == ("bubble_ratio", {"p2p": 0}, 8, NAMES, [])
    assert repr(made).startswith("<SweepExplorer: 4 lines of bubble_ratio against devices, data ")
    assert repr(made).endswith("; p2p 0, read at devices 8>")
    assert repr(made) == repr(explorer())
    assert repr(made).split("data ")[1] != repr(explorer(unit="s")).split("data ")[1]


def test_a_view_begins_where_it_is_told_to() -> None:
    show = {"chosen": {"p2p": 16}, "at": 3, "drawn": ["ZB-H1", "GPipe"], "quantity": "makespan"}
    made = explorer(logarithmic=("makespan", "devices"), labels={"p2p": "Latency T_C"}, show=show)
    assert (made.quantity, made.chosen, made.at, made.drawn) == ("makespan", {"p2p": 16}, 3, ["GPipe", "ZB-H1"])
    assert made.logarithmic == ["devices", "makespan"]
    assert made.data["choices"][0]["label"] == "Latency T_C"
    assert repr(made).endswith("; p2p 16, 2 lines drawn, read at devices 3>")


def test_a_part_of_what_is_chosen_can_be_set_and_observed() -> None:
    rows = [(k, p2p, part, k + p2p + part) for k in (1, 2) for p2p in (0, 4) for part in (0, 0.5)]
    made = SweepExplorer(table(("devices", "p2p", "recompute", "makespan"), rows), "devices", y="makespan")
    assert made.chosen == {"p2p": 0, "recompute": 0}
    heard: list[Any] = []
    made.observe(lambda change: heard.append(change["new"]), "chosen")
    made.chosen = {"recompute": 0.5}
    made.chosen = {"p2p": 4.0}
    assert heard == [{"p2p": 0, "recompute": 0.5}, {"p2p": 4, "recompute": 0.5}]


def test_what_a_page_sends_is_taken_and_nonsense_is_not() -> None:
    made = explorer()
    made.set_state({"chosen": {"p2p": 0.5}, "at": 2, "drawn": [], "logarithmic": ["devices"]})
    assert (made.chosen, made.at, made.drawn, made.logarithmic) == ({"p2p": 0.5}, 2, [], ["devices"])
    with refusal("out-of-range", "no p2p 5: it has 0, 0.5, 16"):
        made.set_state({"chosen": {"p2p": 5}})
    assert made.chosen == {"p2p": 0.5}


@examples(200)
@given(junk)
def test_junk_is_refused_in_a_sentence_or_taken(shared: SweepExplorer, value: Any) -> None:
    for name in shared.SETTING:
        try:
            setattr(shared, name, value)
        except HybridLabError as why:
            assert str(why)  # noqa: PT017 - what is refused has a sentence, what is taken has none
    assert shared.at in DEVICES
    assert shared.chosen["p2p"] in LATENCIES
    assert set(shared.drawn) <= set(NAMES)


@in_turn(
    "named, code, word",
    [
        ({"y": "makespam"}, "unknown-name", "'makespam': did you mean 'makespan'"),
        ({"y": ()}, "empty", "y"),
        ({"y": 3}, "not-a-list", "y is a column or several, not 3"),
        ({"labels": {"ptp": "Latency"}}, "unknown-name", "'ptp': did you mean 'p2p'"),
        ({"labels": {"p2p": 3}}, "not-text", "label of p2p must be a string, not 3"),
        ({"labels": ["p2p"]}, "wrong-type", "labels"),
        ({"unit": "a very long unit of time"}, "unknown-name", "unit"),
        ({"logarithmic": "p2p"}, "unknown-name", "'p2p'"),
        ({"show": {"at": 5}}, "out-of-range", "devices 5: it has 2, 3, 8"),
        ({"show": {"drawn": ["Hanayo"]}}, "unknown-name", "'Hanayo'"),
        ({"show": {"chosen": {"chunks": 2}}}, "unknown-name", "'chunks'"),
        ({"show": {"chosen": [16]}}, "wrong-type", "by column, not [16]"),
        ({"show": {"quantity": "refused"}}, "unknown-name", "'refused'"),
        ({"show": {"latency": 3}}, "unknown-name", "'latency'"),
    ],
)
def test_what_cannot_be_shown_is_refused(named: dict[str, Any], code: str, word: str) -> None:
    with refusal(code, word):
        explorer(**named)


def test_an_axis_without_positive_values_is_never_logarithmic() -> None:
    made = table(("p2p", "makespan"), [(0, 1), (-1, 2)])
    with refusal("not-positive", "'p2p'"):
        SweepExplorer(made, "p2p", y="makespan", logarithmic="p2p")


def test_too_much_for_a_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_data, "MOST_BYTES", 500)
    with refusal("too-large", "0.0005 MB"):
        explorer()
    monkeypatch.undo()
    size = 400  # values of each of two choices; no row combines them, so the table is small and its grid is large
    sparse = [(1, place, 0, 1) for place in range(size)] + [(1, 0, place, 1) for place in range(1, size)]
    with refusal("too-large", "2 MB"):
        SweepExplorer(table(("x", "a", "b", "makespan"), [(x, *rest) for _, *rest in sparse for x in range(20)]), "x", y="makespan")


def test_the_largest_published_sweep_fits_a_page_many_times() -> None:
    points = [point for point in json.loads(SWEEPS.read_text(encoding="utf-8"))["points"] if point["sweep"] == "recompute"]
    names = ("schedule", "devices", "microbatches", "chunks", "forward", "p2p", "r_recomp", "bubble_ratio", "total_time")
    made = SweepExplorer(table(names, [[point[name] for name in names] for point in points]), "r_recomp", y=("bubble_ratio", "total_time"))
    assert len(made.data["lines"]) == 6
    assert [choice["name"] for choice in made.data["choices"]] == ["devices", "p2p"]
    assert len(made.data["why"]) == len(points) == 324
    assert len(json.dumps(made.data)) < 20_000
