"""Run every cell of the page "Your model, your times", and hold what its text says against what its cells compute."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

BOOK = Path(__file__).resolve().parents[2] / "book"


@pytest.fixture(scope="module")
def page() -> tuple[dict[str, Any], str]:
    """Return the names that the cells of the page define, and what they print."""
    text = (BOOK / "your_times.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.chdir(BOOK), contextlib.redirect_stdout(printed):
        for cell in re.findall(r"```\{code-cell\} python3\n(?:---\n.*?\n---\n)?(.*?)```", text, re.DOTALL):
            exec(compile(cell, "your_times.md", "exec"), names)  # noqa: S102
    return names, printed.getvalue()


def test_the_schedule_made_is_the_best_and_keeps_to_the_memory(page: tuple[dict[str, Any], str]) -> None:
    names, printed = page
    made, ranking = names["made"], names["ranking"]
    single = [each for each in ranking if each.chunks == 1 and each.copies == 1]
    assert made.makespan <= min(each.makespan for each in single) * (1 + 1e-9)
    assert made.makespan < next(each for each in ranking if each.name == "zb-h1").makespan
    assert all(each.peak <= 6 for each in ranking)
    assert str(made) in printed
    assert "device 375.0\nstage 330.0\n" in printed
    assert names["trace"]["traceEvents"]


def test_the_devices_0_and_3_take_longest_and_messages_between_servers_take_6_ms(page: tuple[dict[str, Any], str]) -> None:
    costs = page[0]["costs"]
    assert min(costs.forward[0], costs.forward[3]) > max(costs.forward[1:3])
    servers = [0, 0, 1, 1]
    assert all(costs.p2p_between[i, j] == 6 for i in range(4) for j in range(4) if servers[i] != servers[j])
    assert all(costs.p2p_between[i, j] < 6 for i in range(4) for j in range(4) if servers[i] == servers[j])


def test_the_words_for_the_figures_have_the_numbers_of_the_cells(page: tuple[dict[str, Any], str]) -> None:
    text = " ".join((BOOK / "your_times.md").read_text(encoding="utf-8").split())
    ranking, made = page[0]["ranking"], page[0]["made"]
    assert f"2 chunks, {ranking.best.makespan:.1f} ms at {ranking.best.peak:g} activations" in text
    shown = ranking.plot().alt_text
    points = {name: (float(time), float(peak)) for name, time, peak in re.findall(r"([^.:]+): ([\d.]+) at ([\d.]+)(?=[.,])", shown)}
    assert len(points) == 13
    longest, least = max(points.values()), min(peak for _, peak in points.values())
    assert f"takes longest, {longest[0]:.1f} ms" in text
    assert longest[1] == least == 2
    assert f"The schedule made for these times ends at {made.makespan:.1f} ms" in text
    assert [f"{each.makespan:.0f}" for each in ranking[1:4]] == ["458"] * 3
    assert {each.chunks for each in ranking if each.name == "interleaved"} == set(range(2, 9))
    assert {each.name for each in ranking if each.copies == 2} == {"chimera", "dualpipe"}
    assert f"ZB-H1 ends at {next(each for each in ranking if each.name == 'zb-h1').makespan:.1f} ms" in text
