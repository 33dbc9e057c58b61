"""The timeline explorer: pick a schedule and its sizes, see when each operation runs."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import traitlets

from hybridlab.checks import counted, one_time, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, build, known_schedule
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline
from hybridlab.widgets.grid import AXES, chunks_near, digest, grid_data, holds, setting_data
from hybridlab.widgets.pipeline import Data, short
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.view import Checked, View, asked_for, style_of

SETTING = ("schedule", *AXES, "compare")


class TimelineExplorer(View):
    """A picture of timelines with controls for schedule, devices, microbatches, chunks and latency.

    ``schedules``, ``devices``, ``microbatches``, ``chunks`` and ``p2p`` (the latency) are the values to choose from: one, or several.
    ``chunks`` counts only for schedules that have more than one a device; None gives each its fewest. ``forward``,
    ``backward``, ``weight_share``, ``overlap`` and ``unit`` are those of :class:`Costs`.
    ``show`` is the setting to begin with, such as ``{"devices": 4, "compare": "gpipe"}``; what it leaves out begins at its first value.

    The finished timelines of all combinations are in ``data``, so the picture answers without a kernel. The traits
    ``schedule``, ``devices``, ``microbatches``, ``chunks``, ``p2p`` and ``compare`` (a second schedule drawn below, or "") follow
    the controls and can be observed and set. They take any value: what is not in ``data`` is computed into ``extra``, and where there
    is nothing to draw the picture says why. In a running notebook the controls take any value too. Raises
    :class:`HybridLabError` for values that the library does not have, an empty grid, and one of more than 2 MB.

    >>> explorer = TimelineExplorer(devices=(2, 4), microbatches=(4, 8), show={"devices": 4})
    >>> explorer  # doctest: +ELLIPSIS
    <TimelineExplorer: 8 settings, data ...; gpipe, 4 devices, 4 microbatches, 1 chunk, latency 0>
    >>> explorer.schedule, explorer.devices = "1f1b", 5
    >>> explorer.timeline.makespan
    24.0
    """

    SETTING = SETTING
    _esm = script_of("timeline_explorer.js")
    _css = style_of("explorer", sheets=("timeline.css", "timeline_explorer.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    extra = traitlets.Dict(read_only=True).tag(sync=True)  # the same for the current setting where `data` lacks it, else empty
    schedule = Checked().tag(sync=True)
    devices = Checked().tag(sync=True)
    microbatches = Checked().tag(sync=True)
    chunks = Checked().tag(sync=True)
    p2p = Checked().tag(sync=True)
    compare = Checked().tag(sync=True)

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
        overlap: Any = 0.0,
        unit: str | None = "ms",
        show: Mapping[str, Any] | None = None,
    ) -> None:
        self._times = {"forward": forward, "backward": backward, "weight_share": weight_share, "overlap": overlap, "unit": unit}
        axes = {"devices": devices, "microbatches": microbatches, "chunks": chunks, "p2p": p2p}
        data = grid_data(schedules, axes, self._times)
        setting = first_setting(data, show)
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**setting)
        self.on_msg(self._answer)

    @property
    def timeline(self) -> Timeline:
        """The timeline of the current setting; raises :class:`UnsupportedSize` where the schedule refuses it."""
        schedule = build(self.schedule, self.devices, self.microbatches, self.chunks)
        return simulate(schedule, Costs(**self._times, p2p=self.p2p))

    def checked(self, name: str, value: Any) -> Any:
        """Return ``value`` for the part ``name`` of the setting if the library has it, or refuse it."""
        return checked(name, value)

    @traitlets.observe(*SETTING)
    def _follow(self, change: Any) -> None:
        """Give a new schedule chunks that it supports, and compute what the grid lacks."""
        setting = {name: getattr(self, name) for name in SETTING}
        if change["name"] == "schedule":
            chunks = _chunks_for(self.data, change["new"], self.chunks)
            if chunks != self.chunks:
                self.chunks = chunks  # observed in turn
                return
        if holds(self.data, setting):
            self.set_trait("extra", {})
        elif not holds(self.extra, setting):
            self.set_trait("extra", setting_data(setting, self._times))

    def _answer(self, _: Any, content: Any, __: Any) -> None:
        """Tell a view that asks that a kernel runs here, and which schedules it can compute."""
        if content == {"ask": "live"}:
            schedules = [
                {"name": family.name, "title": family.title, "fewest": family.fewest_chunks, "step": family.chunk_step}
                for family in REGISTRY.values()
            ]
            self.send({"live": True, "schedules": schedules})

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
    """Return the setting to begin with: what ``show`` says, and for the rest the first values of the grid that run.

    >>> axes = {"devices": [2, 4], "microbatches": [2, 4], "chunks": None, "p2p": 0}
    >>> data = grid_data("interleaved", axes, {"forward": 1, "backward": 2})
    >>> first_setting(data, {"devices": 4})
    {'schedule': 'interleaved', 'devices': 4, 'microbatches': 4, 'chunks': 2, 'p2p': 0, 'compare': ''}
    """
    asked = {name: checked(name, value) for name, value in asked_for(show, SETTING, '{"devices": 4}').items()}
    names = [schedule["name"] for schedule in data["schedules"]]
    choices = {"schedule": names, "compare": [""], **{name: data[name] for name in AXES}}
    if "schedule" in asked:
        choices["chunks"] = _chunks_in(data, asked["schedule"]) or [REGISTRY[asked["schedule"]].fewest_chunks]
    choices |= {name: [value] for name, value in asked.items()}
    refusals = []
    for values in product(*(choices[name] for name in SETTING)):
        refusal = REGISTRY[values[0]].refusal(*values[1:4])
        if refusal is None:
            return dict(zip(SETTING, values, strict=True))
        refusals.append(refusal)
    raise HybridLabError(f"the explorer cannot begin there: {refusals[0]}")


def checked(name: str, value: Any) -> Any:
    """Return ``value`` for the part ``name`` of a setting, or refuse it.

    >>> checked("devices", 12), checked("p2p", 0.5), checked("compare", None)
    (12, 0.5, '')
    """
    if name in ("schedule", "compare"):
        return "" if name == "compare" and value in ("", None) else known_schedule(value)
    if name != "p2p":
        return whole_number(value, name)
    return short([one_time(value, name)])[0]


def _chunks_for(data: Data, name: str, chunks: int) -> int:
    """Return the number of chunks if the schedule supports it, else its first in the grid, else its fewest."""
    near, in_grid = chunks_near(name, chunks), _chunks_in(data, name)
    return near if near == chunks or not in_grid else in_grid[0]


def _chunks_in(data: Data, name: str) -> list[int]:
    return next((schedule["chunks"] for schedule in data["schedules"] if schedule["name"] == name), [])
