"""A film of timelines: the timelines appear one after the other. Numbers show the bubble ratio and the memory so far."""

from typing import Any

import traitlets

from hybridlab.checks import one_time, whole_number
from hybridlab.costs import Costs
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.widgets.choices import costs_of_one_setting, schedule_names
from hybridlab.widgets.page_data import Data, digest, operation_kinds
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.still import Pictured
from hybridlab.widgets.timeline_explorer_data import order_entry


class TimelineFilm(Pictured):
    """Timelines of several schedules, one below the other, that appear one after the other. The reader has play, pause and a slider.

    The film starts when it becomes visible. If the reader's system asks for reduced motion, the view shows the complete timelines at the
    start.

    Parameters
    ----------
    schedules : str or iterable of str
        Names of the schedules, in the order of the film.
    devices, microbatches : int
        The size. All schedules must support this size with their smallest number of chunks.
    forward, backward : float
        As in :class:`Costs`.
    unit : str or None
        The unit of all times, as in :class:`Costs`.

    Raises
    ------
    HybridLabError
        If a schedule does not exist or does not support the size, or a time is not one number of zero or more.

    Examples
    --------
    >>> TimelineFilm(("gpipe", "1f1b"), devices=4, microbatches=8)  # doctest: +ELLIPSIS
    <TimelineFilm: gpipe, 1f1b; 4 devices, 8 microbatches; data ...>
    """

    _esm = FromFiles(script_of, "timeline_film.js")
    _css = FromFiles(style_sheet, "film", files=("timeline.css", "player.css", "timeline_film.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)

    def __init__(
        self, schedules: Any, devices: int, microbatches: int, *, forward: float = 1.0, backward: float = 2.0, unit: str | None = None
    ) -> None:
        self.set_trait("data", film_data(schedule_names(schedules), devices, microbatches, forward, backward, unit))
        super().__init__()

    def still(self) -> Any:
        """Return the complete timelines as a figure."""
        from hybridlab.plot import compare

        costs = costs_of_one_setting(**self.data["costs"], unit=self.data["unit"] or None)
        sizes = self.data["devices"], self.data["microbatches"]
        return compare({each["title"]: simulate(build(each["name"], *sizes), costs) for each in self.data["schedules"]})

    def __repr__(self) -> str:
        names = ", ".join(each["name"] for each in self.data["schedules"])
        sizes = f"{self.data['devices']} devices, {self.data['microbatches']} microbatches"
        return f"<TimelineFilm: {names}; {sizes}; data {digest(self.data)}>"


def film_data(names: list[str], devices: int, microbatches: int, forward: float, backward: float, unit: str | None) -> Data:
    """Return the orders of the schedules and the costs as plain data. Raise an error if a schedule does not support the size."""
    devices, microbatches = whole_number(devices, "devices"), whole_number(microbatches, "microbatches")
    costs: Costs = costs_of_one_setting(forward=one_time(forward, "forward"), backward=one_time(backward, "backward"), unit=unit)
    chunks = {name: REGISTRY[name].fewest_chunks for name in names}
    schedules = []
    for name, count in chunks.items():
        # raises an error for a refused size, because a film cannot show the refusal of order_entry
        build(name, devices, microbatches, count)
        schedules.append({"name": name, "title": REGISTRY[name].title, **order_entry(REGISTRY[name], devices, microbatches, count)})
    times = {name: getattr(costs, name).item() for name in ("forward", "backward", "weight_share", "p2p")}
    about = {"devices": devices, "microbatches": microbatches, "unit": unit or "", "costs": times}
    return {**about, "kinds": operation_kinds(count * REGISTRY[name].copies for name, count in chunks.items()), "schedules": schedules}
