"""Read the notebooks that students hand in. They are data with limits on their size; a file can contain anything."""

import errno
import hashlib
import io
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hybridlab.checks import counted, short_repr
from hybridlab.errors import HybridLabError

MOST_BYTES = 5_000_000  # the most bytes of a notebook without its outputs; a lab has less than 0.2 MB
MOST_TO_READ = 100_000_000  # the most bytes of a file or of a notebook in a zip, with outputs such as large pictures
MOST_TOKENS = 2_000_000  # the most texts and brackets that are searched for outputs; two million take about a second
MOST_CELLS_OF_CODE = 2_000
MOST_SOURCE = 1_000_000  # the most characters of all code cells together
MOST_CHARACTERS = 200  # the most characters of a name in the metadata; a longer name counts as absent
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the first two bytes of a file in UTF-16
WITH_CELLS, WITH_WORKSHEETS = (4,), (2, 3)  # versions of the notebook format: with a list of cells; with lists of cells in worksheets
NAMES_OF_SOURCE = ("source", "input")  # keys of the text of a code cell: from version 4 on, and in older versions
ADDED_FOLDERS = ("__MACOSX", ".ipynb_checkpoints")  # folders that macOS and JupyterLab add
# a text with the colon after it (then the text is a key), or a bracket; "*+" never goes back, so that a long text costs no memory; a text
# without an end goes on to the end of the data, so that no text is read twice
TOKEN = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"(\s*+:)?|\\?\Z)|[\[\]{}]', flags=re.DOTALL)
LARGE = (b"outputs", b"attachments", b"widgets")  # keys of values that can be large and are never read
# errors of zipfile for damaged archives; RuntimeError means a password or an unknown method of compression
BAD_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, ValueError, LookupError, EOFError, OSError, OverflowError)


@dataclass(frozen=True)
class CodeCell:
    """A code cell of a notebook that was handed in.

    Parameters
    ----------
    source : str
        The code, with a line feed as the end of each line.
    task : str
        The task in the cell's metadata; empty if the metadata name no task. A student can have changed the metadata.
    id : str
        The cell's id; empty if the cell has no id.
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
        The names in the notebook's metadata; empty if a name is missing. A student can have changed the metadata.
    cells : tuple of CodeCell
        The code cells from top to bottom, without empty ones.
    digest : str
        The SHA-256 of the bytes of the file, as hexadecimal digits.
    """

    student: str
    course: str
    lab: str
    cells: tuple[CodeCell, ...]
    digest: str


def read_submission(path: Path) -> Submission:
    """Read a notebook that was handed in, or a zip with one notebook. Run no code, and unpack nothing to the disk.

    Damaged cells count as empty. Only the metadata of hybridlab are read.

    Parameters
    ----------
    path : Path
        The file. Its name ends in ``.ipynb`` or ``.zip``.

    Raises
    ------
    HybridLabError
        ``not-found``, ``link``, ``not-a-file``, ``unreadable``, ``too-large``, ``not-text``, ``not-json``, ``not-a-notebook``,
        ``newer-notebook``, ``empty-notebook`` or ``zip``. The content of a file can cause no other error.
    """
    path = Path(path)
    name = short_repr(path.name)
    data = bytes_of_a_file(path)
    notebook, cells = notebook_in(_unzip(data, name) if path.suffix.lower() == ".zip" else data, name)
    code = code_cells(cells, name)
    if not code:
        raise HybridLabError(f"{name} has no code: answer its tasks, save it, and hand it in again", "empty-notebook")
    about = own_metadata(notebook)
    student, course, lab = (text_in(about, key) for key in ("student", "course", "lab"))
    return Submission(student, course, lab, code, hashlib.sha256(data).hexdigest())


def bytes_of_a_file(path: Path) -> bytes:
    """Return the bytes of a regular file. Links, pipes and devices are refused.

    Raises
    ------
    HybridLabError
        ``not-found``, ``link``, ``not-a-file``, ``unreadable``, or ``too-large`` for more than ``MOST_TO_READ`` bytes.
    """
    name = short_repr(path.name)
    # between lstat and open, another program can replace the file by a link or a pipe; these flags refuse both; Windows lacks some flags
    flags = os.O_RDONLY
    for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, flag, 0)
    try:
        _refuse_other_files(os.lstat(path), name)
        with os.fdopen(os.open(path, flags), "rb") as file:
            _refuse_other_files(os.fstat(file.fileno()), name)
            data = file.read(MOST_TO_READ + 1)  # one more byte shows that the file is too large
    except HybridLabError:  # first, because HybridLabError is also a ValueError
        raise
    except FileNotFoundError:
        raise HybridLabError(f"there is no file {name} in {str(path.parent)!r}", "not-found") from None
    except OSError as why:
        code = "link" if why.errno == errno.ELOOP else "unreadable"  # ELOOP: after lstat, another program has replaced the file by a link
        raise HybridLabError(f"{name} cannot be read: {why.strerror}", code) from None
    except ValueError:
        raise HybridLabError(f"there is no file {name}: a path cannot have such characters", "not-found") from None
    if len(data) > MOST_TO_READ:
        raise HybridLabError(f"{name} has more than {MOST_TO_READ / 1e6:g} MB: clear all outputs, and save it again", "too-large")
    return data


