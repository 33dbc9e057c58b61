"""Widgets in a running notebook: an explorer takes any setting, a bet reaches Python; without a kernel an explorer says what it lacks."""

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from accessibility import violations
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Browser, Locator, Page, expect

from hybridlab import Costs, Timeline, build, formulas, simulate
from hybridlab.widgets import TimelineExplorer

pytestmark = pytest.mark.xdist_group("live")  # one JupyterLab for all
STARTS_WITHIN = 60  # seconds: a server, a notebook or a kernel on a busy machine
STOPS_WITHIN = 20  # seconds
FOLDERS = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR", "LAB_SETTINGS_DIR", "LAB_WORKSPACES_DIR")
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
CONNECTED = """async () => {
  const { context, sessionContext } = jupyterapp.shell.currentWidget;
  await context.ready;
  await sessionContext.ready;
  await sessionContext.session.kernel.info;
}"""  # a cell that is run earlier is forgotten, or asks which kernel to start


# ---- a notebook and its server ----


def ask(address: str, method: str = "GET", body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310, our own server
    with urllib.request.urlopen(request, timeout=STARTS_WITHIN) as answer:  # noqa: S310
        return json.loads(answer.read() or "null")


@contextmanager
def jupyter(folder: Path, root: Path) -> Iterator[str]:
    """The address of a JupyterLab on the folder ``root`` that knows no settings but its own, which it keeps in ``folder``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {f"JUPYTER{'' if name.startswith('LAB_') else '_'}{name}": str(folder / name) for name in FOLDERS}
    flags = [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}", "--no-browser"]
    flags += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", "--allow-root", "--LabApp.expose_app_in_browser=True"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *flags],
            env=os.environ | own | {"IPYTHONDIR": str(folder / "ipython")}, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            address = f"http://127.0.0.1:{port}"
            until_it_answers(f"{address}/api/status", server, folder / "log")
            yield address
        finally:
            stop(server)


def stop(server: subprocess.Popen[bytes]) -> None:
    """End a server; one that a kernel just starting keeps from ending is killed, and its kernels end with it."""
    server.terminate()
    try:
        server.wait(STOPS_WITHIN)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def until_it_answers(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end and server.poll() is None:
        try:
            ask(address)
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"JupyterLab did not start: {log.read_text()}", pytrace=False)


def run(page: Page, cell: int) -> Locator:
    """Run a cell of the notebook; return it when it has run."""
    here = page.locator(".jp-CodeCell").nth(cell)
    before = here.locator(".jp-InputPrompt").inner_text()
    here.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(here.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"), timeout=STARTS_WITHIN * 1000)
    expect(here.locator(".jp-InputPrompt")).not_to_have_text(before, timeout=STARTS_WITHIN * 1000)
    return here


@pytest.fixture(scope="module")
def notebook(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, str]]:
    if importlib.util.find_spec("jupyterlab") is None:
        pytest.skip("no live notebook is tried: JupyterLab is not installed (pip install jupyterlab)")
    warnings: list[str] = []
    root = tmp_path_factory.mktemp("notebook")
    (root / "live.ipynb").write_text(nbformat.writes(new_notebook(cells=[new_code_cell(source) for source in CELLS])), encoding="utf-8")
    with jupyter(tmp_path_factory.mktemp("jupyter"), root) as address:
        kernel = {"path": "live.ipynb", "name": "live.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
        ask(f"{address}/api/sessions", "POST", kernel)  # so that the page asks nobody which kernel to start
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        page.on("console", lambda message: warnings.append(message.text))
        page.goto(f"{address}/doc/tree/live.ipynb")
        page.locator(".jp-Notebook .jp-CodeCell").nth(ANSWERED).wait_for(timeout=STARTS_WITHIN * 1000)
        page.evaluate(CONNECTED)
        run(page, SHOWN)
        yield page, address
        page.close()
    assert not [warning for warning in warnings if "timeline explorer" in warning]


@pytest.fixture
def explorer(notebook: tuple[Page, str]) -> Locator:
    """The view in the notebook, live: it has fields to type into."""
    view = notebook[0].locator(".hybridlab-explorer")
    view.get_by_role("spinbutton", name="Devices").wait_for(timeout=STARTS_WITHIN * 1000)
    return view


def fill(view: Locator, label: str, text: str) -> Locator:
    field = view.get_by_role("spinbutton", name=label)
    field.fill(text)
    field.press("Enter")
    return field


def rows(view: Locator) -> Locator:
    return view.locator("tbody tr")


def row(title: str, makespan: float, bubble: float, peak: list[float]) -> str:
    """A row of the table as the browser gives its text."""
    return "".join((title, f"{makespan:.6g}", f"{bubble:.3f}", ", ".join(f"{each:.6g}" for each in peak)))


def row_of(title: str, timeline: Timeline) -> str:
    return row(title, float(timeline.makespan), float(timeline.bubble_ratio), timeline.peak_activations.tolist())


# ---- with a kernel ----


def test_any_setting_is_computed_by_the_kernel(explorer: Locator) -> None:
    fill(explorer, "Devices", "5")
    fill(explorer, "Microbatches", "7")
    explorer.get_by_label("Schedule").select_option("1f1b")
    peak = [formulas.peak_activations("1f1b", 5, 7, device) for device in range(5)]
    expect(rows(explorer)).to_have_text([row("1F1B", formulas.one_f_one_b_makespan(5, 7, 1, 2), formulas.bubble_ratio(5, 7), peak)])
    expect(explorer.locator(".op")).to_have_count(2 * 5 * 7)

    explorer.get_by_label("Schedule").select_option("hanayo")  # nor is it in the grid
    explorer.get_by_label("Compare with").select_option("zb-h1")
    fill(explorer, "Chunks a device", "4")
    fill(explorer, "Microbatches", "10")
    fill(explorer, "Latency, ms", "0.25")
    costs = Costs(forward=1, backward=2, p2p=0.25)
    first, second = simulate(build("hanayo", 5, 10, 4), costs), simulate(build("zb-h1", 5, 10), costs)
    expect(rows(explorer)).to_have_text([row_of("Hanayo", first), row_of("ZB-H1", second)])
    expect(explorer.locator(".op")).to_have_count(len(first.ops) + len(second.ops))
    expect(explorer.locator(".status")).to_have_text("")


def test_python_follows_the_view(notebook: tuple[Page, str], explorer: Locator) -> None:
    explorer.get_by_label("Schedule").select_option("zb-h1")
    explorer.get_by_label("Compare with").select_option("hanayo")
    fill(explorer, "Devices", "6")
    fill(explorer, "Microbatches", "6")
    fill(explorer, "Latency, ms", "0")
    makespan = simulate(build("zb-h1", 6, 6), Costs(forward=1, backward=2)).makespan
    expect(rows(explorer).first).to_contain_text(f"ZB-H1{makespan:.6g}")
    printed = run(notebook[0], PRINTED).locator(".jp-OutputArea-output")
    expect(printed).to_have_text(f"zb-h1 6 6 1 0 hanayo {makespan}")


def test_the_view_follows_python(notebook: tuple[Page, str], explorer: Locator) -> None:
    fill(explorer, "Microbatches", "3")
    run(notebook[0], SET)
    makespan = formulas.gpipe_makespan(12, 3, 1, 2, p2p=0.5)
    expect(rows(explorer)).to_have_text([re.compile(f"^GPipe{makespan:.6g}")])
    expect(explorer.get_by_role("spinbutton", name="Devices")).to_have_value("12")
    expect(explorer.get_by_role("spinbutton", name="Latency, ms")).to_have_value("0.5")


@pytest.mark.parametrize("typed", ["", "0", "2.5", "-1", "20000000"])
def test_a_wrong_value_is_told_beside_its_field_and_changes_nothing(explorer: Locator, typed: str) -> None:
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


def test_letters_and_negative_latencies_are_told_too(explorer: Locator) -> None:
    field = explorer.get_by_role("spinbutton", name="Latency, ms")
    field.focus()
    field.press("Control+a")
    field.press_sequentially("e-")
    field.press("Enter")
    expect(explorer.get_by_role("alert").filter(has_text="Latency, ms: type a number of zero or more.")).to_be_visible()
    fill(explorer, "Latency, ms", "0")


def test_arrow_keys_step_through_the_values(explorer: Locator) -> None:
    field = fill(explorer, "Devices", "4")
    field.press("ArrowUp")
    expect(explorer.locator(".title").first).to_contain_text("5 devices")
    field.press("ArrowDown")
    expect(explorer.locator(".title").first).to_contain_text("4 devices")


def test_a_size_that_a_schedule_refuses_is_told_in_the_picture(explorer: Locator) -> None:
    explorer.get_by_label("Compare with").select_option("")
    explorer.get_by_label("Schedule").select_option("interleaved")
    fill(explorer, "Devices", "5")
    fill(explorer, "Microbatches", "7")
    told = "Interleaved needs microbatches divisible by devices: 7 is not divisible by 5; try 5 or 10."
    expect(explorer.locator(".refused")).to_have_text(told)
    fill(explorer, "Microbatches", "10000000")
    fill(explorer, "Devices", "10")
    expect(explorer.locator(".refused")).to_contain_text(re.compile("more operations than|fit in memory"))


def test_a_large_setting_is_drawn(explorer: Locator) -> None:
    explorer.get_by_label("Compare with").select_option("")
    explorer.get_by_label("Schedule").select_option("1f1b")
    fill(explorer, "Latency, ms", "0")
    fill(explorer, "Devices", "64")
    fill(explorer, "Microbatches", "64")
    large = re.compile(f"^1F1B{formulas.one_f_one_b_makespan(64, 64, 1, 2):.6g}")
    expect(rows(explorer)).to_have_text([large], timeout=STARTS_WITHIN * 1000)
    expect(explorer.locator(".op")).to_have_count(2 * 64 * 64)
    fill(explorer, "Devices", "4")


def test_a_bet_reaches_python_and_python_the_bet(notebook: tuple[Page, str]) -> None:
    page = notebook[0]
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


def test_nothing_serious_is_wrong_with_its_accessibility(notebook: tuple[Page, str], explorer: Locator) -> None:
    fill(explorer, "Devices", "0")
    assert violations(notebook[0], ".hybridlab-explorer") == []
    fill(explorer, "Devices", "4")


def test_the_grid_outlives_the_kernel(notebook: tuple[Page, str], explorer: Locator) -> None:
    address = notebook[1]
    explorer.get_by_label("Schedule").select_option("gpipe")
    explorer.get_by_label("Compare with").select_option("")
    fill(explorer, "Microbatches", "4")
    fill(explorer, "Devices", "2")
    fill(explorer, "Latency, ms", "0")
    expect(rows(explorer)).to_have_text([re.compile(f"^GPipe{formulas.gpipe_makespan(2, 4, 1, 2):.6g}")])
    for kernel in ask(f"{address}/api/kernels"):
        ask(f"{address}/api/kernels/{kernel['id']}", "DELETE")
    fill(explorer, "Devices", "3")
    expect(explorer.locator(".status")).to_have_text("Computing ...")
    expect(explorer.locator(".status")).to_contain_text("The kernel has not answered", timeout=10_000)
    expect(rows(explorer)).to_have_count(1)  # the last picture
    fill(explorer, "Devices", "4")
    expect(rows(explorer)).to_have_text([re.compile(f"^GPipe{formulas.gpipe_makespan(4, 4, 1, 2):.6g}")])
    expect(explorer.locator(".status")).to_have_text("")


def test_a_lab_leads_to_the_pages_of_the_book(browser: Browser, tmp_path: Path) -> None:
    """JupyterLab has the project at hand and shows the labs, as `make lab` starts it."""
    root = Path(__file__).resolve().parents[2]
    assert "jupyter-lab --LabApp.default_url=/lab/tree/labs " in (root / "Makefile").read_text(encoding="utf-8")
    with jupyter(tmp_path, root) as address:
        page = browser.new_page()
        page.goto(f"{address}/lab/tree/labs")
        page.locator(".jp-DirListing-item:visible", has_text="lab03").dblclick(timeout=STARTS_WITHIN * 1000)
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=STARTS_WITHIN * 1000)
        page.evaluate(CONNECTED)
        page.get_by_role("link", name="notation table").click(timeout=STARTS_WITHIN * 1000)
        expect(page.locator(".lm-TabBar-tabLabel", has_text="notation.md")).to_be_visible(timeout=STARTS_WITHIN * 1000)
        page.close()


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

    def mounting(state: dict[str, Any]) -> Locator:
        page.goto("about:blank")
        kept = {name: value for name, value in state.items() if name in ("data", "extra", *SETTING)}
        page.evaluate(MOUNT, [TimelineExplorer._esm, TimelineExplorer._css, kept])
        return page.locator(".hybridlab-explorer")

    yield mounting
    page.close()


def outside() -> dict[str, Any]:
    """The state of an explorer that Python left outside its grid."""
    explorer = TimelineExplorer("gpipe", devices=(2, 4), microbatches=(4, 8))
    explorer.schedule, explorer.devices = "zb-h1", 5
    return explorer.get_state()


def test_a_setting_outside_the_grid_is_drawn_from_the_state(mount: Mount) -> None:
    view = mount(outside())
    expect(rows(view)).to_have_text([row_of("ZB-H1", simulate(build("zb-h1", 5, 4), Costs(forward=1, backward=2)))])
    expect(view.get_by_role("spinbutton")).to_have_count(0)
    devices = view.get_by_role("slider", name="Devices")
    assert (devices.get_attribute("max"), devices.get_attribute("aria-valuetext")) == ("2", "5")  # 2, 4 and 5


def test_a_page_says_what_it_does_not_hold(mount: Mount) -> None:
    view = mount(outside())
    view.get_by_role("slider", name="Microbatches").press("ArrowRight")
    expect(view.locator(".refused")).to_contain_text("These values together are not on this page")
    view.get_by_label("Schedule").select_option("gpipe")
    view.get_by_role("button", name="Show 4 devices").click()
    expect(rows(view)).to_have_text([re.compile(f"^GPipe{formulas.gpipe_makespan(4, 8, 1, 2):.6g}")])


@pytest.mark.parametrize("compare", ["1f1b", "interleaved"])
def test_titles_and_names_stay_in_sight_to_the_end_of_a_long_picture(mount: Mount, compare: str) -> None:
    view = mount(TimelineExplorer(("gpipe", compare), devices=4, microbatches=50, show={"compare": compare}).get_state())
    assert view.locator(".refused").count() == (compare == "interleaved")  # which refuses 50 microbatches on 4 devices
    left = view.evaluate("""root => {
      const picture = root.querySelector(".picture");
      picture.scrollLeft = picture.scrollWidth;
      const from = picture.getBoundingClientRect().left;
      const lefts = [".title", ".names", ".refused", ".told"].flatMap((part) => [...root.querySelectorAll(part)])
        .map((part) => part.getBoundingClientRect().left - from);
      return { lefts, scrolled: picture.scrollLeft / picture.clientWidth };
    }""")
    assert left["scrolled"] > 2
    assert left["lefts"] == pytest.approx([0] * len(left["lefts"]), abs=1)


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "text": lambda extra: "damaged",
    "no latencies": lambda extra: extra | {"p2p": []},
    "no pipelines": lambda extra: extra | {"pipelines": {}},
    "no times": lambda extra: extra | {"pipelines": {name: entry | {"start": [[]]} for name, entry in extra["pipelines"].items()}},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_data_beside_the_grid_are_told(mount: Mount, damage: str) -> None:
    state = outside()
    view = mount(state | {"extra": DAMAGE[damage](state["extra"])})
    expect(view).to_have_text(re.compile("^The data of this picture are missing or damaged"))
