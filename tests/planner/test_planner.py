"""Compare predicted iterations with listed operations, simulated pipelines, and brute force.

Published plans must fit in memory, and the efficiency is fitted to published runs.
"""

import math
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from layer_operations import LOSS, OPTIMISER, layer_bytes
from profiles import examples

from hybridlab import (
    A100_80GB,
    H100,
    INT8,
    V100,
    Costs,
    Plan,
    Transformer,
    UnsupportedSize,
    build,
    predict,
    search,
    simulate,
)
from hybridlab.collectives import measured_time
from hybridlab.course.published import large_runs
from hybridlab.hardware import GPUS, Profile
from hybridlab.model import RECOMPUTE
from hybridlab.planner import EFFICIENCY, IterationTime, calibrate, memory

RUNS = [(run.model, run.plan, run.seconds) for run in large_runs.TABLE_1]
GPT_3 = Transformer(layers=96, hidden=12288, heads=96)
TRILLION = Transformer(layers=128, hidden=25600, heads=160)
SMALL = Transformer(layers=24, hidden=2304, heads=24)

# Parts, from data sheets and operations


def by_hand(model: Transformer, plan: Plan) -> dict[str, float]:
    """Return the parts of an iteration on A100s in whole nodes, from the listed operations, with no code of the planner.

    The peaks are from the data sheet. Of these, 0.7514 of the arithmetic and 0.9 of memory and network are reached. A message between nodes
    takes 14 us.
    """
    h, s, t, size, words = model.hidden, model.sequence, plan.tensor, plan.microbatch, model.vocabulary / plan.tensor
    count = plan.global_batch // plan.data // size
    share = {"none": 0, "selective": 0, "full": 1}[plan.recompute]
    core = {"none": 0, "selective": 1, "full": 1}[plan.recompute]
    matrices = (3 + share) * 2 * size * s * 12 * h * h / t  # one for the forward, one for its repetition, two for the backward
    attention = (3 + core) * 2 * 2 * size * s * s * h / t
    logits = 3 * 2 * size * s * h * words
    streamed = sum(layer_bytes(size, h, model.heads, s, t, plan.recompute, plan.sequence_parallel))
    loss = 6 * (size * s * h + h * words + size * s * words) + sum(map(sum, LOSS)) * size * s * words
    message = 2 * size * s * h
    ring = measured_time(t, message) if t > 1 else 0.0
    layers = model.layers / plan.pipeline
    flop, memory_rate, port = 0.7514 * 312e12, 0.9 * 2.039e12, 0.9 * 25e9
    hop = 14e-6 + message / t / port + (0.0 if plan.sequence_parallel else ring / 2)
    crossing = 2 * hop if plan.pipeline > 1 else 0.0
    stage = layers * ((matrices + attention) / flop + streamed / memory_rate + (4 + 2 * share) * ring)
    weights = layers * (12 * h * h + 13 * h) / t + (words + s) * h
    together = 8 // t if plan.data > 8 // t else plan.data
    rings = 2 * (plan.data - 1) * (14e-6 + 2 * weights / plan.data / (together * port)) if plan.data > 1 else 0.0
    tied = 2 * (14e-6 + 2 * words * h / 2 / port) if plan.pipeline > 1 else 0.0
    return {
        "matmul": count * (layers * (matrices + attention) + logits) / flop,
        "memory_traffic": count * (layers * streamed + loss) / memory_rate,
        "tensor_parallel": count * (layers * (4 + 2 * share) + (t > 1)) * ring,
        "point_to_point": count * plan.chunks * crossing,
        "bubble": (plan.pipeline - 1) * (stage / plan.chunks + crossing),
        "data_parallel": rings + tied,
        "optimiser": sum(map(sum, OPTIMISER)) * weights / memory_rate,
    }


