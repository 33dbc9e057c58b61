"""Iteration times and memory of every plan of a grid, as plain data.

The script picks entries of a few tables, multiplies them and adds them up. The entries come from
:func:`hybridlab.planner.predict` and :func:`hybridlab.planner.memory`. Each part of a prediction has a table over the
axes on which it depends, and a quantity is a sum of products of tables. One table over all axes would have millions of entries.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import Transformer
from hybridlab.palette import PART_COLOURS, ink_on
from hybridlab.planner import IterationTime, Memory, Plan, memory, predict
from hybridlab.planner.memory import MORE_MEMORY, refuse_overflow
from hybridlab.planner.plan import refuse_misfit
from hybridlab.widgets.page_data import Data, compact_json, refuse_too_large
from hybridlab.wire import WireFormat

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
AXES = tuple(LABELS)
COUNTS = ("tensor", "stages", "replicas", "microbatches", "microbatch")
PARTS = {
    "matmul": "matmul",
    "memory_traffic": "memory traffic",
    "tensor_parallel": "tensor-parallel all-reduce",
    "point_to_point": "point-to-point",
    "bubble": "bubble",
    "data_parallel": "data-parallel all-reduce",
    "optimiser": "optimiser",
}
STAGE = ("model", "tensor", "stages", "recompute", "gpu", "microbatch")  # the time of one microbatch on a stage depends on these
KEPT = ("model", "tensor", "stages", "recompute", "microbatch", "held")  # the memory of a stage depends on these
DIGITS = 5  # of a time

Values = Mapping[str, Mapping[Any, Any]]  # by axis, by name
CaseNumbers = Callable[["Case"], Sequence[float]]


class Case(NamedTuple):
    """One setting as the planner takes it."""

    model: Transformer
    plan: Plan
    profile: Profile
    wire: WireFormat

    def time(self, must_fit: bool = True) -> IterationTime:
        """Return the prediction of :func:`predict`."""
        return predict(self.model, self.plan, self.profile, wire=self.wire, must_fit=must_fit)

    @property
    def memory(self) -> Memory:
        """The memory that the plan needs on the fullest GPU."""
        return memory(self.model, self.plan)

    @property
    def misfit(self) -> str:
        """Why the plan cannot divide the model, whatever the memory of the GPU; empty if it can."""
        try:
            refuse_misfit(self.model, self.plan)
        except UnsupportedSize as why:
            return str(why)
        return ""

    @property
    def reach(self) -> int:
        """How far a message between stages goes: 0 for one stage alone, 1 inside a node, 2 between nodes."""
        return 0 if self.plan.pipeline == 1 else 1 if self.plan.gpus <= self.profile.gpus_per_node else 2


def case_of(at: Mapping[str, Any]) -> Case:
    """Return the case for one value of each axis."""
    batch = at["replicas"] * at["microbatches"] * at["microbatch"]
    plan = Plan(at["tensor"], at["stages"], at["replicas"], at["microbatch"], batch, recompute=at["recompute"])
    return Case(at["model"], plan, _with_port(at["gpu"], at["link"]), at["wire"])


def cluster_data(values: Values) -> Data:
    """Return what a page needs to show every setting of a grid.

    Parameters
    ----------
    values : mapping of str to mapping
        For each axis, the values by name.

    Returns
    -------
    dict
        A table has ``axes``, their ``sizes``, and one of ``values`` for each combination; the last axis changes first.

        - ``quantities`` are sums of products of tables: the seconds of each part, ``gpus``, ``work`` (1e12 operations per GPU and
          iteration), and gigabytes: ``states``, ``activations``, ``working``, their ``total``, and the ``capacity`` of a GPU
        - ``derived`` has the tables of two axes that follow from others: ``held``, the microbatches that the first stage holds, and
          ``reach``
        - ``refused`` has tables of places in ``sentences``; place 0 means that nothing is refused

    Raises
    ------
    HybridLabError
        For a grid in which no plan divides the model, and for more than 2 MB of data.
    """
    tables = Tables(values)
    held = list(tables.axes["held"])
    sentences = [""]

    def number_of(sentence: str) -> int:
        if sentence not in sentences:
            sentences.append(sentence)
        return sentences.index(sentence)

    def overflows(case: Case) -> list[float]:
        return [number_of(sentence) for sentence in _overflow_sentences(case, list(values["gpu"].values()))]

    misfits = tables.table(("model", "tensor", "stages"), lambda at: number_of(tables.case(at).misfit))
    if all(misfits["values"]):
        raise HybridLabError(f"no plan of this grid divides the model: {sentences[1]}", "not-divisible")
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
        "quantities": {**_time_terms(tables), **_memory_terms(tables)},
        "refused": [misfits, _merged(tables.columns(KEPT, overflows), "gpu")],
        "sentences": sentences,
    }
    refuse_too_large(len(compact_json(data)))
    return data


class Tables:
    """Makes tables over the axes of a grid. For an axis that a table does not have, it takes the first value, or 1 for a count."""

    def __init__(self, values: Values) -> None:
        first = {name: next(iter(each.values())) for name, each in values.items()}
        counts = product(values["stages"].values(), values["microbatches"].values())
        held = {count: count for count in sorted({min(pair) for pair in counts})}
        self.axes: Values = {**values, "held": held, "reach": {place: place for place in range(3)}}
        self._first = first | dict.fromkeys(COUNTS, 1)

    def case(self, at: Mapping[str, Any]) -> Case:
        """Return the case at some values. With ``held``, it has that many microbatches, but at most as many as stages."""
        microbatches = {"microbatches": min(at["held"], at["stages"])} if "held" in at else {}
        return case_of({**self._first, **at, **microbatches})

    def table(self, names: tuple[str, ...], number: Callable[[dict[str, Any]], float]) -> Data:
        """Return the table of one number over the axes ``names``."""
        return self._table(names, map(number, self._combinations(names)))

    def columns(self, names: tuple[str, ...], numbers: CaseNumbers, of_gpu: Callable[[Profile], Any] = lambda gpu: gpu) -> list[Data]:
        """Return tables over the same axes, one for each number of a case.

        An entry is 0 if the plan does not divide the model, or if no setting uses it: a stage holds at most as many microbatches as there
        are stages.

        Parameters
        ----------
        names : tuple of str
            The axes.
        numbers : function of a Case
            The numbers; it runs once for each case.
        of_gpu : function of a Profile
            The part of a GPU's profile on which the numbers depend: GPUs with equal parts share a case.
        """
        known: dict[Any, Sequence[float]] = {}
        rows = []
        for at in self._combinations(names):
            key = tuple(of_gpu(each) if name == "gpu" else each for name, each in at.items())
            if key not in known:
                case = None if at.get("held", 0) > at["stages"] else self.case(at)
                known[key] = () if case is None or case.misfit else numbers(case)
            rows.append(known[key])
        nothing = [0.0] * max(map(len, rows))
        return [self._table(names, column) for column in zip(*(row or nothing for row in rows), strict=True)]

    def exchange(self, at: Mapping[str, Any]) -> float:
        """Return the seconds for which a microbatch travels between stages at the distance ``reach``; 0 if no plan has that distance."""
        if not at["reach"]:
            return 0.0
        for stages, replicas in product(self.axes["stages"].values(), self.axes["replicas"].values()):
            case = self.case({**at, "stages": stages, "replicas": replicas})
            if case.reach == at["reach"] and not case.misfit:
                return _five_digits(case.time(must_fit=False).point_to_point)
        return 0.0

    def _combinations(self, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        refuse_too_large(2 * prod(len(self.axes[name]) for name in names))  # bytes, if every entry had one digit
        return (dict(zip(names, at, strict=True)) for at in product(*(self.axes[name].values() for name in names)))

    def _table(self, names: tuple[str, ...], numbers: Iterable[float]) -> Data:
        values = [int(each) if float(each).is_integer() else each for each in numbers]
        return {"axes": list(names), "sizes": [len(self.axes[name]) for name in names], "values": values}


def _time_terms(tables: Tables) -> Data:
    """Return the parts of an iteration: times of one microbatch multiplied by their number, and times of the whole step."""
    count = {name: tables.table((name,), itemgetter(name)) for name in COUNTS}
    gaps = tables.table(("stages",), lambda at: at["stages"] - 1)
    exchange = tables.table(("model", "gpu", "tensor", "microbatch", "link", "reach"), tables.exchange)
    samples = [count["microbatch"], count["microbatches"]]

    def stage(case: Case) -> list[float]:
        time = case.time(must_fit=False)
        filled = time.bubble - (case.plan.pipeline - 1) * time.point_to_point
        return [_five_digits(each) for each in (time.memory_traffic, time.tensor_parallel, filled)]

    def work(case: Case) -> list[float]:
        time = case.time(must_fit=False)
        return [_five_digits(time.flops / time.gpus / 1e12)]

    def part(name: str) -> CaseNumbers:
        return lambda case: [_five_digits(getattr(case.time(must_fit=False), name))]

    memory_traffic, tensor_parallel, filled = tables.columns(STAGE, stage)
    gradients = ("model", "tensor", "stages", "gpu", "replicas", "link", "wire")
    return {
        "matmul": [[*tables.columns(STAGE[:-1], part("matmul")), *samples]],
        "memory_traffic": [[memory_traffic, count["microbatches"]]],
        "tensor_parallel": [[tensor_parallel, count["microbatches"]]],
        "point_to_point": [[exchange, count["microbatches"]]],
        "bubble": [[filled], [exchange, gaps]],
        "data_parallel": [tables.columns(gradients, part("data_parallel"), lambda gpu: (gpu.nvlink, gpu.gpus_per_node))],
        "optimiser": [tables.columns(("model", "tensor", "stages", "gpu"), part("optimiser"))],
        "work": [[*tables.columns(STAGE[:4], work), *samples]],
        "gpus": [[count["tensor"], count["stages"], count["replicas"]]],
    }


def _memory_terms(tables: Tables) -> Data:
    """Return the gigabytes of the fullest GPU, to the digit of the library's sentences, and the capacity of each GPU."""

    def gigabytes(*nbytes: float) -> list[float]:
        return [float(f"{each / 1e9:.1f}") for each in nbytes]

    def kept(case: Case) -> list[float]:
        used = case.memory
        return gigabytes(used.activations, used.working, used.total)

    activations, working, total = tables.columns(KEPT, kept)
    return {
        "states": [tables.columns(KEPT[:3], lambda case: gigabytes(case.memory.states))],
        "activations": [[activations]],
        "working": [[working]],
        "total": [[total]],
        "capacity": [[tables.table(("gpu",), lambda at: at["gpu"].memory / 1e9)]],
    }


