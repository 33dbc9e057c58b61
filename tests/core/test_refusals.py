"""Test that error messages say what is wrong and what would work, in words of pipeline training."""

import json
import math
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from misuse import BATCH, COSTS, SCHEDULE, BrokenIndex, BrokenRepr
from texts import GOOD, INCOMPLETE, UNREADABLE, WAITING

from hybridlab import (
    REGISTRY,
    Costs,
    Deadlock,
    HybridLabError,
    InvalidSchedule,
    Op,
    Schedule,
    Timeline,
    UnsupportedSize,
    build,
    register,
    simulate,
)
from hybridlab.schedule.validation import Problem


@in_turn(
    "name, nearest",
    [
        ("g-pipe", "gpipe"),
        ("interleave", "interleaved"),
        ("hanyo", "hanayo"),
        ("zbh1", "zb-h1"),
        ("ZB_H1", "zb-h1"),
    ],
)
def test_an_unknown_schedule_is_answered_with_the_nearest(name: str, nearest: str) -> None:
    with refusal("unknown-name", f"{name!r}: did you mean {nearest!r}?", f"Known: {', '.join(REGISTRY)}"):
        build(name, 2, 2)


@in_turn("name", ["", "xyzzy", None, 3, b"1f1b", ["1f1b"], BrokenRepr()])
def test_a_schedule_name_that_resembles_nothing_lists_all(name: Any) -> None:
    with refusal("unknown-name", f"Known: {', '.join(REGISTRY)}"):
        build(name, 2, 2)


@in_turn(
    "sizes, words",
    [
        (("interleaved", 4, 6, 2), ("interleaved", "microbatches", "6", "4", "try 4 or 8")),
        (("hanayo", 4, 3), ("hanayo", "microbatches", "3", "try 4")),
        (("hanayo", 4, 4, 3), ("hanayo", "2, 4, 6, ... chunks", "not 3")),
        (("interleaved", 4, 4, 1), ("interleaved", "2, 3, 4, ... chunks", "not 1")),
        (("1f1b", 4, 4, 2), ("1f1b", "1 chunk", "not 2", "leave chunks out")),
    ],
)
def test_sizes_that_a_rule_does_not_support_say_what_would_work(sizes: Any, words: tuple[str, ...]) -> None:
    with refusal("unsupported-size", *words, kind=UnsupportedSize):
        build(*sizes)


@in_turn("size", [0, -1, 2.5, "4", None, True, math.nan, math.inf, [4], BrokenRepr(), BrokenIndex()])
def test_devices_and_microbatches_are_whole_numbers_of_at_least_one(size: Any) -> None:
    code = "too-small" if type(size) is int else "not-a-whole-number"
    with refusal(code, "devices", 1):
        build("1f1b", size, 4)
    with refusal(code, "microbatches", 1):
        build("1f1b", 4, size)


@in_turn("name", sorted(REGISTRY))
@in_turn("sizes", [(10**400, 1), (1, 10**9), (10**6, 10**6), (10**7, 10**7)])
def test_huge_sizes_are_refused_before_memory_is_taken(name: str, sizes: tuple[int, int]) -> None:
    with pytest.raises(HybridLabError, match=r"must be at most 10,000,000|fit in memory"):
        build(name, *sizes)


@in_turn("name", sorted(REGISTRY))
def test_the_largest_size_has_as_many_operations_as_fit_in_memory(name: str) -> None:
    """Three kinds of operations of every microbatch on every chunk; two copies of the weights have two of each."""
    family, most = REGISTRY[name], 2**26
    devices, chunks = 6, family.fewest_chunks + family.chunk_step
    microbatches = most // (3 * devices * chunks * family.copies)
    apart = devices if family.whole_groups else family.copies
    largest = microbatches - microbatches % apart
    assert family.refusal(devices, largest, chunks) is None
    assert "fit in memory" in str(family.refusal(devices, largest + apart, chunks))


def test_huge_batches_are_refused_before_memory_is_taken() -> None:
    costs = Costs(forward=np.ones((10_000, 1, 1)), backward=np.ones((1, 10_000, 1)), p2p=1)
    with refusal("too-large", "8 operations", "100,000,000 settings"):
        simulate(SCHEDULE, costs)
    with refusal("too-large", "100,000,000 settings of 1 device"):
        costs.duration("F", 0)


