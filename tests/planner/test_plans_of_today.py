"""Test what models and plans of today add: by hand from the papers, and against the clock. Measured runs are in test_measured_runs.py."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st

from hybridlab import A100_80GB, H100, Costs, Plan, Transformer, build, predict, simulate
from hybridlab.collectives import measured_time
from hybridlab.hardware import GB200, gigabits
from hybridlab.model import Experts, Latent
from hybridlab.planner import layer_seconds, memory
from hybridlab.planner.iteration import IterationTime

LLAMA_70B = Transformer(80, 8192, 64, 128256, 8192, kv_heads=8, ffn=28672, gated=True, tied=False)
MIXTRAL = Transformer(32, 4096, 32, 32000, 4096, kv_heads=8, gated=True, tied=False, experts=Experts(8, 2, 14336))
TODAY = Plan.modern(4, 4, 2, 1, 128, chunks=5, context=2)


def of(model: Transformer, plan: Plan, profile: Any = H100, **how: Any) -> IterationTime:
    return predict(model, plan, profile, must_fit=False, **how)


def test_a_layer_of_llama_by_hand() -> None:
    """Products of weights and tokens, and half of the scores: forward once, backward twice, and 2.5 times with fused attention."""
    alone = Transformer(1, 8192, 64, 1, 8192, kv_heads=8, ffn=28672, gated=True)
    tokens, rate = 8192, 0.5 * H100.matmul_flops
    weights = 8192 * (64 + 2 * 8) * 128 + 8192 * 8192 + 3 * 8192 * 28672
    forward, scores = 2 * tokens * weights, 2 * 2 * tokens * 8192 * 8192 / 2
    time = of(alone, Plan.modern(1, 1, 1, 1, 1), efficiency=0.5)
    logits = 6 * tokens * 8192 * 1
    assert time.matmul == pytest.approx((3 * forward + 3.5 * scores + logits) / rate, rel=1e-9)
    # bytes a token: two normalisations, two residuals, rotated queries and keys, SwiGLU, query, key, value and output of the attention
    h, kv, f = 8192, 8 * 128, 28672
    ahead = 2 * 4 * h + 2 * 6 * h + 4 * (h + kv) + 6 * f + 2 * (2 * h + 2 * kv)
    back = 2 * 10 * h + 2 * 6 * h + 4 * (h + kv) + 10 * f + 4 * (2 * h + 2 * kv)
    # each of four products reads its input and its weights and writes its output, in three passes
    numbers = tokens * (h + h + 2 * kv) + tokens * 2 * h + tokens * (h + 2 * f) + tokens * (f + h) + weights
    head = 3 * 2 * (tokens * 8192 + tokens + 8192) + 32 * tokens
    assert time.memory_traffic == pytest.approx((tokens * (ahead + back) + 3 * 2 * numbers + head) / (0.9 * 3.35e12), rel=1e-9)


def test_activations_of_a_layer_of_llama_by_hand() -> None:
    """Inputs of what needs them in its backward: normalisations, products, SwiGLU, attention; and a sum for each row of scores."""
    model = Transformer(1, 8192, 64, 128, 8192, kv_heads=8, ffn=28672, gated=True)
    plan = Plan.modern(1, 1, 1, 1, 1)
    each = 2 * (2 * 8192) + 2 * (2 * 8192) + 2 * (8192 + 2 * 1024) + 2 * 8192 + 4 * 64 + 2 * 3 * 28672
    assert memory(model, plan).activations == pytest.approx(8192 * each, rel=1e-12)
    fewer = memory(model, replace(plan, recompute=("norm", "activation"))).activations
    assert fewer == pytest.approx(8192 * (each - 2 * (2 * 8192) - 2 * 28672), rel=1e-12)


@in_turn("zero, gigabytes", [(0, 120), (1, 31.4), (2, 16.6), (3, 1.88)])
def test_zero_divides_the_states_as_in_its_figure_1(zero: int, gigabytes: float) -> None:
    """Rajbhandari et al., arXiv 1910.02054, Figure 1: 7.5 billion parameters on 64 GPUs."""
    model = Transformer(36, 4096, 32)
    states = memory(model, Plan(1, 1, 64, 1, 64, zero=zero)).states
    assert states / model.parameters * 7.5 == pytest.approx(gigabytes, rel=3e-3)


@given(st.one_of(*(st.lists(st.integers(*ends), min_size=2, max_size=6) for ends in ((0, 5), (6, 8)))).filter(sum), st.integers(6, 12))
def test_unequal_stages_take_the_time_of_the_clock(layers: list[int], microbatches: int) -> None:
    """The clock gets the seconds of each stage; the last one has the logits, too.

    With a slower stage before it, a pipeline hides forwards of its warm-up: then the prediction is too long by less than them.
    """
    model = Transformer(sum(layers), 4096, 32, 32000, 2048, gated=True, tied=False)
    plan = Plan.modern(1, len(layers), 1, 1, microbatches, stage_layers=tuple(layers), overlap="none")
    time, a_layer = of(model, plan), sum(layer_seconds(model, plan, H100))
    head = of(Transformer(1, 4096, 32, 32000, 2048, gated=True, tied=False), Plan.modern(1, 1, 1, 1, 1))
    logits = head.matmul + head.memory_traffic - a_layer
    seconds = np.array([count * a_layer + logits * (place == len(layers) - 1) for place, count in enumerate(layers)])
    costs = Costs(forward=seconds / 3 + 1e-12, backward=seconds * 2 / 3 + 1e-12)  # a stage without layers takes next to no time
    clock = float(simulate(build("1f1b", len(layers), microbatches), costs).makespan)
    ours = time.matmul + time.memory_traffic + time.bubble - (len(layers) - 1) * time.point_to_point / microbatches
    assert clock <= ours * (1 + 1e-6)
    assert ours - clock < (len(layers) - 1) * seconds.max() / 3
    if seconds.argmax() == len(layers) - 1:
        assert ours == pytest.approx(clock, rel=1e-6)


def test_exchanges_in_pieces_and_beside_gradients_of_weights() -> None:
    """Korthikanti et al., sec. 4.2.2: in the backward 0 of 2 are exposed, and 1 with sequence parallelism; in t pieces, 1/t."""
    message = 2 * 8192 / 2 * 8192
    ring = measured_time(4, message / 1.5)  # NVLink of an H100 is 1.5 times as fast
    head = {"none": 1.0, "backward": 1.0, "all": 1 / 4}
    for overlap, together, apart in (("none", 4.0, 4.0), ("backward", 3.0, 2.0), ("all", 1.0, 1.0)):
        for split, exposed in ((True, together), (False, apart)):
            time = of(LLAMA_70B, replace(TODAY, overlap=overlap, sequence_parallel=split))
            assert time.tensor_parallel == pytest.approx(64 * (80 / 4 * exposed + head[overlap]) * ring, rel=1e-9)


def test_fp8_doubles_the_rate_of_products_with_weights_and_moves_more() -> None:
    wide, narrow = of(LLAMA_70B, TODAY), of(LLAMA_70B, replace(TODAY, precision="fp8"))
    weights = 8192 * (64 + 2 * 8) * 128 + 8192 * 8192 + 3 * 8192 * 28672
    tokens = 128 / 2 * 80 / 4 * 8192 / 2 / 4  # on one GPU, in a step
    rate = H100.efficiency or 0
    saved = 6 * weights * tokens / rate * (1 / H100.matmul_flops - 1 / (H100.fp8_flops or 0))
    assert wide.matmul - narrow.matmul == pytest.approx(saved, rel=1e-9)
    assert narrow.memory_traffic > wide.memory_traffic
    assert narrow.seconds < wide.seconds


def test_experts_divide_their_weights_and_send_tokens_by_hand() -> None:
    """A token goes to 2 of 8 experts. With 8 GPUs in a node and experts on 16, half of all copies cross to the other node."""
    plan = Plan.modern(1, 1, 16, 1, 16, expert=8, overlap="none")
    one, both = (memory(MIXTRAL, replace(plan, expert=ranks, zero=0)).states for ranks in (1, 8))
    assert (one - both) / 18 == pytest.approx(32 * 3 * 4096 * 14336 * 8 * (1 - 1 / 8), rel=1e-12)
    attention, expert = 4096 * (32 + 2 * 8) * 128 + 4096 * 4096, 3 * 4096 * 14336
    products = 2 * 4096 * (attention + 8 * 4096 + 2 * expert)  # with the router
    scores, logits = 2 * 2 * 4096 * 4096 * 4096 / 2, 6 * 4096 * 4096 * 32000
    rate = (H100.efficiency or 0) * H100.matmul_flops
    assert of(MIXTRAL, plan).matmul == pytest.approx((32 * (3 * products + 3.5 * scores) + logits) / rate, rel=1e-9)
    message = 2 * 4096 * 4096  # a microbatch in 16 bits
    inside = of(MIXTRAL, plan).experts
    assert inside == pytest.approx(32 * 4 * 2 * message * 7 / 8 / H100.nvlink, rel=1e-9)
    sixteen = replace(MIXTRAL, experts=Experts(16, 2, 14336))
    wide = replace(plan, expert=16)
    port = 0.9 * gigabits(400)
    assert of(sixteen, wide).experts == pytest.approx(32 * 4 * 2 * message / 2 / port, rel=1e-9)
    # two nodes: the copies of a token are on 2 x (1 - 1/4) of them on average, and half of those nodes are another one
    assert of(sixteen, replace(wide, dispatch="by node")).experts == pytest.approx(32 * 4 * 1.5 * message / 2 / port, rel=1e-9)
    assert of(sixteen, wide, GB200).experts < of(sixteen, wide).experts, "72 GPUs have one switch"
    assert of(sixteen, replace(wide, overlap="all")).experts < of(sixteen, wide).experts


def test_keys_and_values_go_round_beside_the_attention() -> None:
    """Short samples have too few scores to hide the messages. Each of c GPUs sends its keys and values c - 1 times, and thrice in all."""
    short = replace(LLAMA_70B, layers=1, sequence=64)
    plan = Plan.modern(1, 1, 1, 1, 1, context=8)
    sent = 3 * 7 * 2 * (64 / 8) * 2 * 8 * 128 / H100.nvlink
    scores = 3.5 * (2 * 2 * 64 / 8 * 64 * 8192 / 2) / ((H100.efficiency or 0) * H100.matmul_flops)
    assert of(short, plan).gathers == pytest.approx(sent - scores, rel=1e-6)
    assert of(LLAMA_70B, TODAY).gathers == 0


def test_weights_that_replicas_divide_arrive_beside_computation() -> None:
    """FSDP: a layer takes the longer of computing and gathering its weights, twice, with its gradients once."""
    plan = Plan.modern(1, 1, 64, 1, 64, zero=3)
    assert of(LLAMA_70B, plan).gathers == 0
    slow = replace(H100, network=gigabits(1))
    computed = of(LLAMA_70B, plan).matmul + of(LLAMA_70B, plan).memory_traffic
    weights = 8192 * (64 + 2 * 8) * 128 + 8192 * 8192 + 3 * 8192 * 28672 + 2 * 8192
    sent = 80 * weights * (2 + 2 + 4) * 63 / 64 / (0.9 * 8 * gigabits(1))
    time = of(LLAMA_70B, plan, slow)
    assert time.gathers + computed == pytest.approx(sent, rel=0.03)  # messages also have a latency


@in_turn("recompute, seconds", [("none", 2.6e-3), ("full", 2.6e-3 * 4 / 3)])
def test_a_small_layer_takes_the_time_to_start_its_kernels(recompute: str, seconds: float) -> None:
    small = Transformer(24, 256, 4, 512, 128)
    eager, fused = (Plan(1, 1, 1, 1, 1, recompute=recompute, kernels=kernels) for kernels in ("eager", "fused"))
    assert sum(layer_seconds(small, eager, A100_80GB)) == pytest.approx(seconds)
    assert of(small, fused).host == 0 < of(small, eager).host


plans = st.builds(
    lambda tensor, pipeline, data, context, size, **words: Plan(
        tensor, pipeline, data, size, size * data * pipeline * 2, context=context, attention="fused", **words
    ),
    *[st.sampled_from([1, 2, 4])] * 4,
    st.sampled_from([1, 2]),
    recompute=st.sampled_from(["none", "selective", "full", ("norm", "activation")]),
    sequence_parallel=st.booleans(),
    kernels=st.sampled_from(["eager", "fused"]),
    precision=st.sampled_from(["bf16", "fp8"]),
    gradients=st.sampled_from(["bf16", "fp32"]),
)
LATENT = Transformer(8, 1024, 16, 32000, 1024, gated=True, experts=Experts(16, 4, 512, 1, 2), latent=Latent(384, 128, 16, 32, 32))
models = st.sampled_from([replace(LLAMA_70B, layers=8), replace(MIXTRAL, layers=8), LATENT, Transformer(8, 1024, 16)])


@given(model=models, plan=plans)
def test_what_saves_time_or_memory_never_costs_it(model: Transformer, plan: Plan) -> None:
    ways = {overlap: of(model, replace(plan, overlap=overlap)) for overlap in ("none", "backward", "all")}
    assert ways["all"].seconds <= ways["backward"].seconds * (1 + 1e-12) <= ways["none"].seconds * (1 + 2e-12)
    for time in ways.values():
        assert sum(time.parts.values()) == pytest.approx(time.seconds, rel=1e-12)
        assert all(part >= 0 for part in time.parts.values())
    if plan.copies > 1:
        states = [memory(model, replace(plan, zero=zero)).states for zero in range(4)]
        assert states == sorted(states, reverse=True)
    assert of(model, replace(plan, kernels="fused")).seconds <= of(model, replace(plan, kernels="eager")).seconds
    if model.experts and plan.copies > 1:
        apart = memory(model, replace(plan, expert=2)).states
        assert apart < memory(model, plan).states
