"""Schedules as text and as CSV. An error in a text names the line and the column."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError, InvalidSchedule
from hybridlab.schedule.ops import Op
from hybridlab.sheets import without_notes

Turn = tuple[Op, ...]  # one operation, or the two operations of an overlapped pair
Turns = tuple[tuple[Turn, ...], ...]  # the turns of each device in running order
MOST_LINES = 32  # an error shows at most this many devices; if a schedule has more, only devices with a marked turn are shown
WINDOW = 12  # a long line shows this many turns before its first marked turn, and twice as many after it

_BETWEEN = r"\s,;\""  # what can stand between words: spaces, and the separators and quotation marks of a CSV
_LABEL = re.compile(rf"[{_BETWEEN}]*device\s+([0-9]{{1,9}})(?:\s*:|(?=[{_BETWEEN}]|$))", re.IGNORECASE)  # the colon may be missing
_WORD = re.compile(rf"\([^()]*\)\w*|[^{_BETWEEN}]+")  # an overlapped pair is one word, even if the pair contains spaces or commas
_BLANK = re.compile(rf"[{_BETWEEN}]*")
_PAIR = re.compile(r"\(([^();]*);([^();]*)\)(?:OVERLAP_F_B)?")  # torch.distributed.pipelining adds OVERLAP_F_B in its CSV
_LIST = re.compile(rf"([^\[\]]*)\[([^\[\]]*)\]([{_BETWEEN}]*)")  # a line that torch prints: [0F0, None, 0B0]
_IDLE = re.compile(r"\bNone\b")
_RANKS = re.compile(r"\s*Rank 0(?:\s+Rank [0-9]{1,9})*\s*")  # the first line of a grid that torch prints
_STEP = re.compile(r"\s*Step [0-9]{1,9}: ")
# Words that torch.distributed.pipelining writes into cells of a CSV for communication.
_COMMUNICATION = re.compile(r"[0-9]{1,9}((?:SEND|RECV)_[FB]|UNSHARD|RESHARD|REDUCE_GRAD|WAIT_[A-Z]+(?:_[A-Z]+)*)(?:[0-9]{1,9})?")


def read_orders(orders: Iterable[Iterable[Op | str | tuple[Op | str, ...]]]) -> Turns:
    """Return ``orders`` as turns.

    Parameters
    ----------
    orders : sequence of sequences
        The operations of each device in running order, as :class:`Op` or as text. A tuple of operations is one turn, and so is a text
        such as ``"(0F3;3B1)"``.

    Raises
    ------
    InvalidSchedule
        The order of a device is not a sequence, or an element of the order is not an operation. The message names the device and the
        position.

    Examples
    --------
    >>> read_orders([["0F0", "(0F1;0B0)"]])[0][1] == (Op.parse("0F1"), Op.parse("0B0"))
    True
    """
    try:
        listed = [_list_order(order) for order in ([orders] if isinstance(orders, str) else orders)]
    except TypeError:
        raise InvalidSchedule(
            f"orders must have a sequence of operations for each device, not {short_repr(orders)}", "not-a-list"
        ) from None
    return tuple(tuple(_read_turn(turn, device, position) for position, turn in enumerate(order)) for device, order in enumerate(listed))


def turn_text(turn: Turn) -> str:
    """Return the text of an operation or of an overlapped pair.

    >>> turn_text((Op.parse("0F3"), Op.parse("3B1")))
    '(0F3;3B1)'
    """
    return str(turn[0]) if len(turn) == 1 else f"({';'.join(map(str, turn))})"


def join_text(orders: Sequence[Sequence[Turn]]) -> str:
    """Return one line for each device, such as ``device 0: 0F0 0B0``."""
    return "\n".join(f"device {device}: {' '.join(map(turn_text, order))}" for device, order in enumerate(orders))


def join_marked(orders: Sequence[Sequence[Turn]], marks: Container[tuple[int | None, int | None]]) -> str:
    """Return the lines of :func:`join_text` with the marked turns in brackets.

    Parameters
    ----------
    orders : sequence of sequences of turns
        The turns of each device.
    marks : container of pairs
        The (device, position) of each turn to put in brackets.

    Returns
    -------
    str
        One line for each device. A long line is cut to the turns around its first marked turn. If there are more than 32 devices, only
        the lines with a marked turn are shown.

    Examples
    --------
    >>> print(join_marked([[(Op.parse("0B0"),), (Op.parse("0F0"),)]], marks={(0, 0)}))
    device 0: [0B0] 0F0
    """
    lines = []
    marked = []
    for device, order in enumerate(orders):
        words = [f"[{turn_text(turn)}]" if (device, position) in marks else turn_text(turn) for position, turn in enumerate(order)]
        first = next((position for position, word in enumerate(words) if word[0] == "["), None)  # the position of the first marked turn
        start, stop = max(0, (first or 0) - WINDOW), (first or 0) + 2 * WINDOW
        window = ["..."] * (start > 0) + words[start:stop] + ["..."] * (stop < len(words))
        lines.append(f"device {device}: {' '.join(window)}")
        marked += [lines[-1]] * (first is not None)
    if len(lines) > MOST_LINES:
        printed = (marked or lines)[:MOST_LINES]
        return "\n".join([*printed, f"and {len(lines) - len(printed)} devices more"])
    return "\n".join(lines)


def join_csv(orders: Sequence[Sequence[Turn]]) -> str:
    """Return one line for each device, with commas between its turns."""
    texts = (",".join(turn_text(turn) + "OVERLAP_F_B" * (len(turn) - 1) for turn in order) for order in orders)
    return "".join(f"{text}\n" for text in texts)


def split_text(text: str) -> Turns:
    r"""Return the orders in ``text``. It has one line for each device, with or without the label ``device N:``.

    Spaces, tabs, commas and semicolons separate operations, so a CSV is such a text, too: also as spreadsheets write it, with quotation
    marks, empty cells or a first line ``sep=;``. Communication, such as ``0SEND_F1``, is left out, and so are comments: lines that begin
    with ``#``. What torch.distributed.pipelining prints is read, too: a list in brackets for each rank, or a grid with a column for each
    rank.

    Raises
    ------
    InvalidSchedule
        The text is empty, its devices are not in order, or a word is not an operation. The message names line and column.

    Examples
    --------
    >>> split_text("device 0: 0F0 0B0") == split_text("0F0,0B0") == split_text('# one device\n"0F0";"0SEND_F0";"0B0";')
    True
    >>> split_text("[0UNSHARD, 0F0, None, 0B0]") == split_text("        Rank 0\nStep 0: 0F0\nStep 1: 0B0") == split_text("0F0 0B0")
    True
    >>> split_text("device 0: 0F0 0G0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hybridlab.errors.InvalidSchedule: line 1, column 15: '0G0' is not an operation: write ...
    """
    return split_words(text, _turn_of_word)


def split_words(text: str, read: Callable[[int, re.Match[str]], list[Any]]) -> tuple[tuple[Any, ...], ...]:
    """Return for each device what ``read`` returns for the words in a text. ``read`` takes the number of the line and the word.

    Raises
    ------
    InvalidSchedule
        The text is empty, or its devices are not in order.

    Examples
    --------
    >>> split_words("0F0,0SEND_F0,0B0", lambda line, word: [word.group()])
    (('0F0', '0SEND_F0', '0B0'),)
    """
    orders: list[tuple[Any, ...]] = []
    lines = list(_numbered_lines(text))
    if lines and _RANKS.fullmatch(lines[0][1]):
        return _split_grid(lines, read)
    for number, line in lines:
        label = _LABEL.match(line)
        if label and int(label.group(1)) != len(orders):
            message = f"line {number}, column 1: device {len(orders)} must come here, not device {label.group(1)}"
            raise InvalidSchedule(message, "wrong-device-number")
        orders.append(tuple(each for word in _WORD.finditer(line, label.end() if label else 0) for each in read(number, word)))
    if not orders:
        raise InvalidSchedule("the text is empty: write one line a device, like: device 0: 0F0 0B0", "empty")
    return tuple(orders)


def turns_in(orders: Any) -> Turns:
    """Return orders in any form that people write as turns.

    Parameters
    ----------
    orders : str, sequence or mapping
        A text with a line of operations for each device, as in :func:`split_text`; a sequence of such lines; a sequence of sequences, as in
        :func:`read_orders`; or a mapping of lines or of sequences.

    Raises
    ------
    InvalidSchedule
        The value has none of these forms (``not-a-list``), or a word is not an operation.

    Examples
    --------
    >>> turns_in(["device 0: 0F0, 0B0", "1F0 1B0"]) == turns_in([["0F0", "0B0"], ["1F0", "1B0"]])
    True
    """
    lines = orders.values() if isinstance(orders, Mapping) else orders.tolist() if isinstance(orders, np.ndarray) else orders
    if isinstance(lines, (bytes, set, frozenset)) or not isinstance(lines, Iterable):
        wanted = "orders must have a line of operations for each device, such as ['0F0 0B0', '1F0 1B0']"
        raise InvalidSchedule(f"{wanted}, not {short_repr(orders)}", "not-a-list")
    if isinstance(lines, str):
        return split_text(lines)
    lines = list(lines)
    if not all(isinstance(line, str) for line in lines):  # a text consists of texts
        return read_orders([line.split(":")[-1].replace(",", " ").split() if isinstance(line, str) else line for line in lines])
    return split_text("\n".join(lines))


def is_communication(word: str) -> bool:
    """Return whether a word is communication of torch.distributed.pipelining.

    >>> is_communication("0SEND_F1"), is_communication("0F1")
    (True, False)
    """
    return _COMMUNICATION.fullmatch(word) is not None


def communication_in(orders: Any) -> dict[str, int]:
    """Return how often each kind of communication occurs in a text. The kind that occurs first comes first. Other orders have none.

    >>> communication_in("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD")
    {'UNSHARD': 1, 'SEND_F': 1, 'RECV_B': 1, 'REDUCE_GRAD': 1}
    """
    if not isinstance(orders, str):
        return {}
    words = (word for _, line in _numbered_lines(orders) for word in _WORD.findall(line))
    return dict(Counter(found.group(1) for word in words if (found := _COMMUNICATION.fullmatch(word))))


def _list_order(order: Iterable[Op | str | tuple[Op | str, ...]]) -> list[Op | str | tuple[Op | str, ...]]:
    """Return a device's order as a list. Raise an error if the order is a single operation or a text instead of a sequence."""
    if isinstance(order, (str, Op)):
        wanted = 'a device\'s order is a sequence of operations, such as ["0F0", "0B0"]'
        raise InvalidSchedule(f"{wanted}, not {short_repr(str(order))}; Schedule.parse reads text", "not-a-list")
    return list(order)


def _read_turn(turn: Op | str | tuple[Op | str, ...], device: int, position: int) -> Turn:
    """Return one element of a device's order as a turn. An error names the device and the position."""
    try:
        if isinstance(turn, (tuple, list)) and not isinstance(turn, Op):  # an Op is a tuple too, but not a pair
            return tuple(Op.parse(str(op) if isinstance(op, Op) else op) for op in turn)
        return _parse_turn(str(turn) if isinstance(turn, Op) else turn)
    except HybridLabError as why:
        raise InvalidSchedule(f"device {device}, position {position}: {why}", why.code) from None


def _parse_turn(text: str) -> Turn:
    """Return the operation that a word names, or the two operations of a pair such as (0F3;3B1)."""
    pair = _PAIR.fullmatch(text) if isinstance(text, str) else None
    return tuple(Op.parse(part.strip()) for part in pair.groups()) if pair else (Op.parse(text),)


def _numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines that have words, each with its number from 1. Comments are left out."""
    if not isinstance(text, str):
        raise InvalidSchedule(f"a schedule's text must be a string, not {short_repr(text)}", "not-text")
    lines, _ = without_notes(text.removeprefix("\ufeff"))  # some Windows programs put this byte order mark before a text
    return ((number, _without_brackets(line)) for number, line in enumerate(lines, start=1) if not _BLANK.fullmatch(line))


def _without_brackets(line: str) -> str:
    """Return a line that is a list in brackets with spaces instead of the brackets, so that each word keeps its column."""
    found = _LIST.fullmatch(line)
    return f"{found.group(1)} {_IDLE.sub('    ', found.group(2))} {found.group(3)}" if found else line


def _split_grid(lines: Sequence[tuple[int, str]], read: Callable[[int, re.Match[str]], list[Any]]) -> tuple[tuple[Any, ...], ...]:
    """Return what ``read`` returns for the words of each rank in a grid: a line for each step, and a column for each rank.

    A word begins where its column begins.
    """
    starts = [found.start() for found in re.finditer("Rank", lines[0][1])]
    columns = {start - starts[0]: rank for rank, start in enumerate(starts)}
    orders: list[list[Any]] = [[] for _ in starts]
    for number, line in lines[1:]:
        step = _STEP.match(line)
        if not step:
            raise InvalidSchedule(f"line {number}, column 1: a line of a grid begins like 'Step 0: ', with a cell for each rank", "ragged")
        for word in _WORD.finditer(line.rstrip().removesuffix("<-- ERROR HERE"), step.end()):
            rank = columns.get(word.start() - step.end())
            if rank is None:
                message = f"line {number}, column {word.start() + 1}: {short_repr(word.group())} stands below no rank"
                raise InvalidSchedule(f"{message}: give the grid with all its spaces", "ragged")
            orders[rank] += read(number, word)
    return tuple(map(tuple, orders))


def _turn_of_word(number: int, word: re.Match[str]) -> list[Turn]:
    """Return the turn that a word of line ``number`` names. Communication is no turn."""
    if is_communication(word.group()):
        return []
    try:
        return [_parse_turn(word.group())]
    except HybridLabError as why:
        raise InvalidSchedule(f"line {number}, column {word.start() + 1}: {why}", why.code) from None