@in_turn("argument", ["forward", "backward", "weight_share", "p2p", "overlap"])
def test_more_axes_than_arrays_can_have_are_refused(argument: str) -> None:
    def shaped(axes: int) -> dict[str, Any]:
        return {"forward": 1, "backward": 2, argument: np.ones((1,) * axes)}

    timeline = simulate(SCHEDULE, Costs(**shaped(24)))
    assert timeline.device_span.size == timeline.bubble_ratio.size == 1
    for axes in (25, 31, 32, 64):
        with refusal("wrong-shape", argument, 24, axes):
            Costs(**shaped(axes))


@in_turn(
    "arguments, code, words",
    [
        ({"forward": -1}, "negative", "forward -1"),
        ({"forward": math.nan}, "not-finite", "forward nan"),
        ({"backward": [1, math.inf]}, "not-finite", "backward 1 inf"),
        ({"p2p": -0.5}, "negative", "p2p -0.5"),
        ({"forward": []}, "empty", "forward"),
        ({"forward": [[1], [2, 3]]}, "ragged", "forward"),
        ({"forward": [np.ma.array(1, mask=True)]}, "ragged", "forward"),
        ({"forward": "10"}, "not-a-number", "forward '10'"),
        ({"forward": None}, "not-a-number", "forward None"),
        ({"forward": True}, "not-a-number", "forward True"),
        ({"forward": 1j}, "not-a-number", "forward 1j"),
        ({"weight_share": 1.5}, "out-of-range", "weight_share 0 1 1.5"),
        (
            {"forward": [1, 2], "backward": [1, 2, 3]},
            "does-not-fit",
            "forward backward 2, 3",
        ),
        (
            {"forward": [[1], [2]], "p2p": [[1], [2], [3]]},
            "does-not-fit",
            "settings forward (2,) p2p (3,)",
        ),
    ],
)
def test_costs_that_are_no_times_are_refused_by_name(arguments: dict[str, Any], code: str, words: str) -> None:
    with refusal(code, *words.split()):
        Costs(**({"forward": 1, "backward": 2} | arguments))


def test_costs_for_another_number_of_devices_are_refused() -> None:
    with refusal("does-not-fit", "for 3 devices", "has 2"):
        simulate(SCHEDULE, Costs(forward=[1, 2, 3], backward=2))


def test_slower_says_which_devices_there_are() -> None:
    with refusal("missing-argument", "slower([0], 1.5, of=4)"):
        Costs(forward=1, backward=2).slower([0], 1.5)
    with refusal("too-large", "device", "at most 1", 2):
        COSTS.slower([2], 1.5)
    with refusal("negative", "factor", -1):
        COSTS.slower([0], -1)
    with refusal("wrong-shape", "factor", "[1, 2]"):
        COSTS.slower([0], [1, 2])  # type: ignore[arg-type]
    with refusal("conflicting-arguments", "2 devices", 3, "of"):
        COSTS.slower([0], 1.5, of=3)


@in_turn("devices", [0, None, np.array(0)])
def test_what_is_no_list_of_devices_is_refused(devices: Any) -> None:
    with refusal("not-a-list", "devices", "[0]"):
        COSTS.slower(devices, 1.5)
    with refusal("not-a-list", "device_of"):
        Schedule.from_slots("mine", [[[0]], [[1]]], devices)


def test_operations_are_refused_with_an_example() -> None:
    for text in ("F0", "0G0", "-1F0", "0F-1", " 0F0", "0F0 ", "0F0\n", "٣F٣", "²F0", "0FB0", "9999999999F0", ""):
        with refusal("unknown-operation", f"{text!r} ", "2F0"):
            Op.parse(text)


@in_turn("text, code, words", UNREADABLE)
def test_malformed_text_is_refused_with_line_and_column(text: str, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words, kind=InvalidSchedule):
        Schedule.parse(text)


