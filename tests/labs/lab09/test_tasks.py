"""Test lab 9's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from notebooks import LABS, cells_of
from solutions import solutions_of

from hybridlab.collectives import ring_all_reduce
from hybridlab.costs import Costs
from hybridlab.course.labs.lab09.iteration import NAMES, pieces_of, read_shape, summed
from hybridlab.course.published.large_runs import TABLE_1
from hybridlab.course.tasks import TASKS, check
from hybridlab.hardware import A100_80GB
from hybridlab.planner import Plan, memory, predict
from hybridlab.schedules import build
from hybridlab.simulation import simulate

LAB = cells_of(next(LABS.glob("lab09_*.ipynb")))
Given = dict[str, Any]


def times(model: Given, plan: Given, rates: Given, mistake: str = "") -> Any:
    """Return the parts of an iteration as a student writes them, with a mistake by its name."""
    layers, h, s, vocabulary = model["layers"], model["hidden"], model["sequence"], model["vocabulary"]
    t, stages, replicas, b = plan["tensor"], plan["stages"], plan["replicas"], plan["microbatch"]
    count = plan["batch"] / b / (1 if mistake == "samples-of-all-replicas" else replicas)
    mine = layers if mistake == "all-layers" else layers / stages
    forward = 24 * b * s * h**2 * (1 if mistake == "no-attention" else 1 + s / (6 * h))
    passes = 3 if mistake in ("backward-like-forward", "no-recomputation") else 4
    shared = 1 if mistake == "layers-not-shared" else t
    layer = passes * forward / shared / rates["flops"]
    logits = {"no-logits": 0, "backward-like-forward": 4}.get(mistake, 6) * b * s * h * vocabulary / shared / rates["flops"]
    slower = 8 if mistake == "bits" else 1

    def ring(ranks: int, nbytes: float, rate: float) -> float:
        if mistake == "no-ring-factor":
            return slower * nbytes / rate if ranks > 1 else 0
        return (1 if mistake == "half-a-ring" else 2) * (ranks - 1) / ranks * nbytes / rate * slower

    sent = (1 if mistake == "activations-without-bytes" else 2) * b * s * h
    rings = (4 if mistake == "no-recomputation" else 6) * ring(t, sent, rates["nvlink"])
    exchange = (1 if mistake == "one-direction" else 2) * slower * sent / (1 if mistake == "messages-not-shared" else t) / rates["network"]
    exchange *= stages > 1
    parameters = (layers / stages * (12 * h**2 + 13 * h) + vocabulary * h) / t + s * h
    one = mine * (layer + rings) + exchange
    bubble = {
        "bubble-of-k": stages * one,
        "bubble-ratio": (stages - 1) / (count + stages - 1) * count * one,
        "bubble-with-logits": (stages - 1) * (one + logits + ring(t, sent, rates["nvlink"])),
        "bubble-of-computing-alone": (stages - 1) * mine * layer,
    }
    found = {
        "compute": count * (mine * layer + logits),
        "tensor": count * (mine * rings + ring(t, sent, rates["nvlink"])),
        "messages": count * exchange,
        "bubble": bubble.get(mistake, (stages - 1) * one),
        "gradients": ring(replicas, 2 * parameters / (replicas if mistake == "parameters-over-replicas" else 1), rates["network"]),
    }
    return found | {"total": sum(found.values())}


def making(mistake: str) -> Any:
    return lambda model, plan, rates: times(model, plan, rates, mistake)


def with_part(name: str, factor: float = 1.0, more: float = 0.0) -> Any:
    """Return a program with one part that is not the right one."""

    def program(model: Given, plan: Given, rates: Given) -> Any:
        parts = times(model, plan, rates)
        return parts | {name: factor * parts[name] + more}

    return program


def the_example(model: Given, plan: Given, rates: Given) -> Any:
    """The first example of the lab, and nothing else."""
    return dict(zip(NAMES, (0.4454, 0.1344, 0.1920, 0.2355, 1.064, 2.071), strict=True))


def changing(model: Given, plan: Given, rates: Given) -> Any:
    parts = times(model, plan, rates)
    plan["batch"] /= plan["replicas"] * 2
    return parts


MISTAKES = (
    "no-recomputation", "backward-like-forward", "no-attention", "no-logits", "layers-not-shared", "all-layers",
    "samples-of-all-replicas", "activations-without-bytes", "bits", "no-ring-factor", "half-a-ring", "one-direction",
    "messages-not-shared", "bubble-of-k", "bubble-ratio", "bubble-with-logits", "bubble-of-computing-alone",
    "parameters-over-replicas",
)  # fmt: skip

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab09.t1", 0.86, "report"),
    ("lab09.t1", 365, "time-of-a-step"),
    ("lab09.t1", 2080 / 625, "sixteen-microbatches"),
    ("lab09.t1", 2080 / 690, "reading-a"),
    ("lab09.t1", 4160 / 1210, "reading-a-with-sixteen"),
    ("lab09.t1", 1040 / 625, "eight-against-sixteen"),
    ("lab09.t1", 2080 / 365, "sixteen-against-eight"),
    ("lab09.t1", 520 / 365, "four-against-eight"),
    ("lab09.t1", 1040 / 325, "no-rings"),
    ("lab09.t1", 1040 / 300, "no-fill-and-drain"),
    ("lab09.t1", 4, "nothing-lost"),
    ("lab09.t1", 260 / 365, "efficiency"),
    ("lab09.t1", 2.5, "wrong-value"),
    ("lab09.t1", 2.8, "too-few-decimals", "2 decimals"),
    ("lab09.t1", "2.85", "not-a-number"),
    ("lab09.t2", 28, "bubble-alone"),
    ("lab09.t2", 38, "rings-of-two-stages"),
    ("lab09.t2", 62, "both-replicas"),
    ("lab09.t2", 29, "reading-a"),
    ("lab09.t2", 30, "too-few", "0.8"),
    ("lab09.t2", 32, "more-than-enough"),
    ("lab09.t2", 30.5, "not-a-whole-number"),
    ("lab09.t2", 2001, "out-of-range", "2,000"),
    ("lab09.t3", [0.125, 0.125, 0.125], "one-message"),
    ("lab09.t3", [0.0625, 0.03125, 0.015625], "constant-gradients"),
    ("lab09.t3", [0.25, 0.75, 1.75], "steps-added"),
    ("lab09.t3", [0.125, 0.375, 0.875], "half-of-the-steps-added"),
    ("lab09.t3", [2, 4, 8], "bits"),
    ("lab09.t3", [0.5, 1, 2], "gigabytes"),
    ("lab09.t3", [0.125, 0.25, 0.5], "fp32"),
    ("lab09.t3", [4, 8, 16], "gigabits"),
    ("lab09.t3", [3, 6, 12], "nvlink"),
    ("lab09.t3", [6, 12, 24], "nvlink-both-ways"),
    ("lab09.t3", [0.225, 0.45, 0.9], "nine-tenths"),
    ("lab09.t3", [250, 500, 1000], "millions"),
    ("lab09.t3", [2.5e8, 5e8, 1e9], "ones"),
    ("lab09.t3", [1, 2, 3], "another-shape"),
    ("lab09.t3", [0.75, 1.5, 3], "wrong-value", "3 times"),
    ("lab09.t3", [0, 0, 0], "wrong-value", "0 times"),
    ("lab09.t3", 0.25, "not-a-list"),
    ("lab09.t4", (8, 8, 8, 1), "another-number-of-gpus", "512 GPUs", "64"),
    ("lab09.t4", (16, 1, 4, 1), "tensor-across-nodes"),
    ("lab09.t4", (8, 1, 8, 1), "states-do-not-fit"),
    ("lab09.t4", (8, 2, 4, 4), "activations-do-not-fit"),
    ("lab09.t4", (1, 64, 1, 1), "not-divisible", "48 layers"),
    ("lab09.t4", (4, 4, 4, 2), "activations-do-not-fit"),
    ("lab09.t4", (1, 16, 4, 1), "states-do-not-fit"),
    ("lab09.t4", (8, 2, 4, 3), "batch-not-divisible", "512 samples", "4 replicas", "microbatches of 3"),
    ("lab09.t4", (8, 8, 1, 1), "too-slow", "1.183", "2.6 s", "tensor parallel"),
    ("lab09.t4", (4, 16, 1, 1), "logits-weigh-more", "2.1 s", "3 layers"),
    ("lab09.t4", (4, 4, 4, 0.5), "not-a-whole-number", "1 to 512"),
    ("lab09.t4", (4, 4, 4), "wrong-length"),
    ("lab09.t4", Plan(4, 4, 4, 1, 512), "another-setting", "recompute", "'none'", "'full'"),
    ("lab09.t4", Plan(4, 4, 4, 1, 1024, recompute="none"), "another-setting", "global_batch", "512"),
    ("lab09.t4", {"tensor": 4, "pipeline": 4, "data": 4}, "wrong-shape", "microbatch"),
    ("lab09.t4", Plan(4, 4, 4, 1, 512, recompute="none", sequence_parallel=True), "another-setting", "sequence_parallel"),
    *(("lab09.t5", making(mistake), mistake) for mistake in MISTAKES),
    *(("lab09.t5", with_part(name, 1.03), f"wrong-{name}", "1.03") for name in NAMES),
    *(("lab09.t5", with_part(name, more=1.0), f"no-{name}", "1 s") for name in NAMES[1:-1]),
    ("lab09.t5", the_example, "wrong-compute"),
    ("lab09.t5", changing, "changes-its-argument", "batch"),
    ("lab09.t5", lambda model, plan, rates: times(model, plan, rates)["total"], "wrong-shape", "gradients"),
    ("lab09.t5", lambda model, plan, rates: {"compute": 1.0}, "wrong-shape"),
    ("lab09.t5", with_part("bubble", float("nan")), "not-a-number", "bubble"),
    ("lab09.t5", with_part("total", float("inf")), "not-a-number", "total"),
    ("lab09.t5", lambda model, plan: {}, "signature", "iteration_time(model, plan, rates)"),
    ("lab09.t5", 11.67, "not-a-function"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab09.t1", 2.85),
    ("lab09.t1", np.float64(1040 / 365)),
    ("lab09.t2", 31.0),
    ("lab09.t2", np.int64(31)),
    ("lab09.t3", (0.25, 0.5, 1)),
    ("lab09.t3", np.array([0.25, 0.5, 1.0])),
    ("lab09.t3", [Fraction(1, 4), Fraction(1, 2), 1]),
    ("lab09.t4", [4, 4, 4, 1]),
    ("lab09.t4", (4, 8, 2, 2)),
    ("lab09.t4", (4, 8, 2, 1.0)),
    ("lab09.t4", Plan(4, 4, 4, 1, 512, recompute="none")),
    ("lab09.t4", {"data": 4, "tensor": 4, "microbatch": 1, "pipeline": 4}),
    ("lab09.t5", times),
    ("lab09.t5", lambda *given: {name: np.float64(1.015 * part) for name, part in times(*given).items()}),
    ("lab09.t5", lambda *given: dict(sorted(times(*given).items()))),
]


def test_thirty_one_microbatches_are_the_fewest() -> None:
    """M c / ((M + 7) c + 2 t), c = 130/8 ms and t = 5 ms."""
    efficiency = {count: count * 130 / 8 / ((count + 7) * 130 / 8 + 2 * 5) for count in range(1, 100)}
    assert min(count for count, reached in efficiency.items() if reached >= 0.8) == 31
    for count in (30, 31):
        assert f"{efficiency[count]:.4f}" in check("lab09.t2", count).messages[0]


def numbers_of(key: str, seed: int | None) -> list[int]:
    """The whole numbers in the prompt of a task."""
    return [int(number) for number in re.findall(r"\d+", TASKS[key].instance(seed).prompt)]


@in_turn("seed", [None, *range(20)])
def test_the_speedup_of_two_replicas_that_share_other_microbatches(seed: int | None) -> None:
    *_, microbatches, forward, backward, ring_step = numbers_of("lab09.t1", seed)
    pair = forward + backward
    step = (microbatches / 2 + 1) * pair / 2 + 2 * ring_step
    assert check("lab09.t1", round(microbatches * pair / step, 2), seed=seed).passed


@in_turn("seed", [None, *range(20)])
def test_the_parameters_that_other_ring_steps_stand_for(seed: int | None) -> None:
    _, ring_step, *replicas = numbers_of("lab09.t3", seed)
    assert check("lab09.t3", [ranks * ring_step * 25e6 / 2 / 1e9 for ranks in replicas], seed=seed).passed


@in_turn("seed", range(20))
def test_the_fewest_microbatches_of_other_pipelines(seed: int) -> None:
    numbers = re.findall(r"[\d.]+", TASKS["lab09.t2"].instance(seed).prompt)
    stages, replicas, goal, _, ring_step = map(Fraction, numbers)
    assert ring_step == 40 / stages
    stage = Fraction(130) / stages
    count = next(m for m in range(1, 200) if m * stage * 100 >= goal * ((m + stages - 1) * stage + 2 * (replicas - 1) * ring_step))
    assert check("lab09.t2", count, seed=seed).passed


def test_plans_are_judged_by_all_plans_that_fit() -> None:
    """Every plan of the task by brute force: those that fit within a tenth of the fastest pass, and no other."""
    (model,) = (run.model for run in TABLE_1 if run.billions == 39.1)
    times: dict[tuple[int, ...], float] = {}
    for tensor in (1, 2, 4, 8):
        for pipeline in (1, 2, 4, 8, 16):
            if 64 % (tensor * pipeline):
                continue
            for size in (1, 2, 4, 8, 16, 32):
                sizes = (tensor, pipeline, 64 // tensor // pipeline, size)
                if 512 % (sizes[2] * size):
                    continue
                plan = Plan(*sizes, 512, recompute="none")
                if memory(model, plan).total <= 80e9:
                    times[sizes] = predict(model, plan, A100_80GB).seconds
                else:
                    assert not check("lab09.t4", sizes).passed
    fastest = min(times.values())
    assert {sizes for sizes in times if check("lab09.t4", sizes).passed} == {
        sizes for sizes, time in times.items() if time <= 1.1 * fastest
    }
    assert 3 <= sum(time <= 1.1 * fastest for time in times.values()) < len(times) / 2


def cases_of(seed: int = 3) -> list[tuple[Given, Given, Given]]:
    made = TASKS["lab09.t5"].instance(None).data.cases(np.random.default_rng(seed))
    return [case.arguments for case in made]


def goal_of(model: Given, plan: Given, rates: Given) -> dict[str, float]:
    return summed(pieces_of(*read_shape(model, plan), rates))


def test_the_operations_of_a_layer_are_those_of_its_products() -> None:
    """Count 2mnk for each product of two matrices: the forward, the same again, and two products for each in the backward."""
    for model, plan, rates in cases_of():
        b, s, h, vocabulary = plan["microbatch"], model["sequence"], model["hidden"], model["vocabulary"]
        products = [(b * s, h, 3 * h), (b * s, h, s), (b * s, s, h), (b * s, h, h), (b * s, h, 4 * h), (b * s, 4 * h, h)]
        layer = 4 * sum(2 * m * n * k for m, n, k in products)
        logits = 3 * 2 * b * s * h * vocabulary
        count = plan["batch"] // (b * plan["replicas"])
        whole = count * (model["layers"] // plan["stages"] * layer + logits)
        assert goal_of(model, plan, rates)["compute"] * rates["flops"] * plan["tensor"] == pytest.approx(whole)


def test_rings_take_the_bytes_that_real_rings_send() -> None:
    """Send arrays around a ring, hop by hop, and count the bytes of one rank: 2 for a number in FP16."""
    for model, plan, rates in cases_of():
        parts = goal_of(model, plan, rates)
        t, replicas, h = plan["tensor"], plan["replicas"], model["hidden"]
        per_number = {
            ranks: ring_all_reduce(np.zeros((ranks, 840 * ranks))).bytes_sent[0] / (840 * ranks) / 4 * 2 for ranks in (t, replicas)
        }
        count, numbers = plan["batch"] // (plan["microbatch"] * replicas), plan["microbatch"] * model["sequence"] * h
        inside = count * (6 * model["layers"] / plan["stages"] + 1) * numbers * per_number[t] if t > 1 else 0
        assert parts["tensor"] * rates["nvlink"] == pytest.approx(inside)
        layer = 3 * h * h + 3 * h + h * h + h + 4 * h * h + 4 * h + 4 * h * h + h + 4 * h  # QKV, output, MLP, two normalisations
        mine = (model["layers"] / plan["stages"] * layer + model["vocabulary"] * h) / t + model["sequence"] * h
        assert parts["gradients"] * rates["network"] == pytest.approx(mine * per_number[replicas] if replicas > 1 else 0)


def test_the_bubble_is_that_of_1f1b_on_the_clock() -> None:
    """Simulate 1F1B whose operations include all-reduces and messages. The last stage is slower, because it has the logits as well."""
    for model, plan, rates in cases_of():
        parts = goal_of(model, plan, rates)
        count = plan["batch"] // (plan["microbatch"] * plan["replicas"])
        halved = goal_of(model | {"vocabulary": model["vocabulary"] // 2}, plan, rates)
        logits = 2 * (parts["compute"] - halved["compute"]) + parts["tensor"] / (6 * model["layers"] / plan["stages"] + 1)
        last = (parts["compute"] + parts["tensor"] + parts["messages"]) / count
        pairs = np.array([last - logits / count] * (plan["stages"] - 1) + [last])
        clock = simulate(build("1f1b", plan["stages"], count), Costs(forward=pairs / 4, backward=pairs * 3 / 4))
        assert parts["total"] - parts["gradients"] == pytest.approx(clock.makespan)


def test_computing_and_gradients_of_published_runs_are_those_of_the_planner() -> None:
    for run in TABLE_1:
        shape, plan = run.model, run.plan
        parts = goal_of(
            {name: getattr(shape, name) for name in ("layers", "hidden", "sequence", "vocabulary")},
            {
                "tensor": plan.tensor,
                "stages": plan.pipeline,
                "replicas": plan.data,
                "microbatch": plan.microbatch,
                "batch": plan.global_batch,
            },
            {"flops": A100_80GB.matmul_flops, "nvlink": A100_80GB.nvlink, "network": A100_80GB.network},
        )
        predicted = predict(shape, plan, A100_80GB, efficiency=1)
        assert parts["compute"] == pytest.approx(predicted.matmul)
        assert parts["tensor"] <= predicted.tensor_parallel  # measured rings are slower than the link
        assert parts["messages"] <= predicted.point_to_point


def test_the_examples_of_the_lab_are_right() -> None:
    """Read them from the table on the page, run the worked solution on them, and ask the judge."""
    (page,) = (cell.source for cell in LAB if "Task 5" in cell.source)
    rows = {cells[1].strip(' `"'): cells[2:4] for line in page.splitlines() if (cells := line.split("|"))[0] == "" and len(cells) == 5}
    for column in (0, 1):
        values = {name: [float(each) for each in re.findall(r"\d[\de.]*", rows[name][column])] for name in ("model", "plan", "rates")}
        given = (
            dict(zip(("layers", "hidden", "sequence", "vocabulary"), values["model"], strict=True)),
            dict(zip(("tensor", "stages", "replicas", "microbatch", "batch"), values["plan"], strict=True)),
            dict(zip(("flops", "nvlink", "network"), values["rates"], strict=True)),
        )
        for found in (goal_of(*given), solutions_of("lab09")["lab09.t5"](*given)):
            assert {name: f"{found[name]:#.4g}" for name in NAMES} == {name: rows[name][column].strip() for name in NAMES}


def test_the_text_of_task_4_rules_out_what_its_judge_rules_out() -> None:
    (page,) = (cell.source for cell in LAB if "Task 4:" in cell.source)
    for words in (page.replace("\n", " "), TASKS["lab09.t4"].prompt):
        assert "no sequence parallelism" in words
        assert "one chunk" in words
        assert "othing is recomputed" in words or "nothing recomputed" in words


def test_replicas_save_no_memory_only_because_no_optimiser_is_sharded() -> None:
    assert "sharded" in check("lab09.t4", (8, 1, 8, 1)).messages[0]
    (page,) = (cell.source for cell in LAB if "pipeline divides the states" in cell.source)
    assert "with `zero=1` each replica keeps a part" in " ".join(page.split()).replace("With", "with")


def test_no_output_of_the_lab_is_wider_than_its_page() -> None:
    lines = [line for cell in LAB for each in cell.outputs for line in "".join(each.get("text", "")).splitlines()]
    assert lines
    assert max(map(len, lines)) <= 80


def test_settings_of_a_plan_are_explained_before_they_are_used() -> None:
    texts = [cell.source for cell in LAB]
    for name, used in (("Sequence parallelism", "sequence_parallel"), ("Chunks", "chunks"), ('With `"selective"`', "selective")):
        explained = next(place for place, text in enumerate(texts) if name in text)
        assert all(used not in text for text in texts[:explained])
