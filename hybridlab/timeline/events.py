"""The events of a trace file, read one at a time. If the file is damaged, the error names the place and the last complete event."""

import gzip
import json
import json.scanner
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError

Event = dict[str, Any]

LARGEST_FILE = 2 * 10**9  # bytes of unpacked text; reading a file takes twice as much memory as its text
PART = 2**20  # number of bytes that are read at a time
OTHER_ENDINGS = (".nsys-rep", ".qdrep", ".sqlite", ".pftrace", ".perfetto-trace")
# how to get a trace in Chrome's format from a file of another format
_FROM_SQLITE = "nsys2json (github.com/chenyu-jiang/nsys2json) makes a trace of it: python nsys2json.py {name} -o trace.json"
_FROM_NSYS = (
    "nsys export --type sqlite {name} makes a database of it, and nsys2json (github.com/chenyu-jiang/nsys2json) a trace of the database"
)
_FROM_PERFETTO = "traceconv json {name} trace.json converts it (perfetto.dev/docs/quickstart/traceconv)"
_SQLITE = b"SQLite format 3\0"  # every database begins with these bytes
_SPACE = re.compile(r"[ \t\n\r]*")  # the white space that JSON allows between values; \s would match more characters
_WANTED = "a trace is JSON with a list traceEvents, as torch.profiler and Timeline.to_chrome_trace() write it"


def read_events(path: Path, take: Callable[[Event], None]) -> dict[str, Any]:
    r"""Call ``take`` with each event of a trace file. Return the other entries of the file, such as ``distributedInfo``.

    A file contains an object with the list ``traceEvents``, or only a list of events. The file may be packed by gzip. The memory holds the
    text of the file and one event at a time. A trace of 200 MB takes about 400 MB of memory.

    Raises
    ------
    HybridLabError
        The file cannot be read, is not JSON, has no list of events, or ends in the middle of an event. In this last case the error names
        the last complete event.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "trace.json"
    >>> _ = path.write_text('{"displayTimeUnit": "ms", "traceEvents": [{"name": "0F0"}, {"name": "0B0"}]}')
    >>> names = []
    >>> read_events(path, lambda event: names.append(event["name"])), names
    ({'displayTimeUnit': 'ms'}, ['0F0', '0B0'])
    """
    text = _unpack(path)
    reader = _Reader(path.name, text, take)
    return reader.read_file()


