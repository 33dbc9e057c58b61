"""The training curves in a browser: the picture and the table say what the runs say; selects, slider and keys choose."""

import json
import re
from typing import Any

import numpy as np
import pytest
from accessibility import violations
from playwright.sync_api import Browser, Page, expect

from hybridlab import INT8, build
from hybridlab.training import TrainedAlone, train, train_alone
from hybridlab.widgets import TrainingCurves

# A page with the view alone, and the part of a Jupyter widget model that it uses.
PAGE = """<!doctype html><html lang="en"><title>curves</title><body style="margin: 16px; font-family: sans-serif"><style>%s</style>
<main id="place"><h1>Curves</h1></main><script type="module">%s
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
}
window.model = new Model(%s);
window.stop = render({ model: window.model, el: document.getElementById("place") });
</script></body></html>"""
POINTS = re.compile(r"[ML]([\d.]+) ([\d.]+)")
LEFT, RIGHT, TOP, BOTTOM = 50, 408, 12, 216  # of a plot, in its own units

SCHEDULE = build("1f1b", 2, 2)
SETTING: dict[str, Any] = {"steps": 20, "every": 5}
ALONE = train_alone(**SETTING)
RUNS = {
    ("ring", "at random"): train(SCHEDULE, 2, wire=INT8, **SETTING),
    ("ring", "by label"): train(SCHEDULE, 2, wire=INT8, by_label=True, **SETTING),
    ("none", "at random"): train(SCHEDULE, 2, all_reduce=lambda each: each, **SETTING),
    ("none", "by label"): train(SCHEDULE, 2, all_reduce=lambda each: each, by_label=True, **SETTING),
}
VIEW = TrainingCurves(("All-reduce", "Digits dealt"), RUNS, ALONE)


@pytest.fixture
def view_of(browser: Browser) -> Any:
    """A page with the view, at a width."""
    pages = []

    def opened(width: int = 1000, data: Any = VIEW.data) -> Page:
        page = browser.new_page(viewport={"width": width, "height": 800})
        pages.append(page)
        state = {"data": data, "chosen": VIEW.chosen, "step": VIEW.step}
        page.set_content(PAGE % (VIEW._css, str(VIEW._esm).replace("export default", "const made ="), json.dumps(state)))
        return page

    yield opened
    for page in pages:
        page.close()


def drawn(page: Page, plot: int, name: str) -> Any:
    """The points of a curve, in the units of its plot."""
    path = page.locator("svg.plot").nth(plot).locator(f"path.{name}").get_attribute("d")
    return np.array(POINTS.findall(path or ""), dtype=float)


def curves_are(page: Page, name: str, run: TrainedAlone) -> None:
    low, high = VIEW.data["decades"]
    x = LEFT + np.arange(1, 21) / 20 * (RIGHT - LEFT)
    y = BOTTOM - (np.log10(run.losses) - low) / (high - low) * (BOTTOM - TOP)
    np.testing.assert_allclose(drawn(page, 0, name), np.column_stack([x, y]), atol=0.11)
    x = LEFT + run.checked / 20 * (RIGHT - LEFT)
    y = BOTTOM - run.accuracies * (BOTTOM - TOP)
    np.testing.assert_allclose(drawn(page, 1, name), np.column_stack([x, y]), atol=0.11)


def rows(page: Page) -> list[list[str]]:
    return [row.locator("th, td").all_inner_texts() for row in page.locator("tbody tr").all()]


def test_each_run_is_drawn_and_told_as_it_was(view_of: Any) -> None:
    page = view_of()
    for (ring, dealt), run in RUNS.items():
        page.get_by_label("All-reduce").select_option(ring)
        page.get_by_label("Digits dealt").select_option(dealt)
        for step in (20, 12, 3):
            page.get_by_label("Read at step").fill(str(step))
            curves_are(page, "run", run)
            curves_are(page, "alone", ALONE)
            chosen, beside = rows(page)
            check = step // 5 - 1
            for cells, told in ((chosen, run), (beside, ALONE)):
                assert float(cells[1]) == pytest.approx(told.losses[step - 1], rel=6e-4)
                expected = f"{told.accuracies[check]:.1%}".replace("%", " %") + f" after step {told.checked[check]}"
                assert cells[2] == (expected if check >= 0 else "not taken yet")
            assert (chosen[3] == "0, bit for bit") == (ring == "ring" and check >= 0)
            assert chosen[4] == (f"{run.bytes_sent:,}" if ring == "ring" else "not counted")
            expect(page.locator("caption")).to_have_text(f"{ring}, {dealt}: step {step} of 20")
            expect(page.locator("p[role=status]")).to_contain_text(f"loss {chosen[1]}")


def test_keys_move_the_step_and_python_moves_the_controls(view_of: Any) -> None:
    page = view_of()
    page.keyboard.press("Tab")
    expect(page.get_by_label("All-reduce")).to_be_focused()
    page.get_by_label("Read at step").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    assert page.evaluate("model.get('step')") == 16
    page.evaluate("model.set('chosen', ['none', 'by label'])")
    expect(page.get_by_label("Digits dealt")).to_have_value("by label")
    curves_are(page, "run", RUNS["none", "by label"])


@pytest.mark.parametrize("width", [320, 360, 1280])
def test_it_fits_and_everyone_can_use_it(view_of: Any, width: int) -> None:
    page = view_of(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not violations(page)
    for plot in page.locator("svg.plot").all():
        assert "one device" in (plot.get_attribute("aria-label") or "")


def test_damaged_data_show_a_sentence(view_of: Any) -> None:
    page = view_of(data={"axes": []})
    expect(page.get_by_role("alert")).to_contain_text("missing or damaged")
