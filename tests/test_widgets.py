"""The timeline explorer holds what the simulator says, refuses in sentences, and prints the same text in every run."""

import contextlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from misuse import junk

from hybridlab import REGISTRY, Costs, HybridLabError, Timeline, UnsupportedSize, build, simulate
from hybridlab.palette import KIND_COLOURS, chunk_colour
from hybridlab.widgets import TimelineExplorer, grid
from hybridlab.widgets.explorer import SETTING
from hybridlab.widgets.grid import grid_data
from hybridlab.widgets.view import with_shared

SCRIPT = with_shared("timeline_explorer.js")
STYLE = with_shared("timeline_explorer.css")

TIMES: dict[str, Any] = {"forward": 1.1, "backward": 2.3, "weight_share": 0.4}
AXES: dict[str, Any] = {"devices": (1, 2, 4), "microbatches": (1, 4, 6), "chunks": (2, 4), "p2p": (0, 0.3, 1)}
DATA = grid_data(list(REGISTRY), AXES, TIMES, "ms")

ARGUMENTS = ["schedules", "devices", "microbatches", "chunks", "p2p", "forward", "backward", "unit", "show"]

Entry = dict[str, Any]


def supported() -> Iterator[tuple[Entry, int, Timeline]]:
    """Every entry of the grid that is not refused, the place of each latency, and what the simulator says of it."""
    for name, entry in DATA["pipelines"].items():
        if "refusal" not in entry:
            schedule, devices, microbatches, chunks = name.split("/")
            order = build(schedule, int(devices), int(microbatches), int(chunks))
            for place, latency in enumerate(DATA["p2p"]):
                yield entry, place, simulate(order, Costs.per_device(**TIMES, p2p=latency))


def small(**changes: Any) -> TimelineExplorer:
    arguments = {"devices": (2, 3), "microbatches": (2, 4)} | changes
    return TimelineExplorer(**arguments)


def test_the_grid_has_every_combination() -> None:
    wanted = product(REGISTRY, AXES["devices"], AXES["microbatches"], (1, 2, 4))
    assert list(DATA["pipelines"]) == ["/".join(map(str, each)) for each in wanted]
    assert sum("refusal" not in entry for entry in DATA["pipelines"].values()) > 40


def test_every_order_and_time_is_the_simulators() -> None:
    for entry, place, timeline in supported():
        assert entry["orders"] == [" ".join(map(str, order)) for order in timeline.schedule.orders]
        assert entry["start"][place] == pytest.approx(timeline.start, rel=1e-8)
        duration = [entry["duration"][op.kind][device] for op, device in zip(timeline.ops, timeline.device, strict=True)]
        assert np.add(entry["start"][place], duration) == pytest.approx(timeline.end, rel=1e-8)


def test_every_figure_is_the_simulators() -> None:
    for entry, place, timeline in supported():
        assert entry["makespan"][place] == pytest.approx(timeline.makespan, rel=1e-8)
        assert entry["bubble"][place] == pytest.approx(timeline.bubble_ratio, rel=1e-8)
        assert entry["peak"] == timeline.peak_activations.tolist()


def test_the_data_tell_what_every_operation_waited_for() -> None:
    for entry, place, timeline in supported():
        rows = [(device, row) for device, order in enumerate(entry["orders"]) for row, _ in enumerate(order.split())]
        before = [place_in_all - 1 if row else -1 for place_in_all, (_, row) in enumerate(rows)]
        late = set(entry["late"][place])
        waited = [entry["source"][row] if row in late else before[row] for row in range(len(rows))]
        assert waited == timeline.waited_for().tolist()


def test_inputs_are_named_as_the_schedule_names_them() -> None:
    for entry, _, timeline in supported():
        for op, source in zip(timeline.ops, entry["source"], strict=True):
            needs = timeline.schedule.needs(op)
            assert (timeline.ops[source] in needs) if source >= 0 else not needs


def test_refused_combinations_carry_the_registrys_sentence() -> None:
    refused = {name: entry["refusal"] for name, entry in DATA["pipelines"].items() if "refusal" in entry}
    for name, sentence in refused.items():
        with pytest.raises(UnsupportedSize) as why:
            build(name.split("/")[0], *map(int, name.split("/")[1:]))
        assert sentence == str(why.value)
    expected = "interleaved needs microbatches divisible by devices: 6 is not divisible by 4; try 4 or 8"
    assert refused["interleaved/4/6/2"] == expected


