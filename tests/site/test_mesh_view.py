"""The mesh view in a browser: pointer, keyboard and controls choose a rank, words and picture agree, no line crosses a label."""

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from hybridlab import Mesh
from hybridlab.widgets import MeshView

# A page with the view alone, and the part of a Jupyter widget model that it uses.
PAGE = """<!doctype html><html lang="en"><title>mesh</title><body style="margin: 16px; font-family: sans-serif"><style>%s</style>
<main id="place"></main><script type="module">%s
class Model {
  constructor(state) { this.state = state; this.listeners = []; }
  get(name) { return this.state[name]; }
  set(name, value) {
    this.state[name] = value;
    for (const [event, listener] of [...this.listeners]) if (event === `change:${name}`) listener();
  }
  on(event, listener) { this.listeners.push([event, listener]); }
  off() {}
  save_changes() {}
  send() {}
}
window.model = new Model(%s);
render({ model: window.model, el: document.getElementById("place") });
</script></body></html>"""

# Every label that a line runs through, and every arrow that runs through a box.
CROSSED = """() => {
  const ends = (path) => [...path.getAttribute("d").matchAll(/(-?[\\d.]+) (-?[\\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
  const pieces = (points) => points.slice(1).map(([x, y], place) => {
    const [u, v] = points[place];
    return { left: Math.min(x, u) - 1, right: Math.max(x, u) + 1, top: Math.min(y, v) - 1, bottom: Math.max(y, v) + 1 };
  });
  const edges = ({ x, y, width, height }) => pieces([[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]]);
  const all = (selector) => [...document.querySelectorAll(`.picture ${selector}`)];
  const size = (element) => element.getBBox();
  const frames = all(".band").flatMap((band) => edges(size(band)));
  const arrows = all(".link, .head").flatMap((path) => pieces(ends(path)));
  const meets = ({ x, y, width, height }, line, room) =>
    line.left < x + width - room && line.right > x + room && line.top < y + height - room && line.bottom > y + room;
  const told = [];
  for (const text of all(".letter")) if (arrows.concat(frames).some((line) => meets(size(text), line, 2.5))) told.push(text.textContent);
  for (const text of all(".name")) if (arrows.some((line) => meets(size(text), line, 1))) told.push(text.textContent);
  for (const box of all(".device rect")) if (arrows.some((line) => meets(size(box), line, 1))) told.push("a box");
  return told;
}"""


@pytest.fixture
def view_of(browser: Browser) -> Any:
    """A page with a mesh view of the sizes 1 to 4, at a width."""
    pages = []

    def opened(width: int, stages: int = 3, replicas: int = 4, rank: int = 0) -> Page:
        view = MeshView(show={"stages": stages, "replicas": replicas, "rank": rank})
        state = {name: getattr(view, name) for name in ("data", "stages", "replicas", "rank")}
        page = browser.new_page(viewport={"width": width, "height": 800})
        pages.append(page)
        page.set_content(PAGE % (view._css, str(view._esm).replace("export default", "const made ="), json.dumps(state)))
        expect(page.locator(".told")).not_to_be_empty()
        return page

    yield opened
    for page in pages:
        page.close()


def at(page: Page, **setting: int) -> None:
    """Choose sizes and a rank as a kernel would."""
    page.evaluate("(setting) => Object.entries(setting).forEach(([name, value]) => model.set(name, value))", setting)


@pytest.mark.parametrize("width", [360, 1280])
def test_no_line_crosses_a_label_or_a_box(view_of: Any, width: int) -> None:
    page = view_of(width)
    for stages in range(1, 5):
        for replicas in range(1, 5):
            for rank in range(stages * replicas):
                at(page, stages=stages, replicas=replicas, rank=rank)
                assert page.evaluate(CROSSED) == [], (stages, replicas, rank)


def test_a_line_through_a_label_would_be_seen(view_of: Any) -> None:
    page = view_of(1280, rank=4)
    page.evaluate("""() => {
      const letter = document.querySelector(".letter");
      letter.setAttribute("y", Number(letter.getAttribute("y")) + 10);
    }""")
    assert page.evaluate(CROSSED) == ["A"] or page.evaluate(CROSSED) == ["R"]


@pytest.mark.parametrize("width", [360, 1280])
def test_four_stages_fit_into_a_narrow_page(view_of: Any, width: int) -> None:
    page = view_of(width, stages=4)
    box = page.locator(".picture")
    assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    sizes = page.locator(".device rect").evaluate_all("(boxes) => boxes.map((box) => box.getBBox()).map((box) => [box.width, box.height])")
    assert all(least >= 44 for size in sizes for least in size)  # large enough for a finger


def test_words_picture_and_table_tell_what_the_mesh_says(view_of: Any) -> None:
    mesh = Mesh(3, 4)
    page = view_of(1280)
    for rank in range(mesh.size):
        at(page, rank=rank)
        stage, replica = mesh.coordinates(rank)
        expect(page.locator(".told")).to_contain_text(f"Rank {rank} is stage {stage} of replica {replica}.")
        to = dict(mesh.ring(stage))[rank]
        row = page.locator("tbody tr").nth(2).locator("td")
        assert row.all_inner_texts()[0::2] == [f"rank {to}", "6"]
        letters = 2 + 2 * (0 < stage < 2) + 2  # to and from each neighbour in the pipeline, and in the ring
        expect(page.locator(".letter")).to_have_count(letters)
        expect(page.locator('[role="radio"][aria-checked="true"]')).to_have_text(str(rank))


def test_arrow_keys_pointer_and_controls_choose(view_of: Any) -> None:
    page = view_of(1280)
    page.locator(".device").nth(4).click()
    expect(page.locator(".told")).to_contain_text("Rank 4 ")
    for key, rank in [("ArrowRight", 5), ("ArrowRight", 5), ("ArrowDown", 8), ("ArrowLeft", 7), ("ArrowUp", 4), ("End", 11), ("Home", 0)]:
        page.keyboard.press(key)
        expect(page.locator(".device:focus")).to_have_text(str(rank))
        expect(page.locator(".told")).to_contain_text(f"Rank {rank} ")
    page.get_by_label("Rank", exact=True).select_option("7")
    expect(page.locator(".told")).to_contain_text("Rank 7 ")
    page.get_by_label("Replicas, D").select_option("2")  # which has no rank 7
    expect(page.locator(".told")).to_contain_text("Rank 0 ")
    page.get_by_label("Stages, K").select_option("1")
    expect(page.locator(".device")).to_have_count(2)
    assert page.locator('[tabindex="0"]').count() == 1  # one stop of the Tab key


def test_a_rank_alone_sends_nothing(view_of: Any) -> None:
    page = view_of(360, stages=1, replicas=1)
    expect(page.locator(".told")).to_contain_text("It sends nothing. It receives nothing. Its stage has no copy, so there is no ring.")
    assert page.locator(".picture .link").count() == 0


@pytest.mark.parametrize(
    "damage", ["delete model.state.data.meshes", "model.state.data.meshes['3/4'].links[0][2] = 99", "model.state.data = null"]
)
def test_damaged_data_show_a_sentence(view_of: Any, damage: str) -> None:
    page = view_of(1280)
    page.evaluate(f"() => {{ {damage}; model.set('rank', 1); }}")
    expect(page.get_by_role("alert")).to_contain_text("The data of this picture are missing or damaged")
