"""Test the links to views.

A link brings a setting, a button copies it, the address follows the reader, and a wrong link is told and changes nothing.
"""

import re
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

import pytest
from accessibility import violations
from browser import address_of, open_page
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Locator, Page, expect
from profiles import examples
from test_views import MAKE
from visits import as_new, in_order

from hybridlab.widgets import Bet, MeshView, RingStepper, ScheduleEditor, StepExplorer, TimelineExplorer, TimelineFilm, scripts

Together = Callable[..., Page]
Alone = Callable[[Any], Locator]
NewPage = Callable[..., Page]
SHARED = tuple(MAKE)
MESH = "#view1?stages=3&replicas=4&rank=7"
# the views listen to the event since the page has loaded, so they hear it before this listener; they draw in a microtask
GO = """(fragment) => new Promise((heard) => {
  const before = location.hash;
  addEventListener("hashchange", () => setTimeout(heard), { once: true });
  location.hash = fragment;
  if (location.hash === before) heard();
})"""
# the address follows a change of the reader when nothing has changed for 300 ms; a timer that is set now ends after that one
FOLLOWED = "new Promise((followed) => setTimeout(followed, 400))"
NO_COPIES = "void (navigator.clipboard.writeText = () => Promise.reject(new DOMException('no', 'NotAllowedError')))"
# the values of the controls of a view; the speed of a player is no part of a setting
CONTROLS = """(root) => [...root.querySelectorAll(".fields :is(select:not([aria-label=Speed]), input)")]
  .map((each) => each.type === "checkbox" ? each.checked : each.value)"""
UNCHANGED = "The view is as it was without the link."
# a model of a view of no class of this project, with a value of every type, and a script that shows what it gets; every value fits
PROBE = """
import { shareRow } from "./share.js";
function render({ model, el }) {
  const names = ["number", "text", "empty", "flag", "numbers", "texts", "nothing", "parts"];
  const any = { fits: () => true, words: () => "a value of its type" };
  shareRow(model, names, () => new Proxy({}, { get: () => any }));
  const box = document.createElement("pre");
  const show = () => (box.textContent = JSON.stringify(names.map((name) => model.get(name))));
  for (const name of names) model.on(`change:${name}`, show);
  el.append(box);
  show();
  window.probe = model;
}
export default { render };
"""


@cache
def probe_script() -> str:
    """Return the script of the probe, joined with the scripts that it imports."""
    with TemporaryDirectory() as folder:
        for name in ("share.js", "setting.js", "view.js"):
            copy(scripts.HERE / name, folder)
        (Path(folder) / "probe.js").write_text(PROBE, encoding="utf-8")
        return scripts.script_of("probe.js", Path(folder))


PLAIN = {"number": 1, "text": "a", "empty": "", "flag": True, "numbers": [1, 2], "texts": ["a", "b"], "nothing": None, "parts": {"x": 1}}


class Probe:
    """A widget with a value of every type that a setting can have."""

    model_id = "probe"

    def __init__(self, **values: Any) -> None:
        self.values = {**PLAIN, **values}

    def get_state(self) -> dict[str, Any]:
        return {"_esm": probe_script(), "_css": "", "secret": "kept", **self.values}


def mesh() -> MeshView:
    return MeshView((2, 3), (1, 4))


def told(page: Page) -> list[str]:
    return page.locator(".live-widget-note").all_text_contents()


def go(page: Page, fragment: str) -> None:
    """Change the fragment of the address, and wait until the views have heard of it and have drawn."""
    page.evaluate(GO, fragment)


def read(page: Page) -> dict[str, Any]:
    """Return the values that the probe shows."""
    return dict(zip(PLAIN, page.locator("pre").evaluate("(box) => JSON.parse(box.textContent)"), strict=True))


def copied(view: Locator) -> str:
    """Press the button of a view, and return the link that it copies."""
    view.evaluate("(root) => root.querySelector('.share').closest('details')?.setAttribute('open', '')")
    view.get_by_role("button", name="Copy a link").press("Enter")
    expect(view.locator(".share [role=status]")).to_contain_text("Link copied.")
    return str(view.page.evaluate("navigator.clipboard.readText()"))


def allow_copies(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])


# ---- a link opens a view ----


