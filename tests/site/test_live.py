"""Test widgets in a running notebook.

An explorer takes any setting, and a bet reaches Python. Without a kernel, an explorer says what is missing.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from accessibility import violations
from browser import PATIENCE
from cases import in_turn
from missing import here
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebook_server import CONNECTED, ask, stop_kernels
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from visits import in_order

from hybridlab import Costs, Timeline, build, formulas, simulate
from hybridlab.widgets import TimelineExplorer

pytestmark = pytest.mark.xdist_group("jupyterlab")  # one JupyterLab for all
SETTING = ("schedule", "devices", "microbatches", "chunks", "p2p", "compare")
GRID = 'TimelineExplorer(devices=(2, 4), microbatches=(4, 8), unit="ms")'
CELLS = [
    f"from hybridlab.widgets import TimelineExplorer\nexplorer = {GRID}\nexplorer",
    f"print(*(getattr(explorer, name) for name in {SETTING}), explorer.timeline.makespan)",
    'explorer.schedule, explorer.devices, explorer.compare, explorer.p2p = "gpipe", 12, "", 0.5',
    'from hybridlab.widgets import Bet\nbet = Bet("live.sooner", "Which is sooner?", choices=("GPipe", "1F1B", "neither"))\nbet',
    'print(bet.answer)\nbet.reveal("neither")',
    'bet.answer = "neither"',
]
SHOWN, PRINTED, SET, ASKED, REVEALED, ANSWERED = range(6)
LINKS = """## A view and its links

