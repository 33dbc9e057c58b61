"""Test the files that a page saves of its timelines: the picture, the orders and the traces. No server and no kernel is needed."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from cases import in_turn
from playwright.sync_api import Locator, Page, expect
from visits import DRAWN, THE_VIEW, as_new, in_order

from hybridlab import Costs, Schedule, Timeline, build, simulate
from hybridlab.step import hybrid_step
from hybridlab.widgets import StepExplorer, TimelineExplorer

Together = Callable[..., Page]
SVG = "{http://www.w3.org/2000/svg}"
COSTS: dict[str, Any] = {"forward": 1.0, "backward": 2.1, "p2p": 0.3}
PICTURED = ("rect", "polygon", "path", "circle", "line", "text")
# the name, fill, stroke and text of every element that the pictures show on the screen, in their order
SCREEN = """(root) => {
  const shown = (element) => !element || (getComputedStyle(element).display !== "none" && shown(element.parentElement));
  const looks = (each) => [each.localName, getComputedStyle(each).fill, getComputedStyle(each).stroke, each.textContent];
  return [...root.querySelectorAll(".tracks :is(rect, polygon, path, circle, line, text)")].filter(shown).map(looks);
}"""


def explorer(unit: str | None = "ms") -> TimelineExplorer:
    show = {"schedule": "zb-h1", "compare": "dualpipe", "devices": 4, "microbatches": 8}
    costs = {name: COSTS[name] for name in ("forward", "backward")}
    return TimelineExplorer(("zb-h1", "dualpipe"), devices=4, microbatches=8, unit=unit, show=show | {"p2p": COSTS["p2p"]}, **costs)


def timelines() -> list[Timeline]:
    return [simulate(build(name, 4, 8), Costs(**COSTS, unit="ms")) for name in ("zb-h1", "dualpipe")]


def saved(view: Locator, kind: str, count: int, folder: Path) -> dict[str, str]:
    """Press the button for a kind of file, and return the texts of the saved files by name."""
    downloads: list[Any] = []

    def have_all(download: Any) -> bool:
        downloads.append(download)
        return len(downloads) == count

    with view.page.expect_event("download", have_all):
        view.get_by_role("button", name=f"Save {kind}").press("Enter")
    texts = {}
    for download in downloads:
        download.save_as(folder / download.suggested_filename)
        texts[download.suggested_filename] = (folder / download.suggested_filename).read_text(encoding="utf-8")
    expect(view.locator(".share [role=status]")).to_have_text(f"Saved {' and '.join(texts)}.")
    return texts


def the_csv_of_each_timeline_is_the_librarys(view: Locator, tmp_path: Path) -> None:
    files = saved(view, "CSV", 2, tmp_path)
    assert list(files) == ["zb-h1-4x8.csv", "dualpipe-4x8.csv"]
    for text, timeline in zip(files.values(), timelines(), strict=True):
        assert text == timeline.schedule.to_csv()
        assert Schedule.parse(text).turns == timeline.schedule.turns


def the_trace_of_each_timeline_is_the_librarys(view: Locator, tmp_path: Path) -> None:
    files = saved(view, "Perfetto trace", 2, tmp_path)
    assert list(files) == ["zb-h1-4x8.json", "dualpipe-4x8.json"]
    for (name, text), timeline in zip(files.items(), timelines(), strict=True):
        assert json.loads(text) == json.loads(json.dumps(timeline.to_chrome_trace()))
        read = Timeline.from_chrome_trace(tmp_path / name)
        assert read.schedule.turns == timeline.schedule.turns
        assert (read.end == timeline.end).all()


def test_times_without_a_unit_have_no_trace_and_the_page_says_so(together: Together) -> None:
    view = together(explorer(unit=None)).locator(".hybridlab-explorer")
    view.get_by_role("button", name="Save Perfetto trace").click()
    expect(view.locator(".share [role=status]")).to_contain_text("A trace needs times in s, ms or us")


def pictured(root: ET.Element) -> list[list[str]]:
    """Return what an SVG file draws: for each element its name, fill, stroke and text."""
    found: list[list[str]] = []

    def walk(element: ET.Element, fill: str, stroke: str) -> None:
        fill, stroke = element.get("fill", fill), element.get("stroke", stroke)
        name = element.tag.removeprefix(SVG)
        if name in PICTURED:
            found.append([name, fill, stroke, element.text or ""])
        for child in element:
            walk(child, fill, stroke)

    for picture in root.findall(f"{SVG}svg"):
        walk(picture, "", "")
    return found


def the_saved_picture_is_the_one_on_the_screen(view: Locator, tmp_path: Path) -> None:
    ((name, text),) = saved(view, "SVG", 1, tmp_path).items()
    assert name == "zb-h1-4x8-and-dualpipe-4x8.svg"
    assert not re.search(r"var\(|class=|style=|aria-|tabindex|https?://(?!www\.w3\.org/2000/svg)", text)
    root = ET.fromstring(text)  # noqa: S314  # of this test's own page
    assert pictured(root) == view.evaluate(SCREEN)
    titles = [str(element.text) for element in root.findall(f"{SVG}text")]
    assert [title.split(",")[0] for title in titles] == ["ZB-H1", "DualPipe"]
    assert root.findtext(f"{SVG}title") == "; ".join(titles)
    assert "makespan" in str(root.findtext(f"{SVG}desc"))


def test_a_picture_saved_in_the_dark_has_the_colours_of_light_pages(together: Together, tmp_path: Path) -> None:
    texts = []
    for scheme in ("light", "dark"):
        page = together(explorer())
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        (text,) = saved(page.locator(".hybridlab-explorer"), "SVG", 1, tmp_path).values()
        texts.append(re.sub(r"hybridlab-\w+-idle", "idle", text))
        colours = page.locator(".hybridlab-explorer").evaluate("(root) => getComputedStyle(root).backgroundColor")
        assert colours == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]
    assert texts[0] == texts[1]


@in_turn("width", [360, 1280])
def test_the_saved_picture_opens_as_an_image(together: Together, tmp_path: Path, width: int) -> None:
    view = together(explorer()).locator(".hybridlab-explorer")
    view.page.set_viewport_size({"width": width, "height": 900})
    view.page.evaluate(DRAWN)
    ((name, text),) = saved(view, "SVG", 1, tmp_path).items()
    root = ET.fromstring(text)  # noqa: S314
    page = view.page.context.new_page()
    page.goto((tmp_path / name).as_uri())
    assert page.evaluate("document.documentElement.localName") == "svg"
    size = page.evaluate("(({ width, height }) => [width, height])(document.documentElement.getBoundingClientRect())")
    assert size == [float(root.get("width", 0)), float(root.get("height", 0))]
    boxes = "[...document.querySelectorAll('text')].map((text) => text.getBoundingClientRect().right)"
    assert max(page.evaluate(boxes)) <= size[0]


def test_nothing_is_saved_where_nothing_is_drawn(together: Together) -> None:
    view = together(TimelineExplorer("interleaved", devices=(2, 4), microbatches=(4, 6), show={"microbatches": 4})).locator(
        ".hybridlab-explorer"
    )
    view.get_by_role("slider", name="Devices").press("End")
    view.get_by_role("slider", name="Microbatches").press("End")
    expect(view.locator(".refused")).to_be_visible()
    view.get_by_role("button", name="Save CSV").click()
    expect(view.locator(".share [role=status]")).to_have_text("There is no timeline to save.")


def test_a_step_is_saved_as_the_three_files(together: Together, tmp_path: Path) -> None:
    show = {"replicas": 2, "overlap": True}
    explorer = StepExplorer("1f1b", replicas=(1, 2), microbatches=4, ring_step=0.7, p2p=0.3, optimiser=1, unit="ms", show=show)
    step = hybrid_step(build("1f1b", 2, 4), Costs(forward=1, backward=2, p2p=0.3, unit="ms"), 2, ring_step=0.7, overlap=True, optimiser=1)
    view = together(explorer).locator(".hybridlab-step")
    ((name, text),) = saved(view, "CSV", 1, tmp_path).items()
    assert name == "1f1b-2x4-2-replicas.csv"
    assert text == build("1f1b", 2, 4).to_csv()
    ((name, text),) = saved(view, "Perfetto trace", 1, tmp_path).items()
    slices = [[event["name"], event["ts"] + event["dur"]] for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]
    wanted = [[event["name"], event["ts"] + event["dur"]] for event in step.timeline.to_chrome_trace()["traceEvents"] if event["ph"] == "X"]
    assert [each for each, _ in slices] == [each for each, _ in wanted]
    assert [end for _, end in slices] == pytest.approx([end for _, end in wanted], rel=1e-12)
    read = Timeline.from_chrome_trace(tmp_path / name)
    assert read.makespan == step.makespan
    ((name, text),) = saved(view, "SVG", 1, tmp_path).items()
    assert name == "1f1b-2x4-2-replicas.svg"
    root = ET.fromstring(text)  # noqa: S314
    assert pictured(root) == view.evaluate(SCREEN.replace(".tracks :is", ".tracks > svg :is"))
    assert len(root.findall(f"{SVG}svg")) == 2, "the names of the ranks and the lanes, and not the cursor above them"
    assert root.findtext(f"{SVG}title") == "1F1B, 2 devices a pipeline, 2 replicas, 4 microbatches"


def test_no_file_of_a_step_that_is_refused(together: Together) -> None:
    view = together(StepExplorer("interleaved", microbatches=(2, 3), replicas=2, ring_step=1)).locator(".hybridlab-step")
    view.get_by_role("slider", name="Microbatches").press("End")
    expect(view.locator(".refused")).to_be_visible()
    view.get_by_role("button", name="Save SVG").click()
    expect(view.locator(".share [role=status]")).to_have_text("There is no timeline to save.")


@in_turn("width", [360, 1280])
def test_the_row_of_buttons_fits(together: Together, width: int) -> None:
    page = together(explorer())
    page.set_viewport_size({"width": width, "height": 900})
    assert page.locator(".share button").all_text_contents() == ["Copy a link", "Embed", "Save SVG", "Save CSV", "Save Perfetto trace"]
    assert page.locator(".share").evaluate("(row) => row.scrollWidth <= row.clientWidth")


def test_files_of_timelines(together: Together, tmp_path: Path) -> None:
    questions = (
        the_csv_of_each_timeline_is_the_librarys,
        the_trace_of_each_timeline_is_the_librarys,
        the_saved_picture_is_the_one_on_the_screen,
    )
    in_order(together(explorer()), questions, tmp_path, again=as_new, part=THE_VIEW)
