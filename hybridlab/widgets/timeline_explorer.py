"""The timeline explorer: it shows when each operation runs, for a schedule, sizes and times that the reader chooses."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import traitlets

from hybridlab.checks import counted, known_name, one_time, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline
from hybridlab.widgets.choices import costs_of_one_setting
from hybridlab.widgets.measured_data import measured_steps, refusal_of, size_of, with_measured
from hybridlab.widgets.own_schedules import Offered, build_offered, offered_schedules
from hybridlab.widgets.page_data import digest
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.timeline_explorer_data import SIZES, grid_data, has_setting, setting_data, supported_or_fewest_chunks
from hybridlab.widgets.view import Checked, View, shown_first

TIMES = ("forward", "backward", "weight_share", "p2p")


class TimelineExplorer(View):
    """A view of timelines with controls for schedule, sizes and times. The view can play a step, and explains why a device is idle.

    The orders of all sizes are in the trait ``data``. The page itself simulates the orders, so the view works without a running kernel and
    with any times. The traits ``schedule``, ``devices``, ``microbatches``, ``chunks``, ``forward``, ``backward``, ``weight_share``,
    ``p2p``, ``slow_device``, ``slowdown`` and ``compare`` (a second schedule drawn below the first, or "") change with the controls. Python
    can observe and set these traits. For a size that is not in ``data``, Python computes the order and stores it in the trait ``extra``. In
    a running notebook, the controls also offer such sizes. If the view cannot draw a setting, it shows the reason.

    Parameters
    ----------
    schedules : str, iterable of str, or mapping
        Names of the schedules from which the reader chooses. Or a mapping of the title that the view shows to a name of the registry or to
        a function of ``(devices, microbatches)`` or ``(devices, microbatches, chunks)``. The function returns the orders: a list with a
        line for each device, such as ``["0F0 0B0", "1F0 1B0"]``, a text with such lines, a :class:`Schedule`, or lists of operations. It
        gets whole numbers and runs once for each size. The name of a function, for example in ``show``, is its title. A size has a refusal
        if the function raises an error, or if its orders cannot run or have another size.
    devices, microbatches : int or iterable of int
        The sizes from which the reader chooses.
    chunks : int, iterable of int or None
        Numbers of chunks per device, for schedules that support several numbers. None means the smallest number that each schedule
        supports.
    p2p : float
        The first value of the latency, in ``unit``.
    p2p_between : array_like, optional
        A latency for each link instead of ``p2p``, as in :class:`Costs`, between every two devices. The page has no control for it.
    forward, backward, weight_share : float or sequence of float
        The first values of the times, as in :class:`Costs`. The page has no control for a time that differs between devices.
    overlap : float
        As in :class:`Costs`.
    slow_device : int or None
        A device whose operations take ``slowdown`` times their normal time. None means that no device is slow.
    slowdown : float
        The factor of the operation times of the slow device.
    unit : str or None
        The unit of all times, as in :class:`Costs`.
    measured : mapping of str to Timeline, optional
        Name of a schedule -> measured step. For example, the reader can choose the step of "1f1b" as "1f1b, measured", also for
        ``compare``.
    show : mapping or None
        The first setting, such as ``{"devices": 4, "compare": "gpipe"}``. Other traits begin at their first value.

    Raises
    ------
    HybridLabError
        A value is wrong, no setting of the grid can run, or the data have more than 2 MB.

    Examples
    --------
    >>> explorer = TimelineExplorer(devices=(2, 4), microbatches=(4, 8), show={"devices": 4})
    >>> explorer  # doctest: +ELLIPSIS
    <TimelineExplorer: 8 orders, data ...; gpipe, 4 devices, 4 microbatches, 1 chunk, F 1, B 2, latency 0>
    >>> explorer.schedule, explorer.devices = "1f1b", 5
    >>> explorer.timeline.makespan
    24.0

    A function of your own, beside a schedule of the registry:

    >>> def mine(devices, microbatches):
    ...     orders = []
    ...     for device in range(devices):
    ...         forwards = [f"{device}F{microbatch}" for microbatch in range(microbatches)]
    ...         backwards = [f"{device}B{microbatch}" for microbatch in reversed(range(microbatches))]
    ...         orders.append(" ".join(forwards + backwards))
    ...     return orders
    >>> TimelineExplorer({"mine": mine, "1F1B": "1f1b"}, show={"compare": "1F1B"})  # doctest: +ELLIPSIS
    <TimelineExplorer: 18 orders, data ...; mine against 1f1b, 2 devices, 2 microbatches, 1 chunk, F 1, B 2, latency 0>
    """

    SETTING = ("schedule", *SIZES, *TIMES, "slow_device", "slowdown", "compare")
    _esm = FromFiles(script_of, "timeline_explorer.js")
    _css = FromFiles(style_sheet, "explorer", files=("timeline.css", "player.css", "timeline_explorer.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    extra = traitlets.Dict(read_only=True).tag(sync=True)  # data of the current sizes if ``data`` does not have them, else empty
    schedule = Checked().tag(sync=True)
    devices = Checked().tag(sync=True)
    microbatches = Checked().tag(sync=True)
    chunks = Checked().tag(sync=True)
    forward = Checked().tag(sync=True)
    backward = Checked().tag(sync=True)
    weight_share = Checked().tag(sync=True)
    p2p = Checked().tag(sync=True)
    slow_device = Checked().tag(sync=True)
    slowdown = Checked().tag(sync=True)
    compare = Checked().tag(sync=True)

    def __init__(
        self,
        schedules: Any = ("gpipe", "1f1b"),
        devices: Any = (2, 3, 4),
        microbatches: Any = (2, 4, 8),
        chunks: Any = None,
        p2p: Any = 0.0,
        *,
        p2p_between: Any = None,
        forward: Any = 1.0,
        backward: Any = 2.0,
        weight_share: Any = 0.5,
        overlap: Any = 0.0,
        slow_device: Any = None,
        slowdown: Any = 1.5,
        unit: str | None = "ms",
        measured: Mapping[str, Timeline] | None = None,
        show: Mapping[str, Any] | None = None,
    ) -> None:
        links = {"p2p": one_time(p2p, "p2p")} if p2p_between is None else {"p2p_between": p2p_between}
        costs = costs_of_one_setting(forward=forward, backward=backward, weight_share=weight_share, overlap=overlap, **links, unit=unit)
        self._fixed: dict[str, Any] = {"overlap": costs.overlap.item(), "unit": costs.unit, "p2p_between": costs.p2p_between}
        self._steps = measured_steps(measured, unit)
        self._offered = offered_schedules(schedules)
        grid = grid_data(self._offered, {"devices": devices, "microbatches": microbatches, "chunks": chunks})
        for count in grid["devices"]:
            costs.table(count)  # raises if the costs are for another number of devices
        times = {name: one_or_each(getattr(costs, name).tolist()) for name in TIMES}
        times |= {"slow_device": slow_device, "slowdown": slowdown}
        # For the script, the unit "" means no unit.
        about = {"unit": costs.unit or "", "overlap": costs.overlap.item(), "most": most_of(costs)}
        if costs.p2p_between is not None:
            about["links"] = links_of(costs)
        data = with_measured({**about, **grid}, self._steps)
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**self._first_setting(times, show))
        self.on_msg(self._answer)

    @property
    def _schedules(self) -> dict[str, Offered]:
        """All schedules that Python can build, by name: those of the registry, and the functions that the view offers."""
        return {**REGISTRY, **self._offered}

    @property
    def costs(self) -> Costs:
        """The costs of the current setting."""
        times = {name: getattr(self, name) for name in TIMES}
        if self._fixed["p2p_between"] is not None:
            del times["p2p"]
        costs = Costs(**times, **self._fixed)
        # After a change of the size, the slow device perhaps does not exist. It becomes slow again when the size increases.
        if self.slow_device is None or self.slow_device >= self.devices:
            return costs
        return costs.slower([self.slow_device], self.slowdown, of=self.devices)

    @property
    def timeline(self) -> Timeline:
        """The timeline of the current setting. Raises :class:`UnsupportedSize` if the schedule does not support the size.

        A measured step has its own size and times, which do not depend on the setting.
        """
        return self._timeline_of(self.schedule)

    def _timeline_of(self, name: str) -> Timeline:
        """Return the timeline of a schedule with the current sizes and times. It has its own number of chunks if it needs another one."""
        if name in self._steps:
            return self._steps[name]
        chunks = self._chunks_for(name, self.chunks)
        return simulate(build_offered(self._schedules[name], self.devices, self.microbatches, chunks), self.costs)

    def checked(self, name: str, value: Any) -> Any:
        """Return the value for one trait of the setting, or raise an error if the library does not accept this value."""
        if name == "compare" and value in ("", None):
            return ""
        if name in ("schedule", "compare"):
            if isinstance(value, str):
                # A schedule of the registry can have another title, and then the author of the view knows it by this title.
                value = next((each.name for each in self._offered.values() if each.title == value), value)
                if value in self._steps:
                    return value
            return known_name(value, self._schedules, "schedule", any_case=True)
        if name == "slow_device":
            return None if value is None else whole_number(value, name, at_least=0)
        if name in ("p2p", "slowdown"):
            return one_or_each([one_time(value, name)])
        if name in TIMES:
            # Costs checks the time ``name``. The values of forward and backward do not matter, but Costs requires them.
            return one_or_each(getattr(costs_of_one_setting(**{"forward": 1, "backward": 1, name: value}), name).tolist())
        return whole_number(value, name)

    def _first_setting(self, times: Mapping[str, Any], show: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the first setting: the values in ``show``, and otherwise ``times`` and the first sizes that can run."""
        asked = {name: self.checked(name, value) for name, value in shown_first(show, self.SETTING, '{"devices": 4}').items()}
        names = [schedule["name"] for schedule in self.data["schedules"]]
        choices = {"schedule": names, "compare": [""], **{name: self.data[name] for name in SIZES}}
        choices |= {name: [self.checked(name, value)] for name, value in times.items()}
        if "schedule" in asked:
            # A schedule outside the grid begins with its smallest number of chunks. Measured steps are always in the grid.
            choices["chunks"] = self._offered_chunks(asked["schedule"]) or [self._schedules[asked["schedule"]].fewest_chunks]
        choices |= {name: [value] for name, value in asked.items()}
        refusals = []
        for values in product(*(choices[name] for name in self.SETTING)):
            refusal = self._refusal(*values[:4])
            if refusal is None:
                return dict(zip(self.SETTING, values, strict=True))
            refusals.append(refusal)
        raise HybridLabError(f"the explorer cannot begin with this setting: {refusals[0]}", "unsupported-size")

    def _refusal(self, name: str, *size: int) -> str | None:
        """Return the reason why the schedule has no timeline of this size, or None if it has."""
        if name not in self._steps:
            return self._schedules[name].refusal(*size)
        return None if size == size_of(self._steps[name]) else refusal_of(self._steps[name])

    def _offered_chunks(self, name: str) -> list[int]:
        """Return the numbers of chunks that the grid offers for a schedule. Empty for a schedule outside the grid."""
        return next((schedule["chunks"] for schedule in self.data["schedules"] if schedule["name"] == name), [])

    def _chunks_for(self, name: str, chunks: int) -> int:
        """Return ``chunks`` if the schedule supports this number. Otherwise return its first number in the grid, or its smallest number."""
        offered = self._offered_chunks(name)
        if name in self._steps:
            return offered[0]
        near = supported_or_fewest_chunks(self._schedules[name], chunks)
        return near if near == chunks or not offered else offered[0]

    @traitlets.observe("schedule", *SIZES, "compare")
    def _follow(self, change: Any) -> None:
        """After a change, choose a supported number of chunks, and compute the order if the grid does not have the size."""
        setting = {name: getattr(self, name) for name in self.SETTING}
        if change["name"] == "schedule":
            chunks = self._chunks_for(change["new"], self.chunks)
            if chunks != self.chunks:
                self.chunks = chunks  # this calls _follow again
                return
        # The script reads both ``data`` and ``extra``, so ``extra`` is empty for a size that ``data`` has.
        if has_setting(self.data, setting):
            self.set_trait("extra", {})
        elif not has_setting(self.extra, setting):
            self.set_trait("extra", setting_data(setting, self._schedules, self._steps))

    def _answer(self, _: Any, content: Any, __: Any) -> None:
        """Answer the question of a page whether a kernel is running. The answer has the schedules that the kernel can build."""
        if content == {"ask": "live"}:
            schedules = [
                {"name": each.name, "title": each.title, "fewest": each.fewest_chunks, "step": each.chunk_step}
                for each in self._schedules.values()
            ]
            self.send({"live": True, "schedules": schedules})

    def still(self) -> Any:
        """Return the timeline, or both timelines, of the current setting as a figure."""
        from hybridlab import plot

        if not self.compare:
            return plot.timeline(self.timeline)
        title = {name: name if name in self._steps else self._schedules[name].title for name in (self.schedule, self.compare)}
        return plot.compare({title[name]: self._timeline_of(name) for name in title})

    def __repr__(self) -> str:
        """Return the number of orders, the digest of the data and the current setting.

        The text is the same in every run, because outputs that are stored in notebooks contain it.
        """
        orders = sum("refusal" not in entry for entry in self.data["pipelines"].values())
        sizes = {"device": self.devices, "microbatch": self.microbatches, "chunk": self.chunks}
        counts = [counted(number, name) for name, number in sizes.items()]
        latency = "by link" if "links" in self.data else _short(self.p2p)
        times = [f"F {_short(self.forward)}", f"B {_short(self.backward)}", f"latency {latency}"]
        if self.weight_share != 0.5:
            times.insert(2, f"weight share {_short(self.weight_share)}")
        if self.slow_device is not None:
            times.append(f"device {self.slow_device} x {_short(self.slowdown)}")
        compared = f" against {self.compare}" if self.compare else ""
        shows = ", ".join((f"{self.schedule}{compared}", *counts, *times))
        return f"<TimelineExplorer: {counted(orders, 'order')}, data {self._digest}; {shows}>"