def _overflow_sentences(case: Case, gpus: Sequence[Profile]) -> list[str]:
    """Return for each GPU the sentence why the plan does not fit into its memory; empty if it fits."""
    found, sentence, total = {}, "", case.memory.total
    for capacity, gpu in sorted({gpu.memory: gpu for gpu in gpus}.items(), reverse=True):
        if total > capacity and MORE_MEMORY not in sentence:  # advice that fails on a larger GPU fails on all smaller ones
            sentence = _overflow_template(case, gpu)
        found[capacity] = sentence
    return [found[gpu.memory] for gpu in gpus]


def _overflow_template(case: Case, gpu: Profile) -> str:
    """Return the sentence why a plan does not fit, with names in place of numbers, so many cases share one text; empty if it fits."""
    try:
        refuse_overflow(case.model, case.plan, gpu)
    except UnsupportedSize as why:
        before, _, after = str(why).partition(f"{gpu.memory / 1e9:g} GB of {gpu.name}")
        names = iter(("total", "states", "activations", "working", "over"))
        return re.sub(r"\d+\.\d", lambda _: f"{{{next(names)}}}", before) + "{capacity} GB of {gpu}" + after
    return ""


def _merged(tables: Sequence[Data], axis: str) -> Data:
    """Return tables over the same axes as one table with a last axis, on which each of them has a place."""
    values = [each for row in zip(*(table["values"] for table in tables), strict=True) for each in row]
    return {"axes": [*tables[0]["axes"], axis], "sizes": [*tables[0]["sizes"], len(tables)], "values": values}


def _five_digits(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


@lru_cache(maxsize=256)
def _with_port(gpu: Profile, network: float) -> Profile:
    """Return the GPU with another port to the network, in bytes per second; cached, since all tables ask for the same few."""
    return replace(gpu, network=network)
