"""The gallery: every registered schedule is on the page, with the numbers of the clock and at a stable address."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gallery
import numpy as np
import pytest
from docutils import nodes
from docutils.utils import new_document

from hybridlab import REGISTRY, Costs, HybridLabError, Schedule, build, formulas, plot, register, simulate
from hybridlab.bound import OptimalityGap, optimality_gap
from hybridlab.schedules import Family, registry
from hybridlab.schedules.one_f_one_b import one_f_one_b

BOOK = Path(__file__).parents[1] / "book"

TEXT = (BOOK / "gallery.md").read_text(encoding="utf-8")
REFERENCES = (BOOK / "references.bib").read_text(encoding="utf-8")
COSTS = Costs(forward=1, backward=2, unit=None)
GROUPS = {
    "One chunk a device": ["gpipe", "1f1b", "eager-1f1b"],
    "One chunk a device, backward split": ["zb-h1", "zb-h2"],
    "Several chunks in a loop": ["interleaved", "looped-bfs", "interleaved-zb"],
    "Chunks folded into a V": ["hanayo", "zb-v", "v-half", "v-min", "dualpipe-v"],
    "Two copies of the weights": ["chimera", "dualpipe"],
}
NAMES = [name for group in GROUPS.values() for name in group]  # in the order of the page
ANCHORS = {name: f"schedule-{name}" for name in NAMES}


OPTIMA = {"hanayo": 30.0, "v-min": 29.5, "chimera": 28.0, "dualpipe": 25.0}  # proven by the solver, which takes a minute for all
ENTRIES = import_module("gallery.entries")
SOLVED = ENTRIES._gap


def known(schedule: Schedule) -> OptimalityGap:
    """What the page asks the solver for, from the optima above."""
    return replace(found, optimum=OPTIMA.get(schedule.name)) if (found := optimality_gap(schedule, COSTS)).optimum is None else found


@pytest.fixture(autouse=True)
def without_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ENTRIES, "_gap", known)


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTRY)
def test_the_solver_finds_the_optima_that_these_tests_are_given(name: str) -> None:
    schedule = build(name, 4, 8)
    assert SOLVED(schedule) == known(schedule)


def test_the_page_asks_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(ENTRIES, "optimality_gap", lambda *arguments, **named: asked.append((arguments, named)))
    ENTRIES._solved("hanayo", build("hanayo", 4, 8))
    assert asked == [((build("hanayo", 4, 8), ENTRIES.COSTS), {"seconds": ENTRIES.SOLVER})]
    assert (ENTRIES.COSTS.forward, ENTRIES.COSTS.backward) == (1, 2)
    assert ENTRIES.SOLVER > 4


def page() -> str:
    return page_of(tuple(REGISTRY.values()))


@cache
def page_of(families: tuple[Family, ...]) -> str:
    """The page with these schedules, made once."""
    assert families == tuple(REGISTRY.values())
    return gallery.fill(TEXT, REFERENCES)


def sections(filled: str) -> dict[str, str]:
    """The text of each schedule's section by its anchor."""
    parts = re.split(r"^\(([\w-]+)\)=\n", filled, flags=re.M)
    return {anchor: part for anchor, part in zip(parts[1::2], parts[2::2], strict=True) if anchor.startswith("schedule-")}


