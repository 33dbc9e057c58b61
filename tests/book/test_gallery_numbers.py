"""Test that the numbers of the gallery equal those of the simulator, of the solver and of the closed forms."""

import re
from contextlib import suppress
from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from cases import in_turn
from gallery_page import COSTS, ENTRIES, OPTIMA, anchor, known, made, names, page, rows, sections, table

from hybridlab import REGISTRY, HybridLabError, UnsupportedSize, build, formulas, plot, simulate


@pytest.mark.slow
@in_turn("name", REGISTRY)
def test_the_solver_finds_the_optima_that_these_tests_are_given(name: str) -> None:
    """``OPTIMA`` holds the optima that the solver finds.

    If a schedule is not in it, the solver may find an optimum between the bound and the schedule's makespan.
    """
    schedule, solved = made(name), ENTRIES._gap(made(name))
    if name in OPTIMA or known(schedule).optimum is not None:
        assert solved == known(schedule)
    else:
        assert replace(solved, optimum=None) == known(schedule)
        assert solved.optimum is None or solved.bound <= solved.optimum <= solved.makespan


def test_the_page_asks_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(ENTRIES, "optimality_gap", lambda *arguments, **named: asked.append((arguments, named)))
    ENTRIES._solved("hanayo", build("hanayo", 4, 8))
    assert asked == [((build("hanayo", 4, 8), ENTRIES.COSTS), {"seconds": ENTRIES.SOLVER})]
    assert (ENTRIES.COSTS.forward, ENTRIES.COSTS.backward) == (1, 2)
    assert ENTRIES.SOLVER > 4


LEAST = {  # tests/planner/test_bound.py and tests/planner/test_optimum.py test the bound and the solver themselves
    **dict.fromkeys(("gpipe", "1f1b", "eager-1f1b"), "33|reached"),
    **dict.fromkeys(("zb-h1", "zb-h2"), "27|reached"),
    **dict.fromkeys(("interleaved", "looped-bfs"), "28.5|reached"),
    **dict.fromkeys(("interleaved-zb", "zb-v"), "25.5|reached"),
    "hanayo": "30|+8.3%",
    "v-half": "26.5|+3.8%",
    "v-min": "29.5|reached",
    "dualpipe-v": "25.5|+5.9%",
    "chimera": "28|reached",
    "dualpipe": "25|+4.0%",
}


def test_schedules_that_support_the_common_size_are_shown_at_it() -> None:
    common = [name for name in REGISTRY if (made(name).devices, made(name).microbatches) == (4, 8)]
    assert set(common) >= set(LEAST)


def least_of(name: str) -> str:
    """Return the least possible makespan and how much longer the schedule takes, as the table shows them."""
    found = known(made(name))
    best = found.bound if found.optimum is None else found.optimum
    far = f"+{found.makespan / best - 1:.1%}" if found.makespan > best * (1 + 1e-9) else "reached"
    worked_out = f"{best:g}|{far}" if found.optimum is not None else f"≥ {best:g}|at most {far}"
    return LEAST.get(name, worked_out)


def wrong_rows(filled: str) -> list[str]:
    """Return the titles of all rows that differ from the simulated timeline or from the order of the schedule."""
    wrong = []
    for name, row in zip(names(), rows(filled), strict=True):
        schedule = made(name)
        timeline = simulate(schedule, COSTS)
        peaks, messages = timeline.peak_activations.tolist(), schedule.messages.tolist()
        wanted = [
            f"{timeline.makespan:g}",
            least_of(name),
            f"{timeline.bubble_ratio:.3f}",
            f"{max(peaks):g}|" + ", ".join(f"{peak:g}" for peak in peaks),
            "2" if REGISTRY[name].bidirectional else "1",
            f"{sum(messages)}|" + ", ".join(map(str, messages)),
        ]
        if row[0].split("|")[0] != REGISTRY[name].title or row[1:] != wanted:
            wrong.append(REGISTRY[name].title)
    return wrong


def test_the_table_says_what_clock_and_order_say() -> None:
    assert wrong_rows(page()) == []


@in_turn(
    "right, wrong",
    [
        ("<td>28.5</td>", "<td>28</td>"),
        ("<td>28.5<small>", "<td>28<small>"),
        ("5.5, 4.5, 3.5, 2.5", "5.5, 4.5, 3.5, 3.5"),
        ("24, 32, 32, 24", "16, 16, 16, 16"),
    ],
)
def test_a_wrong_row_would_be_noticed(right: str, wrong: str) -> None:
    before, mark, row = page().partition('<a href="#schedule-interleaved">')
    assert right in row
    assert wrong_rows(before + mark + row.replace(right, wrong, 1)) == ["Interleaved 1F1B"]


