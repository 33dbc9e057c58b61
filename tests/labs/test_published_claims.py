"""Claims of the published documents: the library's records compared with the documents and with the verdicts of the reference."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal
from misuse import BrokenRepr
from published_data import PRINTED, claims, is_printed

from hybridlab import HybridLabError
from hybridlab.course.claims import CLAIMS, FAULTS, VERDICTS, Claim, Finding, Readings, count_verdicts, does_not_apply, found, judged
from hybridlab.course.claims import readings as readings_of
from hybridlab.course.claims import verdicts as verdicts_on
from hybridlab.course.claims.ledger import LEDGER, NO_CLAIM, Passage

ROOT = Path(__file__).resolve().parents[2]
LETTERS = {"R": {"report"}, "N": {"notes"}, "P": {"simulator", "event log"}}
ROWS = claims()
each_claim = in_turn("claim", CLAIMS.values())


def tried(*holds: bool | None) -> Readings:
    """Return a reading for each truth value; with None the reading does not apply."""
    given = {f"case {at}": each for at, each in enumerate(holds)}
    return readings_of(lambda setting: does_not_apply("no such thing") if setting is None else found("x", holds=setting), setting=given)


# What is written down

DISPUTED = {  # the verdicts of the reference where ours is another one, because the page tries more readings
    2: "wrong",  # with two microbatches in all, and with eight replicas, communication takes 17 to 19 %
    3: "wrong",  # some depths and models save 30 to 40 %
    6: "right",  # the published GPipe holds only what lies between the stages
    7: "wrong",  # with as much memory, or with unequal stages, 1F1B has a smaller bubble
    8: "right",  # each worker sends as many bytes with any number of workers
    10: "right",  # a switch that adds needs fewer bytes
    19: "wrong",  # right, if the time of computing is that of the whole pipeline, with its idle time
    22: "wrong",  # with room for two microbatches both printed ranges are right
    23: "right",  # with as many microbatches as stages, the first stage saves nothing
    26: "wrong",  # the same arithmetic as in claim 67: 8 in all, 4 of each replica
    30: "wrong",  # PyTorch counts the warm-up of the last stage as 1
    31: "right",  # by the number of operations it is 2.0
    32: "right",  # it is the work of each stage, or of one GPU, but under no reading the work of both
    33: "depends",  # it is about two replicas
    34: "right",  # half as long where the times are those of the whole model
    35: "right",  # the same
    37: "right",  # the last stage begins with one forward
    47: "depends",  # the printed quotient follows from no reading
    52: "wrong",  # 4 stages save 50 %
    54: "right",  # with stages and replicas alone, one layer does not fit on a GPU
    61: "wrong",  # the codes alone are 2160 bytes
    64: "wrong",  # as claim 7
    65: "right",  # as claim 23
    66: "right",  # the bytes of a ring grow from one to two times the gradients
    75: "wrong",  # 8 steps, if a step has a forward and a backward
}


def test_each_row_of_the_reference_is_a_claim_with_its_verdict() -> None:
    assert list(ROWS) == list(range(1, 77))
    ours = {number: CLAIMS[number].verdict for number in ROWS}
    assert {number: row.verdict for number, row in ROWS.items()} == ours | DISPUTED
    assert not [number for number, verdict in DISPUTED.items() if verdict == ours[number]]
    assert all(CLAIMS[number].document in LETTERS[row.letter] for number, row in ROWS.items())


PRINTED_ELSEWHERE = {  # numbers that are not in the row of the reference
    29: f" {PRINTED['labels_of_rank_0']}",
    62: f" {PRINTED['programs']['hybrid-simulator.txt']['weight_difference']}",
    74: f" {PRINTED['programs']['hybrid-simulator.txt']['accuracy']}",
}


@in_turn("number", ROWS)
def test_printed_numbers_are_those_of_the_reference(number: int) -> None:
    """``make outside`` looks for the numbers of all claims in the documents themselves."""
    told = ROWS[number].claim + PRINTED_ELSEWHERE.get(number, "")
    for printed in CLAIMS[number].printed:
        for each in printed if isinstance(printed, tuple) else (printed,):
            assert is_printed(each, told), f"{each} is not in {told}"


@each_claim
def test_a_claim_says_where_what_and_why_in_sentences(claim: Claim) -> None:
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
        ((6, 8), 8.04, True),  # the ends of a range: one digit more than printed
        ((6, 8), 8.06, False),
        ((2, 5), 11.1, False),
        ((0.25, 1), 1.001, False),  # the range is printed to hundredths
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


# Readings


def test_every_combination_is_tried_once_and_keeps_its_words() -> None:
    calls: list[tuple[str, int]] = []

    def one(work: int, times: str) -> Finding:
        calls.append((times, work))
        return does_not_apply("too few") if (times, work) == ("B", 4) else found("{} {}", times, work, holds=True)

    tried = readings_of(one, times="AB", work={"8 each": 8, "8 shared": 4})
    assert calls == [("A", 8), ("A", 4), ("B", 8), ("B", 4)]
    assert tried.combinations == (("A", "8 each"), ("A", "8 shared"), ("B", "8 each"), ("B", "8 shared"))
    assert [each.text for each in tried.findings] == ["A 8", "A 4", "B 8", "too few"]
    assert [each.applies for each in tried.findings] == [True, True, True, False]


@in_turn(
    "axes, code, words",
    [
        ({"time": "AB"}, "unknown-name", "'times'"),
        ({"times": ""}, "empty", "times"),
        ({"times": "AB", "work": {}}, "empty", "work"),
        ({}, "empty", "found()"),
        ({"times": "X"}, "wrong-type", "'X'"),
    ],
)
def test_readings_are_refused(axes: dict[str, Any], code: str, words: str) -> None:
    with refusal(code, words):
        readings_of(lambda **given: given["times"], **axes)


# Verdicts follow from what was found


@in_turn(
    "number, value, follows",
    [
        (33, found("{}", 40), "right"),
        (33, found("{}", 41), "wrong"),
        (39, found("{}", 3.44), "wrong"),
        (39, found("{}", 0.86), "right"),
        (33, tried(True, True), "right"),
        (33, tried(True, None), "right"),  # a reading that does not apply does not count
        (39, tried(False, None, False), "wrong"),
        (38, tried(True, False), "depends"),
        (38, tried(False, True, None), "depends"),
    ],
)
def test_the_verdict_that_follows_must_be_the_recorded_one(number: int, value: Finding | Readings, follows: str) -> None:
    if CLAIMS[number].verdict == follows:
        assert judged({number: value}).rows[0].claim is CLAIMS[number]
        return
    with refusal("wrong-verdict", f"claim {number} is recorded as {CLAIMS[number].verdict}", f"make it {follows}"):
        judged({number: value})


def test_a_table_has_its_claims_in_the_order_of_the_values() -> None:
    table = judged({35: tried(True, False), 33: found("{}", 40)})
    assert [row.claim.number for row in table.rows] == [35, 33]


@in_turn(
    "values, code, words",
    [
        ({}, "wrong-type", "values"),
        ([found("{}", 1210)], "wrong-type", "values"),
        (found("{}", 40), "wrong-type", "values"),
        ({993: found("{}", 1)}, "unknown-claim", f"1 to {max(CLAIMS)}"),
        ({"33": found("{}", 1)}, "unknown-claim", "'33'"),
        ({33: [found("{}", 40)]}, "wrong-type", "claim 33"),
        ({33: 40}, "wrong-type", "claim 33"),
        ({33: None}, "wrong-type", "claim 33"),
        ({33: tried(None, None)}, "empty", "claim 33"),
        ({4: found("{}", 1)}, "no-number", "claim 4"),
        ({34: found("{}", 50)}, "wrong-length", "claim 34 prints 50, 80, 130 ms"),
    ],
)
def test_tables_refuse_what_cannot_be_judged(values: Any, code: str, words: str) -> None:
    with refusal(code, words):
        judged(values)


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


def test_a_claim_has_a_known_document_and_verdict_and_a_fault_if_it_is_wrong() -> None:
    with refusal("unknown-name", "verdict 'true'"):
        Claim(1, "report", "", "", "true", "")
    with refusal("unknown-name", "document 'reports'", "'report'"):
        Claim(1, "reports", "", "", "right", "")
    with refusal("unknown-name", "fault 'a lie'"):
        Claim(1, "report", "", "", "wrong", "", fault="a lie")
    for verdict, fault in (("wrong", ""), ("right", "false reason"), ("depends", "false statement")):
        with refusal("does-not-fit", f"claim 1 is {verdict}"):
            Claim(1, "report", "", "", verdict, "", fault=fault)


def test_only_all_claims_are_counted() -> None:
    one = judged({33: found("{}", 40)})
    with refusal("wrong-type", "judged()"):
        count_verdicts(one, one.rows)  # type: ignore[arg-type]
    with refusal("does-not-fit", ": 1, 2, 3"):
        count_verdicts(one)
    holds = {"right": (True,), "wrong": (False,), "depends": (True, False)}
    every = judged({number: tried(*holds[claim.verdict]) for number, claim in CLAIMS.items()})
    with pytest.raises(HybridLabError, match=r": 33$") as twice:
        count_verdicts(every, one)
    assert twice.value.code == "does-not-fit"
    verdicts = Counter(claim.verdict for claim in CLAIMS.values())
    assert count_verdicts(every).counts["all"] == verdicts
    last = str(count_verdicts(every)).splitlines()[-1].split()
    assert last == ["all", *(str(verdicts[each]) for each in VERDICTS), str(len(CLAIMS))]


# What it looks like


def test_a_table_is_rows_with_a_name_each_and_verdicts_in_words() -> None:
    ring_step = {"ten": found("{} {} {} {} <b>", 0, 20, 60, 140), "more <i>": found("{} {} {} {}", 0, 20, 30, 35)}
    rings = readings_of(
        lambda setting, counting: setting if counting else does_not_apply("none"), setting=ring_step, counting={"all": 1, "0": 0}
    )
    table = judged({45: rings, 39: found("{}", 3.44), 43: found("x", holds=False)})
    html = table._repr_html_()
    assert re.findall(r'<tr role="row" id="(claim-\d+)" data-verdict="(\w+)"', html) == [
        ("claim-45", "depends"), ("claim-39", "wrong"), ("claim-43", "wrong"),
    ]  # fmt: skip
    assert "140 &lt;b&gt;" in html
    assert html.count("<b>holds</b>") == html.count("<b>fails</b>") == 1
    assert html.count("<b>does not apply</b>") == 2
    assert "<i>setting</i>: ten, more &lt;i&gt;; <i>counting</i>: all, 0<" in html
    assert html.count("</span> wrong</span>") == 2
    assert [re.search(rf'claim-{number}.*?class="fault">([^<]*)<', html)[1] for number in (39, 43)] == [  # type: ignore[index]
        CLAIMS[39].fault, CLAIMS[43].fault,
    ]  # fmt: skip
    assert html.count('scope="row"') == 3
    assert html.count('scope="col"') == html.count('role="columnheader"') == 4
    assert 'href="bibliography.html#cite-patarasuk2009bandwidth">Patarasuk 2009<' in html
    assert 'href="../labs/lab06_hybrid_step.html">Lab\xa06<' in html
    text = str(table)
    assert "45. report, section 6.2, benchmark 3: depends." in text
    assert "Recomputed in 4 readings: holds: ten, all: 0 20 60 140 <b> does not apply: ten, 0: none fails:" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 96


def test_many_readings_of_a_claim_are_folded_below_their_counts() -> None:
    few, many = (judged({38: tried(True, False, None, *[False] * more)})._repr_html_() for more in (3, 4))
    assert "<details>" not in few
    assert "<p>7 readings: it holds in 1, it fails in 5, it does not apply in 1.</p>" in many
    assert many.count("<li>") == many.count("<li><b>holds</b>") == 1, "the reading that differs"
    assert many.count("<td>fails</td>") == 5
    same = judged({39: tried(*[False] * 7)})._repr_html_()
    assert "it fails in 7. For example:</p><ul><li><b>fails</b>" in same
    assert same.count("<li>") == 1


def test_labs_show_recorded_verdicts_with_their_fault() -> None:
    first, second = str(verdicts_on(39, 33)).split("\n33. ")
    assert first.startswith(f"39. {CLAIMS[39].text[:40]}")
    assert f"Printed: {CLAIMS[39].figures}" in " ".join(first.split())
    assert f"    WRONG ({CLAIMS[39].fault}). {CLAIMS[39].why[:20]}" in first
    assert "    RIGHT. " in second
    assert max(map(len, str(verdicts_on(*CLAIMS)).splitlines())) <= 96
    with refusal("empty", "verdicts(33)"):
        verdicts_on()
    with refusal("unknown-claim", "993"):
        verdicts_on(33, 993)


def test_each_fault_is_found_somewhere() -> None:
    assert {claim.fault for claim in CLAIMS.values() if claim.fault} == set(FAULTS)


# The ledger. Whether it has a gap is asked where the documents are, in `make outside`


def test_a_statement_has_claims_or_one_reason() -> None:
    for numbers, why in (((), ""), ((1,), "opinion")):
        with refusal("does-not-fit", "a word"):
            Passage("report", "abstract", "1", "a word", numbers, why)
    with refusal("unknown-name", "reason 'because'", "frame"):
        Passage("report", "abstract", "1", "a word", why="because")
    with refusal("unknown-name", "document 'lecture'"):
        Passage("lecture", "abstract", "1", "a word", (1,))


def test_the_ledger_links_known_claims_and_gives_known_reasons() -> None:
    html = LEDGER._repr_html_()
    linked = {int(number) for number in re.findall(r'href="#claim-(\d+)"', html)}
    assert linked == {number for number, claim in CLAIMS.items() if claim.document != "course"}
    assert set(re.findall(r"none: ([\w ]+)<", html)) <= set(NO_CLAIM)
    assert html.count("<details>") == html.count("<table>") == len(LEDGER.documents) == 5
    assert html.count('scope="row"') == len(LEDGER.statements) == sum(len(LEDGER.of(each).statements) for each in LEDGER.documents)
