"""Test the cluster explorer: its tables, the values it accepts, and those it refuses.

The tables are compared with predict() and memory() at many settings.
"""

import gzip
import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import node
import pytest
from cases import in_turn, refusal
from misuse import refused_and_unchanged

from hybridlab import A100_80GB, B200, FP16, H100, INT8, Plan, Transformer, UnsupportedSize, WireFormat, predict
from hybridlab.course.published.large_runs import RUNS_2022, TABLE_1
from hybridlab.hardware import GPUS, gigabits
from hybridlab.planner import memory
from hybridlab.planner.iteration import PARTS
from hybridlab.widgets import ClusterExplorer, cluster_explorer_data

LARGEST = 45_000  # bytes, gzipped
PORTS = {"InfiniBand EDR": gigabits(100), "InfiniBand HDR": gigabits(200), "InfiniBand NDR": gigabits(400), "slow": 1e9, "fast": 1e11}
WIRES = {"FP32": WireFormat("FP32"), "FP16": FP16, "INT8": INT8, "INT8, block 256": WireFormat("INT8", block=256)}
MODELS = {
    "GPT 1.7B": Transformer(24, 2304, 24),
    "GPT 18B": Transformer(40, 6144, 48),
    "GPT 175B": Transformer(96, 12288, 96),
    "GPT 1T": Transformer(128, 25600, 160),
    "small": Transformer(12, 768, 12, vocabulary=1000, sequence=512),
    "odd": Transformer(15, 960, 15),
}


@cache
def whole() -> ClusterExplorer:
    """Return the grid of the page, which takes seconds."""
    return ClusterExplorer()


@cache
def smaller() -> ClusterExplorer:
    """Return the grid of the page with fewer numbers of ranks and microbatches."""
    return ClusterExplorer(stages=(1, 8, 16), replicas=(16, 64), microbatches=(16, 64), microbatch=(1, 4), chunks=(1, 2))


def small(**changes: Any) -> ClusterExplorer:
    grid: dict[str, Any] = {"models": {"small": MODELS["small"]}, "gpus": A100_80GB, "tensor": (1, 2), "stages": (1, 2, 5)}
    grid |= {"replicas": (1, 6), "microbatches": (1, 4), "microbatch": 2, "wires": FP16, "recompute": "none", "chunks": 1}
    return ClusterExplorer(**(grid | changes))


def entry(table: Mapping[str, Any], places: Mapping[str, int]) -> float:
    place = 0
    for axis, size in zip(table["axes"], table["sizes"], strict=True):
        place = place * size + places[axis]
    return float(table["values"][place])


