"""Test the schedule editor's traits, data, errors and text form."""

import json
import re
from typing import Any

import pytest
from cases import in_turn, refusal
from misuse import refused_and_unchanged

from hybridlab import REGISTRY, Costs, Deadlock, HybridLabError, InvalidSchedule, Schedule, build, simulate
from hybridlab.course.puzzles import PUZZLES
from hybridlab.widgets import ScheduleEditor
from hybridlab.widgets.schedule_editor import LONGEST
from hybridlab.widgets.scripts import HERE

TWO = "device 0: 0F0 0B0\ndevice 1: 1F0 1B0"


def small(**changes: Any) -> ScheduleEditor:
    return ScheduleEditor(**{"devices": 2, "microbatches": 1} | changes)


def test_the_text_is_a_schedule_with_a_timeline() -> None:
    editor = small(forward=[1, 3], backward=2, p2p=0.5)
    for text in (TWO, "0F0,0B0\n1F0,1B0\n", 'sep=;\r\n"0F0";"0B0"\r\n"1F0";"1B0";\r\n'):
        editor.text = text
        assert editor.schedule == Schedule.parse(TWO, name="yours")
        assert editor.timeline.makespan == 9  # worked out by hand: 1 + 0.5 + 3 + 2 + 0.5 + 2
    assert editor.timeline.unit == "ms"


def test_a_text_that_is_no_schedule_can_be_set_and_is_refused_when_it_is_asked_for() -> None:
    editor = small()
    for text, kind, code in (
        ("", InvalidSchedule, "empty"),
        ("device 0: 0F0", InvalidSchedule, "missing-backward"),
        ("0F0 0X0", InvalidSchedule, "unknown-operation"),
        ("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0", Deadlock, "deadlock"),
    ):
        editor.text = text
        assert editor.text == text
        with refusal(code, kind=kind):
            _ = editor.schedule
        with refusal(code, kind=kind):
            _ = editor.timeline


def test_the_costs_of_other_devices_are_refused_with_the_timeline() -> None:
    editor = small(forward=[1, 3])
    editor.text = "0F0 0B0"
    assert editor.schedule.devices == 1
    with refusal("does-not-fit", "for 2 devices", "has 1"):
        _ = editor.timeline


def test_line_ends_are_those_of_a_page() -> None:
    editor = small(show={"text": TWO.replace("\n", "\r\n")})
    assert editor.text == TWO
    editor.text = "0F0\r0B0"
    assert editor.text == "0F0\n0B0"


@in_turn("sizes", [(4, 8, 1), (4, 8, 2), (3, 5, 1), (1, 1, 1)])
def test_the_texts_to_start_from_are_the_registrys(sizes: tuple[int, int, int]) -> None:
    starts = {each["name"]: each for each in ScheduleEditor(devices=sizes[0], microbatches=sizes[1], chunks=sizes[2]).data["starts"]}
    assert set(starts) == {"", *(name for name, family in REGISTRY.items() if family.refusal(*sizes) is None)}
    for name in set(starts) - {""}:
        assert Schedule.parse(starts[name]["text"], name=name) == build(name, *sizes)
        assert starts[name]["title"] == REGISTRY[name].title
    assert starts[""]["text"].splitlines() == [f"device {device}: " for device in range(sizes[0])]


@in_turn("name", PUZZLES)
def test_an_editor_of_a_puzzle_has_its_sizes_its_costs_and_its_start(name: str) -> None:
    puzzle = PUZZLES[name]
    editor, again = ScheduleEditor(puzzle), ScheduleEditor(puzzle.data())
    assert editor.data == again.data
    assert editor.text == puzzle.start
    assert editor.data["goals"] == puzzle.data()["goals"]
    assert editor.data["costs"] == puzzle.data()["costs"]
    editor.text = str(build("1f1b", puzzle.devices, puzzle.microbatches))
    assert editor.timeline.makespan == simulate(build("1f1b", puzzle.devices, puzzle.microbatches), puzzle.costs).makespan


