"""Test the CSV of schedules against torch.distributed.pipelining itself: torch reads ours, and we read torch's."""

from functools import cache
from importlib import import_module
from itertools import product
from typing import Any

import pytest
from cases import in_turn

from hybridlab import Schedule, build

pytestmark = [pytest.mark.torch, pytest.mark.slow]  # importing torch takes seconds
IN_TORCH = ("gpipe", "1f1b", "interleaved", "looped-bfs", "zb-h1", "interleaved-zb", "zb-v", "dualpipe-v")
SIZES = [(2, 4), (4, 8)]
each_schedule = in_turn("name, size", product(IN_TORCH, SIZES))  # in one test, so that one process imports torch


@cache
def torch() -> Any:
    """Return torch's module of schedules; importing it takes seconds."""
    return import_module("torch.distributed.pipelining.schedules")


def read_by_torch(schedule: Schedule) -> dict[int, list[Any]]:
    """Return the actions that torch finds in our CSV, for each rank."""
    lines = schedule.to_csv().splitlines()
    return {rank: [torch()._Action.from_str(cell) for cell in line.split(",")] for rank, line in enumerate(lines)}


def written_by_torch(actions: dict[int, list[Any]]) -> str:
    return "".join(",".join("" if action is None else str(action) for action in actions[rank]) + "\n" for rank in sorted(actions))


def with_communication(schedule: Schedule) -> dict[int, list[Any]]:
    """Return the actions after torch has added communication, by the passes of its runtime."""
    actions = {rank: torch()._add_unshard_reshard(row) for rank, row in read_by_torch(schedule).items()}
    actions = {rank: torch()._add_reduce_grad(row, schedule.microbatches) for rank, row in actions.items()}
    added: dict[int, list[Any]] = torch()._add_send_recv(actions, lambda stage: schedule.device_of[stage], schedule.stages)
    return added


@each_schedule
def test_torch_reads_our_csv_and_we_read_it_back(name: str, size: tuple[int, int]) -> None:
    schedule = build(name, *size)
    actions = read_by_torch(schedule)
    for rank, row in actions.items():
        flat = [op for action in row for op in (action.sub_actions or (action,))]
        assert [(op.stage_index, op.computation_type.value, op.microbatch_index) for op in flat] == [
            (op.stage, op.kind.value, op.microbatch) for op in schedule[rank]
        ]
    for text in (written_by_torch(actions), torch()._format_pipeline_order(actions), "\n".join(map(str, actions.values()))):
        assert Schedule.parse(text, name=name) == schedule


@each_schedule
def test_we_read_what_torch_has_added_communication_to(name: str, size: tuple[int, int]) -> None:
    schedule = build(name, *size)
    actions = with_communication(schedule)
    read = Schedule.parse(written_by_torch(actions), name=name)
    assert read == schedule
    for text in (torch()._format_pipeline_order(actions), "\n".join(map(str, actions.values()))):
        printed = Schedule.parse(text, name=name)
        assert printed == schedule
        assert printed.left_out == read.left_out
    assert read.left_out["SEND_F"] == read.left_out["RECV_F"]
    assert read.left_out["SEND_F"] + read.left_out["SEND_B"] == schedule.messages.sum()
    assert read.left_out["REDUCE_GRAD"] == schedule.stages
    added = sum(not action.is_compute_op for row in actions.values() for action in row)
    assert sum(read.left_out.values()) == added


def test_every_word_of_torch_is_an_operation_or_left_out() -> None:
    """If torch adds a word, this test says that our reader does not know it."""
    kinds = {kind.value for kind in torch()._ComputationType} - {"OVERLAP_F_B"}
    words = ",".join(f"0{kind}{'' if kind in ('UNSHARD', 'RESHARD', 'REDUCE_GRAD') else 0}" for kind in sorted(kinds - set("FBIW")))
    assert set(Schedule.parse(f"{words},0F0,0B0").left_out) | set("FBIW") == kinds


@in_turn("size", SIZES)
def test_zb_v_as_torch_makes_it_is_read(size: tuple[int, int]) -> None:
    """Its order may differ from ours, but it has the same operations on the same devices."""
    ranks, microbatches = size
    made = object.__new__(torch().ScheduleZBVZeroBubble)
    made.pp_group_size, made._n_microbatches, made.n_local_stages = ranks, microbatches, 2
    made.num_stages = made._num_stages = 2 * ranks
    rows = {rank: made._calculate_single_rank_operations(rank) for rank in range(ranks)}
    read = Schedule.parse(written_by_torch(rows))
    assert set(read.ops) == set(build("zb-v", ranks, microbatches).ops)
    assert read.device_of == build("zb-v", ranks, microbatches).device_of
