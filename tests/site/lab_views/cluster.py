"""Check that a cluster explorer shows the right iteration, now and before the last change.

Bars, tables and sentences are compared with predict() and memory().
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from playwright.sync_api import Locator

from hybridlab import Plan, Transformer, UnsupportedSize, predict
from hybridlab.hardware import GPUS
from hybridlab.planner import GPUMemory, IterationTime, memory
from lab_views import plan_map
from lab_views.kind import Damage, Kind, rows_of, setting_of, with_no_data
from lab_views.plan_map import COUNTS, PORTS, WIRES

MODELS = {
    "GPT 1.7B": Transformer(24, 2304, 24),
    "GPT 18B": Transformer(40, 6144, 48),
    "GPT 175B": Transformer(96, 12288, 96),
    "GPT 1T": Transformer(128, 25600, 160),
}
LABELS = ("Model", "GPU", "Network port", "Tensor GPUs", "Stages K", "Replicas D", "Gradients sent as", "Recomputation")
LABELS += ("Sequence parallel", "Chunks v", "Microbatches M", "Microbatch size")
WORDS = ("matmul", "memory traffic", "tensor-parallel all-reduce", "point-to-point", "bubble", "data-parallel all-reduce")
WORDS += ("optimiser", "waiting for kernels to start")
HOST = "host"  # the last part of the view, which predict leaves out where it is zero
KEPT = ("states", "activations", "working memory")
BEFORE = re.compile(r"Before, with (.*?): (not possible|([\d.,]+) s)(?:; now ([\d.]+) times as long)?\.$")
PIXELS = 0.02
SHOWN = """(root) => {
  const numbers = (element, ...names) => names.map((name) => Number(element.getAttribute(name)));
  const bars = [...root.querySelectorAll("[data-bar]")].map((bar) => [bar.dataset.bar,
    [...bar.querySelectorAll("rect[data-part]")].map((rect) => [rect.querySelector("title").textContent, ...numbers(rect, "x", "width")])]);
  const boxes = [...root.querySelectorAll('[data-bar="memory"] text')].map((text) => text.getBBox());
  const one = (selector, name) => Number(root.querySelector(selector)?.getAttribute(name) ?? NaN);
  return {
    bars: Object.fromEntries(bars), width: one(".picture svg", "width") - 2,
    labels: boxes.map(({ x, width }) => [x, x + width]), capacity: one(".capacity", "x1"), beyond: one(".beyond", "width"),
    told: root.querySelector(".told").textContent, plan: root.querySelector(".plan").textContent,
    words: root.querySelector(".picture").getAttribute("aria-label"),
  };
}"""


class Said(NamedTuple):
    """What the library says of a setting.

    It has the iteration, or the error message that refuses it. It has the memory if the plan divides the model.
    """

    gpus: int
    time: IterationTime | str
    memory: GPUMemory | None
    capacity: float


def said_of(setting: Mapping[str, str], models: Mapping[str, Transformer] = MODELS) -> Said:
    """Return what the library computes for the setting of a view's controls; the setting is given by label."""
    model, profile = models[setting["Model"]], replace(GPUS[setting["GPU"]], network=PORTS[setting["Network port"]])
    tensor, stages, replicas, microbatches, size, chunks = (int(setting[label]) for label in COUNTS)
    time: IterationTime | str
    used = None
    try:
        rest = {"recompute": setting["Recomputation"], "sequence_parallel": setting["Sequence parallel"] == "yes"}
        plan = Plan(tensor, stages, replicas, size, replicas * microbatches * size, chunks, **rest)
        used = memory(model, plan)
        time = predict(model, plan, profile, wire=WIRES[setting["Gradients sent as"]])
    except UnsupportedSize as why:
        time = str(why)
    return Said(tensor * stages * replicas, time, used, profile.memory)


