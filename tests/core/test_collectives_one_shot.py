"""Test the one-shot all-reduce: its results are compared with numpy's mean, its messages with counted ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from ring_checks import FORMATS, gradients, rng

from hybridlab import FP16, HybridLabError, WireFormat
from hybridlab.collectives import one_shot_all_reduce, ring_all_reduce, ring_sum

sizes = {"ranks": st.integers(1, 12), "size": st.integers(0, 40), "seed": st.integers(0, 2**32), "wire": st.sampled_from(FORMATS)}


@pytest.mark.parametrize("all_reduce", [one_shot_all_reduce, ring_all_reduce])
@examples(60)
@given(average=st.booleans(), kind=st.sampled_from([np.float32, np.float64]), large=st.sampled_from([1, 1e4, 2e37]), **sizes)
def test_messages_encoded_together_are_those_one_by_one(
    all_reduce: Callable[..., Any], ranks: int, size: int, seed: int, wire: WireFormat, average: bool, kind: type, large: float
) -> None:
    """Both ways must give the same bits, or the same refusal."""
    values = gradients(ranks, size, seed, kind) * kind(large)

    def outcome_of_one() -> Any:
        try:
            return all_reduce(values, wire, average, rng=rng()).values.tobytes()
        except HybridLabError as why:
            return str(why)

    together = outcome_of_one()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring_sum, "SMALL_CHUNK", 0)
        assert outcome_of_one() == together


@pytest.mark.parametrize("ranks", [2, 3, 8, 13])
def test_fp32_is_numpys_mean_or_sum(ranks: int) -> None:
    values = gradients(ranks, 4099, ranks)
    mean = values.mean(axis=0, dtype=np.float64)
    for average, wanted in ((True, mean), (False, ranks * mean)):
        assert np.linalg.norm(one_shot_all_reduce(values, average=average).values - wanted, axis=1).max() <= 1e-6 * np.linalg.norm(wanted)


def naive_one_shot(values: Any, wire: WireFormat, average: bool) -> tuple[Any, list[int]]:
    """Return the result and the bytes that each rank sends, message by message; ``generator`` is drawn from once for each message."""
    ranks, generator = len(values), rng()
    width, longer = divmod(values.shape[1], ranks)
    sent, result = [0] * ranks, np.empty_like(values)
    start = 0
    for chunk in range(ranks):
        stop = start + width + (1 if chunk < longer else 0)
        if stop == start:
            continue
        owner = ranks - 1 if chunk == 0 else chunk - 1
        total = values[owner, start:stop].copy()
        for sender in [*range(owner + 1, ranks), *range(owner)]:
            packet = wire.encode(values[sender, start:stop], generator)
            sent[sender] += packet.nbytes
            total = total + wire.decode(packet)
        packet = wire.encode(total / ranks if average else total, generator)
        for receiver in range(ranks):
            if receiver != owner:
                sent[owner] += packet.nbytes
            result[receiver, start:stop] = wire.decode(packet)
        start = stop
    return result, sent


@examples(120)
@given(average=st.booleans(), kind=st.sampled_from([np.float32, np.float64]), **{**sizes, "ranks": st.integers(2, 12)})
def test_one_shot_is_the_one_written_message_by_message(
    ranks: int, size: int, seed: int, wire: WireFormat, average: bool, kind: type
) -> None:
    values = gradients(ranks, size, seed, kind)
    ours, (result, sent) = one_shot_all_reduce(values, wire, average, rng=rng()), naive_one_shot(values, wire, average)
    assert ours.values.tobytes() == result.tobytes()
    assert ours.bytes_sent.tolist() == sent


def test_the_owner_does_not_round_its_own_numbers() -> None:
    """Ranks 1 and 2 send zeros, and rank 0 owns chunk 1. So the sum of chunk 1 is exact; FP16 rounds it once, as the finished chunk."""
    values = np.zeros((3, 3))
    values[0, 1] = 1 + 2.0**-11 + 2.0**-20  # FP16 rounds it up; its third is not what FP16 makes of a third of the rounded number
    third = float(np.float16(values[0, 1] / 3))
    assert one_shot_all_reduce(values, FP16).values[2].tolist() == [0, third, 0]


@examples(60)
@given(size=st.integers(0, 40), seed=st.integers(0, 2**32), wire=st.sampled_from(FORMATS), average=st.booleans())
def test_with_2_ranks_one_shot_is_the_ring(size: int, seed: int, wire: WireFormat, average: bool) -> None:
    """Rank 0 sends chunk 0 and rank 1 sends chunk 1; each adds what it receives and sends it back. Messages and bits are equal."""
    values = gradients(2, size, seed) * np.float32(-1) ** (np.arange(size) % 2)
    shot, ring = (run(values, wire, average, rng=rng()) for run in (one_shot_all_reduce, ring_all_reduce))
    assert shot.values.tobytes() == ring.values.tobytes()
    assert shot.payload_bytes.tolist() == ring.payload_bytes.tolist()
    assert shot.scale_bytes.tolist() == ring.scale_bytes.tolist()


def test_one_rank_keeps_its_values_and_sends_nothing() -> None:
    values = gradients(1, 10)
    result = one_shot_all_reduce(values, FP16)
    assert result.values.tobytes() == values.tobytes()
    assert result.bytes_sent.tolist() == [0]
