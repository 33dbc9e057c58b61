"""Claims with what was found of them: rows that are checked when they are made, as text and as a table of the book."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import NamedTuple

from hybridlab.checks import short_repr, whole_number
from hybridlab.course.claims.claim import VERDICTS, Claim, Finding
from hybridlab.course.claims.html import count_table, row_table
from hybridlab.course.claims.rows import CLAIMS
from hybridlab.errors import HybridLabError

WIDTH = 96  # columns of the text form


class Row(NamedTuple):
    """A claim, and what was found of it."""

    claim: Claim
    found: tuple[Finding, ...]

    def __str__(self) -> str:
        holds = [("holds: " if each.agrees(self.claim) else "does not: ") * (self.claim.verdict == "depends") for each in self.found]
        message = "; ".join(held + each.text for held, each in zip(holds, self.found, strict=True))
        return "\n".join((fill(str(self.claim), WIDTH), *(fill(each, WIDTH, initial_indent="    ", subsequent_indent="    ")
                          for each in (f"Recomputed: {message}", self.claim.why))))  # fmt: skip


@dataclass(frozen=True, repr=False)
class Judged:
    """Claims, each with what was found and a verdict that follows from it. ``str()`` is text; in the book it is a table."""

    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        return "\n".join(map(str, self.rows))

    def _repr_html_(self) -> str:
        return row_table(self.rows)


@dataclass(frozen=True, repr=False)
class Counts:
    """How many claims have which verdict: ``counts`` by document, then by verdict, and in all."""

    counts: Mapping[str, Mapping[str, int]]

    def __repr__(self) -> str:
        lines = [f"{'':12}" + "".join(f"{verdict:>9}" for verdict in (*VERDICTS, "all"))]
        for name, row in self.counts.items():
            lines.append(f"{name:12}" + "".join(f"{number:9}" for number in (*row.values(), sum(row.values()))))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return count_table(self.counts)


def judged(first: int, last: int, values: Mapping[int, Finding | Sequence[Finding]]) -> Judged:
    """Return claims ``first`` to ``last`` with what was found of each, a verdict beside them that follows from it.

    ``values`` has what :func:`found` returned for every number, or a list, an entry for each way to read the claim or each
    setting. A claim that holds in all of them is right, in none wrong, and in some it depends. Raises :class:`HybridLabError` where
    that is not the verdict written down, and for a claim without a value or a value without a claim.

    >>> from hybridlab.course.claims import found
    >>> step = 9 * 130 + 40
    >>> print(judged(35, 35, {35: found("{} ms", step)}).rows[0].claim.verdict)
    right
    >>> judged(35, 35, {35: found("{} ms", step + 1)})
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: claim 35 is written down as right, but what was found makes it wrong: printed 1210 ms, found 1211 ms
    """
    wanted = range(whole_number(first, "first"), whole_number(last, "last") + 1)
    if not isinstance(values, Mapping):
        raise HybridLabError(f"values has for every claim what found() returned, such as {{35: found(...)}}, not {short_repr(values)}")
    missing = [number for number in wanted if number not in values or number not in CLAIMS]
    strange = [number for number in values if number not in wanted]
    if missing or strange or not wanted:
        message = [f"claims without a value: {short_repr(missing)}"] * bool(missing) + [
            f"values without a claim: {short_repr(strange)}"
        ] * bool(strange)
        raise HybridLabError(f"claims {first} to {last} need a value each; {', '.join(message) or 'there are none'}")
    return Judged(tuple(_row(CLAIMS[number], values[number]) for number in wanted))


def counted(*tables: Judged) -> Counts:
    """Return how many claims have which verdict; raise :class:`HybridLabError` unless all are there, each once.

    >>> counted()
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: every claim must be judged once; not so: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 66 more
    """
    for table in tables:
        if not isinstance(table, Judged):
            raise HybridLabError(f"counted takes what judged() returned, table by table, not {short_repr(table)}")
    judged_ones = [row.claim for table in tables for row in table.rows]
    odd = [number for number in CLAIMS if judged_ones.count(CLAIMS[number]) != 1]
    if odd:
        more = f" and {len(odd) - 10} more" if len(odd) > 10 else ""
        raise HybridLabError(f"every claim must be judged once; not so: {', '.join(map(str, odd[:10]))}{more}")
    documents = dict.fromkeys(claim.document for claim in judged_ones)
    kept = {name: [claim.verdict for claim in judged_ones if claim.document == name] for name in documents}
    kept["all"] = [claim.verdict for claim in judged_ones]
    return Counts({name: {verdict: verdicts.count(verdict) for verdict in VERDICTS} for name, verdicts in kept.items()})


def _row(claim: Claim, value: Finding | Sequence[Finding]) -> Row:
    given = tuple(value) if isinstance(value, Sequence) else (value,)
    row = Row(claim, tuple(each for each in given if isinstance(each, Finding)))
    if not row.found or len(row.found) < len(given):
        raise HybridLabError(f"claim {claim.number} needs what found() returns, one or a list, not {short_repr(value)}")
    holds = {each.agrees(claim) for each in row.found}
    verdict = "depends" if len(holds) > 1 else "right" if holds.pop() else "wrong"
    if verdict != claim.verdict:
        message = f"claim {claim.number} is written down as {claim.verdict}, but what was found makes it {verdict}"
        texts = "; ".join(each.text for each in row.found)
        raise HybridLabError(f"{message}: printed {claim.figures or 'no number'}, found {texts}")
    return row
