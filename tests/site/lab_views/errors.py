"""Check that an error explorer shows the right errors.

Errors are measured again and compared with the closed forms. Points, lines, the sentence and the tables are checked.
"""

import math
import re
from functools import cache
from typing import Any

import numpy as np
from playwright.sync_api import Locator

from hybridlab import BF16, E4M3, FP16, INT4, INT8, WireFormat, formulas
from hybridlab.collectives import one_shot_all_reduce, ring_all_reduce
from lab_views.kind import Kind, rows_of, setting_of, with_no_data, words_of

SIZE, SEED = 131_072, 5  # how many numbers each rank has, and the seed for all of them
RANKS = (2, 4, 8, 16, 32, 64)
MEASURED = (2, 4, 8)  # errors are measured again for up to so many ranks; more ranks take seconds
WIRES = {str(wire): wire for wire in (FP16, BF16, INT8, WireFormat("INT8", block=256), E4M3, INT4)}
ROUNDOFF = {"FP16": 2.0**-11, "BF16": 2.0**-8, "E4M3": 2.0**-4}
LARGEST = {"INT8": 127, "INT4": 7}  # codes
BITS = {"FP16": 16, "BF16": 16, "INT8": 8, "E4M3": 8, "INT4": 4}
WAYS = {"Ring": ("ring",), "One shot": ("one-shot",), "Both": ("ring", "one-shot")}
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
SHOWN = """(root) => {
  const svg = root.querySelector(".picture svg");
  const shapeOf = (mark) => Number(/of-(\\d)/.exec(mark.getAttribute("class"))[1]);
  const middle = (mark) => {
    const [{ x, y, width, height }, shape] = [mark.getBBox(), shapeOf(mark)];
    const shift = { 2: 0.15, 4: -0.15 }[shape] ?? 0; // of a triangle, whose middle is not that of its box
    return [shape, mark.classList.contains("hollow"), mark.classList.contains("now"), x + width / 2, y + height / 2 + shift * height / 2.3];
  };
  const points = (path) => [...path.getAttribute("d").matchAll(/(-?[\\d.]+) (-?[\\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
  return {
    rows: [...svg.querySelectorAll(".tick.left")].map((tick) => [tick.textContent, Number(tick.getAttribute("y")) - 4]),
    columns: [...svg.querySelectorAll(".tick:not(.left)")].map((tick) => [Number(tick.textContent), Number(tick.getAttribute("x"))]),
    points: [...svg.querySelectorAll(".point")].map(middle),
    lines: [...svg.querySelectorAll(".law")].map((path) => [shapeOf(path), path.classList.contains("hollow"), points(path)]),
    marker: Number(svg.querySelector(".marker").getAttribute("x1")), told: root.querySelector(".told").textContent,
    words: root.querySelector(".picture").getAttribute("aria-label"),
  };
}"""


@cache
def gradients(distribution: str) -> Any:
    rng = np.random.default_rng(SEED)
    shape = max(MEASURED), SIZE  # the numbers are drawn rank by rank, so a rank has the same numbers for every number of ranks
    return rng.standard_normal(shape) if distribution == "normal" else rng.laplace(scale=math.sqrt(0.5), size=shape)


@cache
def measured(way: str, distribution: str, wire: str, ranks: int) -> float:
    """Return the NMSE (normalised mean squared error) of an all-reduce mean, compared with numpy's mean."""
    values = gradients(distribution)[:ranks]
    run = {"ring": ring_all_reduce, "one-shot": one_shot_all_reduce}[way](values, WIRES[wire], rng=np.random.default_rng([SEED, ranks]))
    true = values.mean(axis=0)
    return float(np.square(run.values[-1] - true).sum() / np.square(true).sum())


