"""Lists of actions in real processes: a send waits for its receiver, ranks in a deadlock are named, and bad lists are refused."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from cases import in_turn, refusal
from solutions import solutions_of

from hybridlab import Costs, Deadlock, HybridLabError, Schedule, build, simulate
from hybridlab.course.labs.lab16.rendezvous import as_it_comes
from hybridlab.engines import Group, inputs_from_others, run_actions
from hybridlab.schedule import Action, read_actions, written_actions

COSTS = Costs(forward=5, backward=10)


@pytest.fixture(scope="module")
def pair() -> Iterator[Group]:
    with Group("mpi", 2) as group:
        yield group


def own_line(orders: list[str], needs: dict[str, str], rank: int) -> list[str]:
    return as_it_comes(orders, needs)[rank]


@in_turn(
    "text, actions",
    [
        ("run 12B3", [Action("run", "12B3")]),
        ("send 0F0 to 1", [Action("send", "0F0", 1)]),
        ("receive 0F0 from 17 and send 1B0 to 0", [Action("receive", "0F0", 17), Action("send", "1B0", 0)]),
    ],
)
def test_the_text_of_actions_can_be_read_and_is_written_again(text: str, actions: list[Action]) -> None:
    assert read_actions(text) == tuple(actions)
    assert written_actions(actions) == text


@in_turn(
    "text",
    [
        "",
        "run",
        "run 0F0 now",
        "send 0F0",
        "send 0F0 from 1",
        "receive 0F0 to 1",
        "send 0F0 to -1",
        5,
        None,
        "run 0F0\n",
        "send 0F0 to 1 and",
    ],
)
def test_what_is_no_action_is_refused(text: Any) -> None:
    with refusal("not-an-action"):
        read_actions(text)


def test_an_operation_is_not_joined_with_a_message() -> None:
    with refusal("joined-operation", "'run 0F0'"):
        read_actions("send 0F0 to 1 and run 0F0")


def test_inputs_from_others_are_those_of_the_schedule() -> None:
    schedule = build("zb-v", 3, 6)
    device = {str(op): number for number, order in enumerate(schedule.orders) for op in order}
    needs = inputs_from_others(schedule)
    for op in schedule.ops:
        others = {str(each) for each in schedule.needs(op) if device[str(each)] != device[str(op)]}
        assert ({needs[str(op)]} if str(op) in needs else set()) == others
    with refusal("not-a-schedule", "None"):
        inputs_from_others(None)  # type: ignore[arg-type]


def joined_line(orders: list[str], needs: dict[str, str], rank: int) -> list[str]:
    """The lines of a rank, with each send joined with the next receive."""
    text = "; ".join(own_line(orders, needs, rank))
    return re.sub(r"(send [^;]*); (receive)", r"\1 and \2", text).split("; ")


def test_processes_run_lists_that_fit_together_and_then_what_follows_a_deadlock(pair: Group) -> None:
    schedule = build("1f1b", 2, 4)
    source = [(row, int(before)) for row, before in enumerate(schedule.source) if before >= 0]

    def runs(actions_of: Any) -> None:
        ran = run_actions(schedule, actions_of, COSTS, pair)
        assert ran.schedule == schedule
        assert ran.makespan >= simulate(schedule, COSTS).makespan
        assert all(ran.start[row] >= ran.end[before] for row, before in source)

    runs(solutions_of("lab16")["lab16.t4"])
    with pytest.raises(Deadlock, match="rank 0 waits at 'send 0F1 to 1'; rank 1 waits at 'send 1B0 to 0'") as caught:
        run_actions(schedule, own_line, COSTS, pair)
    assert caught.value.code == "deadlock"
    runs(joined_line)


def test_an_operation_that_is_left_out_is_named(pair: Group) -> None:
    with refusal("missing-operation", "0F0"):
        run_actions(build("gpipe", 2, 2), lambda orders, needs, rank: [], COSTS, pair)


def test_other_processes_than_one_for_each_device_are_refused(pair: Group) -> None:
    for group in (pair, "mpi", None):
        with refusal("wrong-number-of-processes", "Group('mpi', 3)"):
            run_actions(build("gpipe", 3, 2), own_line, COSTS, group)  # type: ignore[arg-type]


def test_costs_without_a_unit_are_refused(pair: Group) -> None:
    with pytest.raises(HybridLabError) as caught:
        run_actions(Schedule.parse("0F0 0B0\n1F0 1B0"), own_line, Costs(forward=1, backward=1, unit=None), pair)
    assert caught.value.code == "no-unit"
