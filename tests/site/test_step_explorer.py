"""The step explorer on a page without a kernel: what is drawn and told is what the library computes, by pointer, touch and keys."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accessibility import violations
from explorers import with_state
from playwright.sync_api import Locator, Page

from hybridlab import FP16, INT8
from hybridlab.collectives import Link
from hybridlab.widgets import StepExplorer

NewPage = Any
LAB = "labs/lab03_bubbles_and_memory.html"  # whose timeline explorer makes room
PIXELS = 0.02  # the drawing rounds to hundredths of a pixel
NARROWEST = {"send": 2.5, "receive": 2.5}  # px: what takes no time is seen all the same
SHOWN = """(root) => {
  const numbers = (element, ...names) => names.map((name) => Number(element.getAttribute(name)));
  const boxes = (selector) => [...root.querySelectorAll(`.plot ${selector}`)].map((each) => numbers(each, "x", "y", "width", "height"));
  return {
    ops: boxes(".op rect"), scatters: boxes(".hop:not(.gathers) rect"), gathers: boxes(".hop.gathers rect"),
    send: boxes("rect.send"), receive: boxes("rect.receive"), rows: boxes("rect.paper"),
    end: numbers(root.querySelector(".plot line.end"), "x1")[0],
    table: [...root.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent)),
  };
}"""
DRAWN = {"reduce-scatter": "scatters", "all-gather": "gathers", "send": "send", "receive": "receive"}
MADE: dict[str, Callable[[], StepExplorer]] = {
    "ring steps": lambda: StepExplorer(
        replicas=(1, 2, 4), microbatches=(2, 8), forward=50, backward=80, ring_step=(10, 20), unit="ms", show={"replicas": 2}
    ),
    "a link and latency": lambda: StepExplorer(
        ("1f1b", "interleaved", "zb-h1"), 2, 3, (4, 6), forward=50, backward=80, p2p=7, link=Link(1e-4, 25e9),
        gradient_bytes=2_000_000_002, wire=(FP16, INT8), optimizer=15, unit="ms", show={"overlap": True},
    ),
    "a slow replica": lambda: StepExplorer("gpipe", 2, 2, 3, forward=[1, 1, 1, 3], ring_step=0.5),
}  # fmt: skip
each_explorer = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def showing(explorer: StepExplorer, damage: Callable[[Any], None] = lambda state: None) -> Callable[[str], str]:
    """Return the edit of a page that puts the explorer in the place of the one that is there."""

    def swapped(states: Any) -> None:
        (state,) = (each for each in states.values() if "data" in each)
        state.clear()
        state.update(explorer.get_state())
        damage(state)

    return lambda text: with_state(text, swapped)


def choose(view: Locator, explorer: StepExplorer, **setting: Any) -> None:
    """Set the controls of the page, and the explorer in Python to the same."""
    for name, value in setting.items():
        setattr(explorer, name, value)
        place = str(explorer.data[name].index(value) if name != "schedule" else list(explorer.data["titles"]).index(value))
        control = view.locator(f"select[id$=-{name}], input[type=range][id$=-{name}]")
        if control.is_visible():
            control.select_option(place) if name in ("schedule", "ring", "overlap") else control.fill(place)


def is_right(view: Locator, explorer: StepExplorer) -> None:
    """Raise AssertionError unless every bar stands where the library says, and the table holds its figures."""
    shown, step = view.evaluate(SHOWN), explorer.step
    scale = shown["end"] / step.makespan
    tops = [top for _, top, _, _ in shown["rows"]]
    assert tops == sorted(tops)
    assert len(tops) == step.mesh.size
    wanted: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("ops", *DRAWN.values())}
    for row in step.timeline.to_rows():
        name = DRAWN.get(row["op"].split()[0], "ops")
        if row["op"] != "optimizer" or row["end"] > row["start"]:
            width = max((row["end"] - row["start"]) * scale, NARROWEST.get(name, 1))
            wanted[name].append((row["device"], row["start"] * scale, width))
    for name, bars in wanted.items():
        found = [(int(np.searchsorted(tops, top + 0.01)) - 1, x, width) for x, top, width, _ in shown[name]]
        assert len(found) == len(bars), f"{len(found)} {name} are drawn, not {len(bars)}"
        assert np.allclose(sorted(found), sorted(bars), atol=PIXELS + 1e-4 * shown["end"], rtol=0), name
    column = list(explorer.data["overlap"]).index(explorer.overlap) + 1
    cells = [row[column] for row in shown["table"]]
    peaks = ", ".join(f"{peak:.6g}" for peak in step.peak_activations[: explorer.devices])
    times = [step.makespan, step.all_reduce_time, step.exposed_communication]
    figures = [f"{time:.6g}" for time in times] + [f"{100 * step.communication_share:.1f}\xa0%", f"{step.single_device:.6g}"]
    assert cells == [*figures, f"{step.speedup:.3f}", f"{100 * step.efficiency:.1f}\xa0%", peaks]


def told_is_right(view: Locator, explorer: StepExplorer) -> tuple[int, float]:
    """Raise AssertionError unless the sentence says all that the rank does at that time and nothing else; return both."""
    told = view.locator(".told").inner_text()
    head = re.match(r"Rank (\d+) \(\w+ \d+, replica \d+\) at ([\d.e+-]+)", told)
    assert head
    rank, time = int(head[1]), float(head[2])
    rows = explorer.step.timeline.to_rows()
    grain = 1e-5 * explorer.step.makespan  # the sentence has six digits
    active = [row for row in rows if row["start"] <= time + grain < row["end"] - grain]
    own = [row for row in active if row["device"] == rank]
    phrases = []
    for row in own:
        what, *rest = row["op"].split()
        if what in ("reduce-scatter", "all-gather"):
            (into,) = (each for each in active if each["op"].split()[0] == what and each["peer"] == rank and each["stage"] == row["stage"])
            size = f" ({row['nbytes']:,} bytes)" if row["nbytes"] >= 0 else ""
            phrases.append(f"it sends piece {row['chunk']}{size} to rank {row['peer']} and receives ")
            phrases.append(f"piece {into['chunk']} from rank {into['device']}")
            phrases.append(f"hop {row['step'] + 1} of {explorer.replicas - 1} of the {what} on the ring of stage {row['stage']}")
        elif what in ("send", "receive"):
            phrases.append(f"It {what}s the output of {rest[0]} {'to' if what == 'send' else 'from'} rank {row['peer']}")
        else:
            phrases.append("runs its optimizer" if what == "optimizer" else f"runs {what},")
    for phrase in phrases:
        assert phrase in told, f"{phrase!r} is missing: {told}"
    for word, sign in (("runs ", "runs "), ("In hop", "hop "), ("It sends", "It sends"), ("It receives", "It receives")):
        assert told.count(word) == sum(phrase.startswith(sign) for phrase in phrases), told
    bold = {int(text.split()[1]) for text in view.locator(".names .rank.here").all_text_contents()}
    assert bold == {rank}
    return rank, time


@each_explorer
def test_every_setting_is_drawn_as_the_library_computes_it(new_page: NewPage, server: str, make: Callable[[], StepExplorer]) -> None:
    explorer = make()
    view = new_page(server + LAB, edit=showing(explorer)).locator(".hybridlab-step")
    is_right(view, explorer)
    for name in ("schedule", "replicas", "microbatches", "ring", "overlap"):
        values = list(explorer.data["titles"]) if name == "schedule" else explorer.data[name]
        for value in reversed(values):
            choose(view, explorer, **{name: value})
            is_right(view, explorer)


@each_explorer
def test_arrow_keys_lead_through_all_that_a_rank_does(new_page: NewPage, server: str, make: Callable[[], StepExplorer]) -> None:
    explorer = make()
    page: Page = new_page(server + LAB, edit=showing(explorer))
    view = page.locator(".hybridlab-step")
    view.locator(".picture").focus()
    for key in ("Home", *["ArrowDown"] * (explorer.step.mesh.size - 2), "Home"):
        page.keyboard.press(key)
    rank, time = told_is_right(view, explorer)
    assert (rank, time) == (explorer.step.mesh.size - 2, 0)
    edges = {0.0, explorer.step.makespan}
    for row in explorer.step.timeline.to_rows():
        edges |= {row["start"], row["end"]} if row["device"] == rank else set()
    for edge in sorted(edges)[1:]:
        page.keyboard.press("ArrowRight")
        told = told_is_right(view, explorer)
        assert told == (rank, pytest.approx(edge, rel=1e-5))
    assert view.locator(".told").inner_text().endswith("is done: the step has ended.")
    page.keyboard.press("ArrowLeft")
    assert told_is_right(view, explorer)[1] == pytest.approx(sorted(edges)[-2], rel=1e-5)


@pytest.mark.parametrize("touch", [False, True])
def test_a_place_pointed_at_is_told_and_its_sender_and_receiver_are_marked(new_page: NewPage, server: str, touch: bool) -> None:
    explorer = MADE["a link and latency"]()
    page = new_page(server + LAB, edit=showing(explorer), width=360 if touch else 1280, has_touch=touch)
    view = page.locator(".hybridlab-step")
    plot = view.locator(".plot")
    for hop in (row for row in explorer.step.timeline.to_rows() if row["op"].startswith(("reduce", "all")) and row["step"] == 1):
        shape = view.evaluate(SHOWN)
        x = 5 + (hop["start"] + hop["end"]) / 2 / explorer.step.makespan * shape["end"]
        _, top, _, height = shape["rows"][hop["device"]]
        plot.scroll_into_view_if_needed()
        (plot.tap if touch else plot.click)(position={"x": x, "y": top + height + 6}, force=True)
        assert told_is_right(view, explorer)[0] == hop["device"]
        marked = view.locator(".names .peer").all_text_contents()
        assert sorted(marked) == ["receives", "sends"]
        assert view.locator(".arrow").count() >= 2


def test_the_rank_and_the_moment_have_controls_of_their_own(new_page: NewPage, server: str) -> None:
    explorer = MADE["ring steps"]()
    view = new_page(server + LAB, edit=showing(explorer)).locator(".hybridlab-step")
    view.get_by_label("Rank", exact=True).select_option("3")
    slider = view.get_by_label("Moment, ms")
    slider.focus()
    slider.press("End")
    assert told_is_right(view, explorer) == (3, explorer.step.makespan)
    slider.press("ArrowLeft")
    assert told_is_right(view, explorer)[1] < explorer.step.makespan
    assert slider.get_attribute("aria-valuetext") == f"{told_is_right(view, explorer)[1]:g} ms"
    view.get_by_label("Picture shows").select_option("rings")
    assert view.locator(".plot .hop").count() == 2 * 4
    assert view.locator(".plot .op").count() == 0  # all have ended before the first ring


def test_a_refused_size_is_told_and_the_rest_goes_on(new_page: NewPage, server: str) -> None:
    explorer = StepExplorer(("1f1b", "interleaved"), 4, 2, (4, 6), ring_step=1)
    view = new_page(server + LAB, edit=showing(explorer)).locator(".hybridlab-step")
    view.get_by_label("Microbatches, M").fill("1")
    view.get_by_label("Schedule").select_option("1")
    assert "Interleaved needs microbatches divisible by devices" in view.locator(".refused").inner_text()
    assert view.locator("svg.plot, table tr").count() == 0
    explorer.microbatches = 6
    choose(view, explorer, schedule="1f1b")
    is_right(view, explorer)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")])
def test_it_is_accessible_and_fits(new_page: NewPage, server: str, width: int, scheme: str) -> None:
    page = new_page(server + LAB, edit=showing(MADE["a link and latency"]()), width=width, scheme=scheme)
    assert violations(page, ".hybridlab-step") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def without_runs(state: Any) -> None:
    state["data"]["runs"] = []


def with_words_for_times(state: Any) -> None:
    for entry in state["data"]["steps"].values():
        entry["makespan"] = "ninety"


def without_data(state: Any) -> None:
    state["data"] = None


@pytest.mark.parametrize("damage", [without_runs, with_words_for_times, without_data])
def test_damaged_data_are_told(new_page: NewPage, server: str, faults: list[str], damage: Callable[[Any], None]) -> None:
    page = new_page(server + LAB, edit=showing(MADE["ring steps"](), damage))
    assert page.locator(".hybridlab-step svg").count() == 0
    assert "missing or damaged" in page.locator(".hybridlab-step").inner_text()
    assert all(fault.startswith("console warning") for fault in faults)
    faults.clear()


@pytest.mark.parametrize("planted", ["start", "rings", "optimizer", "makespan", "speedup"])
def test_a_planted_fault_in_the_data_is_seen(new_page: NewPage, server: str, planted: str) -> None:
    explorer = MADE["a link and latency"]()

    def plant(state: Any) -> None:
        if planted == "start":
            state["data"]["runs"][0]["start"][-1] -= 20
        for entry in state["data"]["steps"].values():
            if planted == "rings":
                entry["rings"][-1][2] += 9
            elif planted == "optimizer":
                entry["optimizer"][0] -= 9
            elif planted != "start":
                entry[planted] += 1

    view = new_page(server + LAB, edit=showing(explorer, plant)).locator(".hybridlab-step")
    with pytest.raises(AssertionError):
        is_right(view, explorer)
