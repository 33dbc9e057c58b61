"""Records of marks in files. Each file is written whole or not at all."""

import json
from contextlib import suppress
from pathlib import Path

from hybridlab.course.grading.escaping import file_name
from hybridlab.course.grading.marks import Marks
from hybridlab.errors import HybridLabError


def write_whole(path: Path, text: str | bytes) -> Path:
    """Write a file whole or not at all, with its folder, and return its path. Text is written as UTF-8, with its line ends as they are.

    Raises
    ------
    HybridLabError
        ``not-writable``.
    """
    # in the same folder, so that the new name takes effect at once, and nobody ever sees half a file
    beside = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(text if isinstance(text, bytes) else text.encode())
        beside.replace(path)
    except OSError as why:
        raise HybridLabError(f"cannot write to {path}: {why.strerror or why}; choose another folder with --out", "not-writable") from why
    finally:
        with suppress(OSError):  # it is there only if something went wrong
            beside.unlink()
    return path


def write_record(marks: Marks, folder: Path) -> Path:
    """Write the marks of a student into a folder of records, and return the path of the record.

    Raises
    ------
    HybridLabError
        ``not-writable``.
    """
    return write_whole(folder / f"{file_name(marks.student)}.json", json.dumps(marks.to_json(), indent=1) + "\n")


def read_records(folder: Path) -> list[Marks]:
    """Return the marks of all records in a folder, in the order of their file names; none if there is no folder.

    Raises
    ------
    HybridLabError
        ``damaged-record`` if a file is no record of the student after whom it is named.
    """
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> Marks:
    """Return the marks in a record, or raise an error if it is damaged."""
    # a damaged file can hold any JSON, so each of these errors can come from a value in it
    try:
        marks = Marks.from_json(json.loads(path.read_bytes()))
        damage = _damage(marks, path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as why:
        raise HybridLabError(f"cannot read the record {path}: {why}; delete it and grade again", "damaged-record") from why
    if damage:
        raise HybridLabError(f"the record {path} is damaged: {damage}; delete it and grade again", "damaged-record")
    return marks


def _damage(marks: Marks, path: Path) -> str:
    """Return what is wrong in a record that has all its fields, or nothing."""
    texts = [marks.student, marks.lab, marks.course, marks.run, marks.file, marks.digest, marks.fingerprint, marks.needs_person]
    texts += marks.remarks
    for task in marks.tasks:
        texts += [task.key, task.title, task.code, *task.messages, *task.remarks]
        if not 0 <= task.points <= task.out_of:
            return f"{task.points} of {task.out_of} points"
    if not all(isinstance(text, str) for text in texts):
        return "a field is no text"
    # a record that was renamed or copied would count for another student
    return "" if path.stem == file_name(marks.student) else f"it is the record of {marks.student}"
