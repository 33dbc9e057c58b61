"""Open the built site in a real browser. The tests here can ask for these fixtures:

`site`      the folder of the built site (pathlib.Path); the tests fail where it was not built
`server`    address of that folder on a local web server, below a folder there as on GitHub Pages:
            "http://127.0.0.1:.../course/", with a slash at the end; what is asked for above it is a fault
`files`     address of the same folder as files, "file:///.../", with a slash at the end
`browser`   a headless Chromium, one for each worker; without one its tests are left out (tests/missing.py)
`new_page`  new_page(url, *, width=1280, scheme="light", edit=None, **context) -> playwright's Page, loaded, its widgets drawn.
            `edit` changes the text of a served page on its way to the browser; `context` are further arguments of
            Browser.new_context, such as has_touch=True. A context has one such page; the next one replaces it and finds nothing stored.
`fresh_page` the same in a context of its own, for tests that change more than the page and what it stores
`new_widgets` like new_page, for the widgets of a page alone, without the rest of it: to see what their data and code do
`faults`    what was wrong with these pages: requests outside the site, requests that failed, errors and warnings on the
            console, errors that nothing caught. A test whose pages have any fails at its end; one that wants them
            looks at the list and clears it.
`together`  together(*widgets, fragment="") -> playwright's Page with these widgets, drawn from the sources of this checkout; a heading with
            the address #heading stands behind them, and `fragment` is the fragment of the page's address
`alone`     alone(widget) -> the element (playwright's Locator) of a widget on a page of its own, drawn from the sources of this
            checkout; no built site is needed
`own_page`  each page of the site in turn, without index.html, which leads to another page: "labs/lab02_one_f_one_b.html"
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from browser import LIVE, NO_SITE, PATIENCE, SITE, chromium, open_page, page_names, record, serving, widget_page
from explorers import bare
from notebook_server import jupyter
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

NewPage = Callable[..., Page]
Edit = Callable[[str], str]
expect.set_options(timeout=PATIENCE)
FORGET = "() => { try { localStorage.clear(); sessionStorage.clear(); } catch { /* a test may have taken the storage away */ } }"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "own_page" in metafunc.fixturenames:
        names = [name for name in page_names() if name != "index.html"]
        metafunc.parametrize("own_page", names or ["index.html"])  # if the site was not built, the fixture `site` fails


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the mark for a browser to the tests that use one."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.needs("browser"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Remove the text of the whole page from a failure, so that the failure itself comes first; playwright adds this text."""
    try:
        return (yield)
    except AssertionError as error:
        error.args = (str(error).partition("\nAria snapshot:")[0].rstrip(),)
        raise