class Table(HTMLParser):
    """The rows of a table as lists of texts, its links, and the scopes of its headers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.scopes: list[str | None] = []
        self.bold: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "th":
            self.scopes.append(dict(attrs).get("scope"))
        if tag == "a":
            self.links.append(dict(attrs)["href"] or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Nothing inside: a path of a drawing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.rows and "tr" in self.open:
            self.rows[-1][-1] += ("|" if "small" in self.open else "") + data
            if "strong" in self.open:
                self.bold.append(f"{self.rows[-1][0].split('|')[0]}: {data}")


def table(filled: str) -> Table:
    return Table(filled[filled.index("<table>") : filled.index("</table>") + 8])


LEAST = {  # tests/test_bound.py and tests/test_optimum.py test the bound and the solver themselves
    **dict.fromkeys(("gpipe", "1f1b", "eager-1f1b"), "33|reached"),
    **dict.fromkeys(("zb-h1", "zb-h2"), "27|reached"),
    **dict.fromkeys(("interleaved", "looped-bfs"), "28.5|reached"),
    **dict.fromkeys(("interleaved-zb", "zb-v"), "25.5|reached"),
    "hanayo": "30|+8.3%",
    "v-half": "≥ 25.5|at most +7.8%",
    "v-min": "29.5|reached",
    "dualpipe-v": "≥ 25.5|at most +5.9%",
    "chimera": "28|reached",
    "dualpipe": "25|+4.0%",
}


def rows(filled: str) -> list[list[str]]:
    """The rows of the schedules, in the order of the page."""
    return [row for row in table(filled).rows[1:] if len(row) > 1]


def wrong_rows(filled: str) -> list[str]:
    """The titles of the rows that differ from the clock or the order."""
    wrong = []
    for name, row in zip(NAMES, rows(filled), strict=True):
        schedule = build(name, 4, 8)
        timeline = simulate(schedule, COSTS)
        peaks, messages = timeline.peak_activations.tolist(), schedule.messages.tolist()
        wanted = [
            f"{timeline.makespan:g}",
            LEAST[name],
            f"{timeline.bubble_ratio:.3f}",
            f"{max(peaks):g}|" + ", ".join(f"{peak:g}" for peak in peaks),
            "2" if name in GROUPS["Two copies of the weights"] else "1",
            f"{sum(messages)}|" + ", ".join(map(str, messages)),
        ]
        if row[0].split("|")[0] != REGISTRY[name].title or row[2:] != wanted:
            wrong.append(REGISTRY[name].title)
    return wrong


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[Family], None]:
    """A way to put a schedule into the registry for one test."""
    return lambda family: monkeypatch.setitem(registry._FAMILIES, family.name, family)


def test_every_schedule_has_a_row_a_section_and_a_figure() -> None:
    filled = page()
    assert sorted(NAMES) == sorted(REGISTRY)
    assert table(filled).links == [f"#{anchor}" for anchor in ANCHORS.values()]
    assert list(sections(filled)) == list(ANCHORS.values())
    for name, part in zip(NAMES, sections(filled).values(), strict=True):
        assert part.startswith(f"### {REGISTRY[name].title}\n")
        assert part.count("plot.timeline(") == 1
        assert f'build("{name}", devices=4, microbatches=8' in part
        assert f"```text\n{build(name, 4, 8)}\n```" in part


def test_groups_are_headings_of_the_page_and_of_the_table() -> None:
    filled = page()
    headings = re.findall(r"^(##+) (.*)$", filled, flags=re.M)
    wanted = [each for group, names in GROUPS.items() for each in [("##", group), *(("###", REGISTRY[name].title) for name in names)]]
    assert headings == [*wanted, ("##", "Other sizes")]
    lines = [row[0].split("|")[0] for row in table(filled).rows[1:]]
    assert lines == [title for _, title in wanted]


def test_the_table_says_what_clock_and_order_say() -> None:
    assert wrong_rows(page()) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("<td>28.5</td>", "<td>28</td>"),
        ("<td>28.5<small>", "<td>28<small>"),
        ("5.5, 4.5, 3.5, 2.5", "5.5, 4.5, 3.5, 3.5"),
        ("24, 32, 32, 24", "16, 16, 16, 16"),
    ],
)
def test_a_wrong_row_would_be_noticed(right: str, wrong: str) -> None:
    assert right in page()
    assert wrong_rows(page().replace(right, wrong, 1)) == ["Interleaved 1F1B"]


def test_the_table_is_one_for_screen_readers() -> None:
    filled = page()
    made = table(filled)
    assert made.open == []
    assert made.scopes == ["col"] * 8 + [scope for names in GROUPS.values() for scope in ["rowgroup", *["row"] * len(names)]]
    assert {len(row) for row in made.rows} == {1, 8}
    assert filled.count('scope="rowgroup" colspan="8"') == len(GROUPS)
    assert "<caption>" in filled
    assert 'role="region" aria-label="Comparison of the schedules" tabindex="0"' in filled


def test_the_least_of_each_column_is_bold() -> None:
    shortest = {f"{title}: {value}" for title in ("Interleaved zero bubble", "ZB-V") for value in ("25.5", "0.059")}
    fewest = {f"{REGISTRY[name].title}: 48" for name in NAMES[:5] + NAMES[-2:]}  # one chunk, or one of each copy
    assert set(table(page()).bold) == shortest | {"V-Min: 2"} | fewest


def test_findings_name_all_that_share_the_first_place() -> None:
    timelines = {name: simulate(build(name, 4, 8), COSTS) for name in REGISTRY}
    shortest = min(timeline.makespan for timeline in timelines.values())
    line = next(line for line in page().splitlines() if line.startswith("- **Shortest:**"))
    assert f"with a makespan of {shortest:g}." in line
    assert {name for name in REGISTRY if f"(#schedule-{name})" in line} == {
        name for name, timeline in timelines.items() if timeline.makespan == shortest
    }


@pytest.mark.parametrize("name", REGISTRY)
def test_a_section_states_the_numbers_of_the_clock(name: str) -> None:
    part, timeline = sections(page())[ANCHORS[name]], simulate(build(name, 4, 8), COSTS)
    assert f"- **Makespan:** {timeline.makespan:g}" in part
    least, gap = LEAST[name].split("|")
    solver = name in ("hanayo", "v-min", "chimera")
    assert f"- **Least possible:** {least.replace('≥', 'not below')} with these operations and activations" in part
    assert f"activations, by {{func}}`~hybridlab.bound.{'optimum' if solver else 'lower_bound'}`" in part
    far = gap.replace("+", "")
    assert {"reached": "; this order reaches it."}.get(gap, f"takes {far} more") in part
    assert f"- **Bubble ratio:** {timeline.bubble_ratio:.3f}" in part
    assert f"- **Peak activations:** {timeline.peak_activations[0]:g}" in part
    assert f"; {timeline.schedule.messages.sum()} in all." in part
    assert f'alt: "{plot.alt_text(timeline)}"' in part
    assert f"- **Sizes:** {REGISTRY[name].sizes}." in part


CLOSED_FORMS = {
    "gpipe": formulas.gpipe_makespan(4, 8, 1, 2),
    "1f1b": formulas.one_f_one_b_makespan(4, 8, 1, 2),
    "eager-1f1b": formulas.eager_one_f_one_b_makespan(4, 8, 1, 2),
    "interleaved": formulas.interleaved_makespan(4, 8, 2, 1, 2),
    "looped-bfs": formulas.looped_bfs_makespan(4, 8, 2, 1, 2),
    "hanayo": formulas.hanayo_makespan(4, 8, 2, 1),
    "zb-h1": formulas.zb_h1_makespan(4, 8, 1, 2, 1),
    "zb-h2": formulas.zb_h2_makespan(4, 8, 1, 2, 1),
    "interleaved-zb": formulas.interleaved_zb_makespan(4, 8, 2, 1, 2, 1),
    "zb-v": formulas.zb_v_makespan(4, 8, 1, 2, 1),
    "chimera": formulas.chimera_makespan(4, 8, 1, 2),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_closed_form_stands_beside_the_clock_and_agrees(name: str) -> None:
    found = re.search(r"Makespan:\*\* (\S+) by the clock, (\S+) by the closed form [^,]*?\.\n", sections(page())[ANCHORS[name]])
    assert bool(found) == (name in CLOSED_FORMS)
    if found:
        assert float(found[1]) == float(found[2]) == CLOSED_FORMS[name]


PEAKS = {  # of Qi et al. and DeepSeek-AI, worked out by hand for K = 4 and M = 8: at most
    "gpipe": 8, "1f1b": 4, "eager-1f1b": 7, "interleaved": 5.5, "looped-bfs": 8, "zb-h1": 4, "zb-h2": 7, "interleaved-zb": 4, "zb-v": 4,
    "v-half": 3, "v-min": 2, "chimera": 4, "dualpipe-v": 4.5, "dualpipe": 5,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_peaks_stand_beside_their_closed_form(name: str) -> None:
    part = sections(page())[ANCHORS[name]]
    found = re.search(r"; at most (\S+) by the closed form {func}`~hybridlab.formulas.peak_activations`", part)
    assert (float(found[1]) if found else None) == PEAKS.get(name)
    assert found is None or float(found[1]) == simulate(build(name, 4, 8), COSTS).peak_activations.max()


def test_other_quantities_stand_beside_their_closed_forms() -> None:
    parts = sections(page())
    for name in GROUPS["One chunk a device"]:
        words = "**Bubble ratio:** 0.273 by the clock, 0.273 by the closed form {func}`~hybridlab.formulas.bubble_ratio`.\n"
        assert words in parts[ANCHORS[name]]
    assert "- **Longest span of one device:** 24 by the clock, 24 by the closed form" in parts["schedule-zb-h2"]
    for name, idle in (("dualpipe", 2), ("dualpipe-v", 3)):
        assert f"- **Idle time of a device:** {idle} on every device by the clock, {idle} by the closed form" in parts[ANCHORS[name]]


def test_all_figures_share_one_time_axis_and_one_scale_of_activations() -> None:
    scales = set(re.findall(r"plot\.timeline\(.*, end=(\S+), peak=(\S+)\)", page()))
    timelines = [simulate(build(name, 4, 8), COSTS) for name in REGISTRY]
    most = max(float(timeline.peak_activations.max()) for timeline in timelines)
    assert [(float(end), float(peak)) for end, peak in scales] == [(max(timeline.makespan for timeline in timelines), most)]


@pytest.mark.parametrize("name", REGISTRY)
def test_the_call_of_a_figure_draws_what_its_words_say(name: str) -> None:
    part = sections(page())[ANCHORS[name]]
    names: dict[str, Any] = {}
    exec(re.search(r"^from hybridlab import .*?(?=^```)", TEXT, re.M | re.S)[0], names)  # type: ignore[index]  # noqa: S102
    figure = eval(re.search(r"^plot\.timeline\(.*\)$", part, re.M)[0], names)  # type: ignore[index]  # noqa: S307
    assert f'alt: "{figure.alt_text}"' in part


def test_papers_lead_to_the_bibliography() -> None:
    keys = set(re.findall(r"@\w+\{([^,]+),", REFERENCES))
    for name, part in sections(page()).items():
        cited = re.search(r"\*\*Source:.*\{cite\}`([^`]+)`\.$", part, re.M)
        assert cited, name
        assert set(cited[1].split(",")) <= keys


def test_placement_gives_each_stage_its_device() -> None:
    parts = sections(page())
    assert "- **Placement:** stage *s* on device *s*." in parts["schedule-gpipe"]
    assert "- **Placement:** stages 0 to 7 on devices 0, 1, 2, 3, 0, 1, 2, 3." in parts["schedule-interleaved"]
    assert "- **Placement:** stages 0 to 7 on devices 0, 1, 2, 3, 3, 2, 1, 0." in parts["schedule-hanayo"]
    both = "stages 0 to 3 on devices 0, 1, 2, 3; stages of the other copy of the weights on devices 3, 2, 1, 0"
    assert f"- **Placement:** {both}." in parts["schedule-dualpipe"]


def test_a_schedule_registered_later_is_on_the_page(fresh: Callable[[Family], None]) -> None:
    fresh(Family("new_one v2", "New *one*", one_f_one_b, "device d waits D-1-d turns <for> [nothing], in-place", "A paper"))
    filled = page()
    assert rows(filled)[3][:1] == ["New *one*"]  # the last of its group
    assert table(filled).links[3] == "#schedule-new-one-v2"
    part = sections(filled)["schedule-new-one-v2"]
    assert part.startswith(
        "### New \\*one\\*\n\nDevice *d* waits *D*\N{MINUS SIGN}1\N{MINUS SIGN}*d* turns \\<for\\> \\[nothing\\], in-place.\n"
    )
    assert "- **Makespan:** 33 by the clock, 33 by the closed form" in part  # the rule is that of 1F1B
    assert part.count("A paper.") == 1


def test_a_schedule_made_by_register_is_on_the_page_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._FAMILIES, "mine", None)  # remembered, so that it is taken out again
    del registry._FAMILIES["mine"]
    register("mine", title="Mine", summary="as 1F1B", source="nowhere")(lambda *size: one_f_one_b(*size))
    part = sections(page())["schedule-mine"]
    assert "- **Makespan:** 33.\n" in part  # no closed form bears its name
    assert "- **Bubble ratio:** 0.273.\n" in part
    assert "{cite}" not in part


@dataclass(frozen=True)
class Odd(Family):
    """A family that runs on odd numbers of devices alone."""

    most: int = 100

    def refusal(self, devices: int, microbatches: int, chunks: int) -> str | None:
        if devices % 2 and devices <= self.most:
            return super().refusal(devices, microbatches, chunks)
        return f"{self.name} needs an odd number of devices, not {devices}"


def test_a_schedule_that_refuses_the_common_size_is_shown_at_the_nearest_and_says_so(fresh: Callable[[Family], None]) -> None:
    fresh(Odd("odd", "Odd", one_f_one_b, "as 1F1B", "nowhere"))
    filled = page()
    part = sections(filled)["schedule-odd"]
    assert "Odd needs an odd number of devices, not 4. So it is shown with 3 devices, 8 microbatches." in part
    assert 'plot.timeline(simulate(build("odd", devices=3, microbatches=8), costs), end=33, peak=8)' in part
    assert rows(filled)[3][0] == "Odd|with 3 devices, 8 microbatches"
    assert rows(filled)[3][2] == "30"
    assert "does not run at the common size" in filled
    assert "(#schedule-odd)" not in filled[: filled.index("<table>")]  # it is not compared with the others
    assert not [line for line in table(filled).bold if line.startswith("Odd")]


def test_a_schedule_without_any_size_nearby_is_told_by_name(fresh: Callable[[Family], None]) -> None:
    fresh(Odd("none", "None", one_f_one_b, "as 1F1B", "nowhere", most=0))
    with pytest.raises(HybridLabError, match="the gallery finds no size near 4 devices and 8 microbatches for none"):
        page()


def test_only_marks_are_replaced() -> None:
    assert gallery.fill("a {{ other }} b {{ size }}").startswith("a {{ other }} b *K* = 4 ")
    assert "{{" not in page()
    assert re.findall(r"\{\{ (\w+) \}\}", TEXT) == ["size", "findings", "table", "schedules"]


def test_nothing_written_by_hand_names_a_schedule() -> None:
    for family in REGISTRY.values():
        assert family.title not in TEXT
        assert f'"{family.name}"' not in TEXT


def test_a_section_is_known_by_its_anchor_not_by_a_name_made_from_its_title() -> None:
    document = new_document("gallery")
    document += nodes.section("", nodes.title(text="1F1B"), ids=["f1b", "schedule-1f1b"])
    gallery.own_anchors(SimpleNamespace(env=SimpleNamespace(docname=gallery.PAGE)), document)
    assert document[0]["ids"] == ["schedule-1f1b", "f1b"]


@pytest.mark.parametrize("name", REGISTRY)
def test_a_thumbnail_fills_the_time_that_a_device_is_busy(name: str) -> None:
    timeline = simulate(build(name, 4, 8), COSTS)
    row = next(row for row in page().split("<tr>") if f'"#schedule-{name}"' in row)
    idle, *drawn = re.findall(r'd="([^"]+)"', row)
    bars = np.array([each for path in drawn for each in re.findall(r"M(\S+) (\S+)h(\S+?)v(\S+?)h", path)], dtype=float)
    filled = np.zeros((4, 2, 2 * 33))  # device, half of its row, half a unit of time
    for left, top, wide, high in bars:
        device, half = divmod(round(top / 0.4, 9), 2.5)
        halves = slice(int(half), int(half) + round(high / 0.4))
        filled[int(device), halves, int(2 * left) : int(2 * (left + wide))] += 1
    assert filled.max() == 1, "two bars stand in one place"
    assert (filled[:, 0] == filled[:, 1]).all(), "an operation alone fills its row, a pair both halves"
    assert (filled[:, 0].sum(axis=1) / 2).tolist() == timeline.busy.tolist()
    assert (bars[:, 0] + bars[:, 2]).max() == timeline.makespan
    assert re.findall(r"h(\S+?)v", idle) == [f"{timeline.makespan:g}"] * 4
