"""Read the files of a built site, and find their faults.

Faults are, for example, addresses on other hosts, dead links and pictures without alternative text.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

LOADING = {"src", "data", "action", "formaction", "poster", "background", "manifest", "ping"}  # a browser fetches these addresses
ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
OWN = re.compile(r"(?:data|blob|about|mailto|javascript):", re.IGNORECASE)
IN_STYLE = re.compile(r"""url\(\s*(["']?)(.*?)\1\s*\)|@import\s+(["'])(.*?)\3""", re.IGNORECASE | re.DOTALL)
IN_SCRIPT = re.compile(
    r"""(?:\b(?:import|from|fetch|importScripts|Worker|EventSource|WebSocket|sendBeacon|open)\b\s*\(?"""
    r"""|\.(?:src|href|action)\s*=|["'](?:GET|POST)["']\s*,)\s*(["'`])((?:(?:https?|wss?):)?//[^"'`\s]+)\1""",
    re.IGNORECASE,
)
WIDGET = "application/vnd.jupyter.widget-view+json"
SETTING = re.compile(r"view(\d*)\?.+")  # a link that sets a widget of the page: the first of its section, or the one with this number
FILE_NAME = re.compile(r"\S+\.(?:png|svg|jpe?g|gif|webp)", re.IGNORECASE)


class Parsed(HTMLParser):
    """A parsed page.

    A browser fetches the addresses in ``loads`` by itself. A reader may follow the addresses in ``links``.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.alternatives: list[tuple[str, str]] = []  # (address, alternative text) of each picture
        self.widgets = 0
        self.language = self.title = ""
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, pairs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in pairs}
        self._inside = tag
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.loads += [value for name, value in given.items() if name in LOADING]
        self.loads += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        self.loads += addresses_in_style(given.get("style", ""))
        address = given.get("href", given.get("xlink:href"))
        if tag == "html":
            self.language = given.get("lang", "")
        elif tag in {"a", "area"}:
            self.links += [] if address is None else [address]
        elif address is not None and tag != "base" and given.get("rel") != "canonical":
            self.loads.append(address)
        if tag == "img":
            self.alternatives.append((given.get("src", ""), given.get("alt", "")))
        self.widgets += tag == "script" and given.get("type") == WIDGET
        if tag == "meta" and given.get("http-equiv", "").lower() == "refresh":
            self.loads += re.findall(r"url\s*=\s*['\"]?([^'\"]+)", given.get("content", ""), re.IGNORECASE)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "title":
            self.title += data.strip()
        elif self._inside == "style":
            self.loads += addresses_in_style(data)
        elif self._inside == "script":
            self.loads += addresses_in_script(data)


def addresses_in_style(text: str) -> list[str]:
    """Return the addresses that a style sheet loads.

    >>> addresses_in_style('@import "a.css"; p { background: url(b.png) }')
    ['a.css', 'b.png']
    """
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return [match[2] or match[4] for match in IN_STYLE.finditer(text) if match[2] or match[4]]


def addresses_in_script(text: str) -> list[str]:
    """Return the addresses on other hosts that a script loads, if they are written in it; the script may be inside JSON.

    >>> addresses_in_script('const name = "http://www.w3.org/2000/svg"; fetch("https://example.org/a.json")')
    ['https://example.org/a.json']
    """
    return [match[2] for match in IN_SCRIPT.finditer(text.replace('\\"', '"'))]


@cache
def parsed(path: Path) -> Parsed:
    return Parsed(path.read_text(encoding="utf-8"))


def faults_of_page(site: Path, name: str) -> list[str]:
    """Return a sentence for each fault of the page ``name`` of the site."""
    page = parsed(site / name)
    return [
        *([] if page.language else ["the page does not say its language"]),
        *([] if page.title else ["the page has no title"]),
        *(f"loads from outside: {address}" for address in page.loads if ELSEWHERE.match(address)),
        *(f"leads nowhere: {address}" for address in sorted({*page.loads, *page.links}) if is_dead(site, name, address)),
        *(f"picture without a description: {address}" for address, words in page.alternatives if not describes(words)),
    ]


def faults_of_files(site: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each fault of style sheets and scripts."""
    for name in names:
        text = (site / name).read_text(encoding="utf-8")
        is_style = name.endswith(".css")
        for address in addresses_in_style(text) if is_style else addresses_in_script(text):
            if ELSEWHERE.match(address):
                yield f"{name} loads from outside: {address}"
            elif is_style and is_dead(site, name, address):
                yield f"{name} leads nowhere: {address}"


def describes(words: str) -> bool:
    """Return whether an alternative text describes something: it is neither empty nor the name of a file."""
    return bool(words.strip()) and not FILE_NAME.fullmatch(words.strip())


def is_dead(site: Path, name: str, address: str) -> bool:
    """Return whether an address inside the site is dead.

    It is dead if there is no such file, if the page has no such place, or if it is a path from the top of the host.
    """
    if not address or OWN.match(address) or ELSEWHERE.match(address):
        return not address
    parts = urlsplit(address)
    if parts.path.startswith("/"):
        return True
    start = (site / name).parent
    target = (start / unquote(parts.path)).resolve() if parts.path else site / name
    if not target.is_file() or not target.is_relative_to(site.resolve()):
        return True
    if not parts.fragment or target.suffix != ".html" or PurePosixPath(parts.path).match("*/lite/*"):
        return False
    if setting := SETTING.fullmatch(parts.fragment):
        return parsed(target).widgets < int(setting[1] or 1)
    return unquote(parts.fragment) not in parsed(target).anchors
