"""Small faults of the theme's HTML that keep readers with a screen reader or without a mouse from what a page holds."""

import re

MENDED = (
    # a name that differs from the words on the button: who says the words aloud does not reach it
    (re.compile(r'(<summary\b[^>]*)\s+aria-label="Toggle hidden content"'), r"\1"),
    (re.compile(r'(<button class="btn search-button-field[^>]*)\s+aria-label="Search"'), r"\1"),
    # a list of references that has no items by their roles, which are out of date besides
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
    (re.compile(r' role="doc-(?:biblioentry|backlink)"'), ""),
    # title and search stand outside all regions of the page
    (re.compile(r'<div id="pst-primary-sidebar" '), '<div id="pst-primary-sidebar" role="region" aria-label="Site" '),
    # pages that Sphinx makes itself have no title to print
    (re.compile(r'<div id="jb-print-docs-body".*?<h1></h1>', re.DOTALL), lambda match: match[0].replace("<h1></h1>", "")),
)


def mended(page: str) -> str:
    """Return the page without these faults."""
    for fault, right in MENDED:
        page = fault.sub(right, page)
    return page
