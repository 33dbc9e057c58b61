"""Strict reading of the JSON files of the zoo: every fault is an error with a sentence that names the file and the field."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError

LARGEST_FILE = 4_000_000  # bytes; the longest order of the zoo needs less than a tenth
LONGEST_TEXT = 200  # characters of a name or of a source
FORMAT = 1


class Fields:
    """The fields of one JSON object. Each method returns a checked value, or raises an error that names the object and the field.

    Parameters
    ----------
    values : mapping
        The fields and their values, as ``json.loads`` returns them.
    what : str
        The name of the object in errors, such as "the instance" or the name of a file.

    >>> Fields({"devices": 0}, "the instance").whole("devices", 1)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the instance: devices must be a whole number of at least 1, not 0
    """

    def __init__(self, values: Mapping[str, Any], what: str) -> None:
        self.values, self.what = values, what

    def fail(self, sentence: str, code: str) -> NoReturn:
        """Raise an error that begins with the name of the object."""
        raise HybridLabError(f"{self.what}: {sentence}", code)

    def exactly(self, names: Sequence[str]) -> None:
        """Raise an error if a field is missing, or if there is a field of another name."""
        missing = [name for name in names if name not in self.values]
        unknown = [name for name in self.values if name not in names]
        if unknown:
            self.fail(f"the field {short_repr(unknown[0])} is not known here. Known: {', '.join(names)}", "unknown-key")
        if missing:
            self.fail(f"the field {missing[0]!r} is missing", "missing-key")

    def format(self) -> None:
        """Raise an error if the field ``format`` is not the number of the format that this version reads."""
        if "format" not in self.values:
            self.fail("the field 'format' is missing", "missing-key")
        if not _is_whole(self.values["format"]) or self.values["format"] != FORMAT:
            self.fail(f"format {_shown(self.values['format'])} is not known: this version reads format {FORMAT}", "unknown-format")

    def text(self, name: str, *, optional: bool = False) -> Any:
        """Return a text of one line that is not empty, at most 200 characters long. With ``optional``, it can be None."""
        value = self.values[name]
        if value is None and optional:
            return None
        if not isinstance(value, str):
            self.fail(f"{name} must be a text{' or null' * optional}, not {_shown(value)}", "not-text")
        if not value.strip() or not value.isprintable():
            self.fail(f"{name} must be a line of printable characters, not {_shown(value)}", "not-text")
        if len(value) > LONGEST_TEXT:
            self.fail(f"{name} has {len(value):,} characters: write at most {LONGEST_TEXT}", "too-large")
        return value

    def one_of(self, name: str, known: Sequence[str | None]) -> Any:
        """Return the value if it is one of the ``known`` ones."""
        value = self.values[name]
        if not isinstance(value, (str, type(None))) or value not in known:
            self.fail(f"{name} must be {_listed(known)}, not {_shown(value)}", "unknown-name")
        return value

    def boolean(self, name: str) -> bool:
        """Return true or false."""
        value = self.values[name]
        if not isinstance(value, bool):
            self.fail(f"{name} must be true or false, not {_shown(value)}", "not-true-or-false")
        return value

    def day(self, name: str) -> str:
        """Return a date, written as 2026-01-31."""
        value = self.values[name]
        try:
            known = isinstance(value, str) and date.fromisoformat(value).isoformat() == value
        except ValueError:
            known = False
        if not known:
            self.fail(f"{name} must be a date such as 2026-01-31, not {_shown(value)}", "not-a-date")
        return str(value)

    def whole(self, name: str, at_least: int, at_most: int | None = None, *, value: Any = None, place: str = "") -> int:
        """Return a whole number within the limits: the field itself, or ``value``, which stands at ``place`` in the field."""
        value = self.values[name] if value is None and not place else value
        if not _is_whole(value):
            self.fail(f"{name}{place} must be a whole number of at least {at_least}, not {_shown(value)}", "not-a-whole-number")
        if value < at_least:
            self.fail(f"{name}{place} must be a whole number of at least {at_least}, not {_shown(value)}", "too-small")
        if at_most is not None and value > at_most:
            self.fail(f"{name}{place} must be at most {at_most:,}, not {_shown(value)}", "too-large")
        return int(value)

    def each_whole(self, name: str, count: int, of: str, at_least: int, at_most: int, *, value: Any = None) -> tuple[int, ...]:
        """Return one whole number for each device or stage, as ``of`` says."""
        value = self.values[name] if value is None else value
        if not isinstance(value, list) or len(value) != count:
            have = f"{len(value)} values" if isinstance(value, list) else _shown(value)
            self.fail(f"{name} must be a list with {count} whole numbers, one for each {of}, not {have}", "wrong-shape")
        return tuple(self.whole(name, at_least, at_most, value=each, place=f", value {place},") for place, each in enumerate(value))


def fields_of(source: Any, what: str) -> Fields:
    """Return the fields of a JSON object: from a mapping, or from the file at a path.

    Raises
    ------
    HybridLabError
        The file cannot be read (``not-found``), has more than 4 MB (``too-large``), is not UTF-8 (``not-text``), not JSON (``not-json``),
        or not an object with unique fields (``wrong-type``, ``repeated-key``).
    """
    if isinstance(source, (str, PathLike)):
        return _fields_in(_loaded(text_of_zoo(Path(source)), str(source)), str(source))
    return _fields_in(source, what)


def within(fields: Fields, name: str) -> Fields:
    """Return the fields of the object that is the value of the field ``name``."""
    return _fields_in(fields.values[name], f"{fields.what}: {name}")


def _fields_in(values: Any, what: str) -> Fields:
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise HybridLabError(f"{what} must be a JSON object with fields, not {_shown(values)}", "wrong-type")
    return Fields(values, what)


def text_of_zoo(path: Path) -> str:
    """Return the text of a file in UTF-8 with at most 4 MB.

    Raises
    ------
    HybridLabError
        ``not-found``, ``too-large`` or ``not-text``.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as why:
        raise HybridLabError(f"{short_repr(str(path))} cannot be read: {getattr(why, 'strerror', None) or why}", "not-found") from None
    if len(content) > LARGEST_FILE:
        raise HybridLabError(f"{path} has more than {LARGEST_FILE:,} bytes: it is too large for a file of the zoo", "too-large")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HybridLabError(f"{path} is not a text in UTF-8", "not-text") from None


