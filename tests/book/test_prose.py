"""Test that the prose agrees with the library.

Its examples run, public names are documented, and cited papers are in the bibliography.
"""

import doctest
import importlib
import re
from pathlib import Path

import pytest
from cases import in_turn

from hybridlab.course.checking import checking
from hybridlab.schedules import Family

ROOT = Path(__file__).parents[2]
PUBLIC = (
    "hybridlab",
    "hybridlab.formulas",
    "hybridlab.planner",
    "hybridlab.course.published",
    "hybridlab.plot",
    "hybridlab.course.comparisons",
)
PUBLIC += ("hybridlab.widgets", "hybridlab.course.tasks", "hybridlab.zoo")


@in_turn("page", ["CONTRIBUTING.md", "book/api.md", "book/notation.md"])
def test_examples_of_the_page_run(
    page: str, families: dict[str, Family], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Schedules and tasks that the page registers are removed from the registries, so a reader may have run an example before."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"@register\(\s+\.\.\.\s+\"(.+?)\"", text):
        families.pop(name, None)
    for key in re.findall(r"@\w*task\(\s+\.\.\.\s+\"(.+?)\"", text):
        monkeypatch.setitem(checking._TASKS, key, None)  # the task that is now in the registry is put back at the end of the test
        monkeypatch.delitem(checking._TASKS, key)
    failed, tried = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")
    assert tried
    assert not failed, capsys.readouterr().out


@in_turn("module", PUBLIC)
def test_every_public_name_is_in_the_api_reference(module: str) -> None:
    page = (ROOT / "book/api.md").read_text(encoding="utf-8")
    whole = re.search(rf"automodule:: {re.escape(module)}\n   :members:\n", page)
    names = getattr(importlib.import_module(module), "__all__", None)
    assert names or whole, f"{module} is missing from book/api.md"
    for name in names or ():
        named = re.search(rf"(auto\w+|data):: (hybridlab\.([\w.]+\.)?)?{re.escape(name)}\b", page)
        submodule = re.search(rf"automodule:: {re.escape(module)}(\.course)?\.{re.escape(name)}\n", page)
        assert whole or named or submodule, f"{module}.{name} is missing from book/api.md"


def test_data_in_the_api_reference_are_named_without_their_module() -> None:
    """Sphinx puts the module before the name, so a name with a module would have it twice in the index and in links."""
    page = (ROOT / "book/api.md").read_text(encoding="utf-8")
    found = re.findall(r"^\.\. (automodule|currentmodule|data):: (\S+)$", page, re.MULTILINE)
    module = "hybridlab"
    for directive, name in found:
        if directive != "data":
            module = name
        else:
            assert name.isidentifier(), f"{name}: write it without its module, below a currentmodule"
            assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"
    assert any(directive == "data" for directive, _ in found)


def test_every_paper_cited_in_the_library_is_in_the_bibliography() -> None:
    references = (ROOT / "book/references.bib").read_text(encoding="utf-8")
    cited = {
        number
        for path in (ROOT / "hybridlab").rglob("*.py")
        for number in re.findall(r"arXiv[: ](\d{4}\.\d{5})", path.read_text(encoding="utf-8"))
    }
    assert cited
    assert not {number for number in cited if number not in references}


def test_the_first_screen_of_readme_has_a_picture_and_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:12]
    picture = re.search(r"!\[(?P<alt>[^\]]{60,})\]\((?P<path>[^)]+)\)", "\n".join(lines))
    assert picture, "no picture with a description"
    assert (ROOT / picture["path"]).is_file()
    assert all(any(line.startswith(f"    make {target} ") for line in lines) for target in ("lab", "test"))
