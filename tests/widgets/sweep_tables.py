"""Make tables of sweeps for tests of figures and views; the numbers are invented, and every row has different ones."""

from collections.abc import Iterable
from itertools import product
from typing import Any

from hybridlab.sweep import Sweep

COLUMNS = ("schedule", "devices", "microbatches", "chunks", "p2p", "forward", "makespan", "bubble_ratio", "refused")
LINES = (("gpipe", 1), ("hanayo", 2), ("hanayo", 4), ("zb-h1", 1))
NAMES = ["GPipe", "Hanayo, 2 chunks", "Hanayo, 4 chunks", "ZB-H1"]
WHY = "hanayo needs microbatches divisible by devices: 4 is not divisible by 3; try 3 or 6"
DEVICES, LATENCIES = (2, 3, 8), (0, 0.5, 16)


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]], unit: str | None = "ms") -> Sweep:
    return Sweep(tuple(columns), tuple(map(tuple, rows)), unit)


def makespan(line: int, devices: int, p2p: float) -> float:
    return 1000 / devices + 10 * line + p2p / 3


def bubble_ratio(line: int, devices: int, p2p: float) -> float:
    """Return an invented bubble ratio: zero for the last line at latency 0, because a logarithmic axis cannot show zero."""
    return 0.0 if (line, p2p) == (3, 0) else (10 * line + devices + p2p) / 100


def is_refused(line: int, devices: int) -> bool:
    return line in (1, 2) and devices == 3


def some_table(unit: str | None = "ms") -> Sweep:
    """Return four lines over three numbers of devices and three latencies; the forward time depends on the number of devices."""
    rows = []
    for p2p, (line, (schedule, chunks)), devices in product(LATENCIES, enumerate(LINES), DEVICES):
        results = (None, None, WHY) if is_refused(line, devices) else (makespan(line, devices, p2p), bubble_ratio(line, devices, p2p), None)
        rows.append((schedule, devices, 4, chunks, p2p, 400 / devices, *results))
    return table(COLUMNS, rows, unit)
