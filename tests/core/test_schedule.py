"""Test how schedules are built, read, written and compared, and their properties."""

import io
import pickle
import re
from dataclasses import FrozenInstanceError
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from profiles import examples
from strategies import Size, sizes, supported
from texts import LAID_OUT, TWO

from hybridlab import REGISTRY, InvalidSchedule, Kind, Op, Schedule, build
from hybridlab.schedule.text import communication_in
from hybridlab.schedules import Family


def test_a_schedule_is_written_one_line_a_device() -> None:
    assert str(build("1f1b", 2, 2)) == TWO
    assert build("1f1b", 2, 2).to_csv() == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
    assert str(build("gpipe", 1, 1)) == "device 0: 0F0 0B0"


@in_turn("text", LAID_OUT)
def test_text_may_be_laid_out_as_one_likes(text: str) -> None:
    assert Schedule.parse(text, name="1f1b") == build("1f1b", 2, 2)


@in_turn(
    "csv",
    [
        "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1",
        "0F0,0F1,,0B0,,0B1\r\n,1F0,1B0,1F1,1B1,\r\n",
        " 0F0 , 0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n\n",
        "\ufeff0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n",
        "# orders of torch\r0F0;0F1;0B0;0B1\r1F0;1B0;1F1;1B1\r;;;\r",
        'sep=;\n"0F0";"0F1";"0B0";"0B1"\n"1F0";"1B0";"1F1";"1B1"\n',
        "device 0\t0F0\t0F1\t0B0\t0B1\ndevice 1,1F0,1B0,1F1,1B1\n",
    ],
)
def test_csv_may_hold_idle_cells_and_the_marks_of_spreadsheets(csv: str, tmp_path: Path) -> None:
    wanted, path = build("1f1b", 2, 2), tmp_path / "orders.csv"
    path.write_bytes(csv.encode("utf-16"))
    assert Schedule.parse(csv, name="1f1b") == Schedule.from_csv(io.StringIO(csv), name="1f1b") == Schedule.from_csv(path, "1f1b") == wanted


def test_from_csv_reads_files_and_parse_reads_texts() -> None:
    csv = "0F0,0B0\n1F0,1B0\n"
    with refusal("wrong-type", "Schedule.parse(text) reads it"):
        Schedule.from_csv(csv)
    with refusal("not-found", "'0F0,0B0' cannot be read"):
        Schedule.from_csv("0F0,0B0")
    for wrong in (None, 3, b"0F0,0B0", [csv]):
        with refusal("wrong-type", "a path or an open file is needed"):
            Schedule.from_csv(wrong)


def test_csv_may_hold_communication_as_torch_writes_it() -> None:
    csv = "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
    csv += "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n"
    assert Schedule.parse(csv, name="1f1b") == build("1f1b", 2, 2)
    counts = {"UNSHARD": 2, "SEND_F": 2, "RECV_B": 2, "REDUCE_GRAD": 2, "RESHARD": 2, "RECV_F": 2, "SEND_B": 2}
    assert communication_in(csv) == counts
    with refusal("unknown-operation", "line 1, column 14", "'0X0'"):
        Schedule.parse("0UNSHARD,0F0,0X0,0B0\n")


def test_what_torch_prints_is_read() -> None:
    lists = "[0UNSHARD, 0F0, 0SEND_F0, 0F1, None, 0B0, 0B1]\n[None, 1F0, 1B0, 1F1, 1B1]\n"
    grid = """
         Rank 0   Rank 1
Step 00: 0UNSHARD
Step 01: 0F0
Step 02: 0SEND_F0 1F0
Step 03: 0F1      1B0     <-- ERROR HERE
Step 04:          1F1
Step 05: 0B0      1B1
Step 06: 0B1
"""
    wanted = Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
    for text in (lists, grid, grid.strip(), grid.replace("\n", "\r\n    ")):
        assert Schedule.parse(text) == Schedule.from_csv(io.StringIO(text)) == wanted
        assert communication_in(text) == {"UNSHARD": 1, "SEND_F": 1}
    with refusal("unknown-operation", "line 2, column 8", "'1X0'"):
        Schedule.parse("[0F0, 0B0]\n[None, 1X0]")
    with refusal("ragged", "line 6, column 17: '1B0' stands below no rank: give the grid with all its spaces"):
        Schedule.parse(grid.replace("0F1      1B0", "0F1    1B0"))
    with refusal("ragged", "line 4, column 1"):
        Schedule.parse(grid.replace("Step 01: 0F0", "0F0"))
    with refusal("unknown-operation", "line 5, column 10", "'0X0'"):
        Schedule.parse(grid.replace("0SEND_F0", "0X0     "))