class _Reader:
    """A position in the text of a trace file."""

    def __init__(self, name: str, text: str, take: Callable[[Event], None]) -> None:
        self.name, self.text, self.take = name, text, take
        self.at, self.count, self.last = 0, 0, ""  # index in the text, number of events read, name of the last event
        # json.loads reads a whole text. The scanner reads one value at an index of the text.
        self.scan = json.scanner.make_scanner(json.JSONDecoder())  # type: ignore[arg-type]  # typeshed says that it takes itself

    def read_file(self) -> dict[str, Any]:
        """Read the file and return all entries except ``traceEvents``."""
        begin = self.skip_spaces()
        about: dict[str, Any] = {}
        if begin == "[":
            self.read_events(may_end=True)
            return about
        if begin != "{":
            _refuse_other_format(self.name, self.text[:100].encode())
            raise HybridLabError(f"{self.name} is not a trace: {_WANTED}", "not-a-trace")
        self.at += 1
        found = False
        while self.skip_spaces() != "}":
            key = self.read_value()
            self.expect(":")
            if key == "traceEvents":
                if self.skip_spaces() != "[":
                    raise HybridLabError(f"{self.name} is not a trace: its traceEvents are not a list", "not-a-trace")
                self.read_events()
                found = True
            else:
                about[str(key)] = self.read_value()
            if self.skip_spaces() == ",":
                self.at += 1
        if not found:
            keys = ", ".join(list(about)[:8]) or "nothing"
            raise HybridLabError(f"{self.name} has no list traceEvents, only {keys}: {_WANTED}", "not-a-trace")
        return about

    def read_events(self, may_end: bool = False) -> None:
        """Read a list of events. If the file is only a list, the format allows the closing bracket to be missing (``may_end``)."""
        self.at += 1
        while (mark := self.skip_spaces(at_end=may_end)) != "]":
            if not mark:
                return
            event = self.read_value()
            if not isinstance(event, dict):
                message = f"event {self.count} of {self.name} is {short_repr(event)}: each event is an object with a name and a time"
                raise HybridLabError(message, "not-an-event")
            self.take(event)
            self.count += 1
            self.last = str(event.get("name", ""))
            if self.skip_spaces(at_end=may_end) == ",":
                self.at += 1
        self.at += 1

    def skip_spaces(self, at_end: bool = False) -> str:
        """Skip spaces and return the next character without reading it. At the end of the file, return "" if ``at_end``, else raise."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at  # the pattern always matches; the condition is for mypy
        mark = self.text[self.at : self.at + 1]
        if not mark and not at_end:
            self.refuse()
        return mark

    def expect(self, mark: str) -> None:
        """Skip one character, which must be ``mark``."""
        if self.skip_spaces() != mark:
            self.refuse()
        self.at += 1

    def read_value(self) -> Any:
        """Return the next value of the JSON text."""
        self.skip_spaces()
        try:
            value, self.at = self.scan(self.text, self.at)
        except StopIteration as why:
            self.refuse(why.value)
        except json.JSONDecodeError as why:
            self.refuse(why.pos)
        except RecursionError:  # thousands of nested brackets
            self.refuse()
        return value

    def refuse(self, place: int | None = None) -> NoReturn:
        """Raise an error that says where the text stops being JSON. By default this is the current position."""
        after = f"after event {self.count - 1} ({short_repr(self.last)})" if self.count else "before its first event"
        place = self.at if place is None else place
        rest = self.text[self.at : self.at + 2_000_000]  # not the whole rest: a slice is a copy, and the text can be very long
        if not rest.strip() or not _ends(rest):
            advice = "record it again, or wait until the profiler has written it"
            raise HybridLabError(f"{self.name} is cut off {after}: {advice}", "cut-off")
        line, column = self.text.count("\n", 0, place) + 1, place - self.text.rfind("\n", 0, place)
        raise HybridLabError(f"{self.name} is not JSON {after}, at line {line}, column {column}: {_WANTED}", "not-json")


def _ends(rest: str) -> bool:
    """Return whether the rest of a text ends with a bracket and closes all its brackets. A file that was cut off rarely does."""
    return rest.rstrip().endswith(("}", "]")) and rest.count("{") <= rest.count("}") and rest.count("[") <= rest.count("]")


def _unpack(path: Path) -> str:
    """Return the text of a file. The file may be packed by gzip."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"  # every file packed by gzip begins with these two bytes
        with gzip.open(path) if packed else path.open("rb") as stream:
            content = _read_limited(stream, path.name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as why:
        message = f"{path.name} is packed by gzip, but damaged or cut off ({why}): record it again, or copy it again"
        raise HybridLabError(message, "cut-off") from None
    except OSError as why:
        raise HybridLabError(f"{short_repr(str(path))} cannot be read: {why.strerror or why}", "not-found") from None
    if not content.strip():
        raise HybridLabError(f"{path.name} is empty: {_WANTED}", "empty")
    try:
        return content.decode("utf-8-sig")  # with or without a byte order mark
    except UnicodeDecodeError:
        _refuse_other_format(path.name, content[:100])
        raise HybridLabError(f"{path.name} is not a text in UTF-8: {_WANTED}", "not-text") from None


def _refuse_other_format(name: str, first: bytes | bytearray) -> None:
    """Raise if the first bytes of a file, or the end of its name, show the format of another profiler. The error says how to convert it."""
    lower = name.lower()
    if first.startswith(_SQLITE):
        what, advice = "an SQLite database, such as nsys export writes", _FROM_SQLITE
    elif lower.endswith((".nsys-rep", ".qdrep")):
        what, advice = "a report of Nsight Systems", _FROM_NSYS
    # A trace of Perfetto is a sequence of fields with the number 1. Each begins with the byte 0x0a, its length, and a field of a packet.
    elif lower.endswith((".pftrace", ".perfetto-trace")) or (first.startswith(b"\n") and re.search(rb"[^\t\n\r -~]", first)):
        what, advice = "a trace in Perfetto's own format", _FROM_PERFETTO
    else:
        return
    raise HybridLabError(f"{name} is {what}, but {_WANTED}. {advice.format(name=name)}", "other-format")


def _read_limited(stream: Any, name: str) -> bytearray:
    """Return the content of a file. Read it in pieces, because a small file packed by gzip can unpack to more than fits in memory."""
    content = bytearray()
    while part := stream.read(PART):
        content += part
        if len(content) > LARGEST_FILE:
            raise HybridLabError(f"{name} has more than {LARGEST_FILE:,} bytes: record fewer steps", "too-large")
    return content
