"""Test the step explorer in a browser, with links, bytes, optimisers and slow replicas.

It must be right at every setting, by pointer, touch and keys.
"""

from collections.abc import Callable
from typing import Any

import pytest
from browser import held
from cases import in_turn
from lab_views.step import KIND, SHOWN, drawn_is_right, figures_are_right, told_is_right
from playwright.sync_api import Locator, expect

from hybridlab import FP16, INT8
from hybridlab.collectives import Link
from hybridlab.palette import shade_colour
from hybridlab.step import HybridStep
from hybridlab.widgets import StepExplorer

NewPage = Any
MADE: dict[str, Callable[[], StepExplorer]] = {
    "ring steps": lambda: StepExplorer(
        replicas=(1, 2, 4), microbatches=(2, 8), forward=50, backward=80, ring_step=(10, 20), unit="ms", show={"replicas": 2}
    ),
    "a link and latency": lambda: StepExplorer(
        ("1f1b", "interleaved", "zb-h1"), 2, 3, (4, 6), forward=50, backward=80, p2p=7, link=Link(1e-4, 25e9),
        gradient_bytes=2_000_000_002, wire=(FP16, INT8), optimiser=15, unit="ms", show={"overlap": True},
    ),
    "pairs and copies": lambda: StepExplorer(
        ("chimera", "dualpipe", "dualpipe-v"), 4, (1, 2), 8, p2p=0.25, pair_overlap=0.5, link=Link(1e-4, 1e9),
        gradient_bytes=1_000_002, optimiser=1, unit="ms", show={"schedule": "dualpipe", "replicas": 2, "overlap": True},
    ),
    "a slow replica": lambda: StepExplorer("gpipe", 2, 2, 3, forward=[1, 1, 1, 3], ring_step=0.5, unit=None),
}  # fmt: skip
# the texts in the bars: each with the colour, the top and the height of the bar that it stands in
BARS = """(root) => {
  const bars = [...root.querySelectorAll(".plot path.op")].flatMap((path) =>
    [...path.getAttribute("d").matchAll(/M([^ ]+) ([^h]+)h([^v]+)v([^h]+)h/g)]
      .map(([, ...box]) => [path.getAttribute("fill"), ...box.map(Number)]));
  return [...root.querySelectorAll(".plot .op.texts text")].map((text) => {
    const [x, y] = ["x", "y"].map((name) => Number(text.getAttribute(name)));
    const inside = ([, left, top, width, height]) => left < x && x < left + width && top < y && y < top + height;
    const [fill, , top, , height] = bars.find(inside);
    return [text.textContent, fill, top, height];
  });
}"""
each_explorer = in_turn("make", MADE.values())


def opened(new_widgets: NewPage, server: str, explorer: StepExplorer, damage: Any = lambda state: None, **context: Any) -> Locator:
    """Open the lab with the explorer in the place of the first widget of its kind, and give the widgets."""
    return held(new_widgets(server + KIND.lab, edit=KIND.showing(explorer, damage), **context).locator(".hybridlab-step").first)


def choose(view: Locator, explorer: StepExplorer, **setting: Any) -> None:
    """Set the controls of the page, and set the explorer in Python to the same values."""
    for name, value in setting.items():
        setattr(explorer, name, value)
        place = str(explorer.data[name].index(value) if name != "schedule" else list(explorer.data["titles"]).index(value))
        control = view.locator(f"select[id$=-{name}], input[type=range][id$=-{name}]")
        if control.is_visible():
            control.select_option(place) if name in ("schedule", "ring", "overlap") else control.fill(place)


def is_right(view: Locator, explorer: StepExplorer) -> None:
    """Raise AssertionError unless every bar and every figure equal newly computed values for the explorer's setting."""
    drawn_is_right(view.evaluate(SHOWN), explorer.step)
    chosen, steps = explorer.overlap, []
    for overlap in explorer.data["overlap"]:
        explorer.overlap = overlap
        steps.append(explorer.step)
    explorer.overlap = chosen
    figures_are_right(view, steps)