def _loaded(text: str, name: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique(name), parse_constant=_no_constant(name))
    except HybridLabError:
        raise
    except RecursionError:
        raise HybridLabError(f"{name} is not a file of the zoo: its lists are nested too deeply", "not-json") from None
    except ValueError as why:  # also a number with thousands of digits
        where = f" in line {why.lineno}, column {why.colno}" if isinstance(why, json.JSONDecodeError) else ""
        raise HybridLabError(f"{name} is not JSON{where}: a file of the zoo is one JSON object", "not-json") from None


def first_sentence(why: HybridLabError) -> str:
    r"""Return an error in one line: of a schedule that cannot run, the first reason.

    >>> first_sentence(HybridLabError("it cannot run:\n  1B0 comes too early\n  2B0 comes too early"))
    'it cannot run: 1B0 comes too early'
    """
    first, *rest = str(why).splitlines()
    return f"{first} {rest[0].strip()}" if rest and first.endswith(":") else first


def _unique(name: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def pairs(values: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in values:
            if key in found:
                raise HybridLabError(f"{name}: the field {short_repr(key)} stands there twice", "repeated-key")
            found[key] = value
        return found

    return pairs


def _no_constant(name: str) -> Callable[[str], NoReturn]:
    def refuse(word: str) -> NoReturn:
        raise HybridLabError(f"{name} is not JSON: {word} is not a number", "not-json")

    return refuse


def _shown(value: Any) -> str:
    """Return a value for an error, as it stands in a JSON file."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else short_repr(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _listed(known: Sequence[str | None]) -> str:
    words = list(map(_shown, known))
    return f"{', '.join(words[:-1])} or {words[-1]}"
