"""Test the settings with which the newest Sphinx builds the book without Jupyter Book."""

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import sphinx_settings


@pytest.mark.slow
def test_sphinx_finds_the_extensions_and_the_files_of_the_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not path.endswith("_ext")])
    sphinx_settings.write(tmp_path)
    settings = runpy.run_path(str(tmp_path / "conf.py"))
    assert len(settings["extensions"]) > 20
    assert [name for name in settings["extensions"] if not find_spec(name)] == []
    assert not sphinx_settings.LEFT_OUT & set(settings["extensions"])
    files = [settings["html_favicon"], *settings["html_static_path"], *settings["bibtex_bibfiles"]]
    assert [name for name in files if not Path(name).exists()] == []
    assert not (sphinx_settings.ROOT / "conf.py").exists(), "the tracked files stay as they are"
