"""The step explorer: one training step of all devices of a mesh, from the first forward to the last optimiser."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import traitlets

from hybridlab.checks import counted, known_name, one_time, removed_arguments, short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh
from hybridlab.schedules import REGISTRY, build, known_schedule
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.widgets.choices import prices, several, whole_numbers
from hybridlab.widgets.grid import digest
from hybridlab.widgets.pipeline import short
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.step_explorer_data import AXES, SIZES, key_of, step_data
from hybridlab.widgets.view import Checked, View, asked_for, refusing, style_of
from hybridlab.wire import FP16, WireFormat


class StepExplorer(View):
    """A picture of one training step on all ranks: pipelines, messages, the rings of all stages, the optimiser.

    ``schedules``, ``devices`` (of one pipeline, K), ``replicas`` (D), ``microbatches`` (of each replica, M) and ``overlap`` are
    the values to choose from: one, or several; schedules have their fewest chunks. A step of the ring costs ``ring_step``, a
    time or several, or crosses ``link`` with ``gradient_bytes`` in the format ``wire``, one or several. These and ``optimiser``
    are as in :func:`hybrid_step`, and ``forward``, ``backward``, ``weight_share``, ``p2p``, ``unit`` and ``pair_overlap``, its
    ``overlap``, as in :class:`Costs`; costs that are not equal on all ranks show what a slow replica does.
    ``show`` is what to begin with, such as ``{"replicas": 4, "rank": 5, "time": 120}``; what it leaves out begins at its first value.

    All steps are in ``data``, so that the picture answers without a kernel. The traits ``schedule``, ``devices``, ``replicas``,
    ``microbatches``, ``ring`` (the step's time, or the format's name) and ``overlap`` follow the controls, ``rank`` and ``time`` the
    cursor; all can be observed and set. A rank that a smaller mesh lacks becomes 0. Raises :class:`HybridLabError` for
    values that the explorer was not made with, and for a grid that is empty or of more than 2 MB.

    >>> explorer = StepExplorer(replicas=(1, 2), microbatches=8, forward=50, backward=80, ring_step=20)
    >>> explorer  # doctest: +ELLIPSIS
    <StepExplorer: 8 settings, data ...; gpipe, 2 devices, 1 replica, 8 microbatches, ring 20, no overlap; rank 0 at 0>
    >>> explorer.replicas = 2
    >>> explorer.step.makespan
    1210.0
    """

    SETTING = (*AXES, "rank", "time")
    _esm = script_of("step_explorer.js")
    _css = style_of("step", sheets=("timeline.css", "step_explorer.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    schedule = Checked().tag(sync=True)
    devices = Checked().tag(sync=True)
    replicas = Checked().tag(sync=True)
    microbatches = Checked().tag(sync=True)
    ring = Checked().tag(sync=True)
    overlap = Checked().tag(sync=True)
    rank = Checked(0).tag(sync=True)
    time = Checked(0).tag(sync=True)

    @removed_arguments(microseconds="a link's seconds are converted to the unit of the costs, unit='ms' or another")
    def __init__(
        self,
        schedules: Any = ("gpipe", "1f1b"),
        devices: Any = 2,
        replicas: Any = (1, 2, 4),
        microbatches: Any = (2, 4, 8),
        *,
        forward: Any = 1.0,
        backward: Any = 2.0,
        weight_share: Any = 0.5,
        p2p: Any = 0.0,
        pair_overlap: Any = 0.0,
        ring_step: Any = None,
        link: Any = None,
        gradient_bytes: int | None = None,
        wire: Any = FP16,
        overlap: Any = (False, True),
        optimiser: float = 0.0,
        unit: str | None = "ms",
        show: Mapping[str, Any] | None = None,
    ) -> None:
        sizes = {name: whole_numbers(value, name) for name, value in zip(SIZES, (devices, replicas, microbatches), strict=True)}
        names = list(dict.fromkeys(known_schedule(name) for name in several(schedules, "schedules")))
        if isinstance(schedules, (set, frozenset)):  # their order differs from run to run
            names.sort(key=list(REGISTRY).index)
        overlaps = sorted({_yes_or_no(each) for each in several(overlap, "overlap")})
        self._costs = Costs(forward=forward, backward=backward, weight_share=weight_share, p2p=p2p, overlap=pair_overlap, unit=unit)
        if self._costs.batch:
            raise HybridLabError("the costs must be those of one setting: give each as one number, or one a device")
        self._prices = prices(ring_step, link, gradient_bytes, wire, self._costs.unit)
        self._others: dict[str, Any] = {"optimiser": optimiser}
        data = step_data({"schedule": names, **sizes, "overlap": overlaps}, self._prices, self._costs, self._others)
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**self._first(show))

    @property
    def step(self) -> HybridStep:
        """The step of the current setting; raises :class:`UnsupportedSize` where the schedule refuses it."""
        schedule = build(self.schedule, self.devices, self.microbatches)
        price = self._prices.arguments[self.data["ring"].index(self.ring)]
        return hybrid_step(schedule, self._costs, self.replicas, overlap=self.overlap, **price, **self._others)

    def checked(self, name: str, value: Any) -> Any:
        """Return ``value`` for the part ``name`` of the setting: a value that the explorer was made with, a rank, a time; or refuse it."""
        if name == "rank":
            return whole_number(value, name, at_least=0)
        if name == "time":
            return short([one_time(value, "time")])[0]
        if name == "schedule":
            return known_name(value, self.data[name], "schedule of this explorer", any_case=True)
        plain = str(value) if isinstance(value, WireFormat) else value
        for each in self.data[name]:
            alike = type(plain) is type(each) or not {bool, str} & {type(plain), type(each)}
            if alike and isinstance(plain, (bool, int, float, str, np.number)) and each == plain:
                return each
        raise HybridLabError(
            f"this explorer has no step with {name} = {short_repr(value)}: choose from {', '.join(map(str, self.data[name]))}"
        )

    def _first(self, show: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the setting to begin with: what ``show`` says, and for the rest the first values that run."""
        asked = asked_for(show, self.SETTING, '{"replicas": 2}')
        checked = {name: self.checked(name, value) for name, value in asked.items()}
        choices = ([checked[name]] if name in checked else self.data[name] for name in AXES)
        settings = [dict(zip(AXES, values, strict=True)) for values in product(*choices)]
        entries = [self.data["steps"][key_of(self.data, setting)] for setting in settings]
        place = next((place for place, entry in enumerate(entries) if "refusal" not in entry), None)
        if place is None:
            raise HybridLabError(f"the explorer cannot begin there: {entries[0]['refusal']}")
        return settings[place] | {name: checked.get(name, 0) for name in ("rank", "time")}

    @traitlets.validate("rank")
    def _in_mesh(self, proposal: Any) -> int:
        rank: int = proposal["value"]
        with refusing():
            Mesh(self.devices, self.replicas).coordinates(rank)
        return rank

    @traitlets.observe("devices", "replicas")
    def _follow(self, _: Any) -> None:
        if self.rank >= Mesh(self.devices, self.replicas).size:
            self.rank = 0

    def __repr__(self) -> str:
        """Return the same text for the same grid and setting, whatever the run: stored outputs are compared by it."""
        count = sum("refusal" not in entry for entry in self.data["steps"].values())
        sizes = ", ".join(counted(getattr(self, name), name.removesuffix("s").replace("microbatche", "microbatch")) for name in SIZES)
        setting = f"{self.schedule}, {sizes}, ring {self.ring}, {'overlap' if self.overlap else 'no overlap'}"
        return f"<StepExplorer: {counted(count, 'setting')}, data {self._digest}; {setting}; rank {self.rank} at {self.time}>"


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise HybridLabError(f"overlap must be True or False, or both to choose from, not {short_repr(value)}")
    return value
