"""Notebooks that students hand in: read as data, with limits, and without trust."""

import errno
import hashlib
import io
import json
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hybridlab.checks import counted, short_repr
from hybridlab.errors import HybridLabError

MOST_BYTES = 5_000_000  # of a file that is handed in, and of the notebook in a zip; a lab without outputs has less than 0.2 MB
MOST_CELLS_OF_CODE = 2_000
MOST_SOURCE = 1_000_000  # characters of all code cells together
MOST_CHARACTERS = 200  # of a name in the metadata; a longer one counts as absent
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # how such a file begins
WITH_CELLS, WITH_WORKSHEETS = (4,), (2, 3)  # versions of the format, by where they have their cells
NAMES_OF_SOURCE = ("source", "input")  # where a cell has its text: from version 4 on, and before
ADDED_FOLDERS = ("__MACOSX", ".ipynb_checkpoints")  # macOS and JupyterLab add them
# what zipfile raises for damaged archives; RuntimeError for a password or an unknown method
BAD_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, ValueError, LookupError, EOFError, OSError, OverflowError)


@dataclass(frozen=True)
class CodeCell:
    """A code cell of a notebook that was handed in.

    Parameters
    ----------
    source : str
        The code, with the line ends of Unix.
    task : str
        The task that the cell answers, as its metadata say; a student can have written anything there. Empty if they say nothing.
    id : str
        The cell's id, or empty.
    """

    source: str
    task: str = ""
    id: str = ""


@dataclass(frozen=True)
class Submission:
    """A notebook that was handed in.

    Parameters
    ----------
    student, course, lab : str
        What the metadata of the notebook say; a student can have written anything there. Empty where they say nothing.
    cells : tuple of CodeCell
        The code cells from top to bottom, without empty ones.
    digest : str
        The SHA-256 of the bytes that were handed in, as hexadecimal digits.
    """

    student: str
    course: str
    lab: str
    cells: tuple[CodeCell, ...]
    digest: str


def read_submission(path: Path) -> Submission:
    """Return a notebook that was handed in, or a zip with one notebook, as data. Nothing in it is run or unpacked.

    Cells that are damaged count as empty, and other metadata than hybridlab's are not read.

    Parameters
    ----------
    path : Path
        A file whose name ends in ``.ipynb``, or in ``.zip``.

    Raises
    ------
    HybridLabError
        ``not-found``, ``link``, ``not-a-file``, ``unreadable``, ``too-large``, ``not-text``, ``not-json``, ``not-a-notebook``,
        ``newer-notebook``, ``empty-notebook`` or ``zip``. Nothing else is raised, whatever the file holds.
    """
    path = Path(path)
    name = short_repr(path.name)
    data = bytes_of_a_file(path)
    packed = _unzip(data, name) if path.suffix.lower() == ".zip" else data
    notebook, cells = notebook_in(packed, name)
    code = code_cells(cells, name)
    if not code:
        raise HybridLabError(f"{name} has no code: answer its tasks, save it, and hand it in again", "empty-notebook")
    about = own_metadata(notebook)
    student, course, lab = (text_in(about, key) for key in ("student", "course", "lab"))
    return Submission(student, course, lab, code, hashlib.sha256(data).hexdigest())


