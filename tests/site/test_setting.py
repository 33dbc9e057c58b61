"""Test how text is set on pages: formulas, titles of folds, heads of tables, feedback and code, on a small site with our style sheet."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
from browser import PATIENCE
from mathml import parts_of
from matplotlib.font_manager import fontManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import Browser, Page
from visits import in_order

ROOT = Path(__file__).resolve().parents[2]
TEXT = r"""# Lab

The stage $s$ is on device $d$, so its last backward ends at $2(K - 1)$. Does $d$ wait for $K$? (See $K$; or ($d$): $s$/$d$.)
It takes $11 \times 90 = 990$ ms, so the bound is $10^{-4}$. See (`p2p`), `a`/`b`, and `weights`.

$$\text{bubble ratio} = 1 - \frac{M(F+B)}{(M+K-1)(F+B)} = \frac{K-1}{M+K-1}$$

$$W \ge 2C$$

$$q = \text{words}$$

| | |
|---|---|
| `values` | numbers |

| name | |
|---|---|
| `values` | numbers |
"""
FEEDBACK = (
    "lab01.t1: not yet\n  nothing handed in yet: give the stage and the replica of rank 23 in a\n    mesh of 5 stages and 6 replicas\n"
)
TABLE = "rank  stage  replica  sends activations to  sends gradients to  receives from\n"


def code(text: str, *tags: str) -> Any:
    output = new_output("stream", text=text)
    return new_code_cell("check(...)", outputs=[output], execution_count=1, metadata={"tags": list(tags)})


CELLS = [
    new_markdown_cell(TEXT),
    code(FEEDBACK, "task"),
    code(TABLE),
    new_markdown_cell("## Optional: a title that is much longer than a line of a narrow page, so that it takes several lines"),
    code("deep"),
]
CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT / "book/_ext")!r})
project, extensions, html_theme = "Setting", ["myst_nb", "folds", "mathml", "table_heads", "units"], "sphinx_book_theme"
nb_execution_mode, html_static_path, html_css_files = "off", [{str(ROOT / "book/_assets")!r}], ["site.css"]
html_theme_options, html_math_renderer, myst_enable_extensions = {{"use_download_button": False}}, "mathml", ["dollarmath"]
"""
# formulas and codes that touch a sign which is on another line
TORN = """() => [...document.querySelectorAll("article p > :is(math, code), article p > .unbroken > :is(math, code)")].filter((formula) => {
  const range = document.createRange();
  const walker = document.createTreeWalker(formula.closest("p"), NodeFilter.SHOW_TEXT, (node) =>
    node.data && node.parentElement.closest("math, code") !== formula ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT);
  const box = formula.getBoundingClientRect();
  const torn = (node, from, left) => {
    if (!node || /[^\\S\\xa0]/.test(node.data[from])) return false;
    range.setStart(node, from);
    range.setEnd(node, from + 1);
    return left(range.getBoundingClientRect());
  };
  walker.currentNode = formula;
  const before = walker.previousNode();
  if (torn(before, before?.data.length - 1, (sign) => sign.left > box.left)) return true;
  walker.currentNode = formula;
  return torn(walker.nextNode(), 0, (sign) => sign.left < box.left);
}).map((formula) => formula.textContent)"""
FONTS = {"Latin Modern Math", "STIX Two Math", "Cambria Math", "DejaVu Math TeX Gyre", "Noto Sans Math"}


