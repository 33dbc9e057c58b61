"""Test simulations in which messages keep their order, or block: against a simulation from moment to moment, and by hand."""

from itertools import pairwise
from typing import Any

import pytest
from cases import in_turn, refusal
from checks import spans
from hypothesis import given
from hypothesis import strategies as st
from oracle import Doing, Lists, Node, Setting, inputs, lists_in_order, lists_in_words, nodes, partners, run_lists, uniform
from profiles import examples
from strategies import legal_orders, settings_of, sizes

from hybridlab import REGISTRY, Costs, Deadlock, Schedule, build, simulate
from hybridlab.simulation import ordered_actions, torch_actions
from hybridlab.step import replicate

ONE = Schedule.parse("0F0 0B0\n1F0 1B0")
OWN = [["run 0F0", "send 0F0 to 1", "receive 1B0 from 1", "run 0B0"], ["receive 0F0 from 0", "run 1F0", "run 1B0", "send 1B0 to 0"]]
TWO = build("gpipe", 2, 2)


@in_turn("name", sorted(REGISTRY))
@examples(10)
@given(data=st.data())
def test_messages_in_order_take_the_times_of_the_oracle(name: str, data: st.DataObject) -> None:
    size = data.draw(sizes(name).filter(lambda size: size.devices * size.microbatches * size.chunks <= 32 and size.chunks in (1, 2, 4)))
    schedule, setting = size.build(), data.draw(settings_of(size.devices, exact=True))
    together = partners(schedule)
    lists = lists_in_order(nodes(schedule), together)
    timeline = simulate(schedule, setting.costs(), messages="ordered")
    assert spans(timeline) == run_lists(lists, setting, schedule.chunks, blocking=False, together=together)
    assert (timeline.start >= simulate(schedule, setting.costs()).start).all()
    if not together:
        assert ordered_actions(schedule) == lists_in_words(lists)
        assert torch_actions(schedule, in_words_of_torch(lists)) == lists_in_words(lists)


def in_words_of_torch(lists: Lists) -> str:
    """Return lists of actions as torch.distributed.pipelining writes them. A message is named by the stage that sends or receives it."""
    lines = []
    for entries in lists:
        words = ["0UNSHARD"]
        for (verb, ((kind, stage, microbatch), *_), _), *_ in entries:
            reader = stage + 1 if kind == "F" else stage - 1
            way = "F" if kind == "F" else "B"
            word = {"run": f"{stage}{kind}", "send": f"{stage}SEND_{way}", "receive": f"{reader}RECV_{way}"}[verb]
            words.append(f"{word}{microbatch}")
        lines.append(",".join(words))
    return "\n".join(lines)


def test_messages_of_a_file_of_torch_are_wrong_or_block() -> None:
    text = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"
    with refusal("deadlock", "device 0 waits at 'send 0F1 to 1' until device 1 receives it; device 1 waits at 'send 1B0 to 0'"):
        simulate(Schedule.parse(text), uniform(2, 1, 2).costs(), messages=torch_actions(Schedule.parse(text), text))
    with refusal("nobody-needs-it", "line 2, column 14: no operation needs the message 1SEND_F0"):
        torch_actions(Schedule.parse(text), "0F0,0SEND_F0\n1RECV_F0,1F0,1SEND_F0")
    with refusal("overlapped-pairs"):
        torch_actions(build("dualpipe-v", 2, 4), build("dualpipe-v", 2, 4).to_csv())


def drawn_lists(schedule: Schedule, rng: Any) -> Lists:
    """Draw lists from a random order of all operations and messages, so that no device waits for ever.

    Then neighbours in some lists are exchanged, so that devices can wait for ever, and some messages are joined.
    """
    orders = [[entry[0] for entry in entries] for entries in lists_in_order(nodes(schedule))]
    every = {node for order in nodes(schedule) for node in order}
    lists: list[list[Doing]] = [[] for _ in orders]
    left = [[doing for doing in order if doing[0] == "run"] for order in orders]
    sends = [(device, doing) for device, order in enumerate(orders) for doing in order if doing[0] == "send"]
    has: list[set[Node]] = [set() for _ in orders]  # the outputs that each device has
    while any(left) or sends:
        able = [
            (at, order[0]) for at, order in enumerate(left) if order and has[at].issuperset(inputs(order[0][1][0], schedule.stages, every))
        ]
        able += [(device, send) for device, send in sends if has[device].issuperset(send[1])]
        device, (verb, ops, peer) = rng.choice(able)
        lists[device].append((verb, ops, peer))
        if verb == "run":
            left[device].pop(0)
            has[device].update(ops)
        else:
            sends.remove((device, (verb, ops, peer)))
            lists[peer].append(("receive", ops, device))
            has[peer].update(ops)
    for _ in range(rng.choice([0, 0, 2])):
        order = rng.choice(lists)
        place = rng.randrange(len(order) - 1)
        (verb, ops, _), (after, (reader,), _) = order[place : place + 2]
        needed = verb == "receive" and after == "run" and ops[0] in inputs(reader, schedule.stages, every)
        if not needed and not (verb == "run" and (after == "run" or ops == order[place + 1][1])):
            order[place : place + 2] = order[place : place + 2][::-1]
    return [joined(order, rng) for order in lists]