def bytes_of_a_file(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file. A link is not followed, and a pipe or a device is not waited for.

    Raises
    ------
    HybridLabError
        ``not-found``, ``link``, ``not-a-file``, ``unreadable``, or ``too-large`` for more than ``most`` bytes.
    """
    name = short_repr(path.name)
    # between lstat and open, somebody can put a link or a pipe in the file's place; these flags refuse them, but Windows lacks some
    flags = os.O_RDONLY
    for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, flag, 0)
    try:
        _refuse_other_files(os.lstat(path), name)
        with os.fdopen(os.open(path, flags), "rb") as file:
            _refuse_other_files(os.fstat(file.fileno()), name)
            data = file.read(most + 1)  # one more shows that there is more
    except HybridLabError:  # it is a ValueError, too
        raise
    except FileNotFoundError:
        raise HybridLabError(f"there is no file {name} in {str(path.parent)!r}", "not-found") from None
    except OSError as why:
        code = "link" if why.errno == errno.ELOOP else "unreadable"  # a link that was put there after the first look
        raise HybridLabError(f"{name} cannot be read: {why.strerror}", code) from None
    except ValueError:
        raise HybridLabError(f"there is no file {name}: a path cannot have such characters", "not-found") from None
    if len(data) > most:
        raise HybridLabError(f"{name} has more than {most / 1e6:g} MB: `hybridlab pack` writes a small file without outputs", "too-large")
    return data


def notebook_in(data: bytes, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a notebook and its cells, of any version from 2 to 4 of the format.

    Parameters
    ----------
    data : bytes
        The file.
    name : str
        What the errors call the file.

    Raises
    ------
    HybridLabError
        ``not-text``, ``not-json``, ``not-a-notebook``, ``newer-notebook`` or ``empty-notebook``.
    """
    if data.startswith(UTF_16):
        raise HybridLabError(f"{name} is text in UTF-16: save it as UTF-8, as JupyterLab does", "not-text")
    if not data.strip():
        raise HybridLabError(f"{name} is empty: save the notebook, and hand it in again", "empty-notebook")
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise HybridLabError(f"{name} is no text: hand in the file .ipynb that JupyterLab saves", "not-text") from None
    except (ValueError, RecursionError) as why:  # RecursionError: too many lists in each other; a number can have too many digits
        where = f" in line {why.lineno}" if isinstance(why, json.JSONDecodeError) else ""
        raise HybridLabError(f"{name} is damaged{where}: it is no JSON; open it in JupyterLab and save it again", "not-json") from None
    version = notebook.get("nbformat") if isinstance(notebook, dict) else None
    if type(version) is int and version > max(WITH_CELLS):
        raise HybridLabError(f"{name} is of a newer version of the notebook format: save it as version 4", "newer-notebook")
    if type(version) is not int or version not in WITH_CELLS + WITH_WORKSHEETS:
        raise HybridLabError(f"{name} is no notebook: hand in the file .ipynb that JupyterLab saves", "not-a-notebook")
    sheets = [notebook] if version in WITH_CELLS else notebook.get("worksheets")
    lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
    cells = [each for each in lists if isinstance(each, list)]
    if not cells:
        raise HybridLabError(f"{name} is no notebook: it has no list of cells", "not-a-notebook")
    return notebook, [cell for each in cells for cell in each if isinstance(cell, dict)]


def code_cells(cells: list[dict[str, Any]], name: str) -> tuple[CodeCell, ...]:
    """Return the code cells that have code; raise ``too-large`` if there are too many, or too much code. ``name`` is for the error."""
    found: list[CodeCell] = []
    length = 0
    for cell in cells:
        source = cell_text(cell) if cell.get("cell_type") == "code" else ""
        if source.strip():
            length += len(source)
            found.append(CodeCell(source, text_in(own_metadata(cell), "task"), text_in(cell, "id")))
        if len(found) > MOST_CELLS_OF_CODE or length > MOST_SOURCE:
            limits = f"{counted(MOST_CELLS_OF_CODE, 'code cell')} and {MOST_SOURCE:,} characters of code"
            raise HybridLabError(f"{name} has more than {limits}: hand in the lab's notebook with the answers alone", "too-large")
    return tuple(found)


def cell_text(cell: dict[str, Any]) -> str:
    r"""Return the text of a cell with the line ends of Unix; empty if it has none, or something else in its place.

    >>> cell_text({"source": ["a = 1\r\n", "b = 2"]})
    'a = 1\nb = 2'
    """
    value = next((cell[key] for key in NAMES_OF_SOURCE if key in cell), "")
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    return _readable(value).replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else ""


def own_metadata(owner: dict[str, Any]) -> dict[str, Any]:
    """Return hybridlab's metadata of a notebook or a cell; an empty dict if there are none."""
    metadata = owner.get("metadata")
    own = metadata.get("hybridlab") if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else {}


def text_in(record: dict[str, Any], key: str) -> str:
    """Return the short text that a record has under a key; empty if there is none, or something else in its place."""
    value = record.get(key)
    return _readable(value) if isinstance(value, str) and len(value) <= MOST_CHARACTERS else ""


def _refuse_other_files(status: os.stat_result, name: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise HybridLabError(f"{name} is a link, which is not followed: hand in the file itself", "link")
    if not stat.S_ISREG(status.st_mode):
        raise HybridLabError(f"{name} is no file, but a folder, a pipe or a device: hand in a notebook", "not-a-file")


def _readable(text: str) -> str:
    """Return text that can be written as UTF-8: half a pair of surrogates is replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _unzip(data: bytes, name: str) -> bytes:
    """Return the bytes of the only notebook in a zip. No more than the limit is unpacked, whatever the zip says about its size."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = list(_notebooks_in(archive))
            if len(entries) != 1:
                held = counted(len(entries), "notebook") if entries else "no notebook"
                raise HybridLabError(f"{name} holds {held}: zip one notebook, or hand it in without a zip", "zip")
            # zipfile reads these two methods piece by piece; with any other it unpacks a whole file, which can be enormous
            if entries[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise HybridLabError(f"{name} is packed in an unusual way: hand in the notebook without a zip", "zip")
            with archive.open(entries[0]) as file:
                packed = file.read(MOST_BYTES + 1)
    except HybridLabError:
        raise
    except BAD_ZIP:
        raise HybridLabError(f"{name} is damaged, or needs a password: hand in the notebook without a zip", "zip") from None
    if len(packed) > MOST_BYTES:
        limit = f"a notebook of more than {MOST_BYTES / 1e6:g} MB"
        raise HybridLabError(f"{name} holds {limit}: `hybridlab pack` writes a small one without outputs", "too-large")
    return packed


def _notebooks_in(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    """Yield the notebooks of an archive, without what programs have added."""
    for entry in archive.infolist():
        *folders, file = PurePosixPath(entry.filename).parts or ("",)  # an entry can be without a name
        if file.lower().endswith(".ipynb") and not file.startswith(".") and not entry.is_dir() and not set(folders) & set(ADDED_FOLDERS):
            yield entry
