"""Test that the timeline explorer agrees with the simulator.

It must also refuse bad values with clear errors, and print the same text in every run.
"""

import contextlib
import json
import math
import re
from functools import cache
from itertools import product
from typing import Any

import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, refused_and_unchanged
from profiles import examples
from strategies import Size, sizes
from strategies import supported as near

from hybridlab import REGISTRY, Costs, HybridLabError, UnsupportedSize, build, formulas, simulate, widgets
from hybridlab.palette import KIND_COLOURS, shade_colour
from hybridlab.widgets import TimelineExplorer, page_data
from hybridlab.widgets.timeline_explorer_data import grid_data, setting_data

SCRIPT, STYLE = str(TimelineExplorer._esm), str(TimelineExplorer._css)

TIMES: dict[str, Any] = {"forward": 1.1, "backward": 2.3, "weight_share": 0.4}
AXES: dict[str, Any] = {"devices": (1, 2, 4), "microbatches": (1, 4, 6), "chunks": (2, 4)}

ARGUMENTS = ["schedules", "devices", "microbatches", "chunks", "p2p", "forward", "backward", "slow_device", "slowdown", "unit", "show"]

Entry = dict[str, Any]


@cache
def whole() -> dict[str, Any]:
    """Return the data of a grid of all schedules, which is made once and changed by no test."""
    return grid_data(REGISTRY, AXES)


def small(**changes: Any) -> TimelineExplorer:
    arguments = {"devices": (2, 3), "microbatches": (2, 4)} | changes
    return TimelineExplorer(**arguments)


def test_the_grid_has_every_combination() -> None:
    wanted = product(REGISTRY, AXES["devices"], AXES["microbatches"], (1, 2, 4))
    assert list(whole()["pipelines"]) == ["/".join(map(str, each)) for each in wanted]
    assert sum("refusal" not in entry for entry in whole()["pipelines"].values()) > 40


def test_every_order_is_the_registrys() -> None:
    for name, entry in whole()["pipelines"].items():
        if "refusal" not in entry:
            schedule, *size = name.split("/")
            assert entry == {"orders": [line.split(": ")[1] for line in str(build(schedule, *map(int, size))).splitlines()]}


def test_refused_combinations_carry_the_registrys_sentence() -> None:
    refused = {name: entry["refusal"] for name, entry in whole()["pipelines"].items() if "refusal" in entry}
    for name, sentence in refused.items():
        with pytest.raises(UnsupportedSize) as why:
            build(name.split("/")[0], *map(int, name.split("/")[1:]))
        assert sentence == str(why.value)
    expected = "interleaved needs microbatches divisible by devices: 6 is not divisible by 4; try 4 or 8"
    assert refused["interleaved/4/6/2"] == expected


def test_a_schedule_is_offered_the_chunks_it_supports() -> None:
    """A schedule is offered those of the grid's chunks 1, 2 and 4 that it supports, or its fewest if it supports none of them."""
    chunks = {schedule["name"]: schedule["chunks"] for schedule in whole()["schedules"]}
    assert list(chunks) == list(REGISTRY)
    for name, offered in chunks.items():
        fewest, step = REGISTRY[name].fewest_chunks, REGISTRY[name].chunk_step
        supported = set(range(fewest, 5, step)) if step else {fewest}
        assert offered == (sorted(supported & {1, 2, 4}) or [fewest]), name
    assert [chunks[name] for name in ("gpipe", "dualpipe", "zb-v", "dualpipe-v")] == [[1], [1], [2], [2]]
    assert [chunks[name] for name in ("interleaved", "looped-bfs", "hanayo", "interleaved-zb")] == [[2, 4]] * 4
    fewest = grid_data({name: REGISTRY[name] for name in ("interleaved", "gpipe")}, AXES | {"chunks": None})
    assert [schedule["chunks"] for schedule in fewest["schedules"]] == [[2], [1]]


