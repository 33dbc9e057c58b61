"""Make text from students harmless in spreadsheets, Markdown, logs and file names. Such text can contain formulas or commands."""

import hashlib
import re
import unicodedata

LONGEST_LINE = 300  # characters; the longest sentence of a task has 285
LONGEST_NAME = 80  # bytes of a file name without its suffix
_DIGITS = 10  # hexadecimal digits of the hash in a file's name

# commands for a terminal: ESC ] ... BEL, and ESC [ ... letter
_ANSI = re.compile(r"\x1b\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?")
# invisible characters outside Unicode's category of format characters, and two characters that XML forbids
_SHAPELESS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufffe\uffff\U000e0000-\U000e0fff]")
_FORMULA = re.compile(r"(^|[;\t\n])(?=\s*[=+\-@＝＋－＠])|^(?=\s*[\t\n])")  # noqa: RUF001 (spreadsheets accept the wide signs, too)
_WORD = r"(?:\d+\.\d+|[^\W_]+(?:(?:'|-(?!\d))[^\W_]+)*|%)"  # not links, and not GH-12, which GitHub turns into a link
_PLAIN = re.compile(rf"{_WORD}(?:[:,]? {_WORD})*\??")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)  # names of Windows devices, which cannot be file names


def visible(text: str) -> str:
    r"""Return a text without invisible characters, with ``\n`` as the end of each line.

    The result has no terminal commands, no control characters, no characters that change the direction of writing, and no surrogates.

    >>> visible("a\x1b[31mred\x1b[0m\u202e\r\nb")
    'ared\nb'
    """
    lines = "\n".join(_ANSI.sub("", text).splitlines())
    return "".join(c for c in _SHAPELESS.sub("", lines) if c in "\t\n" or unicodedata.category(c) not in {"Cc", "Cf", "Cs"})


def cut(text: str, longest: int = LONGEST_LINE) -> str:
    """Return the first characters of a text, at most ``longest``. A shortened text ends with "..."."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def no_command(line: str) -> str:
    """Return a line that a CI system does not run as a command. GitHub runs ``::`` at the beginning of a line, and ``##[`` anywhere in it.

    >>> no_command("  ::error::no")
    '  : :error::no'
    """
    return re.sub(r"^\s*:(?=:)|##(?=\w*\[)", r"\g<0> ", line)


def for_log(text: str, longest: int = LONGEST_LINE) -> str:
    r"""Return a text as one line of visible characters that is safe in a terminal and in the log of a CI system.

    >>> for_log("\x1b[2J\n::set-output name=x::1\nand ##[error]")
    ': :set-output name=x::1 and ## [error]'
    """
    return cut(no_command(" ".join(visible(text).split())), longest)


def for_cell(value: str | float) -> str | float:
    """Return a value that is safe in a cell of a CSV file: a text that begins like a formula gets an apostrophe in front.

    Numbers do not change. Some spreadsheets separate cells at semicolons, so a formula after a semicolon gets an apostrophe, too.

    >>> for_cell("=1+1"), for_cell(-1)
    ("'=1+1", -1)
    """
    if not isinstance(value, str):
        return value
    return _FORMULA.sub(r"\1'", "\n".join(map(no_command, visible(value).split("\n"))))


def for_markdown(text: str) -> str:
    """Return a text for the middle of a line of Markdown. Plain words do not change. Any other text becomes a code span.

    >>> for_markdown("Build the ring"), for_markdown("@ana [x](y)")
    ('Build the ring', '`@ana [x](y)`')
    """
    line = for_log(text)
    if _PLAIN.fullmatch(line):
        return line
    ticks = "`" * (_longest_run(line) + 1)
    space = " " if line.strip("` ") != line or not line else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def fenced(lines: list[str]) -> list[str]:
    """Return lines of text as a code block of Markdown. Its fence is longer than every row of backticks in the lines."""
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return [fence, *map(no_command, lines), fence]


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def file_name(student: str) -> str:
    """Return a name for the files of a student, without a suffix. Two students never get the same name, even if case is ignored.

    Letters, digits and ``-_.@`` do not change; ``_`` replaces any other character. The result ends with a hash of the student's name if
    the name (1) has a character that was replaced, (2) has capital letters or accents, (3) is that of a Windows device, (4) ends
    like a name with a hash, or (5) is too long.

    >>> file_name("ana@uni.edu"), file_name("../Ana")
    ('ana@uni.edu', '_.._Ana-229dec4c04')
    """
    safe = re.sub(r"[^\w.@-]", "_", student)
    if not re.match(r"[\w@]", safe) or _RESERVED.match(safe):
        safe = f"_{safe}"
    plain = safe == student and re.fullmatch(r"[a-z0-9_.@-]+", safe) and len(safe) <= LONGEST_NAME
    if plain and not re.search(rf"-[0-9a-f]{{{_DIGITS}}}$", safe):
        return safe
    # the hash of the whole name distinguishes two names that differ only in replaced characters
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{safe.encode()[: LONGEST_NAME - _DIGITS - 1].decode(errors='ignore')}-{digest}"
