"""Test what pages show in browsers that run no scripts: pictures of widgets, the question of a bet, not its answer, and colours."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import finish
import nbformat
from cases import in_turn
from live_widgets import STATE
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from hybridlab.widgets import Bet, MeshView

ROOT = Path(__file__).parents[2]
CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT / "book/_ext")!r})
project, extensions, nb_execution_mode = "Bets", ["myst_nb", "page_figures", "live_widgets"], "off"
"""
SOONER = Bet("test.sooner", "Is F < B, or not?", choices=("F & F", "B", "neither"))
LONG = Bet("test.long", "How long is the step?", unit="ms")


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_a_bet_is_its_question_and_its_choices() -> None:
    assert SOONER.still() == "<p>Is F &lt; B, or not?</p><ul><li>F &amp; F</li><li>B</li><li>neither</li></ul>"
    assert words(LONG.still()) == "How long is the step? The answer is a number (ms)."
    assert words(Bet("test.plain", "How many?").still()) == "How many? The answer is a number."


def test_an_answer_that_was_placed_is_not_shown() -> None:
    placed = Bet("test.placed", "How many?")
    before = placed.still()
    placed.answer = 1234
    assert placed.still() == before


def test_a_look_back_shows_the_answer_when_it_is_opened() -> None:
    asked, folded = LONG.reveal(27, why="F < B.").still().split("<details><summary>Show the answer</summary>")
    assert "27" not in asked
    assert words(folded) == "The answer: 27 ms. F < B."
    assert words(SOONER.reveal("F & F").still()).endswith("The answer: F & F.")


def test_each_widget_of_a_page_has_its_own_picture_or_words(tmp_path: Path) -> None:
    mesh = MeshView(stages=2, replicas=2)
    widgets = [LONG, SOONER, mesh]
    cells = [new_markdown_cell("# Bets")]
    for widget in widgets:
        data, metadata = widget._repr_mimebundle_()
        cells.append(new_code_cell("widget", outputs=[new_output("display_data", data=data, metadata=metadata)]))
    states = {widget.model_id: {"model_module": "anywidget", "state": widget.get_state()} for widget in widgets}
    metadata = {"language_info": {"name": "python"}, "widgets": {STATE: {"state": states}}}
    (tmp_path / "index.ipynb").write_text(nbformat.writes(new_notebook(cells=cells, metadata=metadata)), encoding="utf-8")
    (tmp_path / "conf.py").write_text(CONFIG, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", tmp_path, tmp_path / "site"], check=True)
    page = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    long, sooner, picture = re.findall(r"</script><noscript>(.*?)</noscript>", page, flags=re.DOTALL)
    assert long.startswith(LONG.still())
    assert long.count("Write your bet down") == sooner.count("Write your bet down") == 1
    assert sooner.startswith(SOONER.still())
    assert f'alt="{mesh.still().alt_text}"' in picture
    drawn = (tmp_path / "site" / re.findall(r'src="(_images/[^"]+svg)"', picture)[0]).read_text(encoding="utf-8")
    assert re.findall(r">(stage \d|replica \d|\d)</text>", drawn) == ["stage 0", "stage 1", "replica 0", "replica 1", *"0123"]


@in_turn("root", ['<html lang="en" data-theme="auto">', '<html lang="en">'])
def test_a_page_has_the_colours_of_light_pages_until_a_script_sets_others(root: str) -> None:
    page = "<!DOCTYPE html>\n{}<body><p>words</p></body></html>"
    assert finish.coloured(page.format(root)) == page.format('<html lang="en" data-theme="light">')
