"""Test that stored figures are those that the published documents print, that the ledger has no gap, and that our words are our own."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import published_figures as figures
import pytest
from beside import DATA, DOCUMENTS
from cases import in_turn
from published_data import is_printed

from hybridlab.course.claims import CLAIMS, Claim
from hybridlab.course.claims.ledger import LEDGER, Passage

COUNTED = {75: r"^\d\t", 76: r"^\d+\t\d+\t\d\t\w", 111: r"R\d+\(S\d\)"}  # rows and columns of the printed tables
RUN = 7  # so many equal words in a row are no coincidence
LONGEST = 8  # lines of text without a claim; program code, the only longer part, is named "code"
LINES = {name: figures.text(file).split("\n") for name, file in DOCUMENTS.items()}
OURS = tuple(claim for claim in CLAIMS.values() if claim.document in DOCUMENTS)  # a public course is not among the documents
HEADINGS = {  # how a place of the ledger is called below such a line
    "report": {
        r"In \[1\]": "program",
        r"1\. Abstract": "abstract",
        r"9\. References": "section 9",
        r"(\d\.\d(?:\.\d)?) ": r"section \1",
        r"(Test|Benchmark|Choice) (\d)": r", \1 \2",
    },
    "notes": {r"(\d)\. ": r"section \1"},
    "sweeps": {r"##+ ([\w/]+)": r"\1", "from pipeline": "program"},
}
each_claim = in_turn("claim", OURS)


def test_the_stored_figures_are_printed() -> None:
    """If this fails, `python tests/outside/published_figures.py` stores them again."""
    assert json.loads(figures.FILE.read_text(encoding="utf-8")) == figures.all_printed()


@pytest.mark.parametrize(
    ("stored", "document", "header"),
    [("published_step_grid.txt", "hybrid-report.txt", "Step\tR0(S0)"), ("published_event_log.txt", "event-timeline.txt", "Time\tRank")],
)
def test_the_stored_timelines_are_printed(stored: str, document: str, header: str) -> None:
    """They stand below the line that starts with ``header``, up to the closing rule."""
    lines = figures.text(document).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(header))
    end = next(number for number in range(start, len(lines)) if lines[number].startswith("====="))
    printed = [word for line in lines[start + 1 : end] for word in line.split() if set(word) != {"-"} or word == "-"]
    assert printed == [word for row in (DATA / stored).read_text(encoding="utf-8").splitlines()[1:] for word in row.split()]


# The ledger


def has_words(line: str) -> bool:
    return re.search(r"[^\W_]", line) is not None


@cache
def places(document: str) -> list[str]:
    """Return the place of each line, from the headings above it. It is empty in a document without headings."""
    place, below = "", []
    for line in LINES[document]:
        for pattern, name in HEADINGS.get(document, {}).items():
            if found := re.match(pattern, line):
                told = found.expand(name).lower()
                place = place.partition(",")[0] + told if told.startswith(",") else told
        below.append(place)
    return below


def gaps(statements: Sequence[Passage]) -> list[str]:
    """Return the lines that no statement has."""
    covered = {(each.document, line) for each in statements for first, last in each.spans for line in range(first, last + 1)}
    return [
        f"line {number} of the {document} is in no statement: {line}"
        for document, lines in LINES.items()
        for number, line in enumerate(lines, 1)
        if has_words(line) and (document, number) not in covered
    ]


def misplaced(statement: Passage) -> list[str]:
    """Return what is wrong with the lines of a statement: they do not exist, have no words, are too many, or are in another section."""
    told, lines = [], LINES[statement.document]
    for first, last in statement.spans:
        if not 1 <= first <= last <= len(lines) or not any(map(has_words, lines[first - 1 : last])):
            told.append(f"no words at {first}-{last}: {statement}")
        elif statement.why not in ("", "code") and last - first > LONGEST:
            told.append(f"too long, {first}-{last}: {statement}")
        elif statement.where != "throughout" and not statement.where.lower().startswith(places(statement.document)[first - 1]):
            told.append(f"not in {places(statement.document)[first - 1]}, {first}-{last}: {statement}")
    return told


def sections(where: str) -> set[str]:
    return set(re.findall(r"\d(?:\.\d)+", where))


def is_within(where: str, places: Sequence[str]) -> bool:
    """Return whether each section of a claim is, or contains, the section of one of its statements."""
    return all(any(own.startswith(each) for own in sections(" ".join(places))) for each in sections(where))


def unjudged(statements: Sequence[Passage]) -> list[str]:
    """Return the claims that no statement of their document has, or none in their sections, and the statements with unknown claims."""
    told = [f"no claim {number}: {each}" for each in statements for number in each.claims if number not in CLAIMS]
    for claim in OURS:
        given = [each for each in statements if claim.number in each.claims]
        places = [each.where for each in given]
        if claim.document not in {each.document for each in given} or not is_within(claim.where, places):
            told.append(f"claim {claim.number}, {claim.where}, stands {places or 'nowhere'}")
    return told


@cache
def runs(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1))


def copied(statement: Passage) -> list[str]:
    return [f"copied: {' '.join(each)}" for each in runs(statement.text) & runs(figures.text(DOCUMENTS[statement.document]))]


def faults(statements: Sequence[Passage]) -> list[str]:
    own = [fault for each in statements for fault in (*misplaced(each), *copied(each))]
    return [*gaps(statements), *unjudged(statements), *own]


def test_every_statement_of_the_documents_is_in_the_ledger() -> None:
    assert faults(LEDGER.statements) == []


def changed(claim: int, **how: str | tuple[int, ...]) -> Callable[[], list[Passage]]:
    """Return the ledger with a change of the first statement that has this claim."""
    at = next(at for at, each in enumerate(LEDGER.statements) if claim in each.claims)
    return lambda: [*LEDGER.statements[:at], replace(LEDGER.statements[at], **how), *LEDGER.statements[at + 1 :]]  # type: ignore[arg-type]


PLANTED = {
    "a statement is left out": (lambda: [each for each in LEDGER.statements if each.claims != (11,)], "line 386 of the report is in no"),
    "a line is forgotten": (changed(30, lines="541-545"), "line 546 of the report is in no statement"),
    "a line that is not there": (changed(60, lines="866 870"), "no words at 870-870"),
    "a line without words": (changed(103, lines="37 38"), "no words at 38-38: notes, section 3"),
    "a line of another section": (changed(20, lines="419 424"), "not in section 3.4, 424-424"),
    "a line of another test": (changed(41, lines="658-664 641"), "not in section 6.1, test 4, 641-641"),
    "a section that nothing judges": (changed(71, claims=(), why="opinion", lines="14-26"), "too long, 14-26"),
    "a claim is left out": (changed(93, claims=(55,)), "claim 93, section 8.3, stands nowhere"),
    "a claim in one of its two sections": (
        lambda: [replace(each, claims=(13,)) if each.claims == (12, 13) else each for each in LEDGER.statements],
        "claim 12, sections 3.2 and 4.2, stands",
    ),
    "an unknown claim": (changed(93, claims=(93, 993)), "no claim 993"),
    "a copied sentence": (changed(4, text=LINES["report"][338][:80]), "copied: modern deep learning models"),
}


@in_turn("fault", PLANTED)
def test_a_fault_of_the_ledger_is_seen(fault: str) -> None:
    planted, words = PLANTED[fault]
    assert [told for told in faults(planted()) if words in told], faults(planted())


# The claims


@each_claim
def test_printed_numbers_stand_where_the_ledger_says(claim: Claim) -> None:
    spans = [span for each in LEDGER.of(claim.document).statements if claim.number in each.claims for span in each.spans]
    text = "\n".join(line for first, last in spans for line in LINES[claim.document][first - 1 : last])
    if claim.number in COUNTED:
        text = str(len(re.findall(COUNTED[claim.number], text, re.MULTILINE)))
    for printed in claim.printed:
        for number in printed if isinstance(printed, tuple) else (printed,):
            assert is_printed(number, text), f"{number} is not in {spans}"


@in_turn("claim", CLAIMS.values())
def test_the_words_are_our_own(claim: Claim) -> None:
    theirs = figures.text(DOCUMENTS[claim.document]) if claim.document in DOCUMENTS else ""
    known = runs(theirs) | runs((DATA / "claims.md").read_text(encoding="utf-8"))
    assert not {" ".join(each) for each in (runs(claim.text) | runs(claim.why)) & known}