def test_costs_can_differ_from_device_to_device() -> None:
    explorer = TimelineExplorer("1f1b", devices=2, microbatches=3, forward=[1, 2], backward=[3, 4])
    timeline = simulate(build("1f1b", 2, 3), Costs(forward=[1, 2], backward=[3, 4]))
    assert (explorer.forward, explorer.backward) == ([1, 2], [3, 4])
    assert explorer.timeline.makespan == timeline.makespan


def test_a_device_can_be_slow() -> None:
    explorer = small(slow_device=1, slowdown=1.4, forward=10, backward=20)
    slow = Costs(forward=[10, 14], backward=[20, 28])
    assert explorer.timeline.makespan == simulate(build("gpipe", 2, 2), slow).makespan
    explorer.slow_device = 7  # no device of this pipeline
    assert explorer.timeline.makespan == simulate(build("gpipe", 2, 2), Costs(forward=10, backward=20)).makespan
    explorer.slow_device = None
    assert "device" not in repr(explorer).split("chunk")[1]


def test_times_can_be_changed_without_a_new_order() -> None:
    explorer = small()
    explorer.set_state({"forward": 3, "backward": 5, "weight_share": 0.25, "p2p": 0.5})
    assert explorer.extra == {}
    costs = Costs(forward=3, backward=5, weight_share=0.25, p2p=0.5)
    assert explorer.costs == costs
    assert explorer.timeline.makespan == simulate(build("gpipe", 2, 2), costs).makespan


def test_the_data_are_plain_json_and_small() -> None:
    explorer = TimelineExplorer(devices=(2, 4, 8), microbatches=(2, 4, 6, 8, 12, 16, 32))
    text = json.dumps(explorer.data, allow_nan=False, separators=(",", ":"))
    assert json.loads(text) == explorer.data
    assert "42 orders" in repr(explorer)
    assert len(text) < 93 * 1024 / 2  # a published example has 42 settings in 93 KiB, with their times


def test_the_text_says_the_size_of_the_data_and_the_setting() -> None:
    explorer = TimelineExplorer(("gpipe", "1f1b"), devices=(2, 4), microbatches=(4, 8), p2p=1 / 3, show={"compare": "1f1b"})
    shows = "gpipe against 1f1b, 2 devices, 4 microbatches, 1 chunk, F 1, B 2, latency 0.333333"
    wanted = rf"<TimelineExplorer: 8 orders, data [0-9a-f]{{8}}; {shows}>"
    assert re.fullmatch(wanted, repr(explorer))


def test_the_text_changes_with_the_data_and_with_the_setting() -> None:
    texts = [repr(small()), repr(small(forward=1.001)), repr(small(unit="s")), repr(small(show={"microbatches": 4}))]
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
    explorer.set_state({"schedule": "1f1b", "devices": 3})  # as a message from the page does
    assert seen == [("schedule", "1f1b"), ("devices", 3)]
    assert explorer.timeline.makespan == simulate(build("1f1b", 3, 2), Costs(forward=1, backward=2)).makespan


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
    with refusal("unsupported-size", "3 is not divisible by 2", kind=UnsupportedSize):
        _ = explorer.timeline


# ---- any setting ----


def only(entries: dict[str, Entry]) -> Entry:
    (entry,) = entries.values()
    return entry


@given(size=sizes(), latency=st.sampled_from([0, 0.25, 1]))
def test_the_order_of_sizes_outside_the_grid_is_computed(size: Size, latency: float) -> None:
    explorer = TimelineExplorer(devices=20, microbatches=3, p2p=3, **TIMES)  # no size of this grid is drawn
    explorer.schedule, explorer.devices, explorer.microbatches = size.name, size.devices, size.microbatches
    explorer.chunks, explorer.p2p = size.chunks, latency
    timeline = simulate(size.build(), Costs(**TIMES, p2p=latency))
    assert only(explorer.extra["pipelines"]) == {"orders": [line.split(": ")[1] for line in str(timeline.schedule).splitlines()]}
    assert explorer.timeline.makespan == timeline.makespan