def test_a_schedule_is_offered_the_chunks_it_supports() -> None:
    chunks = {schedule["name"]: schedule["chunks"] for schedule in DATA["schedules"]}
    assert chunks == {"gpipe": [1], "1f1b": [1], "interleaved": [2, 4], "hanayo": [2, 4], "zb-h1": [1]}
    fewest = grid_data(["interleaved", "gpipe"], AXES | {"chunks": None}, TIMES)
    assert [schedule["chunks"] for schedule in fewest["schedules"]] == [[2], [1]]


def test_costs_can_differ_from_device_to_device() -> None:
    explorer = TimelineExplorer("1f1b", devices=2, microbatches=3, forward=[1, 2], backward=[3, 4])
    timeline = simulate(build("1f1b", 2, 3), Costs.per_device(forward=[1, 2], backward=[3, 4]))
    assert explorer.data["pipelines"]["1f1b/2/3/1"]["start"][0] == timeline.start.tolist()
    assert explorer.timeline.makespan == timeline.makespan


def test_the_data_are_plain_json_and_small() -> None:
    explorer = TimelineExplorer(devices=(2, 4, 8), microbatches=(2, 4, 6, 8, 12, 16, 32))
    text = json.dumps(explorer.data, allow_nan=False, separators=(",", ":"))
    assert json.loads(text) == explorer.data
    assert "42 settings" in repr(explorer)
    assert len(text) < 93 * 1024  # one published yardstick: 42 settings in 93 KiB


def test_the_text_is_the_same_in_another_process() -> None:
    make = "TimelineExplorer({'1f1b', 'gpipe'}, devices={2, 4}, microbatches=[8, 4], p2p=1/3, show={'compare': '1f1b'})"
    program = f"from hybridlab.widgets import TimelineExplorer; print({make})"
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(2)]
    explorer = TimelineExplorer(("gpipe", "1f1b"), devices=(2, 4), microbatches=(4, 8), p2p=1 / 3, show={"compare": "1f1b"})
    assert {run.stdout.strip() for run in runs} == {repr(explorer)}
    wanted = r"<TimelineExplorer: 8 settings, data [0-9a-f]{8}; gpipe against 1f1b, 2 devices, 4 microbatches, 1 chunk, latency 0.333333>"
    assert re.fullmatch(wanted, repr(explorer))


def test_the_text_changes_with_the_data_and_with_the_setting() -> None:
    texts = [repr(small()), repr(small(forward=1.001)), repr(small(unit="ms")), repr(small(show={"microbatches": 4}))]
    assert len(set(texts)) == 4
    explorer = small()
    explorer.devices = 3
    assert repr(explorer) == repr(small(show={"devices": 3}))


def test_the_stored_output_carries_that_text() -> None:
    explorer = small()
    bundle = explorer._repr_mimebundle_()
    assert bundle is not None
    assert bundle[0]["text/plain"] == repr(explorer)
    assert "application/vnd.jupyter.widget-view+json" in bundle[0]


def test_observers_follow_the_setting() -> None:
    explorer = small()
    seen: list[tuple[str, Any]] = []
    explorer.observe(lambda change: seen.append((change["name"], change["new"])), ["schedule", "devices", "p2p"])
    explorer.set_state({"schedule": "1f1b", "devices": 3})  # what a message from the page does
    assert seen == [("schedule", "1f1b"), ("devices", 3)]
    assert explorer.timeline.makespan == simulate(build("1f1b", 3, 2), Costs.per_device(1, 2)).makespan


def test_a_schedule_takes_chunks_that_it_supports() -> None:
    explorer = TimelineExplorer(("gpipe", "interleaved"), devices=2, microbatches=(3, 4), chunks=(2, 4))
    explorer.schedule = "interleaved"
    assert explorer.chunks == 2
    explorer.chunks = 4
    explorer.schedule = "gpipe"
    assert explorer.chunks == 1


def test_the_timeline_of_a_refused_setting_is_refused() -> None:
    explorer = TimelineExplorer("interleaved", devices=2, microbatches=(3, 4))
    assert explorer.microbatches == 4  # the first that runs
    explorer.microbatches = 3
    with pytest.raises(UnsupportedSize, match="3 is not divisible by 2; try 2 or 4"):
        _ = explorer.timeline


