"""Iteration times and memory of every plan of a grid as plain data: few tables, from which a page picks, multiplies and adds.

What the tables hold comes from :func:`hybridlab.planner.predict` and :func:`hybridlab.planner.memory`, part by part, each over the axes
that it depends on. A quantity is a sum of products of tables; one table over all axes would have millions of entries.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any

from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.palette import PART_COLOURS, ink_on
from hybridlab.planner import IterationTime, Memory
from hybridlab.planner.memory import refuse_overflow
from hybridlab.widgets.cluster_explorer_cases import AXES, Case, Values, case_of
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
    "memory": "memory traffic",
    "tensor_parallel": "tensor-parallel all-reduce",
    "point_to_point": "point-to-point",
    "bubble": "bubble",
    "data_parallel": "data-parallel all-reduce",
    "optimiser": "optimiser",
}
STAGE = ("model", "tensor", "stages", "recompute", "gpu", "microbatch")  # what a stage does for a microbatch depends on these
KEPT = ("model", "tensor", "stages", "recompute", "microbatch", "held")  # and what it keeps on these
COUNTS = ("tensor", "stages", "replicas", "microbatches", "microbatch")
DIGITS = 5  # of a time
TOO_MUCH = f"this grid is more than the {MOST_BYTES / 1e6:g} MB of data that a page can carry: give fewer values"


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

    def told(sentence: str) -> int:
        if sentence not in sentences:
            sentences.append(sentence)
        return sentences.index(sentence)

    def overflow(at: Mapping[str, Any]) -> int:
        case = tables.case(at)
        return 0 if case.misfit else told(_template(case))

    misfits = tables.table(("model", "tensor", "stages"), lambda at: told(tables.case(at).misfit))
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
        "refused": [misfits, tables.table((*KEPT, "gpu"), overflow)],
        "sentences": sentences,
    }
    if len(packed(data)) > MOST_BYTES:
        raise HybridLabError(TOO_MUCH)
    return data


class Tables:
    """Makes tables over the axes of a grid; an axis that a table does not name has its first value, a count is 1."""

    def __init__(self, values: Values) -> None:
        first = {name: next(iter(each.values())) for name, each in values.items()}
        counts = product(values["stages"].values(), values["microbatches"].values())
        held = {count: count for count in sorted({min(pair) for pair in counts})}
        self.axes: Values = {**values, "held": held, "reach": {place: place for place in range(3)}}
        self._first = first | dict.fromkeys(COUNTS, 1)

    def case(self, at: Mapping[str, Any]) -> Case:
        """Return the case at some values; with ``held``, the microbatches are as many, or as the stages if those are fewer."""
        microbatches = {"microbatches": min(at["held"], at["stages"])} if "held" in at else {}
        return case_of({**self._first, **at, **microbatches})

    def table(self, names: tuple[str, ...], worth: Callable[[dict[str, Any]], float]) -> Data:
        """Return the table of a number for every combination of the values of axes."""
        sizes = [len(self.axes[name]) for name in names]
        if 2 * prod(sizes) > MOST_BYTES:  # if every entry had one digit
            raise HybridLabError(TOO_MUCH)
        every = (dict(zip(names, at, strict=True)) for at in product(*(self.axes[name].values() for name in names)))
        found = map(worth, every)
        return {"axes": list(names), "sizes": sizes, "values": [int(each) if float(each).is_integer() else each for each in found]}

    def of_time(self, names: tuple[str, ...], worth: Callable[[IterationTime, Case], float]) -> Data:
        """Return the table of something about the iteration, 0 where the plan does not divide."""

        def found(at: dict[str, Any]) -> float:
            case = self.case(at)
            return 0 if case.misfit else _short(worth(_time(case), case))

        return self.table(names, found)

    def of_memory(self, names: tuple[str, ...], worth: Callable[[Memory], float]) -> Data:
        """Return the table of gigabytes, to the digit that the library's sentences have, 0 where the plan does not divide."""

        def found(at: dict[str, Any]) -> float:
            case = self.case(at)
            return 0 if case.misfit else float(f"{worth(case.memory) / 1e9:.1f}")

        return self.table(names, found)

    def exchange(self, at: Mapping[str, Any]) -> float:
        """Return the seconds that a microbatch travels between stages that are apart as ``reach`` says, 0 if no plan has such."""
        for stages, replicas in product(self.axes["stages"].values(), self.axes["replicas"].values()):
            case = self.case({**at, "stages": stages, "replicas": replicas})
            if case.reach == at["reach"] and not case.misfit:
                return _short(_time(case).point_to_point)
        return 0.0


@lru_cache(maxsize=2**13)
def _time(case: Case) -> IterationTime:
    return case.time(must_fit=False)


def _seconds(tables: Tables) -> Data:
    """Return the parts of the iteration: those of every microbatch, times their number, and those of the whole step."""
    count = {name: tables.table((name,), itemgetter(name)) for name in COUNTS}
    gaps = tables.table(("stages",), lambda at: at["stages"] - 1)
    exchange = tables.table(("model", "gpu", "tensor", "microbatch", "link", "reach"), tables.exchange)
    filled = tables.of_time(STAGE, lambda time, case: time.bubble - (case.plan.pipeline - 1) * time.point_to_point)
    samples = [count["microbatch"], count["microbatches"]]
    gradients = ("model", "tensor", "stages", "gpu", "replicas", "link", "wire")
    return {
        "matmul": [[tables.of_time(STAGE[:-1], lambda time, _: time.matmul), *samples]],
        "memory": [[tables.of_time(STAGE, lambda time, _: time.memory), count["microbatches"]]],
        "tensor_parallel": [[tables.of_time(STAGE, lambda time, _: time.tensor_parallel), count["microbatches"]]],
        "point_to_point": [[exchange, count["microbatches"]]],
        "bubble": [[filled], [exchange, gaps]],
        "data_parallel": [[tables.of_time(gradients, lambda time, _: time.data_parallel)]],
        "optimiser": [[tables.of_time(("model", "tensor", "stages", "gpu"), lambda time, _: time.optimiser)]],
        "work": [[tables.of_time(STAGE[:4], lambda time, _: time.flops / time.gpus / 1e12), *samples]],
        "gpus": [[count["tensor"], count["stages"], count["replicas"]]],
    }


def _gigabytes(tables: Tables) -> Data:
    return {
        "states": [[tables.of_memory(("model", "tensor", "stages"), lambda used: used.states)]],
        "activations": [[tables.of_memory(KEPT, lambda used: used.activations)]],
        "working": [[tables.of_memory(KEPT, lambda used: used.working)]],
        "total": [[tables.of_memory(KEPT, lambda used: used.total)]],
        "capacity": [[tables.table(("gpu",), lambda at: at["gpu"].memory / 1e9)]],
    }


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


@lru_cache(maxsize=2**13)
def _template(case: Case) -> str:
    """Return the sentence of why a plan does not fit with names in place of its numbers, so that few differ; empty if it fits."""
    try:
        refuse_overflow(case.model, case.plan, case.profile)
    except UnsupportedSize as why:
        capacity = f"{case.profile.memory / 1e9:g} GB of {case.profile.name}"
        before, _, after = str(why).partition(capacity)
        names = iter(("total", "states", "activations", "working", "over"))
        return re.sub(r"\d+\.\d", lambda _: f"{{{next(names)}}}", before) + "{capacity} GB of {gpu}" + after
    return ""