def told(view: Locator, step: HybridStep) -> tuple[int, float]:
    return told_is_right(view.evaluate(SHOWN), step)


@each_explorer
def test_every_setting_is_drawn_as_the_library_computes_it(new_widgets: NewPage, server: str, make: Callable[[], StepExplorer]) -> None:
    explorer = make()
    view = opened(new_widgets, server, explorer)
    is_right(view, explorer)
    for name in ("schedule", "replicas", "microbatches", "ring", "overlap"):
        values = list(explorer.data["titles"]) if name == "schedule" else explorer.data[name]
        for value in reversed(values):
            choose(view, explorer, **{name: value})
            is_right(view, explorer)


@pytest.mark.parametrize("make", [MADE["a link and latency"], MADE["pairs and copies"]], ids=["a link and latency", "pairs and copies"])
def test_arrow_keys_lead_through_all_that_a_rank_does(new_widgets: NewPage, server: str, make: Callable[[], StepExplorer]) -> None:
    explorer = make()
    view = opened(new_widgets, server, explorer)
    page, step = view.page, explorer.step
    view.locator(".picture").focus()
    for key in ("Home", *["ArrowDown"] * (step.mesh.size - 2), "Home"):
        page.keyboard.press(key)
    rank, time = told(view, step)
    assert (rank, time) == (step.mesh.size - 2, 0)
    edges = {0.0, step.makespan}
    for row in step.timeline.to_rows():
        edges |= {row["start"], row["end"]} if row["device"] == rank else set()
    for edge in sorted(edges)[1:]:
        page.keyboard.press("ArrowRight")
        assert told(view, step) == (rank, pytest.approx(edge, rel=1e-5))
    assert view.locator(".told").inner_text().endswith("is done: the step has ended.")
    page.keyboard.press("ArrowLeft")
    assert told(view, step)[1] == pytest.approx(sorted(edges)[-2], rel=1e-5)


@in_turn("touch", [False, True])
def test_a_place_pointed_at_is_told_and_its_sender_and_receiver_are_marked(new_widgets: NewPage, server: str, touch: bool) -> None:
    explorer = MADE["a link and latency"]()
    view, step = opened(new_widgets, server, explorer, width=360 if touch else 1280, has_touch=touch), explorer.step
    plot = view.locator(".plot")
    for hop in (row for row in step.timeline.to_rows() if row["op"].startswith(("reduce", "all")) and row["step"] == 1):
        shape = view.evaluate(SHOWN)
        x = 5 + (hop["start"] + hop["end"]) / 2 / step.makespan * shape["end"]
        _, top, _, height = shape["rows"][hop["device"]]
        plot.scroll_into_view_if_needed()
        (plot.tap if touch else plot.click)(position={"x": x, "y": top + height + 6}, force=True)
        expect(view.locator(".names .rank.here")).to_have_text(f"rank {hop['device']}")  # a tap becomes a click only after a delay
        assert told(view, step)[0] == hop["device"]
        marked = view.locator(".names .peer").all_text_contents()
        assert sorted(marked) == ["receives", "sends"]
        assert view.locator(".arrow").count() >= 2


