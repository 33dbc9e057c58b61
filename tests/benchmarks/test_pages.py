"""Measure how many bytes a first visit of each page transfers, and when its first picture is drawn.

The server is on this machine, and the browser's cache is empty.
"""

from collections.abc import Callable, Iterator
from statistics import median

import pytest
from browser import NO_CHROMIUM, NO_SITE, PATIENCE, SITE, chromium, open_page, page_names, program, serving, weight_of
from playwright.sync_api import Browser
from pytest_benchmark.fixture import BenchmarkFixture

SECTION = "pages: kilobytes (gzipped) and milliseconds of a first visit"
# milliseconds from the start of navigation to the first picture of a widget in the page
NOTE_FIRST_DRAWN = """new MutationObserver((_, observer) => {
  if (!document.querySelector(".hybridlab-view :is(.picture, .plots) svg > *")) return;
  window.firstDrawn = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });"""
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if program() is None:
        pytest.skip(NO_CHROMIUM)
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(SITE) as address:
        yield address


@pytest.mark.skipif(not page_names(), reason=NO_SITE)
@pytest.mark.parametrize("name", page_names())
def test_first_visit(browser: Browser, server: str, benchmark: BenchmarkFixture, tell: Callable[[str, str], None], name: str) -> None:
    weights, drawn, loaded = [], [], []

    def visit() -> None:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE)
        context.add_init_script(NOTE_FIRST_DRAWN)
        page = open_page(context.new_page(), server + name)
        weights.append(sum(weight_of(page, SITE, server).values()))
        drawn.append(page.evaluate("window.firstDrawn ?? null"))
        loaded.append(page.evaluate(LOADED))
        context.close()

    benchmark.pedantic(visit, rounds=5)  # type: ignore[no-untyped-call]
    times = [each for each in drawn if each is not None]
    picture = f"{median(times):>6.0f} ms to the first picture" if times else f"{'no picture of a widget':>30}"
    tell(SECTION, f"{name:<40} {max(weights) / 1e3:>6.0f} kB {picture} {median(loaded):>6.0f} ms to load")