def one_or_each(values: Any) -> Any:
    """Return a single number, or a list of several numbers. Whole numbers become ints, which are shorter in JSON.

    >>> one_or_each([2.0]), one_or_each([1.0, 1.5]), one_or_each(0.0)
    (2, [1, 1.5], 0)
    """
    listed = values if isinstance(values, list) else [values]
    plain = [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in listed]
    return plain[0] if len(plain) == 1 else plain


def links_of(costs: Costs) -> list[list[float]]:
    """Return a row for each sender with the latency to each receiver. Raise an error if two devices have no link.

    >>> links_of(Costs(forward=1, backward=2, p2p_between=[[0, 3], [4, 0]]))
    [[0.0, 3.0], [4.0, 0.0]]
    """
    links = np.zeros((costs.devices or 0,) * 2)
    sender, receiver = np.nonzero(~np.eye(len(links), dtype=bool))
    links[sender, receiver] = costs.latency(sender, receiver)
    latencies: list[list[float]] = links.tolist()
    return latencies


def most_of(costs: Costs) -> dict[str, float]:
    """Return the largest value on the slider of each time. The input field beside the slider accepts larger values.

    >>> most_of(Costs(forward=10, backward=20))
    {'forward': 30.0, 'backward': 60.0, 'p2p': 20.0, 'slowdown': 3.0}
    """
    forward, backward, p2p = (float(getattr(costs, name).max()) for name in ("forward", "backward", "p2p"))
    # A time of 0 gives no useful range for its slider, so use the longest time instead.
    longest = max(forward, backward, p2p) or 1.0
    return {
        "forward": 3 * (forward or longest),
        "backward": 3 * (backward or longest),
        "p2p": 2 * max(forward or longest, p2p),
        "slowdown": 3.0,
    }


def _short(value: Any) -> str:
    """Return a number, or a number for each device, as text with six digits."""
    return f"{value:g}" if not isinstance(value, list) else f"[{', '.join(f'{each:g}' for each in value)}]"
