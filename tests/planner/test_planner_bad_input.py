"""Test wrong values for the shape of a model, a plan, the planner and the comparisons.

Each must raise an error with a sentence that says what would work.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, outcome, small, usual_or_junk
from profiles import examples

from hybridlab import A100_80GB, FP16, H100, INT8, HybridLabError, Plan, Transformer, UnsupportedSize, predict, search
from hybridlab.course import comparisons
from hybridlab.hardware import gpu
from hybridlab.model import RECOMPUTE, Experts
from hybridlab.planner import calibrate, memory

MODEL, PLAN = Transformer(8, 1024, 16), Plan(1, 1, 1, 1, 8)
GPT_3 = Transformer(layers=96, hidden=12288, heads=96)
NAN = float("nan")
A_RUN = (MODEL, PLAN, 0.3)


@in_turn("call, code, words", [
    (lambda: Transformer(0, 8, 2), "too-small", "layers 1 0"),
    (lambda: Transformer(2, 8.5, 2), "not-a-whole-number", "hidden 1 8.5"),  # type: ignore[arg-type]
    (lambda: Transformer(2, -8, 2), "too-small", "hidden 1 -8"),
    (lambda: Transformer("2", 8, 2), "not-a-whole-number", "layers 1 '2'"),  # type: ignore[arg-type]
    (lambda: Transformer(2, 8, 2, vocabulary=NAN), "not-a-whole-number", "vocabulary 1 nan"),  # type: ignore[arg-type]
    (lambda: Transformer(np.ma.array(2, mask=True), 8, 2), "not-a-whole-number", "layers 1 masked_array(data"),
    (lambda: Transformer(2, 8, 2, sequence=True), "not-a-whole-number", "sequence 1 True"),
    (lambda: Transformer(10**9, 8, 2), "too-large", "layers 10,000,000 1000000000"),
    (lambda: Transformer(2, 10, 4), "not-divisible", "10 4 8 12"),
    (lambda: Transformer(2, 3, 4), "not-divisible", "3 4 8"),
    (lambda: MODEL.flops(2.5), "not-a-whole-number", "batch 1 2.5"),
    (lambda: MODEL.flops(1, "ful"), "unknown-name", "'ful' 'full' none, selective,"),
    (lambda: MODEL.layer_work(1, 0), "too-small", "tensor 1 0"),
    (lambda: MODEL.layer_work(1, sequence_parallel="yes"), "not-true-or-false", "sequence_parallel True False 'yes'"),
    (lambda: MODEL.head_work(None), "not-a-whole-number", "microbatch 1 None"),
    (lambda: MODEL.layer_activation_bytes(1, sequence_parallel=1), "not-true-or-false", "sequence_parallel True False 1"),
    (lambda: MODEL.activation_bytes(1, chunks=[2]), "not-a-whole-number", "chunks 1 [2]"),
    (lambda: MODEL.activation_bytes(1, microbatches=0), "too-small", "microbatches 1 0"),
])  # fmt: skip
def test_shapes_that_are_none(call: Any, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        call()


@in_turn("call, code, words", [
    (lambda: Plan(0, 1, 1, 1, 8), "too-small", "tensor 1 0"),
    (lambda: Plan(1, 1, 1, 1, NAN), "not-a-whole-number", "global_batch 1 nan"),  # type: ignore[arg-type]
    (lambda: Plan(1, 10**8, 1, 1, 8), "too-large", "pipeline 10,000,000 100000000"),
    (lambda: Plan(stages=2), "unknown-name", "'stages' tensor, pipeline"),  # type: ignore[call-arg]
    (lambda: Plan(8, 8), "empty", "Plan data, microbatch, global_batch"),  # type: ignore[call-arg]
    (lambda: Transformer(8, 1024, 16, experts=8), "wrong-type", "experts Experts(count=8 8"),  # type: ignore[arg-type]
    (lambda: Transformer(8, 1024, 16, kv_heads=3), "not-divisible", "kv_heads 1, 2, 4, 8, 16"),
    (lambda: Experts(8, 9, 4096), "too-large", "9 8"),
    (lambda: replace(PLAN, zero=1, data=1, global_batch=1), "unsupported-size", "zero=1 zero=0"),
    (lambda: replace(PLAN, expert=3), "not-divisible", "3 1"),
    (lambda: replace(PLAN, context=2), "unsupported-size", "context=2 attention='fused'"),
    (lambda: replace(PLAN, stage_layers=(1, 2, 3)), "wrong-length", "stage_layers 3 1"),
    (lambda: replace(PLAN, recompute=("norms",)), "unknown-name", "norms norm"),
    (lambda: predict(MODEL, replace(PLAN, stage_layers=(7,)), A100_80GB), "does-not-fit", "7 8"),
    (lambda: predict(MODEL, replace(PLAN, precision="fp8"), A100_80GB), "unsupported-size", "A100-SXM4-80GB FP8 H100"),
    (lambda: predict(MODEL, replace(PLAN, data=2, global_batch=2, expert=2), A100_80GB), "unsupported-size", "expert=2 expert=1"),
    (lambda: predict(MODEL, replace(PLAN, context=3, attention="fused"), A100_80GB), "not-divisible", "2048 3 1, 2, 4"),
    (lambda: Plan(1, 1, 3, 2, 16), "not-divisible", "3 2 6 16 12 18"),
    (lambda: Plan(1, 1, 3, 2, 4), "not-divisible", "6 4"),
    (lambda: Plan(1, 1, 1, 1, 8, 2), "unsupported-size", "2 chunks=1"),
    (lambda: Plan(1, 4, 1, 1, 6, 2), "not-divisible", "6 4 8 chunks=1"),
    (lambda: Plan(1, 1, 1, 1, 8, recompute="selectiv"), "unknown-name", "'selective'"),
    (lambda: Plan(1, 1, 1, 1, 8, recompute=True), "unknown-name", "True"),  # type: ignore[arg-type]
    (lambda: Plan(1, 1, 1, 1, 8, sequence_parallel=0), "not-true-or-false", "sequence_parallel True False 0"),  # type: ignore[arg-type]
])  # fmt: skip
def test_plans_that_deal_nothing_out(call: Any, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        call()


@in_turn("call, code, words", [
    (lambda: predict(PLAN, MODEL, A100_80GB), "wrong-type", "model Transformer(layers 96 12288"),
    (lambda: predict(MODEL, (1, 1), A100_80GB), "wrong-type", "plan Plan(tensor=8, data=4,"),
    (lambda: predict(MODEL, PLAN, "A100"), "wrong-type", "profile A100_80GB, 'A100'"),
    (lambda: predict(MODEL, PLAN, gpu("A100")), "unknown-name", "'A100' 'A100-SXM4-80GB' V100-SXM2-32GB"),
    (lambda: predict(MODEL, Plan(1, 3, 1, 1, 8), A100_80GB), "not-divisible", "8 3 1, 2"),
    (lambda: predict(MODEL, Plan(1, 4, 1, 1, 8, 4), A100_80GB), "not-divisible", "8 4 chunks"),
    (lambda: predict(MODEL, Plan(3, 1, 1, 1, 8), A100_80GB), "not-divisible", "16 3 1, 2, 4, 8, 16"),
    (lambda: predict(MODEL, PLAN, A100_80GB, efficiency=0), "out-of-range", "efficiency 1e-06 1 0"),
    (lambda: predict(MODEL, PLAN, A100_80GB, efficiency=75), "out-of-range", "1e-06 1 75"),
    (lambda: predict(MODEL, PLAN, A100_80GB, efficiency=5e-324), "out-of-range", "1e-06 1 5e-324"),  # the time would be infinite
    (lambda: predict(MODEL, PLAN, A100_80GB, efficiency=NAN), "not-finite", "efficiency nan"),
    (lambda: predict(MODEL, PLAN, A100_80GB, efficiency=[0.5, 0.6]), "wrong-shape", "efficiency 0.5 0.6"),
    (lambda: predict(MODEL, PLAN, A100_80GB, wire="INT8"), "wrong-type", "wire FP16 'INT8'"),
    (lambda: predict(MODEL, PLAN, A100_80GB, must_fit="no"), "not-true-or-false", "must_fit True False 'no'"),
    (lambda: predict(GPT_3, PLAN, A100_80GB), "too-large", "2802.1 2793.9 4.8 3.4 2722.1"),
    (lambda: memory(None, PLAN), "wrong-type", "model"),
    (lambda: memory(MODEL, None), "wrong-type", "plan"),
    (lambda: memory(MODEL, Plan(3, 1, 1, 1, 8)), "not-divisible", "16 3"),
])  # fmt: skip
def test_predictions_of_what_cannot_be(call: Any, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        call()


@in_turn("call, code, words", [
    (lambda: search(None, 8, A100_80GB), "wrong-type", "model"),
    (lambda: search(MODEL, 8, "A100"), "wrong-type", "profile A100_80GB, 'A100'"),
    (lambda: search(MODEL, 0, A100_80GB), "too-small", "gpus 1 0"),
    (lambda: search(MODEL, 2.5, A100_80GB), "not-a-whole-number", "gpus 1 2.5"),
    (lambda: search(MODEL, 8, A100_80GB, "all"), "not-a-whole-number", "global_batch 1 'all'"),
    (lambda: search(MODEL, 8, A100_80GB, efficiency=2), "out-of-range", "1e-06 1 2"),
    (lambda: search(MODEL, 7, A100_80GB), "not-divisible", "8 16 512 7 4 or 8"),
    (lambda: search(MODEL, 1000, A100_80GB, 512), "not-divisible", "1000 8 512 or 1024"),
    (lambda: search(GPT_3, 8, A100_80GB), "too-large", "8 80 350.6 270.6 48"),
    (lambda: search(MODEL, 8, A100_80GB).to_rows(0), "too-small", "most 1 0"),
    (lambda: calibrate([], A100_80GB), "empty", "(model, plan, seconds)"),
    (lambda: calibrate(None, A100_80GB), "not-a-list", "runs seconds) None"),
    (lambda: calibrate([(MODEL, PLAN)], A100_80GB), "wrong-type", "seconds) Transformer("),
    (lambda: calibrate([(MODEL, PLAN, 0)], A100_80GB), "too-small", "seconds"),
    (lambda: calibrate([(MODEL, PLAN, -1)], A100_80GB), "negative", "seconds -1.0"),
    (lambda: calibrate([(MODEL, PLAN, NAN)], A100_80GB), "not-finite", "nan"),
    (lambda: calibrate([(MODEL, PLAN, "1 s")], A100_80GB), "not-a-number", "seconds '1 s'"),
    (lambda: calibrate([(PLAN, MODEL, 1)], A100_80GB), "wrong-type", "model"),
    (lambda: calibrate([A_RUN], None), "wrong-type", "profile"),
    (lambda: calibrate([A_RUN, (GPT_3, PLAN, 1)], A100_80GB), "too-fast", "run 1 A100-SXM4-80GB"),
])  # fmt: skip
def test_searches_and_calibrations_that_cannot_be(call: Any, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        call()


@in_turn("call, told", [
    (lambda: comparisons.bubble_rates("gpipe"), "unknown schedule of Table 5 'gpipe'. Known: 1f1b, zb-h1, zb-h2"),
    (lambda: comparisons.errors(3), "runs must be (model, plan, seconds) each, not 3"),
    (lambda: comparisons.left_out("memory"), "assumption must be one of ASSUMPTIONS, or an Assumption of your own, not 'memory'"),
    (lambda: comparisons.threads(0), "tries must be a whole number of at least 1, not 0"),
    (lambda: comparisons.orders(3), 'reference must map sizes to orders, such as {"1f1b|1|1|1": ["0F0 0B0"]}, not 3'),
    (lambda: comparisons.orders({"1f1b": []}), "schedule|devices|microbatches|chunks, such as '1f1b|2|4|1', not '1f1b'"),
    (lambda: comparisons.orders({"1f1|2|4|1": []}), "unknown schedule '1f1': did you mean '1f1b'?"),
    (lambda: comparisons.sweeps(3), "points must be a list of points"),
    (lambda: comparisons.sweeps([3]), "a point of a sweep must map columns to values, not 3"),
    (lambda: comparisons.sweeps([{"schedule": "1f1b"}]), "a point of a sweep lacks devices, microbatches, chunks"),
    (lambda: comparisons.compared("a", "b", [1], [1, 2]), "ours and theirs must be lists of the same length, not of shapes (1,) and (2,)"),
    (lambda: comparisons.compared("a", "b", [NAN], [1]), "ours and theirs must be finite numbers"),
    (lambda: comparisons.compared("a", "b", [float("inf")], [float("inf")]), "ours and theirs must be finite numbers"),
    (lambda: comparisons.compared("a", "b", ["x"], [1]), "ours must be a number or an array of numbers, not ['x']"),
    (lambda: comparisons.percent(NAN), "share must be one number, not nan"),
    (lambda: comparisons.percent("all"), "share must be a number or an array of numbers, not 'all'"),
])  # fmt: skip
def test_comparisons_of_nothing(call: Any, told: str) -> None:
    with pytest.raises(HybridLabError) as why:
        call()
    assert told in str(why.value)


@in_turn("model, batch, room", [
    (Transformer(6, 64, 8), 12, 80e9),  # every plan fits in memory, so only divisibility decides
    (Transformer(6, 4096, 4, sequence=8192), 12, 20e9),  # 2, 3 and 6 stages, depending on the number of GPUs that share a layer
    (Transformer(6, 4096, 8, sequence=8192), 12, 17e9),  # one sample per replica holds fewer activations than twelve samples
    (Transformer(5, 4096, 8), 30, 9e9),
    (Transformer(5, 4096, 8), 30, 1e9),  # no plan fits
    (Transformer(7, 2049, 3), None, 8e9),
    (Transformer(7, 4096, 8), None, 11e9),
])  # fmt: skip
def test_a_search_advises_the_nearest_numbers_of_gpus_on_which_a_search_finds_a_plan(model: Transformer, batch: int, room: float) -> None:
    profile, end = replace(A100_80GB, memory=room), 200  # if no batch is given and a number of GPUs works, every multiple of it also works
    outcomes = {gpus: found_or_advised(model, gpus, profile, batch) for gpus in range(1, end)}
    holds = [gpus for gpus, advice in outcomes.items() if not advice]
    assert room == 1e9 or 0 < len(holds) < end / 2
    for gpus, advice in outcomes.items():
        if advice:
            near = [*[each for each in holds if each < gpus][-1:], *[each for each in holds if each > gpus][:1]]
            beyond = [each for each in map(int, re.findall(r"\d+", advice)) if each >= end]
            assert all(found_or_advised(model, each, profile, batch) == "" for each in beyond)
            told = " or ".join(map(str, near + beyond))
            assert advice == (f"{told} GPUs" if told else "GPUs of more memory, or a smaller model")


def found_or_advised(model: Transformer, gpus: int, profile: Any, batch: int | None) -> str:
    """Return an empty text if a plan fits, otherwise the advice in the error of the search."""
    try:
        return "" if search(model, gpus, profile, batch).found else "a search without a plan"
    except UnsupportedSize as why:
        return str(why).rpartition("; try ")[2]


def test_a_model_of_126_layers_on_16384_gpus_is_sent_to_16128() -> None:
    llama = Transformer(layers=126, hidden=16384, heads=128, vocabulary=128256, sequence=8192)
    assert found_or_advised(llama, 16384, H100, 2048) == "16128 or 18432 GPUs"
    assert found_or_advised(llama, 16384, H100, None) == "16380 or 16416 GPUs"  # 126 divides 16380, 72 divides 16416
    assert found_or_advised(GPT_3, 1, A100_80GB, 1536) == "48 GPUs"


def test_what_fits_to_the_byte_fits() -> None:
    need = memory(MODEL, PLAN).total
    assert predict(MODEL, PLAN, replace(A100_80GB, memory=need)).seconds > 0
    with refusal("too-large", "0.0 GB", kind=UnsupportedSize):
        predict(MODEL, PLAN, replace(A100_80GB, memory=need - 1))


def test_numbers_of_numpy_are_numbers() -> None:
    sizes = [np.int64(2), np.uint8(8), np.int32(2)]
    assert Transformer(*sizes) == Transformer(2, 8, 2)
    assert type(Transformer(*sizes).parameters) is int
    assert Plan(np.int64(1), 1, 1, 1, np.int16(8)) == PLAN
    assert predict(MODEL, PLAN, A100_80GB, efficiency=np.float32(0.5)) == predict(MODEL, PLAN, A100_80GB, efficiency=0.5)


# Junk

flags = usual_or_junk([True, False])
ways = usual_or_junk(list(RECOMPUTE))


@examples(200)
@given(sizes=st.lists(small, min_size=5, max_size=5))
def test_junk_shapes(sizes: list[Any]) -> None:
    model = outcome(Transformer, *sizes)
    if model is not None:
        assert model.parameters > 0
        assert model.flops(1) > 0


@examples(200)
@given(sizes=st.lists(small, min_size=2, max_size=2), recompute=ways, split=flags, more=st.lists(small, min_size=3, max_size=3))
def test_junk_at_the_methods_of_a_shape(sizes: list[Any], recompute: Any, split: Any, more: list[Any]) -> None:
    for value in (
        outcome(MODEL.flops, sizes[0], recompute),
        outcome(MODEL.head_work, *sizes),
        outcome(MODEL.layer_work, *sizes, recompute, split),
        outcome(MODEL.layer_activation_bytes, *sizes, recompute, split),
        outcome(MODEL.activation_bytes, *sizes, *more[:2], recompute, split, more[2]),
    ):
        assert value is None or np.min(value) >= 0


@examples(300)
@given(sizes=st.lists(small, min_size=6, max_size=6), recompute=ways, split=flags)
def test_junk_plans(sizes: list[Any], recompute: Any, split: Any) -> None:
    plan = outcome(Plan, *sizes, recompute, split)
    if plan is not None:
        assert plan.microbatches >= 1
        time = outcome(predict, Transformer(24, 1024, 16), plan, A100_80GB)
        assert time is None or 0 < time.seconds < float("inf")


@examples(300)
@given(
    model=usual_or_junk([MODEL]), plan=usual_or_junk([PLAN]), profile=usual_or_junk([A100_80GB]),
    wire=usual_or_junk([FP16, INT8]), efficiency=usual_or_junk([0.5]), must_fit=flags,
)  # fmt: skip
def test_junk_predictions(model: Any, plan: Any, profile: Any, wire: Any, efficiency: Any, must_fit: Any) -> None:
    time = outcome(predict, model, plan, profile, wire=wire, efficiency=efficiency, must_fit=must_fit)
    assert time is None or 0 < time.seconds < float("inf")
    used = outcome(memory, model, plan)
    assert used is None or used.total > 0


@examples(150)
@given(
    model=usual_or_junk([MODEL]), gpus=small, profile=usual_or_junk([A100_80GB]), batch=usual_or_junk([None, 8]), share=usual_or_junk([0.5])
)
def test_junk_searches(model: Any, gpus: Any, profile: Any, batch: Any, share: Any) -> None:
    found = outcome(search, model, gpus, profile, batch, efficiency=share)
    if found is not None:
        assert found.best.seconds > 0
        assert outcome(found.to_rows, gpus) is not None


@examples(200)
@given(runs=junk | st.lists(st.tuples(usual_or_junk([MODEL]), usual_or_junk([PLAN]), usual_or_junk([0.3])), max_size=3), other=junk)
def test_junk_calibrations_and_comparisons(runs: Any, other: Any) -> None:
    share = outcome(calibrate, runs, A100_80GB)
    assert share is None or 0 <= share <= 1
    outcome(comparisons.errors, runs)
    outcome(comparisons.left_out, other)
    outcome(comparisons.bubble_rates, other)
    outcome(comparisons.orders, other)
    outcome(comparisons.sweeps, other)
    outcome(comparisons.compared, "a", "b", other, other)
    outcome(comparisons.percent, other)