@in_turn("name", ["chimera", "dualpipe", "dualpipe-v"])
def test_shades_tell_copies_or_chunks_and_of_a_pair_the_forward_stands_above(new_widgets: NewPage, server: str, name: str) -> None:
    explorer = MADE["pairs and copies"]()
    view = opened(new_widgets, server, explorer)
    choose(view, explorer, schedule=name)
    for _ in range(3):
        view.get_by_label("Zoom in").click()
    bars = [bar for bar in view.evaluate(BARS) if bar[0][:1] in "FBIW" and bar[0][1:].isdigit()]
    schedule = explorer.step.timeline.schedule
    begins = {op.microbatch: device for device, order in enumerate(schedule.orders[:4]) for op in order if str(op).startswith("0F")}
    wanted = set()
    for op in schedule.ops:
        shade = op.stage // 4 if name == "dualpipe-v" else begins[op.microbatch] // 3
        wanted |= {(f"{op.kind.value}{op.microbatch}", shade_colour(op.kind.value, shade, 2))}
    assert {(text, fill) for text, fill, *_ in bars} <= wanted
    assert len({fill for text, fill, *_ in bars if text.startswith("F")}) == 2
    rows = {top: height for _, top, _, height in view.evaluate(SHOWN)["rows"]}
    halves = {(text[0], y in rows) for text, _, y, height in bars if height not in rows.values()}
    assert halves == (set() if name == "chimera" else {("F", True), ("B", False)})
    legend = view.locator(".legend").inner_text()
    assert ("copies of the weights: from device 0, from device 3" in legend) == (name != "dualpipe-v")
    assert ("first to last chunk of a device" in legend) == (name == "dualpipe-v")
    assert ("overlapped pair: both at once" in legend) == (name != "chimera")


def test_the_rank_and_the_moment_have_controls_of_their_own(new_widgets: NewPage, server: str) -> None:
    explorer = MADE["ring steps"]()
    view = opened(new_widgets, server, explorer)
    view.get_by_label("Rank", exact=True).select_option("3")
    slider = view.get_by_label("Moment, ms")
    slider.focus()
    slider.press("End")
    assert told(view, explorer.step) == (3, explorer.step.makespan)
    slider.press("ArrowLeft")
    assert told(view, explorer.step)[1] < explorer.step.makespan
    assert slider.get_attribute("aria-valuetext") == f"{told(view, explorer.step)[1]:g} ms"
    view.get_by_label("Picture shows").select_option("rings")
    shown = view.evaluate(SHOWN)
    assert len(shown["scatters"]) == len(shown["gathers"]) == 4
    assert not shown["ops"], "all have ended before the first ring"


def test_a_refused_size_is_told_and_the_rest_goes_on(new_widgets: NewPage, server: str) -> None:
    explorer = StepExplorer(("1f1b", "interleaved"), 4, 2, (4, 6), ring_step=1)
    view = opened(new_widgets, server, explorer)
    view.get_by_label("Microbatches, M").fill("1")
    view.get_by_label("Schedule").select_option("1")
    assert "Interleaved needs microbatches divisible by devices" in view.locator(".refused").inner_text()
    assert view.locator("svg.plot, table tr").count() == 0
    explorer.microbatches = 6
    choose(view, explorer, schedule="1f1b")
    is_right(view, explorer)


def test_a_planted_fault_in_the_optimiser_is_seen(new_widgets: NewPage, server: str) -> None:
    explorer = MADE["a link and latency"]()

    def plant(state: Any) -> None:
        for entry in state["data"]["steps"].values():
            entry["optimiser"][0] -= 9

    with pytest.raises(AssertionError, match="ops"):
        is_right(opened(new_widgets, server, explorer, plant), explorer)


@in_turn("width", [360, 704])
def test_words_of_a_control_are_read_to_their_end(alone: Callable[[Any], Locator], width: int) -> None:
    view = alone(MADE["a link and latency"]())
    view.page.set_viewport_size({"width": width, "height": 900})
    narrow = """(root) => [...root.querySelectorAll("select")].filter((select) => {
      const alone = document.createElement("select");
      alone.append(select.selectedOptions[0].cloneNode(true));
      alone.style = "width: auto !important; max-width: none !important; position: absolute";
      select.parentNode.append(alone);
      const short = select.offsetWidth < alone.offsetWidth;
      alone.remove();
      return short;
    }).map((select) => select.selectedOptions[0].text)"""
    assert view.evaluate(narrow) == []
    view.page.add_style_tag(content=".hybridlab-step :is(select, .field) { max-width: 4rem !important }")
    assert "beside computing" in view.evaluate(narrow), "a control that is too narrow would be seen"
