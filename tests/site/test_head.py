"""Test what the built pages tell search engines, previews and browsers, and the page that a server shows where there is none."""

import io
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accessibility import violations
from browser import PATIENCE, Quiet, Server, follow, page_names
from cases import in_turn
from PIL import Image
from playwright.sync_api import Browser, expect

CONTENT = re.compile(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"')
VIEWPORT, CANONICAL = re.compile(r'<meta name="viewport"'), re.compile(r'<link rel="canonical" href="([^"]*)"')
LONGEST = 160  # characters that search engines show of a description
MARKUP = re.compile(r"\\|\$|&lt;|\{")


def text_of(site: Path, name: str) -> str:
    return (site / name).read_text(encoding="utf-8")


def faults_of_head(text: str) -> list[str]:
    """Return a sentence for each fault of a page's head."""
    told = dict(CONTENT.findall(text))
    description = told.get("description", "")
    faults = [] if len(VIEWPORT.findall(text)) == 1 else [f"{len(VIEWPORT.findall(text))} viewport tags"]
    faults += [] if 20 < len(description) <= LONGEST else [f"a description of {len(description)} characters"]
    faults += [f"markup in the description: {description}"] if MARKUP.search(description) else []
    faults += ["an address in one place only"] if CANONICAL.findall(text) != [told[each] for each in ("og:url",) if each in told] else []
    return faults


@in_turn("name", [name for name in page_names() if name != "index.html"] or ["404.html"])
def test_the_head_of_each_page_is_whole(site: Path, name: str) -> None:
    text = text_of(site, name)
    assert faults_of_head(text) == []
    if name != "404.html":
        told = dict(CONTENT.findall(text))
        assert told["og:description"] == told["description"]
        assert told["og:title"]
        assert {"og:site_name", "og:type", "twitter:card"} <= set(told)
        assert ("og:image" in told) == ("og:url" in told) == (site / "sitemap.xml").exists()


@in_turn(
    "found, planted, fault",
    [
        (VIEWPORT.pattern, '<meta name="viewport" content=""><meta name="viewport"', "2 viewport tags"),
        (r'<meta name="description" content="[^"]*"', '<meta name="description" content=""', "a description of 0 characters"),
        (r'(<meta name="description" content=")', r"\1\\\\frac ", "markup in the description"),
        ("</title>", '</title><link rel="canonical" href="https://example.org/a.html">', "an address in one place only"),
    ],
)
def test_a_planted_fault_of_a_head_is_told(site: Path, found: str, planted: str, fault: str) -> None:
    text = re.sub(found, planted, text_of(site, "labs/lab03_bubbles_and_memory.html"), count=1)
    assert [told for told in faults_of_head(text) if told.startswith(fault)]


def test_no_two_pages_have_the_same_description(site: Path) -> None:
    told = Counter(dict(CONTENT.findall(text_of(site, name)))["description"] for name in page_names())
    assert [description for description, pages in told.items() if pages > 1] == []


def test_the_list_for_programs_has_every_page_once_with_its_sentence(site: Path) -> None:
    lines = [re.fullmatch(r"- \[(.+)\]\((\S+)\): (.+)", line) for line in text_of(site, "llms.txt").splitlines() if line.startswith("- ")]
    assert all(lines)
    names = ["/".join(line[2].split("/")[-2:]) for line in lines if line]
    assert sorted(names) == sorted(name for name in page_names() if name.startswith(("book/", "labs/")))


def test_the_list_for_search_engines_has_every_page_that_a_reader_looks_for(site: Path) -> None:
    robots = text_of(site, "robots.txt")
    if not (site / "sitemap.xml").exists():
        assert "Sitemap" not in robots
        return
    listed = re.findall("<loc>(.*?)</loc>", text_of(site, "sitemap.xml"))
    assert f"{listed[0].partition('book/')[0]}sitemap.xml" in robots
    names = {"book/" + each.partition("/book/")[2] if "/book/" in each else "labs/" + each.partition("/labs/")[2] for each in listed}
    assert names == {name for name in page_names() if name.startswith(("book/", "labs/"))}


@in_turn("name, size", [("_static/touch_icon.png", 180), ("favicon.ico", 32)])
def test_an_icon_for_browsers_without_svg_shows_the_same(browser: Browser, site: Path, name: str, size: int) -> None:
    page = browser.new_page(viewport={"width": size, "height": size})
    svg = text_of(site, "_static/icon.svg")
    page.set_content(f"<style>* {{ margin: 0 }} body {{ background: #14181d }} svg {{ display: block; width: {size}px }}</style>{svg}")
    drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    stored = Image.open(io.BytesIO((site / name).read_bytes())).convert("RGBA")
    page.close()
    assert stored.size == drawn.size
    under = Image.new("RGBA", stored.size, "#14181d")
    under.alpha_composite(stored)
    assert np.abs(np.asarray(under.convert("RGB"), float) - np.asarray(drawn, float)).mean() < 2  # of 255


class Published(Quiet):
    """Serves a site in the folder `course`, and `404.html` of the site at every address without a page, as GitHub Pages does."""

    address = ""  # what the page says of the site's address; empty: nothing

    def send_error(self, code: int, *_: Any, **__: Any) -> None:
        body = text_of(Path(self.directory) / "course", "404.html")
        body = body.replace("<script>", f'<base href="{self.address}"><script>', 1) if self.address else body
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


@contextmanager
def published(site: Path, folder: Path, known: bool) -> Iterator[str]:
    """Serve the site below a folder; give its address. ``known``: whether it was built with this address."""
    (folder / "course").symlink_to(site)
    handler = type("Handler", (Published,), {})
    with Server(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        top = f"http://127.0.0.1:{server.server_port}/course/"
        handler.address = top if known else ""
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield top
        server.shutdown()


@pytest.mark.needs("axe")
@pytest.mark.parametrize("known", [True, False], ids=["with an address", "without an address"])
def test_at_an_address_without_a_page_every_link_leads_to_a_page(browser: Browser, site: Path, tmp_path: Path, known: bool) -> None:
    if known and "<base" in text_of(site, "404.html"):
        pytest.skip("the site was built with another address")
    with published(site, tmp_path, known) as top:
        page = browser.new_page(reduced_motion="reduce")
        page.set_default_timeout(PATIENCE)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for missing in ("nothing.html", "labs/lab99.html", "a/b/c/d/", "labs/lab03_bubbles_and_memory.html/more"):
            asked.clear()
            answer = page.goto(top + missing)
            assert answer is not None
            assert answer.status == 404
            page.wait_for_function("(top) => document.baseURI === top", arg=top)
            assert all(url.startswith(top) for url in asked), "the site's top folder is found below the server's"
            assert len(asked) == 1 or not known
            links = page.get_by_role("link").evaluate_all("(links) => links.map((link) => link.href)")
            assert links
            assert all((site / address.removeprefix(top)).is_file() for address in links)
        assert not violations(page)
        page.get_by_label("Search the course").fill("bubble")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{top}search.html?q=bubble")
        expect(page.get_by_role("status")).to_contain_text("Found")
        page.go_back()
        page.wait_for_function("(top) => document.baseURI === top", arg=top)
        follow(page.get_by_role("link").first, f"{top}book/intro.html")
        page.close()