def joined(order: list[Doing], rng: Any) -> list[list[Doing]]:
    """Return the entries of a list in which some messages start together."""
    entries = [order[:1]]
    for before, doing in pairwise(order):
        if "run" not in (before[0], doing[0]) and rng.random() < 0.3:
            entries[-1].append(doing)
        else:
            entries.append([doing])
    return entries


@examples(250)
@given(schedule=legal_orders().filter(lambda each: not each.pairs.size and each.copies == 1 and each.kind.size <= 40), data=st.data())
def test_lists_take_the_times_of_the_oracle_or_stop_where_it_stops(schedule: Schedule, data: st.DataObject) -> None:
    """Times are quarters: a chunk's part of a time is exact only for some numbers of chunks, so the times are per stage."""
    rng = data.draw(st.randoms(use_true_random=False))
    device = data.draw(settings_of(schedule.devices, exact=True))
    row = tuple(rng.randrange(20) / 4 for _ in range(schedule.stages))
    setting = Setting(row, row[::-1], (0.5,) * schedule.stages, device.p2p, 0.0, device.between, "stage")
    lists = drawn_lists(schedule, rng)
    expected = run_lists(lists, setting, schedule.chunks, blocking=True)
    if expected is None:
        with pytest.raises(Deadlock, match=r"device . waits at '(send|receive) "):
            simulate(schedule, setting.costs(), messages=lists_in_words(lists))
    else:
        assert spans(simulate(schedule, setting.costs(), messages=lists_in_words(lists))) == expected


def test_a_receive_in_front_blocks_the_messages_behind_it() -> None:
    """By hand: an operation takes 1, but 0F1 takes 8, so its output comes at 9. 2B0 ends at 4, but its message waits behind that of 0F1."""
    schedule = Schedule.parse("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n2F0 2B0 2F1 2B1")
    costs = Costs(forward=[[1, 8], [1, 1], [1, 1]], backward=1, per=("device", "microbatch"))
    assert ordered_actions(schedule)[1][3:6] == ["receive 0F1 from 0", "receive 2B0 from 2", "run 1B0"]
    row = [str(op) for op in schedule.ops].index("1B0")
    assert [simulate(schedule, costs, messages=each).start[row] for each in ("free", "ordered")] == [4, 9]


def test_the_lists_are_those_of_torch() -> None:
    """Recorded with ``_add_send_recv`` of torch 2.14.1."""
    assert ordered_actions(build("1f1b", 2, 2)) == [
        ["run 0F0", "send 0F0 to 1", "run 0F1", "send 0F1 to 1", "receive 1B0 from 1", "run 0B0", "receive 1B1 from 1", "run 0B1"],
        ["receive 0F0 from 0", "run 1F0", "receive 0F1 from 0", "run 1B0", "send 1B0 to 0", "run 1F1", "run 1B1", "send 1B1 to 0"],
    ]


def test_settings_and_replicas_are_simulated_together_as_they_are_alone() -> None:
    schedule = build("zb-v", 2, 4)
    forward = [[1, 5], [4, 2], [3, 3]]
    for messages in ("ordered", ordered_actions(schedule)):
        together = simulate(schedule, Costs(forward=forward, backward=2, p2p=[[0], [1], [0.5]]), messages=messages)
        alone = [
            simulate(schedule, Costs(forward=row, backward=2, p2p=p2p), messages=messages)
            for row, p2p in zip(forward, (0, 1, 0.5), strict=True)
        ]
        assert together.end.tolist() == [each.end.tolist() for each in alone]
    both = simulate(replicate(schedule, 2), Costs(forward=1, backward=2, p2p=1), messages="ordered")
    assert both.end.tolist() == 2 * simulate(schedule, Costs(forward=1, backward=2, p2p=1), messages="ordered").end.tolist()


