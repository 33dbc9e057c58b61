"""Iteration times and memory of every plan of a grid as plain data: few tables, from which a page picks, multiplies and adds.

What the tables hold comes from :func:`hybridlab.planner.predict` and :func:`hybridlab.planner.memory`, part by part, each over the axes
that it depends on. A quantity is a sum of products of tables; one table over all axes would have millions of entries.
"""

import re
from collections.abc import Sequence
from operator import itemgetter

from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.palette import PART_COLOURS, ink_on
from hybridlab.planner.memory import MORE_MEMORY, refuse_overflow
from hybridlab.widgets.cluster_explorer_cases import AXES, Case, Values
from hybridlab.widgets.cluster_explorer_tables import COUNTS, TOO_MUCH, Tables, Worth, joined, short
from hybridlab.widgets.grid import MOST_BYTES
from hybridlab.widgets.pipeline import Data, packed

LABELS = {
    "model": "Model",
    "gpu": "GPU",
    "tensor": "Tensor GPUs",
    "stages": "Stages K",
    "replicas": "Replicas D",
    "microbatches": "Microbatches M",
    "microbatch": "Microbatch size",
    "link": "Network port",
    "wire": "Gradients sent as",
    "recompute": "Recomputation",
}
PARTS = {
    "matmul": "matmul",
    "memory_traffic": "memory traffic",
    "tensor_parallel": "tensor-parallel all-reduce",
    "point_to_point": "point-to-point",
    "bubble": "bubble",
    "data_parallel": "data-parallel all-reduce",
    "optimiser": "optimiser",
}
STAGE = ("model", "tensor", "stages", "recompute", "gpu", "microbatch")  # what a stage does for a microbatch depends on these
KEPT = ("model", "tensor", "stages", "recompute", "microbatch", "held")  # and what it keeps on these


def cluster_data(values: Values) -> Data:
    """Return what a page needs to show every setting of a grid: ``values`` holds by axis and name what stands for it.

    A table has ``axes``, their ``sizes``, and one of ``values`` for each combination, the last axis changing first. ``quantities`` are sums
    of products of tables: the seconds of the parts, ``gpus``, ``work`` (1e12 operations a GPU does in an iteration), and gigabytes: of
    ``memory`` its ``states``, ``activations``, ``working``, all together as ``total``, and the ``capacity`` of a GPU. Two axes follow from
    others, by the tables of ``derived``: ``held``, the microbatches that a first stage holds, and ``reach``. ``refused`` are tables
    of places in ``sentences``, 0 where nothing is refused. Raises :class:`HybridLabError` for a grid where no plan divides, and for
    more than 2 MB.
    """
    tables = Tables(values)
    held = list(tables.axes["held"])
    sentences = [""]

    def number_of(sentence: str) -> int:
        if sentence not in sentences:
            sentences.append(sentence)
        return sentences.index(sentence)

    def overflows(case: Case) -> list[float]:
        return [number_of(sentence) for sentence in _overflows(case, list(values["gpu"].values()))]

    misfits = tables.table(("model", "tensor", "stages"), lambda at: number_of(tables.case(at).misfit))
    if all(misfits["values"]):
        raise HybridLabError(f"no plan of this grid divides: {sentences[1]}")
    data: Data = {
        "axes": [{"name": name, "label": LABELS[name], "values": list(values[name])} for name in AXES],
        "parts": [
            {"name": name, "words": words, "colour": colour, "ink": ink_on(colour)}
            for (name, words), colour in zip(PARTS.items(), PART_COLOURS, strict=True)
        ],
        "derived": {
            "held": tables.table(("stages", "microbatches"), lambda at: held.index(min(at["stages"], at["microbatches"]))),
            "reach": tables.table(("gpu", "tensor", "stages", "replicas"), lambda at: tables.case(at).reach),
        },
        "quantities": {**_seconds(tables), **_gigabytes(tables)},
        "refused": [misfits, joined(tables.columns(KEPT, overflows), "gpu")],
        "sentences": sentences,
    }
    if len(packed(data)) > MOST_BYTES:
        raise HybridLabError(TOO_MUCH)
    return data


