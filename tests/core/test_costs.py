"""Test Costs: one table of times, per device and per setting."""

import copy
import pickle

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from strategies import decimals, settings_of, shares

from hybridlab import Costs, Kind, build, hybrid_step, simulate


@given(forward=decimals, backward=decimals, share=shares, chunks=st.integers(1, 8))
def test_a_full_backward_is_its_input_gradient_and_its_weight_gradient(forward: float, backward: float, share: float, chunks: int) -> None:
    costs = Costs(forward=forward, backward=backward, weight_share=share)
    times = {kind: costs.duration(kind, device=0, chunks=chunks) for kind in Kind}
    assert times[Kind.F] == forward / chunks
    assert times[Kind.B] == backward / chunks
    assert times[Kind.I] + times[Kind.W] == pytest.approx(times[Kind.B], rel=1e-15, abs=0)
    assert times[Kind.W] == pytest.approx(share * backward / chunks, rel=1e-15, abs=0)
    assert min(times.values()) >= 0


def test_times_are_one_for_all_devices_or_one_for_each() -> None:
    costs = Costs(forward=10, backward=[20, 30], weight_share=[0.5, 0.1])
    assert costs.devices == 2
    assert costs.batch == ()
    assert [[costs.duration(kind, device) for device in (0, 1)] for kind in "FBIW"] == [
        [10, 10],
        [20, 30],
        [10, 27],
        [10, 3],
    ]
    same = Costs(forward=1, backward=2)
    assert same.devices is None
    assert same.duration("F", device=10**6) == 1.0
    with refusal("out-of-range", "0 to 1", 2):
        costs.duration("F", 2)


@in_turn(
    "arguments, batch, devices",
    [
        ({"forward": 1}, (), None),
        ({"forward": [1]}, (), None),
        ({"forward": [1, 2]}, (), 2),
        ({"forward": [[1, 2]]}, (1,), 2),
        ({"forward": [[1], [2], [3]]}, (3,), None),
        ({"forward": [[1, 2], [2, 3], [3, 4]]}, (3,), 2),
        ({"p2p": [[1], [2], [3]]}, (3,), None),
        ({"p2p": [[1], [2], [3]], "forward": [1, 2]}, (3,), 2),
        ({"p2p": [[[1]], [[2]]], "forward": np.ones((1, 3, 4))}, (2, 3), 4),
        ({"p2p": [[1], [2], [3]], "forward": np.ones((2, 1, 4))}, (2, 3), 4),
        ({"weight_share": np.full((2, 1, 1), 0.5), "p2p": [[1], [2], [3]]}, (2, 3), None),
    ],
)
def test_axes_before_the_devices_are_settings(arguments: dict[str, object], batch: tuple[int, ...], devices: int | None) -> None:
    costs = Costs(**({"forward": 1, "backward": 2} | arguments))
    assert costs.batch == batch
    assert costs.devices == devices
    assert costs.table(devices or 3, chunks=2).shape == (4, devices or 3, *batch)
    assert np.shape(costs.duration("B", 0)) == batch


def test_a_duration_of_a_batch_holds_every_setting() -> None:
    costs = Costs(forward=[[10, 20], [30, 40]], backward=[[1], [2]])
    assert costs.duration("F", 1, chunks=2).tolist() == [10, 20]
    assert costs.duration(Kind.B, 1).tolist() == [1, 2]


def test_slower_devices() -> None:
    costs = Costs(forward=[10, 10], backward=20, weight_share=0.25, p2p=3)
    slow = costs.slower([1], 1.5)
    assert [[slow.duration(kind, device) for device in (0, 1)] for kind in "FBIW"] == [
        [10, 15],
        [20, 30],
        [15, 22.5],
        [5, 7.5],
    ]
    assert slow.p2p == 3
    assert costs.duration("F", 1) == 10, "the costs themselves stay as they are"
    assert Costs(forward=1, backward=2).slower([0, 2], 2, of=3).forward.tolist() == [2, 1, 2]
    assert costs.slower([], 9).forward.tolist() == [10, 10]
    assert costs.slower([0, 0], 2).forward.tolist() == [20, 10], "a device named twice is not slowed twice"
    batch = Costs(forward=[[1], [2]], backward=2).slower([1], 3, of=2)
    assert batch.forward.tolist() == [[1, 3], [2, 6]]


