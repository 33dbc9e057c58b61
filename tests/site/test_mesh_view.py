"""Test the mesh view of lab 1 in a browser.

Pointer, keys and controls choose a rank, and at every size no line crosses a label.
"""

from typing import Any

import pytest
from lab_views.kind import choose
from lab_views.mesh import KIND
from playwright.sync_api import Locator, expect

NewPage = Any
# every label that a line runs through, and every arrow that runs through a box
CROSSED = """(root) => {
  const ends = (path) => [...path.getAttribute("d").matchAll(/(-?[\\d.]+) (-?[\\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
  const pieces = (points) => points.slice(1).map(([x, y], place) => {
    const [u, v] = points[place];
    return { left: Math.min(x, u) - 1, right: Math.max(x, u) + 1, top: Math.min(y, v) - 1, bottom: Math.max(y, v) + 1 };
  });
  const edges = ({ x, y, width, height }) => pieces([[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]]);
  const all = (selector) => [...root.querySelectorAll(`.picture ${selector}`)];
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


def at(view: Locator, stages: int, replicas: int, rank: int = 0) -> None:
    choose(view, {"Stages, K": str(stages), "Replicas, D": str(replicas)} | ({"Rank": str(rank)} if stages * replicas > 1 else {}))


@pytest.mark.parametrize("width", [360, 1280])
def test_no_line_crosses_a_label_or_a_box_and_every_mesh_is_right(new_page: NewPage, files: str, width: int) -> None:
    (view,) = KIND.views(new_page(files + KIND.lab, width=width))
    for stages in range(1, 5):
        for replicas in range(1, 5):
            for rank in {0, stages * replicas // 2, stages * replicas - 1}:
                at(view, stages, replicas, rank)
                assert view.evaluate(CROSSED) == [], (stages, replicas, rank)
            KIND.is_right(view)


def test_a_line_through_a_label_would_be_seen(new_widgets: NewPage, server: str) -> None:
    (view,) = KIND.views(new_widgets(server + KIND.lab))
    assert view.evaluate(CROSSED) == []
    view.evaluate("""(root) => {
      const letter = root.querySelector(".letter");
      letter.setAttribute("y", Number(letter.getAttribute("y")) + 10);
    }""")
    assert view.evaluate(CROSSED) in (["A"], ["R"])


def test_four_stages_fit_into_a_phone_and_every_box_is_large_enough_for_a_finger(new_page: NewPage, files: str) -> None:
    (view,) = KIND.views(new_page(files + KIND.lab, width=360, has_touch=True))
    at(view, 4, 4)
    assert view.locator(".picture").evaluate("(box) => box.scrollWidth <= box.clientWidth")
    sizes = view.locator(".device rect").evaluate_all("(boxes) => boxes.map((box) => box.getBBox()).map((box) => [box.width, box.height])")
    assert all(least >= 44 for size in sizes for least in size)
    view.locator(".device").nth(13).tap()
    expect(view.locator(".told")).to_contain_text("Rank 13 ")
    KIND.is_right(view)


def test_pointer_arrow_keys_and_controls_choose_a_rank(new_page: NewPage, server: str) -> None:
    page = new_page(server + KIND.lab)
    (view,) = KIND.views(page)
    view.locator(".device").nth(4).click()
    expect(view.locator(".told")).to_contain_text("Rank 4 ")
    for key, rank in [("ArrowRight", 5), ("ArrowRight", 5), ("ArrowDown", 8), ("ArrowLeft", 7), ("ArrowUp", 4), ("End", 11), ("Home", 0)]:
        page.keyboard.press(key)
        expect(view.locator(".device:focus")).to_have_text(str(rank))
        KIND.is_right(view)
    choose(view, {"Rank": "7"})
    KIND.is_right(view)
    choose(view, {"Replicas, D": "2"})  # which has no rank 7
    expect(view.locator(".told")).to_contain_text("Rank 0 ")
    assert view.locator('[tabindex="0"]').count() == 1  # the Tab key stops only once in the view
    at(view, 1, 1)
    expect(view.locator(".told")).to_contain_text("It sends nothing. It receives nothing. Its stage has no copy, so there is no ring.")
    assert view.locator(".picture .link").count() == 0
