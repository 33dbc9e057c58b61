"""Tables of the parts of an iteration's time and memory, over the axes on which each part depends.

One table over all axes would have millions of entries. So each part is a sum of products of small tables. The script multiplies and adds
their entries. The sums are those of :func:`hybridlab.planner.predict` and :func:`hybridlab.planner.memory`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from hybridlab.errors import UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import Transformer
from hybridlab.planner import EFFICIENCY, IterationTime, Memory, Plan, memory, predict
from hybridlab.planner.iteration import MEMORY_SHARE, OPTIMISER_BYTES, ring_seconds
from hybridlab.planner.memory import LOGIT_BYTES, STATE_BYTES, stage_parameters
from hybridlab.planner.plan import refuse_misfit
from hybridlab.widgets.page_data import Data, refuse_too_large
from hybridlab.wire import WireFormat

COUNTS = ("tensor", "stages", "replicas", "chunks", "microbatches", "microbatch")
# The quantities of a setting: each is a sum of products of tables. Seconds of each part, then GPUs, 1e12 operations per GPU, and GB
SUMS: Mapping[str, str] = {
    "matmul": "layers layer_work per_work microbatch microbatches + head_work per_work microbatch microbatches",
    "memory_traffic": "layers layer_traffic per_traffic microbatches + head_traffic per_traffic microbatches",
    "tensor_parallel": "layers layer_rings ring microbatches + head_rings ring microbatches",
    "point_to_point": "exchange chunks microbatches",
    "bubble": "fill layers layer_work per_work microbatch + fill layers layer_traffic per_traffic + fill layers layer_rings ring"
    " + gaps exchange",
    "data_parallel": "gradients",
    "optimiser": "parameters update per_traffic",
    "work": "work microbatch microbatches",
    "gpus": "tensor stages replicas",
    "states": "parameters state",
    "activations_first": "held_first layers kept microbatch",
    "activations_last": "held_last layers kept microbatch",
    "working_first": "again microbatch",
    "working_last": "again microbatch + logits microbatch",
    "capacity": "capacity",
}

Values = Mapping[str, Mapping[Any, Any]]  # for each axis, its values by name
At = Mapping[str, Any]  # one value of each axis


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
    def reach(self) -> int:
        """The distance of messages between stages: 0 if there is only one stage, 1 inside a node, 2 between nodes."""
        return 0 if self.plan.pipeline == 1 else 1 if self.plan.gpus <= self.profile.gpus_per_node else 2


class Load(NamedTuple):
    """The microbatches of a plan, as far as its memory depends on them.

    With one chunk, ``held`` is the number of microbatches that the first stage holds. With more chunks, ``held`` is 1 if there are as many
    microbatches as stages, and 2 if there are more.
    """

    chunks: int
    held: int

    @staticmethod
    def of(stages: int, chunks: int, microbatches: int) -> "Load":
        """Return the load of these counts."""
        return Load(chunks, min(stages, microbatches) if chunks == 1 else min(microbatches // stages, 2))

    def microbatches(self, stages: int) -> int:
        """Return a number of microbatches with this load, or with the largest load if a stage never holds so many."""
        return min(self.held, stages) if self.chunks == 1 else self.held * stages


def case_of(at: At) -> ClusterCase:
    """Return the case for one value of each axis; raises :class:`UnsupportedSize` if the chunks do not suit the stages."""
    batch = at["replicas"] * at["microbatches"] * at["microbatch"]
    sizes = (at["tensor"], at["stages"], at["replicas"], at["microbatch"], batch)
    plan = _plan(*sizes, at["chunks"], at["recompute"], at["sequence_parallel"])
    return ClusterCase(at["model"], plan, _with_port(at["gpu"], at["link"]), at["wire"])


def misfit(at: At, divides: bool = True) -> str:
    """Return the reason why there is no such plan, or an empty text if there is one; memory does not matter here.

    If ``divides`` is False, only the numbers of stages, chunks and microbatches matter, and not those of layers and heads.
    """
    try:
        case = case_of(at)
        if divides:
            refuse_misfit(case.model, case.plan)
    except UnsupportedSize as why:
        return str(why)
    return ""


class Tables:
    """Makes tables over some axes of a grid; each of the other axes has its first value, or 1 if the axis is a count.

    Three axes are derived from others. ``fabric`` is a GPU's NVLink and node, ``reach`` is the distance of messages between stages (see
    :attr:`ClusterCase.reach`), and ``load`` is a :class:`Load`.
    """

    def __init__(self, values: Values) -> None:
        first = {name: next(iter(each.values())) for name, each in values.items()}
        refuse_too_large(2 * prod(len(values[name]) for name in ("stages", "chunks", "microbatches")))
        counts = product(values["stages"].values(), values["chunks"].values(), values["microbatches"].values())
        loads = sorted({Load.of(*each) for each in counts if each[1] == 1 or each[2] >= each[0]}) or [Load(1, 1)]
        fabrics: dict[Any, Any] = {}
        for gpu in values["gpu"].values():
            fabrics.setdefault(_fabric(gpu), gpu)
        derived: Values = {"fabric": fabrics, "reach": dict(enumerate(range(3))), "load": {each: each for each in loads}}
        self.axes: Values = {**values, **derived}
        self._first = first | dict.fromkeys(COUNTS, 1)

    def full(self, at: At) -> dict[str, Any]:
        """Return one value of each axis; a derived axis in ``at`` determines the axes from which it is derived."""
        found = {**self._first, **at}
        if "fabric" in at:
            found["gpu"] = at["fabric"]
        if "load" in at:
            found |= {"chunks": at["load"].chunks, "microbatches": at["load"].microbatches(found["stages"])}
        return found

    def table(self, axes: str, number: Callable[[At], float]) -> Data:
        """Return the table of one number over the axes that ``axes`` names."""
        names = axes.split()
        return self._table(names, map(number, self.combinations(names)))

    def rows(self, axes: str, last: str, numbers: Callable[[At], Iterable[float]]) -> Data:
        """Return the table over ``axes`` and then the axis ``last``; ``numbers`` returns a number for each value of ``last``."""
        names = [*axes.split(), last]
        refuse_too_large(2 * prod(len(self.axes[name]) for name in names))
        return self._table(names, (each for at in self.combinations(names[:-1]) for each in numbers(at)))

    def fitting(self, axes: str, number: Callable[[ClusterCase], float]) -> Data:
        """Return a table of a number of a case, with 0 where there is no such plan."""
        return self.table(axes, lambda at: 0 if misfit(self.full(at)) else number(case_of(self.full(at))))

    def index(self, axes: str, axis: str, key: Callable[[Any], Any]) -> Data:
        """Return a table of indices on the derived axis ``axis``; where no plan has this value, the index is 0."""
        places = {each: place for place, each in enumerate(self.axes[axis])}
        return self.table(axes, lambda at: places.get(key(self.full(at)), 0))

    def exchange(self, at: At) -> float:
        """Return the seconds that the messages of one microbatch take at the distance ``reach``, or 0 if no plan has this distance."""
        if not at["reach"]:
            return 0.0
        for stages, replicas in product(self.axes["stages"].values(), self.axes["replicas"].values()):
            found = self.full({**at, "stages": stages, "replicas": replicas})
            if not misfit(found) and case_of(found).reach == at["reach"]:
                return _five_digits(case_of(found).time(must_fit=False).point_to_point)
        return 0.0

    def combinations(self, names: list[str]) -> Iterator[dict[str, Any]]:
        """Return all combinations of values of these axes; the last axis changes fastest."""
        refuse_too_large(2 * prod(len(self.axes[name]) for name in names))  # bytes, if every entry had one digit
        return (dict(zip(names, at, strict=True)) for at in product(*(self.axes[name].values() for name in names)))

    def _table(self, names: list[str], numbers: Iterable[float]) -> Data:
        values = [int(each) if float(each).is_integer() else each for each in numbers]
        return {"axes": names, "sizes": [len(self.axes[name]) for name in names], "values": values}


def index_tables(tables: Tables) -> Data:
    """Return for each derived axis a table of its index."""
    return {
        "fabric": tables.index("gpu", "fabric", lambda at: _fabric(at["gpu"])),
        "reach": tables.index("gpu tensor stages replicas", "reach", lambda at: case_of(at).reach),
        "load": tables.index("stages chunks microbatches", "load", lambda at: Load.of(at["stages"], at["chunks"], at["microbatches"])),
    }


def quantity_tables(tables: Tables) -> Data:
    """Return the tables that ``SUMS`` names."""
    counts = {name: tables.table(name, itemgetter(name)) for name in COUNTS}
    return {**counts, **_time_tables(tables), **_memory_tables(tables)}


def _time_tables(tables: Tables) -> Data:
    """Return the tables for the seconds of each part; operations are in units of 1e12, and bytes in units of 1e9."""
    table, layer, head = tables.table, _layer_work, _head_work
    return {
        "layers": table("model stages", lambda at: at["model"].layers / at["stages"]),
        "gaps": table("stages", lambda at: at["stages"] - 1),
        "fill": table("stages chunks", lambda at: (at["stages"] - 1) / at["chunks"]),
        "layer_work": table("model tensor recompute", lambda at: layer(at).flops / 1e12),
        "head_work": table("model tensor", lambda at: head(at).flops / 1e12),
        "per_work": table("gpu", lambda at: 1e12 / (EFFICIENCY * at["gpu"].matmul_flops)),
        "layer_traffic": table("model tensor recompute microbatch sequence_parallel", lambda at: layer(at).nbytes / 1e9),
        "head_traffic": table("model tensor microbatch", lambda at: head(at).nbytes / 1e9),
        "per_traffic": table("gpu", lambda at: 1e9 / (MEMORY_SHARE * at["gpu"].memory_bandwidth)),
        "layer_rings": table("model tensor recompute", lambda at: layer(at).all_reduces),
        "head_rings": table("model tensor", lambda at: head(at).all_reduces),
        "ring": table("model fabric tensor microbatch", _layer_ring),
        "exchange": table("model fabric tensor microbatch link reach sequence_parallel", tables.exchange),
        "gradients": tables.fitting(
            "model tensor stages fabric replicas link wire", lambda case: _five_digits(case.time(must_fit=False).data_parallel)
        ),
        "parameters": tables.fitting("model tensor stages", lambda case: stage_parameters(case.model, case.plan) / 1e9),
        "update": table("", lambda _: OPTIMISER_BYTES),
        "work": tables.fitting("model tensor stages recompute", lambda case: case.time(must_fit=False).flops / case.plan.gpus / 1e12),
    }


def _memory_tables(tables: Tables) -> Data:
    """Return the tables for the gigabytes on the fullest GPU, which is in the first or in the last stage."""
    table, gigabytes = tables.table, _layer_gigabytes
    return {
        "state": table("", lambda _: STATE_BYTES),
        "held_first": table("stages chunks microbatches", _held_first),
        "held_last": table("stages chunks", lambda at: at["stages"] - (at["stages"] - 1) / at["chunks"]),
        "kept": table("model tensor recompute sequence_parallel", lambda at: gigabytes(at, at["recompute"])),
        "again": table("model tensor recompute sequence_parallel", lambda at: gigabytes(at, "none") - gigabytes(at, at["recompute"])),
        "logits": table("model tensor", lambda at: LOGIT_BYTES * at["model"].sequence * at["model"].vocabulary / at["tensor"] / 1e9),
        "capacity": table("gpu", lambda at: at["gpu"].memory / 1e9),
    }


def _layer_work(at: At) -> Any:
    """Return the work of one layer on one GPU for one microbatch, of one sample unless ``at`` has a size."""
    split = at.get("sequence_parallel", False)
    return at["model"].layer_work(at.get("microbatch", 1), at["tensor"], at["recompute"], split)


def _head_work(at: At) -> Any:
    """Return the work of the logits on one GPU for one microbatch, of one sample unless ``at`` has a size."""
    return at["model"].head_work(at.get("microbatch", 1), at["tensor"])


def _layer_ring(at: At) -> float:
    """Return the seconds of one all-reduce inside a layer."""
    gpu, model, tensor = at["fabric"], at["model"], at["tensor"]
    return _five_digits(ring_seconds(gpu, tensor, min(tensor, gpu.gpus_per_node), 2.0 * at["microbatch"] * model.sequence * model.hidden))


def _held_first(at: At) -> float:
    """Return the number of microbatches whose activations the first stage holds."""

    def kept(chunks: int, microbatches: int) -> float:
        return Transformer(layers=1, hidden=1, heads=1).activation_bytes(1, 1, at["stages"], chunks, microbatches=microbatches)

    return kept(at["chunks"], at["microbatches"]) / kept(1, 1)


def _layer_gigabytes(at: At, recompute: str) -> float:
    """Return the gigabytes that one layer keeps on one GPU for one sample."""
    kept: float = at["model"].layer_activation_bytes(1, at["tensor"], recompute, at["sequence_parallel"]) / 1e9
    return kept


def _fabric(gpu: Profile) -> tuple[float, int]:
    """Return the part of a profile on which the time of messages depends, apart from the port."""
    return gpu.nvlink, gpu.gpus_per_node


def _five_digits(value: float) -> float:
    return float(f"{value:.5g}")


@lru_cache(maxsize=1 << 14)
def _plan(*arguments: Any) -> Plan:
    """Return the plan with these arguments; the results are cached because plans check what they get, and many cases have equal plans."""
    return Plan(*arguments)


@lru_cache(maxsize=256)
def _with_port(gpu: Profile, network: float) -> Profile:
    """Return the GPU with another network port, given in bytes per second; the few results are cached because all tables need them."""
    return replace(gpu, network=network)
