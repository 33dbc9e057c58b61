"""Test the views of the labs on their built pages.

They are used by keyboard, at many settings, in all colours and widths, and their values are set by Python.
"""

import random
from typing import Any

import pytest
from accessibility import violations
from browser import held
from lab_views import KINDS, Kind, each_of
from lab_views.kind import SEEN, Damage, choose, setting_of, walk
from playwright.sync_api import Page

NewPage = Any
each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
each_fault = pytest.mark.parametrize(("kind", "fault"), each_of("faults"))
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
  window.stopped = () => { stop(); return listeners.length; };
}"""


@each_kind
def test_every_control_works_by_keyboard_alone_and_what_it_changes_is_right(new_page: NewPage, files: str, kind: Kind) -> None:
    page = new_page(files + kind.lab)
    for place, view in enumerate(kind.views(page)):
        kind.is_right(view, place)
        choose(view, kind.begin)
        (kind.walk or walk)(view, kind, place)


@each_kind
def test_what_is_shown_is_right_all_over_the_settings(new_widgets: NewPage, server: str, kind: Kind) -> None:
    chosen = random.Random(1)  # noqa: S311  # a choice of settings, the same in every run
    for place, view in enumerate(kind.views(new_widgets(server + kind.lab))):
        seen = set()
        for _ in range(8):
            for label in view.evaluate(OPTIONS):
                offered = view.evaluate(OPTIONS).get(label)  # of the settings before it
                if offered:
                    choose(view, {label: chosen.choice(offered)})
                    kind.take(view)
            kind.is_right(view, place)
            seen.add(str(setting_of(view)))
        assert len(seen) > 4


@each_kind
def test_it_is_accessible_and_fits_in_light_and_dark_with_all_that_it_can_show(new_page: NewPage, files: str, kind: Kind) -> None:
    page: Page = new_page(files + kind.lab)
    views = kind.views(page)
    for view in views:
        for label in view.evaluate(OPTIONS):
            choose(view, {label: view.evaluate(OPTIONS)[label][-1]})
        kind.take(view)
        for fold in view.locator("summary").all():
            fold.click()
    for width, scheme in ((1280, "light"), (360, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("(scheme) => document.documentElement.dataset.theme === scheme", arg=scheme)
        page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        for place, view in enumerate(views):
            kind.is_right(view, place)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = violations(page, f".hybridlab-{kind.name}")
        assert not found, "\n".join(found)


@each_kind
def test_what_python_sets_is_shown_and_a_view_that_is_taken_away_hears_no_more(new_page: NewPage, server: str, kind: Kind) -> None:
    page: Page = new_page(server + kind.lab)
    before = kind.views(page)[0].evaluate(SEEN)
    page.evaluate(BEHIND_A_KERNEL, [kind.widget, *kind.python])
    view = held(page.locator(f".hybridlab-{kind.name}").last)
    assert view.evaluate(SEEN) != before
    kind.is_right(view)
    assert page.evaluate("window.stopped()") == 0


@each_fault
def test_a_planted_fault_in_the_data_is_seen(new_widgets: NewPage, server: str, kind: Kind, fault: Damage) -> None:
    page = new_widgets(server + kind.lab, edit=kind.changing(fault))
    view = held(page.locator(f".hybridlab-{kind.name}").first)
    with pytest.raises(AssertionError):
        kind.is_right(view)
    assert view.get_by_role("alert").count() == 0
