"""Test the numbers in the boxes of timelines, on a phone and on a wide page.

No number touches the edge of its box or the number beside it.
"""

from typing import Any

from cases import in_turn

# Returns all texts in boxes, and the texts less than a pixel from an edge, for every schedule and number of microbatches of a view.
CROWDED = """async (root) => {
  const control = (name) => root.querySelector(`select[id$=-${name}], [type=range][id$=-${name}]`);
  const set = async (name, place) => {
    if (control(name).options) control(name).selectedIndex = place;
    else control(name).value = place;
    for (const event of ["input", "change"]) control(name).dispatchEvent(new Event(event, { bubbles: true }));
    await new Promise(queueMicrotask);
  };
  const count = (name) => control(name)?.options?.length ?? Number(control(name)?.max ?? 0) + 1;
  const seen = { texts: 0, crowded: [] };
  for (let schedule = 0; schedule < count("schedule"); schedule++) {
    if (count("schedule") > 1) await set("schedule", schedule);
    for (let microbatches = 0; microbatches < count("microbatches"); microbatches++) {
      await set("microbatches", microbatches);
      for (const label of root.querySelectorAll(".plot :is(.op, .hop) text")) {
        const [text, box] = [label, label.closest(".op, .hop").querySelector("polygon")].map((each) => each.getBBox());
        const room = Math.min(text.x - box.x, box.x + box.width - text.x - text.width);
        seen.texts++;
        if (room < 1) seen.crowded.push(`${label.textContent} has ${room.toFixed(2)} px in a box of ${box.width.toFixed(1)} px`);
      }
    }
  }
  return seen;
}"""
VIEWS = [("book/gallery.html", "explorer"), ("labs/lab03_bubbles_and_memory.html", "explorer")]  # test_step_in_time.py has the steps


@in_turn("name, kind, width", [(*view, width) for view in VIEWS for width in (360, 1280)])
def test_numbers_in_boxes_stand_clear_of_each_other(new_page: Any, files: str, name: str, kind: str, width: int) -> None:
    page = new_page(files + name, width=width)
    for view in page.locator(f".hybridlab-{kind}").all():
        seen = view.evaluate(CROWDED)
        assert seen["texts"] > 50
        assert not seen["crowded"], "\n".join(dict.fromkeys(seen["crowded"]))


def test_numbers_that_are_too_wide_would_be_seen(new_page: Any, files: str) -> None:
    page = new_page(files + VIEWS[1][0], width=360)
    page.add_style_tag(content=".hybridlab-explorer .op text { font-size: 15px !important }")
    assert page.locator(".hybridlab-explorer").first.evaluate(CROWDED)["crowded"]
