"""Costs: one table of times, per device and per setting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from strategies import decimals, shares

from hybridlab import Costs, HybridLabError, Kind


@given(forward=decimals, backward=decimals, share=shares, chunks=st.integers(1, 8))
def test_a_full_backward_is_its_input_gradient_and_its_weight_gradient(forward: float, backward: float, share: float, chunks: int) -> None:
    costs = Costs.per_device(forward, backward, share)
    times = {kind: costs.duration(kind, device=0, chunks=chunks) for kind in Kind}
    assert times[Kind.F] == forward / chunks
    assert times[Kind.B] == backward / chunks
    assert times[Kind.I] + times[Kind.W] == pytest.approx(times[Kind.B], rel=1e-15, abs=0)
    assert times[Kind.W] == pytest.approx(share * backward / chunks, rel=1e-15, abs=0)
    assert min(times.values()) >= 0


def test_times_are_one_for_all_devices_or_one_for_each() -> None:
    costs = Costs.per_device(forward=10, backward=[20, 30], weight_share=[0.5, 0.1])
    assert costs.devices == 2
    assert costs.batch == ()
    assert [[costs.duration(kind, device) for device in (0, 1)] for kind in "FBIW"] == [
        [10, 10],
        [20, 30],
        [10, 27],
        [10, 3],
    ]
    same = Costs.per_device(1, 2)
    assert same.devices is None
    assert same.duration("F", device=10**6) == 1.0
    with pytest.raises(HybridLabError, match="the costs are for devices 0 to 1, not 2"):
        costs.duration("F", 2)


@pytest.mark.parametrize(
    ("arguments", "batch", "devices"),
    [
        ({"forward": 1}, (), None),
        ({"forward": [1]}, (), None),
        ({"forward": [1, 2]}, (), 2),
        ({"forward": [[1, 2]]}, (1,), 2),
        ({"forward": [[1], [2], [3]]}, (3,), None),
        ({"forward": [[1, 2], [2, 3], [3, 4]]}, (3,), 2),
        ({"p2p": [1, 2, 3]}, (3,), None),
        ({"p2p": [1, 2, 3], "forward": [1, 2]}, (3,), 2),
        ({"p2p": [[1], [2]], "forward": np.ones((1, 3, 4))}, (2, 3), 4),
        ({"p2p": [1, 2, 3], "forward": np.ones((2, 1, 4))}, (2, 3), 4),
        ({"weight_share": np.full((2, 1, 1), 0.5), "p2p": [1, 2, 3]}, (2, 3), None),
    ],
)
def test_axes_before_the_devices_are_settings(arguments: dict[str, object], batch: tuple[int, ...], devices: int | None) -> None:
    costs = Costs.per_device(**({"forward": 1, "backward": 2} | arguments))
    assert costs.batch == batch
    assert costs.devices == devices
    assert costs.table(devices or 3, chunks=2).shape == (4, devices or 3, *batch)
    assert np.shape(costs.duration("B", 0)) == batch


def test_a_duration_of_a_batch_holds_every_setting() -> None:
    costs = Costs.per_device(forward=[[10, 20], [30, 40]], backward=[[1], [2]])
    assert costs.duration("F", 1, chunks=2).tolist() == [10, 20]
    assert costs.duration(Kind.B, 1).tolist() == [1, 2]


def test_slower_devices() -> None:
    costs = Costs.per_device(forward=[10, 10], backward=20, weight_share=0.25, p2p=3)
    slow = costs.slower([1], 1.5)
    assert [[slow.duration(kind, device) for device in (0, 1)] for kind in "FBIW"] == [
        [10, 15],
        [20, 30],
        [15, 22.5],
        [5, 7.5],
    ]
    assert slow.p2p == 3
    assert costs.duration("F", 1) == 10, "the costs themselves stay as they are"
    assert Costs.per_device(1, 2).slower([0, 2], 2, of=3).forward.tolist() == [2, 1, 2]
    assert costs.slower([], 9).forward.tolist() == [10, 10]
    assert costs.slower([0, 0], 2).forward.tolist() == [20, 10], "a device named twice is not slowed twice"
    batch = Costs.per_device(forward=[[1], [2]], backward=2).slower([1], 3, of=2)
    assert batch.forward.tolist() == [[1, 3], [2, 6]]


@examples(30)
@given(values=st.lists(decimals, min_size=2, max_size=5))
def test_costs_keep_copies_that_nobody_can_change(values: list[float]) -> None:
    array = np.array(values)
    costs = Costs.per_device(array, array, 0.5, p2p=1)
    array += 1
    assert costs.forward.tolist() == values
    for changed in (costs, costs.slower([0], 2)):
        for field in (changed.forward, changed.backward, changed.weight_gradient, changed.p2p):
            with pytest.raises(ValueError, match="read-only"):
                field[...] = 0


@pytest.mark.parametrize("kind", ["f", "X", "", "FB", None, 0, [], ["F"]])
def test_there_are_four_kinds_of_operation(kind: object) -> None:
    with pytest.raises(HybridLabError, match="is no kind of operation: use F, B, I or W"):
        Costs.per_device(1, 2).duration(kind, 0)  # type: ignore[arg-type]


def test_whole_numbers_of_any_type_are_times() -> None:
    for dtype in (np.int8, np.uint64, np.int64, np.float16, np.float32, np.longdouble):
        costs = Costs.per_device(np.array([1, 2], dtype=dtype), 2)
        assert costs.forward.dtype == np.float64
        assert costs.forward.tolist() == [1, 2]


def test_costs_made_without_per_device_are_checked_too() -> None:
    with pytest.raises(HybridLabError, match="weight gradient is a part of the backward"):
        Costs([1], [2], [3], 0)  # type: ignore[arg-type]
    with pytest.raises(HybridLabError, match="p2p must be finite"):
        Costs([1], [2], [1], float("nan"))  # type: ignore[arg-type]
    with pytest.raises(HybridLabError, match="last axis is the devices"):
        Costs([1, 2, 3], [2, 2], [1], 0)  # type: ignore[arg-type]


def test_a_latency_may_be_written_with_an_axis_for_the_devices() -> None:
    forward = [[1], [2], [3]]
    for p2p in ([4, 5, 6], [[4], [5], [6]]):
        assert Costs.per_device(forward, 2, p2p=p2p).p2p.tolist() == [4, 5, 6]
    assert Costs.per_device(1, 2, p2p=[4]).batch == (1,)
    assert Costs.per_device(forward, 2, p2p=[[4], [5]]).batch == (2, 3), "each latency with each forward"
