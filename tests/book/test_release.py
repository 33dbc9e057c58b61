"""Test what is released: files agree on the version, the lock is complete, and the wheel has the library and works alone."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import wheel_alone
import yaml
from cases import in_turn
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import hybridlab

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = [found[1] for each in PROJECT["classifiers"] if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each))]
LINES = [re.sub(r"\s*#.*", "", line) for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()]
LOCK = {canonicalize_name(pin.name): pin for pin in map(Requirement, filter(None, LINES))}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# Words that must agree


def test_the_version_is_the_same_everywhere() -> None:
    assert wheel_alone.version() == hybridlab.__version__
    assert yaml.safe_load(read("CITATION.cff"))["version"] == hybridlab.__version__
    headings = re.findall(r"^## \[(.+?)\](.*)$", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == hybridlab.__version__, "the newest release in CHANGELOG.md is that of the library"
    assert all(re.fullmatch(r" - 20\d\d-\d\d-\d\d", date) for _, date in headings[1:])


def test_the_changelog_has_the_sections_of_keep_a_changelog() -> None:
    sections = re.findall(r"^### (.+)$", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert set(sections) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_pythons_are_the_same_everywhere() -> None:
    assert [f"3.{minor}" for minor in range(11, 15)] == VERSIONS
    assert PROJECT["requires-python"] == f">={VERSIONS[0]}"
    ends = f"{VERSIONS[0]} to {VERSIONS[-1]}"
    assert f"Python {ends}. `requirements.lock`" in read("README.md")
    assert f"for Python {ends}:" in read("requirements.lock")
    for workflow, job in (("ci", "test"), ("release", "wheel")):
        matrix = yaml.safe_load(read(f".github/workflows/{workflow}.yml"))["jobs"][job]["strategy"]["matrix"]
        assert matrix["python"] == [VERSIONS[0], VERSIONS[-1]], workflow


def test_the_citation_is_one() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "version", "license", "keywords"} <= set(citation)
    assert citation["authors"] == PROJECT["authors"]
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]


def test_a_tag_of_another_version_is_refused() -> None:
    program = [sys.executable, str(ROOT / "tests/book/wheel_alone.py"), "version"]
    assert subprocess.run([*program, f"v{hybridlab.__version__}"], check=False).returncode == 0
    for tag in ("v99", hybridlab.__version__, ""):
        refused = subprocess.run([*program, tag], capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert f"the tag {tag} is not v{hybridlab.__version__}" in refused.stderr


def test_the_hooks_before_a_commit_are_the_programs_of_the_lock() -> None:
    (repository,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local", "no version stands in a second place"
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].split()[0].removeprefix(".venv/bin/") in LOCK
    assert [hook["id"] for hook in repository["hooks"]] == ["ruff-check", "ruff-format", "mypy"]


# The lock


@cache
def installed(name: str) -> tuple[SpecifierSet, list[Requirement]]:
    """Return the Python versions that a locked package supports, and the packages that it needs.

    They are read from the installed package if there is one.
    """
    pin = LOCK[name]
    if pin.marker is not None and not pin.marker.evaluate():
        return SpecifierSet(), []
    found = distribution(name)
    assert pin.specifier.contains(found.version), f"{name} {found.version} is installed, not {pin}: run make setup"
    return SpecifierSet(found.metadata.get("Requires-Python", "")), [Requirement(each) for each in found.requires or ()]


def missing(python: str) -> set[str]:
    """Return the packages that the extra `test` needs and that the lock does not have in a right version.

    A package can be needed directly or through others.
    """
    environment: dict[str, Any] = {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}
    pins = {name: pin for name, pin in LOCK.items() if pin.marker is None or pin.marker.evaluate(environment)}
    faults: set[str] = set()
    wanted = [(Requirement("hybridlab[test]"), "the project")]
    extras = {"hybridlab": [Requirement(each) for each in PROJECT["dependencies"]]}
    for extra, needs in PROJECT["optional-dependencies"].items():
        extras[f"hybridlab[{extra}]"] = [Requirement(each) for each in needs]
    seen: set[str] = set()
    while wanted:
        need, user = wanted.pop()
        name = canonicalize_name(need.name)
        if name == "hybridlab":
            keys = [name, *(f"{name}[{extra}]" for extra in need.extras)]
            wanted += [(each, key) for key in keys if key not in seen for each in extras[key]]
            seen |= set(keys)
            continue
        if name not in pins:
            faults.add(f"{user} needs {need}, which is not there")
            continue
        version = next(iter(pins[name].specifier)).version
        if not need.specifier.contains(version, prereleases=True):
            faults.add(f"{user} needs {need}, and {version} is there")
        key = f"{name}[{','.join(sorted(need.extras))}]"
        if key in seen:
            continue
        seen.add(key)
        pythons, needs = installed(name)
        if not pythons.contains(f"{python}.2"):  # of 3.11, the one that Debian 12 has
            faults.add(f"{name} {version} refuses Python {python}")
        for each in needs:
            markers = [environment | {"extra": extra} for extra in ("", *need.extras)]
            if each.marker is None or any(each.marker.evaluate(marker) for marker in markers):
                wanted.append((each, name))
    return faults


@in_turn("python", VERSIONS)
def test_the_lock_is_complete(python: str) -> None:
    assert missing(python) == set()


def test_a_gap_in_the_lock_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing("3.11") == set()  # checks the real lock; the next lines change it
    monkeypatch.setitem(LOCK, "overrides", Requirement('overrides==7.7.0 ; python_version < "3.11"'))
    monkeypatch.setitem(LOCK, "jinja2", Requirement("jinja2==1.0"))
    monkeypatch.delitem(LOCK, "wcwidth")
    found = " and ".join(missing("3.11"))
    assert any(re.fullmatch(r"numpy \S+ refuses Python 3\.9", fault) for fault in missing("3.9"))
    for fault in ("needs wcwidth", "needs jinja2>=", "and 1.0 is there"):
        assert fault in found


# The wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Give the sdist and the wheel."""
    return wheel_alone.build(tmp_path_factory.mktemp("dist"))


