"""Iteration times and memory for every plan in a grid, as plain data.

One table over all axes would have millions of entries. So each part of a prediction has small tables, which have only the axes on
which the part depends. The script multiplies entries of these tables and adds the products. The entries come from
:func:`hybridlab.planner.predict` and :func:`hybridlab.planner.memory`.
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
DIGITS = 5  # significant digits of a time

Values = Mapping[str, Mapping[Any, Any]]  # for each axis, its values by name
CaseNumbers = Callable[["ClusterCase"], Sequence[float]]


class ClusterCase(NamedTuple):
    """One setting, in the form of arguments for the planner."""

    model: Transformer
    plan: Plan
    profile: Profile
    wire: WireFormat

    def time(self, must_fit: bool = True) -> IterationTime:
        """Return the iteration time that :func:`predict` gives."""
        return predict(self.model, self.plan, self.profile, wire=self.wire, must_fit=must_fit)

    @property
    def memory(self) -> Memory:
        """The memory that the plan needs on the fullest GPU."""
        return memory(self.model, self.plan)

    @property
    def misfit(self) -> str:
        """The reason why the plan cannot divide the model, or an empty text if it can; memory does not matter here."""
        try:
            refuse_misfit(self.model, self.plan)
        except UnsupportedSize as why:
            return str(why)
        return ""

    @property
    def reach(self) -> int:
        """The distance of messages between stages: 0 if there is only one stage, 1 inside a node, 2 between nodes."""
        return 0 if self.plan.pipeline == 1 else 1 if self.plan.gpus <= self.profile.gpus_per_node else 2


def case_of(at: Mapping[str, Any]) -> ClusterCase:
    """Return the case for one value of each axis."""
    batch = at["replicas"] * at["microbatches"] * at["microbatch"]
    plan = Plan(at["tensor"], at["stages"], at["replicas"], at["microbatch"], batch, recompute=at["recompute"])
    return ClusterCase(at["model"], plan, _with_port(at["gpu"], at["link"]), at["wire"])


def cluster_data(values: Values) -> Data:
    """Return what a page needs to show every setting of a grid.

    Parameters
    ----------
    values : mapping of str to mapping
        For each axis, the values by name.

    Returns
    -------
    dict
        A table has ``axes``, their ``sizes``, and ``values`` with one value for each combination. The last axis changes fastest.

        - ``quantities`` are sums of products of tables. They are the seconds of each part, ``gpus``, and ``work`` (1e12 operations per
          GPU and iteration). In gigabytes, they are ``states``, ``activations``, ``working``, the ``total`` of these three, and the
          ``capacity`` of a GPU
        - ``derived`` has tables for two axes that other axes determine. ``held`` is the number of microbatches that the first stage
          holds, and ``reach`` is the distance of messages between stages (see :attr:`ClusterCase.reach`)
        - ``refused`` has tables of indices into ``sentences``; index 0 means that nothing is refused

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

    def overflows(case: ClusterCase) -> list[float]:
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
    """Makes tables over some axes of a grid; each of the other axes has its first value, or 1 if the axis is a count."""

    def __init__(self, values: Values) -> None:
        first = {name: next(iter(each.values())) for name, each in values.items()}
        counts = product(values["stages"].values(), values["microbatches"].values())
        held = {count: count for count in sorted({min(pair) for pair in counts})}
        self.axes: Values = {**values, "held": held, "reach": {place: place for place in range(3)}}
        self._first = first | dict.fromkeys(COUNTS, 1)

    def case(self, at: Mapping[str, Any]) -> ClusterCase:
        """Return the case for some values; with ``held``, the number of microbatches is ``held``, or ``stages`` if that is less."""
        microbatches = {"microbatches": min(at["held"], at["stages"])} if "held" in at else {}
        return case_of({**self._first, **at, **microbatches})

    def table(self, names: tuple[str, ...], number: Callable[[dict[str, Any]], float]) -> Data:
        """Return the table of one number over the axes ``names``."""
        return self._table(names, map(number, self._combinations(names)))

    def columns(self, names: tuple[str, ...], numbers: CaseNumbers, of_gpu: Callable[[Profile], Any] = lambda gpu: gpu) -> list[Data]:
        """Return tables over the same axes, one for each number of a case.

        An entry is 0 if the plan does not divide the model. It is also 0 if ``held`` is larger than the number of stages, because a stage
        never holds so many microbatches.

        Parameters
        ----------
        names : tuple of str
            The axes.
        numbers : function of a ClusterCase
            The numbers; it runs once for each case.
        of_gpu : function of a Profile
            Returns the part of a GPU's profile on which the numbers depend. GPUs for which this part is equal share one case.
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
        """Return the seconds that the messages of one microbatch take at the distance ``reach``, or 0 if no plan has this distance."""
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
    """Return the quantities of time, where the time of one microbatch is multiplied by the number of microbatches."""
    count = {name: tables.table((name,), itemgetter(name)) for name in COUNTS}
    gaps = tables.table(("stages",), lambda at: at["stages"] - 1)
    exchange = tables.table(("model", "gpu", "tensor", "microbatch", "link", "reach"), tables.exchange)
    samples = [count["microbatch"], count["microbatches"]]

    def stage(case: ClusterCase) -> list[float]:
        time = case.time(must_fit=False)
        filled = time.bubble - (case.plan.pipeline - 1) * time.point_to_point
        return [_five_digits(each) for each in (time.memory_traffic, time.tensor_parallel, filled)]

    def work(case: ClusterCase) -> list[float]:
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
    """Return the gigabytes on the fullest GPU, with one decimal as in the library's messages, and the capacity of each GPU."""

    def gigabytes(*nbytes: float) -> list[float]:
        return [float(f"{each / 1e9:.1f}") for each in nbytes]

    def kept(case: ClusterCase) -> list[float]:
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


def _overflow_sentences(case: ClusterCase, gpus: Sequence[Profile]) -> list[str]:
    """Return one text for each GPU that says why the plan does not fit in its memory, or is empty if the plan fits."""
    found, sentence, total = {}, "", case.memory.total
    for capacity, gpu in sorted({gpu.memory: gpu for gpu in gpus}.items(), reverse=True):
        if total > capacity and MORE_MEMORY not in sentence:  # if a larger GPU already needs this advice, all smaller ones do
            sentence = _overflow_template(case, gpu)
        found[capacity] = sentence
    return [found[gpu.memory] for gpu in gpus]


def _overflow_template(case: ClusterCase, gpu: Profile) -> str:
    """Return a text that says why a plan does not fit, or an empty text if it fits.

    The text has names in braces instead of numbers, so that many cases share one text.
    """
    try:
        refuse_overflow(case.model, case.plan, gpu)
    except UnsupportedSize as why:
        before, _, after = str(why).partition(f"{gpu.memory / 1e9:g} GB of {gpu.name}")
        names = iter(("total", "states", "activations", "working", "over"))
        return re.sub(r"\d+\.\d", lambda _: f"{{{next(names)}}}", before) + "{capacity} GB of {gpu}" + after
    return ""


def _merged(tables: Sequence[Data], axis: str) -> Data:
    """Join tables that have the same axes into one table with a new last axis; table i is at index i of this axis."""
    values = [each for row in zip(*(table["values"] for table in tables), strict=True) for each in row]
    return {"axes": [*tables[0]["axes"], axis], "sizes": [*tables[0]["sizes"], len(tables)], "values": values}


def _five_digits(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


@lru_cache(maxsize=256)
def _with_port(gpu: Profile, network: float) -> Profile:
    """Return the GPU with another network port, given in bytes per second; the few results are cached because all tables need them."""
    return replace(gpu, network=network)
