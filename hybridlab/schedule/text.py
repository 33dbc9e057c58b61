"""Schedules as text and as CSV: reading says the line and column of what it cannot read."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError, InvalidSchedule
from hybridlab.schedule.ops import Op

Turn = tuple[Op, ...]  # one operation, or the two of an overlapped pair
Turns = tuple[tuple[Turn, ...], ...]  # what each device runs one after the other
MOST_LINES = 32  # devices of a marked grid; of more, those with a mark
WINDOW = 12  # turns of a device's line shown around a mark

_LABEL = re.compile(r"\s*device\s+([0-9]{1,9})(?:\s*:|(?=\s|$))", re.IGNORECASE)
_PAIR = re.compile(r"\(([^();]*);([^();]*)\)(?:OVERLAP_F_B)?")  # torch.distributed.pipelining writes the word in its CSV
_PARTS = r"\([^()]*\)\w*|"  # what stands in brackets is one word


def read_orders(orders: Iterable[Iterable[Op | str | tuple[Op | str, ...]]]) -> Turns:
    """Return ``orders``, one sequence a device of operations (Op or text) and pairs of them, as turns; raise for anything else.

    >>> read_orders([["0F0", "(0F1;0B0)"]])[0][1] == (Op.parse("0F1"), Op.parse("0B0"))
    True
    """
    try:
        rows = [_operations(order) for order in ([orders] if isinstance(orders, str) else orders)]
    except TypeError:
        raise InvalidSchedule(f"orders must be one sequence of operations a device, not {short_repr(orders)}") from None
    return tuple(tuple(_read(turn, device, position) for position, turn in enumerate(row)) for device, row in enumerate(rows))


def _operations(order: Iterable[Op | str | tuple[Op | str, ...]]) -> list[Op | str | tuple[Op | str, ...]]:
    if isinstance(order, (str, Op)):
        wanted = 'a device\'s order is a sequence of operations, such as ["0F0", "0B0"]'
        raise InvalidSchedule(f"{wanted}, not {short_repr(str(order))}; Schedule.parse reads text")
    return list(order)


def _read(turn: Op | str | tuple[Op | str, ...], device: int, position: int) -> Turn:
    try:
        if isinstance(turn, (tuple, list)) and not isinstance(turn, Op):
            return tuple(Op.parse(str(op) if isinstance(op, Op) else op) for op in turn)
        return _turn(str(turn) if isinstance(turn, Op) else turn)
    except HybridLabError as why:
        raise InvalidSchedule(f"device {device}, position {position}: {why}") from None


def _turn(text: str) -> Turn:
    """Return the operation that a word names, or the two of a pair such as (0F3;3B1)."""
    pair = _PAIR.fullmatch(text) if isinstance(text, str) else None
    return tuple(Op.parse(part.strip()) for part in pair.groups()) if pair else (Op.parse(text),)


def turn_text(turn: Turn) -> str:
    """Return an operation's text, or that of a pair.

    >>> turn_text((Op.parse("0F3"), Op.parse("3B1")))
    '(0F3;3B1)'
    """
    return str(turn[0]) if len(turn) == 1 else f"({';'.join(map(str, turn))})"


def join_text(orders: Sequence[Sequence[Turn]]) -> str:
    """Return one line a device: ``device 0: 0F0 0B0``."""
    return "\n".join(f"device {device}: {' '.join(map(turn_text, order))}" for device, order in enumerate(orders))


def join_marked(orders: Sequence[Sequence[Turn]], marks: Container[tuple[int | None, int | None]]) -> str:
    """Return the lines of :func:`join_text`, turns at ``marks`` (device, position) in brackets.

    Of a long line the part around its first mark is shown, and of many devices those with a mark.

    >>> print(join_marked([[(Op.parse("0B0"),), (Op.parse("0F0"),)]], marks={(0, 0)}))
    device 0: [0B0] 0F0
    """
    lines = []
    marked = []
    for device, order in enumerate(orders):
        words = [f"[{turn_text(turn)}]" if (device, position) in marks else turn_text(turn) for position, turn in enumerate(order)]
        first = next((place for place, word in enumerate(words) if word[0] == "["), None)
        start, stop = max(0, (first or 0) - WINDOW), (first or 0) + 2 * WINDOW
        window = ["..."] * (start > 0) + words[start:stop] + ["..."] * (stop < len(words))
        lines.append(f"device {device}: {' '.join(window)}")
        marked += [lines[-1]] * (first is not None)
    if len(lines) > MOST_LINES:
        shown_lines = (marked or lines)[:MOST_LINES]
        return "\n".join([*shown_lines, f"and {len(lines) - len(shown_lines)} devices more"])
    return "\n".join(lines)


def join_csv(orders: Sequence[Sequence[Turn]]) -> str:
    """Return one line a device, operations apart by commas."""
    texts = (",".join(turn_text(turn) + "OVERLAP_F_B" * (len(turn) - 1) for turn in order) for order in orders)
    return "".join(f"{text}\n" for text in texts)


def split_text(text: str) -> Turns:
    """Return the orders in ``text``, one line a device, with or without ``device N:`` in front.

    >>> split_text("device 0: 0F0 0G0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hybridlab.errors.InvalidSchedule: line 1, column 15: '0G0' is not an operation: write ...
    """
    orders: list[tuple[Turn, ...]] = []
    for number, line in _lines(text):
        label = _LABEL.match(line)
        if label and int(label.group(1)) != len(orders):
            raise InvalidSchedule(f"line {number}, column 1: device {len(orders)} must come here, not device {label.group(1)}")
        orders.append(_order(number, line, label.end() if label else 0, re.compile(_PARTS + r"\S+")))
    return _some(orders)


def split_csv(text: str) -> Turns:
    """Return the orders in CSV ``text``: one line a device, operations apart by commas, empty cells left out."""
    return _some([_order(number, line, 0, re.compile(_PARTS + r"[^\s,](?:[^,]*[^\s,])?")) for number, line in _lines(text)])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    if not isinstance(text, str):
        raise InvalidSchedule(f"a schedule's text must be a string, not {short_repr(text)}")
    lines = text.removeprefix("\ufeff").split("\n")  # the mark that Windows programs put before text
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _order(number: int, line: str, start: int, word: re.Pattern[str]) -> tuple[Turn, ...]:
    turns = []
    for match in word.finditer(line, start):
        try:
            turns.append(_turn(match.group()))
        except HybridLabError as why:
            raise InvalidSchedule(f"line {number}, column {match.start() + 1}: {why}") from None
    return tuple(turns)


def _some(orders: list[tuple[Turn, ...]]) -> Turns:
    if not orders:
        raise InvalidSchedule("the text is empty: write one line a device, like: device 0: 0F0 0B0")
    return tuple(orders)
