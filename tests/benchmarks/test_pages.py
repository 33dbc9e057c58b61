"""Measure the pages of the site: what a first visit of each page transfers, when its first picture is drawn, and how fast its views answer.

The server is on this machine, and the browser's cache is empty. Numbers depend on the machine and on what else it does.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from browser import (
    MOST_BYTES,
    NO_CHROMIUM,
    NO_SITE,
    PATIENCE,
    SITE,
    chromium,
    open_page,
    page_names,
    program,
    sent,
    serving,
    weight_of,
    widget_page,
)
from lab_views import KINDS
from playwright.sync_api import Browser, Page
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab.widgets import StepExplorer, TimelineExplorer

MOST_DRAWN, MOST_ANSWER = 800, 50  # ms: to the first picture, for a change of a control
SECTION = f"pages: kilobytes (gzipped) and milliseconds of a first visit; a picture is wanted after {MOST_DRAWN} ms at most"
ANSWERS = f"pages: milliseconds of the main thread (CPU) for one change of a control; at most {MOST_ANSWER} wanted"
FRAMES = "pages: frames a second while a view plays 8 devices x 32 microbatches; 60 wanted"
VIEWS = {"explorer": "book/gallery.html", **{kind.name: kind.lab for kind in KINDS}}  # kind of view -> a page with one
PLAYING = {
    "timeline": lambda: TimelineExplorer("1f1b", devices=8, microbatches=32),
    "step": lambda: StepExplorer("1f1b", devices=8, microbatches=32, replicas=1, ring_step=1),
}
SIZES: dict[str, Any] = {"devices": (4, 8), "microbatches": (16, 32)}
LARGE = {
    "timeline": lambda: TimelineExplorer(("1f1b", "gpipe"), **SIZES, show={"devices": 8, "microbatches": 32, "compare": "gpipe"}),
    "step": lambda: StepExplorer("1f1b", **SIZES, replicas=(1, 2), ring_step=1, show={"devices": 8, "microbatches": 32}),
}
# milliseconds from the start of navigation to the first picture of a widget in the page
NOTE_FIRST_DRAWN = """new MutationObserver((_, observer) => {
  if (!document.querySelector(".hybridlab-view :is(.picture, .plots) svg > *")) return;
  window.firstDrawn = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });"""
# goes to the next value of a control, from the last to the first, or `back` to the value before, and waits until it is drawn; false if the
# control is not there now
CHANGE = """async (control, back) => {
  if (!control.isConnected || !control.checkVisibility() || control.disabled) return false;
  const after = (value, least, most) => (value > most ? least : value);
  const now = control.value;
  if (back) control.value = control.before;
  else if (control.options) control.selectedIndex = after(control.selectedIndex + 1, 0, control.options.length - 1);
  else if (control.type === "range") {
    const [least, most] = [Number(control.min), Number(control.max)];
    control.value = after(Number(control.value) + (control.step === "any" ? (most - least) / 7 : 1), least, most);
  } else if (control.type === "number") control.value = Number(control.value) + 1;
  control.before = now;
  if (["checkbox", "radio"].includes(control.type)) control.click();
  else for (const event of ["input", "change"]) control.dispatchEvent(new Event(event, { bubbles: true }));
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  return true;
}"""
NO_CHANGE = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
UNFOLD = "(view) => { for (let fold = view.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true; }"
NAME = "(control) => (control.getAttribute('aria-label') ?? control.labels[0]?.textContent ?? control.type).trim()"
# the number of frames in so many milliseconds, and the longest time between two
COUNT = """(span) => new Promise((done) => {
  const stamps = [];
  const tick = (stamp) => {
    stamps.push(stamp);
    if (stamp - stamps[0] < span) return requestAnimationFrame(tick);
    const gaps = stamps.slice(1).map((each, place) => each - stamps[place]);
    done([gaps.length, stamp - stamps[0], Math.max(...gaps)]);
  };
  requestAnimationFrame(tick);
})"""
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
    weights, drawn, loaded, busy = [], [], [], []

    def visit() -> None:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE)
        context.add_init_script(NOTE_FIRST_DRAWN)
        page = context.new_page()
        used = processor(page)
        open_page(page, server + name)
        busy.append(1000 * used())
        weights.append(sum(weight_of(page, SITE, server).values()))
        drawn.append(page.evaluate("window.firstDrawn ?? null"))
        loaded.append(page.evaluate(LOADED))
        context.close()

    benchmark.pedantic(visit, rounds=5)  # type: ignore[no-untyped-call]
    times = [each for each in drawn if each is not None]
    picture = f"{median(times):>6.0f} ms to the first picture" if times else f"{'no picture of a widget':>30}"
    most = next((each for start, each in MOST_BYTES.items() if name.startswith(start)), None)
    wanted = f"(at most {most / 1e3:.0f} wanted)" if most else ""
    weight = f"{max(weights) / 1e3:>6.0f} kB {wanted:<20} {sent(SITE / name) / 1e3:>6.1f} of them its html"
    tell(SECTION, f"{name:<42} {weight} {picture} {median(loaded):>6.0f} ms to load {median(busy):>6.0f} ms of the main thread")


def processor(page: Page) -> Callable[[], float]:
    """Return a function that gives the seconds of the processor that the page's main thread has used."""
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used() -> float:
        found: Any = tools.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in found if each["name"] == "TaskDuration")

    return used


