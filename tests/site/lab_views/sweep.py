"""Check that a sweep explorer shows the right lines for the rows of its table.

Points, gaps, the table, the sentence and the notes are checked.
"""

import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

from playwright.sync_api import Locator

from hybridlab import published, sweep
from hybridlab.sweep import Sweep
from lab_views.kind import Damage, Kind, rows_of, setting_of, with_no_data

POINTS = re.compile(r"([ML])([\d.-]+) ([\d.-]+)")
PIXELS = 0.02  # the drawing rounds to hundredths of a pixel
SHOWN = """(root) => {
  const svg = root.querySelector(".picture svg");
  const ticks = (selector, axis, shift) => [...svg.querySelectorAll(selector)].map((tick) =>
    [Number(tick.textContent), Number(tick.getAttribute(axis)) - shift]);
  const lines = [...svg.querySelectorAll("[data-line]")].map((line) => [line.dataset.line, line.querySelector(".curve").getAttribute("d"),
    line.querySelectorAll(".point").length]);
  return {
    rows: ticks(".tick.left", "y", 4), columns: ticks(".tick:not(.left)", "x", 0),
    lines: Object.fromEntries(lines.map(([name, ...line]) => [name, line])),
    names: [...svg.querySelectorAll("text.end")].map((each) => each.textContent), wide: svg.clientWidth,
    marker: Number(svg.querySelector(".marker")?.getAttribute("x1") ?? NaN),
    words: root.querySelector(".picture").getAttribute("aria-label"), told: root.querySelector(".told").textContent,
    notes: root.querySelector(".notes").textContent, caption: root.querySelector("caption").textContent,
    gaps: [...root.querySelectorAll("td[title]")].map((cell) => cell.title), now: root.querySelectorAll("td.now").length,
  };
}"""


class Drawn(NamedTuple):
    """What a view is given: its table, and the names that the page has for the columns and the lines.

    A line is one schedule with one number of chunks.
    """

    table: Sweep
    x: str
    x_label: str
    quantities: Mapping[str, str]  # words of the control -> column
    choices: Mapping[str, str]
    names: Mapping[tuple[str, int], str]


def is_right(view: Locator, drawn: Drawn) -> None:
    setting, shown = setting_of(view), view.evaluate(SHOWN)
    quantity = drawn.quantities[setting.get("Vertical axis", next(iter(drawn.quantities)))]
    chosen = {column: setting[label] for label, column in drawn.choices.items()}
    rows = [row for row in drawn.table.to_rows() if all(f"{row[column]:g}" == text for column, text in chosen.items())]
    at = float(setting[f"Read at {drawn.x_label}"].split()[0])
    logs = [axis in setting["ticked"] for axis in (drawn.x, quantity)]
    across, up = placed(shown["columns"], logs[0]), placed(shown["rows"], logs[1])
    names = [name for name in drawn.names.values() if name in setting["ticked"]]
    assert list(shown["lines"]) == names
    named = [name for name, (_, points) in shown["lines"].items() if points and shown["wide"] >= 560]
    assert sorted(shown["names"]) == sorted(named)
    xs = sorted({row[drawn.x] for row in rows})
    table = rows_of(view)
    here: dict[str, float] = {}
    for name, cells in zip(names, table, strict=True):
        line = {row[drawn.x]: row for row in rows if drawn.names[row["schedule"], row["chunks"]] == name}
        values = [None if line[x]["refused"] else line[x][quantity] for x in xs]
        here |= {} if values[xs.index(at)] is None else {name: values[xs.index(at)]}
        path_is(shown["lines"][name], xs, values, across, up, logs)
        assert cells == [name, *(text_of(quantity, value) for value in values)]
    told_is(shown["told"], here)
    assert shown["told"] in shown["words"]
    settings = [" = ".join((label.split(",")[0], setting[label])) for label in drawn.choices]  # on paper there are no controls
    assert all(each in text for each in settings for text in (shown["words"], shown["caption"]))
    assert shown["now"] == len(names)
    refused = [row["refused"] for row in rows if row["refused"] and drawn.names[row["schedule"], row["chunks"]] in names]
    assert sorted(shown["gaps"]) == sorted(refused)
    assert all(reason in shown["notes"] for reason in refused)
    assert math.isnan(shown["marker"]) if logs[0] and at <= 0 else abs(shown["marker"] - across(at)) < PIXELS