@given(devices=st.integers(1, 12), microbatches=st.integers(1, 12))
def test_its_figures_are_those_of_the_closed_forms(devices: int, microbatches: int) -> None:
    explorer = TimelineExplorer("gpipe", devices=20, microbatches=1)
    explorer.set_state({"schedule": "1f1b", "devices": devices, "microbatches": microbatches, "compare": "gpipe"})
    assert len(explorer.extra["pipelines"]) == 2
    assert explorer.timeline.bubble_ratio == pytest.approx(formulas.bubble_ratio(devices, microbatches), rel=1e-8)


def test_what_is_computed_has_the_shape_of_the_grid() -> None:
    for name, entry in whole()["pipelines"].items():
        schedule, *numbers = name.split("/")
        devices, microbatches, chunks = map(int, numbers)
        setting = {"schedule": schedule, "devices": devices, "microbatches": microbatches, "chunks": chunks, "compare": ""}
        extra = setting_data(setting)
        assert extra.keys() == whole().keys()
        assert extra["pipelines"] == {name: entry}
        assert [each["title"] for each in extra["schedules"]] == [REGISTRY[schedule].title]
        if "refusal" not in entry:
            assert {kind: each["colours"][str(chunks)] for kind, each in extra["kinds"].items()} == {
                kind: each["colours"][str(chunks)] for kind, each in whole()["kinds"].items()
            }


def test_only_one_setting_is_carried_beside_the_grid_and_only_while_it_is_shown() -> None:
    explorer = small()
    assert explorer.extra == {}
    explorer.devices = 12
    assert list(explorer.extra["pipelines"]) == ["gpipe/12/2/1"]
    explorer.compare = "hanayo"
    assert list(explorer.extra["pipelines"]) == ["gpipe/12/2/1", "hanayo/12/2/2"]
    explorer.compare, explorer.devices = "", 3
    assert explorer.extra == {}


def test_several_changes_in_one_message_are_computed_once() -> None:
    explorer = small()
    seen: list[list[str]] = []
    explorer.observe(lambda change: seen.append(list(change["new"]["pipelines"])), "extra")
    explorer.set_state({"schedule": "zb-h1", "devices": 5, "microbatches": 7})
    assert seen == [["zb-h1/5/7/1"]]


def test_an_explorer_can_begin_outside_the_grid() -> None:
    explorer = small(show={"schedule": "hanayo", "devices": 4, "microbatches": 8})
    assert (explorer.schedule, explorer.devices, explorer.chunks) == ("hanayo", 4, 2)
    assert explorer.get_state()["extra"]["pipelines"].keys() == {"hanayo/4/8/2"}


def test_a_new_schedule_keeps_its_chunks_or_takes_some_that_it_supports() -> None:
    explorer = TimelineExplorer(("gpipe", "interleaved"), devices=2, microbatches=4, chunks=(3, 4))
    explorer.schedule = "interleaved"
    assert explorer.chunks == 3  # the grid's first
    explorer.schedule = "hanayo"
    assert explorer.chunks == 2  # the schedule's fewest chunks
    explorer.chunks, explorer.schedule = 6, "interleaved"
    assert explorer.chunks == 6


def test_what_cannot_be_drawn_is_told_in_the_picture() -> None:
    explorer = small()
    explorer.schedule, explorer.microbatches = "interleaved", 3  # 3 microbatches on 2 devices, which the schedule does not support
    assert only(explorer.extra["pipelines"])["refusal"].startswith("interleaved needs microbatches divisible by devices")
    explorer = small(forward=[1, 2, 3], devices=3)
    explorer.devices = 4  # the script says that the times are for 3 devices
    with refusal("does-not-fit", "3 devices but the schedule has 4"):
        _ = explorer.timeline