@pytest.mark.parametrize("kind", VIEWS)
def test_answers(browser: Browser, server: str, benchmark: BenchmarkFixture, tell: Callable[[str, str], None], kind: str) -> None:
    if not (SITE / VIEWS[kind]).is_file():
        pytest.skip(NO_SITE)
    answer(browser, server + VIEWS[kind], f".hybridlab-{kind}", benchmark, lambda line: tell(ANSWERS, f"{kind:<14} {line}"))


@pytest.mark.parametrize("kind", LARGE)
def test_answers_of_large_pictures(
    browser: Browser, tmp_path: Path, benchmark: BenchmarkFixture, tell: Callable[[str, str], None], kind: str
) -> None:
    path = tmp_path / "widget.html"
    path.write_text(widget_page(LARGE[kind]()), encoding="utf-8")
    answer(browser, path.as_uri(), ".hybridlab-view", benchmark, lambda line: tell(ANSWERS, f"{kind + ', 8 x 32':<14} {line}"))


def answer(browser: Browser, address: str, selector: str, benchmark: BenchmarkFixture, tell: Callable[[str], None]) -> None:
    """Change each control of the first view of a page seven times and back, and tell what a change costs."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    page = open_page(context.new_page(), address)
    view = page.locator(selector).first
    view.evaluate(UNFOLD)
    view.scroll_into_view_if_needed()
    controls = view.locator("select:visible, input:visible").element_handles()
    names, used, times = [control.evaluate(NAME) for control in controls], processor(page), defaultdict(list)

    def change_all() -> None:
        before = used()
        page.evaluate(NO_CHANGE)
        times["no change, for comparison"].append(1000 * (used() - before))
        for (name, control), back in product(zip(names, controls, strict=True), (False, True)):
            before = used()
            if control.evaluate(CHANGE, back):
                times[name].append(1000 * (used() - before))

    benchmark.pedantic(change_all, rounds=7, warmup_rounds=1)  # type: ignore[no-untyped-call]
    context.close()
    for name, each in times.items():
        tell(f"{name:<40} {median(each):>6.1f} ms, at most {max(each):>6.1f} ms")


@pytest.mark.parametrize("kind", PLAYING)
def test_playing(browser: Browser, tmp_path: Path, benchmark: BenchmarkFixture, tell: Callable[[str, str], None], kind: str) -> None:
    path = tmp_path / "widget.html"
    path.write_text(widget_page(PLAYING[kind]()), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="no-preference")
    context.set_default_timeout(PATIENCE)
    page = open_page(context.new_page(), path.as_uri())
    used = processor(page)

    def play() -> tuple[float, float, float]:
        page.get_by_role("button", name="Play", exact=True).click()
        before = used()
        frames, span, longest = page.evaluate(COUNT, 3000)  # the whole step plays for 6 seconds
        return 1000 * frames / span, 1000 * (used() - before) / frames, longest

    rate, busy, longest = benchmark.pedantic(play)  # type: ignore[no-untyped-call]
    context.close()
    each = f"{busy:>6.1f} ms of the main thread for a frame, {longest:>6.0f} ms between two at most"
    tell(FRAMES, f"{kind:<10} {rate:>6.1f} frames a second, {each}")
