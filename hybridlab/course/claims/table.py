"""Tables of claims with their findings, and counts of verdicts. Tables and counts have a text form, and an HTML form for the book."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from textwrap import fill
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.course.claims.claim import DOCUMENTS, VERDICTS, Claim, Finding, Readings
from hybridlab.course.claims.programs import PROGRAM_CLAIMS
from hybridlab.course.claims.report_concepts import CONCEPT_CLAIMS
from hybridlab.course.claims.report_results import RESULT_CLAIMS
from hybridlab.course.claims.report_tests import TEST_CLAIMS
from hybridlab.course.claims.sweeps import SWEEP_CLAIMS
from hybridlab.errors import HybridLabError

_ALL = (*CONCEPT_CLAIMS, *TEST_CLAIMS, *RESULT_CLAIMS, *PROGRAM_CLAIMS, *SWEEP_CLAIMS)
CLAIMS: Mapping[int, Claim] = MappingProxyType({claim.number: claim for claim in sorted(_ALL, key=lambda claim: claim.number)})
WIDTH = 76  # characters in a line of the text form; a page shows as many in a line of code
PARAGRAPH: Mapping[str, Any] = {"width": WIDTH, "initial_indent": " " * 4, "subsequent_indent": " " * 4}
READING: Mapping[str, Any] = {"width": WIDTH, "initial_indent": " " * 6, "subsequent_indent": " " * 10}
SHOWN = 6  # so many readings of a claim stand in the HTML form without a fold
COUNTED = {"holds": "it holds in {}", "fails": "it fails in {}", "does not apply": "it does not apply in {}"}
SIGNS = {"right": "✓", "wrong": "✗", "depends": "±"}  # with a sign, readers who do not see colours can read the verdict
HEADS = ("Claim", "Printed", "Recomputed", "Verdict")


class Row(NamedTuple):
    """A claim with its readings.

    Parameters
    ----------
    claim : Claim
    readings : Readings
    """

    claim: Claim
    readings: Readings

    @property
    def found(self) -> tuple[Finding, ...]:
        """The findings of the readings that apply."""
        return tuple(each for each in self.readings.findings if each.applies)

    def __str__(self) -> str:
        lines = [f"{holds}: {words}: {text}" if holds else text for holds, words, text in _lines(self)]
        first = fill(f"Recomputed: {lines[0]}" if len(lines) == 1 else f"Recomputed in {len(lines)} readings:", **PARAGRAPH)
        rest = (fill(each, **READING) for each in (lines if len(lines) > 1 else ()))
        indented = (first, *rest, fill(self.claim.why, **PARAGRAPH))
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
class Verdicts:
    """Recorded verdicts on some claims. The value prints as text.

    Parameters
    ----------
    claims : tuple of Claim
    """

    claims: tuple[Claim, ...]

    def __repr__(self) -> str:
        indented = {"initial_indent": "    ", "subsequent_indent": "    "}
        return "\n".join(
            f"{fill(said, WIDTH, subsequent_indent='    ')}\n{fill(f'{verdict.upper()}{rest}', WIDTH, **indented)}"  # type: ignore[arg-type]
            for said, verdict, rest in self._texts()
        )

    def _repr_html_(self) -> str:
        rows = (f"<dt>{_html_text(said)}</dt><dd>{_sign(verdict)}{_html_text(rest)}</dd>" for said, verdict, rest in self._texts())
        return f'<dl class="verdicts">{"".join(rows)}</dl>'

    def _texts(self) -> Iterator[tuple[str, str, str]]:
        """Yield for each claim its number with what it says, its verdict, and the rest of the sentence about the verdict."""
        for claim in self.claims:
            printed = f" Printed: {claim.figures}" if claim.printed else ""
            fault = f" ({claim.fault})" if claim.fault else ""
            yield f"{claim.number}. {claim.text}{printed}", claim.verdict, f"{fault}. {claim.why}"


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


def judged(values: Mapping[int, Finding | Readings]) -> Judged:
    """Return claims with what was found for them. Each verdict is checked first.

    The verdict must be "right" if the claim holds in all readings that apply, "wrong" if it holds in none, and "depends" otherwise.

    Parameters
    ----------
    values : mapping of int to Finding or Readings
        For the number of each claim the result of :func:`found`; if a claim can be read in several ways, the result of :func:`readings`.

    Raises
    ------
    HybridLabError
        The findings lead to another verdict than the claim's own, a number is not that of a claim, or a value is of another type.

    Examples
    --------
    >>> from hybridlab.course.claims import found
    >>> step = 9 * 130 + 40
    >>> print(judged({33: found("{} ms", 2 * 20)}).rows[0].claim.verdict)
    right
    >>> judged({33: found("{} ms", 2 * 20 + 1)})
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: claim 33 is recorded as right, but the findings make it wrong: printed 40 ms, found 41 ms
    """
    if not isinstance(values, Mapping) or not values:
        raise HybridLabError(
            f"values must have a result of found() for each claim, such as {{33: found(...)}}, not {short_repr(values)}",
            "wrong-type",
        )
    return Judged(tuple(_checked_row(checked_claim(number), value) for number, value in values.items()))


def checked_claim(number: object) -> Claim:
    """Return the claim with this number, or raise an error that names the numbers that there are."""
    if not isinstance(number, (int, np.integer)) or number not in CLAIMS:
        raise HybridLabError(f"there is no claim {short_repr(number)}: the claims have the numbers 1 to {max(CLAIMS)}", "unknown-claim")
    return CLAIMS[number]  # type: ignore[index]


def verdicts(*numbers: int) -> Verdicts:
    """Return the recorded verdicts on some claims, as the labs show them. The book's page on the claims computes each of them.

    Parameters
    ----------
    numbers : int
        Numbers of claims.

    Raises
    ------
    HybridLabError
        There is no claim with this number, or no number is given.

    Examples
    --------
    >>> verdicts(33)
    33. The ring all-reduce takes 2(D-1) steps of 20 ms, 40 ms in all. Printed: 40 ms
        RIGHT. The all-reduce of the report's two replicas takes 40 ms; claim 45 asks whether a ring
        step takes as long with more replicas.
    """
    if not numbers:
        raise HybridLabError("verdicts() needs the number of a claim, such as verdicts(33)", "empty")
    return Verdicts(tuple(map(checked_claim, numbers)))


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


def claims_html(rows: Iterable[Row]) -> str:
    """Return claims as an HTML table."""
    # On a narrow page CSS shows each row as a card. Screen readers then no longer see a table, so ARIA roles name each element.
    body = "".join(_html_row(row) for row in rows)
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


def _checked_row(claim: Claim, value: object) -> Row:
    """Return the row of a claim, or raise an error if the findings contradict its verdict."""
    row = Row(claim, Readings({}, (value,)) if isinstance(value, Finding) else value)  # type: ignore[arg-type]
    if not isinstance(row.readings, Readings):
        raise HybridLabError(f"claim {claim.number} needs a result of found() or of readings(), not {short_repr(value)}", "wrong-type")
    if not row.found:
        raise HybridLabError(f"claim {claim.number} has no reading that applies", "empty")
    # Findings that disagree show that the claim depends on the setting or on the reading.
    holds = {each.agrees(claim) for each in row.found}
    verdict = "depends" if len(holds) > 1 else "right" if holds.pop() else "wrong"
    if verdict != claim.verdict:
        fault = f"claim {claim.number} is recorded as {claim.verdict}, but the findings make it {verdict}"
        texts = "; ".join(each.text for each in row.found)
        raise HybridLabError(f"{fault}: printed {claim.figures or 'no number'}, found {texts}", "wrong-verdict")
    return row


def _lines(row: Row) -> list[tuple[str, str, str]]:
    """Return for each reading whether the claim holds, the words of its choices, and the finding. With one reading the first are empty."""
    if not row.readings.axes:
        return [("", "", row.found[0].text)]
    holds = {True: "holds", False: "fails", None: "does not apply"}
    return [
        (holds[each.agrees(row.claim) if each.applies else None], ", ".join(words), each.text)
        for words, each in zip(row.readings.combinations, row.readings.findings, strict=True)
    ]


def _html_row(row: Row) -> str:
    """Return one row of the table of claims in HTML; if there are many readings, with a row below that has them folded."""
    claim, number = row.claim, row.claim.number
    place = escape(f"{claim.document}, {claim.where}")
    title = f'<a href="#claim-{number}">{number}</a> <span class="place">{place}</span> <span class="text">{_html_text(claim.text)}</span>'
    fault = f': <span class="fault">{claim.fault}</span>' if claim.fault else ""
    why = f"{_sign(claim.verdict)}{fault}<p>{_html_text(claim.why)}{_links_of(claim)}</p>"
    cells = (_html_text(claim.figures) or "no number", _html_findings(row), why)
    rest = "".join(f'<td role="cell" data-head="{head}">{cell}</td>' for head, cell in zip(HEADS[1:], cells, strict=True))
    first = f'<tr role="row" id="claim-{number}" data-verdict="{claim.verdict}"><th role="rowheader" scope="row">{title}</th>{rest}</tr>'
    return first + (_html_all_readings(row) if len(row.readings.findings) > SHOWN else "")


def _html_findings(row: Row) -> str:
    """Return the findings in HTML: a line for each reading; of many, the counts and the few readings that differ from the others.

    If more than a few differ, there is one example of each kind.
    """
    lines = _lines(row)
    if not row.readings.axes:
        return _html_text(lines[0][-1])
    if len(lines) <= SHOWN:
        return _html_axes(row) + _html_list(lines)
    tally = Counter(holds for holds, _, _ in lines)
    counts = ", ".join(COUNTED[holds].format(tally[holds]) for holds in COUNTED if tally[holds])
    of_kind = {holds: [each for each in lines if each[0] == holds] for holds in ("holds", "fails") if tally[holds]}
    few = min(of_kind.values(), key=len)
    many = len(few) > SHOWN or len(few) == len(lines)
    told = [each[0] for each in of_kind.values()] if many else few
    return f"<p>{len(lines)} readings: {counts}.{' For example:' if many else ''}</p>{_html_list(told)}"


def _html_all_readings(row: Row) -> str:
    """Return a row of the table with all readings of a claim, folded: a column for each axis, the finding and the result."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in (*row.readings.axes, "found", "the claim"))
    body = "".join(
        f"<tr>{''.join(f'<td>{_html_text(word)}</td>' for word in (*words, text, holds))}</tr>"
        for words, (holds, _, text) in zip(row.readings.combinations, _lines(row), strict=True)
    )
    title = f"All {len(row.readings.findings)} readings of claim {row.claim.number}"
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    fold = f"<details><summary>{title}</summary>{_html_axes(row)}{table}</details>"
    return f'<tr role="row" class="readings"><td role="cell" colspan="{len(HEADS)}">{fold}</td></tr>'


def _html_axes(row: Row) -> str:
    axes = "; ".join(f"<i>{name}</i>: {_html_text(', '.join(words))}" for name, words in row.readings.axes.items())
    return f'<p class="axes">{axes}</p>'


def _html_list(lines: Iterable[tuple[str, str, str]]) -> str:
    items = (f'<b>{holds}</b> <span class="reading">{_html_text(words)}:</span> {_html_text(text)}' for holds, words, text in lines)
    return f"<ul>{''.join(f'<li>{each}</li>' for each in items)}</ul>"


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
