"""Build the released files, and try the wheel alone in a new environment of the Python that runs this file.

python tests/book/wheel_alone.py build dist                 the sdist, and the wheel that is built from it; needs hatchling
python tests/book/wheel_alone.py try dist/hybridlab-*.whl   installs the wheel with numpy alone and runs README's examples
python tests/book/wheel_alone.py version v0.1.0             ends with an error if the tag is not v and the library's version
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {"pip", "setuptools"}  # every new environment has these packages
DOCTEST = ("-W", "error", "-m", "doctest", "-o", "NORMALIZE_WHITESPACE")


def version() -> str:
    """Return the version in hybridlab/__init__.py, read without importing it."""
    text = (ROOT / "hybridlab/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, flags=re.MULTILINE)
    assert found, "hybridlab/__init__.py names no version"
    return found[1]


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, then build the wheel from the sdist alone; return both paths.

    This shows that the sdist is complete.
    """
    hatchling = (sys.executable, "-m", "hatchling", "build", "-d", str(folder.resolve()))
    subprocess.run([*hatchling, "-t", "sdist"], cwd=ROOT, check=True)
    name = f"hybridlab-{version()}"
    sdist, wheel = folder / f"{name}.tar.gz", folder / f"{name}-py3-none-any.whl"
    with tempfile.TemporaryDirectory() as unpacked:
        shutil.unpack_archive(sdist, unpacked)
        subprocess.run([*hatchling, "-t", "wheel"], cwd=Path(unpacked) / name, check=True)
    return sdist, wheel


def try_alone(wheel: Path) -> None:
    """Install the wheel and its requirements into a new environment, and run README's examples outside this folder."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, "-m", "venv", f"{place}/venv"], check=True)
        python = f"{place}/venv/{'Scripts' if os.name == 'nt' else 'bin'}/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel.resolve())], check=True)
        listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], capture_output=True, check=True)
        installed = {each["name"]: each["version"] for each in json.loads(listed.stdout)}
        assert set(installed) - TOOLS == {"hybridlab", "numpy"}, f"the wheel brings more than numpy: {installed}"
        assert installed["hybridlab"] == version(), f"the wheel is of version {installed['hybridlab']}, not {version()}"
        start = "from hybridlab.course.grading.copies import start; print(start('lab02', 'work'))"
        subprocess.run([python, "-I", "-c", start], cwd=place, check=True)  # the labs are in the wheel
        run_readme([python, "-I"], Path(place))
    told = f"hybridlab {installed['hybridlab']} with numpy {installed['numpy']} on Python {sys.version.split()[0]}"
    print(f"{told}: README's examples run")


def run_readme(python: list[str], place: Path) -> None:
    """Run README's examples in a folder that holds nothing else of this project."""
    (place / "README.md").write_bytes((ROOT / "README.md").read_bytes())
    subprocess.run([*python, *DOCTEST, "README.md"], cwd=place, check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build", folder]:
            print(*build(Path(folder)))
        case ["try", wheel]:
            try_alone(Path(wheel))
        case ["version", tag]:
            sys.exit(None if tag == f"v{version()}" else f"the tag {tag} is not v{version()}, the version in hybridlab/__init__.py")
        case _:
            sys.exit(__doc__)