@in_turn("model, plan", [
    (SMALL, Plan(1, 1, 32, 16, 512)),
    (SMALL, Plan(1, 4, 16, 4, 512, recompute="none")),
    (GPT_3, Plan(8, 8, 24, 2, 2304)),
    (GPT_3, Plan(8, 8, 24, 1, 2304, 3, "selective", sequence_parallel=True)),
    (GPT_3, Plan(4, 16, 24, 2, 2304, recompute="selective")),
    (TRILLION, Plan(8, 64, 6, 1, 3072)),
])  # fmt: skip
def test_every_part_by_hand(model: Transformer, plan: Plan) -> None:
    time = predict(model, plan, A100_80GB, must_fit=False)
    wanted = by_hand(model, plan)
    assert {name for name, part in time.parts.items() if part} == {name for name, part in wanted.items() if part}
    for name, seconds in wanted.items():
        assert time.parts[name] == pytest.approx(seconds, rel=1e-9), name
    assert time.seconds == pytest.approx(math.fsum(wanted.values()), rel=1e-9)


plans = st.builds(
    lambda tensor, pipeline, data, size, rounds, chunks, recompute, split: Plan(
        # kernels in eager mode have a least time, which hides what a plan changes
        tensor,
        pipeline,
        data,
        size,
        size * data * pipeline * rounds,
        chunks if pipeline > 1 else 1,
        recompute,
        split,
        kernels="fused",
    ),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 3, 16]),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 4),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(RECOMPUTE),
    st.booleans(),
)
models = st.builds(lambda layers, hidden: Transformer(48 * layers, 8 * hidden, 8), st.integers(1, 3), st.integers(8, 2000))


@given(model=models, plan=plans, profile=st.sampled_from(list(GPUS.values())))
def test_parts_add_up_and_none_is_below_zero(model: Transformer, plan: Plan, profile: Profile) -> None:
    time = predict(model, plan, profile, must_fit=False)
    assert math.fsum(time.parts.values()) == pytest.approx(time.seconds, rel=1e-12)
    assert all(0 <= part < math.inf for part in time.parts.values())
    assert time.tflops_per_gpu * 1e12 * time.seconds * plan.gpus == pytest.approx(model.flops(plan.global_batch, plan.recompute), rel=1e-12)
    assert time.tflops_per_gpu * 1e12 < profile.matmul_flops
    assert (time.bubble > 0, time.point_to_point > 0, time.tensor_parallel > 0) == (plan.pipeline > 1, plan.pipeline > 1, plan.tensor > 1)


# The pipeline, compared with the simulator


def pipelines(model: Transformer, plan: Plan) -> tuple[float, float]:
    """Return the seconds of fill, steady state and drain, predicted and simulated.

    The last device takes longer because it also computes the logits.
    """
    time = predict(model, plan, A100_80GB, must_fit=False)
    count, others = plan.microbatches, plan.pipeline - 1
    last = (time.matmul + time.memory_traffic + time.tensor_parallel + time.point_to_point) / count
    stage = time.bubble / others * plan.chunks
    backward = 0.7  # a share of forward plus backward; the prediction does not depend on it
    each = np.array([stage] * others + [last])
    costs = Costs(forward=each * (1 - backward), backward=each * backward)
    schedule = build("interleaved" if plan.chunks > 1 else "1f1b", plan.pipeline, count, plan.chunks)
    return last * count + time.bubble, float(simulate(schedule, costs).makespan)


@given(model=models, plan=plans.filter(lambda plan: plan.pipeline > 1))
@examples(60)
def test_fill_and_drain_are_those_of_the_clock(model: Transformer, plan: Plan) -> None:
    """For 1F1B, the prediction equals the simulation exactly.

    For interleaved 1F1B, it may differ by the time of one microbatch, because only the last chunk of the last device has the logits.
    """
    predicted, simulated = pipelines(model, plan)
    if plan.chunks == 1:
        assert predicted == pytest.approx(simulated, rel=1e-9)
    else:
        assert predicted <= simulated * (1 + 1e-9)
        assert predicted == pytest.approx(simulated, rel=0.1)


