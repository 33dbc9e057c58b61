"""Test the extensions of the book, with the installed theme and with small pages written here."""

import io
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import finish
import icons
import lab_bar
import lite
import pytest
import reachable
from cases import in_turn
from sphinx.errors import ExtensionError

THEME = Path(str(find_spec("pydata_sphinx_theme").origin)).parent / "theme/pydata_sphinx_theme/static"
SHEET = (THEME / "styles/pydata-sphinx-theme.css").read_text(encoding="utf-8")
SOLID = THEME / "vendor/fontawesome/webfonts/fa-solid-900.woff2"
LIST, BARS, BELL = 0xF03A, 0xF0C9, 0xF0F3  # the values are from the documentation of Font Awesome 6


def font_of(source: Any) -> Any:
    from fontTools.ttLib import TTFont  # imported here, because it takes half a second

    return TTFont(source)


def test_a_sheet_keeps_the_icons_that_are_named_and_no_other() -> None:
    sheet, characters = icons.cut_sheet(SHEET, {"fa-list", "fa-navicon", "fa-solid", "fa-lg"})
    assert characters == {LIST, BARS}
    assert ".fa-list:before" in sheet
    assert ".fa-bars:before,.fa-navicon:before" in sheet
    assert ".fa-trash-can" not in sheet
    assert ".fa-lg{" in sheet
    assert ".ttf" not in sheet
    assert len(sheet) < len(SHEET) - 60_000


def test_the_rest_of_a_sheet_stays_as_it_is() -> None:
    rest = [rule for rule in SHEET.split("}") if ".fa-" not in rule and "@font-face" not in rule and "{" in rule]
    sheet, _ = icons.cut_sheet(SHEET, {"fa-list"})
    assert len(rest) > 2000
    assert [rule for rule in rest if rule not in sheet] == []


def test_an_icon_that_the_theme_does_not_have_is_told() -> None:
    with pytest.raises(ExtensionError, match=r"the site uses icons that the theme's Font Awesome does not have: fa-lits$"):
        icons.cut_sheet(SHEET, {"fa-list", "fa-lits", "fa-solid"})


def test_icons_that_style_sheets_hold_as_characters_are_found() -> None:
    assert icons.characters_in('a{content:"\\f107"}b{content:"\uf0f3"}c{content:"\\2014"}d{content:"abc"}') == {0xF107, BELL}
    assert BELL in icons.characters_in(SHEET)


def test_a_font_is_cut_to_its_icons() -> None:
    cut, present = icons.cut_font(SOLID.read_bytes(), {LIST, BELL, 0xF09B})  # the last icon is a brand, which is in another font
    assert present == {LIST, BELL}
    assert set(font_of(io.BytesIO(cut)).getBestCmap()) == {LIST, BELL}
    assert len(cut) < 3000 < SOLID.stat().st_size


def built_site(folder: Path, page: str) -> Path:
    (folder / icons.SHEET).parent.mkdir(parents=True)
    (folder / icons.SHEET).write_text(SHEET, encoding="utf-8")
    (folder / icons.FONTS).mkdir(parents=True)
    for font in SOLID.parent.glob("fa-*"):
        (folder / icons.FONTS / font.name).write_bytes(font.read_bytes())
    (folder / "_static/some.js").write_text("button.className = 'fa-solid fa-xmark'", encoding="utf-8")
    icons.cut_icons(folder, [page])
    return folder


def test_icons_of_pages_scripts_and_sheets_are_in_the_fonts_of_the_site(tmp_path: Path) -> None:
    site = built_site(tmp_path, '<i class="fa-solid fa-list"></i> in words: fa-nothing')
    with font_of(site / icons.FONTS / SOLID.name) as font:
        assert {LIST, BELL, 0xF00D} <= set(font.getBestCmap())
    assert not list(site.rglob("*.ttf"))


def test_a_page_with_an_unknown_icon_stops_the_build(tmp_path: Path) -> None:
    with pytest.raises(ExtensionError, match="fa-nothing"):
        built_site(tmp_path, '<i class="fa-solid fa-nothing"></i>')


def test_an_icon_without_a_glyph_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static/own.css").write_text('p:after{content:"\\f8fe"}', encoding="utf-8")
    with pytest.raises(ExtensionError, match="no font of the theme has: f8fe"):
        built_site(tmp_path, "")


HEAD = (
    '<link rel="stylesheet" href="_static/sphinx-design.min.css?v=1" />\n'
    '<script src="_static/searchtools.js"></script>\n<script src="searchindex.js"></script>\n'
    '<script defer src="_static/scripts/fontawesome.js?digest=1"></script>\n<script src="_static/doctools.js?v=1"></script>\n'
)


@in_turn(
    "body, loaded",
    [
        ("<p>words</p>", ["doctools.js"]),
        ('<div class="sd-card"></div>', ["sphinx-design.min.css", "doctools.js"]),
        ('<div id="search-results"></div>', ["searchtools.js", "searchindex.js", "doctools.js"]),
    ],
)
def test_a_page_loads_what_it_uses(body: str, loaded: list[str]) -> None:
    page = finish.lightened(HEAD + body)
    names = ["sphinx-design.min.css", "searchtools.js", "searchindex.js", "fontawesome.js", "doctools.js"]
    assert [name for name in names if name in page] == loaded
    assert page.endswith(body)


