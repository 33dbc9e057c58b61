"""The notebooks of the labs: their short names and their paths."""

import re
from functools import cache
from pathlib import Path

from hybridlab.checks import known_name
from hybridlab.errors import HybridLabError

LIBRARY = Path(__file__).resolve().parents[2]
PLACES = (LIBRARY / "labs", LIBRARY.parent / "labs")  # folders of the labs: in an installed wheel, and in a checkout
# matches "lab02", "Lab 2" and "2"
SHORT = re.compile(r"(?:lab)?[ _-]?0*([0-9]{1,2})", flags=re.IGNORECASE)


def lab_name(lab: str) -> str:
    """Return the short name of a lab.

    Parameters
    ----------
    lab : str
        ``"lab02"``, ``"lab2"``, ``"2"``, or the file name of the notebook with or without its suffix.

    Raises
    ------
    HybridLabError
        ``unknown-name``; the sentence lists the labs that exist.

    Examples
    --------
    >>> lab_name("2"), lab_name("Lab 2"), lab_name("lab02_one_f_one_b")
    ('lab02', 'lab02', 'lab02')
    """
    notebooks = lab_notebooks()
    if isinstance(lab, str):
        asked = lab.strip().lower().removesuffix(".ipynb")
        asked = next((short for short, path in notebooks.items() if asked == path.stem.lower()), asked)
        if (found := SHORT.fullmatch(asked)) and (short := f"lab{int(found[1]):02}") in notebooks:
            return short
    return known_name(lab, notebooks, "lab")


def reference(lab: str) -> Path:
    """Return the path of a lab's own notebook, which has the solutions. ``lab`` has one of the forms that :func:`lab_name` accepts.

    >>> reference("2").name
    'lab02_one_f_one_b.ipynb'
    """
    return lab_notebooks()[lab_name(lab)]


def lab_notebooks() -> dict[str, Path]:
    """Return a dict from the short name of each lab to the path of its notebook.

    >>> list(lab_notebooks())[:2]
    ['lab01', 'lab02']
    """
    return dict(_notebooks_in(PLACES))


@cache  # cached, because student_of asks for the labs once for each submission
def _notebooks_in(places: tuple[Path, ...]) -> tuple[tuple[str, Path], ...]:
    for place in places:
        if found := sorted(place.glob("lab[0-9][0-9]_*.ipynb")):
            return tuple((path.name[:5], path) for path in found)
    raise HybridLabError(f"the labs are not at {str(places[0])!r}: install hybridlab again", "not-found")