def near(text: str, value: float) -> bool:
    """Return whether a written number is a rounding of this value.

    The value has five digits, and the number three digits, or all digits before the point if these are more.
    """
    shown = float(text.replace(",", ""))
    last = 0 if value >= 1000 else math.floor(math.log10(value)) - 2 if value else 0
    return abs(shown - value) <= 0.5 * 10**last + 1e-4 * value


def gigabytes(value: float) -> str:
    return f"{value / 1e9:.1f}"


def is_right(view: Locator, models: Mapping[str, Transformer] | None = None) -> None:
    setting, shown = setting_of(view), view.evaluate(SHOWN)
    said = said_of(setting, models or MODELS)
    assert all(f"{label}: {setting[label]}" in shown["plan"] for label in LABELS)
    match = BEFORE.search(shown["told"])
    before = said_of({**setting, **dict(each.split(" = ") for each in changes_of(match[1]))}, models or MODELS) if match else None
    head_is_right(shown["told"], said)
    if match and before:
        before_is_right(match, said, before)
    rows = rows_of(view, "table.time tbody tr")
    if isinstance(said.time, str):
        assert not rows
        assert not {"now", "before"} & set(shown["bars"])
    else:
        earlier = before.time if before and not isinstance(before.time, str) else None
        time_is_right(shown, rows, said.time, earlier)
    memory_is_right(shown, rows_of(view, "table.memory tbody tr"), said)
    plan_map.is_right(view, setting, models or MODELS)


def changes_of(words: str) -> list[str]:
    """Return the parts of a text like "Stages K = 8, Gradients sent as = INT8, block 256"."""
    places = sorted(match.start() for label in LABELS for match in re.finditer(rf"(?:^|(?<=, )){label} = ", words))
    return [words[start:end].removesuffix(", ") for start, end in zip(places, [*places[1:], len(words)], strict=True)]


def head_is_right(told: str, said: Said) -> None:
    count = f"on {said.gpus:,} GPU{'s' * (said.gpus > 1)}"
    if isinstance(said.time, str):
        assert told.startswith(f"Not possible {count}: {said.time}. ")
        return
    match = re.match(r"([\d.,]+) s an iteration (.*), ([\d.,]+) TFLOP/s each\. It fits: (.*) free\.", told)
    assert match
    assert near(match[1], said.time.seconds)
    assert match[2] == count
    assert near(match[3], said.time.tflops_per_gpu)
    assert said.memory
    assert match[4].startswith(f"{gigabytes(said.memory.total)} of {said.capacity / 1e9:g} GB, ")
    assert abs(float(match[4].split()[-1]) - (said.capacity - said.memory.total) / 1e9) < 0.1


def before_is_right(match: re.Match[str], said: Said, before: Said) -> None:
    """Raise AssertionError unless the sentence about the last change states the time before the change and the factor."""
    if isinstance(before.time, str):
        assert match[2] == "not possible"
        return
    assert near(match[3], before.time.seconds)
    if not isinstance(said.time, str):
        assert near(match[4], said.time.seconds / before.time.seconds)


def seconds_of(time: IterationTime) -> list[float]:
    """Return the seconds of the parts in the order of the view."""
    return [*(part for name, part in time.parts.items() if name != HOST), time.parts.get(HOST, 0.0)]


def time_is_right(shown: Any, rows: list[list[str]], time: IterationTime, before: IterationTime | None) -> None:
    longest = max(time.seconds, before.seconds if before else 0)
    for name, each in (("now", time), ("before", before)):
        if each is None:
            assert name not in shown["bars"]
            continue
        left = 0.0
        for (title, x, width), words, part in zip(shown["bars"][name], WORDS, seconds_of(each), strict=True):
            assert title.startswith(f"{words}: ")
            assert abs(x - left / longest * shown["width"]) <= 1e-4 * shown["width"] + PIXELS
            assert abs(width - part / longest * shown["width"]) <= 1e-4 * shown["width"] + PIXELS
            left += part
    assert [row[0] for row in rows] == [*WORDS, "together"]
    for place, row in enumerate(rows):
        part, *old = [([*seconds_of(each), each.seconds])[place] for each in (time, before) if each]
        assert near(row[1], part)
        assert abs(float(row[2].removesuffix(" %")) - 100 * part / time.seconds) <= 0.061
        assert len(row) == 3 + len(old)
        assert not old or near(row[3], old[0])
    shares = ", ".join(f"{row[0]} {row[2]}" for row in rows[:-1])
    assert shares in shown["words"]


