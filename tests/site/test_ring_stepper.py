"""The ring stepper in a browser: picture, words and tables say what the data say, at every step; buttons, keys and slider move."""

import json
from typing import Any

import pytest
from accessibility import violations
from playwright.sync_api import Browser, Page, expect

from hybridlab import published
from hybridlab.collectives import ring_all_reduce
from hybridlab.widgets import RingStepper

# A page with the view alone, and the part of a Jupyter widget model that it uses.
PAGE = """<!doctype html><html lang="en"><title>ring</title><body style="margin: 16px; font-family: sans-serif"><style>%s</style>
<main id="place"><h1>Ring</h1></main><script type="module">%s
class Model {
  constructor(state) { this.state = state; this.listeners = []; }
  get(name) { return this.state[name]; }
  set(name, value) {
    this.state[name] = value;
    for (const [event, listener] of [...this.listeners]) if (event === `change:${name}`) listener();
  }
  on(event, listener) { this.listeners.push([event, listener]); }
  off(event, listener) { this.listeners = this.listeners.filter((each) => each[0] !== event || each[1] !== listener); }
  save_changes() {}
  send() {}
}
window.model = new Model(%s);
window.stop = render({ model: window.model, el: document.getElementById("place") });
</script></body></html>"""

# For each ring, rank by rank and chunk by chunk: the ranks that the box names, its number, its sign; and texts that leave their box.
DRAWN = """() => [...document.querySelectorAll(".rings section")].map((section) => {
  const within = (start, length, from, room) => start >= from - 0.5 && start + length <= from + room + 0.5;
  const inside = (a, b) => within(a.x, a.width, b.x, b.width) && within(a.y, a.height, b.y, b.height);
  const apart = (a, b) => a.x + a.width <= b.x + 1.5 || b.x + b.width <= a.x + 1.5;
  const boxes = [...section.querySelectorAll("g")].map((box) => {
    const [frame, value] = [box.querySelector(".box"), box.querySelector(".value")];
    const sign = box.querySelector(".sign");
    const parts = [value, ...box.querySelectorAll(".slot")];
    const clear = !sign || apart(value.getBBox(), sign.getBBox());
    return {
      rank: Number(box.dataset.rank), chunk: Number(box.dataset.chunk), value: Number(value.textContent),
      ranks: [...box.querySelectorAll(".digit")].map((digit) => Number(digit.textContent)),
      mark: sign ? sign.classList[1] : "", fresh: frame.classList.contains("fresh"),
      fits: clear && parts.every((part) => inside(part.getBBox(), frame.getBBox())),
    };
  });
  return { boxes, heads: section.querySelectorAll(".head").length, words: section.innerText };
})"""


def correct(values: Any) -> Any:
    return ring_all_reduce(values, average=False, record=True).hops


def as_published(values: Any) -> Any:
    return published.ring_all_reduce(values, "FP32").hops


VIEW = RingStepper({"correct": correct, "published": as_published}, range(2, 9))


@pytest.fixture
def view_of(browser: Browser) -> Any:
    """A page with both rings, at a width."""
    pages = []

    def opened(width: int, ranks: int = 4, step: int = 0) -> Page:
        page = browser.new_page(viewport={"width": width, "height": 800})
        pages.append(page)
        state = {"data": VIEW.data, "ranks": ranks, "step": step}
        page.set_content(PAGE % (VIEW._css, str(VIEW._esm).replace("export default", "const made ="), json.dumps(state)))
        expect(page.locator(".rings section")).to_have_count(2)
        return page

    yield opened
    for page in pages:
        page.close()


def at(page: Page, **setting: int) -> None:
    """Choose ranks and a step as a kernel would."""
    page.evaluate("(setting) => Object.entries(setting).forEach(([name, value]) => (model.state[name] = value))", setting)
    page.evaluate("() => model.set('step', model.get('step'))")


@pytest.mark.parametrize(("width", "ranks"), [(360, 2), (360, 6), (360, 8), (1280, 3), (1280, 4), (1280, 8)])
def test_every_box_shows_what_the_data_say_and_keeps_it_inside(view_of: Any, width: int, ranks: int) -> None:
    page = view_of(width, ranks)
    for step in range(2 * ranks - 1):
        at(page, ranks=ranks, step=step)
        for drawn, states in zip(page.evaluate(DRAWN), VIEW.data["runs"][str(ranks)]["rings"], strict=True):
            state = states[step]
            assert len(drawn["boxes"]) == ranks * ranks
            received = {(receiver, chunk) for _, receiver, chunk in state["messages"]}
            for box in drawn["boxes"]:
                rank, chunk = box["rank"], box["chunk"]
                assert box["ranks"] == [place for place, count in enumerate(state["parts"][rank][chunk]) if count]
                assert (box["value"], box["mark"]) == (state["values"][rank][chunk], state["marks"][rank][chunk])
                assert box["fresh"] == ((rank, chunk) in received)
                assert box["fits"], (step, box)
            assert state["sent"] in drawn["words"]
            assert state["told"] in drawn["words"]
            assert drawn["heads"] == len(state["messages"]) + bool(state["messages"])  # that of the last rank has a head at either end


