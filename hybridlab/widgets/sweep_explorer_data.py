"""The lines of a sweep in every setting, as plain data from which JavaScript alone can draw any of them."""

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod
from typing import Any

from hybridlab.checks import known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import line_style
from hybridlab.sweep.lines import TIMES, drawable, known_names, label_of, lines_of, logarithmic_axes, value_text
from hybridlab.widgets.grid import MOST_BYTES
from hybridlab.widgets.pipeline import Data, packed

SHAPES = {"o": 0, "s": 1, "^": 2, "D": 3, "v": 4, "x": 6}  # chart.js draws them by number
NO_ROW = "the sweep has no such row"
TOO_MUCH = f"this sweep is more than the {MOST_BYTES / 1e6:g} MB of data that a page can carry: draw fewer rows, with sweep.where()"


def sweep_data(sweep: Any, x: Any, y: Any, lines: Any = None, labels: Any = None) -> Data:
    """Return what a view draws: the axes, the lines with their styles, the choices, and the values of every setting.

    ``values`` has a list for each quantity, and ``why`` one for all: one entry for every combination of the choices (the last changes
    first), in it for every line, in it for every x. An entry of ``why`` is 0 where there is a value, or the number, from 1, of one of
    the ``reasons``. Raises :class:`HybridLabError` for what :func:`hybridlab.sweep.lines.lines_of` refuses, and for more than 2 MB.
    """
    found = lines_of(sweep, x, y, lines, labels)
    unit = found.unit or ""  # the script takes an empty text for none
    sizes = [*(len(values) for values in found.choices.values()), len(found.names), len(found.places)]
    if prod(sizes) * 2 * (len(found.quantities) + 1) > MOST_BYTES:  # if every entry had one digit
        raise HybridLabError(TOO_MUCH)
    cells = [found.at.get((tuple(choice), line, place)) for *choice, line, place in product(*map(range, sizes))]
    message = [NO_ROW if row is None else str(row.get("refused") or "") for row in cells]
    reasons = list(dict.fromkeys(filter(None, message)))
    number = {"": 0} | {reason: place for place, reason in enumerate(reasons, 1)}
    rows = [None if reason else row for row, reason in zip(cells, message, strict=True)]
    values = {name: [row and row[name] for row in rows] for name in found.quantities}
    data: Data = {
        "x": _axis(found.x, found.places, found.labels, unit) | {"values": list(found.places)},
        "quantities": [_axis(name, values[name], found.labels, unit) for name in found.quantities],
        "choices": [
            _axis(name, (), found.labels, unit) | {"values": list(offered), "titles": [value_text(name, each) for each in offered]}
            for name, offered in found.choices.items()
        ],
        "lines": [{"name": name, **_style(place)} for place, name in enumerate(found.names)],
        "values": values,
        "why": [number[reason] for reason in message],
        "reasons": reasons,
    }
    if len(packed(data)) > MOST_BYTES:
        raise HybridLabError(TOO_MUCH)
    return data


def _axis(name: str, values: Iterable[Any], labels: Mapping[str, str], unit: str) -> Data:
    """Return an axis; only one with positive values can be logarithmic."""
    positive = any(value is not None and value > 0 for value in values)
    return {"name": name, "label": label_of(name, labels), "unit": unit if name in TIMES else "", "positive": positive}


def _style(place: int) -> Data:
    """Return the style of a line, widths and sizes in px."""
    style = line_style(place)
    dash = [round(part * style.width, 2) for part in style.dash]
    look = {"colours": [style.colour, style.on_dark], "dash": dash, "width": style.width}
    return {**look, "shape": SHAPES[style.marker], "size": style.size / 2, "hollow": style.hollow}


def chosen(data: Mapping[str, Any], name: str, value: Any, now: Mapping[str, Any]) -> Any:
    """Return ``value`` for the part ``name`` of what is shown, if the data have it, or refuse it.

    ``now`` are the values of the choices; one that ``value`` does not name stays.
    """
    if name == "quantity":
        return known_name(value, [each["name"] for each in data["quantities"]], "quantity")
    if name == "drawn":
        names = [line["name"] for line in data["lines"]]
        asked = known_names(value, "drawn", names, "line")
        return [each for each in names if each in asked]
    if name == "logarithmic":
        return logarithmic_axes(value, {axis["name"]: axis["positive"] for axis in (data["x"], *data["quantities"])})
    if name == "at":
        return _one_of(value, data["x"]["values"], data["x"]["name"])
    if not isinstance(value, Mapping):
        raise HybridLabError(f"chosen holds a value for each of the choices, by column, not {short_repr(value)}")
    offered = {choice["name"]: choice["values"] for choice in data["choices"]}
    given = {known_name(each, offered, "choice"): value[each] for each in value}
    return {each: _one_of(given[each], values, each) if each in given else now.get(each, values[0]) for each, values in offered.items()}


def _one_of(value: Any, offered: list[Any], name: str) -> Any:
    """Return the one of the values that ``value`` is, or refuse it."""
    given = drawable(value, name)
    for each in offered:
        if each == given and isinstance(each, bool) == isinstance(given, bool):
            return each
    raise HybridLabError(f"this sweep has no {name} {short_repr(value)}: it has {', '.join(value_text('', each) for each in offered)}")
