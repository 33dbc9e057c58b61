"""The eight published sweeps: the settings are read from their program, and the results do not come from the clock."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn
from oracle import Setting, nodes, peaks, times, works

from hybridlab import HybridLabError, Sweep, UnsupportedSize, build, formulas, plot
from hybridlab.course.published import SWEEPS, real_links
from hybridlab.course.published.sweeps import SIX_LINES, not_drawn

Row = dict[str, Any]
POINTS: list[Row] = json.loads((Path(__file__).parents[1] / "data" / "sweeps.json").read_text())["points"]
COUNTS = {
    "weak_scaling": 90,
    "strong_scaling": 90,
    "recompute": 540,
    "microbatches": 288,
    "chunks": 120,
    "tb_tw": 300,
    "latency": 540,
    "imbalance": 450,
}
# The number of points on more than 4 devices at which a closed form is exact, so that the test cannot compare nothing.
HELD = {
    "weak_scaling": 34,
    "strong_scaling": 34,
    "recompute": 174,
    "microbatches": 92,
    "chunks": 33,
    "tb_tw": 60,
    "latency": 171,
    "imbalance": 36,
}
each_sweep = in_turn("name", COUNTS)


@pytest.fixture(scope="module")
def tables() -> dict[str, Sweep]:
    return {name: published.run(progress=False) for name, published in SWEEPS.items()}


def test_there_are_2418_points_and_none_is_refused(tables: dict[str, Sweep]) -> None:
    assert {name: len(table) for name, table in tables.items()} == COUNTS
    assert list(SWEEPS) == list(COUNTS)
    assert sum(map(len, tables.values())) == 2418
    assert all(row["refused"] is None for table in tables.values() for row in table)


def key(row: Row) -> tuple[Any, ...]:
    """The schedule, sizes and costs of a row, from any names of the columns; the weight gradient only if the schedule has one."""
    if "input_grad" in row:
        backward, weight = row["input_grad"] + row["weight_grad"], row["weight_grad"]
    else:
        backward = row["backward"]
        weight = backward * row.get("weight_share", 0.5) if row["schedule"] == "zb-h1" else 0
    sizes = (row["schedule"], row["devices"], row["microbatches"], row["chunks"])
    return (*sizes, *(round(value, 6) for value in (row["forward"], backward, weight, row["p2p"])))


@in_turn("name", sorted({point["sweep"] for point in POINTS}))
def test_every_point_of_the_reference_comes_out(tables: dict[str, Sweep], name: str) -> None:
    rows = {key(row): row for row in tables[name]}
    assert len(rows) == len(tables[name])
    points = [point for point in POINTS if point["sweep"] == name]
    assert points
    for point in points:
        row = rows[key(point)]
        assert row["makespan"] == pytest.approx(point["total_time"], rel=1e-9, abs=0), point
        assert row["bubble_ratio"] == pytest.approx(point["bubble_ratio"], rel=1e-9, abs=1e-12), point
        named = {"r_recomp": "recompute", "repeat": "microbatches_per_device", "T_B_ratio": "input_share"}
        for theirs, ours in named.items():
            assert theirs not in point or row[ours] == pytest.approx(point[theirs], rel=1e-15)


def each(value: Any, devices: int) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,) * devices


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
@each_sweep
def test_small_sizes_equal_longest_paths(tables: dict[str, Sweep], name: str, every: int) -> None:
    """Rows on 2 and 4 devices, each sixth or all: all four results, from the operations one by one, in exact fractions."""
    rows = [row for row in tables[name] if row["devices"] <= 4][::every]
    assert rows
    for row in rows:
        devices, chunks = row["devices"], row["chunks"]
        orders = nodes(build(row["schedule"], devices, row["microbatches"], chunks))
        share = row.get("weight_share", 0.5)
        setting = Setting(each(row["forward"], devices), each(row["backward"], devices), each(share, devices), row["p2p"])
        spans = times(orders, setting, chunks)
        makespan = max(end for _, end in spans.values())
        device_span = max(spans[order[-1]][1] - spans[order[0]][0] for order in orders)
        bubble = 1 - sum(works(orders, setting, chunks)) / (devices * makespan)
        expected = (makespan, device_span, bubble, max(peaks(orders, chunks)))
        found = (row["makespan"], row["device_span"], row["bubble_ratio"], row["peak_activations"])
        assert found == pytest.approx(tuple(map(float, expected)), rel=1e-9, abs=1e-12), row


def closed_form(row: Row) -> float | None:
    """The makespan by a formula of a paper, None where none is exact."""
    sizes, forward, backward, p2p = (row["devices"], row["microbatches"]), row["forward"], row["backward"], row["p2p"]
    if isinstance(forward, tuple):
        if len(set(forward)) > 1:
            return None
        forward, backward = forward[0], backward[0]
    forms: dict[str, Callable[[], float]] = {
        "gpipe": lambda: formulas.gpipe_makespan(*sizes, forward, backward, p2p),
        "1f1b": lambda: formulas.one_f_one_b_makespan(*sizes, forward, backward, p2p),
        "interleaved": lambda: formulas.interleaved_makespan(*sizes, row["chunks"], forward, backward, p2p),
    }
    if p2p == 0:
        share = row.get("weight_share", 0.5)
        weight = backward * (share[0] if isinstance(share, tuple) else share)
        forms["zb-h1"] = lambda: formulas.zb_h1_makespan(*sizes, forward, backward, weight)
        if backward == 2 * forward:
            forms["hanayo"] = lambda: formulas.hanayo_makespan(*sizes, row["chunks"], forward)
    try:
        return forms[row["schedule"]]() if row["schedule"] in forms else None
    except UnsupportedSize:
        return None


@each_sweep
def test_large_sizes_equal_closed_forms_where_they_are_exact(tables: dict[str, Sweep], name: str) -> None:
    held = Counter[str]()
    for row in tables[name]:
        expected = closed_form(row)
        if row["devices"] > 4 and expected is not None:
            held[row["schedule"]] += 1
            forward, backward = (max(each(row[cost], 1)) for cost in ("forward", "backward"))
            assert row["makespan"] == pytest.approx(expected, rel=1e-9), row
            assert row["bubble_ratio"] == pytest.approx(1 - row["microbatches"] * (forward + backward) / expected, abs=1e-9), row
    assert set(held) == {row["schedule"] for row in tables[name]}  # every schedule was judged
    assert sum(held.values()) == HELD[name]


def test_each_sweep_has_the_settings_of_the_program(tables: dict[str, Sweep]) -> None:
    """The settings were read from the program's code; each column has a set of values."""
    d, c = {2, 4, 8, 16, 32}, {0, 4, 16}
    settings: dict[str, dict[str, set[Any]]] = {
        "weak_scaling": {"devices": d, "p2p": c},
        "strong_scaling": {"devices": d, "p2p": c, "microbatches": {32}},
        "recompute": {"devices": d, "p2p": c, "recompute": {0, 0.2, 0.4, 0.6, 0.8, 1}},
        "microbatches": {"devices": d - {32}, "p2p": c, "microbatches_per_device": {1, 2, 4, 8}},
        "chunks": {"devices": d, "p2p": c, "chunks": {2, 4, 6, 8}, "schedule": {"interleaved", "hanayo"}},
        "tb_tw": {"devices": d, "p2p": c, "input_share": {0.2, 0.4, 0.5, 0.6, 0.8}, "schedule": {"zb-h1"}},
        "latency": {"devices": d, "p2p": {0, 2, 4, 8, 16, 32}, "microbatches_per_device": {1, 2, 4}},
        "imbalance": {"devices": d, "p2p": c, "extra": {0, 0.1, 0.2, 0.3, 0.4}},
    }
    for name, wanted in settings.items():
        assert {column: set(tables[name].column(column)) for column in wanted} == wanted
        ratio = {row["microbatches"] / row["devices"] for row in tables[name]}
        per_device = set(tables[name].column("microbatches_per_device")) if "microbatches_per_device" in tables[name].columns else {2}
        assert name == "strong_scaling" or ratio == per_device
    six = {(each, 1) if isinstance(each, str) else each for each in SIX_LINES}
    for name in COUNTS.keys() - {"chunks", "tb_tw"}:
        assert {(row["schedule"], row["chunks"]) for row in tables[name]} == six