def test_longer_costs_stretch_a_whole_run() -> None:
    rows = {"forward": [1, 2, 3], "backward": [4, 5, 6]}
    for costs in (Costs(**rows, p2p=0.5), Costs(**rows, p2p_between=[0.5, 2])):
        once, twice = (simulate(build("1f1b", 3, 4), each) for each in (costs, costs.longer(2)))
        assert twice.start.tolist() == (2 * once.start).tolist()
        assert twice.end.tolist() == (2 * once.end).tolist()


@examples(30)
@given(values=st.lists(decimals, min_size=2, max_size=5))
def test_costs_keep_copies_that_nobody_can_change(values: list[float]) -> None:
    array = np.array(values)
    costs = Costs(forward=array, backward=array, weight_share=0.5, p2p=1)
    array += 1
    assert costs.forward.tolist() == values
    for changed in (costs, costs.slower([0], 2)):
        for field in (changed.forward, changed.backward, changed.weight_gradient, changed.p2p):
            with pytest.raises(ValueError, match="read-only"):
                field[...] = 0
            with pytest.raises(ValueError, match="WRITEABLE"):
                field.setflags(write=True)


@in_turn("chunks, code", [(0, "too-small"), (-1, "too-small"), (None, "not-a-whole-number"), (1.5, "not-a-whole-number")])
def test_numbers_refuse_what_table_refuses(chunks: object, code: str) -> None:
    for method in (Costs(forward=1, backward=4).numbers, lambda each: Costs(forward=1, backward=4).table(2, each)):
        with refusal(code, "chunks"):
            method(chunks)


@in_turn(
    "forward, backward, code",
    [
        ("", [1], "not-a-number"),
        ([1], None, "not-a-number"),
        ([float("nan")], [1], "not-finite"),
        ([1], [-1], "negative"),
        ([1, 2], [1, 2, 3], "does-not-fit"),
    ],
)
def test_times_of_pairs_are_checked(forward: object, backward: object, code: str) -> None:
    with refusal(code):
        Costs(forward=1, backward=4).together(forward, backward)  # type: ignore[arg-type]


@in_turn("kind", ["f", "X", "", "FB", None, 0, [], ["F"]])
def test_there_are_four_kinds_of_operation(kind: object) -> None:
    with refusal("unknown-operation", "F, B, I or W"):
        Costs(forward=1, backward=2).duration(kind, 0)  # type: ignore[arg-type]


def test_whole_numbers_of_any_type_are_times() -> None:
    for dtype in (np.int8, np.uint64, np.int64, np.float16, np.float32, np.longdouble):
        costs = Costs(forward=np.array([1, 2], dtype=dtype), backward=2)
        assert costs.forward.dtype == np.float64
        assert costs.forward.tolist() == [1, 2]


def test_a_latency_has_settings_on_the_axes_before_its_last() -> None:
    forward = [[1], [2], [3]]
    assert Costs(forward=forward, backward=2, p2p=[[4], [5], [6]]).p2p.tolist() == [[4], [5], [6]]
    assert Costs(forward=1, backward=2, p2p=[4]).batch == ()
    assert Costs(forward=forward, backward=2, p2p=[[[4]], [[5]]]).batch == (2, 3), "each latency with each forward"


@in_turn("values", [[1, 5, 1], (0, 1), np.array([1.0, 1.0, 1.0]), [[1, 5, 1]]])
def test_several_latencies_in_a_row_have_two_readings_and_are_refused_with_both(values: object) -> None:
    """Three latencies were once read as three settings without notice.

    The caller had meant one latency for each link.
    """
    with refusal("ambiguous", "p2p_between=[1, 5, 1]", "p2p=[[1], [5], [1]]"):
        Costs(forward=1, backward=2, p2p=values)
    assert Costs(forward=1, backward=2, p2p_between=[1, 5, 1]).devices == 4
    assert Costs(forward=1, backward=2, p2p=[[1], [5], [1]]).batch == (3,)


def test_overlaps_in_a_row_are_refused_too() -> None:
    with refusal("ambiguous", "overlap", "[[0], [0.5], [1]]"):
        Costs(forward=1, backward=2, overlap=[0, 0.5, 1])


# Equal costs


