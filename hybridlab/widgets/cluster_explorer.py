"""The cluster explorer: how long an iteration takes under a plan, why, and whether it fits, before there are GPUs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import traitlets

from hybridlab.checks import known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.model import RECOMPUTE
from hybridlab.planner import IterationTime, Memory, Plan
from hybridlab.widgets.cluster_explorer_cases import AXES, GPUS, LINKS, MODELS, WIRES, Case, case_of, grid_of
from hybridlab.widgets.cluster_explorer_data import cluster_data
from hybridlab.widgets.grid import digest
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.view import Checked, View, asked_for, style_of
from hybridlab.wire import WireFormat

# Where an explorer begins that offers all of these
BEGIN = {"model": "GPT 175B", "gpu": "A100-SXM4-80GB", "tensor": 8, "stages": 8, "replicas": 16, "microbatches": 64, "microbatch": 1}
BEGIN |= {"link": "InfiniBand HDR", "wire": "FP16", "recompute": "full"}


class ClusterExplorer(View):
    """A picture of one iteration under a plan: the parts of its time, and the memory of the fullest GPU.

    ``models`` are Transformers by name, ``gpus`` profiles, ``links`` bytes a second of a GPU's own port to the network by name;
    ``tensor``, ``stages`` (K), ``replicas`` (D), ``microbatches`` (of each replica, M) and ``microbatch`` (its samples) are whole numbers,
    ``wires`` the formats in which gradients travel, ``recompute`` what is computed again. Each is one value or several to choose
    from. ``show`` is what to begin with, such as ``{"stages": 4}``.

    All that can be shown is in ``data``, so the picture answers without a kernel; its numbers are those of :func:`predict`, part by
    part. The traits ``model``, ``gpu``, ``link`` and ``wire`` (names), ``tensor``, ``stages``, ``replicas``, ``microbatches``,
    ``microbatch`` and ``recompute`` follow the controls and can be observed and set. Raises :class:`HybridLabError` for values that
    the explorer was not made with, for a grid where no plan divides, and for more than 2 MB.

    >>> from hybridlab.hardware import A100_80GB
    >>> explorer = ClusterExplorer(gpus=A100_80GB, tensor=8, stages=(8, 16), replicas=16, microbatches=64, microbatch=1)
    >>> explorer  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    <ClusterExplorer: 216 settings, data ...;
     GPT 175B on 1,024 x A100-SXM4-80GB, tensor 8, K 8, D 16, M 64 of 1, InfiniBand HDR, FP16, full>
    >>> explorer.stages = 16
    >>> explorer.plan.gpus, round(explorer.time.seconds, 1)
    (2048, 11.7)
    """

    SETTING = AXES
    _esm = script_of("cluster_explorer.js")
    _css = style_of("cluster", sheets=("cluster_explorer.css",))

    data = traitlets.Dict(read_only=True).tag(sync=True)
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
        show: Mapping[str, Any] | None = None,
    ) -> None:
        counts = {"tensor": tensor, "stages": stages, "replicas": replicas, "microbatches": microbatches, "microbatch": microbatch}
        self._values = grid_of(models, gpus, counts, links, wires, recompute)
        asked = asked_for(show, self.SETTING, '{"stages": 4}')
        first = {name: BEGIN[name] if BEGIN[name] in each else next(iter(each)) for name, each in self._values.items()}
        begin = {name: self.checked(name, value) for name, value in (first | asked).items()}
        data = cluster_data(self._values)
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**begin)

    @property
    def _case(self) -> Case:
        return case_of({name: self._values[name][getattr(self, name)] for name in AXES})

    @property
    def plan(self) -> Plan:
        """The plan of the current setting."""
        return self._case.plan

    @property
    def time(self) -> IterationTime:
        """What :func:`predict` says of it; raises :class:`UnsupportedSize` where it does not divide or does not fit."""
        return self._case.time()

    @property
    def memory(self) -> Memory:
        """What the fullest GPU keeps; raises :class:`UnsupportedSize` where the plan does not divide."""
        return self._case.memory

    def checked(self, name: str, value: Any) -> Any:
        """Return ``value`` for the part ``name`` of the setting, if the explorer was made with it, or refuse it."""
        offered = list(self._values[name])
        if isinstance(offered[0], str):
            return known_name(str(value) if isinstance(value, WireFormat) else value, offered, f"{name} of this explorer")
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value in offered:
            return int(value)
        known = ", ".join(map(str, offered))
        raise HybridLabError(f"this explorer has no plan with {name} = {short_repr(value)}: choose from {known}")

    def __repr__(self) -> str:
        """Return the same text for the same grid and setting, whatever the run: stored outputs are compared by it."""
        count = int(np.prod([len(each) for each in self._values.values()]))
        plan = f"tensor {self.tensor}, K {self.stages}, D {self.replicas}, M {self.microbatches} of {self.microbatch}"
        setting = f"{self.model} on {self.plan.gpus:,} x {self.gpu}, {plan}, {self.link}, {self.wire}, {self.recompute}"
        return f"<ClusterExplorer: {count:,} settings, data {self._digest}; {setting}>"