def test_a_link_sets_the_view_before_it_is_drawn(together: Together) -> None:
    page = together(mesh(), fragment=MESH)
    assert page.locator("select").evaluate_all("(all) => all.map((each) => each.value)") == ["3", "4", "7"]
    expect(page.locator(".told").first).to_contain_text("Rank 7 is stage")
    assert address_of(page).endswith(MESH)
    assert told(page) == []


def test_a_link_scrolls_to_its_view_and_opens_its_fold(together: Together) -> None:
    first, second = mesh(), MeshView(stages=(2, 3), replicas=(1, 4))
    page = together(first, second, fragment="#view2?rank=1")
    box = page.locator(".live-widget").nth(1)
    assert page.evaluate("scrollY") > 0
    assert box.evaluate("(box) => box.getBoundingClientRect().top < innerHeight")
    box.evaluate("(box) => { const fold = document.createElement('details'); box.replaceWith(fold); fold.append(box); scrollTo(0, 0); }")
    go(page, "#view2?rank=0")
    assert box.locator("select").first.is_visible()


def test_a_heading_is_still_an_anchor(together: Together) -> None:
    page = together(mesh(), mesh(), fragment="#heading")
    assert page.evaluate("document.querySelector(':target').id") == "heading"
    page.locator("select").first.select_option("3")
    page.evaluate(FOLLOWED)
    assert "#view1?stages=3" in address_of(page)
    go(page, "#heading")
    assert page.evaluate("document.querySelector('h2').getBoundingClientRect().top < innerHeight")
    assert told(page) == []


def a_page_without_a_link_keeps_its_address_and_its_place(page: Page) -> None:
    page.evaluate(FOLLOWED)
    assert "#" not in address_of(page)
    assert page.evaluate("scrollY") == 0


# ---- the button ----


@in_turn("name", SHARED)
def test_the_copied_link_brings_the_same_view(together: Together, name: str) -> None:
    page = together(MAKE[name]())
    allow_copies(page)
    view = page.locator(".live-widget > *")
    for field in view.locator("select:visible, input[type=range]:visible").all():
        field.press("ArrowRight" if field.get_attribute("type") == "range" else "ArrowDown")
    for box in view.locator("[type=checkbox]:visible").all()[-1:]:
        box.click()
    link, before = copied(view), view.evaluate(CONTROLS)
    page.goto("about:blank")
    page.goto(link)
    assert page.locator(".live-widget > *").evaluate(CONTROLS) == before
    assert copied(page.locator(".live-widget > *")) == link
    assert told(page) == []


def the_button_of_each_view_copies_a_link_to_it_and_the_address_keeps_the_last_change(page: Page) -> None:
    allow_copies(page)
    first, second = page.locator(".live-widget > *").all()
    second.get_by_label("Rank", exact=True).select_option("1")
    first.get_by_label("Stages, K").select_option("3")
    page.evaluate(FOLLOWED)
    assert address_of(page).endswith("#view1?stages=3&replicas=1&rank=0")
    assert copied(second).endswith("#view2?stages=2&replicas=1&rank=1")
    expect(second.locator(".share [role=status]")).to_contain_text("The address of the page keeps only the view that was changed last.")
    assert copied(first).endswith("#view1?stages=3&replicas=1&rank=0")
    assert address_of(page).endswith("#view1?stages=3&replicas=1&rank=0")


def changes_make_no_entries_in_the_history(page: Page) -> None:
    before = page.evaluate("history.length")
    for rank in ("1", "0", "1"):
        page.get_by_label("Rank", exact=True).select_option(rank)
        page.evaluate(FOLLOWED)
    assert address_of(page).endswith("rank=1")
    assert page.evaluate("history.length") == before
    page.reload()
    expect(page.get_by_label("Rank", exact=True)).to_have_value("1")


def a_link_that_cannot_be_copied_stands_selected_in_a_field(page: Page) -> None:
    page.evaluate(NO_COPIES)
    view = page.locator(".live-widget > *")
    view.get_by_role("button", name="Copy a link").press("Enter")
    field = view.get_by_label("Link", exact=True)
    expect(field).to_be_focused()
    assert field.get_attribute("readonly") is not None
    assert page.evaluate("getSelection().toString()") == field.input_value() == f"{address_of(page)}#view1?stages=2&replicas=1&rank=0"
    expect(view.get_by_role("status").filter(has_text="did not allow")).to_be_visible()