def test_costs_are_equal_if_all_their_values_are() -> None:
    values: dict[str, object] = {"forward": [1, 2], "backward": 3, "weight_share": 0.25, "p2p": 1, "overlap": 0.5, "unit": "s"}
    costs = Costs(**values)  # type: ignore[arg-type]
    assert costs == Costs(**values) == copy.deepcopy(costs) == pickle.loads(pickle.dumps(costs))  # type: ignore[arg-type]  # noqa: S301
    assert hash(costs) == hash(Costs(**values))  # type: ignore[arg-type]
    changes: list[dict[str, object]] = [
        {"forward": [1, 3]}, {"forward": [1, 2, 2]}, {"forward": [[1, 2]]}, {"backward": 4}, {"weight_share": 0.5}, {"p2p": 2},
        {"overlap": 0}, {"unit": "ms"}, {"unit": None}, {"p2p": 0}, {"p2p": 0, "p2p_between": [1]},
    ]  # fmt: skip
    others = [Costs(**values | change) for change in changes]  # type: ignore[arg-type]
    assert all(costs != other for other in others)
    assert len({costs, *others}) == 1 + len(others)


@in_turn(
    "one, other",
    [
        ({"forward": [1, 2], "backward": 3}, {"forward": [1, 2], "backward": [3, 3]}),
        ({"forward": [1, 2], "weight_share": 0.5}, {"forward": [1, 2], "weight_share": [0.5, 0.5]}),
        ({"forward": [[1], [2]]}, {"forward": [[1], [2]], "p2p": [[0], [0]]}),
        ({"forward": [[1, 1], [2, 2]], "backward": [2, 3]}, {"forward": [[1], [2]], "backward": [[2, 3], [2, 3]]}),
        (
            {"forward": [[1, 2]] * 3, "per": ("stage", "microbatch"), "weight_share": [[0.5]] * 3},
            {"forward": [[1, 2]] * 3, "per": ("stage", "microbatch")},
        ),
        ({"forward": [1.0], "unit": "s"}, {"forward": 1, "unit": "s"}),
    ],
)
def test_costs_are_equal_if_they_give_the_same_times(one: dict[str, object], other: dict[str, object]) -> None:
    first, second = Costs(**({"backward": 2} | one)), Costs(**({"backward": 2} | other))  # type: ignore[arg-type]
    assert first == second
    assert hash(first) == hash(second)


@in_turn(
    "one, other",
    [
        ({"forward": 1}, {"forward": [1, 1]}),  # for any number of devices, and for two
        ({"forward": [1, 1]}, {"forward": [1, 1, 1]}),
        ({"forward": [1, 1]}, {"forward": [[1, 1]]}),
        ({"forward": [1, 1]}, {"forward": [1, 1], "per": "stage"}),
        ({"forward": [1, 1], "per": "microbatch"}, {"forward": [1, 1]}),
        ({"forward": [[1], [2]], "per": ("device", "microbatch")}, {"forward": [1, 2], "per": ("device", "microbatch")}),
    ],
)
def test_costs_for_other_devices_differ_even_if_their_numbers_agree(one: dict[str, object], other: dict[str, object]) -> None:
    assert Costs(backward=1, **one) != Costs(backward=1, **other)  # type: ignore[arg-type]


@in_turn("other", [None, 1, "costs", (1, 2), object()])
def test_costs_are_equal_to_nothing_else(other: object) -> None:
    assert Costs(forward=1, backward=2) != other
    assert Costs(forward=1, backward=2).__eq__(other) is NotImplemented


def test_zeros_of_both_signs_are_equal_and_have_one_hash() -> None:
    plus, minus = (Costs(forward=1, backward=2, p2p=zero) for zero in (0.0, -0.0))
    assert plus == minus
    assert hash(plus) == hash(minus)


@given(devices=st.integers(1, 4), data=st.data())
def test_what_is_made_from_equal_costs_is_equal(devices: int, data: st.DataObject) -> None:
    setting = data.draw(settings_of(devices))
    one, other = setting.costs(), setting.costs()
    assert one == other
    assert hash(one) == hash(other)
    schedule = build("1f1b", devices, 3)
    steps = [hybrid_step(schedule, each, 2, ring_step=1, optimiser=2) for each in (one, other)]
    assert steps[0] == steps[1]
    assert len({steps[0].timeline, steps[1].timeline}) == 1
    later = simulate(schedule, one.slower([0], 2, of=devices))
    assert (later == simulate(schedule, one)) == np.array_equal(later.end, simulate(schedule, one).end)


def test_every_time_has_its_name() -> None:
    with pytest.raises(TypeError):
        Costs(1, 2)  # type: ignore[misc,call-arg]