def test_only_the_first_and_the_last_device_are_slower(tables: dict[str, Sweep]) -> None:
    row = next(iter(tables["imbalance"].where(devices=4, extra=0.3, schedule="zb-h1")))
    assert row["forward"] == pytest.approx((520, 400, 400, 520))
    assert row["backward"] == pytest.approx((1040, 800, 800, 1040))
    weight = [share * backward for share, backward in zip(row["weight_share"], row["backward"], strict=True)]
    assert weight == pytest.approx([400] * 4)


def test_the_settings_are_tidy_numbers(tables: dict[str, Sweep]) -> None:
    """Values have few decimals: 0.3, and not 0.1 + 0.2."""
    given = ("recompute", "extra", "input_share", "forward", "backward", "p2p")
    for table in tables.values():
        values = [value for column in given if column in table.columns for cell in table.column(column) for value in each(cell, 1)]
        assert values == [round(value, 6) for value in values]


def test_recomputing_lengthens_the_input_gradient_alone(tables: dict[str, Sweep]) -> None:
    for row in tables["recompute"]:
        assert row["forward"] == 400 / row["devices"]
        assert row["backward"] == pytest.approx((2 + row["recompute"]) * row["forward"])
        assert row["backward"] * row["weight_share"] == pytest.approx(row["forward"])


