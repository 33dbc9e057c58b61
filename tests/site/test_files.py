"""Test the files of the built site, read without a browser: nothing is loaded from outside, and every link leads somewhere."""

from pathlib import Path

from browser import page_names
from built_site import WIDGET, faults_of_files, faults_of_page, parsed
from cases import in_turn

PAGE = '<html lang="en"><title>Page</title><p id="here">{}</p></html>'


@in_turn("name", page_names() or ["index.html"])  # if the site was not built, the fixture `site` fails
def test_each_page_loads_nothing_from_outside_and_every_link_leads_somewhere(site: Path, name: str) -> None:
    faults = faults_of_page(site, name)
    assert not faults, "\n".join(faults)


def test_style_sheets_and_scripts_load_nothing_from_outside(site: Path) -> None:
    names = [path.relative_to(site).as_posix() for kind in ("css", "js") for path in site.rglob(f"*.{kind}")]
    own = [name for name in names if not name.startswith("lite/")]  # JupyterLite requests other hosts only when a reader opens it
    assert len(own) > 10
    faults = list(faults_of_files(site, own))
    assert not faults, "\n".join(faults)


@in_turn(
    "planted",
    [
        '<script src="https://example.org/a.js"></script>',
        '<script src="//example.org/a.js"></script>',
        '<link rel="stylesheet" href="https://example.org/a.css">',
        '<link rel="preconnect" href="https://example.org">',
        '<link rel="dns-prefetch" href="//example.org">',
        '<img src="http://example.org/a.png" alt="A timeline">',
        '<img src="page.html" srcset="page.html 1x, https://example.org/a.png 2x" alt="A timeline">',
        '<iframe src="https://example.org"></iframe>',
        '<video poster="https://example.org/a.png"></video>',
        '<video><source src="https://example.org/a.mp4"></video>',
        '<object data="https://example.org/a.svg"></object>',
        '<form action="https://example.org/search"></form>',
        '<meta http-equiv="refresh" content="0; url=https://example.org/">',
        '<b style="background: url(https://example.org/a.png)"></b>',
        '<style>@import "https://example.org/a.css";</style>',
        '<style>@font-face { src: url("//example.org/a.woff2") }</style>',
        '<svg><use href="https://example.org/a.svg#b"></use></svg>',
        '<script>import("https://example.org/a.js")</script>',
        '<script type="module">import a from "https://example.org/a.js"</script>',
        '<script type="application/json">{"_esm": "fetch(\\"https://example.org/a\\")"}</script>',
    ],
)
def test_a_planted_load_from_outside_is_seen(tmp_path: Path, planted: str) -> None:
    parsed.cache_clear()
    (tmp_path / "page.html").write_text(PAGE.format(planted), encoding="utf-8")
    assert [fault for fault in faults_of_page(tmp_path, "page.html") if fault.startswith("loads from outside: ")]


@in_turn(
    "planted, fault",
    [
        ('<a href="missing.html">a</a>', "leads nowhere: missing.html"),
        ('<a href="#missing">a</a>', "leads nowhere: #missing"),
        ('<a href="page.html#missing">a</a>', "leads nowhere: page.html#missing"),
        ('<a href="/page.html">a</a>', "leads nowhere: /page.html"),
        ('<a href="../page.html">a</a>', "leads nowhere: ../page.html"),
        ('<a href="#view?stages=4">a</a>', "leads nowhere: #view?stages=4"),
        (f'<script type="{WIDGET}"></script><a href="#view2?stages=4">a</a>', "leads nowhere: #view2?stages=4"),
        ('<script src="missing.js"></script>', "leads nowhere: missing.js"),
        ('<img src="page.html" alt="">', "picture without a description: page.html"),
        ('<img src="page.html">', "picture without a description: page.html"),
        ('<img src="page.html" alt="_images/0ed0cf.png">', "picture without a description: page.html"),
    ],
)
def test_a_planted_fault_is_told(tmp_path: Path, planted: str, fault: str) -> None:
    parsed.cache_clear()
    (tmp_path / "page.html").write_text(PAGE.format(planted), encoding="utf-8")
    assert faults_of_page(tmp_path, "page.html") == [fault]


def test_a_page_must_have_a_language_and_a_title(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>a</p>", encoding="utf-8")
    assert faults_of_page(tmp_path, "page.html") == ["the page does not say its language", "the page has no title"]


def test_planted_faults_of_a_style_sheet_and_a_script_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import 'http://example.org/b.css'; p { background: url(c.png) }", encoding="utf-8")
    (tmp_path / "a.js").write_text("new Worker('https://example.org/w.js')", encoding="utf-8")
    told = [
        "a.css leads nowhere: c.png",
        "a.css loads from outside: http://example.org/b.css",
        "a.js loads from outside: https://example.org/w.js",
    ]
    assert sorted(faults_of_files(tmp_path, ["a.css", "a.js"])) == told


def test_links_to_other_sites_and_to_places_that_exist_are_no_faults(tmp_path: Path) -> None:
    links = '<a href="https://example.org">a</a><a href="#here">b</a><a href="page.html?q=1#here">c</a><a href="mailto:a@example.org">d</a>'
    links += f'<script type="{WIDGET}"></script><a href="#view?stages=4">e</a><a href="page.html#view1?stages=4">f</a>'
    (tmp_path / "page.html").write_text(PAGE.format(links), encoding="utf-8")
    assert faults_of_page(tmp_path, "page.html") == []