@in_turn(
    "text, code, place, word",
    [
        ("0F0,0G0", "unknown-operation", "line 1, column 5:", "'0G0'"),
        ("0F0,0B0\n1F0, 1B0 x\n", "unknown-operation", "line 2, column 10:", "'x'"),
        ('sep=;\r\n"0F0";"0B0"\r\n1F0|1B0\r\n', "unknown-operation", "line 3, column 1:", "'1F0|1B0'"),
        ("\n", "empty", "text", ""),
    ],
)
def test_malformed_csv_is_refused_with_line_and_column(text: str, code: str, place: str, word: str) -> None:
    with refusal(code, place, word, kind=InvalidSchedule):
        Schedule.parse(text)


def problems(why: InvalidSchedule) -> list[Problem]:
    return [problem for problem in why.problems if isinstance(problem, Problem)]


def test_what_is_missing_or_twice_is_said_in_words_of_the_field() -> None:
    for text, code, words in INCOMPLETE:
        with refusal(code, *words, kind=InvalidSchedule):
            Schedule.parse(text)
    with pytest.raises(InvalidSchedule) as why:
        Schedule.parse(GOOD.replace("2B7", "2B7 2B7"))
    assert "device 2: ... " in str(why.value)
    assert "[2B7]" in str(why.value)
    problem = problems(why.value)[0]
    assert (problem.device, str(problem.op)) == (2, "2B7")


def test_a_deadlock_prints_the_grid_with_the_operation_in_brackets() -> None:
    with pytest.raises(Deadlock) as why:
        Schedule.parse(WAITING["two devices"], name="mine")
    assert str(why.value).splitlines() == [
        "schedule 'mine' cannot run:",
        "  device 0 stops at 0B0: it waits for 1B0, which is behind 1F1 on device 1",
        "  device 1 stops at 1F1: it waits for 0F1, which is behind 0B0 on device 0",
        "  device 0 waits for device 1, which waits for device 0",
        "device 0: 0F0 [0B0] 0F1 0B1",
        "device 1: [1F1] 1B1 1F0 1B0",
    ]
    assert [(problem.device, problem.position, str(problem.op)) for problem in problems(why.value)] == [
        (0, 1, "0B0"),
        (1, 0, "1F1"),
    ]


def test_a_backward_before_its_forward_is_a_deadlock_of_one_device() -> None:
    with refusal("too-early", "device 0 runs 0B0 before 0F0", "\ndevice 0: [0B0] 0F0", kind=Deadlock):
        Schedule.parse("0B0 0F0")


def test_a_device_that_waits_for_an_operation_of_its_own_is_told_so() -> None:
    """There are two stages on one device, and the later stage comes first."""
    with refusal("deadlock", "device 0 stops at 1F0", "device 0 waits for itself", "\ndevice 0: [1F0] 0F0 1B0 0B0", kind=Deadlock):
        Schedule.parse(WAITING["itself"])


@in_turn(
    "text, circle",
    [
        ("all around", "device 0 waits for device 2, which waits for device 1, which waits for device 0"),
        ("many devices", "which waits for device 3, which waits for ..., which waits for device 0"),
    ],
)
def test_a_deadlock_names_the_circle_of_devices(text: str, circle: str) -> None:
    with refusal("deadlock", f"{circle}\ndevice 0: [", kind=Deadlock):
        Schedule.parse(WAITING[text])


def test_nobody_is_said_to_be_behind_itself() -> None:
    """Device 1 stops at the same operation for which device 0 waits."""
    with pytest.raises(Deadlock) as why:
        Schedule.parse(WAITING["three devices"])
    assert problems(why.value)
    for problem in problems(why.value):
        assert "waits for 1B0, which is behind 1B0" not in problem.sentence


def test_the_message_of_a_long_schedule_stays_short() -> None:
    text = str(build("gpipe", 2, 500))
    with pytest.raises(InvalidSchedule) as why:
        Schedule.parse(text.replace(" 1B499", "").replace(" 1B400 ", " "))
    assert len(str(why.value)) < 1000


def test_the_message_of_a_schedule_on_many_devices_stays_short() -> None:
    text = str(build("1f1b", 1000, 3))
    with pytest.raises(InvalidSchedule) as why:
        Schedule.parse(text.replace(" 500B1", " 500B1 500B1"))
    assert str(why.value).splitlines()[1:] == [
        "  stage 500 runs the backward of microbatch 1 twice",
        "device 500: 500F0 500F1 500F2 500B0 [500B1] 500B1 500B2",
        "and 999 devices more",
    ]
    with pytest.raises(InvalidSchedule) as why:
        Schedule.parse(text.replace(" 500B1", ""))
    assert why.value.code == "missing-backward"
    assert len(str(why.value).splitlines()) == 35