@in_turn("run", [run for run in large_runs.TABLE_1 if run.plan.pipeline > 1])
def test_fill_and_drain_of_the_published_plans(run: large_runs.MegatronRun) -> None:
    predicted, simulated = pipelines(run.model, run.plan)
    assert predicted == pytest.approx(simulated, rel=1e-9)


# Published runs


def test_the_constant_is_the_calibrated_one_to_four_digits() -> None:
    assert round(calibrate(RUNS, A100_80GB), 4) == EFFICIENCY


def loss(share: float, runs: Any, profile: Profile) -> float:
    return float(np.mean([np.log(predict(model, plan, profile, efficiency=share).seconds / seconds) ** 2 for model, plan, seconds in runs]))


@in_turn("profile", [A100_80GB, replace(A100_80GB, memory_bandwidth=1e30)])
def test_no_constant_is_nearer_than_the_calibrated_one(profile: Profile) -> None:
    from scipy.optimize import minimize_scalar  # imported here, because it takes a second

    best = minimize_scalar(loss, bounds=(0.2, 1), args=(RUNS, profile), method="bounded", options={"xatol": 1e-9}).x
    assert calibrate(RUNS, profile) == pytest.approx(best, abs=2e-6)
    assert calibrate(reversed(RUNS), profile) == pytest.approx(best, abs=2e-6)


@in_turn("share", [0.05, 0.3, 0.7514, 0.99])
def test_calibration_finds_the_constant_behind_predictions(share: float) -> None:
    made = [(model, plan, predict(model, plan, A100_80GB, efficiency=share).seconds) for model, plan, _ in RUNS]
    assert calibrate(made, A100_80GB) == pytest.approx(share, abs=2e-6)
    assert calibrate(made[:1], A100_80GB) == pytest.approx(share, abs=2e-6)


def test_runs_faster_than_the_peak_are_refused_by_their_place() -> None:
    model, plan, _ = RUNS[2]
    at_peak = predict(model, plan, A100_80GB, efficiency=1).seconds
    with refusal("too-fast", "run 2", "A100-SXM4-80GB"):
        calibrate([*RUNS[:2], (model, plan, 0.999 * at_peak), *RUNS[3:]], A100_80GB)
    assert calibrate([(model, plan, at_peak)], A100_80GB) == pytest.approx(1, abs=2e-6)
    products = model.flops(plan.global_batch, plan.recompute) / plan.gpus / A100_80GB.matmul_flops
    assert products < at_peak, "what no GPU can do is refused, however little traffic there is"


@in_turn("seconds", [1e12, 1e200])
def test_runs_that_no_efficiency_explains_are_refused(seconds: float) -> None:
    """These runs would need an efficiency of zero, which predict refuses."""
    model, plan, _ = RUNS[0]
    with refusal("too-slow", f"{seconds:g}"):
        calibrate([(model, plan, seconds)], A100_80GB)


@in_turn("run", [*large_runs.TABLE_1, *large_runs.RUNS_2022])
def test_published_plans_fit(run: Any) -> None:
    assert memory(run.model, run.plan).total <= A100_80GB.memory
    assert predict(run.model, run.plan, A100_80GB).seconds > 0


def test_the_seconds_of_2022_make_the_gain_that_the_abstract_names() -> None:
    """A run at 54.2 % of the peak is 29 % faster than a run at 42.1 %."""
    full, selective = large_runs.RUNS_2022
    assert f"{full.seconds / selective.seconds - 1:.0%}" == "29%"
    assert selective.plan.gpus == 2240
    assert round(selective.model.parameters / 1e9) == 530


# Impossible input


FASTER = ("matmul_flops", "memory_bandwidth", "nvlink", "network")