def test_the_tables_say_it_in_numbers(view_of: Any) -> None:
    page = view_of(1280, step=4)
    rows = [row.split("\t") for row in page.locator(".figures tbody tr").all_inner_texts()]
    states = VIEW.data["runs"]["4"]["rings"]
    assert [row[1:3] for row in rows] == [[f"{ring[step]['whole']} of 16" for ring in states] for step in range(7)]
    assert [[float(cell) for cell in row[3:]] for row in rows] == [[ring[step]["error"] for ring in states] for step in range(7)]
    assert page.locator("[aria-current]").inner_text().startswith("4, all-gather")
    page.get_by_text("What each rank holds, as a table").click()
    cells = page.locator("details table").nth(1).locator("tbody tr").first.locator("td").all_inner_texts()
    assert cells == ["1: rank 0 alone", "1: rank 0 alone", "7: ranks 0, 1 and 2", "15: ranks 0, 1, 2 and 3"]


def test_buttons_keys_slider_and_select_move(view_of: Any) -> None:
    page = view_of(1280)
    told = page.locator("output")
    for button, step in [("Back", 0), ("Next", 1), ("Next", 2), ("Last", 6), ("Next", 6), ("Back", 5), ("First", 0)]:
        page.get_by_role("button", name=button).click(force=True)  # at an end it is marked as disabled, and keeps the focus
        expect(told).to_contain_text(f"{step} of 6")
    page.get_by_role("button", name="Next").focus()
    for key, step in [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 6), ("ArrowRight", 6), ("Home", 0), ("Enter", 1)]:
        page.keyboard.press(key)
        expect(told).to_contain_text(f"{step} of 6")
        expect(page.get_by_role("button", name="Next")).to_be_focused()
    slider = page.get_by_role("slider", name="Step")
    slider.focus()
    for key, words in [("ArrowRight", "2 of 6, reduce-scatter"), ("End", "6 of 6, all-gather"), ("Home", "0 of 6, start")]:
        page.keyboard.press(key)
        expect(told).to_have_text(words)
        expect(slider).to_have_attribute("aria-valuetext", words)
    page.keyboard.press("End")
    page.get_by_label("Ranks, D").select_option("2")  # which has two steps only
    expect(told).to_have_text("2 of 2, all-gather")
    expect(page.locator('[aria-live="polite"]')).to_have_text(
        "Step 2 of 2, all-gather. correct: 4 whole sums, difference to the mean 0. published: 0 whole sums, difference to the mean 1."
    )


@pytest.mark.parametrize(("width", "beside"), [(1280, True), (360, False)])
def test_rings_stand_side_by_side_where_there_is_room_and_the_page_never_scrolls_sideways(view_of: Any, width: int, beside: bool) -> None:
    page = view_of(width, ranks=6)
    tops = page.locator(".rings svg").evaluate_all("(drawings) => drawings.map((each) => each.getBoundingClientRect().top)")
    assert (tops[0] == tops[1]) == beside
    page.get_by_text("What each rank holds, as a table").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("step", [0, 4, 6])
def test_nothing_serious_is_found_for_readers_with_aids(view_of: Any, step: int) -> None:
    page = view_of(1280, step=step)
    page.get_by_text("What each rank holds, as a table").click()
    assert violations(page) == []


@pytest.mark.parametrize(
    "damage",
    [
        "delete model.state.data.runs",
        "model.state.data.runs['4'].rings[1][1].marks.pop()",
        "model.state.data = null",
        "model.state.step = 99",
    ],
)
def test_damaged_data_show_a_sentence(view_of: Any, damage: str) -> None:
    page = view_of(1280)
    page.evaluate(f"() => {{ model.state.step = 1; {damage}; model.set('step', model.state.step); }}")
    expect(page.get_by_role("alert")).to_contain_text("The data of this picture are missing or damaged")


def test_a_view_that_is_taken_away_listens_no_more(view_of: Any) -> None:
    page = view_of(1280)
    assert page.evaluate("() => (stop(), model.listeners.length)") == 0