def a_page_without_a_clipboard_shows_the_link_too(page: Page) -> None:
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy a link").click()
    expect(page.get_by_label("Link", exact=True)).to_be_focused()


def test_a_view_in_a_notebook_has_no_link(together: Together) -> None:
    widget = mesh()
    page = together(widget)
    kept = {name: value for name, value in widget.get_state().items() if name in ("data", *widget.SETTING)}
    page.evaluate(
        """async ([code, state]) => {
          const { default: { render } } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
          const model = { get: (name) => state[name], set() {}, on() {}, off() {}, save_changes() {}, send() {} };
          document.body.replaceChildren();
          render({ model, el: document.body });
        }""",
        [str(widget._esm), kept],
    )
    assert page.locator(".hybridlab-mesh").count() == 1
    assert page.get_by_role("button", name="Copy a link").count() == 0
    assert not page.locator(".share").is_visible()


SMALLER = """async ([code, state, changes]) => {
  const { default: { render } } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const heard = {};
  const on = (event, hear) => (heard[event] = hear);
  const model = { get: (name) => state[name], set() {}, on, off() {}, save_changes() {}, send() {} };
  document.body.replaceChildren();
  render({ model, el: document.body });
  for (const [name, value] of changes) {
    state[name] = value;
    heard[`change:${name}`]();
    await new Promise((drawn) => setTimeout(drawn));
  }
}"""


@in_turn(
    "name, first, changes",
    [
        ("MeshView", {"stages": 3, "replicas": 4, "rank": 11}, [("replicas", 1), ("rank", 0)]),
        ("StepExplorer", {"replicas": 2, "rank": 3}, [("replicas", 1), ("rank", 0)]),
        ("RingStepper", {"ranks": 4, "step": 6}, [("ranks", 2), ("step", 2)]),
    ],
)
def test_a_kernel_that_sends_a_smaller_size_before_the_rank_or_the_step_breaks_no_view(
    together: Together, name: str, first: dict[str, int], changes: list[tuple[str, int]]
) -> None:
    widget = MAKE[name]()
    with widget.hold_trait_notifications():
        for trait, value in first.items():
            setattr(widget, trait, value)
    page = together(mesh())
    kept = {trait: value for trait, value in widget.get_state().items() if trait in ("data", *widget.SETTING)}
    page.evaluate(SMALLER, [str(widget._esm), kept, changes])
    assert page.locator(".damaged").count() == 0
    assert page.locator(".told").count() > 0


@pytest.mark.needs("axe")
@in_turn("width, scheme", [(1280, "light"), (360, "dark")])
def test_the_row_is_accessible_and_fits(together: Together, width: int, scheme: Any) -> None:
    page = together(mesh(), mesh(), fragment="#view1?rank=99")
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.evaluate(NO_COPIES)
    page.get_by_role("button", name="Copy a link").first.click()
    expect(page.get_by_label("Link", exact=True)).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, ".live-widget") == []


def the_row_is_not_printed(page: Page) -> None:
    page.emulate_media(media="print")
    assert not page.get_by_role("button", name="Copy a link").is_visible()


# ---- what only the page has: time, zoom, what is chosen ----

# what a view shows, without the words on the last change of a cluster explorer
LOOK = """(root) => ({
  words: [...root.querySelectorAll(".told, .held, .pins, .compared")].map((each) => each.textContent.replace(/Before, .*/, "")),
  time: [...root.querySelectorAll("[id$=-time], [id$=-step]")].map((each) => each.value),
  marks: [...root.querySelectorAll(".path, .now, .chosen, .here, .pin, .cursor")]
    .map((each) => [each.getAttribute("class"), each.textContent, each.getAttribute("d"), each.getAttribute("x")]),
  widths: [...root.querySelectorAll(".picture svg")].map((each) => each.getAttribute("width")),
  scrolled: [...root.querySelectorAll(".picture")].map((each) => Math.round(each.scrollLeft / 2)),
})"""


def look_at_a_timeline(view: Locator) -> None:
    view.get_by_role("button", name="Critical path").click()
    for _ in range(2):
        view.get_by_role("button", name="Zoom in").click()
    view.locator("[id$=-time]").press("ArrowLeft")
    view.locator(".panel").nth(1).locator(".idle").first.dispatch_event("click")
    view.locator(".picture").evaluate("(box) => (box.scrollLeft = 300)")


