"""Test that the error explorer draws the right errors.

They are compared with another run of the all-reduce, and with a formula from papers.
"""

import json
import re
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from misuse import refused_and_unchanged

from hybridlab import BF16, E4M3, E5M2, FP16, FP32, INT4, INT8, WireFormat
from hybridlab.widgets import ErrorExplorer
from hybridlab.widgets import error_explorer as source

SCRIPT, STYLE = str(ErrorExplorer._esm), str(ErrorExplorer._css)


@cache
def whole(most: int = 16) -> ErrorExplorer:
    """Return the explorer of the lab, measured on up to ``most`` ranks; 64 ranks take seconds."""
    return ErrorExplorer([ranks for ranks in source.RANKS if ranks <= most], distributions="normal", size=131_072)


up_to = pytest.mark.parametrize("most", [16, pytest.param(64, marks=pytest.mark.slow)])


@cache
def laplace() -> ErrorExplorer:
    return ErrorExplorer(8, distributions="Laplace", size=131_072)


def at(algorithm: str, distribution: str, wire: str, ranks: int) -> source.ErrorRow:
    """Return the row of one all-reduce."""
    explorer = laplace() if distribution == "Laplace" else whole(16 if ranks <= 16 else 64)
    (row,) = (each for each in explorer.rows if (each.algorithm, str(each.wire), each.ranks) == (algorithm, wire, ranks))
    return row


def small(**changes: Any) -> ErrorExplorer:
    arguments: dict[str, Any] = {"ranks": (2, 4, 8), "size": 2048} | changes
    return ErrorExplorer(**arguments)


# ---- what is measured ----

# Errors from collectives.md: first the result of an independent simulation with 131,072 normal numbers, then the error by the law.
# In the one-shot all-reduce of that simulation, an owner also rounds its own numbers: 2 roundings, where ours has 2 - 1/D.
REFERENCE = [
    ("ring", "INT8", 8, 4.03e-4, 4.00e-4),
    ("ring", "INT8", 64, 2.24e-3, 2.19e-3),
    ("one-shot", "INT8", 8, 1.8e-4 * 15 / 16, 1.8e-4 * 15 / 16),
    ("one-shot", "INT8", 64, 1.4e-4 * 127 / 128, 1.4e-4 * 127 / 128),
    ("ring", "INT8, block 256", 8, 2.17e-4, None),
    ("ring", "INT8, block 256", 64, 1.57e-3, None),
    ("ring", "FP16", 8, 1.9e-7, None),
]


@up_to
def test_errors_are_those_of_the_reference(most: int) -> None:
    for algorithm, wire, ranks, measured, law in REFERENCE:
        if ranks <= most:
            row = at(algorithm, "normal", wire, ranks)
            assert row.nmse == pytest.approx(measured, rel=0.05), (algorithm, wire, ranks)
            assert law is None or row.law == pytest.approx(law, rel=0.05), (algorithm, wire, ranks)


@up_to
def test_normal_numbers_follow_the_law_within_15_percent(most: int) -> None:
    coarse = ErrorExplorer((2, 4), (INT4, E4M3, E5M2), "normal", 131_072)  # with more ranks the errors of INT4 enlarge its scales
    ratios = [row.nmse / row.law for row in (*whole(most).rows, *coarse.rows)]
    assert len(ratios) == 2 * 5 * sum(ranks <= most for ranks in source.RANKS) + 2 * 3 * 2
    assert max(abs(ratio - 1) for ratio in ratios) < 0.15


def test_a_wrong_law_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = source.formulas.int8_ring_nmse
    for fault in (
        lambda ranks, crest, stochastic=False: right(ranks + 2, crest, stochastic),
        lambda ranks, crest, stochastic=False: right(ranks, crest),
        lambda ranks, crest, stochastic=False: right(ranks, crest, stochastic) * (ranks / 4),
    ):
        monkeypatch.setattr(source.formulas, "int8_ring_nmse", fault)
        laws = [(row, source.closed_form_nmse(row.algorithm, row.wire, row.ranks, 131_072)) for row in whole().rows]
        assert max(abs(row.nmse / law - 1) for row, law in laws) > 0.15


def rounded(numbers: Any, block: int | None) -> Any:
    """Round to INT8 and back, written independently of the library."""
    parts = [numbers] if block is None else np.split(numbers, range(block, numbers.size, block))
    return np.concatenate([np.round(part * 127 / np.abs(part).max()) * np.abs(part).max() / 127 for part in parts])


