"""Test further properties of the schedules' rules: slots that prove an order, and schedules that are special cases of others."""

from itertools import product

import numpy as np
from cases import in_turn

from hybridlab import REGISTRY, Costs, build, simulate

SIZES = list(product((1, 2, 3, 4, 7), (1, 2, 3, 5, 7, 8, 14, 21)))


@in_turn("name", REGISTRY)
def test_the_slots_of_a_rule_prove_its_order(name: str) -> None:
    """If slots did not prove the order, ``build`` would check the operations one by one in Python and compute new slots."""
    family = REGISTRY[name]
    for devices, microbatches in SIZES:
        chunks = family.fewest_chunks + family.chunk_step
        if family.refusal(devices, microbatches, chunks) is None:
            slots = family.rule(devices, microbatches, chunks)
            assert np.array_equal(np.sort(build(name, devices, microbatches, chunks).slot), np.sort(slots[slots >= 0]))


@in_turn("one, of", [("eager-1f1b", "interleaved"), ("zb-h1", "interleaved-zb")])
def test_one_chunk_of_an_interleaved_schedule(one: str, of: str) -> None:
    for size in SIZES:
        assert np.array_equal(REGISTRY[one].rule(*size, 1), REGISTRY[of].rule(*size, 1))


@in_turn("split, whole", [("zb-h1", "1f1b"), ("zb-h2", "eager-1f1b")])
def test_forwards_and_input_gradients_stand_as_where_the_backward_is_whole(split: str, whole: str) -> None:
    for size in SIZES:
        orders = [[f"{op.stage}{op.kind}{op.microbatch}" for op in order if op.kind != "W"] for order in build(split, *size).orders]
        assert orders == [[str(op).replace("B", "I") for op in order] for order in build(whole, *size).orders]


def test_the_way_back_of_looped_bfs_is_the_mirror_image_of_the_way_there() -> None:
    for size in SIZES:
        for order in build("looped-bfs", *size, 3).orders:
            half = len(order) // 2
            assert [str(op).replace("B", "F") for op in reversed(order[half:])] == [str(op) for op in order[:half]]


@in_turn("devices", range(1, 8))
def test_zb_v_starts_every_operation_in_its_slot_where_all_take_equally_long(devices: int) -> None:
    for microbatches in (2 * devices - 1, 2 * devices, 5 * devices):
        schedule = build("zb-v", devices, microbatches)
        timeline = simulate(schedule, Costs(forward=2, backward=4))
        assert np.array_equal(timeline.start, schedule.slot)


@in_turn("devices", range(2, 8))
def test_few_microbatches_run_zb_v_in_the_order_of_more(devices: int) -> None:
    most = build("zb-v", devices, 2 * devices - 1).orders
    for microbatches in range(1, 2 * devices - 1):
        kept = tuple(tuple(op for op in order if op.microbatch < microbatches) for order in most)
        assert build("zb-v", devices, microbatches).orders == kept


GOLDEN = {  # schedule, devices, microbatches: the order in the paper, written from its rule or its figure
    # 2(K-1-d) forwards of warm-up
    ("eager-1f1b", 2, 4): "device 0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\ndevice 1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3",
    # the same, and the weight gradient 2d microbatches late
    ("zb-h2", 2, 4): (
        "device 0: 0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\ndevice 1: 1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3"
    ),
}


@in_turn("size", GOLDEN)
def test_orders_are_those_of_the_papers(size: tuple[str, int, int]) -> None:
    """These schedules are missing from the reference orders in tests/data."""
    assert str(build(*size)) == GOLDEN[size]
