"""Check that the map of a cluster explorer has a mark at the right place for each plan, and the right Pareto front.

All plans are listed anew, and their times and memory come from predict() and memory().
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import Locator

from hybridlab import Plan, Transformer, UnsupportedSize, WireFormat, predict
from hybridlab.hardware import GPUS, Profile, gigabits
from hybridlab.planner import memory

PORTS = {"InfiniBand EDR": gigabits(100), "InfiniBand HDR": gigabits(200), "InfiniBand NDR": gigabits(400)}
WIRES = {str(wire): wire for wire in (WireFormat("FP32"), WireFormat("FP16"), WireFormat("INT8", block=256))}
COUNTS = ("Tensor GPUs", "Stages K", "Replicas D", "Microbatches M", "Microbatch size", "Chunks v")
SHAPES = 7  # of marks
RISE = (0.0, -1.0, -1.3, -1.4, 1.3, -0.5, -1.0)  # where the path of each shape starts, in sizes of a mark from its centre
SHIFT = (-1.0, -1.0, 0.0, 0.0, 0.0, -1.4, -1.0)
SIZE = 3.5  # px
NEAR = 0.03  # px
SEEN = """(root) => {
  const map = root.querySelector(".map");
  const numbers = (element, ...names) => element && names.map((name) => Number(element.getAttribute(name)));
  const starts = (path) => [...path.getAttribute("d").matchAll(/M(-?[\\d.]+) (-?[\\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
  const groups = [...map.querySelectorAll("g")];
  return {
    offered: Object.fromEntries([...root.querySelectorAll(".field")].map((field) =>
      [field.querySelector("label").textContent, [...field.querySelectorAll("option")].map((option) => option.textContent)])),
    marks: groups.flatMap((group, depth) =>
      [...group.children].flatMap((path) => starts(path).map((start) => [depth, !path.matches(".hollow"), ...start]))),
    columns: [...map.querySelectorAll("text.tick.middle")].map((text) => [Number(text.textContent), ...numbers(text, "x")]),
    rows: [...map.querySelectorAll("text.tick.right")].filter((text) => text.getAttribute("x") < 60)
      .map((text) => [Number(text.textContent), Number(text.getAttribute("y")) - 4]),
    capacity: numbers(map.querySelector(".capacity"), "x1"), front: map.querySelector("path.front")?.getAttribute("d") ?? "",
    here: numbers(map.querySelector(".here"), "cx", "cy"), head: root.querySelector(".head").textContent,
  };
}"""


class Point(NamedTuple):
    """One plan of a map."""

    depth: int  # the index of its number of stages
    fits: bool
    gigabytes: float
    seconds: float
    plan: Plan


@lru_cache(maxsize=64)
def points_of(
    model: Transformer, profile: Profile, wire: WireFormat, total: tuple[int, int], offered: tuple[tuple[str, ...], ...], recompute: Any
) -> list[Point]:
    """Return all plans with these numbers of GPUs and samples that the controls offer."""
    found = []
    tensors, depths, replicas, microbatches, sizes, chunks = ([int(each) for each in values] for values in offered)
    for tensor, stages, data, count, size, chunk in product(tensors, depths, replicas, microbatches, sizes, chunks):
        if (tensor * stages * data, data * count * size) != total:
            continue
        for kind, split in product(*recompute):
            if split == "yes" and tensor == 1 and "no" in recompute[1]:
                continue
            try:
                plan = Plan(tensor, stages, data, size, total[1], chunk, kind, split == "yes")
                used = memory(model, plan).total
            except UnsupportedSize:
                continue
            seconds = predict(model, plan, profile, wire=wire, must_fit=False).seconds
            found.append(Point(depths.index(stages), used <= profile.memory, used / 1e9, seconds, plan))
    return found


def expected(seen: Any, setting: Mapping[str, str], models: Mapping[str, Transformer]) -> tuple[list[Point], Profile]:
    """Return all plans that belong on the map of this setting, and the GPU."""
    profile = replace(GPUS[setting["GPU"]], network=PORTS[setting["Network port"]])
    tensor, stages, data, count, size, _ = (int(setting[label]) for label in COUNTS)
    total = (tensor * stages * data, data * count * size)
    offered = tuple(tuple(seen["offered"][label]) for label in COUNTS)
    recompute = tuple(tuple(seen["offered"][label]) for label in ("Recomputation", "Sequence parallel"))
    return points_of(models[setting["Model"]], profile, WIRES[setting["Gradients sent as"]], total, offered, recompute), profile


def plan_of(setting: Mapping[str, str]) -> Plan | None:
    """Return the plan of a setting in the form in which the map has it, or None if there is no such plan."""
    tensor, stages, data, count, size, chunks = (int(setting[label]) for label in COUNTS)
    split = tensor > 1 and setting["Sequence parallel"] == "yes"
    try:
        return Plan(tensor, stages, data, size, data * count * size, chunks, setting["Recomputation"], split)
    except UnsupportedSize:
        return None


def scale_of(ticks: list[list[float]]) -> Any:
    """Return the function from a value to px that a logarithmic axis with these ticks shows."""
    values, places = np.array(ticks).T
    slope, start = np.polyfit(np.log(values), places, 1)
    assert np.allclose(start + slope * np.log(values), places, atol=0.02)
    return lambda value: start + slope * np.log(value)


def front_of(points: list[Point]) -> list[Point]:
    """Return the plans that fit and to which no plan is superior, by trying all pairs: fastest first."""

    def is_better(one: Point, other: Point) -> bool:
        no_worse = one.gigabytes <= other.gigabytes and one.seconds <= other.seconds
        return no_worse and (one.gigabytes < other.gigabytes or one.seconds < other.seconds)

    fitting = [each for each in points if each.fits]
    return sorted((each for each in fitting if not any(is_better(other, each) for other in fitting)), key=lambda each: each.seconds)


def is_right(view: Locator, setting: Mapping[str, str], models: Mapping[str, Transformer]) -> None:
    """Raise AssertionError unless the map shows all plans of this setting where they belong."""
    seen = view.evaluate(SEEN)
    points, profile = expected(seen, setting, models)
    drawn = [each for each in points if each.gigabytes <= 2 * profile.memory / 1e9]
    fit = sum(each.fits for each in points)
    assert seen["head"].startswith(f"{len(points):,} plan{'s' * (len(points) != 1)} for ")
    assert f": {fit:,} fit" in seen["head"] if fit else ": none fits." in seen["head"]
    if not drawn:
        assert not seen["rows"]
        assert not seen["marks"]
        return
    x, y = scale_of(seen["columns"]), scale_of(seen["rows"])
    assert abs(seen["capacity"][0] - x(profile.memory / 1e9)) < NEAR
    right = sorted((each.depth, each.fits, x(each.gigabytes), y(each.seconds)) for each in drawn)
    marks = sorted(
        (depth, fits, left - SIZE * SHIFT[depth % SHAPES], top - SIZE * RISE[depth % SHAPES]) for depth, fits, left, top in seen["marks"]
    )
    assert len(marks) == len(right)
    assert [mark[:2] for mark in marks] == [each[:2] for each in right]
    for depth, fits in {each[:2] for each in right}:
        places, wanted = (np.array([each[2:] for each in found if each[:2] == (depth, fits)]) for found in (marks, right))
        away = np.abs(places[:, None] - wanted[None]).max(-1)
        assert away.min(0).max() < NEAR, "each plan has a mark"
        assert away.min(1).max() < NEAR, "each mark has a plan"
    here = [(x(each.gigabytes), y(each.seconds)) for each in drawn if each.plan == plan_of(setting)]
    assert bool(here) == bool(seen["here"])
    assert not here or np.allclose(here[0], seen["here"], atol=NEAR)
    corners = [(float(left), float(top)) for top, left in re.findall(r"V([\d.]+)H([\d.]+)", seen["front"])]
    best = sorted({(round(x(each.gigabytes), 6), round(y(each.seconds), 6)) for each in front_of(points)}, reverse=True)
    assert len(corners) == len(best)
    assert np.allclose(corners, best, atol=NEAR)