def look_with_the_keyboard(view: Locator) -> None:
    view.locator(".op[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", " "):
        view.page.keyboard.press(key)


def look_at_a_step(view: Locator) -> None:
    view.locator("[id$=-shown]").select_option("rings")
    view.get_by_role("button", name="Zoom in").click()
    view.locator("[id$=-time]").press("ArrowRight")


def look_at_a_ring(view: Locator) -> None:
    view.locator("[id$=-step]").evaluate("(slider) => { slider.value = 1.5; slider.dispatchEvent(new Event('input')); }")
    for key in ("ArrowRight", "ArrowDown"):
        view.locator(".matrix").press(key)


def look_at_a_schedule(view: Locator) -> None:
    view.locator(".op").nth(2).dispatch_event("click")
    view.locator("[id$=-time]").press("ArrowLeft")


def look_at_a_film(view: Locator) -> None:
    view.locator(".panel").nth(2).locator(".op").nth(1).dispatch_event("click")
    view.locator("[id$=-time]").press("Home")
    for _ in range(3):
        view.locator("[id$=-time]").press("ArrowRight")


def pin_two_plans(view: Locator) -> None:
    view.get_by_role("button", name="Pin as A").click()
    view.get_by_label("Stages K").select_option("2")
    view.get_by_role("button", name="Pin as B").click()
    view.get_by_label("Stages K").select_option("1")


LOOKS: dict[str, tuple[Callable[[], Any], Callable[[Locator], None], str]] = {
    "timeline": (
        lambda: TimelineExplorer(devices=4, microbatches=4, show={"compare": "1f1b"}),
        look_at_a_timeline,
        r"&time=19&zoom=4&path=true&chosen=idle\+before\+0B0\+below&left=[\d.]+$",
    ),
    "keyboard": (lambda: TimelineExplorer(devices=4, microbatches=4), look_with_the_keyboard, r"&chosen=1F0$"),
    "step": (
        lambda: StepExplorer("1f1b", replicas=2, microbatches=2, ring_step=1),
        look_at_a_step,
        r"&zoom=2(&left=[\d.]+)?&rings=true&played=true$",
    ),
    "ring": (lambda: RingStepper(ranks=(2, 4)), look_at_a_ring, r"step=1&time=1.5&chosen=1;1$"),
    "editor": (lambda: ScheduleEditor(devices=2, microbatches=3), look_at_a_schedule, r"&time=\d+&chosen=0F2$"),
    "film": (
        lambda: TimelineFilm(("gpipe", "1f1b", "zb-h1"), devices=2, microbatches=2),
        look_at_a_film,
        r"#view1\?time=3&chosen=0F1\+below\+below$",
    ),
    "cluster": (MAKE["ClusterExplorer"], pin_two_plans, r"&A=GPT\+175B;.*&B=GPT\+175B;"),
}


@in_turn("name", LOOKS)
def test_a_link_opens_the_same_picture_in_another_browser(together: Together, name: str) -> None:
    make, look, words = LOOKS[name]
    page = together(make())
    view = page.locator(".live-widget > *")
    look(view)
    page.evaluate(FOLLOWED)
    address, seen = address_of(page), view.evaluate(LOOK)
    assert re.search(words, address), address
    assert page.context.browser is not None
    other = page.context.browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    again = open_page(other.new_page(), address)
    again.evaluate(FOLLOWED)
    assert again.locator(".live-widget > *").evaluate(LOOK) == seen
    assert told(again) == []
    other.close()


def a_new_setting_lets_go_of_what_was_chosen_and_the_link_with_it(page: Page) -> None:
    go(page, "#view1?devices=4&chosen=3F2&time=5&zoom=2")
    assert page.locator(".told strong").text_content() == "3F2"
    page.get_by_role("slider", name="Devices").press("ArrowLeft")
    page.evaluate(FOLLOWED)
    assert address_of(page).endswith("&compare=&zoom=2")


def a_link_of_a_text_leaves_the_look_and_a_copied_link_brings_its_own(page: Page) -> None:
    path = page.get_by_role("button", name="Critical path")
    page.get_by_label("Schedule").select_option("1f1b")
    page.evaluate(FOLLOWED)
    copied_before = address_of(page)
    path.click()
    go(page, "#view1?p2p=1")
    expect(path).to_have_attribute("aria-pressed", "true")
    go(page, f"#{copied_before.partition('#')[2]}")
    expect(path).to_have_attribute("aria-pressed", "false")


