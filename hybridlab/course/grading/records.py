"""Write and read records: files with the marks of one student. After an error, there is never half a file."""

import json
import os
from contextlib import suppress
from pathlib import Path

from hybridlab.course.grading.escaping import file_name
from hybridlab.course.grading.marks import Marks
from hybridlab.course.grading.notebook import bytes_of_a_file
from hybridlab.errors import HybridLabError


def write_whole(path: Path, text: str | bytes, hint: str = "choose another folder with --out") -> Path:
    """Write a file and return its path. After an error, the old file or no file is there, never half a file.

    The folder is created if it does not exist. Text is written as UTF-8, and its line ends do not change. ``hint`` ends the sentence of an
    error.

    Raises
    ------
    HybridLabError
        ``not-writable``: the file cannot be written.
    """
    # the temporary file is in the same folder: renaming it there replaces the old file in one step; another run can write the same file now
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(text if isinstance(text, bytes) else text.encode())
        beside.replace(path)
    except OSError as why:
        raise HybridLabError(f"cannot write to {path}: {why.strerror or why}; {hint}", "not-writable") from why
    finally:
        with suppress(OSError):  # after an error, the temporary file is still there
            beside.unlink()
    return path


def write_record(marks: Marks, folder: Path) -> Path:
    """Write the marks of a student into a folder of records, and return the path of the record.

    Raises
    ------
    HybridLabError
        ``not-writable``: the record cannot be written.
    """
    return write_whole(folder / f"{file_name(marks.student)}.json", json.dumps(marks.to_json(), indent=1) + "\n")


def read_records(folder: Path) -> list[Marks]:
    """Return the marks from all records in a folder, in the order of their file names. Without a folder, return an empty list.

    Raises
    ------
    HybridLabError
        ``damaged-record``: a file is not a record, or its name is not that of its student.
    """
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> Marks:
    """Return the marks from a record. Raise an error if the record is damaged."""
    # a damaged file can contain any JSON; a wrong type or a missing key raises one of these errors
    try:
        marks = Marks.from_json(json.loads(bytes_of_a_file(path)))
        damage = _damage(marks, path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as why:
        raise HybridLabError(f"cannot read the record {path}: {why}; delete it and grade again", "damaged-record") from why
    if damage:
        raise HybridLabError(f"the record {path} is damaged: {damage}; delete it and grade again", "damaged-record")
    return marks


def _damage(marks: Marks, path: Path) -> str:
    """Return what is wrong in a record with all fields; an empty text if nothing is wrong."""
    texts = [marks.student, marks.lab, marks.course, marks.run, marks.file, marks.digest, marks.fingerprint, marks.needs_person]
    texts += marks.remarks
    for task in marks.tasks:
        texts += [task.key, task.title, task.code, *task.messages, *task.remarks]
        if not 0 <= task.points <= task.out_of:
            return f"{task.points} of {task.out_of} points"
    if not all(isinstance(text, str) for text in texts):
        return "a field is no text"
    # check the file name: a renamed or copied record would count for another student
    return "" if path.stem == file_name(marks.student) else f"it is the record of {marks.student}"
