"""The error explorer: how exact the mean of an all-reduce is, against the number of ranks, and what it costs in bytes."""

from collections.abc import Mapping
from typing import Any

import traitlets

from hybridlab.checks import counted, known_name, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.widgets.error_explorer_data import DISTRIBUTIONS, FORMATS, RANKS, ErrorRow, checked_grid, error_data, error_rows
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.view import Checked, View, asked_for, style_of

BOTH = "both"


class ErrorExplorer(View):
    """A picture of the NMSE of all-reduced means against the number of ranks: measured, beside the law, with bytes a rank.

    ``ranks`` are the numbers of ranks, ``formats`` the wire formats, ``distributions`` those that the gradients are drawn from
    (normal, Laplace), ``size`` the numbers of one gradient, ``seed`` that of all random numbers. Every all-reduce is really
    run, as a ring and as one shot, when the explorer is made. ``show`` is what to begin with, such as
    ``{"ranks": 8, "formats": ["INT8"]}``.

    The traits follow the controls and can be observed and set: ``algorithm`` ("ring", "one-shot" or "both"), ``distribution``,
    ``formats`` (names of those drawn) and ``ranks`` (where the marker stands). All that can be shown is in ``measured``, so the
    picture answers without a kernel; ``rows`` is the same as rows. Raises :class:`HybridLabError` for what cannot be measured.

    >>> explorer = ErrorExplorer(ranks=(2, 4), size=1024, show={"ranks": 4})
    >>> explorer
    <ErrorExplorer: 1,024 numbers on 2 to 4 ranks; shows FP16, BF16, INT8, INT8, block 256, INT8, stochastic; ring, normal, 4 ranks>
    >>> explorer.rows[0].nbytes
    2048
    """

    SETTING = ("algorithm", "distribution", "formats", "ranks")
    _esm = script_of("error_explorer.js")
    _css = style_of("errors", sheets=("chart.css", "error_explorer.css"))

    measured = traitlets.Dict(read_only=True).tag(sync=True)
    algorithm = Checked().tag(sync=True)
    distribution = Checked().tag(sync=True)
    formats = Checked().tag(sync=True)
    ranks = Checked().tag(sync=True)

    def __init__(
        self,
        ranks: Any = RANKS,
        formats: Any = FORMATS,
        distributions: Any = tuple(DISTRIBUTIONS),
        size: int = 131_072,
        *,
        seed: int = 5,
        show: Mapping[str, Any] | None = None,
    ) -> None:
        grid = checked_grid(ranks, formats, distributions, size, seed)
        asked = asked_for(show, self.SETTING, '{"ranks": 8}')
        self._rows = error_rows(*grid)
        data = error_data(self._rows, grid[3])
        first = {
            "algorithm": data["algorithms"][0],
            "distribution": data["distributions"][0],
            "formats": data["formats"],
            "ranks": 8 if 8 in data["ranks"] else data["ranks"][0],
        }
        begin = {name: chosen(data, name, value) for name, value in (first | asked).items()}
        self.set_trait("measured", data)
        super().__init__(**begin)

    def checked(self, name: str, value: Any) -> Any:
        """Return ``value`` for the part ``name`` of what is shown, if it was measured, or refuse it."""
        return chosen(self.measured, name, value)

    @property
    def rows(self) -> tuple[ErrorRow, ...]:
        """Every measured all-reduce, as rows of algorithm, distribution, wire, ranks, nmse, law, nbytes and saving."""
        return self._rows

    def __repr__(self) -> str:
        """Return the same text for the same grid and choice, whatever the run and the machine: it holds no measured digit."""
        ranks = self.measured["ranks"]
        span = f"{ranks[0]} to {counted(ranks[-1], 'rank')}" if len(ranks) > 1 else counted(ranks[0], "rank")
        drawn = ", ".join(self.formats) or "no format"
        message = f"{drawn}; {self.algorithm}, {self.distribution}, {counted(self.ranks, 'rank')}"
        return f"<ErrorExplorer: {counted(self.measured['size'], 'number')} on {span}; shows {message}>"


def chosen(measured: Mapping[str, Any], name: str, value: Any) -> Any:
    """Return ``value`` for the part ``name`` of what is shown, if it was measured, or refuse it.

    >>> chosen({"ranks": [2, 4]}, "ranks", 3)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: this explorer has measured 2 and 4 ranks, not 3
    """
    if name == "algorithm":
        return known_name(value, [*measured["algorithms"], BOTH], "algorithm")
    if name == "distribution":
        return known_name(value, measured["distributions"], "distribution")
    if name == "formats":
        if not isinstance(value, (list, tuple)):
            raise HybridLabError(f'formats is a list of names of wire formats, such as ["INT8"], not {short_repr(value)}')
        names = {known_name(each if isinstance(each, str) else str(each), measured["formats"], "wire format") for each in value}
        return [each for each in measured["formats"] if each in names]
    count = whole_number(value, "ranks")
    if count not in measured["ranks"]:
        known = [str(each) for each in measured["ranks"]]
        message = f"{', '.join(known[:-1])} and {known[-1]}" if len(known) > 1 else known[0]
        raise HybridLabError(f"this explorer has measured {message} ranks, not {short_repr(value)}")
    return count