def parts(formula: str) -> list[str]:
    return ["".join(ElementTree.fromstring(part).itertext()) for part in parts_of(formula)]  # noqa: S314  # our own text


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("setting")
    notebook = new_notebook(cells=CELLS, metadata={"language_info": {"name": "python"}})
    (folder / "index.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
    (folder / "conf.py").write_text(CONFIG, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", folder, folder / "site"], check=True)
    return (folder / "site/index.html").as_uri()


def a_formula_keeps_the_punctuation_beside_it_on_its_line(page: Page) -> None:
    for width in range(240, 700, 12):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate(TORN) == [], width


def a_long_formula_goes_on_in_the_next_line_before_a_sign(page: Page) -> None:
    formulas = page.locator(".math-block")
    assert [formula.locator("math").count() for formula in formulas.all()] == [4, 2, 2]
    for width, lines in ((1000, 1), (360, 2)):
        page.set_viewport_size({"width": width, "height": 740})
        long = formulas.first
        assert long.evaluate("(box) => box.scrollWidth <= box.clientWidth"), width
        tops = long.locator("math").evaluate_all("(all) => all.map((each) => each.getBoundingClientRect())")
        middles = [box["y"] + box["height"] / 2 for box in tops]
        assert len({round(middle / 12) for middle in middles}) >= lines, width
        assert (max(middles) - min(middles) > 20) == (lines > 1), width


def a_sign_before_words_has_room_on_both_sides(page: Page) -> None:
    q, sign, words = (
        page.locator(".math-block")
        .nth(2)
        .locator("mi:not(:empty), mo, mtext")
        .evaluate_all("""(all) => all.map((each) => {
      const range = document.createRange();
      range.selectNodeContents(each);
      return range.getBoundingClientRect();
    })""")
    )
    assert sign["left"] - q["right"] > 2
    assert words["left"] - sign["right"] > 2


def test_a_formula_is_cut_before_signs_outside_brackets_but_not_before_the_sign_of_a_number() -> None:
    minus = "\N{MINUS SIGN}"
    assert parts(r"T = -1 + (a - b) = \left(c + d\right) e") == ["T", f"={minus}1", f"+(a{minus}b)", "=(c+d)e"]
    assert parts("+x") == ["+x"]


def every_part_of_a_formula_is_drawn_as_mathematics(page: Page) -> None:
    """A browser draws elements of other namespaces as plain text: a fraction as two numbers beside each other."""
    spaces = page.locator(".math-block *").evaluate_all("(all) => [...new Set(all.map((each) => each.namespaceURI))]")
    assert spaces == ["http://www.w3.org/1998/Math/MathML"]
    assert page.locator(".math-block mfrac").count() == 2


def a_torn_formula_is_seen(page: Page) -> None:
    page.add_style_tag(content=".unbroken { white-space: normal !important }")
    torn = set()
    for width in range(240, 700, 30):
        page.set_viewport_size({"width": width, "height": 740})
        torn.update(page.evaluate(TORN))
    assert torn


def an_exponent_stands_beside_its_base(page: Page) -> None:
    """A browser without a font for mathematics draws the exponent above its base, whatever the style sheet says."""
    protocol = page.context.new_cdp_session(page)
    for domain in ("DOM", "CSS"):
        protocol.send(f"{domain}.enable")
    root = protocol.send("DOM.getDocument")["root"]["nodeId"]
    base = protocol.send("DOM.querySelector", {"nodeId": root, "selector": "msup > mn"})["nodeId"]
    used = {font["familyName"] for font in protocol.send("CSS.getPlatformFontsForNode", {"nodeId": base})["fonts"]}
    if not FONTS & {font.name for font in fontManager.ttflist}:
        return  # no font for mathematics is installed
    assert used <= FONTS
    base_box, exponent = (page.locator(f"msup > {each}").first.bounding_box() for each in ("mn", "mrow"))
    assert base_box is not None
    assert exponent is not None
    assert exponent["y"] + exponent["height"] > base_box["y"] + 2


def the_lines_of_a_fold_title_start_below_each_other(page: Page) -> None:
    lines = page.locator("details.fold > summary > h2").evaluate("""(title) => {
      const range = document.createRange();
      range.selectNodeContents(title);
      return [...range.getClientRects()].map(({ left }) => left);
    }""")
    assert len(lines) > 1
    assert max(lines) - min(lines) <= 2


def a_table_without_words_in_its_head_has_no_head(page: Page) -> None:
    assert [head.is_visible() for head in page.locator("thead").all()] == [True]


def feedback_breaks_its_lines_on_a_phone_and_tables_do_not(page: Page) -> None:
    wider = page.locator(".cell_output pre").evaluate_all("(all) => all.map((each) => each.scrollWidth > each.clientWidth + 1)")
    assert wider == [False, True, False]


def code_has_a_quiet_border_in_the_dark(page: Page) -> None:
    border, rule = page.locator(".cell_input").first.evaluate("""(cell) => {
      const probe = cell.appendChild(document.createElement("i"));
      probe.style.color = "var(--pst-color-border)";
      return [getComputedStyle(cell).borderTopColor, getComputedStyle(probe).color];
    }""")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert border == rule


def on_a_phone_in_the_dark(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})


def test_how_text_is_set(browser: Browser, built: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.set_default_timeout(PATIENCE)
    page.goto(built)
    questions = (
        a_formula_keeps_the_punctuation_beside_it_on_its_line,
        a_long_formula_goes_on_in_the_next_line_before_a_sign,
        a_sign_before_words_has_room_on_both_sides,
        every_part_of_a_formula_is_drawn_as_mathematics,
        an_exponent_stands_beside_its_base,
        the_lines_of_a_fold_title_start_below_each_other,
        a_table_without_words_in_its_head_has_no_head,
        feedback_breaks_its_lines_on_a_phone_and_tables_do_not,
        code_has_a_quiet_border_in_the_dark,
        a_torn_formula_is_seen,
    )
    in_order(page, questions, again=on_a_phone_in_the_dark)
    page.close()
