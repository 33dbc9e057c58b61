"""Schedules as text and as CSV: reading says the line and column of what it cannot read."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence

from hybridlab.errors import HybridLabError, InvalidSchedule
from hybridlab.inputs import shown
from hybridlab.ops import Op

Orders = tuple[tuple[Op, ...], ...]
MOST_LINES = 32  # devices of a marked grid; of more, those with a mark
WINDOW = 12  # operations of a device's line shown around a mark

_LABEL = re.compile(r"\s*device\s+([0-9]{1,9})(?:\s*:|(?=\s|$))", re.IGNORECASE)


def read_orders(orders: Iterable[Iterable[Op | str]]) -> Orders:
    """Return ``orders``, one sequence of operations (Op or text) a device, as tuples of Op; raise for anything else."""
    try:
        rows = [_operations(order) for order in ([orders] if isinstance(orders, str) else orders)]
    except TypeError:
        raise InvalidSchedule(f"orders must be one sequence of operations a device, not {shown(orders)}") from None
    return tuple(tuple(_read(op, device, position) for position, op in enumerate(row)) for device, row in enumerate(rows))


def _operations(order: Iterable[Op | str]) -> list[Op | str]:
    if isinstance(order, (str, Op)):
        wanted = 'a device\'s order is a sequence of operations, such as ["0F0", "0B0"]'
        raise InvalidSchedule(f"{wanted}, not {shown(str(order))}; Schedule.parse reads text")
    return list(order)


def _read(op: Op | str, device: int, position: int) -> Op:
    try:
        return Op.parse(str(op) if isinstance(op, Op) else op)
    except HybridLabError as why:
        raise InvalidSchedule(f"device {device}, position {position}: {why}") from None


def join_text(orders: Sequence[Sequence[Op]]) -> str:
    """Return one line a device: ``device 0: 0F0 0B0``."""
    return "\n".join(f"device {device}: {' '.join(map(str, order))}" for device, order in enumerate(orders))


def join_marked(orders: Sequence[Sequence[Op]], marks: Container[tuple[int | None, int | None]]) -> str:
    """Return the lines of :func:`join_text`, operations at ``marks`` (device, position) in brackets.

    Of a long line the part around its first mark is shown, and of many devices those with a mark.

    >>> print(join_marked([[Op.parse("0B0"), Op.parse("0F0")]], marks={(0, 0)}))
    device 0: [0B0] 0F0
    """
    lines = []
    marked = []
    for device, order in enumerate(orders):
        words = [f"[{op}]" if (device, position) in marks else str(op) for position, op in enumerate(order)]
        first = next((place for place, word in enumerate(words) if word[0] == "["), None)
        start, stop = max(0, (first or 0) - WINDOW), (first or 0) + 2 * WINDOW
        window = ["..."] * (start > 0) + words[start:stop] + ["..."] * (stop < len(words))
        lines.append(f"device {device}: {' '.join(window)}")
        marked += [lines[-1]] * (first is not None)
    if len(lines) > MOST_LINES:
        shown_lines = (marked or lines)[:MOST_LINES]
        return "\n".join([*shown_lines, f"and {len(lines) - len(shown_lines)} devices more"])
    return "\n".join(lines)


def join_csv(orders: Sequence[Sequence[Op]]) -> str:
    """Return one line a device, operations apart by commas."""
    return "".join(",".join(map(str, order)) + "\n" for order in orders)


def split_text(text: str) -> Orders:
    """Return the orders in ``text``, one line a device, with or without ``device N:`` in front.

    >>> split_text("device 0: 0F0 0G0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hybridlab.errors.InvalidSchedule: line 1, column 15: '0G0' is not an operation: write ...
    """
    orders: list[tuple[Op, ...]] = []
    for number, line in _lines(text):
        label = _LABEL.match(line)
        if label and int(label.group(1)) != len(orders):
            raise InvalidSchedule(
                f"line {number}, column 1: device {len(orders)} must come here, not device {label.group(1)}"
            )
        orders.append(_order(number, line, label.end() if label else 0, re.compile(r"\S+")))
    return _some(orders)


def split_csv(text: str) -> Orders:
    """Return the orders in CSV ``text``: one line a device, operations apart by commas, empty cells left out."""
    return _some([_order(number, line, 0, re.compile(r"[^\s,](?:[^,]*[^\s,])?")) for number, line in _lines(text)])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    if not isinstance(text, str):
        raise InvalidSchedule(f"a schedule's text must be a string, not {shown(text)}")
    lines = text.removeprefix("\ufeff").split("\n")  # the mark that Windows programs put before text
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _order(number: int, line: str, start: int, word: re.Pattern[str]) -> tuple[Op, ...]:
    ops = []
    for match in word.finditer(line, start):
        try:
            ops.append(Op.parse(match.group()))
        except HybridLabError as why:
            raise InvalidSchedule(f"line {number}, column {match.start() + 1}: {why}") from None
    return tuple(ops)


def _some(orders: list[tuple[Op, ...]]) -> Orders:
    if not orders:
        raise InvalidSchedule("the text is empty: write one line a device, like: device 0: 0F0 0B0")
    return tuple(orders)
