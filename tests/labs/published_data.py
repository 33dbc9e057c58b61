"""The files in tests/data on the published documents: figures that they print, runs of their program, and claims with right values."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).resolve().parents[1] / "data"
PRINTED: dict[str, Any] = json.loads((DATA / "published_figures.json").read_text(encoding="utf-8"))
READINGS: list[Any] = json.loads((DATA / "claims_readings.json").read_text(encoding="utf-8"))["readings"]  # what its "about" says
RUNS: list[dict[str, Any]] = json.loads((DATA / "published_runs.json").read_text(encoding="utf-8"))["runs"]


class Row(NamedTuple):
    """A row of claims.md: the letter of the document, what is claimed and where, the verdict, and the right value."""

    letter: str
    claim: str
    verdict: str
    right: str


def claims() -> dict[int, Row]:
    """Return the rows of claims.md by their numbers."""
    found = {}
    for line in (DATA / "claims.md").read_text(encoding="utf-8").splitlines():
        if re.match(r"\| \d+ \|", line):
            number, letter, where, claim, verdict, *right = line.strip("| \n").split(" | ")
            found[int(number)] = Row(letter, f"{where} {claim}", verdict, " ".join(right))
    return found


def is_printed(number: float, text: str) -> bool:
    """Return whether the text has the number, or a longer number that is rounded to it."""
    told = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-\d+)?(?![\d]|\.\d)", text)
    decimals = len(repr(abs(number)).removesuffix(".0").partition(".")[2])
    return any(float(each) == abs(number) or (decimals > 3 and round(float(each), decimals) == abs(number)) for each in told)