@given(model=models, plan=plans, field=st.sampled_from(FASTER), factor=st.floats(1.01, 100))
def test_faster_hardware_is_never_slower(model: Transformer, plan: Plan, field: str, factor: float) -> None:
    better = replace(A100_80GB, **{field: factor * getattr(A100_80GB, field)})
    before, after = (predict(model, plan, profile, must_fit=False) for profile in (A100_80GB, better))
    for name, part in after.parts.items():
        assert part <= before.parts[name] * (1 + 1e-12), name
    if field in {"matmul_flops", "memory_bandwidth"}:
        assert after.seconds < before.seconds


@given(model=models, plan=plans, share=st.floats(0.1, 0.9))
def test_a_higher_efficiency_is_faster(model: Transformer, plan: Plan, share: float) -> None:
    slow, fast = (predict(model, plan, A100_80GB, efficiency=each, must_fit=False).seconds for each in (share, share + 0.05))
    assert fast < slow


@given(model=models, plan=plans)
def test_recomputing_more_takes_longer_and_keeps_less(model: Transformer, plan: Plan) -> None:
    ways = [replace(plan, recompute=recompute) for recompute in RECOMPUTE]
    times = [predict(model, way, A100_80GB, must_fit=False).seconds for way in ways]
    kept = [memory(model, way).activations for way in ways]
    assert times == sorted(times)
    assert times[0] < times[1] < times[2]
    assert kept[0] > kept[1] > kept[2]


@given(model=models, plan=plans)
def test_sequence_parallelism_takes_no_longer_and_keeps_no_more(model: Transformer, plan: Plan) -> None:
    alone, split = (replace(plan, sequence_parallel=each) for each in (False, True))
    assert predict(model, split, A100_80GB, must_fit=False).seconds <= predict(model, alone, A100_80GB, must_fit=False).seconds
    assert memory(model, split).total <= memory(model, alone).total


@given(model=models, plan=plans)
def test_a_larger_batch_takes_longer_and_does_more_a_second(model: Transformer, plan: Plan) -> None:
    larger = replace(plan, global_batch=2 * plan.global_batch)
    one, two = (predict(model, each, A100_80GB, must_fit=False) for each in (plan, larger))
    assert one.seconds < two.seconds < 2 * one.seconds * (1 + 1e-12)
    assert two.tflops_per_gpu > one.tflops_per_gpu * (1 - 1e-12)


@given(model=models, plan=plans.filter(lambda plan: plan.chunks > 1))
def test_chunks_shorten_the_bubble_and_send_more(model: Transformer, plan: Plan) -> None:
    whole, cut = (predict(model, replace(plan, chunks=chunks), A100_80GB, must_fit=False) for chunks in (1, plan.chunks))
    assert cut.bubble < whole.bubble
    assert cut.point_to_point == pytest.approx(plan.chunks * whole.point_to_point, rel=1e-12)


def test_gradients_in_int8_travel_in_half_the_time_and_nothing_else_changes() -> None:
    plan = Plan(8, 8, 24, 2, 2304)
    half, one = (predict(GPT_3, plan, A100_80GB, must_fit=False, **how) for how in ({}, {"wire": INT8}))
    assert one.data_parallel / half.data_parallel == pytest.approx(0.5, abs=0.01)
    assert {name for name in half.parts if half.parts[name] != one.parts[name]} == {"data_parallel"}


def test_tensor_parallelism_beyond_a_node_takes_the_network() -> None:
    plan = Plan(16, 8, 4, 1, 256)
    inside, beyond = (predict(GPT_3, replace(plan, tensor=t), A100_80GB, must_fit=False).tensor_parallel for t in (8, 16))
    whole, parts = (predict(GPT_3, replace(plan, sequence_parallel=split), A100_80GB, must_fit=False) for split in (False, True))
    gathered = (whole.point_to_point - parts.point_to_point) / plan.microbatches
    assert gathered == pytest.approx(beyond / plan.microbatches / (96 / 8 * 6 + 1), rel=1e-9), "half a ring each way"
    message, port = 2 * 2048 * 12288, 0.9 * 25e9
    ring = 2 * 15 * (14e-6 + message / 16 / min(8 * port, 230.78e9))
    assert beyond == pytest.approx(64 * (96 / 8 * 6 + 1) * ring, rel=1e-4)
    assert inside < beyond


