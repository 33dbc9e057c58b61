"""Test what pages tell search engines, previews and browsers: with an address of the site, without one, and with a wrong one."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import head
import pytest
import yaml
from cases import in_turn
from docutils import nodes
from docutils.core import publish_doctree
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://example.org/course/"
HREF, META = re.compile(r'<link rel="canonical" href="([^"]*)"'), re.compile(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"')
TEXT = "The first\n=========\n\nOne sentence & more. A second one.\n\n- a list\n\n{}\n\n.. note:: A note.\n\nPart\n----\n\nThe end.\n"


def read(text: str) -> nodes.document:
    return publish_doctree(text, settings_overrides={"doctitle_xform": False})  # as Sphinx reads it


def page(middle: str = "More text.") -> nodes.document:
    return read(TEXT.format(middle))


def test_a_description_is_the_first_sentences_of_the_text() -> None:
    assert head.description(page()) == "One sentence & more. A second one. More text. The end."
    opening = ".. container:: opening\n\n   More text.\n\n.. container:: other\n\n   Words in a box."
    assert head.description(page(opening)) == head.description(page())


def test_a_description_ends_with_a_sentence_and_is_at_most_160_characters_long() -> None:
    assert head.description(page("A sentence of seven words comes here. " * 9)).count("A sentence of seven words comes here.") == 3
    assert head.description(page("It lists this:")) == "One sentence & more. A second one. It lists this: The end."[: head.LONGEST]


def test_a_long_first_sentence_is_cut_between_words() -> None:
    told = head.description(read("Title\n=====\n\n" + "word " * 60))
    assert re.fullmatch(r"(word )+…", told)
    assert 150 < len(told) <= head.LONGEST


def test_a_formula_in_a_description_is_text_or_left_out() -> None:
    document = read("Title\n=====\n\nWith :math:`K` devices :math:`\\frac{1}{K}` is small.")
    assert head.description(document) == "With K devices … is small."


@in_turn("given, told", [("https://a.org", "https://a.org/"), ("http://a.org/b/c/", "http://a.org/b/c/"), ("", "")])
def test_an_address_ends_with_a_slash(given: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(head.VARIABLE, raising=False)
    assert head.site_address(SimpleNamespace(html_baseurl=given)) == told
    monkeypatch.setenv(head.VARIABLE, given)
    assert head.site_address(SimpleNamespace(html_baseurl="https://other.org/")) == (told or "https://other.org/")


@in_turn("given", ["a.org", "ftp://a.org", "https://", "https://a.org/?b", "https://a.org/#b", "/course"])
def test_a_wrong_address_stops_the_build(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(head.VARIABLE, given)
    with pytest.raises(ExtensionError, match=f"{re.escape(given)}.*{head.VARIABLE}"):
        head.site_address(SimpleNamespace(html_baseurl=""))


def built(folder: Path, address: str) -> Path:
    """Build a site of two pages with a plain theme; return its folder."""
    source = folder / "source"
    (source / "part").mkdir(parents=True)
    (source / "index.rst").write_text(TEXT.format(".. toctree::\n\n   part/two"), encoding="utf-8")
    (source / "part/two.rst").write_text("Two\n===\n\nA page < & >.\n", encoding="utf-8")
    settings = {
        "extensions": "head,missing_page",
        "html_static_path": str(ROOT / "book/_assets"),
        "project": "Course",
        "html_title": "Course",
    }
    options = [part for name, value in settings.items() for part in ("-D", f"{name}={value}")]
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-C", *options, str(source), str(folder / "site")]
    environment = {"PYTHONPATH": str(ROOT / "book/_ext"), head.VARIABLE: address, "PATH": "/usr/bin:/bin"}
    subprocess.run(command, check=True, env=environment)
    return folder / "site"


def test_with_an_address_pages_tell_it(tmp_path: Path) -> None:
    site = built(tmp_path, ADDRESS.rstrip("/"))
    text = (site / "part/two.html").read_text(encoding="utf-8")
    told = dict(META.findall(text))
    assert HREF.findall(text) == [told["og:url"]] == [ADDRESS + "part/two.html"]
    assert told["description"] == told["og:description"] == "A page &lt; &amp; &gt;."
    assert (told["og:title"], told["og:site_name"], told["twitter:card"]) == ("Two", "Course", "summary_large_image")
    assert (site / told["og:image"].removeprefix(ADDRESS)).read_bytes()[1:4] == b"PNG"
    assert '<link rel="apple-touch-icon" href="../_static/touch_icon.png" />' in text
    listed = [each.text for each in ET.parse(site / "sitemap.xml").iter() if each.tag.endswith("}loc")]  # noqa: S314  # our own file
    assert listed == [f"{ADDRESS}index.html", f"{ADDRESS}part/two.html"]
    assert (site / "robots.txt").read_text(encoding="utf-8").endswith(f"\nSitemap: {ADDRESS}sitemap.xml\n")
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# Course\n\n> One sentence & more.")
    assert text.splitlines()[-1] == f"- [Two]({ADDRESS}part/two.html): A page < & >."
    assert f'<base href="{ADDRESS}">' in (site / "404.html").read_text(encoding="utf-8")


def test_without_an_address_what_needs_it_is_left_out(tmp_path: Path) -> None:
    site = built(tmp_path, "")
    text = (site / "part/two.html").read_text(encoding="utf-8")
    told = dict(META.findall(text))
    assert not HREF.findall(text)
    assert not {"og:url", "og:image"} & set(told)
    assert (told["description"], told["twitter:card"]) == ("A page &lt; &amp; &gt;.", "summary")
    assert not (site / "sitemap.xml").exists()
    assert "Sitemap" not in (site / "robots.txt").read_text(encoding="utf-8")
    assert "<base " not in (site / "404.html").read_text(encoding="utf-8")
    links = re.findall(r"^- \[.+\]\((.+)\): .+$", (site / "llms.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert links == ["index.html", "part/two.html"]
    assert all((site / link).is_file() for link in links)
    assert (site / "favicon.ico").is_file()


def test_the_published_site_is_built_with_its_address() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text(encoding="utf-8"))
    (check,) = [step for step in workflow["jobs"]["build"]["steps"] if step.get("run") == "make check"]
    address = re.sub(r"\$\{\{.*?\}\}", "name", check["env"][head.VARIABLE])
    assert head.site_address(SimpleNamespace(html_baseurl=address)) == address
