"""Define what all views of the labs share: their place on the page, and ways to read their setting and to press their keys."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from browser import held
from explorers import drawn_again, with_state
from playwright.sync_api import Locator, Page

Damage = Callable[[Any], None]  # changes the state of a widget in place
MOST_PRESSED = 3  # how many values of a long slider are visited one after the other

SETTING = """(root) => {
  const shown = [...root.querySelectorAll(".field:not(:has(textarea))")].filter((each) => each.checkVisibility());
  const valueOf = (control) => control.selectedOptions?.[0].textContent ?? control.getAttribute("aria-valuetext") ?? control.value;
  const ticked = [...root.querySelectorAll("[type=checkbox]:checked")].map((box) => box.value);
  const fields = shown.map((each) => [each.querySelector("label").textContent, valueOf(each.querySelector("select, input"))]);
  return Object.fromEntries([...fields, ["ticked", ticked]]);
}"""
# the picture without its words, then all words: the announcement and the tables
SEEN = """(root) => {
  const parts = (selector) => [...root.querySelectorAll(selector)].filter((each) => each.checkVisibility());
  const picture = parts(".picture, .plots").map((each) => each.innerHTML.replace(/aria-label="[^"]*"/g, ""));
  return [picture.join(), parts("[role=status], [aria-live=polite], .told, table").map((each) => each.textContent).join()];
}"""
STOP = """(root) => {
  const here = document.activeElement;
  if (!root.contains(here)) return null;
  // the buttons and the speed of a player change the picture later, and a zoom may have come to its end
  const ofPlayer = here.closest(".player, .zoom") && here.type !== "range";
  const kind = ofPlayer ? "player" : here.type ?? here.getAttribute("role") ?? here.localName;
  const name = here.labels?.[0]?.textContent ?? here.getAttribute("aria-label") ?? here.textContent;
  const count = here.options?.length ?? (kind === "range" ? Math.floor(here.max - here.min) + 1 : 0);
  const place = here.selectedIndex ?? Math.floor(here.value - here.min);
  return { kind, name, count, place, off: here.getAttribute("aria-disabled") === "true" };
}"""
STOP_AND_SEEN = f"(root) => [({STOP})(root), ({SEEN})(root)]"
CONTROLS = 'select:visible, input:visible, button:visible, summary:visible, [tabindex="0"]:visible'
ROWS = "(root, rows) => [...root.querySelectorAll(rows)].map((row) => [...row.cells].map((cell) => cell.textContent))"
DRAWN = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
ENTER = """(root) => {
  const before = Object.assign(document.createElement("span"), { tabIndex: 0 });
  root.before(before);
  before.focus();
  before.addEventListener("blur", () => before.remove());
}"""
CHOOSE = """(root, [label, text]) => {
  const control = [...root.querySelectorAll("label")].find((each) => each.textContent.trim() === label)?.control;
  if (!control?.checkVisibility() || control.disabled) throw new Error(`there is no control ${label} to be used`);
  if (control.options) [...control.options].find((option) => option.textContent.trim() === text).selected = true;
  else control.value = text;
  if (!control.options && control.value !== text) throw new Error(`${label} takes no ${text}`);
  for (const event of ["input", "change"]) control.dispatchEvent(new Event(event, { bubbles: true }));
}"""
IN_PICTURE = ("End", "Home", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp")
KEYS: Mapping[str, Callable[[int], tuple[str, ...]]] = {
    "select-one": lambda count: ("Home", *["ArrowDown"] * (count - 1)),
    "range": lambda count: ("Home", *["ArrowRight"] * min(count - 1, MOST_PRESSED), "End"),
    "checkbox": lambda _: ("Space", "Space"),
    "button": lambda _: ("Enter",),
    "summary": lambda _: ("Enter", "Space", "Enter"),
    "radio": lambda _: IN_PICTURE,
    "application": lambda _: IN_PICTURE,
}


@dataclass(frozen=True)
class Kind:
    """A kind of view: its page, its judge, and the changes that are tried on it.

    ``judge`` raises AssertionError unless a view shows what the library computes for the setting of its controls. The judge also gets what
    the lab gave to the view. These values are in ``given``, in the order of the views on the page.
    """

    name: str  # the name of its class in the page: hybridlab-NAME
    widget: str  # the name of its class in the library
    lab: str
    judge: Callable[[Locator, Any], None]
    damages: tuple[Damage, ...]  # changes of the data after which no view can be drawn
    faults: tuple[Damage, ...]  # changes of the data that can be drawn but are wrong
    python: tuple[str, Any]  # a trait, and a value to which Python might set it
    given: tuple[Any, ...] = (None,)
    begin: Mapping[str, str] = field(default_factory=dict)  # in this setting, every control changes something
    silent: tuple[str, ...] = ()  # controls that change only the picture and no words
    taken: str = ""  # the button that takes what is chosen, if a choice alone changes nothing
    walk: Callable[[Locator, "Kind", int], None] | None = None  # goes through a view by keyboard, if the function below does not fit

    def __str__(self) -> str:
        return self.name

    def views(self, page: Page) -> list[Locator]:
        page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")  # of optional parts
        found = page.locator(f".hybridlab-{self.name}").all()
        assert len(found) == len(self.given)
        return [held(view) for view in found]

    def take(self, view: Locator) -> None:
        """Press the button that takes what has been chosen, if this kind has one."""
        if self.taken:
            view.get_by_role("button", name=self.taken).click()
            view.evaluate(DRAWN)

    def is_right(self, view: Locator, place: int = 0) -> None:
        self.judge(view, self.given[place])

    def changing(self, change: Damage) -> Callable[[str], str]:
        """Return the edit of the page that changes the state of the first view of this kind."""

        def found(states: Any) -> None:
            change(next(each for each in states.values() if str(each.get("_anywidget_id")).endswith(f".{self.widget}")))

        return lambda text: with_state(text, found)

    def drawn_again(self, html: str, changes: Sequence[Damage]) -> str:
        """Return a page with the first view of this kind alone: as it is, and then once more after each of these changes of its state."""
        return drawn_again(html, lambda state: str(state.get("_anywidget_id")).endswith(f".{self.widget}"), changes)

    def showing(self, widget: Any, damage: Damage = lambda state: None) -> Callable[[str], str]:
        """Return the edit of the page that puts another widget of this kind in the place of the first."""

        def swapped(state: Any) -> None:
            state.clear()
            state.update(json.loads(json.dumps(widget.get_state())))
            damage(state)

        return self.changing(swapped)


def with_no_data(state: Any) -> None:
    """Return a kind of damage that is possible in every kind of view."""
    state["data" if "data" in state else "measured"] = None


def setting_of(view: Locator) -> Any:
    """Return the texts of all controls by label, and the boxes that are ticked."""
    return view.evaluate(SETTING)


def rows_of(view: Locator, selector: str = "tbody tr") -> list[list[str]]:
    """Return the texts of the rows of a table."""
    return list(view.evaluate(ROWS, selector))


def words_of(view: Locator, selector: str) -> str:
    """Return the text of the first element of a view that the selector matches."""
    return str(view.evaluate("(root, selector) => root.querySelector(selector).textContent", selector))


def choose(view: Locator, setting: Mapping[str, str]) -> None:
    for label, text in setting.items():
        view.evaluate(CHOOSE, [label, text])


def walk(view: Locator, kind: Kind, place: int) -> None:
    """Go through a view with the Tab key and press the keys of each control; raise AssertionError at the first fault.

    Every control must be reached. Every key that changes a value must change the picture or the words. Some keys must change the picture,
    and some the words. After the last key of each control, the view must be right.
    """
    page = view.page
    view.evaluate(ENTER)
    reached = 0
    while True:
        page.keyboard.press("Tab")
        stop = view.evaluate(STOP)
        if stop is None:
            break
        reached += 1
        if stop["kind"] not in KEYS:
            continue
        before, first = view.evaluate(STOP_AND_SEEN)
        seen = [first]
        for key in KEYS[stop["kind"]](stop["count"]):
            page.keyboard.press(key)
            after, now = view.evaluate(STOP_AND_SEEN)
            assert after, f"{key} takes the focus away from {stop['name']}"
            seen.append(now)
            if before["place"] != after["place"] or stop["kind"] not in ("select-one", "range"):
                assert (seen[-1] != seen[-2]) != before["off"], f"{key} on {stop['name']!r}: nothing changes"
            before = after
        kind.is_right(view, place)
        told = [str(each) for each in seen]
        least = min(stop["count"], MOST_PRESSED + 1) if stop["kind"] in ("select-one", "range") else 2 - stop["off"]
        assert len(set(told)) >= least, f"two values of {stop['name']!r} look the same"
        if stop["kind"] in ("select-one", "range"):
            assert len({picture for picture, _ in seen}) > 1, f"{stop['name']!r} does not change the picture"
            assert len({words for _, words in seen}) > 1 or stop["name"] in kind.silent, f"{stop['name']!r} does not change the words"
            last = stop["place"] == stop["count"] - 1
            arrow = "ArrowDown" if stop["kind"] == "select-one" else "ArrowRight"
            for key in ["End"] if last else ["Home", *[arrow] * stop["place"]]:
                page.keyboard.press(key)
    assert reached >= view.locator(CONTROLS).count(), "Tab does not reach every control"