@pytest.fixture(scope="session")
def site() -> Path:
    if not (SITE / "index.html").is_file():
        pytest.fail(NO_SITE, pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def server(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    top = tmp_path_factory.mktemp("server")
    (top / "course").symlink_to(site)
    with serving(top) as address:
        yield f"{address}course/"


@pytest.fixture(scope="session")
def files(site: Path) -> str:
    return f"{site.as_uri()}/"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def every_fault() -> list[str]:
    return []


@pytest.fixture
def faults(every_fault: list[str]) -> list[str]:
    every_fault.clear()
    return every_fault


@pytest.fixture(scope="session")
def kept_pages(browser: Browser, server: str, files: str, every_fault: list[str]) -> Iterator[Callable[..., Page]]:
    """Give a function that returns an empty page.

    It keeps one page for each set of arguments of Browser.new_context, because a new context is slow.
    """
    kept: dict[str, Page] = {}

    def page_with(context: dict[str, Any]) -> Page:
        name = repr(sorted(context.items()))
        if name not in kept or kept[name].is_closed():
            made = browser.new_context(**context)
            record(made, every_fault, (server, files))
            made.grant_permissions(["clipboard-read", "clipboard-write"])  # otherwise a link that is not copied takes the focus to a field
            made.set_default_timeout(PATIENCE)
            kept[name] = made.new_page()
        return kept[name]

    yield page_with
    for page in kept.values():
        page.context.close()


def edited(page: Page, url: str, edit: Edit | None) -> None:
    """Serve the page at ``url`` to the browser with the changes of ``edit``."""
    if edit:
        with urlopen(url, timeout=PATIENCE / 1000) as served:  # noqa: S310  # of this machine's own server
            body = edit(served.read().decode())
        page.context.route(url, lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"))


@pytest.fixture
def new_page(kept_pages: Callable[..., Page], faults: list[str]) -> Iterator[NewPage]:
    opened: dict[Page, None] = {}

    def opening(url: str, *, width: int = 1280, scheme: str = "light", edit: Edit | None = None, **context: Any) -> Page:
        page = kept_pages(context)
        left(page)
        opened[page] = None
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce", media="null")
        edited(page, url, edit)
        return open_page(page, url)

    yield opening
    for page in opened:
        left(page)
    assert not faults, "\n".join(dict.fromkeys(faults))


def left(page: Page) -> None:
    """Leave the page that is shown; then remove its routes and what it has stored, and move the pointer away.

    After this, all messages of the page have arrived.
    """
    page.context.unroute_all()
    for other in page.context.pages:
        if other is not page:
            other.close()
    if page.url != "about:blank":
        page.mouse.move(0, 0)
        page.evaluate(FORGET)
        page.goto("about:blank")


@pytest.fixture
def fresh_page(browser: Browser, server: str, files: str, faults: list[str]) -> Iterator[NewPage]:
    opened = []

    def opening(url: str, *, width: int = 1280, scheme: str = "light", edit: Edit | None = None, **context: Any) -> Page:
        settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce", **context}
        made = browser.new_context(**settings)
        made.set_default_timeout(PATIENCE)
        opened.append(made)
        record(made, faults, (server, files))
        page = made.new_page()
        edited(page, url, edit)
        return open_page(page, url)

    yield opening
    for each in opened:
        each.close()
    assert not faults, "\n".join(dict.fromkeys(faults))


@pytest.fixture
def new_widgets(new_page: NewPage) -> NewPage:
    def opening(url: str, *, edit: Edit = str, **settings: Any) -> Page:
        return new_page(url, edit=lambda text: bare(edit(text)), **settings)

    return opening


@pytest.fixture(scope="session")
def drawing_context(browser: Browser, tmp_path_factory: pytest.TempPathFactory, every_fault: list[str]) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    record(context, every_fault, (tmp_path_factory.getbasetemp().as_uri(), LIVE.as_uri()))
    context.set_default_timeout(PATIENCE)
    context.new_page()
    yield context
    context.close()


@pytest.fixture
def together(drawing_context: BrowserContext, tmp_path: Path, faults: list[str]) -> Iterator[Callable[..., Page]]:
    """Give a function that draws widgets on a page of their own and returns the page; the next call replaces it."""
    page, *_ = drawing_context.pages
    paths: list[Path] = []

    def drawn(*widgets: Any, fragment: str = "") -> Page:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light", reduced_motion="reduce", media="null")
        paths.append(tmp_path / f"widget{len(paths)}.html")
        paths[-1].write_text(widget_page(*widgets), encoding="utf-8")
        return open_page(page, paths[-1].as_uri() + fragment)

    yield drawn
    left(page)
    drawing_context.clear_permissions()
    assert not faults, "\n".join(dict.fromkeys(faults))


@pytest.fixture
def alone(together: Callable[..., Page]) -> Callable[[Any], Locator]:
    """Give a function that draws a widget on a page of its own and returns the widget's element."""
    return lambda widget: together(widget).locator(".live-widget > *")


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Give the address of a JupyterLab, and its folder, which holds this project as the folder "course"."""
    root = tmp_path_factory.mktemp("notebook")
    (root / "course").symlink_to(SITE.parents[1])
    with jupyter(tmp_path_factory.mktemp("jupyter"), root) as address:
        yield address, root


@pytest.fixture(scope="session")
def lab_context(browser: Browser) -> Iterator[BrowserContext]:
    """Give a browser's context for the pages of JupyterLab, which keeps JupyterLab's files."""
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()