@cache
def law(way: str, wire: str, ranks: int) -> float:
    """Return the NMSE that the closed form gives for normally distributed numbers."""
    kind = WIRES[wire]
    if kind.name in ROUNDOFF:
        return formulas.cast_nmse(ROUNDOFF[kind.name]) * ((ranks - 1) / (2 if way == "ring" else ranks) + 1)
    crest = formulas.gaussian_crest(kind.block or SIZE // ranks)
    return crest**2 / (12 * LARGEST[kind.name] ** 2) * ((ranks - 1) / (2 if way == "ring" else ranks) + 1)


def nbytes(wire: str, ranks: int) -> int:
    """Return the bytes that a rank sends: 2(D - 1) messages of n/D numbers, both in a ring and in one shot."""
    kind, chunk = WIRES[wire], SIZE // ranks
    scales = 0 if BITS[kind.name] == 16 else 4 * math.ceil(chunk / (kind.block or chunk))
    return 2 * (ranks - 1) * (chunk * BITS[kind.name] // 8 + scales)


def read(text: str) -> float:
    """Return the value of a text that has two digits, times a power of 10."""
    digits, power = (part.strip() for part in text.split("\N{MULTIPLICATION SIGN}"))
    power = power.removeprefix("10")
    return float(f"{digits}e{power.translate(SUPERSCRIPTS) or 0}")


def near(shown: str, value: float) -> bool:
    """Return whether a text of two digits is a rounding of this value, which has about four digits."""
    return abs(read(shown) - value) <= 0.0505 * 10 ** math.floor(math.log10(read(shown)))


def is_right(view: Locator, given: tuple[int, ...]) -> None:
    """Raise AssertionError unless the explorer shows its setting for the numbers of ranks that the lab gave to it."""
    setting, shown = setting_of(view), view.evaluate(SHOWN)
    ways, distribution, ranks = WAYS[setting["All-reduce"]], setting["Numbers"], int(setting["Ranks at the marker"].split()[0])
    series = [(way, wire) for way in ways for wire in WIRES if wire in setting["ticked"]]
    names = [f"{wire} ({way})" if len(ways) > 1 else wire for way, wire in series]
    rows = rows_of(view, "table.here tbody tr")
    assert [row[0] for row in rows] == names
    for (way, wire), row in zip(series, rows, strict=True):
        _, nmse, expected, sent, fewer = row
        assert ranks not in MEASURED or near(nmse, measured(way, distribution, wire, ranks)), (row, way, distribution)
        assert near(expected, law(way, wire, ranks))
        assert sent == f"{nbytes(wire, ranks):,}"
        assert abs(float(fewer[:-1]) - 8 * (ranks - 1) * (SIZE // ranks) / nbytes(wire, ranks)) <= 0.0051
    assert words_of(view, "table.here caption") == f"On {ranks} ranks"
    every = rows_of(view, "details tbody tr")
    assert [int(row[0]) for row in every] == list(given)
    for row in every:
        for place, (way, wire) in enumerate(series):
            nmse, expected = row[1 + 2 * place : 3 + 2 * place]
            assert near(expected, law(way, wire, int(row[0])))
            assert int(row[0]) not in MEASURED or near(nmse, measured(way, distribution, wire, int(row[0])))
    sentence_is_right(shown, ranks, ways, distribution, rows)
    picture_is_right(shown, ranks, given, ways, distribution, series)


def sentence_is_right(shown: Any, ranks: int, ways: tuple[str, ...], distribution: str, rows: list[list[str]]) -> None:
    """Raise AssertionError unless the sentence names the best row of the table."""
    way = " and ".join({"ring": "in a ring", "one-shot": "in one shot"}[each] for each in ways)
    assert shown["told"].startswith(f"{ranks} ranks, {way}, {distribution} numbers.")
    assert shown["told"] in shown["words"]
    if not rows:
        assert shown["told"].endswith("No wire format is chosen.")
        return
    match = re.search(r"Most exact: (.*), with an NMSE of (.*?)\. Fewest bytes: (.*), ([\d,]+) a rank\.", shown["told"])
    assert match
    exact, nmse, least, sent = match.groups()
    assert read(nmse) == min(read(row[1]) for row in rows)
    assert set(re.split("; | and ", exact)) <= {row[0] for row in rows if row[1] == nmse}
    fewest = min(int(row[3].replace(",", "")) for row in rows)
    assert (set(re.split("; | and ", least)), sent) == ({row[0] for row in rows if row[3] == sent}, f"{fewest:,}")


def picture_is_right(
    shown: Any, ranks: int, given: tuple[int, ...], ways: tuple[str, ...], distribution: str, series: list[tuple[str, str]]
) -> None:
    """Raise AssertionError unless points and lines stand where their values belong, on the axes given by the labels."""
    powers = [(0 if text == "1" else int(text.removeprefix("10").translate(SUPERSCRIPTS) or 1), y) for text, y in shown["rows"]]
    (low, bottom), (high, top) = min(powers), max(powers)
    columns = dict(map(tuple, shown["columns"]))
    assert list(columns) == list(given)
    assert np.ptp(np.diff(list(columns.values()))) <= 0.03  # each doubling has the same width on the axis
    assert shown["marker"] == columns[ranks]

    def height(nmse: float) -> float:
        return bottom + (math.log10(nmse) - low) / (high - low) * (top - bottom)

    shapes = {(list(WIRES).index(wire), way == "one-shot"): (way, wire) for way, wire in series}
    assert {(shape, hollow) for shape, hollow, _ in shown["lines"]} == set(shapes)
    for shape, hollow, points in shown["lines"]:
        wanted = [(columns[each], height(law(*shapes[shape, hollow], each))) for each in given]
        np.testing.assert_allclose(points, wanted, atol=0.05)
    assert len(shown["points"]) == len(series) * len(given)
    for shape, hollow, now, x, y in shown["points"]:
        way, wire = shapes[shape, hollow]
        (there,) = (each for each, column in columns.items() if abs(column - x) <= 0.5)
        assert now == (there == ranks)
        assert there not in MEASURED or abs(y - height(measured(way, distribution, wire, there))) <= 0.4


def without_series(state: Any) -> None:
    state["measured"]["series"] = {}


def with_words_for_errors(state: Any) -> None:
    for each in state["measured"]["series"].values():
        each["nmse"] = ["small"] * len(each["nmse"])


def with_an_unknown_format(state: Any) -> None:
    state["measured"]["series"].pop("ring/normal/INT8")


def scaled(name: str, factor: float) -> Any:
    def planted(state: Any) -> None:
        for each in state["measured"]["series"].values():
            each[name] = [value * factor for value in each[name]]

    planted.__name__ = f"with_other_{name}"
    return planted


KIND = Kind(
    "errors",
    "ErrorExplorer",
    "labs/lab05_wire_formats.html",
    is_right,
    damages=(without_series, with_words_for_errors, with_no_data, with_an_unknown_format),
    faults=(scaled("nmse", 1.1), scaled("law", 0.9), scaled("nbytes", 2), scaled("saving", 1.05)),
    given=(RANKS,),
    python=("ranks", 4),
)
