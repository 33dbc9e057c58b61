"""Visit a page: it is loaded once and answers many questions, in one size and in one scheme of colours after the other.

A question is a function of a :class:`Visit` that raises an error where something is wrong. It is registered with the width and the
scheme in which it is asked. These are taken in the order in which they are named first, so questions that change the page come last::

    @asked(width=360, of=is_lab)
    def no_bar_is_cut(visit: Visit) -> None:
        assert visit.page.locator(".lab-bar").evaluate("(bar) => bar.scrollWidth <= bar.clientWidth")
"""

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from browser import open_page
from playwright.sync_api import Page

THE_VIEW = ".live-widget > *"  # the only widget of a page
DRAWN = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
SIZED = "([wide, scheme]) => innerWidth === wide && document.documentElement.dataset.theme === scheme"


class Visit(NamedTuple):
    page: Page
    name: str  # such as "labs/lab02_one_f_one_b.html"
    top: str  # the address of the site, with a slash at the end
    site: Path  # its folder


class Sight(NamedTuple):
    """How a page is looked at."""

    width: int
    scheme: str


Question = Callable[[Visit], None]
ASKED: dict[Sight, list[tuple[Question, Callable[[str], bool]]]] = {}


def asked(width: int = 1280, scheme: str = "light", of: Callable[[str], bool] = bool) -> Callable[[Question], Question]:
    """Register a question of the pages whose name fulfils ``of``; by default, of all."""

    def register(question: Question) -> Question:
        ASKED.setdefault(Sight(width, scheme), []).append((question, of))
        return question

    return register


def show(page: Page, width: int, scheme: str) -> None:
    """Give the page another width and other colours, and wait until they are applied."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, media="screen", reduced_motion="reduce")  # type: ignore[arg-type]
    page.wait_for_function(SIZED, arg=[width, scheme])
    page.evaluate(DRAWN)


def told_by(question: Callable[..., None], *given: Any) -> list[str]:
    """Ask a question, and return a list with a sentence if it fails."""
    try:
        question(*given)
    except (Exception, pytest.fail.Exception) as why:
        here = [frame.lineno for frame in traceback.extract_tb(why.__traceback__) if frame.name == question.__name__]
        return [f"{question.__name__}, line {here[-1] if here else '?'}: {type(why).__name__}: {why}"]
    return []


def in_order(
    page: Page, questions: Sequence[Callable[..., None]], *given: Any, again: Callable[[Page], object] | None = None, part: str = ""
) -> None:
    """Ask all questions of one page; raise an AssertionError that names those that fail.

    Before each question but the first, ``again`` makes the page as new. With ``part``, a selector, the questions are of this part of it.
    """
    told = []
    for place, question in enumerate(questions):
        if place and again:
            again(page)
        told += told_by(question, page.locator(part) if part else page, *given)
    assert not told, f"{len(told)} of {len(questions)} questions fail:\n" + "\n\n".join(told)


def as_new(page: Page) -> None:
    """Open a page with widgets again, with nothing stored, without a setting in its address, and without the settings of a test."""
    page.mouse.move(1, 1)
    page.evaluate("localStorage.clear()")
    address = str(page.evaluate("location.href.split('#')[0]"))
    page.goto("about:blank")  # where the timer ends with which the address follows the reader
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light", reduced_motion="reduce", media="null")  # type: ignore[arg-type]
    open_page(page, address)


def faults_of(visit: Visit) -> list[str]:
    """Ask a loaded page all its questions, and return a sentence for each that fails."""
    told = []
    for sight, questions in ASKED.items():
        due = [question for question, of in questions if of(visit.name)]
        if due:
            show(visit.page, sight.width, sight.scheme)
        for question in due:
            told += [f"{visit.name}, {sight.width} px, {sight.scheme}: {each}" for each in told_by(question, visit)]
    return told