def shown(data: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that a page computes from the tables: it picks entries, multiplies them and adds them up."""
    places = {axis["name"]: axis["values"].index(setting[axis["name"]]) for axis in data["axes"]}
    places |= {name: int(entry(table, places)) for name, table in data["derived"].items()}
    numbers = {name: entry(table, places) for name, table in data["tables"].items()}
    found: dict[str, Any] = {
        name: sum(prod(numbers.get(factor, factor) for factor in term) for term in terms) for name, terms in data["quantities"].items()
    }
    stages = [{name: found[f"{name}_{stage}"] for name in ("states", "activations", "working")} for stage in ("first", "last")]
    found |= max(stages, key=lambda stage: sum(stage.values()))
    found["total"] = found["states"] + found["activations"] + found["working"]
    told = [data["sentences"][int(entry(data["refused"][name], places))] for name in ("chunks", "layers", "memory")]
    return found | {"refusal": next(filter(None, told), "")}


def settings_of(explorer: ClusterExplorer, count: int) -> list[dict[str, Any]]:
    rng = random.Random(7)  # noqa: S311  # the same settings in every run
    return [{axis["name"]: rng.choice(axis["values"]) for axis in explorer.data["axes"]} for _ in range(count)]


def refused(call: Any, *arguments: Any, **named: Any) -> str:
    try:
        call(*arguments, **named)
    except UnsupportedSize as why:
        return str(why)
    return ""


def judge(found: dict[str, Any], setting: Mapping[str, Any], models: Mapping[str, Transformer] = MODELS) -> str:
    """Raise AssertionError unless the tables equal predict() and memory(); return what kind of setting it is."""
    batch = setting["replicas"] * setting["microbatches"] * setting["microbatch"]
    sizes = [setting["tensor"], setting["stages"], setting["replicas"], setting["microbatch"], batch, setting["chunks"]]
    sizes += [setting["recompute"], setting["sequence_parallel"]]
    model, profile = models[setting["model"]], replace(GPUS[setting["gpu"]], network=PORTS[setting["link"]])
    ask = {"profile": profile, "wire": WIRES[setting["wire"]]}
    assert found["capacity"] == profile.memory / 1e9
    if refused(Plan, *sizes) or refused(memory, model, Plan(*sizes)):
        assert found["refusal"] == refused(Plan, *sizes) or found["refusal"] == refused(memory, model, Plan(*sizes))
        return "does not divide"
    plan = Plan(*sizes)
    assert found["gpus"] == plan.gpus
    used = memory(model, plan)
    assert {name: found[name] * 1e9 for name in used._fields} == pytest.approx(used._asdict(), rel=1e-12)
    numbers = {**used._asdict(), "total": used.total, "over": used.total - profile.memory}
    texts = {name: f"{value / 1e9:.1f}" for name, value in numbers.items()}
    if refused(predict, model, plan, **ask):
        texts |= {"capacity": f"{found['capacity']:g}", "gpu": profile.name}
        assert re.sub(r"\{(\w+)\}", lambda name: texts[name[1]], found["refusal"]) == refused(predict, model, plan, **ask)
        assert found["total"] > found["capacity"]
        return "does not fit"
    time = predict(model, plan, **ask)
    assert not found["refusal"]
    assert found["total"] <= found["capacity"]
    parts = {name: found[name] for name in cluster_explorer_data.PARTS}
    assert parts == pytest.approx({name: time.parts.get(name, 0) for name in parts}, rel=1e-4, abs=1e-7)
    assert sum(parts.values()) == pytest.approx(time.seconds, rel=1e-4)
    assert found["work"] / sum(parts.values()) == pytest.approx(time.tflops_per_gpu, rel=1e-4)
    return "fits"


@pytest.mark.parametrize(("grid", "count"), [(smaller, 100), pytest.param(whole, 3000, marks=pytest.mark.slow)])
def test_the_tables_say_what_the_planner_says_all_over_the_grid(grid: Callable[[], ClusterExplorer], count: int) -> None:
    kinds = [judge(shown(grid().data, setting), setting) for setting in settings_of(grid(), count)]
    assert {kind: kinds.count(kind) > count / 10 for kind in kinds} == {"does not divide": True, "does not fit": True, "fits": True}


def test_another_grid_has_its_own_tables() -> None:
    links = {"slow": 1e9, "fast": 1e11}
    models = {name: MODELS[name] for name in ("odd", "GPT 18B", "small")}
    grid = {"gpus": (H100, GPUS["V100-SXM2-32GB"]), "tensor": (1, 3, 5), "stages": (1, 3, 5, 10), "replicas": (1, 3, 12)}
    counts = {"microbatches": (1, 2, 7, 30), "microbatch": (1, 3, 32)}
    counts |= {"chunks": (1, 3, 5), "links": links}
    explorer = ClusterExplorer(models, **grid, **counts, wires=(INT8, FP16), recompute=("full", "none"), sequence_parallel=True)
    kinds = [judge(shown(explorer.data, setting), setting) for setting in settings_of(explorer, 1000)]
    assert set(kinds) == {"does not divide", "does not fit", "fits"}


@pytest.mark.slow
def test_all_that_a_page_carries_is_small() -> None:
    packed = json.dumps(whole().data, separators=(",", ":"), allow_nan=False).encode()
    assert len(gzip.compress(packed, 6)) < LARGEST


def test_what_is_shown_can_be_set_and_observed() -> None:
    explorer = smaller()
    seen: list[Any] = []
    explorer.observe(lambda change: seen.append((change["name"], change["new"])), list(ClusterExplorer.SETTING))
    sent = {"stages": 16, "recompute": "selective", "chunks": 2, "sequence_parallel": True}
    explorer.set_state(dict(sent))  # a message from the page sets it in this way
    explorer.wire = WireFormat("INT8", block=256)
    assert seen == [*sent.items(), ("wire", "INT8, block 256")]
    plan = Plan(8, 16, 16, microbatch=1, global_batch=1024, chunks=2, recompute="selective", sequence_parallel=True)
    assert explorer.plan == plan
    assert explorer.time == predict(MODELS["GPT 175B"], plan, A100_80GB, wire=WireFormat("INT8", block=256))
    assert explorer.memory == memory(MODELS["GPT 175B"], plan)
    assert "tensor 8, K 16, D 16, M 64 of 1, v 2, InfiniBand HDR, INT8, block 256, selective, sequence parallel>" in repr(explorer)
    explorer.chunks, explorer.stages = 1, 1
    with refusal("too-large", "80 GB", kind=UnsupportedSize):
        _ = explorer.time


def test_it_begins_where_it_is_told_or_at_a_published_shape_or_at_the_first_values() -> None:
    assert repr(small()).endswith("small on 1 x A100-SXM4-80GB, tensor 1, K 1, D 1, M 1 of 2, InfiniBand HDR, FP16, none>")
    shown = small(show={"stages": 2, "replicas": 6})
    assert (shown.stages, shown.replicas, shown.microbatches) == (2, 6, 1)


@in_turn(
    "name, value, code, word",
    [
        ("stages", 3, "out-of-range", "stages = 3: choose from 1, 2, 5"),
        ("stages", True, "out-of-range", "stages = True"),
        ("stages", "2", "out-of-range", "stages = '2'"),
        ("stages", 2.0, "out-of-range", "stages = 2.0"),
        ("microbatch", [2], "out-of-range", "microbatch = [2]"),
        ("gpu", "A100-SXM4-40GB", "unknown-name", "'A100-SXM4-80GB'"),
        ("gpu", A100_80GB, "unknown-name", "Profile"),
        ("wire", INT8, "unknown-name", "'INT8'"),
        ("link", None, "unknown-name", "link of this explorer None"),
        ("recompute", "full", "unknown-name", "'full'"),
        ("chunks", 2, "out-of-range", "chunks = 2: choose from 1"),
        ("sequence_parallel", 1, "not-true-or-false", "sequence_parallel"),
    ],
)
def test_what_the_grid_lacks_is_refused_and_changes_nothing(name: str, value: Any, code: str, word: str) -> None:
    refused_and_unchanged(small, name, value, code, word)


@in_turn(
    "arguments, code, word",
    [
        ({"models": MODELS["small"]}, "wrong-type", "{'GPT 175B': ...}, not Transformer"),
        ({"models": {}}, "wrong-type", "models"),
        ({"models": {3: MODELS["small"]}}, "not-text", "models must be a string, not 3"),
        ({"models": {"small": "small"}}, "wrong-type", "Transformer"),
        ({"gpus": "H100"}, "wrong-type", "A100_80GB, not 'H100'"),
        ({"gpus": ()}, "empty", "gpus"),
        ({"gpus": (B200, replace(B200, memory=1e9))}, "duplicate-name", "'B200-HGX'"),
        ({"tensor": (8, 16)}, "too-large", "8, not 16"),
        ({"tensor": 0}, "too-small", "tensor"),
        ({"stages": float("nan")}, "not-a-whole-number", "stages"),
        ({"replicas": range(10**9)}, "too-large", "replicas has more than 1,000 values"),
        ({"microbatches": 10**8}, "too-large", "microbatches"),
        ({"links": 25e9}, "wrong-type", "links"),
        ({"links": {"none": 0}}, "too-small", "network must be at least 1"),
        ({"links": {"far": float("inf")}}, "not-finite", "link 'far'"),
        ({"wires": "FP16"}, "wrong-type", "wires"),
        ({"recompute": "half"}, "unknown-name", "recomputation 'half'"),
        ({"chunks": (1, 0)}, "too-small", "chunks"),
        ({"sequence_parallel": "no"}, "not-true-or-false", "sequence_parallel"),
        ({"stages": 1, "chunks": 2}, "not-divisible", "2 chunks need a pipeline of at least 2 stages"),
        ({"stages": 5}, "not-divisible", "12 layers cannot be cut into 5 stages"),
        ({"stages": range(1, 1000), "replicas": range(1, 1000)}, "too-large", "2 MB"),
        ({"own": max}, "wrong-type", "own must be functions by title"),
        ({"own": {"mine": 3}}, "wrong-type", "'mine' must stand for a function of model, plan, gpu and wire, not 3"),
        ({"own": {"": max}}, "malformed-name", "a title must be a few words"),
        ({"show": "stages"}, "wrong-type", "show"),
        ({"show": {"stage": 2}}, "unknown-name", "'stages'"),
    ],
)
def test_what_makes_no_grid_is_refused(arguments: dict[str, Any], code: str, word: str) -> None:
    with refusal(code, word):
        small(**arguments)


def test_every_part_of_an_iteration_has_its_words_and_a_colour_of_its_own() -> None:
    never = {"experts", "gathers"}  # this grid has no experts, and no weights or keys that others hold
    assert set(cluster_explorer_data.PARTS) == set(PARTS) - never
    assert len({each["colour"] for each in smaller().data["parts"]}) == len(cluster_explorer_data.PARTS)


def seconds_of(model: Transformer, plan: Plan) -> float:
    """Return the seconds that a page computes for a plan on A100 GPUs with HDR ports."""
    counts = (plan.tensor, plan.pipeline, plan.data, plan.microbatches, plan.microbatch)
    rest: dict[str, Any] = {"chunks": plan.chunks, "recompute": plan.recompute, "sequence_parallel": plan.sequence_parallel}
    explorer = ClusterExplorer({"model": model}, A100_80GB, *counts, links={"HDR": gigabits(200)}, wires=FP16, **rest)
    found = shown(explorer.data, {axis["name"]: axis["values"][0] for axis in explorer.data["axes"]})
    return sum(found[part["name"]] for part in explorer.data["parts"])


def test_published_runs_with_chunks_and_sequence_parallelism_are_near_what_the_page_computes() -> None:
    runs = (*TABLE_1, *RUNS_2022)
    errors = [abs(seconds_of(run.model, run.plan) / run.seconds - 1) for run in runs]
    assert {run.plan.chunks for run in runs} == {1, 2, 3}
    assert max(errors) < 0.07
    slower, faster = (seconds_of(run.model, run.plan) for run in RUNS_2022)
    assert faster / slower == pytest.approx(RUNS_2022[1].seconds / RUNS_2022[0].seconds, rel=0.06)


# ---- the times of functions ----


def test_a_function_gets_each_setting_and_its_times_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    sent: list[Any] = []

    def mine(*arguments: Any) -> dict[str, float]:
        calls.append(arguments)
        return {"matmul": 2, "bubble": arguments[1].pipeline / 8}

    explorer = small(own={"mine": mine}, links={"slow": 1e9})
    assert explorer.own["times"] == {"mine": {"matmul": 2, "bubble": 0.125}}
    assert repr(explorer).endswith("slow, FP16, none; mine 2.125 s>")
    monkeypatch.setattr(type(explorer), "_send", lambda self, message, buffers=None: sent.append(message))
    explorer.set_state({"stages": 2, "microbatches": 4})  # a message from the page
    assert sent[-1]["state"] == {
        "own": {"setting": explorer.own["setting"], "times": {"mine": {"matmul": 2, "bubble": 0.25}}, "problems": {}}
    }
    assert [plan for _, plan, *_ in calls] == [Plan(1, 1, 1, 2, 2, recompute="none"), Plan(1, 2, 1, 2, 8, recompute="none")]
    assert {(model, gpu.name, gpu.network, wire) for model, _, gpu, wire in calls} == {(MODELS["small"], A100_80GB.name, 1e9, FP16)}
    assert explorer.own["setting"] == {name: getattr(explorer, name) for name in ClusterExplorer.SETTING}
    explorer.stages = 5  # 12 layers cannot be cut into 5 stages
    assert (explorer.own["times"], explorer.own["problems"], len(calls)) == ({}, {}, 2)
    assert small().own["times"] == {}


@in_turn(
    "function, problem",
    [
        (lambda *_: 3, "it must return seconds by part, such as {'matmul': 12.5}, not 3"),
        (lambda *_: {"matmull": 1}, "unknown part of an iteration 'matmull': did you mean 'matmul'?"),
        (lambda *_: {"matmul": -1}, "matmul must be finite numbers of zero or more, but it is -1"),
        (lambda *_: {"matmul": "1"}, "matmul"),
        (lambda *_: {}["M"], "KeyError: 'M'"),
        (lambda model: {}, "TypeError: "),
    ],
)
def test_a_function_without_times_has_a_sentence(function: Any, problem: str) -> None:
    explorer = small(own={"mine": function, "other": lambda *_: {"bubble": 1}})
    assert problem in explorer.own["problems"]["mine"]
    assert explorer.own["times"] == {"other": {"bubble": 1}}
    assert problem in repr(explorer)


@pytest.mark.needs("node")
def test_what_the_page_says_of_a_function(tmp_path: Path) -> None:
    code = """
import { ownOf } from "./cluster_explorer_words.js";
import { plannerOf } from "./cluster_explorer_plans.js";
const answer = ({ data, own, settings }) => {
  const { read } = plannerOf(data);
  return settings.flatMap((setting) => [true, false].map((followed) => ownOf(data, own, read(setting), followed)));
};
"""
    functions = {"mine": lambda *_: {"matmul": 2, "bubble": 0}, "wrong": lambda *_: 3}
    explorer = small(own=functions, show={"stages": 2})
    first = explorer.own["setting"]
    asked = {"data": explorer.data, "own": explorer.own, "settings": [first, first | {"stages": 1}, first | {"stages": 5}]}
    here, same, waits, still, *refused = node.run(tmp_path, code, asked)
    assert here == same
    assert refused == [None, None]
    seconds, ratio = explorer.time.seconds, 2 / explorer.time.seconds
    told = re.fullmatch(
        r"mine gives 2.00 s, ([\d.]+) times the ([\d.]+) s of the library. It leaves out (.*). wrong gives (.*)", here["told"]
    )
    assert told
    assert (float(told[1]), float(told[2])) == (pytest.approx(ratio, rel=0.01), pytest.approx(seconds, rel=0.01))
    left_out = "memory traffic, tensor-parallel all-reduce, point-to-point, data-parallel all-reduce, optimiser"
    assert told[3] == f"{left_out} and waiting for kernels to start"
    assert told[4] == f"no time here: {explorer.own['problems']['wrong']}."
    library, mine = here["bars"]
    assert {part["name"]: part["seconds"] for part in library["parts"]} == pytest.approx(
        {name: explorer.time.parts.get(name, 0) for name in cluster_explorer_data.PARTS}, rel=1e-4
    )
    assert [part["seconds"] for part in mine["parts"]] == [2, None, None, None, 0, None, None, None]
    assert (waits["bars"], waits["told"]) == ([], "mine and wrong: computing \u2026")
    assert still["told"].startswith("This page has mine and wrong only for its first setting, Stages K = 2.")
