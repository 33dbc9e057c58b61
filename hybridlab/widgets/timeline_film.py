"""A film of timelines: they fill in one after the other, and numbers show the bubble ratio and the memory up to now."""

from typing import Any

import anywidget
import traitlets

from hybridlab.costs import Costs
from hybridlab.schedules import REGISTRY, build
from hybridlab.widgets.choices import costs_of_one_setting, schedule_names
from hybridlab.widgets.page_data import Data, digest, operation_kinds
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.timeline_explorer_data import order_entry


class TimelineFilm(anywidget.AnyWidget):
    """Timelines of several schedules, one below the other. They fill in one after the other, with play, pause and a slider.

    The film begins by itself when it comes into sight. If the reader's system asks for no motion, the whole picture is shown instead.

    Parameters
    ----------
    schedules : str or iterable of str
        Names of the schedules, in the order in which they are played.
    devices, microbatches : int
        The size, which all schedules must support with their fewest chunks.
    forward, backward : float
        As in :class:`Costs`.
    unit : str or None
        The unit of all times, as in :class:`Costs`.

    Raises
    ------
    HybridLabError
        If a schedule does not exist or does not support the size.

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

    def __repr__(self) -> str:
        names = ", ".join(each["name"] for each in self.data["schedules"])
        sizes = f"{self.data['devices']} devices, {self.data['microbatches']} microbatches"
        return f"<TimelineFilm: {names}; {sizes}; data {digest(self.data)}>"


def film_data(names: list[str], devices: int, microbatches: int, forward: float, backward: float, unit: str | None) -> Data:
    """Return the orders of the schedules and their costs as plain data. Refuse a size that a schedule does not support."""
    costs: Costs = costs_of_one_setting(forward=forward, backward=backward, unit=unit)
    chunks = {name: REGISTRY[name].fewest_chunks for name in names}
    schedules = []
    for name, count in chunks.items():
        build(name, devices, microbatches, count)  # raises an error where order_entry has a refusal, which a film cannot show
        schedules.append({"name": name, "title": REGISTRY[name].title, **order_entry(name, devices, microbatches, count)})
    times = {name: getattr(costs, name).item() for name in ("forward", "backward", "weight_share", "p2p")}
    about = {"devices": devices, "microbatches": microbatches, "unit": unit or "", "costs": times}
    return {**about, "kinds": operation_kinds({name: [count] for name, count in chunks.items()}), "schedules": schedules}