@in_turn("block, distribution", product((None, 256), ("normal", "Laplace")))
def test_a_ring_written_apart_gives_the_same_error(block: int | None, distribution: str) -> None:
    ranks, size, seed = 4, 4096, 9
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((8, size)) if distribution == "normal" else rng.laplace(0, 0.5**0.5, (8, size))
    chunks = []
    for chunk in range(ranks):
        pieces = np.split(values[:ranks], ranks, axis=1)[chunk]
        total = pieces[chunk]
        for hop in range(1, ranks):
            total = rounded(total, block) + pieces[(chunk + hop) % ranks]
        chunks.append(rounded(total / ranks, block))
    mean = values[:ranks].sum(axis=0) / ranks
    expected = ((np.concatenate(chunks) - mean) ** 2).sum() / (mean**2).sum()
    rows = ErrorExplorer((4, 8), WireFormat("INT8", block=block), distribution, size, seed=seed).rows
    assert rows[0][:2] == ("ring", distribution)
    assert rows[0].ranks == 4
    assert rows[0].nmse == pytest.approx(expected, rel=1e-3)


def test_one_large_scale_hurts_laplace_numbers_and_blocks_mend_it() -> None:
    assert at("ring", "Laplace", "INT8", 8).nmse / at("ring", "normal", "INT8", 8).nmse == pytest.approx(1.6, abs=0.25)
    assert at("ring", "Laplace", "INT8, block 256", 8).nmse < 0.6 * at("ring", "Laplace", "INT8", 8).nmse
    assert at("ring", "Laplace", "FP16", 8).nmse == pytest.approx(at("ring", "normal", "FP16", 8).nmse, rel=0.05)


@up_to
def test_stochastic_rounding_doubles_the_error_and_one_shot_stays_below_2_roundings(most: int) -> None:
    counts = [ranks for ranks in source.RANKS if ranks <= most]
    for ranks in counts:
        for algorithm in source.ALGORITHMS:
            twice = at(algorithm, "normal", "INT8, stochastic", ranks).nmse / at(algorithm, "normal", "INT8", ranks).nmse
            assert twice == pytest.approx(2, rel=0.06)
    roundings = [at("one-shot", "normal", "INT8, block 256", ranks).nmse / (2 - 1 / ranks) for ranks in counts]
    assert max(roundings) / min(roundings) < 1.05
    assert at("one-shot", "normal", "INT8", 2)[3:] == at("ring", "normal", "INT8", 2)[3:], "2 ranks send the same messages in both"
    assert at("ring", "normal", "INT8", most).nmse / at("one-shot", "normal", "INT8", most).nmse == pytest.approx(most / 4, rel=0.1)