def columns() -> dict[str, dict[str, float]]:
    """Return the columns that compare schedules; each column has one number for each schedule that runs at the common size."""
    common = [name for name in REGISTRY if REGISTRY[name].refusal(4, 8, REGISTRY[name].fewest_chunks) is None]
    timelines = {name: simulate(build(name, 4, 8), COSTS) for name in common}
    return {
        "makespan": {name: float(timeline.makespan) for name, timeline in timelines.items()},
        "bubble ratio": {name: round(float(timeline.bubble_ratio), 12) for name, timeline in timelines.items()},
        "peak": {name: float(timeline.peak_activations.max()) for name, timeline in timelines.items()},
        "messages": {name: int(timeline.schedule.messages.sum()) for name, timeline in timelines.items()},
    }


def test_the_least_of_each_column_is_bold() -> None:
    bold = set()
    for column, values in columns().items():
        least = min(values.values())
        shown = f"{least:.3f}" if column == "bubble ratio" else f"{least:g}"
        bold |= {f"{REGISTRY[name].title}: {shown}" for name, value in values.items() if value == least}
    assert set(table(page()).bold) == bold


@in_turn(
    "found, column, words",
    [
        ("Shortest", "makespan", "with a makespan of {:g}."),
        ("Least memory", "peak", "of at most {:g} microbatch"),
        ("Fewest messages", "messages", "with {:g} in all."),
    ],
)
def test_findings_name_all_that_share_the_first_place(found: str, column: str, words: str) -> None:
    values = columns()[column]
    least = min(values.values())
    line = next(line for line in page().splitlines() if line.startswith(f"- **{found}:**"))
    assert words.format(least) in line
    assert {name for name in REGISTRY if f"(#{anchor(name)})" in line} == {name for name, value in values.items() if value == least}


@in_turn("name", REGISTRY)
def test_a_section_states_the_numbers_of_the_clock(name: str) -> None:
    part, timeline = sections(page())[anchor(name)], simulate(made(name), COSTS)
    assert f"- **Makespan:** {timeline.makespan:g}" in part
    least, gap = least_of(name).split("|")
    found = known(timeline.schedule)
    solver = found.optimum is not None and found.optimum > found.bound
    assert solver == (name in ("hanayo", "v-half", "v-min", "chimera")) or name not in LEAST
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


def closed_form(name: str) -> float | None:
    """Return the makespan by the closed form named after a schedule's rule.

    It is None if there is no such closed form for the size of the page.
    """
    formula = getattr(formulas, f"{REGISTRY[name].rule.__name__}_makespan", None)
    if formula is None:
        return None
    schedule, times = made(name), {"forward": 1, "backward": 2, "weight_gradient": 1, "p2p": 0}
    given = times | {size: getattr(schedule, size) for size in ("devices", "microbatches", "chunks")}
    try:
        return float(formula(**{argument: given[argument] for argument in signature(formula).parameters}))
    except UnsupportedSize:
        return None


@in_turn("name", REGISTRY)
def test_a_closed_form_stands_beside_the_clock_and_agrees(name: str) -> None:
    found = re.search(r"Makespan:\*\* (\S+) by the clock, (\S+) by the closed form [^,]*?\.\n", sections(page())[anchor(name)])
    assert (float(found[2]) if found else None) == CLOSED_FORMS.get(name, closed_form(name))
    assert found is None or float(found[1]) == float(found[2])


def test_every_closed_form_of_a_makespan_is_named_after_a_rule() -> None:
    """If a closed form had another name, it would be missing from the gallery, and nobody would notice."""
    rules = {family.rule.__name__ for family in REGISTRY.values()}
    named = {name.removesuffix("_makespan") for name in formulas.__all__ if name.endswith("_makespan")}
    assert named <= rules


PEAKS = {  # the most activations by formulas from papers, worked out by hand for K = 4 and M = 8
    "gpipe": 8, "1f1b": 4, "eager-1f1b": 7, "interleaved": 5.5, "looped-bfs": 8, "zb-h1": 4, "zb-h2": 7, "interleaved-zb": 4, "zb-v": 4,
    "v-half": 3, "v-min": 2, "chimera": 4, "dualpipe-v": 4.5, "dualpipe": 5,
}  # fmt: skip


