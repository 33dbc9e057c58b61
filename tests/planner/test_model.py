"""Compare the shape of a transformer with printed parameter counts, equations of papers, and operations listed one by one."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_operations import LOSS, layer_bytes

from hybridlab import Transformer
from hybridlab.course.published.large_runs import BLOOM, RUNS_2022, TABLE_1
from hybridlab.model import RECOMPUTE

DATA = Path(__file__).parents[1] / "data"
GIB = 2**30
PRINTED = (1.7, 3.6, 7.5, 18.4, 39.1, 76.1, 145.6, 310.1, 529.6, 1008.0)

shapes = st.builds(
    lambda heads, width, layers, vocabulary, sequence: Transformer(layers, heads * width, heads, vocabulary, sequence),
    *[st.integers(1, 40)] * 3,
    st.integers(1, 10**5),
    st.integers(1, 4096),
)
sizes = st.sampled_from([1, 2, 3, 4, 8])


def test_the_ten_runs_are_those_of_the_reference() -> None:
    told = json.loads((DATA / "megatron_sc21_table1.json").read_text(encoding="utf-8"))
    rows = [dict(zip(told["columns"], row, strict=True)) for row in told["rows"]]
    assert len(rows) == len(TABLE_1) == 10
    for row, run in zip(rows, TABLE_1, strict=True):
        model, plan = run.model, run.plan
        assert (run.billions, run.tflops_per_gpu) == (row["params_B"], row["tflops_per_gpu"])
        assert (model.heads, model.hidden, model.layers) == (row["heads"], row["hidden"], row["layers"])
        assert (model.vocabulary, model.sequence, plan.recompute) == (told["fixed"]["vocab"], told["fixed"]["seq"], "full")
        assert (plan.tensor, plan.pipeline, plan.data, plan.gpus) == (row["tp"], row["pp"], row["dp"], row["gpus"])
        assert (plan.global_batch, plan.microbatch, plan.chunks) == (row["batch"], row["microbatch_from_script"], row["v_from_script"])
        assert run.seconds * run.tflops_per_gpu * row["gpus"] == pytest.approx(eq_3(model, row["batch"]) / 1e12, rel=1e-12)
        assert run.tflops_per_gpu * row["gpus"] / 1000 == pytest.approx(row["agg_pflops"], rel=0.006)


def eq_2(model: Transformer) -> float:
    layers, h = model.layers, model.hidden
    return 12 * layers * h**2 * (1 + 13 / (12 * h) + (model.vocabulary + model.sequence) / (12 * layers * h))


def eq_3(model: Transformer, batch: int) -> float:
    s, layers, h = model.sequence, model.layers, model.hidden
    return 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + model.vocabulary / (16 * layers * h))


def test_the_runs_of_2022_take_the_operations_without_recomputation_over_their_share_of_the_peak() -> None:
    """Korthikanti et al., abstract: 530 billion parameters on 2,240 A100s, 42.1 % of 312 TFLOP/s, and 54.2 %; appendix A: operations."""
    batch, s, layers, h, words = 2240, 2048, 105, 20480, 51200
    flops = 72 * batch * s * layers * h**2 * (1 + s / (6 * h) + words / (12 * layers * h))
    assert [run.seconds for run in RUNS_2022] == pytest.approx([flops / 2240 / (share * 312e12) for share in (0.421, 0.542)], rel=1e-12)
    assert [(run.plan.recompute, run.plan.sequence_parallel, run.plan.gpus) for run in RUNS_2022] == [
        ("full", False, 2240),
        ("selective", True, 2240),
    ]


def test_a_counted_run_idles_in_its_bubble() -> None:
    """Le Scao et al., arXiv 2211.05100: 8 pipelines of 12 stages share 2,048 samples, 2 in a microbatch; 1,082,990 GPU hours in all."""
    microbatches = 2048 / 8 / 2
    assert BLOOM.microbatches == microbatches
    assert BLOOM.idle_hours == pytest.approx(1_082_990 * 11 / (microbatches + 11), rel=1e-12)


def test_parameters_round_to_the_printed_billions() -> None:
    assert tuple(round(run.model.parameters / 1e9, 1) for run in TABLE_1) == PRINTED


@given(model=shapes)
def test_parameters_are_those_of_every_matrix_and_of_equation_2(model: Transformer) -> None:
    h = model.hidden
    attention, mlp = (h * 3 * h + 3 * h) + (h * h + h), (h * 4 * h + 4 * h) + (4 * h * h + h)
    embeddings = model.vocabulary * h + model.sequence * h
    assert model.parameters == embeddings + model.layers * (attention + mlp + 2 * (h + h))
    assert model.parameters == pytest.approx(eq_2(model), rel=1e-12)


@given(model=shapes, batch=st.integers(1, 5000))
def test_operations_of_a_step(model: Transformer, batch: int) -> None:
    """Full recomputation follows eq. (3) of Korthikanti et al., and no recomputation follows their appendix A.

    Selective recomputation adds the two matrix products that use the attention scores.
    """
    s, layers, h = model.sequence, model.layers, model.hidden
    assert model.flops(batch, "full") == pytest.approx(eq_3(model, batch), rel=1e-12)
    none = 72 * batch * s * layers * h**2 * (1 + s / (6 * h) + model.vocabulary / (12 * layers * h))
    assert model.flops(batch) == pytest.approx(none, rel=1e-12)
    assert model.flops(batch, "selective") == pytest.approx(none + layers * batch * 2 * (2 * s * s * h), rel=1e-12)


@given(model=shapes, batch=sizes, tensor=sizes, recompute=st.sampled_from(RECOMPUTE))
def test_tensor_parallelism_shares_out_the_operations(model: Transformer, batch: int, tensor: int, recompute: str) -> None:
    shared = model.layer_work(batch, tensor, recompute).flops * model.layers + model.head_work(batch, tensor).flops
    assert tensor * shared == pytest.approx(model.flops(batch, recompute), rel=1e-12)


@given(model=shapes, size=sizes, tensor=sizes, recompute=st.sampled_from(RECOMPUTE), split=st.booleans())
def test_bytes_of_a_layer_are_those_of_its_operations(model: Transformer, size: int, tensor: int, recompute: str, split: bool) -> None:
    products, others = layer_bytes(size, model.hidden, model.heads, model.sequence, tensor, recompute, split)
    layer = model.layer_work(size, tensor, recompute, split)
    assert layer.operand_bytes == pytest.approx(products, rel=1e-12)
    assert layer.elementwise_bytes == pytest.approx(others, rel=1e-12)
    assert layer.nbytes == pytest.approx(products + others, rel=1e-12)


@given(model=shapes, size=sizes, tensor=sizes)
def test_bytes_of_the_logits_are_those_of_three_products_and_the_loss(model: Transformer, size: int, tensor: int) -> None:
    tokens, words, h = size * model.sequence, model.vocabulary / tensor, model.hidden
    products = 3 * 2 * (tokens * h + h * words + tokens * words)
    loss = sum(read + written for read, written in LOSS) * tokens * words
    head = model.head_work(size, tensor)
    assert head.operand_bytes == pytest.approx(products, rel=1e-12)
    assert head.elementwise_bytes == pytest.approx(loss, rel=1e-12)
    assert head.flops == pytest.approx(3 * 2 * tokens * h * words, rel=1e-12)


def test_a_layer_adds_up_its_activations_twice_each_way() -> None:
    """In Megatron-LM, there is one all-reduce after the attention and one after the MLP, in forward and in backward.

    On one GPU there is none.
    """
    model = Transformer(layers=4, hidden=64, heads=8)
    for recompute, count in (("none", 4), ("selective", 4), ("full", 6)):
        assert [model.layer_work(1, tensor, recompute).all_reduces for tensor in (1, 2, 8)] == [0, count, count]
    assert [model.head_work(1, tensor).all_reduces for tensor in (1, 2)] == [0, 1]


FIGURE_1 = [
    (Transformer(layers=48, hidden=6144, heads=64), 4, 1, 1, "none", False),
    (Transformer(layers=48, hidden=6144, heads=64), 4, 1, 1, "selective", True),
    (Transformer(layers=96, hidden=12288, heads=96), 1, 8, 3, "none", False),
    (Transformer(layers=96, hidden=12288, heads=96), 1, 8, 3, "selective", True),
]


def test_activation_memory_to_the_last_digit() -> None:
    printed = json.loads((DATA / "activation_memory.json").read_text(encoding="utf-8"))["fig1_GiB_act"]
    found = [model.activation_bytes(size, 8, stages, chunks, again, split) / GIB for model, size, stages, chunks, again, split in FIGURE_1]
    assert found == [value for model in ("22B", "175B") for value in printed[model].values()]


@given(model=shapes, size=sizes, tensor=sizes, pipeline=sizes, chunks=sizes)
def test_activation_memory_is_the_formula_of_the_paper(model: Transformer, size: int, tensor: int, pipeline: int, chunks: int) -> None:
    s, h, a = model.sequence, model.hidden, model.heads
    sbh = s * size * h
    layer: dict[tuple[str, bool], float] = {
        ("none", False): sbh * (10 + 24 / tensor + 5 * a * s / (h * tensor)),
        ("none", True): sbh * (34 + 5 * a * s / h) / tensor,
        ("selective", False): sbh * (10 + 24 / tensor),
        ("selective", True): 34 * sbh / tensor,
        ("full", False): 2 * sbh,
        ("full", True): 2 * sbh / tensor,
    }
    more = 1 + (pipeline - 1) / (pipeline * chunks) if chunks > 1 else 1.0
    for (recompute, split), one in layer.items():
        assert model.layer_activation_bytes(size, tensor, recompute, split) == pytest.approx(one, rel=1e-12)
        found = model.activation_bytes(size, tensor, pipeline, chunks, recompute, split)
        assert found == pytest.approx(model.layers * one * more, rel=1e-12)
        few = model.activation_bytes(size, tensor, pipeline, chunks, recompute, split, microbatches=1)
        assert few == pytest.approx(model.layers / pipeline * one, rel=1e-12), "one microbatch is in flight, no more"


def test_a_shape_is_frozen_and_counts_as_itself() -> None:
    model: Any = Transformer(layers=2, hidden=8, heads=2)
    assert model == Transformer(2, 8, 2)
    assert hash(model) == hash(Transformer(2, 8, 2))
    with pytest.raises(AttributeError):
        model.layers = 3
