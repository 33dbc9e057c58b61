"""Tables of claims with their findings, and counts of verdicts. Tables and counts have a text form, and an HTML form for the book."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from types import MappingProxyType
from typing import Any, NamedTuple

from hybridlab.checks import short_repr, whole_number
from hybridlab.course.claims.claim import DOCUMENTS, VERDICTS, Claim, Finding
from hybridlab.course.claims.programs import PROGRAM_CLAIMS
from hybridlab.course.claims.report import REPORT_CLAIMS
from hybridlab.errors import HybridLabError

CLAIMS: Mapping[int, Claim] = MappingProxyType({claim.number: claim for claim in (*REPORT_CLAIMS, *PROGRAM_CLAIMS)})
WIDTH = 96  # characters in a line of the text form
SIGNS = {"right": "✓", "wrong": "✗", "depends": "±"}  # with a sign, readers who do not see colours can read the verdict
HEADS = ("Claim", "Printed", "Recomputed", "Verdict")


class Row(NamedTuple):
    """A claim with its findings.

    Parameters
    ----------
    claim : Claim
    found : tuple of Finding
    """

    claim: Claim
    found: tuple[Finding, ...]

    def __str__(self) -> str:
        findings = "; ".join(_holds_or_not(self.claim, each) + each.text for each in self.found)
        paragraphs = (f"Recomputed: {findings}", self.claim.why)
        indented = (fill(each, WIDTH, initial_indent="    ", subsequent_indent="    ") for each in paragraphs)
        return "\n".join((fill(str(self.claim), WIDTH), *indented))


@dataclass(frozen=True, repr=False)
class Judged:
    """Claims with their findings. Each verdict follows from the findings. The value prints as text, and as a table in the book.

    Parameters
    ----------
    rows : tuple of Row
    """

    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        return "\n".join(map(str, self.rows))

    def _repr_html_(self) -> str:
        return claims_html(self.rows)


@dataclass(frozen=True, repr=False)
class VerdictCounts:
    """The numbers of claims with each verdict.

    Parameters
    ----------
    counts : mapping
        The numbers by document, then by verdict. The key "all" has the sums over the documents.
    """

    counts: Mapping[str, Mapping[str, int]]

    def __repr__(self) -> str:
        lines = [f"{'':12}" + "".join(f"{verdict:>9}" for verdict in (*VERDICTS, "all"))]
        for name, row in self.counts.items():
            lines.append(f"{name:12}" + "".join(f"{number:9}" for number in (*row.values(), sum(row.values()))))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return counts_html(self.counts)


def judged(first: int, last: int, values: Mapping[int, Finding | Sequence[Finding]]) -> Judged:
    """Return claims ``first`` to ``last`` with their findings. Each verdict is checked first.

    The verdict must be "right" if the claim holds in all its findings, "wrong" if it holds in none, and "depends" otherwise.

    Parameters
    ----------
    first, last : int
        Numbers of the claims.
    values : mapping of int to Finding, or to a list of them
        The result of :func:`found` for each claim. If a claim can be read in several ways, or has several settings, give a list with one
        result for each.

    Raises
    ------
    HybridLabError
        The findings lead to another verdict than the claim's own, a claim has no value, or a value has no claim.

    Examples
    --------
    >>> from hybridlab.course.claims import found
    >>> step = 9 * 130 + 40
    >>> print(judged(35, 35, {35: found("{} ms", step)}).rows[0].claim.verdict)
    right
    >>> judged(35, 35, {35: found("{} ms", step + 1)})
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: claim 35 is recorded as right, but the findings make it wrong: printed 1210 ms, found 1211 ms
    """
    wanted = range(whole_number(first, "first"), whole_number(last, "last") + 1)
    if not isinstance(values, Mapping):
        raise HybridLabError(
            f"values must have a result of found() for each claim, such as {{35: found(...)}}, not {short_repr(values)}",
            "wrong-type",
        )
    missing = [number for number in wanted if number not in values or number not in CLAIMS]
    strange = [number for number in values if number not in wanted]
    if missing or strange or not wanted:
        faults = [f"claims without a value: {short_repr(missing)}"] if missing else []
        faults += [f"values without a claim: {short_repr(strange)}"] if strange else []
        raise HybridLabError(f"claims {first} to {last} need a value each; {', '.join(faults) or 'there are none'}", "does-not-fit")
    return Judged(tuple(_checked_row(CLAIMS[number], values[number]) for number in wanted))


def count_verdicts(*tables: Judged) -> VerdictCounts:
    """Return the numbers of claims with each verdict.

    Parameters
    ----------
    tables : Judged
        The results of :func:`judged`. Together they have every claim once.

    Raises
    ------
    HybridLabError
        A claim is missing or judged twice.

    Examples
    --------
    >>> count_verdicts()
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: every claim must be judged once, but these are not: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 66 more
    """
    for table in tables:
        if not isinstance(table, Judged):
            raise HybridLabError(f"count_verdicts takes the results of judged(), not {short_repr(table)}", "wrong-type")
    # The book's page says that its counts are for all claims, so a claim that the page leaves out must be an error.
    claims = [row.claim for table in tables for row in table.rows]
    odd = [number for number in CLAIMS if claims.count(CLAIMS[number]) != 1]
    if odd:
        more = f" and {len(odd) - 10} more" if len(odd) > 10 else ""
        raise HybridLabError(f"every claim must be judged once, but these are not: {', '.join(map(str, odd[:10]))}{more}", "does-not-fit")
    verdicts = {
        name: [claim.verdict for claim in claims if claim.document == name] for name in dict.fromkeys(each.document for each in claims)
    }
    verdicts["all"] = [claim.verdict for claim in claims]
    return VerdictCounts({name: {verdict: each.count(verdict) for verdict in VERDICTS} for name, each in verdicts.items()})


def claims_html(rows: Iterable[tuple[Claim, tuple[Finding, ...]]]) -> str:
    """Return claims as an HTML table."""
    # On a narrow page CSS shows each row as a card. Screen readers then no longer see a table, so ARIA roles name each element.
    body = "".join(_html_row(claim, findings) for claim, findings in rows)
    heads = "".join(f'<th role="columnheader" scope="col">{head}</th>' for head in HEADS)
    head = f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
    return f'<table class="claims" role="table">{head}<tbody role="rowgroup">{body}</tbody></table>'


def counts_html(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return counts of verdicts as an HTML table. Each row has a bar with the shares of the verdicts."""
    # Screen readers skip the bar, because the cells beside it have its numbers.
    heads = "".join(f'<th scope="col">{_sign(verdict)}</th>' for verdict in VERDICTS)
    rows = []
    for name, row in counts.items():
        total = sum(row.values())
        parts = "".join(f'<span class="{verdict}" style="flex-grow:{number}"></span>' for verdict, number in row.items())
        cells = "".join(f"<td>{number}</td>" for number in row.values())
        title = escape(DOCUMENTS.get(name, "all"))
        rows.append(f'<tr><th scope="row">{title}<span class="bar" aria-hidden="true">{parts}</span></th>{cells}<td>{total}</td></tr>')
    head = f'<thead><tr><th scope="col">Document</th>{heads}<th scope="col">all</th></tr></thead>'
    return f'<table class="claims-counts">{head}<tbody>{"".join(rows)}</tbody></table>'


