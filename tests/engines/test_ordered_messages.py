"""Test simulated lists of actions against real processes, and the order of messages against torch."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from cases import in_turn

from hybridlab import Costs, Deadlock, Schedule, build, simulate
from hybridlab.course.labs.lab16.rendezvous import as_it_comes, in_rounds
from hybridlab.engines import Group, inputs_from_others, run_actions
from hybridlab.simulation import ordered_actions

Lists = list[list[str]]
COSTS = Costs(forward=[4, 8, 6], backward=[10, 5, 7])


@pytest.fixture(scope="module")
def three() -> Iterator[Group]:
    with Group("mpi", 3) as group:
        yield group


def of_torch(schedule: Schedule) -> Lists:
    return ordered_actions(schedule)


def by_rounds(schedule: Schedule) -> Lists:
    lines, needs = [" ".join(map(str, order)) for order in schedule.orders], inputs_from_others(schedule)
    return [in_rounds(lines, needs, rank) for rank in range(schedule.devices)]


def own_lines(schedule: Schedule) -> Lists:
    return as_it_comes([" ".join(map(str, order)) for order in schedule.orders], inputs_from_others(schedule))


@in_turn(
    "schedule, lists_of",
    [
        (build("1f1b", 3, 4), of_torch),
        (build("interleaved", 3, 3), of_torch),
        (build("1f1b", 3, 4), by_rounds),
        (build("gpipe", 3, 2), own_lines),
        (build("1f1b", 3, 4), own_lines),
    ],
)
def test_processes_run_lists_no_sooner_than_the_clock_and_stop_where_it_stops(
    three: Group, schedule: Schedule, lists_of: Callable[[Schedule], Lists]
) -> None:
    """A sleep is never too short, so no operation of a real run starts earlier. How much later it starts depends on the machine."""
    lists = lists_of(schedule)

    def actions_of(lines: list[str], needs: dict[str, str], rank: int) -> list[str]:
        return lists[rank]

    try:
        expected = simulate(schedule, COSTS, messages=lists)
    except Deadlock as stops:
        waits = sorted(f"rank {each.device} {each.sentence.split(' ', 2)[2].split(' until ')[0]}" for each in stops.problems)  # type: ignore[attr-defined]
        with pytest.raises(Deadlock) as caught:
            run_actions(schedule, actions_of, COSTS, three)
        assert sorted(str(caught.value).removeprefix("ranks wait for each other: ").split("; ")) == waits
        return
    assert lists_of is not own_lines or schedule.name == "gpipe", "1F1B stops with these lists"
    ran = run_actions(schedule, actions_of, COSTS, three)
    assert (ran.start >= expected.start - 1e-6).all()


@pytest.mark.torch
@pytest.mark.slow
@in_turn("name", ["gpipe", "1f1b", "interleaved", "looped-bfs", "zb-h1", "interleaved-zb", "zb-v"])
def test_messages_are_in_the_order_of_torch(name: str) -> None:
    torch: Any = import_module("torch.distributed.pipelining.schedules")
    schedule = build(name, 4, 8)
    lines = schedule.to_csv().splitlines()
    actions = {rank: [torch._Action.from_str(cell) for cell in line.split(",")] for rank, line in enumerate(lines)}
    added = torch._add_send_recv(actions, lambda stage: schedule.device_of[stage], schedule.stages)
    words = {"SEND_F": "send", "SEND_B": "send", "RECV_F": "receive", "RECV_B": "receive"}
    found = [[(words.get(each.computation_type.value, "run"), each.microbatch_index) for each in added[rank]] for rank in sorted(added)]
    assert found == [[(verb, int(_number(op))) for verb, op, *_ in map(str.split, plan)] for plan in ordered_actions(schedule)]


def _number(op: str) -> str:
    return op.translate(str.maketrans("FBIW", "    ")).split()[1]