def test_the_program_refuses_interleaved_with_a_warm_up_longer_than_the_forwards(tables: dict[str, Sweep]) -> None:
    lacking = {name: sum(map(not_drawn, table)) for name, table in tables.items()}
    # One size of "strong_scaling", three of "microbatches" and four of "latency", each at every latency. 2 devices are drawn.
    assert lacking == {**dict.fromkeys(COUNTS, 0), "strong_scaling": 3, "microbatches": 3 * 3, "latency": 4 * 6}
    ran = next(row for row in tables["strong_scaling"] if not_drawn(row) and row["p2p"] == 0)
    assert ran["makespan"] == (32 + 31 / 2) * 37.5  # Narayanan et al., arXiv 2104.04473, sec. 2.2.2


def test_each_plot_has_a_mark_for_each_real_link_on_its_axis(tables: dict[str, Sweep]) -> None:
    """A message of 2 x 4096 x 4096 bytes: two regions of a cloud, 30 ms and 54 ms more at 5 Gb/s, are beyond the 32 ms of the axis."""
    table = tables["latency"].where(devices=8)
    figure = real_links(50).mark(plot.panels(table, "p2p", "bubble_ratio", panels="microbatches_per_device"))
    nbytes, rates = 2 * 4096 * 4096, (240e9, 25e9, 25e9, 11.3e9 / 8)
    for axes in figure.axes[1:]:
        places = [line.get_xdata()[0] for line in axes.lines if line.get_xdata()[0] == line.get_xdata()[-1]]
        assert places == pytest.approx([1e3 * nbytes / rate + more for rate, more in zip(rates, (0.0118, 0.0224, 0.2, 1), strict=True)])
    assert "two regions" not in repr(figure)
    with pytest.raises(HybridLabError, match="figure"):
        real_links(50).mark(table)


@each_sweep
def test_what_is_drawn_is_there(tables: dict[str, Sweep], name: str) -> None:
    """For each panel, line and place on the axis there is one row, and the axis has several places."""
    published, table = SWEEPS[name], tables[name]
    assert {published.x, *published.panels, *published.lines, *published.y} <= set(table.columns)
    places = Counter(tuple(row[column] for column in (*published.panels, *published.lines, published.x)) for row in table)
    assert set(places.values()) == {1}
    assert len(set(table.column(published.x))) > 2
    assert set(published.log_y) <= set(published.y)
    assert all(sentence.endswith(".") for sentence in published.differences)


def test_only_the_time_of_strong_scaling_is_drawn_on_a_logarithmic_axis() -> None:
    assert {name: each.log_y for name, each in SWEEPS.items() if each.log_y} == {"strong_scaling": ("makespan",)}


def test_the_text_and_the_program_agree_on_the_latency_sweep_alone() -> None:
    assert [name for name, each in SWEEPS.items() if not each.differences] == ["latency"]


def test_a_published_sweep_cannot_be_changed() -> None:
    published = SWEEPS["chunks"]
    with pytest.raises(AttributeError):
        published.title = "mine"  # type: ignore[misc]
    with pytest.raises(TypeError):
        published.grid["p2p"] = 1  # type: ignore[index]
    with pytest.raises(TypeError):
        SWEEPS["mine"] = published  # type: ignore[index]