def test_costs_are_given_to_the_page_for_each_device() -> None:
    assert small().data["costs"] == {"forward": [1, 1], "backward": [2, 2], "weight_share": [0.5, 0.5], "p2p": 0, "overlap": 0}
    editor = small(forward=[1, 2], backward=3, weight_share=[0.25, 0.5], p2p=1, overlap=0.5, unit=None)
    assert editor.data["costs"] == {"forward": [1, 2], "backward": [3, 3], "weight_share": [0.25, 0.5], "p2p": 1, "overlap": 0.5}
    assert editor.data["unit"] == ""


def test_an_editor_without_arguments_has_the_sizes_of_the_docstring() -> None:
    data = ScheduleEditor().data
    assert (data["devices"], data["microbatches"], data["chunks"], data["unit"]) == (4, 8, 1, "ms")
    assert ScheduleEditor().timeline.makespan == simulate(build("gpipe", 4, 8), Costs(forward=1, backward=2)).makespan


@in_turn(
    "arguments, code, words",
    [
        ({"devices": 0}, "too-small", "devices 0"),
        ({"microbatches": 2.5}, "not-a-whole-number", "microbatches 2.5"),
        ({"chunks": "2"}, "not-a-whole-number", "chunks '2'"),
        ({"devices": 100, "microbatches": 1000}, "too-large", "12,500 300,000 fewer"),
        ({"forward": -1}, "negative", "forward -1"),
        ({"forward": [1, 2, 3]}, "does-not-fit", "3 4"),
        ({"forward": [[1], [2]]}, "several-settings", "one setting"),
        ({"unit": "hours"}, "unknown-name", "'hours'"),
        ({"show": {"texts": ""}}, "unknown-name", "'texts' 'text'"),
        ({"show": "0F0 0B0"}, "wrong-type", "show"),
        ({"puzzle": "two-devices"}, "wrong-type", "'two-devices' PUZZLES"),
        ({"puzzle": {"name": "mine"}}, "missing-argument", "title goals"),
        ({"puzzle": PUZZLES["two-devices"], "devices": 3}, "conflicting-arguments", "devices"),
    ],
)
def test_arguments_that_make_no_editor_are_refused(arguments: dict[str, Any], code: str, words: str) -> None:
    with refusal(code, *words.split()):
        ScheduleEditor(**arguments)


@in_turn(
    "value, code, words",
    [(3, "not-text", "3"), (None, "not-text", "None"), (["0F0"], "not-text", "0F0"), ("0" * (LONGEST + 1), "too-large", "100,000 100,001")],
)
def test_a_text_that_is_none_or_too_long_is_refused_and_changes_nothing(value: Any, code: str, words: str) -> None:
    refused_and_unchanged(small, "text", value, code, *words.split())


def test_the_text_form_changes_with_the_text() -> None:
    editor = small(forward=1 / 3)
    assert re.fullmatch(r"<ScheduleEditor: 2 devices, 1 microbatch, 1 chunk, data [0-9a-f]{8}; text [0-9a-f]{8}>", repr(editor))
    before = repr(editor)
    editor.text += " "
    assert repr(editor) != before
    assert repr(ScheduleEditor(PUZZLES["two-devices"])).startswith("<ScheduleEditor two-devices: 2 devices, 3 microbatches, 1 chunk, data ")


def test_no_class_of_an_element_has_a_rule_in_the_theme_of_the_site() -> None:
    """The theme is made with Bootstrap, whose rules for such classes would change the rows of chips and the signs of goals."""
    scripts = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("schedule_editor*.js"))
    used = {name for names in re.findall(r'class: "([^"]+)"', scripts) for name in names.split()}
    assert used >= {"chips", "order", "sign"}
    assert not used & {"row", "col", "container", "mark", "card", "badge", "btn", "alert", "lead", "small", "list-group", "nav", "table"}


def test_the_data_are_plain_and_small() -> None:
    editor = ScheduleEditor(devices=8, microbatches=32)
    text = json.dumps(editor.data, allow_nan=False)
    assert json.loads(text) == editor.data
    assert len(text) < 100_000
    with pytest.raises(HybridLabError):
        ScheduleEditor(devices=1000, microbatches=1000)
