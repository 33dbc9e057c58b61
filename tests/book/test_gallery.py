"""Test that every registered schedule is on the gallery's page, in its group and at a stable address."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import gallery
import pytest
from cases import in_turn
from docutils import nodes
from docutils.utils import new_document
from gallery_page import REFERENCES, TEXT, TITLES, anchor, filled_in, groups, longest, made, names, page, rows, sections, table

from hybridlab import REGISTRY, HybridLabError, register
from hybridlab.schedules import Family
from hybridlab.schedules.one_f_one_b import one_f_one_b


@pytest.fixture
def fresh(families: dict[str, Family]) -> Callable[[Family], None]:
    """Give a function that puts a schedule into the registry for one test."""
    return lambda family: families.update({family.name: family})


def test_every_schedule_has_a_row_a_section_and_a_figure() -> None:
    filled = page()
    anchors = [anchor(name) for name in names()]
    assert len(set(anchors)) == len(REGISTRY)
    assert table(filled).links == [f"#{each}" for each in anchors]
    assert list(sections(filled)) == anchors
    for name, part in zip(names(), sections(filled).values(), strict=True):
        schedule = made(name)
        assert part.startswith(f"### {REGISTRY[name].title}\n")
        assert part.count("plot.timeline(") == 1
        assert f'build("{name}", devices={schedule.devices}, microbatches={schedule.microbatches}' in part
        assert f"```text\n{schedule}\n```" in part


def test_groups_are_headings_of_the_page_and_of_the_table() -> None:
    filled = page()
    headings = re.findall(r"^(##+) (.*)$", filled, flags=re.M)
    wanted = [each for group, names in groups().items() for each in [("##", group), *(("###", REGISTRY[name].title) for name in names)]]
    assert headings == [*wanted, ("##", "Made for the times"), ("##", "Other sizes")]
    lines = [row[0].split("|")[0] for row in table(filled).rows[1:]]
    assert lines == [title for _, title in wanted]


@in_turn("name, group", list(zip(("1f1b", "zb-h2", "looped-bfs", "hanayo", "chimera"), TITLES, strict=True)))
def test_a_group_holds_what_its_title_says(name: str, group: str) -> None:
    assert name in groups()[group]


def test_the_table_is_one_for_screen_readers() -> None:
    filled = page()
    made = table(filled)
    assert made.open == []
    assert made.scopes == ["col"] * 7 + [scope for names in groups().values() for scope in ["rowgroup", *["row"] * len(names)]]
    assert {len(row) for row in made.rows} == {1, 7}
    assert filled.count('scope="rowgroup" colspan="7"') == len(groups())
    assert "<caption>" in filled
    assert 'role="region" aria-label="Comparison of the schedules" tabindex="0"' in filled


@in_turn("name", REGISTRY)
def test_the_call_of_a_figure_draws_what_its_words_say(name: str) -> None:
    part = sections(page())[anchor(name)]
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
    place = len(groups()["One chunk a device"]) - 1
    assert rows(filled)[place][:1] == ["New *one*"]  # the schedule is the last row of its group
    assert table(filled).links[place] == "#schedule-new-one-v2"
    part = sections(filled)["schedule-new-one-v2"]
    assert part.startswith(
        "### New \\*one\\*\n\nDevice *d* waits *D*\N{MINUS SIGN}1\N{MINUS SIGN}*d* turns \\<for\\> \\[nothing\\], in-place.\n"
    )
    assert "- **Makespan:** 33 by the clock, 33 by the closed form" in part  # the schedule has the rule of 1F1B
    assert part.count("A paper.") == 1


@pytest.mark.usefixtures("families")
def test_a_schedule_made_by_register_is_on_the_page_too() -> None:
    register("mine", title="Mine", summary="as 1F1B", source="nowhere")(lambda *size: one_f_one_b(*size))
    part = sections(page())["schedule-mine"]
    assert "- **Makespan:** 33.\n" in part  # no closed form has the name of this schedule
    assert "- **Bubble ratio:** 0.273.\n" in part
    assert "{cite}" not in part


@dataclass(frozen=True)
class Odd(Family):
    """A family that runs only on odd numbers of devices."""

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
    assert f'plot.timeline(simulate(build("odd", devices=3, microbatches=8), costs), end={longest():g}, peak=8)' in part
    row = rows(filled)[len(groups()["One chunk a device"]) - 1]
    assert row[0] == "Odd|with 3 devices, 8 microbatches"
    assert row[1] == "30"
    assert "does not run at the common size" in filled
    assert "(#schedule-odd)" not in filled[: filled.index("<table>")]  # the schedule is not compared with the others
    assert not [line for line in table(filled).bold if line.startswith("Odd")]


def test_a_schedule_without_any_size_nearby_is_told_by_name(fresh: Callable[[Family], None]) -> None:
    fresh(Odd("none", "None", one_f_one_b, "as 1F1B", "nowhere", most=0))
    with pytest.raises(HybridLabError, match="the gallery finds no size near 4 devices and 8 microbatches for none"):
        page()


def test_only_marks_are_replaced() -> None:
    assert filled_in("a {{ other }} b {{ size }}").startswith("a {{ other }} b *K* = 4 ")
    assert "{{" not in page()
    assert re.findall(r"\{\{ (\w+) \}\}", TEXT) == ["size", "findings", "cards", "table", "schedules"]


def test_nothing_written_by_hand_names_a_schedule() -> None:
    for family in REGISTRY.values():
        assert family.title not in TEXT
        assert f'"{family.name}"' not in TEXT


def test_a_section_is_known_by_its_anchor_not_by_a_name_made_from_its_title() -> None:
    document = new_document("gallery")
    document += nodes.section("", nodes.title(text="1F1B"), ids=["f1b", "schedule-1f1b"])
    gallery.own_anchors(SimpleNamespace(env=SimpleNamespace(docname=gallery.PAGE)), document)
    assert document[0]["ids"] == ["schedule-1f1b", "f1b"]