def test_the_look_after_other_links(together: Together) -> None:
    questions = (
        a_new_setting_lets_go_of_what_was_chosen_and_the_link_with_it,
        a_link_of_a_text_leaves_the_look_and_a_copied_link_brings_its_own,
    )
    in_order(together(TimelineExplorer(devices=(2, 4), microbatches=4)), questions, again=as_new)


# ---- a view alone in another page ----

# below the heading only the top of the frame is seen
TALK = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Talk</title><h1 style="margin-bottom: 700px">Talk</h1>'


@pytest.mark.needs("axe")
def test_a_view_is_embedded_in_a_page_of_another_folder(together: Together, tmp_path: Path, faults: list[str]) -> None:
    page = together(mesh(), TimelineExplorer(devices=(2, 3), microbatches=(2, 4)))
    allow_copies(page)
    source = page.url
    view = page.locator(".live-widget > *").nth(1)
    view.get_by_role("slider", name="Devices").press("ArrowRight")
    view.get_by_role("button", name="Embed").press("Enter")
    expect(view.locator(".share [role=status]")).to_contain_text("is copied")
    line = str(page.evaluate("navigator.clipboard.readText()"))
    assert unescape(line).startswith(f'<iframe src="{source}#embed2?schedule=gpipe&devices=3&')
    slides = tmp_path / "slides/talk.html"
    slides.parent.mkdir()
    slides.write_text(f"{TALK}{line}", encoding="utf-8")
    page.goto(slides.as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.locator(".panel .title")).to_have_text("GPipe, 3 devices, 2 microbatches")
    root = frame.locator("html")
    alone = "(root) => [root.lang, document.title, document.querySelectorAll('.hybridlab-view').length]"
    assert root.evaluate(alone) == ["en", "Widget", 1]
    assert not frame.locator("h2").is_visible()
    assert root.evaluate("(root) => root.scrollHeight <= innerHeight"), "the frame is high enough"
    assert page.evaluate("scrollY") == 0, "the page around the frame stays where it was"
    back = frame.get_by_role("link", name="Widget")
    frame.get_by_role("slider", name="Microbatches").press("ArrowRight")
    with page.context.expect_page() as opened:
        back.click()
    assert address_of(opened.value).startswith(f"{source}#view2?schedule=gpipe&devices=3&microbatches=4&")
    opened.value.close()
    assert violations(page, "iframe") == []
    assert faults == []
    page.goto("about:blank")
    page.goto(f"{source}#embed7")
    expect(page.locator("body")).to_have_text("This page has no such view: Widget", use_inner_text=True)


def test_an_embedded_view_of_the_site_has_the_title_of_its_section(new_page: NewPage, server: str) -> None:
    page = new_page(f"{server}book/start.html")
    page.goto(f"{server}labs/lab02_one_f_one_b.html#embed1?devices=3")
    expect(page.locator(".panel .title").first).to_contain_text("3 devices")
    page.evaluate(FOLLOWED)
    assert page.title().startswith("1. A first timeline, Lab 2: ")
    assert [part.is_visible() for part in page.locator("body > *:not(script)").all()].count(True) == 1


# ---- every link ----

NAMES = "schedule devices chunks p2p forward slow_device time zoom chosen left ranks step rank stages replicas overlap ring at drawn"
WORDS = "0 -1 1 2 3 1.5 1e99 null true false 1; 1;0 gpipe 0F0 __proto__ ring ;;"
LINKS = st.dictionaries(
    st.sampled_from(f"{NAMES} quantity formats text A B rings played".split()), st.sampled_from(["", *WORDS.split()]), max_size=5
)


@in_turn("name", SHARED)
def test_no_link_breaks_a_view(together: Together, name: str) -> None:
    page = together(MAKE[name]())

    @examples(20)
    @given(LINKS)
    def check(words: dict[str, str]) -> None:
        go(page, f"#view1?{urlencode(words)}")
        assert page.locator(".damaged").count() == 0, words

    check()


# ---- wrong links ----

