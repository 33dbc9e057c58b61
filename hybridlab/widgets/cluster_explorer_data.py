"""The time and the memory of every plan in a grid as plain data, and the reason for each refused plan.

One table over all axes would have millions of entries. So each part of the time and of the memory is a sum of products of small tables. A
table has only the axes on which its numbers depend. The script multiplies and adds the entries. The results are equal to those of
:func:`hybridlab.planner.predict` and :func:`hybridlab.planner.memory`.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import Transformer, Work
from hybridlab.model.operations import layer_sums
from hybridlab.palette import PART_COLOURS, ink_on, line_style
from hybridlab.planner import GPUMemory, IterationTime, Plan, memory, predict
from hybridlab.planner.iteration import EFFICIENCY, OPTIMISER_BYTES, Amounts, amounts_of, part_seconds
from hybridlab.planner.layer import MEMORY_SHARE, activation_ring
from hybridlab.planner.memory import MORE_MEMORY, MORE_STAGES, logit_bytes, refuse_overflow, stage_memories
from hybridlab.planner.plan import refuse_misfit
from hybridlab.planner.stages import stage_parameters
from hybridlab.widgets.page_data import Data, compact_json, refuse_too_large
from hybridlab.wire import WireFormat

LABELS = {
    "model": "Model",
    "gpu": "GPU",
    "link": "Network port",
    "tensor": "Tensor GPUs",
    "stages": "Stages K",
    "replicas": "Replicas D",
    "wire": "Gradients sent as",
    "recompute": "Recomputation",
    "sequence_parallel": "Sequence parallel",
    "chunks": "Chunks v",
    "microbatches": "Microbatches M",
    "microbatch": "Microbatch size",
}
AXES = tuple(LABELS)
PARTS = {
    "matmul": "matmul",
    "memory_traffic": "memory traffic",
    "tensor_parallel": "tensor-parallel all-reduce",
    "point_to_point": "point-to-point",
    "bubble": "bubble",
    "data_parallel": "data-parallel all-reduce",
    "optimiser": "optimiser",
    "host": "waiting for kernels to start",
}
COUNTS = ("tensor", "stages", "replicas", "chunks", "microbatches", "microbatch")
Values = Mapping[str, Mapping[Any, Any]]  # axis -> name of a value -> value
At = Mapping[str, Any]  # axis -> one value


class ClusterCase(NamedTuple):
    """One setting, as arguments for the planner."""

    model: Transformer
    plan: Plan
    profile: Profile
    wire: WireFormat

    def time(self, must_fit: bool = True) -> IterationTime:
        """Return the iteration time from :func:`predict`."""
        return predict(self.model, self.plan, self.profile, wire=self.wire, must_fit=must_fit)

    @property
    def memory(self) -> GPUMemory:
        """The memory that the plan needs on the fullest GPU."""
        return memory(self.model, self.plan)

    @property
    def amounts(self) -> Amounts:
        """The planner's amounts for this case, which determine the time."""
        return amounts_of(self.model, self.plan, self.profile, self.wire, self.profile.efficiency or EFFICIENCY)

    @property
    def layer(self) -> Work:
        """The work of a layer for one microbatch."""
        sums = layer_sums(self.model, not self.model.experts, self.plan.share)
        return sums.forward.plus(sums.backward)

    @property
    def ring(self) -> float:
        """The seconds of one all-reduce inside a layer."""
        return activation_ring(self.model, self.plan, self.profile)

    @property
    def head(self) -> Work:
        """The work of the logits of one microbatch."""
        return self.model.head_work(self.plan.microbatch, self.plan.tensor)

    @property
    def on_first(self) -> GPUMemory:
        """The memory on a GPU of the first stage."""
        return stage_memories(self.model, self.plan)[0]

    @property
    def on_last(self) -> GPUMemory:
        """The memory on a GPU of the last stage."""
        return stage_memories(self.model, self.plan)[-1]

    @property
    def alone(self) -> "ClusterCase":
        """The same case with one microbatch and one stage."""
        return self._replace(plan=replace(self.plan, pipeline=1, chunks=1, global_batch=self.plan.microbatch * self.plan.data))

    @property
    def reach(self) -> int:
        """The distance of messages between stages: 0 if there is only one stage, 1 inside a node, 2 between nodes."""
        return 0 if self.plan.pipeline == 1 else 1 if self.plan.gpus <= self.profile.gpus_per_node else 2