def _checked_row(claim: Claim, value: Finding | Sequence[Finding]) -> Row:
    """Return the row of a claim, or raise an error if the findings contradict its verdict."""
    given = tuple(value) if isinstance(value, Sequence) else (value,)
    # The row takes only values that are findings. If another value is given, the row has fewer findings than values.
    row = Row(claim, tuple(each for each in given if isinstance(each, Finding)))
    if not row.found or len(row.found) < len(given):
        raise HybridLabError(f"claim {claim.number} needs a result of found(), or a list of them, not {short_repr(value)}", "wrong-type")
    # Findings that disagree show that the claim depends on the setting or on the reading.
    holds = {each.agrees(claim) for each in row.found}
    verdict = "depends" if len(holds) > 1 else "right" if holds.pop() else "wrong"
    if verdict != claim.verdict:
        fault = f"claim {claim.number} is recorded as {claim.verdict}, but the findings make it {verdict}"
        texts = "; ".join(each.text for each in row.found)
        raise HybridLabError(f"{fault}: printed {claim.figures or 'no number'}, found {texts}", "wrong-verdict")
    return row


def _holds_or_not(claim: Claim, finding: Finding) -> str:
    """Return "holds: " or "does not: " if the verdict on the claim is "depends". Otherwise return an empty text."""
    if claim.verdict != "depends":
        return ""
    return "holds: " if finding.agrees(claim) else "does not: "


