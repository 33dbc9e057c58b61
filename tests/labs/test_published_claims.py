"""Claims of the published documents: the library's records compared with the documents and with the verdicts of the reference."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal
from misuse import BrokenRepr
from published_data import PRINTED, claims

from hybridlab import HybridLabError
from hybridlab.course.claims import CLAIMS, VERDICTS, Claim, count_verdicts, found, judged

ROOT = Path(__file__).resolve().parents[2]
LETTERS = {"R": {"report"}, "N": {"notes"}, "P": {"simulator", "event log"}}
ROWS = claims()
each_claim = in_turn("claim", CLAIMS.values())


# What is written down

DISPUTED = {  # the verdicts of the reference where ours is another one, because the page has more or fewer readings
    3: "wrong",  # 5 stages save 38 % of the activations of GPipe, and 2 stages save 36 % of all the memory of one device
    12: "wrong",  # an H100 sends 450 GB/s each way
    26: "wrong",  # the same arithmetic as in claim 67: 8 in all, 4 of each replica
    33: "depends",  # it is about two replicas
    47: "depends",  # the printed quotient follows from no reading
    52: "wrong",  # 4 stages save 50 %
    54: "right",  # with stages and replicas alone, one layer does not fit on a GPU
    55: "depends",  # no comparison saves 30 to 40 %
}


def test_each_row_of_the_reference_is_a_claim_with_its_verdict() -> None:
    assert list(ROWS) == list(CLAIMS) == list(range(1, 77))
    assert {number: row.verdict for number, row in ROWS.items()} == {number: claim.verdict for number, claim in CLAIMS.items()} | DISPUTED
    assert all(CLAIMS[number].document in LETTERS[row.letter] for number, row in ROWS.items())


PRINTED_ELSEWHERE = {  # numbers that are not in the row of the reference
    29: f" {PRINTED['labels_of_rank_0']}",
    62: f" {PRINTED['programs']['hybrid-simulator.txt']['weight_difference']}",
    74: f" {PRINTED['programs']['hybrid-simulator.txt']['accuracy']}",
}


@each_claim
def test_printed_numbers_are_those_of_the_reference(claim: Claim) -> None:
    """``make outside`` looks for them in the documents themselves."""
    told = ROWS[claim.number].claim + PRINTED_ELSEWHERE.get(claim.number, "")
    for printed in claim.printed:
        for number in printed if isinstance(printed, tuple) else (printed,):
            as_written = re.escape(repr(number).removesuffix(".0"))
            assert re.search(rf"(?<![\w.]){as_written}(?:\.0+)?(?![\d]|\.\d)", told), f"{number} is not in {told}"


@each_claim
def test_a_claim_says_where_what_and_why_in_sentences(claim: Claim) -> None:
    assert claim.verdict in VERDICTS
    assert claim.where
    assert claim.text.endswith(".")
    assert claim.why.endswith(".")
    assert claim.why[:-1].count(". ") == 0, "one sentence"
    assert bool(claim.printed) or not claim.unit


def test_labs_and_papers_of_the_claims_exist() -> None:
    chapters = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    papers = (ROOT / "book/references.bib").read_text(encoding="utf-8")
    assert not {lab for claim in CLAIMS.values() for lab in claim.labs if f"file: labs/{lab}\n" not in chapters}
    assert not {key for claim in CLAIMS.values() for key in claim.sources if f"{{{key}," not in papers}
    assert [f"{{{claim.sources[0]}," in papers for number, claim in CLAIMS.items() if 56 <= number <= 60] == [True] * 5


# What agrees with what is printed


@in_turn(
    "printed, value, agrees",
    [
        (1040, 1040.4, True),
        (1040, 1040.6, False),
        (3.47, 3.474, True),
        (3.47, 3.4751, False),
        (11.5, 11.57, False),
        (11.5, 11.54, True),
        (49.0, 49.3, True),
        (0.00025, 0.000254, True),
        (0.00025, 0.000256, False),
        ((6, 8), 6, True),
        ((6, 8), 8.4, True),
        ((6, 8), 8.6, False),
        ((2, 5), 11.1, False),
        ((0.25, 1), 1.1, False),  # the range is printed to hundredths
        (2021, "2021", False),
    ],
)
def test_a_number_agrees_to_the_digits_that_are_printed(printed: float, value: float, agrees: bool) -> None:
    claim = Claim(1, "report", "", "", "right", "", printed=(printed,))
    assert found("{}", value).agrees(claim) is agrees


def test_all_printed_numbers_have_to_agree() -> None:
    assert found("{} {} {}", 50, 80, 130, 7).agrees(CLAIMS[34])
    assert not found("{} {} {}", 50, 80, 131).agrees(CLAIMS[34])
    assert not found("{} {} {}", 80, 50, 130).agrees(CLAIMS[34])


# Verdicts follow from what was found


def test_a_verdict_that_the_numbers_contradict_is_refused() -> None:
    half = [found("{}", 1040), found("{}", 2080)]
    assert judged(38, 38, {38: half}).rows[0].claim is CLAIMS[38]
    for number, values, follows in [
        (35, [found("{}", 1211)], "wrong"),
        (35, [found("{}", 1210), found("{}", 625)], "depends"),
        (39, [found("{}", 0.86)], "right"),
        (39, [found("{}", 3.44), found("{}", 0.86)], "depends"),
        (38, half[:1], "right"),
        (38, half[1:], "wrong"),
        (7, [found("", holds=True)], "right"),
        (4, [found("", holds=False)], "wrong"),
    ]:
        with refusal("wrong-verdict", f"claim {number}", f"as {CLAIMS[number].verdict}", f"make it {follows}"):
            judged(number, number, {number: values})


@in_turn(
    "first, last, values, code, words",
    [
        (34, 35, {35: found("{}", 1210)}, "does-not-fit", "without a value: [34]"),
        (35, 35, {35: found("{}", 1210), 36: found("{}", 1)}, "does-not-fit", "without a claim: [36]"),
        (77, 77, {77: found("{}", 1)}, "does-not-fit", "without a value: [77]"),
        (36, 35, {}, "does-not-fit", "claims 36 to 35"),
        (35, 35, {35: []}, "wrong-type", "claim 35"),
        (35, 35, {35: [1210]}, "wrong-type", "claim 35"),
        (35, 35, {35: None}, "wrong-type", "claim 35"),
        (35, 35, [found("{}", 1210)], "wrong-type", "values"),
        ("35", 35, {}, "not-a-whole-number", "first"),
        (35, 35.5, {}, "not-a-whole-number", "last"),
        (4, 4, {4: found("{}", 1)}, "no-number", "claim 4"),
        (34, 34, {34: found("{}", 50)}, "wrong-length", "claim 34 prints 50, 80, 130 ms"),
    ],
)
def test_tables_refuse_what_is_missing_or_too_much(first: Any, last: Any, values: Any, code: str, words: str) -> None:
    with refusal(code, words):
        judged(first, last, values)


def test_what_was_found_is_refused_where_it_says_nothing() -> None:
    for number in (float("nan"), float("inf"), 10**400):
        with refusal("not-finite"):
            found("{}", number)
    for junk in (None, [1, 2], [[1.0]]):
        with refusal("not-a-number"):
            found("{}", junk)
    for template in ("{} {}", "{missing}", "{0:q}", "{0.real.no}", "{", "{:d}"):
        with refusal("does-not-fit", 1.5):
            found(template, 1.5)
    with refusal("not-true-or-false", "holds"):
        found("{}", 1, holds="yes")
    for told in (1210, [BrokenRepr()], 10**5000):
        with refusal("not-text", "message"):
            found(told)  # type: ignore[arg-type]
    with pytest.raises(HybridLabError) as why:
        found("{" * 4999)
    assert why.value.code == "does-not-fit"
    assert len(str(why.value)) < 300


def test_a_claim_has_a_known_document_and_verdict() -> None:
    with refusal("unknown-name", "verdict 'true'"):
        Claim(1, "report", "", "", "true", "")
    with refusal("unknown-name", "document 'reports'", "'report'"):
        Claim(1, "reports", "", "", "right", "")


def test_only_all_claims_are_counted() -> None:
    one = judged(35, 35, {35: found("{}", 1210)})
    with refusal("wrong-type", "judged()"):
        count_verdicts(one, one.rows)  # type: ignore[arg-type]
    with refusal("does-not-fit", ": 1, 2, 3"):
        count_verdicts(one)
    holds = {"right": [True], "wrong": [False], "depends": [True, False]}
    every = judged(1, 76, {number: [found("x", holds=each) for each in holds[claim.verdict]] for number, claim in CLAIMS.items()})
    with pytest.raises(HybridLabError, match=r": 35$") as twice:
        count_verdicts(every, one)
    assert twice.value.code == "does-not-fit"
    verdicts = Counter(claim.verdict for claim in CLAIMS.values())
    assert count_verdicts(every).counts["all"] == verdicts
    assert str(count_verdicts(every)).splitlines()[-1].split() == ["all", *(str(verdicts[each]) for each in VERDICTS), "76"]


# What it looks like


def test_a_table_is_rows_with_a_name_each_and_verdicts_in_words() -> None:
    rings = [found("{} {} {} {} <b>", 0, 20, 60, 140), found("{} {} {} {}", 0, 20, 30, 35)]
    table = judged(45, 47, {45: rings, 46: found("{} {} {}", 1.7, 4.9, 10.7), 47: found("{} {} {}", 1045, 1234, 0.85)})
    html = table._repr_html_()
    assert re.findall(r'<tr role="row" id="(claim-\d+)" data-verdict="(\w+)"', html) == [
        ("claim-45", "depends"), ("claim-46", "wrong"), ("claim-47", "wrong"),
    ]  # fmt: skip
    assert "140 &lt;b&gt;" in html
    assert html.count("<b>holds:</b>") == html.count("<b>does not:</b>") == 1
    assert html.count("</span> wrong</span>") == 2
    assert html.count('scope="row"') == 3
    assert html.count('scope="col"') == html.count('role="columnheader"') == 4
    assert 'href="bibliography.html#cite-patarasuk2009bandwidth">Patarasuk 2009<' in html
    assert 'href="../labs/lab06_hybrid_step.html">Lab\xa06<' in html
    text = str(table)
    assert "45. report, section 6.2, benchmark 3: depends." in text
    assert "Recomputed: holds: 0 20 60 140 <b>; does not: 0 20 30 35" in text
    assert max(map(len, text.splitlines())) <= 96
