"""The sweep explorer: the rows of a sweep as lines, with a control for whatever varies besides."""

from collections.abc import Mapping
from typing import Any

import traitlets

from hybridlab.checks import counted, removed_arguments
from hybridlab.sweep.lines import UNIT_REMOVED, value_text
from hybridlab.widgets.grid import digest
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.sweep_explorer_data import chosen, sweep_data
from hybridlab.widgets.view import Checked, View, asked_for, style_of

AT_FIRST = ("quantity", "chosen", "at", "drawn")  # the parts of a setting that ``show`` can name


class SweepExplorer(View):
    """A picture of a sweep's table: lines of a quantity against the column ``x``, with controls for what varies besides.

    ``y`` are the quantities to choose from; ``lines`` the columns that tell lines apart (None: schedule and chunks, less ``x``). Every
    other column that varies, and that these do not fix, becomes a control. ``labels`` are words for columns, such as
    ``{"p2p": "Latency T_C"}``; ``logarithmic`` names the columns whose axis is logarithmic at first. Times are in the sweep's unit.
    ``show`` is what to begin with, such as ``{"chosen": {"p2p": 4}, "at": 8}``. A point that the sweep refused is a gap.

    The traits follow the controls and can be observed and set: ``quantity``, ``chosen`` (column -> value; setting some of them
    leaves the others), ``at`` (the x that is read), ``drawn`` (names of the lines) and ``logarithmic``. All that can be shown is in
    ``data``, so the picture answers without a kernel. Raises :class:`HybridLabError` for what cannot be drawn.

    >>> from hybridlab.sweep import Sweep
    >>> times = [("gpipe", devices, p2p, 9.0 * devices + p2p) for devices in (2, 4) for p2p in (0, 1)]
    >>> table = Sweep(("schedule", "devices", "p2p", "makespan"), tuple(times))
    >>> explorer = SweepExplorer(table, "devices", y="makespan")
    >>> explorer.chosen = {"p2p": 1}
    >>> explorer  # doctest: +ELLIPSIS
    <SweepExplorer: 1 line of makespan against devices, data ...; p2p 1, read at devices 4>
    """

    SETTING = (*AT_FIRST, "logarithmic")
    _esm = script_of("sweep_explorer.js")
    _css = style_of("sweep", sheets=("chart.css", "sweep_explorer.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    quantity = Checked().tag(sync=True)
    chosen = Checked().tag(sync=True)
    at = Checked().tag(sync=True)
    drawn = Checked().tag(sync=True)
    logarithmic = Checked().tag(sync=True)

    @removed_arguments(unit=UNIT_REMOVED)
    def __init__(
        self,
        sweep: Any,
        x: str,
        *,
        y: Any = ("bubble_ratio", "makespan"),
        lines: Any = None,
        labels: Mapping[str, str] | None = None,
        logarithmic: Any = (),
        show: Mapping[str, Any] | None = None,
    ) -> None:
        data = sweep_data(sweep, x, y, lines, labels)
        first = {
            "quantity": data["quantities"][0]["name"],
            "chosen": {},
            "at": data["x"]["values"][-1],
            "drawn": [line["name"] for line in data["lines"]],
        }
        asked = first | asked_for(show, AT_FIRST, '{"at": 8}') | {"logarithmic": logarithmic}
        begin = {name: chosen(data, name, value, {}) for name, value in asked.items()}
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**begin)

    def checked(self, name: str, value: Any) -> Any:
        """Return ``value`` for the part ``name`` of what is shown, if the sweep has it, or refuse it."""
        return chosen(self.data, name, value, self.chosen if self.trait_has_value("chosen") else {})

    def __repr__(self) -> str:
        """Return the same text for the same sweep and choice, whatever the run: stored outputs are compared by it."""
        axis = self.data["x"]
        message = [f"{name} {value_text(name, value)}" for name, value in self.chosen.items()]
        some = [] if len(self.drawn) == len(self.data["lines"]) else [f"{counted(len(self.drawn), 'line')} drawn"]
        shows = ", ".join([*message, *some, f"read at {axis['name']} {value_text('', self.at)}"])
        lines = counted(len(self.data["lines"]), "line")
        return f"<SweepExplorer: {lines} of {self.quantity} against {axis['name']}, data {self._digest}; {shows}>"
