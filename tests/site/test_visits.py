"""Visit every page of the site, from a server and from files, and ask it all that can be asked of every page.

A page must load completely, fit a phone, be light, print on white paper, and be accessible in light and dark colours. What a single page
has of its own is asked in other files.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accessibility import OF_COLOURS, thinned, violations
from browser import MOST_BYTES, SITE, weight_of
from explorers import explorers_of, is_right
from lab_views import KINDS
from missing import here
from number_texts import texts_of
from playwright.sync_api import Error
from visits import DRAWN, Visit, asked, faults_of

from hybridlab import widgets
from hybridlab.course.tasks import TASKS, check

PHONE = {"is_mobile": True, "has_touch": True}
SCREENS = 2.5 * 900  # px, of a laptop whose window is 1280 px wide
LAPTOP_HIGH, PHONE_HIGH = 800, 740  # px
LOW_SCREEN = 720  # px
OWN = re.compile(r"\.(hybridlab-(?!view\b)\w+)")  # the class of a kind of view
PICTURES = ".hybridlab-view :is(.picture, .plots) svg"
CONTROLS = "button, select, [type=range], .lab-bar, .bd-header, .bd-header-article, [class*=bd-sidebar], .prev-next-area"
HEAVIEST = 3_000_000  # bytes of a printed page
A4 = 718  # in px: 210 mm less two margins of 1 cm
LAB_3 = "labs/lab03_bubbles_and_memory.html"
PRINTED = (LAB_3, "book/gallery.html")  # as a file of a printer; others only as a page
LAPTOP = 1366
WIDE = ("404.html", "book/intro.html", "labs/lab04_ring.html")  # pages of each kind, with all that stands beside them
# timelines, curves and marks, points and stacks, a mesh
FIGURES = (LAB_3, "labs/lab10_scaling.html", "book/trust.html", "labs/lab01_mesh.html")

# Finds texts that reach beyond the page, or beyond a box that hides what does not fit. The content of a box that scrolls may be wider.
CUT = """(wide) => {
  const cut = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const boxes = new Map();
  const boxOf = (element) => {
    if (!boxes.has(element)) boxes.set(element, [getComputedStyle(element), element.getBoundingClientRect()]);
    return boxes.get(element);
  };
  const beyond = (rect, element) => {
    for (let each = element; each && each !== document.body; each = each.parentElement) {
      const [style, box] = boxOf(each);
      if (style.overflowX === "auto" || style.overflowX === "scroll") return false;
      const hides = style.overflowX !== "visible" && style.display !== "inline" && box.width > 2; // narrower: for screen readers only
      if (style.overflowX !== "visible" && box.width <= 2) return false;
      if (hides && (rect.right > box.right + 1 || rect.left < box.left - 1)) return true;
      if (style.position === "fixed") break;
    }
    return rect.right > wide + 1 || rect.left < -1;
  };
  while (walker.nextNode()) {
    const { currentNode: node } = walker;
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest("script, style, dialog:not([open]), select")) continue;
    range.selectNodeContents(node);
    if ([...range.getClientRects()].some((rect) => rect.width > 1 && beyond(rect, element))) cut.add(node.data.trim().slice(0, 60));
  }
  return [...cut];
}"""
# Finds boxes that scroll sideways although the Tab key reaches neither the box nor anything in it, and boxes that it reaches in vain.
OUT_OF_REACH = """() => {
  const scrolls = (each) => each.scrollWidth > each.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(each).overflowX);
  const name = (each) => `${each.localName} ${each.className}`;
  const missed = [...document.querySelectorAll("article *")].filter((each) => each.scrollWidth > each.clientWidth + 1 && scrolls(each)
    && each.checkVisibility() && each.tabIndex < 0 && !each.querySelector("a[href], button, select, input, [tabindex='0']"));
  const vain = [...document.querySelectorAll("article :is(pre, .math-block, figure)[tabindex='0']:not(.hybridlab-view *)")]
    .filter((each) => each.checkVisibility() && each.scrollWidth <= each.clientWidth);
  return [...missed.map(name), ...vain.map((each) => `${name(each)}, in vain`)];
}"""
# Finds what is visible on paper, just before the browser prints (the page has already got the event).
ON_PAPER = """([cut, controls, pictures]) => addEventListener("beforeprint", () => {
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility({ opacityProperty: true }));
  const wide = document.documentElement.clientWidth;
  const reaching = seen(pictures).filter((each) => each.getBoundingClientRect().right > wide + 1);
  window.onPaper = {
    ground: [document.documentElement, document.body].map((each) => getComputedStyle(each).backgroundColor),
    left: seen(controls).map((each) => `${each.tagName.toLowerCase()} ${each.className}`),
    pictures: seen(pictures).length,
    reaching: reaching.map((each) => Math.round(each.getBoundingClientRect().right)),
    cut: eval(cut)(wide),
  };
})"""
PRINT = """() => {
  dispatchEvent(new Event("beforeprint"));
  dispatchEvent(new Event("afterprint"));
}"""
# Finds rules in the style sheet of a view (sheets are named by the view's class) that also reach elements outside such views.
BEYOND = """(sheets) => {
  const told = [];
  for (const [name, css, own] of sheets) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    const rules = [...sheet.cssRules];
    for (const rule of rules) {
      if (rule instanceof CSSMediaRule || rule instanceof CSSContainerRule) rules.push(...rule.cssRules);
      else if (rule instanceof CSSKeyframesRule && rule.name.startsWith("hybridlab-")) continue; // no other part uses this name
      else if (!(rule instanceof CSSStyleRule)) told.push(`${name}: ${rule.cssText.slice(0, 60)} is no rule of style`);
      else if (rule.cssRules.length) told.push(`${name}: ${rule.selectorText} holds other rules`);
      else {
        // the element that has a pseudo-element, and in every state
        const selector = rule.selectorText.replaceAll(/::[\\w-]+|:(hover|active|focus(-visible|-within)?)(?![\\w-])/g, ":not(none)");
        const reached = [...document.querySelectorAll(selector)].filter((each) => !each.closest(own));
        if (reached.length) told.push(`${name}: ${rule.selectorText} reaches a ${reached[0].localName} elsewhere`);
      }
    }
  }
  return told;
}"""
# Moves one control after the other to its end, and lets the view draw. The time stays at its end, where the picture is whole.
TO_THE_END = """async () => {
  for (const view of document.querySelectorAll(".hybridlab-view")) {
    const controls = () => [...view.querySelectorAll(":is(select, [type=range]):not(.player *)")].filter((each) => each.checkVisibility());
    for (let place = 0; place < controls().length; place++) {
      const control = controls()[place];
      if (control.options) control.selectedIndex = control.options.length - 1;
      else control.value = control.max;
      for (const event of ["input", "change"]) control.dispatchEvent(new Event(event, { bubbles: true }));
      await new Promise(queueMicrotask);
    }
  }
}"""
# The lowest edge of the setting, the picture and the readout of each view, from its upper edge, where folds are open; the cluster explorer
# also says its setting in words below its tables.
LOWEST = """async () => {
  const folds = [...document.querySelectorAll("details:not([open])")].filter((fold) => !fold.closest(".hybridlab-view"));
  for (const fold of folds) fold.open = true;
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const found = [...document.querySelectorAll(".hybridlab-view:has(.picture, .plots)")].map((view) => {
    const parts = [...view.querySelectorAll(".fields, .tools, .player, .picture, .plots, .map, .told:not(.plan, .own .told)")]
      .filter((part) => part.checkVisibility());
    const bottom = Math.max(...parts.map((part) => part.getBoundingClientRect().bottom));
    return [view.className, bottom - view.getBoundingClientRect().top];
  });
  for (const fold of folds) fold.open = false;
  return found;
}"""
# Scrolls to each control that changes a picture, as a reader does who wants to use it, and finds those at which less than half of the
# picture is seen, or less than 120 px of a high one.
UNSEEN_PICTURES = """async () => {
  const unseen = [];
  const top = document.querySelector(".bd-header-article").getBoundingClientRect().bottom;
  const views = [...document.querySelectorAll(".hybridlab-view:has(.picture)")].filter((view) => view.checkVisibility());
  for (const view of views) {
    const picture = view.querySelector(".picture");
    for (const control of view.querySelectorAll(".fields :is(select, input), .player input, textarea")) {
      if (!control.checkVisibility()) continue;
      control.scrollIntoView({ block: "end", behavior: "instant" });
      await new Promise((drawn) => requestAnimationFrame(drawn));
      const box = picture.getBoundingClientRect();
      const seen = Math.min(box.bottom, innerHeight) - Math.max(box.top, top);
      if (seen < Math.min(box.height / 2, 120)) unseen.push(`${view.className}, ${control.id}: ${seen} of ${box.height} px`);
    }
  }
  scrollTo({ top: 0, behavior: "instant" });
  return unseen;
}"""
# The contrast of each text of a figure to what is behind its middle: the first shape there with a plain colour, or the page.
CONTRASTS = """async (svg) => {
  svg.scrollIntoView({ block: "center" });
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))); // a figure far from the screen is not drawn
  const luminance = (colour) => {
    const [red, green, blue] = colour.match(/[\\d.]+/g).map((each) => each / 255).map((each) =>
      each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  return [...svg.querySelectorAll("text")].map((text) => {
    text.scrollIntoView({ block: "center" });
    const { left, right, top, bottom } = text.getBoundingClientRect();
    const behind = document.elementsFromPoint((left + right) / 2, (top + bottom) / 2)
      .filter((each) => svg.contains(each) && ["path", "use", "rect"].includes(each.localName)).map((each) => getComputedStyle(each).fill)
      .find((fill) => fill.startsWith("rgb("));
    const [ink, ground] = [getComputedStyle(text).fill, behind ?? getComputedStyle(document.body).backgroundColor].map(luminance);
    return [text.textContent, (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)];
  });
}"""
SEEN_FIGURES = "(figures) => figures.map((each) => each.checkVisibility())"
# Finds the outermost folds of solutions, answers and optional parts, and whether each stands open or shows its content.
FOLDS = """() => [...document.querySelectorAll(":is(.tag_solution details, details.hide, details.fold):not(details details)")]
  .map((fold) => fold.open || (fold.lastElementChild.checkVisibility({ visibilityProperty: true })
    && fold.lastElementChild.getBoundingClientRect().height > 0))"""
# Opens the folds of a page, or closes those that it has opened.
OPEN_FOLDS = """(open) => {
  if (open) globalThis.opened = [...document.querySelectorAll("details:not([open])")];
  for (const fold of globalThis.opened) fold.open = open;
}"""
# Writes texts into the fields of each number task, hands them in, and gives what each form says then.
HAND_IN = """(answers) => Object.fromEntries(Object.entries(answers).map(([key, texts]) => {
  const box = [...document.querySelectorAll(".number-task")]
    .find((each) => each.textContent.includes(`Check your answer to ${key} here`));
  const fields = [...(box?.querySelectorAll("input") ?? [])];
  if (fields.length !== texts.length) return [key, `${fields.length} fields for ${texts.length} texts`];
  fields.forEach((field, place) => { field.value = texts[place]; });
  box.querySelector("form").requestSubmit();
  return [key, box.querySelector("[role=status]").textContent];
}))"""


def is_lab(name: str) -> bool:
    return name.startswith("labs/")


def is_weighed(name: str) -> bool:
    return name.startswith(tuple(MOST_BYTES))


def has_explorers(name: str) -> bool:
    return 'rootIn(el, \\"explorer\\")' in (SITE / name).read_text(encoding="utf-8")


def is_of_the_views(name: str) -> bool:
    return name in {kind.lab for kind in KINDS} | {"book/intro.html", "book/gallery.html", "book/api.html", LAB_3}


def has_figures(name: str) -> bool:
    return name in FIGURES


def sheets() -> list[tuple[str, str, str]]:
    """Return (name, style sheet, selector of its views) of every widget; two sheets must not be for the same class of views."""
    found = {str(getattr(widgets, name)._css): name for name in widgets.__all__}  # two widgets may share a sheet
    own = {css: sorted(set(OWN.findall(css))) for css in found}
    assert all(own.values())
    assert len(set().union(*own.values())) == sum(map(len, own.values()))
    return [(name, css, ", ".join(f".{each}" for each in own[css])) for css, name in found.items()]


# ---- the page as it is ----


@asked()
def it_is_whole(visit: Visit) -> None:
    assert visit.page.title()
    assert visit.page.locator("h1:visible").count() == 1
    assert all(map(str.strip, visit.page.locator("thead:not(.hybridlab-view *)").all_text_contents())), "a table has an empty head"


@asked(of=is_weighed)
def a_first_visit_is_light(visit: Visit) -> None:
    (most,) = (most for start, most in MOST_BYTES.items() if visit.name.startswith(start))
    visit.page.evaluate("document.fonts.ready")  # the last file that a page requests
    sizes = weight_of(visit.page, visit.site, visit.top)
    pictures = {".png"} if visit.page.locator("article img[src$='.png']").count() else set()
    assert {".css", ".html", ".js", ".woff2"} | pictures <= {Path(name).suffix for name in sizes}
    heaviest = ", ".join(f"{name} {size / 1e3:.0f} kB" for name, size in sorted(sizes.items(), key=lambda each: -each[1])[:6])
    assert sum(sizes.values()) <= most, f"{sum(sizes.values()) / 1e3:.0f} kB: {heaviest}"


@asked(of=is_lab)
def its_first_picture_stands_on_the_first_screen(visit: Visit) -> None:
    """It is a still picture; after two and a half screens at most, the first view with controls begins."""
    view = visit.page.locator(".hybridlab-view:not(.hybridlab-bet)").first
    assert 0 < view.evaluate("(view) => view.getBoundingClientRect().top + scrollY") < SCREENS
    visit.page.set_viewport_size({"width": 1280, "height": LAPTOP_HIGH})
    picture = visit.page.locator(".first-picture .figure-on-page > svg")
    assert 0 < picture.evaluate("(svg) => svg.getBoundingClientRect().bottom + scrollY") <= LAPTOP_HIGH
    assert visit.page.locator(".first-picture a").evaluate(
        "(link) => document.getElementById(link.hash.slice(1)).matches(':has(.hybridlab-view)')"
    )


@asked(of=lambda name: name == "book/intro.html")
def its_first_screen_says_what_it_is_about(visit: Visit) -> None:
    """The three timelines, what the waiting costs, and where to begin."""
    lowest = visit.page.locator(".hybridlab-film .panel, .opening, a.start").evaluate_all(
        "(parts) => parts.map((part) => part.getBoundingClientRect().bottom + scrollY)"
    )
    assert len(lowest) == 5
    assert max(lowest) <= LOW_SCREEN
    assert "dollars" in visit.page.locator(".opening").inner_text()


@asked(of=is_lab)
def its_folds_are_closed(visit: Visit) -> None:
    folds = visit.page.evaluate(FOLDS)
    assert len(folds) >= 2
    assert not any(folds)


def has_explorers_with_controls(name: str) -> bool:
    return has_explorers(name) and not name.startswith("book/your_")  # with a time for each device there, which has no control


@asked(of=has_explorers_with_controls)
def every_timeline_explorer_is_right(visit: Visit) -> None:
    for explorer in explorers_of(visit.page, (visit.site / visit.name).read_text(encoding="utf-8")):
        is_right(explorer)


@asked(of=is_of_the_views)
def no_style_sheet_of_a_view_reaches_other_parts(visit: Visit) -> None:
    beyond = visit.page.evaluate(BEYOND, sheets())
    assert not beyond, "\n".join(beyond)


@asked(scheme="dark", of=has_figures)
@asked(of=has_figures)
def every_text_of_a_figure_can_be_read(visit: Visit) -> None:
    figures = visit.page.locator(".figure-on-page > svg")
    seen = [figures.nth(place) for place, each in enumerate(figures.evaluate_all(SEEN_FIGURES)) if each]
    assert seen
    for figure in seen:
        contrasts = figure.evaluate(CONTRASTS)
        assert contrasts
        assert not [each for each in contrasts if each[1] < 4.5]


@asked(width=800, of=is_lab)
def one_screen_shows_the_setting_the_picture_and_the_readout(visit: Visit) -> None:
    assert [(name, height) for name, height in visit.page.evaluate(LOWEST) if height > LOW_SCREEN] == []


@asked(width=360)
def it_fits_a_phone(visit: Visit) -> None:
    """All texts are seen, also in folds: directly, or in boxes that scroll and that the Tab key reaches."""
    page = visit.page
    page.evaluate(OPEN_FOLDS, True)
    assert page.evaluate("innerWidth") == 360, "the page is laid out wider than the phone"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360, "the page scrolls sideways"
    for found in (CUT, OUT_OF_REACH):  # the theme hides its sidebar; a script is told of new sizes and then makes boxes reachable
        if page.evaluate(found, 360):
            try:
                page.wait_for_function(f"(width) => ({found})(width).length === 0", arg=360, polling=200)
            except Error:
                raise AssertionError("\n".join(page.evaluate(found, 360))) from None
    page.evaluate(OPEN_FOLDS, False)


@asked(width=360, of=is_lab)
def on_a_phone_the_picture_stays_above_its_controls(visit: Visit) -> None:
    """Whichever control of a view is used, most of the picture is seen above it or beside it."""
    visit.page.set_viewport_size({"width": 360, "height": PHONE_HIGH})
    unseen = visit.page.evaluate(UNSEEN_PICTURES)
    visit.page.set_viewport_size({"width": 360, "height": 900})
    assert not unseen, "\n".join(unseen)


@asked(width=360, of=is_lab)
def the_link_to_the_top_covers_nothing(visit: Visit) -> None:
    page = visit.page
    page.evaluate("scrollTo({ top: 2000, behavior: 'instant' })")
    page.evaluate(DRAWN)
    page.evaluate("scrollBy({ top: -300, behavior: 'instant' })")  # the theme shows the link to readers who go up
    page.wait_for_function("document.getElementById('pst-back-to-top').checkVisibility({ visibilityProperty: true })")
    covered = page.evaluate("""() => {
      const [link, bar] = ["#pst-back-to-top", ".bd-header-article"].map((each) => document.querySelector(each).getBoundingClientRect());
      const apart = (one) => one.right <= link.left || one.left >= link.right;
      const buttons = [...document.querySelectorAll(".bd-header-article :is(button, label, a)")].filter((each) => each.checkVisibility());
      return [link.bottom <= bar.bottom && link.top >= bar.top, buttons.every((each) => apart(each.getBoundingClientRect()))];
    }""")
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    assert covered == [True, True], "it stands in the bar, beside its buttons"


@asked(width=320)
def it_fits_the_smallest_phone(visit: Visit) -> None:
    visit.page.wait_for_function("document.documentElement.scrollWidth <= 320")


# ---- what is written and set stays so for the questions that follow ----


@asked(width=A4, scheme="dark", of=is_lab)
def every_number_task_takes_its_right_answer(visit: Visit) -> None:
    keys = [key for key, known in TASKS.items() if known.kind == "number" and key.startswith(visit.name[5:10])]
    assert visit.page.locator(".number-task form").count() == len(keys)
    texts, wanted = {}, {}
    for key in keys:
        question = TASKS[key].instance(None).data
        truths = [np.asarray(number.truth).tolist() for number in question.numbers]
        answer = truths if len(truths) > 1 else truths[0]
        texts[key], feedback = texts_of(question, answer), check(key, answer)
        assert feedback.passed
        wanted[key] = f"Passed: {' '.join(feedback.messages)}"
    assert visit.page.evaluate(HAND_IN, texts) == wanted


@asked(width=A4, scheme="dark")
def it_prints_on_white_paper(visit: Visit) -> None:
    """A page in dark colours is printed in light colours, complete and without controls."""
    page = visit.page
    page.evaluate("scrollTo(0, 0)")  # below, the theme shows a button that leads back to the top
    page.evaluate(TO_THE_END)  # the widest pictures
    pictures = page.locator(PICTURES).count()
    assert bool(pictures) == (page.locator(".hybridlab-view").count() > 0)
    page.emulate_media(media="print")
    page.evaluate(ON_PAPER, [CUT, CONTROLS, PICTURES])
    page.evaluate(DRAWN)
    if visit.name in PRINTED:
        assert len(page.pdf(format="A4")) <= HEAVIEST
    else:
        page.evaluate(PRINT)
    paper = page.evaluate("window.onPaper")
    page.emulate_media(media="screen")
    assert set(paper.pop("ground")) <= {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}
    assert paper == {"left": [], "pictures": pictures, "reaching": [], "cut": []}
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")  # again, after printing


# ---- what remains are two of all parts that look alike ----


@asked(width=A4, scheme="dark")
def its_colours_are_accessible_in_the_dark(visit: Visit) -> None:
    visit.page.evaluate(DRAWN)  # after the page was printed, its boxes have other widths
    thinned(visit.page)
    found = violations(visit.page, rules=OF_COLOURS) if here("axe") else []
    assert not found, "\n".join(found)


@asked(width=A4)
@asked(width=LAPTOP, of=lambda name: name in WIDE)
def it_is_accessible(visit: Visit) -> None:
    """A narrow page shows no contents beside it; these are the same on every page."""
    found = violations(visit.page) if here("axe") else []
    assert not found, "\n".join(found)


def test_the_page(new_page: Any, request: pytest.FixtureRequest, site: Path, own_page: str) -> None:
    """A page that is weighed comes from a server, and the others from files."""
    top = request.getfixturevalue("server" if is_weighed(own_page) else "files")
    told = faults_of(Visit(new_page(top + own_page, **PHONE), own_page, top, site))
    assert not told, "\n\n".join(told)


# ---- faults that are planted are seen ----


@pytest.mark.needs("axe")
def test_planted_faults_are_seen_by_axe(new_page: Any, files: str) -> None:
    page = new_page(files + "labs/lab02_one_f_one_b.html", scheme="dark")
    page.evaluate("""() => {
      document.querySelector('.hybridlab-explorer .op[tabindex="0"]').removeAttribute("aria-label"); // one of many that look alike
      document.querySelector("article h1").insertAdjacentHTML("afterend",
        '<img src="data:," /><p id="pale" style="color: #333">Dark on dark</p><a href="#nowhere"></a>');
    }""")
    thinned(page)
    told = violations(page)
    assert [line.split(":")[0] for line in told] == ["color-contrast", "image-alt", "link-name", "svg-img-alt"]
    assert "#pale" in told[0]


def test_planted_faults_of_the_layout_are_seen(new_page: Any, files: str) -> None:
    page = new_page(files + "book/intro.html", width=360)
    assert page.evaluate(CUT, 360) == page.evaluate(OUT_OF_REACH) == page.evaluate(BEYOND, sheets()) == []
    page.evaluate("""() => {
      const box = (marks, style, words) => `<div ${marks} style="${style}">${words}</div>`;
      const planted = [
        box("", "width: 9em; overflow: hidden; white-space: nowrap", "hidden because it is longer than its box"),
        box('tabindex="0"', "width: 9em; overflow: auto; white-space: nowrap", "scrolls because it is longer than its box"),
        box("", "position: absolute; left: 300px; width: 200px", "beyond the edge of the page, where nobody looks"),
        box('class="unreachable"', "width: 9em; overflow: auto", '<p style="width: 20em">wide</p>'),
        '<pre class="vain" tabindex="0">narrow</pre>',
      ];
      document.querySelector("article h1").insertAdjacentHTML("afterend", planted.join(""));
    }""")
    assert {text.split()[0] for text in page.evaluate(CUT, 360)} == {"hidden", "beyond"}
    assert page.evaluate(OUT_OF_REACH) == ["div unreachable", "pre vain, in vain"]
    planted = [(name, f"{css} .hybridlab-view p {{ padding-left: 1px }} article h1 {{ color: red }}", own) for name, css, own in sheets()]
    assert any(told.startswith("ErrorExplorer: article h1 ") for told in page.evaluate(BEYOND, planted))


def test_a_text_of_a_figure_that_cannot_be_read_is_found(new_page: Any, files: str) -> None:
    page = new_page(files + FIGURES[0], scheme="dark")
    figure = page.locator(".figure-on-page > svg:visible").first
    figure.evaluate("(svg) => { svg.querySelector('text').style.fill = '#333333' }")
    assert [text for text, contrast in figure.evaluate(CONTRASTS) if contrast < 4.5] == [figure.locator("text").first.text_content()]
