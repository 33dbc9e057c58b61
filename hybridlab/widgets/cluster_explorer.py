"""The cluster explorer: it shows the iteration time of a plan, the parts of this time, and whether the plan fits in memory."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import numpy as np
import traitlets

from hybridlab.checks import checked_text, known_name, one_time, short_repr, true_or_false
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.hardware import A100_40GB, A100_80GB, B200, H100, H200, INFINIBAND_EDR, INFINIBAND_HDR, INFINIBAND_NDR, Profile
from hybridlab.model import RECOMPUTE, Transformer
from hybridlab.planner import GPUMemory, IterationTime, Plan
from hybridlab.widgets.choices import one_or_several, whole_numbers, wire_formats
from hybridlab.widgets.cluster_explorer_data import AXES, PARTS, ClusterCase, Values, case_of, cluster_data
from hybridlab.widgets.cluster_explorer_own import offered_functions, own_times
from hybridlab.widgets.page_data import Data, digest
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.view import Checked, View, shown_first
from hybridlab.wire import FP16, FP32, WireFormat

# The sizes of these models are from Tables 1 and 2 in Narayanan et al., arXiv 2104.04473.
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
# The first setting. If the grid does not have one of these values, the explorer begins with the first value of this axis.
BEGIN = {"model": "GPT 175B", "gpu": "A100-SXM4-80GB", "tensor": 8, "stages": 8, "replicas": 16, "microbatches": 64, "microbatch": 1}
BEGIN |= {"link": "InfiniBand HDR", "wire": "FP16", "recompute": "full", "chunks": 1, "sequence_parallel": False}


class ClusterExplorer(View):
    """A view of one iteration of a plan: the parts of its time, and the memory of the fullest GPU.

    All numbers are in the trait ``data``, so the view works without a running kernel. The numbers are equal to those of :func:`predict`.
    The traits ``model``, ``gpu``, ``link`` and ``wire`` (names), ``tensor``, ``stages``, ``replicas``, ``microbatches``, ``microbatch``,
    ``chunks``, ``recompute`` and ``sequence_parallel`` change with the controls. Python can observe and set them.

    A map shows the time and the memory of all plans in the grid with the same GPUs and samples as the current plan. The reader can load a
    plan from the map, and pin two plans to compare them.

    Each of the following arguments is one value, or several values from which the reader chooses.

    Parameters
    ----------
    models : mapping of str to Transformer
        Name -> model.
    gpus : Profile or iterable of Profile
        Profiles of GPUs.
    tensor, stages, replicas : int or iterable of int
        The tensor-parallel size, the number of stages (K) and the number of replicas (D).
    microbatches, microbatch : int or iterable of int
        The number of microbatches in each replica (M), and the number of samples in one microbatch.
    links : mapping of str to float
        Name of a network port -> its bytes per second. Each GPU has one port.
    wires : WireFormat or iterable of WireFormat
        The wire formats of gradients.
    recompute : str or iterable of str
        The activations that the backward recomputes: "none", "selective" (the attention's core) or "full" (the whole layer).
    chunks : int or iterable of int
        The number of chunks on each stage (v). More than 1 means interleaved 1F1B.
    sequence_parallel : bool or iterable of bool
        Whether the tensor GPUs also share the operations between the matrix products of a layer.
    own : mapping of str to callable, or None
        Title -> a function of the model, the plan, the GPU with its network port, and the wire format. It returns the seconds of some
        parts by name, such as ``{"matmul": 12.5, "bubble": 1.9}``. The view shows them beside the parts of :func:`predict`. The function
        runs in Python after each change, so a page without a kernel shows them only for the first setting.
    show : mapping or None
        The first setting, such as ``{"stages": 4}``.

    Raises
    ------
    HybridLabError
        A value is wrong, no plan of the grid divides the model, or the data have more than 2 MB.

    Examples
    --------
    >>> from hybridlab.hardware import A100_80GB
    >>> explorer = ClusterExplorer(gpus=A100_80GB, tensor=8, stages=(8, 16), replicas=16, microbatches=64, microbatch=1)
    >>> explorer  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    <ClusterExplorer: 1,296 settings, data ...;
     GPT 175B on 1,024 x A100-SXM4-80GB, tensor 8, K 8, D 16, M 64 of 1, InfiniBand HDR, FP16, full>
    >>> explorer.stages = 16
    >>> explorer.plan.gpus, round(explorer.time.seconds, 1)
    (2048, 11.7)
    >>> explorer = ClusterExplorer(own={"mine": lambda model, plan, gpu, wire: {"matmul": 12.5}})
    >>> explorer.own["times"]
    {'mine': {'matmul': 12.5}}
    """

    SETTING = AXES
    _esm = FromFiles(script_of, "cluster_explorer.js")
    _css = FromFiles(style_sheet, "cluster", files=("cluster_explorer.css",))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    own = traitlets.Dict(read_only=True).tag(sync=True)
    model = Checked().tag(sync=True)
    gpu = Checked().tag(sync=True)
    tensor = Checked().tag(sync=True)
    stages = Checked().tag(sync=True)
    replicas = Checked().tag(sync=True)
    microbatches = Checked().tag(sync=True)
    microbatch = Checked().tag(sync=True)
    link = Checked().tag(sync=True)
    wire = Checked().tag(sync=True)
    recompute = Checked().tag(sync=True)
    chunks = Checked().tag(sync=True)
    sequence_parallel = Checked().tag(sync=True)

    def __init__(
        self,
        models: Any = MODELS,
        gpus: Any = GPUS,
        tensor: Any = (1, 2, 4, 8),
        stages: Any = (1, 2, 4, 8, 16, 32),
        replicas: Any = (1, 2, 4, 8, 16, 32, 64),
        microbatches: Any = (1, 2, 4, 8, 16, 32, 64, 128, 256),
        microbatch: Any = (1, 2, 4, 8),
        *,
        links: Any = LINKS,
        wires: Any = WIRES,
        recompute: Any = RECOMPUTE,
        chunks: Any = (1, 2, 4),
        sequence_parallel: Any = (False, True),
        own: Mapping[str, Any] | None = None,
        show: Mapping[str, Any] | None = None,
    ) -> None:
        counts = {"tensor": tensor, "stages": stages, "replicas": replicas, "microbatches": microbatches, "microbatch": microbatch}
        counts["chunks"] = chunks
        self._values = _checked_axes(models, gpus, counts, links, wires, recompute, sequence_parallel)
        self._functions = offered_functions(own)
        asked = shown_first(show, self.SETTING, '{"stages": 4}')
        first = {name: BEGIN[name] if BEGIN[name] in each else next(iter(each)) for name, each in self._values.items()}
        # Check everything first, because computing the data takes longer.
        begin = {name: self.checked(name, value) for name, value in (first | asked).items()}
        data = cluster_data(self._values)
        self._digest = digest(data)
        self.set_trait("data", data)
        self.set_trait("own", self._own_at(begin))
        super().__init__(**begin)

    @property
    def _case(self) -> ClusterCase:
        """The current setting, as arguments for the planner."""
        return self._case_at({name: getattr(self, name) for name in AXES})

    def _case_at(self, setting: Mapping[str, Any]) -> ClusterCase:
        """Return a setting, a name for each axis, as arguments for the planner."""
        return case_of({name: self._values[name][setting[name]] for name in AXES})

    @traitlets.observe(*AXES)
    def _follow(self, _: Any) -> None:
        """Compute the times of the functions for the new setting."""
        setting = {name: getattr(self, name) for name in AXES}
        if self._functions and self.own["setting"] != setting:
            self.set_trait("own", self._own_at(setting))

    def _own_at(self, setting: Mapping[str, Any]) -> Data:
        """Return a setting with the times of the functions. There are no times if the planner refuses the plan."""
        found: Data = {"times": {}, "problems": {}}
        with suppress(UnsupportedSize):
            found = own_times(self._functions, self._case_at(setting))
        return {"setting": dict(setting), **found}

    @property
    def plan(self) -> Plan:
        """The plan of the current setting. Raises :class:`UnsupportedSize` if the chunks do not suit the stages and microbatches."""
        return self._case.plan

    @property
    def time(self) -> IterationTime:
        """The result of :func:`predict`. Raises :class:`UnsupportedSize` if the plan does not fit in memory or divide the model."""
        return self._case.time()

    @property
    def memory(self) -> GPUMemory:
        """The memory that the plan needs on the fullest GPU. Raises :class:`UnsupportedSize` if the plan does not divide the model."""
        return self._case.memory

    def checked(self, name: str, value: Any) -> Any:
        """Return the value for one trait of the setting, or raise an error if the explorer does not offer this value."""
        offered = list(self._values[name])
        # bool first, because True is a whole number in Python.
        if isinstance(offered[0], bool):
            choice = true_or_false(value, name)
            if choice not in offered:
                raise HybridLabError(f"this explorer has only plans with {name} = {offered[0]}", "out-of-range")
            return choice
        if isinstance(offered[0], str):
            return known_name(str(value) if isinstance(value, WireFormat) else value, offered, f"{name} of this explorer")
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value in offered:
            return int(value)
        known = ", ".join(map(str, offered))
        raise HybridLabError(f"this explorer has no plan with {name} = {short_repr(value)}: choose from {known}", "out-of-range")

    def still(self) -> Any:
        """Return the parts of an iteration as a figure."""
        from hybridlab.plot import stacks

        times = {"the library": self.time.parts} | self.own["times"]
        bars = {title: {PARTS[name]: parts.get(name, 0.0) for name in PARTS} for title, parts in times.items()}
        held = f"{self.memory.total / 1e9:.1f} of {self._case.profile.memory / 1e9:.0f} GB on the fullest GPU"
        title = f"{self.model} on {self.plan.gpus:,} x {self.gpu}: {self.time.seconds:.3g} s an iteration, {held}"
        return stacks(bars, x_label="seconds", title=title)

    def __repr__(self) -> str:
        """Return the size of the grid, the digest of the data and the setting.

        The text is the same in every run, because outputs that are stored in notebooks contain it.
        """
        count = int(np.prod([len(each) for each in self._values.values()]))
        gpus = self.tensor * self.stages * self.replicas
        plan = f"tensor {self.tensor}, K {self.stages}, D {self.replicas}, M {self.microbatches} of {self.microbatch}"
        plan += f", v {self.chunks}" if self.chunks > 1 else ""
        activations = f"{self.recompute}, sequence parallel" if self.sequence_parallel else self.recompute
        setting = f"{self.model} on {gpus:,} x {self.gpu}, {plan}, {self.link}, {self.wire}, {activations}"
        told = [f"; {title} {sum(parts.values()):.4g} s" for title, parts in self.own["times"].items()]
        told += [f"; {title}: {problem}" for title, problem in self.own["problems"].items()]
        return f"<ClusterExplorer: {count:,} settings, data {self._digest}; {setting}{''.join(told)}>"


def _checked_axes(models: Any, gpus: Any, counts: Mapping[str, Any], links: Any, wires: Any, recompute: Any, split: Any) -> Values:
    """Return the values of all axes by name, or raise an error for a value that an axis does not accept."""
    recomputations = [known_name(each, RECOMPUTE, "recomputation") for each in one_or_several(recompute, "recompute")]
    splits = sorted({true_or_false(each, "sequence_parallel") for each in one_or_several(split, "sequence_parallel")})
    # A control shows only the name of a GPU, so two profiles must not have the same name.
    profiles = list(dict.fromkeys(_instance(each, Profile, "a GPU", "A100_80GB") for each in one_or_several(gpus, "gpus")))
    names = [each.name for each in profiles]
    for name in names:
        if names.count(name) > 1:
            advice = "rename one of them with dataclasses.replace"
            raise HybridLabError(f"two GPUs have the name {name!r}: {advice}", "duplicate-name")
    axes = {name: {each: each for each in whole_numbers(value, name)} for name, value in counts.items()}
    node, widest = min(each.gpus_per_node for each in profiles), max(axes["tensor"])
    if widest > node:  # the tables of the explorer are for layers inside one node; across nodes, the time of a layer depends on the link
        wanted = f"tensor must be at most {node}, not {widest}; predict() takes more"
        raise HybridLabError(f"in the explorer, a layer stays inside one node: {wanted}", "too-large")
    return {
        "model": {name: _instance(each, Transformer, "a model", "a Transformer") for name, each in _items_by_name(models, "models")},
        "gpu": dict(zip(names, profiles, strict=True)),
        **axes,
        "link": {name: one_time(each, f"link {name!r}") for name, each in _items_by_name(links, "links")},
        "wire": {str(each): each for each in wire_formats(wires, "wires")},
        "recompute": {each: each for each in dict.fromkeys(recomputations)},
        "sequence_parallel": {each: each for each in splits},
    }


def _items_by_name(given: Any, name: str) -> Iterable[tuple[str, Any]]:
    """Return the items of a mapping with texts as keys, or raise an error for any other value."""
    if not isinstance(given, Mapping) or not given:
        raise HybridLabError(f"{name} must be values by name, such as {{{'GPT 175B'!r}: ...}}, not {short_repr(given)}", "wrong-type")
    return [(checked_text(each, f"a name in {name}"), given[each]) for each in given]


def _instance(value: Any, kind: type, subject: str, example: str) -> Any:
    """Return the value if it has this type, or raise an error."""
    if not isinstance(value, kind):
        raise HybridLabError(f"{subject} must be a {kind.__name__}, such as {example}, not {short_repr(value)}", "wrong-type")
    return value