@in_turn("algorithm, ranks", product(source.ALGORITHMS, [ranks for ranks in source.RANKS if ranks <= 16]))
def test_bytes_are_counted_with_scales(algorithm: str, ranks: int) -> None:
    chunk = 131_072 // ranks  # all numbers of ranks divide it
    scales = {"FP16": 0, "BF16": 0, "INT8": 4, "INT8, block 256": 4 * (chunk // 256), "INT8, stochastic": 4}
    for name, extra in scales.items():
        row = at(algorithm, "normal", name, ranks)
        assert row.nbytes == 2 * (ranks - 1) * (chunk * (1 if "INT8" in name else 2) + extra)
        assert row.saving == pytest.approx(2 * (ranks - 1) * 4 * chunk / row.nbytes, abs=1e-4)


def test_fp32_can_be_drawn_as_well() -> None:
    row = ErrorExplorer((4, 8), FP32, "normal", 4096).rows[0]
    assert 0 < row.nmse < 1e-13
    assert row.saving == 1


# ---- what a page gets ----


def test_the_data_are_plain_json_and_small() -> None:
    explorer = ErrorExplorer((2, 3, 4, 5, 6, 7), size=256)  # this is as many rows as the lab shows
    text = json.dumps(explorer.measured, allow_nan=False)
    assert json.loads(text) == explorer.measured
    assert len(explorer.rows) == 2 * 2 * 5 * 6
    assert len(text) < 10_000
    assert len(SCRIPT) + len(STYLE) < 45_000


def test_the_series_are_the_rows() -> None:
    explorer = small()
    rows = {(row.algorithm, row.distribution, str(row.wire), row.ranks): row for row in explorer.rows}
    for key, entry in explorer.measured["series"].items():
        algorithm, distribution, wire = key.split("/")
        for place, ranks in enumerate(explorer.measured["ranks"]):
            row = rows[algorithm, distribution, wire, ranks]
            assert [entry[name][place] for name in ("nmse", "law", "nbytes", "saving")] == list(row[4:])
    assert len(explorer.measured["series"]) == 2 * 2 * 5


def test_the_text_has_no_measured_digit() -> None:
    explorer = ErrorExplorer(ranks=(4, 2), size=512, show={"formats": ["INT8"]})
    assert repr(explorer) == "<ErrorExplorer: 512 numbers on 2 to 4 ranks; shows INT8; ring, normal, 2 ranks>"
    assert repr(small(seed=1)) == repr(small(seed=2))


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others() -> None:
    assert small(seed=3).measured == small(seed=3, formats=source.FORMATS).measured
    assert small(seed=3).measured != small(seed=4).measured


def test_more_ranks_do_not_change_the_gradients_of_fewer() -> None:
    grid = {"formats": (FP16, INT8), "distributions": "normal", "size": 2048}
    few, many = ErrorExplorer((2, 4), **grid), ErrorExplorer((2, 4, 8), **grid)
    assert [row for row in many.rows if row.ranks < 8] == list(few.rows)


def test_what_is_shown_can_be_set_and_observed() -> None:
    explorer = small(show={"ranks": 4, "algorithm": "both", "distribution": "Laplace", "formats": ["INT8", "FP16"]})
    assert (explorer.ranks, explorer.algorithm, explorer.distribution) == (4, "both", "Laplace")
    assert explorer.formats == ["FP16", "INT8"], "in the order of the picture"
    seen: list[Any] = []
    explorer.observe(lambda change: seen.append((change["name"], change["new"])), list(ErrorExplorer.SETTING))
    explorer.set_state({"ranks": 8, "formats": []})  # a message from the page sets it in this way
    explorer.formats = (BF16, "INT8")
    assert seen == [("ranks", 8), ("formats", []), ("formats", ["BF16", "INT8"])]
    assert "shows BF16, INT8; both, Laplace, 8 ranks" in repr(explorer)


@in_turn(
    "name, value, code, word",
    [
        ("ranks", 3, "out-of-range", "2, 4 and 8 ranks, not 3"),
        ("ranks", True, "not-a-whole-number", "ranks"),
        ("ranks", "8", "not-a-whole-number", "'8'"),
        ("algorithm", "rings", "unknown-name", "'ring'"),
        ("algorithm", None, "unknown-name", "None"),
        ("distribution", "laplace", "unknown-name", "'Laplace'"),
        ("formats", "INT8", "not-a-list", "formats"),
        ("formats", ["INT9"], "unknown-name", "'INT8'"),
        ("formats", [FP32], "unknown-name", "'FP32'"),
    ],
)
def test_what_was_not_measured_is_refused_and_changes_nothing(name: str, value: Any, code: str, word: str) -> None:
    refused_and_unchanged(small, name, value, code, word)


@in_turn(
    "arguments, code, word",
    [
        ({"ranks": ()}, "empty", "ranks"),
        ({"ranks": 1}, "too-small", "at least 2, not 1"),
        ({"ranks": (2, 129)}, "too-large", "at most 128, not 129"),
        ({"ranks": range(2, 10**9)}, "too-large", "ranks has more than 1,000 values"),
        ({"ranks": 2.5}, "not-a-whole-number", "ranks"),
        ({"ranks": float("nan")}, "not-a-whole-number", "ranks"),
        ({"size": 4}, "too-small", "4 is less than 8"),
        ({"size": 10**7}, "too-large", "size"),
        ({"size": 2**20, "ranks": (64, 127, 128)}, "too-large", "minutes"),
        ({"formats": "INT8"}, "wrong-type", "formats"),
        ({"formats": [WireFormat("INT8", block=block) for block in range(1, 9)]}, "wrong-length", "8 wire formats"),
        ({"distributions": "cauchy"}, "unknown-name", "'cauchy'"),
        ({"seed": -1}, "too-small", "seed"),
        ({"show": "ring"}, "wrong-type", "show"),
        ({"show": {"rank": 2}}, "unknown-name", "'ranks'"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: dict[str, Any], code: str, word: str) -> None:
    with refusal(code, word):
        small(**arguments)


# ---- the colours ----


def luminance(colour: str) -> float:
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return sum(
        share * (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4)
        for share, each in zip((0.2126, 0.7152, 0.0722), channels, strict=True)
    )


def test_the_colour_of_every_format_is_readable_on_light_and_on_dark() -> None:
    pairs = re.findall(r"--hl-series: light-dark\((#\w{6}), (#\w{6})\)", STYLE)
    assert len(pairs) == source.MOST_FORMATS
    for light, dark in pairs:
        assert 1.05 / (luminance(light) + 0.05) >= 4.5
        assert (luminance(dark) + 0.05) / (luminance("#14181d") + 0.05) >= 4.5


def test_a_block_longer_than_the_message_is_the_whole_message() -> None:
    assert source.closed_form_nmse("ring", WireFormat("INT8", block=256), 64, 512) == source.closed_form_nmse("ring", INT8, 64, 512)
    assert source.closed_form_nmse("ring", WireFormat("INT8", block=4), 64, 512) < source.closed_form_nmse("ring", INT8, 64, 512)
