"""Test the views of the labs on their built pages.

They are used by keyboard, at many settings, in all colours and widths, their values are set by Python, and damaged and wrong data are
planted in them.
"""

import random
from typing import Any

import pytest
from accessibility import OF_COLOURS, thinned, violations
from browser import held
from lab_views import KINDS, Kind
from lab_views.kind import SEEN, choose, setting_of, walk
from missing import here
from playwright.sync_api import Page
from test_damaged import only_warnings
from visits import in_order, show

NewPage = Any
each_kind = pytest.mark.parametrize("kind", [pytest.param(each, id=str(each), marks=pytest.mark.xdist_group(str(each))) for each in KINDS])
TOLD = "missing or damaged"
OPTIONS = """(root) => {
  const shown = [...root.querySelectorAll(".field:not(:has(textarea))")].filter((each) => each.checkVisibility());
  return Object.fromEntries(shown.map((each) => {
    const control = each.querySelector("select, input");
    const numbers = Array.from({ length: control.max - control.min + 1 || 0 }, (_, place) => String(place + Number(control.min)));
    return [each.querySelector("label").textContent, control.options ? [...control.options].map((option) => option.textContent) : numbers];
  }));
}"""
# draws a view of the page once more, with a model that has a kernel, and removes it again
BEHIND_A_KERNEL = """async ([id, trait, value]) => {
  const states = JSON.parse(document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]').textContent).state;
  const views = [...document.querySelectorAll('script[type="application/vnd.jupyter.widget-view+json"]')];
  const shown = views.map((view) => states[JSON.parse(view.textContent).model_id].state);
  const state = shown.find((each) => each._anywidget_id?.endsWith(`.${id}`));
  const listeners = [];
  const model = {
    get: (name) => state[name], set: (name, each) => { state[name] = each; }, save_changes() {}, send() {},
    on: (event, listener) => listeners.push([event, listener]),
    off: (event, listener) => listeners.splice(listeners.findIndex((each) => each[0] === event && each[1] === listener), 1),
  };
  const script = state._esm.as ? states[state._esm.as].state._esm : state._esm;
  const view = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  const box = document.createElement("div");
  document.querySelector("article").append(box);
  const stop = await view.default.render({ model, el: box });
  state[trait] = value;
  for (const [event, listener] of [...listeners]) if (event === `change:${trait}`) listener();
  [window.stopped, window.taken] = [() => { stop(); return listeners.length; }, box];
}"""


def views_are_right(page: Page, kind: Kind) -> None:
    for place, view in enumerate(kind.views(page)):
        kind.is_right(view, place)


def every_control_works_by_keyboard_alone(page: Page, kind: Kind) -> None:
    """In the last view, which has more controls than others of its kind."""
    *_, view = kind.views(page)
    choose(view, kind.begin)
    (kind.walk or walk)(view, kind, len(kind.given) - 1)


def what_python_sets_is_shown_and_a_view_that_is_taken_away_hears_no_more(page: Page, kind: Kind) -> None:
    before = kind.views(page)[0].evaluate(SEEN)
    page.evaluate(BEHIND_A_KERNEL, [kind.widget, *kind.python])
    view = held(page.locator(f".hybridlab-{kind.name}").last)
    try:
        assert view.evaluate(SEEN) != before
        kind.is_right(view)
        assert page.evaluate("window.stopped()") == 0
    finally:
        page.evaluate("window.taken.remove()")


def it_is_right_all_over_the_settings(page: Page, kind: Kind) -> None:
    chosen = random.Random(1)  # noqa: S311  # a choice of settings, the same in every run
    for place, view in enumerate(kind.views(page)):
        seen = set()
        for _ in range(2):
            for label in view.evaluate(OPTIONS):
                offered = view.evaluate(OPTIONS).get(label)  # of the settings before it
                if offered:
                    choose(view, {label: chosen.choice(offered)})
                    kind.take(view)
            kind.is_right(view, place)
            seen.add(str(setting_of(view)))
        assert len(seen) > 1


def it_is_right_and_fits_in_light_and_dark_with_all_that_it_can_show(page: Page, kind: Kind) -> None:
    views = kind.views(page)
    for view in views:
        for label in view.evaluate(OPTIONS):
            choose(view, {label: view.evaluate(OPTIONS)[label][-1]})
        kind.take(view)
        for fold in view.locator("summary").all():
            fold.click()
    for width, scheme in ((1280, "light"), (360, "dark")):
        show(page, width, scheme)
        for place, view in enumerate(views):
            kind.is_right(view, place)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    if here("axe"):
        thinned(page)
        found = violations(page, f".hybridlab-{kind.name}")
        show(page, 1280, "light")
        found += violations(page, f".hybridlab-{kind.name}", rules=OF_COLOURS)
        assert not found, "\n".join(found)


QUESTIONS = (
    views_are_right,
    every_control_works_by_keyboard_alone,
    what_python_sets_is_shown_and_a_view_that_is_taken_away_hears_no_more,
    it_is_right_all_over_the_settings,
    it_is_right_and_fits_in_light_and_dark_with_all_that_it_can_show,
)


@each_kind
def test_the_views_of_a_kind(new_page: NewPage, files: str, kind: Kind) -> None:
    page = new_page(files + kind.lab)
    in_order(page, QUESTIONS, kind)


@each_kind
def test_damaged_data_and_wrong_data_are_seen(new_page: NewPage, server: str, faults: list[str], kind: Kind) -> None:
    """The page has the view as it is, then with each damage, in the place of which a sentence stands, then with each fault."""
    page = new_page(server + kind.lab, edit=lambda html: kind.drawn_again(html, (*kind.damages, *kind.faults)))
    whole, *changed = page.locator(".live-widget").all()
    kind.is_right(held(whole.locator("> *")))
    for change, box in zip((*kind.damages, *kind.faults), changed, strict=True):
        damaged = change in kind.damages
        assert (TOLD in box.inner_text()) == damaged, change.__name__
        assert not damaged or box.locator("svg").count() == 0, change.__name__
        if not damaged:
            with pytest.raises(AssertionError):  # noqa: PT012  # the fault must be named
                kind.is_right(held(box.locator("> *")))
                pytest.fail(f"{change.__name__} is not seen")
    only_warnings(faults)