# a view, the words of a link, and what can be shown instead
WRONG = [
    ("MeshView", "colour=red", "The link asks for colour, but this view has only stages, replicas and rank."),
    ("MeshView", "_esm=export+default+1", "The link asks for _esm,"),
    ("MeshView", "data=1", "The link asks for data,"),
    ("MeshView", "rank=", "The link asks for rank=, but rank can be a whole number from 0 to 1."),
    ("MeshView", "rank=one", "rank=one"),
    ("MeshView", "stages=2%ZZ", "The link asks for stages=2%ZZ, but stages can be 2 or 3."),
    ("MeshView", "rank=true", "rank=true"),
    ("MeshView", "rank=99", "rank can be a whole number from 0 to 1."),
    ("MeshView", "rank=1.5", "rank can be a whole number from 0 to 1."),
    ("MeshView", "stages=2;3", "stages can be 2 or 3."),
    ("MeshView", "stages=1e999", "stages can be 2 or 3."),
    ("SweepExplorer", "quantity=constructor", "quantity can be "),
    ("SweepExplorer", "chosen.p2p=7", "chosen.p2p can be "),
    ("SweepExplorer", "chosen.q=0", "The link asks for chosen.q, but this view has only "),
    ("SweepExplorer", "drawn=GPipe;none", "drawn can be empty, or some of "),
    ("SweepExplorer", "logarithmic=colour", "logarithmic can be empty, or some of "),
    ("SweepExplorer", "at=7", "at can be "),
    ("ErrorExplorer", "formats=INT9", "formats can be empty, or some of INT8 "),
    ("ErrorExplorer", "algorithm=none", "algorithm can be ring, one-shot or both."),
    ("ErrorExplorer", "distribution=odd", "distribution can be normal."),
    ("ErrorExplorer", "ranks=3", "ranks can be 2 or 4."),
    ("TimelineExplorer", "schedule=zb-h1", "The link asks for schedule=zb-h1, but schedule can be gpipe or 1f1b."),
    ("TimelineExplorer", "compare=none", "compare can be empty, gpipe or 1f1b."),
    ("TimelineExplorer", "devices=1000000000", "devices can be 2 or 3."),
    ("TimelineExplorer", "microbatches=2.5", "microbatches can be 2 or 4."),
    ("TimelineExplorer", "forward=-1", "forward can be a number of at least 0."),
    ("TimelineExplorer", "p2p=-3", "The link asks for p2p=-3, but p2p can be a number of at least 0."),
    ("TimelineExplorer", "p2p=null", "p2p can be a number of at least 0."),
    ("TimelineExplorer", "p2p=1;2", "p2p can be a number of at least 0."),
    ("TimelineExplorer", "weight_share=2", "weight_share can be a number from 0 to 1."),
    ("TimelineExplorer", "slow_device=first", "slow_device can be null, or a whole number of at least 0."),
    ("TimelineExplorer", "chosen=7F0", "chosen can be an operation of the picture"),
    ("TimelineExplorer", "chosen=0", "chosen can be an operation of the picture"),
    ("TimelineExplorer", "time=99", "time can be null, or a number from 0 to "),
    ("TimelineExplorer", "zoom=0", "zoom can be a number from 1 to 64."),
    ("TimelineExplorer", "path=1", "path can be false or true."),
    ("StepExplorer", "schedule=none", "schedule can be 1f1b."),
    ("StepExplorer", "replicas=3", "replicas can be 1 or 2."),
    ("StepExplorer", "rank=99", "rank can be a whole number from 0 to "),
    ("StepExplorer", "rank=-1", "rank can be a whole number from 0 to "),
    ("StepExplorer", "time=-1", "time can be a number of at least 0."),
    ("StepExplorer", "time=null", "time can be a number of at least 0."),
    ("StepExplorer", "overlap=1", "overlap can be false or true."),
    ("RingStepper", "ranks=3", "ranks can be 2 or 4."),
    ("RingStepper", "step=99", "step can be a whole number from 0 to 2."),
    ("RingStepper", "step=0.5", "step can be a whole number from 0 to 2."),
    ("RingStepper", "chosen=0;2", "chosen can be null, or a rank and a chunk from 0 to 1, such as 1;0"),
    ("ClusterExplorer", "stages=3", "stages can be "),
    ("ClusterExplorer", "gpu=none", "gpu can be "),
    ("ClusterExplorer", "A=1;2", "A can be "),
    ("TrainingCurves", "step=99", "step can be a whole number from 1 to 3."),
    ("TrainingCurves", "step=0", "step can be a whole number from 1 to 3."),
    ("TrainingCurves", "chosen=0.2", "chosen can be 0.1 or 0.3."),
]