def memory_is_right(shown: Any, rows: list[list[str]], said: Said) -> None:
    if said.memory is None:
        assert not rows
        assert "memory" not in shown["bars"]
        return
    total, room = said.memory.total, said.capacity
    numbers = [gigabytes(each) for each in (*said.memory, total)]
    assert rows == [*map(list, zip((*KEPT, "together"), numbers, strict=False)), ["capacity of a GPU", f"{room / 1e9:g}"]]
    scale = shown["width"] / max(total, room)
    near_enough = 0.05e9 * scale + PIXELS  # the bars are drawn from the numbers in the table
    left = 0.0
    for (title, x, width), words, part in zip(shown["bars"]["memory"], KEPT, said.memory, strict=True):
        assert title == f"{words} {gigabytes(part)} GB"
        assert abs(x - left * scale) <= 3 * near_enough
        assert abs(width - part * scale) <= 2 * near_enough
        left += part
    assert abs(shown["capacity"] - room * scale) <= 2 * near_enough
    assert abs(shown["beyond"] - max(total - room, 0) * scale) <= 3 * near_enough
    assert not [words for words in shown["labels"] if words[0] < shown["capacity"] < words[1]], "the line of the capacity crosses no words"
    assert f"Memory of the fullest GPU: {numbers[-1]} of {room / 1e9:g} GB" in shown["words"]


def scaled(name: str, factor: float) -> Damage:
    def planted(state: Any) -> None:
        table = state["data"]["tables"][name]
        table["values"] = [value * factor for value in table["values"]]

    planted.__name__ = f"with_other_{name}"
    return planted


def without_quantities(state: Any) -> None:
    state["data"]["quantities"] = {}


def with_a_table_cut_off(state: Any) -> None:
    state["data"]["tables"]["gradients"]["values"].pop()


def with_words_for_times(state: Any) -> None:
    table = state["data"]["tables"]["layer_flops"]
    table["values"] = ["long"] * len(table["values"])


def with_an_unknown_setting(state: Any) -> None:
    state["stages"] = 5


def with_names_swapped(state: Any) -> None:
    one, other = state["data"]["parts"][:2]
    one["words"], other["words"] = other["words"], one["words"]


def with_a_refusal(state: Any) -> None:
    table = state["data"]["refused"]["memory"]
    table["values"] = [len(state["data"]["sentences"]) - 1 for _ in table["values"]]


def with_memory_swapped(state: Any) -> None:
    """Exchange what layers keep with and without recomputation."""
    table = state["data"]["tables"]["activations"]
    table["values"] = table["values"][::-1]


TABLES = (
    "layers",
    "layer_flops",
    "layer_bytes",
    "layer_rings",
    "head_flops",
    "1/flops_per_second",
    "1/bytes_per_second",
    "ring",
    "exchange",
)
TABLES += ("gaps", "gradients", "parameters", "work", "states_first", "activations", "held_first", "capacity")
KIND = Kind(
    "cluster",
    "ClusterExplorer",
    "labs/lab09_a100_report.html",
    is_right,
    damages=(without_quantities, with_a_table_cut_off, with_words_for_times, with_an_unknown_setting, with_no_data),
    faults=(*(scaled(name, 1.02) for name in TABLES), with_memory_swapped, with_names_swapped, with_a_refusal),
    python=("stages", 16),
)
