"""Find the submissions of a lab in a folder, and the student of each file."""

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from hybridlab.course.grading.labs import lab_name, lab_notebooks
from hybridlab.errors import HybridLabError

SUFFIXES = (".ipynb", ".zip")
NOT_READ = ("__MACOSX",)  # names of folders to ignore; macOS adds this one to archives
NUMBERED = re.compile(r"(?<![^\W_])lab[-_ ]?0*([0-9]{1,2})(?![0-9])", flags=re.IGNORECASE)
# a file name from Canvas: the student, LATE for a late submission, two numbers, the original file name
CANVAS = re.compile(r"([^_]+)_(?:LATE_)?[0-9]+_[0-9]+_.+", flags=re.IGNORECASE)
AT_THE_ENDS = " -_."  # characters between the student's name and the lab


def student_of(path: Path, root: Path) -> str:
    """Return the name of the student who handed in a file. The name is part of the file name, or of a folder name.

    Parameters
    ----------
    path : Path
        The file.
    root : Path
        The folder of all submissions. If the file lies in a subfolder, the name of the subfolder contains the student's name; else the
        name of the file contains it.

    Raises
    ------
    HybridLabError
        ``not-found``: the file is not in the folder ``root`` or its subfolders.

    Examples
    --------
    >>> root = Path("submissions")
    >>> student_of(root / "ana" / "lab02.ipynb", root), student_of(root / "lab02-ana" / "lab02.ipynb", root)
    ('ana', 'ana')
    >>> student_of(root / "lab02_ana.ipynb", root), student_of(root / "doeana_LATE_12345_67890_lab02_ana-1.ipynb", root)
    ('ana', 'doeana')
    """
    try:
        *folders, file = Path(path).relative_to(root).parts
    except ValueError:
        raise HybridLabError(f"{str(path)!r} is not in the folder {str(root)!r}", "not-found") from None
    # NFC: macOS writes a letter with an accent as two characters; NFC joins them to one
    stem = unicodedata.normalize("NFC", Path(file).stem)
    names = [_without_lab(unicodedata.normalize("NFC", folder)) for folder in folders[:1]]
    canvas = CANVAS.fullmatch(stem)
    names.append(canvas[1] if canvas else _without_lab(stem))
    return next(filter(None, names), stem)


def find_submissions(folder: Path, lab: str) -> dict[str, list[Path]]:
    """Return the notebooks of a lab in a folder and in its subfolders, by student.

    Hidden files, folders that programs add, and notebooks of other labs by their names are ignored. Links to folders are not followed.

    Parameters
    ----------
    folder : Path
        The folder of submissions.
    lab : str
        The lab, in a form that :func:`hybridlab.course.grading.labs.lab_name` accepts.

    Returns
    -------
    dict
        The sorted files of each student. If a student has several files, a person has to choose.

    Raises
    ------
    HybridLabError
        ``unknown-name``: there is no such lab. ``not-found``: there is no such folder. ``no-submissions``: no file is of this lab.
    """
    short, folder = lab_name(lab), Path(folder)
    if not folder.is_dir():
        raise HybridLabError(f"there is no folder {str(folder)!r}: give the folder of submissions", "not-found")
    found: dict[str, list[Path]] = {}
    others: set[str] = set()
    for path in _handed_in(folder):
        labs = _labs_named_by(path, folder)
        if labs and short not in labs:
            others |= labs
        else:
            found.setdefault(student_of(path, folder), []).append(path)
    if not found:
        expected = f"expected notebooks such as ana/{short}.ipynb or {short}_ana.ipynb"
        there = f", and there are only notebooks of {', '.join(sorted(others))}" if others else ""
        raise HybridLabError(f"no submission of {short} in {str(folder)!r}: {expected}{there}", "no-submissions")
    return dict(sorted(found.items()))


def _handed_in(folder: Path) -> Iterator[Path]:
    """Yield the files that can be submissions, and the folders that cannot be read. Their order is the same on every system."""
    closed: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=lambda why: closed.append(Path(why.filename))):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in NOT_READ)
        for name in sorted(files):  # os.walk enters only the folders in the changed list above
            if not name.startswith(".") and name.lower().endswith(SUFFIXES):
                yield Path(place) / name
    if folder in closed:
        raise HybridLabError(f"the folder {str(folder)!r} cannot be read: change its mode", "unreadable")
    yield from closed  # a person must see that work is missing


def _labs_named_by(path: Path, root: Path) -> set[str]:
    """Return the labs in the name of a file; if there are none, those in the name of the nearest folder that names a lab."""
    for name in reversed(path.relative_to(root).parts):
        if labs := {f"lab{int(number):02}" for number in NUMBERED.findall(name)}:
            return labs
    return set()


def _without_lab(name: str) -> str:
    """Return the name of a file or folder without the lab; an empty text if nothing else remains.

    >>> _without_lab("ana_lab02_one_f_one_b"), _without_lab("lab2"), _without_lab("lab02_packed")
    ('ana', '', '')
    """
    for path in lab_notebooks().values():  # shorten long names of labs, such as lab02_one_f_one_b
        name = re.sub(re.escape(path.stem), path.stem[:5], name, flags=re.IGNORECASE)
    rest = NUMBERED.sub("", name, count=1)
    return "" if rest == "_packed" else rest.strip(AT_THE_ENDS)