def most_by_the_closed_form(name: str) -> float | None:
    """Return the largest peak of activations over the devices that have a closed form, or None if no device has one."""
    schedule, known = made(name), []
    for device in range(schedule.devices):
        with suppress(HybridLabError):
            known.append(formulas.peak_activations(name, schedule.devices, schedule.microbatches, device, schedule.chunks))
    return max(known, default=None)


@in_turn("name", REGISTRY)
def test_peaks_stand_beside_their_closed_form(name: str) -> None:
    part = sections(page())[anchor(name)]
    found = re.search(r"; at most (\S+) by the closed form {func}`~hybridlab.formulas.peak_activations`", part)
    assert (float(found[1]) if found else None) == PEAKS.get(name, most_by_the_closed_form(name))
    assert found is None or float(found[1]) == simulate(made(name), COSTS).peak_activations.max()


def test_other_quantities_stand_beside_their_closed_forms() -> None:
    parts = sections(page())
    for name in ("gpipe", "1f1b", "eager-1f1b"):
        words = "**Bubble ratio:** 0.273 by the clock, 0.273 by the closed form {func}`~hybridlab.formulas.bubble_ratio`.\n"
        assert words in parts[anchor(name)]
    assert "- **Longest span of one device:** 24 by the clock, 24 by the closed form" in parts["schedule-zb-h2"]
    for name, idle in (("dualpipe", 2), ("dualpipe-v", 3)):
        assert f"- **Idle time of a device:** {idle} on every device by the clock, {idle} by the closed form" in parts[anchor(name)]


def test_all_figures_share_one_time_axis_and_one_scale_of_activations() -> None:
    scales = set(re.findall(r"plot\.timeline\(.*, end=(\S+), peak=(\S+)\)", page()))
    timelines = [simulate(made(name), COSTS) for name in REGISTRY]
    most = max(float(timeline.peak_activations.max()) for timeline in timelines)
    assert [(float(end), float(peak)) for end, peak in scales] == [(max(timeline.makespan for timeline in timelines), most)]


def cards() -> dict[str, str]:
    """Return the HTML of each card by the name of its schedule."""
    parts = {anchor(name): name for name in REGISTRY}
    found = re.findall(r'<li.*?<a href="#([\w-]+)".*?</li>', page(), re.DOTALL)
    whole = re.findall(r"<li data-.*?</li>", page(), re.DOTALL)
    return {parts[place]: card for place, card in zip(found, whole, strict=True)}


@in_turn("name", REGISTRY)
def test_a_card_has_the_numbers_of_its_schedule_and_its_setting(name: str) -> None:
    card, schedule = cards()[name], made(name)
    timeline = simulate(schedule, COSTS)
    numbers = [timeline.makespan, timeline.peak_activations.max(), schedule.messages.sum()]
    assert [float(each) for each in re.findall(r' data-(?:makespan|peak|messages)="([^"]+)"', card)] == numbers
    assert [float(each) for each in re.findall(r"<dd>([^<]+)</dd>", card)] == numbers
    setting = f"schedule={name}&amp;devices={schedule.devices}&amp;microbatches={schedule.microbatches}&amp;chunks={schedule.chunks}"
    assert f'data-setting="{setting}"' in card


@in_turn("name", REGISTRY)
def test_a_thumbnail_fills_the_time_that_a_device_is_busy(name: str) -> None:
    timeline = simulate(made(name), COSTS)
    parts = 2 * timeline.schedule.chunks  # parts of a unit of time, such that every operation takes a whole number of them
    row = cards()[name]
    idle, *drawn = re.findall(r'd="([^"]+)"', row)
    bars = np.array([each for path in drawn for each in re.findall(r"M(\S+) (\S+)h(\S+?)v(\S+?)h", path)], dtype=float)
    filled = np.zeros((timeline.schedule.devices, 2, round(parts * timeline.makespan)))  # axes: device, half of its row, part of a unit
    for left, top, wide, high in bars:
        device, half = divmod(round(top / 0.4, 9), 2.5)
        halves = slice(int(half), int(half) + round(high / 0.4))
        filled[int(device), halves, round(parts * left) : round(parts * (left + wide))] += 1
    assert filled.max() == 1, "two bars stand in one place"
    assert (filled[:, 0] == filled[:, 1]).all(), "an operation alone fills its row, a pair both halves"
    assert (filled[:, 0].sum(axis=1) / parts).tolist() == timeline.busy.tolist()
    assert (bars[:, 0] + bars[:, 2]).max() == timeline.makespan
    assert re.findall(r"h(\S+?)v", idle) == [f"{timeline.makespan:g}"] * timeline.schedule.devices
