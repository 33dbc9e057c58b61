"""Test what search reads of a page: plain text by section, terms with their definitions, and neither code nor scripts.

What its script draws is tested in a browser, and here the typing errors that it forgives.
"""

import json
import re
from itertools import product
from pathlib import Path

import node
import pytest
from search_page import Texts, texts_script

SCRIPT = Path(__file__).resolve().parents[2] / "book/_assets/search_page.js"

PAGE = """<html><head><title>T</title></head><body><nav>menu</nav><article class="bd-article"><section id="one">
<h1>One<a class="headerlink" href="#one">#</a></h1><script type="application/json">{"a": 1}</script>
<p>1 &lt; <em>2</em>,<br>line</p><noscript>no scripts</noscript><pre>code()</pre>
<details><summary><p class="collapsed admonition-title">Show</p></summary></details>
<section id="two"><h2>Two</h2>
<label>by</label><select><option>size</option></select><ul><li>a<small>small</small></li><li>b<img src="x.png" alt="x"></li></ul></section>
<dl><dt id="term-x">x</dt><dt id="term-y">y<a class="headerlink" href="#y">#</a></dt><dd><p>Both.</p></dd>
<dt id="m.f" class="sig">m.f()</dt><dd>Returns.</dd></dl></section></article><footer>foot</footer></body></html>"""


def test_the_text_of_each_section_is_plain() -> None:
    sections = [["one", "1 < 2, line"], ["two", "by a small b"], ["term-x", "x"], ["term-y", "y Both."], ["m.f", "Returns."]]
    assert Texts(PAGE).sections == sections


def test_two_terms_can_have_one_definition() -> None:
    assert Texts(PAGE).terms == [["x", "term-x", "Both."], ["y", "term-y", "Both."]]


def test_a_formula_is_quoted_if_it_reads_well_on_one_line() -> None:
    formula = "<article class='bd-article'><p>of <math><mi>K</mi><mo>-</mo><mn>1</mn></math> and {} end</p></article>"
    assert Texts(formula.format("<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>")).sections == [["", "of K-1 and … end"]]
    assert Texts(formula.format("<math><msub><mi>t</mi><mi>F</mi></msub></math>")).sections == [["", "of K-1 and tF end"]]


def test_the_script_has_the_addresses_from_the_top_of_the_site() -> None:
    script = texts_script({"book/a.html": PAGE, "book/b.html": "<p>no article</p>"})
    told = json.loads(script.removeprefix("window.searchTexts = ").removesuffix(";\n"))
    assert list(told["pages"]) == ["book/a.html"]
    assert [term[1] for term in told["terms"]] == ["book/a.html#term-x", "book/a.html#term-y"]


def with_one_error(word: str, letters: str) -> set[str]:
    """Return the word, and each word with one letter more, less or another, or with two neighbours in the other order."""
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    found = {word} | {left + right[1:] for left, right in cuts if right}
    found |= {left + each + right for left, right in cuts for each in letters}
    found |= {left + each + right[1:] for left, right in cuts if right for each in letters}
    return found | {left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1}


@pytest.mark.needs("node")
def test_a_word_with_one_typing_error_is_near_and_none_with_two(tmp_path: Path) -> None:
    (rule,) = re.findall(r"function oneErrorApart\(.*?\n  }\n", SCRIPT.read_text(encoding="utf-8"), re.DOTALL)
    words = ["".join(letters) for length in range(5) for letters in product("abc", repeat=length)]
    program = f"{rule}const answer = (words) => words.map((one) => words.filter((other) => oneErrorApart(one, other)));"
    near = node.run(tmp_path, program, words)
    assert near == [[other for other in words if other in with_one_error(word, "abc")] for word in words]
