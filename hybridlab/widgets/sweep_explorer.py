"""The sweep explorer: it draws the rows of a sweep as lines, with a control for each other column that varies."""

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod
from typing import Any

import traitlets

from hybridlab.checks import counted, known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import line_style
from hybridlab.sweep.lines import TIMES, drawable, known_names, label_of, lines_of, logarithmic_axes, value_text
from hybridlab.widgets.page_data import Data, compact_json, digest, refuse_too_large
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.view import Checked, View, shown_first

SHOWN = ("quantity", "chosen", "at", "drawn")  # allowed names in the argument ``show``
SHAPES = {"o": 0, "s": 1, "^": 2, "D": 3, "v": 4, "x": 6}  # marker -> its number in chart.js
NO_ROW = "the sweep has no such row"


class SweepExplorer(View):
    """A view of a sweep: lines of a quantity against a column, with a control for each other column that varies.

    All values are in the trait ``data``, so the view works without a running kernel. These traits change with the controls: ``quantity``,
    ``chosen`` (column -> value), ``at`` (the value of x at which the view shows numbers), ``drawn`` (names of the visible lines) and
    ``logarithmic`` (columns with a logarithmic axis). Python can observe and set these traits. Columns that a new ``chosen`` does not name
    keep their values. A line has a gap at every point that the sweep refused. Times are in the sweep's unit.

    Parameters
    ----------
    sweep : Sweep
        The table.
    x : str
        The column of the horizontal axis.
    y : str or iterable of str
        The quantities from which the reader chooses.
    lines : iterable of str or None
        The columns that distinguish lines: one line for each combination of their values. None means the columns schedule and chunks,
        except a column that is an axis.
    labels : mapping or None
        Words for columns, such as ``{"p2p": "Latency T_C"}``.
    logarithmic : str or iterable of str
        The columns whose axis is logarithmic when the view opens.
    show : mapping or None
        The first setting, such as ``{"chosen": {"p2p": 4}, "at": 8}``.

    Raises
    ------
    HybridLabError
        A column or value is not in the sweep, the rows cannot form lines, or the data have more than 2 MB.

    Examples
    --------
    >>> from hybridlab.sweep import Sweep
    >>> times = [("gpipe", devices, p2p, 9.0 * devices + p2p) for devices in (2, 4) for p2p in (0, 1)]
    >>> table = Sweep(("schedule", "devices", "p2p", "makespan"), tuple(times))
    >>> explorer = SweepExplorer(table, "devices", y="makespan")
    >>> explorer.chosen = {"p2p": 1}
    >>> explorer  # doctest: +ELLIPSIS
    <SweepExplorer: 1 line of makespan against devices, data ...; p2p 1, read at devices 4>
    """

    SETTING = (*SHOWN, "logarithmic")
    _esm = FromFiles(script_of, "sweep_explorer.js")
    _css = FromFiles(style_sheet, "sweep", files=("chart.css", "sweep_explorer.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    quantity = Checked().tag(sync=True)
    chosen = Checked().tag(sync=True)
    at = Checked().tag(sync=True)
    drawn = Checked().tag(sync=True)
    logarithmic = Checked().tag(sync=True)

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
        asked = shown_first(show, SHOWN, '{"at": 8}')
        self._sweep, self._x, self._lines, self._labels = sweep, x, lines, labels
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**(first | asked), logarithmic=logarithmic)

    def checked(self, name: str, value: Any) -> Any:
        """Return the value for one trait of the setting, or raise an error if the sweep does not have this value."""
        if name == "quantity":
            return known_name(value, [each["name"] for each in self.data["quantities"]], "quantity")
        if name == "drawn":
            names = [line["name"] for line in self.data["lines"]]
            asked = known_names(value, "drawn", names, "line")
            return [each for each in names if each in asked]  # sorted as the lines are
        if name == "logarithmic":
            axes = (self.data["x"], *self.data["quantities"])
            return logarithmic_axes(value, {axis["name"]: axis["positive"] for axis in axes})
        if name == "at":
            return _offered_value(value, self.data["x"]["values"], self.data["x"]["name"])
        return self._checked_choices(value)

    def _checked_choices(self, value: Any) -> dict[str, Any]:
        """Return a value for each control. A control that is not in ``value`` keeps its value, at the beginning its first value."""
        if not isinstance(value, Mapping):
            wanted = "a value for each of the choices, by column"
            raise HybridLabError(f"chosen must have {wanted}, not {short_repr(value)}", "wrong-type")
        offered = {choice["name"]: choice["values"] for choice in self.data["choices"]}
        asked = {known_name(each, offered, "choice"): value[each] for each in value}
        current = self.chosen if self.trait_has_value("chosen") else {name: values[0] for name, values in offered.items()}
        return current | {name: _offered_value(asked[name], values, name) for name, values in offered.items() if name in asked}

    def still(self) -> Any:
        """Return the lines of the current setting as a figure."""
        from hybridlab.plot import panels

        table = self._sweep.where(**self.chosen)
        logarithmic = [name for name in self.logarithmic if name in (self._x, self.quantity)]
        return panels(table, self._x, self.quantity, lines=self._lines, labels=self._labels, logarithmic=logarithmic, drawn=self.drawn)

    def __repr__(self) -> str:
        """Return the number of lines, the digest of the data and the setting.

        The text is the same in every run, because outputs that are stored in notebooks contain it.
        """
        axis = self.data["x"]
        choices = [f"{name} {value_text(name, value)}" for name, value in self.chosen.items()]
        some = [] if len(self.drawn) == len(self.data["lines"]) else [f"{counted(len(self.drawn), 'line')} drawn"]
        shows = ", ".join([*choices, *some, f"read at {axis['name']} {value_text('', self.at)}"])
        lines = counted(len(self.data["lines"]), "line")
        return f"<SweepExplorer: {lines} of {self.quantity} against {axis['name']}, data {self._digest}; {shows}>"


def sweep_data(sweep: Any, x: Any, y: Any, lines: Any = None, labels: Any = None) -> Data:
    """Return the data of the view: axes, lines with their styles, choices, and the values in every setting.

    Parameters
    ----------
    sweep, x, y, lines, labels
        As for :class:`SweepExplorer`.

    Returns
    -------
    dict
        ``values`` has a list for each quantity, and ``why`` is one list for all quantities. The axes of these lists are the choices, then
        the lines, then x; the last axis changes fastest. An entry of ``why`` is 0 if the point has a value. Otherwise, 1 means the first
        of ``reasons``, 2 the second, and so on.

    Raises
    ------
    HybridLabError
        In the same cases as :func:`hybridlab.sweep.lines.lines_of`, or the data have more than 2 MB.
    """
    found = lines_of(sweep, x, y, lines, labels)
    unit = found.unit or ""  # "" means no unit for the script
    sizes = [*(len(values) for values in found.choices.values()), len(found.names), len(found.places)]
    _refuse_rows(prod(sizes) * 2 * (len(found.quantities) + 1))  # at least a digit and a comma for each entry
    cells = [found.at.get((tuple(choice), line, place)) for *choice, line, place in product(*map(range, sizes))]
    refusals = [NO_ROW if row is None else str(row.get("refused") or "") for row in cells]
    # Many points have the same reason, so a point stores only the number of its reason.
    reasons = list(dict.fromkeys(filter(None, refusals)))
    number = {"": 0} | {reason: place for place, reason in enumerate(reasons, 1)}
    rows = [None if refusal else row for row, refusal in zip(cells, refusals, strict=True)]
    values = {name: [row and row[name] for row in rows] for name in found.quantities}
    data: Data = {
        "x": _axis_data(found.x, found.places, found.labels, unit) | {"values": list(found.places)},
        "quantities": [_axis_data(name, values[name], found.labels, unit) for name in found.quantities],
        "choices": [
            _axis_data(name, (), found.labels, unit) | {"values": list(offered), "titles": [value_text(name, each) for each in offered]}
            for name, offered in found.choices.items()
        ],
        "lines": [{"name": name, **_line_look(place)} for place, name in enumerate(found.names)],
        "values": values,
        "why": [number[refusal] for refusal in refusals],
        "reasons": reasons,
    }
    _refuse_rows(len(compact_json(data)))
    return data


def _refuse_rows(nbytes: int) -> None:
    """Raise an error if the data of a sweep have more bytes than a page can carry."""
    refuse_too_large(nbytes, "this sweep is", "draw fewer rows, with sweep.where()")


def _axis_data(name: str, values: Iterable[Any], labels: Mapping[str, str], unit: str) -> Data:
    """Return the data of an axis. ``positive`` is True if a value is above 0, so that the axis can be logarithmic."""
    positive = any(value is not None and value > 0 for value in values)
    return {"name": name, "label": label_of(name, labels), "unit": unit if name in TIMES else "", "positive": positive}


def _line_look(place: int) -> Data:
    """Return the style of a line, with widths and sizes in pixels."""
    style = line_style(place)
    dash = [round(part * style.width, 2) for part in style.dash]
    look = {"colours": [style.colour, style.on_dark], "dash": dash, "width": style.width}
    # size / 2, because the script needs half the width of a marker.
    return {**look, "shape": SHAPES[style.marker], "size": style.size / 2, "hollow": style.hollow}


def _offered_value(value: Any, offered: list[Any], name: str) -> Any:
    """Return the offered value that equals ``value``, or raise an error. Here, True does not equal 1."""
    given = drawable(value, name)
    for each in offered:
        if each == given and isinstance(each, bool) == isinstance(given, bool):
            return each
    known = ", ".join(value_text("", each) for each in offered)
    raise HybridLabError(f"this sweep has no {name} {short_repr(value)}: it has {known}", "out-of-range")