def says(page: Page, sentence: str, before: str | None) -> None:
    note = page.locator(".live-widget-note")
    expect(note).to_contain_text(sentence)
    expect(note).to_contain_text(UNCHANGED)
    assert page.locator(".hybridlab-view").text_content() == before


@in_turn("name", SHARED)
def test_a_wrong_link_leaves_the_view_as_it_was_and_says_what_is_wrong(together: Together, name: str) -> None:
    page = together(MAKE[name]())
    before, address = page.locator(".hybridlab-view").text_content(), address_of(page)
    wrong = [wrong for kind, *wrong in WRONG if kind == name]
    for query, sentence in wrong:
        go(page, f"#view1?{query}")
        says(page, sentence, before)
        assert not address_of(page).endswith(f"?{query}"), "the address is set right"
    if wrong:
        query, sentence = wrong[-1]
        page.goto("about:blank")
        says(open_page(page, f"{address}#view1?{query}"), sentence, before)


def test_what_can_be_shown_of_a_link_is_shown_and_the_address_is_set_right(together: Together) -> None:
    page = together(
        TimelineExplorer(devices=(2, 3), microbatches=(2, 4)), fragment="#view1?devices=5&p2p=1.5&schedule=zb-h1&microbatches=4&zoom=2"
    )
    expect(page.locator(".live-widget-note")).to_have_text(
        "The link asks for schedule=zb-h1, but schedule can be gpipe or 1f1b. The link asks for devices=5, but devices can be 2 or 3. "
        "The rest of the link is shown."
    )
    assert re.search(r"#view1\?schedule=gpipe&devices=2&microbatches=4&.*&p2p=1.5&.*&zoom=2$", address_of(page))
    assert page.locator(".panel .title").text_content() == "GPipe, 2 devices, 4 microbatches"
    page = together(MeshView((2, 3), (1, 4), show={"stages": 3, "replicas": 4, "rank": 11}), fragment="#view1?stages=2")
    expect(page.get_by_label("Rank", exact=True)).to_have_value("0")  # rank 11 is no rank of this mesh
    assert told(page) == []


@in_turn("fragment", ["#view3?rank=1", "#view0", "#view99999999999999999999?a=1", "#view2?answer=GPipe"])
def test_a_link_to_no_view_with_a_setting_is_told_beside_the_first(together: Together, fragment: str) -> None:
    bet = Bet("share.sooner", "Which is sooner?", choices=("GPipe", "1F1B"))
    page = together(mesh(), bet, fragment=fragment)
    expect(page.locator(".live-widget").first.locator(".live-widget-note")).to_contain_text("no view of this number has a setting")
    assert len(told(page)) == 1
    assert page.get_by_text("Your bet: GPipe").count() == 0


@in_turn("fragment", ["#view", "#view1x", "#viewer?rank=1", "#", "#1?rank=1", "#%"])
def test_other_fragments_are_none_of_the_views_business(together: Together, fragment: str) -> None:
    page = together(mesh(), fragment=fragment)
    assert told(page) == []
    expect(page.get_by_label("Rank", exact=True)).to_have_value("0")


def test_the_sentence_goes_away_with_the_readers_next_change(together: Together) -> None:
    page = together(mesh(), fragment="#view1?rank=99")
    assert len(told(page)) == 1
    page.get_by_label("Rank", exact=True).select_option("1")
    assert told(page) == []


def test_a_damaged_view_is_damaged_with_a_link_too(together: Together, faults: list[str]) -> None:
    widget = mesh()
    widget.set_trait("data", {})
    page = together(widget, fragment="#view1?rank=1")
    assert page.locator(".damaged").count() == 1
    assert all("console warning" in fault for fault in faults)
    faults.clear()


# ---- values ----