[one](#view?devices=2&microbatches=8&p2p=0), [two](#view?p2p=many)

## The next section"""
RUN = """async (cell) => {
  jupyterapp.shell.currentWidget.content.activeCellIndex = cell;
  await jupyterapp.commands.execute("notebook:run-cell");
}"""  # until the kernel has run it
NOTES_WHAT_IT_SAYS = """(status) => {
  window.said = [];
  new MutationObserver(() => window.said.push(status.textContent)).observe(status, { childList: true, characterData: true, subtree: true });
}"""
ROOT = Path(__file__).resolve().parents[2]


# ---- a notebook and its server ----


def run(page: Page, cell: int) -> Locator:
    """Run a cell of the notebook, and return the cell when it has run."""
    page.evaluate(RUN, cell)
    return page.locator(".jp-CodeCell").nth(cell)


def opened(context: BrowserContext, url: str) -> Page:
    """Return a page with a notebook that has a kernel."""
    page = context.new_page()
    page.goto(url)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.evaluate(CONNECTED)
    return page


@pytest.fixture(scope="module")
def notebook(lab_context: BrowserContext, lab_server: tuple[str, Path]) -> Iterator[tuple[Page, str]]:
    warnings: list[str] = []
    address, root = lab_server
    cells = [*map(new_code_cell, CELLS), new_markdown_cell(LINKS)]
    (root / "live.ipynb").write_text(nbformat.writes(new_notebook(cells=cells)), encoding="utf-8")
    kernel = {"path": "live.ipynb", "name": "live.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
    ask(f"{address}/api/sessions", "POST", kernel)  # with this, the page does not ask which kernel to start
    page = lab_context.new_page()
    page.on("console", lambda message: warnings.append(message.text))
    page.goto(f"{address}/doc/tree/live.ipynb")
    page.locator(".jp-Notebook .jp-CodeCell").nth(ANSWERED).wait_for()
    page.evaluate(CONNECTED)
    run(page, SHOWN)
    yield page, address
    page.close()
    assert not [warning for warning in warnings if "timeline explorer" in warning]


def fill(view: Locator, label: str, text: str) -> Locator:
    field = view.get_by_role("spinbutton", name=label)
    field.fill(text)
    field.press("Enter")
    return field


def rows(view: Locator) -> Locator:
    return view.locator("tbody tr")


def row(title: str, makespan: float, bubble: float, peak: list[float]) -> str:
    """Return a row of the table as the text that the browser gives."""
    return "".join((title, f"{makespan:.6g}", f"{bubble:.3f}", ", ".join(f"{each:.6g}" for each in peak)))


def row_of(title: str, timeline: Timeline) -> str:
    return row(title, float(timeline.makespan), float(timeline.bubble_ratio), timeline.peak_activations.tolist())


# ---- with a kernel ----


def any_setting_is_computed_by_the_kernel(page: Page, address: str, explorer: Locator) -> None:
    fill(explorer, "Devices", "5")
    fill(explorer, "Microbatches", "7")
    explorer.get_by_label("Schedule").select_option("1f1b")
    peak = [formulas.peak_activations("1f1b", 5, 7, device) for device in range(5)]
    expect(rows(explorer)).to_have_text([row("1F1B", formulas.one_f_one_b_makespan(5, 7, 1, 2), formulas.bubble_ratio(5, 7), peak)])
    expect(explorer.locator(".op")).to_have_count(2 * 5 * 7)

    explorer.get_by_label("Schedule").select_option("hanayo")  # and it is not in the grid
    explorer.get_by_label("Compare with").select_option("zb-h1")
    fill(explorer, "Chunks a device", "4")
    fill(explorer, "Microbatches", "10")
    fill(explorer, "Latency, ms", "0.25")
    costs = Costs(forward=1, backward=2, p2p=0.25)
    first, second = simulate(build("hanayo", 5, 10, 4), costs), simulate(build("zb-h1", 5, 10), costs)
    expect(rows(explorer)).to_have_text([row_of("Hanayo", first), row_of("ZB-H1", second)])
    expect(explorer.locator(".op")).to_have_count(len(first.ops) + len(second.ops))
    expect(explorer.locator(".status")).to_have_text("")


def python_follows_the_view(page: Page, address: str, explorer: Locator) -> None:
    explorer.get_by_label("Schedule").select_option("zb-h1")
    explorer.get_by_label("Compare with").select_option("hanayo")
    fill(explorer, "Devices", "6")
    fill(explorer, "Microbatches", "6")
    fill(explorer, "Latency, ms", "0")
    makespan = simulate(build("zb-h1", 6, 6), Costs(forward=1, backward=2)).makespan
    expect(rows(explorer).first).to_contain_text(f"ZB-H1{makespan:.6g}")
    wanted = f"zb-h1 6 6 1 0 hanayo {makespan}"
    for _ in range(20):  # ipywidgets sends a change when the kernel has answered the one before: on a busy machine the cell can be first
        printed = run(page, PRINTED).locator(".jp-OutputArea-output")
        if printed.inner_text().strip() == wanted:
            break
    expect(printed).to_have_text(wanted)


def the_view_follows_python(page: Page, address: str, explorer: Locator) -> None:
    fill(explorer, "Microbatches", "3")
    run(page, SET)
    makespan = formulas.gpipe_makespan(12, 3, 1, 2, p2p=0.5)
    expect(rows(explorer)).to_have_text([re.compile(f"^GPipe{makespan:.6g}")])
    expect(explorer.get_by_role("spinbutton", name="Devices")).to_have_value("12")
    expect(explorer.get_by_role("spinbutton", name="Latency, ms")).to_have_value("0.5")


def a_link_in_the_text_sets_the_view(page: Page, address: str, explorer: Locator) -> None:
    explorer.get_by_label("Schedule").select_option("gpipe")
    page.get_by_role("link", name="one").click()
    expect(rows(explorer)).to_have_text([re.compile(f"^GPipe{formulas.gpipe_makespan(2, 8, 1, 2):.6g}")])
    page.get_by_role("link", name="two").click()
    expect(explorer.get_by_text("The link asks for p2p=many, but p2p can be a number of at least 0.")).to_be_visible()
    expect(explorer.get_by_role("spinbutton", name="Devices")).to_have_value("2")
    assert "#view" not in page.url


def a_wrong_value_is_told_beside_its_field_and_changes_nothing(page: Page, address: str, explorer: Locator) -> None:
    for typed in ("", "0", "2.5", "-1", "20000000"):
        fill(explorer, "Devices", "3")
        expect(explorer.locator(".title").first).to_contain_text("3 devices")
        before = explorer.locator("table").inner_text()
        field = fill(explorer, "Devices", typed)
        expect(field).to_have_attribute("aria-invalid", "true")
        told = explorer.get_by_role("alert").filter(has_text="Devices: type a whole number of at least 1")
        expect(told).to_be_visible()
        assert field.get_attribute("aria-describedby") == told.get_attribute("id")
        assert explorer.locator("table").inner_text() == before
        fill(explorer, "Devices", "3")
        expect(told).to_have_count(0)
        expect(field).to_have_attribute("aria-invalid", "false")


def letters_and_negative_latencies_are_told_too(page: Page, address: str, explorer: Locator) -> None:
    field = explorer.get_by_role("spinbutton", name="Latency, ms")
    field.focus()
    field.press("Control+a")
    field.press_sequentially("e-")
    field.press("Enter")
    expect(explorer.get_by_role("alert").filter(has_text="Latency, ms: type a number of zero or more.")).to_be_visible()
    fill(explorer, "Latency, ms", "0")


def arrow_keys_step_through_the_values(page: Page, address: str, explorer: Locator) -> None:
    field = fill(explorer, "Devices", "4")
    field.press("ArrowUp")
    expect(explorer.locator(".title").first).to_contain_text("5 devices")
    field.press("ArrowDown")
    expect(explorer.locator(".title").first).to_contain_text("4 devices")


def a_size_that_a_schedule_refuses_is_told_in_the_picture(page: Page, address: str, explorer: Locator) -> None:
    explorer.get_by_label("Compare with").select_option("")
    explorer.get_by_label("Schedule").select_option("interleaved")
    fill(explorer, "Devices", "5")
    fill(explorer, "Microbatches", "7")
    told = "Interleaved needs microbatches divisible by devices: 7 is not divisible by 5; try 5 or 10."
    expect(explorer.locator(".refused")).to_have_text(told)
    fill(explorer, "Microbatches", "10000000")
    fill(explorer, "Devices", "10")
    expect(explorer.locator(".refused")).to_contain_text(re.compile("more operations than|fit in memory"))


def a_large_setting_is_drawn(page: Page, address: str, explorer: Locator) -> None:
    explorer.get_by_label("Compare with").select_option("")
    explorer.get_by_label("Schedule").select_option("1f1b")
    fill(explorer, "Latency, ms", "0")
    fill(explorer, "Devices", "64")
    fill(explorer, "Microbatches", "64")
    large = re.compile(f"^1F1B{formulas.one_f_one_b_makespan(64, 64, 1, 2):.6g}")
    expect(rows(explorer)).to_have_text([large])
    expect(explorer.locator(".op")).to_have_count(2 * 64 * 64)
    fill(explorer, "Devices", "4")


def a_bet_reaches_python_and_python_the_bet(page: Page, address: str, explorer: Locator) -> None:
    bet = run(page, ASKED).locator(".hybridlab-bet")
    bet.get_by_label("GPipe").check()
    bet.get_by_role("button", name="Place the bet").click()
    expect(bet.get_by_text("Your bet: GPipe", exact=True)).to_be_visible()
    reveal = run(page, REVEALED)
    expect(reveal.locator(".jp-OutputArea-output pre")).to_have_text("GPipe\n")
    expect(reveal.locator("dd")).to_have_text(["GPipe", "neither"])
    expect(reveal.locator(".verdict")).to_have_text("Your bet was wrong.")
    run(page, ANSWERED)
    expect(bet.get_by_text("Your bet: neither", exact=True)).to_be_visible()
    expect(reveal.locator(".verdict")).to_have_text("Your bet was right.")


def nothing_serious_is_wrong_with_its_accessibility(page: Page, address: str, explorer: Locator) -> None:
    fill(explorer, "Devices", "0")
    if here("axe"):
        assert violations(page, ".hybridlab-explorer") == []
    fill(explorer, "Devices", "4")


def the_grid_outlives_the_kernel(page: Page, address: str, explorer: Locator) -> None:
    explorer.get_by_label("Schedule").select_option("gpipe")
    explorer.get_by_label("Compare with").select_option("")
    fill(explorer, "Microbatches", "4")
    fill(explorer, "Devices", "2")
    fill(explorer, "Latency, ms", "0")
    expect(rows(explorer)).to_have_text([re.compile(f"^GPipe{formulas.gpipe_makespan(2, 4, 1, 2):.6g}")])
    stop_kernels(address)
    explorer.locator(".status").evaluate(NOTES_WHAT_IT_SAYS)
    fill(explorer, "Devices", "3")
    expect(explorer.locator(".status")).to_contain_text("The kernel has not answered")
    assert page.evaluate("window.said")[0] == "Computing ..."
    expect(rows(explorer)).to_have_count(1)  # the last picture
    fill(explorer, "Devices", "4")
    expect(rows(explorer)).to_have_text([re.compile(f"^GPipe{formulas.gpipe_makespan(4, 4, 1, 2):.6g}")])
    expect(explorer.locator(".status")).to_have_text("")


def test_a_notebook_with_a_kernel(notebook: tuple[Page, str]) -> None:
    page, address = notebook
    explorer = page.locator(".hybridlab-explorer")
    explorer.get_by_role("spinbutton", name="Devices").wait_for()  # the live view has fields to type into
    questions = (
        any_setting_is_computed_by_the_kernel,
        python_follows_the_view,
        the_view_follows_python,
        a_link_in_the_text_sets_the_view,
        a_wrong_value_is_told_beside_its_field_and_changes_nothing,
        letters_and_negative_latencies_are_told_too,
        arrow_keys_step_through_the_values,
        a_size_that_a_schedule_refuses_is_told_in_the_picture,
        a_large_setting_is_drawn,
        a_bet_reaches_python_and_python_the_bet,
        nothing_serious_is_wrong_with_its_accessibility,
        the_grid_outlives_the_kernel,
    )
    in_order(page, questions, address, explorer)


def test_a_notebook_that_is_opened_again_shows_pictures_in_place_of_views(
    lab_context: BrowserContext, lab_server: tuple[str, Path]
) -> None:
    address, root = lab_server
    cells = [new_code_cell(CELLS[SHOWN]), new_code_cell(CELLS[ASKED])]
    (root / "again.ipynb").write_text(nbformat.writes(new_notebook(cells=cells)), encoding="utf-8")
    kernel = {"path": "again.ipynb", "name": "again.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
    ask(f"{address}/api/sessions", "POST", kernel)
    page = opened(lab_context, f"{address}/doc/tree/again.ipynb")
    for cell in range(2):
        expect(run(page, cell).locator(".hybridlab-view")).to_be_visible()
        expect(page.locator(".hybridlab-still").nth(cell)).to_be_hidden()
    page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    page.close()
    stop_kernels(address)
    ask(f"{address}/api/sessions", "POST", kernel)
    page = opened(lab_context, f"{address}/doc/tree/again.ipynb")
    expect(page.locator(".hybridlab-still img")).to_be_visible()
    expect(page.locator(".hybridlab-still").nth(1)).to_contain_text("Which is sooner?")
    missing = page.get_by_text("model not found")
    expect(missing).to_have_count(2)
    for place in range(2):
        expect(missing.nth(place)).to_be_hidden()
    page.close()


def test_a_lab_leads_to_the_pages_of_the_book(lab_context: BrowserContext, lab_server: tuple[str, Path]) -> None:
    """JupyterLab is started as `make lab` starts it, so it can open the project's files and shows the labs. Its console has no errors."""
    assert "jupyter-lab --LabApp.default_url=/lab/tree/labs " in (ROOT / "Makefile").read_text(encoding="utf-8")
    page = lab_context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(f"{lab_server[0]}/lab/workspaces/labs/tree/course/labs")  # no workspace that the other page has left
    page.locator(".jp-DirListing-item:visible", has_text="lab03").dblclick()
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.evaluate(CONNECTED)
    page.get_by_role("link", name="notation table").click()
    expect(page.locator(".lm-TabBar-tabLabel", has_text="notation.md")).to_be_visible()
    page.close()
    assert not errors


# ---- without a kernel ----

MOUNT = """async ([code, style, state]) => {
  const { default: { render } } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const listeners = [];
  const set = (name, value) => {
    if (state[name] === value) return;
    state[name] = value;
    for (const [event, listener] of [...listeners]) if (event === `change:${name}`) listener();
  };
  const on = (event, listener) => listeners.push([event, listener]);
  const model = { get: (name) => state[name], set, on, off() {}, save_changes() {}, send() {} };
  document.body.replaceChildren(document.createElement("style"), document.createElement("div"));
  document.body.firstChild.textContent = style;
  render({ model, el: document.body.lastChild });
}"""  # a view on a model of its own, as on a page


Mount = Callable[..., Locator]


@pytest.fixture
def mount(browser: Browser) -> Iterator[Mount]:
    page = browser.new_page(viewport={"width": 360, "height": 900})
    page.set_default_timeout(PATIENCE)

    def mounting(state: dict[str, Any]) -> Locator:
        page.goto("about:blank")
        kept = {name: value for name, value in state.items() if name in ("data", "extra", *TimelineExplorer.SETTING)}
        page.evaluate(MOUNT, [TimelineExplorer._esm, TimelineExplorer._css, kept])
        return page.locator(".hybridlab-explorer")

    yield mounting
    page.close()


def outside() -> dict[str, Any]:
    """Give the state of an explorer that Python left at a setting outside its grid."""
    explorer = TimelineExplorer("gpipe", devices=(2, 4), microbatches=(4, 8))
    explorer.schedule, explorer.devices = "zb-h1", 5
    return explorer.get_state()


def test_a_setting_outside_the_grid_is_drawn_from_the_state(mount: Mount) -> None:
    view = mount(outside())
    expect(rows(view)).to_have_text([row_of("ZB-H1", simulate(build("zb-h1", 5, 4), Costs(forward=1, backward=2)))])
    expect(view.get_by_role("spinbutton", name="Devices")).to_have_count(0)
    devices = view.get_by_role("slider", name="Devices")
    assert (devices.get_attribute("max"), devices.get_attribute("aria-valuetext")) == ("2", "5")  # 2, 4 and 5


def test_a_page_says_what_it_does_not_hold(mount: Mount) -> None:
    view = mount(outside())
    view.get_by_role("slider", name="Microbatches").press("ArrowRight")
    expect(view.locator(".refused")).to_contain_text("This page has no order for these sizes")
    view.get_by_label("Schedule").select_option("gpipe")
    view.get_by_role("button", name="Show 4 devices").click()
    expect(rows(view)).to_have_text([re.compile(f"^GPipe{formulas.gpipe_makespan(4, 8, 1, 2):.6g}")])


@in_turn("compare", ["1f1b", "interleaved"])
def test_titles_and_names_stay_in_sight_to_the_end_of_a_long_picture(mount: Mount, compare: str) -> None:
    view = mount(TimelineExplorer(("gpipe", compare), devices=4, microbatches=50, show={"compare": compare}).get_state())
    assert view.locator(".refused").count() == (compare == "interleaved")  # which refuses 50 microbatches on 4 devices
    for _ in range(3):
        view.get_by_role("button", name="Zoom in").click()
    left = view.evaluate("""root => {
      const picture = root.querySelector(".picture");
      picture.scrollLeft = picture.scrollWidth;
      const from = picture.getBoundingClientRect().left;
      const lefts = [".title", ".names", ".refused"].flatMap((part) => [...root.querySelectorAll(part)])
        .map((part) => part.getBoundingClientRect().left - from);
      return { lefts, scrolled: picture.scrollLeft / picture.clientWidth };
    }""")
    assert left["scrolled"] > 2
    assert left["lefts"] == pytest.approx([0] * len(left["lefts"]), abs=1)


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "text": lambda extra: "damaged",
    "no microbatches": lambda extra: extra | {"microbatches": []},
    "no pipelines": lambda extra: extra | {"pipelines": {}},
    "no times": lambda extra: extra | {"pipelines": {name: entry | {"start": [[]]} for name, entry in extra["pipelines"].items()}},
}


@in_turn("damage", DAMAGE)
def test_damaged_data_beside_the_grid_are_told(mount: Mount, damage: str) -> None:
    state = outside()
    view = mount(state | {"extra": DAMAGE[damage](state["extra"])})
    expect(view).to_have_text(re.compile("^The data of this picture are missing or damaged"))
