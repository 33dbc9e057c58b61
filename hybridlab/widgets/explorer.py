"""The timeline explorer: pick a schedule and its sizes, see when each operation runs."""

from collections.abc import Mapping
from itertools import product
from numbers import Real
from typing import Any

import anywidget
import traitlets

from hybridlab.clock import simulate
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.inputs import counted, known_name, shown
from hybridlab.schedules import build
from hybridlab.timeline import Timeline
from hybridlab.widgets.grid import Data, digest, grid_data
from hybridlab.widgets.view import with_shared

SETTING = ("schedule", "devices", "microbatches", "chunks", "p2p", "compare")


class Held(traitlets.TraitType[Any, Any]):
    """A trait that takes what the explorer's grid holds, and refuses the rest in this library's words."""

    def validate(self, obj: Any, value: Any) -> Any:
        return held(obj.data, str(self.name), value)


class TimelineExplorer(anywidget.AnyWidget):
    """A picture of timelines with controls for schedule, devices, microbatches, chunks and latency.

    ``schedules``, ``devices``, ``microbatches``, ``chunks`` and ``p2p`` (the latency) are the values to choose from: one, or several.
    ``chunks`` counts only for schedules that have more than one a device; None gives each its fewest. ``forward``,
    ``backward`` and ``weight_share`` are those of :meth:`Costs.per_device`; ``unit`` names the unit of time. ``show`` is the setting
    to begin with, such as ``{"devices": 4, "compare": "gpipe"}``; what it leaves out begins at its first value.

    The finished timelines of all combinations are in ``data``, so the picture answers without a kernel. The traits
    ``schedule``, ``devices``, ``microbatches``, ``chunks``, ``p2p`` and ``compare`` (a second schedule drawn below, or "") follow
    the controls and can be observed and set. Raises :class:`HybridLabError` for values the library or the grid does not
    have, an empty grid, and one of more than 2 MB.

    >>> explorer = TimelineExplorer(devices=(2, 4), microbatches=(4, 8), show={"devices": 4})
    >>> explorer  # doctest: +ELLIPSIS
    <TimelineExplorer: 8 settings, data ...; gpipe, 4 devices, 4 microbatches, 1 chunk, latency 0>
    >>> explorer.schedule = "1f1b"
    >>> explorer.timeline.makespan
    21.0
    """

    _esm = with_shared("timeline_explorer.js")
    _css = with_shared("timeline_explorer.css")

    data = traitlets.Dict(read_only=True).tag(sync=True)
    schedule = Held().tag(sync=True)
    devices = Held().tag(sync=True)
    microbatches = Held().tag(sync=True)
    chunks = Held().tag(sync=True)
    p2p = Held().tag(sync=True)
    compare = Held().tag(sync=True)

    def __init__(
        self,
        schedules: Any = ("gpipe", "1f1b"),
        devices: Any = (2, 3, 4),
        microbatches: Any = (2, 4, 8),
        chunks: Any = None,
        p2p: Any = 0.0,
        *,
        forward: Any = 1.0,
        backward: Any = 2.0,
        weight_share: Any = 0.5,
        unit: str = "",
        show: Mapping[str, Any] | None = None,
    ) -> None:
        self._times = {"forward": forward, "backward": backward, "weight_share": weight_share}
        axes = {"devices": devices, "microbatches": microbatches, "chunks": chunks, "p2p": p2p}
        data = grid_data(schedules, axes, self._times, unit)
        setting = first_setting(data, show)
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**setting)

    @property
    def timeline(self) -> Timeline:
        """The timeline of the current setting; raises :class:`UnsupportedSize` where the schedule refuses it."""
        schedule = build(self.schedule, self.devices, self.microbatches, self.chunks)
        return simulate(schedule, Costs.per_device(**self._times, p2p=self.p2p))

    @traitlets.observe("schedule")
    def _take_chunks_it_supports(self, change: Any) -> None:
        supported = _chunks_of(self.data, change["new"])
        if self.chunks not in supported:
            self.chunks = supported[0]

    def __repr__(self) -> str:
        """Return the same text for the same grid and setting, whatever the run: stored outputs are compared by it."""
        pipelines = self.data["pipelines"].values()
        settings = len(self.data["p2p"]) * sum("refusal" not in entry for entry in pipelines)
        sizes = {"device": self.devices, "microbatch": self.microbatches, "chunk": self.chunks}
        counts = (counted(number, name) for name, number in sizes.items())
        compared = f" against {self.compare}" if self.compare else ""
        shows = ", ".join((f"{self.schedule}{compared}", *counts, f"latency {self.p2p:g}"))
        return f"<TimelineExplorer: {settings} settings, data {self._digest}; {shows}>"


def first_setting(data: Data, show: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the setting to begin with: what ``show`` says, and for the rest the first values that run.

    >>> axes = {"devices": [2, 4], "microbatches": [2, 4], "chunks": None, "p2p": 0}
    >>> data = grid_data("interleaved", axes, {"forward": 1, "backward": 2})
    >>> first_setting(data, {"devices": 4})
    {'schedule': 'interleaved', 'devices': 4, 'microbatches': 4, 'chunks': 2, 'p2p': 0, 'compare': ''}
    """
    if not isinstance(show, Mapping | None):
        raise HybridLabError(f'show is a setting to begin with, such as {{"devices": 4}}, not {shown(show)}')
    asked = {known_name(name, SETTING, "part of a setting"): value for name, value in (show or {}).items()}
    asked = {name: held(data, name, value) for name, value in asked.items()}
    choices = {"schedule": names_of(data), "compare": [""], **{name: data[name] for name in SETTING[1:5]}}
    choices |= {name: [value] for name, value in asked.items()}
    refusals = []
    for values in product(*(choices[name] for name in SETTING)):
        entry = data["pipelines"]["/".join(map(str, values[:4]))]
        if "refusal" not in entry:
            return dict(zip(SETTING, values, strict=True))
        refusals.append(entry["refusal"])
    raise HybridLabError(f"the explorer cannot begin there: {refusals[0]}")


def held(data: Data, name: str, value: Any) -> Any:
    """Return ``value`` of the trait ``name`` as the grid holds it, or refuse it and say what the grid holds."""
    if name in ("schedule", "compare"):
        return "" if name == "compare" and value in ("", None) else known_name(value, names_of(data), "schedule of this grid")
    number = type(value) is not bool and isinstance(value, Real)
    for each in data[name]:
        if number and value == each:
            return each
    values = ", ".join(f"{each:g}" for each in data[name])
    raise HybridLabError(f"{name} of this explorer can be {values}, not {shown(value)}: put it into the grid to see it")


def names_of(data: Data) -> list[str]:
    """Return the names of the grid's schedules."""
    return [schedule["name"] for schedule in data["schedules"]]


def _chunks_of(data: Data, name: str) -> list[int]:
    return next(schedule["chunks"] for schedule in data["schedules"] if schedule["name"] == name)
