"""Test that the timeline explorer shows the orders that functions return, and says in a sentence what is wrong with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal

from hybridlab import REGISTRY, HybridLabError, Schedule, UnsupportedSize, build
from hybridlab.course.parts import Part
from hybridlab.widgets import TimelineExplorer
from hybridlab.widgets.own_schedules import offered_schedules

Orders = Callable[..., Any]


def explorer(mine: Any, **change: Any) -> TimelineExplorer:
    return TimelineExplorer(**{"schedules": {"mine": mine, "1F1B": "1f1b"}, "devices": (2, 3), "microbatches": (2, 4)} | change)


def text(devices: int, microbatches: int) -> str:
    return str(build("1f1b", devices, microbatches))


def lines(devices: int, microbatches: int) -> list[str]:
    return [line.split(": ")[1] for line in text(devices, microbatches).splitlines()]


FORMS: list[Orders] = [
    text,
    lines,
    lambda *size: build("1f1b", *size),
    lambda *size: [line.split() for line in lines(*size)],
    lambda *size: build("1f1b", *size).orders,
    lambda *size: dict(enumerate(lines(*size))),
    lambda *size: (line.replace(" ", ",") for line in lines(*size)),
    lambda devices, microbatches, text=text: text(devices, microbatches),
    Part("one_f_one_b", lines, Path("one_f_one_b.py")),
]


@in_turn("mine", FORMS)
def test_a_right_function_shows_the_same_orders_as_the_registry(mine: Orders) -> None:
    view = explorer(mine, show={"devices": 3, "compare": "1F1B"})
    entries = view.data["pipelines"]
    assert [entry for name, entry in entries.items() if name.startswith("mine/")] == [
        entry for name, entry in entries.items() if name.startswith("1f1b/")
    ]
    assert view.timeline.schedule == Schedule("mine", build("1f1b", 3, 2).orders)
    assert repr(view).endswith("; mine against 1f1b, 3 devices, 2 microbatches, 1 chunk, F 1, B 2, latency 0>")


def looped(devices: int, microbatches: int, chunks: int) -> str:
    return str(build("interleaved", devices, microbatches, chunks))


@in_turn("mine", [looped, lambda a, b, chunks=2: looped(a, b, chunks), Part("interleaved", looped, None)])
def test_a_function_can_take_the_number_of_chunks(mine: Orders) -> None:
    view = explorer(mine, microbatches=6, chunks=(2, 4), show={"schedule": "mine"})
    assert [(each["name"], each["chunks"]) for each in view.data["schedules"]] == [("mine", [2, 4]), ("1f1b", [1])]
    for chunks in (2, 4):
        wanted = [line.split(": ")[1] for line in str(build("interleaved", 3, 6, chunks)).splitlines()]
        assert view.data["pipelines"][f"mine/3/6/{chunks}"] == {"orders": wanted}
    assert view.data["kinds"]["F"]["colours"].keys() == {"1", "2", "4"}
    view.chunks = 3
    assert view.timeline.schedule.device_of == build("interleaved", 2, 6, 3).device_of


def test_the_orders_of_a_function_can_use_two_copies_of_the_weights() -> None:
    view = explorer(lambda devices, microbatches: build("dualpipe", devices, microbatches), devices=2, microbatches=4)
    assert "orders" in view.data["pipelines"]["mine/2/4/1"]
    assert view.data["kinds"]["F"]["colours"].keys() == {"1", "2"}  # the script needs a shade for each copy


def test_a_function_runs_once_for_each_size_and_gets_whole_numbers() -> None:
    calls: list[tuple[int, int]] = []

    def mine(devices: int, microbatches: int) -> list[str]:
        assert type(devices) is type(microbatches) is int
        calls.append((devices, microbatches))
        return lines(devices, microbatches)

    view = explorer(mine)
    assert calls == [(2, 2), (2, 4), (3, 2), (3, 4)]
    view.devices, view.schedule = 5, "mine"
    assert view.extra["pipelines"] == {"mine/5/2/1": {"orders": lines(5, 2)}}
    assert view.timeline.schedule.devices == 5
    view.microbatches = 10**6  # too many operations: refused before the function runs
    assert "can be drawn" in view.extra["pipelines"]["mine/5/1000000/1"]["refusal"]
    assert calls[4:] == [(5, 2)]


MUST = "the function of 'mine' must return a line of operations for each device, such as ['0F0 0B0', '1F0 1B0']"
WRONG: list[tuple[Orders, str]] = [
    (
        lambda devices, microbatches: ["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"],
        "the orders of 'mine' cannot run: device 0 stops at 0B0: it waits for 1B0, which is behind 1F1 on device 1",
    ),
    (lambda devices, microbatches: ["0F0 0B0", "1F0"], "the orders of 'mine' cannot run: stage 1 never runs the backward of microbatch 0"),
    (lambda devices, microbatches: {}["x"], "the function of 'mine' raises KeyError: 'x'"),
    (lambda devices, microbatches: (line for line in [1 // 0]), "the function of 'mine' raises ZeroDivisionError: integer division or"),
    (Part("one_f_one_b", None, None), "the function of 'mine' raises HybridLabError: one_f_one_b has no function yet: write it so that"),
    (len, "the function of 'mine' raises TypeError: len() takes exactly one argument (2 given)"),
    (lambda devices, microbatches: None, f"{MUST}, not None"),
    (lambda devices, microbatches: {"0F0 0B0", "1F0 1B0"}, f"{MUST}, not {{"),
    (lambda devices, microbatches: [], f"{MUST}, but the text is empty"),
    (lambda devices, microbatches: [3, 4], f"{MUST}, not [3, 4]"),
    (lambda devices, microbatches: ["0F0 0F", "1F0 1B0"], f"{MUST}, but line 1, column 5: '0F' is not an operation"),
    (lambda devices, microbatches: text(3, 2), "the function of 'mine' returns orders with 3 devices, not 2"),
    (lambda devices, microbatches: text(2, 1), "the function of 'mine' returns orders with 1 microbatch, not 2"),
    (lambda devices, microbatches: str(build("hanayo", 2, 2)), "the function of 'mine' returns orders with 2 chunks a device, not 1"),
]


@in_turn("wrong, sentence", WRONG)
def test_a_wrong_function_has_a_refusal_at_that_size_only(wrong: Orders, sentence: str) -> None:
    view = explorer(lambda *size: wrong(*size) if size == (2, 2) else lines(*size))
    told = view.data["pipelines"]["mine/2/2/1"]["refusal"]
    assert told.startswith(sentence)
    assert "\n" not in told
    assert not told.endswith(".")
    assert (view.schedule, view.devices, view.microbatches) == ("mine", 2, 4), "the first size that can run"
    view.microbatches = 2
    with pytest.raises(UnsupportedSize) as why:
        _ = view.timeline
    assert str(why.value) == told


def test_a_function_that_is_wrong_at_all_sizes_is_compared_or_refused() -> None:
    def wrong(devices: int, microbatches: int) -> None:
        raise ValueError("not yet.\nLater")

    view = explorer(wrong, chunks=2, show={"compare": "mine"})
    assert (view.schedule, view.compare) == ("1f1b", "mine")
    assert view.data["pipelines"]["mine/2/2/1"] == {"refusal": "the function of 'mine' raises ValueError: not yet. Later"}
    with refusal("unsupported-size", "no setting of this grid can run: the function of 'mine' raises ValueError: not yet. Later"):
        explorer(wrong, schedules={"mine": wrong})


def test_a_kernel_offers_functions_after_the_registry_and_titles_of_the_author(monkeypatch: pytest.MonkeyPatch) -> None:
    view, sent = TimelineExplorer({"mine": looped, "the rule": "1f1b"}, devices=2, microbatches=2), []
    monkeypatch.setattr(view, "send", sent.append)
    view._answer(None, {"ask": "live"}, None)
    offered = {each["name"]: each for each in sent[0]["schedules"]}
    assert list(offered) == [*REGISTRY, "mine"]
    assert offered["mine"] == {"name": "mine", "title": "mine", "fewest": 1, "step": 1}
    assert offered["1f1b"]["title"] == "the rule"
    view.compare = "the rule"
    assert view.compare == "1f1b"


def no_chunks(devices: int) -> list[str]:
    return lines(devices, 1)


@in_turn(
    "schedules, code, words",
    [
        ({}, "empty", ["schedules is empty"]),
        ({"mine": 3}, "wrong-type", ["'mine' must stand for a name of the registry, such as '1f1b', or for a function", "not 3"]),
        ({"mine": "1f1c"}, "unknown-name", ["'1f1b'"]),
        ({"mine": no_chunks}, "wrong-type", ["'mine' must take (devices, microbatches) or (devices, microbatches, chunks), not (devices"]),
        ({"GPIPE": lines}, "duplicate-name", ["'GPIPE' is the name of a schedule of the registry: choose another title"]),
        ({"GPipe": "1f1b"}, "duplicate-name", ["'GPipe' is the name"]),
        ({"one": "1f1b", "two": "1F1B"}, "duplicate-name", ["the titles 'one' and 'two' are both for 1f1b: leave one of them out"]),
        ({3: lines}, "malformed-name", ["a title must be a few words of at most 40 characters, not 3"]),
        ({" ": lines}, "malformed-name", ["' '"]),
        ({"a\nb": lines}, "malformed-name", ["40 characters"]),
        ({"x" * 41: lines}, "malformed-name", ["40 characters"]),
        ({"1f1b, measured": lines}, "malformed-name", ["only measured steps have names that end with ', measured'"]),
    ],
)
def test_wrong_titles_and_values_are_refused(schedules: dict[Any, Any], code: str, words: list[str]) -> None:
    with refusal(code, *words):
        offered_schedules(schedules)


def test_a_schedule_that_the_view_does_not_know_is_refused_with_the_names_of_functions() -> None:
    view = explorer(lines)
    with pytest.raises(HybridLabError, match="did you mean 'mine'"):
        view.schedule = "mime"
