"""The folder for results of long runs. It is named after the sources that the results depend on, so no stale result is used."""

import hashlib
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "_build/executed"
# the results of a notebook depend on these, and on Python: not on extensions that only change pages
LEFT_OUT = {"__pycache__", "records"}  # no notebook reads the records of the zoo, which change often
SOURCES = ("hybridlab", "book/_ext/executed.py", "book/_ext/gallery/entries.py", "requirements.lock")


def digest(root: Path = ROOT, sources: Iterable[str] = SOURCES) -> str:
    """Return a name for the contents of all source files and for this version of Python."""
    found = hashlib.sha256(sys.version.encode())
    for source in sources:
        top = root / source
        for path in [top] if top.is_file() else sorted(filter(Path.is_file, top.rglob("*"))):
            if LEFT_OUT & {*path.relative_to(root).parts}:
                continue
            found.update(f"{path.relative_to(root).as_posix()}\0{path.stat().st_size}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def folder(kept: Path = KEPT) -> Path:
    """Return the folder for results of the present sources; folders of other sources are removed."""
    mine = kept / digest()
    for other in kept.glob("*"):
        if other != mine:
            shutil.rmtree(other, ignore_errors=True)
    return mine