def placed(ticks: Any, logarithmic: bool) -> Any:
    """Return a function from a value to its place on an axis, and check the place of every tick.

    The function is found from the first and the last tick.
    """
    scale = math.log10 if logarithmic else float
    (low, start), (high, end) = ticks[0], ticks[-1]

    def place(value: float) -> float:
        return float(start + (scale(value) - scale(low)) / (scale(high) - scale(low)) * (end - start))

    assert all(abs(place(value) - where) < PIXELS for value, where in ticks)
    return place


def path_is(path: Any, xs: list[float], values: list[Any], across: Any, up: Any, logs: list[bool]) -> None:
    """Raise AssertionError unless a line runs through its values.

    It must have a gap where there is no value, or where the axis has no place for the value.
    """
    wanted, broken = [], True
    for x, value in zip(xs, values, strict=True):
        if value is None or (logs[0] and x <= 0) or (logs[1] and value <= 0):
            broken = True
            continue
        wanted.append(("M" if broken else "L", across(x), up(value)))
        broken = False
    found = [(kind, float(x), float(y)) for kind, x, y in POINTS.findall(path[0])]
    assert [kind for kind, *_ in found] == [kind for kind, *_ in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert max(abs(one[1] - other[1]), abs(one[2] - other[2])) < PIXELS
    assert path[1] == len(wanted)


def told_is(told: str, here: Mapping[str, float]) -> None:
    """Raise AssertionError unless a sentence names the lines that have the least value."""
    if not here:
        assert "no line is chosen" in told or "none of the lines has a value" in told
        return
    least = min(here.values())
    for name in [name for name, value in here.items() if value == least]:
        assert name in told.split("; the most")[0]
    if len(set(here.values())) > 1:
        assert f"the least: {next(name for name, value in here.items() if value == least)}" in told


def text_of(quantity: str, value: Any) -> str:
    """Return a number as the page writes it: a ratio has three decimals, a time six digits, and a half is rounded up."""
    if value is None:
        return "\u2013"
    exact = Decimal(value)
    last = -3 if quantity == "bubble_ratio" else exact.adjusted() - 5
    rounded = exact.quantize(Decimal(1).scaleb(last), ROUND_HALF_UP)
    return f"{rounded:.3f}" if quantity == "bubble_ratio" else f"{float(rounded):.6g}"


def without_values(state: Any) -> None:
    state["data"]["values"] = {}


def with_too_few_values(state: Any) -> None:
    state["data"]["values"]["bubble_ratio"].pop()


def with_words_for_values(state: Any) -> None:
    state["data"]["values"]["bubble_ratio"][0] = "much"


def with_an_unknown_choice(state: Any) -> None:
    state["chosen"] = {"p2p": 5}


def with_other(quantity: str) -> Damage:
    def planted(state: Any) -> None:
        state["data"]["values"][quantity] = [value and value * 1.02 for value in state["data"]["values"][quantity]]

    planted.__name__ = f"with_other_{quantity}"
    return planted


def with_a_gap(state: Any) -> None:
    for values in state["data"]["values"].values():
        values[:] = [None, *values[1:]]


def with_names_swapped(state: Any) -> None:
    lines = state["data"]["lines"]
    lines[0]["name"], lines[1]["name"] = lines[1]["name"], lines[0]["name"]


DAMAGES: tuple[Damage, ...] = (without_values, with_too_few_values, with_words_for_values, with_an_unknown_choice, with_no_data)
SIX = {
    ("gpipe", 1): "GPipe",
    ("1f1b", 1): "1F1B",
    ("interleaved", 2): "Interleaved 1F1B, 2 chunks",
    ("hanayo", 2): "Hanayo, 2 chunks",
    ("hanayo", 4): "Hanayo, 4 chunks",
    ("zb-h1", 1): "ZB-H1",
}
STRONG = published.SWEEPS["strong_scaling"]
QUANTITIES = {"Bubble ratio": "bubble_ratio", "Makespan, ms": "makespan"}
KIND = Kind(
    "sweep",
    "SweepExplorer",
    "labs/lab10_scaling.html",
    is_right,
    damages=DAMAGES,
    faults=(with_other("bubble_ratio"), with_a_gap, with_names_swapped),
    python=("at", 4),
    given=(
        Drawn(published.SWEEPS["weak_scaling"].run(), "devices", "Devices K", QUANTITIES, {"Latency, ms": "p2p"}, SIX),
        Drawn(
            sweep(STRONG.schedules, {**STRONG.grid, "devices": tuple(2**power for power in range(8))}),
            "devices",
            "Devices K",
            dict(reversed(QUANTITIES.items())),
            {"Latency, ms": "p2p"},
            SIX,
        ),
    ),
)