def test_a_schedule_equals_another_of_the_same_name_and_orders() -> None:
    schedule, again = build("1f1b", 3, 4), build("1f1b", 3, 4)
    assert schedule == again
    assert hash(schedule) == hash(again)
    assert len({schedule, again, build("1f1b", 3, 5), build("gpipe", 3, 4)}) == 3
    assert schedule != Schedule("other name", schedule.orders)
    assert schedule != build("1f1b", 4, 4)
    assert schedule != str(schedule)
    assert build("gpipe", 1, 1) != build("1f1b", 1, 1)


def test_one_microbatch_on_one_device_is_the_same_in_every_schedule() -> None:
    assert build("gpipe", 1, 1).orders == build("1f1b", 1, 1).orders
    assert str(build("zb-h1", 1, 1)) == "device 0: 0F0 0I0 0W0"


def test_orders_of_a_student_are_read_as_written() -> None:
    orders: list[list[Op | str]] = [["0F0", Op(Kind.B, 0, 0)]]
    schedule = Schedule("mine", (iter(order) for order in orders))
    assert schedule.orders == ((Op(Kind.F, 0, 0), Op(Kind.B, 0, 0)),)
    mixed = Schedule.parse("0F0 0F1 0I0 0B1 0W0")
    assert [op.kind for op in mixed.ops] == [Kind.F, Kind.F, Kind.I, Kind.B, Kind.W]
    assert mixed.needs(Op.parse("0W0")) == (Op.parse("0I0"),)


def test_where_stages_are() -> None:
    assert build("interleaved", 2, 2, 3).device_of == (0, 1, 0, 1, 0, 1)
    assert build("hanayo", 3, 3, 4).device_of == (0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0)
    assert Schedule.parse("1F0 1B0\n0F0 0B0").device_of == (1, 0)
    schedule = build("interleaved", 2, 4, 3)
    assert (schedule.devices, schedule.microbatches, schedule.chunks, schedule.stages) == (2, 4, 3, 6)
    assert repr(schedule) == "<Schedule interleaved: 2 devices, 4 microbatches, 3 chunks>"


def test_what_an_operation_needs() -> None:
    schedule = build("zb-h1", 3, 2)
    needs = {text: " ".join(map(str, schedule.needs(Op.parse(text)))) for text in ("0F1", "2F0", "2I0", "1I1", "0W1")}
    assert needs == {"0F1": "", "2F0": "1F0", "2I0": "2F0", "1I1": "1F1 2I1", "0W1": "0I1"}
    assert [str(need) for need in build("1f1b", 3, 2).needs(Op.parse("1B1"))] == ["1F1", "2B1"]
    for other in (Op.parse("3F0"), Op.parse("0F2"), Op.parse("0B0"), "0F0", ("F", 0, 0)):
        with refusal("unknown-operation", "'zb-h1'", "0F0"):
            schedule.needs(other)  # type: ignore[arg-type]


def test_an_operation_with_a_plain_letter_is_the_same_operation() -> None:
    schedule = build("zb-h1", 2, 2)
    for op in schedule.ops:
        assert schedule.needs(Op(op.kind.value, op.stage, op.microbatch)) == schedule.needs(op)  # type: ignore[arg-type]


BY_HAND = {  # sent by each device: the forwards and the gradients of every boundary between stages of two devices
    "gpipe, 4 devices, 8 microbatches": ([8, 16, 16, 8], ("gpipe", 4, 8)),
    "1f1b, 4 devices, 8 microbatches": ([8, 16, 16, 8], ("1f1b", 4, 8)),
    "1f1b, fewer microbatches than devices": ([2, 4, 4, 4, 2], ("1f1b", 5, 2)),
    "zb-h1: nobody waits for a weight gradient": ([8, 16, 16, 8], ("zb-h1", 4, 8)),
    "interleaved, 2 chunks": ([24, 32, 32, 24], ("interleaved", 4, 8, 2)),
    "interleaved, 3 chunks": ([20, 20], ("interleaved", 2, 4, 3)),
    "hanayo, 1 wave: no message at the turn on the last device": ([16, 32, 32, 16], ("hanayo", 4, 8, 2)),
    "hanayo, 2 waves: no message at the turn on the first device either": ([32, 64, 64, 32], ("hanayo", 4, 8, 4)),
    "hanayo, one device": ([0], ("hanayo", 1, 8, 4)),
    "1f1b, one device": ([0], ("1f1b", 1, 8)),
}


@in_turn("sent, size", BY_HAND.values())
def test_messages_are_those_counted_by_hand(sent: list[int], size: tuple) -> None:
    assert build(*size).messages.tolist() == sent


@given(size=sizes())
def test_a_message_for_every_output_that_another_device_needs(size: Size) -> None:
    schedule = size.build()
    sent = [0] * schedule.devices
    for op in schedule.ops:
        for need in schedule.needs(op):
            if schedule.device_of[need.stage] != schedule.device_of[op.stage]:
                sent[schedule.device_of[need.stage]] += 1
    assert schedule.messages.tolist() == sent