def test_a_theme_whose_pages_have_changed_stops_the_build() -> None:
    with pytest.raises(ExtensionError, match=r"the theme's pages have changed; .*fontawesome.*Toggle hidden content"):
        finish.check_theme(["<p>words</p>"])


def test_the_theme_measures_no_boxes_and_a_changed_theme_stops_the_build() -> None:
    script = 'a();"complete"===document.readyState?I():window.addEventListener("load",I);b()'
    assert finish.without_boxes(script) == "a();0;b()"
    with pytest.raises(ExtensionError, match="the theme's script has changed"):
        finish.without_boxes('window.addEventListener("load",I)')


EVERYTHING = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3}
---
# Everything

{cite:p}`a` and words

```{card}
a card
```

````{tab-set}
```{tab-item} one
a tab
```
````

```{code-cell} python3
:tags: [hide-cell]
1 + 1
```

```{bibliography}
```
"""
CONFIG = """
execute: {{execute_notebooks: "off"}}
bibtex_bibfiles: [all.bib]
html: {{favicon: icon.svg}}
sphinx:
  local_extensions: {{finish: '{folder}'}}
"""


@pytest.mark.slow
def test_a_page_that_changed_is_built_as_the_whole_site_is(tmp_path: Path) -> None:
    """The site is built twice, and one page changes between the builds.

    This page must show the change. The other pages must equal those of a first build.
    """

    def built() -> dict[str, str]:
        subprocess.run([Path(sys.executable).with_name("jupyter-book"), "build", ".", "-q"], cwd=tmp_path, check=True)
        pages = {name: (tmp_path / f"_build/html/{name}.html").read_text(encoding="utf-8") for name in ("first", "second", "every")}
        return {name: re.sub(r"\?v=\w+", "", page) for name, page in pages.items()}  # without file versions, which only later builds know

    files = {
        "_config.yml": CONFIG.format(folder=Path(finish.__file__).parent.as_posix()),
        "_toc.yml": "{format: jb-book, root: first, chapters: [{file: second}, {file: every}]}",
        "all.bib": "@book{a, author={A. A.}, title={B}, publisher={C}, year={2000}}",
        "icon.svg": "<svg/>",
        "first.md": "# The first\n",
        "second.md": "# The second\n",
        "every.md": EVERYTHING,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    before = built()
    (tmp_path / "second.md").write_text("# The second\n\nAnd a word.\n", encoding="utf-8")
    after = built()
    assert after.pop("second") != before.pop("second")
    assert after == before


def test_the_bar_of_a_lab_leads_to_its_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYBRIDLAB_PYTHON", raising=False)
    bar = lab_bar.bar("labs/lab02.ipynb", "../")
    assert 'href="../lite/lab/index.html?path=lab02.ipynb"' in bar
    assert 'href="../_sources/labs/lab02.ipynb" download="lab02.ipynb"' in bar
    assert 'href="../book/start.html"' in bar
    assert "content delivery network" in bar


def test_the_bar_of_a_lab_says_where_python_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRIDLAB_PYTHON", "download")
    bar = lab_bar.bar("labs/lab02.ipynb", "../")
    assert "about 25 MB, from this site." in bar
    assert "CDN" not in bar


def test_all_say_the_same_of_what_the_browser_fetches() -> None:
    start = (Path(__file__).parents[2] / "book/start.md").read_text(encoding="utf-8")
    told = [re.findall(r"about (\d+) MB", text) for text in (lab_bar.BAR, lite.OUTSIDE, lite.INSIDE, start)]
    assert told == [["25"]] * 4


def test_only_labs_have_a_bar() -> None:
    scripts = []
    app = SimpleNamespace(add_js_file=lambda name, **how: scripts.append(name))
    pages = {"labs/lab02": "labs/lab02.ipynb", "book/intro": "book/intro.md", "labs/notes": "labs/notes.md", "genindex": ""}
    with_bar = []
    for name, source in pages.items():
        context = {"sourcename": source, "body": "<h1>Title</h1><p>text</p>", "content_root": "../"}
        lab_bar.add_bar(app, name, "page.html", context, None)
        if "lab-bar" in context["body"]:
            with_bar.append(name)
            assert context["body"].startswith('<h1>Title</h1>\n<nav class="lab-bar"')
            assert context["body"].endswith("</nav>\n<p>text</p>")
    assert with_bar == ["labs/lab02"]
    assert scripts == ["lab_bar.js"]


def test_a_button_is_named_as_it_reads() -> None:
    assert reachable.mended('<summary aria-label="Toggle hidden content">Show</summary>') == "<summary>Show</summary>"
    field = '<button class="btn search-button-field x"\n aria-label="Search" title="Search">Search</button>'
    assert "aria-label" not in reachable.mended(field)
    icon = '<button class="btn search-button" aria-label="Search"></button>'
    assert reachable.mended(icon) == icon