class Load(NamedTuple):
    """The chunks and microbatches of a plan, reduced to what determines its memory.

    With one chunk, ``held`` is the number of microbatches that the first stage holds. With more chunks, ``held`` is 1 if the numbers of
    microbatches and stages are equal, and 2 if there are more microbatches.
    """

    chunks: int
    held: int

    @staticmethod
    def of(stages: int, chunks: int, microbatches: int) -> "Load":
        """Return the load of a plan with these counts."""
        return Load(chunks, min(stages, microbatches) if chunks == 1 else min(microbatches // stages, 2))

    def microbatches(self, stages: int) -> int:
        """Return a number of microbatches with this load, but with one chunk at most ``stages``, because a stage holds no more."""
        return min(self.held, stages) if self.chunks == 1 else self.held * stages


def case_of(at: At) -> ClusterCase:
    """Return the case for one value of each axis. Raise :class:`UnsupportedSize` if the chunks do not suit the stages."""
    batch = at["replicas"] * at["microbatches"] * at["microbatch"]
    sizes = (at["tensor"], at["stages"], at["replicas"], at["microbatch"], batch)
    plan = _plan(*sizes, at["chunks"], at["recompute"], at["sequence_parallel"])
    return ClusterCase(at["model"], plan, _with_port(at["gpu"], at["link"]), at["wire"])


def misfit(at: At, divides: bool = True) -> str:
    """Return the reason why a plan does not exist, or an empty text if the plan exists. This function does not check memory.

    If ``divides`` is False, the function checks only the numbers of stages, chunks and microbatches, not the layers and heads.
    """
    try:
        case = case_of(at)
        if divides:
            refuse_misfit(case.model, case.plan)
    except UnsupportedSize as why:
        return str(why)
    return ""


class Tables:
    """The builder of tables over some axes of a grid. All other axes have their first value, or 1 for a count such as stages.

    Three more axes are derived from the axes of the grid. ``fabric`` is a GPU's NVLink and node, ``reach`` is the distance of messages
    between stages (see :attr:`ClusterCase.reach`), and ``load`` is a :class:`Load`.
    """

    def __init__(self, values: Values) -> None:
        first = {name: next(iter(each.values())) for name, each in values.items()}
        # These combinations become a table. Check the size before listing them, because listing a large grid takes long.
        refuse_too_large(2 * prod(len(values[name]) for name in ("stages", "chunks", "microbatches")))
        counts = product(values["stages"].values(), values["chunks"].values(), values["microbatches"].values())
        loads = sorted({Load.of(*each) for each in counts if each[1] == 1 or each[2] >= each[0]}) or [Load(1, 1)]
        fabrics: dict[Any, Any] = {}
        for gpu in values["gpu"].values():
            fabrics.setdefault(_fabric(gpu), gpu)
        derived: Values = {"fabric": fabrics, "reach": dict(enumerate(range(3))), "load": {each: each for each in loads}}
        self.axes: Values = {**values, **derived}
        # For axes outside a table, counts are 1, because a count of 1 divides every model.
        self._first = first | dict.fromkeys(COUNTS, 1)

    def full(self, at: At) -> dict[str, Any]:
        """Return a value for every axis. A derived axis in ``at`` sets the axes that determine it."""
        found = {**self._first, **at}
        if "fabric" in at:
            found["gpu"] = at["fabric"]
        if "load" in at:
            found |= {"chunks": at["load"].chunks, "microbatches": at["load"].microbatches(found["stages"])}
        return found

    def table(self, axes: str, number: Callable[[At], float]) -> Data:
        """Return the table over the axes named in ``axes``, where ``number`` returns each entry."""
        names = axes.split()
        return self._table(names, map(number, self.combinations(names)))

    def rows(self, axes: str, last: str, numbers: Callable[[At], Iterable[float]]) -> Data:
        """Return the table over ``axes`` and the axis ``last``, where ``numbers`` returns the entries of all values of ``last``."""
        names = [*axes.split(), last]
        refuse_too_large(2 * prod(len(self.axes[name]) for name in names))
        return self._table(names, (each for at in self.combinations(names[:-1]) for each in numbers(at)))

    def fitting(self, axes: str, number: Callable[[ClusterCase], float]) -> Callable[[At], float]:
        """Return a function that computes ``number`` for a plan. The result is 0 if the axes show that the plan does not exist."""
        # Without "model", "tensor" or "stages" among the axes, an entry stands for several plans. Some of them can divide the layers
        # and heads evenly even if the plan of ``at`` cannot, so this is not asked.
        divides = {"model", "tensor", "stages"} <= set(axes.split())
        return lambda at: 0 if misfit(self.full(at), divides) else number(case_of(self.full(at)))

    def index(self, axes: str, axis: str, key: Callable[[Any], Any]) -> Data:
        """Return a table of indices on the derived axis ``axis``. The index is 0 for a value that no plan has."""
        places = {each: place for place, each in enumerate(self.axes[axis])}
        return self.table(axes, lambda at: places.get(key(self.full(at)), 0))

    def exchange(self, at: At) -> float:
        """Return the seconds of the messages of a microbatch over the distance ``reach``, or 0 if no plan has this distance."""
        if not at["reach"]:
            return 0.0
        # All plans with the same distance have the same time, so take the first plan with this distance.
        for stages, replicas in product(self.axes["stages"].values(), self.axes["replicas"].values()):
            found = self.full({**at, "stages": stages, "replicas": replicas})
            if not misfit(found) and case_of(found).reach == at["reach"]:
                return _five_digits(case_of(found).amounts.exchange)
        return 0.0

    def combinations(self, names: list[str]) -> Iterator[dict[str, Any]]:
        """Return all combinations of values of these axes. The last axis changes fastest."""
        refuse_too_large(2 * prod(len(self.axes[name]) for name in names))  # least number of bytes: a digit and a comma for each entry
        return (dict(zip(names, at, strict=True)) for at in product(*(self.axes[name].values() for name in names)))

    def _table(self, names: list[str], numbers: Iterable[float]) -> Data:
        values = [int(each) if float(each).is_integer() else each for each in numbers]  # ints are shorter in JSON
        return {"axes": names, "sizes": [len(self.axes[name]) for name in names], "values": values}


def index_tables(tables: Tables) -> Data:
    """Return a table for each derived axis. The table gives the index on this axis from the values of the axes that determine it."""
    return {
        "fabric": tables.index("gpu", "fabric", lambda at: _fabric(at["gpu"])),
        "reach": tables.index("gpu tensor stages replicas", "reach", lambda at: case_of(at).reach),
        "load": tables.index("stages chunks microbatches", "load", lambda at: Load.of(at["stages"], at["chunks"], at["microbatches"])),
    }


@dataclass(frozen=True)
class Sum:
    """A sum of products of tables and numbers. Sums support +, * and /, so a formula accepts sums instead of numbers.

    Examples
    --------
    >>> (2 * Sum.of("layers layer_flops") + Sum.of("head_flops")) / Sum.of("flops_per_second")
    Sum(terms=((2, 'layers', 'layer_flops', '1/flops_per_second'), ('head_flops', '1/flops_per_second')))
    """

    terms: tuple[tuple[str | float, ...], ...]

    @staticmethod
    def of(names: str) -> "Sum":
        """Return one product of tables."""
        return Sum((tuple(names.split()),))

    def __add__(self, other: "Sum") -> "Sum":
        return Sum(self.terms + other.terms)

    def __mul__(self, other: "Sum") -> "Sum":
        return Sum(tuple((*one, *another) for one in self.terms for another in other.terms))

    def __rmul__(self, factor: float) -> "Sum":
        return Sum(tuple((factor, *term) for term in self.terms))

    def __truediv__(self, other: "Sum") -> "Sum":
        # The unpacking allows division only by a single table, because the script cannot divide by a sum.
        ((name,),) = other.terms
        return self * Sum.of(f"1/{name}")


def quantities() -> dict[str, Sum]:
    """Return the formulas of all quantities of a setting: seconds of each part, 1e12 operations per GPU, number of GPUs, and GB.

    The planner's own function ``part_seconds`` gives the seconds. Its arguments are sums of tables here instead of numbers.
    """
    layer = {
        # operations are proportional to the size of a microbatch, so a table for one sample is enough
        "matmul": Sum.of("layers layer_flops microbatch 1/flops_per_second"),
        "memory_traffic": Sum.of("layers layer_bytes 1/bytes_per_second"),
        "tensor_parallel": Sum.of("layers layer_rings ring"),
        "host": Sum.of("layers layer_host"),
    }
    nothing = Sum(())  # this grid has no experts and no gathers
    amounts = Amounts(
        microbatches=Sum.of("microbatches"),
        chunks=Sum.of("chunks"),
        gaps=Sum.of("gaps"),
        matmul=layer["matmul"] + Sum.of("head_flops microbatch 1/flops_per_second"),
        memory_traffic=layer["memory_traffic"] + Sum.of("head_bytes 1/bytes_per_second"),
        tensor_parallel=layer["tensor_parallel"] + Sum.of("head_rings ring"),
        experts=nothing,
        gathers=nothing,
        host=layer["host"],
        others=Sum.of("gaps") * sum(layer.values(), nothing),
        exchange=Sum.of("exchange"),
        steady_exchange=Sum.of("exchange"),
        data_parallel=Sum.of("gradients"),
        optimiser=OPTIMISER_BYTES * Sum.of("parameters 1/bytes_per_second"),
    )
    seconds = part_seconds(amounts)
    return {
        **{name: seconds[name] for name in PARTS},
        "work": Sum.of("work microbatch microbatches"),
        "gpus": Sum.of("tensor stages replicas"),
        "states_first": Sum.of("states_first"),
        "states_last": Sum.of("states_last"),
        "activations_first": Sum.of("activations held_first microbatch"),
        "activations_last": Sum.of("activations held_last microbatch"),
        "working_first": Sum.of("working_first microbatch"),
        "working_last": Sum.of("working_last microbatch"),
        "capacity": Sum.of("capacity"),
    }


# Name of a table -> (its axes, function from a case to a number). In large tables, seconds have only five digits, to save bytes.
NUMBERS: Mapping[str, tuple[str, Callable[[ClusterCase], float]]] = {
    "gaps": ("stages", lambda case: case.amounts.gaps),
    "layers": ("model stages", lambda case: case.model.layers / case.plan.pipeline),
    "layer_flops": ("model tensor recompute", lambda case: case.layer.flops),
    "layer_bytes": ("model tensor recompute microbatch sequence_parallel", lambda case: case.layer.nbytes),
    "layer_rings": ("model tensor recompute", lambda case: case.layer.all_reduces),
    "layer_host": (
        "model gpu tensor recompute microbatch sequence_parallel",
        lambda case: _five_digits(case.alone.amounts.host / case.model.layers),
    ),
    "head_flops": ("model tensor", lambda case: case.head.flops),
    "head_bytes": ("model tensor microbatch", lambda case: case.head.nbytes),
    "head_rings": ("model tensor", lambda case: case.head.all_reduces),
    "flops_per_second": ("gpu", lambda case: (case.profile.efficiency or EFFICIENCY) * case.profile.matmul_flops),
    "bytes_per_second": ("gpu", lambda case: MEMORY_SHARE * case.profile.memory_bandwidth),
    "ring": ("model fabric tensor microbatch", lambda case: _five_digits(case.ring)),
    "gradients": ("model tensor stages fabric replicas link wire", lambda case: _five_digits(case.amounts.data_parallel)),
    "parameters": ("model tensor stages", lambda case: stage_parameters(case.model, case.plan)),
    "work": ("model tensor stages recompute", lambda case: case.time(must_fit=False).flops / case.plan.gpus / 1e12),
    "states_first": ("model tensor stages", lambda case: case.on_first.states / 1e9),
    "states_last": ("model tensor stages", lambda case: case.on_last.states / 1e9),
    # activations of one sample if all layers are on one stage
    "activations": ("model tensor recompute sequence_parallel", lambda case: case.on_first.activations / 1e9),
    # activations that a stage holds, divided by the activations of one microbatch in all layers
    "held_first": ("stages load", lambda case: case.on_first.activations / case.alone.on_first.activations),
    "held_last": ("stages load", lambda case: case.on_last.activations / case.alone.on_last.activations),
    # these tables are for one stage, which has the logits, and the first of several stages has none
    "working_first": (
        "model tensor recompute sequence_parallel",
        lambda case: (case.on_last.working - logit_bytes(case.model, case.plan)) / 1e9,
    ),
    "working_last": ("model tensor recompute sequence_parallel", lambda case: case.on_last.working / 1e9),
    "capacity": ("gpu", lambda case: case.profile.memory / 1e9),
}


def quantity_tables(tables: Tables, sums: Iterable[Sum]) -> Data:
    """Return the tables in these sums: name -> table."""
    names = dict.fromkeys(factor for each in sums for term in each.terms for factor in term if isinstance(factor, str))
    return {name: _table_of(tables, name) for name in names}


def _table_of(tables: Tables, name: str) -> Data:
    """Return the table with this name. A name such as ``1/chunks`` gives the inverse of each number."""
    of = name.removeprefix("1/")
    number: Callable[[At], float]
    if of in COUNTS:
        axes, number = of, itemgetter(of)
    elif of == "exchange":
        axes, number = "model fabric tensor microbatch link reach sequence_parallel", tables.exchange
    else:
        axes, of_case = NUMBERS[of]
        number = tables.fitting(axes, of_case)
    return tables.table(axes, number if of == name else lambda at: 1 / number(at))


def _fabric(gpu: Profile) -> tuple[float, int]:
    """Return the values of a profile that determine the time of messages, without the network port."""
    return gpu.nvlink, gpu.gpus_per_node


def _five_digits(value: float) -> float:
    return float(f"{value:.5g}")


@lru_cache(maxsize=1 << 14)
def _plan(*arguments: Any) -> Plan:
    """Return the plan with these arguments, from a cache."""
    # Cached, because many cases have equal plans, and a new plan checks its arguments, which takes time.
    return Plan(*arguments)


@lru_cache(maxsize=256)
def _with_port(gpu: Profile, network: float) -> Profile:
    """Return the GPU with another network port, given in bytes per second."""
    # Cached, because all tables need the same few results.
    return replace(gpu, network=network)


def cluster_data(values: Values) -> Data:
    """Return the data with which a page can show every setting of a grid.

    Parameters
    ----------
    values : mapping of str to mapping
        Axis -> name of a value -> value.

    Returns
    -------
    dict
        - ``tables`` by name. A table has ``axes``, their ``sizes``, and ``values`` with one value for each combination. The last axis
          changes fastest
        - ``quantities`` are sums of products of tables and numbers, as lists of lists. They are the seconds of each part,
          ``gpus``, and ``work`` (1e12 operations per GPU and iteration). In gigabytes, they are the ``capacity`` of a GPU, and the states,
          activations and working memory on a GPU of the first stage and of the last stage
        - ``derived`` has a table of indices for each axis that other axes determine
        - ``refused`` has tables of indices into ``sentences``; index 0 means that nothing is refused. The tables ``chunks`` and ``layers``
          show which plans exist, and the table ``memory`` shows which plans do not fit in memory
        - ``depths`` has the colours of the numbers of stages, on a light and on a dark background

    Raises
    ------
    HybridLabError
        No plan of the grid divides the model, or the data have more than 2 MB.
    """
    tables, sums, sentences = Tables(values), quantities(), _Sentences()
    _refuse_no_plan(tables)
    refused = {**_misfit_tables(tables, sentences), "memory": _overflow_table(tables, sentences)}
    data: Data = {
        "axes": [{"name": name, "label": LABELS[name], "values": list(values[name])} for name in AXES],
        "parts": [
            {"name": name, "words": words, "colour": colour, "ink": ink_on(colour)}
            for (name, words), colour in zip(PARTS.items(), PART_COLOURS, strict=False)
        ],
        "depths": [[style.colour, style.on_dark] for style in map(line_style, range(len(values["stages"])))],
        "derived": index_tables(tables),
        "tables": quantity_tables(tables, sums.values()),
        "quantities": {name: [list(term) for term in each.terms] for name, each in sums.items()},
        "refused": refused,
        "sentences": list(sentences),
    }
    refuse_too_large(len(compact_json(data)))
    return data


class _Sentences(dict[str, int]):
    """Text -> number. The empty text has number 0, and each new text gets the next number."""

    def __init__(self) -> None:
        super().__init__({"": 0})

    def number(self, text: str) -> int:
        return self.setdefault(text, len(self))


def _misfit_tables(tables: Tables, sentences: _Sentences) -> Data:
    """Return the tables of reasons why plans do not exist."""

    def of_layers(at: At) -> int:
        # With as many microbatches as stages, all chunks are possible, so only layers and heads can cause a refusal.
        return sentences.number(misfit(tables.full({**at, "microbatches": at["stages"]})))

    def of_chunks(at: At) -> int:
        return sentences.number(misfit(tables.full(at), divides=False))

    return {
        "layers": tables.table("model tensor stages chunks", of_layers),
        "chunks": tables.table("stages chunks microbatches", of_chunks),
    }


def _refuse_no_plan(tables: Tables) -> None:
    """Raise an error if no plan of the grid divides the model. The message has the reason for the first plan."""
    settings = tables.combinations(["model", "tensor", "stages", "chunks", "microbatches"])
    reasons = (misfit(tables.full(at)) for at in settings)
    # The generator stops at the first plan that divides the model.
    first = next(reasons)
    if first and all(reasons):
        raise HybridLabError(f"no plan of this grid divides the model: {first}", "not-divisible")


def _overflow_table(tables: Tables, sentences: _Sentences) -> Data:
    """Return the table of reasons why plans do not fit in memory. The entry of a plan that does not exist is 0."""
    gpus = list(tables.axes["gpu"].values())
    known: dict[Hashable, str] = {}

    def numbers(at: At) -> list[int]:
        found = tables.full(at)
        load = at["load"]
        # Skip loads that no plan with this number of stages has.
        if Load.of(at["stages"], load.chunks, found["microbatches"]) != load or misfit(found):
            return [0] * len(gpus)
        return [sentences.number(sentence) for sentence in _overflow_sentences(case_of(found), gpus, known)]

    return tables.rows("model tensor stages recompute microbatch sequence_parallel load", "gpu", numbers)


def _overflow_sentences(case: ClusterCase, gpus: Sequence[Profile], known: dict[Hashable, str]) -> list[str]:
    """Return one text for each GPU: the reason why the plan does not fit in its memory, or an empty text if the plan fits.

    If smaller microbatches and recomputation do not suffice on one GPU, they do not suffice on a GPU with less memory. The text then does
    not depend on the numbers of tensor GPUs, stages and chunks, so ``known`` stores the text.
    """
    found, sentence, total, plan = {}, "", case.memory.total, case.plan
    for capacity, gpu in sorted({gpu.memory: gpu for gpu in gpus}.items(), reverse=True):
        if total > capacity and MORE_MEMORY not in sentence:  # if a larger GPU needs this advice, all smaller GPUs need it too
            key = (case.model, capacity, plan.microbatch, plan.global_batch, plan.recompute, plan.sequence_parallel)
            sentence = known[key] if MORE_STAGES in sentence and key in known else _overflow_template(case, gpu)
            if MORE_STAGES in sentence or MORE_MEMORY in sentence:
                known[key] = sentence
        found[capacity] = sentence
    return [found[gpu.memory] for gpu in gpus]


def _overflow_template(case: ClusterCase, gpu: Profile) -> str:
    """Return the reason why a plan does not fit in memory, or an empty text if the plan fits.

    The text has names in braces instead of numbers, so that many cases can share one text.
    """
    try:
        refuse_overflow(case.model, case.plan, gpu)
    except UnsupportedSize as why:
        # Replace only the numbers before the capacity. The advice after the capacity keeps its numbers.
        before, _, after = str(why).partition(f"{gpu.memory / 1e9:g} GB of {gpu.name}")
        names = iter(("total", "states", "activations", "working", "over"))
        return re.sub(r"\d+\.\d", lambda _: f"{{{next(names)}}}", before) + "{capacity} GB of {gpu}" + after
    return ""