def test_a_deadlock_names_the_message_at_which_each_device_waits() -> None:
    """Each device receives, runs and sends in the order of its line. In 1F1B, two neighbours then send to each other."""
    lists = lists_in_order(nodes(build("1f1b", 2, 2)))
    own = lists_in_words(lists)
    own[1].remove("receive 0F1 from 0")
    own[1].insert(own[1].index("run 1F1"), "receive 0F1 from 0")
    with pytest.raises(Deadlock) as caught:
        simulate(build("1f1b", 2, 2), Costs(forward=1, backward=2), messages=own)
    waits = "device 0 waits at 'send 0F1 to 1' until device 1 receives it; device 1 waits at 'send 1B0 to 0' until device 0 receives it"
    assert str(caught.value) == f"devices wait for each other for ever: {waits}"
    assert [(problem.device, str(problem.op), problem.waits_for) for problem in caught.value.problems] == [(0, "0F1", 1), (1, "1B0", 0)]  # type: ignore[attr-defined]


def test_a_link_carries_messages_in_the_order_of_their_sends() -> None:
    """MPI pairs these messages by tag, and both sends start together. NCCL has no tags: device 1 would take 0F0 for 0F1."""
    own = [
        ["run 0F0", "run 0F1", "send 0F0 to 1 and send 0F1 to 1", "receive 1B0 from 1", "run 0B0", "receive 1B1 from 1", "run 0B1"],
        ["receive 0F1 from 0", "receive 0F0 from 0", "run 1F0", "run 1F1", "run 1B0", "send 1B0 to 0", "run 1B1", "send 1B1 to 0"],
    ]
    with pytest.raises(Deadlock, match="a link carries messages in the order of their sends: device 0 waits at 'send 0F0 to 1'"):
        simulate(TWO, Costs(forward=1, backward=2), messages=own)


def test_a_link_carries_one_message_at_a_time() -> None:
    """Both sends start at 2, when 0F1 has ended. The second message starts after the first, at 5, and arrives at 8."""
    own = [
        ["run 0F0", "run 0F1", "send 0F0 to 1 and send 0F1 to 1", "receive 1B0 from 1", "run 0B0", "receive 1B1 from 1", "run 0B1"],
        ["receive 0F0 from 0 and receive 0F1 from 0", "run 1F0", "run 1F1", "run 1B0", "send 1B0 to 0", "run 1B1", "send 1B1 to 0"],
    ]
    timeline = simulate(TWO, Costs(forward=1, backward=2, p2p=3), messages=own)
    assert timeline.start.tolist() == [0, 1, 15, 20, 8, 9, 10, 15]


@in_turn(
    "messages, code, words",
    [
        ("in order", "unknown-name", "ordered"),
        (None, "not-a-list", "'free', 'ordered'"),
        ([None, []], "not-a-list", "'free', 'ordered'"),
        (OWN[:1], "wrong-length", "1 list"),
        ([["run"], OWN[1]], "not-an-action", "'run'"),
        ([OWN[0][1:], OWN[1]], "not-made-yet", "before 'run 0F0'"),
        ([OWN[0][:-1], OWN[1]], "missing-action", "'run 0B0'"),
        ([OWN[0][:1] + OWN[0][2:], OWN[1]], "missing-action", "'send 0F0 to 1'"),
        ([OWN[0], OWN[1][:-1]], "missing-action", "'send 1B0 to 0'"),
        ([["run 0B0", *OWN[0]], OWN[1]], "another-order", "0F0"),
        ([[*OWN[0], "run 0B0"], OWN[1]], "another-order", "no further operation"),
        ([OWN[0], OWN[1][1:]], "before-its-input", "'receive 0F0 from 0'"),
        ([OWN[0], [*OWN[1], "send 1B0 to 0"]], "sent-twice", "'send 1B0 to 0'"),
        ([OWN[0], [*OWN[1], "send 1F0 to 0"]], "nobody-needs-it", "'send 1F0 to 0'"),
        ([OWN[0], [*OWN[1], "send 1B0 to 1"]], "nobody-needs-it", "'send 1B0 to 1'"),
    ],
)
def test_a_list_with_a_fault_is_refused(messages: Any, code: str, words: str) -> None:
    with refusal(code, words):
        simulate(ONE, Costs(forward=1, backward=2), messages=messages)


def test_lists_belong_to_a_schedule_without_pairs() -> None:
    for schedule, code in ((build("dualpipe", 2, 4), "overlapped-pairs"), (replicate(ONE, 2), "not-a-schedule"), (None, "not-a-schedule")):
        with refusal(code):
            ordered_actions(schedule)  # type: ignore[arg-type]


def test_the_oracle_of_blocking_tells_it_from_order() -> None:
    """A planted fault: the lists of torch, if each device also waited for its messages, would take a third longer."""
    schedule, setting = build("1f1b", 4, 8), uniform(4, 1.0, 2.0)
    costs, lists = setting.costs(), ordered_actions(schedule)
    assert [simulate(schedule, costs, messages=each).makespan for each in ("free", "ordered", lists)] == [33, 33, 45]
