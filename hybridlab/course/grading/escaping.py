"""Functions that make the text of others harmless: in cells of a spreadsheet, in Markdown, in logs and in names of files."""

import hashlib
import re
import unicodedata

LONGEST_LINE = 300  # characters; the longest sentence of a task has 285
LONGEST_NAME = 80  # bytes of a file's name without its ending
_DIGITS = 10  # hexadecimal digits of the hash in a file's name

# what a terminal obeys: ESC ] ... BEL, and ESC [ ... letter
_ANSI = re.compile(r"\x1b\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?")
# characters without a shape that Unicode does not count as format characters, and two that XML forbids
_SHAPELESS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufffe\uffff\U000e0000-\U000e0fff]")
_FORMULA = re.compile(r"(^|[;\t\n])(?=\s*[=+\-@＝＋－＠])|^(?=\s*[\t\n])")  # noqa: RUF001 (a spreadsheet takes the wide signs, too)
_WORD = r"(?:\d+\.\d+|[^\W_]+(?:(?:'|-(?!\d))[^\W_]+)*|%)"  # no link is a word, and no GH-12
_PLAIN = re.compile(rf"{_WORD}(?:[:,]? {_WORD})*\??")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)  # devices of Windows


def visible(text: str) -> str:
    r"""Return a text without what cannot be seen, with ``\n`` as the end of each line.

    Terminal commands, control characters, characters that turn the direction of writing, and halves of characters are left out.

    >>> visible("a\x1b[31mred\x1b[0m\u202e\r\nb")
    'ared\nb'
    """
    lines = "\n".join(_ANSI.sub("", text).splitlines())
    return "".join(c for c in _SHAPELESS.sub("", lines) if c in "\t\n" or unicodedata.category(c) not in {"Cc", "Cf", "Cs"})


def cut(text: str, longest: int = LONGEST_LINE) -> str:
    """Return a text of at most ``longest`` characters, which ends with "..." where something was cut off."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def no_command(line: str) -> str:
    """Return a line that no CI takes for a command. GitHub obeys ``::`` at the beginning, after spaces too, and ``##[`` anywhere.

    >>> no_command("  ::error::no")
    '  : :error::no'
    """
    return re.sub(r"^\s*:(?=:)|##(?=\w*\[)", r"\g<0> ", line)


def for_log(text: str, longest: int = LONGEST_LINE) -> str:
    r"""Return one line of visible characters that can be printed in any terminal or CI.

    >>> for_log("\x1b[2J\n::set-output name=x::1\nand ##[error]")
    ': :set-output name=x::1 and ## [error]'
    """
    return cut(no_command(" ".join(visible(text).split())), longest)


def for_cell(value: str | float) -> str | float:
    """Return a value for a cell of a CSV file. A text that a spreadsheet would take for a formula gets an apostrophe; numbers stay.

    A spreadsheet that separates cells at semicolons finds no formula behind a semicolon either.

    >>> for_cell("=1+1"), for_cell(-1)
    ("'=1+1", -1)
    """
    if not isinstance(value, str):
        return value
    return _FORMULA.sub(r"\1'", "\n".join(map(no_command, visible(value).split("\n"))))


def for_markdown(text: str) -> str:
    """Return a text for the middle of a line of Markdown. Plain words stay. Any other text becomes a code span, where signs mean nothing.

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
    """Return lines as a block of Markdown in which signs mean nothing. Its fence is longer than any in the lines."""
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return [fence, *map(no_command, lines), fence]


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def file_name(student: str) -> str:
    """Return a name for the files of a student, without an ending. Two students never get the same one, in large or small letters.

    Letters, digits and ``-_.@`` stay, and any other character becomes ``_``. A name that has changed, or that a system could take for
    another one, ends with a hash: names with capital letters or accents, names of Windows devices, and names that look like hashed ones.

    >>> file_name("ana@uni.edu"), file_name("../Ana")
    ('ana@uni.edu', '_.._Ana-229dec4c04')
    """
    safe = re.sub(r"[^\w.@-]", "_", student)
    if not re.match(r"[\w@]", safe) or _RESERVED.match(safe):
        safe = f"_{safe}"
    plain = safe == student and re.fullmatch(r"[a-z0-9_.@-]+", safe) and len(safe) <= LONGEST_NAME
    if plain and not re.search(rf"-[0-9a-f]{{{_DIGITS}}}$", safe):
        return safe
    # of the whole name, so that two names that differ only in replaced characters stay apart
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{safe.encode()[: LONGEST_NAME - _DIGITS - 1].decode(errors='ignore')}-{digest}"