@in_turn("chunks", [2, 3, 4])
def test_chunks_in_a_loop_send_one_message_each_way_at_every_boundary_of_stages(chunks: int) -> None:
    """About v times the messages of 1F1B, as in Narayanan et al., arXiv 2104.04473, sec. 2.2.2; exactly (vD - 1)/(D - 1) times."""
    total = int(build("interleaved", 4, 8, chunks).messages.sum())
    assert total == 2 * 8 * (chunks * 4 - 1)
    assert chunks <= total / build("1f1b", 4, 8).messages.sum() == (chunks * 4 - 1) / 3


def test_nothing_in_a_schedule_can_be_changed() -> None:
    schedule = build("1f1b", 2, 2)
    for name in ("kind", "stage", "microbatch", "device", "source", "slot", "first", "crosses", "messages"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(schedule, name)[0] = 7
    with pytest.raises(FrozenInstanceError):
        schedule.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        REGISTRY["mine"] = REGISTRY["1f1b"]  # type: ignore[index]


@examples(20)
@given(size=sizes())
def test_a_schedule_survives_pickling(size: Size) -> None:
    schedule = size.build()
    assert pickle.loads(pickle.dumps(schedule)) == schedule  # noqa: S301 - our own bytes


def test_slots_need_not_be_the_earliest() -> None:
    """Only the order of the slots matters."""
    slots = np.array([[[0, 7], [1, 30]], [[100, 200], [50, 60]]])
    assert str(Schedule.from_slots("mine", slots, [0, 1])) == "device 0: 0F0 0F1 0B0 0B1\ndevice 1: 1F0 1F1 1B0 1B1"
    assert str(Schedule.from_slots("mine", slots, [1, 0])).startswith("device 0: 1F0")


def test_slots_that_prove_nothing_are_checked_operation_by_operation() -> None:
    """The backward has an earlier slot than its source, but the order can run."""
    slots = np.array([[[0], [1]], [[2], [9]]])
    assert str(Schedule.from_slots("mine", slots, [0, 1])) == "device 0: 0F0 0B0\ndevice 1: 1F0 1B0"
    with refusal("too-early", "device 0: [0B0] 0F0", kind=InvalidSchedule):
        Schedule.from_slots("mine", [[[1]], [[0]]], [0])
    with refusal("missing-backward", "microbatch 1", kind=InvalidSchedule):
        Schedule.from_slots("mine", [[[0, 1]], [[2, -1]]], [0])


@in_turn("none", [-2, -7, -(2**40)])
def test_every_negative_slot_means_that_there_is_no_operation(none: int) -> None:
    slots = np.array([[[0, 2], [1, 3]], [[6, 8], [4, 6]], [[-1, -1], [5, 7]]])
    assert Schedule.from_slots("mine", np.where(slots < 0, none, slots), [0, 1]) == Schedule.from_slots("mine", slots, [0, 1])
    with refusal("missing-forward"):
        Schedule.from_slots("mine", [[[none, 0], [2, 1]], [[4, 6], [3, 5]]], [0, 1])


@in_turn(
    "slots, device_of, code, words",
    [
        ([[[0]], [[1]]], [1], "too-large", ("device", "0, not 1")),
        ([[[0]], [[1]]], [-1], "too-small", ("device", "not -1")),
        ([[[0]], [[1]]], [0, 0], "wrong-length", ("device_of", "1 stages", "2 devices")),
        ([[[0], [1], [2]], [[5], [4], [3]]], [0, 0, 1], "uneven-stages", ("device 0 holds 2", "device 1 holds 1")),
        ([[[0], [1], [2]], [[5], [4], [3]]], [0, 2, 2], "uneven-stages", ("device 1 holds 0", "device 2 holds 2")),
        ([[0], [1]], [0], "wrong-shape", ("slots", "(2 or 3, stages, microbatches)", "(2, 1)")),
        ([[[0.5]], [[1.5]]], [0], "not-a-whole-number", ("slots",)),
        ([[[0]], [[2**60]]], [0], "too-large", ("slots", "34,359,738,368")),
        ([[[0]], [[1, 2]]], [0], "ragged", ("slots",)),
    ],
)
def test_slots_and_devices_that_make_no_schedule(slots: list[object], device_of: list[int], code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words):
        Schedule.from_slots("mine", slots, device_of)  # type: ignore[arg-type]


def test_the_fewest_chunks_are_taken_where_none_are_asked_for() -> None:
    chunks = {name: build(name, *supported(name, 2, 4)).chunks for name in REGISTRY}
    assert chunks == {name: family.fewest_chunks for name, family in REGISTRY.items()}


@in_turn("name", sorted(REGISTRY))
def test_every_family_says_what_it_is_and_where_it_is_from(name: str) -> None:
    family = REGISTRY[name]
    assert family.name == name
    assert family.title
    assert family.summary
    assert "arXiv" in family.source


def test_the_colon_after_a_device_may_be_forgotten() -> None:
    assert Schedule.parse("device 0 0F0 0B0\nDevice 1 : 1F0 1B0") == Schedule.parse("0F0 0B0\n1F0 1B0")


def test_orders_of_every_form_are_read() -> None:
    lines = ["0F0 0B0", "1F0 1B0"]
    lists = [line.split() for line in lines]
    right = Schedule("parsed", lists)
    forms = ("\n".join(lines), lines, tuple(lines), lists, np.array(lists), dict(enumerate(lines)), ["device 0: 0F0, 0B0", lists[1]])
    for orders in (*forms, right, (line for line in lines)):
        assert Schedule.parse(orders) == right, orders
    for wrong in (3, None, {"0F0 0B0"}, b"0F0 0B0"):
        with refusal("not-a-list", "such as ['0F0 0B0', '1F0 1B0']", kind=InvalidSchedule):
            Schedule.parse(wrong)


@in_turn(
    "orders, code, words",
    [
        (3, "not-a-list", ("not 3",)),
        ("0F0 0B0", "not-a-list", ("Schedule.parse",)),
        (["0F0"], "not-a-list", ('["0F0", "0B0"]', "'0F0'")),
        ([["0F0", "0X0"]], "unknown-operation", ("device 0, position 1", "'0X0'")),
        ([["0F0", 7]], "unknown-operation", ("device 0, position 1", "7")),
        ([], "empty-schedule", ()),
    ],
)
def test_orders_that_are_no_schedule_are_refused(orders: object, code: str, words: tuple[str, ...]) -> None:
    with refusal(code, *words, kind=InvalidSchedule):
        Schedule("mine", orders)  # type: ignore[arg-type]


MADE_UP = [
    Family(
        f"{'whole-' * whole}{'bidirectional-' * both}{least}",
        "Made up",
        REGISTRY["gpipe"].rule,
        "",
        "",
        whole_groups=whole,
        bidirectional=both,
        min_microbatches_per_device=least,
    )
    for whole, both, least in product((False, True), (False, True), (0, 1, 3))
]


@in_turn("family", [*REGISTRY.values(), *MADE_UP])
def test_sizes_in_words_are_those_that_are_not_refused(family: Family) -> None:
    about_numbers, _, about_chunks = family.sizes.partition("; ")
    counts = [int(each) for each in about_chunks.split(" chunk")[0].split(", ") if each != "..."]
    step = counts[1] - counts[0] if "..." in about_chunks else 0
    allowed = set(range(counts[0], 9, step)) if step else set(counts)
    rules = {
        "any numbers of devices and microbatches": lambda devices, microbatches: True,
        "any number of devices": lambda devices, microbatches: True,
        "an even number of devices": lambda devices, microbatches: devices % 2 == 0,
        "microbatches divisible by it": lambda devices, microbatches: microbatches % devices == 0,
        "an even number of microbatches": lambda devices, microbatches: microbatches % 2 == 0,
    }
    for least in (1, 2, 3):
        rules[f"at least {least} microbatches for each device"] = lambda devices, microbatches, least=least: microbatches >= least * devices
    for devices, microbatches, chunks in product(range(1, 7), range(1, 20), range(1, 9)):
        fits = all(rules[rule](devices, microbatches) for rule in about_numbers.split(", "))
        refused = family.refusal(devices, microbatches, chunks) is not None
        assert refused != (fits and chunks in allowed), (devices, microbatches, chunks)


@in_turn("family", [*REGISTRY.values(), *MADE_UP])
def test_the_numbers_that_a_refusal_names_are_the_nearest_that_work(family: Family) -> None:
    """Microbatches below and above the refused number; where only devices are wrong, devices that work with some microbatches."""

    def works(devices: int, microbatches: int) -> bool:
        return devices > 0 and family.refusal(devices, microbatches, family.fewest_chunks) is None

    for devices, microbatches in product(range(1, 7), range(1, 20)):
        refusal = family.refusal(devices, microbatches, family.fewest_chunks)
        if refusal is None:
            continue
        named = [int(number) for number in re.findall(r"\d+", refusal.rpartition("try ")[2])]
        if "number of devices, not" in refusal:
            around = [count for count in (devices - 1, devices + 1) if any(works(count, more) for more in range(1, 40))]
        else:
            below = [fewer for fewer in range(1, microbatches) if works(devices, fewer)][-1:]
            around = [*below, next(more for more in range(microbatches + 1, 60) if works(devices, more))]
        assert named == around, refusal
