"""Test what pages show in browsers that run no scripts: the question of a bet, not its answer, and the theme's colours."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import finish
import nbformat
from cases import in_turn
from live_widgets import STATE, VIEW, in_words
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from hybridlab.widgets import Bet, MeshView

ROOT = Path(__file__).parents[2]
CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT / "book/_ext")!r})
project, extensions, nb_execution_mode = "Bets", ["myst_nb", "live_widgets"], "off"
"""
SOONER = Bet("test.sooner", "Is F < B, or not?", choices=("F & F", "B", "neither"))
LONG = Bet("test.long", "How long is the step?", unit="ms")


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_a_bet_is_its_question_and_its_choices() -> None:
    html = in_words(SOONER.get_state(), repr(SOONER))
    assert html.startswith("<p>Is F &lt; B, or not?</p><ul><li>F &amp; F</li><li>B</li><li>neither</li></ul>")
    assert words(in_words(LONG.get_state(), repr(LONG))).startswith(
        "How long is the step? The answer is a number (ms). Write your bet down"
    )
    assert "The answer is a number. " in words(in_words(Bet("test.plain", "How many?").get_state(), ""))


def test_an_answer_that_was_placed_is_not_shown() -> None:
    placed = Bet("test.placed", "How many?")
    before = in_words(placed.get_state(), repr(placed))
    placed.answer = 1234
    assert in_words(placed.get_state(), repr(placed)) == before


def test_a_look_back_shows_the_answer_when_it_is_opened() -> None:
    html = in_words(LONG.reveal(27, why="F < B.").get_state(), "")
    asked, folded = html.split("<details><summary>Show the answer</summary>")
    assert "27" not in asked
    assert words(folded) == "The answer: 27 ms. F < B."
    assert words(in_words(SOONER.reveal("F & F").get_state(), "")).endswith("The answer: F & F.")


def test_another_widget_is_its_text() -> None:
    view = MeshView(stages=2, replicas=2)
    assert repr(view) in words(in_words(view.get_state(), repr(view)))


def test_each_widget_of_a_page_has_its_own_words(tmp_path: Path) -> None:
    widgets = [LONG, SOONER, MeshView(stages=2, replicas=2)]
    cells = [new_markdown_cell("# Bets")]
    for widget in widgets:
        shown = {"text/plain": repr(widget), VIEW: {"model_id": widget.model_id}}
        cells.append(new_code_cell("widget", outputs=[new_output("display_data", data=shown)]))
    states = {widget.model_id: {"model_module": "anywidget", "state": widget.get_state()} for widget in widgets}
    metadata = {"language_info": {"name": "python"}, "widgets": {STATE: {"state": states}}}
    (tmp_path / "index.ipynb").write_text(nbformat.writes(new_notebook(cells=cells, metadata=metadata)), encoding="utf-8")
    (tmp_path / "conf.py").write_text(CONFIG, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", tmp_path, tmp_path / "site"], check=True)
    page = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    told = re.findall(r"</script><noscript>(.*?)</noscript>", page)
    assert told == [in_words(widget.get_state(), repr(widget)) for widget in widgets]


@in_turn("root", ['<html lang="en" data-theme="auto">', '<html lang="en">'])
def test_a_page_has_the_colours_of_light_pages_until_a_script_sets_others(root: str) -> None:
    page = "<!DOCTYPE html>\n{}<body><p>words</p></body></html>"
    assert finish.coloured(page.format(root)) == page.format('<html lang="en" data-theme="light">')