@in_turn("size", [(10**7, 1, 1), (1, 10**7, 1), (1, 1, 10**7), (64, 98, 1), (65, 1, 98)])
def test_more_operations_than_can_be_drawn_are_refused_at_once(size: tuple[int, int, int]) -> None:
    devices, microbatches, chunks = size
    explorer = small()
    schedule = "interleaved" if chunks > 1 else "gpipe"
    explorer.set_state({"schedule": schedule, "devices": devices, "microbatches": devices * microbatches if chunks > 1 else microbatches})
    explorer.chunks = chunks
    sentence = only(explorer.extra["pipelines"])["refusal"]
    assert re.search("more operations than the 12,500 that can be drawn; try fewer microbatches|that fit in memory", sentence)


def test_the_most_that_can_be_drawn_is_less_than_a_page_can_carry() -> None:
    explorer = small(forward=1 / 3, backward=1e5 / 7, show={"schedule": "zb-h1", "compare": "1f1b", "p2p": 1 / 7})
    explorer.set_state({"devices": 64, "microbatches": page_data.MOST_OPS // 3 // 64})
    assert all("refusal" not in entry for entry in explorer.extra["pipelines"].values())
    assert len(json.dumps(explorer.extra)) < page_data.MOST_BYTES / 2
    explorer.microbatches += 1
    first, second = explorer.extra["pipelines"].values()
    assert "more operations than" in first["refusal"]
    assert "refusal" not in second  # it has full backwards, so fewer operations


def test_the_text_of_a_setting_outside_the_grid() -> None:
    explorer = small()
    before = repr(explorer)
    explorer.devices, explorer.schedule = 12, "zb-h1"
    assert repr(explorer) == before.replace("gpipe, 2 devices", "zb-h1, 12 devices")


@in_turn(
    "trait, value, code, word",
    [
        ("schedule", "1f1", "unknown-name", "'1f1b'"),
        ("schedule", None, "unknown-name", "None"),
        ("compare", "gipe", "unknown-name", "'gpipe'"),
        ("devices", 0, "too-small", "devices"),
        ("devices", "two", "not-a-whole-number", "'two'"),
        ("microbatches", True, "not-a-whole-number", "microbatches"),
        ("microbatches", 10**8, "too-large", "10,000,000, not 100000000"),
        ("chunks", 2.5, "not-a-whole-number", "chunks"),
        ("p2p", math.nan, "not-finite", "p2p"),
        ("p2p", -1, "negative", "p2p"),
        ("p2p", [1], "wrong-shape", "p2p must be one number, not [1]"),
        ("forward", -2, "negative", "forward"),
        ("backward", "long", "not-a-number", "backward"),
        ("backward", [[1], [2]], "several-settings", "costs"),
        ("weight_share", 1.5, "out-of-range", "weight_share"),
        ("slow_device", -1, "too-small", "slow_device"),
        ("slowdown", math.inf, "not-finite", "slowdown"),
    ],
)
def test_what_the_library_does_not_have_is_refused_and_changes_nothing(trait: str, value: Any, code: str, word: str) -> None:
    refused_and_unchanged(small, trait, value, code, word)


# ---- what is said to a view ----


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Give a list that collects the messages that explorers send."""
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(TimelineExplorer, "_send", lambda self, message, buffers=None: messages.append(message))
    return messages


def ask(explorer: TimelineExplorer, content: Any) -> None:
    explorer._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})


def test_a_kernel_answers_with_every_schedule_of_the_registry(sent: list[dict[str, Any]]) -> None:
    ask(small(), {"ask": "live"})
    (message,) = (each["content"] for each in sent if each["method"] == "custom")
    assert message["live"] is True
    assert [each["name"] for each in message["schedules"]] == list(REGISTRY)
    for each in message["schedules"]:
        size = near(each["name"], 2, 4)
        refusals = [REGISTRY[each["name"]].refusal(*size, chunks) for chunks in range(1, 9)]
        assert each["fewest"] == refusals.index(None) + 1
        assert each["step"] == (refusals[each["fewest"] :].index(None) + 1 if refusals.count(None) > 1 else 0)


@in_turn("content", [{}, {"ask": "else"}, {"live": True}, None, "live", [1]])
def test_other_messages_are_not_answered(sent: list[dict[str, Any]], content: Any) -> None:
    ask(small(), content)
    assert not [each for each in sent if each["method"] == "custom"]


# ---- wrong grids ----


@in_turn(
    "arguments, code, word",
    [
        ({"schedules": ()}, "empty", "schedules"),
        ({"devices": []}, "empty", "devices"),
        ({"p2p": (0, 1)}, "wrong-shape", "p2p must be one number"),
        ({"devices": (2, 0)}, "too-small", "devices"),
        ({"microbatches": range(1, 10**9)}, "too-large", "microbatches has more than 1,000 values"),
        ({"p2p": -1}, "negative", "p2p"),
        ({"schedules": ("gpipe", "1f1c")}, "unknown-name", "'1f1b'"),
        ({"schedules": "interleaved", "devices": 4, "microbatches": (2, 6)}, "unsupported-size", "no setting of this grid can run"),
        ({"forward": [1, 2, 3], "devices": 2}, "does-not-fit", "3 devices but the schedule has 2"),
        ({"forward": [[1], [2]]}, "several-settings", "costs"),
        ({"backward": math.inf}, "not-finite", "backward"),
        ({"unit": 3}, "unknown-name", "unit"),
        ({"show": "1f1b"}, "wrong-type", "show"),
        ({"show": {"device": 2}}, "unknown-name", "'devices'"),
        ({"show": {"devices": 7.5}}, "not-a-whole-number", "devices"),
        ({"show": {"schedule": "hanayo", "devices": 7}}, "unsupported-size", "cannot begin"),
        (
            {"schedules": ("gpipe", "interleaved"), "chunks": 2, "show": {"schedule": "gpipe", "chunks": 2}},
            "unsupported-size",
            "gpipe has 1",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], code: str, word: str) -> None:
    with refusal(code, word):
        small(**arguments)


def test_more_data_than_a_page_can_carry_are_refused() -> None:
    with refusal("too-large", "2 MB", "of microbatches"):
        small(microbatches=10**6)


def test_the_limit_is_two_megabytes_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_data.MOST_BYTES == 2_000_000
    length = len(json.dumps(whole(), separators=(",", ":")))
    monkeypatch.setattr(page_data, "MOST_BYTES", length)
    assert grid_data(REGISTRY, AXES) == whole()
    monkeypatch.setattr(page_data, "MOST_BYTES", length - 1)
    with refusal("too-large", "MB"):
        grid_data(REGISTRY, AXES)


@examples(60)
@given(st.dictionaries(st.sampled_from(ARGUMENTS), junk, max_size=3))
def test_junk_is_refused_or_drawn(arguments: dict[str, Any]) -> None:
    with contextlib.suppress(HybridLabError):
        json.dumps(small(**arguments).data, allow_nan=False)


def test_a_setting_of_a_grid_with_too_many_operations_is_a_refused_one() -> None:
    explorer = TimelineExplorer("gpipe", devices=1, microbatches=(1, page_data.MOST_OPS // 2, page_data.MOST_OPS // 2 + 1))
    refusals = ["refusal" in entry for entry in explorer.data["pipelines"].values()]
    assert refusals == [False, False, True]


# ---- the scripts ----


@in_turn("name", widgets.__all__)
def test_script_and_style_ask_no_other_host(name: str) -> None:
    made = getattr(widgets, name)
    code = made._esm.replace('const SVG = "http://www.w3.org/2000/svg";', "")
    for text in (code, made._css):
        assert "//" not in re.sub(r"(^|\s)// .*", "", text)
        assert not re.search(r"https?:|import\s|import\(|fetch\(|XMLHttp|@import|url\((?!#)", text)
    assert code.rstrip().endswith("export default { render };")


def test_colours_are_defined_once() -> None:
    assert {kind: entry["colours"]["4"][0] for kind, entry in whole()["kinds"].items()} == dict(KIND_COLOURS)
    assert whole()["kinds"]["W"]["colours"]["2"] == [shade_colour("W", chunk, 2) for chunk in range(2)]
    assert not [colour for colour in KIND_COLOURS.values() if colour.lower() in (SCRIPT + STYLE).lower()]
