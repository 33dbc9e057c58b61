"""The claims' tables in HTML: rows of claims, and a count of verdicts with bars. Links are those of the book's page."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from hybridlab.course.claims.claim import DOCUMENTS, VERDICTS, Claim, Finding

SIGNS = {"right": "✓", "wrong": "✗", "depends": "±"}
HEADS = ("Claim", "Printed", "Recomputed", "Verdict")


def row_table(rows: Iterable[tuple[Claim, tuple[Finding, ...]]]) -> str:
    """Return the table of claims; roles are written out, since a narrow page shows each row as a card."""
    body = [_row(claim, found) for claim, found in rows]
    heads = "".join(f'<th role="columnheader" scope="col">{head}</th>' for head in HEADS)
    head = f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
    return f'<table class="claims" role="table">{head}<tbody role="rowgroup">{"".join(body)}</tbody></table>'


def count_table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return the table of counts, each row with a bar of its verdicts; the bars are for the eye alone."""
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


def _row(claim: Claim, found: tuple[Finding, ...]) -> str:
    number = claim.number
    place = escape(f"{claim.document}, {claim.where}")
    title = f'<a href="#claim-{number}">{number}</a> <span class="place">{place}</span><span class="text">{_words(claim.text)}</span>'
    why = f"{_sign(claim.verdict)}<p>{_words(claim.why)}{_links(claim)}</p>"
    cells = (_words(claim.figures) or "no number", _findings(claim, found), why)
    rest = "".join(f'<td role="cell" data-head="{head}">{cell}</td>' for head, cell in zip(HEADS[1:], cells, strict=True))
    return f'<tr role="row" id="claim-{number}" data-verdict="{claim.verdict}"><th role="rowheader" scope="row">{title}</th>{rest}</tr>'


def _findings(claim: Claim, found: tuple[Finding, ...]) -> str:
    """Return the findings, a line each; where the verdict depends on them, each says whether the claim holds."""
    depends = claim.verdict == "depends"
    message = [f"<b>{'holds' if each.agrees(claim) else 'does not'}:</b> " * depends + _words(each.text) for each in found]
    return message[0] if len(message) == 1 else "<ul>" + "".join(f"<li>{each}</li>" for each in message) + "</ul>"


def _words(text: str) -> str:
    """Return the text in HTML, units kept on the line of their number.

    >>> _words("1210 ms < 3.3 %")
    '1210\xa0ms &lt; 3.3\xa0%'
    """
    return re.sub(r"(?<=\d) (?=(?:%|ms|s|S|GB|GB/s|TFLOP/s)(?![\w/]))", "\xa0", escape(text))


def _links(claim: Claim) -> str:
    papers: list[Any] = [(f"bibliography.html#cite-{key}", _name(key)) for key in claim.sources]
    labs = [(f"../labs/{lab}.html", f"Lab\xa0{int(lab[3:5])}") for lab in claim.labs]
    links = ", ".join(f'<a href="{href}">{escape(text)}</a>' for href, text in papers + labs)
    return f' <span class="links">({links})</span>' if links else ""


def _name(key: str) -> str:
    """Return the first author and the year, which a key of the bibliography begins with.

    >>> _name("huang2019gpipe")
    'Huang 2019'
    """
    parts = re.match(r"([a-z]+)(\d{4})", key)
    return f"{parts[1].capitalize()} {parts[2]}" if parts else key


def _sign(verdict: str) -> str:
    return f'<span class="verdict {verdict}"><span aria-hidden="true">{SIGNS[verdict]}</span> {verdict}</span>'