@in_turn("orders", ["0F0 0B0", ["0F0 0B0"], ["0F0", "0B0"], [Op.parse("0F0")], [["0F0", "0B0"], "1F0"]])
def test_a_text_in_place_of_a_list_of_operations_is_told_of_parse(orders: Any) -> None:
    with refusal("not-a-list", "Schedule.parse", kind=InvalidSchedule):
        Schedule("mine", orders)


def test_a_text_is_shown_whole() -> None:
    with refusal("not-a-list", "'0F0 0B0'", "Schedule.parse", kind=InvalidSchedule):
        Schedule("mine", "0F0 0B0")  # type: ignore[arg-type]


@in_turn("wrong", ["0X0", 3, None, ("F", 0, 0)])
def test_an_order_says_where_it_holds_no_operation(wrong: Any) -> None:
    with refusal("unknown-operation", "device 1, position 2:", kind=InvalidSchedule):
        Schedule("mine", [["0F0", "0B0"], ["1F0", "1B0", wrong]])


@in_turn(
    "code, words, fields",
    [
        ("unknown-name", "'Q' F, B, I, W", ("Q", 0, 0)),
        ("too-small", "stage -1", ("F", -1, 2.5)),
        ("not-a-whole-number", "microbatch 2.5", ("F", 1, 2.5)),
    ],
)
def test_an_operation_that_cannot_be_is_refused(code: str, words: str, fields: Any) -> None:
    with refusal(code, *words.split()):
        Op(*fields)


def test_timelines_must_fit_their_schedule() -> None:
    for code, words, start, end in (
        ("wrong-shape", "start 8 (3,)", [1, 2, 3], [1, 2, 3]),
        ("does-not-fit", "start end (8,)", [0] * 8, [[1] * 8]),
        ("ends-before-start", "operation", [1] * 8, [0] * 8),
        ("not-finite", "operation", [-math.inf] * 8, [0] * 8),
        ("not-finite", "operation", [0] * 8, [math.nan] * 8),
    ):
        with refusal(code, *words.split()):
            Timeline(SCHEDULE, start, end)  # type: ignore[arg-type]
    with refusal("not-a-schedule", "Schedule", "'1f1b'"):
        Timeline("1f1b", [0], [1])  # type: ignore[arg-type]
    with refusal("out-of-range", "(2,)"):
        BATCH.at(2)
    for method in ("blocking_operation", "to_rows", "to_chrome_trace"):
        with refusal("several-settings", f"{method}()", "(2,)", "at()"):
            getattr(BATCH, method)()


@in_turn("argument", ["forward", "backward", "p2p"])
def test_times_that_would_overflow_are_refused(argument: str) -> None:
    with refusal("too-large", argument, "1e+200", "1e+201"):
        Costs(**({"forward": 1, "backward": 2} | {argument: 1e201}))
    with refusal("too-large", "1e+200"):
        COSTS.slower([0], 1e200)
    with refusal("too-large", "forward", "1e+200", "1e+201"):
        Costs(forward=[5, 1e201], backward=1)
    timeline = simulate(SCHEDULE, Costs(forward=1e200, backward=1e200, p2p=1e200))
    assert math.isfinite(timeline.makespan)
    assert timeline.bubble_ratio == pytest.approx(simulate(SCHEDULE, Costs(forward=1, backward=1, p2p=1)).bubble_ratio)


def test_a_trace_holds_finite_times_alone() -> None:
    with refusal("too-large", "1e+250 microseconds"):
        Timeline(SCHEDULE, [0] * 8, [1e249] * 8, unit="s").to_chrome_trace()  # type: ignore[arg-type]
    json.dumps(Timeline(SCHEDULE, [0] * 8, [1e240] * 8, unit="s").to_chrome_trace(), allow_nan=False)


def test_a_name_is_registered_once() -> None:
    with refusal("duplicate-name", "1f1b"):
        register("1f1b", title="", summary="", source="")
