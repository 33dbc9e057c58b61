"""Test that the stored figures are those that the published documents print, and that the words of the course are its own."""

import json
import re
from functools import cache

import published_figures as figures
import pytest
from beside import DATA
from cases import in_turn

from hybridlab.course.claims import CLAIMS, Claim

DOCUMENTS = {
    "report": "hybrid-report.txt",
    "notes": "implementation-notes.txt",
    "simulator": "hybrid-simulator.txt",
    "event log": "event-timeline.txt",
}
COUNTED = {75: r"^\d\t", 76: r"^\d+\t\d+\t\d\t\w"}  # the rows of the printed tables
RUN = 7  # so many equal words in a row are no coincidence
each_claim = in_turn("claim", CLAIMS.values())


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


@each_claim
def test_printed_numbers_stand_in_the_document(claim: Claim) -> None:
    text = figures.text(DOCUMENTS[claim.document])
    if claim.number in COUNTED:
        text = str(len(re.findall(COUNTED[claim.number], text, re.MULTILINE)))
    for printed in claim.printed:
        for number in printed if isinstance(printed, tuple) else (printed,):
            as_written = re.escape(repr(number).removesuffix(".0"))
            assert re.search(rf"(?<![\d.]){as_written}(?:\.0+)?(?![\d]|\.\d)", text), f"{number} is not in {DOCUMENTS[claim.document]}"


@cache
def runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}


@each_claim
def test_the_words_are_our_own(claim: Claim) -> None:
    theirs = runs(figures.text(DOCUMENTS[claim.document])) | runs((DATA / "claims.md").read_text(encoding="utf-8"))
    assert not {" ".join(each) for each in (runs(claim.text) | runs(claim.why)) & theirs}
