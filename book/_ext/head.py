"""What search engines, previews of shared links and browsers read of a page: a description, a card, the page's address, its icons.

`llms.txt` names every page with one sentence, for programs that answer questions about the site (llmstxt.org).

Some of it needs the address of the published site: the setting `baseurl` of `_config.yml`, or the environment variable HYBRIDLAB_SITE,
which comes first. Without an address these parts are left out: the canonical link, the picture of the card, and `sitemap.xml`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from html import escape, unescape
from itertools import takewhile
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

from docutils import nodes
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

VARIABLE = "HYBRIDLAB_SITE"
LONGEST = 160  # characters of a description: search engines cut longer ones
PICTURE, PICTURE_SIZE = "_static/first_screen.png", (1152, 950)  # px
PICTURE_WORDS = "Timelines of two schedules, 1F1B above ZB-H1, on four devices, with the memory curve below each device"
ICONS = {"icon": "favicon.ico", "apple-touch-icon": "touch_icon.png"}  # beside the SVG; drawn from it
GENERATED = {  # title and description of pages that Sphinx makes: they have no text of their own
    "search": ("Search", "Search this course on hybrid parallel training: its labs, its glossary, and all names of the library."),
    "genindex": ("Index", "All terms and names of this course on hybrid parallel training, in alphabetical order."),
    "py-modindex": ("Modules", "All Python modules of hybridlab, the library of this course on hybrid parallel training."),
}
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
TAG = re.compile(r"<[^>]+>")
DESCRIPTION = re.compile(r'<meta name="description" content="([^"]*)"')


class Card(NamedTuple):
    """What a search engine or a preview shows of a page."""

    title: str
    description: str
    address: str  # of the page; empty where the site has none
    picture: str
    site: str


def site_address(config: Config) -> str:
    """Return the address of the published site with a slash at its end, or an empty text.

    Raises
    ------
    ExtensionError
        The address is not one of the web.
    """
    address = os.environ.get(VARIABLE) or config.html_baseurl or ""
    if address and not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", address):
        raise ExtensionError(f"the site's address begins with https:// and has no ? or #, which {address!r} does not: see {VARIABLE}")
    return address.rstrip("/") + "/" if address else ""


def description(document: nodes.document) -> str:
    """Return the first sentences of the page that fit in a description; if they are short, the first words that fit."""
    sentences = [each for paragraph in opening(document) for each in SENTENCE_END.split(paragraph)]
    told = ""
    for each in takewhile(lambda sentence: not sentence.endswith(":"), sentences):
        if len(f"{told} {each}") > LONGEST:
            break
        told = f"{told} {each}".strip()
    return told if len(told) > LONGEST / 2 else shorten(" ".join(sentences), LONGEST, placeholder=" …")


def opening(document: nodes.document) -> Iterator[str]:
    """Yield the text of the paragraphs of the page that stand in no list, note or output; the first page has them in its opening."""
    for paragraph in document.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section) or "opening" in paragraph.parent.get("classes", ()):
            copy = paragraph.deepcopy()
            for formula in list(copy.findall(nodes.math)):
                plain = formula.astext()
                formula.parent.replace(formula, nodes.Text("…" if "\\" in plain else plain))
            yield " ".join(copy.astext().split())


def tags(card: Card) -> str:
    """Return the tags of a page's head that tell its description and its card."""
    named = {"description": card.description, "twitter:card": "summary_large_image" if card.picture else "summary"}
    about = {"og:type": "website", "og:site_name": card.site, "og:title": card.title, "og:description": card.description}
    if card.address:
        about |= {"og:url": card.address}
    if card.picture:
        width, height = map(str, PICTURE_SIZE)
        about |= {"og:image": card.picture, "og:image:alt": PICTURE_WORDS, "og:image:width": width, "og:image:height": height}
    lines = [f'<meta name="{name}" content="{escape(value)}" />' for name, value in named.items()]
    lines += [f'<meta property="{name}" content="{escape(value)}" />' for name, value in about.items()]
    return "\n    ".join(lines)


def icon_links(root: str) -> str:
    """Return the tags of the icons for browsers that take no SVG; ``root`` is the path from the page to the top of the site."""
    sizes = {"icon": ' sizes="32x32"', "apple-touch-icon": ""}
    return "\n    ".join(f'<link rel="{kind}" href="{root}_static/{name}"{sizes[kind]} />' for kind, name in ICONS.items())


def sitemap(addresses: Iterable[str]) -> str:
    """Return the list of all pages for search engines (sitemaps.org, protocol 0.9)."""
    lines = "".join(f"<url><loc>{escape(each)}</loc></url>\n" for each in sorted(addresses))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{lines}</urlset>\n'


def robots(address: str) -> str:
    """Return the file that allows search engines all pages, and leads them to the list."""
    return "User-agent: *\nAllow: /\n" + (f"Sitemap: {address}sitemap.xml\n" if address else "")


def in_order(pages: Mapping[str, Iterable[str]], first: str) -> list[str]:
    """Return the names of pages as a reader meets them. ``pages`` has the pages that each page lists.

    >>> in_order({"intro": ["start", "labs"], "labs": ["lab01"]}, "intro")
    ['intro', 'start', 'labs', 'lab01']
    """
    return list(dict.fromkeys([first, *(name for listed in pages.get(first, ()) for name in in_order(pages, listed))]))


def for_models(cards: Iterable[Card]) -> str:
    """Return the file with every page in one line: its title, its address and its description. The first card is that of the first page."""
    first, *others = cards
    lines = [f"- [{card.title}]({card.address}): {card.description}" for card in (first, *others)]
    return "\n".join([f"# {first.site}", "", f"> {first.description}", "", "## Pages", "", *lines, ""])


def take_address(app: Sphinx, config: Config) -> None:
    """Store the site's address where Sphinx looks for it when it writes the canonical links."""
    config.html_baseurl = site_address(config)


def add_tags(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Put the tags at the top of the page's head."""
    address = app.config.html_baseurl
    title, told = GENERATED.get(pagename) or (context.get("title", ""), description(doctree) if doctree else "")
    card = Card(
        title=unescape(TAG.sub("", title)),
        description=told,
        address=address and f"{address}{pagename}.html",
        picture=address and address + PICTURE,
        site=app.config.html_title or app.config.project,
    )
    context["metatags"] = f"{context.get('metatags', '')}\n    {tags(card)}\n    {icon_links(context['content_root'])}"


def write_files(app: Sphinx, failed: Exception | None) -> None:
    """Write what is asked for at the top of the site: `robots.txt`, `sitemap.xml`, `llms.txt`, `favicon.ico`."""
    if failed or app.builder.format != "html":
        return
    site, address = Path(app.outdir), app.config.html_baseurl
    (site / "robots.txt").write_text(robots(address), encoding="utf-8")
    (site / "sitemap.xml").unlink(missing_ok=True)
    if address:
        (site / "sitemap.xml").write_text(sitemap(f"{address}{name}.html" for name in app.env.found_docs), encoding="utf-8")
    title = app.config.html_title or app.config.project
    cards = []
    for name in in_order(app.env.toctree_includes, app.config.root_doc):
        # from the written page, in which all references and numbers are resolved
        [told] = DESCRIPTION.findall((site / f"{name}.html").read_text(encoding="utf-8"))
        cards.append(Card(app.env.titles[name].astext(), unescape(told), f"{address}{name}.html", "", title))
    (site / "llms.txt").write_text(for_models(cards), encoding="utf-8")
    shutil.copy(site / "_static" / ICONS["icon"], site)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", take_address)
    app.connect("html-page-context", add_tags)
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
