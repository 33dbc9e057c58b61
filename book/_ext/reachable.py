"""Corrects small faults of the theme's HTML that hinder readers with a screen reader or without a mouse."""

import re

MENDED = (
    # a name that differs from the words on the button: speech control does not find the button by its words
    (re.compile(r'(<summary\b[^>]*)\s+aria-label="Toggle hidden content"'), r"\1"),
    (re.compile(r'(<button class="btn search-button-field[^>]*)\s+aria-label="Search"'), r"\1"),
    # a list of references in which no element has the role of an item; the roles of its elements are also out of date
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
    (re.compile(r' role="doc-(?:biblioentry|backlink)"'), ""),
    # title and search are outside all regions of the page
    (re.compile(r'<div id="pst-primary-sidebar" '), '<div id="pst-primary-sidebar" role="region" aria-label="Site" '),
    # a second and a third tag of the same kind: one is from docutils, one from the theme
    (re.compile(r'<meta name="viewport" content="width=device-width, initial-scale=1"\s*/>\s*'), ""),
    # the words of a search are marked in this element; without its class they are marked in the sidebars, too
    (re.compile(r'<div class="bd-article-container">'), '<div class="bd-article-container body">'),
    # pages that Sphinx itself makes have an empty title for printing
    (re.compile(r'<div id="jb-print-docs-body".*?<h1></h1>', re.DOTALL), lambda match: match[0].replace("<h1></h1>", "")),
)


def mended(page: str) -> str:
    """Return the page without these faults."""
    for fault, right in MENDED:
        page = fault.sub(right, page)
    return page