@pytest.mark.slow
def test_sdist_and_wheel_hold_the_library_and_the_labs_and_nothing_else(built: tuple[Path, Path]) -> None:
    library = {path.relative_to(ROOT).as_posix() for path in (ROOT / "hybridlab").rglob("*") if path.is_file()}
    library = {name for name in library if "__pycache__" not in name}
    labs = {f"labs/{path.name}" for path in (ROOT / "labs").glob("*.ipynb")}
    assert sorted(int(name[len("labs/lab") :][:2]) for name in labs) == list(range(1, len(labs) + 1))
    assert "hybridlab/py.typed" in library
    assert any(name.endswith(".js") for name in library)
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    beside = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert names == library | labs | beside
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"hybridlab-{hybridlab.__version__}.dist-info/METADATA").decode()
    library |= {f"hybridlab/{name}" for name in labs}
    info = {name.partition("/")[2] for name in names - library}
    assert info == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert names >= library
    needs = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert len(needs) == 1
    assert needs[0].startswith("Requires-Dist: numpy")
    assert metadata.count("Classifier: Programming Language :: Python :: 3.") == len(VERSIONS)


@pytest.mark.slow
def test_the_examples_of_readme_run_from_the_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    """The examples run outside this folder; `make wheel-check` runs them in environments with only numpy."""
    target = tmp_path / "target"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target), str(built[1])]
    subprocess.run(install, check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    where = [sys.executable, "-c", "import hybridlab; print(hybridlab.__file__)"]
    loaded = subprocess.run(where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert Path(loaded.strip()).is_relative_to(target)
    start = "from hybridlab.course.grading import copies, labs; print(labs.reference('2')); print(copies.start('2', 'mine'))"
    found, copy = subprocess.run(
        [sys.executable, "-c", start], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert Path(found).is_relative_to(target)
    assert (tmp_path / copy).is_file()
    (tmp_path / "README.md").write_text(read("README.md"), encoding="utf-8")
    run = [sys.executable, *wheel_alone.DOCTEST, "README.md"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