def notebook_in(data: bytes, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a notebook and its cells. The version of the notebook format is 2, 3 or 4. A large notebook comes without its outputs.

    Parameters
    ----------
    data : bytes
        The content of the file.
    name : str
        The name of the file, for errors.

    Raises
    ------
    HybridLabError
        ``not-text``, ``not-json``, ``not-a-notebook``, ``newer-notebook``, ``empty-notebook``, or ``too-large`` for a notebook with more
        than ``MOST_BYTES`` without its outputs.
    """
    if data.startswith(UTF_16):
        raise HybridLabError(f"{name} is text in UTF-16: save it as UTF-8, as JupyterLab does", "not-text")
    if not data.strip():
        raise HybridLabError(f"{name} is empty: save the notebook, and hand it in again", "empty-notebook")
    # without its outputs the notebook is small enough to be parsed: parsed JSON can need 20 times the memory of its text
    data = data if len(data) <= MOST_BYTES else without_outputs(data)
    if len(data) > MOST_BYTES:
        sizes = f"{len(data) / 1e6:.1f} MB without its outputs, and at most {MOST_BYTES / 1e6:g} MB are accepted"
        raise HybridLabError(f"{name} has {sizes}: remove or shorten long texts", "too-large")
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise HybridLabError(f"{name} is no text: hand in the file .ipynb that JupyterLab saves", "not-text") from None
    except (ValueError, RecursionError) as why:  # also raised for lists nested too deeply, and for numbers with too many digits
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


def without_outputs(data: bytes) -> bytes:
    """Return the JSON of a notebook without its outputs, attachments and states of widgets. They are found without parsing the JSON.

    >>> without_outputs(b'{"cells": [{"source": "a", "outputs": [{"text": "]"}], "id": "b"}]}')
    b'{"cells": [{"source": "a", "outputs": null, "id": "b"}]}'
    """
    kept: list[bytes] = []
    depth = kept_until = 0
    large: int | None = None  # the depth at which a large value begins; None outside of such a value
    expected = False  # whether the last token was the key of a large value
    for number, token in enumerate(TOKEN.finditer(data)):
        if number == MOST_TOKENS:
            break
        sign = token[0] if token[1] is None else b""
        if sign in (b"[", b"{"):
            if expected and large is None:
                kept += [data[kept_until : token.start()], b"null"]
                large = depth
            depth += 1
        elif sign:
            depth -= 1
            if large == depth:
                large, kept_until = None, token.end()
        # a bracket must follow the key at once: `"outputs": 3, "a": [1]` has no large value
        expected = token[2] is not None and token[1] in LARGE and data[token.end() : token.end() + 9].lstrip()[:1] in (b"[", b"{")
    return b"".join([*kept, data[kept_until:]]) if large is None else data


def code_cells(cells: list[dict[str, Any]], name: str) -> tuple[CodeCell, ...]:
    """Return the code cells that are not empty.

    Raises
    ------
    HybridLabError
        ``too-large``: the file ``name`` has too many code cells, or too much code.
    """
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


def cell_text(cell: Mapping[str, Any]) -> str:
    r"""Return the text of a cell, with ``\n`` as the end of each line; an empty text if the cell has no text, or another value instead.

    >>> cell_text({"source": ["a = 1\r\n", "b = 2"]})
    'a = 1\nb = 2'
    """
    value = next((cell[key] for key in NAMES_OF_SOURCE if key in cell), "")
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    return _readable(value).replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else ""


def own_metadata(owner: dict[str, Any]) -> dict[str, Any]:
    """Return hybridlab's own metadata of a notebook or of a cell; an empty dict if there are no such metadata."""
    metadata = owner.get("metadata")
    own = metadata.get("hybridlab") if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else {}


def text_in(record: dict[str, Any], key: str) -> str:
    """Return a short text from a dict by its key; an empty text if the value is missing, blank, too long, or not a text.

    >>> text_in({"student": " "}, "student"), text_in({"student": "ana"}, "student")
    ('', 'ana')
    """
    value = record.get(key)
    return _readable(value) if isinstance(value, str) and value.strip() and len(value) <= MOST_CHARACTERS else ""


def _refuse_other_files(status: os.stat_result, name: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise HybridLabError(f"{name} is a link, which is not followed: hand in the file itself", "link")
    if not stat.S_ISREG(status.st_mode):
        raise HybridLabError(f"{name} is no file, but a folder, a pipe or a device: hand in a notebook", "not-a-file")


def _readable(text: str) -> str:
    """Return a text that can be written as UTF-8: single surrogates are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _unzip(data: bytes, name: str) -> bytes:
    """Return the bytes of the only notebook in a zip. At most ``MOST_TO_READ`` are unpacked, even if the zip states a wrong size."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = list(_notebooks_in(archive))
            if len(entries) != 1:
                held = counted(len(entries), "notebook") if entries else "no notebook"
                raise HybridLabError(f"{name} holds {held}: zip one notebook, or hand it in without a zip", "zip")
            # with these two methods zipfile unpacks a file piece by piece; with all others it unpacks the whole file, which can be huge
            if entries[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise HybridLabError(f"{name} is packed in an unusual way: hand in the notebook without a zip", "zip")
            with archive.open(entries[0]) as file:
                packed = file.read(MOST_TO_READ + 1)
    except HybridLabError:
        raise
    except BAD_ZIP:
        raise HybridLabError(f"{name} is damaged, or needs a password: hand in the notebook without a zip", "zip") from None
    if len(packed) > MOST_TO_READ:
        limit = f"a notebook of more than {MOST_TO_READ / 1e6:g} MB"
        raise HybridLabError(f"{name} holds {limit}: `hybridlab pack` writes a small one without outputs", "too-large")
    return packed


def _notebooks_in(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    """Yield the notebooks in an archive. Leave out the files that macOS and JupyterLab add."""
    for entry in archive.infolist():
        *folders, file = PurePosixPath(entry.filename).parts or ("",)  # an entry can have an empty name
        if file.lower().endswith(".ipynb") and not file.startswith(".") and not entry.is_dir() and not set(folders) & set(ADDED_FOLDERS):
            yield entry