def _html_row(claim: Claim, findings: tuple[Finding, ...]) -> str:
    """Return one row of the table of claims in HTML."""
    number = claim.number
    place = escape(f"{claim.document}, {claim.where}")
    title = f'<a href="#claim-{number}">{number}</a> <span class="place">{place}</span> <span class="text">{_html_text(claim.text)}</span>'
    why = f"{_sign(claim.verdict)}<p>{_html_text(claim.why)}{_links_of(claim)}</p>"
    cells = (_html_text(claim.figures) or "no number", _html_findings(claim, findings), why)
    rest = "".join(f'<td role="cell" data-head="{head}">{cell}</td>' for head, cell in zip(HEADS[1:], cells, strict=True))
    return f'<tr role="row" id="claim-{number}" data-verdict="{claim.verdict}"><th role="rowheader" scope="row">{title}</th>{rest}</tr>'


def _html_findings(claim: Claim, findings: tuple[Finding, ...]) -> str:
    """Return the findings in HTML, one line for each. If the verdict is "depends", each line says whether the claim holds."""
    bold = [f"<b>{word.strip()}</b> " if word else "" for word in (_holds_or_not(claim, each) for each in findings)]
    items = [word + _html_text(each.text) for word, each in zip(bold, findings, strict=True)]
    return items[0] if len(items) == 1 else "<ul>" + "".join(f"<li>{each}</li>" for each in items) + "</ul>"


def _html_text(text: str) -> str:
    r"""Return the text in HTML, with no line break between a number and its unit.

    >>> _html_text("1210 ms < 3.3 %")
    '1210\xa0ms &lt; 3.3\xa0%'
    """
    # A line that begins with a unit is hard to read, so the line must not break between a number and its unit.
    return re.sub(r"(?<=\d) (?=(?:%|ms|s|S|GB|GB/s|TFLOP/s)(?![\w/]))", "\xa0", escape(text))


def _links_of(claim: Claim) -> str:
    """Return links to the papers and the labs of a claim, in HTML. The addresses are relative to the book's page on the claims."""
    papers: list[Any] = [(f"bibliography.html#cite-{key}", _author_and_year(key)) for key in claim.sources]
    labs = [(f"../labs/{lab}.html", f"Lab\xa0{int(lab[3:5])}") for lab in claim.labs]
    links = ", ".join(f'<a href="{href}">{escape(text)}</a>' for href, text in papers + labs)
    return f' <span class="links">({links})</span>' if links else ""


def _author_and_year(key: str) -> str:
    """Return the first author and the year from the beginning of a key in the bibliography.

    >>> _author_and_year("huang2019gpipe")
    'Huang 2019'
    """
    # A key consists of the first author, the year and words of the title.
    parts = re.match(r"([a-z]+)(\d{4})", key)
    return f"{parts[1].capitalize()} {parts[2]}" if parts else key


def _sign(verdict: str) -> str:
    """Return a verdict in HTML, as a sign and a word. Screen readers skip the sign."""
    return f'<span class="verdict {verdict}"><span aria-hidden="true">{SIGNS[verdict]}</span> {verdict}</span>'
