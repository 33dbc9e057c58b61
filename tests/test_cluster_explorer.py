"""The cluster explorer: its tables against predict() and memory() at settings all over the grid, what can be set, what is refused."""

import gzip
import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any

import pytest

from hybridlab import A100_80GB, B200, FP16, H100, INT8, HybridLabError, Plan, Transformer, UnsupportedSize, WireFormat, predict
from hybridlab.hardware import GPUS
from hybridlab.planner import memory
from hybridlab.widgets import ClusterExplorer
from hybridlab.widgets.cluster_explorer_cases import LINKS, MODELS, WIRES

SMALL = Transformer(layers=12, hidden=768, heads=12)


@cache
def whole() -> ClusterExplorer:
    return ClusterExplorer()


def small(**changes: Any) -> ClusterExplorer:
    grid = {"models": {"small": SMALL}, "gpus": A100_80GB, "tensor": (1, 2), "stages": (1, 2, 3), "replicas": (1, 6), "microbatches": (1, 4)}
    return ClusterExplorer(**{**grid, "microbatch": 2, "wires": FP16, "recompute": "none", **changes})


def entry(table: Mapping[str, Any], places: Mapping[str, int]) -> float:
    place = 0
    for axis, size in zip(table["axes"], table["sizes"], strict=True):
        place = place * size + places[axis]
    return float(table["values"][place])


def shown(data: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """What a page makes of the tables: picked, multiplied, added."""
    places = {axis["name"]: axis["values"].index(setting[axis["name"]]) for axis in data["axes"]}
    places |= {name: int(entry(table, places)) for name, table in data["derived"].items()}
    found: dict[str, Any] = {
        name: sum(prod(entry(table, places) for table in tables) for tables in terms) for name, terms in data["quantities"].items()
    }
    told = [data["sentences"][int(entry(table, places))] for table in data["refused"]]
    found["refusal"] = next(filter(None, told), "")
    return found


def settings_of(explorer: ClusterExplorer, count: int) -> list[dict[str, Any]]:
    rng = random.Random(7)  # noqa: S311  # the same settings in every run
    return [{axis["name"]: rng.choice(axis["values"]) for axis in explorer.data["axes"]} for _ in range(count)]


def asked(setting: Mapping[str, Any], models: Mapping[str, Transformer] = MODELS) -> tuple[Any, ...]:
    """The same setting as a caller of predict() writes it."""
    batch = setting["replicas"] * setting["microbatches"] * setting["microbatch"]
    plan = Plan(setting["tensor"], setting["stages"], setting["replicas"], setting["microbatch"], batch, recompute=setting["recompute"])
    return models[setting["model"]], plan, replace(GPUS[setting["gpu"]], network=LINKS[setting["link"]])


def judge(found: dict[str, Any], setting: Mapping[str, Any], models: Mapping[str, Transformer] = MODELS) -> str:
    """Raise AssertionError unless the tables say what predict() and memory() do; return what kind of setting it was."""
    model, plan, profile = asked(setting, models)
    wire = {str(each): each for each in WIRES}[setting["wire"]]
    assert found["gpus"] == plan.gpus
    try:
        time = predict(model, plan, profile, wire=wire)
    except UnsupportedSize as why:
        try:
            used = memory(model, plan)
        except UnsupportedSize:
            assert found["refusal"] == str(why)
            return "does not divide"
        over = f"{used.total / 1e9 - profile.memory / 1e9:.1f}"
        numbers = {"total": f"{found['total']:.1f}", "over": over, "capacity": f"{found['capacity']:g}", "gpu": profile.name}
        numbers |= {name: f"{found[name]:.1f}" for name in ("states", "activations", "working")}
        assert re.sub(r"\{(\w+)\}", lambda name: numbers[name[1]], found["refusal"]) == str(why)
        return "does not fit"
    assert not found["refusal"]
    parts = {name: found[name] for name in time.parts}
    assert parts == pytest.approx(time.parts, rel=1e-4, abs=1e-12)
    assert found["work"] / sum(parts.values()) == pytest.approx(time.tflops_per_gpu, rel=1e-4)
    used = memory(model, plan)
    assert [found[name] for name in ("states", "activations", "working")] == [float(f"{part / 1e9:.1f}") for part in used]
    assert found["total"] == float(f"{used.total / 1e9:.1f}")
    assert found["capacity"] == profile.memory / 1e9
    return "fits"


def test_the_tables_say_what_the_planner_says_all_over_the_grid() -> None:
    data = whole().data
    kinds = [judge(shown(data, setting), setting) for setting in settings_of(whole(), 4000)]
    assert {kind: kinds.count(kind) > 300 for kind in kinds} == {"does not divide": True, "does not fit": True, "fits": True}


def test_all_of_a_page_is_small() -> None:
    packed = json.dumps(whole().data, separators=(",", ":")).encode()
    assert len(gzip.compress(packed, 6)) < 120_000
