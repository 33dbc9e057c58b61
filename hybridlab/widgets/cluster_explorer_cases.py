"""The settings of a cluster explorer as the planner takes them, and the grid that one offers."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from hybridlab.checks import checked_text, known_name, one_time, short_repr
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.hardware import A100_40GB, A100_80GB, B200, H100, H200, INFINIBAND_EDR, INFINIBAND_HDR, INFINIBAND_NDR, Profile
from hybridlab.model import RECOMPUTE, Transformer
from hybridlab.planner import IterationTime, Memory, Plan, memory, predict
from hybridlab.planner.plan import refuse_misfit
from hybridlab.widgets.choices import several, whole_numbers, wire_formats
from hybridlab.wire import FP16, FP32, WireFormat

AXES = ("model", "gpu", "tensor", "stages", "replicas", "microbatches", "microbatch", "link", "wire", "recompute")
# Shapes of Narayanan et al., arXiv 2104.04473, Tables 1 and 2
MODELS: Mapping[str, Transformer] = MappingProxyType(
    {
        "GPT 1.7B": Transformer(layers=24, hidden=2304, heads=24),
        "GPT 18B": Transformer(layers=40, hidden=6144, heads=48),
        "GPT 175B": Transformer(layers=96, hidden=12288, heads=96),
        "GPT 1T": Transformer(layers=128, hidden=25600, heads=160),
    }
)
GPUS = (A100_40GB, A100_80GB, H100, H200, B200)
LINKS: Mapping[str, float] = MappingProxyType(
    {"InfiniBand EDR": INFINIBAND_EDR, "InfiniBand HDR": INFINIBAND_HDR, "InfiniBand NDR": INFINIBAND_NDR}
)
WIRES = (FP32, FP16, WireFormat("INT8", block=256))
Values = Mapping[str, Mapping[Any, Any]]  # by axis, by name


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
        """What the fullest GPU keeps."""
        return memory(self.model, self.plan)

    @property
    def misfit(self) -> str:
        """Why the plan cannot share out the model, whatever the memory of the GPU; empty if it can."""
        try:
            refuse_misfit(self.model, self.plan)
        except UnsupportedSize as why:
            return str(why)
        return ""

    @property
    def reach(self) -> int:
        """How far stages are apart: 0 for one stage alone, 1 inside a node, 2 between nodes."""
        return 0 if self.plan.pipeline == 1 else 1 if self.plan.gpus <= self.profile.gpus_per_node else 2


def case_of(at: Mapping[str, Any]) -> Case:
    """Return the case of one value for each axis."""
    batch = at["replicas"] * at["microbatches"] * at["microbatch"]
    plan = Plan(at["tensor"], at["stages"], at["replicas"], at["microbatch"], batch, recompute=at["recompute"])
    return Case(at["model"], plan, _wired(at["gpu"], at["link"]), at["wire"])


@lru_cache(maxsize=256)
def _wired(gpu: Profile, port: float) -> Profile:
    """Return the GPU with another port to the network; every table asks for the same few."""
    return replace(gpu, network=port)


def grid_of(models: Any, gpus: Any, counts: Mapping[str, Any], links: Any, wires: Any, recompute: Any) -> Values:
    """Return the values of all axes by name, or refuse what is no value of its axis."""
    ways = list(dict.fromkeys(known_name(each, RECOMPUTE, "recomputation") for each in several(recompute, "recompute")))
    profiles = list(dict.fromkeys(_instance(each, Profile, "a GPU", "A100_80GB") for each in several(gpus, "gpus")))
    names = [each.name for each in profiles]
    for name in names:
        if names.count(name) > 1:
            raise HybridLabError(f"two GPUs have the name {name!r}: give one of them another with dataclasses.replace")
    axes = {name: {each: each for each in whole_numbers(value, name)} for name, value in counts.items()}
    node, widest = min(each.gpus_per_node for each in profiles), max(axes["tensor"])
    if widest > node:  # there the link would change every layer
        raise HybridLabError(f"the explorer keeps a layer inside a node: tensor is at most {node}, not {widest}; ask predict() for more")
    return {
        "model": {name: _instance(each, Transformer, "a model", "a Transformer") for name, each in _named(models, "models")},
        "gpu": dict(zip(names, profiles, strict=True)),
        **axes,
        "link": {name: one_time(each, f"link {name!r}") for name, each in _named(links, "links")},
        "wire": {str(each): each for each in wire_formats(wires, "wires")},
        "recompute": {each: each for each in ways},
    }


def _named(given: Any, name: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(given, Mapping) or not given:
        raise HybridLabError(f"{name} are values by name, such as {{{'GPT 175B'!r}: ...}}, not {short_repr(given)}")
    return [(checked_text(each, f"a name in {name}"), given[each]) for each in given]


def _instance(value: Any, kind: type, what: str, example: str) -> Any:
    if not isinstance(value, kind):
        raise HybridLabError(f"{what} must be a {kind.__name__}, such as {example}, not {short_repr(value)}")
    return value