@in_turn("profile, faster", [(A100_80GB, 1.0), (H100, 1.5)])
def test_a_plan_that_fills_one_node_uses_its_nvlink_alone(profile: Profile, faster: float) -> None:
    """Times of A100s were measured; a GPU with 1.5 times the NVLink bandwidth takes as long for 1.5 times the bytes."""
    plan = Plan(2, 2, 2, 1, 8)
    time = predict(SMALL, plan, profile)
    message = 2 * 2048 * 2304
    ring = measured_time(2, message / faster)
    assert time.tensor_parallel == pytest.approx(4 * (24 / 2 * 6 + 1) * ring, rel=1e-9)
    hop = 29.50e-6 + message / 2 / (300e9 * faster) + ring / 2
    assert time.point_to_point == pytest.approx(4 * 2 * hop, rel=1e-9)
    words = 51200 / 2 * 2304
    weights = 24 / 2 * (12 * 2304**2 + 13 * 2304) / 2 + words + 2048 * 2304
    rings = measured_time(2, 2 * weights / faster) + measured_time(2, 2 * words / faster)
    assert time.data_parallel == pytest.approx(rings, rel=1e-6)
    wider = predict(SMALL, Plan(2, 2, 4, 1, 16), profile)
    assert wider.point_to_point > 1.2 * time.point_to_point, "two nodes: messages take the network"


@in_turn("profile, faster", [(A100_80GB, 1.0), (H100, 1.5)])
def test_a_ring_over_nodes_is_never_faster_than_nvlink(profile: Profile, faster: float) -> None:
    wide = replace(profile, network=1e12)
    parameters = 24 * (12 * 2304**2 + 13 * 2304) + (51200 + 2048) * 2304
    ring = 2 * 15 * (14e-6 + 2 * parameters / 16 / (230.78e9 * faster))
    assert predict(SMALL, Plan(1, 1, 16, 1, 512), wide).data_parallel == pytest.approx(ring, rel=1e-6)
    lonely = replace(wide, gpus_per_node=1)  # each GPU has a port, and there is no other GPU to reach by NVLink
    ring = 2 * 15 * (14e-6 + 2 * parameters / 16 / 0.9e12)
    assert predict(SMALL, Plan(1, 1, 16, 1, 512), lonely).data_parallel == pytest.approx(ring, rel=1e-6)


# Memory


@given(model=models, plan=plans)
def test_memory_by_hand(model: Transformer, plan: Plan) -> None:
    """There are 16 bytes per parameter, and only the first stage has an embedding of positions.

    The first stage holds the most activations. The last stage holds fewer activations, but also the logits. The larger sum counts.
    The simulation counts how many activations each stage holds at once.
    """
    t, size, h = plan.tensor, plan.microbatch, model.hidden
    weights = model.layers / plan.pipeline * (12 * h * h + 13 * h) / t + (model.vocabulary / t + model.sequence) * h
    of_a_layer = model.layer_activation_bytes(size, t, plan.recompute, plan.sequence_parallel)
    whole = model.layer_activation_bytes(size, t, "none", plan.sequence_parallel)
    again = whole - of_a_layer  # the activations that the layer must compute again
    schedule = build("interleaved" if plan.chunks > 1 else "1f1b", plan.pipeline, plan.microbatches, plan.chunks)
    peaks = simulate(schedule, Costs(forward=1, backward=2)).peak_activations
    logits = 6 * size * model.sequence * model.vocabulary / t
    layers = model.layers / plan.pipeline
    positions = model.sequence * h if plan.pipeline > 1 else 0
    last = 16 * (weights - positions) + peaks[-1] * layers * of_a_layer + again + logits
    fullest = max(last, 16 * weights + peaks[0] * layers * of_a_layer + again + (logits if plan.pipeline == 1 else 0))
    used = memory(model, plan)
    assert used.total == pytest.approx(fullest, rel=1e-12)
    assert used.total == pytest.approx(sum(used), rel=1e-12)


