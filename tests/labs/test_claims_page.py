"""Test the page of published claims: its computed values equal the reference, and a wrong library is noticed.

The right value of each claim is in tests/data/claims.md. No code here computes it.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cases import in_turn
from claims_page import ROOT, TEXT, cells, run_page, summed_up
from published_data import DATA, READINGS, claims

import hybridlab
from hybridlab import HybridLabError, collectives, hardware, published
from hybridlab.course.claims import AXES, CLAIMS, FAULTS, VERDICTS, Row, count_verdicts
from hybridlab.course.published import large_runs

NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?(?![\d.]*[a-wyzA-WYZ\d])")  # without the digits in names such as 1F1B

SIZES = {"0", "1", "2"}  # small numbers in formulas, or of stages, replicas and ranks
# Other numbers in the column "correct value" that the page does not compute in this row. They are inputs, sizes, results of other rows, or
# figures read from a paper.
NOT_RESULTS = {
    1: "40 0.86",
    2: "40 1210 625",
    5: "11 96",  # bubbles of 11/384 and 11/96
    10: "2009",
    11: "32",  # for another V100
    12: "12 20",  # links of an A100, GB/s of each in NCCL
    13: "4",  # the number of ports
    17: "75 58 94",  # for BERT-large, in another paper
    18: "16 32 46 80 10 27",  # bytes a parameter; GiB read off a figure
    19: "5.3 130",
    25: "229 300",
    29: "8",
    31: "1.66 1.71",  # between the two ends of a range
    35: "9 65",
    36: "4",
    39: "4 16",
    40: "3.3",  # without the messages, of which the claim is
    42: "40 130 20 520 2080",
    46: "1170 140 1310",
    48: "20 9",
    50: "5.3",
    51: "1045 1210",
    54: "502",  # as printed; the product of the rounded numbers is 501
    58: "13 12 3005 3018",
    60: "2004",
    61: "12 6 30 4",
    63: "6 16",
    73: "72",
}


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """Run the page in the folder of the labs: a reader may copy its cells into a notebook there. The book runs it in its own folder."""
    return run_page("labs")


@pytest.fixture(scope="module")
def rows(page: dict[str, Any]) -> dict[int, Row]:
    return {row.claim.number: row for table in page["tables"] for row in table.rows}


@pytest.fixture(scope="module")
def told(rows: dict[int, Row]) -> dict[int, str]:
    """Give what the page shows of each claim: the readings in words, and the findings."""
    return {number: "; ".join(shown(row)) for number, row in rows.items()}


def shown(row: Row) -> list[str]:
    given = zip(row.readings.combinations, row.readings.findings, strict=True)
    return [f"{', '.join(words)}: {each.text}" for words, each in given if each.applies]


def is_among(number: str, found: str) -> bool:
    """Return whether ``found`` has a number that equals ``number`` after rounding to the decimals of ``number``."""
    value, decimals = float(number.replace(",", "")), len(number.partition(".")[2])
    return any(abs(float(each.replace(",", "")) - value) <= 0.5001 * 10**-decimals for each in NUMBER.findall(found))


# What the cells compute


def test_every_claim_is_judged_once_and_counted(page: dict[str, Any], rows: dict[int, Row]) -> None:
    assert sorted(rows) == list(CLAIMS)
    counts = count_verdicts(*(page[name] for name in summed_up())).counts
    assert {name: sum(row.values()) for name, row in counts.items()} == {
        **Counter(claim.document for claim in CLAIMS.values()), "all": len(CLAIMS),
    }  # fmt: skip


SPLIT = {42: 131, 44: 113}  # rows of the reference that are two claims


def test_what_is_right_comes_out_of_the_cells(told: dict[int, str]) -> None:
    entries = (ROOT / "book/references.bib").read_text(encoding="utf-8")
    missing, needless = {}, {}
    for row, (_, claim, _, right) in claims().items():
        cited = {each for each in NUMBER.findall(right) if re.match(r"\d{4}\.\d{5}$", each) and each in entries}  # arXiv
        given = SIZES | cited | set(NUMBER.findall(claim))
        reasons = NOT_RESULTS.get(row, "").split()
        found = told[row] + told.get(SPLIT.get(row, 0), "")
        absent = {each for each in NUMBER.findall(right) if not is_among(each, found)} - given
        missing[row] = absent - set(reasons)
        needless[row] = set(reasons) - absent
    assert len(missing) == 76
    assert {row: each for row, each in missing.items() if each} == {}
    assert {row: each for row, each in needless.items() if each} == {}, "reasons for numbers that are not there, or that are found"


def comes_out(row: Row, figures: list[str], holds: bool) -> bool:
    """Return whether one reading has all figures, and the claim holds in it or not, as given."""
    return any(
        each.agrees(row.claim) == holds and all(is_among(figure, text) for figure in figures)
        for text, each in zip(shown(row), row.found, strict=True)
    )


@in_turn("claim, reading, figures, holds", READINGS)
def test_figures_of_other_code_come_out(rows: dict[int, Row], claim: int, reading: str, figures: list[str], holds: bool) -> None:
    assert comes_out(rows[claim], figures, holds), "\n".join([reading, *shown(rows[claim])[:30]])


def test_figures_that_come_out_otherwise_are_seen(rows: dict[int, Row]) -> None:
    assert not comes_out(rows[22], ["33.3", "3.1"], holds=True)
    assert not comes_out(rows[22], ["33.3", "3.0"], holds=False)
    assert not comes_out(rows[35], ["1210", "625"], holds=False)


def test_rates_are_named_by_what_carries_them(told: dict[int, str]) -> None:
    for row, words in {
        12: ("one way, A100: 300 GB/s", "both ways, A100: 600 GB/s", "NCCL's model, A100: 240 GB/s", "measured, A100: 229 GB/s"),
        13: ("a port, one way, A100: 25 GB/s", "a node, one way, A100: 200 GB/s, 8 ports", "A100: 85 to 96 GB/s"),
        71: ("1 GB, 64 GPUs: a ring", "1 KB, 64 GPUs: two trees"),
    }.items():
        assert not [each for each in words if each not in told[row]], told[row]


def test_measured_rates_are_those_of_the_reference(page: dict[str, Any]) -> None:
    """The measured rates are typed into a cell, because no code here measures a network."""
    told = json.loads((DATA / "hardware.json").read_text(encoding="utf-8"))["fabric"]["achieved_8xA100_4xHDR"]
    low, high = re.match(r"([\d.]+) to ([\d.]+) GB/s", told).groups()  # type: ignore[union-attr]
    assert page["on_four_ports"] == (float(low) * 1e9, float(high) * 1e9)


@in_turn(
    "row, figures",
    [
        (1, ("3.44", "3.33", "3.01", "2.85")),
        (2, ("3.3", "6.4")),
        (3, ("75.0", "50.0", "0.0")),
        (12, ("300", "600", "240", "229")),
        (21, ("4", "28")),
        (25, ("50", "25", "76")),
        (44, ("1040", "1170", "1430", "1950", "585", "357.5", "243.75")),
        (46, ("1.68", "4.88", "10.69", "11.57")),
        (51, ("13.4", "15.3", "24")),
        (61, ("2448", "4320")),
        (76, ("156", "132", "12")),
        (113, ("1.78", "2.91", "4.27")),
    ],
)
def test_figures_that_other_rows_rest_on_are_there(told: dict[int, str], row: int, figures: tuple[str, ...]) -> None:
    assert not [each for each in figures if each not in NUMBER.findall(told[row])], told[row]


def test_the_replicas_of_the_published_run_differ_as_printed(told: dict[int, str]) -> None:
    assert "0 after a correct all-reduce; 0.00030, 0.00026 and 0.00025" in told[62]


# With a wrong library the page cannot be built, because the first table that contradicts its verdict ends the run


def slow(function: Any) -> Any:
    """Return a changed simulator in which the last operation of every GPipe starts far too late."""

    def planted(schedule: Any, costs: Any) -> Any:
        right = function(schedule, costs)
        late = right.makespan * (right.end == right.end.max()) * (schedule.name == "gpipe")
        return replace(right, start=right.start + late, end=right.end + late)

    return planted


PLANTED = {
    "a clock that is kinder to 1F1B": ("claim 7 .* make it right", hybridlab, "simulate", slow(hybridlab.simulate)),
    "a faster link of the H100": (
        "claim 12 .* make it depends: printed 500 GB/s, found .* 500 GB/s",
        hardware, "H100", replace(hardware.H100, nvlink=500e9),
    ),
    "a peak with sparsity": (
        "claim 14 .* wrong: printed 312 TFLOP/s, found 624",
        hardware, "A100_80GB", replace(hardware.A100_80GB, matmul_flops=624e12),
    ),
    "a ring whose bytes grow as a logarithm": (
        "claim 9 ",
        collectives, "all_reduce_factors", lambda name, ranks, real=collectives.all_reduce_factors: real(name, ranks)._replace(
            bandwidth=real("tree" if name == "ring" else name, ranks).bandwidth
        ),
    ),
    "a program that counts its scales": (
        "claim 61 .* make it right",
        published, "simulator", lambda real=published.simulator, **how: replace(real(**how), scale_bytes=0),
    ),
    "a largest run of a tenth": ("claim (20|54|96) ", large_runs, "TABLE_1", large_runs.TABLE_1[:7]),
}  # fmt: skip


@pytest.mark.parametrize("fault", [pytest.param(each, marks=[pytest.mark.slow] * (place > 0)) for place, each in enumerate(PLANTED)])
def test_a_wrong_library_ends_the_page(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, module, name, planted = PLANTED[fault]
    with monkeypatch.context() as wrong:
        wrong.setattr(module, name, planted)
        with pytest.raises(HybridLabError, match=words) as caught:
            run_page()
    assert caught.value.code == "wrong-verdict"


# No result is typed in that should be computed


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "found":
            yield node


def typed_results(code: str) -> list[str]:
    """Return faults in calls of ``found`` that state a result instead of computing it.

    A fault is a number typed in the text, a truth value that is constant, or a call with only constants.
    """
    faults = []
    for call in calls(ast.parse(code)):
        first, *numbers = call.args
        text = first.value if isinstance(first, ast.Constant) else ""
        outside = re.sub(r"\{[^}]*\}", "", text)
        holds = [each.value for each in call.keywords if each.arg == "holds"]
        computed = [each for each in numbers if any(isinstance(part, ast.Name) for part in ast.walk(each))]
        if not text or set(NUMBER.findall(outside)) - SIZES:
            faults.append(f"a number in the text: {outside!r}")
        if any(isinstance(each, ast.Constant) for each in holds) or not (holds or computed):
            faults.append(f"nothing computed: {ast.unparse(call)}")
        if not holds and numbers and numbers[0] not in computed:
            faults.append(f"the first number, which is compared, is typed: {ast.unparse(call)}")
    return faults


def test_no_result_is_typed() -> None:
    code = [cell for cell in cells() if "found(" in cell]
    assert len(code) > 20
    assert [fault for cell in code for fault in typed_results(cell)] == []


@in_turn(
    "planted",
    [
        "found('{:.2f} times', 3.44)",
        "found('3.44 times', run.speedup)",
        "found('{} times, {}', 3.44, run.speedup)",
        "found('{} times', run.speedup, holds=False)",
        "found('no', holds=True)",
    ],
)
def test_a_typed_result_is_seen(planted: str) -> None:
    assert typed_results(planted)


def test_cells_are_short_and_fit_their_box() -> None:
    lengths = {cell.splitlines()[0]: len(cell.splitlines()) for cell in cells()}
    assert not {first: length for first, length in lengths.items() if length > 25}
    assert not [line for cell in cells() for line in cell.splitlines() if len(line) > 72]


# The page around them


def test_findings_lead_to_their_claims() -> None:
    linked = re.findall(r"\[(\d+)\]\(#claim-(\d+)\)", TEXT)
    assert len(linked) >= 12
    assert all(label == target and int(target) in CLAIMS for label, target in linked)


def test_the_page_explains_its_words() -> None:
    assert not [each for each in (*AXES, *VERDICTS, *FAULTS) if f"*{each}*" not in TEXT]


def test_what_is_compared_can_be_read(page: dict[str, Any]) -> None:
    for table in page["tables"]:
        assert all(each.text.strip() for row in table.rows for each in row.readings.findings)
        assert str(table).count("    Recomputed") == len(table.rows)