VALUES = [
    ("number=2.5", {"number": 2.5}),
    ("number=-1e-3", {"number": -0.001}),
    ("number=1;2;1.5", {"number": [1, 2, 1.5]}),
    ("number=2;", {"number": [2]}),
    ("number=null", {"number": None}),
    ("text=2&empty=device+0", {"text": "2", "empty": "device 0"}),
    ("text=", {"text": ""}),
    ("empty=3", {"empty": 3}),
    ("text=device+0%3A+0F0+%280F1%3B0B0%29%0Adevice+1%3A+1F0", {"text": "device 0: 0F0 (0F1;0B0)\ndevice 1: 1F0"}),
    ("text=%3Cimg+src%3Dx%3E", {"text": "<img src=x>"}),
    ("flag=false", {"flag": False}),
    ("numbers=3;4;5", {"numbers": [3, 4, 5]}),
    ("numbers=3;", {"numbers": [3]}),
    ("numbers=3", {"numbers": 3}),
    ("texts=c", {"texts": ["c"]}),
    ("texts=", {"texts": []}),
    ("texts=a%253Bb;100%2525;c,d", {"texts": ["a;b", "100%", "c,d"]}),
    ("nothing=null", {"nothing": None}),
    ("nothing=4", {"nothing": 4}),
    ("nothing=some", {"nothing": "some"}),
    ("parts.x=2", {"parts": {"x": 2}}),
    ("number=1&number=2", {"number": 2}),
]
OTHER_TYPES = ["number=a", "number=", "number=1,2", "number=0x10", "number=1;a", "flag=1", "numbers=a;b", "parts=1"]


def test_each_value_of_a_link_gets_the_type_of_its_trait(together: Together) -> None:
    page = together(Probe())
    for query, values in VALUES:
        page.evaluate("(plain) => window.probe.set(plain)", PLAIN)
        go(page, f"#view1?{query}")
        assert told(page) == []
        assert read(page) == PLAIN | values


def test_another_type_or_name_changes_nothing(together: Together) -> None:
    page = together(Probe(), fragment="#view1?secret=1")
    for query in ("secret=1", *OTHER_TYPES, "_esm=a", "parts.y=1", "constructor=1"):
        go(page, f"#view1?{query}")
        expect(page.get_by_role("alert")).to_contain_text("The link asks for")
        assert read(page) == PLAIN
        assert page.evaluate("window.probe.get('secret')") == "kept"


def test_a_sentence_about_a_link_goes_with_the_next_link(together: Together) -> None:
    page = together(mesh(), mesh(), fragment="#view1?rank=99")
    assert len(told(page)) == 1
    go(page, "#view2?rank=1")
    assert told(page) == []


texts = st.text(st.characters(codec="utf-8"), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)
SETTINGS = st.fixed_dictionaries(
    {
        "number": st.none() | numbers | st.lists(numbers, min_size=1, max_size=3),
        "text": texts,
        "empty": st.integers(0, 9) | texts.filter(lambda text: not re.fullmatch(r"[-+.\deE]*", text)),
        "flag": st.booleans(),
        "numbers": st.lists(numbers, min_size=1, max_size=3) | numbers,
        "texts": st.lists(texts, min_size=1, max_size=3).filter(lambda items: items != [""]) | st.just([]),
        "nothing": st.none() | numbers,
        "parts": st.fixed_dictionaries({"x": numbers}),
    }
)


def test_every_setting_comes_back_from_its_link(together: Together) -> None:
    page = together(Probe())

    @examples(200)
    @given(SETTINGS)
    def check(setting: dict[str, Any]) -> None:
        link = page.evaluate("(setting) => { window.probe.set(setting); return window.probe.page.link(); }", setting)
        wanted = read(page)
        assert not re.search(r"[\s<>\"`]", link)
        page.evaluate("(plain) => window.probe.set(plain)", PLAIN)
        go(page, "#")
        go(page, f"#{link.partition('#')[2]}")
        assert told(page) == []
        assert read(page) == wanted

    check()


def test_one_view(together: Together) -> None:
    questions = (
        changes_make_no_entries_in_the_history,
        a_link_that_cannot_be_copied_stands_selected_in_a_field,
        a_page_without_a_clipboard_shows_the_link_too,
        the_row_is_not_printed,
    )
    in_order(together(mesh()), questions, again=as_new)


def test_two_views(together: Together) -> None:
    questions = (
        a_page_without_a_link_keeps_its_address_and_its_place,
        the_button_of_each_view_copies_a_link_to_it_and_the_address_keeps_the_last_change,
    )
    in_order(together(mesh(), mesh()), questions, again=as_new)