def test_a_plan_that_does_not_fit_says_by_how_much_and_what_would() -> None:
    plan = Plan(8, 8, 4, 1, 256, recompute="none")
    used, room = memory(GPT_3, plan).total / 1e9, 80
    words = (f"{used:.1f} GB", f"{used - room:.1f} GB", "80 GB", "A100-SXM4-80GB", "try recompute='selective'")
    with refusal("too-large", *words, kind=UnsupportedSize):
        predict(GPT_3, plan, A100_80GB)
    assert predict(GPT_3, replace(plan, recompute="selective"), A100_80GB).seconds > 0
    with refusal("too-large", "try more tensor or pipeline stages", kind=UnsupportedSize):
        predict(TRILLION, Plan(8, 1, 1, 1, 8), A100_80GB)


@given(model=models, plan=plans)
def test_no_change_on_the_same_gpus_needs_less_than_single_samples_and_full_recomputation(model: Transformer, plan: Plan) -> None:
    """Advice rests on this: if such a plan does not fit, no smaller microbatch and no other recomputation does."""
    least = memory(model, replace(plan, microbatch=1, recompute="full")).total
    sizes = [size for size in range(1, plan.microbatch + 1) if plan.microbatch % size == 0]
    changed = [memory(model, replace(plan, microbatch=size, recompute=way)).total for size, way in product(sizes, RECOMPUTE)]
    assert least <= min(changed) * (1 + 1e-12)


@given(model=models, plan=plans, profile=st.sampled_from([A100_80GB, V100]))
def test_what_is_advised_fits(model: Transformer, plan: Plan, profile: Profile) -> None:
    try:
        predict(model, plan, profile)
    except UnsupportedSize as why:
        advice = str(why).partition("; try ")[2]
        if "microbatch" not in advice and "recompute" not in advice:
            smallest = replace(plan, microbatch=1, recompute="full")
            assert memory(model, smallest).total > profile.memory
            finer = [Plan(t, k, 1, 1, plan.microbatches, recompute=way, sequence_parallel=plan.sequence_parallel)
                     for t, k, way in product((1, 2, 4, 8), range(1, model.layers + 1), RECOMPUTE) if model.layers % k == 0]  # fmt: skip
            fits = any(memory(model, each).total <= profile.memory for each in finer)
            assert advice == ("more tensor or pipeline stages" if fits else "GPUs of more memory, or a smaller model")
            return
        size = int(advice.split()[3]) if "microbatch" in advice else plan.microbatch
        recompute = next((way for way in RECOMPUTE if repr(way) in advice), plan.recompute)
        assert predict(model, replace(plan, microbatch=size, recompute=recompute), profile).seconds > 0


@in_turn("tokens, advice", [(65536, "more tensor or pipeline stages"), (131072, "GPUs of more memory")])
def test_samples_that_no_number_of_gpus_holds(tokens: int, advice: str) -> None:
    """With 131,072 tokens, the scores of one attention head at 5 bytes each are 86 GB, and two GPUs cannot share a head.

    With half of the tokens, one sample fits.
    """
    model = Transformer(4, 4096, 32, sequence=tokens)
    with refusal("too-large", f"; try {advice}", kind=UnsupportedSize):
        predict(model, Plan(1, 4, 1, 4, 8), A100_80GB)
    fits = memory(model, Plan(32, 4, 1, 1, 8)).total <= A100_80GB.memory
    assert fits == advice.startswith("more")


# Search