@pytest.mark.parametrize(
    ("trait", "value", "sentence"),
    [
        ("schedule", "1f1", "did you mean '1f1b'?"),
        ("schedule", None, "unknown schedule of this grid None"),
        ("schedule", "hanayo", "Known: gpipe, 1f1b"),
        ("compare", "gipe", "did you mean 'gpipe'?"),
        ("devices", 5, "devices of this explorer can be 2, 3, not 5"),
        ("devices", "two", "devices of this explorer can be 2, 3, not 'two'"),
        ("microbatches", True, "microbatches of this explorer can be 2, 4, not True"),
        ("chunks", 2, "chunks of this explorer can be 1, not 2"),
        ("p2p", math.nan, "p2p of this explorer can be 0, not nan"),
    ],
)
def test_a_setting_outside_the_grid_is_refused_and_changes_nothing(trait: str, value: Any, sentence: str) -> None:
    explorer = small()
    before = repr(explorer)
    with pytest.raises(HybridLabError) as why:
        setattr(explorer, trait, value)
    assert sentence in str(why.value)
    assert repr(explorer) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"schedules": ()}, "schedules is empty"),
        ({"devices": []}, "devices is empty"),
        ({"p2p": ()}, "p2p is empty"),
        ({"devices": (2, 0)}, "devices must be a whole number of at least 1, not 0"),
        ({"microbatches": range(1, 10**9)}, "microbatches has more than 1,000 values"),
        ({"p2p": -1}, "p2p must be finite numbers of zero or more"),
        ({"p2p": [[0, 1]]}, "p2p must be a number or several"),
        ({"schedules": ("gpipe", "1f1c")}, "did you mean '1f1b'?"),
        ({"schedules": "interleaved", "devices": 4, "microbatches": (2, 6)}, "no setting of this grid can run: interleaved needs"),
        ({"forward": [1, 2, 3], "devices": 2}, "the costs are for 3 devices but the schedule has 2"),
        ({"forward": [[1], [2]]}, "the costs must be those of one setting"),
        ({"backward": math.inf}, "backward must be finite"),
        ({"unit": 3}, "unit is the short name"),
        ({"show": "1f1b"}, "show is a setting to begin with"),
        ({"show": {"device": 2}}, "did you mean 'devices'?"),
        ({"show": {"devices": 7}}, "devices of this explorer can be 2, 3, not 7"),
        (
            {"schedules": ("gpipe", "interleaved"), "chunks": 2, "show": {"schedule": "gpipe", "chunks": 2}},
            "cannot begin there: gpipe has 1 chunk a device, not 2",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HybridLabError) as why:
        small(**arguments)
    assert sentence in str(why.value)


@pytest.mark.parametrize("size", [{"microbatches": 10**6}, {"devices": range(2, 40), "microbatches": range(10, 60)}])
def test_more_data_than_a_page_can_carry_are_refused(size: dict[str, Any]) -> None:
    with pytest.raises(HybridLabError, match=r"more than the 2 MB of data that a page can carry .* give fewer values"):
        small(**size)


def test_the_limit_is_two_megabytes_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert grid.MOST_BYTES == 2_000_000
    length = len(json.dumps(DATA, separators=(",", ":")))
    monkeypatch.setattr(grid, "MOST_BYTES", length)
    assert grid_data(list(REGISTRY), AXES, TIMES, "ms") == DATA
    monkeypatch.setattr(grid, "MOST_BYTES", length - 1)
    with pytest.raises(HybridLabError, match=r"more than the .* MB of data"):
        grid_data(list(REGISTRY), AXES, TIMES, "ms")


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(ARGUMENTS), junk, max_size=3))
def test_junk_is_refused_or_drawn(arguments: dict[str, Any]) -> None:
    with contextlib.suppress(HybridLabError):
        json.dumps(small(**arguments).data, allow_nan=False)


def test_script_and_style_ask_no_other_host() -> None:
    code = SCRIPT.replace('const SVG = "http://www.w3.org/2000/svg";', "")
    for text in (code, STYLE):
        assert "//" not in re.sub(r"(^|\s)// .*", "", text)
        assert not re.search(r"https?:|import\s|import\(|fetch\(|XMLHttp|@import|url\((?!#)", text)
    assert code.rstrip().endswith("export default { render };")


def test_script_and_class_name_the_same_traits() -> None:
    named = re.search(r"const SETTING = (\[.*?\]);", SCRIPT)
    assert named
    assert tuple(json.loads(named[1])) == SETTING
    asked = set(re.findall(r'model\.get\("(\w+)"\)', SCRIPT)) | set(SETTING)
    own = {name for name in vars(TimelineExplorer) if name in TimelineExplorer.class_traits(sync=True)}
    assert asked == own


def test_colours_are_defined_once() -> None:
    assert {kind: entry["colours"]["4"][0] for kind, entry in DATA["kinds"].items()} == dict(KIND_COLOURS)
    assert DATA["kinds"]["W"]["colours"]["2"] == [chunk_colour("W", chunk, 2) for chunk in range(2)]
    assert not [colour for colour in KIND_COLOURS.values() if colour.lower() in (SCRIPT + STYLE).lower()]
