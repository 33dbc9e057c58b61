"""A folder of submissions: the files that are hand-ins of a lab, and the student of each."""

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from hybridlab.course.grading.labs import lab_name, lab_notebooks
from hybridlab.errors import HybridLabError

SUFFIXES = (".ipynb", ".zip")
NOT_READ = ("__MACOSX",)  # a folder that macOS adds to archives
NUMBERED = re.compile(r"(?<![^\W_])lab[-_ ]?0*([0-9]{1,2})(?![0-9])", flags=re.IGNORECASE)
CANVAS = re.compile(r"([^_]+)_(?:LATE_)?[0-9]+_[0-9]+_.+", flags=re.IGNORECASE)  # student, late or not, two numbers, the file's own name
AT_THE_ENDS = " -_."  # what stands between a name and the lab


def student_of(path: Path, root: Path) -> str:
    """Return the student of a file in a folder of submissions, from the names of the folder that it is in and of the file.

    Parameters
    ----------
    path : Path
        The file.
    root : Path
        The folder of all submissions. If the file is in a folder below it, this folder has the student's name; else the file has.

    Raises
    ------
    HybridLabError
        ``not-found`` if the file is not below the folder.

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
    # NFC: a letter with an accent is one character here and two on macOS
    stem = unicodedata.normalize("NFC", Path(file).stem)
    names = [_without_lab(unicodedata.normalize("NFC", folder)) for folder in folders[:1]]
    canvas = CANVAS.fullmatch(stem)
    names.append(canvas[1] if canvas else _without_lab(stem))
    return next(filter(None, names), stem)


def find_submissions(folder: Path, lab: str) -> dict[str, list[Path]]:
    """Return the notebooks of a lab in a folder of submissions and in its folders, by student.

    It leaves out hidden files, folders that programs add, and notebooks whose names say another lab. It does not follow links to folders.

    Parameters
    ----------
    folder : Path
        The folder of submissions.
    lab : str
        The lab, as :func:`hybridlab.course.grading.labs.lab_name` understands it.

    Returns
    -------
    dict
        For each student the files, sorted. More than one file is a question for a person.

    Raises
    ------
    HybridLabError
        ``unknown-name``, ``not-found`` or ``no-submissions``.
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
    """Yield the files that can be hand-ins, in an order that is the same on every system."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in NOT_READ)
        for name in sorted(files):  # os.walk enters only the folders that are left in the list above
            if not name.startswith(".") and name.lower().endswith(SUFFIXES):
                yield Path(place) / name


def _labs_named_by(path: Path, root: Path) -> set[str]:
    """Return the labs that the name of a file names, or else that of the nearest folder that names any."""
    for name in reversed(path.relative_to(root).parts):
        if labs := {f"lab{int(number):02}" for number in NUMBERED.findall(name)}:
            return labs
    return set()


def _without_lab(name: str) -> str:
    """Return a name without the lab in it; empty if nothing else is in it.

    >>> _without_lab("ana_lab02_one_f_one_b"), _without_lab("lab2"), _without_lab("lab02_packed")
    ('ana', '', '')
    """
    for path in lab_notebooks().values():  # the long names, too: lab02_one_f_one_b
        name = re.sub(re.escape(path.stem), path.stem[:5], name, flags=re.IGNORECASE)
    rest = NUMBERED.sub("", name, count=1)
    return "" if rest == "_packed" else rest.strip(AT_THE_ENDS)