def every_plan(model: Transformer, gpus: int, batch: int) -> set[Plan]:
    """Return all plans on whole A100 nodes, by trying all sizes and keeping those that raise no error.

    Microbatches are powers of two.
    """
    found = set()
    sizes = [2**power for power in range(12)]
    for tensor, pipeline in product((1, 2, 4, 8), range(1, min(gpus, model.layers) + 1)):
        if gpus % (tensor * pipeline) or model.heads % tensor or model.layers % pipeline:
            continue
        data = gpus // tensor // pipeline
        for size, chunks, recompute, split in product(sizes, range(1, model.layers // pipeline + 1), RECOMPUTE, (False, True)):
            if model.layers % (pipeline * chunks) or (split and tensor == 1) or batch % (size * data):
                continue
            try:
                plan = Plan(tensor, pipeline, data, size, batch, chunks, recompute, split)
                predict(model, plan, A100_80GB, must_fit=False)
            except UnsupportedSize:
                continue
            found.add(plan)
    return found


@in_turn("model, gpus, batch, room", [
    (Transformer(8, 1024, 16), 8, 64, 80e9),
    (Transformer(12, 2048, 16), 16, 96, 30e9),
    (Transformer(6, 768, 12), 24, 48, 80e9),
    (Transformer(7, 640, 5), 3, 21, 20e9),
    (Transformer(40, 6144, 48), 64, 128, 80e9),
])  # fmt: skip
def test_the_search_finds_what_brute_force_finds(model: Transformer, gpus: int, batch: int, room: float) -> None:
    profile = replace(A100_80GB, memory=room)
    every = every_plan(model, gpus, batch)
    rows = {plan: (predict(model, plan, profile, must_fit=False).seconds, memory(model, plan).total) for plan in every}
    rows = {plan: row for plan, row in rows.items() if row[1] <= room}
    found = search(model, gpus, profile, batch)
    assert found.tried == len(every)
    assert {each.plan: (each.seconds, each.memory) for each in found.found} == rows
    assert (found.best.seconds, found.best.memory) == min(rows.values())
    assert [each.seconds for each in found.found] == sorted(each.seconds for each in found.found)
    front = {row for row in rows.values() if not any(beats(other, row) for other in rows.values())}
    assert {(each.seconds, each.memory) for each in found.pareto} == front
    for one, other in combinations(found.pareto, 2):
        assert one.seconds <= other.seconds
        assert one.memory > other.memory


def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def test_the_trillion_on_3072_gpus() -> None:
    found = search(TRILLION, 3072, A100_80GB)
    assert found.best.seconds == min(each.seconds for each in found.found)
    published = next(each for each in found.found if each.plan == large_runs.TABLE_1[-1].plan)
    assert found.best.seconds < published.seconds
    for each in found.found:
        plan = each.plan
        assert plan.gpus == 3072
        assert plan.global_batch == 3072
        assert plan.tensor <= 8
        assert each.memory <= A100_80GB.memory
        assert TRILLION.layers % (plan.pipeline * plan.chunks) == 0
        assert plan.microbatches * plan.microbatch * plan.data == 3072
    first = found.to_rows(2)
    assert len(first) == 2
    assert first[0]["seconds"] == found.best.seconds
    assert first[0]["memory_gb"] == found.best.memory / 1e9


def test_a_search_for_another_gpu_and_a_batch_of_ones_own() -> None:
    found = search(SMALL, 16, H100, 96)
    assert {each.plan.global_batch for each in found.found} == {96}
    assert found.best.seconds < search(SMALL, 16, A100_80GB, 96).best.seconds
    assert repr(found).endswith(f"on H100-SXM5-80GB: best {found.best.seconds:.1f} s)")


def test_an_iteration_is_told_in_a_line() -> None:
    time: IterationTime = predict(SMALL, Plan(1, 1, 32, 16, 512), A100_80GB)
    assert f"{time.seconds:.3f} s, {time.tflops_per_gpu:.1f} TFLOP/s a GPU" in repr(time)
