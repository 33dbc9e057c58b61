"""The timeline explorer shows when each operation runs, for a schedule and sizes that the reader chooses."""

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
from hybridlab.widgets.measured_data import measured_steps, refusal_of, size_of, with_measured
from hybridlab.widgets.page_data import digest, nine_digits
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.timeline_explorer_data import AXES, grid_data, has_setting, setting_data, supported_or_fewest_chunks
from hybridlab.widgets.view import Checked, View, shown_first, style_sheet


class TimelineExplorer(View):
    """A picture of timelines with controls for schedule, devices, microbatches, chunks and latency.

    The timelines of all combinations are in the trait ``data``, so the picture needs no running kernel. The traits ``schedule``,
    ``devices``, ``microbatches``, ``chunks``, ``p2p`` and ``compare`` (a second schedule drawn below the first, or "") change with the
    controls. Python can observe and set them, also to values that are not in ``data``. Then a new timeline is computed and stored in the
    trait ``extra``. If there is nothing to draw, the picture says why. In a running notebook, the controls also offer such values.

    Parameters
    ----------
    schedules : str or iterable of str
        Names of the schedules to choose from.
    devices, microbatches : int or iterable of int
        The sizes to choose from.
    chunks : int, iterable of int or None
        Numbers of chunks per device, for schedules that support more than one. None means the fewest that each schedule supports.
    p2p : float or iterable of float
        Latencies to choose from, in ``unit``.
    forward, backward, weight_share, overlap : float or sequence of float
        As in :class:`Costs`.
    unit : str or None
        The unit of all times, as in :class:`Costs`.
    measured : mapping of str to Timeline, optional
        Steps that really ran, by the names of their schedules. The step of "1f1b" can be chosen as "1f1b, measured", and compared.
    show : mapping or None
        The setting to begin with, such as ``{"devices": 4, "compare": "gpipe"}``. What it leaves out begins at the first value.

    Raises
    ------
    HybridLabError
        For values that the library does not have, for a grid that is empty or in which nothing can run, and for more than 2 MB of data.

    Examples
    --------
    >>> explorer = TimelineExplorer(devices=(2, 4), microbatches=(4, 8), show={"devices": 4})
    >>> explorer  # doctest: +ELLIPSIS
    <TimelineExplorer: 8 settings, data ...; gpipe, 4 devices, 4 microbatches, 1 chunk, latency 0>
    >>> explorer.schedule, explorer.devices = "1f1b", 5
    >>> explorer.timeline.makespan
    24.0
    """

    SETTING = ("schedule", *AXES, "compare")
    _esm = script_of("timeline_explorer.js")
    _css = style_sheet("explorer", files=("timeline.css", "timeline_explorer.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    extra = traitlets.Dict(read_only=True).tag(sync=True)  # the current setting if it is not in `data`, otherwise empty
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
        measured: Mapping[str, Timeline] | None = None,
        show: Mapping[str, Any] | None = None,
    ) -> None:
        self._times = {"forward": forward, "backward": backward, "weight_share": weight_share, "overlap": overlap, "unit": unit}
        axes = {"devices": devices, "microbatches": microbatches, "chunks": chunks, "p2p": p2p}
        self._steps = measured_steps(measured, unit)
        data = with_measured(grid_data(schedules, axes, self._times), self._steps)
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**self._first_setting(show))
        self.on_msg(self._answer)

    @property
    def timeline(self) -> Timeline:
        """The timeline for the current setting; raises :class:`UnsupportedSize` if the schedule does not support the size.

        A measured step has its own size, whatever the setting is.
        """
        if self.schedule in self._steps:
            return self._steps[self.schedule]
        schedule = build(self.schedule, self.devices, self.microbatches, self.chunks)
        return simulate(schedule, Costs(**self._times, p2p=self.p2p))

    def checked(self, name: str, value: Any) -> Any:
        """Return the value for one trait of the setting if the library has it, or refuse it."""
        if name == "compare" and value in ("", None):
            return ""
        if name in ("schedule", "compare"):
            return value if isinstance(value, str) and value in self._steps else known_schedule(value)
        return nine_digits([one_time(value, name)])[0] if name == "p2p" else whole_number(value, name)

    def _first_setting(self, show: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the first setting, which has the values in ``show`` and otherwise the first values of the grid that can run."""
        asked = {name: self.checked(name, value) for name, value in shown_first(show, self.SETTING, '{"devices": 4}').items()}
        names = [schedule["name"] for schedule in self.data["schedules"]]
        choices = {"schedule": names, "compare": [""], **{name: self.data[name] for name in AXES}}
        if "schedule" in asked:
            choices["chunks"] = self._offered_chunks(asked["schedule"]) or [REGISTRY[asked["schedule"]].fewest_chunks]  # never for a step
        choices |= {name: [value] for name, value in asked.items()}
        refusals = []
        for values in product(*(choices[name] for name in self.SETTING)):
            refusal = self._refusal(*values[:4])
            if refusal is None:
                return dict(zip(self.SETTING, values, strict=True))
            refusals.append(refusal)
        raise HybridLabError(f"the explorer cannot begin with this setting: {refusals[0]}", "unsupported-size")

    def _refusal(self, name: str, *size: int) -> str | None:
        """Return why there is no timeline of this size, or None if there is one."""
        if name not in self._steps:
            return REGISTRY[name].refusal(*size)
        return None if size == size_of(self._steps[name]) else refusal_of(self._steps[name])

    def _offered_chunks(self, name: str) -> list[int]:
        """Return the numbers of chunks that the grid offers for a schedule; empty if the schedule is not in the grid."""
        return next((schedule["chunks"] for schedule in self.data["schedules"] if schedule["name"] == name), [])

    def _chunks_for(self, name: str, chunks: int) -> int:
        """Return ``chunks`` if the schedule supports it, otherwise the schedule's first number in the grid, or its fewest chunks."""
        offered = self._offered_chunks(name)
        if name in self._steps:
            return offered[0]
        near = supported_or_fewest_chunks(name, chunks)
        return near if near == chunks or not offered else offered[0]

    @traitlets.observe(*SETTING)
    def _follow(self, change: Any) -> None:
        """Give a new schedule a number of chunks that it supports, and compute a setting that the grid does not have."""
        setting = {name: getattr(self, name) for name in self.SETTING}
        if change["name"] == "schedule":
            chunks = self._chunks_for(change["new"], self.chunks)
            if chunks != self.chunks:
                self.chunks = chunks  # this calls _follow again
                return
        if has_setting(self.data, setting):
            self.set_trait("extra", {})
        elif not has_setting(self.extra, setting):
            self.set_trait("extra", setting_data(setting, self._times, self._steps))

    def _answer(self, _: Any, content: Any, __: Any) -> None:
        """Answer a page that asks whether a kernel is running; the answer has the schedules that the kernel can compute."""
        if content == {"ask": "live"}:
            schedules = [
                {"name": family.name, "title": family.title, "fewest": family.fewest_chunks, "step": family.chunk_step}
                for family in REGISTRY.values()
            ]
            self.send({"live": True, "schedules": schedules})

    def __repr__(self) -> str:
        """Return the number of settings, the digest of the data and the current setting.

        The text is the same in every run, because outputs that are stored in notebooks contain it.
        """
        pipelines = self.data["pipelines"].values()
        settings = len(self.data["p2p"]) * sum("refusal" not in entry for entry in pipelines)
        sizes = {"device": self.devices, "microbatch": self.microbatches, "chunk": self.chunks}
        counts = (counted(number, name) for name, number in sizes.items())
        compared = f" against {self.compare}" if self.compare else ""
        shows = ", ".join((f"{self.schedule}{compared}", *counts, f"latency {self.p2p:g}"))
        return f"<TimelineExplorer: {settings} settings, data {self._digest}; {shows}>"