def _seconds(tables: Tables) -> Data:
    """Return the parts of the iteration: those of every microbatch, times their number, and those of the whole step."""
    count = {name: tables.table((name,), itemgetter(name)) for name in COUNTS}
    gaps = tables.table(("stages",), lambda at: at["stages"] - 1)
    exchange = tables.table(("model", "gpu", "tensor", "microbatch", "link", "reach"), tables.exchange)
    samples = [count["microbatch"], count["microbatches"]]

    def stage(case: Case) -> list[float]:
        time = case.time(must_fit=False)
        filled = time.bubble - (case.plan.pipeline - 1) * time.point_to_point
        return [short(each) for each in (time.memory_traffic, time.tensor_parallel, filled)]

    def work(case: Case) -> list[float]:
        time = case.time(must_fit=False)
        return [short(time.flops / time.gpus / 1e12)]

    def part(name: str) -> Worth:
        return lambda case: [short(getattr(case.time(must_fit=False), name))]

    memory, tensor_parallel, filled = tables.columns(STAGE, stage)
    gradients = ("model", "tensor", "stages", "gpu", "replicas", "link", "wire")
    return {
        "matmul": [[*tables.columns(STAGE[:-1], part("matmul")), *samples]],
        "memory_traffic": [[memory, count["microbatches"]]],
        "tensor_parallel": [[tensor_parallel, count["microbatches"]]],
        "point_to_point": [[exchange, count["microbatches"]]],
        "bubble": [[filled], [exchange, gaps]],
        "data_parallel": [tables.columns(gradients, part("data_parallel"), lambda gpu: (gpu.nvlink, gpu.gpus_per_node))],
        "optimiser": [tables.columns(("model", "tensor", "stages", "gpu"), part("optimiser"))],
        "work": [[*tables.columns(STAGE[:4], work), *samples]],
        "gpus": [[count["tensor"], count["stages"], count["replicas"]]],
    }


def _gigabytes(tables: Tables) -> Data:
    """Return what the fullest GPU keeps, to the digit that the library's sentences have, and the capacity of each GPU."""

    def digits(*values: float) -> list[float]:
        return [float(f"{each / 1e9:.1f}") for each in values]

    def kept(case: Case) -> list[float]:
        used = case.memory
        return digits(used.activations, used.working, used.total)

    activations, working, total = tables.columns(KEPT, kept)
    return {
        "states": [tables.columns(KEPT[:3], lambda case: digits(case.memory.states))],
        "activations": [[activations]],
        "working": [[working]],
        "total": [[total]],
        "capacity": [[tables.table(("gpu",), lambda at: at["gpu"].memory / 1e9)]],
    }


def _overflows(case: Case, gpus: Sequence[Profile]) -> list[str]:
    """Return for each GPU the sentence of why the plan does not fit, empty where it does."""
    found, sentence, total = {}, "", case.memory.total
    for capacity, gpu in sorted({gpu.memory: gpu for gpu in gpus}.items(), reverse=True):
        if total > capacity and MORE_MEMORY not in sentence:  # what does not help on a larger GPU helps on no smaller one
            sentence = _template(case, gpu)
        found[capacity] = sentence
    return [found[gpu.memory] for gpu in gpus]


def _template(case: Case, gpu: Profile) -> str:
    """Return the sentence of why a plan does not fit with names in place of its numbers, so that few differ; empty if it fits."""
    try:
        refuse_overflow(case.model, case.plan, gpu)
    except UnsupportedSize as why:
        before, _, after = str(why).partition(f"{gpu.memory / 1e9:g} GB of {gpu.name}")
        names = iter(("total", "states", "activations", "working", "over"))
        return re.sub(r"\d+\.\d", lambda _: f"{{{next(names)}}}", before) + "{capacity} GB of {gpu}" + after
    return ""
