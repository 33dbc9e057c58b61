"""Open pages in a browser, serve them, and record what they request.

The tests of the site and the benchmark of its pages use this file.
"""

import gzip
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, Response, sync_playwright

SITE = Path(__file__).resolve().parents[2] / "_build/html"
LIVE = SITE.parents[1] / "book/_assets/live_widgets.js"  # draws the widgets of the site
NO_SITE = "there is no site in _build/html: run make book first"
NO_CHROMIUM = "no Chromium on the path: install chromium or Chrome, or name its program in CHROMIUM"
PATIENCE = 120_000  # a wait for a condition may take so many milliseconds; on every machine, only a fault takes so long
# The headless shell is Debian's package of Chromium without windows. The tests of the site take a third less time in it.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no host name is ever looked up, so the browser cannot reach the network
]
TEXTS = {".css", ".html", ".ipynb", ".js", ".json", ".svg", ".txt"}  # public servers compress these files
VIEWS = 'script[type="application/vnd.jupyter.widget-view+json"]'
# Writes JSON as json.loads reads it: with NaN and Infinity, for which JSON.stringify writes null.
AS_TEXT = """
  const number = (name, value) => typeof value === "number" && !Number.isFinite(value) ? `@${value}@` : value;
  const text = (found) => JSON.stringify(found ?? null, number).replaceAll(/"@(NaN|-?Infinity)@"/g, "$1");
"""
READY = f"""() => document.readyState === "complete" && !document.querySelector('[http-equiv="refresh"]') // which leads to another page
  && [...document.querySelectorAll('{VIEWS}')].every((script) => script.nextElementSibling?.textContent.trim())"""


def program() -> str | None:
    """Return the path of Chromium, or None if there is none.

    It is the program that the environment variable CHROMIUM names; otherwise, it is the first Chromium found on the PATH.
    """
    named = os.environ.get("CHROMIUM")
    return next(filter(None, map(shutil.which, [named] if named else NAMES)), None)


def page_names() -> list[str]:
    """Return the name of every page of the built site, such as ``labs/lab02.html``.

    The pages of JupyterLite are left out, because they are not written in this project.
    """
    names = (path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    return sorted(name for name in names if not name.startswith("lite/"))


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless Chromium with a new profile; it can reach only servers on this machine."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=FLAGS, timeout=PATIENCE)
        yield browser
        browser.close()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, keeps connections open as public servers do, and prints nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a page that was closed while it was served."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve ``folder`` on a local web server, and give the server's address with a slash at the end."""
    with Server(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def record(context: BrowserContext, faults: list[str], roots: tuple[str, ...]) -> None:
    """Add a sentence to ``faults`` for every fault of the context's pages from now on.

    Faults are: a request outside ``roots`` that is not for the page's own data, a request that failed, an error or a warning on the
    console, and an error that nothing caught.
    """

    def asked(request: Request) -> None:
        if not request.url.startswith((*roots, "data:", "blob:", "about:")):
            faults.append(f"a request outside the site: {request.url}")

    def answered(response: Response) -> None:
        if response.status >= 400:
            faults.append(f"a request that failed: {response.url} ({response.status})")

    def failed(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the browser had left the page, or the file was a download
            faults.append(f"a request that failed: {request.url} ({request.failure})")

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            faults.append(f"console {message.type}: {message.text}")

    context.on("request", asked)
    context.on("response", answered)
    context.on("requestfailed", failed)
    context.on("console", said)
    context.on("weberror", lambda error: faults.append(f"an error that nothing caught: {error.error}"))


def open_page(page: Page, url: str) -> Page:
    """Open ``url`` and return the page after it has loaded and its widgets are drawn.

    If ``url`` redirects to another page, that page is returned.
    """
    page.goto(url)
    page.wait_for_function(READY)
    return page


class Held:
    """A locator whose element is looked up only once.

    Each evaluation then sends one request to the browser instead of five. Results are returned as JSON text, because playwright
    inspects every number of a nested list, and this takes longer than everything else.
    """

    def __init__(self, locator: Locator) -> None:
        self._locator, self._element = locator, locator.element_handle()

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        told = f"async (root, argument) => {{ {AS_TEXT} return text(await ({expression})(root, argument)); }}"
        return json.loads(self._element.evaluate(told, argument))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._locator, name)


def held(locator: Locator) -> Any:
    """Look up the locator's element, and return the locator that holds it."""
    return Held(locator)


def address_of(page: Page) -> str:
    """Return the address as the page has it: playwright is told of a new one only some time after a script of the page has set it."""
    return str(page.evaluate("location.href"))


def follow(link: Locator, url: str) -> None:
    """Click the link, and wait until the page at ``url`` has loaded and its widgets are drawn.

    The address changes before the new page is there. A value that is read right after this change may belong to an empty page.
    """
    link.click()
    link.page.wait_for_url(url)  # this also waits for the event "load"
    link.page.wait_for_function(READY)


def reload(page: Page) -> None:
    """Load the page again, and wait until its widgets are drawn."""
    page.reload()
    page.wait_for_function(READY)


def reload_after(page: Page, act: Callable[[], object], kept: str) -> None:
    """Call the given action, then load the page again.

    A page from a file is loaded until the expression ``kept`` is true in it, for PATIENCE at most. The reason: a busy Chromium sometimes
    loses what a page from a file has stored. In an experiment, an empty page stored one word and was loaded again up to 2 s later. The word
    was lost in 24 of 662 cases from a file, and in none of 245 cases over HTTP.
    """
    end = time.monotonic() + PATIENCE / 1000
    while True:
        act()
        reload(page)
        if page.evaluate(kept) or not page.url.startswith("file:") or time.monotonic() > end:
            return


def widget_page(*widgets: Any) -> str:
    """Return a page with widgets, which draws them as a page of the site does; the last element of the page is a heading."""

    def script(part: str, data: Any) -> str:
        text = json.dumps(data, sort_keys=True).replace("</", "<\\/")  # as in a stored notebook
        return f'<script type="application/vnd.jupyter.widget-{part}+json">{text}</script>'

    states = {widget.model_id: {"model_module": "anywidget", "state": widget.get_state()} for widget in widgets}
    scripts = script("state", {"state": states}) + "".join(script("view", {"model_id": widget.model_id}) for widget in widgets)
    scripts += f'<script src="{LIVE.as_uri()}"></script>'
    head = '<meta charset="utf-8"><title>Widget</title><link rel="icon" href="data:,">'
    return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{scripts}<h2 id="heading">Heading</h2></body></html>'


# beginning of a page's name -> the most bytes that a first visit may transfer
MOST_BYTES = {"labs/": 300_000, "book/gallery.html": 400_000, "book/zoo.html": 400_000}


def weight_of(page: Page, site: Path, server: str) -> dict[str, int]:
    """Return the size in bytes of each file that the page at ``server`` requested.

    Text files are counted after gzip; pictures and fonts are counted as they are.
    """
    asked = page.evaluate("[location.href, ...performance.getEntriesByType('resource').map((each) => each.name)]")
    names = {urlsplit(url.removeprefix(server)).path for url in asked if url.startswith(server)}
    return {name: sent(site / name) for name in names}


def sent(path: Path) -> int:
    content = path.read_bytes()
    return len(gzip.compress(content, 6)) if path.suffix in TEXTS else len(content)
